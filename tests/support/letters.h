/* SPDX-License-Identifier: MIT */
/* Messages that wait for room, that are dropped, and that reach nobody.
 *
 *   letters_open((skua_runtime_config){0});
 *   struct actor *reader = bounded_start(SKUA_OVERFLOW_DROP_NEW, 3);
 *   actor_run(actor_new(ACTS(sends_each(reader, 5), finishes(0))));
 *   assert_dead(SKUA_DEAD_NEW, 4, 5); */
#ifndef SKUA_TESTS_LETTERS_H
#define SKUA_TESTS_LETTERS_H

#include <skua/stats.h>

#include "relations.h"

/* A dead letter, as the hook was told of it. */
struct letter {
    enum skua_dead_letter_cause cause;
    skua_pid to;
    skua_pid from;
    uint64_t value; /* the number in its payload */
};

/* Opens a world that notes dead letters; a simulated one with the seed 1, without faults. */
void letters_open(skua_runtime_config config);
void letters_open_sim(void);

/* How many dead letters there were, and the n-th. For when the world is at rest. */
size_t letters_count(void);
const struct letter *letters_at(size_t n);

/* That the dead letters with this cause have the numbers from `first` to `last`, in order, and that
 * as many were counted. */
void assert_dead(enum skua_dead_letter_cause cause, uint64_t first, uint64_t last);
void assert_none_dead(enum skua_dead_letter_cause cause);

/* An actor with this policy and mailbox limit; not started yet, and started. */
struct actor *bounded_new(enum skua_overflow policy, uint32_t limit, struct script script);
struct actor *bounded_start(enum skua_overflow policy, uint32_t limit);

/* Sends messages of type 0 with the numbers from 1 to `count`, in one step. Each has to be
 * accepted. */
struct act sends_each(struct actor *to, uint64_t count);

/* skua_yield_send; without a timeout unless within() or until() say so. */
struct act admits(uint64_t tag, struct actor *to, uint64_t number);
struct act admits_item(uint64_t tag, struct actor *to, struct tracked *item);

#endif
