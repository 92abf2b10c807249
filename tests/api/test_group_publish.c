/* SPDX-License-Identifier: MIT */
/* Writing to a group: every member gets the message once, or is counted. */
#include <skua/task.h>
#include <string.h>

#include "groups.h"

enum { SONG = 3 };

TEST(all_members_get_what_is_published)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *one = actor_start(ACTS(enters("choir")));
        struct actor *two = actor_start(ACTS(enters("choir"), enters("choir")));
        struct actor *other = actor_start(ACTS(enters("band")));
        struct actor *publisher = actor_start(NO_ACTS);
        world_settle();
        actor_perform(publisher, ACTS(publishes(1, "choir", SONG, 5)));
        assert_saw(one, message(SONG, 5));
        assert_saw(two, message(SONG, 5));
        assert_int_equal(one->seen[0].from.bits, publisher->pid.bits);
        assert_saw_nothing(other);
        assert_then_saw(publisher, published(1, 2, 0));
        actor_perform(publisher, ACTS(publishes(2, "nobody", SONG, 5)));
        assert_then_saw(publisher, published(2, 0, 0));
        actor_perform(one, ACTS(publishes(3, "choir", SONG, 6))); /* a member gets its own */
        assert_saw(two, message(SONG, 5), message(SONG, 6));
        assert_then_saw_in_any_order(one, message(SONG, 5), message(SONG, 6), published(3, 2, 0));
        assert_int_equal(group_count(), 2);
    }
}

TEST(members_that_cannot_take_it_are_counted)
{
    enum { TIMES = 5 };
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *narrow = actor_new(ACTS(enters("choir")));
    narrow->type.mailbox_limit = 1;
    actor_submit(narrow);
    struct actor *wide = actor_start(ACTS(enters("choir")));
    world_settle();
    struct actor *publisher =
        actor_start(ACTS(for_each_tag(TIMES, publishes(0, "choir", SONG, 1))));
    world_settle();
    assert_int_equal(publisher->seen_count, TIMES);
    uint64_t refused = 0;
    for (size_t i = 0; i < TIMES; i++) {
        refused += publisher->seen[i].value; /* the second number */
    }
    assert_int_equal(wide->seen_count, TIMES);
    assert_in_range(narrow->seen_count, 1, 2);
    assert_int_equal(narrow->seen_count + refused, TIMES);
}

/* ---- large groups: in slices ---- */

enum { MEMBERS = 1000 };

/* Members note what they get. */
struct member {
    uint64_t got;  /* how many */
    uint64_t last; /* the number of the last */
    bool is_disordered;
};

static struct member *members;

static int member_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    (void)count;
    memcpy(self, input[0].as.words, sizeof(uint64_t));
    return 0;
}

static int member_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct member *member = &members[*(uint64_t *)self];
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            const int error = skua_group_join(ctx, "choir");
            if (error != 0) {
                return error;
            }
        } else if (events[i].type == SKUA_EVENT_MESSAGE) {
            uint64_t number;
            memcpy(&number, skua_payload_data(&events[i].payload), sizeof number);
            member->is_disordered |= number <= member->last;
            member->last = number;
            member->got++;
        }
    }
    return 0;
}

static const skua_process_type member_type = {
    .name = "member", .state_size = sizeof(uint64_t), .init = member_init, .step = member_step};

static void start_members(size_t count, skua_pid *pids)
{
    members = test_alloc(count * sizeof *members);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(skua_process_submit(world_runtime(), &member_type, skua_payload_u64(0, i),
                                             pids != NULL ? &pids[i] : NULL),
                         0);
    }
    world_settle();
    assert_int_equal(skua_group_members(world_runtime(), "choir", NULL, 0), count);
}

static void assert_each_got(size_t count, uint64_t messages)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(members[i].got, messages);
        assert_false(members[i].is_disordered);
    }
}

/* A shared payload of 40 bytes that begins with a number. */
static int publish_shared(struct turn *turn, const struct act *act)
{
    uint64_t words[5] = {act->number};
    skua_payload payload;
    const int error =
        skua_payload_shared(skua_runtime_of(turn->ctx), SONG, words, sizeof words, &payload);
    return error != 0 ? error : skua_yield_publish(turn->ctx, act->tag, "choir", payload);
}

static struct act publishes_shared(uint64_t tag, uint64_t number)
{
    return (struct act){.perform = publish_shared, .tag = tag, .number = number};
}

TEST(large_group_gets_publishes_in_order)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        start_members(MEMBERS, NULL);
        struct actor *publisher =
            actor_start(ACTS(publishes_shared(1, 1), publishes(2, "nobody", SONG, 1),
                             publishes_shared(3, 2), publishes(4, "choir", SONG, 3)));
        world_settle();
        assert_saw(publisher, published(1, MEMBERS, 0), published(2, 0, 0),
                   published(3, MEMBERS, 0), published(4, MEMBERS, 0));
        assert_each_got(MEMBERS, 3);
    }
}

TEST(publishing_goes_on_when_its_process_ends)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        start_members(MEMBERS, NULL);
        struct actor *publisher =
            actor_start(ACTS(publishes_shared(1, 1), publishes_shared(2, 2), finishes(0)));
        world_settle();
        assert_saw_nothing(publisher);
        assert_each_got(MEMBERS, 2);
    }
}

/* Its steps run between the slices, and some turns have a slice and a step. */
TEST(publisher_that_continues_is_done_all_the_same)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        start_members(MEMBERS, NULL);
        struct actor *publisher = actor_start(
            ACTS(publishes_shared(1, 1), continues(50), publishes_shared(2, 2), continues(50)));
        world_settle();
        assert_then_saw_in_any_order(publisher, published(1, MEMBERS, 0), published(2, MEMBERS, 0));
        assert_each_got(MEMBERS, 2);
    }
}

/* Members that are busy get it later, and two publishers at a time do not lose any. */
TEST(publishers_of_one_group_do_not_disturb_each_other)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        start_members(MEMBERS, NULL);
        struct actor *one = actor_start(ACTS(for_each_tag(5, publishes(0, "choir", SONG, 1))));
        struct actor *two = actor_start(ACTS(for_each_tag(5, publishes(0, "choir", SONG, 1))));
        world_settle();
        assert_int_equal(one->seen_count, 5);
        assert_int_equal(two->seen_count, 5);
        for (size_t i = 0; i < MEMBERS; i++) {
            assert_int_equal(members[i].got, 10);
        }
    }
}

/* Before anybody hears of the end, all has been sent. */
TEST(end_of_the_publisher_comes_after_what_it_has_published)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        start_members(MEMBERS, NULL);
        struct actor *publisher = actor_start(NO_ACTS);
        struct actor *watcher = actor_start(ACTS(enters("choir"), monitors(1, publisher)));
        world_settle();
        actor_perform(publisher, ACTS(publishes_shared(1, 1), finishes(0)));
        assert_int_equal(watcher->seen_count, 2);
        assert_int_equal(watcher->seen[0].type, SKUA_EVENT_MESSAGE);
        assert_int_equal(watcher->seen[1].type, SKUA_EVENT_COMPLETION);
    }
}

/* Publishes and ends. It has no close, after which the worker would count all the same. */
static int publish_and_end(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    const int error = skua_yield_publish(ctx, 1, "choir", skua_payload_u64(SONG, 1));
    return error != 0 ? error : skua_done(ctx, skua_nothing());
}

static const skua_process_type passer_by = {.name = "passer-by", .step = publish_and_end};

/* Without waiting for the next step of the publisher's worker. */
TEST(message_of_a_publisher_that_has_ended_counts_in_the_mailbox_of_a_busy_member)
{
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct actor *busy = actor_start(ACTS(enters("choir"), holds()));
    actor_await_held(busy, 1);
    skua_exit exit;
    assert_int_equal(skua_process_run(world_runtime(), &passer_by, skua_nothing(), &exit), 0);
    assert_int_equal(world_info(busy->pid).mailbox_length, 1);
    actor_let_go(busy);
    actor_await_seen(busy, 1);
    assert_saw(busy, message(SONG, 1));
}

TEST(publish_that_is_taken_back_is_sent_all_the_same)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        start_members(MEMBERS, NULL);
        struct actor *publisher = actor_start(ACTS(publishes_shared(1, 1), cancels(1)));
        world_settle();
        assert_saw(publisher, failure(1, SKUA_E_CANCELLED));
        assert_each_got(MEMBERS, 1);
    }
}

/* Steps of the simulator in which members get something: each is a slice at most. */
TEST(publisher_sends_in_slices_and_runs_in_between)
{
    world_open_sim(3, SIM_NO_FAULTS);
    start_members(MEMBERS, NULL);
    struct actor *publisher = actor_start(ACTS(publishes_shared(1, 1), continues(3), awaits(1)));
    uint64_t before = world_stats().messages;
    while (skua_sim_step(world_runtime()) == 1) {
        assert_in_range(world_stats().messages - before, 0, 256 * 4);
        before = world_stats().messages;
    }
    assert_saw(publisher, published(1, MEMBERS, 0));
    assert_in_range(publisher->steps, 5, 100);
    assert_each_got(MEMBERS, 1);
}

/* Those that have left or ended before their turn count as refused, those that join get nothing. */
TEST(members_that_leave_before_their_turn_are_counted)
{
    FOR_ROUNDS (seed, 20) {
        world_open_sim(seed, SIM_NO_FAULTS);
        skua_pid *pids = test_alloc(MEMBERS * sizeof *pids);
        start_members(MEMBERS, pids);
        struct actor *publisher = actor_start(ACTS(publishes_shared(1, 1)));
        for (uint64_t i = 0; i < seed; i++) {
            (void)skua_sim_step(world_runtime());
        }
        for (size_t i = 0; i < MEMBERS; i += 3) {
            assert_int_equal(world_terminate(pids[MEMBERS - 1 - i]), 0);
        }
        struct actor *late = actor_start(ACTS(enters("choir")));
        world_settle();
        assert_int_equal(publisher->seen_count, 1);
        uint64_t got = 0;
        for (size_t i = 0; i < MEMBERS; i++) {
            got += members[i].got;
        }
        /* One that has ended may have had it in its mailbox. */
        const struct seen *seen = &publisher->seen[0];
        const uint64_t refused = seen->value; /* the second number */
        assert_in_range(got + refused, MEMBERS - MEMBERS / 3 - 1, MEMBERS);
        assert_in_range(late->seen_count, 0, 1);
    }
}

/* ---- what can be published ---- */

static int publish_payload(struct turn *turn, const struct act *act)
{
    skua_payload payload = *(skua_payload *)act->arg;
    return skua_yield_publish(turn->ctx, 1, "choir", payload);
}

TEST(payload_with_one_owner_is_refused_and_dropped)
{
    world_open_virtual();
    struct tracked items[2] = {{0}};
    skua_payload owned = tracked_payload(SONG, &items[0]);
    skua_payload taken = skua_payload_u64(SONG, 1);
    (void)skua_payload_take(&taken);
    skua_payload large = tracked_oversized((size_t)1 << 30, &items[1]);
    struct actor *member = actor_start(ACTS(enters("choir")));
    (void)actor_start(ACTS(refused(does(publish_payload, &owned), SKUA_E_NOT_SHARED),
                           refused(does(publish_payload, &taken), SKUA_E_TAKEN),
                           refused(does(publish_payload, &large), SKUA_E_PAYLOAD_SIZE)));
    world_settle();
    assert_drops(items, 2, 1);
    assert_saw_nothing(member);
    world_close();
}

TEST(step_that_fails_publishes_nothing)
{
    world_open_virtual();
    start_members(10, NULL);
    struct actor *publisher =
        actor_start(ACTS(publishes_shared(1, 1), watches(2, "choir"), fails(SKUA_E_USER)));
    world_settle();
    assert_ended(publisher, SKUA_E_USER);
    assert_each_got(10, 0);
}

/* ---- tasks ---- */

static atomic_uint_fast64_t sum;

static int publish_and_wait(void *self, skua_context *ctx)
{
    (void)self;
    skua_published result = {1, 1};
    int error = skua_task_publish(ctx, "", skua_nothing(), &result);
    if (error != SKUA_E_NAME || result.accepted != 0) {
        return SKUA_E_INVALID;
    }
    error = skua_task_publish(ctx, "choir", skua_payload_u64(SONG, 1), &result);
    error = error != 0 ? error : skua_task_publish(ctx, "choir", skua_payload_u64(SONG, 2), NULL);
    atomic_store(&sum, result.accepted * 1000 + result.refused);
    return error;
}

TEST(task_waits_until_all_is_sent)
{
    static const skua_process_type task = {.name = "task", .main = publish_and_wait};
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        start_members(MEMBERS, NULL);
        skua_exit exit;
        assert_int_equal(skua_process_run(world_runtime(), &task, skua_nothing(), &exit), 0);
        assert_int_equal(exit.error, 0);
        world_settle();
        assert_int_equal(atomic_load(&sum), MEMBERS * 1000);
        assert_each_got(MEMBERS, 2);
    }
}
