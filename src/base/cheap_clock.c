/* SPDX-License-Identifier: MIT */
#include "base/cheap_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* A measurement over a longer time than this is left out: the machine may have been suspended
 * meanwhile. It also keeps the product below within 64 bits. */
#define MEASURE_MAX_NS UINT64_C(1000000000)

static bool counter_is_invariant(void)
{
#if defined(__x86_64__)
    const unsigned leaf = 0x80000007;
    const unsigned invariant = 1u << 8; /* in edx */
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return __get_cpuid(leaf, &eax, &ebx, &ecx, &edx) != 0 && (edx & invariant) != 0;
#elif defined(__aarch64__)
    return true; /* by definition */
#else
    return false;
#endif
}

void cheap_clock_init(struct cheap_clock *clock)
{
    *clock = (struct cheap_clock){.has_counter = counter_is_invariant()};
    if (clock->has_counter) {
        clock->ticks = cheap_clock_ticks();
        clock->ns = monotonic_ns();
    }
}

static void measure(struct cheap_clock *clock, uint64_t ticks, uint64_t ns)
{
    const uint64_t passed_ns = ns - clock->ns;
    if (ticks > clock->ticks && passed_ns <= MEASURE_MAX_NS) {
        clock->scale = (passed_ns << 32) / (ticks - clock->ticks);
        clock->span = clock->scale > 0 ? (CHEAP_CLOCK_SPAN_NS << 32) / clock->scale : 0;
    }
    clock->ticks = ticks;
    clock->ns = ns;
}

uint64_t cheap_clock_adjust(struct cheap_clock *clock, uint64_t ticks)
{
    const uint64_t now = monotonic_ns();
    if (clock->has_counter && cheap_clock_since(now, clock->ns) >= CHEAP_CLOCK_SPAN_NS / 2) {
        measure(clock, ticks, now);
    }
    return now;
}
