/* SPDX-License-Identifier: MIT */
/* PIDs and the table of all processes.
 *
 *   PID = {runtime:12 | 0 | generation:25 | slot:26}
 *
 * The slot finds the record in constant time; the generation says which of the processes that lived
 * there is meant. Each use of a slot has its own generation, and a new slot replaces one whose
 * generations are used up, so a PID never names a second process (INV-7). PIDs last for 2^51
 * processes of one runtime. */
#ifndef SKUA_PROCESS_TABLE_H
#define SKUA_PROCESS_TABLE_H

#include "process/process.h"
#include "process/state.h"

#define PID_SLOT_BITS       26
#define PID_GENERATION_BITS 26
#define PID_RUNTIME_BITS    12
#define PID_RUNTIME_MAX     ((UINT32_C(1) << PID_RUNTIME_BITS) - 1)

#define PID_GENERATION_MASK ((UINT32_C(1) << PID_GENERATION_BITS) - 1)

_Static_assert(GENERATION_MAX <= PID_GENERATION_MASK, "a PID has room for those of the word");

struct process_table {
    struct object_pool pool;
    uint64_t runtime_bits; /* in every PID of this table */
};

/* `runtime` is 1 to PID_RUNTIME_MAX. */
NODISCARD bool process_table_init(struct process_table *table, const struct allocator *allocator,
                                  uint32_t runtime, uint32_t limit, uint32_t cache_count);
void process_table_deinit(struct process_table *table);

static inline skua_pid process_table_pid(const struct process_table *table,
                                         const struct process *process, uint32_t generation)
{
    return (skua_pid){table->runtime_bits | (uint64_t)generation << PID_SLOT_BITS | process->slot};
}

/* The number of the runtime that owns the table. */
static inline uint32_t process_table_runtime(const struct process_table *table)
{
    return (uint32_t)(table->runtime_bits >> (64 - PID_RUNTIME_BITS));
}

static inline uint32_t pid_slot(skua_pid pid)
{
    return (uint32_t)(pid.bits & ((UINT64_C(1) << PID_SLOT_BITS) - 1));
}

static inline uint32_t pid_generation(skua_pid pid)
{
    return (uint32_t)(pid.bits >> PID_SLOT_BITS) & PID_GENERATION_MASK;
}

static inline struct process *process_at(const struct process_table *table, uint32_t slot)
{
    return object_at(&table->pool, PROCESS_LAYOUT, slot);
}

/* The record in a PID's slot. It may hold a later process, or none: the state_ functions check the
 * generation. Returns 0, SKUA_E_FOREIGN_PID or SKUA_E_NO_PROCESS. */
NODISCARD static inline int process_table_find(struct process_table *table, skua_pid pid,
                                               struct process **process)
{
    const uint64_t runtime_mask = ~UINT64_C(0) << (64 - PID_RUNTIME_BITS);
    if (UNLIKELY((pid.bits & runtime_mask) != table->runtime_bits)) {
        return skua_pid_is_none(pid) ? SKUA_E_NO_PROCESS : SKUA_E_FOREIGN_PID;
    }
    if (UNLIKELY(!object_pool_holds(&table->pool, pid_slot(pid)))) {
        return SKUA_E_NO_PROCESS;
    }
    *process = process_at(table, pid_slot(pid));
    return 0;
}

/* The same for a process that is alive in a snapshot: a push to it checks again. */
NODISCARD static inline int process_table_find_live(struct process_table *table, skua_pid pid,
                                                    struct process **process)
{
    const int error = process_table_find(table, pid, process);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    const uint32_t tag = state_peek(*process); /* re-checked */
    const bool live = state_generation(tag) == pid_generation(pid) && state_is_live(tag);
    return LIKELY(live) ? 0 : SKUA_E_NO_PROCESS;
}

#endif
