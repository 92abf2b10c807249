/* SPDX-License-Identifier: MIT */
/* Doubles for what a simulation cannot have: skua_sim_config.services. */
#include "desk.h"
#include "sim_trace.h"
#include "waits.h"

#define SEEDS  20
#define FAILED (SKUA_E_USER - 6)
#define DELAY  (3 * SKUA_SECOND)

/* Descriptors, and inputs of functions, that say what the double does. */
enum conduct {
    AT_ONCE = 100,
    LATER,         /* completes after DELAY */
    LATER_FAILING, /* the same, with FAILED */
    FAILING,       /* returns FAILED */
    BY_CALL,       /* completes by a call before it returns */
    NEVER,         /* keeps the completion, for the test */
    NONSENSE,      /* returns what it must not */
};

/* What the doubles were told. */
struct studio {
    unsigned waits;
    unsigned calls;
    int fd;
    bool for_writing;
    skua_pool pool;
    skua_blocking_fn *function;
    skua_completion kept;
    bool takes_input;
    skua_payload input;
};

static struct studio *studio;

static int conduct_of(struct studio *here, skua_completion completion, uint64_t conduct,
                      skua_payload result)
{
    switch (conduct) {
    case AT_ONCE:
        return 0;
    case LATER:
    case LATER_FAILING: {
        const int error = conduct == LATER ? 0 : FAILED;
        const int refused =
            skua_sim_complete_after(world_runtime(), completion, DELAY, error, result);
        return refused != 0 ? refused : SKUA_PENDING;
    }
    case FAILING:
        return FAILED;
    case BY_CALL: {
        const int refused = skua_command_complete(world_runtime(), completion, 0, result);
        return refused != 0 ? refused : SKUA_PENDING;
    }
    case NEVER:
        here->kept = completion;
        return SKUA_PENDING;
    default:
        return SKUA_PENDING + 1;
    }
}

static int wait_double(void *arg, skua_completion completion, int fd, bool for_writing)
{
    struct studio *here = arg;
    here->waits++;
    here->fd = fd;
    here->for_writing = for_writing;
    return conduct_of(here, completion, (uint64_t)fd, skua_nothing());
}

static int blocking_double(void *arg, skua_completion completion, skua_pool pool,
                           skua_blocking_fn *function, skua_payload *input, skua_payload *result)
{
    struct studio *here = arg;
    const uint64_t conduct = skua_payload_to_u64(input);
    here->calls++;
    here->pool = pool;
    here->function = function;
    if (here->takes_input) {
        here->input = skua_payload_take(input);
        return 0;
    }
    const skua_payload answer = skua_payload_u64(DESK_RESULT, conduct + 1);
    if (conduct == AT_ONCE) {
        *result = answer;
    }
    return conduct_of(here, completion, conduct, answer);
}

static int never_run(skua_payload *input, skua_payload *result)
{
    (void)input;
    (void)result;
    return SKUA_E_USER; /* its double runs instead */
}

static void open_studio(uint64_t seed, skua_sim_faults faults)
{
    studio = test_alloc(sizeof *studio);
    world_create_sim(
        seed, (skua_sim_config){
                  .faults = faults,
                  .services = {.wait = wait_double, .blocking = blocking_double, .arg = studio}});
    world_register_pool((skua_blocking_pool){.name = "pool"}); /* not sim_safe */
    world_start();
}

/* ---- how they end ---- */

static const struct {
    enum conduct conduct;
    int error;
    uint64_t delay;
} ends[] = {
    {AT_ONCE, 0, 0},      {LATER, 0, DELAY}, {LATER_FAILING, FAILED, DELAY},
    {FAILING, FAILED, 0}, {BY_CALL, 0, 0},   {NONSENSE, SKUA_E_INVALID, 0},
};

/* The one event came when it should: turns take time, too. */
static void assert_came_after(const struct actor *actor, uint64_t begun, uint64_t delay)
{
    assert_in_range(actor->seen[0].now, begun + delay, begun + delay + SKUA_MILLISECOND);
}

TEST(wait_ends_as_its_double_says)
{
    FOR_ROWS (end, ends) {
        for (int writes = 0; writes < 2; writes++) {
            open_studio(3, SIM_NO_FAULTS);
            const int fd = (int)end->conduct;
            const uint64_t begun = world_now();
            struct actor *actor =
                actor_start(ACTS(writes ? waits_writable(5, fd) : waits_readable(5, fd)));
            world_settle();
            assert_saw(actor, failure(5, end->error));
            assert_came_after(actor, begun, end->delay);
            assert_int_equal(studio->waits, 1);
            assert_int_equal(studio->fd, fd);
            assert_int_equal(studio->for_writing, writes);
            world_close();
        }
    }
}

TEST(blocking_function_ends_as_its_double_says)
{
    FOR_ROWS (end, ends) {
        skua_pool pool;
        open_studio(3, SIM_NO_FAULTS);
        const uint64_t begun = world_now();
        assert_int_equal(skua_blocking_find(world_runtime(), "pool", &pool), 0);
        struct actor *actor = actor_start(ACTS(offloads(5, "pool", never_run, end->conduct)));
        world_settle();
        const struct seen expected = end->error == 0
                                         ? completion_of(5, DESK_RESULT, end->conduct + 1)
                                         : completion(5, end->error);
        assert_saw(actor, expected);
        assert_came_after(actor, begun, end->delay);
        assert_int_equal(studio->calls, 1);
        assert_int_equal(studio->pool.number, pool.number);
        assert_ptr_equal(studio->function, never_run);
    }
}

TEST(doubles_are_hit_by_faults_as_handlers_are)
{
    open_studio(3, (skua_sim_faults){.handler_error = 1000000});
    struct actor *failing = actor_start(ACTS(waits_readable(1, AT_ONCE), waits_writable(2, LATER),
                                             offloads(3, "pool", never_run, AT_ONCE), awaits(3)));
    world_settle();
    assert_saw(failing, failure(1, SKUA_E_INJECTED), failure(2, SKUA_E_INJECTED),
               failure(3, SKUA_E_INJECTED));
    assert_int_equal(studio->waits + studio->calls, 0);
    world_close();

    open_studio(3, (skua_sim_faults){.slow_completion = 1000000});
    const uint64_t begun = world_now();
    struct actor *slow = actor_start(
        ACTS(waits_readable(1, AT_ONCE), offloads(2, "pool", never_run, AT_ONCE), awaits(2)));
    world_settle();
    assert_int_equal(slow->seen_count, 2);
    for (size_t i = 0; i < slow->seen_count; i++) {
        assert_int_equal(slow->seen[i].error, 0);
        assert_true(slow->seen[i].now > begun + 10 * SKUA_MICROSECOND);
    }
}

TEST(blocking_function_of_any_pool_has_its_double)
{
    open_studio(3, SIM_NO_FAULTS);
    struct actor *actor = actor_start(ACTS(offloads(5, NULL, never_run, AT_ONCE)));
    world_settle();
    assert_saw(actor, completion_of(5, DESK_RESULT, AT_ONCE + 1));
    assert_int_equal(studio->pool.number, 0);
}

TEST(double_may_take_the_input)
{
    for (int takes = 0; takes < 2; takes++) {
        struct tracked item = {0};
        open_studio(3, SIM_NO_FAULTS);
        studio->takes_input = takes;
        struct act offload = offloads(5, "pool", never_run, 0);
        (void)actor_start(ACTS(with_payload(offload, tracked_payload(0, &item))));
        world_settle();
        assert_drops(&item, 1, takes ? 0 : 1);
        skua_payload_drop(&studio->input);
        world_close();
        assert_drops(&item, 1, 1);
    }
}

/* ---- what the process wants meanwhile ---- */

/* A yield of either kind that does this. */
static struct act asks(bool blocking, enum conduct conduct)
{
    return blocking ? offloads(5, "pool", never_run, conduct) : waits_readable(5, (int)conduct);
}

TEST(double_that_takes_long_is_timed_out)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        open_studio(3, SIM_NO_FAULTS);
        const uint64_t begun = world_now();
        struct actor *actor = actor_start(ACTS(within(SKUA_SECOND, asks(blocking, LATER))));
        world_settle(); /* the late completion is dropped */
        assert_saw(actor, failure(5, SKUA_E_TIMEOUT));
        assert_came_after(actor, begun, SKUA_SECOND);
        assert_true(world_now() >= begun + DELAY);
        world_close();
    }
}

TEST(double_that_is_in_time_is_not_timed_out)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        open_studio(3, SIM_NO_FAULTS);
        const uint64_t begun = world_now();
        struct actor *actor = actor_start(ACTS(within(2 * DELAY, asks(blocking, LATER))));
        world_settle();
        assert_saw(actor, completion(5, 0));
        assert_came_after(actor, begun, DELAY);
        world_close();
    }
}

/* No time at all: only what comes at once counts. */
TEST(double_without_time_has_to_be_done_at_once)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        open_studio(3, SIM_NO_FAULTS);
        struct actor *quick = actor_start(ACTS(within(0, asks(blocking, AT_ONCE))));
        struct actor *slow = actor_start(ACTS(within(0, asks(blocking, LATER))));
        world_settle();
        assert_saw(quick, completion(5, 0));
        assert_saw(slow, failure(5, SKUA_E_TIMEOUT));
        world_close();
    }
}

TEST(double_can_be_taken_back)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        open_studio(3, SIM_NO_FAULTS);
        const uint64_t begun = world_now();
        struct actor *actor = actor_start(
            ACTS(asks(blocking, LATER), continues(2), cancels(5), awaits(1), finishes(0)));
        world_settle();
        assert_saw(actor, failure(5, SKUA_E_CANCELLED));
        assert_came_after(actor, begun, 0);
        assert_int_equal(actor->closes, 1);
        world_close();
    }
}

TEST(double_may_be_completed_by_the_test)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        open_studio(3, SIM_NO_FAULTS);
        struct actor *actor = actor_start(ACTS(asks(blocking, NEVER)));
        world_settle();
        assert_saw_nothing(actor);
        assert_int_equal(world_info(actor->pid).state, SKUA_PROCESS_BLOCKED);
        const skua_payload result = skua_payload_u64(DESK_RESULT, 8);
        assert_int_equal(skua_command_complete(world_runtime(), studio->kept, 0, result), 0);
        assert_int_equal(skua_command_complete(world_runtime(), studio->kept, 0, result),
                         SKUA_E_LATE);
        world_settle();
        assert_saw(actor, completion_of(5, DESK_RESULT, 8));
        world_close();
    }
}

TEST(process_may_end_before_its_double)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        open_studio(3, SIM_NO_FAULTS);
        (void)actor_start(ACTS(asks(blocking, LATER), finishes(0)));
        (void)actor_start(ACTS(asks(blocking, LATER))); /* and the stop */
        assert_int_equal(skua_sim_run(world_runtime(), world_now() + SKUA_SECOND), 1);
        world_close();
    }
}

/* ---- with all else ---- */

TEST(doubles_give_the_same_run_again)
{
    FOR_ROUNDS (seed, SEEDS) {
        uint64_t hashes[2];
        for (size_t i = 0; i < COUNT_OF(hashes); i++) {
            open_studio(seed, (skua_sim_faults){.slow_completion = 300000});
            for (uint64_t n = 0; n < 5; n++) {
                (void)actor_start(ACTS(waits_readable(1, AT_ONCE + (int)n % 4),
                                       offloads(2, "pool", never_run, AT_ONCE + n % 4),
                                       within(SKUA_SECOND, waits_writable(3, LATER)), awaits(3),
                                       finishes(0)));
            }
            world_settle();
            assert_int_equal(world_stats().live, 0);
            hashes[i] = skua_sim_hash(world_runtime());
            world_close();
        }
        assert_int_equal(hashes[0], hashes[1]);
    }
}

TEST(services_without_doubles_are_not_simulated)
{
    world_create_sim(3, (skua_sim_config){0});
    world_register_pool((skua_blocking_pool){.name = "pool"});
    world_start();
    struct actor *actor =
        actor_start(ACTS(waits_readable(1, 0), waits_writable(2, 0),
                         offloads(3, "pool", never_run, 0), offloads(4, NULL, never_run, 0)));
    world_settle();
    assert_then_saw_in_any_order(actor, failure(1, SKUA_E_NOT_SIMULATED),
                                 failure(2, SKUA_E_NOT_SIMULATED), failure(3, SKUA_E_NOT_SIMULATED),
                                 failure(4, SKUA_E_NOT_SIMULATED));
}
