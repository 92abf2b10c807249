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
#include <string.h>

#include "base/allocator.h"
#include "concurrent/ring.h"

enum trace_kind {
    TRACE_BEGIN, /* data: the type; number: of events */
    TRACE_END,   /* number: error; data: where the task waits, a string, or 0 */
    TRACE_SEND,  /* node: the event, as in the next three; data: the sender; number: payload type */
    TRACE_TAKE,
    TRACE_TIMER,
    TRACE_COMPLETE,
    TRACE_SPAWN, /* data: the type */
    TRACE_EXIT,  /* data: the type; number: error */
    TRACE_STEAL, /* data: how many; number: from whom */
    TRACE_PARK,
    TRACE_UNPARK,
    TRACE_NAME,  /* data: a part of the text, as trace_text_part has it; number: which, from 0 */
    TRACE_LABEL, /* the same */
    TRACE_READ,  /* data: the socket; number: bytes that were read from it; node: trace_duration */
    TRACE_WRITE, /* the same for bytes that the system has taken */
};

/* words[3] of a record, from its lowest bit: the event's node, the kind, the number. A kind of all
 * ones is that of RING_LOST. */
#define TRACE_NODE_BITS    28
#define TRACE_KIND_BITS    4
#define TRACE_NUMBER_SHIFT (TRACE_NODE_BITS + TRACE_KIND_BITS)

_Static_assert(TRACE_WRITE < (1 << TRACE_KIND_BITS) - 1, "no kind is all ones");

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

static inline uint64_t trace_word(enum trace_kind kind, uint32_t node, uint32_t number)
{
    return (uint64_t)number << TRACE_NUMBER_SHIFT | (uint64_t)kind << TRACE_NODE_BITS | node;
}

static inline enum trace_kind trace_word_kind(uint64_t word)
{
    return (enum trace_kind)(word >> TRACE_NODE_BITS & (((uint32_t)1 << TRACE_KIND_BITS) - 1));
}

static inline uint32_t trace_word_node(uint64_t word)
{
    return (uint32_t)(word & (((uint32_t)1 << TRACE_NODE_BITS) - 1));
}

static inline uint32_t trace_word_number(uint64_t word)
{
    return (uint32_t)(word >> TRACE_NUMBER_SHIFT);
}

/* How long something has taken that ends with its record, in nanoseconds, where a node would be:
 * what takes longer than a quarter of a second says that much. */
static inline uint32_t trace_duration(uint64_t ns)
{
    const uint32_t most = ((uint32_t)1 << TRACE_NODE_BITS) - 1;
    return ns < most ? (uint32_t)ns : most;
}

/* Text takes several records, one after the other. The last part has a byte that is zero. */
#define TRACE_TEXT_PART sizeof(uint64_t)

static inline uint64_t trace_text_part(const char *text)
{
    uint64_t part = 0;
    memcpy(&part, text, strnlen(text, TRACE_TEXT_PART));
    return part;
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
