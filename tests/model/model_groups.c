/* SPDX-License-Identifier: MIT */
/* relations/groups.c and sched/grouping.c: processes that join and leave a group or end, against
 * others that watch it, that take that back or end, in all orders in which these cross. One change
 * tells one watch, and the log has room for two, so that watches tell each other and fall behind.
 *
 * INV-14: a watch has one completion, and nothing of it is heard after that.
 * INV-20: each node is given back exactly once, and groups and watches are freed, after which
 *         nobody who knew them touches them.
 * INV-43: who watches a group hears of all changes, without a gap and in order: nobody joins who is
 *         a member, or leaves who is none, and when all rests, it knows the members. */
#include <skua/group.h>

#include "cast.h"
#include "relations/groups.h"
#include "sched/grouping.h"

#define GROUP       "g"
#define GROUP_LIMIT 4
#define TAGS_MAX    3

enum { ANN, BOB, CID };

/* UNWATCH takes back the watch that began last. */
enum { JOIN = ACTS, LEAVE, WATCH, UNWATCH };

/* What a part knows; touched by its thread alone, and read in the end. */
struct watching {
    uint32_t begun; /* the last of these may be open */
    uint32_t ends[TAGS_MAX];
    bool has_snapshot;
    bool knows[PARTS_MAX]; /* that they are members */
};

static struct watching watchings[PARTS_MAX];

static int perform(skua_context *ctx, uint32_t who, uint32_t act)
{
    struct watching *watching = &watchings[who];
    switch (act) {
    case JOIN:
        return skua_group_join(ctx, GROUP);
    case LEAVE:
        return skua_group_leave(ctx, GROUP);
    case WATCH:
        watching->has_snapshot = false;
        return skua_yield_group_watch(ctx, watching->begun++, GROUP);
    default:
        return skua_yield_cancel(ctx, watching->begun - 1);
    }
}

static uint32_t part_with(skua_pid pid)
{
    uint32_t who = 0;
    while (who < part_count && !skua_pid_equal(parts[who].pid, pid)) {
        who++;
    }
    EXPLORE_CHECK(who < part_count, "INV-43: only those that were made are members");
    return who;
}

static void get_snapshot(struct watching *watching, const skua_payload *payload)
{
    size_t count;
    const skua_pid *members = skua_group_get_members(payload, &count);
    memset(watching->knows, 0, sizeof watching->knows);
    for (size_t i = 0; i < count; i++) {
        bool *knows = &watching->knows[part_with(members[i])];
        EXPLORE_CHECK(!*knows, "INV-43: a member is listed once");
        *knows = true;
    }
    watching->has_snapshot = true;
}

static void get_news(uint32_t who, const skua_event *event)
{
    struct watching *watching = &watchings[who];
    const uint32_t type = event->payload.type;
    EXPLORE_CHECK(event->tag + 1 == watching->begun && watching->ends[event->tag] == 0,
                  "INV-14: only an open watch is told anything");
    if (type == SKUA_GROUP_SNAPSHOT) {
        explore_note("gets a snapshot");
        get_snapshot(watching, &event->payload);
        return;
    }
    const uint32_t changed = part_with(skua_payload_to_pid(&event->payload));
    explore_note("hears that %u %s", (unsigned)changed,
                 type == SKUA_GROUP_JOINED ? "has joined" : "has left");
    EXPLORE_CHECK(watching->has_snapshot, "INV-43: the snapshot comes first");
    EXPLORE_CHECK(watching->knows[changed] == (type == SKUA_GROUP_LEFT),
                  "INV-43: no change is missing, and none comes twice");
    watching->knows[changed] = type == SKUA_GROUP_JOINED;
}

static bool get_event(skua_context *ctx, uint32_t who, skua_event *event)
{
    (void)ctx;
    if (event->type == SKUA_EVENT_GROUP) {
        get_news(who, event);
    } else if (event->type == SKUA_EVENT_COMPLETION) {
        explore_note("watch %u ends: %s", (unsigned)event->tag, skua_error_name(event->error));
        EXPLORE_CHECK(++watchings[who].ends[event->tag] == 1, "INV-14: one completion to a watch");
        EXPLORE_CHECK(event->error == SKUA_E_CANCELLED, "INV-14: because it was taken back");
    } else {
        EXPLORE_CHECK(event->type == SKUA_EVENT_START, "nothing else comes");
        return true;
    }
    return false;
}

static void take_leave(skua_context *ctx, uint32_t who)
{
    (void)ctx;
    (void)who;
}

/* ---- the beginning ---- */

static const skua_process_type plain = {PART_TYPE("plain")};

static void prepare(void)
{
    groups_init(&rig.groups, &rig.allocator, &rig.events, GROUP_LIMIT, 1);
    grouping_attach(&rig);
    memset(watchings, 0, sizeof watchings);
}

/* Ann watches from now on. */
SCENE(watch_now, "", {&plain, {WATCH}}, {&plain, {JOIN, PAUSE, LEAVE}})
SCENE(watch_now_ending, "", {&plain, {WATCH}}, {&plain, {JOIN, PAUSE, FAIL}})

/* She has been told that there is nobody. */
#define WATCHES "00"
SCENE(joins, WATCHES, {&plain, {WATCH, PAUSE}}, {&plain, {JOIN, PAUSE, LEAVE}})
SCENE(joins_ending, WATCHES, {&plain, {WATCH, PAUSE}}, {&plain, {JOIN, PAUSE, FAIL}})
SCENE(unwatched, WATCHES, {&plain, {WATCH, PAUSE, PAUSE, UNWATCH}}, {&plain, {JOIN}})
SCENE(watched_again, WATCHES, {&plain, {WATCH, PAUSE, PAUSE, UNWATCH, WATCH}}, {&plain, {JOIN}})
SCENE(watcher_ends, WATCHES, {&plain, {WATCH, PAUSE, PAUSE, FAIL}}, {&plain, {JOIN}})

/* Changes are faster than she is. */
SCENE(falls_behind, WATCHES, {&plain, {WATCH, PAUSE}}, {&plain, {JOIN, LEAVE, JOIN, LEAVE, JOIN}})
SCENE(falls_behind_two, WATCHES, {&plain, {WATCH, PAUSE}}, {&plain, {JOIN, LEAVE, JOIN}},
      {&plain, {JOIN, LEAVE}})

/* Cid watches as well, and is told of a change by whoever is told before. */
#define BOTH_WATCH "0022"
SCENE(two_watches, BOTH_WATCH, {&plain, {WATCH, PAUSE}}, {&plain, {JOIN}}, {&plain, {WATCH, PAUSE}})
SCENE(one_unwatches, BOTH_WATCH, {&plain, {WATCH, PAUSE, PAUSE, UNWATCH}}, {&plain, {JOIN}},
      {&plain, {WATCH, PAUSE}})
SCENE(one_ends, BOTH_WATCH, {&plain, {WATCH, PAUSE, PAUSE, FAIL}}, {&plain, {JOIN}},
      {&plain, {WATCH, PAUSE}})
SCENE(all_of_it, "", {&plain, {WATCH, PAUSE, JOIN, PAUSE, UNWATCH, PAUSE, WATCH}},
      {&plain, {JOIN, PAUSE, LEAVE, JOIN, PAUSE, LEAVE, PAUSE, FAIL}},
      {&plain, {JOIN, WATCH, PAUSE, LEAVE, PAUSE, UNWATCH, WATCH, PAUSE}})

/* ---- the end ---- */

/* The last one that began, if it was not taken back. */
static bool watch_is_open(uint32_t who)
{
    const struct watching *watching = &watchings[who];
    return watching->begun > 0 && watching->ends[watching->begun - 1] == 0;
}

static void check_view(uint32_t who, const skua_pid *members, uint32_t count)
{
    const struct watching *watching = &watchings[who];
    uint32_t known = 0;
    EXPLORE_CHECK(watching->has_snapshot, "INV-43: a watch begins with a snapshot");
    for (uint32_t i = 0; i < part_count; i++) {
        known += watching->knows[i];
    }
    EXPLORE_CHECK(known == count, "INV-43: who watches knows how many there are");
    for (uint32_t i = 0; i < count; i++) {
        EXPLORE_CHECK(watching->knows[part_with(members[i])], "INV-43: and who they are");
    }
}

static void check(void)
{
    skua_pid members[PARTS_MAX];
    const int count = groups_members_any(&rig.groups, GROUP, members, PARTS_MAX);
    for (int i = 0; i < count; i++) {
        EXPLORE_CHECK(is_live(part_with(members[i])), "INV-43: who has ended is no member");
    }
    for (uint32_t i = 0; i < part_count; i++) {
        if (is_live(i) && watch_is_open(i)) {
            check_view(i, members, (uint32_t)count);
        }
    }
    cast_end();
    EXPLORE_CHECK(load_relaxed(&rig.groups.count) == 0, "INV-20: no group is left");
    groups_deinit(&rig.groups);
}

#define ANN_RUNS PART("ann", ANN)
#define BOB_RUNS PART("bob", BOB)
#define CID_RUNS PART("cid", CID)

static const struct explore_model models[] = {
    BOUNDED("watch_vs_join", 3, watch_now, check, ANN_RUNS, BOB_RUNS),
    BOUNDED("watch_vs_exit", 3, watch_now_ending, check, ANN_RUNS, BOB_RUNS),
    WEAK("join_and_leave", joins, check, ANN_RUNS, BOB_RUNS),
    WEAK("join_and_exit", joins_ending, check, ANN_RUNS, BOB_RUNS),
    WEAK("unwatch_vs_join", unwatched, check, ANN_RUNS, BOB_RUNS),
    BOUNDED("watch_again_vs_join", 3, watched_again, check, ANN_RUNS, BOB_RUNS),
    WEAK("watcher_exit_vs_join", watcher_ends, check, ANN_RUNS, BOB_RUNS),
    BOUNDED("watcher_kill_vs_join", 3, joins, check, ANN_RUNS, BOB_RUNS, KILLS(ANN)),
    BOUNDED("falls_behind", 3, falls_behind, check, ANN_RUNS, BOB_RUNS),
    BOUNDED("falls_behind_two", 2, falls_behind_two, check, ANN_RUNS, BOB_RUNS, CID_RUNS),
    BOUNDED("two_watches", 3, two_watches, check, ANN_RUNS, BOB_RUNS, CID_RUNS),
    BOUNDED("one_unwatches", 3, one_unwatches, check, ANN_RUNS, BOB_RUNS, CID_RUNS),
    BOUNDED("one_ends", 3, one_ends, check, ANN_RUNS, BOB_RUNS, CID_RUNS),
    RANDOM("many", all_of_it, check, ANN_RUNS, BOB_RUNS, CID_RUNS),
    RANDOM("many_kills", all_of_it, check, ANN_RUNS, BOB_RUNS, CID_RUNS, KILLS(ANN)),
};

EXPLORE_MAIN(models)
