/* SPDX-License-Identifier: MIT */
#include "sched/describe.h"

#include <stdalign.h>
#include <string.h>

#include "base/monotonic.h"
#include "base/mutex.h"
#include "dispatch/call.h"
#include "relations/request.h"
#include "relations/watchers.h"
#include "sched/calls.h"
#include "sched/deliver.h"
#include "sched/grouping.h"
#include "sched/naming.h"
#include "sched/signal.h"
#include "sched/socket_hooks.h"
#include "sched/stack_use.h"
#include "sched/tasks.h"

/* ---- the memory ---- */

static size_t size_of(bool is_detailed)
{
    return sizeof(struct description) + (is_detailed ? sizeof(struct description_details) : 0);
}

static size_t size_of_children(uint32_t capacity)
{
    return sizeof(struct described_children) + capacity * sizeof(skua_child_report);
}

static struct described_children *make_children(struct scheduler *sched, size_t place,
                                                uint32_t capacity)
{
    struct described_children *children = allocator_alloc_zeroed(
        &sched->allocator, size_of_children(capacity), alignof(struct described_children));
    if (children != NULL) {
        children->place = place;
        children->capacity = capacity;
    }
    return children;
}

static void free_children(struct scheduler *sched, struct described_children *children)
{
    if (children != NULL) {
        allocator_free(&sched->allocator, children, size_of_children(children->capacity),
                       alignof(struct described_children));
    }
}

void describe_free(struct scheduler *sched, struct description *description)
{
    if (description != NULL) {
        free_children(sched, description->children);
        allocator_free(&sched->allocator, description, size_of(description->is_detailed),
                       alignof(struct description));
    }
}

static struct description *make(struct scheduler *sched, bool is_detailed)
{
    struct description *description = allocator_alloc_zeroed(
        &sched->allocator, size_of(is_detailed), alignof(struct description));
    if (description != NULL) {
        description->is_detailed = is_detailed;
    }
    return description;
}

/* ---- asking ---- */

/* Counts a question; false if too many are on their way already. */
static bool open_one(struct scheduler *sched)
{
    mutex_lock(&sched->descriptions.lock);
    const bool is_free = sched->descriptions.open < DESCRIBE_OPEN_MAX;
    if (is_free) {
        sched->descriptions.open++;
        sched->descriptions.awaited++;
    }
    mutex_unlock(&sched->descriptions.lock);
    return is_free;
}

/* There is an answer, from any thread. */
static void answer(struct scheduler *sched, struct description *description,
                   enum description_answer result)
{
    mutex_lock(&sched->descriptions.lock);
    const bool is_given_up = description->is_given_up;
    description->answer = result;
    sched->descriptions.open--;
    if (!is_given_up && --sched->descriptions.awaited == 0) {
        (void)pthread_cond_signal(&sched->descriptions.changed);
    }
    mutex_unlock(&sched->descriptions.lock);
    if (is_given_up) {
        describe_free(sched, description);
    }
}

/* Pushes a question, like any call from outside. False if the process is gone. */
static bool push(struct scheduler *sched, skua_pid pid, uint32_t node)
{
    struct process *process;
    return process_table_find_live(&sched->table, pid, &process) == 0 &&
           signal_push_now(sched, NULL, pid, node);
}

/* Asks with a description, which may be null. Null if there is no memory, or too much is asked
 * already. */
static struct description *ask(struct scheduler *sched, skua_pid pid,
                               struct description *description)
{
    uint32_t node;
    if (description == NULL || !deliver_acquire_node(sched, NULL, &node)) {
        describe_free(sched, description);
        return NULL;
    }
    if (!open_one(sched)) {
        deliver_release_node(sched, NULL, node);
        describe_free(sched, description);
        return NULL;
    }
    event_at(&sched->events, node)->as.question =
        (struct question){.type = EVENT_DESCRIBE, .description = description};
    if (!push(sched, pid, node)) {
        deliver_release_node(sched, NULL, node);
        answer(sched, description, DESCRIPTION_GONE);
    }
    return description;
}

/* Waits for the answers, for a while; those that have not come are null then. */
static void await_answers(struct scheduler *sched, struct description **descriptions,
                          uint32_t count, uint64_t deadline)
{
    mutex_lock(&sched->descriptions.lock);
    bool is_in_time = true;
    while (sched->descriptions.awaited > 0 && is_in_time) {
        is_in_time =
            condition_wait_until(&sched->descriptions.changed, &sched->descriptions.lock, deadline);
    }
    sched->descriptions.awaited = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (descriptions[i] != NULL && descriptions[i]->answer == DESCRIPTION_OPEN) {
            descriptions[i]->is_given_up = true;
            descriptions[i] = NULL;
        }
    }
    mutex_unlock(&sched->descriptions.lock);
}

void describe_ask(struct scheduler *sched, const skua_pid *pids, uint32_t count, bool is_detailed,
                  struct description **descriptions)
{
    const uint64_t deadline = monotonic_deadline(DESCRIBE_WAIT_NS);
    (void)fetch_add_seq_cst(&sched->callers, 1); /* MO-caller */
    for (uint32_t i = 0; i < count; i++) {
        descriptions[i] = ask(sched, pids[i], make(sched, is_detailed));
    }
    (void)fetch_sub_seq_cst(&sched->callers, 1); /* MO-caller */
    await_answers(sched, descriptions, count, deadline);
}

void describe_ask_debtors(struct scheduler *sched, const skua_pid *callers,
                          struct described_wait *const *waits, uint32_t count)
{
    struct description *descriptions[DESCRIBE_MAX];
    const uint64_t deadline = monotonic_deadline(DESCRIBE_WAIT_NS);
    (void)fetch_add_seq_cst(&sched->callers, 1); /* MO-caller */
    for (uint32_t i = 0; i < count; i++) {
        struct description *description = make(sched, false);
        if (description != NULL) {
            description->about = (skua_completion){.process = callers[i], .call = waits[i]->call};
        }
        descriptions[i] = ask(sched, waits[i]->debtor, description);
    }
    (void)fetch_sub_seq_cst(&sched->callers, 1); /* MO-caller */
    await_answers(sched, descriptions, count, deadline);
    for (uint32_t i = 0; i < count; i++) {
        if (descriptions[i] == NULL || !descriptions[i]->owes) {
            waits[i]->debtor = (skua_pid){0};
        }
        describe_free(sched, descriptions[i]);
    }
}

struct description *describe_ask_children(struct scheduler *sched, skua_pid pid, size_t place,
                                          uint32_t capacity)
{
    const uint64_t deadline = monotonic_deadline(DESCRIBE_WAIT_NS);
    struct description *description = make(sched, false);
    if (description != NULL) {
        description->children = make_children(sched, place, capacity);
    }
    if (description == NULL || description->children == NULL) {
        describe_free(sched, description);
        return NULL;
    }
    (void)fetch_add_seq_cst(&sched->callers, 1); /* MO-caller */
    description = ask(sched, pid, description);
    (void)fetch_sub_seq_cst(&sched->callers, 1); /* MO-caller */
    await_answers(sched, &description, 1, deadline);
    return description;
}

/* ---- what a process waits for ---- */

/* Who lives in a slot now; zero if nobody does. */
static skua_pid pid_in(struct scheduler *sched, uint32_t slot)
{
    if (!object_pool_holds(&sched->table.pool, slot)) {
        return (skua_pid){0};
    }
    struct process *process = process_at(&sched->table, slot);
    const uint32_t tag = state_peek(process); /* a snapshot */
    return state_is_live(tag) ? process_table_pid(&sched->table, process, state_generation(tag))
                              : (skua_pid){0};
}

static uint64_t time_until(uint64_t instant, uint64_t now)
{
    return instant > now ? instant - now : 0;
}

static bool fill_wait(struct scheduler *sched, uint32_t index, uint64_t now,
                      struct described_wait *wait)
{
    struct call_view view;
    if (!call_view_owner(event_at(&sched->events, index), &view)) {
        return false;
    }
    *wait = (struct described_wait){
        .kind = view.kind,
        .number = view.number,
        .tag = view.tag,
        .has_deadline = view.has_deadline,
        .left_ns = view.has_deadline ? time_until(view.deadline, now) : 0,
        .period = view.period,
        .call = (uint64_t)index << 32 | view.guard,
    };
    const uint32_t service = view.kind - 1; /* wraps around for a command, which is none of these */
    if (service >= SERVICE_CALL && service <= SERVICE_SEND) {
        wait->peer = pid_in(sched, view.number);
    } else if (service == SERVICE_NAME && view.number != 0 && view.number != CALL_SUBJECT_UNKNOWN) {
        (void)names_text(&sched->names, view.number, wait->name); /* it is awaited, so it stays */
    } else if (service == SERVICE_GROUP && group_watch_is_listener(view.listener)) {
        memcpy(wait->name, group_watch_of_listener(view.listener)->group->name, NAME_SIZE);
    }
    if (service == SERVICE_CALL && request_is_listener(view.listener)) {
        wait->hops = request_peek_any(&sched->events, view.listener, &wait->debtor);
    }
    return true;
}

static void fill_waits(struct scheduler *sched, struct process *process,
                       struct description *description)
{
    const uint64_t now = time_now(sched->time);
    struct description_details *details =
        description->is_detailed ? &description->details[0] : NULL;
    uint32_t index = *annex_calls(&sched->events, process);
    while (index != OBJECT_NONE && description->waits < DESCRIBE_COUNT_MAX) {
        if (!description->has_wait) {
            description->has_wait = fill_wait(sched, index, now, &description->wait);
        }
        if (details != NULL && details->waits_shown < DESCRIBE_WAITS) {
            details->waits_shown +=
                fill_wait(sched, index, now, &details->waits[details->waits_shown]);
        }
        description->waits++;
        index = event_at(&sched->events, index)->as.call.next;
    }
}

/* ---- where a task waits ---- */

/* The end of the text, if it is too long. */
static void copy_where(char *to, const char *where)
{
    const size_t length = where != NULL ? strlen(where) : 0;
    const size_t kept = length < DESCRIBE_WHERE ? length : DESCRIBE_WHERE - 1;
    if (kept > 0) {
        memcpy(to, where + length - kept, kept);
    }
}

static void fill_task(struct process *process, struct description *description)
{
    const struct task *task =
        process_is_task(process_type(process)) ? process->state.of_task.task : NULL;
    if (task == NULL) {
        return;
    }
    description->task.kind = task->context.wait.kind;
    description->task.wanted = task->wanted;
    copy_where(description->task.where, task->context.wait.where);
    /* Nothing has been yielded since its timer was. */
    if (task->timer != 0 && description->has_wait && description->wait.tag == task->timer) {
        description->task.has_timeout = true;
        description->task.left_ns = description->wait.left_ns;
    }
    if (description->is_detailed) {
        struct description_details *details = &description->details[0];
        details->frames_shown = coroutine_backtrace(&task->stack, details->frames, DESCRIBE_FRAMES);
    }
}

static void fill_stack(struct scheduler *sched, struct process *process,
                       struct described_stack *described)
{
    const skua_process_type *type = process_type(process);
    if (sched->measures_stacks && process_is_task(type)) {
        const struct task *task = process->state.of_task.task;
        const size_t size = type->stack_size != 0 ? type->stack_size : STACK_SIZE_DEFAULT;
        described->size = stacks_size(stacks_tier(size));
        described->deepest = stack_use_deepest(sched, type, task != NULL ? &task->stack : NULL);
    }
}

/* ---- names and relations; all of these lists are the process's own ---- */

static void fill_names(struct scheduler *sched, const struct annex *annex,
                       struct description *description)
{
    uint32_t entry = annex->names;
    struct description_details *details =
        description->is_detailed ? &description->details[0] : NULL;
    while (entry != OBJECT_NONE && description->names < DESCRIBE_COUNT_MAX) {
        const uint32_t next = names_links_owner(&sched->names, entry)->next;
        description->names++;
        if (next != OBJECT_NONE && details != NULL && details->other_names < DESCRIBE_NAMES - 1) {
            (void)names_text(&sched->names, entry, details->names[details->other_names++]);
        }
        entry = next;
    }
    (void)!naming_first(sched, annex, description->name);
}

static void fill_groups(const struct annex *annex, struct description_details *details)
{
    const char *names[DESCRIBE_GROUPS];
    details->groups = annex->wing != NULL ? annex->wing->group_count : 0;
    details->groups_shown = grouping_list(annex, names);
    for (uint32_t i = 0; i < details->groups_shown; i++) {
        memcpy(details->group_names[i], names[i], NAME_SIZE); /* both have so many */
    }
}

static void fill_links(const struct object_pool *events, uint32_t index,
                       struct description_details *details)
{
    while (index != OBJECT_NONE && details->links < DESCRIBE_COUNT_MAX) {
        const struct link_half *half = &event_at(events, index)->as.half;
        if (details->links < DESCRIBE_PEERS) {
            details->linked[details->links] = half->peer;
        }
        details->links++;
        index = half->next;
    }
}

/* The ring has watchers that have lost interest, too. */
static void fill_monitors(const struct object_pool *events, uint32_t last,
                          struct description_details *details)
{
    uint32_t index = last;
    for (uint32_t i = 0; i < DESCRIBE_COUNT_MAX && index != OBJECT_NONE; i++) {
        const struct event_node *node = event_at(events, index);
        if (watcher_waits(events, node)) {
            if (details->monitors < DESCRIBE_PEERS) {
                details->watching[details->monitors] = node->as.event.from;
            }
            details->monitors++;
        }
        index = node->next != last ? node->next : OBJECT_NONE;
    }
}

static void fill_requests(struct scheduler *sched, const struct annex *annex,
                          struct description_details *details)
{
    uint32_t index = annex->owed;
    uint32_t skipped = annex->owed_count > DESCRIBE_PEERS ? annex->owed_count - DESCRIBE_PEERS : 0;
    details->owed = annex->owed_count;
    if (skipped > DESCRIBE_COUNT_MAX) {
        return; /* the oldest are too far away */
    }
    for (; skipped > 0; skipped--) {
        index = event_at(&sched->events, index)->as.request.next;
    }
    details->owed_shown = annex->owed_count < DESCRIBE_PEERS ? annex->owed_count : DESCRIBE_PEERS;
    for (uint32_t left = details->owed_shown; left > 0; left--) {
        struct event_node *node = event_at(&sched->events, index);
        const uint64_t deadline = node->as.request.deadline;
        details->requests[left - 1] = (struct described_request){
            .caller = node->as.request.caller,
            .age_ns = calls_waited(sched, node),
            .has_deadline = deadline != SKUA_FOREVER,
            .left_ns = time_until(deadline, time_now(sched->time)),
            .is_awaited = request_is_awaited(&sched->events, node),
        };
        index = node->as.request.next;
    }
}

static void fill_sockets(struct scheduler *sched, struct process *process,
                         struct description *description)
{
    const bool is_detailed = description->is_detailed;
    if (sched->sockets != NULL) {
        description->sockets = sched->sockets->list(
            sched->sockets, process, is_detailed ? description->details[0].socket_slots : NULL,
            is_detailed ? DESCRIBE_SOCKETS : 0, DESCRIBE_COUNT_MAX);
    }
}

/* ---- children ---- */

/* Looks at no more than DESCRIBE_COUNT_MAX places. */
static void fill_children(struct scheduler *sched, struct process *process,
                          struct described_children *children)
{
    const skua_process_type *type = process_type(process);
    children->is_told = type->children != NULL;
    children->is_all = !children->is_told;
    children->now = time_now(sched->time);
    for (uint32_t looks = 0;
         looks < DESCRIBE_COUNT_MAX && children->count < children->capacity && !children->is_all;
         looks++) {
        skua_child_report *row = &children->rows[children->count];
        *row = (skua_child_report){.last_error = 0};
        const int found = type->children(process_state(process, type), children->place, row);
        row->name[sizeof row->name - 1] = '\0';
        children->is_all = found < 0;
        children->count += found > 0;
        children->place += found >= 0;
    }
}

/* ---- answering ---- */

static bool owes(const struct object_pool *events, const struct annex *annex, skua_completion about)
{
    uint32_t index = annex->owed;
    for (uint32_t i = 0; i < DESCRIBE_COUNT_MAX && index != OBJECT_NONE; i++) {
        const struct owed_request *request = &event_at(events, index)->as.request;
        if (request->call == about.call && skua_pid_equal(request->caller, about.process)) {
            return true;
        }
        index = request->next;
    }
    return false;
}

static void fill(struct scheduler *sched, struct process *process, struct description *description)
{
    const struct annex *annex = annex_of(&sched->events, process);
    if (description->children != NULL) {
        fill_children(sched, process, description->children);
        return;
    }
    if (!skua_pid_is_none(description->about.process)) {
        description->owes = annex != NULL && owes(&sched->events, annex, description->about);
        return;
    }
    fill_waits(sched, process, description);
    fill_task(process, description);
    fill_stack(sched, process, &description->stack);
    fill_sockets(sched, process, description);
    if (annex == NULL) {
        return;
    }
    if (annex->label != NULL) {
        memcpy(description->label, annex->label, NAME_SIZE); /* both have so many */
    }
    fill_names(sched, annex, description);
    if (description->is_detailed) {
        fill_groups(annex, &description->details[0]);
        fill_links(&sched->events, annex->links, &description->details[0]);
        fill_monitors(&sched->events, annex->watchers, &description->details[0]);
        fill_requests(sched, annex, &description->details[0]);
        description->details[0].deferred = annex->wing != NULL ? annex->wing->deferred_count : 0;
    }
}

static struct description *take_question(struct worker *worker, uint32_t index)
{
    struct object_pool *events = &worker->sched->events;
    struct description *description = event_at(events, index)->as.question.description;
    event_release_owner(events, &worker->caches.events, index);
    return description;
}

void describe_take(struct worker *worker, struct process *process, uint32_t index)
{
    struct description *description = take_question(worker, index);
    fill(worker->sched, process, description);
    description->next = worker->described;
    worker->described = description;
}

void describe_tell_all(struct worker *worker)
{
    while (worker->described != NULL) {
        struct description *description = worker->described;
        worker->described = description->next;
        answer(worker->sched, description, DESCRIPTION_TOLD);
    }
}

void describe_drop(struct worker *worker, uint32_t index)
{
    answer(worker->sched, take_question(worker, index), DESCRIPTION_GONE);
}
