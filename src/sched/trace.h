/* SPDX-License-Identifier: MIT */
/* The trace of what the workers do, for `skua trace`: one ring of records for each of them, and
 * one, with a lock, for all threads that are none. Whoever does something notes it in the ring of
 * its own thread; the inspector's thread reads them all (inspector/tracing.c). The kinds of records
 * are explained in docs/inspector.md.
 *
 * `sched->trace` is null while nobody traces: then a note is one load and a branch. The rings are
 * made when it is first set, and stay until the scheduler ends, because a thread may have looked at
 * `trace` just before it became null. What it then writes may end up in the next trace, where it is
 * no lie: it has happened then.
 *
 * MO-trace: the rings are made before `trace` is stored with release; whoever loads it with acquire
 * finds them made. */
#ifndef SKUA_SCHED_TRACE_H
#define SKUA_SCHED_TRACE_H

#include "concurrent/ring.h"
#include "sched/scheduler.h"

enum trace_kind {
    TRACE_BEGIN, /* data: the type; number: of events */
    TRACE_END,   /* number: error */
    TRACE_SEND,  /* data: the sender; number: the event, as in the next three */
    TRACE_TAKE,
    TRACE_TIMER,
    TRACE_COMPLETE,
    TRACE_SPAWN, /* data: the type */
    TRACE_EXIT,  /* data: the type; number: error */
    TRACE_STEAL, /* data: how many; number: from whom */
    TRACE_PARK,
    TRACE_UNPARK,
};

struct trace {
    pthread_mutex_t outside_lock;
    struct ring rings[]; /* one per worker, spare ones included, and that of the outside */
};

/* What words[3] of a record holds. */
static inline uint64_t trace_word(enum trace_kind kind, uint32_t number)
{
    return (uint64_t)kind << 32 | number;
}

/* Begins a trace; one thread at a time. What the rings held before is discarded. False if there is
 * no memory for them. */
NODISCARD bool trace_start(struct scheduler *sched);
void trace_stop(struct scheduler *sched);

/* Frees the rings, if there are any: nobody runs any more. */
void trace_free(struct scheduler *sched);

/* The rings, if somebody traces. Models explore what workers do to each other, and traces are
 * nothing of that. */
static inline struct trace *trace_active(struct scheduler *sched)
{
#ifdef SKUA_MODEL
    (void)sched;
    return NULL;
#else
    return load_acquire(&sched->trace); /* MO-trace */
#endif
}

void trace_write(struct scheduler *sched, struct trace *trace, struct worker *worker,
                 const struct ring_record *record);

/* Notes what this thread does in the rings of trace_active, or nothing if they are null; `worker`
 * is the one that it is, or null. */
static inline void trace_note_in(struct trace *trace, struct scheduler *sched,
                                 struct worker *worker, enum trace_kind kind, skua_pid pid,
                                 uint64_t data, uint32_t number)
{
    if (UNLIKELY(trace != NULL)) {
        trace_write(sched, trace, worker,
                    &(struct ring_record){{0, pid.bits, data, trace_word(kind, number)}});
    }
}

static inline void trace_note(struct scheduler *sched, struct worker *worker, enum trace_kind kind,
                              skua_pid pid, uint64_t data, uint32_t number)
{
    trace_note_in(trace_active(sched), sched, worker, kind, pid, data, number);
}

#endif
