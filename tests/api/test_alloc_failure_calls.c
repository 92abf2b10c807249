/* SPDX-License-Identifier: MIT */
/* Single calls without memory: what they leave behind, and that they work again once there is
 * some. */
#include "actor.h"
#include "handlers.h"
#include "process/step_output.h"
#include "standstill.h"
#include "stopper.h"

#define GROWING 40000
#define REFUSED 10 /* calls, until there is memory again */

TEST(processes_are_stopped_without_memory)
{
    struct actor *crowd[100];
    world_open_with((skua_runtime_config){.worker_count = 2});
    for (size_t i = 0; i < COUNT_OF(crowd); i++) {
        crowd[i] = actor_new(NO_ACTS);
        crowd[i]->ignores_cancel = i >= 50;
        actor_submit(crowd[i]);
    }
    standstill_begin(); /* now every worker has begun, which takes memory */
    standstill_end();
    world_await_live(COUNT_OF(crowd));
    counting_allocator_fail_from(&world->api->memory, 1);
    const uint64_t attempts = counting_allocator_attempts(&world->api->memory);
    assert_int_equal(stop_patiently(50 * SKUA_MILLISECOND), SKUA_E_TIMEOUT);
    /* Neither the cancel events nor the ends needed any. */
    assert_int_equal(counting_allocator_attempts(&world->api->memory), attempts);
    for (size_t i = 0; i < COUNT_OF(crowd); i++) {
        assert_int_equal(crowd[i]->closes, 1);
    }
}

static struct actor *large_actor(void)
{
    struct actor *actor = actor_new(NO_ACTS);
    actor->type.state_size = 4096; /* too large for the process record */
    return actor;
}

/* Places that were taken for processes without memory for their state are free again. */
TEST(process_limit_is_as_it_was_after_starts_without_memory)
{
    world_open_with((skua_runtime_config){.worker_count = 1, .process_limit = 4});
    (void)actor_start(ACTS(finishes(0))); /* now there is memory for places */
    world_await_live(0);
    struct actor *unborn = large_actor();
    for (int i = 0; i < 100; i++) {
        counting_allocator_fail_from(&world->api->memory, 1);
        assert_int_equal(actor_try_submit(unborn), SKUA_E_NO_MEMORY);
        counting_allocator_fail_never(&world->api->memory);
    }
    for (size_t i = 0; i < 4; i++) {
        actor_submit(large_actor());
    }
    assert_int_equal(actor_try_submit(unborn), SKUA_E_PROCESS_LIMIT);
}

/* Makes a call many times, in the middle of which there is no memory. Returns how often it
 * worked. */
static unsigned call_past_failures(int (*call)(void *arg, size_t i), void *arg, size_t count)
{
    unsigned accepted = 0;
    unsigned refusals = 0;
    counting_allocator_fail_from(&world->api->memory, 1);
    for (size_t i = 0; i < count; i++) {
        const int error = call(arg, i);
        assert_true(error == 0 || error == SKUA_E_NO_MEMORY);
        accepted += error == 0;
        refusals += error != 0;
        if (refusals == REFUSED) {
            counting_allocator_fail_never(&world->api->memory);
        }
    }
    assert_int_equal(refusals, REFUSED);
    return accepted;
}

static struct tracked items[GROWING];

static int send_item(void *arg, size_t i)
{
    const struct actor *to = arg;
    return world_send(to->pid, tracked_payload(0, &items[i]));
}

TEST(mailbox_that_grows_past_a_failure_loses_no_message)
{
    memset(items, 0, sizeof items);
    world_open_with((skua_runtime_config){.worker_count = 1});
    struct actor *actor = actor_start(NO_ACTS);
    actor_await_state(actor, SKUA_PROCESS_IDLE);
    standstill_begin();
    const unsigned accepted = call_past_failures(send_item, actor, GROWING);
    standstill_end();
    assert_int_equal(world_cancel(actor->pid, SKUA_E_USER), 0);
    actor_await_end(actor);
    assert_int_equal(actor->seen_count, accepted + 1); /* and the cancel event */
    assert_drops(items, GROWING, 1);
}

static int submit_probe(void *arg, size_t i)
{
    (void)i;
    return probe_submit(world_runtime(), arg, NULL);
}

TEST(table_that_grows_past_a_failure_loses_no_process)
{
    struct probe probe = {.habit = PROBE_OBEYS};
    world_open_with((skua_runtime_config){.worker_count = 2});
    assert_int_equal(submit_probe(&probe, 0), 0); /* the first memory for all */
    const unsigned accepted = 1 + call_past_failures(submit_probe, &probe, GROWING / 2);
    world_close();
    assert_int_equal(probe.inits, accepted);
    assert_int_equal(probe.closes, accepted);
}

/* ---- room to retry ---- */

#define NEVER 1 /* a command that nobody completes */

/* One that holds a worker, and with it all messages that it is sent. */
static struct actor *open_with_hoarder(void)
{
    world_create((skua_runtime_config){.worker_count = 2, .mailbox_limit = SKUA_MAILBOX_MAX});
    world_register(NEVER, never_complete, NULL);
    world_start();
    return actor_start_held();
}

/* Sends messages to the hoarder until there is no event node left. */
static int send_until_refused(struct turn *turn, const struct act *act)
{
    struct actor *hoarder = act->arg;
    int error = 0;
    counting_allocator_fail_from(&world->api->memory, 1);
    while (error == 0) {
        error = perform(turn, sends_numbers(hoarder, 0, 1));
    }
    turn->actor->sent--; /* the last one was refused */
    return error;
}

/* Yields until the list of yields is full. There may be event nodes for more. */
static int yield_until_refused(struct turn *turn, const struct act *act)
{
    int error = 0;
    counting_allocator_fail_from(&world->api->memory, 1);
    while (error == 0) {
        error = perform(turn, yields(100, NEVER, 0, 0));
    }
    (void)act;
    return error;
}

/* As often as the reserve allows. */
static int sleep_until_refused(struct turn *turn, const struct act *act)
{
    uint64_t sleeps_accepted = 0;
    int error = perform(turn, sleeps(0, SKUA_DURATION_MAX));
    (void)act;
    while (error == 0) {
        error = perform(turn, sleeps(++sleeps_accepted, SKUA_DURATION_MAX));
    }
    if (sleeps_accepted != STEP_RESERVE) {
        actor_surprise(turn->actor, "slept %u times", (unsigned)sleeps_accepted);
    }
    return error;
}

/* Needs no memory; there is some again in the next step. */
static int continue_and_recover(struct turn *turn, const struct act *act)
{
    (void)act;
    if (turn->actor->counter++ == 0) {
        const int error = skua_continue(turn->ctx);
        return error != 0 ? error : ACT_WAITS;
    }
    if (turn->events[turn->count - 1].type != SKUA_EVENT_CONTINUE) {
        return ACT_WAITS;
    }
    counting_allocator_fail_never(&world->api->memory);
    return 0;
}

/* Runs out of memory again and again: the reserve is filled again each time. */
static void check_room_to_retry(act_fn *run_out)
{
    struct actor *hoarder = open_with_hoarder();
    struct actor *poor = actor_start(NO_ACTS);
    for (unsigned round = 0; round < 3; round++) {
        actor_perform(poor, ACTS(refused(does(run_out, hoarder), SKUA_E_NO_MEMORY),
                                 refused(yields(200, NEVER, 0, 0), SKUA_E_NO_MEMORY),
                                 refused(does(sleep_until_refused, NULL), SKUA_E_NO_MEMORY),
                                 refused(yields(200, NEVER, 0, 0), SKUA_E_NO_MEMORY),
                                 does(continue_and_recover, NULL),
                                 for_each_tag(STEP_RESERVE, cancels(0)), awaits(STEP_RESERVE)));
    }
    actor_let_go(hoarder);
    actor_await_seen(hoarder, poor->sent);
    world_close();
    assert_int_equal(hoarder->seen_count, poor->sent + 1); /* and the cancel event */
    for (size_t i = 0; i < 3 * STEP_RESERVE; i++) {
        const struct seen expected = failure(i % STEP_RESERVE, SKUA_E_CANCELLED);
        assert_true(seen_matches(&poor->seen[i], &expected));
    }
    assert_int_equal(poor->seen_count, 3 * STEP_RESERVE + 1);
}

TEST(step_without_event_nodes_can_still_sleep_and_continue)
{
    check_room_to_retry(send_until_refused);
}

TEST(step_whose_list_of_yields_is_full_can_still_sleep_and_continue)
{
    check_room_to_retry(yield_until_refused);
}

/* Tries until there is memory again. */
static int yield_by_and_by(struct turn *turn, const struct act *act)
{
    struct tally *refusals = act->arg;
    const int error = perform(turn, yields(50, NEVER, 0, 0));
    if (error != SKUA_E_NO_MEMORY) {
        return error;
    }
    tally_add(refusals, 1);
    return skua_continue(turn->ctx) == 0 ? ACT_WAITS : SKUA_E_USER;
}

TEST(process_without_memory_continues_until_there_is_some)
{
    struct tally refusals;
    tally_init(&refusals);
    struct actor *hoarder = open_with_hoarder();
    struct actor *poor =
        actor_start(ACTS(refused(does(send_until_refused, hoarder), SKUA_E_NO_MEMORY),
                         refused(does(sleep_until_refused, NULL), SKUA_E_NO_MEMORY),
                         does(yield_by_and_by, &refusals), cancels(50),
                         expects(failure(50, SKUA_E_CANCELLED)), finishes(0)));
    tally_wait(&refusals, 100);
    counting_allocator_fail_never(&world->api->memory);
    actor_await_end(poor);
    actor_let_go(hoarder);
    actor_await_seen(hoarder, poor->sent);
    assert_saw(poor, failure(50, SKUA_E_CANCELLED));
}
