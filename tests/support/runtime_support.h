/* SPDX-License-Identifier: MIT */
/* What the tests of whole runtimes need beyond api_support.h: a process that notes what happens to
 * it, the operating system's view of the program, seeds, and a watchdog. */
#ifndef SKUA_TESTS_RUNTIME_SUPPORT_H
#define SKUA_TESTS_RUNTIME_SUPPORT_H

#include "api_support.h"

/* ---- a process that notes what happens to it ---- */

enum probe_habit {
    PROBE_OBEYS,   /* finishes at a cancel event, whoever it is from */
    PROBE_IGNORES, /* rests for ever */
    PROBE_ENDS,    /* finishes in its first step */
};

/* Outlives the process. Zeroed at first, but for the habit. */
struct probe {
    enum probe_habit habit;
    atomic_uint inits;
    atomic_uint steps;
    atomic_uint messages;
    atomic_uint completions;
    atomic_uint cancels;
    atomic_uint stops; /* those cancel events that came with SKUA_E_STOPPED */
    atomic_uint closes;
};

/* Their input is the pointer to a struct probe, as by api_world_payload. */
extern const skua_process_type probe_type;
/* The same with a state that is too large for the process record. */
extern const skua_process_type probe_large_type;

/* Submits a probe; returns what skua_process_submit did. Any thread. `pid` may be null. */
int probe_submit(skua_runtime *runtime, struct probe *probe, skua_pid *pid);

/* The same for skua_process_run, and for a spawn from a step. */
int probe_run(skua_runtime *runtime, struct probe *probe);
int probe_spawn(skua_context *ctx, struct probe *probe);

/* What the cancel events of a probe were, and that it has come to its end. */
void assert_probe_stopped_once(struct probe *probe);

/* ---- waiting ---- */

/* Looks again and again until holds(arg). Aborts the program, naming `what`, if it takes minutes.
 * Any thread. */
void wait_until(bool (*holds)(void *arg), void *arg, const char *what);

/* Until every worker of a runtime that was just started has begun, which takes memory, and sleeps:
 * a thread may begin long after it was created. From then on an idle runtime allocates nothing. */
void wait_until_all_have_slept(skua_runtime *runtime);

/* To be called first in main. Aborts the program if it hangs in a place that has no limit of its
 * own. */
void watchdog_start(void);

/* Gives it its whole time again. */
void watchdog_restart(void);

/* ---- random numbers ---- */

/* A seed: SKUA_TEST_SEED of the environment, or one from the clock. Prints it. */
uint64_t seed_choose(void);

/* The next number of the stream; below 2^31. */
uint64_t seed_next(uint64_t *state);

/* ---- the operating system's view ---- */

/* The threads of this program now. A joined one stays visible for a moment. */
uint32_t os_thread_count(void);

/* Waits until there are `count` threads. */
void os_wait_threads(uint32_t count);

/* Waits until all threads that this program has started are gone, if they go, and returns how many
 * remain: the main thread, and what a sanitizer may have started. Only while no runtime runs. */
uint32_t os_wait_alone(void);

/* Its open files. */
uint32_t os_file_count(void);

#endif
