/* SPDX-License-Identifier: MIT */
#include "quotas.h"

#include "test.h"

static int perform_grant(struct turn *turn, const struct act *act)
{
    return skua_limit(turn->ctx, *(const skua_quota *)act->arg);
}

struct act grants(skua_quota quota)
{
    skua_quota *copy = test_alloc(sizeof *copy);
    *copy = quota;
    return does(perform_grant, copy);
}

struct actor *grantor_start(skua_quota quota)
{
    struct actor *actor = actor_start(ACTS(grants(quota)));
    world_settle();
    return actor;
}

static int perform_owns(struct turn *turn, const struct act *act)
{
    return skua_own_alloc(turn->ctx, act->number, act->arg);
}

struct act owns(void **pointer, size_t size)
{
    struct act act = does(perform_owns, pointer);
    act.number = size;
    return act;
}

static int perform_disowns(struct turn *turn, const struct act *act)
{
    return skua_own_free(turn->ctx, *(void **)act->arg);
}

struct act disowns(void **pointer)
{
    return does(perform_disowns, pointer);
}

skua_quota quota_used(skua_pid pid)
{
    skua_quota_use use;
    assert_int_equal(skua_process_quota(world_runtime(), pid, &use), 0);
    return use.used;
}

void assert_used(skua_pid pid, uint32_t processes, uint32_t messages, size_t bytes)
{
    const skua_quota used = quota_used(pid);
    assert_int_equal(used.processes, processes);
    assert_int_equal(used.messages, messages);
    assert_int_equal(used.bytes, bytes);
}
