/* SPDX-License-Identifier: MIT */
/* The slice: how many turns a process has in one pick. */
#ifndef SKUA_SCHED_SLICE_H
#define SKUA_SCHED_SLICE_H

#include "sched/checkpoint.h"

/* Processes that may wait in the deque while another continues. */
#define READIED_MAX 256

/* Turns of a process that goes on because of events, and from one reading of the clock to the next
 * of one that continues. */
#define NEWS_TURNS_MAX 4
#define CLOCK_TURNS    4

/* A process that continues has its slice, unless it has readied so many others that they had better
 * run while they are in the cache. Reading the clock takes a third of a short turn. */
static inline bool slice_may_continue(struct worker *worker, uint32_t turns)
{
    const bool reads_clock = turns % CLOCK_TURNS == 1 || worker->picks_are_long;
    if (turns >= worker->turns_max || worker->is_pressed ||
        (reads_clock && checkpoint_slice_is_over(worker))) {
        return false;
    }
    worker->is_pressed = deque_length_owner(&worker->deque) > READIED_MAX;
    return !worker->is_pressed;
}

/* A process that goes on because events have arrived meanwhile has a few turns only: if they come
 * one by one from another worker, it had better let them gather while it gives way. */
static inline bool slice_may_react(struct worker *worker, uint32_t turns)
{
    return turns < NEWS_TURNS_MAX && turns < worker->turns_max && !worker->is_pressed &&
           !(worker->picks_are_long && checkpoint_slice_is_over(worker));
}

/* Whether a process that did not come to rest has another turn after so many. */
static ALWAYS_INLINE bool slice_goes_on(struct worker *worker, struct process *process,
                                        uint32_t turns)
{
    return (process_progress(process) & PROCESS_CONTINUES) != 0 ? slice_may_continue(worker, turns)
                                                                : slice_may_react(worker, turns);
}

#endif
