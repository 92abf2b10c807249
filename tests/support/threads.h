/* SPDX-License-Identifier: MIT */
/* Threads beside that of the test. (api_in_threads starts several that begin at the same time.) */
#ifndef SKUA_TESTS_THREADS_H
#define SKUA_TESTS_THREADS_H

#include <stdbool.h>

struct thread;

/* Calls function(arg) on a thread of its own. Its memory lives until the end of the test, before
 * which it has to be joined. */
struct thread *thread_start(void (*function)(void *arg), void *arg);

void thread_join(struct thread *thread);

/* Whether the function has returned. */
bool thread_is_done(struct thread *thread);

/* Runs it and waits for its end. */
void thread_run(void (*function)(void *arg), void *arg);

#endif
