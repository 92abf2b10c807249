/* SPDX-License-Identifier: MIT */
/* A process changes to another type, between two steps (skua/upgrade.h). Its worker does that, so
 * all it owns stays where it is: only the type, what follows from it, and the state change.
 *
 * The new state is made where it stays: in the record if it is small, and allocated otherwise. So
 * what the record had is copied first; a small old state is seen as that copy. If it cannot be
 * migrated, the copy goes back, and nothing has happened.
 *
 * MO-become: other threads read the type of a process while it changes: those who call it, list it,
 * or have an older PID. Each finds the old one or the new one; both stay valid until the runtime is
 * destroyed. The new one may have been loaded while the program runs, by a thread that this reader
 * never met; the pointer is what it learns of it by. So the store releases, and the load of whoever
 * does not hold the token acquires (process_type_any). */
#ifndef SKUA_SCHED_RETYPE_H
#define SKUA_SCHED_RETYPE_H

#include "sched/scheduler.h"

/* Whether processes of one type can change to another; one that runs a function on its stack cannot
 * change yet (retype_is_due). */
NODISCARD bool retype_fits(const skua_process_type *from, const skua_process_type *to);

/* Whether this process can change to a type: the method that it was started with matters, too. */
NODISCARD bool retype_is_possible(struct process *process, const skua_process_type *to);

/* Whether no call of its function is under way. */
NODISCARD bool retype_is_due(struct process *process);

/* Changes the worker's process, which runs no step, and counts and logs it. Returns 0, or why it
 * goes on as it was. */
NODISCARD int retype_process(struct worker *worker, struct process *process,
                             const skua_process_type *to);

#endif
