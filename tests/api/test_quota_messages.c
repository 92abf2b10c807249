/* SPDX-License-Identifier: MIT */
/* Quotas of messages: exact at their limits, whatever the way and the receiver's policy, and given
 * back however a message goes. Simulated: what is sent waits until the world is let run. */
#include <skua/task.h>

#include "groups.h"
#include "letters.h"
#include "quotas.h"
#include "versions.h"

#define QUOTA 3

/* A grantor, with two actors under its quota of messages. */
struct family {
    struct actor *top;
    struct actor *one;
    struct actor *other;
};

static struct family open_family_of(skua_quota quota, struct actor *one, struct actor *other)
{
    struct family family = {grantor_start(quota), one, other};
    actor_perform(family.top, ACTS(spawns(one), spawns(other)));
    return family;
}

static struct family open_family(void)
{
    world_open_sim(1, SIM_NO_FAULTS);
    return open_family_of((skua_quota){.messages = QUOTA}, actor_new(NO_ACTS), actor_new(NO_ACTS));
}

static int send_to(const struct actor *actor)
{
    return world_send(actor->pid, skua_payload_u64(1, 1));
}

/* ---- the limit ---- */

TEST(as_many_messages_as_the_quota_allows_can_wait)
{
    struct family family = open_family();
    assert_int_equal(send_to(family.one), 0);
    assert_int_equal(send_to(family.other), 0);
    assert_used(family.top->pid, 0, 2, 0);
    assert_int_equal(send_to(family.one), 0);
    assert_used(family.top->pid, 0, QUOTA, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(send_to(family.one), SKUA_E_MESSAGE_QUOTA);
        assert_int_equal(send_to(family.other), SKUA_E_MESSAGE_QUOTA);
    }
    assert_int_equal(world_info(family.one->pid).mailbox_length, 2);
    assert_int_equal(send_to(family.top), 0);                /* it is not under its quota */
    assert_int_equal(world_cancel(family.other->pid, 0), 0); /* no message */
    world_settle();
    assert_used(family.top->pid, 0, 0, 0);
    assert_saw(family.one, message(1, 1), message(1, 1));
    for (size_t i = 0; i < QUOTA; i++) {
        assert_int_equal(send_to(family.one), 0);
    }
    assert_int_equal(send_to(family.one), SKUA_E_MESSAGE_QUOTA);
    world_settle();
}

TEST(messages_of_a_step_count)
{
    struct family family = open_family();
    actor_perform(family.one, ACTS(sends_numbers(family.other, 1, QUOTA),
                                   refused(sends(family.other, 1, 9), SKUA_E_MESSAGE_QUOTA),
                                   refused(sends(family.one, 1, 9), SKUA_E_MESSAGE_QUOTA)));
    assert_saw(family.other, message(1, 0), message(1, 1), message(1, 2));
    assert_used(family.top->pid, 0, 0, 0);
}

TEST(messages_count_against_both_of_two_quotas)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *top = grantor_start((skua_quota){.messages = 3});
    struct actor *middle = actor_new(ACTS(grants((skua_quota){.messages = 2})));
    struct actor *leaf = actor_new(NO_ACTS);
    actor_perform(top, ACTS(spawns(middle)));
    actor_perform(middle, ACTS(spawns(leaf)));
    assert_int_equal(send_to(leaf), 0);
    assert_int_equal(send_to(middle), 0);
    assert_used(top->pid, 0, 2, 0);
    assert_used(middle->pid, 0, 1, 0);
    assert_int_equal(send_to(leaf), 0);
    assert_int_equal(send_to(middle), SKUA_E_MESSAGE_QUOTA); /* the outer one is full */
    assert_int_equal(send_to(leaf), SKUA_E_MESSAGE_QUOTA);
    world_settle();
    assert_used(top->pid, 0, 0, 0);
    assert_used(middle->pid, 0, 0, 0);
    assert_int_equal(send_to(leaf), 0);
    assert_int_equal(send_to(leaf), 0);
    assert_int_equal(send_to(leaf), SKUA_E_MESSAGE_QUOTA); /* the inner one is */
    assert_used(top->pid, 0, 2, 0);
    world_settle();
}

/* A quota without a limit on messages, within one that has it. */
TEST(messages_count_against_an_outer_quota_only)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *top = grantor_start((skua_quota){.messages = 1});
    struct actor *middle = actor_new(ACTS(grants((skua_quota){.processes = 5})));
    struct actor *leaf = actor_new(NO_ACTS);
    actor_perform(top, ACTS(spawns(middle)));
    actor_perform(middle, ACTS(spawns(leaf)));
    assert_int_equal(send_to(leaf), 0);
    assert_int_equal(send_to(leaf), SKUA_E_MESSAGE_QUOTA);
    assert_used(top->pid, 0, 1, 0);
    assert_used(middle->pid, 1, 0, 0);
    world_settle();
}

TEST(processes_without_a_quota_of_messages_have_their_mailboxes)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *one = actor_new(NO_ACTS);
    one->type.mailbox_limit = 2;
    struct family family = open_family_of((skua_quota){.processes = 2}, one, actor_new(NO_ACTS));
    assert_int_equal(send_to(one), 0);
    assert_int_equal(send_to(one), 0);
    assert_int_equal(send_to(one), SKUA_E_MAILBOX_FULL);
    assert_used(family.top->pid, 2, 0, 0);
    world_settle();
    assert_saw(one, message(1, 1), message(1, 1));
}

/* ---- policies ---- */

static struct family open_policy(enum skua_overflow overflow, uint32_t limit, uint32_t messages)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *one = actor_new(NO_ACTS);
    one->type.overflow = overflow;
    one->type.mailbox_limit = limit;
    one->type.urgent = true;
    return open_family_of((skua_quota){.messages = messages}, one, actor_new(NO_ACTS));
}

TEST(a_full_quota_refuses_whatever_the_policy)
{
    FOR_ROUNDS (policy, SKUA_OVERFLOW_END + 1) {
        struct family family = open_policy((enum skua_overflow)(policy - 1), 100, QUOTA);
        for (size_t i = 0; i < QUOTA; i++) {
            assert_int_equal(send_to(family.one), 0);
        }
        assert_int_equal(send_to(family.one), SKUA_E_MESSAGE_QUOTA);
        assert_int_equal(world_send_urgent(family.one->pid, skua_payload_u64(1, 2)),
                         SKUA_E_MESSAGE_QUOTA);
        assert_used(family.top->pid, 0, QUOTA, 0);
        world_settle();
        assert_used(family.top->pid, 0, 0, 0);
        assert_saw(family.one, message(1, 1), message(1, 1), message(1, 1)); /* it lives */
        assert_int_equal(send_to(family.one), 0);
        world_settle();
    }
}

TEST(a_full_mailbox_does_what_its_policy_says)
{
    FOR_ROUNDS (policy, SKUA_OVERFLOW_END + 1) {
        const enum skua_overflow overflow = (enum skua_overflow)(policy - 1);
        struct family family = open_policy(overflow, 2, 100);
        assert_int_equal(send_to(family.one), 0);
        assert_int_equal(send_to(family.one), 0);
        const bool drops = overflow == SKUA_OVERFLOW_DROP_NEW || overflow == SKUA_OVERFLOW_DROP_OLD;
        for (size_t i = 0; i < 6; i++) {
            assert_int_equal(send_to(family.one), drops ? 0 : SKUA_E_MAILBOX_FULL);
        }
        const uint32_t places = overflow == SKUA_OVERFLOW_DROP_OLD ? 8 : 2;
        assert_used(family.top->pid, 0, places, 0);
        world_settle();
        assert_used(family.top->pid, 0, 0, 0);
    }
}

TEST(urgent_messages_count)
{
    struct family family = open_policy(SKUA_OVERFLOW_REFUSE, 1, QUOTA);
    for (size_t i = 0; i < QUOTA; i++) {
        assert_int_equal(world_send_urgent(family.one->pid, skua_payload_u64(1, i)), 0);
    }
    assert_int_equal(world_send_urgent(family.one->pid, skua_payload_u64(1, 9)),
                     SKUA_E_MESSAGE_QUOTA);
    assert_int_equal(send_to(family.other), SKUA_E_MESSAGE_QUOTA);
    world_settle();
    assert_used(family.top->pid, 0, 0, 0);
    assert_saw(family.one, message(1, 0), message(1, 1), message(1, 2));
}

/* ---- calls ---- */

TEST(calls_count_until_they_are_answered)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *second = server_new(NO_ACTS);
    struct actor *server =
        server_new(ACTS(expects(request(1)), expects(request(2)), expects(cancel(SKUA_E_USER)),
                        answers(0, 5), expects(cancel(SKUA_E_USER)), forwards(1, second, 6)));
    struct family family = open_family_of((skua_quota){.messages = 2}, server, second);
    struct actor *client =
        actor_start(ACTS(asks(1, server, 1), asks(2, server, 2), asks(3, second, 3)));
    world_settle();
    assert_used(family.top->pid, 0, 2, 0); /* it has got them, and not answered */
    assert_int_equal(send_to(server), SKUA_E_MESSAGE_QUOTA);
    assert_int_equal(world_cancel(server->pid, SKUA_E_USER), 0); /* no message */
    world_settle();
    assert_used(family.top->pid, 0, 1, 0);
    assert_int_equal(world_cancel(server->pid, SKUA_E_USER), 0);
    world_settle(); /* what is forwarded needs a place there first */
    assert_used(family.top->pid, 0, 1, 0);
    assert_int_equal(send_to(server), 0);
    world_settle();
    assert_int_equal(world_terminate(second->pid), 0);
    world_settle();
    assert_used(family.top->pid, 0, 0, 0);
    assert_saw(client, failure(3, SKUA_E_MESSAGE_QUOTA), completion_of(1, 0, 5),
               peer_ended(2, SKUA_E_TERMINATED));
}

TEST(a_call_is_not_forwarded_beyond_the_quota)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *client = actor_start(NO_ACTS);
    struct actor *second = server_new(NO_ACTS);
    struct actor *server = server_new(
        ACTS(awaits(1), refused(forwards(0, second, 6), SKUA_E_MESSAGE_QUOTA), answers(0, 2)));
    struct family family = open_family_of((skua_quota){.messages = 1}, server, second);
    actor_perform(client, ACTS(asks(1, server, 1)));
    assert_saw(client, completion_of(1, 0, 2));
    assert_used(family.top->pid, 0, 0, 0);
}

/* ---- senders that wait ---- */

TEST(a_sender_that_waits_for_room_waits_for_no_quota)
{
    struct family family = open_family();
    struct actor *sender = actor_start(NO_ACTS);
    actor_perform(sender, ACTS(sends_numbers(family.one, 1, QUOTA), admits(5, family.one, 7)));
    assert_saw(sender, failure(5, SKUA_E_MESSAGE_QUOTA));
    actor_perform(sender, ACTS(admits(6, family.one, 8)));
    world_settle();
    assert_used(family.top->pid, 0, 0, 0);
}

TEST(a_sender_waits_for_room_in_the_mailbox)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *one = actor_new(NO_ACTS);
    one->type.mailbox_limit = 1;
    struct family family = open_family_of((skua_quota){.messages = QUOTA}, one, actor_new(NO_ACTS));
    struct actor *sender = actor_start(NO_ACTS);
    actor_perform(sender, ACTS(sends(one, 1, 1), admits(5, one, 7), admits(6, one, 8)));
    world_settle();
    assert_int_equal(one->seen_count, 3);
    assert_int_equal(sender->seen_count, 2);
    assert_used(family.top->pid, 0, 0, 0);
}

/* ---- how they go ---- */

static void fill(const struct actor *actor, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(send_to(actor), 0);
    }
}

TEST(messages_of_a_process_that_ends_are_given_back)
{
    enum { MANY = 2000 }; /* more than are dropped in one slice */
    world_open_sim(1, SIM_NO_FAULTS);
    struct family family = open_family_of((skua_quota){.messages = MANY, .processes = 2},
                                          actor_new(NO_ACTS), actor_new(NO_ACTS));
    fill(family.one, MANY);
    assert_used(family.top->pid, 2, MANY, 0);
    assert_int_equal(send_to(family.other), SKUA_E_MESSAGE_QUOTA);
    assert_int_equal(world_terminate(family.one->pid), 0);
    world_settle();
    assert_used(family.top->pid, 1, 0, 0);
    fill(family.other, MANY);
    world_settle();
    assert_used(family.top->pid, 1, 0, 0);
}

TEST(a_message_to_a_process_that_has_ended_is_not_counted)
{
    struct family family = open_family();
    assert_int_equal(world_terminate(family.one->pid), 0);
    world_settle();
    assert_int_equal(send_to(family.one), SKUA_E_NO_PROCESS);
    assert_used(family.top->pid, 0, 0, 0);
}

/* A process in the place of one with a quota, and the other way round. */
TEST(a_slot_is_used_with_and_without_a_quota)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *top = grantor_start((skua_quota){.messages = 1});
    for (size_t i = 0; i < 20; i++) {
        struct actor *limited = actor_new(NO_ACTS);
        actor_perform(top, ACTS(spawns(limited)));
        assert_int_equal(send_to(limited), 0);
        assert_int_equal(send_to(limited), SKUA_E_MESSAGE_QUOTA);
        assert_int_equal(world_terminate(limited->pid), 0);
        world_settle();
        struct actor *free_one = actor_start(NO_ACTS);
        world_settle();
        fill(free_one, 5);
        assert_int_equal(world_terminate(free_one->pid), 0);
        world_settle();
        assert_used(top->pid, 0, 0, 0);
    }
}

/* ---- deferring ---- */

static struct {
    bool is_shut;
    unsigned deferred;
    unsigned passed;
    int error; /* of the last defer that failed */
} door;

static int door_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type != SKUA_EVENT_MESSAGE) {
            continue;
        }
        if (events[i].payload.type == 2) {
            door.is_shut = false;
            skua_resume(ctx);
            continue;
        }
        const int error = door.is_shut ? skua_defer(ctx, &events[i]) : 0;
        door.deferred += door.is_shut && error == 0;
        door.passed += !door.is_shut;
        door.error = error != 0 ? error : door.error;
    }
    return 0;
}

static const skua_process_type door_type = {.name = "door", .step = door_step};

static int spawn_door(struct turn *turn, const struct act *act)
{
    return skua_spawn(turn->ctx, &door_type, skua_nothing(), act->arg);
}

static skua_pid open_door(struct actor *top)
{
    static skua_pid pid;
    memset(&door, 0, sizeof door);
    door.is_shut = true;
    actor_perform(top, ACTS(does(spawn_door, &pid)));
    return pid;
}

TEST(deferred_messages_count_again)
{
    struct family family = open_family();
    const skua_pid pid = open_door(family.top);
    for (size_t i = 0; i < QUOTA; i++) {
        assert_int_equal(world_send(pid, skua_payload_u64(1, i)), 0);
    }
    world_settle();
    assert_int_equal(door.deferred, QUOTA);
    assert_used(family.top->pid, 0, QUOTA, 0);
    assert_int_equal(world_send(pid, skua_payload_u64(1, 9)), SKUA_E_MESSAGE_QUOTA);
    assert_int_equal(world_terminate(family.one->pid), 0);
    assert_int_equal(world_terminate(pid), 0); /* with what it has deferred */
    world_settle();
    assert_used(family.top->pid, 0, 0, 0);
}

TEST(deferred_messages_come_back_and_are_over)
{
    struct family family = open_family();
    const skua_pid pid = open_door(family.top);
    assert_int_equal(world_send(pid, skua_payload_u64(1, 1)), 0);
    assert_int_equal(world_send(pid, skua_payload_u64(1, 2)), 0);
    world_settle();
    assert_used(family.top->pid, 0, 2, 0);
    assert_int_equal(world_send(pid, skua_payload_u64(2, 0)), 0);
    world_settle();
    assert_int_equal(door.passed, 2);
    assert_used(family.top->pid, 0, 0, 0);
}

/* A step that defers what others have taken the place of meanwhile. */
static int greedy_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    const skua_pid *other = self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_MESSAGE) {
            door.error = skua_send(ctx, *other, skua_payload_u64(1, 1));
            door.deferred += door.error == 0;
            door.error = skua_defer(ctx, &events[i]);
        }
    }
    return 0;
}

static const skua_process_type greedy_type = {
    .name = "greedy", .state_size = sizeof(skua_pid), .init = skua_init_bytes, .step = greedy_step};

struct greedy {
    skua_pid other;
    skua_pid pid;
};

static int spawn_greedy(struct turn *turn, const struct act *act)
{
    struct greedy *greedy = act->arg;
    return skua_spawn(turn->ctx, &greedy_type, skua_payload_u64(0, greedy->other.bits),
                      &greedy->pid);
}

TEST(a_message_cannot_be_deferred_beyond_the_quota)
{
    static struct greedy greedy;
    world_open_sim(1, SIM_NO_FAULTS);
    memset(&door, 0, sizeof door);
    struct family family =
        open_family_of((skua_quota){.messages = 1}, actor_new(NO_ACTS), actor_new(NO_ACTS));
    greedy.other = family.one->pid;
    actor_perform(family.top, ACTS(does(spawn_greedy, &greedy)));
    assert_int_equal(world_send(greedy.pid, skua_payload_u64(1, 1)), 0);
    world_settle();
    assert_int_equal(door.deferred, 1); /* it was sent: the place was free */
    assert_int_equal(door.error, SKUA_E_MESSAGE_QUOTA);
    assert_used(family.top->pid, 0, 0, 0);
}

/* ---- groups ---- */

TEST(members_under_a_quota_get_what_is_published_or_are_counted)
{
    enum { TIMES = 5, SONG = 3 };
    world_open_sim(1, SIM_NO_FAULTS);
    const struct family family =
        open_family_of((skua_quota){.messages = QUOTA}, actor_new(ACTS(enters("choir"))),
                       actor_new(ACTS(enters("choir"))));
    world_settle();
    const struct actor *publisher =
        actor_start(ACTS(for_each_tag(TIMES, publishes(0, "choir", SONG, 1))));
    world_settle();
    assert_int_equal(publisher->seen_count, TIMES);
    uint64_t refused = 0;
    for (size_t i = 0; i < TIMES; i++) {
        refused += publisher->seen[i].value; /* the second number */
    }
    assert_in_range(refused, 1, 2 * TIMES - QUOTA);
    assert_int_equal(family.one->seen_count + family.other->seen_count + refused, 2 * TIMES);
    assert_used(family.top->pid, 0, 0, 0);
}

/* ---- upgrades ---- */

static int spawn_counter(struct turn *turn, const struct act *act)
{
    return skua_spawn(turn->ctx, &counter_small_1, skua_nothing(), act->arg);
}

TEST(a_process_that_is_upgraded_stays_under_its_quota)
{
    static skua_pid pid;
    struct family family = open_family();
    counters_reset();
    actor_perform(family.top, ACTS(does(spawn_counter, &pid)));
    for (uint64_t i = 0; i < QUOTA; i++) {
        assert_int_equal(world_send(pid, skua_payload_u64(COUNTER_ADD, i)), 0);
    }
    assert_int_equal(counters_upgrade(&counter_small_1, &counter_large_2), 1);
    assert_used(family.top->pid, 0, QUOTA, 0);
    world_settle();
    assert_int_equal(counter_version(pid), 2);
    assert_int_equal(counter_migrations, 1);
    assert_used(family.top->pid, 0, 0, 0);
    for (uint64_t i = 0; i < QUOTA; i++) {
        assert_int_equal(world_send(pid, skua_payload_u64(COUNTER_ADD, i)), 0);
    }
    assert_int_equal(world_send(pid, skua_payload_u64(COUNTER_ADD, 1)), SKUA_E_MESSAGE_QUOTA);
    world_settle();
    assert_int_equal(counter_total(pid), QUOTA * (QUOTA - 1));
    assert_used(family.top->pid, 0, 0, 0);
}

/* ---- tasks ---- */

static unsigned picked;

static int picky_main(void *self, skua_context *ctx)
{
    skua_event *event;
    (void)self;
    for (;;) {
        const int error = skua_task_receive_type(ctx, 2, &event, SKUA_FOREVER);
        if (error != 0) {
            return error;
        }
        picked++;
    }
}

static const skua_process_type picky_type = {
    .name = "picky", .main = picky_main, .mailbox_limit = 2};

static int spawn_picky(struct turn *turn, const struct act *act)
{
    return skua_spawn(turn->ctx, &picky_type, skua_nothing(), act->arg);
}

/* What a task puts aside waits still. */
TEST(messages_that_a_task_puts_aside_count)
{
    static skua_pid pid;
    struct family family = open_family();
    picked = 0;
    actor_perform(family.top, ACTS(does(spawn_picky, &pid)));
    struct actor *sender =
        actor_start(ACTS(with_payload(sends(stranger(pid), 1, 1), skua_payload_u64(1, 1))));
    world_settle();
    assert_used(family.top->pid, 0, 1, 0);
    actor_perform(sender, ACTS(sends(stranger(pid), 2, 2)));
    assert_int_equal(picked, 1);
    assert_used(family.top->pid, 0, 1, 0);
    actor_perform(sender, ACTS(sends(stranger(pid), 1, 3), admits(1, stranger(pid), 4)));
    assert_used(family.top->pid, 0, 2, 0); /* the mailbox is full, and the last one waits */
    assert_saw_nothing(sender);
    assert_int_equal(world_terminate(pid), 0);
    world_settle();
    assert_saw(sender, failure(1, SKUA_E_NO_PROCESS));
    assert_used(family.top->pid, 0, 0, 0);
}
