/* SPDX-License-Identifier: MIT */
/* skua_yield_send: the sender waits until its message is admitted. */
#include "letters.h"
#include "timers.h"

#define LIMIT 2

TEST(message_is_admitted_at_once_if_there_is_room)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *reader = bounded_start(SKUA_OVERFLOW_REFUSE, LIMIT);
        struct actor *sender = actor_start(ACTS(within(0, admits(1, reader, 5))));
        world_settle();
        assert_saw(sender, completion(1, 0));
        assert_saw(reader, message(0, 5));
        assert_int_equal(reader->seen[0].from.bits, sender->pid.bits);
        assert_int_equal(world_stats().messages, 1);
    }
}

TEST(message_waits_for_room_in_its_place)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *reader = bounded_start(SKUA_OVERFLOW_REFUSE, LIMIT);
        struct actor *sender =
            actor_start(ACTS(admits(1, reader, 1), admits(2, reader, 2), admits(3, reader, 3),
                             admits(4, reader, 4), awaits(4), sends(reader, 0, 5)));
        world_settle();
        assert_saw(reader, message(0, 1), message(0, 2), message(0, 3), message(0, 4),
                   message(0, 5));
        assert_saw(sender, completion(1, 0), completion(2, 0), completion(3, 0), completion(4, 0));
        assert_int_equal(world_stats().messages, 5);
        assert_int_equal(world_info(reader->pid).mailbox_length, 0);
    }
}

/* A plain send acts at once, and takes a place that is free by then; what waits stays before it. */
TEST(messages_arrive_in_the_order_in_which_they_were_sent)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *reader = bounded_start(SKUA_OVERFLOW_REFUSE, LIMIT);
    struct actor *sender = actor_start(ACTS(admits(1, reader, 3), sends_each(reader, 2)));
    world_settle();
    assert_saw(reader, message(0, 1), message(0, 2), message(0, 3));
    assert_saw(sender, completion(1, 0));
}

/* ---- how it ends otherwise ---- */

/* A reader whose mailbox is full, on threads; it is held, and then performs the act. */
static struct actor *full_reader(struct act then)
{
    struct actor *reader =
        bounded_new(SKUA_OVERFLOW_REFUSE, LIMIT, ACTS(holds(), awaits(LIMIT), then));
    actor_submit(reader);
    actor_await_held(reader, 1);
    for (uint64_t i = 1; i <= LIMIT; i++) {
        assert_int_equal(world_send(reader->pid, skua_payload_u64(0, i)), 0);
    }
    return reader;
}

TEST(message_whose_sender_gives_up_is_not_delivered)
{
    FOR_ROUNDS (way, 5) {
        struct tracked item = {0};
        letters_open((skua_runtime_config){.worker_count = 2});
        struct actor *reader = full_reader(continues(1));
        const struct act admit = admits_item(1, reader, &item);
        struct actor *sender =
            actor_start(way == 1   ? ACTS(admit, cancels(1), expects(failure(1, SKUA_E_CANCELLED)))
                        : way == 2 ? ACTS(within(1, admit), expects(failure(1, SKUA_E_TIMEOUT)))
                        : way == 3 ? ACTS(within(0, admit), expects(failure(1, SKUA_E_TIMEOUT)))
                        : way == 4 ? ACTS(admit, continues(1), finishes(0))
                                   : ACTS(admit, continues(1), fails(SKUA_E_USER)));
        if (way > 3) {
            actor_await_end(sender);
        } else {
            actor_await_seen(sender, 1);
        }
        actor_release(reader);
        (void)actor_run(actor_new(ACTS(sends(reader, 0, 5), finishes(0))));
        actor_await_seen(reader, 3);
        assert_saw(reader, message(0, 1), message(0, 2), message(0, 5));
        assert_drops(&item, 1, 1);
        assert_int_equal(letters_count(), 0);
        assert_int_equal(world_info(reader->pid).mailbox_length, 0);
        assert_int_equal(world_stats().messages, LIMIT + 1);
    }
}

TEST(receiver_that_ends_tells_those_that_wait)
{
    FOR_ROUNDS (way, 3) {
        struct tracked items[3] = {0};
        letters_open((skua_runtime_config){.worker_count = 2});
        struct actor *reader = full_reader(way == 2 ? finishes(0) : fails(SKUA_E_USER));
        struct actor *sender =
            actor_start(ACTS(admits_item(1, reader, &items[0]), admits_item(2, reader, &items[1]),
                             admits_item(3, reader, &items[2])));
        actor_await_state(sender, SKUA_PROCESS_BLOCKED);
        if (way == 1) {
            assert_int_equal(world_terminate(reader->pid), 0);
        }
        actor_let_go(reader);
        actor_await_seen(sender, 3);
        actor_await_end(reader);
        if (way == 1) {
            assert_then_saw_in_any_order(sender, failure(1, SKUA_E_NO_PROCESS),
                                         failure(2, SKUA_E_NO_PROCESS),
                                         failure(3, SKUA_E_NO_PROCESS));
            assert_int_equal(world_stats().dead_unread, LIMIT);
        }
        assert_drops(items, COUNT_OF(items), 1);
    }
}

TEST(message_to_nobody_completes_with_the_reason)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked items[3] = {0};
        world_open_driver(driver);
        struct actor *sender = actor_start(ACTS(admits_item(1, nobody(), &items[0]),
                                                admits_item(2, ended_actor(), &items[1]),
                                                admits_item(3, foreigner(), &items[2])));
        world_settle();
        assert_saw(sender, failure(1, SKUA_E_NO_PROCESS), failure(2, SKUA_E_NO_PROCESS),
                   failure(3, SKUA_E_FOREIGN_PID));
        assert_drops(items, COUNT_OF(items), 1);
    }
}

/* ---- policies ---- */

/* They are for those that do not wait. */
TEST(message_waits_whatever_else_becomes_of_those_that_do_not)
{
    static const enum skua_overflow policies[] = {SKUA_OVERFLOW_REFUSE, SKUA_OVERFLOW_DROP_NEW,
                                                  SKUA_OVERFLOW_END};
    FOR_ROWS (policy, policies) {
        letters_open_sim();
        struct actor *reader = bounded_start(*policy, LIMIT);
        struct actor *sender = actor_start(ACTS(sends_each(reader, LIMIT), admits(1, reader, 3)));
        world_settle();
        assert_saw(reader, message(0, 1), message(0, 2), message(0, 3));
        assert_saw(sender, completion(1, 0));
        assert_int_equal(letters_count(), 0);
    }
}

TEST(old_message_makes_room_at_once)
{
    letters_open_sim();
    struct actor *reader = bounded_start(SKUA_OVERFLOW_DROP_OLD, LIMIT);
    struct actor *sender =
        actor_start(ACTS(sends_each(reader, LIMIT), within(0, admits(1, reader, 3)),
                         within(0, admits(2, reader, 4)), admits(3, reader, 5)));
    world_settle();
    assert_saw(sender, completion(1, 0), completion(2, 0), completion(3, 0));
    assert_saw(reader, message(0, 4), message(0, 5));
    assert_dead(SKUA_DEAD_OLD, 1, 3);
}

TEST(old_messages_make_room_only_for_so_many)
{
    letters_open_sim();
    struct actor *reader = bounded_start(SKUA_OVERFLOW_DROP_OLD, LIMIT);
    struct actor *sender =
        actor_start(ACTS(sends_each(reader, 1000 + LIMIT), admits(1, reader, 7)));
    world_settle();
    assert_saw(sender, failure(1, SKUA_E_MAILBOX_FULL));
    assert_int_equal(world_stats().dead_new, 0);
}

/* ---- to oneself, and what is refused ---- */

TEST(process_may_wait_for_its_own_mailbox)
{
    letters_open_sim();
    struct actor *self = bounded_new(SKUA_OVERFLOW_REFUSE, 1, NO_ACTS);
    actor_submit(self);
    world_settle();
    actor_perform(self, ACTS(admits(1, self, 1), admits(2, self, 2), admits(3, self, 3)));
    assert_then_saw_in_any_order(self, completion(1, 0), completion(2, 0), completion(3, 0),
                                 message(0, 1), message(0, 2), message(0, 3));
}

static int yield_badly(struct turn *turn, const struct act *act)
{
    struct tracked *items = act->arg;
    skua_payload taken = skua_payload_u64(0, 1);
    (void)skua_payload_take(&taken);
    const skua_pid self = skua_self(turn->ctx);
    assert_int_equal(skua_yield_send_from(turn->ctx, 1, self, NULL, 0), SKUA_E_INVALID);
    assert_int_equal(skua_yield_send_from(turn->ctx, 1, self, &taken, 0), SKUA_E_TAKEN);
    assert_int_equal(skua_yield_send(NULL, 1, self, tracked_payload(0, &items[0]), 0),
                     SKUA_E_INVALID);
    assert_int_equal(
        skua_yield_send(turn->ctx, 1, self, tracked_payload(0, &items[1]), SKUA_DURATION_MAX + 1),
        SKUA_E_DURATION);
    assert_int_equal(skua_yield_send(turn->ctx, 1, self, tracked_oversized(100, &items[2]), 0),
                     SKUA_E_PAYLOAD_SIZE);
    return 0;
}

TEST(bad_input_is_refused_and_its_payload_dropped)
{
    struct tracked items[4] = {0};
    world_open_with((skua_runtime_config){.payload_limit = 100});
    struct actor *self = actor_new(
        ACTS(does(yield_badly, items), finishes(0), refused(admits_item(1, NULL, &items[3]), 0)));
    self->script.count = 2;
    assert_result(actor_run(self), 0);
    assert_drops(items, 3, 1);
}

/* ---- very many ---- */

#define CROWD 3000

/* Their ends are told in slices, like those of callers. */
TEST(very_many_that_wait_are_told_of_an_end)
{
    letters_open((skua_runtime_config){.worker_count = 2});
    struct actor *reader = full_reader(continues(1));
    struct actor *sender =
        actor_start(ACTS(for_each_tag(CROWD, admits(0, reader, 0)), awaits(CROWD)));
    actor_await_state(sender, SKUA_PROCESS_BLOCKED);
    assert_int_equal(world_terminate(reader->pid), 0);
    actor_let_go(reader);
    actor_await_seen(sender, CROWD);
    world_close();
    assert_int_equal(sender->seen[0].error, SKUA_E_NO_PROCESS);
}

TEST(very_many_that_wait_are_admitted_in_order)
{
    letters_open((skua_runtime_config){.worker_count = 2});
    struct actor *reader = full_reader(continues(1));
    struct actor *sender =
        actor_start(ACTS(for_each_tag(CROWD, admits(0, reader, 0)), awaits(CROWD)));
    actor_await_state(sender, SKUA_PROCESS_BLOCKED);
    actor_let_go(reader);
    actor_await_seen(reader, CROWD + LIMIT);
    actor_await_seen(sender, CROWD);
    for (uint64_t i = 0; i < CROWD; i++) {
        assert_int_equal(reader->seen[LIMIT + i].value, i);
    }
}
