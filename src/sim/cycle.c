/* SPDX-License-Identifier: MIT */
/* When a simulation has come to rest: processes whose calls wait for each other, for ever. On
 * threads such a program just stands still.
 *
 * Processes are the nodes of a graph, and calls that wait for an answer its edges. It is searched
 * in depth; an edge back to a process on the path closes a cycle. A request that a task has put
 * aside is still an event, which does not say whose: those are looked up in a list. */
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>

#include "relations/request.h"
#include "sched/log.h"
#include "sched/process_info.h"
#include "sim/sim.h"

/* Processes that a line names. */
#define NAMED_MAX 6
#define TEXT_SIZE 280

/* A process of the search, by its slot. */
struct visit {
    uint32_t from; /* whose call led here, or OBJECT_NONE */
    uint32_t call; /* its call that is looked at next */
    bool is_known; /* it was looked at before */
    bool is_on_path;
};

/* A request that a task has put aside, or a process deferred. */
struct aside {
    uint32_t request; /* its node */
    uint32_t slot;    /* of the process */
};

struct search {
    struct sim *sim;
    struct visit *visits; /* by slot */
    uint32_t end;         /* of the slots */
    struct aside *asides; /* by request */
    size_t aside_count;
};

/* ---- requests put aside ---- */

static void add_requests(struct search *search, uint32_t slot, uint32_t first)
{
    const struct scheduler *sched = search->sim->sched;
    for (uint32_t index = first; index != OBJECT_NONE;
         index = event_at(&sched->events, index)->next) {
        const uint32_t type = event_at(&sched->events, index)->as.event.type;
        if (type == SKUA_EVENT_CALL || type == EVENT_CALL_AGAIN) {
            if (search->asides != NULL) {
                search->asides[search->aside_count] = (struct aside){index, slot};
            }
            search->aside_count++;
        }
    }
}

/* Adds the requests that a process has put aside or deferred to the list, or only counts them if
 * there is no list yet. */
static void add_asides(struct search *search, uint32_t slot)
{
    const struct scheduler *sched = search->sim->sched;
    struct process *process = process_at(&sched->table, slot);
    if (!state_is_waiting(state_peek(process))) {
        return;
    }
    const struct wing *wing = annex_wing(&sched->events, process);
    if (wing != NULL) {
        add_requests(search, slot, wing->deferred);
    }
    if (process_is_task(process_type(process))) {
        add_requests(search, slot, process->state.of_task.aside);
    }
}

static int compare_asides(const void *left, const void *right)
{
    const uint32_t a = ((const struct aside *)left)->request;
    const uint32_t b = ((const struct aside *)right)->request;
    return (a > b) - (a < b);
}

static void list_asides(struct search *search)
{
    search->aside_count = 0;
    for (uint32_t slot = 1; slot < search->end; slot++) {
        add_asides(search, slot);
    }
}

/* False: there is no memory. */
static bool find_asides(struct search *search)
{
    list_asides(search);
    if (search->aside_count == 0) {
        return true;
    }
    search->asides =
        allocator_alloc_zeroed(&search->sim->allocator,
                               search->aside_count * sizeof *search->asides, alignof(struct aside));
    if (search->asides == NULL) {
        return false;
    }
    list_asides(search);
    qsort(search->asides, search->aside_count, sizeof *search->asides, compare_asides);
    return true;
}

static void forget_asides(struct search *search)
{
    if (search->asides != NULL) {
        allocator_free(&search->sim->allocator, search->asides,
                       search->aside_count * sizeof *search->asides, alignof(struct aside));
    }
}

static const struct aside *find_aside(const struct search *search, uint32_t request)
{
    const struct aside key = {.request = request};
    return search->asides == NULL ? NULL
                                  : bsearch(&key, search->asides, search->aside_count,
                                            sizeof *search->asides, compare_asides);
}

/* ---- the search ---- */

/* The slot of the process that has to answer an open call, or OBJECT_NONE if it is no call to a
 * process. At rest every request has been handed to a process, or put aside by one. */
static uint32_t server_of(const struct search *search, const struct event_node *call)
{
    uint32_t base;
    if (call->next >> CALL_SUBJECT_SHIFT != SERVICE_CALL + 1) {
        return OBJECT_NONE;
    }
    const uint32_t index = request_of_listener(call->as.call.listener, &base);
    struct event_node *request = event_at(&search->sim->sched->events, index);
    if (load_relaxed(&request->guard) - base >= REQUEST_WINDOW) { /* one thread */
        return OBJECT_NONE;
    }
    const struct aside *aside = find_aside(search, index);
    if (aside != NULL) {
        return aside->slot;
    }
    return request->as.request.is_listed ? pid_slot(request->as.request.server) : OBJECT_NONE;
}

/* The server of the next call of a process on the path, or OBJECT_NONE. */
static uint32_t next_server(const struct search *search, uint32_t slot)
{
    const struct object_pool *events = &search->sim->sched->events;
    uint32_t *call = &search->visits[slot].call;
    uint32_t server = OBJECT_NONE;
    while (*call != OBJECT_NONE && server == OBJECT_NONE) {
        const struct event_node *node = event_at(events, *call);
        server = server_of(search, node);
        *call = node->as.call.next;
    }
    return server;
}

/* From the first process of a cycle to the last of the path, which has called the first. */
static void name_cycle(const struct search *search, uint32_t first, uint32_t last)
{
    struct scheduler *sched = search->sim->sched;
    char text[TEXT_SIZE];
    size_t length = 0;
    uint32_t slot = last;
    for (uint32_t i = 0; i < NAMED_MAX && length < sizeof text; i++) {
        char digits[SKUA_PID_TEXT_SIZE];
        const skua_pid pid = process_info_at(sched, slot);
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%.24s %s",
                                   i == 0 ? "" : ", called by ", process_info_type_name(sched, pid),
                                   skua_pid_format(pid, digits));
        if (slot == first) {
            break;
        }
        slot = search->visits[slot].from;
    }
    log_cycle(sched, process_info_at(sched, first), text);
}

static void enter(const struct search *search, uint32_t callee, uint32_t caller)
{
    struct sim *sim = search->sim;
    struct process *process = process_at(&sim->sched->table, callee);
    const bool waits = state_is_waiting(state_peek(process));
    search->visits[callee] = (struct visit){
        .from = caller,
        .call = waits ? *annex_calls(&sim->sched->events, process) : OBJECT_NONE,
        .is_known = true,
        .is_on_path = true,
    };
}

static void search_from(const struct search *search, uint32_t root)
{
    uint32_t slot = root;
    enter(search, root, OBJECT_NONE);
    while (slot != OBJECT_NONE) {
        const uint32_t server = next_server(search, slot);
        if (server == OBJECT_NONE) {
            search->visits[slot].is_on_path = false;
            slot = search->visits[slot].from;
        } else if (search->visits[server].is_on_path) {
            name_cycle(search, server, slot);
        } else if (!search->visits[server].is_known) {
            enter(search, server, slot);
            slot = server;
        }
    }
}

void sim_name_cycles(struct sim *sim)
{
    struct search search = {.sim = sim, .end = 1};
    const uint64_t steps = load_relaxed(&sim_worker(sim)->stats.steps); /* this thread's */
    if (sim->sched->config.on_log == NULL || steps == sim->steps_searched) {
        return; /* nobody listens, or nothing has happened since the last time */
    }
    sim->steps_searched = steps;
    while (object_pool_holds(&sim->sched->table.pool, search.end)) {
        search.end++;
    }
    const size_t size = search.end * sizeof *search.visits;
    search.visits = allocator_alloc_zeroed(&sim->allocator, size, alignof(struct visit));
    if (search.visits == NULL) {
        return;
    }
    const bool is_complete = find_asides(&search);
    for (uint32_t slot = 1; is_complete && slot < search.end; slot++) {
        if (!search.visits[slot].is_known) {
            search_from(&search, slot);
        }
    }
    forget_asides(&search);
    allocator_free(&sim->allocator, search.visits, size, alignof(struct visit));
}
