/* SPDX-License-Identifier: MIT */
/* The stack of a thread that does not return from a step: the monitor sends it a signal, whose
 * handler records the return addresses and posts a semaphore. Used only if the program has given
 * the runtime a signal for it, because the signal may interrupt a system call of the thread; see
 * watch/asleep.h for what is done about that. */
#ifndef SKUA_WATCH_BACKTRACE_H
#define SKUA_WATCH_BACKTRACE_H

#include <semaphore.h>

#include "sched/scheduler.h"
#include "watch/asleep.h"

#define BACKTRACE_MAX 64

/* A signal on its way to a thread. It may arrive long after the monitor has given up, and must not
 * do harm even then, so each worker has one. */
struct backtrace_signal {
    atomic_u32 is_sent; /* and has not arrived */
    struct asleep asleep;
};

/* A stuck thread's answer to the monitor. */
struct backtrace {
    atomic_u32 state;
    sem_t answered;
    uint32_t count;
    void *frames[BACKTRACE_MAX];
    struct backtrace_signal *signals; /* one per worker; null: no signal may be sent */
};

/* Returns 0 or SKUA_E_NO_MEMORY. `sched` as in monitor_thread_init. */
NODISCARD int backtrace_init(struct backtrace *backtrace, struct scheduler *sched);
void backtrace_deinit(struct backtrace *backtrace, struct scheduler *sched);

/* Installs the handler of `signal`, and restores the program's when the last runtime that uses it
 * has removed it. Returns 0 or SKUA_E_INVALID (a signal that cannot be caught). */
NODISCARD int backtrace_install(int signal);
void backtrace_remove(int signal);

/* Asks a worker's thread for its stack, from where it is up to the step or callback that it runs.
 * The thread has unblocked the signal and finds the request through its scheduler's monitor.
 * Returns the number of frames, 0 if it does not answer. */
uint32_t backtrace_take(struct backtrace *backtrace, struct worker *worker, int signal);

#endif
