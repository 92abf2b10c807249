/* SPDX-License-Identifier: MIT */
#include "sched/relate.h"

#include "dispatch/call.h"
#include "relations/watchers.h"
#include "sched/admission.h"
#include "sched/calls.h"
#include "sched/children.h"
#include "sched/context.h"
#include "sched/deliver.h"
#include "sched/grouping.h"
#include "sched/links.h"
#include "sched/monitors.h"
#include "sched/naming.h"
#include "sched/publishing.h"
#include "sched/signal.h"
#include "sched/socket_hooks.h"

void relate_attach(struct scheduler *sched)
{
    calls_attach(sched);
    monitors_attach(sched);
    admission_attach(sched);
    naming_attach(sched);
    grouping_attach(sched);
    publishing_attach(sched);
}

/* ---- a monitor: an open call of the parent, and its node among the watchers of the child ---- */

static void open_monitor(skua_context *parent, struct annex *annex, skua_pid pid, uint64_t tag,
                         uint32_t call, uint32_t watcher)
{
    struct scheduler *sched = parent->sched;
    struct event_node *node = event_at(&sched->events, call);
    const bool joins = event_at(&sched->events, watcher)->as.event.type == EVENT_JOIN;
    node->as.call.tag = tag;
    const skua_completion completion = call_open_owner(node, call, parent->self);
    node->next = call_subject((joins ? SERVICE_JOIN : SERVICE_MONITOR) + 1, pid_slot(pid));
    call_link_owner(&sched->allocator, &sched->events, parent->process, call);
    event_at(&sched->events, watcher)->as.event.tag = completion.call;
    watchers_add_owner(&sched->events, &parent->worker->caches.events, annex, watcher);
}

static int monitor(skua_context *parent, struct process *process, skua_pid pid, uint64_t tag,
                   uint32_t type)
{
    struct scheduler *sched = parent->sched;
    struct worker *worker = parent->worker;
    uint32_t call;
    uint32_t watcher;
    struct annex *annex = signal_annex(worker->sched, worker, process);
    if (annex == NULL || !deliver_acquire_node(sched, worker, &call)) {
        return SKUA_E_NO_MEMORY;
    }
    if (!deliver_acquire_node(sched, worker, &watcher)) {
        deliver_release_node(sched, worker, call);
        return SKUA_E_NO_MEMORY;
    }
    event_at(&sched->events, watcher)->as.event =
        (skua_event){.type = type, .from = parent->self, .payload = skua_payload_empty(0)};
    open_monitor(parent, annex, pid, tag, call, watcher);
    return 0;
}

/* Only the parent's own can be there: nobody else knows the process. */
static void unmonitor(skua_context *parent, struct annex *annex)
{
    struct object_pool *events = &parent->sched->events;
    struct pool_cache *cache = &parent->worker->caches.events;
    while (annex->watchers != OBJECT_NONE) {
        const uint32_t watcher = watchers_take_owner(events, annex);
        const uint32_t call = (uint32_t)(event_at(events, watcher)->as.event.tag >> 32);
        struct event_node *node = event_at(events, call);
        const bool claimed =
            call_claim_any(node, (uint32_t)event_at(events, watcher)->as.event.tag);
        SKUA_ASSERT(claimed); /* it has no timeout */
        call_unlink_owner(events, parent->process, node, call);
        event_release_owner(events, cache, call);
        event_release_owner(events, cache, watcher);
    }
}

/* ---- all of them ---- */

static bool is_in_step(const skua_context *ctx)
{
    return ctx != NULL && (ctx->phase & ~CONTEXT_CHECKED) == CONTEXT_STEP;
}

int relate_check(const struct spawn_request *request)
{
    const skua_spawn_options *options = request->options;
    const bool watches =
        options->monitor || options->join || options->link || options->socket.bits != 0;
    return watches && !is_in_step(request->parent) ? SKUA_E_CONTEXT : 0;
}

int relate_at_spawn(struct scheduler *sched, struct worker *worker,
                    const struct spawn_request *request, struct process *process, skua_pid pid)
{
    const skua_spawn_options *options = request->options;
    skua_context *parent = request->parent;
    int error = 0;
    if (options->label != NULL) {
        error = naming_label(sched, worker, process, pid, options->label);
    }
    if (error == 0 && request->birth != NULL) {
        error = children_link(sched, worker, request, process, pid);
    }
    if (error == 0 && options->link) {
        error = links_make_at_spawn(parent, process, pid, options->link_flags, options->link_tag,
                                    options->link_id);
    }
    if (error == 0 && options->monitor) {
        error = monitor(parent, process, pid, options->monitor_tag, EVENT_MONITOR);
    }
    if (error == 0 && options->join) {
        error = monitor(parent, process, pid, options->join_tag, EVENT_JOIN);
    }
    if (error == 0 && options->socket.bits != 0) {
        error =
            sched->sockets->give_at_spawn(sched->sockets, parent, process, pid, options->socket);
    }
    return error;
}

void relate_undo(struct scheduler *sched, const struct spawn_request *request,
                 struct process *process)
{
    skua_context *parent = request->parent;
    struct annex *annex = annex_of(&sched->events, process);
    if (request->options == NULL || !is_in_step(parent)) {
        return; /* then there is nothing */
    }
    if ((process_progress(process) & PROCESS_SOCKETS) != 0) {
        sched->sockets->take_back(sched->sockets, parent, process, request->options->socket);
    }
    if (annex == NULL) {
        return;
    }
    unmonitor(parent, annex);
    links_unmake_all(sched, parent->worker, process);
}
