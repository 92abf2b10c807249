/* SPDX-License-Identifier: MIT */
/* The functions of skua/runtime.h and skua/stats.h. */
#include <sched.h>
#include <skua/stats.h>

#include "runtime/runtime.h"
#include "runtime/visit.h"
#include "sched/shutdown.h"
#include "sched/worker.h"

/* Marks the PIDs of a runtime. The only state outside a runtime: it is what tells runtimes apart.
 * */
static uint32_t next_runtime_id(void)
{
    static atomic_u32 count;
    return fetch_add_relaxed(&count, 1) % PID_RUNTIME_MAX + 1; /* counter */
}

int skua_runtime_create(skua_runtime **runtime, const skua_runtime_config *config)
{
    skua_runtime_config resolved;
    if (runtime == NULL || config_resolve(config, &resolved) != 0) {
        return SKUA_E_INVALID;
    }
    const struct allocator allocator = {resolved.alloc, resolved.alloc_arg};
    skua_runtime *created = alloc_take_zeroed(&allocator, sizeof *created, CACHE_LINE);
    if (created == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    created->sched.runtime = created;
    futex_driver_init(&created->driver);
    const int error = scheduler_init(&created->sched, &resolved, next_runtime_id(),
                                     &created->registry, &created->driver.driver);
    if (error != 0) {
        alloc_give(&allocator, created, sizeof *created, CACHE_LINE);
        return error;
    }
    registry_init(&created->registry, &created->sched.allocator);
    *runtime = created;
    return 0;
}

int skua_runtime_config_read(const skua_runtime *runtime, skua_runtime_config *config)
{
    if (runtime == NULL || config == NULL) {
        return SKUA_E_INVALID;
    }
    *config = runtime->sched.config;
    return 0;
}

int skua_runtime_start(skua_runtime *runtime)
{
    return runtime != NULL ? shutdown_start(&runtime->sched) : SKUA_E_INVALID;
}

int skua_runtime_stop(skua_runtime *runtime, uint64_t timeout_ns)
{
    if (runtime == NULL) {
        return SKUA_E_INVALID;
    }
    if (worker_here(&runtime->sched) != NULL) {
        return SKUA_E_INSIDE_STEP;
    }
    return shutdown_stop(&runtime->sched, timeout_ns);
}

void visit_wait(skua_runtime *runtime)
{
    while (load_seq_cst(&runtime->visitors) > 0) { /* MO-visit */
        (void)sched_yield();                       /* they are on their way out */
    }
}

int skua_runtime_destroy(skua_runtime *runtime)
{
    if (runtime == NULL) {
        return 0;
    }
    if (worker_here(&runtime->sched) != NULL || !shutdown_is_complete(&runtime->sched)) {
        return SKUA_E_BUSY;
    }
    visit_wait(runtime);
    const struct allocator allocator = runtime->sched.allocator;
    registry_deinit(&runtime->registry);
    scheduler_deinit(&runtime->sched);
    alloc_give(&allocator, runtime, sizeof *runtime, CACHE_LINE);
    return 0;
}

int skua_stats_read(skua_runtime *runtime, skua_stats *total, skua_stats *workers, size_t capacity)
{
    if (runtime == NULL || (workers == NULL && capacity > 0)) {
        return SKUA_E_INVALID;
    }
    struct scheduler *sched = &runtime->sched;
    for (uint32_t i = 0; i < sched->worker_count && i < capacity; i++) {
        stats_read(&sched->workers[i].stats, &workers[i]);
    }
    if (total != NULL) {
        stats_read_total(sched, total);
    }
    return (int)sched->worker_count;
}
