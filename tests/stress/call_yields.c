/* SPDX-License-Identifier: MIT */
#include <time.h>

#include "count_of.h"
#include "yields.h"

/* ---- what the functions do ---- */

static atomic_u32 running_on_four;

void pause_in_kernel(uint64_t *random, uint32_t most_us)
{
    const struct timespec time = {.tv_nsec = random_below(random, most_us * SKUA_MICROSECOND)};
    (void)nanosleep(&time, NULL);
}

static int call_anywhere(skua_payload *input, skua_payload *result)
{
    const uint64_t token = stress_read_token(input);
    uint64_t random = random_mix(token);
    stress_operation();
    if (once_in(&random, 32)) {
        pause_in_kernel(&random, 300);
    }
    if (once_in(&random, 16)) {
        send_from_outside(&random);
    }
    if (once_in(&random, 16)) {
        *result = stress_make_token(&random, token); /* goes with an error as well */
        return STRESS_ERROR_HANDLER;
    }
    *result = once_in(&random, 4) ? skua_payload_take(input) : stress_make_token(&random, token);
    return 0;
}

static int call_on_four(skua_payload *input, skua_payload *result)
{
    const uint32_t others = fetch_add_relaxed(&running_on_four, 1); /* counter */
    stress_expect(others < 4, "other functions on the pool of four", others);
    stress_tally(TALLY_CALLS_RUN);
    const int error = call_anywhere(input, result);
    (void)fetch_sub_relaxed(&running_on_four, 1); /* counter */
    return error;
}

/* ---- pools ---- */

enum { POOL_FOUR, POOL_RETIRING, POOL_DIRECT, POOLS };

static skua_pool handles[POOLS];

void register_pools(uint64_t *random)
{
    const skua_blocking_pool pools[] = {
        {.name = "four", .thread_limit = 4, .queue_limit = 1 + random_below(random, 200)},
        {.name = "retiring", .thread_limit = 3, .idle_ns = 1 + random_below(random, 20000)},
        {.name = "direct", .thread_limit = 2, .direct = true},
    };
    for (size_t i = 0; i < COUNT_OF(pools); i++) {
        const int error = skua_blocking_register(current.runtime, &pools[i], &handles[i]);
        stress_expect(error == 0, "registering a pool", error);
    }
}

/* ---- calls ---- */

static int make_call(struct open_yield *yield, skua_context *ctx, uint64_t *random)
{
    const skua_payload token = stress_make_token(random, token_of(yield, ctx));
    stress_tally(TALLY_CALLS);
    return skua_yield_blocking(ctx, yield->tag, handles[POOL_FOUR], call_on_four, token,
                               yield->timeout);
}

static void try_unknown_pool(const struct open_yield *yield, skua_context *ctx, uint64_t *random)
{
    const skua_payload token = stress_make_token(random, token_of(yield, ctx));
    const int error = skua_yield_blocking(ctx, yield->tag, (skua_pool){POOLS + 1}, call_anywhere,
                                          token, yield->timeout);
    stress_expect(error == SKUA_E_UNKNOWN_POOL, "an unknown pool", error);
}

static int make_call_elsewhere(struct open_yield *yield, skua_context *ctx, uint64_t *random)
{
    const skua_pool pools[] = {{0}, handles[POOL_RETIRING], handles[POOL_DIRECT]};
    if (once_in(random, 4)) {
        try_unknown_pool(yield, ctx, random);
    }
    const skua_payload token = stress_make_token(random, token_of(yield, ctx));
    return skua_yield_blocking(ctx, yield->tag, pools[random_below(random, COUNT_OF(pools))],
                               call_anywhere, token, yield->timeout);
}

static bool elsewhere_may_end(const struct open_yield *yield, skua_context *ctx,
                              const skua_event *event)
{
    const int error = event->error;
    if (error == 0 || error == STRESS_ERROR_HANDLER) {
        check_result(yield, ctx, event);
        return true;
    }
    return error == SKUA_E_POOL_FULL;
}

static bool call_may_end(const struct open_yield *yield, skua_context *ctx, const skua_event *event)
{
    if (event->error == SKUA_E_POOL_FULL) {
        stress_tally(TALLY_CALLS_FULL);
    }
    return elsewhere_may_end(yield, ctx, event);
}

const struct yield_kind yield_call = {.name = "call", .make = make_call, .may_end = call_may_end};
const struct yield_kind yield_call_elsewhere = {
    .name = "call elsewhere", .make = make_call_elsewhere, .may_end = elsewhere_may_end};
