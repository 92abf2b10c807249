/* SPDX-License-Identifier: MIT */
/* Completions that come late, twice, or from nowhere, and what becomes of yields when their process
 * ends. */
#include "desk.h"
#include "relations.h"
#include "relations/request.h"
#include "runtime/runtime.h"

#define ERROR_STEP (SKUA_E_USER - 2)

enum { QUESTION = 3 };

/* A process with one yield, whose completion is the n-th on the desk. */
static struct actor *start_asking(struct desk *desk, size_t n)
{
    struct actor *actor = actor_start(ACTS(yields(90, DESK_KEEP, QUESTION, 0)));
    desk_await_kept(desk, n + 1);
    return actor;
}

/* A completion that comes too late is counted, and its result dropped. */
static void complete_late(skua_completion completion)
{
    struct tracked item = {0};
    const uint64_t before = world_stats().late_completions;
    assert_int_equal(
        skua_command_complete(world_runtime(), completion, 0, tracked_payload(DESK_RESULT, &item)),
        SKUA_E_LATE);
    assert_drops(&item, 1, 1);
    assert_int_equal(world_stats().late_completions, before + 1);
}

/* ---- steps that end the process ---- */

TEST(yields_of_a_failing_step_are_dropped)
{
    struct tracked items[2] = {0};
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    struct actor *actor =
        actor_new(ACTS(yields_item(0, DESK_DOUBLE, QUESTION, &items[0]),
                       yields_item(1, DESK_KEEP, QUESTION, &items[1]), fails(ERROR_STEP)));
    assert_failed(actor_run(actor), ERROR_STEP);
    world_close();
    assert_int_equal(desk->calls, 0);
    assert_drops(items, 2, 1);
}

TEST(yields_of_a_done_step_are_carried_out_unheard)
{
    struct tracked items[2] = {0};
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    struct actor *actor =
        actor_new(ACTS(yields_item(0, DESK_DOUBLE, QUESTION, &items[0]),
                       yields_item(1, DESK_KEEP, QUESTION, &items[1]), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_int_equal(desk->calls, 2);
    complete_late(desk->kept[0]);
    world_close();
    assert_saw_nothing(actor);
    assert_drops(items, 2, 1);
}

static int leave_pending(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return SKUA_PENDING;
}

TEST(yields_without_an_answer_give_their_memory_back)
{
    uint64_t bytes = 0;
    world_create((skua_runtime_config){.worker_count = 1});
    world_register(1, leave_pending, NULL);
    world_start();
    const struct act many = for_each_tag(1000, yields(0, 1, QUESTION, 0));
    /* A tenth of what would be needed if nothing came back, then the rest. */
    for (unsigned round = 0; round < 100; round++) {
        (void)actor_run(
            actor_new(round % 2 == 0 ? ACTS(many, finishes(0)) : ACTS(many, fails(ERROR_STEP))));
        if (round == 10) {
            bytes = counting_allocator_live_bytes(&world->api->memory);
        }
    }
    assert_int_equal(counting_allocator_live_bytes(&world->api->memory), bytes);
}

/* What a process that ends takes back are the calls it still has, not the places of those it had.
 */
TEST(end_of_a_process_leaves_the_calls_of_others_open)
{
    enum { FEW = 5 };
    static const size_t orders[][FEW] = {
        {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}, {1, 3, 0, 2, 4}};
    FOR_ROUNDS (round, COUNT_OF(orders) * (FEW + 1)) {
        const size_t *order = orders[(round - 1) / (FEW + 1)];
        const size_t completed = (round - 1) % (FEW + 1);
        const struct act few = for_each_tag(FEW, yields(0, DESK_KEEP, QUESTION, 0));
        struct desk *desk = desk_open_with((skua_runtime_config){.worker_count = 1});
        struct actor *first = actor_start(ACTS(few));
        desk_await_kept(desk, FEW);
        for (size_t i = 0; i < completed; i++) {
            assert_int_equal(desk_complete(desk, order[i], 0, 0), 0);
            actor_await_seen(first, i + 1);
        }
        struct actor *second = actor_start(ACTS(few, awaits(FEW), finishes(0)));
        desk_await_kept(desk, 2 * FEW);
        assert_int_equal(world_terminate(first->pid), 0);
        actor_await_end(first);
        for (size_t i = 0; i < FEW; i++) {
            assert_int_equal(desk_complete(desk, FEW + i, 0, 0), 0);
        }
        actor_await_end(second);
        assert_completed_each_once(second, FEW, 0);
    }
}

/* ---- late, twice, forged ---- */

TEST(completion_after_the_end_is_late)
{
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    struct actor *done = start_asking(desk, 0);
    actor_tell(done, ACTS(finishes(0)));
    actor_await_end(done);
    complete_late(desk->kept[0]);
    struct actor *terminated = start_asking(desk, 1);
    assert_int_equal(world_terminate(terminated->pid), 0);
    actor_await_end(terminated);
    complete_late(desk->kept[1]);
    assert_saw_nothing(done);
    assert_saw_nothing(terminated);
}

/* Neither the place of the process nor that of the call may be mistaken for their next users. */
TEST(completion_after_the_end_does_not_reach_a_later_call)
{
    struct desk *desk =
        desk_open_with((skua_runtime_config){.worker_count = 1, .process_limit = 1});
    struct actor *first = start_asking(desk, 0);
    assert_int_equal(world_terminate(first->pid), 0);
    world_await_live(0);
    struct actor *second = start_asking(desk, 1);
    complete_late(desk->kept[0]);
    /* The right of the first call with the name of the second process. */
    complete_late((skua_completion){.process = second->pid, .call = desk->kept[0].call});
    assert_int_equal(desk_complete(desk, 1, 0, 3), 0);
    actor_await_seen(second, 1);
    world_close();
    assert_saw_nothing(first);
    assert_saw(second, completion_of(90, DESK_RESULT, 3), cancel(SKUA_E_STOPPED));
}

TEST(completion_a_second_time_is_late)
{
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    struct actor *actor = start_asking(desk, 0);
    assert_int_equal(desk_complete(desk, 0, 0, 1), 0);
    complete_late(desk->kept[0]);
    actor_await_seen(actor, 1);
    complete_late(desk->kept[0]);
    actor_await_state(actor, SKUA_PROCESS_IDLE);
    assert_int_equal(world_info(actor->pid).mailbox_length, 0); /* a completion is no message */
    world_close();
    assert_saw(actor, completion_of(90, DESK_RESULT, 1), cancel(SKUA_E_STOPPED));
}

/* Completes its command by a call, and then says so. */
static int complete_then_return(void *arg, skua_command *command, skua_payload *result)
{
    const int *outcome = arg;
    (void)skua_command_complete(command->runtime, command->completion, 0,
                                skua_payload_u64(DESK_RESULT, 1));
    *result = skua_payload_u64(DESK_RESULT, 2);
    return *outcome;
}

TEST(result_after_a_completion_by_a_call_is_late)
{
    static const struct {
        int outcome;
        uint64_t timeout_ns;
        uint64_t late;
    } rows[] = {
        {0, SKUA_FOREVER, 1},
        {SKUA_E_USER, SKUA_FOREVER, 1},
        {SKUA_PENDING, SKUA_FOREVER, 0},
        {0, SKUA_DURATION_MAX, 1},
        {SKUA_PENDING, SKUA_DURATION_MAX, 0},
        {0, 0, 1},
        {SKUA_PENDING, 0, 0},
    };
    FOR_ROWS (row, rows) {
        int outcome = row->outcome;
        world_create((skua_runtime_config){0});
        world_register(QUESTION, complete_then_return, &outcome);
        world_start();
        struct actor *actor =
            actor_new(ACTS(within(row->timeout_ns, yields(5, QUESTION, 0, 0)),
                           expects(completion_of(5, DESK_RESULT, 1)), finishes(0)));
        assert_result(actor_run(actor), 0);
        assert_int_equal(world_stats().late_completions, row->late);
    }
}

TEST(completion_forged_changes_nothing)
{
    struct api other;
    struct tracked items[2] = {0};
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    struct actor *actor = start_asking(desk, 0);
    const skua_completion real = desk->kept[0];
    complete_late((skua_completion){.call = 0});
    complete_late((skua_completion){.call = real.call});
    complete_late((skua_completion){.process = real.process});
    for (unsigned bit = 0; bit < 64; bit++) {
        complete_late(
            (skua_completion){.process = real.process, .call = real.call ^ UINT64_C(1) << bit});
    }
    api_run(&other, 1);
    assert_int_equal(skua_command_complete(other.runtime, real, 0, tracked_payload(0, &items[0])),
                     SKUA_E_FOREIGN_PID);
    api_stop(&other);
    assert_int_equal(skua_command_complete(world_runtime(), real, 1, tracked_payload(0, &items[1])),
                     SKUA_E_INVALID);
    assert_drops(items, COUNT_OF(items), 1);
    assert_int_equal(desk_complete(desk, 0, 0, 4), 0);
    actor_await_seen(actor, 1);
    world_close();
    assert_saw(actor, completion_of(90, DESK_RESULT, 4), cancel(SKUA_E_STOPPED));
}

/* A request that its server has opened has a node as a yield does; no completion fits that. */
TEST(completion_forged_for_a_request_changes_nothing)
{
    world_open_virtual();
    struct actor *server = careful_server_start(ACTS(expects(request(1))));
    struct actor *client = actor_start(ACTS(asks(7, server, 1)));
    world_settle();
    const uint64_t index = server->seen[0].request.bits >> REQUEST_CHECK_BITS;
    const uint32_t guard =
        load_relaxed(&event_at(&world_runtime()->sched.events, (uint32_t)index)->guard);
    assert_int_equal(guard & (REQUEST_OPEN | CALL_OPEN), REQUEST_OPEN);
    complete_late((skua_completion){.process = client->pid, .call = index << 32 | guard});
    for (unsigned bit = 0; bit < 32; bit++) {
        const uint64_t call = index << 32 | (guard ^ UINT32_C(1) << bit);
        complete_late((skua_completion){.process = client->pid, .call = call});
        complete_late((skua_completion){.process = server->pid, .call = call});
    }
    actor_perform(server, ACTS(answers(0, 2)));
    assert_saw(client, completion_of(7, 0, 2));
}

/* ---- races ---- */

#define ROUNDS  200
#define THREADS 3

/* In each round some threads try to complete the same yield of another process. */
struct race {
    struct desk *desk;
    struct actor *actors[ROUNDS];
    pthread_barrier_t round;
    bool terminate; /* the first racer ends the process before it tries */
    atomic_uint won;
    atomic_uint late;
    atomic_uint odd_errors;
    struct tracked items[ROUNDS][THREADS];
};

struct racer {
    struct race *race;
    size_t number;
};

static void race_to_complete(struct race *race, size_t round, size_t number)
{
    const int error = skua_command_complete(world_runtime(), race->desk->kept[round], 0,
                                            tracked_payload(0, &race->items[round][number]));
    atomic_uint *count = error == 0             ? &race->won
                         : error == SKUA_E_LATE ? &race->late
                                                : &race->odd_errors;
    (void)atomic_fetch_add(count, 1);
}

/* The first racer prepares each round, and sees to its end. */
static void race_rounds(void *arg)
{
    const struct racer *racer = arg;
    struct race *race = racer->race;
    const bool leads = racer->number == 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        if (leads) {
            race->odd_errors += actor_try_submit(race->actors[round]) != 0;
            desk_await_kept(race->desk, round + 1);
        }
        (void)pthread_barrier_wait(&race->round);
        if (race->terminate && leads) {
            (void)world_terminate(race->actors[round]->pid); /* it may be done */
        }
        race_to_complete(race, round, racer->number);
        (void)pthread_barrier_wait(&race->round);
        if (leads) {
            world_await_live(0);
        }
    }
}

static struct race *run_race(bool terminate)
{
    struct race *race = test_alloc(sizeof *race);
    struct racer racers[THREADS];
    race->terminate = terminate;
    race->desk = desk_open_with((skua_runtime_config){0});
    for (size_t i = 0; i < ROUNDS; i++) {
        race->actors[i] =
            actor_new(ACTS(yields(90, DESK_KEEP, QUESTION, 0), awaits(1), finishes(0)));
    }
    for (size_t i = 0; i < THREADS; i++) {
        racers[i] = (struct racer){.race = race, .number = i};
    }
    assert_int_equal(pthread_barrier_init(&race->round, NULL, THREADS), 0);
    api_in_threads(THREADS, race_rounds, racers, sizeof racers[0]);
    assert_int_equal(pthread_barrier_destroy(&race->round), 0);
    assert_int_equal(world_stats().late_completions, race->late);
    world_close();
    assert_int_equal(race->odd_errors, 0);
    assert_drops(&race->items[0][0], (size_t)ROUNDS * THREADS, 1);
    assert_int_equal(race->won + race->late, ROUNDS * THREADS);
    return race;
}

TEST(completions_from_several_threads_are_accepted_once)
{
    assert_int_equal(run_race(false)->won, ROUNDS);
}

TEST(completion_of_a_process_that_ends_drops_its_result_once)
{
    assert_in_range(run_race(true)->won, 0, ROUNDS);
}
