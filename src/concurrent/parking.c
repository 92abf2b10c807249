/* SPDX-License-Identifier: MIT */
/* All operations on `searching` and `sleepers` are seq_cst: MO-park, argued in parking.h. */
#include "concurrent/parking.h"

#include "base/assert.h"
#include "base/futex.h"

enum { TOKEN_NONE = 0, TOKEN_GIVEN = 1, TOKEN_AWAITED = 2, TOKEN_POLLING = 3 };

static uint64_t bit_of(uint32_t worker)
{
    return UINT64_C(1) << (worker % PARKING_GROUP_BITS);
}

static atomic_u64 *group_of(struct parking *parking, uint32_t worker)
{
    return &parking->sleepers[worker / PARKING_GROUP_BITS];
}

void parking_init(struct parking *parking, uint32_t worker_count, uint32_t usual_count)
{
    SKUA_ASSERT(usual_count <= worker_count && worker_count <= PARKING_WORKERS_MAX);
    store_relaxed(&parking->searching, 0); /* not shared yet */
    for (uint32_t group = 0; group < PARKING_GROUPS; group++) {
        store_relaxed(&parking->sleepers[group], 0); /* not shared yet */
    }
    parking->group_count = (worker_count + PARKING_GROUP_BITS - 1) / PARKING_GROUP_BITS;
    parking->usual_count = usual_count;
}

/* Claims the first sleeper of a group that is not in `except`. */
static int claim_in_group(struct parking *parking, uint32_t group, uint64_t except)
{
    uint64_t sleepers = load_seq_cst(&parking->sleepers[group]);
    while ((sleepers & ~except) != 0) {
        const uint64_t bit = UINT64_C(1) << __builtin_ctzll(sleepers & ~except);
        if (cas_seq_cst(&parking->sleepers[group], &sleepers, sleepers & ~bit)) { /* P3 */
            (void)fetch_add_seq_cst(&parking->searching, 1);                      /* P4 */
            return (int)(group * PARKING_GROUP_BITS) + __builtin_ctzll(bit);
        }
    }
    return PARKING_NOBODY;
}

static uint64_t bit_in_group(uint32_t group, int worker)
{
    const bool is_here = worker >= 0 && (uint32_t)worker / PARKING_GROUP_BITS == group;
    return is_here ? bit_of((uint32_t)worker) : 0;
}

int parking_claim_sleeper_any(struct parking *parking, int last_choice)
{
    for (uint32_t group = 0; group < parking->group_count; group++) {
        const int claimed = claim_in_group(parking, group, bit_in_group(group, last_choice));
        if (claimed != PARKING_NOBODY) {
            return claimed;
        }
    }
    if (last_choice >= 0 && parking_claim_worker_any(parking, (uint32_t)last_choice)) {
        return last_choice;
    }
    return PARKING_NOBODY;
}

uint32_t parking_asleep(struct parking *parking)
{
    uint32_t count = 0;
    for (uint32_t group = 0; group < parking->group_count; group++) {
        count += (uint32_t)__builtin_popcountll(load_seq_cst(&parking->sleepers[group]));
    }
    return count;
}

bool parking_is_asleep(struct parking *parking, uint32_t worker)
{
    return (load_seq_cst(group_of(parking, worker)) & bit_of(worker)) != 0;
}

bool parking_start_search_owner(struct parking *parking)
{
    /* A limit that concurrent searchers may overshoot; it saves CPU, nothing depends on it. */
    const uint32_t searching = load_seq_cst(&parking->searching);
    if (searching > 0 && 2 * searching + parking_asleep(parking) >= parking->usual_count) {
        return false;
    }
    (void)fetch_add_seq_cst(&parking->searching, 1);
    return true;
}

static uint32_t leave_search(struct parking *parking)
{
    const uint32_t before = fetch_sub_seq_cst(&parking->searching, 1);
    SKUA_ASSERT(before > 0); /* INV-9 */
    return before - 1;
}

bool parking_end_search_owner(struct parking *parking)
{
    return leave_search(parking) == 0;
}

void parking_announce_owner(struct parking *parking, uint32_t worker, bool searching)
{
    (void)fetch_or_seq_cst(group_of(parking, worker), bit_of(worker)); /* S1 */
    if (searching) {
        (void)leave_search(parking); /* S2 */
    }
}

bool parking_claim_worker_any(struct parking *parking, uint32_t worker)
{
    const uint64_t before = fetch_and_seq_cst(group_of(parking, worker), ~bit_of(worker)); /* P3 */
    if ((before & bit_of(worker)) == 0) {
        return false;
    }
    (void)fetch_add_seq_cst(&parking->searching, 1); /* P4 */
    return true;
}

bool parking_retract_owner(struct parking *parking, uint32_t worker)
{
    return parking_claim_worker_any(parking, worker); /* claims itself, so that nobody else can */
}

void park_token_take_owner(struct park_token *token)
{
    uint32_t seen = TOKEN_NONE;
    /* acq_rel MO-token: what the giver did before giving is visible after taking. */
    if (cas_acq_rel_relaxed(&token->word, &seen, TOKEN_AWAITED)) {
        do {
            futex_wait(&token->word, TOKEN_AWAITED);
        } while (load_acquire(&token->word) == TOKEN_AWAITED); /* MO-token */
    }
    const uint32_t given = exchange_acq_rel(&token->word, TOKEN_NONE); /* MO-token */
    SKUA_ASSERT(given == TOKEN_GIVEN);                                 /* INV-8 */
}

bool park_token_give_any(struct park_token *token)
{
    const uint32_t before = exchange_acq_rel(&token->word, TOKEN_GIVEN); /* MO-token */
    SKUA_ASSERT(before != TOKEN_GIVEN);                                  /* INV-8 */
    if (before == TOKEN_AWAITED) {
        futex_wake_one(&token->word);
    }
    return before == TOKEN_POLLING;
}

bool park_token_start_polling_owner(struct park_token *token)
{
    uint32_t seen = TOKEN_NONE;
    return cas_acq_rel_relaxed(&token->word, &seen, TOKEN_POLLING); /* MO-token */
}

bool park_token_end_polling_owner(struct park_token *token)
{
    uint32_t seen = TOKEN_POLLING;
    return cas_acq_rel_relaxed(&token->word, &seen, TOKEN_NONE); /* MO-token */
}

bool park_token_is_given(struct park_token *token)
{
    return load_acquire(&token->word) == TOKEN_GIVEN; /* MO-token */
}

bool park_token_is_awaited(struct park_token *token)
{
    return load_relaxed(&token->word) == TOKEN_AWAITED; /* a snapshot */
}
