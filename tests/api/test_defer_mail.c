/* SPDX-License-Identifier: MIT */
/* Ordinary and urgent letters to a process that defers some of them: their order, and that none is
 * lost, over many seeds and on threads; and that the limit of its mailbox holds. */
#include "effort.h"
#include "gate_mail.h"
#include "sim_trace.h"

#define SEEDS 10000
#define LIMIT 20

static struct gate *start_gate(uint64_t round)
{
    struct gate *gate = gate_new((enum gate_shape)(round % GATE_SHAPES), round % 2 == 0);
    gate->type.mailbox_limit = LIMIT;
    gate_submit(gate);
    return gate;
}

/* What waits is limited, whatever was deferred. */
static void assert_limit(const struct gate *gate)
{
    skua_process_snapshot info;
    if (skua_process_info(world_runtime(), gate->pid, &info) == 0) {
        assert_in_range(info.mailbox_length, 0, 2 * (LIMIT + SKUA_EVENTS_PER_STEP));
    }
}

static bool gate_lives(const struct gate *gate)
{
    skua_process_snapshot info;
    return skua_process_info(world_runtime(), gate->pid, &info) == 0;
}

TEST(letters_keep_their_order_and_none_is_lost_whatever_goes_wrong)
{
    FOR_ROUNDS (seed, EFFORT(SEEDS)) {
        world_open_sim(seed, (skua_sim_faults){
                                 .message_delay = seed % 3 == 0 ? 100000 : 0,
                                 .no_memory = seed % 5 == 0 ? 2000 : 0,
                                 .process_kill = seed % 7 == 0 ? 1000 : 0,
                                 .spurious_wake = seed % 2 == 0 ? 10000 : 0,
                             });
        struct gate *gate = start_gate(seed);
        struct gate_mail *mail = gate_mail_start(gate);
        world_settle();
        assert_limit(gate);
        const bool lives = gate_lives(gate);
        if (lives) {
            assert_int_equal(world_send_urgent(gate->pid, skua_payload_empty(GATE_OPEN)), 0);
            world_settle();
        }
        if (gate->defer_error == 0) { /* otherwise it has let some through that it should not */
            gate_mail_check(mail, lives && gate_lives(gate));
        }
        assert_true(!gate_lives(gate) || world_info(gate->pid).mailbox_length == 0);
        world_close();
    }
}

static void await_rest(const struct gate *gate)
{
    enum skua_process_state state;
    do {
        assert_limit(gate);
        state = world_info(gate->pid).state;
    } while (state == SKUA_PROCESS_READY || state == SKUA_PROCESS_RUNNING);
}

TEST(letters_on_threads_keep_their_order_and_none_is_lost)
{
    FOR_ROUNDS (round, EFFORT(1000)) {
        world_open();
        struct gate *gate = start_gate(round);
        struct gate_mail *mail = gate_mail_start(gate);
        world_await_live(1);
        await_rest(gate); /* or the order would overtake others */
        assert_int_equal(world_send_urgent(gate->pid, skua_payload_empty(GATE_OPEN)), 0);
        gate_await_passed(gate, gate_mail_accepted(mail));
        world_close();
        gate_mail_check(mail, true);
    }
}
