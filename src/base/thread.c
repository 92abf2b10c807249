/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

#include <signal.h>
#include <skua/error.h>
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

int thread_create(pthread_t *thread, const char *name, void *(*function)(void *arg), void *arg)
{
    /* The new thread inherits the mask, so no signal can reach it before it has blocked them. */
    sigset_t old_mask;
    block_signals(&old_mask);
    const int error = pthread_create(thread, NULL, function, arg);
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
