/* SPDX-License-Identifier: MIT */
/* The functions of skua/socket.h. */
#include <skua/socket.h>

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "base/os_error.h"
#include "base/sized.h"
#include "process/payload.h"
#include "runtime/runtime.h"
#include "sched/context.h"
#include "sched/deliver.h"

#define DELIMITER_MAX 4

static struct sockets *own_sockets(const skua_context *ctx)
{
    return sockets_of_hooks(ctx->sched->sockets);
}

/* The socket of this process that a handle names. Null and *error if it cannot be used here. */
static ALWAYS_INLINE struct socket *find_inline(const skua_context *ctx, skua_socket handle,
                                                int *error)
{
    *error = context_refuse_but_step(ctx);
    if (*error != 0) {
        return NULL;
    }
    struct socket *socket = sockets_find(own_sockets(ctx), ctx->self, handle);
    *error = socket != NULL ? 0 : SKUA_E_SOCKET;
    return socket;
}

static NOINLINE struct socket *find(const skua_context *ctx, skua_socket handle, int *error)
{
    return find_inline(ctx, handle, error);
}

/* The same for one that is connected: what every read and write does. */
static ALWAYS_INLINE struct socket *find_stream(const skua_context *ctx, skua_socket handle,
                                                int *error)
{
    struct socket *socket = find_inline(ctx, handle, error);
    if (socket != NULL && socket->kind != SOCKET_STREAM) {
        *error = SKUA_E_SOCKET;
        socket = NULL;
    }
    return socket;
}

/* ---- opening ---- */

/* Makes a socket of what the transport has opened, or of a descriptor that the program keeps if
 * that fails. */
static int open_handle(skua_context *ctx, int fd, enum socket_kind kind, bool is_adopted,
                       skua_socket *handle)
{
    struct sockets *sockets = own_sockets(ctx);
    struct transport *transport = sockets->transport;
    struct address address;
    uint32_t slot;
    const int error = sockets_open(sockets, ctx->worker, ctx->process, ctx->self, fd, kind, &slot);
    if (error != 0) {
        if (is_adopted) {
            (void)!transport->detach(transport, fd);
            return error;
        }
        if (kind == SOCKET_LISTENER && transport->unlisten != NULL) {
            transport->unlisten(transport, fd);
        }
        transport->close(transport, fd, true);
        return error;
    }
    struct socket *socket = socket_at(sockets, slot);
    if (socket->extra != NULL) {
        socket->extra->is_adopted = is_adopted;
    }
    if (transport->address(transport, fd, false, &address) == 0 &&
        address.as.any.sa_family == AF_UNIX) {
        socket->flags |= SOCKET_IS_LOCAL;
    }
    *handle = (skua_socket){socket_key(socket, slot)};
    return 0;
}

/* A path that cannot be made is an address that cannot be listened on. A file system that is full
 * lacks no memory. */
static int listen_error(int system_error)
{
    const bool is_path = system_error == ENOENT || system_error == ENOTDIR ||
                         system_error == ENAMETOOLONG || system_error == ELOOP;
    return is_path                  ? os_error_keep(system_error, SKUA_E_ADDRESS)
           : system_error == ENOSPC ? os_error_keep(system_error, SKUA_E_NETWORK)
                                    : sockets_error(system_error);
}

int skua_listen_sized(skua_context *ctx, const char *address, const skua_listen_options *options,
                      skua_socket *listener, size_t options_size)
{
    struct address parsed;
    skua_listen_options own;
    if (listener == NULL) {
        return SKUA_E_INVALID;
    }
    *listener = (skua_socket){0};
    int error = context_refuse_but_step(ctx);
    if (error != 0) {
        return error;
    }
    if (address == NULL || !sized_read(&own, sizeof own, options, options_size) ||
        !reserved_are_zero(own.reserved, sizeof own.reserved) || own.backlog > INT32_MAX) {
        return SKUA_E_INVALID;
    }
    error = address_parse(address, &parsed);
    if (error != 0) {
        return error;
    }
    struct transport *transport = own_sockets(ctx)->transport;
    const int fd = transport->listen(transport, ctx->self, &parsed, &own);
    return fd < 0 ? listen_error(-fd) : open_handle(ctx, fd, SOCKET_LISTENER, false, listener);
}

int skua_socket_adopt(skua_context *ctx, int fd, skua_socket *socket)
{
    bool listens;
    if (socket == NULL) {
        return SKUA_E_INVALID;
    }
    *socket = (skua_socket){0};
    const int error = context_refuse_but_step(ctx);
    if (error != 0) {
        return error;
    }
    struct transport *transport = own_sockets(ctx)->transport;
    if (transport->adopt == NULL) {
        return SKUA_E_NOT_SIMULATED;
    }
    const int number = fd < 0 ? -EBADF : transport->adopt(transport, fd, &listens);
    if (number < 0) {
        return os_error_keep(-number, SKUA_E_DESCRIPTOR);
    }
    return open_handle(ctx, number, listens ? SOCKET_LISTENER : SOCKET_STREAM, true, socket);
}

int skua_socket_detach(skua_context *ctx, skua_socket socket, int *fd)
{
    int error;
    if (fd == NULL) {
        return SKUA_E_INVALID;
    }
    *fd = -1;
    const struct socket *found = find(ctx, socket, &error);
    if (error != 0) {
        return error;
    }
    if (own_sockets(ctx)->transport->detach == NULL) {
        return SKUA_E_NOT_SIMULATED;
    }
    if (found->failure != 0) {
        return found->failure;
    }
    if (socket_buffered(found) > 0 || sockets_is_busy(own_sockets(ctx), found) ||
        (found->extra != NULL && found->extra->held != 0)) {
        return SKUA_E_SOCKET_BUSY;
    }
    return sockets_release(own_sockets(ctx), ctx->worker, ctx->process, socket_slot(socket.bits),
                           fd);
}

/* ---- yields ---- */

int skua_yield_accept(skua_context *ctx, uint64_t tag, skua_socket listener, uint64_t timeout_ns)
{
    int error;
    struct yield *yield;
    const struct socket *found = find(ctx, listener, &error);
    if (error != 0 || found->kind != SOCKET_LISTENER) {
        return error != 0 ? error : SKUA_E_SOCKET;
    }
    error = step_output_yield(&ctx->worker->out, tag, service_command(SERVICE_ACCEPT), timeout_ns,
                              &yield);
    if (error == 0) {
        yield->as.read.socket = listener;
        yield->as.read.want = 0;
    }
    return error;
}

/* Reads both addresses; the second one is empty if there is no source. */
static int parse_addresses(const char *address, const char *source, struct address addresses[2])
{
    int error = address_parse(address, &addresses[0]);
    if (error == 0 && source != NULL) {
        error = address_parse(source, &addresses[1]);
    }
    return error;
}

int skua_yield_connect(skua_context *ctx, uint64_t tag, const char *address, const char *source,
                       uint64_t timeout_ns)
{
    int error;
    struct yield *yield;
    struct address parsed[2] = {{0}};
    struct step_output *out = context_output(ctx, &error);
    if (error != 0 || address == NULL) {
        return error != 0 ? error : SKUA_E_INVALID;
    }
    error = parse_addresses(address, source, parsed);
    if (error != 0) {
        return error;
    }
    struct address *addresses =
        allocator_alloc(&ctx->sched->allocator, sizeof parsed, alignof(struct address));
    if (addresses == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    memcpy(addresses, parsed, sizeof parsed);
    error = step_output_yield(out, tag, service_command(SERVICE_CONNECT), timeout_ns, &yield);
    if (error != 0) {
        allocator_free(&ctx->sched->allocator, addresses, sizeof parsed, alignof(struct address));
        return error;
    }
    yield->as.addresses = addresses;
    return 0;
}

static ALWAYS_INLINE int yield_read(skua_context *ctx, uint64_t tag, skua_socket socket,
                                    size_t want, uint8_t mode, uint32_t marker, uint64_t timeout_ns)
{
    int error;
    struct yield *yield;
    (void)find_stream(ctx, socket, &error);
    if (error != 0) {
        return error;
    }
    if (want == 0) {
        return SKUA_E_INVALID;
    }
    if (want > ctx->sched->config.payload_limit) {
        if (mode % 4 != READ_SOME) {
            return SKUA_E_PAYLOAD_SIZE;
        }
        want = ctx->sched->config.payload_limit;
    }
    error = step_output_yield(&ctx->worker->out, tag, service_command(SERVICE_READ), timeout_ns,
                              &yield);
    if (error == 0) {
        yield->as.read.socket = socket;
        yield->as.read.want = want;
        yield->as.read.mode = mode;
        yield->as.read.delimiter = marker;
    }
    return error;
}

int skua_yield_read(skua_context *ctx, uint64_t tag, skua_socket socket, size_t most,
                    uint64_t timeout_ns)
{
    return yield_read(ctx, tag, socket, most, READ_SOME, 0, timeout_ns);
}

int skua_yield_read_exactly(skua_context *ctx, uint64_t tag, skua_socket socket, size_t size,
                            uint64_t timeout_ns)
{
    return yield_read(ctx, tag, socket, size, READ_EXACTLY, 0, timeout_ns);
}

int skua_yield_read_until(skua_context *ctx, uint64_t tag, skua_socket socket,
                          const char *delimiter, size_t limit, uint64_t timeout_ns)
{
    uint32_t marker = 0;
    const size_t length = delimiter != NULL ? strnlen(delimiter, DELIMITER_MAX + 1) : 0;
    if (length == 0 || length > DELIMITER_MAX) {
        return SKUA_E_INVALID;
    }
    memcpy(&marker, delimiter, length);
    return yield_read(ctx, tag, socket, limit, (uint8_t)(READ_UNTIL | 4 * length), marker,
                      timeout_ns);
}

int skua_yield_hangup(skua_context *ctx, uint64_t tag, skua_socket socket, uint64_t timeout_ns)
{
    int error;
    struct yield *yield;
    (void)find_stream(ctx, socket, &error);
    if (error != 0) {
        return error;
    }
    error = step_output_yield(&ctx->worker->out, tag, service_command(SERVICE_HANGUP), timeout_ns,
                              &yield);
    if (error == 0) {
        yield->as.read.socket = socket;
        yield->as.read.want = 0;
    }
    return error;
}

/* Why these bytes cannot be queued; 0: they can. A payload that alone is over the limit is taken if
 * nothing else is queued: otherwise it could never be written. */
static int refuse_bytes(const skua_context *ctx, struct socket *socket, const skua_payload *payload)
{
    const int refused = payload_refuse(payload, ctx->sched->config.payload_limit);
    if (refused != 0) {
        return refused;
    }
    if (payload->storage == SKUA_PAYLOAD_POINTER) {
        return SKUA_E_PAYLOAD_TYPE;
    }
    if ((socket->flags & SOCKET_SHUTS) != 0) {
        return SKUA_E_SHUT_DOWN;
    }
    const struct socket_extra *extra = socket->extra;
    const uint64_t limit =
        extra != NULL && extra->write_limit != 0 ? extra->write_limit : SOCKETS_WRITE_LIMIT;
    const uint64_t queued = load_relaxed(&socket->queued); /* one writer */
    const uint64_t size = skua_payload_size(payload);
    const bool is_full = (queued > 0 && queued + size > limit) || queued + size > UINT32_MAX ||
                         socket->unstarted == UINT16_MAX;
    return is_full ? SKUA_E_SOCKET_FULL : 0;
}

/* A write: whether and how its end is told. */
struct write_wish {
    bool completes;
    uint64_t tag; /* if it does */
    uint64_t timeout_ns;
};

/* Adds a write whose bytes can be queued. */
static int add_write(skua_context *ctx, skua_socket handle, struct socket *socket,
                     const skua_payload *payload, const struct write_wish *wish)
{
    struct step_output *out = &ctx->worker->out;
    const uint32_t command = service_command(SERVICE_WRITE);
    struct yield *yield;
    uint32_t node;
    if (!event_acquire_owner(&ctx->sched->events, &ctx->worker->caches.events, &node)) {
        return SKUA_E_NO_MEMORY;
    }
    const int error = wish->completes
                          ? step_output_yield(out, wish->tag, command, wish->timeout_ns, &yield)
                          : step_output_act(out, command, &yield);
    if (error != 0) {
        event_release_owner(&ctx->sched->events, &ctx->worker->caches.events, node);
        return error;
    }
    event_at(&ctx->sched->events, node)->as.event =
        (skua_event){.type = SKUA_EVENT_MESSAGE, .payload = *payload};
    yield->as.write.socket = handle;
    yield->as.write.node = node;
    socket->unstarted++;
    store_relaxed(&socket->queued, /* for inspectors; one writer */
                  load_relaxed(&socket->queued) + (uint32_t)skua_payload_size(payload));
    return 0;
}

/* Takes the payload, always. */
static ALWAYS_INLINE int write_with(skua_context *ctx, skua_socket socket, skua_payload *payload,
                                    const struct write_wish *wish)
{
    int error;
    if (payload == NULL) {
        return SKUA_E_INVALID;
    }
    struct socket *found = find_stream(ctx, socket, &error);
    if (error == 0) {
        error = refuse_bytes(ctx, found, payload);
    }
    if (error == 0) {
        error = add_write(ctx, socket, found, payload, wish);
    }
    if (error != 0) {
        payload_discard(payload);
    } else {
        payload_mark_taken(payload);
    }
    return error;
}

int skua_yield_write_from(skua_context *ctx, uint64_t tag, skua_socket socket,
                          skua_payload *payload, uint64_t timeout_ns)
{
    return write_with(
        ctx, socket, payload,
        &(struct write_wish){.completes = true, .tag = tag, .timeout_ns = timeout_ns});
}

int skua_socket_write_from(skua_context *ctx, skua_socket socket, skua_payload *payload)
{
    return write_with(ctx, socket, payload, &(struct write_wish){.completes = false});
}

/* ---- ending ---- */

int skua_socket_shutdown(skua_context *ctx, skua_socket socket)
{
    int error;
    struct socket *found = find_stream(ctx, socket, &error);
    if (error == 0) {
        found->flags |= SOCKET_SHUTS;
        socket_shut_if_asked(own_sockets(ctx), found);
    }
    return error;
}

int skua_socket_close(skua_context *ctx, skua_socket socket)
{
    int error;
    struct socket *found = find(ctx, socket, &error);
    if (error != 0) {
        return error;
    }
    if (found->unstarted > 0) {
        found->flags |= SOCKET_CLOSES; /* with the last of its writes */
    } else {
        sockets_close(own_sockets(ctx), ctx->worker, ctx->process, socket_slot(socket.bits), false);
    }
    return 0;
}

int skua_socket_give(skua_context *ctx, skua_socket socket, skua_pid to)
{
    const int error = context_refuse_but_step(ctx);
    return error != 0 ? error : sockets_give(own_sockets(ctx), ctx, socket, to);
}

/* ---- settings ---- */

static bool is_duration(enum skua_socket_option option)
{
    return option == SKUA_SOCKET_KEEPALIVE || option == SKUA_SOCKET_IDLE ||
           option == SKUA_SOCKET_PROGRESS;
}

static int check_option(enum skua_socket_option option, uint64_t value)
{
    if (option < SKUA_SOCKET_NODELAY || option > SKUA_SOCKET_PROGRESS) {
        return SKUA_E_INVALID;
    }
    if (is_duration(option)) {
        return value <= SKUA_DURATION_MAX && (value > 0 || option != SKUA_SOCKET_PROGRESS)
                   ? 0
                   : SKUA_E_DURATION;
    }
    const bool is_size = option != SKUA_SOCKET_NODELAY;
    return is_size ? (value > 0 && value <= UINT32_MAX ? 0 : SKUA_E_INVALID)
                   : (value <= 1 ? 0 : SKUA_E_INVALID);
}

/* What is Skua's own affair, and what the sockets that a listener accepts begin with. */
static void keep_option(struct socket_extra *extra, enum skua_socket_option option, uint64_t value)
{
    switch (option) {
    case SKUA_SOCKET_NODELAY:
        extra->delays = value == 0;
        break;
    case SKUA_SOCKET_KEEPALIVE:
        extra->keepalive_ns = value;
        break;
    case SKUA_SOCKET_IDLE:
        extra->idle_ns = value;
        break;
    case SKUA_SOCKET_WRITE_LIMIT:
        extra->write_limit = value;
        break;
    case SKUA_SOCKET_PROGRESS:
        extra->progress_ns = value;
        break;
    case SKUA_SOCKET_SEND_BUFFER:
        extra->send_buffer = value;
        break;
    case SKUA_SOCKET_RECEIVE_BUFFER:
        extra->receive_buffer = value;
        break;
    }
}

static int set_system_option(struct transport *transport, struct socket *socket,
                             enum skua_socket_option option, uint64_t value)
{
    if (socket_fd(socket) < 0) {
        return SKUA_E_NETWORK; /* it has failed */
    }
    const int refused = transport->set(transport, socket_fd(socket), option, value);
    return refused < 0 ? os_error_keep(-refused, SKUA_E_NETWORK) : 0;
}

int skua_socket_set(skua_context *ctx, skua_socket socket, enum skua_socket_option option,
                    uint64_t value)
{
    int error;
    struct socket *found = find(ctx, socket, &error);
    error = error != 0 ? error : check_option(option, value);
    if (error != 0) {
        return error;
    }
    struct sockets *sockets = own_sockets(ctx);
    const bool is_own = option >= SKUA_SOCKET_IDLE;
    const bool is_kept = is_own || found->kind == SOCKET_LISTENER;
    if (is_kept && socket_extra(sockets, found) == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    error = is_own ? 0 : set_system_option(sockets->transport, found, option, value);
    if (error != 0) {
        return error;
    }
    if (is_kept) {
        keep_option(found->extra, option, value);
    }
    if (option == SKUA_SOCKET_IDLE && value != 0 && found->kind == SOCKET_STREAM) {
        const uint64_t now = time_now(ctx->sched->time);
        store_relaxed(&found->active_at, now); /* for inspectors; one writer */
        sockets_set_alarm(sockets, ctx->worker, found, time_after(now, value));
    }
    if (option == SKUA_SOCKET_PROGRESS && found->first != OBJECT_NONE) {
        sockets_set_alarm(sockets, ctx->worker, found, socket_progress_end(found));
    }
    return 0;
}

int skua_socket_info_sized(skua_context *ctx, skua_socket socket, skua_socket_snapshot *snapshot,
                           size_t snapshot_size)
{
    int error;
    skua_socket_snapshot own;
    if (snapshot == NULL) {
        return SKUA_E_INVALID;
    }
    const struct socket *found = find(ctx, socket, &error);
    if (error != 0) {
        memset(snapshot, 0, snapshot_size);
        return error;
    }
    (void)!sockets_snapshot(own_sockets(ctx), socket_slot(socket.bits), &own);
    own.buffered = socket_buffered(found);
    sized_write(snapshot, snapshot_size, &own, sizeof own);
    return 0;
}
