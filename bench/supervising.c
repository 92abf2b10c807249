/* SPDX-License-Identifier: MIT */
/* Workloads of supervisors. */
#include <inttypes.h>
#include <stdio.h>

#include "bench.h"

/* ---- restart: what it takes to start a child again, beyond a start ---- */

#define RESTARTS 200000u

static atomic_uint lives;

/* Fails in its first step, but for the last time. */
static int failing_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)count;
    if (!bench_starts(events)) {
        return 0;
    }
    return atomic_fetch_add(&lives, 1) + 1 < RESTARTS ? SKUA_E_USER
                                                      : skua_done(ctx, skua_nothing());
}

static const skua_process_type failing_type = {.name = "failing", .step = failing_step};

/* It is stable at once, so there is never a pause. */
static const skua_child failing_child = {.name = "child",
                                         .type = &failing_type,
                                         .restart = SKUA_RESTART_ON_ERROR,
                                         .significant = true,
                                         .backoff = {.stable_ns = 1}};
static const skua_supervisor restarting = {.name = "restarting",
                                           .children = &failing_child,
                                           .child_count = 1,
                                           .auto_stop = SKUA_AUTO_STOP_ANY};

static const skua_process_type chain_type;

/* The same number of starts, first steps and ends: each starts the next. */
static int chain_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    const int error = atomic_fetch_add(&lives, 1) + 1 < RESTARTS
                          ? skua_spawn(ctx, &chain_type, skua_nothing(), NULL)
                          : 0;
    return error != 0 ? error : skua_done(ctx, skua_nothing());
}

static const skua_process_type chain_type = {.name = "chain", .step = chain_step};

static uint64_t time_lives(skua_runtime *runtime, const skua_process_type *type, skua_payload input,
                           uint64_t ended)
{
    atomic_store(&lives, 0);
    const uint64_t begin = now_ns();
    expect_ok(skua_process_submit(runtime, type, input, NULL), "submit");
    bench_wait_until_empty(runtime, ended);
    expect_right(atomic_load(&lives) == RESTARTS, "the number of lives");
    return now_ns() - begin;
}

struct measurement bench_restart(uint32_t workers)
{
    skua_runtime *runtime = bench_start(workers);
    const uint64_t chain = time_lives(runtime, &chain_type, skua_nothing(), RESTARTS);
    const uint64_t restarts = time_lives(runtime, skua_supervisor_type(),
                                         skua_supervisor_input(&restarting), 2 * RESTARTS + 1);
    struct measurement result = bench_finish(runtime, RESTARTS, restarts);
    const double each = (double)restarts / RESTARTS;
    result.value = result.beyond_ns = each - (double)chain / RESTARTS;
    (void)snprintf(result.note, sizeof result.note, "%.0f ns from first step to first step", each);
    return result;
}

/* ---- stop-children: children of a template, stopped at once ---- */

static const skua_child idle_template = {.name = "idle", .type = &bench_idler_type};
static const skua_supervisor crowd = {
    .name = "crowd", .templates = &idle_template, .template_count = 1};

struct measurement bench_stop_children(uint32_t workers, uint32_t size)
{
    skua_pid pid;
    skua_runtime *runtime = bench_start(workers);
    expect_ok(skua_process_start_supervisor(runtime, &crowd, &pid), "start a supervisor");
    const skua_spawn_options options = {.type = &bench_idler_type, .supervisor = pid};
    for (uint32_t i = 0; i < size; i++) {
        expect_ok(skua_process_submit_with(runtime, &options, NULL), "start a child");
    }
    skua_payload report;
    expect_ok(skua_supervisor_report(runtime, pid, SKUA_FOREVER, &report), "report");
    expect_right(skua_report_count(&report) == size, "the number of children");
    skua_payload_drop(&report);
    const uint64_t begin = now_ns();
    expect_ok(skua_process_cancel(runtime, pid, 0), "cancel");
    expect_ok(skua_process_wait(runtime, pid, SKUA_FOREVER, NULL), "wait");
    const uint64_t elapsed = now_ns() - begin;
    bench_wait_until_empty(runtime, size + 2); /* one has asked for the report */
    struct measurement result = bench_finish(runtime, size, elapsed);
    result.value = (double)elapsed / 1e6;
    return result;
}
