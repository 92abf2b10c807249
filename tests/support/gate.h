/* SPDX-License-Identifier: MIT */
/* A process that lets messages and calls through, or defers them while it is shut: as a step, as a
 * task, or as one that serves.
 *
 *   struct gate *gate = gate_start(GATE_STEP, true);
 *   gate_send(gate, 1);
 *   gate_set(gate, GATE_OPEN);
 *   assert_passed(gate, 1);
 *
 * It answers each call that it lets through with the number that it brought plus one. Gates live
 * until the end of the test. */
#ifndef SKUA_TESTS_GATE_H
#define SKUA_TESTS_GATE_H

#include "world.h"

enum gate_shape { GATE_STEP, GATE_TASK, GATE_SERVER, GATE_SHAPES };

/* What a gate is told, as an ordinary message or an urgent one; GATE_PASS is a letter that it never
 * defers. */
enum { GATE_LETTER, GATE_PASS, GATE_OPEN, GATE_SHUT, GATE_OPEN_ONCE, GATE_DONE, GATE_FAIL };

struct gate {
    skua_process_type type; /* may be changed between gate_new and gate_submit */
    bool is_shut;
    bool resumes; /* when its step is over */
    bool stays_shut;
    bool is_done;
    skua_pid pid;
    struct tally passes;
    struct tally defers; /* how often something was deferred */
    struct tally closes;
    uint64_t passed[4096]; /* so many at most */
    size_t passed_count;
    size_t asserted;
    int defer_error; /* the last that was not 0, or 0 */
    int exit_error;
};

struct gate *gate_new(enum gate_shape shape, bool is_shut);
void gate_submit(struct gate *gate);
struct gate *gate_start(enum gate_shape shape, bool is_shut);

/* A letter with this number; must be accepted. */
void gate_send(const struct gate *gate, uint64_t number);
/* One of the others. */
void gate_set(const struct gate *gate, uint32_t what);

/* Waits until the process has done so. */
void gate_await_passed(struct gate *gate, uint64_t count);
void gate_await_deferred(struct gate *gate, uint64_t count);
void gate_await_end(struct gate *gate);

/* What it has let through since the last of these, waiting for that. */
#define assert_passed(gate, ...)                                                                   \
    assert_gate_passed(gate, (const uint64_t[]){__VA_ARGS__},                                      \
                       COUNT_OF(((const uint64_t[]){__VA_ARGS__})))
void assert_gate_passed(struct gate *gate, const uint64_t *expected, size_t count);

#endif
