/* SPDX-License-Identifier: MIT */
/* SKUA_DEBUG: makes any program linked with Skua print lines about itself to standard error; see
 * docs/inspector.md. */
#ifndef SKUA_INSPECT_DEBUG_H
#define SKUA_INSPECT_DEBUG_H

#include "inspect/text.h"
#include "sched/scheduler.h"

struct debug_settings {
    uint64_t schedtrace_ns; /* period of the lines about the scheduler; 0: none */
    uint64_t stall_ns;      /* steps that run longer are printed; 0: none */
    bool stacks;            /* the deepest use of stacks is printed at the end */
    bool migrate;           /* tasks change their workers at every wait */
};

/* Parses the settings in `list` (null: none). Reports each mistake on standard error and skips
 * it. */
struct debug_settings debug_parse(const char *list);

/* The same for SKUA_DEBUG of the environment; ignored in a program with elevated privileges. */
struct debug_settings debug_read_environment(void);

/* ---- stall ---- */

/* The program's own on_stall. */
struct debug_stall {
    void (*on_stall)(void *arg, const skua_stall *stall); /* may be null */
    void *arg;
};

/* An on_stall whose `arg` is a struct debug_stall: prints the stall, then calls that. */
void debug_print_stall(void *arg, const skua_stall *stall);

/* ---- stacks ---- */

/* Prints how deep the tasks of each type have used their stacks. */
void debug_print_stacks(struct scheduler *sched);

/* ---- schedtrace ---- */

struct schedtrace {
    skua_stats before; /* what the previous line reported */
    /* Room for a line about all workers there may be; too much for a stack. */
    char line[(SKUA_WORKERS_MAX + SKUA_SPARES_MAX) * 24 + 512];
};

/* Formats one line about `sched`, `age` after its creation, with what happened since the previous
 * line. */
void debug_format_schedtrace(struct schedtrace *trace, struct scheduler *sched, uint64_t age,
                             struct text *line);

/* Prints that line. */
void debug_print_schedtrace(struct schedtrace *trace, struct scheduler *sched);

#endif
