/* SPDX-License-Identifier: MIT */
/* The limit of messages that wait in a mailbox. */
#include <sched.h>

#include "actor.h"

/* Sends until the mailbox is full; returns how many were accepted. */
static uint64_t fill_mailbox(const struct actor *actor)
{
    struct tracked item = {0};
    uint64_t accepted = 0;
    int error;
    while ((error = world_send(actor->pid, skua_payload_empty(0))) == 0) {
        accepted++;
    }
    assert_int_equal(error, SKUA_E_MAILBOX_FULL);
    assert_int_equal(world_send(actor->pid, tracked_payload(0, &item)), SKUA_E_MAILBOX_FULL);
    assert_drops(&item, 1, 1);
    assert_int_equal(world_info(actor->pid).mailbox_length, accepted);
    return accepted;
}

TEST(mailbox_limit_is_the_runtimes_or_the_types)
{
    static const struct {
        uint32_t of_runtime;
        uint32_t of_type;
        uint64_t expected;
    } rows[] = {{1, 0, 1}, {5, 0, 5}, {5, 3, 3}, {5, 10, 10}, {0, 3, 3}};
    FOR_ROWS (row, rows) {
        world_open_with((skua_runtime_config){.mailbox_limit = row->of_runtime});
        struct actor *actor = actor_new(ACTS(holds(), awaits(row->expected), holds()));
        actor->type.mailbox_limit = row->of_type;
        actor_submit(actor);
        actor_await_held(actor, 1);
        assert_int_equal(fill_mailbox(actor), row->expected);
        actor_let_go(actor);
        actor_await_held(actor, 2); /* what the step holds does not wait any more */
        assert_int_equal(fill_mailbox(actor), row->expected);
        actor_let_go(actor);
        actor_await_seen(actor, 2 * row->expected);
        world_close();
        assert_int_equal(actor->seen_count, 2 * row->expected + 1); /* and the cancel event */
    }
}

TEST(mailbox_limit_is_whole_again_for_the_next_process_in_a_place)
{
    world_open_with((skua_runtime_config){.process_limit = 1, .mailbox_limit = 7});
    for (size_t i = 0; i < 3; i++) {
        struct actor *actor = actor_start_held();
        assert_int_equal(fill_mailbox(actor), 7);
        assert_int_equal(world_terminate(actor->pid), 0);
        actor_let_go(actor);
        world_await_live(0);
    }
}

/* ---- several senders ---- */

#define SENDERS    4
#define STUBBORNLY 2000

struct sender {
    skua_pid to;
    uint64_t accepted;
    unsigned odd_errors;
};

static bool send_one(struct sender *sender)
{
    const int error = world_send(sender->to, skua_payload_empty(0));
    sender->accepted += error == 0;
    sender->odd_errors += error != 0 && error != SKUA_E_MAILBOX_FULL;
    return error == 0;
}

static void send_stubbornly(void *arg)
{
    struct sender *sender = arg;
    while (sender->accepted < STUBBORNLY) {
        if (!send_one(sender)) {
            (void)sched_yield();
        }
    }
}

static void send_until_refused(void *arg)
{
    while (send_one(arg)) {
    }
}

/* How many were accepted. */
static uint64_t send_from_threads(const struct actor *to, void (*function)(void *arg))
{
    struct sender senders[SENDERS] = {0};
    uint64_t accepted = 0;
    for (size_t i = 0; i < SENDERS; i++) {
        senders[i].to = to->pid;
    }
    api_in_threads(SENDERS, function, senders, sizeof senders[0]);
    for (size_t i = 0; i < SENDERS; i++) {
        assert_int_equal(senders[i].odd_errors, 0);
        accepted += senders[i].accepted;
    }
    return accepted;
}

TEST(mailbox_limit_under_concurrent_sends_delivers_what_it_accepted)
{
    world_open_with((skua_runtime_config){.mailbox_limit = 8});
    struct actor *actor = actor_start(NO_ACTS);
    const uint64_t accepted = send_from_threads(actor, send_stubbornly);
    assert_int_equal(accepted, SENDERS * STUBBORNLY);
    actor_await_seen(actor, accepted);
    assert_int_equal(world_stats().messages, accepted);
    world_close();
    assert_int_equal(actor->seen_count, accepted + 1); /* and the cancel event */
    /* A batch is what waited at one moment; one message more if it woke the process while others
     * took the places. */
    assert_in_range(actor_largest_batch(actor), 1, 8 + 1);
}

TEST(mailbox_limit_under_concurrent_sends_is_exact)
{
    world_open_with((skua_runtime_config){.worker_count = 1, .mailbox_limit = 50});
    for (unsigned round = 0; round < 20; round++) {
        struct actor *actor = actor_start_held();
        uint64_t accepted = send_from_threads(actor, send_until_refused);
        assert_in_range(accepted, 1, 50);
        /* A sender may be refused while another one that is refused, too, still holds a place. */
        while (world_send(actor->pid, skua_payload_empty(0)) == 0) {
            accepted++;
        }
        assert_int_equal(accepted, 50);
        actor_let_go(actor);
        actor_await_seen(actor, 50);
        assert_int_equal(world_terminate(actor->pid), 0);
        actor_await_end(actor);
        assert_int_equal(actor->seen_count, 50);
    }
}

static int fill_own_mailbox(struct turn *turn, const struct act *act)
{
    unsigned *accepted = act->arg;
    int error;
    while ((error = perform(turn, sends(turn->actor, 0, 0))) == 0) {
        ++*accepted;
    }
    return error;
}

TEST(mailbox_limit_holds_for_sends_of_processes)
{
    unsigned accepted = 0;
    world_open_with((skua_runtime_config){.mailbox_limit = 9});
    const struct act filling = refused(does(fill_own_mailbox, &accepted), SKUA_E_MAILBOX_FULL);
    assert_result(actor_run(actor_new(ACTS(filling, finishes(0)))), 0);
    assert_int_equal(accepted, 9);
}

TEST(mailbox_that_is_full_takes_cancel_events)
{
    world_open_with((skua_runtime_config){.mailbox_limit = 1});
    struct actor *actor = actor_start(
        ACTS(holds(), awaits(1), expects(cancel(-1)), expects(cancel(-1)), expects(cancel(-1))));
    actor_await_held(actor, 1);
    assert_int_equal(fill_mailbox(actor), 1);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(world_cancel(actor->pid, -1), 0);
    }
    actor_let_go(actor);
    actor_await_seen(actor, 4);
    assert_saw(actor, message(0, 0), cancel(-1), cancel(-1), cancel(-1));
}
