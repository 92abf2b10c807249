/* SPDX-License-Identifier: MIT */
#include "relations/groups.h"

#include <stdalign.h>
#include <string.h>

#include "base/assert.h"
#include "base/mutex.h"
#include "dispatch/call.h"
#include "process/payload.h"

/* The first size of a shard's table. */
#define HEADS_FIRST 4

/* The log grows when the group has more than so many members for each of its entries. */
#define MEMBERS_PER_CHANGE 4

void groups_init(struct groups *groups, const struct allocator *allocator,
                 const struct object_pool *events, uint32_t limit, uint64_t seed)
{
    *groups =
        (struct groups){.allocator = allocator, .events = events, .limit = limit, .seed = seed};
    for (uint32_t i = 0; i < GROUPS_SHARDS; i++) {
        mutex_init(&groups->shards[i].lock);
    }
}

static size_t heads_size(uint32_t size)
{
    return size * sizeof(struct group *);
}

static size_t bytes_of_log(uint32_t count)
{
    return count * sizeof(struct group_change);
}

static void free_group(struct groups *groups, struct group *group)
{
    group_members_deinit(&group->members, groups->allocator);
    allocator_free(groups->allocator, group->log, bytes_of_log(group->log_size),
                   alignof(struct group_change));
    allocator_free(groups->allocator, group, sizeof *group, alignof(struct group));
}

/* A watch whose call was completed by a made-up completion is left, and so is its group. */
static void free_left(struct groups *groups, struct group *group)
{
    struct group_watches *const lists[] = {&group->armed, &group->sent};
    for (uint32_t i = 0; i < 2; i++) {
        while (lists[i]->first != NULL) {
            struct group_watch *watch = lists[i]->first;
            lists[i]->first = watch->next;
            allocator_free(groups->allocator, watch, sizeof *watch, alignof(struct group_watch));
        }
    }
    free_group(groups, group);
}

void groups_deinit(struct groups *groups)
{
    for (uint32_t i = 0; i < GROUPS_SHARDS; i++) {
        struct group_shard *shard = &groups->shards[i];
        for (uint32_t head = 0; head < shard->size; head++) {
            while (shard->heads[head] != NULL) {
                struct group *group = shard->heads[head];
                shard->heads[head] = group->next;
                free_left(groups, group);
            }
        }
        allocator_free(groups->allocator, shard->heads, heads_size(shard->size),
                       alignof(struct group *));
        mutex_deinit(&shard->lock);
    }
}

/* ---- shards ---- */

static struct group_shard *shard_of(struct groups *groups, uint64_t hash)
{
    return &groups->shards[hash >> (64 - GROUPS_SHARD_BITS)];
}

static struct group_shard *lock_shard(struct groups *groups, uint64_t hash)
{
    struct group_shard *shard = shard_of(groups, hash);
    mutex_lock(&shard->lock);
    return shard;
}

static bool is_named(const struct group *group, uint64_t hash, const char *text)
{
    return group->hash == hash && strcmp(group->name, text) == 0;
}

/* The group, or null. */
static struct group *find_locked(const struct group_shard *shard, uint64_t hash, const char *text)
{
    struct group *group = shard->size > 0 ? shard->heads[hash & (shard->size - 1)] : NULL;
    while (group != NULL && !is_named(group, hash, text)) {
        group = group->next;
    }
    return group;
}

/* Doubles the table. Without memory for that the chains grow, unless there is no table at all. */
static bool grow_locked(struct group_shard *shard, const struct allocator *allocator)
{
    const uint32_t size = shard->size > 0 ? 2 * shard->size : HEADS_FIRST;
    struct group **heads =
        allocator_alloc_zeroed(allocator, heads_size(size), alignof(struct group *));
    if (heads == NULL) {
        return shard->size > 0;
    }
    for (uint32_t i = 0; i < shard->size; i++) {
        while (shard->heads[i] != NULL) {
            struct group *group = shard->heads[i];
            struct group **head = &heads[group->hash & (size - 1)];
            shard->heads[i] = group->next;
            group->next = *head;
            *head = group;
        }
    }
    allocator_free(allocator, shard->heads, heads_size(shard->size), alignof(struct group *));
    shard->heads = heads;
    shard->size = size;
    return true;
}

/* Counts one more group; false if that would be too many. */
static bool count_group(struct groups *groups)
{
    if (fetch_add_relaxed(&groups->count, 1) < groups->limit) { /* a count */
        return true;
    }
    (void)fetch_sub_relaxed(&groups->count, 1); /* a count */
    return false;
}

static int make_group_locked(struct groups *groups, struct group_shard *shard, uint64_t hash,
                             const char *text, struct group **made)
{
    if (!count_group(groups)) {
        return SKUA_E_GROUP_LIMIT;
    }
    struct group *group =
        shard->count < shard->size || grow_locked(shard, groups->allocator)
            ? allocator_alloc_zeroed(groups->allocator, sizeof *group, alignof(struct group))
            : NULL;
    if (group == NULL) {
        (void)fetch_sub_relaxed(&groups->count, 1); /* a count */
        return SKUA_E_NO_MEMORY;
    }
    group->hash = hash;
    memcpy(group->name, text, strlen(text) + 1); /* it was checked: it fits */
    group->next = shard->heads[hash & (shard->size - 1)];
    shard->heads[hash & (shard->size - 1)] = group;
    shard->count++;
    *made = group;
    return 0;
}

/* The group, made if there is none. Returns 0, SKUA_E_GROUP_LIMIT or SKUA_E_NO_MEMORY. */
static int find_or_make_locked(struct groups *groups, struct group_shard *shard, uint64_t hash,
                               const char *text, struct group **group)
{
    *group = find_locked(shard, hash, text);
    return *group != NULL ? 0 : make_group_locked(groups, shard, hash, text, group);
}

static void free_if_unused_locked(struct groups *groups, struct group_shard *shard,
                                  struct group *group)
{
    if (group->members.count > 0 || group->watch_count > 0 || group->cursors > 0) {
        return;
    }
    struct group **link = &shard->heads[group->hash & (shard->size - 1)];
    while (*link != group) {
        link = &(*link)->next;
    }
    *link = group->next;
    shard->count--;
    free_group(groups, group);
    (void)fetch_sub_relaxed(&groups->count, 1); /* a count */
}

/* ---- the log ---- */

/* A larger one, with what the old one has. False, and the old one stays, without memory. */
static bool grow_log_locked(struct group *group, const struct allocator *allocator)
{
    const uint32_t size = group->log_size > 0 ? 2 * group->log_size : GROUP_LOG_MIN;
    struct group_change *log =
        allocator_alloc(allocator, bytes_of_log(size), alignof(struct group_change));
    if (log == NULL) {
        return false;
    }
    for (uint64_t i = group->logged_from; group->log != NULL && i < group->changes; i++) {
        log[i & (size - 1)] = group->log[i & (group->log_size - 1)];
    }
    allocator_free(allocator, group->log, bytes_of_log(group->log_size),
                   alignof(struct group_change));
    group->log = log;
    group->log_size = size;
    return true;
}

/* Claims calls of watches that are behind, as many as there is room for. */
static void claim_calls_locked(struct groups *groups, struct group *group,
                               struct group_calls *calls);

static void add_change_locked(struct groups *groups, struct group *group, skua_pid pid,
                              bool has_joined, struct group_calls *calls)
{
    if (group->watch_count == 0) {
        return;
    }
    if (group->members.count / MEMBERS_PER_CHANGE > group->log_size) {
        (void)!grow_log_locked(group, groups->allocator); /* if not, there are more snapshots */
    }
    group->logged_from += group->changes - group->logged_from == group->log_size;
    group->log[group->changes++ & (group->log_size - 1)] =
        (struct group_change){.pid = pid, .has_joined = has_joined};
    claim_calls_locked(groups, group, calls);
}

/* ---- memberships ---- */

/* Where the membership hangs, or would. */
static struct membership **find_membership(struct membership **link, uint64_t hash,
                                           const char *text)
{
    for (uint64_t bits = hash; *link != NULL && !is_named((*link)->group, hash, text); bits <<= 1) {
        link = &(*link)->child[bits >> 63];
    }
    return link;
}

/* Some leaf below takes its place: it fits wherever its way down leads through. */
static struct membership *unhook(struct membership **link)
{
    struct membership *removed = *link;
    struct membership **leaf = link;
    while ((*leaf)->child[0] != NULL || (*leaf)->child[1] != NULL) {
        leaf = &(*leaf)->child[(*leaf)->child[0] == NULL];
    }
    struct membership *heir = *leaf;
    *leaf = NULL;
    if (heir != removed) {
        heir->child[0] = removed->child[0];
        heir->child[1] = removed->child[1];
        *link = heir;
    }
    return removed;
}

static void free_membership(struct groups *groups, struct membership *membership)
{
    allocator_free(groups->allocator, membership, sizeof *membership, alignof(struct membership));
}

static int join_locked(struct groups *groups, struct group_shard *shard, const struct name_key *key,
                       const char *text, skua_pid pid, struct membership *membership,
                       struct group_calls *calls)
{
    struct group *group;
    const int error = find_or_make_locked(groups, shard, key->hash, text, &group);
    if (error != 0) {
        return error;
    }
    if (!group_members_add_locked(&group->members, groups->allocator, pid, &membership->place)) {
        free_if_unused_locked(groups, shard, group);
        return SKUA_E_NO_MEMORY;
    }
    membership->group = group;
    membership->joins = 1;
    add_change_locked(groups, group, pid, true, calls);
    return 0;
}

int groups_join_any(struct groups *groups, const char *text, skua_pid pid, struct membership **root,
                    bool *is_new, struct group_calls *calls)
{
    struct name_key key;
    int error = name_key_make(&key, text, groups->seed);
    if (error != 0) {
        return error;
    }
    struct membership **link = find_membership(root, key.hash, text);
    *is_new = *link == NULL;
    if (!*is_new) {
        (*link)->joins++;
        return 0;
    }
    struct membership *membership =
        allocator_alloc_zeroed(groups->allocator, sizeof *membership, alignof(struct membership));
    if (membership == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    struct group_shard *shard = lock_shard(groups, key.hash);
    error = join_locked(groups, shard, &key, text, pid, membership, calls);
    mutex_unlock(&shard->lock);
    if (error != 0) {
        free_membership(groups, membership);
        return error;
    }
    *link = membership;
    return 0;
}

/* Ends the membership that hangs there. */
static void end_membership(struct groups *groups, struct membership **link,
                           struct group_calls *calls)
{
    struct membership *membership = unhook(link);
    struct group *group = membership->group;
    const struct group_place place = membership->place;
    struct group_shard *shard = lock_shard(groups, group->hash);
    const skua_pid pid = place.chunk->pids[place.number];
    group_members_remove_locked(&group->members, groups->allocator, place);
    add_change_locked(groups, group, pid, false, calls);
    free_if_unused_locked(groups, shard, group);
    mutex_unlock(&shard->lock);
    free_membership(groups, membership);
}

int groups_leave_any(struct groups *groups, const char *text, struct membership **root,
                     bool *is_over, struct group_calls *calls)
{
    struct name_key key;
    const int error = name_key_make(&key, text, groups->seed);
    if (error != 0) {
        return error;
    }
    struct membership **link = find_membership(root, key.hash, text);
    if (*link == NULL) {
        return SKUA_E_NOT_MEMBER;
    }
    *is_over = --(*link)->joins == 0;
    if (*is_over) {
        end_membership(groups, link, calls);
    }
    return 0;
}

void groups_leave_one_any(struct groups *groups, struct membership **root,
                          struct group_calls *calls)
{
    end_membership(groups, root, calls);
}

/* ---- who is there ---- */

int groups_members_any(struct groups *groups, const char *text, skua_pid *pids, size_t capacity)
{
    struct name_key key;
    const int error = name_key_make(&key, text, groups->seed);
    if (error != 0) {
        return error;
    }
    uint32_t count = 0;
    struct group_shard *shard = lock_shard(groups, key.hash);
    const struct group *group = find_locked(shard, key.hash, text);
    if (group != NULL) {
        count = group->members.count;
        group_members_copy_locked(&group->members, pids, capacity);
    }
    mutex_unlock(&shard->lock);
    return (int)count;
}

void groups_show_any(struct groups *groups, void (*show)(void *arg, const struct group *group),
                     void *arg)
{
    for (uint32_t i = 0; i < GROUPS_SHARDS; i++) {
        struct group_shard *shard = &groups->shards[i];
        mutex_lock(&shard->lock);
        for (uint32_t head = 0; head < shard->size; head++) {
            for (const struct group *group = shard->heads[head]; group != NULL;
                 group = group->next) {
                show(arg, group);
            }
        }
        mutex_unlock(&shard->lock);
    }
}

/* ---- cursors ---- */

struct group *groups_open_cursor_any(struct groups *groups, const char *text,
                                     struct group_cursor *cursor, uint32_t *count)
{
    struct name_key key;
    const int error = name_key_make(&key, text, groups->seed);
    SKUA_ASSERT(error == 0);
    (void)error;
    struct group_shard *shard = lock_shard(groups, key.hash);
    struct group *group = find_locked(shard, key.hash, text);
    *count = group != NULL ? group->members.count : 0;
    if (*count > 0) {
        group->cursors++;
        group_cursor_open_locked(cursor, &group->members);
    }
    mutex_unlock(&shard->lock);
    return *count > 0 ? group : NULL;
}

uint32_t groups_visit_any(struct groups *groups, struct group *group, struct group_cursor *cursor,
                          skua_pid *pids, uint32_t most)
{
    struct group_shard *shard = lock_shard(groups, group->hash);
    const uint32_t count =
        group_cursor_visit_locked(cursor, &group->members, groups->allocator, pids, most);
    if (cursor->at.chunk == NULL) {
        group->cursors--;
        free_if_unused_locked(groups, shard, group);
    }
    mutex_unlock(&shard->lock);
    return count;
}

/* ---- watches ---- */

static struct group_watches *list_of(const struct group_watch *watch)
{
    return watch->is_armed ? &watch->group->armed : &watch->group->sent;
}

static void append_watch_locked(struct group_watch *watch, bool is_armed)
{
    watch->is_armed = is_armed;
    struct group_watches *list = list_of(watch);
    watch->previous = list->last;
    watch->next = NULL;
    if (list->last != NULL) {
        list->last->next = watch;
    } else {
        list->first = watch;
    }
    list->last = watch;
}

static void remove_watch_locked(struct group_watch *watch)
{
    struct group_watches *list = list_of(watch);
    if (watch->previous != NULL) {
        watch->previous->next = watch->next;
    } else {
        list->first = watch->next;
    }
    if (watch->next != NULL) {
        watch->next->previous = watch->previous;
    } else {
        list->last = watch->previous;
    }
}

static void claim_calls_locked(struct groups *groups, struct group *group,
                               struct group_calls *calls)
{
    struct group_watch *watch;
    while (calls->count < GROUP_TELLS && (watch = group->armed.first) != NULL &&
           watch->seen != group->changes) {
        remove_watch_locked(watch);
        append_watch_locked(watch, false);
        if (call_claim_any(event_at(groups->events, watch->node), watch->guard)) {
            calls->calls[calls->count++] =
                (struct group_call){.node = watch->node, .owner = watch->owner};
        } /* otherwise its process has ended it, and removes it next */
    }
}

static int watch_locked(struct groups *groups, struct group_shard *shard, uint64_t hash,
                        const char *text, struct group_watch *watch)
{
    struct group *group;
    const int error = find_or_make_locked(groups, shard, hash, text, &group);
    if (error != 0) {
        return error;
    }
    if (group->log == NULL && !grow_log_locked(group, groups->allocator)) {
        free_if_unused_locked(groups, shard, group);
        return SKUA_E_NO_MEMORY;
    }
    group->watch_count++;
    watch->group = group;
    watch->seen = GROUP_UNSEEN;
    append_watch_locked(watch, false);
    return 0;
}

int groups_watch_any(struct groups *groups, const char *text, struct group_watch *watch)
{
    struct name_key key;
    int error = name_key_make(&key, text, groups->seed);
    SKUA_ASSERT(error == 0);
    struct group_shard *shard = lock_shard(groups, key.hash);
    error = watch_locked(groups, shard, key.hash, text, watch);
    mutex_unlock(&shard->lock);
    return error;
}

static int draw_snapshot_locked(struct groups *groups, const struct group *group,
                                skua_payload *news)
{
    const uint32_t count = group->members.count;
    *news = skua_payload_empty(SKUA_GROUP_SNAPSHOT);
    if (count == 0) {
        return 0;
    }
    const int error =
        payload_alloc(groups->allocator, SKUA_GROUP_SNAPSHOT, count * sizeof(skua_pid), news);
    if (error == 0) {
        group_members_copy_locked(&group->members, news->as.owned.data, count);
    }
    return error;
}

/* What the watch is told next. */
static int draw_news_locked(struct groups *groups, struct group_watch *watch, skua_payload *news)
{
    const struct group *group = watch->group;
    const bool is_logged = watch->seen >= group->logged_from && watch->seen < group->changes;
    if (is_logged) {
        const struct group_change *change = &group->log[watch->seen++ & (group->log_size - 1)];
        *news =
            skua_payload_pid(change->has_joined ? SKUA_GROUP_JOINED : SKUA_GROUP_LEFT, change->pid);
        return 0;
    }
    const int error = draw_snapshot_locked(groups, group, news);
    watch->seen = error == 0 ? group->changes : watch->seen;
    return error;
}

/* Opens the call again before anybody can claim it. */
static void arm_locked(struct groups *groups, struct group_watch *watch)
{
    struct event_node *node = event_at(groups->events, watch->node);
    watch->guard = call_guard(call_reopen_owner(node, watch->node, watch->owner));
    remove_watch_locked(watch);
    append_watch_locked(watch, true);
}

int groups_take_news_any(struct groups *groups, struct group_watch *watch, skua_payload *news,
                         bool *has_more, struct group_calls *calls)
{
    struct group *group = watch->group;
    struct group_shard *shard = lock_shard(groups, group->hash);
    const int error = draw_news_locked(groups, watch, news);
    *has_more = error == 0 && watch->seen != group->changes;
    if (error == 0 && !*has_more) {
        arm_locked(groups, watch);
    }
    claim_calls_locked(groups, group, calls);
    mutex_unlock(&shard->lock);
    return error;
}

void groups_unwatch_any(struct groups *groups, struct group_watch *watch, struct group_calls *calls)
{
    struct group *group = watch->group;
    struct group_shard *shard = lock_shard(groups, group->hash);
    remove_watch_locked(watch);
    group->watch_count--;
    claim_calls_locked(groups, group, calls);
    free_if_unused_locked(groups, shard, group);
    mutex_unlock(&shard->lock);
}
