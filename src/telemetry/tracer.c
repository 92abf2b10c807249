/* SPDX-License-Identifier: MIT */
#include "telemetry/tracer.h"

#include "base/monotonic.h"
#include "base/mutex.h"

static size_t rings_size(const struct tracer *tracer)
{
    return sizeof(struct trace) + (tracer->worker_count + 1) * sizeof(struct ring);
}

static struct trace *create_rings(struct tracer *tracer)
{
    struct trace *trace = allocator_alloc(tracer->allocator, rings_size(tracer), CACHE_LINE);
    if (trace == NULL) {
        return NULL;
    }
    mutex_init(&trace->outside_lock);
    trace->outside = tracer->worker_count;
    for (uint32_t i = 0; i <= trace->outside; i++) {
        ring_init(&trace->rings[i]);
    }
    return trace;
}

void tracer_init(struct tracer *tracer, const struct allocator *allocator, uint32_t worker_count)
{
    store_relaxed(&tracer->active, NULL); /* not shared yet */
    tracer->rings = NULL;
    tracer->allocator = allocator;
    tracer->worker_count = worker_count;
}

void tracer_deinit(struct tracer *tracer)
{
    if (tracer->rings != NULL) {
        mutex_deinit(&tracer->rings->outside_lock);
        allocator_free(tracer->allocator, tracer->rings, rings_size(tracer), CACHE_LINE);
    }
}

bool tracer_start(struct tracer *tracer)
{
    if (tracer->rings == NULL) {
        tracer->rings = create_rings(tracer);
    }
    if (tracer->rings == NULL) {
        return false;
    }
    for (uint32_t i = 0; i <= tracer->worker_count; i++) {
        ring_clear_reader(&tracer->rings->rings[i]);
    }
    store_release(&tracer->active, tracer->rings); /* MO-trace */
    return true;
}

void tracer_stop(struct tracer *tracer)
{
    store_release(&tracer->active, NULL); /* MO-trace */
}

/* While a ring is closed, neither builds a record nor reads the clock. */
static void write_timed_owner(struct ring *ring, const struct ring_record *record)
{
    if (!ring_refuses_owner(ring)) {
        struct ring_record timed = *record;
        timed.words[0] = monotonic_ns();
        (void)ring_write_owner(ring, &timed);
    }
}

void tracer_write(struct trace *trace, uint32_t ring, const struct ring_record *record)
{
    if (ring != trace->outside) {
        write_timed_owner(&trace->rings[ring], record);
        return;
    }
    mutex_lock(&trace->outside_lock); /* before the clock: times rise in every ring */
    write_timed_owner(&trace->rings[ring], record);
    mutex_unlock(&trace->outside_lock);
}
