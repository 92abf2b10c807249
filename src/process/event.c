/* SPDX-License-Identifier: MIT */
#include "process/event.h"

/* The guard of a free node: the serial of its last call, and not open. */
static uint32_t age(const void *object)
{
    const struct event_node *node = object;
    return load_relaxed(&node->guard); /* nobody can claim a call that is not open */
}

static void construct(void *object, uint32_t index, uint32_t floor)
{
    (void)index;
    struct event_node *node = object;
    /* Relaxed: not shared yet, or shared only with late completers, which find no open call. */
    store_relaxed(&node->guard, floor);
}

bool event_pool_init(struct object_pool *pool, const struct allocator *allocator,
                     uint32_t cache_count)
{
    return object_pool_init(pool, allocator,
                            &(struct object_pool_shape){
                                .layout = EVENT_LAYOUT,
                                .limit = EVENT_NODES_MAX - 1,
                                .cache_count = cache_count,
                                .construct = construct,
                                .age = age,
                                .age_max = UINT32_MAX / 2, /* so that serials do not repeat soon */
                            });
}
