/* SPDX-License-Identifier: MIT */
/* When a simulation has come to rest: processes whose calls wait for each other, for ever. On
 * threads such a program just stands still.
 *
 * Processes are the nodes of a graph, and calls that wait for an answer its edges. It is searched
 * in depth; an edge back to a process on the path closes a cycle. */
#include <stdalign.h>
#include <stdio.h>

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

struct search {
    struct sim *sim;
    struct visit *visits; /* by slot */
    uint32_t end;         /* of the slots */
};

/* The slot of the process that has to answer an open call, or OBJECT_NONE if it is no call to a
 * process. At rest every request has been handed to a process. */
static uint32_t server_of(const struct object_pool *events, const struct event_node *call)
{
    uint32_t base;
    if (call->next >> CALL_SUBJECT_SHIFT != SERVICE_CALL + 1) {
        return OBJECT_NONE;
    }
    const uint32_t index = request_of_listener(call->as.call.listener, &base);
    struct event_node *request = event_at(events, index);
    const bool is_owed = load_relaxed(&request->guard) - base < REQUEST_WINDOW; /* one thread */
    return is_owed && request->as.request.is_listed ? pid_slot(request->as.request.server)
                                                    : OBJECT_NONE;
}

/* The server of the next call of a process on the path, or OBJECT_NONE. */
static uint32_t next_server(const struct search *search, uint32_t slot)
{
    const struct object_pool *events = &search->sim->sched->events;
    uint32_t *call = &search->visits[slot].call;
    uint32_t server = OBJECT_NONE;
    while (*call != OBJECT_NONE && server == OBJECT_NONE) {
        const struct event_node *node = event_at(events, *call);
        server = server_of(events, node);
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
    for (uint32_t slot = 1; search.visits != NULL && slot < search.end; slot++) {
        if (!search.visits[slot].is_known) {
            search_from(&search, slot);
        }
    }
    allocator_free(&sim->allocator, search.visits, size, alignof(struct visit));
}
