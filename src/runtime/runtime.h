/* SPDX-License-Identifier: MIT */
/* The composition root: a runtime is a scheduler, its commands, its clock, the poller, the monitor
 * and the blocking pools; or a simulation in place of threads and clock. */
#ifndef SKUA_RUNTIME_RUNTIME_H
#define SKUA_RUNTIME_RUNTIME_H

#include "blocking/blocking.h"
#include "dispatch/registry.h"
#include "inspect/inspection.h"
#include "net/kernel.h"
#include "net/net.h"
#include "sched/scheduler.h"
#include "sim/sim.h"
#include "watch/monitor_thread.h"

struct skua_runtime {
    struct scheduler sched;
    struct registry registry;
    struct time_source time;
    struct monitor_thread monitor;
    struct net net;
    struct kernel kernel; /* the transport of sockets, unless they are simulated */
    struct sockets sockets;
    struct blocking blocking;
    struct sim *sim;             /* null: processes run on threads */
    atomic_u32 blocking_stopped; /* no thread of a blocking pool is left */
    int stopped_with;            /* under sched.control: what stopping the scheduler returned */
    atomic_u32 waiters;          /* see caller.h */
    struct inspection inspection;
};

/* api_runtime.c: as skua_runtime_create, with a time source and a poller in place of the system's
 * where they are not null. They must outlive the runtime. */
NODISCARD int runtime_create(skua_runtime **runtime, const skua_runtime_config *config,
                             struct time_source *time, struct poller *poller);

/* config.c: checks a configuration (null: all defaults) and fills in the defaults. Returns 0 or
 * SKUA_E_INVALID or SKUA_E_SIGNAL. */
NODISCARD int config_resolve(const skua_runtime_config *config, skua_runtime_config *resolved);

#endif
