/* SPDX-License-Identifier: MIT */
/* Which host a process of a simulation is on: a number for each slot of the process table, as far
 * as some process of a slot there is not on host 1. Any thread may start processes. */
#ifndef SKUA_SIM_HOSTS_H
#define SKUA_SIM_HOSTS_H

#include <pthread.h>
#include <skua/types.h>

#include "base/allocator.h"

/* The host of processes that nobody has put elsewhere. */
#define HOSTS_FIRST 1

struct process_hosts {
    pthread_mutex_t lock;
    const struct allocator *allocator;
    unsigned char *numbers; /* by slot; 0: the first */
    uint32_t capacity;
};

void hosts_init(struct process_hosts *hosts, const struct allocator *allocator);
void hosts_deinit(struct process_hosts *hosts);

/* A process is about to start. Returns 0 or SKUA_E_NO_MEMORY. */
NODISCARD int hosts_set_any(struct process_hosts *hosts, skua_pid pid, uint32_t host);

NODISCARD uint32_t hosts_of(struct process_hosts *hosts, skua_pid pid);

#endif
