/* SPDX-License-Identifier: MIT */
/* How much of a CPU the inspector's thread may use: a share of the time that passes, which adds up
 * to a burst while nobody asks. It goes by the CPU time of the thread, so that everything counts:
 * connections that come and go as well as answers.
 *
 * And who may use it: of the clients that ask, the one that has used least is answered next. So
 * clients that always ask get equal parts of the budget, whatever a request costs, and one that
 * asks for less than its part waits for no more than the answer that is being made. */
#ifndef SKUA_INSPECT_BUDGET_H
#define SKUA_INSPECT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct budget {
    int64_t left_ns; /* below zero: it has used more than it may */
    uint64_t now;    /* when it was last brought up to date */
    uint64_t used;   /* the thread's CPU time then */
};

/* Clients at a time. */
#define CLIENTS_MAX 8

/* What each client has used. It stays with the client's place when another connection takes that,
 * so that nobody gets more by leaving and coming back. Zeroed at first. */
struct shares {
    uint64_t used_ns[CLIENTS_MAX];
    uint64_t level_ns; /* what the one that was last answered had used: nobody has used less */
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

/* Which of the clients in the set `asking`, bits by their numbers, is answered next. The set is not
 * empty. */
uint32_t shares_next(const struct shares *shares, uint32_t asking);

/* The client, which shares_next has chosen, has used so much. */
void shares_charge(struct shares *shares, uint32_t client, uint64_t used_ns);

#endif
