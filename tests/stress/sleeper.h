/* SPDX-License-Identifier: MIT */
/* Sleepers: processes that yield, wait and take back what they have yielded, and check how it ends.
 * Some of their steps block or stall. */
#ifndef SKUA_TESTS_STRESS_SLEEPER_H
#define SKUA_TESTS_STRESS_SLEEPER_H

#include "yields.h"

/* What the sleepers of a program yield. */
struct sleeper_plan {
    const struct yield_kind *const *kinds; /* each as often as it stands here */
    uint32_t kind_count;
    bool uses_channels;
};

extern const skua_process_type sleeper_type;

/* While no other thread runs. There are `stalls` steps that are too long, at most. */
void sleepers_begin(const struct sleeper_plan *plan, uint32_t stalls);

void submit_sleeper(uint64_t *random);

#endif
