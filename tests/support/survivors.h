/* SPDX-License-Identifier: MIT */
/* What a runtime tells of the processes that survived the time-out of a stop:
 *
 *   skua_runtime_config config = {0};
 *   struct survivors *survivors = survivors_watch(&config);
 *   world_open_with(config); */
#ifndef SKUA_TESTS_SURVIVORS_H
#define SKUA_TESTS_SURVIVORS_H

#include "world.h"

#define SURVIVORS_MAX 16

/* Written by the thread that stops, without a lock. */
struct survivors {
    skua_process_snapshot infos[SURVIVORS_MAX];
    uint32_t count;
    /* Called after each; may be null. */
    void (*then)(void *arg, const skua_process_snapshot *info);
    void *then_arg;
};

/* Has the runtime with this configuration tell; lives until the end of the test. */
struct survivors *survivors_watch(skua_runtime_config *config);

/* What was told about a process; fails if that was not exactly once. */
const skua_process_snapshot *survivors_find(const struct survivors *survivors, skua_pid pid);

#endif
