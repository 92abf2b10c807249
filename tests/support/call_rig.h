/* SPDX-License-Identifier: MIT */
/* What open calls live in, without a scheduler: event nodes, and wheels for their deadlines. */
#ifndef SKUA_TESTS_CALL_RIG_H
#define SKUA_TESTS_CALL_RIG_H

#include "dispatch/call.h"
#include "dispatch/deadlines.h"
#include "test_memory.h"

#define CALL_RIG_WHEELS 3

struct call_rig {
    struct object_pool events;
    struct pool_cache cache;
    struct deadlines deadlines;
};

extern struct call_rig call_rig;

/* Opens the memory, too; both are closed when the test ends. */
void call_rig_open(void);

struct event_node *node_at(uint32_t index);
uint32_t take_node(void);
void give_node(uint32_t index);

#endif
