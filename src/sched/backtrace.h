/* SPDX-License-Identifier: MIT */
/* The stack of a thread that does not return from a step: the monitor sends it a signal, whose
 * handler notes the return addresses and says so. Used only if the program has given the runtime a
 * signal for it: system calls that the thread is in may end early. */
#ifndef SKUA_SCHED_BACKTRACE_H
#define SKUA_SCHED_BACKTRACE_H

#include "sched/scheduler.h"

void backtrace_init(struct backtrace *backtrace);
void backtrace_deinit(struct backtrace *backtrace);

/* Installs the handler of `signal`, and takes it away again when the last runtime that uses it has
 * done so. Returns 0 or SKUA_E_INVALID (a signal that cannot be caught). */
NODISCARD int backtrace_install(int signal);
void backtrace_remove(int signal);

/* Lets the calling thread be asked. */
void backtrace_allow(int signal);

/* Asks a worker's thread; returns the number of frames, 0 if it does not answer. */
uint32_t backtrace_take(struct backtrace *backtrace, struct worker *worker, int signal);

#endif
