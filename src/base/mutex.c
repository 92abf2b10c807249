/* SPDX-License-Identifier: MIT */
#include "base/mutex.h"

#include <errno.h>

#include "base/monotonic.h"

void condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

bool condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX) {
        (void)pthread_cond_wait(condition, mutex);
        return true;
    }
    const struct timespec deadline = monotonic_timespec(deadline_ns);
    return pthread_cond_timedwait(condition, mutex, &deadline) != ETIMEDOUT;
}
