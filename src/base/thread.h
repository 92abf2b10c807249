/* SPDX-License-Identifier: MIT */
/* Threads of the library's own. */
#ifndef SKUA_BASE_THREAD_H
#define SKUA_BASE_THREAD_H

#include <pthread.h>

#include "base/compiler.h"

/* What the kernel keeps of a thread's name, with the zero at its end. */
#define THREAD_NAME_SIZE 16

/* Starts a thread that runs function(arg) and has to be joined. The name, of which the kernel keeps
 * 15 characters, is for people; nothing depends on it. The program's signal handlers never run on
 * the thread, except for signals that a thread brings upon itself, and those of profilers.
 * Borrows: name.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_THREAD, and *thread is not to be used. */
NODISCARD int thread_create(pthread_t *thread, const char *name, void *(*function)(void *arg),
                            void *arg);

/* Lets a signal reach the calling thread, one of thread_create's. */
void thread_unblock_signal(int signal);

#endif
