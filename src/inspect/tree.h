/* SPDX-License-Identifier: MIT */
/* The tree of supervision, as lines of docs/inspector.md. A supervisor's table is its own, so it is
 * asked for it like any process that is to describe itself (sched/describe.h), and has as long to
 * answer. One that does not, or whose type does not tell, still has children in the lineage: those
 * that live, without what only the supervisor knows. */
#ifndef SKUA_INSPECT_TREE_H
#define SKUA_INSPECT_TREE_H

#include "inspect/text.h"
#include "sched/scheduler.h"

/* Lines in one answer, at most. */
#define TREE_MAX 64

/* Supervisors that have none themselves, from a place on, 0 at first. Returns 0 or the error to be
 * answered, as does the next. */
NODISCARD int tree_add_roots(struct scheduler *sched, uint64_t place, uint32_t limit,
                             struct text *out);

/* A supervisor and its children. *asked grows by the number of processes that were asked. */
NODISCARD int tree_add_children(struct scheduler *sched, skua_pid pid, uint64_t place,
                                uint32_t limit, struct text *out, uint32_t *asked);

#endif
