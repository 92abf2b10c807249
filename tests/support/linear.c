/* SPDX-License-Identifier: MIT */
#include "linear.h"

#include <stdlib.h>
#include <string.h>

#define TRIED_MAX ((size_t)1 << 18)
#define SLOTS     (2 * TRIED_MAX)
#define WORDS     (LINEAR_MAX / 64)

/* Operations that have taken effect, and the state after them. */
struct point {
    uint64_t done[WORDS];
    unsigned char state[LINEAR_STATE_MAX];
};

struct search {
    const struct linear_model *model;
    const struct linear_operation *operations;
    size_t count;
    struct point *tried;
    size_t room;
    uint32_t *slots; /* numbers of `tried`, from 1, found by their hash */
    size_t order[LINEAR_MAX];
    size_t lost_most; /* operations without an answer that may have taken effect */
    bool is_cut;      /* with more of them there would be other orders */
    struct linear_result result;
};

/* ---- sets of operations ---- */

static bool is_done(const struct point *point, size_t at)
{
    return (point->done[at / 64] >> at % 64 & 1) != 0;
}

static void set_done(struct point *point, size_t at)
{
    point->done[at / 64] |= UINT64_C(1) << at % 64;
}

static bool is_answered(const struct linear_operation *operation)
{
    return operation->answered != LINEAR_UNANSWERED;
}

/* ---- what was tried ---- */

static uint64_t hash_of(const struct point *point)
{
    uint64_t words[sizeof *point / sizeof(uint64_t)];
    uint64_t hash = 0;
    memcpy(words, point, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

static void *need(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static void keep(struct search *search, const struct point *point)
{
    if (search->result.tried == search->room) {
        search->room = search->room > 0 ? 2 * search->room : 256;
        search->tried = need(realloc(search->tried, search->room * sizeof *search->tried));
    }
    search->tried[search->result.tried++] = *point;
}

/* Remembers a point; false if it was tried before, or there are too many. */
static bool is_new(struct search *search, const struct point *point)
{
    size_t at = hash_of(point) % SLOTS;
    for (; search->slots[at] != 0; at = (at + 1) % SLOTS) {
        if (memcmp(&search->tried[search->slots[at] - 1], point, sizeof *point) == 0) {
            return false;
        }
    }
    if (search->result.tried == TRIED_MAX) {
        search->result.verdict = LINEAR_TOO_HARD;
        return false;
    }
    keep(search, point);
    search->slots[at] = (uint32_t)search->result.tried;
    return true;
}

/* ---- the search ---- */

/* What was invoked after this moment has to wait for an answer that came before. */
static uint64_t first_answer(const struct search *search, const struct point *point)
{
    uint64_t first = LINEAR_UNANSWERED;
    for (size_t i = 0; i < search->count; i++) {
        const uint64_t answered = search->operations[i].answered;
        first = !is_done(point, i) && answered < first ? answered : first;
    }
    return first;
}

static bool may_be_next(const struct search *search, const struct point *point, size_t at,
                        uint64_t until)
{
    const struct linear_operation *operation = &search->operations[at];
    const bool is_free = operation->after == 0 || is_done(point, operation->after - 1);
    return is_free && !is_done(point, at) && operation->invoked < until;
}

static void note_longest(struct search *search, size_t depth)
{
    if (depth > search->result.count) {
        search->result.count = depth;
        memcpy(search->result.order, search->order, depth * sizeof search->order[0]);
    }
}

/* Whether all answers that are missing at this point can still be explained; `lost` operations
 * without an answer have taken effect. */
static bool goes_on(struct search *search, const struct point *point, size_t depth, size_t missing,
                    size_t lost)
{
    note_longest(search, depth);
    if (missing == 0) {
        return true;
    }
    if (!is_new(search, point)) {
        return false;
    }
    const uint64_t until = first_answer(search, point);
    for (size_t i = 0; i < search->count; i++) {
        const struct linear_operation *operation = &search->operations[i];
        const bool counts = is_answered(operation);
        struct point next = *point;
        if (!may_be_next(search, point, i, until) ||
            !search->model->apply(next.state, operation->what, counts)) {
            continue;
        }
        if (!counts && lost == search->lost_most) {
            search->is_cut = true;
            continue;
        }
        set_done(&next, i);
        search->order[depth] = i;
        if (goes_on(search, &next, depth + 1, missing - counts, lost + !counts)) {
            return true;
        }
    }
    return false;
}

/* Begins with few operations of which nobody has heard: few are needed mostly, and each that may
 * have taken effect or not doubles what there is to try. */
static bool finds_order(struct search *search, size_t missing)
{
    const struct point begin = {.done = {0}};
    for (search->lost_most = 0;; search->lost_most = 2 * search->lost_most + 1) {
        search->is_cut = false;
        if (goes_on(search, &begin, 0, missing, 0)) {
            return true;
        }
        if (!search->is_cut || search->result.verdict == LINEAR_TOO_HARD) {
            return false;
        }
        memset(search->slots, 0, SLOTS * sizeof *search->slots);
        search->result.tried = 0;
    }
}

struct linear_result linear_check(const struct linear_model *model,
                                  const struct linear_operation *operations, size_t count)
{
    struct search search = {.model = model, .operations = operations, .count = count};
    size_t missing = 0;
    search.result.verdict = LINEAR_FAILS;
    if (count > LINEAR_MAX || model->state_size > LINEAR_STATE_MAX) {
        search.result.verdict = LINEAR_TOO_HARD;
        return search.result;
    }
    for (size_t i = 0; i < count; i++) {
        missing += is_answered(&operations[i]);
    }
    search.slots = need(calloc(SLOTS, sizeof *search.slots));
    if (finds_order(&search, missing)) {
        search.result.verdict = LINEAR_HOLDS;
    }
    free(search.slots);
    free(search.tried);
    return search.result;
}
