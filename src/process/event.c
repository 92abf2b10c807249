/* SPDX-License-Identifier: MIT */
#include "process/event.h"

static void construct(void *object, uint32_t index)
{
    (void)index;
    struct event_node *node = object;
    store_relaxed(&node->guard, 0); /* not shared yet */
}

bool event_pool_init(struct object_pool *pool, const struct allocator *allocator,
                     uint32_t cache_count)
{
    return object_pool_init(pool, allocator,
                            &(struct object_pool_shape){
                                .object_size = sizeof(struct event_node),
                                .link_offset = offsetof(struct event_node, as.link),
                                .limit = EVENT_NODES_MAX - 1,
                                .cache_count = cache_count,
                                .construct = construct,
                            });
}
