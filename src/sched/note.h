/* SPDX-License-Identifier: MIT */
/* Notes what a thread does: in its worker's counters and ring, or in those that outside threads
 * share. */
#ifndef SKUA_SCHED_NOTE_H
#define SKUA_SCHED_NOTE_H

#include "sched/scheduler.h"

/* Counts for the worker or, if that is null, for the outside. */
#define NOTE_COUNT(sched, worker, name)                                                            \
    ((worker) != NULL ? counter_add_owner(&(worker)->stats.name, 1)                                \
                      : counter_add_any(&(sched)->outside.stats.name, 1))

/* Writes a record to the rings of tracer_active; nothing if those are null. `worker` is the
 * caller's or null. */
static inline void note_trace_in(struct trace *trace, struct worker *worker, enum trace_kind kind,
                                 skua_pid pid, uint64_t data, uint32_t number)
{
    if (UNLIKELY(trace != NULL)) {
        tracer_write(trace, worker != NULL ? worker->index : trace->outside,
                     &(struct ring_record){{0, pid.bits, data, trace_word(kind, number)}});
    }
}

static inline void note_trace(struct scheduler *sched, struct worker *worker, enum trace_kind kind,
                              skua_pid pid, uint64_t data, uint32_t number)
{
    note_trace_in(tracer_active(&sched->tracer), worker, kind, pid, data, number);
}

#endif
