/* SPDX-License-Identifier: MIT */
/* Mutexes and condition variables, for cold paths. No user function except the allocator (and
 * on_survivor, see docs/architecture.md) runs with one of them held. */
#ifndef SKUA_BASE_MUTEX_H
#define SKUA_BASE_MUTEX_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

static inline void mutex_init(pthread_mutex_t *mutex)
{
    (void)pthread_mutex_init(mutex, NULL); /* cannot fail for a default mutex on Linux */
}

static inline void mutex_deinit(pthread_mutex_t *mutex)
{
    (void)pthread_mutex_destroy(mutex);
}

static inline void mutex_lock(pthread_mutex_t *mutex)
{
    (void)pthread_mutex_lock(mutex);
}

static inline void mutex_unlock(pthread_mutex_t *mutex)
{
    (void)pthread_mutex_unlock(mutex);
}

/* A condition variable whose deadlines are on the monotonic clock. */
void condition_init(pthread_cond_t *condition);

/* Waits until signalled or until deadline_ns (UINT64_MAX: no deadline); may wake up spuriously.
 * Returns false if the deadline has passed. */
bool condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t deadline_ns);

#endif
