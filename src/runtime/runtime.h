/* SPDX-License-Identifier: MIT */
/* The composition root: a runtime is a scheduler, its commands, and what its workers sleep on. */
#ifndef SKUA_RUNTIME_RUNTIME_H
#define SKUA_RUNTIME_RUNTIME_H

#include "dispatch/registry.h"
#include "sched/idle_driver.h"
#include "sched/scheduler.h"

struct skua_runtime {
    struct scheduler sched;
    struct futex_driver driver;
    struct registry registry;
    atomic_u32 visitors; /* see visit.h */
};

/* config.c: checks a configuration (null: all defaults) and fills in the defaults. Returns 0 or
 * SKUA_E_INVALID. */
NODISCARD int config_resolve(const skua_runtime_config *config, skua_runtime_config *resolved);

#endif
