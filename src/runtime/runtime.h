/* SPDX-License-Identifier: MIT */
/* The composition root: a runtime is a scheduler, its commands, its clock, the poller and the pools
 * for blocking calls; or, in place of threads and clock, a simulation. An inspector may look on. */
#ifndef SKUA_RUNTIME_RUNTIME_H
#define SKUA_RUNTIME_RUNTIME_H

#include "blocking/blocking.h"
#include "dispatch/registry.h"
#include "inspector/debug.h"
#include "inspector/server.h"
#include "net/net.h"
#include "sched/scheduler.h"
#include "sim/sim.h"

struct skua_runtime {
    struct scheduler sched;
    struct registry registry;
    struct time_source time;
    struct net net;
    struct blocking blocking;
    struct sim *sim;             /* null: processes run on threads */
    atomic_u32 blocking_stopped; /* no thread of a blocking pool is left */
    int stopped_with;            /* under sched.control: what stopping the scheduler returned */
    atomic_u32 waiters;          /* see visit.h */
    pthread_mutex_t inspection;  /* guards the next; taken before sched.control */
    struct inspector *inspector; /* null: nobody can look inside */
    struct debug_settings debug; /* of SKUA_DEBUG */
    struct debug_stall on_stall; /* the program's own */
};

/* api_runtime.c: as skua_runtime_create, with a time source and a poller in place of the system's
 * where they are not null. They must outlive the runtime. */
NODISCARD int runtime_create(skua_runtime **runtime, const skua_runtime_config *config,
                             struct time_source *time, struct poller *poller);

/* inspection.c: as skua_runtime_start: the inspector, if it is wanted, then the scheduler. */
NODISCARD int inspection_start(skua_runtime *runtime);

/* Ends the inspector, if there is one. */
void inspection_end(skua_runtime *runtime);

/* config.c: checks a configuration (null: all defaults) and fills in the defaults. Returns 0 or
 * SKUA_E_INVALID. */
NODISCARD int config_resolve(const skua_runtime_config *config, skua_runtime_config *resolved);

#endif
