/* SPDX-License-Identifier: MIT */
/* What a workload is: a function that runs once and says how long it took. */
#ifndef SKUA_BENCH_H
#define SKUA_BENCH_H

#include <skua/skua.h>

struct measurement {
    double value;     /* in the workload's unit */
    skua_stats stats; /* of its runtime, before it was stopped */
};

struct workload {
    const char *name;
    const char *unit;
    const char *about;
    struct measurement (*run)(uint32_t workers);
};

/* The workloads, ended by one without a name. */
extern const struct workload workloads[];

uint64_t now_ns(void);

/* Ends the program with a message unless `error` is 0. */
void expect_ok(int error, const char *what);

#endif
