/* SPDX-License-Identifier: MIT */
/* Which workers sleep, which search, and why no worker sleeps while work is waiting.
 *
 * A worker is busy, searching or parked. New work wakes a parked worker only if none is searching
 * (a searcher will find it), and the last searcher that finds work checks for more, and wakes a
 * worker if there is, before it starts. The two sides meet like this; the order of the steps is the
 * algorithm:
 *
 *   publisher                                    parker
 *   P1 make the work visible (seq_cst RMW)       S1 set own bit in `sleepers`
 *   P2 load `searching`; not zero: done          S2 leave the search: `searching` - 1
 *   P3 clear one bit in `sleepers` (claims it)   S3 check every source of work again
 *   P4 `searching` + 1 for the claimed worker    S4 nothing: sleep until the token comes
 *   P5 hand it the token                            something: clear own bit, or, if it is gone,
 *                                                   take the token that is coming
 *
 * Why no wake-up is lost (INV-10): all accesses to the two words, P1 and the loads of S3 are
 * seq_cst, so there is one order of them all. If P2 reads zero but P3 finds no bit, every parker's
 * S1 comes later, hence its S3 too, and S3 sees the work. If P2 reads not zero, some worker's S2
 * (or its leaving the search with work, which checks again in the same way) comes later, and so
 * does its check. Weakening any one of P1, P2, S1, S2, S3 to acquire or release breaks it.
 *
 * The claim comes before `searching` is raised (P3, P4). The other way round loses wake-ups: a
 * publisher that raises `searching`, finds nobody asleep and lowers it again has in between told
 * another publisher that a searcher exists.
 *
 * INV-8: a token is given only by the thread that cleared the bit, so tokens and sleepers match.
 * INV-9: `searching` counts the workers that search or were claimed; each will leave or park. */
#ifndef SKUA_CONCURRENT_PARKING_H
#define SKUA_CONCURRENT_PARKING_H

#include <stdbool.h>

#include "base/atomic.h"
#include "base/compiler.h"

#define PARKING_WORKERS_MAX 320
#define PARKING_GROUP_BITS  64
#define PARKING_GROUPS      (PARKING_WORKERS_MAX / PARKING_GROUP_BITS)

/* Returned by parking_claim_sleeper_any when nobody sleeps any more. */
#define PARKING_NOBODY (-1)

struct parking {
    CACHE_ALIGNED atomic_u32 searching;
    CACHE_ALIGNED atomic_u64 sleepers[PARKING_GROUPS];
    uint32_t group_count; /* words of `sleepers` that are in use */
    uint32_t usual_count; /* that are awake when all are busy */
};

/* Workers from `usual_count` on are spare ones. */
void parking_init(struct parking *parking, uint32_t worker_count, uint32_t usual_count);

/* P2, and whether P3 would find a bit. */
static inline bool parking_may_claim(struct parking *parking)
{
    if (load_seq_cst(&parking->searching) != 0) { /* P2 */
        return false;
    }
    uint64_t sleepers = 0;
    for (uint32_t group = 0; group < parking->group_count; group++) {
        sleepers |= load_seq_cst(&parking->sleepers[group]);
    }
    return sleepers != 0;
}

/* P3 and P4, after P2. Returns the worker to hand the token to, or PARKING_NOBODY. It claims the
 * first sleeper, but `last_choice` (PARKING_NOBODY: none) only if there is no other. */
NODISCARD int parking_claim_sleeper_any(struct parking *parking, int last_choice);

/* P3 and P4 for one worker, whether or not anybody searches; false if it does not sleep. */
NODISCARD bool parking_claim_worker_any(struct parking *parking, uint32_t worker);

/* Becomes a searcher, unless there are enough: half of the workers that are awake. */
NODISCARD bool parking_start_search_owner(struct parking *parking);

/* Leaves the search with work. Returns true if this was the last searcher, which must then check
 * every source (S3) and wake a worker if it finds something. */
NODISCARD bool parking_end_search_owner(struct parking *parking);

/* S1 and S2. */
void parking_announce_owner(struct parking *parking, uint32_t worker, bool searching);

/* S4, when S3 found work. Returns true if the worker may go on, as a searcher; false if it was
 * claimed meanwhile and must take its token first, which makes it a searcher as well. */
NODISCARD bool parking_retract_owner(struct parking *parking, uint32_t worker);

/* How many workers have their bit set, and whether one has. */
uint32_t parking_asleep(struct parking *parking);
bool parking_is_asleep(struct parking *parking, uint32_t worker);

/* A worker's token: none, given, or awaited: on a futex, or in the poller, which the giver must
 * then interrupt. At most one is under way. */
struct park_token {
    CACHE_ALIGNED atomic_u32 word;
};

/* Sleeps until the token has been given, and takes it. */
void park_token_take_owner(struct park_token *token);

/* Gives the token. Only after claiming its worker. Returns true if the caller must interrupt the
 * poller, in which the worker waits for it. */
NODISCARD bool park_token_give_any(struct park_token *token);

/* Says that the worker waits in the poller from now on; false if the token has been given. */
NODISCARD bool park_token_start_polling_owner(struct park_token *token);

/* Says that it no longer does; false if the token has been given meanwhile. */
NODISCARD bool park_token_end_polling_owner(struct park_token *token);

/* Whether the token has been given; whether its worker sleeps on it, as a snapshot. */
bool park_token_is_given(struct park_token *token);
bool park_token_is_awaited(struct park_token *token);

#endif
