/* SPDX-License-Identifier: MIT */
/* The inspector's share of a CPU, and the clients' shares of that, with times that the tests make
 * up. */
#include "inspect/budget.h"
#include "test.h"

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

/* What the budget promises, see budget.c. */
#define BURST         SECOND
#define SHARE         50
#define SHARE_TRACING 5
#define WAIT_MAX_MS   1000

/* A thread that uses what it is told to, in a world whose clock the test turns. */
struct world {
    struct budget budget;
    uint64_t now;
    uint64_t used;
};

static struct world begin(void)
{
    struct world world = {.now = 77 * SECOND, .used = 5 * SECOND};
    world.budget = (struct budget){(int64_t)BURST, world.now, world.used};
    return world;
}

/* Time passes, of which the thread uses some; returns how long it has to wait now. */
static int pass(struct world *world, uint64_t time, uint64_t used, bool traces)
{
    world->now += time;
    world->used += used;
    return budget_count(&world->budget, world->now, world->used, traces);
}

/* Waits as it is told, without using anything, until it need not; returns for how long. */
static uint64_t wait_it_out(struct world *world, int wait_ms, bool traces)
{
    uint64_t waited = 0;
    while (wait_ms > 0) {
        waited += (uint64_t)wait_ms * MS;
        wait_ms = pass(world, (uint64_t)wait_ms * MS, 0, traces);
    }
    return waited;
}

TEST(budget_of_a_new_thread_is_a_burst)
{
    struct budget budget;
    budget_init(&budget);
    assert_int_equal(budget.left_ns, BURST);
    assert_int_equal(budget_wait_ms(&budget, false), 0);
}

TEST(budget_allows_a_burst_without_a_pause)
{
    struct world world = begin();
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(pass(&world, BURST / 10, BURST / 10, false), 0);
    }
}

TEST(budget_that_is_used_up_makes_wait)
{
    struct world world = begin();
    assert_int_equal(pass(&world, 0, BURST, false), 0);
    assert_int_equal(pass(&world, 0, 1, false), 1);
    assert_int_equal(pass(&world, 0, 2 * MS - 1, false), 2 * SHARE + 1);
}

/* After the burst, using all that is allowed for an hour of made-up time. */
static void use_all(struct world *world, bool traces, uint64_t share)
{
    (void)pass(world, 0, BURST, traces);
    const uint64_t used_before = world->used;
    const uint64_t begun = world->now;
    while (world->now - begun < 3600 * SECOND) {
        (void)wait_it_out(world, pass(world, 3 * MS, 3 * MS, traces), traces);
    }
    const uint64_t used = world->used - used_before;
    const uint64_t allowed = (world->now - begun) / share;
    assert_in_range(used, allowed - allowed / 100, allowed + 3 * MS);
}

TEST(budget_of_a_busy_thread_is_one_fiftieth)
{
    struct world world = begin();
    use_all(&world, false, SHARE);
}

TEST(budget_of_a_trace_is_one_fifth)
{
    struct world world = begin();
    use_all(&world, true, SHARE_TRACING);
}

TEST(budget_comes_back_while_nobody_asks)
{
    struct world world = begin();
    (void)pass(&world, 0, BURST, false);
    assert_int_equal(pass(&world, SHARE * 10 * MS, 0, false), 0);
    assert_int_equal(world.budget.left_ns, 10 * MS);
    assert_int_equal(pass(&world, 0, 10 * MS, false), 0);
    assert_true(pass(&world, 0, 1, false) > 0);
}

/* However long nobody asks: what is saved up is no more than a burst. */
TEST(budget_saves_no_more_than_a_burst)
{
    struct world world = begin();
    assert_int_equal(pass(&world, 1000000 * SECOND, 0, false), 0);
    assert_int_equal(pass(&world, 0, BURST, false), 0);
    assert_true(pass(&world, 0, 1, false) > 0);
}

/* One answer may be dear. It is paid for in full, in pieces of a second, so that the end of the
 * runtime is noticed. */
TEST(budget_that_is_far_overdrawn_is_paid_back)
{
    struct world world = begin();
    const int wait_ms = pass(&world, 0, BURST + SECOND, false);
    assert_int_equal(wait_ms, WAIT_MAX_MS);
    const uint64_t waited = wait_it_out(&world, wait_ms, false);
    assert_in_range(waited, SHARE * SECOND, SHARE * SECOND + 2 * MS);
}

/* ---- who may use it ---- */

#define ALL ((UINT32_C(1) << CLIENTS_MAX) - 1)

static uint32_t set_of(uint32_t client)
{
    return UINT32_C(1) << client;
}

/* Gives the next answer to one of those who ask; returns to whom. What it costs depends on that. */
static uint32_t give_one(struct shares *shares, uint32_t asking, const uint64_t costs[CLIENTS_MAX])
{
    const uint32_t client = shares_next(shares, asking);
    assert_true(client < CLIENTS_MAX && (asking & set_of(client)) != 0);
    shares_charge(shares, client, costs[client]);
    return client;
}

TEST(shares_are_equal_whatever_an_answer_costs)
{
    static const uint64_t costs[CLIENTS_MAX] = {1 * MS, 2 * MS, 3 * MS, 5 * MS,
                                                MS / 7, MS / 9, MS / 2, 10 * MS};
    struct shares shares = {0};
    uint64_t used[CLIENTS_MAX] = {0};
    for (uint64_t total = 0; total < CLIENTS_MAX * SECOND;) {
        const uint32_t client = give_one(&shares, ALL, costs);
        used[client] += costs[client];
        total += costs[client];
    }
    for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
        assert_in_range(used[i], SECOND - 10 * MS, SECOND + 10 * MS);
    }
}

TEST(share_that_is_not_used_goes_to_the_others)
{
    static const uint64_t costs[CLIENTS_MAX] = {MS, MS, MS, MS, MS, MS, MS, MS};
    struct shares shares = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(give_one(&shares, set_of(3), costs), 3);
    }
}

/* One that asks now and then, however dear its answers are, is next as soon as it asks. */
TEST(share_of_a_modest_client_waits_for_it)
{
    static const uint64_t costs[CLIENTS_MAX] = {MS, 2 * MS, 3 * MS, MS, MS, MS, MS, 10 * MS};
    const uint32_t modest = 7;
    struct shares shares = {0};
    for (uint32_t round = 0; round < 100; round++) {
        for (uint32_t i = 0; i < 100; i++) {
            assert_int_not_equal(give_one(&shares, ALL & ~set_of(modest), costs), modest);
        }
        uint32_t others = 0; /* those, at most, that have come to the same level */
        while (others < CLIENTS_MAX && give_one(&shares, ALL, costs) != modest) {
            others++;
        }
        assert_in_range(others, 0, CLIENTS_MAX - 1);
    }
}

/* Whoever has not asked for an hour gets no hour before all others. */
TEST(share_that_is_not_used_is_not_saved_up)
{
    static const uint64_t costs[CLIENTS_MAX] = {SECOND, SECOND};
    struct shares shares = {0};
    uint32_t answers = 0;
    for (uint32_t i = 0; i < 3600; i++) {
        (void)give_one(&shares, set_of(0), costs);
    }
    for (uint32_t i = 0; i < 10; i++) {
        answers += give_one(&shares, set_of(0) | set_of(1), costs) == 1;
    }
    assert_int_equal(answers, 5);
}
