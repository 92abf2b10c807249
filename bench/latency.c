/* SPDX-License-Identifier: MIT */
/* Workloads of processes that compute, and of what has to run beside them: a process with a
 * timetable, and children. */
#include <stdatomic.h>
#include <stdio.h>

#include "bench.h"

#define MS 1e6 /* nanoseconds */

/* ---- heartbeat: a process beats a thousand times a second beside others that compute ---- */

#define BEAT_NS  SKUA_MILLISECOND
#define BEATS    2000u
#define WARM_NS  100000000l
#define ALONE_NS 500000000l /* before the heartbeat, and again after it */
#define LIMIT_NS (60 * SKUA_SECOND)

/* How many steps there were in a time. */
struct phase {
    uint64_t steps;
    uint64_t elapsed_ns;
};

static struct {
    uint64_t turns; /* of one step */
    atomic_bool over;
    struct phase beside; /* the steps beside the heartbeat */
    struct samples lateness;
    struct samples between; /* steps from one beat to the next */
} scene;

/* All steps that have been completed. A step takes at least 0.1 ms: adding to it costs nothing. */
static _Alignas(64) _Atomic uint64_t steps;

static uint64_t steps_so_far(void)
{
    return atomic_load_explicit(&steps, memory_order_relaxed);
}

static int cruncher_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    bench_compute(scene.turns);
    atomic_fetch_add_explicit(&steps, 1, memory_order_relaxed);
    return atomic_load(&scene.over) ? skua_done(ctx, skua_nothing()) : skua_continue(ctx);
}

static const skua_process_type cruncher_type = {.name = "cruncher", .step = cruncher_step};

struct heart {
    uint64_t begin_ns;
    uint64_t beat; /* the next one is due so many periods after the begin */
    uint64_t steps_at_begin;
    uint64_t steps_at_beat;
};

/* Beats that are missed altogether are left out: the next one is that after now. */
static int heart_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct heart *heart = self;
    (void)count;
    const uint64_t now = skua_now(ctx);
    const uint64_t done = steps_so_far();
    if (bench_starts(events)) {
        *heart = (struct heart){now, 1, done, done};
    } else {
        const uint64_t due = heart->begin_ns + heart->beat * BEAT_NS;
        expect_right(now >= due, "heartbeat: one is early");
        (void)samples_add(&scene.lateness, now - due);
        (void)samples_add(&scene.between, done - heart->steps_at_beat);
        heart->steps_at_beat = done;
        heart->beat = (now - heart->begin_ns) / BEAT_NS + 1;
    }
    if (heart->beat > BEATS) {
        scene.beside = (struct phase){done - heart->steps_at_begin, now - heart->begin_ns};
        return skua_done(ctx, skua_nothing());
    }
    return skua_yield_timer(ctx, 1, heart->begin_ns + heart->beat * BEAT_NS);
}

static const skua_process_type heart_type = {
    .name = "heart", .state_size = sizeof(struct heart), .step = heart_step};

/* Adds the steps of some time without the heartbeat. */
static void watch_alone(struct phase *alone)
{
    const uint64_t before = steps_so_far();
    const uint64_t begin = now_ns();
    bench_sleep(ALONE_NS);
    alone->steps += steps_so_far() - before;
    alone->elapsed_ns += now_ns() - begin;
}

static void run_heart(skua_runtime *runtime)
{
    skua_pid heart;
    skua_exit exit;
    expect_ok(skua_process_submit(runtime, &heart_type, skua_nothing(), &heart), "submit");
    expect_ok(skua_process_wait(runtime, heart, LIMIT_NS, &exit), "heartbeat");
    expect_ok(exit.error, "heartbeat");
}

static double per_second(const struct phase *phase)
{
    return (double)phase->steps * 1e9 / (double)phase->elapsed_ns;
}

static struct measurement tell_heartbeat(skua_runtime *runtime, const struct phase *alone)
{
    const uint32_t beats = atomic_load(&scene.lateness.count);
    const uint32_t p99 = samples_at(&scene.lateness, 990);
    struct measurement result = bench_finish(runtime, beats, (uint64_t)p99 * beats);
    result.value = result.p99_ms = p99 / MS;
    result.p50_ms = samples_at(&scene.lateness, 500) / MS;
    result.p999_ms = samples_at(&scene.lateness, 999) / MS;
    result.counts_steps = true;
    result.steps_between_p50 = samples_at(&scene.between, 500);
    result.steps_between_p99 = samples_at(&scene.between, 990);
    result.steps_per_second = per_second(&scene.beside);
    result.throughput_share = result.steps_per_second / per_second(alone);
    snprintf(result.note, sizeof result.note,
             "late p50 %.2f ms, p99.9 %.2f ms; %u beats, between two p50 %.0f, p99 %.0f steps; "
             "%.0f steps/s, %.1f %% of alone",
             result.p50_ms, result.p999_ms, beats, result.steps_between_p50,
             result.steps_between_p99, result.steps_per_second, 100 * result.throughput_share);
    return result;
}

static struct measurement measure_heartbeat(uint32_t workers, uint32_t crunchers, uint64_t step_ns)
{
    struct phase alone = {0};
    scene.turns = bench_turns(step_ns);
    atomic_store(&steps, 0);
    atomic_store(&scene.over, false);
    samples_init(&scene.lateness, BEATS);
    samples_init(&scene.between, BEATS);
    skua_runtime *runtime = bench_start(workers);
    for (uint32_t i = 0; i < crunchers; i++) {
        bench_submit_one(runtime, &cruncher_type);
    }
    bench_sleep(WARM_NS);
    watch_alone(&alone);
    run_heart(runtime);
    watch_alone(&alone);
    atomic_store(&scene.over, true);
    bench_wait_until_empty(runtime, (uint64_t)crunchers + 1);
    expect_right(alone.steps > 0, "heartbeat: nothing was computed");
    struct measurement result = tell_heartbeat(runtime, &alone);
    samples_free(&scene.lateness);
    samples_free(&scene.between);
    return result;
}

struct measurement bench_heartbeat_long(uint32_t workers)
{
    return measure_heartbeat(workers, 4, 5 * SKUA_MILLISECOND);
}

struct measurement bench_heartbeat(uint32_t workers)
{
    return measure_heartbeat(workers, 50, SKUA_MILLISECOND);
}

struct measurement bench_heartbeat_short(uint32_t workers)
{
    return measure_heartbeat(workers, 500, SKUA_MILLISECOND / 10);
}

/* ---- child-latency: a step starts a process and computes on ---- */

#define CHILDREN   500u
#define COMPUTE_NS (2 * SKUA_MILLISECOND)
#define PAUSE_NS   SKUA_MILLISECOND

static struct {
    uint64_t turns;
    struct samples waits; /* from the spawn to the first step, in nanoseconds */
} family;

static int child_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)ctx;
    (void)input_count;
    *(uint64_t *)self = skua_payload_to_u64(&input[0]);
    return 0;
}

static int child_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    const uint64_t now = now_ns();
    (void)events;
    (void)count;
    (void)samples_add(&family.waits, now - *(const uint64_t *)self);
    return skua_done(ctx, skua_nothing());
}

static const skua_process_type child_type = {
    .name = "child", .state_size = sizeof(uint64_t), .init = child_init, .step = child_step};

static int parent_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    uint32_t *children = self;
    (void)count;
    if (!bench_starts(events)) {
        const int error = skua_spawn(ctx, &child_type, skua_payload_u64(0, now_ns()), NULL);
        if (error != 0) {
            return error;
        }
        bench_compute(family.turns);
        ++*children;
    }
    return *children < CHILDREN ? skua_yield_sleep(ctx, 1, PAUSE_NS)
                                : skua_done(ctx, skua_nothing());
}

static const skua_process_type parent_type = {
    .name = "parent", .state_size = sizeof(uint32_t), .step = parent_step};

struct measurement bench_child_latency(uint32_t workers)
{
    family.turns = bench_turns(COMPUTE_NS);
    samples_init(&family.waits, CHILDREN);
    skua_runtime *runtime = bench_start(workers);
    (void)bench_run(runtime, &parent_type, NULL, NULL);
    bench_wait_until_empty(runtime, CHILDREN + 1);
    struct measurement result = bench_finish(runtime, CHILDREN, 0);
    expect_right(atomic_load(&family.waits.count) == CHILDREN, "child-latency: some did not run");
    const uint32_t p99 = samples_at(&family.waits, 990);
    result.elapsed_ns = (uint64_t)p99 * CHILDREN;
    result.value = result.p99_ms = p99 / MS;
    result.p50_ms = samples_at(&family.waits, 500) / MS;
    snprintf(result.note, sizeof result.note, "p50 %.3f ms; the step goes on for %.0f ms",
             result.p50_ms, (double)COMPUTE_NS / MS);
    samples_free(&family.waits);
    return result;
}
