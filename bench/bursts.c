/* SPDX-License-Identifier: MIT */
/* Workloads of a million things at once, and how late a process with a timetable is beside them. */
#include <stdio.h>

#include "bench.h"

#define MS 1e6 /* nanoseconds */

/* How late the heartbeat was at most, from its start to now. */
static struct measurement tell(skua_runtime *runtime, uint64_t processes, uint64_t begin)
{
    const uint64_t elapsed = now_ns() - begin;
    const double late = heart_stop();
    bench_wait_until_empty(runtime, processes + 1);
    struct measurement result = bench_finish(runtime, processes, elapsed);
    result.value = result.max_ms = late;
    snprintf(result.note, sizeof result.note, "%u beats; all of it took %.0f ms", heart_beats(),
             (double)elapsed / MS);
    return result;
}

/* ---- burst-timers, burst-overload: a million processes that sleep ---- */

#define REST_NS       SKUA_SECOND /* between two steps of an overloaded sleeper */
#define OVERLOAD      UINT64_C(5) /* times the CPU that there is */
#define OVERLOADED_NS 3000000000l

static struct {
    uint64_t instant; /* of all sleepers; 0: they sleep again and again */
    uint64_t turns;   /* of work after each sleep */
    atomic_uint armed;
    atomic_bool over;
} crowd;

static int sleeper_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)count;
    if (bench_starts(events)) {
        atomic_fetch_add(&crowd.armed, 1);
    } else {
        bench_compute(crowd.turns);
        if (crowd.instant != 0 || atomic_load(&crowd.over)) {
            return skua_done(ctx, skua_nothing());
        }
    }
    return crowd.instant != 0 ? skua_yield_timer(ctx, 1, crowd.instant)
                              : skua_yield_sleep(ctx, 1, 1 + skua_random(ctx) % REST_NS);
}

static const skua_process_type sleeper_type = {.name = "sleeper", .step = sleeper_step};

static void start_sleepers(skua_runtime *runtime, uint32_t size)
{
    atomic_store(&crowd.armed, 0);
    atomic_store(&crowd.over, false);
    for (uint32_t i = 0; i < size; i++) {
        bench_submit_one(runtime, &sleeper_type);
    }
    bench_wait_for(&crowd.armed, size);
}

struct measurement bench_burst_timers(uint32_t workers, uint32_t size)
{
    skua_runtime *runtime = bench_start(workers);
    crowd.turns = 0;
    crowd.instant = now_ns() + 2 * SKUA_SECOND; /* the clock of the runtime is the system's */
    start_sleepers(runtime, size);
    expect_right(now_ns() < crowd.instant, "burst-timers: all are armed in time");
    heart_start(runtime);
    skua_stats stats;
    do {
        bench_sleep(1000000);
        expect_ok(skua_stats_read(runtime, &stats, NULL, 0) < 0 ? SKUA_E_INVALID : 0, "stats");
    } while (stats.live > 1);
    return tell(runtime, size, crowd.instant);
}

struct measurement bench_burst_overload(uint32_t workers, uint32_t size)
{
    skua_runtime *runtime = bench_start(workers);
    crowd.instant = 0;
    crowd.turns = bench_turns(OVERLOAD * workers * REST_NS / 2 / size);
    start_sleepers(runtime, size);
    const uint64_t begin = now_ns();
    heart_start(runtime);
    bench_sleep(OVERLOADED_NS);
    atomic_store(&crowd.over, true);
    return tell(runtime, size, begin);
}

/* ---- burst-exit: a process ends with a million messages in its mailbox ---- */

static atomic_bool may_end;

static int hoarder_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)count;
    if (!bench_starts(events)) {
        return 0;
    }
    while (!atomic_load(&may_end)) { /* so that it reads none of them */
        bench_sleep(1000000);
    }
    return skua_done(ctx, skua_nothing());
}

static const skua_process_type hoarder_type = {
    .name = "hoarder", .step = hoarder_step, .mailbox_limit = SKUA_MAILBOX_MAX};

struct measurement bench_burst_exit(uint32_t workers, uint32_t size)
{
    skua_pid hoarder;
    skua_runtime *runtime = bench_start(workers);
    atomic_store(&may_end, false);
    expect_ok(skua_process_submit(runtime, &hoarder_type, skua_nothing(), &hoarder), "submit");
    for (uint32_t i = 0; i < size; i++) {
        expect_ok(skua_process_send(runtime, hoarder, skua_payload_u64(0, i)), "send");
    }
    heart_start(runtime);
    const uint64_t begin = now_ns();
    atomic_store(&may_end, true);
    expect_ok(skua_process_wait(runtime, hoarder, SKUA_FOREVER, NULL), "burst-exit");
    return tell(runtime, 1, begin);
}

/* ---- burst-spawn: one step starts a million processes ---- */

static int child_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    return skua_done(ctx, skua_nothing());
}

static const skua_process_type child_type = {.name = "child", .step = child_step};

static int mother_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    const uint64_t *size = self;
    int error = 0;
    (void)events;
    (void)count;
    for (uint64_t i = 0; i < *size && error == 0; i++) {
        error = skua_spawn(ctx, &child_type, skua_nothing(), NULL);
    }
    skua_done(ctx, skua_nothing());
    return error;
}

static int mother_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    (void)count;
    *(uint64_t *)self = skua_payload_to_u64(&input[0]);
    return 0;
}

static const skua_process_type mother_type = {
    .name = "mother", .state_size = sizeof(uint64_t), .init = mother_init, .step = mother_step};

struct measurement bench_burst_spawn(uint32_t workers, uint32_t size)
{
    skua_runtime *runtime = bench_start(workers);
    heart_start(runtime);
    const uint64_t begin = now_ns();
    (void)bench_run_sized(runtime, &mother_type, size, NULL);
    return tell(runtime, (uint64_t)size + 1, begin);
}
