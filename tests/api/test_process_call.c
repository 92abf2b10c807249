/* SPDX-License-Identifier: MIT */
/* Calls from threads. */
#include "relations.h"
#include "threads.h"
#include "timers.h"

static int call_number(struct actor *to, uint64_t number, uint64_t timeout_ns, uint64_t *answer)
{
    skua_payload reply = skua_payload_u64(9, 9);
    const int error = skua_process_call(world_runtime(), to->pid, skua_payload_u64(0, number),
                                        timeout_ns, &reply);
    *answer = skua_payload_to_u64(&reply);
    if (error != 0 && error != SKUA_E_PEER_ENDED) {
        assert_int_equal(reply.storage, SKUA_PAYLOAD_EMPTY);
    }
    skua_payload_drop(&reply);
    return error;
}

static void open_either(uint64_t round)
{
    if (round == 1) {
        world_open();
    } else {
        world_open_sim(round, SIM_NO_FAULTS);
    }
}

TEST(thread_gets_the_answer)
{
    FOR_ROUNDS (round, 2) {
        uint64_t answer;
        open_either(round);
        struct actor *server = server_start(ACTS(answers_all()));
        for (uint64_t i = 0; i < 100; i++) {
            assert_int_equal(call_number(server, i, SKUA_FOREVER, &answer), 0);
            assert_int_equal(answer, i + 1);
        }
        assert_int_equal(
            skua_process_call(world_runtime(), server->pid, skua_nothing(), SKUA_FOREVER, NULL), 0);
        world_await_live(1);
    }
}

TEST(thread_gets_an_answer_that_owns_memory)
{
    test_of_steps("a task drops a payload when it receives the next event");
    FOR_ROUNDS (round, 2) {
        struct tracked items[3] = {{.value = 1}, {.value = 2}, {.value = 3}};
        skua_payload reply;
        open_either(round);
        struct actor *server = server_start(ACTS(expects(request(1)), answers_item(0, &items[1]),
                                                 expects(request(0)), answers_item(1, &items[2])));
        assert_int_equal(skua_process_call(world_runtime(), server->pid,
                                           tracked_payload(0, &items[0]), SKUA_FOREVER, &reply),
                         0);
        assert_int_equal(tracked_value(&reply), 2);
        await_drop(&items[0]); /* by the end of the step that has answered */
        assert_drops(&items[1], 1, 0);
        skua_payload_drop(&reply);
        assert_int_equal(skua_process_call(world_runtime(), server->pid, skua_payload_u64(0, 0),
                                           SKUA_FOREVER, NULL),
                         0);
        world_close();
        assert_drops(items, 3, 1);
    }
}

TEST(thread_hears_why_there_is_no_answer)
{
    FOR_ROUNDS (round, 2) {
        uint64_t answer;
        open_either(round);
        struct actor *deaf = actor_start(NO_ACTS);
        struct actor *silent = server_start(NO_ACTS);
        struct actor *wrong = server_start(ACTS(awaits(1), answers_error(0, SKUA_E_USER)));
        struct actor *mortal = server_start(ACTS(awaits(1), fails(SKUA_E_USER - 1)));
        assert_int_equal(call_number(deaf, 1, SKUA_FOREVER, &answer), SKUA_E_NOT_CALLABLE);
        assert_int_equal(call_number(nobody(), 1, SKUA_FOREVER, &answer), SKUA_E_NO_PROCESS);
        assert_int_equal(call_number(foreigner(), 1, SKUA_FOREVER, &answer), SKUA_E_FOREIGN_PID);
        assert_int_equal(call_number(ended_actor(), 1, SKUA_FOREVER, &answer), SKUA_E_NO_PROCESS);
        assert_int_equal(call_number(silent, 1, SKUA_MILLISECOND, &answer), SKUA_E_TIMEOUT);
        assert_int_equal(call_number(wrong, 1, SKUA_FOREVER, &answer), SKUA_E_USER);
        assert_int_equal(call_number(mortal, 1, SKUA_FOREVER, &answer), SKUA_E_PEER_ENDED);
        assert_int_equal((int64_t)answer, SKUA_E_USER - 1);
        assert_int_equal(call_number(silent, 1, SKUA_DURATION_MAX + 1, &answer), SKUA_E_DURATION);
    }
}

/* Both come to the caller in one batch. */
static int answer_and_send(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CALL) {
            assert_int_equal(skua_reply(ctx, events[i].request, 0, skua_payload_u64(0, 5)), 0);
            assert_int_equal(skua_send(ctx, events[i].from, skua_nothing()), 0);
        }
    }
    return 0;
}

TEST(thread_gets_the_answer_of_a_server_that_also_sends_a_message)
{
    static const skua_process_type type = {
        .name = "talkative", .step = answer_and_send, .calls = true};
    FOR_ROUNDS (round, 2) {
        struct actor server = {0};
        uint64_t answer;
        open_either(round);
        assert_int_equal(skua_process_submit(world_runtime(), &type, skua_nothing(), &server.pid),
                         0);
        assert_int_equal(call_number(&server, 1, SKUA_FOREVER, &answer), 0);
        assert_int_equal(answer, 5);
    }
}

TEST(thread_calls_only_runtimes_that_run)
{
    struct tracked items[3] = {{0}, {0}, {0}};
    const skua_pid pid = {0};
    world_create((skua_runtime_config){.worker_count = 1});
    assert_int_equal(
        skua_process_call(world_runtime(), pid, tracked_payload(0, &items[0]), 0, NULL),
        SKUA_E_NOT_STARTED);
    world_start();
    world_stop();
    assert_int_equal(
        skua_process_call(world_runtime(), pid, tracked_payload(0, &items[1]), 0, NULL),
        SKUA_E_STOPPED);
    assert_int_equal(skua_process_call(NULL, pid, tracked_payload(0, &items[2]), 0, NULL),
                     SKUA_E_INVALID);
    assert_drops(items, 3, 1);
}

static int call_inside(struct turn *turn, const struct act *act)
{
    return skua_process_call(skua_runtime_of(turn->ctx), act->peer->pid, skua_nothing(), 0, NULL);
}

TEST(thread_that_runs_a_step_cannot_call)
{
    FOR_ROUNDS (round, 2) {
        open_either(round);
        struct actor *server = server_start(NO_ACTS);
        struct act act = does(call_inside, NULL);
        act.peer = server;
        assert_result(actor_run(actor_new(ACTS(refused(act, SKUA_E_INSIDE_STEP), finishes(1)))), 1);
    }
}

TEST(thread_counts_as_a_process)
{
    uint64_t answer;
    world_open_with((skua_runtime_config){.worker_count = 1, .process_limit = 1});
    struct actor *server = server_start(ACTS(answers_all()));
    assert_int_equal(call_number(server, 1, SKUA_FOREVER, &answer), SKUA_E_PROCESS_LIMIT);
}

TEST(thread_learns_that_a_simulation_is_at_rest)
{
    uint64_t answer;
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *server = server_start(NO_ACTS);
    assert_int_equal(call_number(server, 1, SKUA_FOREVER, &answer), SKUA_E_AT_REST);
    actor_perform(server, ACTS(answers(0, 5))); /* for nobody but the process that asked */
    world_await_live(1);
}

struct caller {
    struct actor *server;
    bool stops;
    int error;
};

static void call_until_the_end(void *arg)
{
    struct caller *caller = arg;
    do {
        caller->error = skua_process_call(world_runtime(), caller->server->pid,
                                          skua_payload_u64(0, 1), SKUA_FOREVER, NULL);
    } while (caller->error == 0);
}

/* The last of them does not call but stops the runtime, when the others have begun. */
static void call_or_stop(void *arg)
{
    struct caller *caller = arg;
    if (caller->stops) {
        tally_wait(&caller->server->arrived, 100);
        caller->error = skua_runtime_stop(world_runtime(), SKUA_FOREVER);
    } else {
        call_until_the_end(caller);
    }
}

TEST(threads_call_until_the_runtime_stops)
{
    struct caller callers[4];
    world_open();
    struct actor *server = server_start(ACTS(answers_all()));
    for (size_t i = 0; i < COUNT_OF(callers); i++) {
        callers[i] = (struct caller){.server = server, .stops = i == COUNT_OF(callers) - 1};
    }
    api_in_threads(COUNT_OF(callers), call_or_stop, callers, sizeof callers[0]);
    for (size_t i = 0; i < COUNT_OF(callers) - 1; i++) {
        const int error = callers[i].error;
        assert_true(error == SKUA_E_STOPPED || error == SKUA_E_PEER_ENDED ||
                    error == SKUA_E_NO_PROCESS);
    }
    assert_int_equal(callers[3].error, 0);
}
