/* SPDX-License-Identifier: MIT */
/* Single calls without memory: what they leave behind, and that they work again once there is
 * some. */
#include "actor.h"
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
