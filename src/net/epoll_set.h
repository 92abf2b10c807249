/* SPDX-License-Identifier: MIT */
/* An epoll, and a pipe whose ends are registered with it.
 *
 * The pipe interrupts a wait: its read end is always readable, and edge-triggered. Changing its
 * registration makes the kernel look at it again and report it once more. That takes as long as a
 * write to an eventfd would, and it cannot hit another file: it fails if one of the two numbers
 * means another file by now, or none.
 *
 * For the program may close them by mistake (base/own_fd.h). That is noticed
 *  - when a wait cannot be interrupted, or fails: at once;
 *  - when a descriptor is waited for the first time, so that it is not added to an epoll of the
 *    program's that has the number now;
 *  - when a wait has lasted for EPOLL_SET_WAIT_MAX_NS: none is longer. A thread that waits for an
 *    epoll whose number was closed goes on to wait for it, and if the pipe is closed as well,
 *    nothing else can wake it.
 * Then epoll_set_mend replaces what is lost, and its caller registers its descriptors again. What
 * is not known to be ours is left open: an epoll is, if one end of the pipe is registered with it.
 *
 * `lock` guards the numbers against threads that interrupt; who replaces them and who registers
 * descriptors has the caller's lock, too. */
#ifndef SKUA_NET_EPOLL_SET_H
#define SKUA_NET_EPOLL_SET_H

#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/atomic.h"
#include "base/own_fd.h"

/* The data of the pipe's registrations: no descriptor has it. */
#define EPOLL_SET_INTERRUPT UINT64_MAX

#define EPOLL_SET_WAIT_MAX_NS (UINT64_C(30) * 1000000000)

/* What the program has closed. */
#define EPOLL_SET_LOST_EPOLL 1U
#define EPOLL_SET_LOST_PIPE  2U

struct epoll_set {
    atomic_u32 epoll;      /* its number; EPOLL_SET_NONE: none */
    atomic_u32 is_suspect; /* a wait could not be interrupted, or brought something strange */
    uint64_t wait_max_ns;  /* set once */
    bool has_no_pwait2;    /* the system refuses it; for the thread that waits */
    pthread_mutex_t lock;
    struct own_fd read_end; /* under lock, like the next */
    struct own_fd write_end;
};

#define EPOLL_SET_NONE UINT32_MAX

void epoll_set_init(struct epoll_set *set);
void epoll_set_deinit(struct epoll_set *set);

/* Returns 0 or the errno of what failed. */
NODISCARD int epoll_set_open(struct epoll_set *set);

/* Closes what is still ours. Interrupting does nothing from now on. */
void epoll_set_close(struct epoll_set *set);

/* As epoll_ctl, for a descriptor of the program's. Returns 0 or an errno. */
NODISCARD int epoll_set_control(struct epoll_set *set, int operation, int fd,
                                struct epoll_event *event);

/* Whether this is one of its own numbers, which no program can wait for or close. */
NODISCARD bool epoll_set_has_number(struct epoll_set *set, int fd);

/* Waits for events, for `timeout_ns` or wait_max_ns if that is shorter. Returns how many there are,
 * or -1 if it should be mended. One thread at a time. */
int epoll_set_wait(struct epoll_set *set, struct epoll_event *events, int most,
                   uint64_t timeout_ns);

/* Ends the wait that is under way, or else the next one. Any thread. */
void epoll_set_interrupt(struct epoll_set *set);

/* Something is odd, so that it should be mended. Any thread. */
void epoll_set_suspect(struct epoll_set *set);
NODISCARD bool epoll_set_is_suspect(struct epoll_set *set);

/* Whether the epoll's number still means it, as far as a program's descriptors are concerned. */
NODISCARD bool epoll_set_is_known(struct epoll_set *set);

/* Replaces what the program has closed. Returns what that was: with EPOLL_SET_LOST_EPOLL there is a
 * new epoll that knows no descriptor but the pipe's; or none, if the system has refused one. */
unsigned epoll_set_mend(struct epoll_set *set);

#endif
