/* SPDX-License-Identifier: MIT */
/* What a workload is: a function that runs once and says how long it took. */
#ifndef SKUA_BENCH_H
#define SKUA_BENCH_H

#include <skua/skua.h>

struct measurement {
    double value;     /* in the workload's unit */
    skua_stats stats; /* of its runtime, before it was stopped */
    char note[160];   /* what else it has to say; otherwise counters are printed */
};

struct workload {
    const char *name;
    const char *unit;
    const char *about;
    struct measurement (*run)(uint32_t workers);
};

/* The workloads, ended by one without a name. */
extern const struct workload workloads[];

#define MILLION 1000000u

uint64_t now_ns(void);

/* Ends the program with a message unless `error` is 0. */
void expect_ok(int error, const char *what);

/* ---- support.c ---- */

skua_runtime *bench_create(uint32_t workers);

/* Stops and destroys the runtime. */
struct measurement bench_finish(skua_runtime *runtime, double value);

void bench_sleep(long ns);

/* Waits until no process is alive; so many must have ended. */
void bench_wait_until_empty(skua_runtime *runtime, uint64_t processes);

uint64_t bench_resident_bytes(void);

/* Context switches of all threads but the calling one. */
uint64_t bench_context_switches(void);

/* ---- idle.c: workloads of timers, descriptors, waking and memory ---- */

struct measurement bench_timers(uint32_t workers);
struct measurement bench_wake(uint32_t workers);
struct measurement bench_stuck(uint32_t workers);
struct measurement bench_idle_sources(uint32_t workers);
struct measurement bench_after_burst(uint32_t workers);

#endif
