/* SPDX-License-Identifier: MIT */
/* Who is the supervisor of whom, for those that are not the process itself: whoever starts a child
 * under another process, stops the runtime, or looks at it. Each process that has a supervisor or
 * is one is a member. Its entry lies in its wing (process/annex.h), and is here from its start, or
 * from its first skua_supervise, until it ends.
 *
 * All functions take a lock, one of a few by the slot of the process, for a look at a short chain.
 * That is off the path of processes without a supervisor; and whoever starts children under one
 * supervisor must push a signal to it anyway, which it handles one by one. */
#ifndef SKUA_RELATIONS_LINEAGE_H
#define SKUA_RELATIONS_LINEAGE_H

#include <pthread.h>
#include <skua/supervisor.h>

#include "process/annex.h"
#include "process/quota.h"

#define LINEAGE_LOCKS 16

/* A multiple of that, fewer in models. Enough for chains of 30 with a million members; the system
 * gives memory only for those that are used. */
#ifndef LINEAGE_BUCKETS
#define LINEAGE_BUCKETS 32768
#endif

/* The path of a process is cut to so many bytes, from the left. */
#define LINEAGE_PATH_SIZE 512

struct lineage {
    pthread_mutex_t locks[LINEAGE_LOCKS];
    struct lineage_member *buckets[LINEAGE_BUCKETS];
};

void lineage_init(struct lineage *lineage);
void lineage_deinit(struct lineage *lineage);

/* Adds the process `pid`; `supervisor` and `name` may be none. If it is there already, they change
 * unless they are none. */
void lineage_join_any(struct lineage *lineage, struct lineage_member *member, skua_pid pid,
                      skua_pid supervisor, const char *name);

/* Takes it out; does nothing if it is not in there. */
void lineage_leave_any(struct lineage *lineage, struct lineage_member *member);

/* Sets which children a member offers to supervise; null: none any more. */
void lineage_offer_any(struct lineage *lineage, struct lineage_member *member,
                       const skua_supervisor *offers);

/* Sets the quota that children of a member count against, which it holds until it leaves; or null.
 * `grants`: the member has set it itself. */
void lineage_set_quota_any(struct lineage *lineage, struct lineage_member *member,
                           struct quota *quota, bool grants);

/* Which children a process offers to supervise: 0 and *offers, SKUA_E_LATE or SKUA_E_NO_TEMPLATE.
 * *quota is what they count against, which the caller holds then, also on error; or null. */
NODISCARD int lineage_read_offers_any(struct lineage *lineage, skua_pid supervisor,
                                      const skua_supervisor **offers, struct quota **quota);

/* The quota that a process has set itself, which the caller holds then; null if there is none. */
NODISCARD struct quota *lineage_hold_quota_any(struct lineage *lineage, skua_pid pid);

/* The supervisor of a process; zero if it has none. */
NODISCARD skua_pid lineage_supervisor_any(struct lineage *lineage, skua_pid pid);

/* A member as it was. */
struct lineage_view {
    skua_pid pid;
    skua_pid supervisor;
    bool is_supervisor; /* has called skua_supervise */
    char name[LINEAGE_NAME_SIZE];
};

/* Reads one; false if it is no member. */
NODISCARD bool lineage_read_any(struct lineage *lineage, skua_pid pid, struct lineage_view *view);

/* Reads up to `capacity` members from a place on, which is moved: the children of `supervisor` or,
 * if that is zero, the supervisors that have none. Returns how many. Places begin with 0 and end
 * with LINEAGE_END; they are in no order, and of members that come or go between two calls some may
 * be missed. A call ends soon after LINEAGE_LOOKS members, so it may find none before the end. */
#define LINEAGE_LOOKS 65536
#define LINEAGE_END   ((uint64_t)LINEAGE_BUCKETS << 32)
NODISCARD uint32_t lineage_list_any(struct lineage *lineage, skua_pid supervisor, uint64_t *place,
                                    struct lineage_view *views, uint32_t capacity);

/* Writes the names on the way from the root to a process, or "?" for those without. */
void lineage_path_any(struct lineage *lineage, skua_pid pid, char path[LINEAGE_PATH_SIZE]);

#endif
