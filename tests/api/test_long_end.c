/* SPDX-License-Identifier: MIT */
/* Ends that take a while: a process with very many messages, watchers, links, calls, yields, names
 * or blocks of memory ends in slices. All hear of it, once and truly; others run meanwhile. */
#include <stdio.h>

#include "names.h"
#include "timers.h"

#define MESSAGES 100000
#define WATCHERS 10000
#define CALLS    5000
#define OWN      5000 /* names or yields */

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

/* ---- much of its own ---- */

/* What a process has very many of when it ends. Its calls and those on behalf of a request are to
 * `server`, which wants to hear that nobody waits for the answers. */
enum belonging {
    NAMES,
    TIMERS,
    MEMORY,
    DEADLINES,
    OWN_CALLS,
    CALLS_FOR_ONE,
    OPEN_DEBTS,
    BELONGINGS
};

static int take_numbered_name(struct turn *turn, const struct act *act)
{
    char name[32];
    (void)snprintf(name, sizeof name, "own.%llu", (unsigned long long)act->number);
    return skua_name_register(turn->ctx, name, NULL);
}

static struct act takes_names(void)
{
    return for_each_tag(OWN, does(take_numbered_name, NULL));
}

static int sleep_long(struct turn *turn, const struct act *act)
{
    return skua_yield_sleep(turn->ctx, act->tag, HOUR);
}

static int allocate_little(struct turn *turn, const struct act *act)
{
    void *memory;
    (void)act;
    return skua_own_alloc(turn->ctx, 1, &memory);
}

static struct script acquire(enum belonging belonging, struct actor *server)
{
    switch (belonging) {
    case NAMES:
        return ACTS(takes_names());
    case TIMERS:
        return ACTS(for_each_tag(OWN, does(sleep_long, NULL)));
    case MEMORY:
        return ACTS(for_each_tag(OWN, does(allocate_little, NULL)));
    case DEADLINES:
        return ACTS(for_each_tag(OWN, within(HOUR, asks(0, server, 0))));
    case OWN_CALLS:
        return ACTS(for_each_tag(OWN, asks(0, server, 0)));
    case CALLS_FOR_ONE:
        return ACTS(awaits(1), for_each_tag(OWN, asks_for(0, 0, server, 0)));
    case OPEN_DEBTS:
    case BELONGINGS:
        break;
    }
    return ACTS(awaits(OWN));
}

static bool is_owed(enum belonging belonging)
{
    return belonging == CALLS_FOR_ONE || belonging == OPEN_DEBTS;
}

static bool is_told(enum belonging belonging)
{
    return belonging == DEADLINES || belonging == OWN_CALLS || belonging == CALLS_FOR_ONE;
}

/* A process with much of its own, those that it deals with, and one that watches it. */
struct household {
    enum belonging belonging;
    struct actor *server;
    struct actor *ended;
    struct actor *caller; /* of what it owes */
    struct actor *watcher;
};

static void settle_in(struct household *house, enum belonging belonging)
{
    house->belonging = belonging;
    house->server = careful_server_new(NO_ACTS);
    house->server->type.mailbox_limit = SKUA_MAILBOX_MAX;
    actor_submit(house->server);
    house->ended = careful_server_new(acquire(belonging, house->server));
    house->ended->type.mailbox_limit = SKUA_MAILBOX_MAX;
    actor_submit(house->ended);
    house->caller = actor_start(
        is_owed(belonging)
            ? ACTS(for_each_tag(belonging == OPEN_DEBTS ? OWN : 1, asks(0, house->ended, 0)))
            : NO_ACTS);
    house->watcher = actor_start(ACTS(monitors(1, house->ended)));
    await_before_timers();
    assert_saw_nothing(house->watcher);
}

/* Each request that the server got is over, and nothing else. */
static void assert_server_told(const struct household *house)
{
    const size_t requests = is_told(house->belonging) ? OWN : 0;
    size_t left = requests;
    assert_int_equal(house->server->seen_count, 2 * requests);
    for (size_t i = 0; i < 2 * requests; i++) {
        const uint32_t type = house->server->seen[i].type;
        assert_int_equal(type, i < requests ? SKUA_EVENT_CALL : SKUA_EVENT_ABANDON);
        left -= type == SKUA_EVENT_ABANDON;
    }
    assert_int_equal(left, 0);
}

static void assert_left(struct household *house, int error)
{
    const size_t owed = house->belonging == OPEN_DEBTS ? OWN : 1;
    assert_then_saw(house->watcher, end_of(1, house->ended, error));
    assert_server_told(house);
    if (is_owed(house->belonging)) {
        assert_completed_each_once(house->caller, owed, SKUA_E_PEER_ENDED);
    }
}

/* Whoever hears of the end may have the names, too. */
TEST(end_with_much_of_its_own_gives_it_all_up)
{
    FOR_ROUNDS (round, BELONGINGS * DRIVERS) {
        struct household house;
        world_open_driver(1 + round % DRIVERS);
        settle_in(&house, (enum belonging)((round - 1) / DRIVERS));
        actor_tell(house.watcher, ACTS(awaits(1), takes_names()));
        actor_perform(house.ended, ACTS(fails(SKUA_E_USER)));
        assert_left(&house, SKUA_E_USER);
        assert_found("own.0", house.watcher);
        assert_found("own.4999", house.watcher);
        assert_int_equal(house.ended->closes, 1);
    }
}

TEST(end_with_much_of_its_own_leaves_no_event_nodes_behind)
{
    FOR_ROUNDS (round, BELONGINGS) {
        struct household house;
        uint64_t nodes = 0;
        world_open_virtual();
        for (int i = 0; i < 3; i++) {
            settle_in(&house, (enum belonging)(round - 1));
            actor_perform(house.ended, ACTS(fails(SKUA_E_USER)));
            assert_int_equal(timers_armed(), 0);
            actor_perform(house.server, ACTS(finishes(0)));
            actor_perform(house.caller, ACTS(finishes(0)));
            actor_perform(house.watcher, ACTS(finishes(0)));
            nodes = i == 0 ? nodes_in_use() : nodes;
            assert_int_equal(nodes_in_use(), nodes);
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

/* From the last step of a process with much of its own until its end is heard of. */
TEST(end_with_much_of_its_own_lets_others_run)
{
    FOR_ROUNDS (round, BELONGINGS) {
        uint64_t steps = 0;
        struct interval interval = {.steps = &steps};
        struct household house;
        world_open_sim(round, SIM_NO_FAULTS);
        settle_in(&house, (enum belonging)(round - 1));
        actor_tell(house.watcher, ACTS(does(note_interval, &interval)));
        await_before_timers();
        struct actor *counter = actor_start(ACTS(does(count_steps, &steps)));
        world_set_clock(world_now() + 10 * SKUA_MICROSECOND);
        const uint64_t before = steps;
        actor_tell(house.ended, ACTS(fails(SKUA_E_USER)));
        for (uint64_t instant = world_now(); interval.seen == 0;) {
            instant += 10 * SKUA_MICROSECOND;
            world_set_clock(instant);
        }
        assert_in_range(interval.first - before, 10, UINT32_MAX);
        assert_int_equal(world_cancel(counter->pid, 0), 0);
        world_settle();
    }
}

/* ---- others come meanwhile ---- */

/* What becomes of a terminate. */
static int try_terminate(struct turn *turn, const struct act *act)
{
    int *error = act->arg;
    *error = skua_terminate(turn->ctx, act->peer->pid);
    return 0;
}

/* At any moment of the end: who calls or sends is refused, or told how it was; a terminate that is
 * accepted is how it was. */
TEST(end_with_much_of_its_own_is_told_truly_to_those_who_come_meanwhile)
{
    enum { MOMENTS = 30 };
    FOR_ROUNDS (round, BELONGINGS * MOMENTS) {
        struct household house;
        int terminated = 0;
        world_open_sim(round, SIM_NO_FAULTS);
        settle_in(&house, (enum belonging)((round - 1) / MOMENTS));
        struct act terminates_it = does(try_terminate, &terminated);
        terminates_it.peer = house.ended;
        struct actor *visitor = actor_start(
            ACTS(awaits(1), continues(round % MOMENTS), asks(1, house.ended, 0), terminates_it));
        await_before_timers();
        actor_tell(house.ended, ACTS(fails(SKUA_E_USER)));
        assert_int_equal(world_send(visitor->pid, skua_nothing()), 0);
        world_settle();
        const int error = terminated == 0 ? SKUA_E_TERMINATED : SKUA_E_USER;
        assert_left(&house, error);
        const struct seen refusal = failure(1, SKUA_E_NO_PROCESS);
        const struct seen notice = peer_ended(1, error);
        assert_int_equal(visitor->seen_count, 2);
        assert_true(seen_matches(&visitor->seen[1], &notice) ||
                    seen_matches(&visitor->seen[1], &refusal));
    }
}

/* Callers that take their calls back while the process closes what it owes: each of them ends
 * once. */
TEST(calls_that_are_taken_back_while_their_server_ends_end_once)
{
    enum { MOMENTS = 60 };
    FOR_ROUNDS (moment, MOMENTS) {
        struct household house;
        world_open_sim(moment, SIM_NO_FAULTS);
        settle_in(&house, OPEN_DEBTS);
        actor_tell(house.caller, ACTS(continues(moment), for_each_tag(OWN, cancels(0))));
        actor_tell(house.ended, ACTS(fails(SKUA_E_USER)));
        world_settle();
        assert_int_equal(house.caller->seen_count, OWN);
        bool came[OWN] = {false};
        for (size_t i = 0; i < OWN; i++) {
            const struct seen *seen = &house.caller->seen[i];
            assert_true(seen->error == SKUA_E_CANCELLED || seen->error == SKUA_E_PEER_ENDED);
            assert_in_range(seen->tag, 0, OWN - 1);
            assert_false(came[seen->tag]);
            came[seen->tag] = true;
        }
        assert_then_saw(house.watcher, end_of(1, house.ended, SKUA_E_USER));
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

TEST(runtime_stops_while_a_process_with_much_of_its_own_ends)
{
    FOR_ROUNDS (round, 4 * BELONGINGS) {
        struct household house;
        world_open_virtual_with((skua_runtime_config){.worker_count = 2});
        settle_in(&house, (enum belonging)((round - 1) / 4));
        actor_tell(house.ended, ACTS(fails(SKUA_E_USER)));
        world_close();
        assert_int_equal(house.ended->closes, 1);
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
