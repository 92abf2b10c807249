/* SPDX-License-Identifier: MIT */
/* Tasks of tests: an errand is a process whose function the test has written.
 *
 *   static int sleeps_twice(struct errand *errand, skua_context *ctx)
 *   {
 *       CHECK(errand, skua_task_sleep(ctx, SKUA_SECOND) == 0);
 *       note(errand, 1);
 *       CHECK(errand, skua_task_sleep(ctx, SKUA_SECOND) == 0);
 *       return 0;
 *   }
 *
 *   struct errand *errand = errand_start(sleeps_twice);
 *   world_advance(SKUA_SECOND + RESOLUTION);
 *   assert_noted(errand, 1);
 *
 * What CHECK finds is reported when the test ends. The fields of an errand are for the test's
 * thread where it has seen that the errand waits or has ended. Errands live until the end of the
 * test. */
#ifndef SKUA_TESTS_ERRAND_H
#define SKUA_TESTS_ERRAND_H

#include "actor.h"

#define ERRAND_NOTES_MAX 256

struct errand;

typedef int errand_fn(struct errand *errand, skua_context *ctx);
typedef int errand_serve_fn(struct errand *errand, skua_context *ctx, skua_event *event);

struct errand {
    /* May be changed before its start. */
    skua_process_type type;
    errand_fn *function;
    errand_serve_fn *serve;
    uint32_t host; /* in a simulation; 0: none in particular */
    /* For the functions of the test. */
    skua_pid other;
    void *arg;
    uint64_t number;
    struct tracked item;

    skua_pid pid;
    atomic_uint inits;
    atomic_uint closes;
    int exit_error; /* that its close was told */
    skua_pid exit_cause;
    struct tally closed;
    struct tally noted;

    /* The kit's. */
    struct errand *next;
    uint64_t notes[ERRAND_NOTES_MAX];
    size_t note_count;
    size_t asserted;
    unsigned failures;
    char failure[160]; /* the first */
};

/* An errand, not started yet; and a started one. The last two serve. */
struct errand *errand_new(errand_fn *function);
struct errand *errand_start(errand_fn *function);
struct errand *errand_new_server(errand_serve_fn *serve);
struct errand *errand_start_server(errand_serve_fn *serve);

void errand_submit(struct errand *errand);
int errand_try_submit(struct errand *errand);

/* Starts it, and waits for its end. */
skua_exit errand_run(struct errand *errand);

/* Lets virtual or simulated time go on for so long: unlike world_settle, which goes on in the
 * simulator until the longest sleep is over. */
void errands_go_on(uint64_t duration_ns);

/* That it has ended so, waiting for that. */
void assert_errand_ended(struct errand *errand, int error);

/* For functions of errands: notes a number; or that something is not as expected. */
void note(struct errand *errand, uint64_t number);
#define CHECK(errand, condition) errand_check(errand, condition, #condition, __LINE__)
void errand_check(struct errand *errand, bool holds, const char *what, int line);

/* Errors are noted as positive numbers. */
uint64_t noted_error(int error);

/* What it has noted since the last of these. */
#define assert_noted(errand, ...)                                                                  \
    assert_errand_noted(errand, (const uint64_t[]){__VA_ARGS__},                                   \
                        COUNT_OF(((const uint64_t[]){__VA_ARGS__})))
#define assert_noted_nothing(errand) assert_errand_noted(errand, NULL, 0)
void assert_errand_noted(struct errand *errand, const uint64_t *expected, size_t count);

/* Sends it a message with this type and number; must be accepted. */
void errand_send(const struct errand *errand, uint32_t type, uint64_t number);

/* The number of the event that an errand receives within `timeout_ns`, or what noted_error makes of
 * the error. */
uint64_t receive_number(skua_context *ctx, uint64_t timeout_ns);

#endif
