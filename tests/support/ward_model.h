/* SPDX-License-Identifier: MIT */
/* A model of what a supervisor of wards may do. It knows the promises of skua/supervisor.h and
 * nothing of the code, and fails the test at the first thing that they do not allow. It looks at
 *
 *   R  the supervisor has noticed that a child must be started again, and says so in the log, with
 *      the pause before that
 *   S  it says that another must be with it, or must end with it
 *   G  it gives up
 *   +  a child starts       r  is ready       c  is asked to end       -  has ended
 *
 * The supervisor hears of an end some time after it, so the model takes an end for what it leads to
 * when the supervisor says so.
 *
 *   wards_open();
 *   ward_model_open(&specification); // its children are a, b, ..., those of its template z, y, ...
 *   world_open_with((skua_runtime_config){.sim = &sim, .on_log = ward_model_read_log}); */
#ifndef SKUA_TESTS_WARD_MODEL_H
#define SKUA_TESTS_WARD_MODEL_H

#include "wards.h"

/* How late a supervisor may hear of what has happened. */
#define WARD_MODEL_SLACK_NS (25 * SKUA_MILLISECOND)

/* Begins, with a supervisor called "top". The specification stays valid. */
void ward_model_open(const skua_supervisor *specification);

/* One of those back-offs whose pauses the model has in a table; children have these only. */
skua_backoff ward_model_backoff(uint64_t random);

/* From now on there may be no memory now and then. */
void ward_model_lacks_memory(void);

/* An skua_runtime_config.on_log. */
void ward_model_read_log(void *arg, const skua_log *log);

/* The test does something to a child: for the trace that a failure shows. */
void ward_model_note(char sign, char letter);

/* Somebody has asked the supervisor to end. */
void ward_model_end(void);

/* Whether the supervisor has been asked to end, or ends for a reason of its own. */
bool ward_model_is_ending(void);

/* Long after the last trouble: all live that must, and so does the supervisor, or not. */
void ward_model_check_rest(bool supervisor_lives);

/* What the games have led to, in all of a test. */
struct ward_model_tally {
    unsigned restarts, pauses, fresh_starts; /* a fresh start: failures were forgotten */
    unsigned failed_starts;                  /* without memory */
    unsigned give_ups, give_ups_of_child;
    unsigned stops; /* by itself */
};
extern struct ward_model_tally ward_model_tally;

#endif
