/* SPDX-License-Identifier: MIT */
#include "watch/backtrace.h"

#include <errno.h>
#include <execinfo.h>
#include <signal.h>

#include "base/monotonic.h"
#include "base/mutex.h"
#include "sched/monitor.h"
#include "sched/worker.h"

/* How long to wait for a thread, which may not even be scheduled. */
#define ANSWER_TIMEOUT_NS (UINT64_C(20) * 1000000)

/* IDLE -> asked (1 + worker), by the monitor; asked -> ANSWERING -> IDLE, by the thread; asked ->
 * IDLE, by the monitor when it gives up: a handler that runs later finds that nobody asks. */
#define IDLE      0
#define ANSWERING UINT32_MAX

void backtrace_init(struct backtrace *backtrace)
{
    store_relaxed(&backtrace->state, IDLE); /* not shared yet */
    (void)sem_init(&backtrace->answered, 0, 0);
}

void backtrace_deinit(struct backtrace *backtrace)
{
    (void)sem_destroy(&backtrace->answered);
}

/* Async-signal-safe: backtrace() was called once before, so it loads and allocates nothing. */
static void handle(int signal)
{
    (void)signal;
    const int error = errno;
    struct worker *worker = worker_of_thread();
    if (worker != NULL) {
        struct backtrace *slot = worker->sched->monitor->backtrace;
        uint32_t asked = worker->index + 1;
        if (cas_acq_rel_relaxed(&slot->state, &asked, ANSWERING)) { /* MO-backtrace */
            const int count = backtrace(slot->frames, BACKTRACE_MAX);
            slot->count = count > 0 ? (uint32_t)count : 0;
            store_release(&slot->state, IDLE); /* MO-backtrace: the frames */
            (void)sem_post(&slot->answered);
        }
    }
    errno = error;
}

/* Signals belong to the whole program, so these do, too. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint32_t users;
    struct sigaction before;
} handlers[NSIG];

static int install_locked(int signal)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    (void)sigemptyset(&action.sa_mask);
    if (handlers[signal].users == 0 && sigaction(signal, &action, &handlers[signal].before) != 0) {
        return SKUA_E_INVALID;
    }
    handlers[signal].users++;
    return 0;
}

int backtrace_install(int signal)
{
    void *frame;
    if (signal < 1 || signal >= NSIG) {
        return SKUA_E_INVALID;
    }
    (void)backtrace(&frame, 1); /* loads what it needs, here and now */
    mutex_lock(&lock);
    const int error = install_locked(signal);
    mutex_unlock(&lock);
    return error;
}

void backtrace_remove(int signal)
{
    mutex_lock(&lock);
    if (--handlers[signal].users == 0) {
        (void)sigaction(signal, &handlers[signal].before, NULL);
    }
    mutex_unlock(&lock);
}

static bool wait_for_answer(struct backtrace *backtrace, uint64_t deadline_ns)
{
    const struct timespec deadline = monotonic_timespec(deadline_ns);
    int result;
    do {
        result = sem_clockwait(&backtrace->answered, CLOCK_MONOTONIC, &deadline);
    } while (result != 0 && errno == EINTR);
    return result == 0;
}

uint32_t backtrace_take(struct backtrace *backtrace, struct worker *worker, int signal)
{
    const uint32_t asked = worker->index + 1;
    uint32_t seen = IDLE;
    if (!cas_acq_rel_relaxed(&backtrace->state, &seen, asked)) { /* MO-backtrace */
        return 0; /* an earlier thread is still answering */
    }
    while (sem_trywait(&backtrace->answered) == 0) {
        /* discards an answer that came too late */
    }
    bool answered = pthread_kill(worker->thread, signal) == 0 &&
                    wait_for_answer(backtrace, monotonic_ns() + ANSWER_TIMEOUT_NS);
    seen = asked;
    if (!answered && !cas_acq_rel_relaxed(&backtrace->state, &seen, IDLE)) { /* MO-backtrace */
        answered = wait_for_answer(backtrace, monotonic_ns() + ANSWER_TIMEOUT_NS);
    }
    /* MO-backtrace: sem_post and sem_wait order the frames, too, but not every tool knows. */
    return answered && load_acquire(&backtrace->state) == IDLE ? backtrace->count : 0;
}
