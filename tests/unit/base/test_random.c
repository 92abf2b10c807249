/* SPDX-License-Identifier: MIT */
/* Random numbers: the published stream of SplitMix64, and the range of random_below. */
#include "base/random.h"
#include "test.h"

TEST(next_from_known_seeds_is_the_published_stream)
{
    static const uint64_t from_zero[] = {UINT64_C(0xe220a8397b1dcdaf), UINT64_C(0x6e789e6aa1b965f4),
                                         UINT64_C(0x06c45d188009454f)};
    static const uint64_t from_1234567[] = {
        UINT64_C(6457827717110365317), UINT64_C(3203168211198807973), UINT64_C(9817491932198370423),
        UINT64_C(4593380528125082431), UINT64_C(16408922859458223821)};
    uint64_t stream = 0;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(random_next(&stream), from_zero[i]);
    }
    stream = 1234567;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(random_next(&stream), from_1234567[i]);
    }
}

TEST(next_depends_on_key_and_count_alone)
{
    const uint64_t key = UINT64_C(0xfedcba9876543210);
    uint64_t stream = key;
    for (uint64_t n = 1; n <= 1000; n++) {
        assert_int_equal(random_next(&stream), random_mix(key + n * RANDOM_STEP));
    }
}

/* Undoes x ^ (x >> shift). */
static uint64_t unshift(uint64_t x, unsigned shift)
{
    uint64_t result = x;
    for (unsigned done = shift; done < 64; done += shift) {
        result = x ^ (result >> shift);
    }
    return result;
}

/* The multipliers are the inverses, modulo 2^64, of those in random_mix. */
static uint64_t unmix(uint64_t x)
{
    x = unshift(x, 31) * UINT64_C(0x319642b2d24d8ec3);
    x = unshift(x, 27) * UINT64_C(0x96de1b173f119089);
    return unshift(x, 30);
}

TEST(mix_is_one_to_one)
{
    assert_int_equal(random_mix(0), 0);
    for (uint64_t i = 0; i < 100000; i++) {
        assert_int_equal(unmix(random_mix(i)), i);
        assert_int_equal(unmix(random_mix(~(i << 40))), ~(i << 40));
    }
}

TEST(below_stays_below_its_bound)
{
    static const uint32_t bounds[] = {1, 2, 3, 61, 255, 256, UINT32_C(1) << 31, UINT32_MAX};
    uint64_t stream = 1;
    for (size_t i = 0; i < COUNT_OF(bounds); i++) {
        for (int n = 0; n < 10000; n++) {
            assert_true(random_below(&stream, bounds[i]) < bounds[i]);
        }
    }
}

TEST(below_reaches_every_value_about_equally_often)
{
    enum { BOUND = 7, ROUNDS = 70000 };
    uint64_t stream = 1; /* always the same numbers, so the test cannot fail by chance */
    int hits[BOUND] = {0};
    for (int n = 0; n < ROUNDS; n++) {
        hits[random_below(&stream, BOUND)]++;
    }
    for (int value = 0; value < BOUND; value++) {
        assert_in_range(hits[value], 9500, 10500);
    }
}

TEST(below_reaches_large_values_of_a_large_bound)
{
    uint64_t stream = 1;
    uint32_t largest = 0;
    for (int n = 0; n < 1000; n++) {
        const uint32_t value = random_below(&stream, UINT32_MAX);
        largest = value > largest ? value : largest;
    }
    assert_true(largest > UINT32_MAX / 100 * 98);
}
