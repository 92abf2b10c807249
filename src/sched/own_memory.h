/* SPDX-License-Identifier: MIT */
/* Memory that belongs to a process and is freed when it ends: a list of blocks in its wing. Only
 * whoever runs the process touches it. */
#ifndef SKUA_SCHED_OWN_MEMORY_H
#define SKUA_SCHED_OWN_MEMORY_H

#include "sched/scheduler.h"

/* As skua_own_alloc and skua_own_free, for the process of a context. */
NODISCARD int own_memory_alloc(skua_context *ctx, size_t size, void **pointer);
NODISCARD int own_memory_free(skua_context *ctx, void *pointer);

/* As the process ends: frees one block; false if there is none left. `wing` may be null. */
bool own_memory_free_first(struct scheduler *sched, struct wing *wing);

/* How many blocks there are; `most` if there are more. `wing` may be null. */
NODISCARD uint32_t own_memory_count(const struct wing *wing, uint32_t most);

/* Frees what is left of it. */
void own_memory_free_all(struct scheduler *sched, struct process *process);

#endif
