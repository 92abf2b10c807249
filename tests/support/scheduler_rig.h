/* SPDX-License-Identifier: MIT */
/* A scheduler without threads: the test is its workers, and its clock shows what the test says. */
#ifndef SKUA_TESTS_SCHEDULER_RIG_H
#define SKUA_TESTS_SCHEDULER_RIG_H

#include "dispatch/registry.h"
#include "sched/monitor.h"
#include "sched/poller.h"
#include "sched/scheduler.h"
#include "test_memory.h"

#define SCHEDULER_RIG_WORKERS 2
#define SCHEDULER_RIG_BEGIN   UINT64_C(1000000000) /* on its clock */

struct scheduler_rig {
    struct scheduler sched;
    struct registry registry;
    struct time_source time;
    struct poller poller;
    struct monitor monitor;
    uint64_t now;
    skua_pid *pids; /* of all that was spawned */
    uint32_t pid_count;
};

extern struct scheduler_rig rig;

/* With two workers, and at most one spare one; this thread is the first. Opens the memory, too.
 * When the test ends, all processes are killed, and nothing may be left. */
void scheduler_rig_open(void);

struct worker *worker(uint32_t index);

/* A command whose calls stay open. */
#define RIG_PENDING 1

/* Does nothing, whatever comes. */
extern const skua_process_type rig_resting;

/* Makes a process that is Ready, by way of a worker or, if null, from outside. */
struct process *rig_spawn(struct worker *by, const skua_process_type *type);

/* The same by way of the first worker, and takes it: its token is the caller's. */
struct process *rig_spawn_taken(const skua_process_type *type);

skua_pid rig_pid(struct process *process);

/* An empty message, from the first worker. */
void rig_send(struct process *to);

/* Asks a process to end. It does when it runs. */
void rig_kill(skua_pid pid);

/* Has the first worker run whatever there is. */
void rig_run_all(void);

#endif
