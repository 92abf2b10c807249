/* SPDX-License-Identifier: MIT */
#include "sched/worker.h"

#include <stdio.h>

#include "base/thread.h"
#include "sched/cpu_clock.h"
#include "sched/migrate.h"
#include "sched/monitor.h"
#include "sched/spare.h"

static _Thread_local struct worker *current;
static _Thread_local const struct scheduler *inside;

struct worker *worker_of_thread(void)
{
    return current;
}

struct worker *worker_here(const struct scheduler *sched)
{
    return current != NULL && current->sched == sched ? current : NULL;
}

void worker_set_current(struct worker *worker)
{
    current = worker;
}

const struct scheduler *worker_enter_callback(const struct scheduler *sched)
{
    const struct scheduler *before = inside;
    inside = sched;
    return before;
}

bool worker_is_in_callback(const struct scheduler *sched)
{
    return inside == sched || worker_here(sched) != NULL;
}

static void run(struct worker *worker)
{
    idle_end(worker);
    if (worker->sched->config.stall_signal != 0) {
        thread_unblock_signal(worker->sched->config.stall_signal);
    }
    for (;;) {
        if (worker->retires) {
            spare_rest_if_surplus(worker);
        }
        struct process *process = find_work(worker);
        if (process == NULL) {
            process = idle_find(worker);
        }
        if (process == NULL) {
            step_output_drain_reserve(&worker->out);          /* while it still counts as busy */
            store_seq_cst(&worker->running, RUNNING_NOTHING); /* MO-busy */
            break;
        }
        if (UNLIKELY(worker->sched->migrates) && migrate_is_due(worker, process)) {
            submit_outside(worker->sched, process);
            continue;
        }
        step_run(worker, process);
        spare_return(worker); /* also if a handler, a close or on_exit took too long */
    }
}

void *worker_main(void *arg)
{
    struct worker *worker = arg;
    struct monitor *monitor = worker->sched->monitor;
    worker_set_current(worker);
    if (monitor->worker_begins != NULL) {
        monitor->worker_begins(monitor);
    }
    cpu_clock_open(worker);
    step_output_fill_reserve(&worker->out);
    run(worker);
    cpu_clock_close(worker);
    if (monitor->worker_ends != NULL) {
        monitor->worker_ends(monitor);
    }
    return NULL;
}

int worker_start(struct worker *worker)
{
    char name[THREAD_NAME_SIZE];
    (void)snprintf(name, sizeof name, "skua-%u", worker->index);
    return thread_create(&worker->thread, name, worker_main, worker);
}
