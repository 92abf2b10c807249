/* SPDX-License-Identifier: MIT */
/* A heartbeat: a process with a timetable, to see how late it is beside others. */
#include "bench.h"

#define MS      1e6 /* nanoseconds */
#define BEAT_NS SKUA_MILLISECOND

static struct {
    atomic_bool over;
    _Atomic uint64_t latest; /* nanoseconds */
    atomic_uint beats;
} heart;

struct beating {
    uint64_t due;
};

static void note_lateness(uint64_t late)
{
    if (late > atomic_load(&heart.latest)) {
        atomic_store(&heart.latest, late);
    }
    atomic_fetch_add(&heart.beats, 1);
}

static int beat(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct beating *beating = self;
    const uint64_t now = skua_now(ctx);
    (void)count;
    if (!bench_starts(events)) {
        note_lateness(now - beating->due);
    }
    if (atomic_load(&heart.over)) {
        return skua_done(ctx, skua_nothing());
    }
    beating->due = now + BEAT_NS;
    return skua_yield_timer(ctx, 1, beating->due);
}

static const skua_process_type heart_type = {
    .name = "heart", .state_size = sizeof(struct beating), .step = beat};

void heart_start(skua_runtime *runtime)
{
    atomic_store(&heart.over, false);
    atomic_store(&heart.latest, 0);
    atomic_store(&heart.beats, 0);
    bench_submit_one(runtime, &heart_type);
    bench_wait_for(&heart.beats, 10);
}

double heart_stop(void)
{
    atomic_store(&heart.over, true);
    bench_wait_for(&heart.beats, atomic_load(&heart.beats) + 1);
    return (double)atomic_load(&heart.latest) / MS;
}

uint32_t heart_beats(void)
{
    return atomic_load(&heart.beats);
}
