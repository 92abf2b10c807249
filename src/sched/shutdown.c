/* SPDX-License-Identifier: MIT */
/* Stopping, in order:
 *  1. The phase becomes STOPPING: nothing new is admitted. An outside thread publishes a process
 *     only inside the gate, which stays shut from now on; stop waits until the gate is empty. A
 *     process that a worker is publishing at this moment may be missed by the scan of step 2 or 4:
 *     then whoever is about to run its first step sees the phase, and makes the request itself
 *     (spawn_catch_up).
 *  2. Every root, a process without a supervisor, is requested to cancel. Supervisors stop their
 *     own children, in their order.
 *  3. Wait until none is alive: a worker that runs out of work says so, and the count is read then.
 *  4. At the timeout the survivors are reported and requested to end; the workers end those that
 *     are not in a step at once.
 *  5. With no process left, and in time, what was written to sockets that are closed is waited for.
 *  6. `exiting` is set and the idle workers are joined.
 * Why nobody is forgotten in step 2: a process with a supervisor is linked to it before it can run
 * (children.h), and ends when that ends, in whatever way. Its supervisor is older than it is and
 * never changes, so the way from supervisor to supervisor leads to a root in finitely many steps,
 * or to one that has ended. A root is cancelled: by the scan, or, if it is being published
 * meanwhile, before its first step. If it ends, or anyone on the way has ended, the links end all
 * below; if it lives on, so may they, until step 4, which goes by the table and asks no
 * supervisor.
 * Whether a slot holds a root is read from `progress` after its word. If another process has moved
 * in by then, the request to the old one is refused, and the new one was published after step 1.
 * A step or close that does not return cannot be ended. If one is stuck (stuck.h) and nothing has
 * ended meanwhile in step 4, stop returns SKUA_E_STUCK and leaves the workers as they are; a later
 * stop continues to wait. */
#include "sched/shutdown.h"

#include <sched.h>

#include "base/monotonic.h"
#include "base/mutex.h"
#include "process/mailbox.h"
#include "sched/deliver.h"
#include "sched/monitor.h"
#include "sched/process_info.h"
#include "sched/socket_hooks.h"
#include "sched/spare.h"
#include "sched/stats.h"
#include "sched/stuck.h"
#include "sched/worker.h"

#define PATIENCE 2400 /* a minute */

bool shutdown_gate_enter(struct scheduler *sched)
{
    (void)fetch_add_seq_cst(&sched->gate, 1);                   /* MO-stop */
    if (LIKELY(load_seq_cst(&sched->phase) == PHASE_RUNNING)) { /* MO-stop */
        return true;
    }
    shutdown_gate_leave(sched);
    return false;
}

void shutdown_gate_leave(struct scheduler *sched)
{
    (void)fetch_sub_seq_cst(&sched->gate, 1); /* MO-stop */
}

static void wait_for_gate(struct scheduler *sched)
{
    while (load_seq_cst(&sched->gate) > 0) { /* MO-stop */
        (void)sched_yield();                 /* a few instructions, none of them the user's */
    }
}

void shutdown_worker_is_quiet(struct scheduler *sched)
{
    if (LIKELY(load_seq_cst(&sched->phase) == PHASE_RUNNING)) { /* MO-stop */
        return;
    }
    mutex_lock(&sched->quiet.lock);
    (void)pthread_cond_broadcast(&sched->quiet.changed);
    mutex_unlock(&sched->quiet.lock);
}

/* With no process left the workers run no user code, so they do exit, however slow the machine. */
static void let_workers_exit_locked(struct scheduler *sched)
{
    store_seq_cst(&sched->exiting, 1); /* MO-stop: pairs with the check before sleeping */
    idle_wake_all(sched);
    spare_wake_resting(sched);
}

static void join_workers_locked(struct scheduler *sched)
{
    const uint32_t threads = scheduler_threads(sched);
    for (uint32_t i = 0; i < threads; i++) {
        (void)pthread_join(sched->workers[i].thread, NULL);
    }
}

/* All are told before the first is joined: on a busy machine each takes a while to wake up. From
 * then on the monitor starts no worker: it does so under spare.lock, if `exiting` is not set, and
 * spare_wake_resting has had that lock since. */
static void end_threads_locked(struct scheduler *sched)
{
    let_workers_exit_locked(sched);
    sched->monitor->stop(sched->monitor);
    join_workers_locked(sched);
    sched->poller->close(sched->poller);
    sched->monitor->close(sched->monitor);
}

static int start_workers_locked(struct scheduler *sched)
{
    for (uint32_t i = 0; i < sched->worker_count; i++) {
        store_seq_cst(&sched->threads, i + 1); /* MO-spare: before it can hold anything */
        const int error = worker_start(&sched->workers[i]);
        if (error != 0) {
            store_seq_cst(&sched->threads, i); /* it held nothing */
            return error;
        }
    }
    return sched->monitor->start(sched->monitor);
}

static int start_threads_locked(struct scheduler *sched)
{
    const int error = start_workers_locked(sched);
    if (error != 0) {
        let_workers_exit_locked(sched);
        join_workers_locked(sched);
        store_seq_cst(&sched->threads, 0); /* so that start can be tried again */
        store_seq_cst(&sched->exiting, 0);
    }
    return error;
}

static int start_with_poller_locked(struct scheduler *sched)
{
    int error = sched->poller->open(sched->poller);
    if (error != 0) {
        return error;
    }
    error = start_threads_locked(sched);
    if (error != 0) {
        sched->poller->close(sched->poller);
    }
    return error;
}

static int start_with_monitor_locked(struct scheduler *sched)
{
    int error = sched->monitor->open(sched->monitor);
    if (error != 0) {
        return error;
    }
    error = start_with_poller_locked(sched);
    if (error != 0) {
        sched->monitor->close(sched->monitor);
    }
    return error;
}

int shutdown_refuse_start(struct scheduler *sched)
{
    const enum sched_phase phase = shutdown_phase(sched);
    if (phase == PHASE_CREATED) {
        return 0;
    }
    return phase == PHASE_RUNNING ? SKUA_E_STARTED : SKUA_E_STOPPED;
}

void shutdown_open_locked(struct scheduler *sched)
{
    registry_freeze_locked(sched->registry);
    store_seq_cst(&sched->phase, PHASE_RUNNING); /* MO-stop */
}

static int start_locked(struct scheduler *sched)
{
    const int refused = shutdown_refuse_start(sched);
    if (refused != 0) {
        return refused;
    }
    const int error = start_with_monitor_locked(sched);
    if (error == 0) {
        shutdown_open_locked(sched);
    }
    return error;
}

int shutdown_start(struct scheduler *sched)
{
    const int refused = shutdown_refuse_start(sched); /* without waiting for a stop in progress */
    if (refused != 0) {
        return refused;
    }
    mutex_lock(&sched->control);
    const int error = start_locked(sched);
    mutex_unlock(&sched->control);
    return error;
}

/* The process in a slot of the table, if it is alive. */
static bool live_pid(struct scheduler *sched, uint32_t slot, skua_pid *pid)
{
    struct process *process = object_pool_at(&sched->table.pool, slot);
    const uint32_t tag = event_list_tag(load_acquire(&process->word)); /* MO-inspect */
    if (!state_is_live(tag)) {
        return false;
    }
    *pid = process_table_pid(&sched->table, process, state_generation(tag));
    return true;
}

/* Whether a process that was seen alive has no supervisor. */
static bool is_root(struct scheduler *sched, uint32_t slot)
{
    struct process *process = object_pool_at(&sched->table.pool, slot);
    return (load_acquire(&process->progress) & PROCESS_SUPERVISED) == 0; /* MO-inspect */
}

static void cancel_roots_locked(struct scheduler *sched)
{
    skua_pid pid;
    scheduler_see_spawned(sched);
    for (uint32_t slot = 1; object_pool_holds(&sched->table.pool, slot); slot++) {
        if (live_pid(sched, slot, &pid) && is_root(sched, slot)) {
            (void)deliver_request(sched, NULL, pid, STATE_CANCEL); /* gone meanwhile: fine */
        }
    }
}

void shutdown_ask_locked(struct scheduler *sched)
{
    store_seq_cst(&sched->phase, PHASE_STOPPING); /* MO-stop: before the scan */
    wait_for_gate(sched);
    cancel_roots_locked(sched);
}

static void name_survivor_locked(struct scheduler *sched, skua_process_snapshot *info)
{
    char path[LINEAGE_PATH_SIZE];
    struct lineage_view view;
    if (lineage_read_any(&sched->lineage, info->pid, &view)) {
        lineage_path_any(&sched->lineage, info->pid, path);
        info->path = path;
    }
    sched->config.on_survivor(sched->config.on_survivor_arg, info);
}

/* All are named before the first is ended: children end with their supervisors, and a path has
 * the names of those. */
static bool name_survivors_locked(struct scheduler *sched)
{
    bool any = false;
    skua_pid pid;
    skua_process_snapshot info;
    for (uint32_t slot = 1; object_pool_holds(&sched->table.pool, slot); slot++) {
        if (live_pid(sched, slot, &pid) && process_info_read(sched, pid, &info) == 0) {
            any = true;
            name_survivor_locked(sched, &info);
        }
    }
    return any;
}

static bool end_survivors_locked(struct scheduler *sched)
{
    scheduler_see_spawned(sched);
    bool any = sched->config.on_survivor != NULL && name_survivors_locked(sched);
    skua_pid pid;
    for (uint32_t slot = 1; object_pool_holds(&sched->table.pool, slot); slot++) {
        if (live_pid(sched, slot, &pid)) {
            any = true;
            (void)deliver_request(sched, NULL, pid, STATE_KILL); /* gone meanwhile: fine */
        }
    }
    return any;
}

bool shutdown_end_survivors_locked(struct scheduler *sched)
{
    store_seq_cst(&sched->phase, PHASE_ENDING); /* MO-stop: before the scan */
    return end_survivors_locked(sched);
}

/* Waits until no process is alive; false if the deadline comes first. */
static bool wait_until_empty(struct scheduler *sched, uint64_t deadline_ns)
{
    mutex_lock(&sched->quiet.lock);
    bool in_time = true;
    while (stats_left(sched) > 0 && in_time) {
        in_time = condition_wait_until(&sched->quiet.changed, &sched->quiet.lock, deadline_ns);
    }
    const bool empty = stats_left(sched) == 0;
    mutex_unlock(&sched->quiet.lock);
    return empty;
}

/* Waits until nothing is left to be written to sockets that their processes have closed, or the
 * deadline comes. */
static void wait_for_sockets(struct scheduler *sched, uint64_t deadline_ns)
{
    mutex_lock(&sched->quiet.lock);
    bool in_time = true;
    while (socket_hooks_linger(sched->sockets) && in_time) {
        in_time = condition_wait_until(&sched->quiet.changed, &sched->quiet.lock, deadline_ns);
    }
    mutex_unlock(&sched->quiet.lock);
}

/* Waits for processes that were told to end; true if all did. Gives up when a worker is stuck and
 * none has ended meanwhile. Otherwise the machine is just slow, and gets PATIENCE samples. */
static bool wait_while_ending_locked(struct scheduler *sched)
{
    stuck_begin_locked(sched);
    for (uint32_t quiet = 1; quiet <= PATIENCE; quiet++) {
        const uint64_t before = stats_left(sched);
        if (wait_until_empty(sched, monotonic_deadline(STUCK_SAMPLE_NS))) {
            return true;
        }
        const bool stuck = stuck_sample_locked(sched);
        if (stats_left(sched) < before) {
            quiet = 0;
        } else if (stuck) {
            return false;
        }
    }
    return false;
}

static int stop_running_locked(struct scheduler *sched, uint64_t timeout_ns)
{
    const uint64_t deadline = monotonic_deadline(timeout_ns);
    shutdown_ask_locked(sched);
    idle_wake_all(sched); /* so that every worker finds nothing and says so */
    if (wait_until_empty(sched, deadline)) {
        wait_for_sockets(sched, deadline);
        return 0;
    }
    /* If there are none, only on_exit was not over. */
    const int late = shutdown_end_survivors_locked(sched) ? SKUA_E_TIMEOUT : 0;
    return wait_while_ending_locked(sched) ? late : SKUA_E_STUCK;
}

/* After an earlier stop found a step stuck. */
static int stop_again_locked(struct scheduler *sched, uint64_t timeout_ns)
{
    return wait_until_empty(sched, monotonic_deadline(timeout_ns)) ? SKUA_E_TIMEOUT : SKUA_E_STUCK;
}

static int stop_locked(struct scheduler *sched, uint64_t timeout_ns)
{
    int result = 0;
    switch (shutdown_phase(sched)) {
    case PHASE_CREATED:
        return SKUA_E_NOT_STARTED;
    case PHASE_RUNNING:
        result = stop_running_locked(sched, timeout_ns);
        break;
    case PHASE_STOPPING:
    case PHASE_ENDING:
        result = stop_again_locked(sched, timeout_ns);
        break;
    case PHASE_STOPPED:
        return 0;
    }
    if (result == SKUA_E_STUCK) {
        return result;
    }
    end_threads_locked(sched);
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
    const enum sched_phase phase = shutdown_phase(sched);
    return phase == PHASE_CREATED || phase == PHASE_STOPPED;
}
