/* SPDX-License-Identifier: MIT */
/* Monotonic time. */
#ifndef SKUA_BASE_MONOTONIC_H
#define SKUA_BASE_MONOTONIC_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of what system calls return. */
static inline uint64_t monotonic_from_timespec(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

static inline uint64_t monotonic_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return monotonic_from_timespec(&now);
}

/* The instant `span` after `now`; UINT64_MAX, which never comes, on overflow. */
static inline uint64_t time_after(uint64_t now, uint64_t span)
{
    return span < UINT64_MAX - now ? now + span : UINT64_MAX;
}

/* The instant `timeout_ns` from now; UINT64_MAX, which never comes, on overflow. */
static inline uint64_t monotonic_deadline(uint64_t timeout_ns)
{
    return time_after(monotonic_ns(), timeout_ns);
}

/* Converts nanoseconds to what system calls expect. */
static inline struct timespec monotonic_timespec(uint64_t ns)
{
    return (struct timespec){
        .tv_sec = (time_t)(ns / 1000000000u),
        .tv_nsec = (long)(ns % 1000000000u),
    };
}

#endif
