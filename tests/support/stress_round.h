/* SPDX-License-Identifier: MIT */
/* Stress of whole runtimes, in rounds. Processes and threads from outside work on each other until
 * the operations of the round are done; then the runtime is stopped: gracefully, with everybody
 * finishing by himself, or abruptly in the middle of it all. Every round checks that
 *  - what a payload owns is dropped exactly once, wherever it ends, with the content it had;
 *  - each init is followed by one close, each accepted process by one on_exit;
 *  - after stop nothing is alive, the statistics agree with what was counted (stress_load.h), and
 *    the pools have all their objects back;
 *  - after destroy no memory and no descriptor is left. */
#ifndef SKUA_TESTS_STRESS_ROUND_H
#define SKUA_TESTS_STRESS_ROUND_H

#include "stress_load.h"

/* A thread that is not a worker. */
struct stress_outsider {
    CACHE_ALIGNED uint64_t random;
    uint64_t number; /* from 1 */
    uint64_t serial; /* of what it has sent */
};

#define STRESS_OUTSIDERS 3
/* No descriptor has a number from here on. */
#define STRESS_FILES_MAX 1024

/* What one program does. */
struct stress_plan {
    uint64_t ops;           /* by default */
    uint32_t round_ops_max; /* at most so many in one round */
    uint32_t graceful;      /* one in so many rounds */
    uint32_t known_pids;    /* up to STRESS_KNOWN_MAX */
    uint64_t hang_ns;       /* how long a graceful stop may take; less than the watchdog */
    /* Fills what is particular to its runtimes: limits, workers, on_exit. */
    void (*configure)(uint64_t *random, skua_runtime_config *config);
    /* Before start: registers commands and pools. */
    void (*prepare)(uint64_t *random);
    /* What an outsider does, once. */
    void (*act)(struct stress_outsider *outsider);
    /* Calls stress_stop. */
    void (*stop)(uint64_t *random);
    /* After stop, with no other thread left. */
    void (*check)(const skua_stats *sum);
    /* Whether there are rounds to come although the operations are done; may be null. */
    bool (*goes_on)(void);
    /* What the summary calls its tallies; null: not mentioned. */
    const char *tally_names[TALLIES_MAX];
};

/* The whole program; returns its exit code. */
NODISCARD int stress_rounds(int argc, char **argv, const struct stress_plan *plan);

/* Stops the runtime. In a graceful round every process finishes by itself, so the plan's time only
 * ends a hang and `timeout_ns` does not matter. */
void stress_stop(uint64_t timeout_ns);

#endif
