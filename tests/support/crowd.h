/* SPDX-License-Identifier: MIT */
/* Actors in great number, and acts by which they wait for each other within a step. */
#ifndef SKUA_TESTS_CROWD_H
#define SKUA_TESTS_CROWD_H

#include "actor.h"

struct crowd {
    struct actor **actors;
    size_t count;
};

/* So many with this script, not started yet. */
struct crowd crowd_new(size_t count, struct script script);

/* Starts them, and waits for the end of each. */
void crowd_submit(struct crowd crowd);
void crowd_await_end(struct crowd crowd);

/* Starts them all in one step. */
struct act spawns_crowd(struct crowd crowd);

/* Adds one to a tally; stays in the step until it has come to this. */
struct act counts(struct tally *tally);
struct act awaits_count(struct tally *tally, uint64_t at_least);

#endif
