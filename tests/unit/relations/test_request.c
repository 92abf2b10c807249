/* SPDX-License-Identifier: MIT */
/* Deadlines in 32 bits: early by little, never late, whatever the clock shows. */
#include "relations/request.h"
#include "test.h"

#define MINUTE (60 * SKUA_SECOND)
#define DAY    (24 * 60 * MINUTE)

static const uint64_t clocks[] = {
    0, 1, SKUA_SECOND, 10 * DAY, 3650 * DAY, (UINT64_C(1) << 40) - 1, UINT64_C(1) << 40,
};

static void check_deadline(uint64_t packed_at, uint64_t left, uint64_t delay)
{
    const uint64_t deadline = packed_at + left;
    const uint32_t packed = request_pack_deadline(deadline, packed_at);
    const uint64_t unpacked = request_unpack_deadline(packed, packed_at + delay);
    const uint64_t slack = 2100 + left / 1000000;
    assert_int_not_equal(packed, 0);
    if (deadline > slack) {
        assert_in_range(unpacked, deadline - slack, deadline);
    }
}

TEST(deadline_is_early_by_little_whatever_the_clock_shows)
{
    for (size_t i = 0; i < COUNT_OF(clocks); i++) {
        for (uint64_t left = 1; left < 1000 * DAY; left = left * 3 + 7) {
            check_deadline(clocks[i], left, 0);
            check_deadline(clocks[i], left, left / 2);
            check_deadline(clocks[i], left, left);
            check_deadline(clocks[i], left, left + SKUA_SECOND); /* it was not looked at in time */
        }
        check_deadline(clocks[i], 0, 0);
    }
}

TEST(deadline_that_has_passed_stays_in_the_past)
{
    for (size_t i = 3; i < COUNT_OF(clocks); i++) {
        const uint64_t deadline = clocks[i] - SKUA_SECOND;
        const uint32_t packed = request_pack_deadline(deadline, clocks[i]);
        assert_in_range(request_unpack_deadline(packed, clocks[i]), deadline - 2100, deadline);
    }
}

TEST(deadline_of_never_and_of_years_is_none)
{
    assert_int_equal(request_pack_deadline(SKUA_FOREVER, 10 * DAY), 0);
    assert_int_equal(request_pack_deadline(5000 * DAY, 10 * DAY), 0);
}

TEST(deadline_keeps_its_value_when_it_is_packed_again)
{
    const uint64_t now = 10 * DAY + 12345;
    const uint64_t once =
        request_unpack_deadline(request_pack_deadline(now + MINUTE, now), now + SKUA_SECOND);
    const uint64_t twice = request_unpack_deadline(request_pack_deadline(once, now + SKUA_SECOND),
                                                   now + 2 * SKUA_SECOND);
    assert_int_equal(once, twice);
}
