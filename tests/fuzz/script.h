/* SPDX-License-Identifier: MIT */
/* Processes that do what a stretch of the fuzzed input says, one operation after the other, and
 * that note what happens to them. */
#ifndef SKUA_TESTS_FUZZ_SCRIPT_H
#define SKUA_TESTS_FUZZ_SCRIPT_H

#include "board.h"

#define SCRIPT_INPUTS_MAX 3

/* The arguments of a submit, spawn or run. */
struct script_start {
    skua_spawn_options options;            /* the type may be null, or one that is refused */
    skua_payload input[SCRIPT_INPUTS_MAX]; /* the first tells the process what to do */
};

/* A process of this type needs no input and ends at once. */
const skua_process_type *script_simple_type(void);

/* Other types of the careful servers, by a number: these may change to them. The first makes that
 * fail. */
const skua_process_type *script_newer_type(uint32_t number);

/* `runtime` may be null. */
void script_choose(struct reader *reader, skua_runtime *runtime, struct script_start *start);

/* And a name, a label, a monitor, a join, a link, without their tags. */
void script_choose_relations(struct reader *reader, struct script_start *start);

/* The process will be one that can be called, or one without that, by a number. */
void script_make_server(struct script_start *start, uint32_t number);

/* The process will come to its end by itself: somebody waits for it without a limit. */
void script_make_mortal(struct script_start *start);

#endif
