/* SPDX-License-Identifier: MIT */
/* The exact audits, at moments when nothing moves: they account for every token and every node. */
#include "watch/audit.h"

#ifdef SKUA_AUDIT

#include "base/mutex.h"
#include "dispatch/call.h"
#include "relations/request.h"
#include "sched/socket_hooks.h"
#include "sched/stats.h"
#include "sched/tasks.h"
#include "watch/census.h"

/* audit_now believes a finding after this many attempts in a row: a thread that entered meanwhile
 * may have caused a single one. */
#define ATTEMPTS 3

struct audit {
    struct scheduler *sched;
    const struct audit_moment *moment;
    struct census slots;
    struct census nodes;
    uint32_t live;
    uint32_t retired;
    struct finding finding;
};

/* ---- free objects ---- */

static void walk_caches_locked(struct audit *audit, const struct caches *caches)
{
    census_put_cache(&audit->slots, &caches->processes);
    census_put_cache(&audit->nodes, &caches->events);
}

static void walk_reserve(struct audit *audit, const struct step_output *out)
{
    for (uint32_t i = 0; i < out->reserve_count; i++) {
        (void)census_put(&audit->nodes, out->reserve[i], PLACE_RESERVE);
    }
}

static void walk_free_locked(struct audit *audit)
{
    struct scheduler *sched = audit->sched;
    census_put_pool(&audit->slots);
    census_put_pool(&audit->nodes);
    walk_caches_locked(audit, &sched->outside.caches);
    for (uint32_t i = 0; i < sched->capacity; i++) {
        walk_caches_locked(audit, &sched->workers[i].caches);
        walk_reserve(audit, &sched->workers[i].out);
    }
}

/* ---- tokens ---- */

static void put_token_locked(struct audit *audit, const struct process *process, enum place place)
{
    const uint32_t slot = process->slot;
    if (census_put(&audit->slots, slot, place) &&
        object_pool_at(audit->slots.pool, slot) != process) {
        finding_note(&audit->finding, "INV-3: what is in %s is no process",
                     census_place_name(place));
    }
}

static void walk_deque_locked(struct audit *audit, struct deque *deque)
{
    const uint32_t top = deque_top(load_acquire(&deque->head)); /* nobody uses it */
    const uint32_t length = deque_length_owner(deque);
    for (uint32_t i = 0; i < length && finding_is_none(&audit->finding); i++) {
        put_token_locked(audit, load_relaxed(deque_slot(deque, top + i)), PLACE_DEQUE);
    }
}

static uint32_t walk_queue_list(struct audit *audit, struct queue_link *link, enum place place)
{
    uint32_t length = 0;
    while (link != NULL && finding_is_none(&audit->finding)) {
        struct queue_link *next = link->next;
        put_token_locked(audit, process_of_link(link), place);
        link = next;
        length++;
    }
    return length;
}

static void walk_queue_locked(struct audit *audit, struct global_queue *queue, enum place place)
{
    const uint32_t sorted = walk_queue_list(audit, queue->first, place);
    const uint32_t counted = load_relaxed(&queue->sorted); /* nobody uses it */
    if (sorted != counted) {
        finding_note(&audit->finding, "INV-3: %s has %u sorted processes and counts %u",
                     census_place_name(place), sorted, counted);
    }
    (void)walk_queue_list(audit, load_acquire(&queue->inbox), place); /* MO-global */
}

static void show_node_of_socket(void *arg, uint32_t index)
{
    struct audit *audit = arg;
    (void)census_put(&audit->nodes, index, PLACE_RELATION);
}

static void walk_sockets(struct audit *audit)
{
    struct socket_hooks *sockets = audit->sched->sockets;
    if (sockets != NULL) {
        sockets->show(sockets, show_node_of_socket, audit);
    }
}

static void walk_tokens_locked(struct audit *audit)
{
    struct scheduler *sched = audit->sched;
    for (uint32_t i = 0; i < sched->capacity; i++) {
        struct worker *worker = &sched->workers[i];
        const struct process *next = load_acquire(&worker->next); /* MO-next */
        if (next != NULL) {
            put_token_locked(audit, next, PLACE_NEXT);
        }
        walk_deque_locked(audit, &worker->deque);
    }
    walk_queue_locked(audit, &sched->global, PLACE_GLOBAL);
    walk_queue_locked(audit, &sched->behind, PLACE_BEHIND);
    if (audit->moment->show != NULL) {
        audit->moment->show(audit, audit->moment->arg);
    }
}

void audit_show_token(struct audit *audit, const struct process *process)
{
    put_token_locked(audit, process, PLACE_LIST);
}

void audit_show_node(struct audit *audit, uint32_t index)
{
    (void)census_put(&audit->nodes, index, PLACE_AGENDA);
}

/* ---- processes and their nodes ---- */

static void walk_dependents(struct audit *audit, uint32_t last)
{
    uint32_t index = last;
    while (index != OBJECT_NONE && census_put(&audit->nodes, index, PLACE_RELATION)) {
        index = event_at(audit->nodes.pool, index)->as.dependent.next;
        index = index != last ? index : OBJECT_NONE; /* it is a ring */
    }
}

static void walk_waiters(struct audit *audit, uint32_t first)
{
    uint32_t index = first;
    while (index != OBJECT_NONE && census_put(&audit->nodes, index, PLACE_RELATION)) {
        index = event_at(audit->nodes.pool, index)->next;
    }
}

static void walk_events(struct audit *audit, uint32_t first, enum place place);

/* The half of a link that a supervisor will have with a new child, and its spare node. */
static void put_half(struct audit *audit, uint32_t half)
{
    (void)census_put(&audit->nodes, half, PLACE_RELATION);
    (void)census_put(&audit->nodes, event_at(audit->nodes.pool, half)->as.half.spare,
                     PLACE_RELATION);
}

/* The nodes that a signal brings along which has not arrived: a link, a child, calls on behalf of a
 * request, those that wait for a name, events. NOLINTNEXTLINE(misc-no-recursion): one level */
static void put_luggage(struct audit *audit, const struct event_node *node)
{
    if (node->as.event.type == EVENT_LINK && node->as.half.spare != OBJECT_NONE) {
        (void)census_put(&audit->nodes, node->as.half.spare, PLACE_RELATION);
    } else if (node->as.event.type == EVENT_CHILD) {
        put_half(audit, (uint32_t)node->as.event.tag);
    } else if (node->as.event.type == EVENT_DEPENDENTS) {
        walk_dependents(audit, node->as.dependents.last);
    } else if (node->as.event.type == EVENT_WAITERS) {
        walk_waiters(audit, node->as.waiters.first);
    } else if (node->as.event.type == EVENT_BUNDLE) {
        walk_events(audit, node->as.bundle.first, PLACE_MAILBOX);
    }
}

void audit_show_signal(struct audit *audit, uint32_t index)
{
    audit_show_node(audit, index);
    put_luggage(audit, event_at(audit->nodes.pool, index));
}

/* NOLINTNEXTLINE(misc-no-recursion): as put_luggage. */
static void walk_events(struct audit *audit, uint32_t first, enum place place)
{
    for (uint32_t index = first; index != OBJECT_NONE && census_put(&audit->nodes, index, place);) {
        const struct event_node *node = event_at(audit->nodes.pool, index);
        put_luggage(audit, node);
        index = node->next;
    }
}

/* ---- relations ---- */

/* A request that the process has opened, and that is closed, is on its way as an event. */
static void walk_owed(struct audit *audit, uint32_t first)
{
    for (uint32_t index = first; index != OBJECT_NONE && finding_is_none(&audit->finding);) {
        struct event_node *node = event_at(audit->nodes.pool, index);
        const bool is_open = (load_acquire(&node->guard) & REQUEST_OPEN) != 0; /* MO-request */
        if (is_open == node->as.request.is_opened) {
            (void)census_put(&audit->nodes, index, is_open ? PLACE_OWED_OPEN : PLACE_RELATION);
        }
        walk_dependents(audit, node->as.request.dependents);
        index = node->as.request.next;
    }
}

static void show_waiter(void *arg, uint32_t waiter)
{
    struct audit *audit = arg;
    (void)census_put(&audit->nodes, waiter, PLACE_RELATION);
}

static void walk_relations(struct audit *audit, const struct annex *annex)
{
    uint32_t index = annex->watchers;
    while (index != OBJECT_NONE && census_put(&audit->nodes, index, PLACE_RELATION)) {
        index = event_at(audit->nodes.pool, index)->next;
        if (index == annex->watchers) {
            break; /* it is a ring */
        }
    }
    for (index = annex->links;
         index != OBJECT_NONE && census_put(&audit->nodes, index, PLACE_RELATION);) {
        index = event_at(audit->nodes.pool, index)->as.half.next;
    }
    walk_owed(audit, annex->owed);
    if (annex->wing != NULL) {
        walk_events(audit, annex->wing->deferred, PLACE_BACKLOG);
    }
}

static void walk_calls(struct audit *audit, struct process *process)
{
    uint32_t previous = OBJECT_NONE;
    if ((process_progress(process) & PROCESS_ANNEX) != 0 &&
        !census_put(&audit->nodes, process->calls, PLACE_ANNEX)) {
        return;
    }
    if (annex_of(audit->nodes.pool, process) != NULL) {
        walk_relations(audit, annex_of(audit->nodes.pool, process));
    }
    for (uint32_t index = *annex_calls(audit->nodes.pool, process);
         index != OBJECT_NONE && finding_is_none(&audit->finding);) {
        if (index >= audit->nodes.end || audit->nodes.marks[index].is_call) {
            finding_note(&audit->finding, "INV-20: event node %u %s, now of slot %u", index,
                         index >= audit->nodes.end ? "was never made" : "is an open call twice",
                         process->slot);
            return;
        }
        const struct event_node *node = event_at(audit->nodes.pool, index);
        if ((node->as.call.previous & ~CALL_FLAGS) != previous) {
            finding_note(&audit->finding,
                         "INV-20: event node %u, a call of slot %u, comes after %u, not %u", index,
                         process->slot, previous, node->as.call.previous & ~CALL_FLAGS);
        }
        audit->nodes.marks[index].is_call = true;
        previous = index;
        index = node->as.call.next;
    }
}

static void count_received(struct audit *audit, const struct task_event *received)
{
    if (received->event != NULL && received->node != OBJECT_NONE) {
        (void)census_put(&audit->nodes, received->node, PLACE_BACKLOG);
    }
}

/* What a task has received or put aside. */
static void walk_task(struct audit *audit, const struct process *process)
{
    if (!process_is_task(load_relaxed(&process->type))) {
        return;
    }
    walk_events(audit, process->state.of_task.aside, PLACE_BACKLOG);
    const struct task *task = process->state.of_task.task;
    if (task != NULL) {
        count_received(audit, &task->received);
        count_received(audit, &task->served);
    }
}

static void check_live(struct audit *audit, struct process *process, uint64_t word)
{
    const enum process_state state = state_of(event_list_tag(word));
    const enum place place = census_place(&audit->slots, process->slot);
    const bool is_ready = state == STATE_READY;
    audit->live++;
    if (census_is_token_place(place) != is_ready || census_is_free_place(place)) {
        finding_note(&audit->finding, "%s: slot %u is %s and in %s",
                     census_is_free_place(place) ? "INV-20" : "INV-3", process->slot,
                     finding_state_name(state), census_place_name(place));
    }
    if (!is_ready && (event_list_first(word) != OBJECT_NONE || process->backlog != OBJECT_NONE)) {
        finding_note(&audit->finding, "INV-10: slot %u is %s and has events", process->slot,
                     finding_state_name(state));
    }
    if (is_ready && audit->moment->is_at_rest) {
        finding_note(&audit->finding, "INV-10: at rest, slot %u is Ready, in %s", process->slot,
                     census_place_name(place));
    }
    if (audit->moment->is_at_end) {
        finding_note(&audit->finding, "INV-20: at the end, slot %u is %s", process->slot,
                     finding_state_name(state));
    }
    audit_held_back(audit->sched, process, event_list_tag(word), &audit->finding);
    walk_events(audit, event_list_first(word), PLACE_MAILBOX);
    walk_events(audit, process->backlog, PLACE_BACKLOG);
    walk_task(audit, process);
    walk_calls(audit, process);
}

/* Its end takes a while (sched/exit.c). */
static void check_ending(struct audit *audit, struct process *process)
{
    audit->live++;
    if (audit->moment->is_at_rest) {
        finding_note(&audit->finding, "INV-10: at rest, slot %u is not done with its end",
                     process->slot);
    }
    const struct ending *ending = &event_at(audit->nodes.pool, process->backlog)->as.ending;
    walk_events(audit, ending->rest, PLACE_BACKLOG);
    walk_events(audit, ending->notices, PLACE_RELATION);
    walk_events(audit, process->backlog, PLACE_BACKLOG);
    walk_calls(audit, process);
}

static void check_slot_locked(struct audit *audit, uint32_t slot)
{
    const enum place place = census_place(&audit->slots, slot);
    struct process *process = object_pool_at(audit->slots.pool, slot);
    if (place == PLACE_TRIMMED) {
        return; /* there is nothing to check */
    }
    const uint64_t word = load_acquire(&process->word); /* MO-event */
    const enum process_state state = state_of(event_list_tag(word));
    switch (state) {
    case STATE_READY:
    case STATE_BLOCKED:
    case STATE_IDLE:
        check_live(audit, process, word);
        break;
    case STATE_FREE:
        if (!census_is_free_place(place)) {
            finding_note(&audit->finding, "%s: slot %u is Free and in %s",
                         census_is_token_place(place) ? "INV-3" : "INV-20", slot,
                         census_place_name(place));
        }
        break;
    case STATE_RETIRED:
        audit->retired++;
        if (place != PLACE_NOWHERE) {
            finding_note(&audit->finding, "INV-20: slot %u is Retired and in %s", slot,
                         census_place_name(place));
        }
        break;
    case STATE_INIT:
    case STATE_COMPLETE:
        if (state == STATE_COMPLETE && census_is_token_place(place)) {
            check_ending(audit, process);
            break;
        }
        finding_note(&audit->finding, "INV-20: slot %u is %s, and nobody is at it", slot,
                     finding_state_name(state));
        break;
    }
}

static void check_slots_locked(struct audit *audit)
{
    for (uint32_t slot = 1; slot < audit->slots.end && finding_is_none(&audit->finding); slot++) {
        check_slot_locked(audit, slot);
    }
    const uint64_t counted = stats_live(audit->sched);
    if (audit->live != counted) {
        finding_note(&audit->finding, "INV-20: %u processes are alive, and %llu are counted",
                     audit->live, (unsigned long long)counted);
    }
    if (audit->retired != audit->slots.pool->retired) {
        finding_note(&audit->finding, "INV-20: %u slots are Retired, and %u are counted",
                     audit->retired, audit->slots.pool->retired);
    }
}

/* ---- wheels ---- */

static void check_timer_locked(struct audit *audit, uint32_t wheel, uint32_t index)
{
    if (index >= audit->nodes.end || audit->nodes.marks[index].is_armed) {
        finding_note(&audit->finding, "INV-20: event node %u %s, now in the wheel of worker %u",
                     index, index >= audit->nodes.end ? "was never made" : "is armed twice", wheel);
        return;
    }
    const struct event_node *node = event_at(audit->nodes.pool, index);
    audit->nodes.marks[index].is_armed = true;
    if (node->as.call.wheel != wheel + 1) {
        finding_note(&audit->finding,
                     "INV-20: event node %u is in the wheel of worker %u and thinks otherwise",
                     index, wheel);
    }
}

static uint32_t walk_level_locked(struct audit *audit, uint32_t worker, uint32_t level)
{
    const struct wheel *wheel = &audit->sched->deadlines.wheels[worker].wheel;
    uint32_t count = 0;
    for (uint64_t slots = wheel->occupied[level]; slots != 0; slots &= slots - 1) {
        uint32_t timer = wheel->first[level][__builtin_ctzll(slots)];
        while (timer != OBJECT_NONE && finding_is_none(&audit->finding)) {
            check_timer_locked(audit, worker, timer);
            timer =
                finding_is_none(&audit->finding) ? wheel_link_of(wheel, timer)->next : OBJECT_NONE;
            count++;
        }
    }
    return count;
}

/* What lies beside the wheel, which does not count it. */
static void walk_beside_locked(struct audit *audit, uint32_t worker)
{
    struct deadline_wheel *wheel = &audit->sched->deadlines.wheels[worker];
    for (uint32_t i = 0; i < DEADLINE_PLACES && finding_is_none(&audit->finding); i++) {
        const uint32_t timer = load_seq_cst(&wheel->beside[i]); /* MO-beside */
        if (timer == OBJECT_NONE) {
            continue;
        }
        check_timer_locked(audit, worker, timer);
        if (finding_is_none(&audit->finding) &&
            deadlines_next(&audit->sched->deadlines, worker) >
                wheel_due_at(wheel_link_of(&wheel->wheel, timer)->when)) {
            finding_note(&audit->finding,
                         "INV-10: beside the wheel of worker %u is an earlier timer than it says",
                         worker);
        }
    }
}

static void walk_wheel_locked(struct audit *audit, uint32_t index)
{
    struct deadline_wheel *wheel = &audit->sched->deadlines.wheels[index];
    uint32_t count = 0;
    for (uint32_t level = 0; level < WHEEL_LEVELS; level++) {
        count += walk_level_locked(audit, index, level);
    }
    walk_beside_locked(audit, index);
    if (count != wheel->wheel.count) {
        finding_note(&audit->finding, "INV-20: the wheel of worker %u has %u timers and counts %u",
                     index, count, wheel->wheel.count);
    }
    const uint64_t published = deadlines_next(&audit->sched->deadlines, index);
    if (published > wheel_next(&wheel->wheel)) {
        finding_note(&audit->finding,
                     "INV-10: the wheel of worker %u has an earlier timer than it says", index);
    }
    if (audit->moment->is_at_rest && published <= time_now(audit->sched->time)) {
        finding_note(&audit->finding, "INV-10: at rest, the wheel of worker %u has something due",
                     index);
    }
}

static void walk_wheels_locked(struct audit *audit)
{
    for (uint32_t i = 0; i < audit->sched->deadlines.count; i++) {
        struct deadline_wheel *wheel = &audit->sched->deadlines.wheels[i];
        mutex_lock(&wheel->lock);
        walk_wheel_locked(audit, i);
        mutex_unlock(&wheel->lock);
    }
}

/* ---- nodes, when all lists have been walked ---- */

/* News of a group may be late, and are the call of who watches it. No other call is on the
 * agenda. */
static bool is_strange(const struct audit *audit, uint32_t index, enum place place)
{
    return place == PLACE_AGENDA &&
           event_at(audit->nodes.pool, index)->as.event.type != EVENT_GROUP;
}

static void check_node_locked(struct audit *audit, uint32_t index)
{
    const struct mark *mark = &audit->nodes.marks[index];
    const enum place place = census_place(&audit->nodes, index);
    const char *name = census_place_name(place);
    const bool is_in_call = mark->is_call || mark->is_armed;
    if (place == PLACE_TRIMMED && !is_in_call) {
        return; /* there is nothing to check */
    }
    const uint32_t guard = load_acquire(&event_at(audit->nodes.pool, index)->guard); /* MO-guard */
    const bool is_open = (guard & (CALL_OPEN | REQUEST_OPEN)) != 0;
    if (place == PLACE_NOWHERE && !is_in_call) {
        finding_note(&audit->finding, "INV-20: event node %u is in no list: it is lost", index);
    } else if (place == PLACE_NOWHERE && (!mark->is_call || !is_open)) {
        finding_note(&audit->finding, "INV-20: event node %u is %s, but no open call of a process",
                     index, mark->is_armed ? "in a wheel" : "in a list of calls");
    } else if (place != PLACE_NOWHERE && place != PLACE_OWED_OPEN && (mark->is_armed || is_open)) {
        finding_note(&audit->finding, "INV-20: event node %u is an open call and in %s", index,
                     name);
    } else if (mark->is_call && (census_is_free_place(place) || is_strange(audit, index, place))) {
        finding_note(&audit->finding, "INV-20: event node %u is in a list of calls and in %s",
                     index, name);
    }
}

static void check_nodes_locked(struct audit *audit)
{
    for (uint32_t index = 1; index < audit->nodes.end && finding_is_none(&audit->finding);
         index++) {
        check_node_locked(audit, index);
    }
}

/* ---- all of it ---- */

static bool nobody_is_inside(struct scheduler *sched, const struct audit_moment *moment)
{
    return load_seq_cst(&sched->callers) == moment->own_calls; /* MO-caller */
}

static void check_all_locked(struct audit *audit)
{
    struct scheduler *sched = audit->sched;
    const bool has_slots = census_begin(&audit->slots, &sched->table.pool, "slot", &audit->finding);
    const bool has_nodes =
        census_begin(&audit->nodes, &sched->events, "event node", &audit->finding);
    if (has_slots && has_nodes) {
        walk_free_locked(audit);
        walk_tokens_locked(audit);
        walk_sockets(audit);
        check_slots_locked(audit);
        walk_wheels_locked(audit);
        names_show_waiters_any(&sched->names, show_waiter, audit);
        check_nodes_locked(audit);
    }
    census_end(&audit->slots);
    census_end(&audit->nodes);
}

/* Returns whether there is a finding. While these locks are held, a thread that enters can neither
 * acquire or release an object nor make a process Ready. It can complete a call, which shows as a
 * finding if it does so at the wrong moment. */
static bool check_all(struct audit *audit)
{
    struct scheduler *sched = audit->sched;
    audit->finding.text[0] = '\0';
    audit->live = audit->retired = 0;
    mutex_lock(&sched->outside.lock);
    mutex_lock(&sched->table.pool.lock);
    mutex_lock(&sched->events.lock);
    mutex_lock(&sched->global.lock);
    mutex_lock(&sched->behind.lock);
    const bool was_alone = nobody_is_inside(sched, audit->moment);
    if (was_alone) {
        check_all_locked(audit);
    }
    const bool is_alone = nobody_is_inside(sched, audit->moment);
    mutex_unlock(&sched->behind.lock);
    mutex_unlock(&sched->global.lock);
    mutex_unlock(&sched->events.lock);
    mutex_unlock(&sched->table.pool.lock);
    mutex_unlock(&sched->outside.lock);
    return was_alone && is_alone && !finding_is_none(&audit->finding);
}

void audit_now(struct scheduler *sched, const struct audit_moment *moment)
{
    struct audit audit = {.sched = sched, .moment = moment};
    uint32_t attempts = 0;
    while (check_all(&audit)) {
        if (++attempts == ATTEMPTS) {
            finding_abort(&audit.finding);
        }
    }
}

void audit_now_and_then(struct scheduler *sched, const struct audit_moment *moment)
{
    const uint64_t slots = load_relaxed(&sched->table.pool.ready); /* hint */
    const uint64_t nodes = load_relaxed(&sched->events.ready);     /* hint */
    if (finding_can_afford(slots + nodes)) {
        audit_now(sched, moment);
    }
}

#endif
