/* SPDX-License-Identifier: MIT */
/* Passing sockets on, from one process to another.
 *
 * MO-give: `owner` is written by the process that gives, with release, when it has done with the
 * socket; whoever finds itself the owner acquires that. The receiver hears of it by a signal
 * (EVENT_SOCKET_GIVEN), which puts the socket into its list; it may use the socket before that, if
 * a message of somebody else's was faster. */
#include "base/assert.h"
#include "net/sockets.h"
#include "sched/deliver.h"
#include "sched/signal.h"
#include "sched/worker.h"

static bool has_open_call(struct sockets *sockets, uint64_t call)
{
    return call != 0 && deliver_is_open(sockets->sched, (skua_completion){.call = call});
}

bool sockets_is_busy(struct sockets *sockets, const struct socket *socket)
{
    return has_open_call(sockets, socket->reader) || socket->first != OBJECT_NONE ||
           socket->unstarted > 0 ||
           (socket->extra != NULL && has_open_call(sockets, socket->extra->end_waiter));
}

/* The deadlines of the old owner's yields are not the new owner's. */
static void forget_yields(struct socket *socket)
{
    socket->reader = 0;
    if (socket->extra != NULL) {
        socket->extra->end_waiter = 0;
    }
}

int sockets_give(struct sockets *sockets, skua_context *ctx, skua_socket handle, skua_pid to)
{
    struct scheduler *sched = sockets->sched;
    struct process *receiver;
    uint32_t node;
    const uint32_t slot = socket_slot(handle.bits);
    struct socket *socket = sockets_find(sockets, ctx->self, handle);
    if (socket == NULL || sockets_is_busy(sockets, socket)) {
        return socket == NULL ? SKUA_E_SOCKET : SKUA_E_SOCKET_BUSY;
    }
    const int error = process_table_find_live(&sched->table, to, &receiver);
    if (error != 0 || receiver == ctx->process) {
        return error;
    }
    /* Now, or it could not be kept when it arrives. */
    if (sockets_list_of(sockets, receiver, true) == NULL ||
        !event_acquire_owner(&sched->events, &ctx->worker->caches.events, &node)) {
        return SKUA_E_NO_MEMORY;
    }
    event_at(&sched->events, node)->as.event = (skua_event){
        .type = EVENT_SOCKET_GIVEN, .tag = handle.bits, .payload = skua_payload_empty(0)};
    sockets_unlist(sockets, ctx->process, socket);
    forget_yields(socket);
    store_release(&socket->owner, to.bits); /* MO-give: all of the above is the receiver's now */
    if (signal_push(sched, ctx->worker, ctx->self, to, node)) {
        return 0;
    }
    /* It had ended, so nobody can have used it. */
    store_release(&socket->owner, ctx->self.bits); /* MO-give */
    const bool listed = sockets_list(sockets, ctx->process, socket, slot);
    SKUA_ASSERT(listed); /* it has had one before */
    event_release_owner(&sched->events, &ctx->worker->caches.events, node);
    return SKUA_E_NO_PROCESS;
}

int sockets_give_at_spawn(struct socket_hooks *hooks, skua_context *parent, struct process *child,
                          skua_pid pid, skua_socket handle)
{
    struct sockets *sockets = sockets_of_hooks(hooks);
    const uint32_t slot = socket_slot(handle.bits);
    struct socket *socket = sockets_find(sockets, parent->self, handle);
    if (socket == NULL || sockets_is_busy(sockets, socket)) {
        return socket == NULL ? SKUA_E_SOCKET : SKUA_E_SOCKET_BUSY;
    }
    if (sockets_list_of(sockets, child, true) == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    sockets_unlist(sockets, parent->process, socket);
    forget_yields(socket);
    (void)!sockets_list(sockets, child, socket, slot);
    store_release(&socket->owner, pid.bits); /* MO-give; the child is published later */
    return 0;
}

void sockets_take_back(struct socket_hooks *hooks, skua_context *parent, struct process *child,
                       skua_socket handle)
{
    struct sockets *sockets = sockets_of_hooks(hooks);
    const uint32_t slot = socket_slot(handle.bits);
    struct socket *socket = socket_at(sockets, slot);
    sockets_unlist(sockets, child, socket);
    (void)!sockets_list(sockets, parent->process, socket, slot);
    store_release(&socket->owner, parent->self.bits); /* MO-give */
}

/* A socket that was given has arrived. The receiver may have closed it, or given it on, before. */
void sockets_take_given(struct sockets *sockets, struct worker *worker, struct process *process,
                        uint32_t node)
{
    struct object_pool *events = &sockets->sched->events;
    const skua_socket handle = {event_at(events, node)->as.event.tag};
    struct socket *socket = sockets_find(sockets, worker->context->self, handle);
    event_release_owner(events, &worker->caches.events, node);
    if (socket != NULL && (socket->flags & SOCKET_IS_LISTED) == 0) {
        const bool listed = sockets_list(sockets, process, socket, socket_slot(handle.bits));
        SKUA_ASSERT(listed); /* the giver has seen to that */
    }
}
