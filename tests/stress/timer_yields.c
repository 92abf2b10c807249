/* SPDX-License-Identifier: MIT */
#include "yields.h"

/* Mostly short; now and then nothing at all, or more than a round lasts. */
static uint64_t random_duration(uint64_t *random)
{
    switch (random_below(random, 16)) {
    case 0:
        return 0;
    case 1:
        return 3600 * SKUA_SECOND;
    case 2:
        return random_below(random, 20 * SKUA_MILLISECOND);
    default:
        return random_below(random, SKUA_MILLISECOND);
    }
}

/* Mostly short; sometimes so long that it lies beside the wheel (dispatch/deadlines.h). */
uint64_t random_yield_timeout(uint64_t *random)
{
    if (once_in(random, 32)) {
        return SKUA_FOREVER;
    }
    return random_duration(random) + (once_in(random, 4) ? SKUA_SECOND : 0);
}

/* Mostly soon; sometimes long ago, in an hour or never. */
static uint64_t random_instant(skua_context *ctx, uint64_t *random)
{
    switch (random_below(random, 32)) {
    case 0:
        return SKUA_FOREVER;
    case 1:
        return skua_now(ctx) - random_below(random, SKUA_MILLISECOND);
    case 2:
        return 0;
    default:
        return skua_now(ctx) + random_duration(random);
    }
}

/* ---- sleeps and timers ---- */

static int make_sleep(struct open_yield *yield, skua_context *ctx, uint64_t *random)
{
    const uint64_t duration = random_duration(random);
    yield->due = skua_now(ctx) + duration;
    return skua_yield_sleep(ctx, yield->tag, duration);
}

static int make_timer(struct open_yield *yield, skua_context *ctx, uint64_t *random)
{
    yield->due = random_instant(ctx, random);
    return skua_yield_timer(ctx, yield->tag, yield->due);
}

static bool timer_may_end(const struct open_yield *yield, skua_context *ctx,
                          const skua_event *event)
{
    const uint64_t now = skua_now(ctx);
    stress_expect(now >= yield->due && yield->due != SKUA_FOREVER, "a timer is early, by ns",
                  (int64_t)(yield->due - now));
    stress_tally(TALLY_FIRED);
    return event->error == 0;
}

const struct yield_kind yield_sleep = {.name = "sleep",
                                       .make = make_sleep,
                                       .may_end = timer_may_end,
                                       .is_timer = true,
                                       .has_no_timeout = true};
const struct yield_kind yield_timer = {.name = "timer",
                                       .make = make_timer,
                                       .may_end = timer_may_end,
                                       .is_timer = true,
                                       .has_no_timeout = true};

/* ---- tickers ---- */

static int make_ticker(struct open_yield *yield, skua_context *ctx, uint64_t *random)
{
    yield->due = skua_now(ctx);
    yield->period = 1 + random_duration(random);
    yield->is_endless = true;
    return skua_yield_ticker(ctx, yield->tag, yield->period);
}

void check_tick(struct open_yield *yield, skua_context *ctx, const skua_event *event)
{
    const uint64_t now = skua_now(ctx);
    const uint64_t time = skua_tick_time(event);
    const uint64_t periods = skua_tick_count(event);
    const uint64_t span = periods * yield->period;
    stress_expect(yield->kind == &yield_ticker && event->error == 0, "a tick of no ticker",
                  event->error);
    stress_expect(!yield->is_cancelled, "a tick of a cancelled ticker", (int64_t)periods);
    stress_expect(time <= now, "a tick is early, by ns", (int64_t)(time - now));
    /* The grid begins when the handler is called, after the step that asked for it. */
    stress_expect(yield->has_ticked ? time - yield->due == span : time - yield->due >= span,
                  "a tick is beside its grid, by ns", (int64_t)(time - yield->due - span));
    yield->due = time;
    yield->has_ticked = true;
    stress_tally(TALLY_TICKS);
}

/* ---- commands ---- */

enum command { COMMAND_LATER = 1, COMMAND_NEVER = 300 };

static int handle_later(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    const struct stress_job job = {.completion = command->completion,
                                   .token = stress_read_token(&command->input)};
    if (stress_defer(&job)) {
        return SKUA_PENDING;
    }
    *result = skua_payload_take(&command->input);
    return 0;
}

static int handle_never(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return SKUA_PENDING;
}

void register_commands(void)
{
    stress_register(COMMAND_LATER, handle_later, NULL);
    stress_register(COMMAND_NEVER, handle_never, NULL);
}

static int make_later(struct open_yield *yield, skua_context *ctx, uint64_t *random)
{
    const skua_payload token = stress_make_token(random, token_of(yield, ctx));
    return skua_yield(ctx, yield->tag, COMMAND_LATER, token, yield->timeout);
}

static int make_never(struct open_yield *yield, skua_context *ctx, uint64_t *random)
{
    const skua_payload token = stress_make_token(random, token_of(yield, ctx));
    yield->is_endless = true;
    return skua_yield(ctx, yield->tag, COMMAND_NEVER, token, yield->timeout);
}

static bool later_may_end(const struct open_yield *yield, skua_context *ctx,
                          const skua_event *event)
{
    check_result(yield, ctx, event);
    return event->error == 0;
}

static bool never_may_end(const struct open_yield *yield, skua_context *ctx,
                          const skua_event *event)
{
    (void)yield;
    (void)ctx;
    (void)event;
    return false;
}

const struct yield_kind yield_ticker = {
    .name = "ticker", .make = make_ticker, .may_end = never_may_end, .has_no_timeout = true};
const struct yield_kind yield_later = {
    .name = "later", .make = make_later, .may_end = later_may_end};
const struct yield_kind yield_never = {
    .name = "never", .make = make_never, .may_end = never_may_end};
