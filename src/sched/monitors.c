/* SPDX-License-Identifier: MIT */
#include "sched/monitors.h"

#include "process/payload.h"
#include "relations/watchers.h"
#include "sched/deliver.h"
#include "sched/exit_wait.h"
#include "sched/signal.h"
#include "sched/worker.h"

static skua_completion completion_of(const struct event_node *node)
{
    return (skua_completion){.process = node->as.event.from, .call = node->as.event.tag};
}

static int start_monitor(void *arg, struct worker *worker, const struct yield *yield,
                         skua_completion completion, skua_payload *result)
{
    (void)arg;
    (void)result;
    struct scheduler *sched = worker->sched;
    struct process *process;
    const uint32_t index = yield->as.peer.node;
    const skua_pid pid = yield->as.peer.pid;
    const bool joins = yield->command == service_command(SERVICE_JOIN);
    event_at(&sched->events, index)->as.event = (skua_event){
        .type = joins ? EVENT_JOIN : EVENT_MONITOR,
        .tag = completion.call,
        .from = completion.process,
        .payload = skua_payload_empty(0),
    };
    int error = process_table_find_live(&sched->table, pid, &process);
    if (error == 0 && !signal_push(sched, worker, completion.process, pid, index)) {
        error = SKUA_E_NO_PROCESS;
    }
    if (error != 0) {
        deliver_release_node(sched, worker, index);
        return error;
    }
    return SKUA_PENDING;
}

static void discard_monitor(struct worker *worker, const struct yield *yield)
{
    deliver_release_node(worker->sched, worker, yield->as.peer.node);
}

void monitors_take(struct worker *worker, struct process *process, uint32_t index)
{
    struct object_pool *events = &worker->sched->events;
    struct annex *annex = signal_annex(worker->sched, worker, process);
    if (LIKELY(annex != NULL)) {
        watchers_add_owner(events, &worker->caches.events, annex, index);
        return;
    }
    skua_payload nothing = skua_payload_empty(0);
    const skua_completion completion = completion_of(event_at(events, index));
    event_release_owner(events, &worker->caches.events, index);
    (void)signal_complete(worker->sched, worker, worker->context->self, completion,
                          SKUA_E_NO_MEMORY, &nothing);
}

void monitors_tell(struct scheduler *sched, struct worker *worker, skua_pid pid,
                   struct ending *ending, uint32_t index)
{
    const struct event_node *node = event_at(&sched->events, index);
    const skua_completion completion = completion_of(node);
    const bool joins = node->as.event.type == EVENT_JOIN && ending->error == 0;
    const bool waits = watcher_waits(&sched->events, node);
    deliver_release_node(sched, worker, index);
    if (waits) {
        skua_payload payload =
            joins ? exit_wait_share(&ending->result) : skua_payload_u64(0, pid.bits);
        (void)signal_complete(sched, worker, pid, completion, ending->error, &payload);
    }
}

void monitors_attach(struct scheduler *sched)
{
    sched->services[SERVICE_MONITOR] =
        (struct service){.name = "monitor", .start = start_monitor, .discard = discard_monitor};
    sched->services[SERVICE_JOIN] =
        (struct service){.name = "join", .start = start_monitor, .discard = discard_monitor};
}
