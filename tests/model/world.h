/* SPDX-License-Identifier: MIT */
/* What a poller waits for, and the clock, in one word; for models that run src/sched/poll.c on the
 * rig. These are definitions: one source of a model includes this. */
#ifndef SKUA_MODEL_WORLD_H
#define SKUA_MODEL_WORLD_H

#include <string.h>

#include "base/futex.h"
#include "explore.h"
#include "rig.h"

#define NEVER         UINT64_MAX
#define TOKEN_NONE    0
#define TOKEN_AWAITED 2
#define TOKEN_POLLING 3

/* The outside world: {time:24 | ready:4 | interrupted:1}. `ready` counts descriptors. */
#define INTERRUPTED   UINT32_C(1)
#define READY_SHIFT   1
#define READY_MASK    (UINT32_C(15) << READY_SHIFT)
#define TIME_SHIFT    8
#define INSTANT(tick) ((uint64_t)(tick) << WHEEL_TICK_SHIFT)

#define BEGINNING INSTANT(1)

static atomic_u32 outside;

/* What the holder of the role does in the poller; only it writes this. */
static struct {
    uint32_t waiters;
    uint32_t ready; /* descriptors that it has found */
    bool sleeps;
    uint64_t until;
} poller_state;

static uint64_t time_of(uint32_t world)
{
    return INSTANT(world >> TIME_SHIFT);
}

static uint64_t read_clock(struct time_source *source)
{
    (void)source;
    return time_of(load_seq_cst(&outside));
}

static struct time_source model_clock = {.now = read_clock};

static bool is_over(uint32_t world, uint64_t deadline)
{
    return (world & (READY_MASK | INTERRUPTED)) != 0 || time_of(world) >= deadline;
}

/* A sleep that ends for no reason ends the wait, too. */
static uint32_t wait_for_events(struct poller *poller, uint64_t deadline)
{
    (void)poller;
    EXPLORE_CHECK(poller_state.waiters++ == 0, "one at a time waits in the poller");
    const uint32_t seen = load_seq_cst(&outside);
    if (!is_over(seen, deadline)) {
        explore_note("waits until %llu", (unsigned long long)(deadline >> WHEEL_TICK_SHIFT));
        poller_state.until = deadline;
        poller_state.sleeps = true;
        futex_wait(&outside, seen);
        poller_state.sleeps = false;
    }
    const uint32_t before = fetch_and_seq_cst(&outside, ~(READY_MASK | INTERRUPTED));
    poller_state.waiters--;
    poller_state.ready += (before & READY_MASK) >> READY_SHIFT;
    return (before & READY_MASK) >> READY_SHIFT;
}

/* All the waiter needs to hear of goes through here. */
static void change_outside(uint32_t amount)
{
    (void)fetch_add_seq_cst(&outside, amount);
    futex_wake_one(&outside);
}

static void interrupt(struct poller *poller)
{
    (void)poller;
    explore_note("interrupts the poller");
    (void)fetch_or_seq_cst(&outside, INTERRUPTED);
    futex_wake_one(&outside);
}

/* Lets time pass, one tick after the other. */
static void run_clock(const void *ticks)
{
    for (uint32_t i = 0; i < *(const uint32_t *)ticks; i++) {
        explore_note("time passes");
        change_outside(UINT32_C(1) << TIME_SHIFT);
    }
}

/* Which time is 1. */
static void world_begin(void)
{
    store_relaxed(&outside, UINT32_C(1) << TIME_SHIFT);
    memset(&poller_state, 0, sizeof poller_state);
}

/* Whether a worker sleeps, in the end. */
static bool sleeps(uint32_t worker)
{
    const uint32_t word = load_relaxed(&rig.workers[worker].token.word);
    return word == TOKEN_AWAITED || word == TOKEN_POLLING;
}

/* Somebody sleeps, and there is something to wait for: in the poller, not longer than until
 * `earliest`. */
static void world_check_attended(uint64_t earliest)
{
    EXPLORE_CHECK(poller_state.sleeps, "INV-13: somebody waits for what there is");
    EXPLORE_CHECK(poller_state.until <= earliest, "INV-15: the wait is short enough");
}

static void world_check_sleeper(void)
{
    if (poller_state.sleeps) {
        EXPLORE_CHECK(!is_over(load_relaxed(&outside), poller_state.until),
                      "nobody sleeps through what has come");
    }
}

#endif
