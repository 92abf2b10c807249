/* SPDX-License-Identifier: MIT */
#include "process/table.h"

#include <skua/runtime.h>

_Static_assert(SKUA_E_NO_PROCESS < 0, "errors are negative");

static void construct(void *object, uint32_t index)
{
    struct process *process = object;
    /* Not shared yet. Generations begin at 1, so that no PID is zero. */
    store_relaxed(&process->word, event_list_word(OBJECT_NONE, state_tag(1, STATE_FREE)));
    store_relaxed(&process->reserved, 0);
    store_relaxed(&process->consumed, 0);
    store_relaxed(&process->mailbox_limit, 0);
    store_relaxed(&process->progress, 0);
    store_relaxed(&process->type, NULL);
    process->slot = index;
}

bool process_table_init(struct process_table *table, const struct allocator *allocator,
                        uint32_t runtime, uint32_t limit, uint32_t cache_count)
{
    table->runtime_bits = (uint64_t)runtime << (64 - PID_RUNTIME_BITS);
    return object_pool_init(&table->pool, allocator,
                            &(struct object_pool_shape){
                                .object_size = sizeof(struct process),
                                .link_offset = offsetof(struct process, link.free),
                                .limit = limit,
                                .capacity = SKUA_PROCESSES_MAX,
                                .cache_count = cache_count,
                                .construct = construct,
                            });
}

void process_table_deinit(struct process_table *table)
{
    object_pool_deinit(&table->pool);
}
