/* SPDX-License-Identifier: MIT */
/* Signals: how a process hears that one of its sockets may be ready (net/socket_word.h). */
#include "net/sockets.h"
#include "sched/deliver.h"
#include "sched/log.h"
#include "sched/signal.h"
#include "sched/worker.h"

/* An alarm looks at all sockets: it comes so rarely that this takes a small share of a CPU. */
#define ALARM_NS_PER_SOCKET UINT64_C(1000)

/* What nobody could be told of is told after this time. */
#define ALARM_AGAIN_NS (UINT64_C(10) * 1000000)

/* ---- signals ---- */

/* Whether there is something in the word for which the owner should be signalled. */
static bool owner_is_waiting(struct socket *socket)
{
    const uint32_t flags = (uint32_t)load_relaxed(&socket->word); /* what K3 has left, or later */
    return socket_word_wakes(flags, flags);
}

/* The same as push_signal, if the owner has ended: it closes the socket, or has given it to another
 * one before that. */
static NOINLINE void push_again(struct sockets *sockets, struct worker *worker,
                                struct socket *socket, uint64_t key, uint32_t node)
{
    struct scheduler *sched = sockets->sched;
    for (;;) {
        const skua_pid owner = {load_acquire(&socket->owner)}; /* MO-give */
        if (owner.bits != 0 && signal_push_now(sched, worker, owner, node)) {
            return;
        }
        if (load_acquire(&socket->owner) == owner.bits) {
            break;
        }
    }
    if (!socket_word_unsignal_any(&socket->word, (uint32_t)key)) {
        deliver_release_node(sched, worker, node);
    } else if (owner_is_waiting(socket)) {
        /* It may be on its way to another process, or to one that does not run yet. A report that
         * found SIGNALLED set has relied on this one, so it is made up for. */
        sockets_set_alarm(sockets, worker, socket,
                          time_after(time_now(sched->time), ALARM_AGAIN_NS));
    }
}

/* Pushes the signal. The caller has the node; the socket may be another one by now. */
static ALWAYS_INLINE void push_signal(struct sockets *sockets, struct worker *worker,
                                      struct socket *socket, uint64_t key, uint32_t node)
{
    const skua_pid owner = {load_acquire(&socket->owner)}; /* MO-give */
    if (UNLIKELY(owner.bits == 0 || !signal_push_now(sockets->sched, worker, owner, node))) {
        push_again(sockets, worker, socket, key, node);
    }
}

void sockets_signal_self(struct sockets *sockets, struct worker *worker, struct socket *socket,
                         uint32_t slot, uint32_t waits, uint32_t flags)
{
    (void)!socket_word_wait_owner(&socket->word, waits, 0);
    const uint64_t key = socket_key(socket, slot);
    if (socket_word_report_any(&socket->word, (uint32_t)key, flags) == SOCKET_SIGNAL) {
        push_signal(sockets, worker, socket, key, load_relaxed(&socket->signal)); /* its own */
    }
}

/* ---- reports ---- */

void sockets_report(struct sockets *sockets, struct worker *worker, uint64_t key, uint32_t flags)
{
    struct socket *socket = socket_at(sockets, socket_slot(key));
    /* Before the report: right after it the owner may close the socket, and another one be opened
     * in its place. If the report is accepted, this is the node of the socket that the key names:
     * it was written before anybody could know the key. */
    const uint32_t node = load_acquire(&socket->signal); /* MO-socket */
    switch (socket_word_report_any(&socket->word, (uint32_t)key, flags)) {
    case SOCKET_SIGNAL:
        push_signal(sockets, worker, socket, key, node);
        break;
    case SOCKET_WRITE:
        sockets_go_on_lingering(sockets, worker, key);
        break;
    case SOCKET_NOTHING:
        break;
    }
}

/* Tells whoever has the socket in this slot now that a deadline may have passed; one too many does
 * no harm. A slot that is free has no signal: an alarm that was set for a socket that is gone says
 * nothing. */
static void ring(struct sockets *sockets, struct worker *worker, uint32_t slot)
{
    struct socket *socket = socket_at(sockets, slot);
    const uint64_t word = load_acquire(&socket->word); /* MO-socket: before its owner */
    if (load_acquire(&socket->owner) != 0 || (word & SOCKET_LINGERS) != 0) { /* MO-give */
        sockets_report(sockets, worker, (uint64_t)slot << 32 | socket_word_generation(word),
                       SOCKET_ALARM);
    }
}

void sockets_alarm(struct sockets *sockets, struct worker *worker, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    uint32_t looks = 0;
    for (uint32_t slot = 1; sockets_has_slot(sockets, slot); slot++, looks++) {
        struct socket *socket = socket_at(sockets, slot);
        uint64_t when = load_seq_cst(&socket->alarm_at); /* MO-alarm */
        if (when == 0) {
            continue;
        }
        if (when > now) {
            next = when < next ? when : next;
        } else if (cas_seq_cst(&socket->alarm_at, &when, (uint64_t)0)) { /* MO-alarm */
            ring(sockets, worker, slot);
        }
    }
    if (next != UINT64_MAX) {
        const uint64_t rested = time_after(now, looks * ALARM_NS_PER_SOCKET);
        sockets->transport->wake_at(sockets->transport, worker, next > rested ? next : rested);
    }
}

/* ---- the owner hears ---- */

/* Looks at the deadlines of the socket itself; those of its yields are elsewhere. */
static void look_at_deadlines(struct sockets *sockets, struct worker *worker,
                              struct process *process, struct socket *socket)
{
    const uint64_t now = time_now(sockets->sched->time);
    uint64_t next = UINT64_MAX;
    if (socket->extra != NULL && socket->extra->idle_ns != 0) {
        next = time_after(load_relaxed(&socket->active_at), socket->extra->idle_ns); /* its own */
        if (now >= next) {
            sockets_fail(sockets, worker, process, socket, SKUA_E_IDLE);
            return;
        }
    }
    if (socket->first != OBJECT_NONE) {
        const uint64_t end = socket_progress_end(socket);
        if (now >= end) {
            sockets_fail(sockets, worker, process, socket, SKUA_E_NO_PROGRESS);
            return;
        }
        next = end < next ? end : next;
    }
    if (next != UINT64_MAX) {
        sockets_set_alarm(sockets, worker, socket, next);
    }
}

static void go_on_waiting_for_end(struct worker *worker, struct process *process,
                                  struct socket *socket)
{
    struct socket_extra *extra = socket->extra;
    if (extra->end_waiter == 0) {
        return;
    }
    if ((socket->flags & SOCKET_HUNG_UP) == 0 &&
        !socket_word_wait_owner(&socket->word, SOCKET_WAITS_FOR_END, SOCKET_ENDS_INPUT)) {
        socket_absorb(socket, socket_word_clear_owner(&socket->word, SOCKET_ENDS_INPUT) &
                                  SOCKET_ENDS_INPUT);
    }
    if ((socket->flags & SOCKET_HUNG_UP) != 0) {
        const uint64_t waiter = extra->end_waiter;
        extra->end_waiter = 0;
        sockets_end_call(worker, process, waiter, socket_end_of_input(socket));
    }
}

/* The same as serve_stream, whatever there may be to do. */
static NOINLINE void serve_all(struct sockets *sockets, struct worker *worker,
                               struct process *process, struct socket *socket, uint32_t slot,
                               uint32_t flags)
{
    if (UNLIKELY((flags & SOCKET_ALARM) != 0) && socket->failure == 0) {
        look_at_deadlines(sockets, worker, process, socket);
    }
    if (socket->first != OBJECT_NONE) {
        socket_go_on_writing(sockets, worker, process, socket, slot);
    }
    socket_go_on_reading(sockets, worker, process, socket, slot);
    if (socket->extra != NULL) {
        go_on_waiting_for_end(worker, process, socket);
    }
}

/* Most often there is only something to read. That comes last, so that it returns to whoever has
 * taken the signal (base/system_call.h). */
static ALWAYS_INLINE void serve_stream(struct sockets *sockets, struct worker *worker,
                                       struct process *process, struct socket *socket,
                                       uint32_t slot, uint32_t flags)
{
    if (UNLIKELY((flags & SOCKET_ALARM) != 0 || socket->first != OBJECT_NONE ||
                 socket->extra != NULL)) {
        serve_all(sockets, worker, process, socket, slot, flags);
    } else {
        socket_go_on_reading(sockets, worker, process, socket, slot);
    }
}

/* The socket of this process may be ready. */
static ALWAYS_INLINE void serve(struct sockets *sockets, struct worker *worker,
                                struct process *process, struct socket *socket, uint32_t slot,
                                uint32_t flags)
{
    switch ((enum socket_kind)socket->kind) {
    case SOCKET_LISTENER:
        socket_go_on_accepting(sockets, worker, process, socket);
        break;
    case SOCKET_CONNECTING:
        socket_go_on_connecting(sockets, worker, process, socket, slot);
        break;
    case SOCKET_STREAM:
        serve_stream(sockets, worker, process, socket, slot, flags);
        break;
    case SOCKET_FREE:
        break;
    }
}

void sockets_take(struct socket_hooks *hooks, struct worker *worker, struct process *process,
                  uint32_t node)
{
    struct sockets *sockets = sockets_of_hooks(hooks);
    const struct event_node *signal = event_at(&sockets->sched->events, node);
    const uint64_t key = signal->as.event.tag;
    if (signal->as.event.type == EVENT_SOCKET_GIVEN) {
        sockets_take_given(sockets, worker, process, node);
        return;
    }
    struct socket *socket = socket_at(sockets, socket_slot(key));
    if (socket_word_generation(load_acquire(&socket->word)) != (uint32_t)key) { /* MO-socket */
        deliver_release_node(sockets->sched, worker, node);
    } else if (load_acquire(&socket->owner) != worker->context->self.bits) { /* MO-give */
        push_signal(sockets, worker, socket, key, node);
    } else {
        const uint32_t flags = socket_word_take_owner(&socket->word);
        socket_absorb(socket, flags);
        serve(sockets, worker, process, socket, socket_slot(key), flags);
    }
}

/* The process is ending: it has closed its sockets, or given them away. */
void sockets_drop(struct socket_hooks *hooks, struct worker *worker, uint32_t node)
{
    struct sockets *sockets = sockets_of_hooks(hooks);
    const struct event_node *signal = event_at(&sockets->sched->events, node);
    const uint64_t key = signal->as.event.tag;
    struct socket *socket = socket_at(sockets, socket_slot(key));
    if (signal->as.event.type == EVENT_SOCKET) {
        push_signal(sockets, worker, socket, key, node);
        return;
    }
    deliver_release_node(sockets->sched, worker, node);
    if (sockets_find(sockets, worker->context->self, (skua_socket){key}) != NULL &&
        (socket->flags & SOCKET_IS_LISTED) == 0) {
        sockets_close(sockets, worker, worker->context->process, socket_slot(key), true);
    }
}

bool sockets_leave(struct socket_hooks *hooks, struct worker *worker, struct process *process,
                   int error, uint32_t *budget)
{
    struct sockets *sockets = sockets_of_hooks(hooks);
    while ((process_progress(process) & PROCESS_SOCKETS) != 0) {
        if (*budget == 0) {
            return false;
        }
        *budget -= 1;
        sockets_close(sockets, worker, process, *sockets_list_of(sockets, process, false),
                      !log_is_orderly(error));
    }
    return true;
}

void sockets_look_around(struct socket_hooks *hooks, struct worker *worker, uint64_t now)
{
    sockets_alarm(sockets_of_hooks(hooks), worker, now);
}
