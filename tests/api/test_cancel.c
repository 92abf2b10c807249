/* SPDX-License-Identifier: MIT */
/* A cancel ends a process in its place among the events, unless its type asks for the event. */
#include "desk.h"
#include "exits.h"
#include "standstill.h"

#define REASON (SKUA_E_USER - 5)
#define SEEDS  60
#define EARLY  3 /* messages before a cancel */

static struct exits *exits;

static struct desk *open_with_exits(void)
{
    exits = exits_new();
    return desk_open_with((skua_runtime_config){NOTES_EXITS(exits)});
}

/* A process that leaves cancels to the runtime. */
static struct actor *plain_new(struct script script)
{
    struct actor *actor = actor_new(script);
    actor->type.cancel = SKUA_CANCEL_END;
    return actor;
}

static struct actor *plain_start(struct script script)
{
    struct actor *actor = plain_new(script);
    actor_submit(actor);
    return actor;
}

static void send_numbers(const struct actor *to, uint64_t from, uint64_t until_number)
{
    for (uint64_t i = from; i < until_number; i++) {
        assert_int_equal(world_send(to->pid, skua_payload_u64(1, i)), 0);
    }
}

static void assert_saw_numbers(const struct actor *actor, uint64_t count)
{
    assert_int_equal(actor->seen_count, count);
    for (uint64_t i = 0; i < count; i++) {
        const struct seen expected = message(1, i);
        assert_true(seen_matches(&actor->seen[i], &expected));
    }
}

static void assert_ends(struct actor *actor, int error)
{
    actor_await_end(actor);
    world_close();
    assert_exited(exits, actor, error);
    assert_int_equal(actor->exit_error, error);
}

/* ---- its place ---- */

static const uint64_t places[] = {0,
                                  1,
                                  EARLY,
                                  SKUA_EVENTS_PER_STEP - 2,
                                  SKUA_EVENTS_PER_STEP - 1,
                                  SKUA_EVENTS_PER_STEP,
                                  SKUA_EVENTS_PER_STEP + 1,
                                  2 * SKUA_EVENTS_PER_STEP,
                                  5 * SKUA_EVENTS_PER_STEP / 2};

TEST(cancel_ends_a_process_in_its_place)
{
    FOR_ROWS (place, places) {
        struct tracked late[2] = {0};
        (void)open_with_exits();
        struct actor *actor = plain_start(ACTS(holds()));
        actor_await_held(actor, 1);
        send_numbers(actor, 0, *place);
        assert_int_equal(world_cancel(actor->pid, REASON), 0);
        assert_int_equal(world_send(actor->pid, tracked_payload(1, &late[0])), 0);
        assert_int_equal(world_send(actor->pid, tracked_payload(1, &late[1])), 0);
        actor_let_go(actor);
        assert_ends(actor, REASON);
        assert_saw_numbers(actor, *place);
        assert_drops(late, 2, 1);
    }
}

TEST(cancel_ends_a_process_in_its_place_in_every_run)
{
    FOR_ROUNDS (seed, SEEDS) {
        struct tracked late = {0};
        const uint64_t place = seed % 25;
        world_open_sim(seed, SIM_NO_FAULTS);
        struct actor *actor = plain_start(seed % 2 == 0 ? NO_ACTS : ACTS(continues(UINT64_MAX)));
        send_numbers(actor, 0, place);
        assert_int_equal(world_cancel(actor->pid, REASON), 0);
        assert_int_equal(world_send(actor->pid, tracked_payload(1, &late)), 0);
        world_settle();
        assert_int_equal(actor->exit_error, REASON);
        assert_saw_numbers(actor, place);
        assert_drops(&late, 1, 1);
    }
}

/* START is an event that came before. */
TEST(cancel_before_the_first_step_leaves_it_that_one)
{
    (void)open_with_exits();
    standstill_begin();
    struct actor *actor = plain_start(NO_ACTS);
    assert_int_equal(world_cancel(actor->pid, REASON), 0);
    standstill_end();
    assert_ends(actor, REASON);
    assert_saw_nothing(actor);
    assert_int_equal(actor->steps, 1);
}

TEST(cancel_ends_a_process_that_waits_without_a_step)
{
    for (int blocked = 0; blocked < 2; blocked++) {
        (void)open_with_exits();
        struct actor *actor = plain_start(blocked ? ACTS(yields(1, DESK_KEEP, 0, 0)) : NO_ACTS);
        actor_await_state(actor, blocked ? SKUA_PROCESS_BLOCKED : SKUA_PROCESS_IDLE);
        assert_int_equal(world_cancel(actor->pid, REASON), 0);
        assert_ends(actor, REASON);
        assert_saw_nothing(actor);
        assert_int_equal(actor->steps, 1);
    }
}

TEST(cancel_revokes_what_is_open)
{
    struct desk *desk = open_with_exits();
    struct actor *actor = plain_start(ACTS(yields(1, DESK_KEEP, 0, 0), sleeps(2, SKUA_SECOND)));
    desk_await_kept(desk, 1);
    assert_int_equal(world_cancel(actor->pid, REASON), 0);
    actor_await_end(actor);
    assert_late(desk, 0);
}

TEST(cancel_ends_a_process_that_always_continues)
{
    (void)open_with_exits();
    struct actor *actor = plain_start(ACTS(continues(UINT64_MAX)));
    api_wait_steps(world->api, actor->pid, 10);
    assert_int_equal(world_cancel(actor->pid, REASON), 0);
    assert_ends(actor, REASON);
}

/* Sends itself a message for each that it gets, so that some always wait. */
static int circulate(struct turn *turn, const struct act *act)
{
    const uint64_t count = turn_starts(turn) ? *(const uint64_t *)act->arg : turn->count;
    int error = 0;
    for (uint64_t i = 0; i < count && error == 0; i++) {
        error = perform(turn, sends(turn->actor, 0, 0));
    }
    return error != 0 ? error : ACT_WAITS;
}

TEST(cancel_ends_a_process_that_always_has_messages)
{
    FOR_ROWS (place, places) {
        const uint64_t count = *place + 1;
        (void)open_with_exits();
        struct actor *actor = plain_start(ACTS(does(circulate, (void *)&count)));
        api_wait_steps(world->api, actor->pid, 10);
        assert_int_equal(world_cancel(actor->pid, REASON), 0);
        assert_ends(actor, REASON);
    }
}

/* ---- its reason ---- */

TEST(cancel_without_a_reason_is_cancelled)
{
    (void)open_with_exits();
    struct actor *actor = plain_start(NO_ACTS);
    assert_int_equal(world_cancel(actor->pid, 0), 0);
    assert_ends(actor, SKUA_E_CANCELLED);
}

static int cancel_peer(struct turn *turn, const struct act *act)
{
    return skua_cancel(turn->ctx, act->peer->pid, (int)act->number);
}

static struct act cancels_process(struct actor *peer, int reason)
{
    return (struct act){.perform = cancel_peer, .peer = peer, .number = (uint64_t)(int64_t)reason};
}

TEST(cancel_with_a_positive_reason_is_refused)
{
    (void)open_with_exits();
    struct actor *actor = plain_start(NO_ACTS);
    assert_int_equal(world_cancel(actor->pid, 1), SKUA_E_INVALID);
    assert_int_equal(world_cancel(actor->pid, INT32_MAX), SKUA_E_INVALID);
    struct actor *other = actor_new(ACTS(refused(cancels_process(actor, 1), SKUA_E_INVALID),
                                         cancels_process(actor, REASON), finishes(0)));
    assert_result(actor_run(other), 0);
    assert_ends(actor, REASON);
}

TEST(cancel_by_a_process_comes_after_its_messages)
{
    FOR_ROUNDS (seed, SEEDS) {
        world_open_sim(seed, (skua_sim_faults){.message_delay = seed % 2 == 0 ? 500000 : 0});
        struct actor *actor = plain_start(NO_ACTS);
        (void)actor_start(ACTS(sends_numbers(actor, 1, EARLY), cancels_process(actor, 0),
                               sends_numbers(actor, 1, 1), finishes(0)));
        world_settle();
        assert_int_equal(actor->closes, 1);
        assert_int_equal(actor->exit_error, SKUA_E_CANCELLED);
        assert_saw_numbers(actor, EARLY);
    }
}

TEST(cancel_of_itself_ends_it_after_its_step)
{
    (void)open_with_exits();
    struct actor *actor = plain_new(NO_ACTS);
    actor->script = ACTS(cancels_process(actor, REASON), continues(UINT64_MAX));
    actor_submit(actor);
    assert_ends(actor, REASON);
    assert_int_equal(actor->steps, 1);
}

/* ---- with other ends ---- */

TEST(cancel_that_comes_first_gives_the_reason)
{
    (void)open_with_exits();
    struct actor *actor = plain_start(ACTS(holds()));
    actor_await_held(actor, 1);
    assert_int_equal(world_cancel(actor->pid, REASON), 0);
    assert_int_equal(world_cancel(actor->pid, REASON - 1), 0);
    actor_let_go(actor);
    assert_ends(actor, REASON);
}

TEST(terminate_comes_before_a_cancel)
{
    for (int first = 0; first < 2; first++) {
        (void)open_with_exits();
        struct actor *actor = plain_start(ACTS(holds()));
        actor_await_held(actor, 1);
        assert_int_equal(first ? world_terminate(actor->pid) : 0, 0);
        assert_int_equal(world_cancel(actor->pid, REASON), 0);
        assert_int_equal(world_terminate(actor->pid), 0);
        actor_let_go(actor);
        assert_ends(actor, SKUA_E_TERMINATED);
    }
}

TEST(process_that_is_done_was_not_cancelled)
{
    (void)open_with_exits();
    struct actor *actor = plain_start(ACTS(holds(), finishes(7)));
    actor_await_held(actor, 1);
    assert_int_equal(world_cancel(actor->pid, REASON), 0);
    actor_let_go(actor);
    assert_ends(actor, 0);
}

TEST(process_that_fails_was_not_cancelled)
{
    (void)open_with_exits();
    struct actor *actor = plain_start(ACTS(holds(), fails(REASON - 1)));
    actor_await_held(actor, 1);
    assert_int_equal(world_cancel(actor->pid, REASON), 0);
    actor_let_go(actor);
    assert_ends(actor, REASON - 1);
}

/* ---- the runtime's stop ---- */

TEST(stop_ends_processes_whatever_they_do)
{
    const uint64_t one = 1;
    const uint64_t many = 3 * SKUA_EVENTS_PER_STEP;
    (void)open_with_exits();
    struct actor *actors[] = {
        plain_start(NO_ACTS),
        plain_start(ACTS(yields(1, DESK_KEEP, 0, 0))),
        plain_start(ACTS(continues(UINT64_MAX))),
        plain_start(ACTS(does(circulate, (void *)&one))),
        plain_start(ACTS(does(circulate, (void *)&many))),
    };
    api_wait_steps(world->api, actors[4]->pid, 3);
    world_close(); /* which asserts that nobody had to be terminated */
    for (size_t i = 0; i < COUNT_OF(actors); i++) {
        assert_exited(exits, actors[i], SKUA_E_STOPPED);
    }
}

TEST(stop_ends_processes_that_have_not_run)
{
    FOR_ROUNDS (seed, SEEDS) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct actor *actor = plain_start(NO_ACTS);
        send_numbers(actor, 0, seed % 30);
        world_close();
        assert_int_equal(actor->exit_error, SKUA_E_STOPPED);
        assert_saw_numbers(actor, seed % 30);
    }
}

/* Its place is behind a cancel that came before. */
TEST(stop_leaves_the_reason_of_a_cancel_that_came_before)
{
    FOR_ROUNDS (seed, SEEDS) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct actor *actor = plain_start(NO_ACTS);
        send_numbers(actor, 0, seed % 3);
        assert_int_equal(world_cancel(actor->pid, REASON), 0);
        world_close();
        assert_int_equal(actor->exit_error, REASON);
    }
}

/* ---- types that ask for the event ---- */

TEST(cancel_event_comes_in_its_place_and_ends_nothing)
{
    (void)open_with_exits();
    struct actor *actor =
        actor_start(ACTS(holds(), expects(message(1, 0)), expects(cancel(REASON)),
                         expects(message(1, 1)), expects(cancel(SKUA_E_CANCELLED)), finishes(3)));
    actor_await_held(actor, 1);
    send_numbers(actor, 0, 1);
    assert_int_equal(world_cancel(actor->pid, REASON), 0);
    send_numbers(actor, 1, 2);
    assert_int_equal(world_cancel(actor->pid, 0), 0);
    actor_let_go(actor);
    assert_ends(actor, 0);
}
