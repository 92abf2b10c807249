/* SPDX-License-Identifier: MIT */
/* What becomes of messages that find a mailbox full: one policy after the other. In the simulator a
 * receiver cannot run before the step that sends has ended, so what is full is known. */
#include <skua/task.h>

#include "letters.h"
#include "timers.h"

#define LIMIT 3

/* ---- to the sender, and to the receiver ---- */

TEST(full_mailbox_refuses_by_default)
{
    letters_open_sim();
    struct actor *reader = bounded_start(SKUA_OVERFLOW_REFUSE, LIMIT);
    (void)actor_start(
        ACTS(sends_each(reader, LIMIT), refused(sends(reader, 0, LIMIT + 1), SKUA_E_MAILBOX_FULL)));
    world_settle();
    assert_saw(reader, message(0, 1), message(0, 2), message(0, 3));
    assert_int_equal(letters_count(), 0);
}

TEST(full_mailbox_drops_new_messages)
{
    letters_open_sim();
    struct actor *reader = bounded_start(SKUA_OVERFLOW_DROP_NEW, LIMIT);
    struct actor *sender = actor_start(ACTS(sends_each(reader, 10)));
    world_settle();
    assert_saw(reader, message(0, 1), message(0, 2), message(0, 3));
    assert_dead(SKUA_DEAD_NEW, 4, 10);
    assert_int_equal(letters_count(), 7);
    assert_int_equal(letters_at(0)->from.bits, sender->pid.bits);
    assert_int_equal(letters_at(0)->to.bits, reader->pid.bits);
    assert_int_equal(world_stats().messages, LIMIT);
    assert_int_equal(world_info(reader->pid).mailbox_length, 0);
}

/* A burst that comes while it does not run leaves it the newest; one that is endless, does not. */
TEST(full_mailbox_drops_old_messages_and_far_beyond_the_limit_new_ones)
{
    enum { BURST = 1000 };
    letters_open_sim();
    struct actor *reader = bounded_start(SKUA_OVERFLOW_DROP_OLD, LIMIT);
    (void)actor_start(ACTS(sends_each(reader, 10)));
    world_settle();
    assert_then_saw(reader, message(0, 8), message(0, 9), message(0, 10));
    assert_dead(SKUA_DEAD_OLD, 1, 7);
    (void)actor_start(ACTS(sends_each(reader, BURST + LIMIT + 2)));
    world_settle();
    assert_then_saw(reader, message(0, BURST + 1), message(0, BURST + 2), message(0, BURST + 3));
    assert_int_equal(world_stats().dead_old, 7 + BURST);
    assert_int_equal(world_stats().dead_new, 2);
    assert_int_equal(world_info(reader->pid).mailbox_length, 0);
}

TEST(full_mailbox_ends_the_process)
{
    letters_open_sim();
    struct tracked item = {0};
    struct actor *reader = bounded_start(SKUA_OVERFLOW_END, LIMIT);
    struct actor *watcher = actor_start(ACTS(monitors(9, reader)));
    world_settle();
    struct actor *sender = actor_start(
        ACTS(sends_each(reader, LIMIT), refused(sends_item(reader, 0, &item), SKUA_E_MAILBOX_FULL),
             refused(sends(reader, 0, 5), SKUA_E_MAILBOX_FULL)));
    world_settle();
    assert_saw_nothing(reader);
    assert_ended_because_of(reader, SKUA_E_OVERFLOW, reader);
    assert_saw(watcher, end_of(9, reader, SKUA_E_OVERFLOW));
    assert_dead(SKUA_DEAD_UNREAD, 1, LIMIT);
    assert_drops(&item, 1, 1);
    actor_perform(sender, ACTS(refused(sends(reader, 0, 6), SKUA_E_NO_PROCESS)));
}

/* ---- the place of the policy in other things ---- */

TEST(mailbox_of_a_process_that_drops_old_messages_is_as_any_other_below_its_limit)
{
    letters_open_sim();
    struct actor *reader = bounded_start(SKUA_OVERFLOW_DROP_OLD, LIMIT);
    struct actor *sender = actor_start(ACTS(sends_each(reader, LIMIT)));
    world_settle();
    actor_perform(sender, ACTS(sends(reader, 0, 4)));
    assert_saw(reader, message(0, 1), message(0, 2), message(0, 3), message(0, 4));
    assert_int_equal(letters_count(), 0);
}

/* What is not a message stays in its place. */
TEST(old_completions_are_not_dropped)
{
    letters_open_sim();
    struct actor *reader =
        bounded_new(SKUA_OVERFLOW_DROP_OLD, 1, ACTS(sleeps(7, SECOND), awaits(1)));
    actor_submit(reader);
    struct actor *sender = actor_start(ACTS(sleeps(1, SECOND), awaits(1), sends_each(reader, 2)));
    world_settle();
    (void)sender;
    assert_then_saw_in_any_order(reader, completion(7, 0), message(0, 2));
    assert_dead(SKUA_DEAD_OLD, 1, 1);
}

/* A call waits for an answer, so its caller has to know. */
TEST(call_that_finds_the_mailbox_full_is_refused_under_every_policy)
{
    static const enum skua_overflow policies[] = {SKUA_OVERFLOW_REFUSE, SKUA_OVERFLOW_DROP_NEW,
                                                  SKUA_OVERFLOW_DROP_OLD, SKUA_OVERFLOW_END};
    FOR_ROWS (policy, policies) {
        letters_open_sim();
        struct actor *reader = bounded_start(*policy, LIMIT);
        struct actor *sender = actor_start(ACTS(sends_each(reader, LIMIT), asks(1, reader, 5)));
        world_settle();
        assert_saw(reader, message(0, 1), message(0, 2), message(0, 3));
        assert_saw(sender, failure(1, SKUA_E_MAILBOX_FULL));
        assert_int_equal(letters_count(), 0);
    }
}

/* Calls that the process owes keep their places, and are never dropped. */
TEST(calls_are_not_dropped_to_make_room)
{
    letters_open_sim();
    struct actor *reader =
        bounded_new(SKUA_OVERFLOW_DROP_OLD, 2,
                    ACTS(awaits(2), sleeps(5, SECOND), awaits(1), answers(0, 1), answers(1, 2)));
    actor_submit(reader);
    struct actor *caller = actor_start(ACTS(asks(1, reader, 8), asks(2, reader, 9)));
    (void)actor_start(ACTS(sleeps(1, SECOND / 2), awaits(1), sends_each(reader, 3)));
    world_settle();
    assert_saw(reader, request(8), request(9), completion(5, 0));
    assert_dead(SKUA_DEAD_OLD, 1, 3);
    assert_saw(caller, completion_of(1, 0, 1), completion_of(2, 0, 2));
    actor_perform(caller, ACTS(sends(reader, 0, 4)));
    assert_int_equal(world_info(reader->pid).mailbox_length, 0);
}

TEST(process_of_an_unknown_policy_is_not_started)
{
    world_open();
    struct actor *reader = bounded_new((enum skua_overflow)4, LIMIT, NO_ACTS);
    assert_int_equal(actor_try_submit(reader), SKUA_E_INVALID);
    reader->type.overflow = (enum skua_overflow) - 1;
    assert_int_equal(actor_try_submit(reader), SKUA_E_INVALID);
}

/* More than are dropped at once: the rest reaches the step, and nothing is lost or doubled. */
TEST(very_many_old_messages_are_dropped_in_slices)
{
    letters_open_sim();
    struct actor *reader = bounded_start(SKUA_OVERFLOW_DROP_OLD, 1000);
    (void)actor_start(ACTS(sends_each(reader, 2000)));
    world_settle();
    const uint64_t dropped = world_stats().dead_old;
    assert_true(dropped > 256 && dropped <= 1000);
    assert_int_equal(reader->seen_count + dropped, 2000);
    assert_int_equal(reader->seen[reader->seen_count - 1].value, 2000);
    assert_int_equal(world_info(reader->pid).mailbox_length, 0);
}

/* ---- tasks ---- */

#define WANTED 5

/* Waits for a message of this type, then receives what is left. */
static int pick_and_read(struct turn *turn, const struct act *act)
{
    (void)act;
    skua_event *event;
    int error = skua_task_receive_type(turn->ctx, WANTED, &event, SKUA_FOREVER);
    for (; error == 0; error = skua_task_receive(turn->ctx, &event, 0)) {
        turn->actor->repeated = turn->actor->repeated * 10 + skua_payload_to_u64(&event->payload);
    }
    return error == SKUA_E_TIMEOUT ? 0 : error;
}

/* What a task has put aside is older than what has come since. */
TEST(task_drops_what_it_has_put_aside_first)
{
    letters_open_sim();
    struct actor *reader =
        bounded_new(SKUA_OVERFLOW_DROP_OLD, LIMIT, ACTS(does(pick_and_read, NULL)));
    if (reader->type.main == NULL) {
        return; /* a step cannot wait; --tasks runs this */
    }
    actor_submit(reader);
    struct actor *sender = actor_start(ACTS(sends_each(reader, 3)));
    world_settle();
    assert_int_equal(world_info(reader->pid).mailbox_length, LIMIT);
    actor_perform(sender, ACTS(sends(reader, 0, 4), sends(reader, 0, 5), sends(reader, WANTED, 6)));
    assert_int_equal(reader->repeated, 645);
    assert_dead(SKUA_DEAD_OLD, 1, 3);
    assert_int_equal(world_info(reader->pid).mailbox_length, 0);
}

/* ---- on threads ---- */

/* However many find it full at once, it ends once, with that error. */
static void send_many(void *arg)
{
    const skua_pid *to = arg;
    for (int i = 0; i < 20; i++) {
        (void)world_send(*to, skua_payload_u64(0, 1));
    }
}

TEST(many_senders_end_a_process_once)
{
    FOR_ROUNDS (round, 50) {
        world_open_with((skua_runtime_config){.worker_count = 2});
        struct actor *reader = bounded_new(SKUA_OVERFLOW_END, LIMIT, ACTS(holds()));
        actor_submit(reader);
        actor_await_held(reader, 1);
        skua_pid to[4];
        for (size_t i = 0; i < COUNT_OF(to); i++) {
            to[i] = reader->pid;
        }
        api_in_threads(COUNT_OF(to), send_many, to, sizeof to[0]);
        actor_let_go(reader);
        actor_await_end(reader);
        assert_ended(reader, SKUA_E_OVERFLOW);
        assert_int_equal(reader->closes, 1);
        assert_int_equal(world_stats().dead_unread, LIMIT);
        world_close();
    }
}
