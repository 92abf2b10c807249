/* SPDX-License-Identifier: MIT */
/* A scheduler without threads, made anew before every schedule, for models that run the real code
 * of src/sched, src/process and src/dispatch on it. Its memory is static, so that this is quick. */
#ifndef SKUA_MODEL_RIG_H
#define SKUA_MODEL_RIG_H

#include "process/state.h"
#include "sched/monitor.h"
#include "sched/scheduler.h"

#define RIG_WORKERS_MAX   4
#define RIG_RUNTIME       1
#define RIG_MAILBOX_LIMIT 1000
#define RIG_BEGINNING     UINT64_C(1000000000)

extern struct scheduler rig;

/* The rig's: it never sleeps, and does nothing. Also for models with a scheduler of their own. */
extern struct monitor rig_monitor;

/* What the rig's clock shows; the models move it. */
extern uint64_t rig_now;

/* Begins anew, at time RIG_BEGINNING, with so many workers. Each has a few free event nodes at
 * hand, so that taking one is no step, and a wheel. The poller does nothing. Statistics and what is
 * never written are ignored by the explorer. */
void rig_reset(uint32_t worker_count);

/* For a model with a scheduler of its own: no poller, no spare workers, nobody has looked for work
 * yet. `max` workers are set up, `count` of them take part. */
void rig_init_scheduler(struct scheduler *sched, struct worker *workers, uint32_t count,
                        uint32_t max);

/* Takes one of the processes that sched->global.sorted counts; false if there is none. */
bool rig_take_work(struct scheduler *sched);

/* A process of the given type that has never run, Ready; its token is the caller's. */
struct process *rig_spawn(struct pool_cache *processes, const skua_process_type *type,
                          skua_pid *pid);

/* Counts the free event nodes, checking that none is free twice (INV-20). */
uint32_t rig_free_nodes(void);

/* Event nodes that have been made so far. */
uint32_t rig_all_nodes(void);

#endif
