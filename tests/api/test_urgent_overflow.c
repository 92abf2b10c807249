/* SPDX-License-Identifier: MIT */
/* Urgent and deferred messages where mailboxes are full, where messages are dropped, and where
 * processes change their types. */
#include <skua/upgrade.h>

#include "gate.h"
#include "letters.h"

#define LIMIT 2

enum { PLAIN, URGENT };

static struct actor *start_urgent(enum skua_overflow policy, uint32_t limit, struct script script)
{
    struct actor *actor = bounded_new(policy, limit, script);
    actor->type.urgent = true;
    actor_submit(actor);
    return actor;
}

static void open_urgently(const struct gate *gate)
{
    assert_int_equal(world_send_urgent(gate->pid, skua_payload_empty(GATE_OPEN)), 0);
}

/* More than there are places for. */
#define MANY (4 * SKUA_EVENTS_PER_STEP)

static void send_plain(const struct actor *to, uint64_t number)
{
    assert_int_equal(world_send(to->pid, skua_payload_u64(PLAIN, number)), 0);
}

static int send_urgent(const struct actor *to, uint64_t number)
{
    return world_send_urgent(to->pid, skua_payload_u64(URGENT, number));
}

/* Sends urgent messages, numbered from 1, until one is refused. Returns how many were accepted: as
 * many at least as the limit. */
static uint64_t fill_urgently(const struct actor *to)
{
    uint64_t count = 0;
    int error;
    while ((error = send_urgent(to, count + 1)) == 0) {
        count++;
    }
    assert_int_equal(error, SKUA_E_MAILBOX_FULL);
    assert_in_range(count, LIMIT, MANY);
    return count;
}

/* Sends that many, of which none is refused. Returns how many the reader has seen, all of them
 * first: the rest are dead letters. */
static uint64_t flood_urgently(const struct actor *reader)
{
    for (uint64_t i = 1; i <= MANY; i++) {
        assert_int_equal(send_urgent(reader, i), 0);
    }
    world_settle();
    uint64_t count = 0;
    while (count < reader->seen_count && reader->seen[count].payload_type == URGENT) {
        assert_int_equal(reader->seen[count].value, count + 1);
        count++;
    }
    assert_in_range(count, LIMIT, MANY);
    assert_dead(SKUA_DEAD_NEW, count + 1, MANY);
    assert_int_equal(world_info(reader->pid).mailbox_length, 0);
    return count;
}

/* ---- urgent messages, one policy after the other: simulated, so the reader runs later ---- */

TEST(full_mailbox_refuses_urgent_messages_when_it_has_too_many)
{
    letters_open_sim();
    struct actor *reader = start_urgent(SKUA_OVERFLOW_REFUSE, LIMIT, NO_ACTS);
    send_plain(reader, 1);
    send_plain(reader, 2);
    const uint64_t count = fill_urgently(reader);
    world_settle();
    assert_int_equal(reader->seen_count, count + LIMIT);
    assert_int_equal(reader->seen[0].payload_type, URGENT);
    assert_int_equal(reader->seen[count].payload_type, PLAIN);
    assert_int_equal(letters_count(), 0);
}

TEST(full_mailbox_drops_new_urgent_messages_when_it_has_too_many)
{
    letters_open_sim();
    struct actor *reader = start_urgent(SKUA_OVERFLOW_DROP_NEW, LIMIT, NO_ACTS);
    send_plain(reader, 1);
    send_plain(reader, 2);
    const uint64_t count = flood_urgently(reader);
    assert_int_equal(reader->seen_count, count + LIMIT);
}

TEST(old_messages_are_dropped_for_urgent_ones)
{
    letters_open_sim();
    struct actor *reader = start_urgent(SKUA_OVERFLOW_DROP_OLD, LIMIT, NO_ACTS);
    send_plain(reader, 1);
    send_plain(reader, 2);
    const uint64_t count = flood_urgently(reader);
    assert_int_equal(reader->seen_count, count);
    assert_dead(SKUA_DEAD_OLD, 1, LIMIT);
}

TEST(old_urgent_messages_are_not_dropped_for_new_ones)
{
    letters_open_sim();
    struct actor *reader = start_urgent(SKUA_OVERFLOW_DROP_OLD, LIMIT, NO_ACTS);
    assert_int_equal(send_urgent(reader, 11), 0);
    assert_int_equal(send_urgent(reader, 12), 0);
    send_plain(reader, 1);
    world_settle();
    assert_saw(reader, message(URGENT, 11), message(URGENT, 12));
    assert_dead(SKUA_DEAD_OLD, 1, 1);
}

TEST(urgent_message_that_finds_too_many_ends_the_process)
{
    letters_open_sim();
    struct actor *reader = start_urgent(SKUA_OVERFLOW_END, LIMIT, NO_ACTS);
    const uint64_t count = fill_urgently(reader);
    world_settle();
    assert_saw_nothing(reader);
    assert_ended_because_of(reader, SKUA_E_OVERFLOW, reader);
    assert_dead(SKUA_DEAD_UNREAD, 1, count);
}

/* The events that an urgent message has overtaken are older than what came after it. */
TEST(oldest_messages_are_dropped_also_if_others_have_overtaken_them)
{
    enum { ROOM = 3 * SKUA_EVENTS_PER_STEP, EXCESS = 10 };
    letters_open((skua_runtime_config){0});
    struct actor *reader =
        start_urgent(SKUA_OVERFLOW_DROP_OLD, ROOM,
                     ACTS(holds(), awaits(1), holds(), awaits(SKUA_EVENTS_PER_STEP), holds()));
    uint64_t sent = 0;
    actor_await_held(reader, 1);
    while (sent < (uint64_t)2 * SKUA_EVENTS_PER_STEP) {
        send_plain(reader, ++sent);
    }
    actor_let_go(reader);
    actor_await_held(reader, 2);
    for (uint64_t i = 0; i < EXCESS; i++) {
        send_plain(reader, ++sent);
    }
    assert_int_equal(send_urgent(reader, 0), 0);
    actor_let_go(reader);
    actor_await_held(reader, 3);
    const size_t before = reader->seen_count; /* two steps */
    while (world_info(reader->pid).mailbox_length < ROOM + EXCESS) {
        send_plain(reader, ++sent);
    }
    actor_let_go(reader);
    actor_await_seen(reader, sent + 1 - EXCESS);
    assert_int_equal(reader->seen[before].value, before + EXCESS); /* one of them was urgent */
    assert_dead(SKUA_DEAD_OLD, before, before + EXCESS - 1);
}

/* ---- deferred messages ---- */

static struct gate *start_gate(uint64_t round, enum skua_overflow policy)
{
    struct gate *gate = gate_new((enum gate_shape)(round - 1), true);
    gate->type.overflow = policy;
    gate->type.mailbox_limit = LIMIT;
    gate_submit(gate);
    gate_send(gate, 1);
    gate_send(gate, 2);
    gate_await_deferred(gate, LIMIT);
    return gate;
}

TEST(deferred_messages_are_not_dropped_for_new_ones)
{
    FOR_ROUNDS (round, GATE_SHAPES) {
        letters_open_sim();
        struct gate *gate = start_gate(round, SKUA_OVERFLOW_DROP_OLD);
        gate_send(gate, 3);
        world_settle();
        assert_dead(SKUA_DEAD_OLD, 3, 3);
        open_urgently(gate);
        assert_passed(gate, 1, 2);
        gate_send(gate, 4);
        assert_passed(gate, 4);
        assert_int_equal(world_info(gate->pid).mailbox_length, 0);
    }
}

TEST(deferred_messages_of_a_process_that_ends_are_dead_letters)
{
    FOR_ROUNDS (round, GATE_SHAPES) {
        letters_open_sim();
        struct gate *gate = start_gate(round, SKUA_OVERFLOW_REFUSE);
        assert_int_equal(world_send_urgent(gate->pid, skua_payload_empty(GATE_FAIL)), 0);
        gate_await_end(gate);
        assert_int_equal(gate->exit_error, SKUA_E_USER);
        assert_dead(SKUA_DEAD_UNREAD, 1, LIMIT);
    }
}

/* It is in no node when a step gets it. */
TEST(message_that_has_waited_for_room_can_be_deferred)
{
    FOR_ROUNDS (round, GATE_SHAPES) {
        letters_open_sim();
        struct gate *gate = start_gate(round, SKUA_OVERFLOW_REFUSE);
        struct actor receiver = {.pid = gate->pid};
        struct actor *sender = actor_start(ACTS(admits(1, &receiver, 3)));
        gate_await_deferred(gate, LIMIT + 1);
        assert_saw(sender, completion(1, 0));
        assert_int_equal(gate->defer_error, 0);
        open_urgently(gate);
        assert_passed(gate, 1, 2, 3);
        assert_int_equal(world_info(gate->pid).mailbox_length, 0);
    }
}

/* ---- a new type ---- */

static int migrate(uint32_t old_version, const void *old_state, void *new_state, skua_context *ctx)
{
    (void)old_version;
    (void)ctx;
    *(struct gate **)new_state = *(struct gate *const *)old_state;
    return 0;
}

TEST(process_that_changes_its_type_keeps_what_it_has_deferred)
{
    static const enum gate_shape shapes[] = {GATE_STEP, GATE_SERVER}; /* a main cannot change */
    FOR_ROWS (shape, shapes) {
        letters_open_sim();
        struct gate *gate = start_gate((uint64_t)*shape + 1, SKUA_OVERFLOW_REFUSE);
        skua_process_type *newer = test_alloc(sizeof *newer);
        *newer = gate->type;
        newer->version = 2;
        newer->migrate = migrate;
        newer->urgent = false;
        newer->mailbox_limit = 10;
        assert_int_equal(skua_runtime_upgrade(world_runtime(), &gate->type, newer), 1);
        world_settle();
        assert_int_equal(world_send_urgent(gate->pid, skua_payload_empty(GATE_OPEN)),
                         SKUA_E_NOT_URGENT);
        gate_send(gate, 3);
        gate_set(gate, GATE_OPEN);
        assert_passed(gate, 1, 2, 3);
    }
}
