/* SPDX-License-Identifier: MIT */
#include "net/epoll_set.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "base/mutex.h"

/* Without an epoll, because the system refused one, waiting is sleeping. */
#define BLIND_WAIT_NS UINT64_C(10000000)

void epoll_set_init(struct epoll_set *set)
{
    store_relaxed(&set->epoll, EPOLL_SET_NONE); /* not shared yet */
    store_relaxed(&set->is_suspect, 0);         /* not shared yet */
    set->wait_max_ns = EPOLL_SET_WAIT_MAX_NS;
    set->has_no_pwait2 = false;
    set->read_end = set->write_end = OWN_FD_NONE;
    mutex_init(&set->lock);
}

void epoll_set_deinit(struct epoll_set *set)
{
    mutex_deinit(&set->lock);
}

static int number_of(struct epoll_set *set)
{
    return (int)load_relaxed(&set->epoll); /* an old number fails, or is as good */
}

/* ---- the pipe ---- */

static int control_end(int epoll, int operation, const struct own_fd *end, uint32_t events)
{
    struct epoll_event event = {.events = events | EPOLLET, .data.u64 = EPOLL_SET_INTERRUPT};
    return epoll_ctl(epoll, operation, end->fd, &event);
}

/* Makes the epoll report the pipe. One end suffices. */
static bool report_pipe_locked(struct epoll_set *set)
{
    const int epoll = number_of(set);
    return control_end(epoll, EPOLL_CTL_MOD, &set->read_end, EPOLLIN) == 0 ||
           control_end(epoll, EPOLL_CTL_MOD, &set->write_end, EPOLLOUT) == 0;
}

/* Wakes a thread that waits for the epoll of this pipe, whether or not that has a number. */
static void end_lost_wait_locked(struct epoll_set *set)
{
    own_fd_write(&set->write_end);
}

static int register_pipe_locked(struct epoll_set *set, int epoll)
{
    return control_end(epoll, EPOLL_CTL_ADD, &set->read_end, EPOLLIN) == 0 &&
                   control_end(epoll, EPOLL_CTL_ADD, &set->write_end, 0) == 0
               ? 0
               : -1;
}

static int open_pipe_locked(struct epoll_set *set)
{
    if (own_fd_open_pipe(&set->read_end, &set->write_end) != 0) {
        return -1;
    }
    return write(set->write_end.fd, "", 1) == 1 ? 0 : -1; /* so that it is always readable */
}

static void close_pipe_locked(struct epoll_set *set)
{
    own_fd_close(&set->read_end);
    own_fd_close(&set->write_end);
}

/* ---- opening and closing ---- */

static int open_epoll_locked(struct epoll_set *set)
{
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) {
        return -1;
    }
    if (register_pipe_locked(set, epoll) != 0) {
        const int reason = errno;
        if (reason != EINVAL && reason != EBADF) { /* or the program has just taken the number */
            (void)close(epoll);
        }
        errno = reason;
        return -1;
    }
    store_relaxed(&set->epoll, (uint32_t)epoll); /* see number_of */
    return 0;
}

int epoll_set_open(struct epoll_set *set)
{
    mutex_lock(&set->lock);
    const bool is_open = open_pipe_locked(set) == 0 && open_epoll_locked(set) == 0;
    const int reason = is_open ? 0 : errno;
    if (!is_open) {
        close_pipe_locked(set);
    }
    mutex_unlock(&set->lock);
    return reason;
}

/* Whether an end of the pipe is registered with the epoll. That the system refuses to change a
 * registration for other reasons does not mean that it is not there. */
static bool has_end(int epoll, const struct own_fd *end, uint32_t events)
{
    return control_end(epoll, EPOLL_CTL_MOD, end, events) == 0 ||
           (errno != EBADF && errno != ENOENT && errno != EINVAL && errno != EPERM);
}

/* If one is, the number means our epoll. */
static bool is_known_locked(struct epoll_set *set)
{
    const int epoll = number_of(set);
    return has_end(epoll, &set->write_end, 0) || has_end(epoll, &set->read_end, EPOLLIN);
}

void epoll_set_close(struct epoll_set *set)
{
    mutex_lock(&set->lock);
    if (is_known_locked(set)) {
        (void)close(number_of(set));
    }
    store_relaxed(&set->epoll, EPOLL_SET_NONE); /* see number_of */
    close_pipe_locked(set);
    mutex_unlock(&set->lock);
}

/* Somebody may wait for a number that was closed long ago and means another file now: asking the
 * kernel about it is how that is found out. The thread sanitizer would take the question, and a
 * close() or an open() elsewhere that has the same number, for a race; hence the bare call. */
int epoll_set_control(struct epoll_set *set, int operation, int fd, struct epoll_event *event)
{
    return syscall(SYS_epoll_ctl, number_of(set), operation, fd, event) == 0 ? 0 : errno;
}

bool epoll_set_has_number(struct epoll_set *set, int fd)
{
    mutex_lock(&set->lock);
    const bool has = fd == number_of(set) || fd == set->read_end.fd || fd == set->write_end.fd;
    mutex_unlock(&set->lock);
    return has;
}

/* ---- waiting ---- */

/* For systems before Linux 5.11, and sandboxes that do not know epoll_pwait2: milliseconds, rounded
 * up. */
static int wait_for_milliseconds(int epoll, struct epoll_event *events, int most,
                                 uint64_t timeout_ns)
{
    return epoll_wait(epoll, events, most, (int)((timeout_ns + 999999) / 1000000));
}

static int wait_for_events(struct epoll_set *set, struct epoll_event *events, int most,
                           uint64_t timeout_ns)
{
    const int epoll = number_of(set);
    if (!set->has_no_pwait2) {
        const struct timespec timeout = monotonic_timespec(timeout_ns);
        const long count =
            syscall(SYS_epoll_pwait2, epoll, events, most, &timeout, NULL, (size_t)0);
        if (count >= 0 || errno == EINTR || errno == EBADF) {
            return (int)count;
        }
    }
    const int count = wait_for_milliseconds(epoll, events, most, timeout_ns);
    set->has_no_pwait2 = set->has_no_pwait2 || count >= 0; /* only that was refused */
    return count;
}

int epoll_set_wait(struct epoll_set *set, struct epoll_event *events, int most, uint64_t timeout_ns)
{
    const uint64_t bound = timeout_ns < set->wait_max_ns ? timeout_ns : set->wait_max_ns;
    if (UNLIKELY(load_relaxed(&set->epoll) == EPOLL_SET_NONE)) { /* see number_of */
        const struct timespec nap =
            monotonic_timespec(bound < BLIND_WAIT_NS ? bound : BLIND_WAIT_NS);
        (void)nanosleep(&nap, NULL);
        return -1;
    }
    const int count = wait_for_events(set, events, most, bound);
    if (count < 0) {
        return errno == EINTR ? 0 : -1;
    }
    return count == 0 && bound < timeout_ns ? -1 : count; /* look after it now and then */
}

void epoll_set_suspect(struct epoll_set *set)
{
    store_seq_cst(&set->is_suspect, 1); /* MO-suspect */
}

bool epoll_set_is_suspect(struct epoll_set *set)
{
    return load_seq_cst(&set->is_suspect) != 0; /* MO-suspect */
}

void epoll_set_interrupt(struct epoll_set *set)
{
    mutex_lock(&set->lock);
    if (load_relaxed(&set->epoll) != EPOLL_SET_NONE &&
        !report_pipe_locked(set)) { /* under the lock */
        epoll_set_suspect(set);     /* before the wait ends, so that its thread mends the set */
        end_lost_wait_locked(set);
    }
    mutex_unlock(&set->lock);
}

/* ---- mending ---- */

bool epoll_set_is_known(struct epoll_set *set)
{
    mutex_lock(&set->lock);
    const bool is_known = is_known_locked(set);
    mutex_unlock(&set->lock);
    return is_known;
}

static unsigned find_lost_locked(struct epoll_set *set)
{
    const bool has_pipe = own_fd_is_ours(&set->read_end) && own_fd_is_ours(&set->write_end);
    return (is_known_locked(set) ? 0 : EPOLL_SET_LOST_EPOLL) | (has_pipe ? 0 : EPOLL_SET_LOST_PIPE);
}

static bool replace_locked(struct epoll_set *set, unsigned lost)
{
    if ((lost & EPOLL_SET_LOST_EPOLL) != 0) {
        end_lost_wait_locked(set);
        store_relaxed(&set->epoll, EPOLL_SET_NONE); /* see number_of */
    }
    if ((lost & EPOLL_SET_LOST_PIPE) != 0) {
        close_pipe_locked(set);
        if (open_pipe_locked(set) != 0) {
            return false;
        }
    }
    return (lost & EPOLL_SET_LOST_EPOLL) != 0 ? open_epoll_locked(set) == 0
                                              : register_pipe_locked(set, number_of(set)) == 0;
}

unsigned epoll_set_mend(struct epoll_set *set)
{
    mutex_lock(&set->lock);
    store_seq_cst(&set->is_suspect, 0); /* MO-suspect */
    const unsigned lost = find_lost_locked(set);
    if (lost != 0 && !replace_locked(set, lost)) {
        epoll_set_suspect(set); /* try again with the next wait */
    }
    mutex_unlock(&set->lock);
    return lost;
}
