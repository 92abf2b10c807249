/* SPDX-License-Identifier: MIT */
#include "net/net.h"

#include <errno.h>
#include <fcntl.h>
#include <skua/net.h>
#include <stdalign.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mutex.h"
#include "dispatch/reserved.h"
#include "sched/chores.h"
#include "sched/deliver.h"
#include "sched/poll.h"
#include "sched/worker.h"

/* Descriptors that were closed behind our back are found within this time. */
#define CHECK_PERIOD_NS (UINT64_C(10) * 1000000000)
/* Descriptors that are checked before the lock is let go for a moment. */
#define CHECK_BATCH 256
/* The table begins with room for so many. */
#define CAPACITY_MIN 64

/* The data of the eventfd's registration: no descriptor has it. */
#define WAKE_UP UINT64_MAX

/* ---- the poller of the scheduler ---- */

static int open_poller(struct poller *poller)
{
    struct net *net = CONTAINER_OF(poller, struct net, poller);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = WAKE_UP};
    net->epoll = epoll_create1(EPOLL_CLOEXEC);
    net->wake_up = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (net->epoll >= 0 && net->wake_up >= 0 &&
        epoll_ctl(net->epoll, EPOLL_CTL_ADD, net->wake_up, &event) == 0) {
        return 0;
    }
    poller->close(poller);
    return SKUA_E_POLLER;
}

static void close_if_open(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
    }
    *fd = -1;
}

static void close_poller(struct poller *poller)
{
    struct net *net = CONTAINER_OF(poller, struct net, poller);
    mutex_lock(&net->lock);
    close_if_open(&net->epoll);
    mutex_unlock(&net->lock);
    mutex_lock(&net->wake_up_lock);
    close_if_open(&net->wake_up);
    mutex_unlock(&net->wake_up_lock);
}

/* epoll_wait with a timeout in nanoseconds, rounded up to milliseconds on systems before Linux 5.11
 * that have no other. */
static int wait_for_events(struct net *net, const struct timespec *timeout)
{
    const long count =
        syscall(SYS_epoll_pwait2, net->epoll, net->ready, NET_BATCH, timeout, NULL, (size_t)0);
    if (count >= 0 || errno != ENOSYS) {
        return (int)count;
    }
    const int64_t day_ms = 24 * 60 * 60 * 1000;
    const int64_t ms =
        timeout == NULL ? -1 : timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000;
    return epoll_wait(net->epoll, net->ready, NET_BATCH, ms < day_ms ? (int)ms : (int)day_ms);
}

static struct timespec time_left(struct net *net, uint64_t deadline)
{
    const uint64_t now = deadline > 0 ? time_now(net->sched->time) : 0;
    const uint64_t left = deadline > now ? deadline - now : 0;
    return (struct timespec){
        .tv_sec = (time_t)(left / 1000000000u),
        .tv_nsec = (long)(left % 1000000000u),
    };
}

/* Leaves out the event that only interrupted the wait. */
static uint32_t without_wake_up(struct net *net, int count)
{
    uint32_t kept = 0;
    for (int i = 0; i < count; i++) {
        if (net->ready[i].data.u64 != WAKE_UP) {
            net->ready[kept++] = net->ready[i];
        }
    }
    return kept;
}

static uint32_t wait_poller(struct poller *poller, uint64_t deadline)
{
    struct net *net = CONTAINER_OF(poller, struct net, poller);
    const struct timespec left = time_left(net, deadline);
    return without_wake_up(net, wait_for_events(net, deadline == UINT64_MAX ? NULL : &left));
}

static void interrupt_poller(struct poller *poller)
{
    struct net *net = CONTAINER_OF(poller, struct net, poller);
    const uint64_t one = 1;
    mutex_lock(&net->wake_up_lock);
    (void)!write(net->wake_up, &one, sizeof one);
    mutex_unlock(&net->wake_up_lock);
}

/* ---- waiters, under the lock ---- */

static void remove_waiter(struct net *net, struct net_waiter **link)
{
    struct net_waiter *waiter = *link;
    *link = waiter->next;
    alloc_give(&net->sched->allocator, waiter, sizeof *waiter, alignof(struct net_waiter));
}

static void count_waits(struct net *net, bool before, bool after)
{
    if (!before && after) {
        (void)fetch_add_seq_cst(&net->sched->poll.waits, 1); /* P1, MO-poll */
    } else if (before && !after) {
        (void)fetch_sub_seq_cst(&net->sched->poll.waits, 1); /* MO-poll */
    }
}

static uint32_t wanted_by(const struct net_waiter *waiter)
{
    return waiter->writes ? (uint32_t)EPOLLOUT : (uint32_t)(EPOLLIN | EPOLLRDHUP);
}

/* Ends those waits that want one of `events`, or all if that is zero, and forgets about those that
 * have ended otherwise. */
static void end_waits(struct net *net, struct worker *worker, struct net_descriptor *descriptor,
                      uint32_t events, int error)
{
    struct scheduler *sched = net->sched;
    struct net_waiter **link = &descriptor->waiters;
    while (*link != NULL) {
        struct net_waiter *waiter = *link;
        const bool open = deliver_is_open(sched, waiter->completion);
        const bool ends = events == 0 || (events & (wanted_by(waiter) | EPOLLERR | EPOLLHUP)) != 0;
        if (open && !ends) {
            link = &waiter->next;
            continue;
        }
        if (open) {
            skua_payload nothing = skua_payload_empty(0);
            const int late = deliver_completion(sched, worker, waiter->completion, error, &nothing);
            if (late == 0 && error == 0) {
                STATS_COUNT(sched, worker, ready);
            }
        }
        remove_waiter(net, link);
    }
}

/* Forgets about waits that have ended otherwise. */
static void forget_ended(struct net *net, struct net_descriptor *descriptor)
{
    struct net_waiter **link = &descriptor->waiters;
    while (*link != NULL) {
        if (deliver_is_open(net->sched, (*link)->completion)) {
            link = &(*link)->next;
        } else {
            remove_waiter(net, link);
        }
    }
}

static uint32_t wanted_events(const struct net_descriptor *descriptor)
{
    uint32_t events = 0;
    for (const struct net_waiter *w = descriptor->waiters; w != NULL; w = w->next) {
        events |= wanted_by(w);
    }
    return events;
}

static int control(struct net *net, int operation, int fd, const struct net_descriptor *descriptor)
{
    struct epoll_event event = {
        .events = wanted_events(descriptor) | EPOLLET | EPOLLONESHOT,
        .data.u64 = (uint64_t)descriptor->serial << 32 | (uint32_t)fd,
    };
    return epoll_ctl(net->epoll, operation, fd, &event) == 0 ? 0 : errno;
}

/* Asks the kernel again for what the waiters want. If the number does not mean their file any more,
 * they are told. */
static void rearm(struct net *net, struct worker *worker, int fd, struct net_descriptor *descriptor)
{
    if (descriptor->waiters != NULL && control(net, EPOLL_CTL_MOD, fd, descriptor) != 0) {
        descriptor->serial++;
        end_waits(net, worker, descriptor, 0, SKUA_E_CLOSED);
    }
}

static int error_of(int system_error)
{
    return system_error == ENOMEM || system_error == ENOSPC ? SKUA_E_NO_MEMORY : SKUA_E_DESCRIPTOR;
}

/* Arms a descriptor for a new waiter, its first one in the list, besides those that it had. */
static int arm(struct net *net, struct worker *worker, int fd, struct net_descriptor *descriptor)
{
    int error = control(net, EPOLL_CTL_MOD, fd, descriptor);
    if (error == 0) {
        return 0;
    }
    /* Not registered, at least not this file: the others waited for one that is closed. */
    struct net_waiter *waiter = descriptor->waiters;
    descriptor->waiters = waiter->next;
    end_waits(net, worker, descriptor, 0, SKUA_E_CLOSED);
    descriptor->waiters = waiter;
    waiter->next = NULL;
    descriptor->serial++;
    if (error == ENOENT) {
        error = control(net, EPOLL_CTL_ADD, fd, descriptor);
    }
    return error == 0 ? 0 : error_of(error);
}

static size_t table_size(uint32_t capacity)
{
    return capacity * sizeof(struct net_descriptor);
}

static bool make_room(struct net *net, int fd)
{
    uint32_t capacity = net->capacity > 0 ? net->capacity : CAPACITY_MIN;
    while (capacity <= (uint32_t)fd) {
        capacity *= 2;
    }
    if (capacity == net->capacity) {
        return true;
    }
    struct net_descriptor *larger =
        alloc_grow(&net->sched->allocator, net->descriptors, table_size(net->capacity),
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
    if (fcntl(fd, F_GETFD) < 0) { /* also keeps the table from growing for a made-up number */
        return SKUA_E_DESCRIPTOR;
    }
    struct net_waiter *waiter =
        alloc_take(&net->sched->allocator, sizeof *waiter, alignof(struct net_waiter));
    if (waiter == NULL || !make_room(net, fd)) {
        alloc_give(&net->sched->allocator, waiter, sizeof *waiter, alignof(struct net_waiter));
        return SKUA_E_NO_MEMORY;
    }
    struct net_descriptor *descriptor = &net->descriptors[fd];
    const bool before = descriptor->waiters != NULL;
    forget_ended(net, descriptor); /* or a descriptor that is never ready would collect them */
    *waiter = (struct net_waiter){descriptor->waiters, completion, writes};
    descriptor->waiters = waiter;
    const int error = arm(net, worker, fd, descriptor);
    if (error != 0) {
        remove_waiter(net, &descriptor->waiters);
    }
    count_waits(net, before, descriptor->waiters != NULL);
    return error != 0 ? error : SKUA_PENDING;
}

/* ---- the commands ---- */

static int wait_for(struct net *net, skua_command *command, bool writes)
{
    struct scheduler *sched = net->sched;
    struct worker *worker = worker_here(sched);
    uint64_t fd;
    if (!reserved_number(&command->input, &fd) || fd > INT32_MAX) {
        return SKUA_E_INVALID;
    }
    mutex_lock(&net->lock);
    const int error = wait_locked(net, worker, (int)fd, command->completion, writes);
    mutex_unlock(&net->lock);
    if (error == SKUA_PENDING) {
        poll_publish(sched, worker, UINT64_MAX);
        chores_want(sched, worker, CHORE_CHECK, time_after(time_now(sched->time), CHECK_PERIOD_NS));
    }
    return error;
}

static int wait_readable(void *arg, skua_command *command, skua_payload *result)
{
    (void)result;
    return wait_for(arg, command, false);
}

static int wait_writable(void *arg, skua_command *command, skua_payload *result)
{
    (void)result;
    return wait_for(arg, command, true);
}

static int yield_wait(skua_step *out, enum reserved_command command, uint64_t tag, int fd)
{
    if (fd < 0) {
        return SKUA_E_DESCRIPTOR;
    }
    return skua_step_yield(out, reserved_id(command), tag, skua_payload_u64(0, (uint64_t)fd));
}

int skua_step_wait_readable(skua_step *out, uint64_t tag, int fd)
{
    return yield_wait(out, RESERVED_READABLE, tag, fd);
}

int skua_step_wait_writable(skua_step *out, uint64_t tag, int fd)
{
    return yield_wait(out, RESERVED_WRITABLE, tag, fd);
}

/* ---- what becomes of the waits ---- */

static void deliver_poller(struct poller *poller, struct worker *worker, uint32_t ready)
{
    struct net *net = CONTAINER_OF(poller, struct net, poller);
    mutex_lock(&net->lock);
    for (uint32_t i = 0; i < ready; i++) {
        const int fd = (int)(uint32_t)net->ready[i].data.u64;
        struct net_descriptor *descriptor = &net->descriptors[fd];
        if (descriptor->serial != net->ready[i].data.u64 >> 32) {
            continue; /* about an earlier file of that number */
        }
        const bool before = descriptor->waiters != NULL;
        end_waits(net, worker, descriptor, net->ready[i].events, 0);
        rearm(net, worker, fd, descriptor);
        count_waits(net, before, descriptor->waiters != NULL);
    }
    mutex_unlock(&net->lock);
}

static void check_locked(struct net *net, struct worker *worker, uint32_t first)
{
    for (uint32_t fd = first; fd < first + CHECK_BATCH && fd < net->capacity; fd++) {
        struct net_descriptor *descriptor = &net->descriptors[fd];
        if (descriptor->waiters != NULL) {
            forget_ended(net, descriptor);
            rearm(net, worker, (int)fd, descriptor);
            count_waits(net, true, descriptor->waiters != NULL);
        }
    }
}

static uint64_t check_poller(struct poller *poller, struct worker *worker, uint64_t now)
{
    struct net *net = CONTAINER_OF(poller, struct net, poller);
    uint32_t capacity = 1;
    for (uint32_t first = 0; first < capacity; first += CHECK_BATCH) {
        mutex_lock(&net->lock);
        check_locked(net, worker, first);
        capacity = net->capacity;
        mutex_unlock(&net->lock);
    }
    return load_seq_cst(&net->sched->poll.waits) > 0 ? time_after(now, CHECK_PERIOD_NS)
                                                     : UINT64_MAX;
}

int net_close_descriptor(struct net *net, struct worker *worker, int fd)
{
    if (fd < 0) {
        return SKUA_E_DESCRIPTOR;
    }
    mutex_lock(&net->lock);
    if ((uint32_t)fd < net->capacity && net->descriptors[fd].waiters != NULL) {
        struct net_descriptor *descriptor = &net->descriptors[fd];
        descriptor->serial++;
        end_waits(net, worker, descriptor, 0, SKUA_E_CLOSED);
        count_waits(net, true, false);
    }
    /* The number goes while the lock is held, or somebody could begin to wait for a file that is
     * about to be closed, and never hear of it. What may take time is the end of the file: a second
     * number keeps it until the lock is free. */
    const int last = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    (void)epoll_ctl(net->epoll, EPOLL_CTL_DEL, fd, NULL);
    const bool closed = close(fd) == 0 || errno != EBADF;
    mutex_unlock(&net->lock);
    if (last >= 0) {
        (void)close(last);
    }
    return closed ? 0 : SKUA_E_DESCRIPTOR;
}

/* ---- beginning and end ---- */

void net_init(struct net *net, struct scheduler *sched)
{
    net->poller = (struct poller){
        .open = open_poller,
        .close = close_poller,
        .wait = wait_poller,
        .deliver = deliver_poller,
        .interrupt = interrupt_poller,
        .check = check_poller,
    };
    net->sched = sched;
    net->epoll = -1;
    net->wake_up = -1;
    mutex_init(&net->lock);
    mutex_init(&net->wake_up_lock);
    net->descriptors = NULL;
    net->capacity = 0;
}

void net_deinit(struct net *net)
{
    for (uint32_t fd = 0; fd < net->capacity; fd++) {
        while (net->descriptors[fd].waiters != NULL) {
            remove_waiter(net, &net->descriptors[fd].waiters);
        }
    }
    alloc_give(&net->sched->allocator, net->descriptors, table_size(net->capacity),
               alignof(struct net_descriptor));
    mutex_deinit(&net->wake_up_lock);
    mutex_deinit(&net->lock);
}

int net_register(struct net *net, struct registry *registry)
{
    const int error =
        registry_add(registry, reserved_id(RESERVED_READABLE),
                     &(skua_handler){.name = "wait-readable", .run = wait_readable, .arg = net});
    if (error != 0) {
        return error;
    }
    return registry_add(registry, reserved_id(RESERVED_WRITABLE),
                        &(skua_handler){.name = "wait-writable", .run = wait_writable, .arg = net});
}
