/* SPDX-License-Identifier: MIT */
/* Monotonic time for decisions that are made millions of times a second: the processor's counter,
 * which takes 10 ns to read, in place of clock_gettime, which takes 26.
 *
 * A reading is the last one of the system's clock plus what the counter has advanced since. The
 * system's clock is read again every CHEAP_CLOCK_SPAN_NS, which also measures how fast the counter
 * runs. So errors do not add up: a reading is off by a few parts per million of a millisecond, and
 * it may be earlier than the one before by as much (use cheap_clock_since). A counter that jumps,
 * as when a virtual machine moves to another host, is wrong for one span at most, and not used
 * until it runs evenly again.
 *
 * Where the counter does not run at a constant rate in all of the processor's power states, the
 * system's clock is read each time. One thread at a time uses a clock. */
#ifndef SKUA_BASE_CHEAP_CLOCK_H
#define SKUA_BASE_CHEAP_CLOCK_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/monotonic.h"

#define CHEAP_CLOCK_SPAN_NS UINT64_C(1000000)

/* A reading is behind the system's clock by less than this. The counter is used for one span after
 * the system's clock was read. It can only lose what it has counted in that span: if it goes back
 * further, the clock is read. The span is as long as a rate says that two measurements agree on
 * within an eighth, so it may be a little more than its name says. */
#define CHEAP_CLOCK_ERROR_NS (CHEAP_CLOCK_SPAN_NS + CHEAP_CLOCK_SPAN_NS / 4)

struct cheap_clock {
    uint64_t ticks; /* the counter, and */
    uint64_t ns;    /* the system's clock, when both were last read */
    uint64_t span;  /* so many ticks later both are read again; 0: each time */
    uint64_t scale; /* nanoseconds per tick, in units of 2^-32 */
    bool has_counter;
};

static inline uint64_t cheap_clock_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0;
#endif
}

void cheap_clock_init(struct cheap_clock *clock);

/* Reads the system's clock, and measures the counter by it. */
uint64_t cheap_clock_adjust(struct cheap_clock *clock, uint64_t ticks);

static inline uint64_t cheap_clock_now(struct cheap_clock *clock)
{
    const uint64_t ticks = cheap_clock_ticks();
    const uint64_t passed = ticks - clock->ticks; /* a huge number if the counter went back */
    if (UNLIKELY(passed >= clock->span)) {
        return cheap_clock_adjust(clock, ticks);
    }
    return clock->ns + (passed * clock->scale >> 32);
}

/* The time from one reading to another; 0 if the clock was a little behind at the second. */
static inline uint64_t cheap_clock_since(uint64_t now, uint64_t then)
{
    return now > then ? now - then : 0;
}

#endif
