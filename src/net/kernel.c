/* SPDX-License-Identifier: MIT */
#include "net/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "base/mutex.h"
#include "net/net.h"

#define BACKLOG_DEFAULT 4096

/* Probes of keepalive, once they begin: one every so many seconds, so many at most. */
#define PROBE_PERIOD_S 15
#define PROBES_MAX     4

static struct net *poller_of(struct transport *transport)
{
    return CONTAINER_OF(transport, struct kernel, transport)->net;
}

static int or_errno(int result)
{
    return result < 0 ? -errno : result;
}

static int set_int(int fd, int level, int option, int value)
{
    return or_errno(setsockopt(fd, level, option, &value, sizeof value));
}

static int new_socket(const struct address *address)
{
    return or_errno(
        socket(address->as.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

/* ---- opening ---- */

static int prepare_listener(int fd, const struct address *address,
                            const skua_listen_options *options)
{
    const bool is_unix = address->as.any.sa_family == AF_UNIX;
    int error = 0;
    if (!is_unix) {
        error = set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    }
    if (error == 0 && options->reuseport && !is_unix) {
        error = set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    }
    if (error == 0) {
        error = or_errno(bind(fd, &address->as.any, address->size));
    }
    if (error == 0) {
        const uint32_t backlog = options->backlog != 0 ? options->backlog : BACKLOG_DEFAULT;
        error = or_errno(listen(fd, (int)backlog));
    }
    return error;
}

/* Without one, connections wait instead of being turned away. */
static void keep_spare(struct kernel *kernel)
{
    mutex_lock(&kernel->net->lock);
    if (kernel->spare < 0) {
        kernel->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    store_relaxed(&kernel->lacks_spare, kernel->spare < 0); /* hint */
    mutex_unlock(&kernel->net->lock);
}

/* A listener on a path leaves no file behind. One that is not bound has none. */
static void remove_file(struct transport *transport, int fd)
{
    (void)transport;
    struct address address = {.size = sizeof address.as};
    if (getsockname(fd, &address.as.any, &address.size) == 0 &&
        address.as.any.sa_family == AF_UNIX && address.as.un.sun_path[0] != '\0') {
        (void)unlink(address.as.un.sun_path);
    }
}

static int open_listener(struct transport *transport, skua_pid owner, const struct address *address,
                         const skua_listen_options *options)
{
    (void)owner;
    const int fd = new_socket(address);
    if (fd < 0) {
        return fd;
    }
    keep_spare(CONTAINER_OF(transport, struct kernel, transport));
    const int error = prepare_listener(fd, address, options);
    if (error < 0) {
        remove_file(transport, fd); /* it may have been bound */
        (void)close(fd);
        return error;
    }
    net_count_socket(poller_of(transport));
    return fd;
}

static int start_connect(int fd, const struct address *address, const struct address *source)
{
    int error = 0;
    if (source != NULL) {
        if (source->as.any.sa_family != AF_UNIX) {
            (void)set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1); /* only helps */
        }
        error = or_errno(bind(fd, &source->as.any, source->size));
    }
    if (error == 0) {
        error = or_errno(connect(fd, &address->as.any, address->size));
    }
    return error == -EINPROGRESS ? 0 : error;
}

static int open_connection(struct transport *transport, skua_pid owner,
                           const struct address *address, const struct address *source)
{
    (void)owner;
    const int fd = new_socket(address);
    if (fd < 0) {
        return fd;
    }
    const int error = start_connect(fd, address, source);
    if (error < 0) {
        (void)close(fd);
        /* The backlog of a Unix listener is full: it may as well not listen. */
        return error == -EAGAIN ? -ECONNREFUSED : error;
    }
    net_count_socket(poller_of(transport));
    return fd;
}

static int is_connected(struct transport *transport, int fd)
{
    (void)transport;
    int reason = 0;
    socklen_t size = sizeof reason;
    struct address peer = {.size = sizeof peer.as};
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &size) < 0) {
        return -errno;
    }
    if (reason != 0) {
        return -reason;
    }
    if (getpeername(fd, &peer.as.any, &peer.size) == 0) {
        return 0;
    }
    return errno == ENOTCONN ? -EINPROGRESS : -errno;
}

static int accept_connection(struct transport *transport, int fd)
{
    struct kernel *kernel = CONTAINER_OF(transport, struct kernel, transport);
    const int connection = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection < 0) {
        return -errno;
    }
    if (UNLIKELY(load_relaxed(&kernel->lacks_spare) != 0)) { /* hint */
        keep_spare(kernel);                                  /* there are descriptors again */
    }
    net_count_socket(poller_of(transport));
    return connection;
}

/* ---- descriptors of the program ---- */

static int get_int(int fd, int option)
{
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &size) < 0 ? -errno : value;
}

static int adopt(struct transport *transport, int fd, bool *listens)
{
    const int domain = get_int(fd, SO_DOMAIN);
    const int is_listener = get_int(fd, SO_ACCEPTCONN);
    struct address peer = {.size = sizeof peer.as};
    if (domain < 0) {
        return domain;
    }
    if ((domain != AF_INET && domain != AF_INET6 && domain != AF_UNIX) ||
        get_int(fd, SO_TYPE) != SOCK_STREAM) {
        return -EPROTONOSUPPORT;
    }
    if (is_listener == 0 && getpeername(fd, &peer.as.any, &peer.size) < 0) {
        return -errno;
    }
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        return -errno;
    }
    *listens = is_listener > 0;
    if (*listens) {
        keep_spare(CONTAINER_OF(transport, struct kernel, transport));
    }
    net_count_socket(poller_of(transport));
    return fd;
}

static int detach(struct transport *transport, int fd)
{
    return net_unwatch(poller_of(transport), fd);
}

/* ---- ending ---- */

static int shut_down(struct transport *transport, int fd)
{
    (void)transport;
    return or_errno(shutdown(fd, SHUT_WR));
}

static void close_fd(struct transport *transport, int fd, bool reset)
{
    if (reset) {
        const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    net_close_socket(poller_of(transport), fd);
}

static bool turn_away(struct transport *transport, int fd)
{
    struct kernel *kernel = CONTAINER_OF(transport, struct kernel, transport);
    struct net *net = kernel->net;
    int connection = -1;
    mutex_lock(&net->lock);
    if (kernel->spare >= 0) {
        (void)close(kernel->spare);
        connection = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (connection >= 0) {
            (void)close(connection);
        }
        kernel->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    store_relaxed(&kernel->lacks_spare, kernel->spare < 0); /* hint */
    mutex_unlock(&net->lock);
    return connection >= 0;
}

/* ---- the rest ---- */

static int watch(struct transport *transport, int fd, uint64_t key)
{
    return net_watch(poller_of(transport), fd, key);
}

static int set_keepalive(int fd, uint64_t idle_ns)
{
    const uint64_t idle_s = (idle_ns + SKUA_SECOND - 1) / SKUA_SECOND;
    int error = set_int(fd, SOL_SOCKET, SO_KEEPALIVE, idle_ns != 0);
    if (error == 0 && idle_ns != 0) {
        error = set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s < 32767 ? (int)idle_s : 32767);
    }
    if (error == 0 && idle_ns != 0) {
        error = set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, PROBE_PERIOD_S);
    }
    if (error == 0 && idle_ns != 0) {
        error = set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES_MAX);
    }
    return error;
}

static int set_option(struct transport *transport, int fd, enum skua_socket_option option,
                      uint64_t value)
{
    (void)transport;
    const int size = value < INT32_MAX ? (int)value : INT32_MAX;
    switch (option) {
    case SKUA_SOCKET_NODELAY:
        return set_int(fd, IPPROTO_TCP, TCP_NODELAY, value != 0);
    case SKUA_SOCKET_KEEPALIVE:
        return set_keepalive(fd, value);
    case SKUA_SOCKET_SEND_BUFFER:
        return set_int(fd, SOL_SOCKET, SO_SNDBUF, size);
    case SKUA_SOCKET_RECEIVE_BUFFER:
        return set_int(fd, SOL_SOCKET, SO_RCVBUF, size);
    case SKUA_SOCKET_IDLE:
    case SKUA_SOCKET_WRITE_LIMIT:
    case SKUA_SOCKET_PROGRESS:
        break; /* not the system's affair */
    }
    return -EINVAL;
}

static int get_address(struct transport *transport, int fd, bool of_peer, struct address *address)
{
    (void)transport;
    memset(address, 0, sizeof *address);
    address->size = sizeof address->as;
    return or_errno(of_peer ? getpeername(fd, &address->as.any, &address->size)
                            : getsockname(fd, &address->as.any, &address->size));
}

static void wake_at(struct transport *transport, struct worker *worker, uint64_t when)
{
    net_wake_sockets(poller_of(transport), worker, when);
}

/* ---- readiness ---- */

int kernel_register(struct epoll_set *set, int fd, uint64_t key)
{
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLOUT | (uint32_t)EPOLLET,
        .data.u64 = KERNEL_KEY | key,
    };
    const int error = epoll_set_control(set, EPOLL_CTL_ADD, fd, &event);
    /* The program has another number for the same file, which has kept an earlier registration of
     * this one. */
    return error == EEXIST ? epoll_set_control(set, EPOLL_CTL_MOD, fd, &event) : error;
}

/* A number that was closed a moment ago may mean another file: reports of that name a socket that
 * is gone. */
void kernel_register_all(struct epoll_set *set, struct sockets *sockets)
{
    for (uint32_t slot = 1; sockets_has_slot(sockets, slot); slot++) {
        struct socket *socket = socket_at(sockets, slot);
        const uint64_t word = load_acquire(&socket->word);
        if (socket_fd(socket) >= 0 &&
            (load_acquire(&socket->owner) != 0 || ((uint32_t)word & SOCKET_LINGERS) != 0)) {
            (void)!kernel_register(set, socket_fd(socket),
                                   (uint64_t)slot << 32 | socket_word_generation(word));
        }
    }
}

static uint32_t reports_of(uint32_t events)
{
    return ((events & EPOLLIN) != 0 ? SOCKET_READABLE : 0) |
           ((events & EPOLLPRI) != 0 ? SOCKET_URGENT : 0) |
           ((events & EPOLLOUT) != 0 ? SOCKET_WRITABLE : 0) |
           ((events & (EPOLLRDHUP | EPOLLHUP)) != 0 ? SOCKET_HANGUP : 0) |
           ((events & EPOLLERR) != 0 ? SOCKET_FAILED : 0);
}

/* False if it is not about a socket. */
static bool report_event(struct sockets *sockets, struct worker *worker,
                         const struct epoll_event *event, struct epoll_set *set)
{
    const uint64_t key = event->data.u64 & ~KERNEL_KEY;
    if (event->data.u64 == key) {
        return false;
    }
    if (sockets_has_slot(sockets, socket_slot(key))) {
        sockets_report(sockets, worker, key, reports_of(event->events));
    } else {
        epoll_set_suspect(set); /* an event of another epoll, which has the number now */
    }
    return true;
}

uint32_t kernel_report(struct sockets *sockets, struct worker *worker, struct epoll_event *events,
                       uint32_t count, struct epoll_set *set)
{
    bool all_are_sockets = true;
    uint32_t others = 0;
    /* Whoever has waited longest should not wait for the others, and a worker runs first what it
     * has readied last. */
    for (uint32_t i = 0; i < count; i++) {
        all_are_sockets &=
            report_event(sockets, worker, &events[worker != NULL ? count - 1 - i : i], set);
    }
    if (LIKELY(all_are_sockets)) {
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        if ((events[i].data.u64 & KERNEL_KEY) == 0) {
            events[others++] = events[i];
        }
    }
    return others;
}

void kernel_init(struct kernel *kernel, struct net *net)
{
    kernel->transport = (struct transport){
        .listen = open_listener,
        .connect = open_connection,
        .connected = is_connected,
        .accept = accept_connection,
        .adopt = adopt,
        .detach = detach,
        .shutdown = shut_down,
        .unlisten = remove_file,
        .close = close_fd,
        .watch = watch,
        .set = set_option,
        .address = get_address,
        .turn_away = turn_away,
        .wake_at = wake_at,
    };
    kernel->net = net;
    kernel->spare = -1;
    store_relaxed(&kernel->lacks_spare, 0); /* not shared yet */
}

void kernel_deinit(struct kernel *kernel)
{
    if (kernel->spare >= 0) {
        (void)close(kernel->spare);
    }
}
