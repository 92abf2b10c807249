/* SPDX-License-Identifier: MIT */
#include "standstill.h"

#include "world.h"

static struct {
    struct blocker *blockers;
    int count;
} standstill;

void standstill_begin(void)
{
    standstill.count = skua_stats_read(world_runtime(), &(skua_stats){0}, NULL, 0);
    assert_true(standstill.count > 0);
    standstill.blockers = test_alloc((size_t)standstill.count * sizeof *standstill.blockers);
    for (int i = 0; i < standstill.count; i++) {
        blocker_start(&standstill.blockers[i], world->api);
    }
}

void standstill_end(void)
{
    for (int i = 0; i < standstill.count; i++) {
        blocker_release(&standstill.blockers[i]);
    }
}
