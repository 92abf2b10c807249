/* SPDX-License-Identifier: MIT */
#include "inspect/budget.h"

#include <time.h>

#include "base/monotonic.h"

/* One part in this many of a CPU. */
#define SHARE         50
#define SHARE_TRACING 5
#define BURST_NS      INT64_C(1000000000)
#define WAIT_MAX_MS   1000

uint64_t budget_thread_ns(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return monotonic_from_timespec(&used);
}

void budget_init(struct budget *budget)
{
    *budget =
        (struct budget){.left_ns = BURST_NS, .now = monotonic_ns(), .used = budget_thread_ns()};
}

int budget_count(struct budget *budget, uint64_t now, uint64_t used, bool traces)
{
    const int64_t share = traces ? SHARE_TRACING : SHARE;
    budget->left_ns += (int64_t)(now - budget->now) / share;
    budget->left_ns -= (int64_t)(used - budget->used);
    budget->now = now;
    budget->used = used;
    if (budget->left_ns > BURST_NS) {
        budget->left_ns = BURST_NS;
    }
    if (budget->left_ns >= 0) {
        return 0;
    }
    const int64_t wait_ms = -budget->left_ns * share / 1000000 + 1;
    return wait_ms < WAIT_MAX_MS ? (int)wait_ms : WAIT_MAX_MS;
}

void budget_charge(struct budget *budget, uint64_t ns)
{
    budget->left_ns -= (int64_t)ns;
}

int budget_wait_ms(struct budget *budget, bool traces)
{
    return budget_count(budget, monotonic_ns(), budget_thread_ns(), traces);
}

/* A client that asks nothing saves nothing up. */
static uint64_t used_by(const struct shares *shares, uint32_t client)
{
    const uint64_t used_ns = shares->used_ns[client];
    return used_ns > shares->level_ns ? used_ns : shares->level_ns;
}

uint32_t shares_next(const struct shares *shares, uint32_t asking)
{
    uint32_t next = CLIENTS_MAX;
    for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
        if ((asking >> i & 1) != 0 &&
            (next == CLIENTS_MAX || used_by(shares, i) < used_by(shares, next))) {
            next = i;
        }
    }
    return next;
}

void shares_charge(struct shares *shares, uint32_t client, uint64_t used_ns)
{
    shares->level_ns = used_by(shares, client);
    shares->used_ns[client] = shares->level_ns + used_ns;
}
