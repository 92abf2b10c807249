/* SPDX-License-Identifier: MIT */
/* Processes that send to one that cannot keep up are held back, for a moment and without a trace:
 * none is forgotten, whatever becomes of it or of the receiver. */
#include <sched.h>

#include "actor.h"
#include "sched/held_back.h"

/* As in deliver.c; some may not be counted yet. */
#define CROWD (SKUA_EVENTS_PER_STEP + MAILBOX_TALLY_MAX + 1)

/* Until processes were held back so often. */
static void await_held_back(uint64_t times)
{
    while (world_stats().held_back < times) {
        (void)sched_yield();
    }
}

/* A sender that is held back before its second step, and does this in that. */
static struct actor *start_sender(struct actor *receiver, struct act then)
{
    return actor_start(ACTS(sends_numbers(receiver, 0, CROWD), continues(1), then));
}

/* On a clock that stands still, with a receiver that is in one long step. */
static struct actor *open_with_receiver(void)
{
    world_open_virtual_with((skua_runtime_config){.worker_count = 2});
    return actor_start_held();
}

static struct actor *hold_back(struct actor *receiver, struct act then)
{
    struct actor *sender = start_sender(receiver, then);
    await_held_back(1);
    return sender;
}

/* For senders that are ended by others. */
static int rest(struct turn *turn, const struct act *act)
{
    (void)turn;
    (void)act;
    return 0;
}

/* ---- one ---- */

TEST(sender_is_let_go_after_a_moment_whatever_the_receiver_does)
{
    struct actor *receiver = open_with_receiver();
    struct actor *sender = hold_back(receiver, finishes(0));
    assert_int_equal(sender->steps, 1);
    assert_int_equal(world_info(sender->pid).state, SKUA_PROCESS_READY);
    world_set_clock(world_now() + HELD_BACK_NS);
    actor_await_end(sender);
    actor_let_go(receiver);
    world_settle();
    assert_int_equal(receiver->seen_count, CROWD);
}

TEST(sender_is_let_go_when_the_receiver_has_caught_up)
{
    struct actor *receiver = open_with_receiver();
    struct actor *sender = hold_back(receiver, finishes(0));
    actor_let_go(receiver);
    actor_await_end(sender);
    world_settle();
    assert_int_equal(receiver->seen_count, CROWD);
}

TEST(sender_is_let_go_when_the_receiver_ends)
{
    struct actor *receiver = open_with_receiver();
    struct actor *sender = hold_back(receiver, finishes(0));
    assert_int_equal(world_terminate(receiver->pid), 0);
    actor_let_go(receiver);
    actor_await_end(sender);
}

TEST(message_reaches_a_sender_that_is_held_back)
{
    struct actor *receiver = open_with_receiver();
    struct actor *sender = hold_back(receiver, finishes(0));
    assert_int_equal(world_send(sender->pid, skua_payload_u64(1, 2)), 0);
    actor_await_end(sender);
    assert_saw(sender, message(1, 2));
    actor_let_go(receiver);
}

TEST(cancel_reaches_a_sender_that_is_held_back)
{
    struct actor *receiver = open_with_receiver();
    struct actor *sender = hold_back(receiver, awaits(2));
    assert_int_equal(world_cancel(sender->pid, SKUA_E_CANCELLED), 0);
    actor_await_seen(sender, 1);
    actor_let_go(receiver);
}

TEST(kill_reaches_a_sender_that_is_held_back)
{
    struct actor *receiver = open_with_receiver();
    struct actor *sender = hold_back(receiver, finishes(0));
    assert_int_equal(world_terminate(sender->pid), 0);
    actor_await_end(sender);
    assert_int_equal(sender->exit_error, SKUA_E_TERMINATED);
    actor_let_go(receiver);
}

TEST(timer_of_a_sender_that_is_held_back_fires)
{
    struct actor *receiver = open_with_receiver();
    const uint64_t moment = 2 * SKUA_CLOCK_RESOLUTION_NS;
    _Static_assert(2 * SKUA_CLOCK_RESOLUTION_NS < HELD_BACK_NS, "it is not let go before");
    struct actor *sender =
        actor_start(ACTS(sleeps(1, SKUA_CLOCK_RESOLUTION_NS), sends_numbers(receiver, 0, CROWD),
                         continues(1), finishes(0)));
    await_held_back(1);
    world_set_clock(world_now() + moment);
    actor_await_end(sender);
    actor_let_go(receiver);
}

TEST(stop_finds_a_sender_that_is_held_back)
{
    struct actor *receiver = open_with_receiver();
    (void)hold_back(receiver, does(rest, NULL));
    actor_let_go(receiver);
    world_close();
}

/* ---- many ---- */

#define SENDERS   20
#define IN_A_STEP 150
#define EACH      (10 * IN_A_STEP)

static struct actor *start_flood(struct actor *receiver, uint32_t number)
{
    return actor_start(ACTS(sends_numbers(receiver, number, IN_A_STEP), continues(1),
                            repeats(EACH / IN_A_STEP - 1), finishes(0)));
}

/* That all of all senders came, in their order. */
static void assert_all_came(const struct actor *receiver, uint32_t senders)
{
    uint64_t next[SENDERS] = {0};
    assert_int_equal(receiver->seen_count, senders * EACH);
    for (size_t i = 0; i < receiver->seen_count; i++) {
        const struct seen *seen = &receiver->seen[i];
        assert_in_range(seen->payload_type, 0, senders - 1);
        assert_int_equal(seen->value, next[seen->payload_type]++);
    }
}

TEST(senders_to_a_receiver_that_does_nothing_go_on)
{
    struct actor *senders[SENDERS];
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct actor *receiver = actor_start_held();
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i] = start_flood(receiver, i);
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        actor_await_end(senders[i]);
    }
    assert_true(world_stats().held_back > 0);
    actor_let_go(receiver);
    actor_await_seen(receiver, SENDERS * EACH);
    assert_all_came(receiver, SENDERS);
}

TEST(order_of_senders_that_are_held_back_is_kept)
{
    world_open();
    struct actor *receiver = actor_start(NO_ACTS);
    for (uint32_t i = 0; i < SENDERS; i++) {
        (void)start_flood(receiver, i);
    }
    actor_await_seen(receiver, SENDERS * EACH);
    assert_all_came(receiver, SENDERS);
}

/* None that is crowded may wait for another that is. */
TEST(processes_that_flood_each_other_all_come_to_an_end)
{
    struct actor *ring[SENDERS];
    world_open();
    for (uint32_t i = 0; i < SENDERS; i++) {
        ring[i] = actor_start(NO_ACTS);
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        struct actor *next = ring[(i + 1) % SENDERS];
        actor_tell(ring[i], ACTS(sends_numbers(next, 0, IN_A_STEP), continues(1),
                                 repeats(EACH / IN_A_STEP - 1)));
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        actor_await_seen(ring[i], EACH);
    }
}

TEST(stop_ends_many_that_are_held_back)
{
    enum { SOME = 50 };
    struct actor *receiver = open_with_receiver();
    for (uint32_t i = 0; i < SOME; i++) {
        (void)start_sender(receiver, does(rest, NULL));
    }
    await_held_back(SOME);
    actor_let_go(receiver);
    world_close();
}

/* ---- in the simulator ---- */

#define SEEDS      20
#define SIMULATED  3
#define SIMULATION 7

static uint64_t simulate(uint64_t seed)
{
    world_open_sim(seed, SIM_NO_FAULTS);
    struct actor *receiver = actor_start(NO_ACTS);
    for (uint32_t i = 0; i < SIMULATED; i++) {
        (void)start_flood(receiver, i);
    }
    world_settle();
    assert_all_came(receiver, SIMULATED);
    const uint64_t held_back = world_stats().held_back;
    world_close();
    return held_back;
}

TEST(simulator_holds_senders_back_and_lets_all_go)
{
    uint64_t held_back = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        held_back += simulate(seed);
    }
    assert_true(held_back > 0);
}

TEST(simulator_holds_back_the_same_senders_again)
{
    assert_int_equal(simulate(SIMULATION), simulate(SIMULATION));
}

/* What is left in a line takes no time. */
TEST(simulation_comes_to_rest_when_all_have_been_let_go)
{
    world_open_sim(SIMULATION, SIM_NO_FAULTS);
    struct actor *receiver = actor_start(NO_ACTS);
    struct actor *sender = start_flood(receiver, 0);
    world_settle();
    actor_await_end(sender);
    const uint64_t before = world_now();
    world_settle();
    assert_int_equal(world_now(), before);
}
