/* SPDX-License-Identifier: MIT */
#include "groups.h"

#define MEMBERS_MAX 200

/* ---- acts ---- */

static int enter(struct turn *turn, const struct act *act)
{
    return skua_group_join(turn->ctx, act->arg);
}

struct act enters(const char *group)
{
    return (struct act){.perform = enter, .arg = (void *)(uintptr_t)group};
}

static int leave(struct turn *turn, const struct act *act)
{
    return skua_group_leave(turn->ctx, act->arg);
}

struct act leaves(const char *group)
{
    return (struct act){.perform = leave, .arg = (void *)(uintptr_t)group};
}

static int watch(struct turn *turn, const struct act *act)
{
    return skua_yield_group_watch(turn->ctx, act->tag, act->arg);
}

struct act watches(uint64_t tag, const char *group)
{
    return (struct act){.perform = watch, .tag = tag, .arg = (void *)(uintptr_t)group};
}

static int publish(struct turn *turn, const struct act *act)
{
    return skua_yield_publish(turn->ctx, act->tag, act->arg,
                              skua_payload_u64(act->type, act->number));
}

struct act publishes(uint64_t tag, const char *group, uint32_t type, uint64_t number)
{
    return (struct act){.perform = publish,
                        .tag = tag,
                        .type = type,
                        .number = number,
                        .arg = (void *)(uintptr_t)group};
}

/* ---- what an actor has seen ---- */

static struct seen news(uint64_t tag, uint32_t what, uint64_t value)
{
    return (struct seen){
        .type = SKUA_EVENT_GROUP, .tag = tag, .payload_type = what, .value = value};
}

struct seen joined(uint64_t tag, const struct actor *member)
{
    return news(tag, SKUA_GROUP_JOINED, member->pid.bits);
}

struct seen left(uint64_t tag, const struct actor *member)
{
    return news(tag, SKUA_GROUP_LEFT, member->pid.bits);
}

struct seen snapshot_of_these(uint64_t tag, const struct actor *const *members, size_t count)
{
    skua_pid pids[MEMBERS_MAX] = {{0}};
    assert_in_range(count, 0, MEMBERS_MAX);
    for (size_t i = 0; i < count; i++) {
        pids[i] = members[i]->pid;
    }
    struct seen seen = news(tag, SKUA_GROUP_SNAPSHOT, 0);
    seen.has_bytes = true;
    seen.size = count * sizeof *pids;
    seen.digest = bytes_digest(pids, seen.size);
    return seen;
}

struct seen empty_snapshot(uint64_t tag)
{
    return snapshot_of_these(tag, NULL, 0);
}

struct seen published(uint64_t tag, uint64_t accepted, uint64_t refused)
{
    const skua_published words = {accepted, refused};
    return received_bytes(tag, &words, sizeof words);
}

/* ---- from the thread of the test ---- */

void assert_these_members(const char *group, const struct actor *const *members, size_t count)
{
    skua_pid pids[MEMBERS_MAX];
    assert_in_range(count, 0, MEMBERS_MAX);
    assert_int_equal(skua_group_members(world_runtime(), group, pids, MEMBERS_MAX), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pids[i].bits, members[i]->pid.bits);
    }
}

void assert_no_members(const char *group)
{
    assert_these_members(group, NULL, 0);
}

int group_count(void)
{
    return skua_group_list(world_runtime(), NULL, 0);
}
