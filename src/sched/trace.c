/* SPDX-License-Identifier: MIT */
#include "sched/trace.h"

#include "base/monotonic.h"
#include "base/mutex.h"

static size_t trace_size(const struct scheduler *sched)
{
    return sizeof(struct trace) + (sched->capacity + 1) * sizeof(struct ring);
}

struct trace *trace_create(struct scheduler *sched)
{
    struct trace *trace = alloc_take(&sched->allocator, trace_size(sched), CACHE_LINE);
    if (trace == NULL) {
        return NULL;
    }
    mutex_init(&trace->outside_lock);
    for (uint32_t i = 0; i <= sched->capacity; i++) {
        ring_init(&trace->rings[i]);
    }
    return trace;
}

void trace_destroy(struct scheduler *sched, struct trace *trace)
{
    if (trace != NULL) {
        mutex_deinit(&trace->outside_lock);
        alloc_give(&sched->allocator, trace, trace_size(sched), CACHE_LINE);
    }
}

void trace_write(struct scheduler *sched, struct trace *trace, struct worker *worker,
                 const struct ring_record *record)
{
    struct ring_record timed = *record;
    if (worker != NULL) {
        timed.words[0] = monotonic_ns();
        (void)ring_write_owner(&trace->rings[worker->index], &timed);
        return;
    }
    mutex_lock(&trace->outside_lock);
    timed.words[0] = monotonic_ns(); /* under the lock: times rise in every ring */
    (void)ring_write_owner(&trace->rings[sched->capacity], &timed);
    mutex_unlock(&trace->outside_lock);
}
