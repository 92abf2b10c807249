/* SPDX-License-Identifier: MIT */
#include "clock/clock.h"

#include <skua/clock.h>

#include "sched/context.h"
#include "sched/timers.h"
#include "sched/worker.h"

/* NOLINTNEXTLINE(misc-redundant-expression): that the two agree is the point. */
_Static_assert(SKUA_CLOCK_RESOLUTION_NS == UINT64_C(1) << WHEEL_TICK_SHIFT, "as documented");

static uint64_t read_clock(struct time_source *source)
{
    (void)source;
    return monotonic_ns();
}

void clock_init_monotonic(struct time_source *source)
{
    *source = (struct time_source){.now = read_clock, .is_monotonic = true};
}

/* ---- in a step ---- */

/* Sleeping is what a step does that has met SKUA_E_NO_MEMORY: it may draw on the reserve. */
static int add_yield(skua_context *ctx, uint64_t tag, enum service_id id, struct yield **yield)
{
    int error;
    struct step_output *out = context_output(ctx, &error);
    return LIKELY(error == 0) ? step_output_yield_reserved(out, tag, service_command(id), yield)
                              : error;
}

int skua_yield_sleep(skua_context *ctx, uint64_t tag, uint64_t duration_ns)
{
    struct yield *yield;
    if (UNLIKELY(duration_ns > SKUA_DURATION_MAX)) {
        return SKUA_E_DURATION;
    }
    const int error = add_yield(ctx, tag, SERVICE_SLEEP, &yield);
    if (LIKELY(error == 0)) {
        yield->as.duration = duration_ns;
    }
    return error;
}

int clock_yield_alarm(skua_context *ctx, uint64_t tag, uint64_t timeout_ns)
{
    struct yield *yield;
    if (UNLIKELY(timeout_ns > SKUA_DURATION_MAX)) {
        return SKUA_E_DURATION;
    }
    const int error = add_yield(ctx, tag, SERVICE_SLEEP, &yield);
    if (LIKELY(error == 0)) {
        yield->as.duration = SKUA_FOREVER;
        yield->timeout = timeout_ns;
    }
    return error;
}

int skua_yield_timer(skua_context *ctx, uint64_t tag, uint64_t instant_ns)
{
    struct yield *yield;
    const int error = add_yield(ctx, tag, SERVICE_TIMER, &yield);
    if (LIKELY(error == 0)) {
        yield->as.instant = instant_ns;
    }
    return error;
}

int skua_yield_ticker(skua_context *ctx, uint64_t tag, uint64_t period_ns)
{
    struct yield *yield;
    if (period_ns == 0 || period_ns > SKUA_DURATION_MAX) {
        return SKUA_E_DURATION;
    }
    const int error = add_yield(ctx, tag, SERVICE_TICKER, &yield);
    if (LIKELY(error == 0)) {
        yield->as.duration = period_ns;
    }
    return error;
}

/* ---- after the step ---- */

static int end_at(struct worker *worker, const struct yield *yield, uint64_t when, uint64_t now)
{
    if (when <= now) {
        return 0;
    }
    timers_arm(worker, yield->node, &(struct timing){.now = now, .when = when});
    return SKUA_PENDING;
}

static int start_sleep(void *arg, struct worker *worker, const struct yield *yield,
                       skua_completion completion, skua_payload *result)
{
    (void)arg;
    (void)completion;
    (void)result;
    if (yield->as.duration == SKUA_FOREVER) {
        return SKUA_PENDING; /* an alarm: its timeout ends it */
    }
    const uint64_t now = time_now(worker->sched->time);
    return end_at(worker, yield, time_after(now, yield->as.duration), now);
}

static int start_timer(void *arg, struct worker *worker, const struct yield *yield,
                       skua_completion completion, skua_payload *result)
{
    (void)arg;
    (void)completion;
    (void)result;
    return end_at(worker, yield, yield->as.instant, time_now(worker->sched->time));
}

static int start_ticker(void *arg, struct worker *worker, const struct yield *yield,
                        skua_completion completion, skua_payload *result)
{
    (void)arg;
    (void)completion;
    (void)result;
    const uint64_t now = time_now(worker->sched->time);
    const uint64_t period = yield->as.duration;
    timers_arm(worker, yield->node,
               &(struct timing){.now = now, .when = time_after(now, period), .period = period});
    return SKUA_PENDING;
}

void clock_attach(struct scheduler *sched)
{
    sched->services[SERVICE_SLEEP] = (struct service){.name = "sleep", .start = start_sleep};
    sched->services[SERVICE_TIMER] = (struct service){.name = "timer", .start = start_timer};
    sched->services[SERVICE_TICKER] = (struct service){.name = "ticker", .start = start_ticker};
}
