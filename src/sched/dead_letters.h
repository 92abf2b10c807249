/* SPDX-License-Identifier: MIT */
/* Messages that were accepted and reach no step: counted by cause, and reported to the program if
 * it wants to know. */
#ifndef SKUA_SCHED_DEAD_LETTERS_H
#define SKUA_SCHED_DEAD_LETTERS_H

#include "sched/scheduler.h"

/* Borrows payload, which the caller drops. `worker` is the calling thread's or null. */
void dead_letters_report(struct scheduler *sched, struct worker *worker,
                         enum skua_dead_letter_cause cause, skua_pid from, skua_pid to,
                         const skua_payload *payload);

#endif
