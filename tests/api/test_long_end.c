/* SPDX-License-Identifier: MIT */
/* Ends that take a while: a process with very many messages, watchers, links or calls ends in
 * slices. All hear of it, once and truly; others run meanwhile. */
#include "relations.h"
#include "timers.h"

#define MESSAGES 100000
#define WATCHERS 10000
#define CALLS    5000

/* ---- many relations ---- */

static struct actor *large_server_new(void)
{
    struct actor *server = server_new(NO_ACTS);
    server->type.mailbox_limit = SKUA_MAILBOX_MAX;
    return server;
}

/* Who keeps so many relations of one kind to a process. */
enum relation { MONITORS, JOINS, LINKS, OWED_CALLS, RELATIONS };

static struct script relate(enum relation relation, struct actor *to)
{
    switch (relation) {
    case MONITORS:
        return ACTS(for_each_tag(WATCHERS, monitors(0, to)));
    case JOINS:
        return ACTS(for_each_tag(WATCHERS, joins(0, to)));
    case LINKS:
        return ACTS(for_each_tag(WATCHERS, links(to, SKUA_LINK_TELL, 0, NULL)));
    case OWED_CALLS:
    case RELATIONS:
        break;
    }
    return ACTS(for_each_tag(CALLS, asks(0, to, 0)));
}

static const size_t relation_counts[] = {WATCHERS, WATCHERS, WATCHERS, CALLS};

static void assert_told(const struct actor *watcher, const struct actor *ended,
                        enum relation relation, int error)
{
    const size_t count = relation_counts[relation];
    bool *came = test_alloc(count);
    assert_int_equal(watcher->seen_count, count);
    for (size_t i = 0; i < count; i++) {
        const struct seen *seen = &watcher->seen[i];
        const struct seen expected = relation == LINKS        ? exit_of(seen->tag, ended, error)
                                     : relation == OWED_CALLS ? peer_ended(seen->tag, error)
                                                              : end_of(seen->tag, ended, error);
        assert_true(seen_matches(seen, &expected));
        assert_in_range(seen->tag, 0, count - 1);
        assert_false(came[seen->tag]);
        came[seen->tag] = true;
    }
}

TEST(end_with_many_relations_is_heard_of_by_all)
{
    FOR_ROUNDS (round, RELATIONS * DRIVERS) {
        const enum relation relation = (enum relation)((round - 1) / DRIVERS);
        world_open_driver(1 + round % DRIVERS);
        struct actor *ended = large_server_new();
        actor_submit(ended);
        struct actor *watcher = actor_start(relate(relation, ended));
        world_settle();
        assert_saw_nothing(watcher);
        actor_perform(ended, ACTS(fails(SKUA_E_USER)));
        assert_told(watcher, ended, relation, SKUA_E_USER);
        assert_int_equal(ended->closes, 1);
    }
}

/* Before they were taken note of: the process is held and then ends. */
TEST(end_with_many_relations_that_have_not_arrived_is_heard_of_by_all)
{
    FOR_ROUNDS (round, RELATIONS) {
        const enum relation relation = (enum relation)(round - 1);
        world_open_with((skua_runtime_config){.worker_count = 2});
        struct actor *ended = large_server_new();
        ended->script = ACTS(holds(), fails(SKUA_E_USER));
        actor_submit(ended);
        actor_await_held(ended, 1);
        struct actor *watcher = actor_start(relate(relation, ended));
        actor_perform(watcher, ACTS(continues(1)));
        actor_let_go(ended);
        actor_await_seen(watcher, relation_counts[relation]);
        actor_perform(watcher, ACTS(continues(1)));
        assert_told(watcher, ended, relation, SKUA_E_USER);
    }
}

TEST(end_of_many_linked_processes_is_that_of_the_first)
{
    enum { MANY = 3000 };
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *crowd[MANY];
        world_open_driver(driver);
        struct actor *hub = actor_start(NO_ACTS);
        for (size_t i = 0; i < MANY; i++) {
            crowd[i] = actor_start(ACTS(links(hub, SKUA_LINK_BOTH, 0, NULL)));
        }
        world_settle();
        actor_perform(crowd[MANY / 2], ACTS(fails(SKUA_E_USER)));
        for (size_t i = 0; i < MANY; i++) {
            assert_ended_because_of(crowd[i], SKUA_E_USER, crowd[MANY / 2]);
        }
    }
}

/* ---- unread messages ---- */

TEST(end_with_many_unread_messages_drops_each_once)
{
    struct tracked *items = test_alloc(MESSAGES * sizeof *items);
    world_open_with((skua_runtime_config){.worker_count = 2, .mailbox_limit = SKUA_MAILBOX_MAX});
    struct actor *ended = actor_start(ACTS(holds(), fails(SKUA_E_USER)));
    actor_await_held(ended, 1);
    struct actor *watcher =
        actor_start(ACTS(monitors(1, ended), links(ended, SKUA_LINK_TELL, 2, NULL)));
    actor_perform(watcher, ACTS(continues(1)));
    for (size_t i = 0; i < MESSAGES; i++) {
        assert_int_equal(world_send(ended->pid, tracked_payload(0, &items[i])), 0);
    }
    actor_let_go(ended);
    actor_await_seen(watcher, 2);
    assert_then_saw_in_any_order(watcher, end_of(1, ended, SKUA_E_USER),
                                 exit_of(2, ended, SKUA_E_USER));
    assert_drops(items, MESSAGES, 1);
    assert_int_equal(world_send(ended->pid, skua_nothing()), SKUA_E_NO_PROCESS);
}

/* What was under way to it when its end began, and arrives before that is over, is told the truth,
 * too: the process was alive when it was asked. */
TEST(end_that_takes_a_while_is_told_truly_to_those_who_come_meanwhile)
{
    FOR_ROUNDS (seed, 100) {
        world_create_sim(seed,
                         (skua_sim_config){.step_ns = SKUA_MICROSECOND,
                                           .faults = {.message_delay = SIM_ALWAYS,
                                                      .delay_max_ns = 20 * SKUA_MICROSECOND}});
        world_start();
        struct actor *ended = large_server_new();
        ended->script = ACTS(awaits(1), fails(SKUA_E_USER));
        actor_submit(ended);
        struct actor *watcher = actor_start(
            ACTS(monitors(1, ended), asks(2, ended, 0), links(ended, SKUA_LINK_TELL, 3, NULL)));
        world_set_clock(world_now() + 3 * SKUA_MICROSECOND); /* now it has asked */
        for (int i = 0; i < 5000; i++) {
            assert_int_equal(world_send(ended->pid, skua_payload_u64(0, 0)), 0);
        }
        world_settle();
        assert_then_saw_in_any_order(watcher, end_of(1, ended, SKUA_E_USER),
                                     peer_ended(2, SKUA_E_USER), exit_of(3, ended, SKUA_E_USER));
    }
}

/* ---- others run meanwhile ---- */

/* Counts its steps until it is cancelled. */
static int count_steps(struct turn *turn, const struct act *act)
{
    uint64_t *steps = act->arg;
    ++*steps;
    return skua_continue(turn->ctx) == 0 ? ACT_WAITS : 0;
}

/* Notes how many steps the other has had at the first and at the last notice. */
struct interval {
    const uint64_t *steps;
    uint64_t first;
    uint64_t last;
    size_t seen;
};

static int note_interval(struct turn *turn, const struct act *act)
{
    struct interval *interval = act->arg;
    for (size_t i = 0; i < turn->count; i++) {
        if (turn->events[i].type == SKUA_EVENT_COMPLETION ||
            turn->events[i].type == SKUA_EVENT_EXIT) {
            interval->first = interval->seen == 0 ? *interval->steps : interval->first;
            interval->last = *interval->steps;
            interval->seen++;
        }
    }
    return ACT_WAITS;
}

/* Many watchers, each of which notes when it was told: they run in between, as does the counter. */
TEST(end_with_many_relations_lets_others_run)
{
    FOR_ROUNDS (round, RELATIONS) {
        const enum relation relation = (enum relation)(round - 1);
        uint64_t steps = 0;
        struct interval interval = {.steps = &steps};
        world_open_sim(round, SIM_NO_FAULTS);
        struct actor *ended = large_server_new();
        actor_submit(ended);
        struct actor *watcher = actor_start(relate(relation, ended));
        world_settle();
        actor_tell(watcher, ACTS(does(note_interval, &interval)));
        world_settle();
        actor_tell(ended, ACTS(continues(5), fails(SKUA_E_USER)));
        struct actor *counter = actor_start(ACTS(does(count_steps, &steps)));
        for (uint64_t instant = world_now(); interval.seen < relation_counts[relation];) {
            instant += 10 * SKUA_MICROSECOND;
            world_set_clock(instant);
        }
        assert_int_equal(interval.seen, relation_counts[relation]);
        assert_in_range(interval.last - interval.first, 5, UINT32_MAX);
        assert_int_equal(world_cancel(counter->pid, 0), 0);
        world_settle();
    }
}

/* ---- a stop meanwhile ---- */

TEST(runtime_stops_while_a_process_ends)
{
    FOR_ROUNDS (round, 2 * RELATIONS) {
        const enum relation relation = (enum relation)((round - 1) / 2);
        struct tracked *items = test_alloc(1000 * sizeof *items);
        world_open_with(
            (skua_runtime_config){.worker_count = 2, .mailbox_limit = SKUA_MAILBOX_MAX});
        struct actor *ended = large_server_new();
        ended->script = ACTS(holds(), fails(SKUA_E_USER));
        actor_submit(ended);
        actor_await_held(ended, 1);
        struct actor *watcher = actor_start(relate(relation, ended));
        actor_perform(watcher, ACTS(continues(1)));
        for (size_t i = 0; i < 1000; i++) {
            assert_int_equal(world_send(ended->pid, tracked_payload(0, &items[i])), 0);
        }
        actor_let_go(ended);
        if (round % 2 == 0) {
            actor_await_seen(watcher, 1); /* in the middle of it */
        }
        world_close();
        assert_drops(items, 1000, 1);
        assert_int_equal(ended->closes, 1);
    }
}

/* ---- memory ---- */

/* Nothing is left behind, and ending again and again takes no more memory. */
TEST(end_with_many_relations_leaves_no_event_nodes_behind)
{
    FOR_ROUNDS (round, RELATIONS) {
        world_open_virtual();
        struct actor *watcher = actor_start(ACTS(continues(1)));
        world_settle();
        uint64_t nodes = 0;
        for (int i = 0; i < 3; i++) {
            struct actor *ended = large_server_new();
            actor_submit(ended);
            actor_perform(watcher, relate((enum relation)(round - 1), ended));
            actor_perform(ended, ACTS(fails(SKUA_E_USER)));
            nodes = i == 0 ? nodes_in_use() : nodes;
            assert_int_equal(nodes_in_use(), nodes);
        }
    }
}
