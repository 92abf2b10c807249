/* SPDX-License-Identifier: MIT */
/* A stuck thread may be asleep in the kernel. The kernel restarts most calls that a signal has
 * interrupted, but not all: sleeping and polling end early with EINTR, whatever the handler's flags
 * say, and a step that begins its sleep anew would be stuck anew, and reported, without end. So
 * the monitor looks up in which call the thread sleeps before it sends the signal, and the handler
 * has it made again, with the same arguments. A relative timeout begins anew. */
#ifndef SKUA_WATCH_ASLEEP_H
#define SKUA_WATCH_ASLEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A system call in which a thread was seen asleep. */
struct asleep {
    long number; /* negative: in none, or in one that the kernel restarts */
    uint64_t arguments[6];
    uint64_t stack; /* where the thread's stack ends, and where it goes on */
    uint64_t next;
};

/* What a thread of this program does now. */
void asleep_look(struct asleep *asleep, pid_t thread);

/* Whether a signal may be sent to that thread: it is not in such a call, or the handler can have
 * the call made again on this machine. */
bool asleep_can_be_interrupted(const struct asleep *asleep);

/* For a signal handler on that thread: if the signal has ended this call, has it made again when
 * the handler returns. `context` is the handler's third argument. */
void asleep_resume(const struct asleep *asleep, void *context);

/* Where the thread was interrupted; null if that is not known on this machine. */
void *asleep_address(const void *context);

#endif
