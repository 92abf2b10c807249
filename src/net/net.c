/* SPDX-License-Identifier: MIT */
#include "net/net.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <skua/net.h>
#include <stdalign.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mutex.h"
#include "base/os_error.h"
#include "net/kernel.h"
#include "net/waiters.h"
#include "sched/chores.h"
#include "sched/context.h"
#include "sched/deliver.h"
#include "sched/log.h"
#include "sched/note.h"
#include "sched/poll.h"
#include "sched/worker.h"

/* Descriptors that were closed behind our back are found within this time. */
#define CHECK_PERIOD_NS (UINT64_C(10) * 1000000000)
/* Descriptors that a check covers before it releases the lock for a moment. */
#define CHECK_BATCH 256

/* So many epolls that are lost in a row are replaced before a wait is refused. */
#define LOSSES_MAX 3
/* The initial capacity of the table. */
#define CAPACITY_MIN 64

static int control_locked(struct net *net, int operation, int fd,
                          const struct net_descriptor *descriptor, uint32_t events)
{
    struct epoll_event event = {
        .events = events | EPOLLET | EPOLLONESHOT,
        .data.u64 = ((uint64_t)descriptor->serial << 32 | (uint32_t)fd) & ~KERNEL_KEY,
    };
    return epoll_set_control(&net->set, operation, fd, &event);
}

/* The number no longer means the file that is waited for. */
static void end_closed_waits_locked(struct net *net, struct worker *worker,
                                    struct net_descriptor *descriptor)
{
    descriptor->serial++;
    waiters_scan_locked(net, worker, descriptor, 0, SKUA_E_CLOSED);
}

static int error_of(int system_error)
{
    return system_error == ENOMEM || system_error == ENOSPC ? SKUA_E_NO_MEMORY : SKUA_E_DESCRIPTOR;
}

/* ---- the program has closed a descriptor of ours ---- */

/* Registers a descriptor with a new epoll. Its number may mean another file by now, which nothing
 * tells; but most likely only our descriptor was closed. */
static void register_again_locked(struct net *net, struct worker *worker, int fd)
{
    struct net_descriptor *descriptor = &net->descriptors[fd];
    if (descriptor->waiters == NULL) {
        return;
    }
    const int error = control_locked(net, EPOLL_CTL_ADD, fd, descriptor, descriptor->wanted);
    if (UNLIKELY(error != 0) && !epoll_set_is_known(&net->set)) {
        epoll_set_suspect(&net->set); /* it is lost again, so this will be made up for */
    } else if (error != 0) {
        descriptor->serial++;
        waiters_scan_locked(net, worker, descriptor, 0,
                            error == EBADF ? SKUA_E_CLOSED : error_of(error));
    }
    waiters_count_locked(net, true, descriptor->waiters != NULL);
}

/* Finds out what was closed, if anything, and makes up for it. What is to be logged is kept for
 * tell_lost. Returns whether there is another epoll now. */
static bool mend_locked(struct net *net, struct worker *worker)
{
    const bool was_blind = load_relaxed(&net->set.epoll) == EPOLL_SET_NONE; /* under the lock */
    const unsigned lost = epoll_set_mend(&net->set);
    net->lost |= was_blind ? 0 : lost; /* otherwise that was logged */
    if ((lost & EPOLL_SET_LOST_EPOLL) == 0) {
        return false;
    }
    if (load_relaxed(&net->set.epoll) != EPOLL_SET_NONE) { /* under the lock */
        for (uint32_t fd = 0; fd < net->capacity; fd++) {
            register_again_locked(net, worker, (int)fd);
        }
        kernel_register_all(&net->set, net->sockets);
    }
    return true;
}

/* Whether this is a number of ours, which a program can get by closing a file twice. If we have
 * lost it, and it means a file of the program by now, it is not: then we get another first. */
static bool is_own_number_locked(struct net *net, struct worker *worker, int fd)
{
    if (LIKELY(!epoll_set_has_number(&net->set, fd))) {
        return false;
    }
    (void)mend_locked(net, worker);
    return epoll_set_has_number(&net->set, fd);
}

/* Not under the lock: what it calls is the program's. */
static void tell_lost(struct net *net, unsigned lost)
{
    if (UNLIKELY((lost & EPOLL_SET_LOST_EPOLL) != 0)) {
        log_lost_descriptor(net->sched, "the epoll that waits for descriptors");
    }
    if (UNLIKELY((lost & EPOLL_SET_LOST_PIPE) != 0)) {
        log_lost_descriptor(net->sched, "the pipe that wakes a waiting worker");
    }
}

static unsigned take_lost_locked(struct net *net)
{
    const unsigned lost = net->lost;
    net->lost = 0;
    return lost;
}

/* Mends the epoll if that is necessary. Returns whether there is another one now. */
static bool look_after(struct net *net)
{
    mutex_lock(&net->lock);
    const bool is_another = mend_locked(net, NULL);
    const unsigned lost = take_lost_locked(net);
    mutex_unlock(&net->lock);
    tell_lost(net, lost);
    return is_another;
}

/* ---- the poller of the scheduler ---- */

static int open_poller(struct poller *poller)
{
    struct net *net = CONTAINER_OF(poller, struct net, poller);
    const int reason = epoll_set_open(&net->set);
    return reason == 0 ? 0 : os_error_keep(reason, SKUA_E_POLLER);
}

static void close_poller(struct poller *poller)
{
    struct net *net = CONTAINER_OF(poller, struct net, poller);
    mutex_lock(&net->lock);
    epoll_set_close(&net->set);
    mutex_unlock(&net->lock);
}

static uint64_t time_left(struct net *net, uint64_t deadline)
{
    const uint64_t now = deadline > 0 && deadline < UINT64_MAX ? time_now(net->sched->time) : 0;
    return deadline > now ? deadline - now : 0;
}

/* Drops the event that only interrupted the wait. */
static uint32_t without_interrupt(struct net *net, int count)
{
    uint32_t kept = 0;
    for (int i = 0; i < count; i++) {
        if (net->ready[i].data.u64 != EPOLL_SET_INTERRUPT) {
            net->ready[kept++] = net->ready[i];
        }
    }
    return kept;
}

/* A new epoll reports again what was ready in the old one. */
static uint32_t wait_poller(struct poller *poller, uint64_t deadline)
{
    struct net *net = CONTAINER_OF(poller, struct net, poller);
    int count = epoll_set_wait(&net->set, net->ready, NET_BATCH, time_left(net, deadline));
    if (UNLIKELY(count < 0 || epoll_set_is_suspect(&net->set))) {
        count = look_after(net) ? 0 : count;
    }
    return without_interrupt(net, count);
}

static void interrupt_poller(struct poller *poller)
{
    epoll_set_interrupt(&CONTAINER_OF(poller, struct net, poller)->set);
}

/* ---- the beginnings of waits ---- */

/* Asks the kernel for what a new waiter wants, besides what others want already. Returns 0 or an
 * errno. */
static int arm_once_locked(struct net *net, struct worker *worker, int fd,
                           struct net_descriptor *descriptor, uint32_t events)
{
    int error = control_locked(net, EPOLL_CTL_MOD, fd, descriptor, descriptor->wanted | events);
    /* Not registered, at least not this file; or with an epoll of the program's. */
    if (error == ENOENT && LIKELY(epoll_set_is_known(&net->set))) {
        end_closed_waits_locked(net, worker, descriptor);
        error = control_locked(net, EPOLL_CTL_ADD, fd, descriptor, events);
    }
    return error;
}

/* If that fails because the epoll is not ours any more, there is another one soon, unless the
 * program takes its number as well. */
static int arm_locked(struct net *net, struct worker *worker, int fd,
                      struct net_descriptor *descriptor, uint32_t events)
{
    int error = arm_once_locked(net, worker, fd, descriptor, events);
    for (uint32_t i = 0; error != 0 && i < LOSSES_MAX && !epoll_set_is_known(&net->set); i++) {
        (void)mend_locked(net, worker);
        if (load_relaxed(&net->set.epoll) == EPOLL_SET_NONE) { /* under the lock */
            return SKUA_E_POLLER;
        }
        error = arm_once_locked(net, worker, fd, descriptor, events);
    }
    if (error != 0) {
        end_closed_waits_locked(net, worker, descriptor);
    }
    return error == 0 ? 0 : error_of(error);
}

static size_t table_size(uint32_t capacity)
{
    return capacity * sizeof(struct net_descriptor);
}

static bool make_room_locked(struct net *net, int fd)
{
    uint32_t capacity = net->capacity > 0 ? net->capacity : CAPACITY_MIN;
    while (capacity <= (uint32_t)fd) {
        capacity *= 2;
    }
    if (capacity == net->capacity) {
        return true;
    }
    struct net_descriptor *larger =
        allocator_grow(&net->sched->allocator, net->descriptors, table_size(net->capacity),
                       table_size(capacity), alignof(struct net_descriptor));
    if (larger == NULL) {
        return false;
    }
    memset(&larger[net->capacity], 0, table_size(capacity - net->capacity));
    net->descriptors = larger;
    net->capacity = capacity;
    return true;
}

static int wait_locked(struct net *net, struct worker *worker, int fd, skua_completion completion,
                       bool writes)
{
    /* The first check keeps the table from growing for a made-up number. A wait for one of our own
     * would overwrite our registration. */
    if (((uint32_t)fd >= net->capacity && fcntl(fd, F_GETFD) < 0) ||
        is_own_number_locked(net, worker, fd)) {
        return SKUA_E_DESCRIPTOR;
    }
    struct net_waiter *waiter =
        allocator_alloc(&net->sched->allocator, sizeof *waiter, alignof(struct net_waiter));
    if (waiter == NULL || !make_room_locked(net, fd)) {
        allocator_free(&net->sched->allocator, waiter, sizeof *waiter, alignof(struct net_waiter));
        return SKUA_E_NO_MEMORY;
    }
    struct net_descriptor *descriptor = &net->descriptors[fd];
    const bool had_waiters = descriptor->waiters != NULL;
    *waiter = (struct net_waiter){.completion = completion, .writes = writes};
    if (descriptor->count >= descriptor->scan_at) {
        waiters_scan_locked(net, worker, descriptor, 0, 0); /* only frees ended ones */
    }
    const int error = arm_locked(net, worker, fd, descriptor, waiters_wanted_by(waiter));
    if (error == 0) {
        waiter->next = descriptor->waiters;
        descriptor->waiters = waiter;
        descriptor->wanted |= waiters_wanted_by(waiter);
        descriptor->count++;
    } else {
        allocator_free(&net->sched->allocator, waiter, sizeof *waiter, alignof(struct net_waiter));
    }
    waiters_count_locked(net, had_waiters, descriptor->waiters != NULL);
    return error != 0 ? error : SKUA_PENDING;
}

/* ---- the yields ---- */

/* A wait without time: whether the descriptor is ready at this moment. Files and folders, which
 * poll would call ready, are refused as by epoll; so is our own number (wait_locked). */
static int check_now_locked(struct net *net, struct worker *worker, int fd, bool writes)
{
    struct stat status;
    if (is_own_number_locked(net, worker, fd) || fstat(fd, &status) != 0 ||
        S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) {
        return SKUA_E_DESCRIPTOR;
    }
    struct pollfd entry = {.fd = fd, .events = writes ? POLLOUT : POLLIN | POLLRDHUP};
    const int ready = poll(&entry, 1, 0);
    return ready > 0 ? 0 : SKUA_PENDING;
}

static int start_wait(void *arg, struct worker *worker, const struct yield *yield,
                      skua_completion completion, skua_payload *result)
{
    (void)result;
    struct net *net = arg;
    struct scheduler *sched = net->sched;
    const bool writes = yield->command == service_command(SERVICE_WRITABLE);
    const bool has_time = yield->timeout != 0;
    mutex_lock(&net->lock); /* nobody closes the number meanwhile */
    const int error = has_time ? wait_locked(net, worker, yield->as.fd, completion, writes)
                               : check_now_locked(net, worker, yield->as.fd, writes);
    const unsigned lost = take_lost_locked(net);
    mutex_unlock(&net->lock);
    tell_lost(net, lost);
    if (error == SKUA_PENDING && has_time) {
        poll_publish(sched, worker, UINT64_MAX);
        chores_schedule(sched, worker, CHORE_CHECK,
                        time_after(time_now(sched->time), CHECK_PERIOD_NS));
    }
    return error;
}

static int yield_wait(skua_context *ctx, uint64_t tag, enum service_id id, int fd,
                      uint64_t timeout_ns)
{
    int error;
    struct yield *yield;
    struct step_output *out = context_output(ctx, &error);
    if (error != 0) {
        return error;
    }
    if (fd < 0) {
        return SKUA_E_DESCRIPTOR;
    }
    error = step_output_yield(out, tag, service_command(id), timeout_ns, &yield);
    if (error == 0) {
        yield->as.fd = fd;
    }
    return error;
}

int skua_yield_readable(skua_context *ctx, uint64_t tag, int fd, uint64_t timeout_ns)
{
    return yield_wait(ctx, tag, SERVICE_READABLE, fd, timeout_ns);
}

int skua_yield_writable(skua_context *ctx, uint64_t tag, int fd, uint64_t timeout_ns)
{
    return yield_wait(ctx, tag, SERVICE_WRITABLE, fd, timeout_ns);
}

/* ---- the ends of waits ---- */

/* An event for a descriptor has arrived. Asking for the remaining events also shows whether the
 * number still means the same file: only then are the waiters told that it is ready. */
static void end_ready_waits_locked(struct net *net, struct worker *worker, int fd, uint32_t events)
{
    struct net_descriptor *descriptor = &net->descriptors[fd];
    const uint32_t remaining = descriptor->wanted & ~events;
    if (descriptor->waiters == NULL) {
        return;
    }
    if (control_locked(net, EPOLL_CTL_MOD, fd, descriptor, remaining) == 0) {
        waiters_scan_locked(net, worker, descriptor, events, 0);
    } else {
        end_closed_waits_locked(net, worker, descriptor);
    }
    waiters_count_locked(net, true, descriptor->waiters != NULL);
}

static void finish_ready(struct poller *poller, struct worker *worker, uint32_t ready)
{
    struct net *net = CONTAINER_OF(poller, struct net, poller);
    ready = kernel_report(net->sockets, worker, net->ready, ready, &net->set);
    if (ready == 0) {
        return;
    }
    mutex_lock(&net->lock);
    for (uint32_t i = 0; i < ready; i++) {
        const uint64_t data = net->ready[i].data.u64;
        const uint32_t fd = (uint32_t)data;
        if (UNLIKELY(fd >= net->capacity)) {
            epoll_set_suspect(&net->set); /* an event of another epoll, which has the number now */
        } else if (((uint64_t)net->descriptors[fd].serial << 32 & ~KERNEL_KEY) ==
                   (data & ~(uint64_t)UINT32_MAX)) { /* not about an earlier file */
            end_ready_waits_locked(net, worker, (int)fd,
                                   waiters_readiness_of(net->ready[i].events));
        }
    }
    mutex_unlock(&net->lock);
}

static void check_descriptor_locked(struct net *net, struct worker *worker, int fd)
{
    struct net_descriptor *descriptor = &net->descriptors[fd];
    if (descriptor->waiters == NULL) {
        return;
    }
    waiters_scan_locked(net, worker, descriptor, 0, 0); /* only frees ended ones */
    if (descriptor->waiters != NULL &&
        control_locked(net, EPOLL_CTL_MOD, fd, descriptor, descriptor->wanted) != 0) {
        end_closed_waits_locked(net, worker, descriptor);
    }
    waiters_count_locked(net, true, descriptor->waiters != NULL);
}

static void check_locked(struct net *net, struct worker *worker, uint32_t first)
{
    for (uint32_t fd = first; fd < first + CHECK_BATCH && fd < net->capacity; fd++) {
        check_descriptor_locked(net, worker, (int)fd);
    }
}

static uint64_t check_poller(struct poller *poller, struct worker *worker, uint64_t now)
{
    struct net *net = CONTAINER_OF(poller, struct net, poller);
    uint32_t capacity = 1;
    (void)look_after(net); /* or all would seem to be closed */
    for (uint32_t first = 0; first < capacity; first += CHECK_BATCH) {
        mutex_lock(&net->lock);
        check_locked(net, worker, first);
        capacity = net->capacity;
        mutex_unlock(&net->lock);
    }
    return load_seq_cst(&net->sched->poll.waits) > 0 ? time_after(now, CHECK_PERIOD_NS)
                                                     : UINT64_MAX;
}

/* Closes the number while the lock is held, or another thread could begin to wait for a file that
 * is about to be closed, and never be told. Ending the file itself may take time: a second number,
 * which is returned or -1, keeps it open until the lock is free. */
static int close_locked(struct net *net, struct worker *worker, int fd, int *reason)
{
    if (is_own_number_locked(net, worker, fd)) {
        *reason = EBADF; /* it is none of the program's */
        return -1;
    }
    if ((uint32_t)fd < net->capacity && net->descriptors[fd].waiters != NULL) {
        end_closed_waits_locked(net, worker, &net->descriptors[fd]);
        waiters_count_locked(net, true, false);
    }
    const int duplicate = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    (void)!epoll_set_control(&net->set, EPOLL_CTL_DEL, fd, NULL); /* it may not be registered */
    *reason = close(fd) == 0 || errno != EBADF ? 0 : EBADF;
    return duplicate;
}

int net_close_descriptor(struct net *net, struct worker *worker, int fd)
{
    int reason;
    if (fd < 0) {
        return SKUA_E_DESCRIPTOR;
    }
    mutex_lock(&net->lock);
    const int duplicate = close_locked(net, worker, fd, &reason);
    const unsigned lost = take_lost_locked(net);
    mutex_unlock(&net->lock);
    if (duplicate >= 0) {
        (void)close(duplicate);
    }
    tell_lost(net, lost);
    return reason == 0 ? 0 : os_error_keep(reason, SKUA_E_DESCRIPTOR);
}

/* ---- for sockets ---- */

static int watch_locked(struct net *net, int fd, uint64_t key)
{
    int error = kernel_register(&net->set, fd, key);
    if (UNLIKELY(error != 0) && !epoll_set_is_known(&net->set)) {
        (void)mend_locked(net, NULL); /* which registers this one, too */
        error = load_relaxed(&net->set.epoll) == EPOLL_SET_NONE ? EBADF : 0; /* under the lock */
    }
    return -error;
}

void net_count_socket(struct net *net)
{
    (void)fetch_add_seq_cst(&net->sched->poll.waits, 1); /* P1, MO-poll */
}

int net_watch(struct net *net, int fd, uint64_t key)
{
    mutex_lock(&net->lock);
    const int error = watch_locked(net, fd, key);
    const unsigned lost = take_lost_locked(net);
    mutex_unlock(&net->lock);
    tell_lost(net, lost);
    if (error == 0) {
        poll_publish(net->sched, NULL, UINT64_MAX); /* P1a, P1b */
    }
    return error;
}

int net_unwatch(struct net *net, int fd)
{
    mutex_lock(&net->lock);
    const int error = epoll_set_control(&net->set, EPOLL_CTL_DEL, fd, NULL);
    (void)fetch_sub_seq_cst(&net->sched->poll.waits, 1); /* MO-poll */
    mutex_unlock(&net->lock);
    return error == ENOENT || error == EBADF ? 0 : -error;
}

void net_close_socket(struct net *net, int fd)
{
    (void)fetch_sub_seq_cst(&net->sched->poll.waits, 1); /* MO-poll */
    (void)close(fd);
}

void net_wake_sockets(struct net *net, struct worker *worker, uint64_t when)
{
    chores_hasten(net->sched, worker, CHORE_SOCKETS, when);
}

/* ---- beginning and end ---- */

void net_init(struct net *net, struct scheduler *sched, struct sockets *sockets)
{
    net->poller = (struct poller){
        .open = open_poller,
        .close = close_poller,
        .wait = wait_poller,
        .deliver = finish_ready,
        .interrupt = interrupt_poller,
        .check = check_poller,
    };
    net->sched = sched;
    net->sockets = sockets;
    net->lost = 0;
    epoll_set_init(&net->set);
    mutex_init(&net->lock);
    net->descriptors = NULL;
    net->capacity = 0;
}

void net_deinit(struct net *net)
{
    for (uint32_t fd = 0; fd < net->capacity; fd++) {
        while (net->descriptors[fd].waiters != NULL) {
            waiters_remove_locked(net, &net->descriptors[fd].waiters);
        }
    }
    allocator_free(&net->sched->allocator, net->descriptors, table_size(net->capacity),
                   alignof(struct net_descriptor));
    mutex_deinit(&net->lock);
    epoll_set_deinit(&net->set);
}

void net_attach(struct net *net)
{
    net->sched->services[SERVICE_READABLE] =
        (struct service){.name = "readable", .start = start_wait, .arg = net};
    net->sched->services[SERVICE_WRITABLE] =
        (struct service){.name = "writable", .start = start_wait, .arg = net};
}
