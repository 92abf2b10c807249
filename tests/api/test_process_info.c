/* SPDX-License-Identifier: MIT */
/* What skua_process_snapshot shows of a process, whatever it is doing. */
#include "actor.h"
#include "desk.h"
#include "standstill.h"

static void check_info(const struct actor *actor, enum skua_process_state state, uint64_t steps,
                       uint32_t mailbox_length)
{
    const skua_process_snapshot info = world_info(actor->pid);
    assert_true(skua_pid_equal(info.pid, actor->pid));
    assert_string_equal(info.type_name, "actor");
    assert_int_equal(info.state, state);
    assert_int_equal(info.steps, steps);
    assert_int_equal(info.mailbox_length, mailbox_length);
}

TEST(info_shows_a_ready_process)
{
    world_open();
    standstill_begin();
    struct actor *actor = actor_start(NO_ACTS);
    for (uint32_t i = 1; i <= 3; i++) {
        assert_int_equal(world_send(actor->pid, skua_payload_empty(0)), 0);
        check_info(actor, SKUA_PROCESS_READY, 0, i);
    }
    standstill_end();
}

TEST(info_shows_a_running_process)
{
    world_open();
    struct actor *actor = actor_start(NO_ACTS);
    actor_await_state(actor, SKUA_PROCESS_IDLE);
    actor_perform_until_held(actor, ACTS(holds()));
    check_info(actor, SKUA_PROCESS_RUNNING, 2, 0); /* the step has the message */
    assert_int_equal(world_send(actor->pid, skua_payload_empty(0)), 0);
    assert_int_equal(world_cancel(actor->pid, 0), 0);
    check_info(actor, SKUA_PROCESS_RUNNING, 2, 1); /* cancel events do not count */
    actor_let_go(actor);
}

static void check_info_of_waiting(struct act act, enum skua_process_state state)
{
    world_create((skua_runtime_config){0});
    (void)desk_open();
    world_start();
    struct actor *actor = actor_start(NO_ACTS);
    actor_await_state(actor, SKUA_PROCESS_IDLE);
    for (uint64_t step = 2; step < 5; step++) {
        actor_perform(actor, ACTS(act));
        actor_await_state(actor, state);
        check_info(actor, state, step, 0);
    }
    world_close();
}

TEST(info_shows_a_waiting_process)
{
    check_info_of_waiting(continues(0), SKUA_PROCESS_IDLE);
    check_info_of_waiting(yields(0, DESK_KEEP, 0, 0), SKUA_PROCESS_BLOCKED);
}

TEST(info_of_a_finished_process_is_refused)
{
    skua_process_snapshot info;
    world_open();
    struct actor *actor = actor_start(ACTS(finishes(0)));
    world_await_live(0);
    assert_int_equal(skua_process_info(world_runtime(), actor->pid, &info), SKUA_E_NO_PROCESS);
}

TEST(state_names_are_those_of_the_header)
{
    static const char *const names[] = {[SKUA_PROCESS_READY] = "ready",
                                        [SKUA_PROCESS_RUNNING] = "running",
                                        [SKUA_PROCESS_BLOCKED] = "blocked",
                                        [SKUA_PROCESS_IDLE] = "idle"};
    for (enum skua_process_state state = SKUA_PROCESS_READY; state <= SKUA_PROCESS_IDLE; state++) {
        assert_string_equal(skua_process_state_name(state), names[state]);
    }
    assert_string_equal(skua_process_state_name((enum skua_process_state)99), "?");
}
