/* SPDX-License-Identifier: MIT */
#include "sched/audit.h"

#ifdef SKUA_AUDIT

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mutex.h"
#include "dispatch/call.h"
#include "sched/chores.h"
#include "sched/poll.h"
#include "sched/shutdown.h"
#include "sched/timers.h"
#include "sched/worker.h"

/* Objects that are looked at for each moment at which an audit is possible, in the long run. */
#define OBJECTS_PER_MOMENT 16

/* A finding of audit_now is believed when it has been made this often in a row: a thread that came
 * meanwhile may have been the reason for one. */
#define LOOKS 3

#define TEXT_SIZE 256

enum place {
    PLACE_NOWHERE,
    /* of tokens */
    PLACE_NEXT,
    PLACE_DEQUE,
    PLACE_GLOBAL,
    PLACE_LIST,
    /* of free objects */
    PLACE_CHAIN,
    PLACE_CACHE,
    PLACE_TRIMMED,
    /* of nodes */
    PLACE_MAILBOX,
    PLACE_BACKLOG,
    PLACE_AGENDA,
};

static const char *const place_names[] = {
    [PLACE_NOWHERE] = "no place",
    [PLACE_NEXT] = "a next slot",
    [PLACE_DEQUE] = "a deque",
    [PLACE_GLOBAL] = "the global queue",
    [PLACE_LIST] = "the simulator's list",
    [PLACE_CHAIN] = "a free chain",
    [PLACE_CACHE] = "a cache of free objects",
    [PLACE_TRIMMED] = "a trimmed page",
    [PLACE_MAILBOX] = "a mailbox",
    [PLACE_BACKLOG] = "a backlog",
    [PLACE_AGENDA] = "the agenda",
};

static const char *const state_names[] = {
    [STATE_FREE] = "Free",       [STATE_READY] = "Ready", [STATE_BLOCKED] = "Blocked",
    [STATE_IDLE] = "Idle",       [STATE_INIT] = "Init",   [STATE_COMPLETE] = "Complete",
    [STATE_RETIRED] = "Retired",
};

/* Where an object was found. */
struct mark {
    uint8_t place;
    bool is_call;  /* in the list of open calls of a live process */
    bool is_armed; /* in a wheel */
};

/* The objects of one pool. */
struct census {
    struct object_pool *pool;
    const char *what;
    struct mark *marks; /* by index */
    uint32_t end;
};

struct audit {
    struct scheduler *sched;
    const struct audit_moment *moment;
    struct census slots;
    struct census nodes;
    uint32_t live;
    uint32_t retired;
    char finding[TEXT_SIZE]; /* the first one; empty if there is none */
};

static _Noreturn void fail(const char *finding)
{
    (void)fprintf(stderr, "skua: audit: %s\n", finding);
    abort();
}

/* ---- findings ---- */

static bool is_clean(const struct audit *audit)
{
    return audit->finding[0] == '\0';
}

__attribute__((format(printf, 2, 3))) static void find(struct audit *audit, const char *format, ...)
{
    va_list args;
    if (is_clean(audit)) {
        va_start(args, format);
        (void)vsnprintf(audit->finding, sizeof audit->finding, format, args);
        va_end(args);
    }
}

static bool is_token_place(enum place place)
{
    return place >= PLACE_NEXT && place <= PLACE_LIST;
}

static bool is_free_place(enum place place)
{
    return place >= PLACE_CHAIN && place <= PLACE_TRIMMED;
}

static enum place place_of(const struct census *census, uint32_t index)
{
    return (enum place)census->marks[index].place;
}

/* Notes where an object is; false if that is a finding. Lists end there, also those that go round
 * in a circle. */
static bool put(struct audit *audit, struct census *census, uint32_t index, enum place place)
{
    const char *invariant = is_token_place(place) ? "INV-3" : "INV-20";
    if (index == OBJECT_NONE || index >= census->end) {
        find(audit, "%s: %s %u in %s was never made", invariant, census->what, index,
             place_names[place]);
    } else if (place_of(census, index) != PLACE_NOWHERE) {
        find(audit, "%s: %s %u is in %s and in %s", invariant, census->what, index,
             place_names[place_of(census, index)], place_names[place]);
    } else {
        census->marks[index].place = (uint8_t)place;
    }
    return is_clean(audit);
}

/* ---- free objects ---- */

static void walk_chain(struct audit *audit, struct census *census, uint32_t first, uint32_t count,
                       enum place place)
{
    const struct object_pool *pool = census->pool;
    for (uint32_t index = first; count > 0 && put(audit, census, index, place); count--) {
        index = object_pool_link(pool, object_pool_at(pool, index))->next;
    }
}

static void walk_cache(struct audit *audit, struct census *census, const struct pool_cache *cache)
{
    walk_chain(audit, census, cache->active.first, cache->active.count, PLACE_CACHE);
    walk_chain(audit, census, cache->spare.first, cache->spare.count, PLACE_CACHE);
}

static void walk_caches(struct audit *audit, const struct caches *caches)
{
    walk_cache(audit, &audit->slots, &caches->processes);
    walk_cache(audit, &audit->nodes, &caches->events);
}

static void walk_range(struct audit *audit, struct census *census, uint32_t begin, uint32_t end)
{
    for (uint32_t index = begin; index < end && put(audit, census, index, PLACE_TRIMMED); index++) {
    }
}

static void walk_pool(struct audit *audit, struct census *census)
{
    struct object_pool *pool = census->pool;
    const uint32_t length = pool->batch > 0 ? pool->batch : 1;
    uint32_t chains = 0;
    for (uint32_t first = pool->chains; first != OBJECT_NONE && is_clean(audit); chains++) {
        walk_chain(audit, census, first, length, PLACE_CHAIN);
        first = object_pool_link(pool, object_pool_at(pool, first))->next_chain;
    }
    if (chains != object_pool_free_chains(pool)) {
        find(audit, "INV-20: %s: the pool has %u free chains and counts %u", census->what, chains,
             object_pool_free_chains(pool));
    }
    for (uint32_t i = 0; i < pool->trimmed_count; i++) {
        const uint32_t first = pool->trimmed[i].first;
        walk_range(audit, census, first, first + (UINT32_C(1) << pool->page_shift));
    }
    walk_range(audit, census, pool->reopened.next, pool->reopened.end);
}

static void walk_free(struct audit *audit)
{
    struct scheduler *sched = audit->sched;
    walk_pool(audit, &audit->slots);
    walk_pool(audit, &audit->nodes);
    walk_caches(audit, &sched->outside.caches);
    for (uint32_t i = 0; i < sched->capacity; i++) {
        walk_caches(audit, &sched->workers[i].caches);
    }
}

/* ---- tokens ---- */

static void put_token(struct audit *audit, const struct process *process, enum place place)
{
    const uint32_t slot = process->slot;
    if (put(audit, &audit->slots, slot, place) &&
        object_pool_at(audit->slots.pool, slot) != process) {
        find(audit, "INV-3: what is in %s is no process", place_names[place]);
    }
}

static void walk_deque(struct audit *audit, struct deque *deque)
{
    const uint32_t top = deque_top(load_acquire(&deque->head)); /* nobody is at it */
    const uint32_t length = deque_length_owner(deque);
    for (uint32_t i = 0; i < length && is_clean(audit); i++) {
        put_token(audit, load_relaxed(deque_slot(deque, top + i)), PLACE_DEQUE);
    }
}

static uint32_t walk_queue_list(struct audit *audit, struct queue_link *link)
{
    uint32_t length = 0;
    while (link != NULL && is_clean(audit)) {
        struct queue_link *next = link->next;
        put_token(audit, process_of_link(link), PLACE_GLOBAL);
        link = next;
        length++;
    }
    return length;
}

static void walk_global(struct audit *audit, struct global_queue *queue)
{
    const uint32_t sorted = walk_queue_list(audit, queue->first);
    const uint32_t counted = load_relaxed(&queue->sorted); /* nobody is at it */
    if (sorted != counted) {
        find(audit, "INV-3: the global queue has %u sorted processes and counts %u", sorted,
             counted);
    }
    (void)walk_queue_list(audit, load_acquire(&queue->inbox)); /* MO-global */
}

static void walk_tokens(struct audit *audit)
{
    struct scheduler *sched = audit->sched;
    for (uint32_t i = 0; i < sched->capacity; i++) {
        struct worker *worker = &sched->workers[i];
        const struct process *next = load_acquire(&worker->next); /* MO-next */
        if (next != NULL) {
            put_token(audit, next, PLACE_NEXT);
        }
        walk_deque(audit, &worker->deque);
    }
    walk_global(audit, &sched->global);
    if (audit->moment->show != NULL) {
        audit->moment->show(audit, audit->moment->arg);
    }
}

void audit_show_token(struct audit *audit, const struct process *process)
{
    put_token(audit, process, PLACE_LIST);
}

void audit_show_node(struct audit *audit, uint32_t index)
{
    (void)put(audit, &audit->nodes, index, PLACE_AGENDA);
}

/* ---- processes, and the nodes that they have ---- */

static void walk_events(struct audit *audit, uint32_t first, enum place place)
{
    for (uint32_t index = first; index != OBJECT_NONE && put(audit, &audit->nodes, index, place);) {
        index = event_at(audit->nodes.pool, index)->next;
    }
}

static void walk_calls(struct audit *audit, const struct process *process)
{
    uint32_t previous = OBJECT_NONE;
    for (uint32_t index = process->calls; index != OBJECT_NONE && is_clean(audit);) {
        if (index >= audit->nodes.end || audit->nodes.marks[index].is_call) {
            find(audit, "INV-20: event node %u %s, now of slot %u", index,
                 index >= audit->nodes.end ? "was never made" : "is an open call twice",
                 process->slot);
            return;
        }
        const struct event_node *node = event_at(audit->nodes.pool, index);
        if ((node->as.call.previous & ~CALL_ENDS) != previous) {
            find(audit, "INV-20: event node %u, a call of slot %u, comes after %u, not %u", index,
                 process->slot, previous, node->as.call.previous & ~CALL_ENDS);
        }
        audit->nodes.marks[index].is_call = true;
        previous = index;
        index = node->as.call.next;
    }
}

static void look_at_live(struct audit *audit, struct process *process, uint64_t word)
{
    const enum process_state state = state_of(event_list_tag(word));
    const enum place place = place_of(&audit->slots, process->slot);
    const bool is_ready = state == STATE_READY;
    audit->live++;
    if (is_token_place(place) != is_ready || is_free_place(place)) {
        find(audit, "%s: slot %u is %s and in %s", is_free_place(place) ? "INV-20" : "INV-3",
             process->slot, state_names[state], place_names[place]);
    }
    if (!is_ready && (event_list_first(word) != OBJECT_NONE || process->backlog != OBJECT_NONE)) {
        find(audit, "INV-10: slot %u is %s and has events", process->slot, state_names[state]);
    }
    if (is_ready && audit->moment->is_at_rest) {
        find(audit, "INV-10: at rest, slot %u is Ready, in %s", process->slot, place_names[place]);
    }
    if (audit->moment->is_at_end) {
        find(audit, "INV-20: at the end, slot %u is %s", process->slot, state_names[state]);
    }
    walk_events(audit, event_list_first(word), PLACE_MAILBOX);
    walk_events(audit, process->backlog, PLACE_BACKLOG);
    walk_calls(audit, process);
}

static void look_at_slot(struct audit *audit, uint32_t slot)
{
    const enum place place = place_of(&audit->slots, slot);
    struct process *process = object_pool_at(audit->slots.pool, slot);
    if (place == PLACE_TRIMMED) {
        return; /* there is nothing to look at */
    }
    const uint64_t word = load_acquire(&process->word); /* MO-event */
    const enum process_state state = state_of(event_list_tag(word));
    switch (state) {
    case STATE_READY:
    case STATE_BLOCKED:
    case STATE_IDLE:
        look_at_live(audit, process, word);
        break;
    case STATE_FREE:
        if (!is_free_place(place)) {
            find(audit, "%s: slot %u is Free and in %s", is_token_place(place) ? "INV-3" : "INV-20",
                 slot, place_names[place]);
        }
        break;
    case STATE_RETIRED:
        audit->retired++;
        if (place != PLACE_NOWHERE) {
            find(audit, "INV-20: slot %u is Retired and in %s", slot, place_names[place]);
        }
        break;
    case STATE_INIT:
    case STATE_COMPLETE:
        find(audit, "INV-20: slot %u is %s, and nobody is at it", slot, state_names[state]);
        break;
    }
}

static void look_at_slots(struct audit *audit)
{
    for (uint32_t slot = 1; slot < audit->slots.end && is_clean(audit); slot++) {
        look_at_slot(audit, slot);
    }
    const uint64_t counted = stats_live(audit->sched);
    if (audit->live != counted) {
        find(audit, "INV-20: %u processes are alive, and %llu are counted", audit->live,
             (unsigned long long)counted);
    }
    if (audit->retired != audit->slots.pool->retired) {
        find(audit, "INV-20: %u slots are Retired, and %u are counted", audit->retired,
             audit->slots.pool->retired);
    }
}

/* ---- wheels ---- */

static void look_at_timer(struct audit *audit, uint32_t wheel, uint32_t index)
{
    if (index >= audit->nodes.end || audit->nodes.marks[index].is_armed) {
        find(audit, "INV-20: event node %u %s, now in the wheel of worker %u", index,
             index >= audit->nodes.end ? "was never made" : "is armed twice", wheel);
        return;
    }
    const struct event_node *node = event_at(audit->nodes.pool, index);
    audit->nodes.marks[index].is_armed = true;
    if (node->as.call.wheel != wheel + 1) {
        find(audit, "INV-20: event node %u is in the wheel of worker %u and thinks otherwise",
             index, wheel);
    }
}

static uint32_t walk_level(struct audit *audit, uint32_t index, uint32_t level)
{
    const struct wheel *wheel = &audit->sched->deadlines.wheels[index].wheel;
    uint32_t count = 0;
    for (uint64_t rest = wheel->occupied[level]; rest != 0; rest &= rest - 1) {
        uint32_t timer = wheel->first[level][__builtin_ctzll(rest)];
        while (timer != OBJECT_NONE && is_clean(audit)) {
            look_at_timer(audit, index, timer);
            timer = is_clean(audit) ? wheel_link_of(wheel, timer)->next : OBJECT_NONE;
            count++;
        }
    }
    return count;
}

static void walk_wheel_locked(struct audit *audit, uint32_t index)
{
    struct deadline_wheel *wheel = &audit->sched->deadlines.wheels[index];
    uint32_t count = 0;
    for (uint32_t level = 0; level < WHEEL_LEVELS; level++) {
        count += walk_level(audit, index, level);
    }
    if (count != wheel->wheel.count) {
        find(audit, "INV-20: the wheel of worker %u has %u timers and counts %u", index, count,
             wheel->wheel.count);
    }
    const uint64_t published = deadlines_next(&audit->sched->deadlines, index);
    if (published > wheel_next(&wheel->wheel)) {
        find(audit, "INV-10: the wheel of worker %u has an earlier timer than it says", index);
    }
    if (audit->moment->is_at_rest && published <= time_now(audit->sched->time)) {
        find(audit, "INV-10: at rest, the wheel of worker %u has something due", index);
    }
}

static void walk_wheels(struct audit *audit)
{
    for (uint32_t i = 0; i < audit->sched->deadlines.count; i++) {
        struct deadline_wheel *wheel = &audit->sched->deadlines.wheels[i];
        mutex_lock(&wheel->lock);
        walk_wheel_locked(audit, i);
        mutex_unlock(&wheel->lock);
    }
}

/* ---- nodes, when all lists have been walked ---- */

static void look_at_node(struct audit *audit, uint32_t index)
{
    const struct mark *mark = &audit->nodes.marks[index];
    const enum place place = place_of(&audit->nodes, index);
    const char *name = place_names[place];
    const bool is_in_call = mark->is_call || mark->is_armed;
    if (place == PLACE_TRIMMED && !is_in_call) {
        return; /* there is nothing to look at */
    }
    const uint32_t guard = load_acquire(&event_at(audit->nodes.pool, index)->guard); /* MO-guard */
    const bool is_open = (guard & CALL_OPEN) != 0;
    if (place == PLACE_NOWHERE && !is_in_call) {
        find(audit, "INV-20: event node %u is in no list: it is lost", index);
    } else if (place == PLACE_NOWHERE && (!mark->is_call || !is_open)) {
        find(audit, "INV-20: event node %u is %s, but no open call of a process", index,
             mark->is_armed ? "in a wheel" : "in a list of calls");
    } else if (place != PLACE_NOWHERE && (mark->is_armed || is_open)) {
        find(audit, "INV-20: event node %u is an open call and in %s", index, name);
    } else if (mark->is_call && (is_free_place(place) || place == PLACE_AGENDA)) {
        find(audit, "INV-20: event node %u is in a list of calls and in %s", index, name);
    }
}

static void look_at_nodes(struct audit *audit)
{
    for (uint32_t index = 1; index < audit->nodes.end && is_clean(audit); index++) {
        look_at_node(audit, index);
    }
}

/* ---- all of it ---- */

static struct census census_of(struct object_pool *pool, const char *what)
{
    const uint32_t end = load_seq_cst(&pool->ready); /* MO-pool */
    return (struct census){
        .pool = pool, .what = what, .marks = calloc(end, sizeof(struct mark)), .end = end};
}

static bool nobody_is_inside(struct scheduler *sched, const struct audit_moment *moment)
{
    return load_seq_cst(&sched->visitors) == moment->visits; /* MO-visit */
}

static void look_locked(struct audit *audit)
{
    struct scheduler *sched = audit->sched;
    audit->slots = census_of(&sched->table.pool, "slot");
    audit->nodes = census_of(&sched->events, "event node");
    if (audit->slots.marks != NULL && audit->nodes.marks != NULL) {
        walk_free(audit);
        walk_tokens(audit);
        look_at_slots(audit);
        walk_wheels(audit);
        look_at_nodes(audit);
    }
    free(audit->slots.marks);
    free(audit->nodes.marks);
}

/* Returns whether there is a finding. With these locks a thread that comes meanwhile can take or
 * give no object and make no process Ready. It can complete a call, which shows as a finding if it
 * does so at the wrong moment. */
static bool look(struct audit *audit)
{
    struct scheduler *sched = audit->sched;
    audit->finding[0] = '\0';
    audit->live = audit->retired = 0;
    mutex_lock(&sched->outside.lock);
    mutex_lock(&sched->table.pool.lock);
    mutex_lock(&sched->events.lock);
    mutex_lock(&sched->global.lock);
    const bool was_alone = nobody_is_inside(sched, audit->moment);
    if (was_alone) {
        look_locked(audit);
    }
    const bool is_alone = nobody_is_inside(sched, audit->moment);
    mutex_unlock(&sched->global.lock);
    mutex_unlock(&sched->events.lock);
    mutex_unlock(&sched->table.pool.lock);
    mutex_unlock(&sched->outside.lock);
    return was_alone && is_alone && !is_clean(audit);
}

void audit_now(struct scheduler *sched, const struct audit_moment *moment)
{
    struct audit audit = {.sched = sched, .moment = moment};
    uint32_t looks = 0;
    while (look(&audit)) {
        if (++looks == LOOKS) {
            fail(audit.finding);
        }
    }
}

/* Whether this thread may look at so many objects. */
static bool can_afford(uint64_t objects)
{
    static _Thread_local uint64_t saved;
    saved += OBJECTS_PER_MOMENT;
    if (saved < objects) {
        return false;
    }
    saved = 0;
    return true;
}

void audit_now_and_then(struct scheduler *sched, const struct audit_moment *moment)
{
    const uint64_t slots = load_relaxed(&sched->table.pool.ready); /* hint */
    const uint64_t nodes = load_relaxed(&sched->events.ready);     /* hint */
    if (can_afford(slots + nodes)) {
        audit_now(sched, moment);
    }
}

/* ---- when all sleep ---- */

static bool nobody_runs(struct scheduler *sched, uint32_t threads)
{
    for (uint32_t i = 0; i < threads; i++) {
        if (load_seq_cst(&sched->workers[i].running) != RUNNING_NOTHING) { /* MO-busy */
            return false;
        }
    }
    return true;
}

static bool all_sleep(struct scheduler *sched)
{
    const uint32_t threads = scheduler_threads(sched);
    const uint32_t resting = load_seq_cst(&sched->spare.resting); /* MO-spare */
    return shutdown_phase(sched) == PHASE_RUNNING &&
           load_seq_cst(&sched->visitors) == 0 &&          /* MO-visit */
           load_seq_cst(&sched->parking.searching) == 0 && /* P2 */
           load_seq_cst(&sched->chores.busy) == 0 &&       /* MO-poll */
           parking_asleep(&sched->parking) + resting == threads && nobody_runs(sched, threads);
}

static void find_work_left(struct audit *audit)
{
    struct scheduler *sched = audit->sched;
    const uint32_t threads = scheduler_threads(sched);
    if (global_queue_has_items_recheck(&sched->global)) {
        find(audit, "INV-10: all sleep, and the global queue is not empty");
    }
    for (uint32_t i = 0; i < threads; i++) {
        if (deque_has_items_any(&sched->workers[i].deque)) {
            find(audit, "INV-10: all sleep, and the deque of worker %u is not empty", i);
        }
        if (load_acquire(&sched->workers[i].next) != NULL) { /* MO-next */
            find(audit, "INV-10: all sleep, and the next slot of worker %u is not empty", i);
        }
    }
}

static void find_sources_left(struct audit *audit)
{
    struct scheduler *sched = audit->sched;
    const uint64_t until = load_seq_cst(&sched->poll.until); /* MO-poll */
    if (poll_is_unattended(sched)) {
        find(audit, "INV-10: all sleep, and nobody waits for timers, descriptors or chores");
    } else if (timers_next(sched) < until || chores_next(sched) < until) {
        find(audit, "INV-10: all sleep, and the poller until after the first deadline");
    }
}

static void find_processes_left(struct audit *audit)
{
    struct object_pool *pool = &audit->sched->table.pool;
    for (uint32_t slot = 1; object_pool_holds(pool, slot) && is_clean(audit); slot++) {
        struct process *process = object_pool_at(pool, slot);
        const uint32_t tag = event_list_tag(load_seq_cst(&process->word)); /* MO-stop */
        const enum process_state state = state_of(tag);
        if (state == STATE_READY || state == STATE_INIT || state == STATE_COMPLETE) {
            find(audit, "%s: all sleep, and slot %u is %s",
                 state == STATE_READY ? "INV-10" : "INV-3", slot, state_names[state]);
        }
    }
}

static bool look_asleep(struct audit *audit)
{
    audit->finding[0] = '\0';
    find_work_left(audit);
    find_sources_left(audit);
    find_processes_left(audit);
    return !is_clean(audit);
}

/* The monitor, or the thread that is about to stop the runtime, may be between making a process
 * Ready and enqueuing it, and any of the sleepers may just be about to see something. All of them
 * change what is looked at here if they get the time, and when this thread gets it so often, they
 * do, too. */
void audit_asleep(struct scheduler *sched, uint32_t patience_ms)
{
    const struct timespec millisecond = {.tv_nsec = 1000000};
    struct audit audit = {.sched = sched};
    while (all_sleep(sched) && look_asleep(&audit) && all_sleep(sched)) {
        if (patience_ms-- == 0) {
            fail(audit.finding);
        }
        (void)nanosleep(&millisecond, NULL);
    }
}

void audit_asleep_now_and_then(struct scheduler *sched, uint32_t patience_ms)
{
    const uint32_t slots = load_relaxed(&sched->table.pool.ready); /* hint */
    if (all_sleep(sched) && can_afford(slots)) {
        audit_asleep(sched, patience_ms);
    }
}

#endif
