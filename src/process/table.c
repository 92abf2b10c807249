/* SPDX-License-Identifier: MIT */
#include "process/table.h"

#include <skua/runtime.h>

_Static_assert(SKUA_E_NO_PROCESS < 0, "errors are negative");

/* The generation that a free slot will have next. */
static uint32_t age(const void *object)
{
    const struct process *process = object;
    return state_generation(event_list_tag(load_relaxed(&process->word))); /* nobody else writes */
}

static void construct(void *object, uint32_t index, uint32_t floor)
{
    struct process *process = object;
    /* Generations begin at 1, so that no PID is zero. */
    const uint32_t generation = floor > 1 ? floor : 1;
    /* Relaxed: not shared yet, or shared only with holders of stale PIDs, who read only the
     * word. */
    store_relaxed(&process->word, event_list_word(OBJECT_NONE, state_tag(generation, STATE_FREE)));
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
                                .layout = PROCESS_LAYOUT,
                                .limit = limit,
                                .capacity = SKUA_PROCESSES_MAX,
                                .cache_count = cache_count,
                                .construct = construct,
                                .age = age,
                                .age_max = GENERATION_MAX / 2,
                            });
}

void process_table_deinit(struct process_table *table)
{
    object_pool_deinit(&table->pool);
}
