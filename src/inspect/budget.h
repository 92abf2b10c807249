/* SPDX-License-Identifier: MIT */
/* How much CPU the inspector's thread may use: a share of the elapsed time, saved up to a burst
 * while nobody asks. It counts the thread's CPU time, so accepting and closing connections count as
 * well as answers.
 *
 * And which client gets it: of those that ask, the one that has used least is answered next. So
 * clients that ask all the time get equal shares whatever a request costs, and a client that asks
 * for less than its share waits for no more than the answer in progress. */
#ifndef SKUA_INSPECT_BUDGET_H
#define SKUA_INSPECT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct budget {
    int64_t left_ns; /* negative: overdrawn */
    uint64_t now;    /* when it was last updated */
    uint64_t used;   /* the thread's CPU time then */
};

/* Clients at a time. */
#define CLIENTS_MAX 8

/* What each client has used. It stays with the client's place in the table when another connection
 * takes that, so that reconnecting gains nothing. Initially zero. */
struct shares {
    uint64_t used_ns[CLIENTS_MAX];
    uint64_t level_ns; /* what the client answered last had used: a lower bound for every client */
};

/* The CPU time of the calling thread. */
uint64_t budget_thread_ns(void);

/* For the inspector's thread itself, as is the next. */
void budget_init(struct budget *budget);

/* Charges what was used since the last call; returns for how many milliseconds the thread must
 * pause, or 0. A trace gets a larger share: whoever asks for one accepts its cost. */
int budget_wait_ms(struct budget *budget, bool traces);

/* Charges what others have done for this thread. */
void budget_charge(struct budget *budget, uint64_t ns);

/* As budget_wait_ms, with the times given. */
int budget_count(struct budget *budget, uint64_t now, uint64_t used, bool traces);

/* Which of the clients in `asking`, a non-empty bit set by number, is answered next. */
uint32_t shares_next(const struct shares *shares, uint32_t asking);

/* Charges the client that shares_next has chosen. */
void shares_charge(struct shares *shares, uint32_t client, uint64_t used_ns);

#endif
