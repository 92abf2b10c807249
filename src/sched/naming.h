/* SPDX-License-Identifier: MIT */
/* Names and labels of processes (relations/names.h). */
#ifndef SKUA_SCHED_NAMING_H
#define SKUA_SCHED_NAMING_H

#include "process/event.h"
#include "relations/name_key.h"
#include "sched/scheduler.h"

void naming_attach(struct scheduler *sched);

/* Gives a process a name: the one that the worker runs, or one that is being started. `worker` is
 * the caller's or null. One that is being started is published by that: whoever finds it by its
 * name can reach it. Returns as skua_name_register. If it is 0, *waiters are those that have waited
 * for the name: naming_tell tells them. */
NODISCARD int naming_register(struct scheduler *sched, struct worker *worker,
                              struct process *process, skua_pid pid, const char *name,
                              skua_pid *holder, uint32_t *waiters);
NODISCARD int naming_publish(struct scheduler *sched, struct worker *worker,
                             struct process *process, skua_pid pid, const char *name,
                             skua_pid *holder, uint32_t *waiters);
void naming_tell(struct scheduler *sched, struct worker *worker, skua_pid pid, uint32_t waiters);

/* The worker's process takes EVENT_WAITERS out of its backlog: tells a slice of them. Or, if it is
 * ending, tells one; if there are more, the signal is back in the backlog. */
void naming_take_waiters(struct worker *worker, uint32_t index);
void naming_drop_waiter(struct worker *worker, struct process *process, uint32_t index);

NODISCARD int naming_unregister(skua_context *ctx, const char *name);

/* Gives up names of a process, which has an annex. Lowers `*budget` by their number; false if there
 * are more. */
NODISCARD bool naming_release_some(struct scheduler *sched, struct process *process, skua_pid pid,
                                   uint32_t *budget);

/* Gives a process a label, or (null) takes it away. Returns as skua_label. */
NODISCARD int naming_label(struct scheduler *sched, struct worker *worker, struct process *process,
                           skua_pid pid, const char *label);

/* The name that a process got first, of those it has; false if it has none. */
NODISCARD bool naming_first(struct scheduler *sched, const struct annex *annex,
                            char text[NAME_SIZE]);

/* The worker's process is about to give up its names: tells whoever traces its name and its label,
 * since it cannot be asked later, and who observes. */
void naming_go(struct worker *worker, const struct annex *annex);

/* The same of a process that has failed, for the log: keeps its name where the label was. Without
 * memory, and without a name, the label stays. */
void naming_keep(struct scheduler *sched, struct annex *annex);

/* The entry of a name that is about to be awaited, for those who inspect the process; 0 without
 * memory. (If others add very many names at this moment it may become another name's.) */
NODISCARD uint32_t naming_entry(struct scheduler *sched, const char *name);

/* A copy of a name, for a yield that awaits it; null without memory. */
NODISCARD char *naming_copy(struct scheduler *sched, const char *name);
void naming_free_copy(struct scheduler *sched, char *copy);

#endif
