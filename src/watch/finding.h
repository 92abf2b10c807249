/* SPDX-License-Identifier: MIT */
/* The finding of an audit, and how often audits may run. */
#ifndef SKUA_WATCH_FINDING_H
#define SKUA_WATCH_FINDING_H

#include "process/state.h"

struct finding {
    char text[256]; /* the first one; empty if there is none */
};

static inline bool finding_is_none(const struct finding *finding)
{
    return finding->text[0] == '\0';
}

/* Notes a finding; only the first one counts. */
__attribute__((format(printf, 2, 3))) void finding_note(struct finding *finding, const char *format,
                                                        ...);

/* Prints it and aborts the program. */
_Noreturn void finding_abort(const struct finding *finding);

/* The name of a process's state, for findings. */
const char *finding_state_name(enum process_state state);

/* Whether this thread may check that many objects now: limits the audits of moments that recur. */
bool finding_can_afford(uint64_t objects);

#endif
