/* SPDX-License-Identifier: MIT */
/* Time that never goes back. */
#ifndef SKUA_BASE_MONOTONIC_H
#define SKUA_BASE_MONOTONIC_H

#include <stdint.h>
#include <time.h>

static inline uint64_t monotonic_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The instant `timeout_ns` from now; UINT64_MAX if that is for ever. */
static inline uint64_t monotonic_deadline(uint64_t timeout_ns)
{
    const uint64_t now = monotonic_ns();
    return timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
}

#endif
