/* SPDX-License-Identifier: MIT */
#include "call_rig.h"

#include "pool_support.h"

struct call_rig rig;

static void close_rig(void)
{
    deadlines_deinit(&rig.deadlines);
    object_pool_deinit(&rig.events);
}

void call_rig_open(void)
{
    memory_open();
    rig = (struct call_rig){0};
    assert_true(event_pool_init(&rig.events, &memory.allocator, 1));
    assert_true(deadlines_init(&rig.deadlines, &memory.allocator, &rig.events, CALL_RIG_WHEELS));
    test_at_end(close_rig);
}

struct event_node *node_at(uint32_t index)
{
    return event_at(&rig.events, index);
}

uint32_t take_node(void)
{
    return pool_take(&rig.events, &rig.cache);
}

void give_node(uint32_t index)
{
    pool_give(&rig.events, &rig.cache, index);
}
