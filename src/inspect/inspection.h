/* SPDX-License-Identifier: MIT */
/* Whether a runtime can be inspected, from its start to its stop: what its configuration says, and
 * SKUA_INSPECT and SKUA_DEBUG of the environment. */
#ifndef SKUA_INSPECT_INSPECTION_H
#define SKUA_INSPECT_INSPECTION_H

#include "inspect/debug.h"
#include "inspect/server.h"

struct inspection {
    pthread_mutex_t lock;        /* guards the next; taken before the scheduler's control */
    struct inspector *inspector; /* null: the runtime cannot be inspected */
    struct debug_settings debug; /* of SKUA_DEBUG */
    struct debug_stall on_stall; /* the program's own */
};

/* Reads SKUA_DEBUG and overrides the program's configuration with it. */
void inspection_init(struct inspection *inspection, skua_runtime_config *config);
void inspection_deinit(struct inspection *inspection);

/* As skua_runtime_start: starts the inspector, if asked for, then the scheduler. */
NODISCARD int inspection_start(struct inspection *inspection, struct scheduler *sched);

/* Ends the inspector, if there is one, and prints what SKUA_DEBUG wants at the end. */
void inspection_end(struct inspection *inspection, struct scheduler *sched);

#endif
