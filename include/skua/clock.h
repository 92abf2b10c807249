/* SPDX-License-Identifier: MIT */
/* Time: sleeping, timers, tickers.
 *
 * A timer belongs to the process that asked for it and ends with it; skua_yield_cancel takes it
 * back by its tag. No timer fires early. Instants are rounded up to the resolution below, timeouts
 * of a second or more by a millisecond; how much later the process runs depends on how busy the
 * workers are (docs/idle.md).
 *
 * Any other event runs a sleeping process, too: only the completion with the timer's tag says that
 * the time has come. */
#ifndef SKUA_CLOCK_H
#define SKUA_CLOCK_H

#include <skua/error.h>
#include <skua/process.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* Timers that are due within one such span fire together, at its end: 65.536 microseconds. */
#define SKUA_CLOCK_RESOLUTION_NS (UINT64_C(1) << 16)

/* Completes once `duration_ns` has passed since the end of this step. When there is no memory, a
 * small reserve lets some processes sleep all the same, and try again later.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_DURATION (more than SKUA_DURATION_MAX); SKUA_E_NO_MEMORY; SKUA_E_DONE;
 *          SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_yield_sleep(skua_context *ctx, uint64_t tag, uint64_t duration_ns);

/* Completes at an instant of skua_now's clock; at once if that has passed; for SKUA_FOREVER never,
 * until it is taken back.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_NO_MEMORY; SKUA_E_DONE; SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_yield_timer(skua_context *ctx, uint64_t tag, uint64_t instant_ns);

/* Brings SKUA_EVENT_TICK events with this tag until it is taken back, the first one period after
 * the end of this step. Ticks stay on the grid that began there. A process that is slower than its
 * ticker has at most one tick waiting: skua_tick_count says how many periods it stands for. The
 * completion comes when the ticker is taken back.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_DURATION (zero, or more than SKUA_DURATION_MAX); SKUA_E_NO_MEMORY;
 *          SKUA_E_DONE; SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_yield_ticker(skua_context *ctx, uint64_t tag, uint64_t period_ns);

/* How many periods a tick stands for: 1, or more if the process or its worker was late. */
static inline uint64_t skua_tick_count(const skua_event *tick)
{
    return tick->payload.as.words[0];
}

/* The last instant of the grid that the tick stands for. */
static inline uint64_t skua_tick_time(const skua_event *tick)
{
    return tick->payload.as.words[1];
}

SKUA_END_DECLS

#endif
