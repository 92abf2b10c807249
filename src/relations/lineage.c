/* SPDX-License-Identifier: MIT */
#include "relations/lineage.h"

#include <stdio.h>
#include <string.h>

#include "base/mutex.h"
#include "process/table.h"

void lineage_init(struct lineage *lineage)
{
    for (uint32_t i = 0; i < LINEAGE_LOCKS; i++) {
        mutex_init(&lineage->locks[i]);
    }
}

void lineage_deinit(struct lineage *lineage)
{
    for (uint32_t i = 0; i < LINEAGE_LOCKS; i++) {
        mutex_deinit(&lineage->locks[i]);
    }
}

static pthread_mutex_t *lock_of(struct lineage *lineage, skua_pid pid)
{
    return &lineage->locks[pid_slot(pid) % LINEAGE_LOCKS];
}

static struct lineage_member **bucket_of(struct lineage *lineage, skua_pid pid)
{
    return &lineage->buckets[pid_slot(pid) % LINEAGE_BUCKETS];
}

static struct lineage_member *find_locked(struct lineage *lineage, skua_pid pid)
{
    struct lineage_member *member = *bucket_of(lineage, pid);
    while (member != NULL && !skua_pid_equal(member->pid, pid)) {
        member = member->next;
    }
    return member;
}

/* ---- coming and going ---- */

static void set_name_locked(struct lineage_member *member, const char *name)
{
    if (name != NULL) {
        (void)snprintf(member->name, sizeof member->name, "%s", name);
    }
}

void lineage_join_any(struct lineage *lineage, struct lineage_member *member, skua_pid pid,
                      skua_pid supervisor, const char *name)
{
    mutex_lock(lock_of(lineage, pid));
    if (skua_pid_is_none(member->pid)) {
        struct lineage_member **bucket = bucket_of(lineage, pid);
        *member = (struct lineage_member){.pid = pid, .supervisor = supervisor, .next = *bucket};
        *bucket = member;
    } else if (!skua_pid_is_none(supervisor)) {
        member->supervisor = supervisor;
    }
    set_name_locked(member, name);
    mutex_unlock(lock_of(lineage, pid));
}

void lineage_leave_any(struct lineage *lineage, struct lineage_member *member)
{
    const skua_pid pid = member->pid; /* only its own process changes that */
    if (skua_pid_is_none(pid)) {
        return;
    }
    mutex_lock(lock_of(lineage, pid));
    struct lineage_member **place = bucket_of(lineage, pid);
    while (*place != member) {
        place = &(*place)->next;
    }
    *place = member->next;
    member->pid = (skua_pid){0};
    mutex_unlock(lock_of(lineage, pid));
}

/* ---- templates ---- */

void lineage_offer_any(struct lineage *lineage, struct lineage_member *member,
                       const skua_supervisor *offers)
{
    mutex_lock(lock_of(lineage, member->pid));
    member->offers = offers;
    member->has_stopped = offers == NULL;
    mutex_unlock(lock_of(lineage, member->pid));
}

void lineage_set_quota_any(struct lineage *lineage, struct lineage_member *member,
                           struct quota *quota, bool grants)
{
    mutex_lock(lock_of(lineage, member->pid));
    member->quota = quota;
    member->grants = grants;
    mutex_unlock(lock_of(lineage, member->pid));
}

/* A member holds its quota, so nobody else need fear for it. */
static struct quota *hold_quota_locked(const struct lineage_member *member)
{
    if (member->quota != NULL) {
        quota_hold_any(member->quota);
    }
    return member->quota;
}

struct quota *lineage_hold_quota_any(struct lineage *lineage, skua_pid pid)
{
    mutex_lock(lock_of(lineage, pid));
    const struct lineage_member *member = find_locked(lineage, pid);
    struct quota *quota = member != NULL && member->grants ? hold_quota_locked(member) : NULL;
    mutex_unlock(lock_of(lineage, pid));
    return quota;
}

int lineage_read_offers_any(struct lineage *lineage, skua_pid supervisor,
                            const skua_supervisor **offers, struct quota **quota)
{
    mutex_lock(lock_of(lineage, supervisor));
    const struct lineage_member *member = find_locked(lineage, supervisor);
    const bool has_stopped = member != NULL && member->has_stopped;
    *offers = member != NULL ? member->offers : NULL;
    *quota = *offers != NULL ? hold_quota_locked(member) : NULL;
    mutex_unlock(lock_of(lineage, supervisor));
    if (has_stopped) {
        return SKUA_E_LATE;
    }
    return *offers != NULL ? 0 : SKUA_E_NO_TEMPLATE;
}

/* ---- looking at it ---- */

skua_pid lineage_supervisor_any(struct lineage *lineage, skua_pid pid)
{
    mutex_lock(lock_of(lineage, pid));
    const struct lineage_member *member = find_locked(lineage, pid);
    const skua_pid supervisor = member != NULL ? member->supervisor : (skua_pid){0};
    mutex_unlock(lock_of(lineage, pid));
    return supervisor;
}

static struct lineage_view view_locked(const struct lineage_member *member)
{
    struct lineage_view view = {.pid = member->pid,
                                .supervisor = member->supervisor,
                                .is_supervisor = member->offers != NULL || member->has_stopped};
    memcpy(view.name, member->name, LINEAGE_NAME_SIZE);
    return view;
}

bool lineage_read_any(struct lineage *lineage, skua_pid pid, struct lineage_view *view)
{
    mutex_lock(lock_of(lineage, pid));
    const struct lineage_member *member = find_locked(lineage, pid);
    if (member != NULL) {
        *view = view_locked(member);
    }
    mutex_unlock(lock_of(lineage, pid));
    return member != NULL;
}

/* A list under way. */
struct lineage_search {
    skua_pid supervisor; /* whose children; zero: supervisors without one */
    struct lineage_view *views;
    uint32_t capacity;
    uint32_t count;
    uint32_t looks;
};

static bool is_wanted_locked(const struct lineage_search *search,
                             const struct lineage_member *member)
{
    return skua_pid_equal(member->supervisor, search->supervisor) &&
           (!skua_pid_is_none(search->supervisor) || member->offers != NULL || member->has_stopped);
}

/* Goes on in a bucket, behind its first `skipped` members. Returns the place to go on from. */
static uint64_t search_bucket(struct lineage *lineage, struct lineage_search *search,
                              uint32_t bucket, uint32_t skipped)
{
    pthread_mutex_t *lock = &lineage->locks[bucket % LINEAGE_LOCKS];
    uint32_t seen = 0;
    mutex_lock(lock);
    const struct lineage_member *member = lineage->buckets[bucket];
    for (; member != NULL && search->count < search->capacity; member = member->next, seen++) {
        if (seen >= skipped && is_wanted_locked(search, member)) {
            search->views[search->count++] = view_locked(member);
        }
    }
    mutex_unlock(lock);
    search->looks += seen;
    return member == NULL ? (uint64_t)(bucket + 1) << 32 : (uint64_t)bucket << 32 | seen;
}

uint32_t lineage_list_any(struct lineage *lineage, skua_pid supervisor, uint64_t *place,
                          struct lineage_view *views, uint32_t capacity)
{
    struct lineage_search search = {.supervisor = supervisor, .views = views, .capacity = capacity};
    while (*place < LINEAGE_END && search.count < capacity && search.looks < LINEAGE_LOOKS) {
        *place = search_bucket(lineage, &search, (uint32_t)(*place >> 32),
                               (uint32_t)(*place & UINT32_MAX));
    }
    return search.count;
}

/* The name of a process, and its supervisor. */
static skua_pid look_at(struct lineage *lineage, skua_pid pid, char name[LINEAGE_NAME_SIZE])
{
    skua_pid supervisor = {0};
    (void)snprintf(name, LINEAGE_NAME_SIZE, "?");
    mutex_lock(lock_of(lineage, pid));
    const struct lineage_member *member = find_locked(lineage, pid);
    if (member != NULL) {
        supervisor = member->supervisor;
        if (member->name[0] != '\0') {
            memcpy(name, member->name, LINEAGE_NAME_SIZE);
        }
    }
    mutex_unlock(lock_of(lineage, pid));
    return supervisor;
}

void lineage_path_any(struct lineage *lineage, skua_pid pid, char path[LINEAGE_PATH_SIZE])
{
    char name[LINEAGE_NAME_SIZE];
    size_t start = LINEAGE_PATH_SIZE - 1; /* it is written from its end */
    path[start] = '\0';
    while (!skua_pid_is_none(pid)) {
        pid = look_at(lineage, pid, name);
        const size_t length = strlen(name);
        if (length + 1 > start) {
            break;
        }
        start -= length;
        memcpy(path + start, name, length);
        if (!skua_pid_is_none(pid)) {
            path[--start] = '/';
        }
    }
    memmove(path, path + start, LINEAGE_PATH_SIZE - start);
}
