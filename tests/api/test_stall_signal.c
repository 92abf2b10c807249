/* SPDX-License-Identifier: MIT */
/* The signal that asks a stuck step for its backtrace does not end what the step waits for, though
 * the kernel never restarts these calls by itself. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "stalls.h"

/* What a step waits in, until there is something to read; returns 1 then. */
struct wait {
    int (*wait)(int fd);
    int fd;
    int returned;
    atomic_bool is_over; /* for sleeps, which do not look at the descriptor */
};

static int wait_by_poll(int fd)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    return poll(&wanted, 1, -1);
}

static int wait_by_ppoll(int fd)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    const struct timespec long_time = {.tv_sec = 3600};
    return ppoll(&wanted, 1, &long_time, NULL);
}

/* The thread sanitizer runs handlers after the call that they interrupt, but for some calls; this
 * is none of them. */
#ifdef __SANITIZE_THREAD__
#define wait_by_select wait_by_poll
#else
static int wait_by_select(int fd)
{
    fd_set wanted;
    FD_ZERO(&wanted);
    FD_SET(fd, &wanted);
    return select(fd + 1, &wanted, NULL, NULL, NULL);
}
#endif

static int wait_by_epoll(int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    const int set = epoll_create1(EPOLL_CLOEXEC);
    int result = epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    result = result == 0 ? epoll_wait(set, &event, 1, -1) : result;
    (void)close(set);
    return result;
}

static struct wait *current; /* the one that sleeps */

/* Sleeps are short enough to end before anybody loses patience, and long enough for a step that is
 * stuck in one. */
static int wait_by_nanosleep(int fd)
{
    const struct timespec nap = {.tv_nsec = 300 * 1000 * 1000};
    (void)fd;
    do {
        if (nanosleep(&nap, NULL) != 0) {
            return -1;
        }
    } while (!atomic_load(&current->is_over));
    return 1;
}

static int wait_in_step(struct turn *turn, const struct act *act)
{
    struct wait *wait = act->arg;
    (void)turn;
    wait->returned = wait->wait(wait->fd);
    return 0;
}

/* Returns whether the thread was interrupted: one that gets no CPU is not asked in time. */
static bool stall_in(int (*how)(int fd))
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct wait wait = {.wait = how, .fd = ends[0]};
    current = &wait;
    struct actor *culprit = actor_start(ACTS(does(wait_in_step, &wait), finishes(0)));
    const struct stall_record record = stall_await(culprit);
    assert_int_equal(write(ends[1], "x", 1), 1);
    atomic_store(&wait.is_over, true);
    actor_await_end(culprit);
    assert_int_equal(wait.returned, 1);
    assert_stalled_once(culprit, "actor");
    (void)close(ends[0]);
    (void)close(ends[1]);
    return record.stall.frame_count > 0;
}

TEST(stall_signal_ends_no_sleep_and_no_poll)
{
    static int (*const ways[])(int fd) = {wait_by_poll, wait_by_ppoll, wait_by_select,
                                          wait_by_epoll, wait_by_nanosleep};
    FOR_ROWS (way, ways) {
        bool interrupted = false;
        stalls_open((skua_runtime_config){
            .worker_count = 2, .stall_limit_ns = SKUA_MILLISECOND, .stall_signal = SIGUSR2});
        for (int attempt = 0; attempt < 100 && !interrupted; attempt++) {
            interrupted = stall_in(*way);
        }
        assert_true(interrupted);
    }
}
