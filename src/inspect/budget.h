/* SPDX-License-Identifier: MIT */
/* How much of a CPU the inspector's thread may use: a share of the time that passes, which adds up
 * to a burst while nobody asks. It goes by the CPU time of the thread, so that everything counts:
 * connections that come and go as well as answers. */
#ifndef SKUA_INSPECT_BUDGET_H
#define SKUA_INSPECT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct budget {
    int64_t left_ns; /* below zero: it has used more than it may */
    uint64_t now;    /* when it was last brought up to date */
    uint64_t used;   /* the thread's CPU time then */
};

/* The CPU time that the calling thread has used. */
uint64_t budget_thread_ns(void);

/* Called by the thread itself, as is the other. */
void budget_init(struct budget *budget);

/* Counts what was used since the last call; returns for how many milliseconds nothing more may be
 * used, 0 if something may. A trace is asked for by somebody who accepts that it costs more. */
int budget_wait_ms(struct budget *budget, bool traces);

/* The same with the times given: what the other does. */
int budget_count(struct budget *budget, uint64_t now, uint64_t used, bool traces);

#endif
