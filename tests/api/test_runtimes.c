/* SPDX-License-Identifier: MIT */
/* Several runtimes in one program, which know nothing of each other. */
#include "actor.h"
#include "exits.h"

#define NEIGHBOURS 3
#define RESIDENTS  50

/* A runtime and processes that rest in it. */
struct neighbour {
    struct api api;
    struct exits *exits;
    struct actor *residents[RESIDENTS];
    size_t population;
};

static void neighbour_begin(struct neighbour *neighbour, size_t population)
{
    neighbour->exits = exits_new();
    neighbour->population = population;
    api_create(&neighbour->api,
               (skua_runtime_config){.worker_count = 2, NOTES_EXITS(neighbour->exits)});
    api_start(&neighbour->api);
    for (size_t i = 0; i < population; i++) {
        struct actor *actor = actor_new(NO_ACTS);
        (void)api_submit(&neighbour->api, &actor->type, actor);
        neighbour->residents[i] = actor;
    }
}

/* All are there; the first gets a message. */
static void assert_undisturbed(const struct neighbour *neighbour)
{
    assert_int_equal(neighbour->exits->count, 0);
    assert_int_equal(api_stats(&neighbour->api).live, neighbour->population);
    assert_int_equal(skua_process_send(neighbour->api.runtime, neighbour->residents[0]->pid,
                                       skua_payload_empty(0)),
                     0);
}

/* Everybody was asked to finish once, and the first has had so many messages before. */
static void neighbour_end(struct neighbour *neighbour, size_t messages)
{
    api_stop(&neighbour->api);
    assert_int_equal(neighbour->exits->count, neighbour->population);
    const struct actor *first = neighbour->residents[0];
    for (size_t i = 0; i < messages; i++) {
        assert_int_equal(first->seen[i].type, SKUA_EVENT_MESSAGE);
    }
    const struct seen last = cancel(SKUA_E_STOPPED);
    assert_saw_from(first, messages, &last, 1);
    for (size_t i = 1; i < neighbour->population; i++) {
        assert_saw(neighbour->residents[i], cancel(SKUA_E_STOPPED));
    }
}

TEST(runtimes_side_by_side_live_and_end_by_themselves)
{
    struct neighbour neighbours[NEIGHBOURS];
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        neighbour_begin(&neighbours[i], RESIDENTS - i);
    }
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        for (size_t k = i; k < NEIGHBOURS; k++) {
            assert_undisturbed(&neighbours[k]);
        }
        neighbour_end(&neighbours[i], i + 1);
    }
}

TEST(runtime_refuses_the_pids_of_another)
{
    struct neighbour here;
    struct neighbour there;
    struct tracked items[RESIDENTS] = {{0}};
    skua_process_snapshot info;
    neighbour_begin(&here, RESIDENTS);
    neighbour_begin(&there, RESIDENTS);
    for (size_t i = 0; i < RESIDENTS; i++) {
        skua_runtime *runtime = here.api.runtime;
        const skua_pid pid = there.residents[i]->pid;
        assert_int_equal(skua_process_send(runtime, pid, tracked_payload(0, &items[i])),
                         SKUA_E_FOREIGN_PID);
        assert_int_equal(skua_process_cancel(runtime, pid, -1), SKUA_E_FOREIGN_PID);
        assert_int_equal(skua_process_terminate(runtime, pid), SKUA_E_FOREIGN_PID);
        assert_int_equal(skua_process_info(runtime, pid, &info), SKUA_E_FOREIGN_PID);
        assert_int_equal(skua_process_wait(runtime, pid, SKUA_FOREVER, NULL), SKUA_E_FOREIGN_PID);
    }
    assert_drops(items, RESIDENTS, 1);
    assert_undisturbed(&here);
    assert_undisturbed(&there);
    neighbour_end(&here, 1);
    neighbour_end(&there, 1);
}

static int stop_runtime(void *arg)
{
    return skua_runtime_stop(arg, SKUA_FOREVER);
}

TEST(runtime_of_others_can_be_stopped_inside_a_step)
{
    struct neighbour there;
    neighbour_begin(&there, 1);
    world_open();
    struct actor *actor = actor_start(NO_ACTS);
    actor_perform(actor, ACTS(calls(stop_runtime, there.api.runtime)));
    assert_saw(there.residents[0], cancel(SKUA_E_STOPPED));
    neighbour_end(&there, 0);
}

/* ---- a number that goes to and fro, one more each time ---- */

#define LAPS 2000

struct side {
    struct api api;
    struct actor *actor;
};

/* Sends each number on to the other side; never ends. */
static int send_across(struct turn *turn, const struct act *act)
{
    const struct side *other = act->arg;
    const skua_event *event = &turn->events[turn->count - 1]; /* START may stand before it */
    if (event->type != SKUA_EVENT_MESSAGE) {
        return ACT_WAITS;
    }
    const uint64_t lap = skua_payload_to_u64(&event->payload);
    if (lap < LAPS) {
        (void)skua_process_send(other->api.runtime, other->actor->pid,
                                skua_payload_u64(0, lap + 1));
    }
    return ACT_WAITS;
}

TEST(runtimes_can_send_to_each_other_from_their_steps)
{
    struct side *sides = test_alloc(2 * sizeof *sides);
    skua_stats worker;
    for (size_t i = 0; i < 2; i++) {
        api_run(&sides[i].api, 1);
        sides[i].actor = actor_new(ACTS(does(send_across, &sides[1 - i])));
    }
    for (size_t i = 0; i < 2; i++) {
        (void)api_submit(&sides[i].api, &sides[i].actor->type, sides[i].actor);
    }
    assert_int_equal(
        skua_process_send(sides[0].api.runtime, sides[0].actor->pid, skua_payload_u64(0, 0)), 0);
    actor_await_seen(sides[0].actor, LAPS / 2 + 1);
    assert_int_equal(tally_count(&sides[0].actor->arrived), LAPS / 2 + 1);
    assert_int_equal(tally_count(&sides[1].actor->arrived), LAPS / 2);
    /* A worker of one runtime is a thread from outside for the other. */
    assert_int_equal(skua_stats_read(sides[1].api.runtime, NULL, &worker, 1), 1);
    assert_int_equal(worker.messages, 0);
    assert_int_equal(api_stats(&sides[1].api).messages, LAPS / 2);
    for (size_t i = 0; i < 2; i++) { /* both, before one is destroyed: a send may not be over */
        assert_int_equal(skua_runtime_stop(sides[i].api.runtime, SKUA_FOREVER), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        api_stop(&sides[i].api);
        for (size_t lap = 0; lap + 1 < sides[i].actor->seen_count; lap++) {
            assert_int_equal(sides[i].actor->seen[lap].value, 2 * lap + i);
        }
    }
}
