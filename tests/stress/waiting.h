/* SPDX-License-Identifier: MIT */
/* Stress of all that a process can wait for: time, commands, descriptors, blocking calls. Sleepers
 * yield at random, take back what they have yielded, fail, finish and are ended by each other and
 * by threads from outside, which also complete the commands, write to the descriptors and close
 * them. Some steps block or stall, so that spare workers come and go. Besides what holds in every
 * round (stress_round.h):
 *  - Each yield has exactly one completion, with an error that it can have.
 *  - Nothing fires early; tickers keep to their grid, and are silent once they are cancelled.
 *  - Who waits for a descriptor of his own is told of it only if it is ready, and never misses it;
 *    a descriptor closed properly ends all waits for it.
 *  - A pool never runs more functions than it has threads.
 *  - The poller is asked for as long as somebody waits for a descriptor, and not longer. */
#ifndef SKUA_TESTS_STRESS_WAITING_H
#define SKUA_TESTS_STRESS_WAITING_H

#include "count_of.h"
#include "sleeper.h"

struct waiting {
    struct sleeper_plan sleepers;
    uint64_t ops; /* by default */
    /* Calls on the pool of four that a run makes at least, however slow the build is. */
    uint64_t calls_min;
};

/* What main does. */
NODISCARD int waiting_main(int argc, char **argv, const struct waiting *waiting);

#endif
