/* SPDX-License-Identifier: MIT */
#include "base/cheap_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* A measurement over a longer time than this is left out. It keeps the product below within 64
 * bits. */
#define MEASURE_MAX_NS UINT64_C(1000000000)

/* The two clocks are read at the same moment if reading them took no more ticks than this. */
#define MOMENT_TICKS UINT64_C(2000)

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

/* Two measurements in a row have to agree before the counter is trusted: it may have jumped, or
 * gone on while the machine, and with it the system's clock, was suspended. */
static void measure(struct cheap_clock *clock, uint64_t ticks, uint64_t ns)
{
    const uint64_t passed_ns = ns - clock->ns;
    if (ticks > clock->ticks && passed_ns <= MEASURE_MAX_NS) {
        const uint64_t scale = (passed_ns << 32) / (ticks - clock->ticks);
        const uint64_t change = scale > clock->scale ? scale - clock->scale : clock->scale - scale;
        const bool agrees = scale > 0 && change <= clock->scale / 8;
        clock->scale = scale;
        clock->span = agrees ? (CHEAP_CLOCK_SPAN_NS << 32) / scale : 0;
    }
    clock->ticks = ticks;
    clock->ns = ns;
}

uint64_t cheap_clock_adjust(struct cheap_clock *clock, uint64_t ticks)
{
    const uint64_t now = monotonic_ns();
    const bool is_time = cheap_clock_since(now, clock->ns) >= CHEAP_CLOCK_SPAN_NS / 2;
    if (clock->has_counter && is_time && cheap_clock_ticks() - ticks <= MOMENT_TICKS) {
        measure(clock, ticks, now);
    }
    return now;
}
