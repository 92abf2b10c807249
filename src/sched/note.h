/* SPDX-License-Identifier: MIT */
/* What a thread does, noted where it belongs: with its worker, or, if it is none, outside. */
#ifndef SKUA_SCHED_NOTE_H
#define SKUA_SCHED_NOTE_H

#include "sched/scheduler.h"

/* Counts in a worker's counters or, where `worker` is null, in those of the outside. */
#define NOTE_COUNT(sched, worker, name)                                                            \
    ((worker) != NULL ? counter_add_owner(&(worker)->stats.name, 1)                                \
                      : counter_add_any(&(sched)->outside.stats.name, 1))

/* Notes what this thread does in the rings of tracer_active, or nothing if they are null; `worker`
 * is the one that it is, or null. */
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
