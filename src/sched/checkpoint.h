/* SPDX-License-Identifier: MIT */
/* Checkpoints: between two picks, now and then, a worker reads the clock and sees to what is due.
 *
 * `picks_left` counts down to the next one. Its owner writes it at every pick, by a load and a
 * store; the monitor stores 1 when the worker's picks have become long. If the store falls between
 * the owner's two, it is lost: the owner then goes on with the count it had, and the monitor tries
 * again with its next sample. The count never grows between two checkpoints, and what the monitor
 * stores is never more than what it replaces, so a worker makes at most PICKS_MAX picks from one
 * checkpoint to the next, whatever the monitor does. */
#ifndef SKUA_SCHED_CHECKPOINT_H
#define SKUA_SCHED_CHECKPOINT_H

#include "sched/scheduler.h"

/* Picks between two checkpoints, at most (fewer in models), and the time that they should take
 * together. */
#ifndef PICKS_MAX
#define PICKS_MAX 32
#endif
#define CHECK_NS UINT64_C(20000)

/* A process with more to do runs for so long in one pick, without going through a queue. */
#define SLICE_NS UINT64_C(50000)

/* The worker's scheduling clock. In simulations and tests it is that of the runtime. */
static inline uint64_t checkpoint_clock(struct worker *worker)
{
    struct time_source *time = worker->sched->time;
    return LIKELY(time->is_monotonic) ? cheap_clock_now(&worker->clock) : time_now(time);
}

/* Counts a pick. Returns whether a checkpoint comes before it. */
static inline bool checkpoint_is_due(struct worker *worker)
{
    const uint32_t left = load_relaxed(&worker->picks_left); /* MO-countdown */
    if (UNLIKELY(left <= 1)) {
        return true;
    }
    store_relaxed(&worker->picks_left, left - 1); /* MO-countdown */
    return false;
}

/* For the worker itself: the next pick begins with a checkpoint. For the monitor: it should. */
static inline void checkpoint_hasten(struct worker *worker)
{
    store_relaxed(&worker->picks_left, 1); /* MO-countdown */
}

struct checkpoint_result {
    uint64_t now;
    enum pick_kind measured; /* what the pick before was */
    uint64_t took;           /* if it was measured: how long */
};

/* Ends the measurement of a pick, grants the next picks, fires timers and delivers descriptors that
 * are due. */
struct checkpoint_result checkpoint(struct worker *worker);

/* The pick that begins now is measured, up to the next checkpoint, which comes right after it. */
static inline void checkpoint_measure(struct worker *worker, enum pick_kind kind)
{
    worker->measured = kind;
    worker->checked_at = checkpoint_clock(worker);
    checkpoint_hasten(worker);
}

/* The worker was idle: that is not the length of a pick, and nothing is known of those to come. */
static inline void checkpoint_restart(struct worker *worker)
{
    worker->picks_granted = 1;
    checkpoint_measure(worker, PICK_ANY);
}

/* Whether a slice has passed since the last checkpoint, or since the current pick began if that is
 * measured. Then a checkpoint comes after it. */
static inline bool checkpoint_slice_is_over(struct worker *worker)
{
    if (cheap_clock_since(checkpoint_clock(worker), worker->checked_at) < SLICE_NS) {
        return false;
    }
    checkpoint_hasten(worker);
    return true;
}

#endif
