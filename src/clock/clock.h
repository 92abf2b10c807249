/* SPDX-License-Identifier: MIT */
/* The clock of a runtime: where its time comes from, and the yields of skua/clock.h. Timers
 * themselves are deadlines of calls: dispatch/deadlines.h, sched/timers.h. */
#ifndef SKUA_CLOCK_CLOCK_H
#define SKUA_CLOCK_CLOCK_H

#include "base/time_source.h"
#include "sched/scheduler.h"

/* The system's monotonic clock. */
void clock_init_monotonic(struct time_source *source);

/* Like skua_yield_sleep, but it is unlikely to last so long: like other timeouts, a long one costs
 * little if it is taken back. Completes with SKUA_E_TIMEOUT. */
NODISCARD int clock_yield_alarm(skua_context *ctx, uint64_t tag, uint64_t timeout_ns);

/* Makes the clock the scheduler's service for sleeping, timers and tickers. */
void clock_attach(struct scheduler *sched);

#endif
