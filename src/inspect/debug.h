/* SPDX-License-Identifier: MIT */
/* SKUA_DEBUG: what any program linked with Skua can be made to print to its standard error, see
 * docs/inspector.md. */
#ifndef SKUA_INSPECT_DEBUG_H
#define SKUA_INSPECT_DEBUG_H

#include "inspect/text.h"
#include "sched/scheduler.h"

struct debug_settings {
    uint64_t schedtrace_ns; /* a line about the scheduler so often; 0: none */
    uint64_t stall_ns;      /* steps that run longer are printed; 0: none */
};

/* Reads the settings in `list` (null: none). What is wrong in it is said on standard error, a line
 * each, and left out. */
struct debug_settings debug_parse(const char *list);

/* The same for SKUA_DEBUG of the environment; no settings in a program with more rights than its
 * user. */
struct debug_settings debug_read_environment(void);

/* ---- stall ---- */

/* Who else wants to hear of stalls. */
struct debug_stall {
    void (*on_stall)(void *arg, const skua_stall *stall); /* may be null */
    void *arg;
};

/* An on_stall whose `arg` is a struct debug_stall: prints the stall, then tells that one. */
void debug_print_stall(void *arg, const skua_stall *stall);

/* ---- schedtrace ---- */

/* What the line before has said. */
struct schedtrace {
    skua_stats before;
};

/* Writes one line about `sched` as it is now: `age` after its creation, and with what has happened
 * since the line before. */
void debug_format_schedtrace(struct schedtrace *trace, struct scheduler *sched, uint64_t age,
                             struct text *line);

/* Prints that line. */
void debug_print_schedtrace(struct schedtrace *trace, struct scheduler *sched);

#endif
