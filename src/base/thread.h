/* SPDX-License-Identifier: MIT */
/* The library's own threads. */
#ifndef SKUA_BASE_THREAD_H
#define SKUA_BASE_THREAD_H

#include <pthread.h>

#include "base/compiler.h"

/* The size of the longest thread name that the kernel keeps, with its terminating zero. */
#define THREAD_NAME_SIZE 16

/* The least stack of a thread. A program may have set its default to less, or its limit
 * (ulimit -s): it knows what its own threads need. */
#define THREAD_STACK_MIN ((size_t)64 * 1024)

/* Starts a thread that runs function(arg); it must be joined. The name, cut to 15 characters, is
 * for people; nothing depends on it. The program's signal handlers never run on the thread, except
 * for signals that its own code raises, such as SIGSEGV, and SIGPROF.
 * Borrows: name.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_THREAD, and *thread is then undefined. */
NODISCARD int thread_create(pthread_t *thread, const char *name, void *(*function)(void *arg),
                            void *arg);

/* Unblocks a signal for the calling thread, which thread_create has started. */
void thread_unblock_signal(int signal);

#endif
