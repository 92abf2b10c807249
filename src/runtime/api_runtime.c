/* SPDX-License-Identifier: MIT */
/* The functions of skua/runtime.h and skua/stats.h. */
#include <sched.h>
#include <skua/stats.h>
#include <stdalign.h>

#include "base/monotonic.h"
#include "base/mutex.h"
#include "base/sized.h"
#include "clock/clock.h"
#include "runtime/caller.h"
#include "runtime/runtime.h"
#include "sched/log.h"
#include "sched/relate.h"
#include "sched/shutdown.h"
#include "sched/stats.h"
#include "sched/upgrade.h"
#include "sched/worker.h"
#include "watch/audit.h"

#define BLOCKING_GRACE_NS UINT64_C(100000000)

/* The number in a runtime's PIDs. The only state outside a runtime, since it tells runtimes
 * apart. */
static uint32_t next_runtime_id(void)
{
    static atomic_u32 count;
    return fetch_add_relaxed(&count, 1) % (PID_RUNTIME_MAX - 1) + 1; /* counter */
}

/* Simulated runtimes share a number, so that their PIDs are the same in every run. */
#define SIMULATED_RUNTIME_ID PID_RUNTIME_MAX

static void attach_services(skua_runtime *runtime)
{
    relate_attach(&runtime->sched);
    upgrade_attach(&runtime->sched);
    clock_attach(&runtime->sched);
    blocking_attach(&runtime->blocking);
    sockets_attach(&runtime->sockets);
    if (runtime->sim != NULL) {
        sim_attach(runtime->sim, &runtime->blocking, &runtime->sockets);
    } else {
        net_attach(&runtime->net);
    }
}

static void free_sim(skua_runtime *runtime, const struct allocator *allocator)
{
    if (runtime->sim != NULL) {
        sim_deinit(runtime->sim);
        allocator_free(allocator, runtime->sim, sizeof *runtime->sim, alignof(struct sim));
    }
}

static void deinit(skua_runtime *runtime, const struct allocator *allocator)
{
    blocking_deinit(&runtime->blocking);
    sockets_deinit(&runtime->sockets);
    kernel_deinit(&runtime->kernel);
    net_deinit(&runtime->net);
    registry_deinit(&runtime->registry);
    audit_now(&runtime->sched, &(struct audit_moment){.is_at_rest = true, .is_at_end = true});
    monitor_thread_deinit(&runtime->monitor);
    scheduler_deinit(&runtime->sched);
    free_sim(runtime, allocator); /* last: all other memory came through it */
}

static int init_parts(skua_runtime *runtime, const skua_runtime_config *config, uint32_t id,
                      struct time_source *time, struct poller *poller)
{
    struct scheduler *sched = &runtime->sched;
    int error = scheduler_init(sched, config, id, &runtime->registry, time, poller,
                               &runtime->monitor.monitor);
    if (error != 0) {
        return error;
    }
    error = monitor_thread_init(&runtime->monitor, sched);
    if (error != 0) {
        scheduler_deinit(sched);
        return error;
    }
    registry_init(&runtime->registry, &sched->allocator);
    net_init(&runtime->net, sched, &runtime->sockets);
    kernel_init(&runtime->kernel, &runtime->net);
    sockets_init(&runtime->sockets, sched, &runtime->kernel.transport);
    blocking_init(&runtime->blocking, sched);
    return 0;
}

/* Creates the simulation, and points the configuration's allocator at it. */
static int create_sim(skua_runtime *runtime, const struct allocator *allocator,
                      skua_runtime_config *config)
{
    struct sim *sim = allocator_alloc(allocator, sizeof *sim, alignof(struct sim));
    if (sim == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    const int error = sim_init(sim, config->sim, config->seed, &runtime->sched, *allocator);
    if (error != 0) {
        allocator_free(allocator, sim, sizeof *sim, alignof(struct sim));
        return error;
    }
    const struct allocator inner = sim_allocator(sim);
    config->worker_count = 1;
    config->spare_limit = SKUA_SPARES_NONE;
    config->sim = &sim->config;
    config->alloc = inner.function;
    config->alloc_arg = inner.arg;
    runtime->sim = sim;
    return 0;
}

static int init(skua_runtime *runtime, const skua_runtime_config *config, struct time_source *time,
                struct poller *poller)
{
    const struct allocator allocator = {config->alloc, config->alloc_arg};
    skua_runtime_config adapted = *config;
    int error = config->sim != NULL ? create_sim(runtime, &allocator, &adapted) : 0;
    if (error != 0) {
        return error;
    }
    inspection_init(&runtime->inspection, &adapted);
    clock_init_monotonic(&runtime->time);
    struct time_source *own = runtime->sim != NULL ? &runtime->sim->time : &runtime->time;
    runtime->sched.runtime = runtime;
    error = init_parts(runtime, &adapted,
                       runtime->sim != NULL ? SIMULATED_RUNTIME_ID : next_runtime_id(),
                       time != NULL ? time : own, poller != NULL ? poller : &runtime->net.poller);
    if (error != 0) {
        free_sim(runtime, &allocator);
        return error;
    }
    runtime->sched.config.alloc = config->alloc; /* what the program passed in */
    runtime->sched.config.alloc_arg = config->alloc_arg;
    attach_services(runtime);
    return 0;
}

int runtime_create(skua_runtime **runtime, const skua_runtime_config *config,
                   struct time_source *time, struct poller *poller)
{
    skua_runtime_config resolved;
    const int refused = runtime != NULL ? config_resolve(config, &resolved) : SKUA_E_INVALID;
    if (refused != 0) {
        return refused;
    }
    const struct allocator allocator = {resolved.alloc, resolved.alloc_arg};
    skua_runtime *created = allocator_alloc_zeroed(&allocator, sizeof *created, CACHE_LINE);
    if (created == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    const int error = init(created, &resolved, time, poller);
    if (error != 0) {
        allocator_free(&allocator, created, sizeof *created, CACHE_LINE);
        return error;
    }
    *runtime = created;
    return 0;
}

int skua_runtime_create_sized(skua_runtime **runtime, const skua_runtime_config *config,
                              size_t config_size)
{
    skua_runtime_config own;
    if (config == NULL) {
        return runtime_create(runtime, NULL, NULL, NULL);
    }
    if (!sized_read(&own, sizeof own, config, config_size)) {
        return SKUA_E_INVALID;
    }
    return runtime_create(runtime, &own, NULL, NULL);
}

int skua_runtime_config_read_sized(const skua_runtime *runtime, skua_runtime_config *config,
                                   size_t config_size)
{
    if (runtime == NULL || config == NULL) {
        return SKUA_E_INVALID;
    }
    skua_runtime_config own = runtime->sched.config;
    own.on_stall = runtime->inspection.on_stall.on_stall; /* what the program passed in */
    own.on_stall_arg = runtime->inspection.on_stall.arg;
    sized_write(config, config_size, &own, sizeof own);
    return 0;
}

int skua_runtime_start(skua_runtime *runtime)
{
    if (runtime == NULL) {
        return SKUA_E_INVALID;
    }
    return runtime->sim != NULL ? sim_start(runtime->sim)
                                : inspection_start(&runtime->inspection, &runtime->sched);
}

/* With no process left, nobody wants the results of blocking calls. A function that has not
 * returned, or that a process has left behind with its last step, gets the rest of the timeout, and
 * at least a moment.
 * Returns `result`, or that of the first of several stops, or SKUA_E_STUCK. */
static int stop_blocking(skua_runtime *runtime, uint64_t deadline, int result)
{
    const uint64_t least = monotonic_ns() + BLOCKING_GRACE_NS;
    mutex_lock(&runtime->sched.control); /* one stop at a time, as in the scheduler */
    if (result != 0) {
        runtime->stopped_with = result;
    }
    result = runtime->stopped_with;
    if (load_relaxed(&runtime->blocking_stopped) != 0) { /* written under the lock */
        result = 0;
    } else if (blocking_stop_locked(&runtime->blocking, deadline > least ? deadline : least)) {
        store_release(&runtime->blocking_stopped, 1); /* MO-stop */
    } else {
        result = SKUA_E_STUCK;
    }
    mutex_unlock(&runtime->sched.control);
    return result;
}

int skua_runtime_stop(skua_runtime *runtime, uint64_t timeout_ns)
{
    if (runtime == NULL) {
        return SKUA_E_INVALID;
    }
    if (timeout_ns > SKUA_DURATION_MAX && timeout_ns != SKUA_FOREVER) {
        return SKUA_E_DURATION;
    }
    if (worker_is_in_callback(&runtime->sched)) {
        return SKUA_E_INSIDE_STEP;
    }
    const uint64_t deadline = monotonic_deadline(timeout_ns);
    const int result = runtime->sim != NULL ? sim_stop(runtime->sim, timeout_ns)
                                            : shutdown_stop(&runtime->sched, timeout_ns);
    if (!shutdown_is_complete(&runtime->sched) || result == SKUA_E_NOT_STARTED) {
        return result;
    }
    /* Counted as a caller: once the blocking pools have stopped, another thread may destroy the
     * runtime. */
    struct worker *worker = caller_enter(runtime);
    log_tell_dropped(&runtime->sched, true);
    const int outcome = stop_blocking(runtime, deadline, result);
    if (outcome != SKUA_E_STUCK) {
        inspection_end(&runtime->inspection, &runtime->sched);
    }
    caller_leave(runtime, worker);
    return outcome;
}

void caller_wait_for_all(skua_runtime *runtime)
{
    /* Waiters twice: a caller may pause between the two loads, and then counts as a waiter
     * first. */
    while (load_seq_cst(&runtime->waiters) > 0 || load_seq_cst(&runtime->sched.callers) > 0 ||
           load_seq_cst(&runtime->waiters) > 0) { /* MO-caller */
        (void)sched_yield();                      /* they are about to return */
    }
}

static bool has_no_threads(skua_runtime *runtime)
{
    return shutdown_phase(&runtime->sched) == PHASE_CREATED ||
           (shutdown_is_complete(&runtime->sched) &&
            load_acquire(&runtime->blocking_stopped) != 0); /* MO-stop */
}

int skua_runtime_destroy(skua_runtime *runtime)
{
    if (runtime == NULL) {
        return 0;
    }
    if (worker_is_in_callback(&runtime->sched) || !has_no_threads(runtime)) {
        return SKUA_E_BUSY;
    }
    caller_wait_for_all(runtime);
    inspection_deinit(&runtime->inspection);
    const skua_runtime_config *config = &runtime->sched.config;
    const struct allocator allocator = {config->alloc, config->alloc_arg};
    deinit(runtime, &allocator);
    allocator_free(&allocator, runtime, sizeof *runtime, CACHE_LINE);
    return 0;
}

int skua_stats_read_sized(skua_runtime *runtime, skua_stats *total, skua_stats *workers,
                          size_t capacity, size_t stride)
{
    if (runtime == NULL || (workers == NULL && capacity > 0)) {
        return SKUA_E_INVALID;
    }
    const struct worker *worker = caller_look(runtime);
    struct scheduler *sched = &runtime->sched;
    const uint32_t count = stats_worker_count(sched);
    skua_stats own;

    stats_update_cpu(sched);
    for (uint32_t i = 0; i < count && i < capacity; i++) {
        counters_read(&sched->workers[i].stats, &own);
        sized_write((char *)workers + i * stride, stride, &own, sizeof own);
    }
    if (total != NULL) {
        stats_read_total(sched, &own);
        sized_write(total, stride, &own, sizeof own);
    }
    caller_look_away(runtime, worker);
    return (int)count;
}
