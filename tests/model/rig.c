/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

#include "explore.h"
#include "sched/checkpoint.h"
#include "sched/cpu_clock.h"
#include "sched/worker.h"

#define SEGMENTS   3 /* one of processes, one of events, one of sockets */
#define CACHES     (RIG_WORKERS_MAX + 1)
#define BATCH      8
#define TURNS_MAX  4
#define SMALL_SIZE (128 << 10)
#define NODES_MAX  1024

struct scheduler rig;
uint64_t rig_now;

static struct {
    CACHE_ALIGNED unsigned char segments[SEGMENTS][OBJECT_POOL_SEGMENT_SIZE];
    CACHE_ALIGNED unsigned char small[SMALL_SIZE];
} memory;
EXPLORE_OWN static uint32_t segments_used;
EXPLORE_OWN static size_t small_used;

static struct worker workers[RIG_WORKERS_MAX];
static struct deadline_wheel empty_wheels[RIG_WORKERS_MAX];
static uint64_t victim_steps[RIG_WORKERS_MAX][RIG_WORKERS_MAX];

/* Writes over memory that is freed: if somebody still uses it, that is a data race, or he reads
 * nonsense. */
static void spoil(void *freed, size_t size)
{
    volatile uint64_t *words = freed;
    for (size_t i = 0; i < size / sizeof *words; i++) {
        words[i] = UINT64_MAX;
    }
}

/* Never gives anything back: rig_reset does. */
static void *allocate(void *arg, void *pointer, size_t old_size, size_t new_size, size_t alignment)
{
    (void)arg;
    (void)alignment;
    if (new_size == 0) {
        if (pointer != NULL) {
            spoil(pointer, old_size);
        }
        return NULL;
    }
    if (new_size == OBJECT_POOL_SEGMENT_SIZE && segments_used < SEGMENTS) {
        return memory.segments[segments_used++];
    }
    const size_t size = (new_size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    if (small_used + size > SMALL_SIZE) {
        abort();
    }
    void *block = &memory.small[small_used];
    small_used += size;
    return block;
}

static uint64_t read_clock(struct time_source *source)
{
    (void)source;
    return rig_now;
}

static struct time_source rig_clock = {.now = read_clock};

static uint32_t find_nothing(struct poller *poller, uint64_t deadline)
{
    (void)poller;
    (void)deadline;
    return 0;
}

static void interrupt_nobody(struct poller *poller)
{
    (void)poller;
}

static struct poller rig_poller = {.wait = find_nothing, .interrupt = interrupt_nobody};

static void wake_nobody(struct monitor *monitor)
{
    (void)monitor;
    EXPLORE_CHECK(false, "the monitor is awake");
}

struct monitor rig_monitor = {.wake = wake_nobody};

static void construct_event(void *object, uint32_t index, uint32_t floor)
{
    (void)index;
    struct event_node *node = object;
    store_relaxed(&node->guard, floor);
}

/* A limit that makes caches of BATCH objects. */
static uint32_t limit(void)
{
    return 128 * CACHES * BATCH;
}

static void fill(struct object_pool *pool, struct pool_cache *cache)
{
    const enum object_pool_result result = object_pool_refill_owner(pool, cache);
    EXPLORE_CHECK(result == OBJECT_POOL_OK, "the rig has memory");
}

static void init_pools(void)
{
    const bool processes =
        process_table_init(&rig.table, &rig.allocator, RIG_RUNTIME, limit(), CACHES);
    const bool events = object_pool_init(
        &rig.events, &rig.allocator,
        &(struct object_pool_shape){
            .layout = {sizeof(struct event_node), offsetof(struct event_node, as.link)},
            .limit = limit(),
            .cache_count = CACHES,
            .construct = construct_event,
        });
    EXPLORE_CHECK(processes && events, "the rig has memory");
    explore_ignore(memory.small, small_used); /* the directories of the pools */
    fill(&rig.table.pool, &rig.outside.caches.processes);
    fill(&rig.events, &rig.outside.caches.events);
}

static void init_search(struct worker *worker)
{
    store_relaxed(&worker->picks_left, PICKS_MAX); /* no checkpoint */
    worker->picks_granted = 1;
    worker->measured = PICK_ANY;
    worker->picks_are_long = worker->global_was_first = false;
    worker->has_spilled = worker->gave_way = worker->fired_own = false;
    worker->checked_at = worker->sources_at = worker->fired_at = RIG_BEGINNING;
    worker->oldest_due = worker->behind_due = UINT64_MAX;
    worker->clock = (struct cheap_clock){.span = UINT64_MAX}; /* stands still */
    worker->random = worker->index;
    worker->last_steal.count = worker->last_steal.patience = 0;
    worker->victim_steps = victim_steps[worker->index];
    explore_ignore(&worker->picks_left, sizeof worker->picks_left);
}

/* For models that do not use it. */
static void init_behind(struct scheduler *sched)
{
    global_queue_init(&sched->behind);
    explore_ignore(&sched->behind, sizeof sched->behind);
}

/* For models in which nobody is held back. */
static void init_held_back(struct scheduler *sched)
{
    store_relaxed(&sched->held_back.due, UINT64_MAX);
    explore_ignore(&sched->held_back, sizeof sched->held_back);
}

static void init_worker(struct worker *worker, uint32_t index)
{
    worker->sched = &rig;
    worker->index = index;
    init_search(worker);
    worker->events_max = SKUA_EVENTS_PER_STEP;
    worker->turns_max = TURNS_MAX;
    worker->context = &worker->contexts[0];
    *worker->context = (skua_context){.sched = &rig, .worker = worker};
    worker->out = (struct step_output){
        .allocator = &rig.allocator,
        .events = &rig.events,
        .event_cache = &worker->caches.events,
        .payload_limit = SIZE_MAX,
    };
    EXPLORE_CHECK(step_output_init(&worker->out), "the rig has memory");
    step_output_fill_reserve(&worker->out);
    fill(&rig.events, &worker->caches.events);
    explore_ignore(&worker->stats, sizeof worker->stats);
    explore_ignore(&worker->running, sizeof worker->running);
}

void rig_reset(uint32_t worker_count)
{
    segments_used = 0;
    small_used = 0;
    memset(&rig, 0, sizeof rig);
    rig.config.mailbox_limit = RIG_MAILBOX_LIMIT;
    rig.config.payload_limit = SIZE_MAX;
    rig.allocator = (struct allocator){allocate, NULL};
    rig.workers = workers;
    rig.worker_count = worker_count;
    rig.capacity = worker_count;
    rig.time = &rig_clock;
    rig.poller = &rig_poller;
    rig.monitor = &rig_monitor;
    rig_now = RIG_BEGINNING;
    store_relaxed(&rig.threads, worker_count);
    store_relaxed(&rig.phase, PHASE_RUNNING);
    parking_init(&rig.parking, worker_count, worker_count);
    global_queue_init(&rig.global);
    init_behind(&rig);
    init_held_back(&rig);
    for (uint32_t i = 0; i < CHORE_COUNT; i++) {
        store_relaxed(&rig.chores.due[i], UINT64_MAX);
    }
    init_pools();
    if (worker_count > 0) {
        const bool wheels =
            deadlines_init(&rig.deadlines, &rig.allocator, &rig.events, worker_count);
        EXPLORE_CHECK(wheels, "the rig has memory");
    }
    for (uint32_t i = 0; i < worker_count; i++) {
        memset(&workers[i], 0, offsetof(struct worker, batch));
        workers[i].kept_count = 0; /* a schedule that is cut may end within a step */
        memset(&workers[i].token, 0, sizeof workers[i] - offsetof(struct worker, token));
        init_worker(&workers[i], i);
    }
    explore_ignore(&rig.outside.stats, sizeof rig.outside.stats);
    explore_ignore(&rig.events.ready, sizeof rig.events.ready);
    explore_ignore(&rig.table.pool.ready, sizeof rig.table.pool.ready);
}

struct process *rig_spawn(struct pool_cache *processes, const skua_process_type *type,
                          skua_pid *pid)
{
    uint32_t slot;
    const enum object_pool_result result =
        object_acquire_owner(&rig.table.pool, rig.table.pool.shape.layout, processes, &slot);
    EXPLORE_CHECK(result == OBJECT_POOL_OK, "the rig has memory");
    struct process *process = object_pool_at(&rig.table.pool, slot);
    const uint32_t generation = state_prepare_owner(process);
    store_relaxed(&process->type, type);
    store_relaxed(&process->mailbox_limit,
                  type->mailbox_limit != 0 ? type->mailbox_limit : rig.config.mailbox_limit);
    process_set_progress_owner(process, PROCESS_CONTINUES | process_type_flags(type));
    memset(process->state.inline_state, 0, sizeof process->state.inline_state);
    process->backlog = OBJECT_NONE;
    process->calls = OBJECT_NONE;
    *pid = process_table_pid(&rig.table, process, generation);
    state_publish_owner(process, generation);
    return process;
}

uint32_t rig_all_nodes(void)
{
    return load_relaxed(&rig.events.ready) - 1;
}

static uint32_t count_chain(uint32_t first, uint32_t count, bool *seen)
{
    for (uint32_t i = 0; i < count; i++) {
        EXPLORE_CHECK(first != OBJECT_NONE && first <= rig_all_nodes(), "INV-20: a chain of nodes");
        EXPLORE_CHECK(!seen[first], "INV-20: no node is free twice");
        seen[first] = true;
        first = object_pool_link(&rig.events, object_pool_at(&rig.events, first))->next;
    }
    return count;
}

static uint32_t count_reserve(const struct step_output *out, bool *seen)
{
    for (uint32_t i = 0; i < out->reserve_count; i++) {
        (void)count_chain(out->reserve[i], 1, seen);
    }
    return out->reserve_count;
}

static uint32_t count_cache(const struct pool_cache *cache, bool *seen)
{
    return count_chain(cache->active.first, cache->active.count, seen) +
           count_chain(cache->spare.first, cache->spare.count, seen);
}

uint32_t rig_free_nodes(void)
{
    static bool seen[NODES_MAX + 1];
    EXPLORE_CHECK(rig_all_nodes() <= NODES_MAX, "the model needs few nodes");
    memset(seen, 0, rig_all_nodes() + 1);
    uint32_t count = count_cache(&rig.outside.caches.events, seen);
    for (uint32_t i = 0; i < rig.worker_count; i++) {
        count += count_cache(&workers[i].caches.events, seen);
        count += count_reserve(&workers[i].out, seen);
    }
    for (uint32_t chain = rig.events.chains; chain != OBJECT_NONE;) {
        count += count_chain(chain, BATCH, seen);
        chain = object_pool_link(&rig.events, object_pool_at(&rig.events, chain))->next_chain;
    }
    return count;
}

/* ---- for models with a scheduler of their own ---- */

void rig_init_scheduler(struct scheduler *sched, struct worker *own, uint32_t count, uint32_t max)
{
    sched->monitor = &rig_monitor;
    sched->time = &rig_clock;
    rig_now = RIG_BEGINNING;
    sched->workers = own;
    sched->worker_count = count;
    sched->capacity = count;
    store_relaxed(&sched->threads, count);
    store_relaxed(&sched->exiting, 0);
    store_relaxed(&sched->phase, PHASE_RUNNING);
    parking_init(&sched->parking, count, count);
    init_behind(sched);
    init_held_back(sched);
    sched->deadlines.wheels = empty_wheels;
    explore_ignore(empty_wheels, sizeof empty_wheels);
    for (uint32_t i = 0; i < max; i++) {
        store_relaxed(&empty_wheels[i].next, WHEEL_NEVER);
        own[i].sched = sched;
        own[i].index = i;
        init_search(&own[i]);
        deque_init(&own[i].deque);
        store_relaxed(&own[i].next, NULL);
        own[i].next_gives_way = own[i].is_renewed = false;
        own[i].family.parent = NULL;
        own[i].woken.count = 0;
        store_relaxed(&own[i].token.word, 0);
        explore_ignore(&own[i].stats, sizeof own[i].stats);
        explore_ignore(&own[i].running, sizeof own[i].running);
    }
    explore_ignore(&sched->threads, sizeof sched->threads);
    explore_ignore(&sched->phase, sizeof sched->phase);
    explore_ignore(&sched->poll, sizeof sched->poll);                     /* nobody has the role */
    explore_ignore(&sched->monitor_asleep, sizeof sched->monitor_asleep); /* never */
    explore_ignore(&sched->outside.stats, sizeof sched->outside.stats);
}

bool rig_take_work(struct scheduler *sched)
{
    uint32_t seen = load_relaxed(&sched->global.sorted);
    while (seen > 0) {
        if (cas_seq_cst(&sched->global.sorted, &seen, seen - 1)) {
            return true;
        }
    }
    return false;
}

/* ---- in place of cpu_clock.c: statistics of threads that the explorer does not have ---- */

void cpu_clock_open(struct worker *worker)
{
    (void)worker;
}

void cpu_clock_close(struct worker *worker)
{
    (void)worker;
}

void cpu_clock_update(struct worker *whose)
{
    (void)whose;
}
