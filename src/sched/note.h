/* SPDX-License-Identifier: MIT */
/* Notes what a thread does: in its worker's counters and ring, or in those that outside threads
 * share. */
#ifndef SKUA_SCHED_NOTE_H
#define SKUA_SCHED_NOTE_H

#include "sched/scheduler.h"

/* Counts for the worker or, if that is null, for the outside. */
#define NOTE_AMOUNT(sched, worker, name, amount)                                                   \
    ((worker) != NULL ? counter_add_owner(&(worker)->stats.name, (amount))                         \
                      : counter_add_any(&(sched)->outside.stats.name, (amount)))
#define NOTE_COUNT(sched, worker, name) NOTE_AMOUNT(sched, worker, name, 1)

/* NOLINTNEXTLINE(misc-redundant-expression): that the two agree is the point. */
_Static_assert(EVENT_NODES_MAX <= (uint32_t)1 << TRACE_NODE_BITS, "a record has room for any node");

/* Writes a record to the rings of tracer_active; nothing if those are null. `worker` is the
 * caller's or null. All of it is behind the branch: the parts are put together only if somebody
 * traces. */
static ALWAYS_INLINE void note_record_in(struct trace *trace, struct worker *worker,
                                         enum trace_kind kind, skua_pid pid, uint64_t data,
                                         uint32_t node, uint32_t number)
{
    if (UNLIKELY(trace != NULL)) {
        tracer_write(trace, worker != NULL ? worker->index : trace->outside,
                     &(struct ring_record){{0, pid.bits, data, trace_word(kind, node, number)}});
    }
}

static ALWAYS_INLINE void note_trace_in(struct trace *trace, struct worker *worker,
                                        enum trace_kind kind, skua_pid pid, uint64_t data,
                                        uint32_t number)
{
    note_record_in(trace, worker, kind, pid, data, OBJECT_NONE, number);
}

/* A record about an event to `pid`. */
static ALWAYS_INLINE void note_event_in(struct trace *trace, struct worker *worker,
                                        enum trace_kind kind, skua_pid pid, uint32_t node)
{
    note_record_in(trace, worker, kind, pid, 0, node, 0);
}

static inline void note_trace(struct scheduler *sched, struct worker *worker, enum trace_kind kind,
                              skua_pid pid, uint64_t data, uint32_t number)
{
    note_trace_in(tracer_active(&sched->tracer), worker, kind, pid, data, number);
}

static inline void note_event(struct scheduler *sched, struct worker *worker, enum trace_kind kind,
                              skua_pid pid, uint32_t node)
{
    note_event_in(tracer_active(&sched->tracer), worker, kind, pid, node);
}

static inline void note_send(struct scheduler *sched, struct worker *worker, skua_pid from,
                             skua_pid to, uint32_t node, uint32_t payload_type)
{
    note_record_in(tracer_active(&sched->tracer), worker, TRACE_SEND, to, from.bits, node,
                   payload_type);
}

/* What a process is called: its name or its label. */
static inline void note_text(struct scheduler *sched, struct worker *worker, enum trace_kind kind,
                             skua_pid pid, const char *text)
{
    struct trace *trace = tracer_active(&sched->tracer);
    if (UNLIKELY(trace != NULL)) {
        const size_t length = strlen(text);
        for (size_t at = 0; at <= length; at += TRACE_TEXT_PART) {
            note_trace_in(trace, worker, kind, pid, trace_text_part(text + at),
                          (uint32_t)(at / TRACE_TEXT_PART));
        }
    }
}

#endif
