/* SPDX-License-Identifier: MIT */
#include "inspect/tree.h"

#include <inttypes.h>

#include "relations/lineage.h"
#include "sched/describe.h"
#include "sched/limits.h"
#include "sched/process_info.h"

/* Marks a place in the lineage: others are in the table of the supervisor. */
#define IN_LINEAGE (UINT64_C(1) << 63)

static void add_more(struct text *out, uint64_t place)
{
    text_add(out, "more\t%016" PRIx64 "\n", place);
}

int tree_add_roots(struct scheduler *sched, uint64_t place, uint32_t limit, struct text *out)
{
    struct lineage_view views[TREE_MAX];
    const uint32_t count = lineage_list_any(&sched->lineage, (skua_pid){0}, &place, views, limit);
    for (uint32_t i = 0; i < count; i++) {
        text_add(out, "root\t%016" PRIx64 "\n", views[i].pid.bits);
    }
    if (place < LINEAGE_END) {
        add_more(out, place);
    }
    return 0;
}

/* ---- lines about children ---- */

/* Whether it may have children of its own. */
static bool is_supervisor(struct scheduler *sched, skua_pid pid)
{
    struct lineage_view view;
    return !skua_pid_is_none(pid) && lineage_read_any(&sched->lineage, pid, &view) &&
           view.is_supervisor;
}

/* A time between two instants, or `-` if the one in question is none. */
static void add_time(struct text *out, uint64_t instant, uint64_t from, uint64_t to)
{
    if (instant == 0) {
        text_add(out, "\t-");
    } else {
        text_add(out, "\t%" PRIu64, to > from ? to - from : 0);
    }
}

static void add_reported(struct scheduler *sched, const skua_child_report *child, uint64_t now,
                         struct text *out)
{
    text_add(out, "child\t%016" PRIx64 "\t", child->pid.bits);
    text_add_name(out, child->type != NULL ? child->type->name : "?");
    text_add(out, "\t%s\t%s\t%s\t%" PRIu64 "\t%d\t%s", skua_child_state_name(child->state),
             is_supervisor(sched, child->pid) ? "supervisor" : "-", child->is_over ? "over" : "-",
             child->restarts, child->last_error, skua_error_name(child->last_error));
    add_time(out, child->next_start, now, child->next_start);
    add_time(out, child->started_at, child->started_at, now);
    text_add(out, "\t");
    text_add_name(out, child->name);
    text_add(out, "\n");
}

/* What the table of the supervisor says. */
static void add_told(struct scheduler *sched, const struct described_children *children,
                     struct text *out)
{
    for (uint32_t i = 0; i < children->count; i++) {
        add_reported(sched, &children->rows[i], children->now, out);
    }
    if (!children->is_all) {
        add_more(out, children->place);
    }
}

/* Those that live, as far as others know them. */
static void add_living(struct scheduler *sched, skua_pid pid, uint64_t place, uint32_t limit,
                       struct text *out)
{
    struct lineage_view views[TREE_MAX];
    const uint32_t count = lineage_list_any(&sched->lineage, pid, &place, views, limit);
    for (uint32_t i = 0; i < count; i++) {
        text_add(out, "child\t%016" PRIx64 "\t", views[i].pid.bits);
        text_add_name(out, process_info_type_name(sched, views[i].pid));
        text_add(out, "\trunning\t%s\t-\t-\t0\t-\t-\t-\t",
                 views[i].is_supervisor ? "supervisor" : "-");
        text_add_name(out, views[i].name);
        text_add(out, "\n");
    }
    if (place < LINEAGE_END) {
        add_more(out, IN_LINEAGE | place);
    }
}

/* ---- a supervisor ---- */

/* Of one that has set a quota for those under it. */
static void add_quota(struct scheduler *sched, skua_pid pid, struct text *out)
{
    skua_quota_use use;
    if (limits_read(sched, pid, &use) == 0 &&
        (use.limit.processes != 0 || use.limit.messages != 0 || use.limit.bytes != 0)) {
        text_add(out, "quota\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu32 "\t%zu\t%zu\n",
                 use.used.processes, use.limit.processes, use.used.messages, use.limit.messages,
                 use.used.bytes, use.limit.bytes);
    }
}

static void add_head(skua_pid pid, const char *answer, const skua_process_snapshot *info,
                     const char *name, struct text *out)
{
    text_add(out, "children\t%016" PRIx64 "\t%s\t", pid.bits, answer);
    text_add_name(out, info->type_name);
    text_add(out, "\t%" PRIu64 "\t", info->age_ns);
    text_add_name(out, name);
    text_add(out, "\n");
}

static int add_asked(struct scheduler *sched, const struct lineage_view *view,
                     const skua_process_snapshot *info, uint64_t place, uint32_t limit,
                     struct text *out)
{
    struct description *description = describe_ask_children(sched, view->pid, place, limit);
    const bool is_gone = description != NULL && description->answer == DESCRIPTION_GONE;
    const bool is_told = description != NULL && !is_gone && description->children->is_told;
    if (is_told) {
        add_head(view->pid, "told", info, view->name, out);
        add_quota(sched, view->pid, out);
        add_told(sched, description->children, out);
    } else if (!is_gone) {
        add_head(view->pid, description != NULL ? "unknown" : "silent", info, view->name, out);
        add_quota(sched, view->pid, out);
        if (place == 0) { /* or it has told of some already, and is busy now */
            add_living(sched, view->pid, 0, limit, out);
        }
    }
    describe_free(sched, description);
    return is_gone ? SKUA_E_NO_PROCESS : 0;
}

int tree_add_children(struct scheduler *sched, skua_pid pid, uint64_t place, uint32_t limit,
                      struct text *out, uint32_t *asked)
{
    skua_process_snapshot info;
    struct lineage_view view;
    const int error = process_info_read(sched, pid, &info);
    if (error != 0) {
        return error;
    }
    if (!lineage_read_any(&sched->lineage, pid, &view) || !view.is_supervisor) {
        add_head(pid, "none", &info, "", out);
        return 0;
    }
    if ((place & IN_LINEAGE) != 0) {
        add_head(pid, "unknown", &info, view.name, out);
        add_living(sched, pid, place & ~IN_LINEAGE, limit, out);
        return 0;
    }
    ++*asked;
    return add_asked(sched, &view, &info, place, limit, out);
}
