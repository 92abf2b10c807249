/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

#include <signal.h>
#include <skua/error.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/os_error.h"

static void block_signals(sigset_t *old_mask)
{
    static const int unblocked[] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
                                    SIGTRAP, SIGSYS, SIGABRT, SIGPROF};
    sigset_t blocked;
    (void)sigfillset(&blocked);
    for (size_t i = 0; i < sizeof unblocked / sizeof unblocked[0]; i++) {
        (void)sigdelset(&blocked, unblocked[i]);
    }
    (void)pthread_sigmask(SIG_SETMASK, &blocked, old_mask);
}

/* With the program's default stack, unless that is smaller than what the library itself needs. */
static int create(pthread_t *thread, void *(*function)(void *arg), void *arg)
{
    size_t size = 0;
    pthread_attr_t attributes;
    if (pthread_getattr_default_np(&attributes) != 0) {
        return pthread_create(thread, NULL, function, arg);
    }
    const bool is_small = pthread_attr_getstacksize(&attributes, &size) == 0 &&
                          size < THREAD_STACK_MIN &&
                          pthread_attr_setstacksize(&attributes, THREAD_STACK_MIN) == 0;
    const int error = pthread_create(thread, is_small ? &attributes : NULL, function, arg);
    (void)pthread_attr_destroy(&attributes);
    return error;
}

int thread_create(pthread_t *thread, const char *name, void *(*function)(void *arg), void *arg)
{
    /* The new thread inherits the mask, so no signal can reach it before it has blocked them. */
    sigset_t old_mask;
    block_signals(&old_mask);
    const int error = create(thread, function, arg);
    (void)pthread_sigmask(SIG_SETMASK, &old_mask, NULL);
    if (error != 0) {
        return os_error_keep(error, SKUA_E_THREAD);
    }
    char short_name[THREAD_NAME_SIZE]; /* the kernel refuses a longer one */
    (void)snprintf(short_name, sizeof short_name, "%s", name);
    (void)pthread_setname_np(*thread, short_name);
    return 0;
}

void thread_unblock_signal(int signal)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, signal);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
