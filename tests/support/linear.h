/* SPDX-License-Identifier: MIT */
/* Whether what clients of an object have seen can be explained by some order: linearizability. Each
 * operation takes effect at one moment between its invocation and its answer, and what it answers
 * is what a sequential model of the object answers then. One whose answer got lost takes effect at
 * some moment after its invocation, or never.
 *
 *   static bool add(void *state, const void *what, bool is_answered)
 *   {
 *       const struct sum *sum = what;
 *       uint32_t *total = state;
 *       *total += sum->added;
 *       return !is_answered || *total == sum->answer;
 *   }
 *
 *   const struct linear_model model = {.state_size = sizeof(uint32_t), .apply = add};
 *
 * Objects are independent of each other, so a store with many keys is checked key by key. The
 * search is that of Wing and Gong, which tries whatever may come next, and remembers as Lowe's does
 * which operations it has been through in which state. First it looks for an order without
 * operations that nobody has answered, then for one with few of them. */
#ifndef SKUA_TESTS_LINEAR_H
#define SKUA_TESTS_LINEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINEAR_MAX        128 /* operations of one object */
#define LINEAR_STATE_MAX  256 /* bytes */
#define LINEAR_UNANSWERED UINT64_MAX

/* How an object behaves that is used by one after the other. */
struct linear_model {
    /* The state begins as zeros. Two that mean the same have the same bytes. */
    size_t state_size;
    /* Carries out an operation; false if its answer is another one than that of the model. Then it
     * does not matter what becomes of the state. */
    bool (*apply)(void *state, const void *what, bool is_answered);
};

struct linear_operation {
    uint64_t invoked;  /* moments of a clock that never shows the same twice */
    uint64_t answered; /* LINEAR_UNANSWERED: nobody knows what became of it */
    /* The number of an earlier operation, from 1, without which it takes no effect: on a stream
     * nothing overtakes, and what follows something that got lost is lost. 0: there is none. */
    size_t after;
    const void *what; /* for the model */
};

enum linear_verdict {
    LINEAR_HOLDS,
    LINEAR_FAILS,
    LINEAR_TOO_HARD, /* there are too many orders; or too many operations, or too large a state */
};

struct linear_result {
    enum linear_verdict verdict;
    size_t tried; /* how many sets of operations, with the states after them, were looked at last */
    /* An order that explains the history; if there is none, the longest that begins well. */
    size_t count;
    size_t order[LINEAR_MAX]; /* indices */
};

/* Looks for an order. */
struct linear_result linear_check(const struct linear_model *model,
                                  const struct linear_operation *operations, size_t count);

#endif
