/* SPDX-License-Identifier: MIT */
/* Time as a command: sleeping, timers, tickers, deadlines.
 *
 * A timer belongs to the process whose step asked for it and ends with it; skua_step_cancel takes
 * it back by its tag. No timer fires early. Instants are rounded up to the resolution below; how
 * much later the process runs depends on how busy the workers are (docs/idle.md).
 *
 * A process that waits for a timer is run by any other event, too: only the completion with the
 * timer's tag says that the time has come. */
#ifndef SKUA_CLOCK_H
#define SKUA_CLOCK_H

#include <skua/error.h>
#include <skua/process.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* Timers that are due within one such span fire together, at its end: 65.536 microseconds. */
#define SKUA_CLOCK_RESOLUTION_NS (UINT64_C(1) << 16)

/* The longest duration: 292 years. A negative number, converted, is longer than that. */
#define SKUA_DURATION_MAX ((uint64_t)INT64_MAX)

/* Completes once `duration_ns` has passed since the end of this step.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_DURATION (more than SKUA_DURATION_MAX); SKUA_E_INVALID; SKUA_E_NO_MEMORY. */
SKUA_API SKUA_NODISCARD int skua_step_sleep(skua_step *out, uint64_t tag, uint64_t duration_ns);

/* Completes at an instant of skua_context_now's clock; at once if it has passed; for SKUA_FOREVER
 * never, until it is cancelled.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_INVALID; SKUA_E_NO_MEMORY. */
SKUA_API SKUA_NODISCARD int skua_step_timer(skua_step *out, uint64_t tag, uint64_t deadline_ns);

/* Brings SKUA_EVENT_TICK events with this tag until it is cancelled, the first one period after the
 * end of this step. The ticks stay on the grid that began there. A process that is slower than its
 * ticker has at most one tick waiting: skua_tick_count tells how many periods it stands for. The
 * completion comes when the ticker is cancelled.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_DURATION (zero, or more than SKUA_DURATION_MAX); SKUA_E_INVALID;
 *          SKUA_E_NO_MEMORY. A deadline for a ticker is refused with a completion of
 *          SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_step_ticker(skua_step *out, uint64_t tag, uint64_t period_ns);

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

/* The instant `timeout_ns` after skua_context_now. SKUA_FOREVER stays what it is (and so does -1,
 * which is the same number); any other negative number gives an instant that has passed.
 * Threads: worker (inside init or step).      Blocks: never. */
SKUA_API uint64_t skua_context_deadline(skua_context *ctx, uint64_t timeout_ns);

SKUA_END_DECLS

#endif
