/* SPDX-License-Identifier: MIT */
/* Urgent messages: what they overtake and what not, in which order they come, who takes them, and
 * how many. */
#include "errand.h"
#include "relations.h"

enum { PLAIN, URGENT };

static struct actor *urgent_new(struct script script)
{
    struct actor *actor = actor_new(script);
    actor->type.urgent = true;
    return actor;
}

/* One that is held in its first step, so that what is sent to it waits. */
static struct actor *urgent_start_held(void)
{
    struct actor *actor = urgent_new(ACTS(holds()));
    actor_submit(actor);
    actor_await_held(actor, 1);
    return actor;
}

static void send_plain(const struct actor *to, uint64_t number)
{
    assert_int_equal(world_send(to->pid, skua_payload_u64(PLAIN, number)), 0);
}

static void send_urgent(const struct actor *to, uint64_t number)
{
    assert_int_equal(world_send_urgent(to->pid, skua_payload_u64(URGENT, number)), 0);
}

/* ---- what they overtake ---- */

TEST(urgent_messages_come_first_and_in_order)
{
    world_open();
    struct actor *receiver = urgent_start_held();
    send_plain(receiver, 1);
    send_urgent(receiver, 1);
    send_plain(receiver, 2);
    send_urgent(receiver, 2);
    actor_release(receiver);
    actor_await_seen(receiver, 4);
    assert_saw(receiver, message(URGENT, 1), message(URGENT, 2), message(PLAIN, 1),
               message(PLAIN, 2));
}

/* More than two steps have events, so some are in the backlog and some in the list. */
TEST(urgent_message_overtakes_what_a_step_could_not_take)
{
    enum { MANY = 3 * SKUA_EVENTS_PER_STEP };
    world_open();
    struct actor *receiver = urgent_new(ACTS(holds(), awaits(1), holds()));
    actor_submit(receiver);
    actor_await_held(receiver, 1);
    for (uint64_t i = 0; i < MANY; i++) {
        send_plain(receiver, i);
    }
    actor_let_go(receiver);
    actor_await_held(receiver, 2); /* with the first of them */
    const size_t before = receiver->seen_count;
    for (uint64_t i = 0; i < MANY; i++) {
        send_plain(receiver, MANY + i);
        if (i % 100 == 0) {
            send_urgent(receiver, i / 100);
        }
    }
    actor_let_go(receiver);
    actor_await_seen(receiver, 2 * MANY + 3);
    uint64_t next = 0;
    for (size_t i = 0; i < receiver->seen_count; i++) {
        const struct seen *seen = &receiver->seen[i];
        const bool is_urgent = i >= before && i < before + 3;
        assert_int_equal(seen->payload_type, is_urgent ? URGENT : PLAIN);
        assert_int_equal(seen->value, is_urgent ? i - before : next++);
    }
}

TEST(urgent_message_wakes_a_process_that_waits)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *receiver = urgent_new(NO_ACTS);
        actor_submit(receiver);
        world_settle();
        (void)actor_start(ACTS(sends_urgent(receiver, URGENT, 7), finishes(0)));
        world_settle();
        assert_saw(receiver, message(URGENT, 7));
        assert_int_equal(world_stats().messages, 1);
    }
}

/* A cancel that ends the process keeps its place among the ordinary events. */
TEST(urgent_message_overtakes_a_cancel)
{
    world_open();
    struct actor *receiver = urgent_start_held();
    send_plain(receiver, 1);
    assert_int_equal(world_cancel(receiver->pid, 0), 0);
    send_urgent(receiver, 1);
    actor_let_go(receiver);
    actor_await_end(receiver);
    assert_saw(receiver, message(URGENT, 1), message(PLAIN, 1), cancel(SKUA_E_CANCELLED));
}

TEST(process_that_always_continues_gets_urgent_messages_first)
{
    world_open();
    struct actor *receiver = urgent_new(ACTS(holds(), continues(50)));
    actor_submit(receiver);
    actor_await_held(receiver, 1);
    send_plain(receiver, 1);
    send_urgent(receiver, 1);
    actor_release(receiver);
    assert_saw(receiver, message(URGENT, 1), message(PLAIN, 1));
}

/* ---- tasks ---- */

static int receives_all(struct errand *errand, skua_context *ctx)
{
    for (;;) {
        const uint64_t number = receive_number(ctx, SKUA_FOREVER);
        note(errand, number);
        if (number == 0) {
            return 0;
        }
    }
}

static void send_to_errand(const struct errand *errand, uint64_t number, bool is_urgent)
{
    const skua_payload payload = skua_payload_u64(is_urgent, number);
    assert_int_equal((is_urgent ? world_send_urgent : world_send)(errand->pid, payload), 0);
}

TEST(task_receives_urgent_messages_first)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_new(receives_all);
        errand->type.urgent = true;
        errand_submit(errand);
        for (uint64_t i = 1; i <= 3; i++) {
            send_to_errand(errand, i, false);
            send_to_errand(errand, 10 + i, true);
        }
        send_to_errand(errand, 0, false);
        assert_errand_ended(errand, 0);
        assert_int_equal(errand->note_count, 7);
        for (uint64_t i = 0; driver == 2 && i < 3; i++) { /* on threads it may have begun before */
            assert_int_equal(errand->notes[i], 11 + i);
            assert_int_equal(errand->notes[3 + i], 1 + i);
        }
    }
}

/* Those that it does not want are put aside, and come first of all when it wants them. */
static int receives_selectively(struct errand *errand, skua_context *ctx)
{
    skua_event *event;
    CHECK(errand, skua_task_receive_type(ctx, 5, &event, SKUA_FOREVER) == 0);
    note(errand, skua_payload_to_u64(&event->payload));
    CHECK(errand, skua_task_receive_type(ctx, PLAIN, &event, SKUA_FOREVER) == 0);
    note(errand, skua_payload_to_u64(&event->payload));
    return receives_all(errand, ctx);
}

TEST(task_keeps_urgent_messages_that_it_does_not_want_in_front)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_new(receives_selectively);
        errand->type.urgent = true;
        errand_submit(errand);
        errands_go_on(SKUA_MILLISECOND);
        send_to_errand(errand, 1, false);
        send_to_errand(errand, 11, true);
        send_to_errand(errand, 2, false);
        send_to_errand(errand, 12, true);
        errands_go_on(SKUA_MILLISECOND);
        errand_send(errand, 5, 50);
        errands_go_on(SKUA_MILLISECOND);
        send_to_errand(errand, 0, false);
        assert_errand_ended(errand, 0);
        assert_noted(errand, 50, 1, 11, 12, 2, 0);
    }
}

static int serves(struct errand *errand, skua_context *ctx, skua_event *event)
{
    const uint64_t number = skua_payload_to_u64(&event->payload);
    note(errand, number);
    skua_event *got;
    if (number == 1) { /* what it does not want meanwhile is for the next calls */
        CHECK(errand, skua_task_receive_type(ctx, 5, &got, SKUA_FOREVER) == 0);
    }
    return number == 0 ? SKUA_E_USER : 0;
}

TEST(serve_is_called_with_urgent_messages_first)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_new_server(serves);
        errand->type.urgent = true;
        errand_submit(errand);
        send_to_errand(errand, 1, false);
        errands_go_on(SKUA_MILLISECOND);
        send_to_errand(errand, 2, false);
        send_to_errand(errand, 3, false);
        errands_go_on(SKUA_MILLISECOND);
        send_to_errand(errand, 11, true);
        send_to_errand(errand, 12, true);
        send_to_errand(errand, 4, false);
        errands_go_on(SKUA_MILLISECOND);
        errand_send(errand, 5, 50);
        errands_go_on(SKUA_MILLISECOND);
        send_to_errand(errand, 0, false);
        assert_errand_ended(errand, SKUA_E_USER);
        assert_noted(errand, 1, 11, 12, 2, 3, 4, 0);
    }
}

/* ---- who takes them, and how many ---- */

TEST(urgent_message_to_a_type_that_takes_none_is_refused)
{
    struct tracked item = {0};
    world_open();
    struct actor *receiver = actor_start(NO_ACTS);
    assert_int_equal(world_send_urgent(receiver->pid, tracked_payload(0, &item)),
                     SKUA_E_NOT_URGENT);
    assert_drops(&item, 1, 1);
    struct actor *sender =
        actor_new(ACTS(refused(sends_urgent(receiver, 0, 1), SKUA_E_NOT_URGENT), finishes(0)));
    assert_result(actor_run(sender), 0);
    assert_saw_nothing(receiver);
}

TEST(urgent_message_to_nobody_is_refused)
{
    struct tracked item = {0};
    world_open();
    struct actor *const rows[] = {nobody(), ended_actor(), foreigner()};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        item = (struct tracked){0};
        assert_int_equal(world_send_urgent(rows[i]->pid, tracked_payload(0, &item)),
                         i < 2 ? SKUA_E_NO_PROCESS : SKUA_E_FOREIGN_PID);
        assert_drops(&item, 1, 1);
    }
    assert_int_equal(skua_process_send_urgent(NULL, nobody()->pid, tracked_payload(0, &item)),
                     SKUA_E_INVALID);
    assert_int_equal(skua_send_urgent_from(NULL, nobody()->pid, NULL), SKUA_E_INVALID);
}

TEST(full_mailbox_takes_at_least_as_many_urgent_messages_again)
{
    enum { LIMIT = 4 };
    world_open();
    struct actor *receiver = urgent_new(ACTS(holds()));
    receiver->type.mailbox_limit = LIMIT;
    actor_submit(receiver);
    actor_await_held(receiver, 1);
    for (uint64_t i = 0; i < LIMIT; i++) {
        send_plain(receiver, i);
    }
    assert_int_equal(world_send(receiver->pid, skua_nothing()), SKUA_E_MAILBOX_FULL);
    uint64_t urgent = 0;
    while (world_send_urgent(receiver->pid, skua_payload_u64(URGENT, urgent)) == 0) {
        urgent++;
    }
    assert_in_range(urgent, LIMIT, LIMIT + 2 * SKUA_EVENTS_PER_STEP);
    assert_int_equal(world_send_urgent(receiver->pid, skua_nothing()), SKUA_E_MAILBOX_FULL);
    assert_int_equal(world_info(receiver->pid).mailbox_length, LIMIT + urgent);
    actor_release(receiver);
    actor_await_seen(receiver, LIMIT + urgent);
    for (uint64_t i = 0; i < urgent; i++) {
        assert_int_equal(receiver->seen[i].payload_type, URGENT);
        assert_int_equal(receiver->seen[i].value, i);
    }
    send_plain(receiver, 9);
}

TEST(urgent_messages_to_a_process_that_is_killed_are_dropped)
{
    struct tracked items[20] = {{0}};
    world_open();
    struct actor *receiver = urgent_start_held();
    for (size_t i = 0; i < COUNT_OF(items); i++) {
        const skua_payload payload = tracked_payload(0, &items[i]);
        assert_int_equal((i % 3 == 0 ? world_send_urgent : world_send)(receiver->pid, payload), 0);
    }
    assert_int_equal(world_terminate(receiver->pid), 0);
    actor_let_go(receiver);
    actor_await_end(receiver);
    world_close();
    for (size_t i = 0; i < COUNT_OF(items); i++) {
        assert_drops(&items[i], 1, 1);
    }
}
