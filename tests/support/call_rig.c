/* SPDX-License-Identifier: MIT */
#include "call_rig.h"

#include "pool_support.h"

struct call_rig call_rig;

static void close_rig(void)
{
    deadlines_deinit(&call_rig.deadlines);
    object_pool_deinit(&call_rig.events);
}

void call_rig_open(void)
{
    memory_open();
    call_rig = (struct call_rig){0};
    assert_true(event_pool_init(&call_rig.events, &memory.allocator, 1));
    assert_true(
        deadlines_init(&call_rig.deadlines, &memory.allocator, &call_rig.events, CALL_RIG_WHEELS));
    test_at_end(close_rig);
}

struct event_node *node_at(uint32_t index)
{
    return event_at(&call_rig.events, index);
}

uint32_t take_node(void)
{
    return pool_take(&call_rig.events, &call_rig.cache);
}

void give_node(uint32_t index)
{
    pool_give(&call_rig.events, &call_rig.cache, index);
}
