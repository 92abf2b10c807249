/* SPDX-License-Identifier: MIT */
#include "sched/trace.h"

#include "base/monotonic.h"
#include "base/mutex.h"

static size_t trace_size(const struct scheduler *sched)
{
    return sizeof(struct trace) + (sched->capacity + 1) * sizeof(struct ring);
}

static struct trace *make_rings(struct scheduler *sched)
{
    struct trace *rings = alloc_take(&sched->allocator, trace_size(sched), CACHE_LINE);
    if (rings == NULL) {
        return NULL;
    }
    mutex_init(&rings->outside_lock);
    for (uint32_t i = 0; i <= sched->capacity; i++) {
        ring_init(&rings->rings[i]);
    }
    return rings;
}

bool trace_start(struct scheduler *sched)
{
    if (sched->rings == NULL) {
        sched->rings = make_rings(sched);
    }
    if (sched->rings == NULL) {
        return false;
    }
    for (uint32_t i = 0; i <= sched->capacity; i++) {
        ring_clear_reader(&sched->rings->rings[i]);
    }
    store_release(&sched->trace, sched->rings); /* MO-trace */
    return true;
}

void trace_stop(struct scheduler *sched)
{
    store_release(&sched->trace, NULL); /* MO-trace */
}

void trace_free(struct scheduler *sched)
{
    if (sched->rings != NULL) {
        mutex_deinit(&sched->rings->outside_lock);
        alloc_give(&sched->allocator, sched->rings, trace_size(sched), CACHE_LINE);
    }
}

/* While a ring is closed a record need not be made, and the clock not be asked. */
static void write_timed(struct ring *ring, const struct ring_record *record)
{
    if (!ring_refuses_owner(ring)) {
        struct ring_record timed = *record;
        timed.words[0] = monotonic_ns();
        (void)ring_write_owner(ring, &timed);
    }
}

void trace_write(struct scheduler *sched, struct trace *trace, struct worker *worker,
                 const struct ring_record *record)
{
    if (worker != NULL) {
        write_timed(&trace->rings[worker->index], record);
        return;
    }
    mutex_lock(&trace->outside_lock); /* before the clock: times rise in every ring */
    write_timed(&trace->rings[sched->capacity], record);
    mutex_unlock(&trace->outside_lock);
}
