/* SPDX-License-Identifier: MIT */
#include "watch/backtrace.h"

#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdalign.h>
#include <string.h>
#include <unwind.h>

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

static size_t signals_size(const struct scheduler *sched)
{
    return sched->capacity * sizeof(struct backtrace_signal);
}

int backtrace_init(struct backtrace *backtrace, struct scheduler *sched)
{
    backtrace->signals = NULL;
    if (sched->config.stall_signal != 0) {
        backtrace->signals = allocator_alloc_zeroed(&sched->allocator, signals_size(sched),
                                                    alignof(struct backtrace_signal));
        if (backtrace->signals == NULL) {
            return SKUA_E_NO_MEMORY;
        }
    }
    store_relaxed(&backtrace->state, IDLE); /* not shared yet */
    (void)sem_init(&backtrace->answered, 0, 0);
    return 0;
}

void backtrace_deinit(struct backtrace *backtrace, struct scheduler *sched)
{
    (void)sem_destroy(&backtrace->answered);
    if (backtrace->signals != NULL) {
        allocator_free(&sched->allocator, backtrace->signals, signals_size(sched),
                       alignof(struct backtrace_signal));
    }
}

/* ---- on the stuck thread ---- */

/* The frames of the handler come first; they are left out. */
static uint32_t collect(void **frames, const void *interrupted)
{
    const int found = backtrace(frames, BACKTRACE_MAX);
    const uint32_t count = found > 0 ? (uint32_t)found : 0;
    uint32_t first = 0;
    while (first < count && frames[first] != interrupted) {
        first++;
    }
    if (first == count) {
        return count;
    }
    memmove(frames, frames + first, (count - first) * sizeof *frames);
    return count - first;
}

static void answer(struct backtrace *backtrace, uint32_t worker, const void *interrupted)
{
    uint32_t asked = worker + 1;
    if (cas_acq_rel_relaxed(&backtrace->state, &asked, ANSWERING)) { /* MO-backtrace */
        backtrace->count = collect(backtrace->frames, interrupted);
        store_release(&backtrace->state, IDLE); /* MO-backtrace: the frames */
        (void)sem_post(&backtrace->answered);
    }
}

/* Async-signal-safe: backtrace() was called once before, so it loads and allocates nothing. */
static void handle(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    const int error = errno;
    struct worker *worker = worker_of_thread();
    struct backtrace *backtrace = worker != NULL ? worker->sched->monitor->backtrace : NULL;
    if (backtrace != NULL && backtrace->signals != NULL) {
        struct backtrace_signal *signal = &backtrace->signals[worker->index];
        answer(backtrace, worker->index, asleep_address(context));
        if (load_acquire(&signal->is_sent) != 0) { /* MO-backtrace */
            asleep_resume(&signal->asleep, context);
            store_release(&signal->is_sent, 0); /* MO-backtrace: it may be filled in again */
        }
    }
    errno = error;
}

/* ---- handlers ---- */

/* Signals belong to the whole program, so these do, too. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint32_t users;
    struct sigaction before;
} handlers[NSIG];

static int install_locked(int signal)
{
    /* Not on the stack of a task, which may be small. */
    struct sigaction action = {.sa_sigaction = handle,
                               .sa_flags = SA_RESTART | SA_SIGINFO | SA_ONSTACK};
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

/* ---- on the monitor's thread ---- */

static bool wait_for_answer(struct backtrace *backtrace, uint64_t deadline_ns)
{
    const struct timespec deadline = monotonic_timespec(deadline_ns);
    int result;
    do {
        result = sem_clockwait(&backtrace->answered, CLOCK_MONOTONIC, &deadline);
    } while (result != 0 && errno == EINTR);
    return result == 0;
}

/* False if the thread cannot be asked: an earlier signal has not arrived yet, or this one would do
 * harm. */
static bool send_signal(struct backtrace_signal *signal, struct worker *to, int number)
{
    if (load_acquire(&signal->is_sent) != 0) { /* MO-backtrace */
        return false;
    }
    asleep_look(&signal->asleep, (pid_t)load_relaxed(&to->thread_id)); /* a number */
    if (!asleep_can_be_interrupted(&signal->asleep)) {
        return false;
    }
    store_release(&signal->is_sent, 1); /* MO-backtrace: where it sleeps */
    if (pthread_kill(to->thread, number) != 0) {
        store_release(&signal->is_sent, 0); /* MO-backtrace */
        return false;
    }
    return true;
}

/* The frames of the step alone: those below it are the same for all. */
static uint32_t count_above_worker(void *const *frames, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const void *call = (const char *)frames[i] - 1; /* the address is that of a return */
        const void *function = _Unwind_FindEnclosingFunction((void *)(uintptr_t)call);
        if (function == (const void *)(uintptr_t)step_run ||
            function == (const void *)(uintptr_t)worker_main) {
            return i;
        }
    }
    return count;
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
    bool answered = send_signal(&backtrace->signals[worker->index], worker, signal) &&
                    wait_for_answer(backtrace, monotonic_ns() + ANSWER_TIMEOUT_NS);
    seen = asked;
    if (!answered && !cas_acq_rel_relaxed(&backtrace->state, &seen, IDLE)) { /* MO-backtrace */
        answered = wait_for_answer(backtrace, monotonic_ns() + ANSWER_TIMEOUT_NS);
    }
    /* MO-backtrace: sem_post and sem_clockwait order the frames, too, but not every tool knows. */
    answered = answered && load_acquire(&backtrace->state) == IDLE;
    return answered ? count_above_worker(backtrace->frames, backtrace->count) : 0;
}
