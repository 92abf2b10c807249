/* SPDX-License-Identifier: MIT */
/* Accepting and connecting. */
#include <errno.h>
#include <stdalign.h>

#include "net/sockets.h"
#include "sched/deliver.h"
#include "sched/note.h"
#include "sched/worker.h"

/* How long a listener rests when there are no descriptors or no memory: at first, and at most. */
#define PAUSE_MIN_NS (UINT64_C(10) * 1000000)
#define PAUSE_MAX_NS (UINT64_C(1000) * 1000000)

/* So many connections in a row may be gone before they are accepted: after that it is the system
 * that refuses all of them, as a security policy does. Then it must not be asked for ever. */
#define PASSING_MAX 64

/* A connect whose yield has ended is given up within this time. */
#define CONNECT_LOOK_NS (UINT64_C(1000) * 1000000)

static bool is_open(struct sockets *sockets, uint64_t call)
{
    return deliver_is_open(sockets->sched, (skua_completion){.call = call});
}

/* ---- accepting ---- */

static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

/* The connection was gone before it was accepted, or an interrupt came: the next one. */
static bool is_passing(int error)
{
    return error == ECONNABORTED || error == EINTR || error == EPROTO || error == ENETDOWN ||
           error == EHOSTDOWN || error == EHOSTUNREACH || error == ENETUNREACH || error == EPERM;
}

/* Without descriptors, a connection that nobody accepts would keep the listener ready. It is turned
 * away, and the next one waits for a while, so that nothing spins. */
static void pause_accepting(struct sockets *sockets, struct worker *worker, struct socket *listener)
{
    struct socket_extra *extra = listener->extra;
    if (sockets->transport->turn_away(sockets->transport, socket_fd(listener))) {
        (void)fetch_add_relaxed(&sockets->turned_away, 1); /* statistic */
    }
    extra->pause_ns = extra->pause_ns == 0                 ? PAUSE_MIN_NS
                      : 2 * extra->pause_ns > PAUSE_MAX_NS ? PAUSE_MAX_NS
                                                           : 2 * extra->pause_ns;
    sockets_set_alarm(sockets, worker, listener,
                      time_after(time_now(sockets->sched->time), extra->pause_ns));
}

/* Gives an accepted socket what its listener says. */
static int inherit(struct sockets *sockets, const struct socket_extra *from, struct socket *socket)
{
    struct transport *transport = sockets->transport;
    const int fd = socket_fd(socket);
    const bool has_limits = (from->idle_ns | from->progress_ns | from->write_limit) != 0;
    if (!from->delays) {
        (void)transport->set(transport, fd, SKUA_SOCKET_NODELAY, 1); /* not on a Unix socket */
    }
    if (from->keepalive_ns != 0) {
        (void)transport->set(transport, fd, SKUA_SOCKET_KEEPALIVE, from->keepalive_ns);
    }
    /* The system hands these on by itself, but not to Unix sockets. */
    if (from->send_buffer != 0 && (socket->flags & SOCKET_IS_LOCAL) != 0) {
        (void)transport->set(transport, fd, SKUA_SOCKET_SEND_BUFFER, from->send_buffer);
    }
    if (from->receive_buffer != 0 && (socket->flags & SOCKET_IS_LOCAL) != 0) {
        (void)transport->set(transport, fd, SKUA_SOCKET_RECEIVE_BUFFER, from->receive_buffer);
    }
    if (!has_limits) {
        return 0;
    }
    struct socket_extra *extra = socket_extra(sockets, socket);
    if (extra == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    extra->idle_ns = from->idle_ns;
    extra->progress_ns = from->progress_ns;
    extra->write_limit = from->write_limit;
    return 0;
}

/* Takes one connection, as a number of the transport; -EAGAIN if there is none; -EINPROGRESS if it
 * pauses; or another negative errno. */
static int take_connection(struct sockets *sockets, struct worker *worker, struct socket *listener)
{
    struct transport *transport = sockets->transport;
    struct socket_extra *extra = listener->extra;
    int fd;
    int tries = 0;
    if (extra->held != 0) {
        fd = (int)extra->held - 1;
        extra->held = 0;
        return fd;
    }
    do {
        fd = transport->accept(transport, socket_fd(listener));
    } while (fd < 0 && is_passing(-fd) && ++tries < PASSING_MAX);
    if (fd < 0 && is_shortage(-fd)) {
        pause_accepting(sockets, worker, listener);
        return -EINPROGRESS;
    }
    extra->pause_ns = fd >= 0 ? 0 : extra->pause_ns;
    return fd;
}

/* Makes a socket of a connection that was taken. Returns 0 and *handle, or an error. */
static int open_accepted(struct sockets *sockets, struct worker *worker, struct process *process,
                         const struct socket *listener, int fd, uint64_t *handle)
{
    uint32_t slot;
    int error =
        sockets_open(sockets, worker, process, worker->context->self, fd, SOCKET_STREAM, &slot);
    if (error != 0) {
        sockets->transport->close(sockets->transport, fd, true);
        return error;
    }
    struct socket *socket = socket_at(sockets, slot);
    socket->flags |= listener->flags & SOCKET_IS_LOCAL;
    error = inherit(sockets, listener->extra, socket);
    if (error != 0) {
        sockets_close(sockets, worker, process, slot, true);
        return error;
    }
    if (listener->extra->idle_ns != 0) {
        sockets_set_alarm(sockets, worker, socket,
                          time_after(time_now(sockets->sched->time), listener->extra->idle_ns));
    }
    NOTE_COUNT(sockets->sched, worker, accepted);
    *handle = socket_key(socket, slot);
    return 0;
}

/* Whether there is something to accept, as far as the owner knows. */
static bool may_accept(struct socket *listener)
{
    const uint32_t ends = SOCKET_READABLE | SOCKET_FAILED;
    if ((listener->ready & ends) == 0) {
        if (((uint32_t)load_relaxed(&listener->word) & ends) == 0) { /* hint */
            return false;
        }
        socket_absorb(listener, socket_word_clear_owner(&listener->word, ends) & ends);
    }
    return true;
}

/* As take_connection; waits if there is no connection. */
static int take_or_wait(struct sockets *sockets, struct worker *worker, struct socket *listener)
{
    for (;;) {
        if (may_accept(listener) || listener->extra->held != 0) {
            const int fd = take_connection(sockets, worker, listener);
            if (fd != -EAGAIN) {
                return fd; /* `ready` stays, for when a pause is over */
            }
            listener->ready = 0;
        }
        if (socket_word_wait_owner(&listener->word, SOCKET_WAITS_TO_READ,
                                   SOCKET_READABLE | SOCKET_FAILED)) {
            return -EAGAIN;
        }
    }
}

void socket_go_on_accepting(struct sockets *sockets, struct worker *worker, struct process *process,
                            struct socket *socket)
{
    uint64_t handle = 0;
    const uint64_t call = socket->reader;
    if (call == 0) {
        return;
    }
    if (!is_open(sockets, call)) {
        socket->reader = 0;
        return;
    }
    const int fd = take_or_wait(sockets, worker, socket);
    if (fd == -EAGAIN || fd == -EINPROGRESS) {
        return;
    }
    socket->reader = 0;
    if (!sockets_claim(worker, call)) {
        socket->extra->held = fd >= 0 ? (uint64_t)fd + 1 : 0; /* for the next one */
        return;
    }
    const int error =
        fd < 0 ? sockets_error(-fd) : open_accepted(sockets, worker, process, socket, fd, &handle);
    const skua_payload result = error == 0 ? skua_payload_u64(0, handle) : skua_payload_empty(0);
    sockets_complete(worker, process, call, error, &result);
}

int sockets_start_accept(void *arg, struct worker *worker, const struct yield *yield,
                         skua_completion completion, skua_payload *result)
{
    (void)result;
    struct sockets *sockets = arg;
    const skua_context *context = worker->context;
    struct socket *socket = sockets_find(sockets, context->self, yield->as.read.socket);
    if (socket == NULL) {
        return SKUA_E_CLOSED;
    }
    if (socket->reader != 0 && is_open(sockets, socket->reader)) {
        return SKUA_E_SOCKET_BUSY;
    }
    socket->reader = completion.call;
    socket_go_on_accepting(sockets, worker, context->process, socket);
    return SKUA_PENDING;
}

/* ---- connecting ---- */

/* The memory of a yield to connect: where to, and from where if that has a size. */
static void free_addresses(struct sockets *sockets, struct address *addresses)
{
    allocator_free(&sockets->sched->allocator, addresses, 2 * sizeof *addresses,
                   alignof(struct address));
}

void sockets_discard_connect(struct worker *worker, const struct yield *yield)
{
    free_addresses(sockets_of_hooks(worker->sched->sockets), yield->as.addresses);
}

static void finish_connecting(struct sockets *sockets, struct worker *worker,
                              struct process *process, struct socket *socket, uint32_t slot,
                              int error)
{
    const uint64_t call = socket->reader;
    const bool is_wanted = sockets_claim(worker, call);
    socket->reader = 0;
    if (error == 0 && is_wanted) {
        const skua_payload result = skua_payload_u64(0, socket_key(socket, slot));
        socket->kind = SOCKET_STREAM;
        NOTE_COUNT(sockets->sched, worker, connected);
        (void)socket_word_clear_owner(&socket->word, SOCKET_CONNECTS);
        (void)sockets->transport->set(sockets->transport, socket_fd(socket), SKUA_SOCKET_NODELAY,
                                      1); /* not on a Unix socket */
        sockets_complete(worker, process, call, 0, &result);
        return;
    }
    sockets_close(sockets, worker, process, slot, true);
    if (is_wanted) {
        const skua_payload nothing = skua_payload_empty(0);
        sockets_complete(worker, process, call, error, &nothing);
    }
}

void socket_go_on_connecting(struct sockets *sockets, struct worker *worker,
                             struct process *process, struct socket *socket, uint32_t slot)
{
    struct transport *transport = sockets->transport;
    for (;;) {
        const int outcome = transport->connected(transport, socket_fd(socket));
        if (outcome != -EINPROGRESS || !is_open(sockets, socket->reader)) {
            finish_connecting(sockets, worker, process, socket, slot,
                              outcome == 0            ? 0
                              : outcome == -ETIMEDOUT ? SKUA_E_TIMEOUT
                                                      : sockets_error(-outcome));
            return;
        }
        if (socket_word_wait_owner(&socket->word, SOCKET_WAITS_TO_WRITE, SOCKET_ENDS_WRITE)) {
            break;
        }
        (void)socket_word_clear_owner(&socket->word, SOCKET_ENDS_WRITE);
    }
    sockets_set_alarm(sockets, worker, socket,
                      time_after(time_now(sockets->sched->time), CONNECT_LOOK_NS));
}

int sockets_start_connect(void *arg, struct worker *worker, const struct yield *yield,
                          skua_completion completion, skua_payload *result)
{
    (void)result;
    struct sockets *sockets = arg;
    struct transport *transport = sockets->transport;
    const skua_context *context = worker->context;
    struct address *addresses = yield->as.addresses;
    const bool is_local = addresses[0].as.any.sa_family == AF_UNIX;
    const int fd = transport->connect(transport, context->self, &addresses[0],
                                      addresses[1].size > 0 ? &addresses[1] : NULL);
    free_addresses(sockets, addresses);
    if (fd < 0) {
        return sockets_error(-fd);
    }
    uint32_t slot;
    const int error = sockets_open(sockets, worker, context->process, context->self, fd,
                                   SOCKET_CONNECTING, &slot);
    if (error != 0) {
        transport->close(transport, fd, true);
        return error;
    }
    struct socket *socket = socket_at(sockets, slot);
    socket->reader = completion.call;
    socket->flags |= is_local ? SOCKET_IS_LOCAL : 0;
    socket_go_on_connecting(sockets, worker, context->process, socket, slot);
    return SKUA_PENDING;
}
