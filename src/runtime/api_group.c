/* SPDX-License-Identifier: MIT */
/* The functions of skua/group.h. */
#include <skua/group.h>

#include <string.h>

#include "base/sized.h"
#include "runtime/caller.h"
#include "runtime/runtime.h"
#include "sched/context.h"
#include "sched/grouping.h"
#include "sched/naming.h"
#include "sched/publishing.h"

/* ---- being a member ---- */

int skua_group_join(skua_context *ctx, const char *name)
{
    const int refused = context_refuse_but_step(ctx);
    return refused != 0 ? refused : grouping_join(ctx, name);
}

int skua_group_leave(skua_context *ctx, const char *name)
{
    const int refused = context_refuse(ctx, CONTEXT_ANY);
    return refused != 0 ? refused : grouping_leave(ctx, name);
}

/* ---- who is a member ---- */

int skua_group_members(skua_runtime *runtime, const char *name, skua_pid *pids, size_t capacity)
{
    if (runtime == NULL || (pids == NULL && capacity > 0)) {
        return SKUA_E_INVALID;
    }
    const struct worker *worker = caller_look(runtime);
    const int count = groups_members_any(&runtime->sched.groups, name, pids, capacity);
    caller_look_away(runtime, worker);
    return count;
}

/* The caller's array, while it is filled. */
struct group_listing {
    char *groups;
    size_t capacity;
    size_t stride;
    size_t count;
};

static void list_group(void *arg, const struct group *group)
{
    struct group_listing *listing = arg;
    if (listing->count < listing->capacity) {
        skua_group_snapshot snapshot = {.members = group->members.count,
                                        .watchers = group->watch_count};
        memcpy(snapshot.name, group->name, sizeof snapshot.name);
        sized_write(listing->groups + listing->count * listing->stride, listing->stride, &snapshot,
                    sizeof snapshot);
    }
    listing->count++;
}

_Static_assert(sizeof((skua_group_snapshot){0}.name) == NAME_SIZE, "both have so many");

int skua_group_list_sized(skua_runtime *runtime, skua_group_snapshot *groups, size_t capacity,
                          size_t stride)
{
    struct group_listing listing = {
        .groups = (char *)groups, .capacity = capacity, .stride = stride};
    if (runtime == NULL || stride == 0 || (groups == NULL && capacity > 0)) {
        return SKUA_E_INVALID;
    }
    const struct worker *worker = caller_look(runtime);
    groups_show_any(&runtime->sched.groups, list_group, &listing);
    caller_look_away(runtime, worker);
    return (int)listing.count;
}

/* ---- watching and writing ---- */

int skua_yield_group_watch(skua_context *ctx, uint64_t tag, const char *name)
{
    int error;
    struct yield *yield;
    struct step_output *out = context_output(ctx, &error);
    error = error != 0 ? error : names_check(name);
    if (error != 0) {
        return error;
    }
    char *copy = naming_copy(ctx->sched, name);
    struct group_watch *watch = copy != NULL ? grouping_make_watch(ctx->sched) : NULL;
    error = watch == NULL
                ? SKUA_E_NO_MEMORY
                : step_output_yield(out, tag, service_command(SERVICE_GROUP), SKUA_FOREVER, &yield);
    if (error != 0) {
        naming_free_copy(ctx->sched, copy);
        grouping_free_watch(ctx->sched, watch);
        return error;
    }
    yield->as.group.text = copy;
    yield->as.group.watch = watch;
    return 0;
}

int skua_yield_publish(skua_context *ctx, uint64_t tag, const char *name, skua_payload payload)
{
    return publishing_yield(ctx, tag, name, &payload);
}
