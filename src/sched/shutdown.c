/* SPDX-License-Identifier: MIT */
/* Stopping, in order:
 *  1. the phase becomes STOPPING: nothing new is admitted (spawn.c checks after publishing, so
 *     that a process which slips in is asked to cancel by its own spawner);
 *  2. every process gets the request to cancel;
 *  3. wait until none is alive: a worker that runs out of work says so, and then the count is read;
 *  4. at the timeout the survivors are named and get the request to end; those that are not in a
 *     step are ended by the workers at once;
 *  5. `exiting` is set: workers exit as soon as they find nothing to do; they are joined.
 * A step that never returns keeps its thread. Steps 4 and 5 give such threads STUCK_GRACE each,
 * then stop returns SKUA_E_STUCK; a later stop goes on with step 5. */
#include "sched/shutdown.h"

#include <signal.h>
#include <stdio.h>

#include "base/monotonic.h"
#include "base/mutex.h"
#include "process/mailbox.h"
#include "sched/deliver.h"
#include "sched/inspect.h"
#include "sched/worker.h"

#define STUCK_GRACE_NS UINT64_C(50000000)

void shutdown_worker_is_quiet(struct scheduler *sched)
{
    if (LIKELY(load_seq_cst(&sched->phase) == PHASE_RUNNING)) { /* MO-stop */
        return;
    }
    mutex_lock(&sched->quiet.lock);
    (void)pthread_cond_broadcast(&sched->quiet.changed);
    mutex_unlock(&sched->quiet.lock);
}

void shutdown_worker_exits(struct scheduler *sched)
{
    mutex_lock(&sched->quiet.lock);
    sched->quiet.exited++;
    (void)pthread_cond_broadcast(&sched->quiet.changed);
    mutex_unlock(&sched->quiet.lock);
}

/* Lets the workers exit and joins those that do so by the deadline; true if all did. */
static bool join_workers(struct scheduler *sched, uint64_t deadline_ns)
{
    store_seq_cst(&sched->exiting, 1); /* MO-stop: pairs with the check before sleeping */
    idle_wake_all(sched);
    mutex_lock(&sched->quiet.lock);
    bool in_time = true;
    while (sched->quiet.exited < sched->started && in_time) {
        in_time = condition_wait_until(&sched->quiet.changed, &sched->quiet.lock, deadline_ns);
    }
    const bool all = sched->quiet.exited == sched->started;
    mutex_unlock(&sched->quiet.lock);
    if (!all) {
        return false;
    }
    for (uint32_t i = 0; i < sched->started; i++) {
        (void)pthread_join(sched->workers[i].thread, NULL);
    }
    sched->started = 0;
    return true;
}

static int create_threads(struct scheduler *sched)
{
    for (uint32_t i = 0; i < sched->worker_count; i++) {
        struct worker *worker = &sched->workers[i];
        if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0) {
            return SKUA_E_THREAD;
        }
        char name[16]; /* what the kernel keeps */
        (void)snprintf(name, sizeof name, "skua-%u", i);
        (void)pthread_setname_np(worker->thread, name);
        sched->started++;
    }
    return 0;
}

/* Workers take no signals: the handlers of the program run on its own threads. */
static int create_threads_without_signals(struct scheduler *sched)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = create_threads(sched);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static int start_locked(struct scheduler *sched)
{
    switch ((enum sched_phase)load_acquire(&sched->phase)) { /* written under control */
    case PHASE_CREATED:
        break;
    case PHASE_RUNNING:
        return SKUA_E_STARTED;
    case PHASE_STOPPING:
    case PHASE_STOPPED:
        return SKUA_E_STOPPED;
    }
    const int error = create_threads_without_signals(sched);
    if (error != 0) {
        (void)join_workers(sched, UINT64_MAX); /* they have nothing to do, so they exit */
        sched->quiet.exited = 0;
        store_seq_cst(&sched->exiting, 0); /* so that start can be tried again */
        return error;
    }
    registry_freeze(sched->registry);
    store_seq_cst(&sched->phase, PHASE_RUNNING); /* MO-stop */
    return 0;
}

int shutdown_start(struct scheduler *sched)
{
    mutex_lock(&sched->control);
    const int error = start_locked(sched);
    mutex_unlock(&sched->control);
    return error;
}

/* The process in a slot of the table, if it is alive. */
static bool live_pid(struct scheduler *sched, uint32_t slot, skua_pid *pid)
{
    struct process *process = object_pool_at(&sched->table.pool, slot);
    const uint32_t tag = event_list_tag(load_seq_cst(&process->word)); /* MO-stop */
    *pid = process_table_pid(&sched->table, process, state_generation(tag));
    return state_is_live(tag);
}

static void cancel_all(struct scheduler *sched)
{
    skua_pid pid;
    for (uint32_t slot = 1; object_pool_holds(&sched->table.pool, slot); slot++) {
        if (live_pid(sched, slot, &pid)) {
            (void)deliver_request(sched, NULL, pid, STATE_CANCEL); /* gone meanwhile: fine */
        }
    }
}

static void end_survivors(struct scheduler *sched)
{
    skua_pid pid;
    skua_process_info info;
    for (uint32_t slot = 1; object_pool_holds(&sched->table.pool, slot); slot++) {
        if (!live_pid(sched, slot, &pid) || inspect_process(sched, pid, &info) != 0) {
            continue;
        }
        if (sched->config.on_survivor != NULL) {
            sched->config.on_survivor(sched->config.on_survivor_arg, &info);
        }
        (void)deliver_request(sched, NULL, pid, STATE_KILL); /* gone meanwhile: fine */
    }
}

/* Waits until no process is alive; false if the deadline comes first. */
static bool wait_until_empty(struct scheduler *sched, uint64_t deadline_ns)
{
    mutex_lock(&sched->quiet.lock);
    bool in_time = true;
    while (stats_live(sched) > 0 && in_time) {
        in_time = condition_wait_until(&sched->quiet.changed, &sched->quiet.lock, deadline_ns);
    }
    const bool empty = stats_live(sched) == 0;
    mutex_unlock(&sched->quiet.lock);
    return empty;
}

/* Waits for the end of processes that have been told to end, as long as some do. */
static void wait_while_ending(struct scheduler *sched)
{
    uint64_t before;
    do {
        before = stats_live(sched);
    } while (!wait_until_empty(sched, monotonic_deadline(STUCK_GRACE_NS)) &&
             stats_live(sched) < before);
}

static int stop_running(struct scheduler *sched, uint64_t timeout_ns)
{
    const uint64_t deadline = monotonic_deadline(timeout_ns);
    store_seq_cst(&sched->phase, PHASE_STOPPING); /* MO-stop: before the scan */
    cancel_all(sched);
    idle_wake_all(sched); /* so that every worker, finding nothing, says so */
    if (wait_until_empty(sched, deadline)) {
        return 0;
    }
    end_survivors(sched);
    wait_while_ending(sched);
    return SKUA_E_TIMEOUT;
}

static int stop_locked(struct scheduler *sched, uint64_t timeout_ns)
{
    int result = 0;
    uint64_t grace = STUCK_GRACE_NS;
    switch ((enum sched_phase)load_acquire(&sched->phase)) { /* written under control */
    case PHASE_CREATED:
        return SKUA_E_NOT_STARTED;
    case PHASE_RUNNING:
        result = stop_running(sched, timeout_ns);
        break;
    case PHASE_STOPPING: /* an earlier stop found a thread stuck */
        result = SKUA_E_TIMEOUT;
        grace = timeout_ns;
        break;
    case PHASE_STOPPED:
        return 0;
    }
    if (!join_workers(sched, monotonic_deadline(grace))) {
        return SKUA_E_STUCK;
    }
    store_seq_cst(&sched->phase, PHASE_STOPPED);
    return result;
}

int shutdown_stop(struct scheduler *sched, uint64_t timeout_ns)
{
    mutex_lock(&sched->control);
    const int result = stop_locked(sched, timeout_ns);
    mutex_unlock(&sched->control);
    return result;
}

bool shutdown_is_complete(struct scheduler *sched)
{
    mutex_lock(&sched->control);
    const bool complete = sched->started == 0;
    mutex_unlock(&sched->control);
    return complete;
}
