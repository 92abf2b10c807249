/* SPDX-License-Identifier: MIT */
/* Calls of the public interface that any thread may make at any time, with arguments that the
 * fuzzed program chooses. */
#ifndef SKUA_TESTS_FUZZ_CALLS_H
#define SKUA_TESTS_FUZZ_CALLS_H

#include "board.h"

/* What skua_process_send, skua_send and skua_process_submit document. */
#define ANSWERS_OF_SEND                                                                            \
    (ANSWER_OK | ANSWER(INVALID) | ANSWER(FOREIGN_PID) | ANSWER(NO_PROCESS) |                      \
     ANSWER(MAILBOX_FULL) | ANSWER(PAYLOAD_SIZE) | ANSWER(NO_MEMORY) | ANSWER(TAKEN))
#define ANSWERS_OF_SUBMIT                                                                          \
    (ANSWER_OK | ANSWER(INVALID) | ANSWER(UNKNOWN_METHOD) | ANSWER(PAYLOAD_SIZE) |                 \
     ANSWER(PROCESS_LIMIT) | ANSWER(NO_MEMORY) | ANSWER(NOT_STARTED) | ANSWER(STOPPED) |           \
     ANSWER(TAKEN) | ANSWER(CONTEXT) | ANSWER(NAME) | ANSWER(NAME_LENGTH) | ANSWER(NAME_TAKEN) |   \
     ANSWER(NAME_LIMIT) | ANSWER_OF_USER)

/* Why a process is cancelled. */
int choose_reason(struct reader *reader);

/* One call. `runtime` may be null. */
void calls_make_one(struct reader *reader, skua_runtime *runtime);

/* Waits for some process for a quarter of a millisecond; `runtime` may be null. */
void calls_wait_a_moment(skua_runtime *runtime);

/* Starts up to seven processes, most of them of types that can be called; `runtime` may be null. */
void calls_start_servers(struct reader *reader, skua_runtime *runtime);

/* One that waits, or that must not be made on a thread of the runtime. On such a thread it is
 * refused, and `inside` says so. */
void calls_make_one_that_waits(struct reader *reader, skua_runtime *runtime, bool inside);

#endif
