/* SPDX-License-Identifier: MIT */
/* Watching a group: first who is in it, then every change, without a gap and nobody twice. */
#include <string.h>

#include "groups.h"

TEST(watcher_gets_a_snapshot_and_then_the_changes)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *one = actor_start(ACTS(enters("choir")));
        world_settle();
        struct actor *two = actor_start(ACTS(enters("choir"), enters("choir")));
        struct actor *watcher = actor_start(NO_ACTS);
        world_settle();
        actor_perform(watcher, ACTS(watches(7, "choir")));
        assert_then_saw(watcher, snapshot_of(7, one, two));
        actor_perform(two, ACTS(leaves("choir"))); /* it is still in it */
        assert_then_saw_nothing(watcher);
        actor_perform(two, ACTS(leaves("choir")));
        assert_then_saw(watcher, left(7, two));
        actor_perform(two, ACTS(enters("choir"), enters("band"), leaves("choir")));
        assert_then_saw(watcher, joined(7, two), left(7, two));
        actor_perform(watcher, ACTS(enters("choir")));
        assert_then_saw(watcher, joined(7, watcher));
        actor_perform(one, ACTS(finishes(0)));
        assert_then_saw(watcher, left(7, one));
    }
}

TEST(group_that_nobody_is_in_can_be_watched)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *watcher = actor_start(ACTS(watches(1, "choir")));
        struct actor *member = actor_start(NO_ACTS);
        world_settle();
        assert_then_saw(watcher, empty_snapshot(1));
        actor_perform(member, ACTS(enters("choir")));
        actor_perform(member, ACTS(finishes(0)));
        assert_then_saw(watcher, joined(1, member), left(1, member));
        assert_int_equal(group_count(), 1);
        actor_perform(watcher, ACTS(cancels(1)));
        assert_then_saw(watcher, failure(1, SKUA_E_CANCELLED));
        assert_int_equal(group_count(), 0);
    }
}

TEST(watch_that_is_taken_back_tells_nothing_any_more)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *watcher = actor_start(ACTS(watches(1, "choir"), cancels(1)));
        struct actor *member = actor_start(NO_ACTS);
        world_settle();
        assert_then_saw(watcher, failure(1, SKUA_E_CANCELLED));
        actor_perform(watcher, ACTS(watches(1, "choir")));
        assert_then_saw(watcher, empty_snapshot(1));
        actor_perform(watcher, ACTS(cancels(1)));
        actor_perform(member, ACTS(enters("choir")));
        assert_then_saw(watcher, failure(1, SKUA_E_CANCELLED));
        assert_then_saw_nothing(watcher);
        assert_int_equal(group_count(), 1);
    }
}

/* The change is on its way when the watch is taken back. */
TEST(watch_can_be_taken_back_while_news_are_on_their_way)
{
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct actor *member = actor_start(NO_ACTS);
    struct actor *watcher = actor_start(ACTS(watches(1, "choir"), awaits(1)));
    actor_perform(watcher, NO_ACTS);
    actor_perform_until_held(watcher, ACTS(holds(), cancels(1), awaits(1)));
    actor_perform(member, ACTS(enters("choir")));
    actor_release(watcher);
    assert_saw(watcher, empty_snapshot(1), failure(1, SKUA_E_CANCELLED));
}

TEST(process_may_watch_one_group_several_times_and_its_own)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *watcher =
            actor_start(ACTS(enters("choir"), watches(1, "choir"), watches(2, "choir")));
        world_settle();
        assert_then_saw(watcher, snapshot_of(1, watcher), snapshot_of(2, watcher));
        actor_perform(watcher, ACTS(leaves("choir"), cancels(1)));
        assert_then_saw_in_any_order(watcher, failure(1, SKUA_E_CANCELLED), left(2, watcher));
        actor_perform(watcher, ACTS(enters("choir"), finishes(0)));
        assert_int_equal(group_count(), 0);
    }
}

TEST(process_that_ends_watches_no_more)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *first = actor_start(ACTS(watches(1, "choir")));
        struct actor *second = actor_start(ACTS(watches(1, "choir"), finishes(0)));
        struct actor *member = actor_start(NO_ACTS);
        world_settle();
        assert_saw_nothing(second);
        assert_int_equal(world_terminate(first->pid), 0);
        actor_perform(member, ACTS(enters("choir")));
        actor_perform(member, ACTS(leaves("choir")));
        assert_int_equal(group_count(), 0);
    }
}

/* ---- falling behind ---- */

static int enter_and_leave(struct turn *turn, const struct act *act)
{
    int error = 0;
    for (uint64_t i = 0; i < act->number && error == 0; i++) {
        error = skua_group_join(turn->ctx, "choir");
        error = error != 0 ? error : skua_group_leave(turn->ctx, "choir");
    }
    return error;
}

static struct act comes_and_goes(uint64_t times)
{
    return (struct act){.perform = enter_and_leave, .number = times};
}

/* 64 changes are kept for it. */
TEST(watcher_that_is_behind_gets_all_changes_or_a_snapshot)
{
    FOR_ROUNDS (seed, 5) {
        world_open_sim(seed, SIM_NO_FAULTS); /* where a step is over before others look */
        struct actor *watcher = actor_start(ACTS(watches(1, "choir")));
        struct actor *other = actor_start(ACTS(enters("choir")));
        struct actor *restless = actor_start(NO_ACTS);
        world_settle();
        watcher->asserted = watcher->seen_count;
        actor_perform(restless, ACTS(comes_and_goes(32)));
        assert_int_equal(watcher->seen_count - watcher->asserted, 64);
        for (size_t i = watcher->asserted; i < watcher->seen_count; i++) {
            const struct seen expected =
                i % 2 == watcher->asserted % 2 ? joined(1, restless) : left(1, restless);
            assert_true(seen_matches(&watcher->seen[i], &expected));
        }
        watcher->asserted = watcher->seen_count;
        actor_perform(restless, ACTS(comes_and_goes(1000), enters("choir")));
        assert_then_saw(watcher, snapshot_of(1, other, restless));
        actor_perform(restless, ACTS(leaves("choir")));
        assert_then_saw(watcher, left(1, restless));
    }
}

/* In a large group more of them are kept: a snapshot would cost more than they do. */
TEST(watcher_of_a_large_group_may_be_further_behind)
{
    enum { MEMBERS = 800 };
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *watcher = actor_start(ACTS(watches(1, "choir")));
    world_settle();
    for (size_t i = 0; i < MEMBERS; i++) {
        (void)actor_start(ACTS(enters("choir")));
    }
    world_settle();
    watcher->asserted = watcher->seen_count;
    struct actor *restless = actor_start(ACTS(comes_and_goes(100)));
    world_settle();
    assert_int_equal(watcher->seen_count - watcher->asserted, 200);
    watcher->asserted = watcher->seen_count;
    actor_perform(restless, ACTS(comes_and_goes(1000)));
    assert_int_equal(watcher->seen_count - watcher->asserted, 1);
    assert_int_equal(watcher->seen[watcher->asserted].size, MEMBERS * sizeof(skua_pid));
}

/* ---- many watchers ---- */

enum { WATCHERS = 300 };

/* Each change is told to a few, and those pass it on. */
TEST(all_of_many_watchers_hear_of_a_change)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *watchers[WATCHERS];
        for (size_t i = 0; i < WATCHERS; i++) {
            watchers[i] = actor_start(ACTS(watches(i, "choir")));
        }
        struct actor *member = actor_start(NO_ACTS);
        world_settle();
        actor_perform(member, ACTS(enters("choir")));
        for (size_t i = 0; i < WATCHERS; i++) {
            assert_saw(watchers[i], empty_snapshot(i), joined(i, member));
        }
    }
}

static int end_some(struct turn *turn, const struct act *act)
{
    struct actor **watchers = act->arg;
    for (size_t i = 0; i < WATCHERS; i++) {
        if (i % 4 != 3) {
            (void)skua_terminate(turn->ctx, watchers[i]->pid);
        }
    }
    return skua_group_join(turn->ctx, "choir");
}

/* Also if those who were told end before they pass it on. */
TEST(many_watchers_hear_of_a_change_though_others_of_them_end)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor **watchers = test_alloc(WATCHERS * sizeof(struct actor *));
        for (size_t i = 0; i < WATCHERS; i++) {
            watchers[i] = actor_start(ACTS(watches(i, "choir")));
        }
        struct actor *member = actor_start(NO_ACTS);
        world_settle();
        actor_perform(member, ACTS(does(end_some, watchers)));
        for (size_t i = 3; i < WATCHERS; i += 4) {
            assert_saw(watchers[i], empty_snapshot(i), joined(i, member));
        }
    }
}

/* ---- tasks ---- */

struct diary {
    skua_pid member;
    uint32_t news[4];
    size_t count;
};

static bool is_message(void *arg, const skua_event *event)
{
    (void)arg;
    return event->type == SKUA_EVENT_MESSAGE;
}

static bool is_news(void *arg, const skua_event *event)
{
    (void)arg;
    return event->type == SKUA_EVENT_GROUP && event->tag == 9 &&
           event->payload.storage == SKUA_PAYLOAD_EMPTY;
}

static int note_news(struct diary *diary, const skua_event *event)
{
    if (event->type != SKUA_EVENT_GROUP || event->tag != 9) {
        return SKUA_E_INVALID;
    }
    diary->news[diary->count++] = event->payload.type;
    return 0;
}

/* It wants a message first: the news wait. */
static int read_news(void *self, skua_context *ctx)
{
    struct diary *diary = *(struct diary **)self;
    skua_event *event;
    int error = skua_yield_group_watch(ctx, 9, "choir");
    error = error != 0 ? error : skua_task_receive_if(ctx, is_message, NULL, &event, SKUA_FOREVER);
    error = error != 0 ? error : skua_task_receive(ctx, &event, SKUA_FOREVER);
    error = error != 0 ? error : note_news(diary, event);
    error = error != 0 ? error : skua_task_receive_if(ctx, is_news, NULL, &event, SKUA_FOREVER);
    error = error != 0 ? error : note_news(diary, event);
    error = error != 0 ? error : skua_yield_cancel(ctx, 9);
    error = error != 0 ? error : skua_task_receive(ctx, &event, SKUA_FOREVER);
    return error != 0 ? error
           : event->type == SKUA_EVENT_COMPLETION && event->error == SKUA_E_CANCELLED
               ? 0
               : SKUA_E_INVALID;
}

static int read_news_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    (void)count;
    void *diary = input[0].as.owned.data;
    memcpy(self, &diary, sizeof diary);
    return 0;
}

TEST(task_receives_news_when_it_wants_them)
{
    static const skua_process_type reader = {
        .name = "reader", .state_size = sizeof(void *), .init = read_news_init, .main = read_news};
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct diary *diary = test_alloc(sizeof *diary);
        skua_pid pid;
        assert_int_equal(skua_process_submit(world_runtime(), &reader,
                                             skua_payload_pointer(0, diary, NULL), &pid),
                         0);
        world_settle();
        struct actor *member = actor_start(ACTS(enters("choir")));
        world_settle();
        assert_int_equal(world_send(pid, skua_nothing()), 0);
        world_settle();
        actor_perform(member, ACTS(leaves("choir")));
        world_await_live(1);
        assert_int_equal(diary->count, 2);
        assert_int_equal(diary->news[0], SKUA_GROUP_SNAPSHOT);
        assert_int_equal(diary->news[1], SKUA_GROUP_LEFT);
    }
}
