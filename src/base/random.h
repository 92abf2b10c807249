/* SPDX-License-Identifier: MIT */
/* Random numbers from counters: the n-th number of a stream is a function of the stream's key and
 * n alone, so nothing needs to be stored per process and a run can be repeated. */
#ifndef SKUA_BASE_RANDOM_H
#define SKUA_BASE_RANDOM_H

#include <stdint.h>

#define RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Spreads 64 bits over 64 bits, one to one (the finalizer of SplitMix64, Steele et al. 2014). */
static inline uint64_t random_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The next number of a SplitMix64 stream. */
static inline uint64_t random_next(uint64_t *state)
{
    *state += RANDOM_STEP;
    return random_mix(*state);
}

/* A number below `bound`, which is not zero; the bias is below bound / 2^32. */
static inline uint32_t random_below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)(((random_next(state) >> 32) * bound) >> 32);
}

#endif
