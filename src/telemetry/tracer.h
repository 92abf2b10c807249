/* SPDX-License-Identifier: MIT */
/* The trace of what the workers do, for `skua trace`: one ring of records per worker, and one, with
 * a lock, for all other threads. Each thread notes what it does in its ring (sched/note.h); the
 * inspector's thread reads them all (inspect/tracing.c). The kinds of records are explained in
 * docs/inspector.md.
 *
 * `active` is null while nobody traces: then a note is one load and a branch. The rings are
 * allocated when it is first set, and stay until the tracer ends, because a thread may have loaded
 * `active` just before it became null. Its record may then end up in the next trace, where it is
 * still true: it carries the time at which it happened.
 *
 * MO-trace: the rings are initialised before `active` is stored with release; a thread that loads
 * it with acquire finds them initialised. */
#ifndef SKUA_TELEMETRY_TRACER_H
#define SKUA_TELEMETRY_TRACER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/allocator.h"
#include "concurrent/ring.h"

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
    uint32_t outside;    /* the number of the last ring */
    struct ring rings[]; /* one per worker, by its number, and one for the outside */
};

struct tracer {
    atomic_ptr active;   /* a struct trace; null: nobody traces */
    struct trace *rings; /* null before the first trace */
    const struct allocator *allocator;
    uint32_t worker_count; /* spare ones included */
};

/* What words[3] of a record holds. */
static inline uint64_t trace_word(enum trace_kind kind, uint32_t number)
{
    return (uint64_t)kind << 32 | number;
}

void tracer_init(struct tracer *tracer, const struct allocator *allocator, uint32_t worker_count);

/* Frees the rings, if there are any. No other thread may use the tracer any more. */
void tracer_deinit(struct tracer *tracer);

/* Begins a trace; one thread at a time. What the rings held before is discarded. False if there is
 * no memory for them. */
NODISCARD bool tracer_start(struct tracer *tracer);
void tracer_stop(struct tracer *tracer);

/* The rings, if somebody traces. Models explore how workers interact, and tracing has no part in
 * that. */
static inline struct trace *tracer_active(struct tracer *tracer)
{
#ifdef SKUA_MODEL
    (void)tracer;
    return NULL;
#else
    return load_acquire(&tracer->active); /* MO-trace */
#endif
}

/* Writes a record, with the current time, to the ring of a worker, or to trace->outside. */
void tracer_write(struct trace *trace, uint32_t ring, const struct ring_record *record);

#endif
