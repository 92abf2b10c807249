/* SPDX-License-Identifier: MIT */
/* The threads of the current world's runtime, its workers and spare workers: how many there are,
 * how many run at once, and who sleeps. */
#ifndef SKUA_TESTS_WORKERS_H
#define SKUA_TESTS_WORKERS_H

#include "actor.h"

/* How many there are, spare ones included. */
uint32_t workers_count(void);

/* Until all sleep, or rest, but for the `busy` ones that are in a step. Any thread; a step counts
 * itself. */
void workers_await_asleep(uint32_t busy);

/* The same from a step, which is the only one. */
struct act awaits_others_asleep(void);

/* Has so many processes be in their steps at the same time; returns after their end. */
void workers_meet(uint32_t count);

/* Until there is no spare worker but those that rest, and no absence is left uncovered (INV-18). A
 * spare that is one too many rests when it has run something, so it is given something to run. */
void workers_let_spares_rest(void);

/* How many are at some place at once, and the most that ever were. Zeroed at first. Any thread. */
struct meter {
    atomic_uint inside;
    atomic_uint most;
    atomic_uint entries;
};

void meter_enter(struct meter *meter);
void meter_leave(struct meter *meter);

/* Enters and leaves. */
struct act measures(struct meter *meter);

#endif
