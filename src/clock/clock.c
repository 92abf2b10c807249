/* SPDX-License-Identifier: MIT */
#include "clock/clock.h"

#include <skua/clock.h>

#include "dispatch/call.h"
#include "dispatch/reserved.h"
#include "process/step_output.h"
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
    source->now = read_clock;
}

/* ---- in a step ---- */

static int yield_number(skua_step *out, enum reserved_command command, uint64_t tag,
                        uint64_t number)
{
    return skua_step_yield(out, reserved_id(command), tag, skua_payload_u64(0, number));
}

int skua_step_sleep(skua_step *out, uint64_t tag, uint64_t duration_ns)
{
    if (duration_ns > SKUA_DURATION_MAX) {
        step_output_refuse(out);
        return SKUA_E_DURATION;
    }
    return yield_number(out, RESERVED_SLEEP, tag, duration_ns);
}

int skua_step_timer(skua_step *out, uint64_t tag, uint64_t deadline_ns)
{
    return yield_number(out, RESERVED_TIMER, tag, deadline_ns);
}

int skua_step_ticker(skua_step *out, uint64_t tag, uint64_t period_ns)
{
    if (period_ns == 0 || period_ns > SKUA_DURATION_MAX) {
        step_output_refuse(out);
        return SKUA_E_DURATION;
    }
    return yield_number(out, RESERVED_TICKER, tag, period_ns);
}

uint64_t skua_context_deadline(skua_context *ctx, uint64_t timeout_ns)
{
    const uint64_t now = skua_context_now(ctx);
    if (timeout_ns > SKUA_DURATION_MAX) {
        return timeout_ns == SKUA_FOREVER ? SKUA_FOREVER : now; /* a negative timeout has passed */
    }
    return time_after(now, timeout_ns);
}

/* ---- after the step: the handlers ---- */

/* The call ends at `when`, unless its own deadline comes first: that is armed already, and ends it
 * with SKUA_E_TIMEOUT. */
static int end_at(struct scheduler *sched, const skua_command *command, uint64_t when, uint64_t now)
{
    struct worker *worker = worker_here(sched);
    const uint32_t call = call_index(command->completion);
    if (when <= now) {
        return 0;
    }
    if (command->deadline == SKUA_FOREVER) {
        timers_arm(worker, call, &(struct timing){.now = now, .when = when});
    } else if (when < command->deadline) {
        timers_move(worker, call, when, 0);
    }
    return SKUA_PENDING;
}

static int sleep_for(void *arg, skua_command *command, skua_payload *result)
{
    (void)result;
    struct scheduler *sched = arg;
    uint64_t duration;
    if (!reserved_number(&command->input, &duration) || duration > SKUA_DURATION_MAX) {
        return SKUA_E_INVALID;
    }
    const uint64_t now = time_now(sched->time);
    return end_at(sched, command, time_after(now, duration), now);
}

static int wait_until(void *arg, skua_command *command, skua_payload *result)
{
    (void)result;
    struct scheduler *sched = arg;
    uint64_t deadline;
    if (!reserved_number(&command->input, &deadline)) {
        return SKUA_E_INVALID;
    }
    return end_at(sched, command, deadline, time_now(sched->time));
}

static int tick(void *arg, skua_command *command, skua_payload *result)
{
    (void)result;
    struct scheduler *sched = arg;
    uint64_t period;
    if (!reserved_number(&command->input, &period) || period == 0 || period > SKUA_DURATION_MAX ||
        command->deadline != SKUA_FOREVER) {
        return SKUA_E_INVALID;
    }
    const uint64_t now = time_now(sched->time);
    timers_arm(worker_here(sched), call_index(command->completion),
               &(struct timing){.now = now, .when = time_after(now, period), .period = period});
    return SKUA_PENDING;
}

int clock_register(struct registry *registry, struct scheduler *sched)
{
    static const struct {
        enum reserved_command id;
        const char *name;
        skua_handler_fn *run;
    } commands[] = {
        {RESERVED_SLEEP, "sleep", sleep_for},
        {RESERVED_TIMER, "timer", wait_until},
        {RESERVED_TICKER, "ticker", tick},
    };
    int error = 0;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0] && error == 0; i++) {
        error = registry_add_locked(
            registry, reserved_id(commands[i].id),
            &(skua_handler){.name = commands[i].name, .run = commands[i].run, .arg = sched});
    }
    return error;
}
