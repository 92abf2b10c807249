/* SPDX-License-Identifier: MIT */
#include "standstill.h"

#include "actor.h"

static struct {
    struct actor **holders;
    int count;
} standstill;

void standstill_begin(void)
{
    standstill.count = skua_stats_read(world_runtime(), &(skua_stats){0}, NULL, 0);
    assert_true(standstill.count > 0);
    standstill.holders = test_alloc((size_t)standstill.count * sizeof *standstill.holders);
    for (int i = 0; i < standstill.count; i++) {
        standstill.holders[i] = actor_start(ACTS(holds(), finishes(0)));
        actor_await_held(standstill.holders[i], 1);
    }
}

void standstill_end(void)
{
    for (int i = 0; i < standstill.count; i++) {
        actor_let_go(standstill.holders[i]);
    }
}
