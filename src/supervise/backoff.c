/* SPDX-License-Identifier: MIT */
#include "supervise/supervisor.h"

#define FIRST_NS  (10 * SKUA_MILLISECOND)
#define MAX_NS    (30 * SKUA_SECOND)
#define STABLE_NS (10 * SKUA_SECOND)

static uint64_t or_else(uint64_t value, uint64_t otherwise)
{
    return value != 0 ? value : otherwise;
}

uint64_t backoff_max(const skua_backoff *backoff)
{
    return or_else(backoff->max_ns, MAX_NS);
}

uint64_t backoff_delay(const skua_backoff *backoff, uint32_t failures, uint64_t random)
{
    const uint64_t max = backoff_max(backoff);
    uint64_t delay = or_else(backoff->first_ns, FIRST_NS);
    if (failures == 0) {
        return 0;
    }
    for (; failures > 1 && delay < max; failures--) {
        delay *= 2; /* max is less than half of what fits (specification.c) */
    }
    delay = delay < max ? delay : max;
    return delay - delay / 4 + random % (delay / 2 + 1);
}

uint64_t backoff_stable(const skua_backoff *backoff)
{
    return or_else(backoff->stable_ns, STABLE_NS);
}

int backoff_reserve(skua_context *ctx, const skua_budget *budget, struct spending *spent)
{
    void *memory;
    if (budget->restarts == 0) {
        return 0;
    }
    const int error = skua_own_alloc(ctx, budget->restarts * sizeof *spent->times, &memory);
    if (error == 0) {
        spent->times = memory;
    }
    return error;
}

bool backoff_spend(const skua_budget *budget, struct spending *spent, uint64_t now)
{
    const uint32_t most = budget->restarts;
    if (most == 0) {
        return true;
    }
    if (spent->count < most) {
        spent->times[spent->count++] = now;
        return true;
    }
    if (now - spent->times[spent->next] < budget->period_ns) {
        return false;
    }
    spent->times[spent->next] = now;
    spent->next = (spent->next + 1) % most;
    return true;
}
