/* SPDX-License-Identifier: MIT */
#include "sched/scheduler.h"
#include "sched/stack_use.h"

#include <stdalign.h>

#include "base/mutex.h"
#include "base/random.h"
#include "sched/chores.h"
#include "sched/context.h"
#include "sched/held_back.h"
#include "sched/log.h"
#include "sched/upgrade.h"
#include "sched/worker.h"

static uint32_t spares_of(const skua_runtime_config *config)
{
    return config->spare_limit != SKUA_SPARES_NONE ? config->spare_limit : 0;
}

static size_t victims_size(const struct scheduler *sched)
{
    return sched->capacity * sizeof(uint64_t);
}

/* False if there is no memory; deinit_workers frees what there is. */
static bool init_worker(struct scheduler *sched, struct worker *worker, uint32_t index)
{
    worker->sched = sched;
    worker->index = index;
    worker->picks_granted = 1;
    cheap_clock_init(&worker->clock);
    worker->random = random_mix(sched->config.seed + index);
    worker->retires = index >= sched->worker_count;
    worker->events_max = SKUA_EVENTS_PER_STEP;
    worker->turns_max = STEP_TURNS_MAX;
    worker->last_steal.min_ns_each = STEAL_WORTH_NS;
    context_init(worker);
    deque_init(&worker->deque);
    worker->out = (struct step_output){
        .allocator = &sched->allocator,
        .events = &sched->events,
        .event_cache = &worker->caches.events,
        .payload_limit = sched->config.payload_limit,
    };
    worker->victim_steps =
        allocator_alloc_zeroed(&sched->allocator, victims_size(sched), alignof(uint64_t));
    return worker->victim_steps != NULL && step_output_init(&worker->out);
}

static size_t workers_size(const struct scheduler *sched)
{
    return sched->capacity * sizeof(struct worker);
}

static void deinit_workers(struct scheduler *sched, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct worker *worker = &sched->workers[i];
        step_output_deinit(&worker->out);
        allocator_free(&sched->allocator, worker->victim_steps, victims_size(sched),
                       alignof(uint64_t));
    }
    allocator_free(&sched->allocator, sched->workers, workers_size(sched), CACHE_LINE);
}

static bool init_workers(struct scheduler *sched)
{
    sched->workers = allocator_alloc_zeroed(&sched->allocator, workers_size(sched), CACHE_LINE);
    if (sched->workers == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < sched->capacity; i++) {
        if (!init_worker(sched, &sched->workers[i], i)) {
            deinit_workers(sched, i + 1);
            return false;
        }
    }
    return true;
}

static void init_locks(struct scheduler *sched)
{
    mutex_init(&sched->outside.lock);
    mutex_init(&sched->exit_waiters.lock);
    condition_init(&sched->exit_waiters.changed);
    mutex_init(&sched->control);
    mutex_init(&sched->descriptions.lock);
    condition_init(&sched->descriptions.changed);
    mutex_init(&sched->quiet.lock);
    condition_init(&sched->quiet.changed);
    mutex_init(&sched->spare.lock);
    log_init(&sched->log);
    lineage_init(&sched->lineage);
    quotas_init(&sched->quotas, &sched->allocator);
}

static void deinit_locks(struct scheduler *sched)
{
    mutex_deinit(&sched->outside.lock);
    mutex_deinit(&sched->exit_waiters.lock);
    (void)pthread_cond_destroy(&sched->exit_waiters.changed);
    mutex_deinit(&sched->control);
    mutex_deinit(&sched->descriptions.lock);
    (void)pthread_cond_destroy(&sched->descriptions.changed);
    mutex_deinit(&sched->quiet.lock);
    (void)pthread_cond_destroy(&sched->quiet.changed);
    mutex_deinit(&sched->spare.lock);
    log_deinit(&sched->log);
    lineage_deinit(&sched->lineage);
    quotas_deinit(&sched->quotas);
}

int scheduler_init(struct scheduler *sched, const skua_runtime_config *config, uint32_t runtime_id,
                   struct registry *registry, struct time_source *time, struct poller *poller,
                   struct monitor *monitor)
{
    sched->config = *config;
    sched->allocator = (struct allocator){config->alloc, config->alloc_arg};
    sched->registry = registry;
    sched->time = time;
    sched->poller = poller;
    sched->monitor = monitor;
    sched->worker_count = config->worker_count;
    sched->capacity = config->worker_count + spares_of(config);
    sched->context_flags = context_flags(config);
    account_init(&sched->account, config->sim != NULL ? time : NULL);
    tracer_init(&sched->tracer, &sched->allocator, sched->capacity);
    const uint32_t cache_count = sched->worker_count + 1; /* and the outside; spare ones are rare */
    if (!process_table_init(&sched->table, &sched->allocator, runtime_id, config->process_limit,
                            cache_count)) {
        return SKUA_E_NO_MEMORY;
    }
    if (!event_pool_init(&sched->events, &sched->allocator, cache_count)) {
        goto fail_events;
    }
    if (!deadlines_init(&sched->deadlines, &sched->allocator, &sched->events, sched->capacity)) {
        goto fail_deadlines;
    }
    if (!init_workers(sched)) {
        goto fail_workers;
    }
    names_init(&sched->names, &sched->allocator, &sched->events, config->name_limit, config->seed);
    groups_init(&sched->groups, &sched->allocator, &sched->events, config->group_limit,
                config->seed);
    stacks_init(&sched->stacks, &stack_memory_of_system, config->stack_limit);
    for (uint32_t i = 0; i < sched->capacity; i++) {
        stacks_init_cache(&sched->stacks, &sched->workers[i].stacks, cache_count);
    }
    stack_use_init(sched);
    global_queue_init(&sched->global);
    global_queue_init(&sched->behind);
    parking_init(&sched->parking, sched->capacity, sched->worker_count);
    chores_init(sched);
    held_back_init(sched);
    init_locks(sched);
    return 0;

fail_workers:
    deadlines_deinit(&sched->deadlines);
fail_deadlines:
    object_pool_deinit(&sched->events);
fail_events:
    process_table_deinit(&sched->table);
    return SKUA_E_NO_MEMORY;
}

void scheduler_deinit(struct scheduler *sched)
{
    tracer_deinit(&sched->tracer);
    deinit_locks(sched);
    held_back_deinit(sched);
    global_queue_deinit(&sched->behind);
    global_queue_deinit(&sched->global);
    deinit_workers(sched, sched->capacity);
    (void)!names_take_all_waiters_any(&sched->names); /* their memory goes with the pool */
    names_deinit(&sched->names);
    groups_deinit(&sched->groups);
    upgrade_deinit(sched);
    stack_use_deinit(sched);
    stacks_deinit(&sched->stacks);
    deadlines_deinit(&sched->deadlines);
    object_pool_deinit(&sched->events);
    process_table_deinit(&sched->table);
}
