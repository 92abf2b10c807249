/* SPDX-License-Identifier: MIT */
/* Stopping a simulated runtime: the time that its processes get, who survives, and what is left on
 * the agenda. */
#include "actor.h"
#include "handlers.h"
#include "survivors.h"

#define SEED  7
#define START SKUA_SIM_START_NS

static struct survivors *open_with_survivors(void)
{
    skua_runtime_config config = {.sim = &(skua_sim_config){0}};
    struct survivors *survivors = survivors_watch(&config);
    world_open_with(config);
    return survivors;
}

TEST(stop_gives_processes_their_virtual_time)
{
    const struct survivors *survivors = open_with_survivors();
    struct actor *actor = actor_start(
        ACTS(expects(cancel(SKUA_E_STOPPED)), sleeps(1, 2 * SKUA_SECOND), awaits(1), finishes(0)));
    assert_int_equal(skua_runtime_stop(world_runtime(), 3 * SKUA_SECOND), 0);
    assert_in_range(world_now(), START + 2 * SKUA_SECOND, START + 3 * SKUA_SECOND - 1);
    assert_int_equal(survivors->count, 0);
    assert_saw(actor, cancel(SKUA_E_STOPPED), completion(1, 0));
    assert_int_equal(actor->closes, 1);
}

static void note_time(void *arg, const skua_process_snapshot *info)
{
    (void)info;
    *(uint64_t *)arg = world_now();
    assert_int_equal(skua_sim_run(world_runtime(), SKUA_FOREVER), SKUA_E_BUSY);
}

TEST(stop_ends_those_that_do_not_finish)
{
    const struct {
        uint64_t timeout;
        uint32_t survivors;
    } rows[] = {
        {5 * SKUA_SECOND, 1},
        {0, 2},            /* nobody has time */
        {SKUA_FOREVER, 1}, /* at rest, the stop can wait no longer */
    };
    FOR_ROWS (row, rows) {
        uint64_t ended_at = 0;
        struct survivors *survivors = open_with_survivors();
        survivors->then = note_time;
        survivors->then_arg = &ended_at;
        struct actor *deaf = actor_new(NO_ACTS);
        deaf->ignores_cancel = true;
        actor_submit(deaf);
        struct actor *obedient = actor_start(NO_ACTS);
        world_settle();
        const uint64_t before = world_now();
        assert_int_equal(skua_runtime_stop(world_runtime(), row->timeout), SKUA_E_TIMEOUT);
        assert_int_equal(survivors->count, row->survivors);
        (void)survivors_find(survivors, deaf->pid);
        if (row->timeout != SKUA_FOREVER) {
            assert_int_equal(ended_at, before + row->timeout);
        }
        assert_int_equal(deaf->closes, 1);
        assert_int_equal(obedient->closes, 1);
        assert_int_equal(skua_runtime_stop(world_runtime(), 0), 0);
    }
}

static int start_again(void *arg)
{
    (void)arg;
    return skua_runtime_start(world_runtime());
}

static int register_command(void *arg)
{
    const skua_handler handler = {.name = "late", .run = never_called};
    (void)arg;
    return skua_command_register(world_runtime(), 9, &handler);
}

static int submit(void *actor)
{
    return actor_try_submit(actor);
}

/* A stop holds a lock while it drives, so a step must not be made to wait for it. */
TEST(stop_refuses_what_steps_ask_of_the_runtime)
{
    world_open_sim(SEED, SIM_NO_FAULTS);
    struct actor *late = actor_new(NO_ACTS);
    struct actor *actor = actor_start(
        ACTS(expects(cancel(SKUA_E_STOPPED)), refused(calls(start_again, NULL), SKUA_E_STOPPED),
             refused(calls(register_command, NULL), SKUA_E_FROZEN),
             refused(calls(submit, late), SKUA_E_STOPPED), finishes(0)));
    world_close();
    assert_saw(actor, cancel(SKUA_E_STOPPED));
    assert_int_equal(tally_count(&actor->performed), 1);
    assert_int_equal(late->inits, 0);
}

/* ---- what is on the agenda ---- */

#define PROMISE 100

static unsigned jobs_run;

static int count_job(skua_payload *input, skua_payload *result)
{
    (void)input;
    (void)result;
    jobs_run++;
    return 0;
}

static int promise_result(void *arg, skua_command *command, skua_payload *result)
{
    struct tracked *results = arg;
    (void)result;
    assert_int_equal(
        skua_sim_complete_after(command->runtime, command->completion, 1000 * SKUA_SECOND, 0,
                                tracked_payload(0, &results[skua_payload_to_u64(&command->input)])),
        0);
    return SKUA_PENDING;
}

TEST(stop_drops_what_is_on_the_agenda)
{
    struct tracked messages[3] = {{0}};
    struct tracked results[3] = {{0}};
    struct tracked inputs[3] = {{0}};
    jobs_run = 0;
    world_create_sim(SEED, (skua_sim_config){.faults = {.message_delay = SIM_ALWAYS,
                                                        .slow_completion = SIM_ALWAYS,
                                                        .delay_max_ns = SKUA_DURATION_MAX}});
    world_register_pool((skua_blocking_pool){.name = "pool", .sim_safe = true});
    world_register(PROMISE, promise_result, results);
    world_start();
    struct actor *receiver = actor_start(NO_ACTS);
    struct act acts[11];
    for (size_t i = 0; i < 3; i++) {
        acts[3 * i] = sends_item(receiver, 0, &messages[i]);
        acts[3 * i + 1] = yields(i, PROMISE, 0, i);
        acts[3 * i + 2] =
            with_payload(offloads(10 + i, "pool", count_job, 0), tracked_payload(0, &inputs[i]));
    }
    acts[9] = continues(1); /* what its last step leaves behind is not dropped */
    acts[10] = finishes(0);
    struct actor *sender = actor_start(script_copy(acts, COUNT_OF(acts)));
    assert_int_equal(skua_sim_run(world_runtime(), START + SKUA_MILLISECOND), 1);
    assert_int_equal(sender->closes, 1);
    assert_drops(messages, 3, 0);
    assert_drops(results, 3, 0);
    assert_drops(inputs, 3, 0);
    world_close();
    assert_drops(messages, 3, 1);
    assert_drops(results, 3, 1);
    assert_drops(inputs, 3, 1);
    assert_int_equal(jobs_run, 0);
    assert_saw(receiver, cancel(SKUA_E_STOPPED));
}
