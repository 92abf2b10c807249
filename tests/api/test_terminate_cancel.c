/* SPDX-License-Identifier: MIT */
/* Ending a process from outside, and asking it to finish, whatever it is doing. */
#include "desk.h"
#include "exits.h"
#include "standstill.h"

#define REASON (-1234)

static struct exits *exits;

static void open_with_exits(uint32_t workers)
{
    exits = exits_new();
    world_create((skua_runtime_config){.worker_count = workers, NOTES_EXITS(exits)});
    (void)desk_open();
    world_start();
}

/* A process that waits: for any event, or for what it has yielded. */
struct waiting {
    struct script script;
    enum skua_process_state state;
};

static struct waiting waiting_idle(void)
{
    return (struct waiting){NO_ACTS, SKUA_PROCESS_IDLE};
}

static struct waiting waiting_blocked(void)
{
    return (struct waiting){ACTS(yields(0, DESK_KEEP, 0, 0)), SKUA_PROCESS_BLOCKED};
}

static struct actor *start_waiting(struct waiting waiting)
{
    struct actor *actor = actor_start(waiting.script);
    actor_await_state(actor, waiting.state);
    return actor;
}

static void send_many(const struct actor *to, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(world_send(to->pid, skua_payload_empty(0)), 0);
    }
}

/* ---- terminate ---- */

/* That it ends, with nothing after so many steps. */
static void check_terminated(struct actor *actor, unsigned steps)
{
    world_await_live(0);
    world_close();
    assert_int_equal(actor->steps, steps);
    assert_exited(exits, actor, SKUA_E_TERMINATED);
    assert_int_equal(actor->exit_error, SKUA_E_TERMINATED); /* what its close was told */
}

TEST(terminate_of_a_ready_process_ends_it_before_its_step)
{
    struct tracked item = {0};
    open_with_exits(0);
    standstill_begin();
    struct actor *actor = actor_start(NO_ACTS);
    assert_int_equal(world_send(actor->pid, tracked_payload(0, &item)), 0);
    assert_int_equal(world_terminate(actor->pid), 0);
    standstill_end();
    check_terminated(actor, 0);
    assert_drops(&item, 1, 1);
}

static void check_terminate_of(struct waiting waiting)
{
    open_with_exits(0);
    struct actor *actor = start_waiting(waiting);
    assert_int_equal(world_terminate(actor->pid), 0);
    check_terminated(actor, 1);
    assert_saw_nothing(actor);
}

TEST(terminate_of_a_waiting_process_ends_it_without_a_step)
{
    check_terminate_of(waiting_idle());
    check_terminate_of(waiting_blocked());
}

/* The step that runs is its last, whatever it asks for and whatever waits since it began. */
static void check_terminate_of_a_running_process(struct act asks_for, unsigned messages)
{
    open_with_exits(0);
    struct actor *actor = start_waiting(waiting_idle());
    standstill_begin();
    actor_tell(actor, ACTS(holds(), asks_for));
    send_many(actor, messages);
    standstill_end();
    actor_await_held(actor, 1);
    assert_int_equal(world_terminate(actor->pid), 0);
    assert_int_equal(actor->closes, 0);
    actor_let_go(actor);
    check_terminated(actor, 2);
}

TEST(terminate_of_a_running_process_ends_it_after_its_step)
{
    check_terminate_of_a_running_process(continues(0), 0);
    check_terminate_of_a_running_process(continues(1), 0);
    check_terminate_of_a_running_process(yields(0, DESK_KEEP, 0, 0), 0);
}

TEST(terminate_of_a_running_process_leaves_waiting_messages_unread)
{
    check_terminate_of_a_running_process(continues(0), 3 * SKUA_EVENTS_PER_STEP);
}

/* Whatever it says of its own end: who was told that it is terminated can rely on that. */
TEST(terminate_of_a_running_process_wins_over_its_own_end)
{
    struct tracked item = {0};
    check_terminate_of_a_running_process(finishes(1), 0);
    check_terminate_of_a_running_process(finishes_with(1, &item), 3);
    assert_drops(&item, 1, 1);
    check_terminate_of_a_running_process(fails(SKUA_E_USER), 0);
    check_terminate_of_a_running_process(fails(SKUA_E_USER), 3);
}

static int terminate_itself(struct turn *turn, const struct act *act)
{
    (void)act;
    return world_terminate(turn->actor->pid);
}

TEST(terminate_of_itself_ends_after_the_step)
{
    open_with_exits(0);
    struct actor *actor = start_waiting(waiting_idle());
    actor_tell(actor, ACTS(does(terminate_itself, NULL), continues(1)));
    check_terminated(actor, 2);

    open_with_exits(0);
    actor = start_waiting(waiting_idle());
    actor_tell(actor, ACTS(does(terminate_itself, NULL), finishes(1)));
    check_terminated(actor, 2);
}

TEST(terminate_again_changes_nothing)
{
    open_with_exits(0);
    struct actor *actor = actor_start_held();
    assert_int_equal(world_terminate(actor->pid), 0);
    assert_int_equal(world_terminate(actor->pid), 0); /* it still runs */
    actor_let_go(actor);
    world_await_live(0);
    assert_int_equal(world_terminate(actor->pid), SKUA_E_NO_PROCESS);
    check_terminated(actor, 1);
}

static int take_a_slice(struct turn *turn, const struct act *act)
{
    (void)turn;
    (void)act;
    virtual_advance_to(&world->time, virtual_now(&world->time) + SKUA_MILLISECOND);
    return ACT_WAITS;
}

/* A process that others were preferred to, with messages it has not read, is only queued. */
TEST(terminate_of_a_requeued_process_ends_it_without_a_step)
{
    exits = exits_new();
    world_open_virtual_with((skua_runtime_config){.worker_count = 1, NOTES_EXITS(exits)});
    struct actor *actor = actor_start(ACTS(holds(), does(take_a_slice, NULL)));
    actor_await_held(actor, 1);
    send_many(actor, 40 * SKUA_EVENTS_PER_STEP);
    struct actor *other = actor_start(ACTS(holds(), finishes(0)));
    actor_let_go(actor);
    actor_await_held(other, 1); /* so the first one has given way */
    const skua_process_snapshot info = world_info(actor->pid);
    assert_int_equal(info.state, SKUA_PROCESS_READY);
    assert_true(info.mailbox_length > 0);
    assert_int_equal(world_terminate(actor->pid), 0);
    actor_let_go(other);
    check_terminated(actor, (unsigned)info.steps);
}

/* ---- cancel ---- */

static void check_cancel_of(struct waiting waiting)
{
    open_with_exits(0);
    struct actor *actor = start_waiting(waiting);
    assert_int_equal(world_cancel(actor->pid, REASON), 0);
    world_await_live(0);
    assert_int_equal(world_cancel(actor->pid, REASON), SKUA_E_NO_PROCESS);
    world_close();
    assert_saw(actor, cancel(REASON));
    assert_exited(exits, actor, 0);
}

TEST(cancel_reaches_a_waiting_process_with_its_reason)
{
    check_cancel_of(waiting_idle());
    check_cancel_of(waiting_blocked());
}

TEST(cancel_of_a_process_that_does_not_listen_leaves_it_alive)
{
    const struct seen asked = cancel(SKUA_E_CANCELLED); /* the reason if none is given */
    open_with_exits(0);
    struct actor *actor = actor_start(ACTS(expects(asked), expects(asked), expects(asked)));
    for (uint64_t i = 1; i <= 3; i++) {
        actor_await_state(actor, SKUA_PROCESS_IDLE);
        assert_int_equal(world_cancel(actor->pid, 0), 0);
        actor_await_seen(actor, i);
        actor_await_state(actor, SKUA_PROCESS_IDLE);
        assert_int_equal(world_info(actor->pid).mailbox_length, 0); /* it never was a message */
    }
    send_many(actor, 1);
    actor_await_seen(actor, 4);
    world_close();
    assert_saw(actor, asked, asked, asked, message(0, 0), cancel(SKUA_E_STOPPED));
    assert_exited(exits, actor, 0);
}

TEST(cancel_keeps_its_place_among_messages)
{
    test_of_steps("a task receives one event at a time");
    open_with_exits(0);
    struct actor *actor = actor_start(ACTS(holds(), awaits(5)));
    actor_await_held(actor, 1);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(i % 2 == 0 ? world_send(actor->pid, skua_payload_empty(i))
                                    : world_cancel(actor->pid, REASON),
                         0);
    }
    actor_let_go(actor);
    actor_await_seen(actor, 5);
    assert_saw(actor, message(0, 0), cancel(REASON), message(2, 0), cancel(REASON), message(4, 0));
}
