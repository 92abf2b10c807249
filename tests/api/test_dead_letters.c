/* SPDX-License-Identifier: MIT */
/* Messages that were accepted and reach no step: who hears of them, and what is none. */
#include "letters.h"

TEST(messages_left_in_the_mailbox_are_dead_letters)
{
    enum { DONE = 1, FAILED, TERMINATED };
    FOR_ROUNDS (way, TERMINATED) {
        letters_open_sim();
        struct actor *reader = actor_start(way == DONE     ? ACTS(awaits(1), finishes(0))
                                           : way == FAILED ? ACTS(awaits(1), fails(SKUA_E_USER))
                                                           : NO_ACTS);
        world_settle();
        struct actor *sender =
            actor_start(way == TERMINATED ? ACTS(sends_each(reader, 300), terminates(reader))
                                          : ACTS(sends_each(reader, 300)));
        world_settle();
        assert_int_equal(reader->closes, 1);
        assert_true(way != TERMINATED || reader->seen_count == 0);
        assert_int_equal(letters_count() + reader->seen_count, 300);
        assert_int_equal(world_stats().dead_unread, letters_count());
        assert_int_equal(letters_at(0)->cause, SKUA_DEAD_UNREAD);
        assert_int_equal(letters_at(0)->from.bits, sender->pid.bits);
        assert_int_equal(letters_at(0)->to.bits, reader->pid.bits);
    }
}

/* What a sender or a caller learns from an error. */
TEST(what_somebody_was_told_of_is_no_dead_letter)
{
    letters_open_sim();
    struct actor *reader = bounded_start(SKUA_OVERFLOW_REFUSE, 1);
    (void)actor_start(
        ACTS(refused(sends(nobody(), 0, 1), SKUA_E_NO_PROCESS), asks(1, reader, 7), awaits(1)));
    world_settle();
    struct actor *sender =
        actor_start(ACTS(refused(sends(reader, 0, 1), SKUA_E_MAILBOX_FULL), admits(2, reader, 2)));
    world_settle();
    assert_int_equal(world_terminate(reader->pid), 0);
    world_settle();
    assert_saw(reader, request(7), message(0, 2));
    assert_saw(sender, completion(2, 0));
    assert_int_equal(letters_count(), 0);
    assert_none_dead(SKUA_DEAD_UNREAD);
}

/* What a step has got and not taken is dropped, but was delivered. */
TEST(message_that_a_step_leaves_is_no_dead_letter)
{
    letters_open_sim();
    struct tracked item = {0};
    struct actor *reader = actor_start(ACTS(awaits(1), fails(SKUA_E_USER)));
    (void)actor_start(ACTS(sends_item(reader, 0, &item)));
    world_settle();
    assert_drops(&item, 1, 1);
    assert_int_equal(letters_count(), 0);
}

TEST(thread_is_no_sender)
{
    letters_open((skua_runtime_config){.worker_count = 1});
    struct tracked items[5] = {0};
    struct actor *reader = bounded_new(SKUA_OVERFLOW_DROP_NEW, 3, ACTS(holds()));
    actor_submit(reader);
    actor_await_held(reader, 1);
    for (size_t i = 0; i < COUNT_OF(items); i++) {
        items[i].value = i + 1;
        assert_int_equal(world_send(reader->pid, tracked_payload(0, &items[i])), 0);
    }
    assert_dead(SKUA_DEAD_NEW, 4, 5);
    assert_int_equal(letters_at(0)->from.bits, 0);
    assert_int_equal(world_terminate(reader->pid), 0);
    actor_let_go(reader);
    actor_await_end(reader);
    assert_dead(SKUA_DEAD_UNREAD, 1, 3);
    assert_drops(items, COUNT_OF(items), 1);
}

/* ---- a hook that sends ---- */

static skua_pid collector;
static unsigned told;

static void pass_on(void *arg, const skua_dead_letter *letter)
{
    (void)arg;
    skua_payload copy;
    told++;
    assert_int_equal(skua_payload_ref(letter->payload, &copy), 0);
    (void)skua_process_send(world_runtime(), collector, copy);
}

/* Its own messages may be dropped in turn: they are counted only. */
TEST(hook_may_send_to_a_process_that_drops_messages)
{
    static const skua_sim_config sim = {0};
    told = 0;
    world_open_with((skua_runtime_config){.on_dead_letter = pass_on, .sim = &sim});
    struct actor *keeper = bounded_start(SKUA_OVERFLOW_DROP_NEW, 2);
    collector = keeper->pid;
    struct actor *reader = bounded_start(SKUA_OVERFLOW_DROP_NEW, 1);
    world_settle();
    (void)actor_start(ACTS(sends_each(reader, 6)));
    world_settle();
    assert_int_equal(told, 5);
    assert_saw(keeper, message(0, 2), message(0, 3));
    assert_int_equal(world_stats().dead_new, 8);
}
