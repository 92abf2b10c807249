/* SPDX-License-Identifier: MIT */
#include "inspect/server.h"

#include <errno.h>
#include <poll.h>
#include <stdalign.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "base/mutex.h"
#include "base/os_error.h"
#include "base/own_fd.h"
#include "base/thread.h"
#include "inspect/budget.h"
#include "inspect/client.h"
#include "inspect/debug.h"
#include "inspect/inspect_socket.h"
#include "sched/log.h"
#include "sched/worker.h"

/* How long to accept nobody after the system refused an accept: without descriptors, a waiting
 * client would keep the thread busy for nothing. */
#define REFUSED_NS (UINT64_C(100) * 1000000)

/* The longest that poll waits. If the program has closed the descriptors that it waits for, nothing
 * else ends it. */
#define WAIT_MAX_MS 5000

/* What it costs the workers if a process is asked: a turn, and often the end of a sleep. */
#define ASKED_NS UINT64_C(3000)

/* What poll waits for. */
enum { POLL_STOP, POLL_LISTENER, POLL_CLIENTS, POLL_COUNT = POLL_CLIENTS + CLIENTS_MAX };

struct inspector {
    struct scheduler *sched;
    struct own_fd listener; /* its fd is -1: none */
    pthread_mutex_t lock;   /* guards the next three */
    bool stopping;
    struct own_fd stop; /* a pipe: can be read from when the inspector is to stop */
    struct own_fd stop_writer;
    uint64_t accept_from; /* when to accept again, after a refusal */
    struct sockaddr_un address;
    pthread_t thread;
    struct budget budget;
    struct shares shares;
    struct {
        uint64_t period; /* 0: nothing is printed */
        uint64_t due;
        struct schedtrace last;
    } schedtrace;
    struct client clients[CLIENTS_MAX];
    struct answers answers;
};

/* ---- clients ---- */

static uint32_t number_of(const struct inspector *inspector, const struct client *client)
{
    return (uint32_t)(client - inspector->clients);
}

static void close_client(struct inspector *inspector, struct client *client)
{
    answers_forget(&inspector->answers, number_of(inspector, client));
    allocator_free(&inspector->sched->allocator, client->answer, ANSWER_SIZE, 1);
    own_fd_close(&client->own);
    client->fd = -1;
    inspector->accept_from = 0; /* a descriptor is free again */
}

/* A free place or, if there is none, that of the client that has been quiet longest. Null if none
 * is quiet. */
static struct client *find_place(struct inspector *inspector, uint64_t now)
{
    struct client *quietest = NULL;
    for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
        struct client *client = &inspector->clients[i];
        if (client->fd < 0) {
            return client;
        }
        if (client_is_quiet(client, now) &&
            (quietest == NULL || client->active < quietest->active)) {
            quietest = client;
        }
    }
    if (quietest != NULL) {
        close_client(inspector, quietest);
    }
    return quietest;
}

static bool is_own_user(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

/* Says why and closes, whether or not the client reads it. */
static void turn_away(int fd, int error)
{
    char line[128];
    struct text out = {line, sizeof line, 0};
    answers_refuse(&out, error);
    (void)send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)close(fd);
}

static void replace_listener(struct inspector *inspector);

static void accept_client(struct inspector *inspector)
{
    const uint64_t now = monotonic_ns();
    if (!own_fd_is_ours(&inspector->listener)) {
        replace_listener(inspector); /* the number may mean a socket of the program by now */
        return;
    }
    const int fd = accept4(inspector->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        inspector->accept_from = errno == EAGAIN ? 0 : now + REFUSED_NS;
        return;
    }
    if (!is_own_user(fd)) {
        (void)close(fd);
        return;
    }
    struct client *client = find_place(inspector, now);
    if (client == NULL) {
        turn_away(fd, SKUA_E_BUSY);
        return;
    }
    char *answer = allocator_alloc(&inspector->sched->allocator, ANSWER_SIZE, 1);
    if (answer == NULL) {
        turn_away(fd, SKUA_E_NO_MEMORY);
        return;
    }
    *client = (struct client){.fd = fd, .own = own_fd_of(fd), .answer = answer, .active = now};
}

static uint64_t time_left(const struct inspector *inspector, const struct client *client,
                          uint64_t now)
{
    const bool traces = inspector->answers.tracer == number_of(inspector, client);
    return client_time_left(client, traces, now);
}

/* Sends or receives, as poll found possible at `now` or later. False if the client is to be
 * closed. */
static bool exchange(struct inspector *inspector, struct client *client, short ready, uint64_t now)
{
    if (ready == 0) {
        return time_left(inspector, client, now) > 0;
    }
    if (!own_fd_is_ours(&client->own)) {
        return false; /* the program has closed it, and may use the number */
    }
    if (client_has_answer(client)) {
        return client_send(client, monotonic_ns());
    }
    return client_has_request(client) || client_receive(client);
}

/* The client's time to read starts when the answer is ready, however long that took. */
static void answer_client(struct inspector *inspector, struct client *client)
{
    const uint32_t number = number_of(inspector, client);
    client_answer(client, number, &inspector->answers);
    client->active = monotonic_ns();
    if (!client_send(client, client->active)) {
        close_client(inspector, client);
    }
    const uint64_t by_workers_ns = inspector->answers.asked * ASKED_NS;
    inspector->answers.asked = 0;
    shares_charge(&inspector->shares, number,
                  budget_thread_ns() - inspector->budget.used + by_workers_ns);
    budget_charge(&inspector->budget, by_workers_ns);
}

/* ---- the loop ---- */

static void print_if_due(struct inspector *inspector)
{
    const uint64_t now = monotonic_ns();
    if (inspector->schedtrace.period == 0 || now < inspector->schedtrace.due) {
        return;
    }
    debug_print_schedtrace(&inspector->schedtrace.last, inspector->sched);
    inspector->schedtrace.due += inspector->schedtrace.period;
    if (inspector->schedtrace.due <= now) { /* late: skip what was missed */
        inspector->schedtrace.due = now + inspector->schedtrace.period;
    }
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t time_until(uint64_t instant, uint64_t now)
{
    return instant > now ? instant - now : 0;
}

/* How long poll may wait; UINT64_MAX: for as long as it can. */
static uint64_t patience(const struct inspector *inspector, uint64_t now)
{
    uint64_t longest = UINT64_MAX;
    if (inspector->schedtrace.period != 0) {
        longest = sooner(longest, time_until(inspector->schedtrace.due, now));
    }
    if (now < inspector->accept_from) {
        longest = sooner(longest, time_until(inspector->accept_from, now));
    }
    for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
        const struct client *client = &inspector->clients[i];
        if (client->fd < 0) {
            continue;
        }
        if (client_is_asking(client)) {
            return 0;
        }
        longest = sooner(longest, time_left(inspector, client, now));
    }
    return longest;
}

static int wait_limit(uint64_t longest)
{
    const uint64_t ms = longest / 1000000 + (longest > 0);
    return ms < WAIT_MAX_MS ? (int)ms : WAIT_MAX_MS;
}

/* Returns as poll does. */
static int wait_for_clients(struct inspector *inspector, struct pollfd *fds, uint64_t now)
{
    const bool accepts = now >= inspector->accept_from;
    fds[POLL_STOP] = (struct pollfd){.fd = inspector->stop.fd, .events = POLLIN};
    fds[POLL_LISTENER] =
        (struct pollfd){.fd = accepts ? inspector->listener.fd : -1, .events = POLLIN};
    for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
        const struct client *client = &inspector->clients[i];
        fds[POLL_CLIENTS + i] = (struct pollfd){
            .fd = client->fd, .events = client_has_answer(client) ? POLLOUT : POLLIN};
    }
    return poll(fds, POLL_COUNT, wait_limit(patience(inspector, now)));
}

/* ---- descriptors that the program has closed ---- */

static int open_listener(struct inspector *inspector);

static void replace_listener(struct inspector *inspector)
{
    if (inspector->listener.fd < 0 || own_fd_is_ours(&inspector->listener)) {
        return;
    }
    log_lost_descriptor(inspector->sched, "the socket of the inspector");
    (void)!open_listener(inspector); /* if that fails, nobody can connect any more */
}

/* Without a pipe, stopping takes until the end of poll's wait. */
static bool replace_pipe_locked(struct inspector *inspector)
{
    if (own_fd_is_ours(&inspector->stop) && own_fd_is_ours(&inspector->stop_writer)) {
        char strange; /* what the program has written to a number of ours */
        (void)!read(inspector->stop.fd, &strange, 1);
        return false;
    }
    own_fd_close(&inspector->stop);
    own_fd_close(&inspector->stop_writer);
    (void)!own_fd_open_pipe(&inspector->stop, &inspector->stop_writer);
    return true;
}

/* Looks after its descriptors; false if the inspector is to stop. */
static bool goes_on(struct inspector *inspector)
{
    mutex_lock(&inspector->lock);
    const bool stopping = inspector->stopping;
    const bool has_lost_pipe = !stopping && replace_pipe_locked(inspector);
    mutex_unlock(&inspector->lock);
    if (has_lost_pipe) {
        log_lost_descriptor(inspector->sched, "the pipe that stops the inspector");
    }
    if (!stopping) {
        replace_listener(inspector);
    }
    return !stopping;
}

/* Waits until the budget allows more; false if the inspector is to stop. */
static bool wait_for_budget(struct inspector *inspector)
{
    const bool traces = inspector->answers.tracer != NO_CLIENT;
    int wait_ms;
    do {
        struct pollfd stop = {.fd = inspector->stop.fd, .events = POLLIN};
        wait_ms = budget_wait_ms(&inspector->budget, traces);
        const int limit = wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS;
        const int ready =
            poll(&stop, 1, limit); /* negative: a signal, which is no reason to stop */
        if ((ready > 0 || limit < wait_ms) && !goes_on(inspector)) {
            return false;
        }
    } while (wait_ms > 0);
    return true;
}

/* Answers one request. The next waits until the budget allows it; by then a client with a better
 * claim may have asked. */
static void serve(struct inspector *inspector, const struct pollfd *fds, uint64_t now)
{
    uint32_t asking = 0;
    for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
        struct client *client = &inspector->clients[i];
        if (client->fd < 0) {
            continue;
        }
        if (!exchange(inspector, client, fds[POLL_CLIENTS + i].revents, now)) {
            close_client(inspector, client);
        } else if (client_is_asking(client)) {
            asking |= UINT32_C(1) << i;
        }
    }
    if (asking != 0) {
        answer_client(inspector, &inspector->clients[shares_next(&inspector->shares, asking)]);
    }
    if (fds[POLL_LISTENER].revents != 0) {
        accept_client(inspector);
    }
}

static void *inspector_main(void *arg)
{
    struct inspector *inspector = arg;
    struct pollfd fds[POLL_COUNT];
    bool runs = true;
    (void)worker_enter_callback(inspector->sched); /* a stop waits for this thread */
    budget_init(&inspector->budget);
    while (runs && wait_for_budget(inspector)) {
        const uint64_t now = monotonic_ns();
        const int ready = wait_for_clients(inspector, fds, now);
        if (ready >= 0) { /* otherwise nothing is known about the clients */
            serve(inspector, fds, now);
        }
        print_if_due(inspector);
        /* A signal, too: with one that comes all the time, a wait never lasts to its end. */
        const bool is_odd = ready <= 0 || fds[POLL_STOP].revents != 0;
        runs = !is_odd || goes_on(inspector);
    }
    return NULL;
}

/* ---- start and stop ---- */

/* Returns 0 or, with the reason in errno, -1. */
static int open_listener(struct inspector *inspector)
{
    inspector->listener = own_fd_of(inspect_socket_listen(
        process_table_runtime(&inspector->sched->table), &inspector->address));
    return inspector->listener.fd < 0 ? -1 : 0;
}

static int open_descriptors(struct inspector *inspector, bool listens)
{
    inspector->listener = OWN_FD_NONE;
    if (own_fd_open_pipe(&inspector->stop, &inspector->stop_writer) != 0) {
        return os_error_keep(errno, SKUA_E_INSPECT);
    }
    if (listens && open_listener(inspector) != 0) {
        const int error = errno;
        own_fd_close(&inspector->stop);
        own_fd_close(&inspector->stop_writer);
        errno = error;
        return os_error_keep(error, SKUA_E_INSPECT);
    }
    return 0;
}

static void close_descriptors(struct inspector *inspector)
{
    if (inspector->listener.fd >= 0) {
        (void)unlink(inspector->address.sun_path);
    }
    own_fd_close(&inspector->listener);
    own_fd_close(&inspector->stop);
    own_fd_close(&inspector->stop_writer);
}

static void init(struct inspector *inspector, struct scheduler *sched, uint64_t schedtrace_ns)
{
    inspector->sched = sched;
    mutex_init(&inspector->lock);
    inspector->stopping = false;
    inspector->accept_from = 0;
    inspector->shares = (struct shares){0};
    inspector->schedtrace.period = schedtrace_ns;
    inspector->schedtrace.due = monotonic_deadline(schedtrace_ns);
    inspector->schedtrace.last.before = (skua_stats){0};
    answers_init(&inspector->answers, sched);
    for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
        inspector->clients[i].fd = -1;
        inspector->clients[i].own = OWN_FD_NONE;
        inspector->clients[i].answer_length = inspector->clients[i].answer_sent = 0;
    }
}

static void give_memory(struct inspector *inspector)
{
    mutex_deinit(&inspector->lock);
    allocator_free(&inspector->sched->allocator, inspector, sizeof *inspector,
                   alignof(struct inspector));
}

int inspector_start(struct inspector **inspector, struct scheduler *sched,
                    struct inspector_options options)
{
    struct inspector *started =
        allocator_alloc(&sched->allocator, sizeof *started, alignof(struct inspector));
    if (started == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    init(started, sched, options.schedtrace_ns);
    int error = open_descriptors(started, options.listens);
    if (error == 0) {
        error = thread_create(&started->thread, "skua-inspect", inspector_main, started);
        if (error != 0) {
            close_descriptors(started);
        }
    }
    if (error != 0) {
        give_memory(started);
        return error;
    }
    *inspector = started;
    return 0;
}

void inspector_stop(struct inspector *inspector)
{
    mutex_lock(&inspector->lock);
    inspector->stopping = true;
    own_fd_write(&inspector->stop_writer); /* if it is lost, the thread looks after a while */
    mutex_unlock(&inspector->lock);
    (void)pthread_join(inspector->thread, NULL);
    for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
        if (inspector->clients[i].fd >= 0) {
            close_client(inspector, &inspector->clients[i]);
        }
    }
    close_descriptors(inspector);
    give_memory(inspector);
}
