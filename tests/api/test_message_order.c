/* SPDX-License-Identifier: MIT */
/* The order of messages, the batches they come in, and that none is lost, whatever the receiver is
 * doing. */
#include "actor.h"

#define SENDERS 4
#define EACH    3000 /* messages of each sender */

/* That an actor saw the numbers of each sender in their order: the type of a message is the number
 * of its sender. */
static void assert_saw_numbers(const struct actor *actor, const skua_pid *senders, size_t count,
                               uint64_t each)
{
    uint64_t next[SENDERS] = {0};
    assert_int_equal(actor->seen_count, count * each);
    for (size_t i = 0; i < actor->seen_count; i++) {
        const struct seen *seen = &actor->seen[i];
        assert_int_equal(seen->type, SKUA_EVENT_MESSAGE);
        assert_in_range(seen->payload_type, 0, count - 1);
        assert_int_equal(seen->value, next[seen->payload_type]++);
        assert_true(skua_pid_equal(seen->from, senders[seen->payload_type]));
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(next[i], each);
    }
    assert_in_range(actor_largest_batch(actor), 1, SKUA_EVENTS_PER_STEP);
}

static const skua_pid outside[SENDERS]; /* zero */

/* ---- several senders ---- */

struct sender {
    skua_pid to;
    uint32_t number;
    int error; /* of a send that was refused */
};

static void send_numbers(void *arg)
{
    struct sender *sender = arg;
    for (uint64_t i = 0; i < EACH; i++) {
        const int error = world_send(sender->to, skua_payload_u64(sender->number, i));
        sender->error = error != 0 ? error : sender->error;
    }
}

TEST(order_of_each_outside_thread_is_kept)
{
    struct sender senders[SENDERS];
    world_open();
    struct actor *receiver = actor_start(NO_ACTS);
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.to = receiver->pid, .number = i};
    }
    api_in_threads(SENDERS, send_numbers, senders, sizeof senders[0]);
    for (uint32_t i = 0; i < SENDERS; i++) {
        assert_int_equal(senders[i].error, 0);
    }
    actor_await_seen(receiver, SENDERS * EACH);
    assert_int_equal(world_stats().messages, SENDERS * EACH);
    assert_saw_numbers(receiver, outside, SENDERS, EACH);
}

TEST(order_of_each_sending_process_is_kept)
{
    enum { IN_A_STEP = 150 };
    skua_pid pids[SENDERS];
    world_open();
    struct actor *receiver = actor_start(NO_ACTS);
    for (uint32_t i = 0; i < SENDERS; i++) {
        pids[i] = actor_start(ACTS(sends_numbers(receiver, i, IN_A_STEP), continues(1),
                                   repeats(EACH / IN_A_STEP - 1), finishes(0)))
                      ->pid;
    }
    actor_await_seen(receiver, SENDERS * EACH);
    assert_saw_numbers(receiver, pids, SENDERS, EACH);
}

/* ---- batches ---- */

static void send_row(struct actor *to, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++) {
        assert_int_equal(world_send(to->pid, skua_payload_u64(0, i)), 0);
    }
}

TEST(batch_is_cut_and_the_rest_comes_in_order)
{
    test_of_steps("a task receives one event at a time");
    const uint64_t total = 10 * SKUA_EVENTS_PER_STEP + 50;
    world_open();
    struct actor *receiver = actor_start_held();
    send_row(receiver, 0, total);
    actor_let_go(receiver);
    actor_await_seen(receiver, total);
    assert_saw_numbers(receiver, outside, 1, total);
    assert_int_equal(actor_largest_batch(receiver), SKUA_EVENTS_PER_STEP);
    assert_int_equal(receiver->steps, 1 + 10 + 1); /* the first, full ones, the rest */
}

/* What arrives while older messages still wait comes after them. */
TEST(batch_cut_with_new_arrivals_keeps_the_order)
{
    enum { WAVE = 2 * SKUA_EVENTS_PER_STEP + 50, WAVES = 12 };
    world_open();
    struct actor *receiver =
        actor_start(ACTS(holds(), awaits(SKUA_EVENTS_PER_STEP), repeats(WAVES - 1)));
    for (uint64_t i = 0; i < WAVES; i++) {
        actor_await_held(receiver, i + 1);
        send_row(receiver, i * WAVE, (i + 1) * WAVE);
        actor_let_go(receiver);
    }
    actor_await_seen(receiver, WAVES * WAVE);
    assert_saw_numbers(receiver, outside, 1, WAVES * WAVE);
}

/* ---- what the receiver is doing ---- */

TEST(message_to_a_running_process_is_seen)
{
    enum { ROUNDS = 300 };
    world_open();
    struct actor *receiver =
        actor_start(ACTS(holds(), awaits(1), repeats(ROUNDS - 1), finishes(0)));
    for (uint64_t i = 0; i < ROUNDS; i++) {
        actor_await_held(receiver, i + 1);
        send_row(receiver, i, i + 1);
        actor_let_go(receiver);
    }
    actor_await_end(receiver);
    assert_saw_numbers(receiver, outside, 1, ROUNDS);
    assert_int_equal(actor_largest_batch(receiver), 1);
}

TEST(ping_pong_loses_nothing)
{
    enum { PINGS = 2500 };
    world_open();
    struct actor *ping = actor_new(NO_ACTS);
    struct actor *pong =
        actor_start(ACTS(awaits(1), sends_numbers(ping, 0, 1), repeats(PINGS - 1), finishes(0)));
    actor_submit(ping);
    actor_perform(ping, ACTS(sends_numbers(pong, 0, 1), awaits(1), repeats(PINGS - 1)));
    actor_await_end(pong);
    assert_saw_numbers(ping, &pong->pid, 1, PINGS);
    assert_saw_numbers(pong, &ping->pid, 1, PINGS);
    assert_int_equal(actor_largest_batch(ping), 1);
    assert_int_equal(actor_largest_batch(pong), 1);
}

TEST(message_to_itself_arrives_in_a_later_step)
{
    world_open();
    struct actor *actor = actor_start(NO_ACTS);
    actor_await_state(actor, SKUA_PROCESS_IDLE);
    actor_perform(actor, ACTS(sends_numbers(actor, 0, EACH))); /* in its second step */
    actor_await_seen(actor, EACH);
    assert_saw_numbers(actor, &actor->pid, 1, EACH);
    assert_int_equal(actor->seen[0].step, 3);
}
