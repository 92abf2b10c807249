/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

#include <signal.h>
#include <skua/error.h>
#include <stdio.h>

static void block_signals(sigset_t *before)
{
    static const int kept[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF};
    sigset_t blocked;
    (void)sigfillset(&blocked);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        (void)sigdelset(&blocked, kept[i]);
    }
    (void)pthread_sigmask(SIG_SETMASK, &blocked, before);
}

int thread_create(pthread_t *thread, const char *name, void *(*function)(void *arg), void *arg)
{
    /* The new thread inherits the mask, so no signal can reach it before it has blocked them. */
    sigset_t before;
    block_signals(&before);
    const int error = pthread_create(thread, NULL, function, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        return SKUA_E_THREAD;
    }
    char kept_name[THREAD_NAME_SIZE]; /* the kernel refuses a longer one */
    (void)snprintf(kept_name, sizeof kept_name, "%s", name);
    (void)pthread_setname_np(*thread, kept_name);
    return 0;
}

void thread_unblock_signal(int signal)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, signal);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
