/* SPDX-License-Identifier: MIT */
/* What the workers share, and what each has to itself. */
#ifndef SKUA_SCHED_SCHEDULER_H
#define SKUA_SCHED_SCHEDULER_H

#include <pthread.h>
#include <skua/runtime.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "concurrent/deque.h"
#include "concurrent/global_queue.h"
#include "concurrent/object_pool.h"
#include "concurrent/parking.h"
#include "dispatch/registry.h"
#include "process/event.h"
#include "process/step_output.h"
#include "process/table.h"
#include "sched/idle_driver.h"
#include "sched/stats.h"

_Static_assert(SKUA_WORKERS_MAX == PARKING_WORKERS_MAX, "every worker has a bit");

/* Free objects at hand: the hot paths touch no shared allocator. */
struct caches {
    struct pool_cache events;
    struct pool_cache processes;
};

struct worker;

struct skua_context {
    struct scheduler *sched;
    struct worker *worker; /* null: init runs on a thread that is no worker */
    struct process *process;
    skua_pid self;
    uint64_t now; /* 0: not asked for in this step */
    uint64_t random_calls;
};

struct worker {
    struct deque deque;
    /* The process that this worker's current step readied last; it runs next. Only the owner puts
     * something in; the owner takes it out, or a thief late in its search (steal.c). */
    CACHE_ALIGNED atomic_ptr next;

    /* The owner's own. */
    CACHE_ALIGNED struct scheduler *sched;
    uint32_t index;
    uint32_t tick;        /* picks so far */
    uint32_t next_streak; /* picks from the next slot in a row */
    uint64_t random;
    struct caches caches;
    skua_context context;
    skua_step out;
    pthread_t thread;
    uint64_t *victim_steps; /* per worker: its steps when the current search began */
    skua_event batch[SKUA_EVENTS_PER_STEP];

    CACHE_ALIGNED struct stats stats;
};

enum sched_phase {
    PHASE_CREATED,
    PHASE_RUNNING,
    PHASE_STOPPING, /* every process has been or is being asked to cancel */
    PHASE_ENDING,   /* every process has been or is being ended */
    PHASE_STOPPED,
};

/* A thread that waits for the exit of a process; lies on its stack. */
struct watcher {
    struct watcher *next;
    skua_pid pid;
    skua_exit *exit; /* may be null */
    bool done;
};

struct scheduler {
    /* Written before the workers start. */
    skua_runtime *runtime; /* whose scheduler it is; only handed on */
    skua_runtime_config config;
    struct allocator allocator;
    struct registry *registry;
    struct idle_driver *driver;
    struct worker *workers;
    uint32_t worker_count;

    struct process_table table;
    struct object_pool events;
    struct global_queue global;
    struct parking parking;

    /* Threads that are not workers share one set of caches. */
    struct {
        CACHE_ALIGNED pthread_mutex_t lock;
        struct caches caches;
        struct stats stats; /* atomic, without the lock */
    } outside;

    struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct watcher *first; /* under lock */
    } watch;

    /* Start and stop. seq_cst MO-stop: `phase` against state_publish, `exiting` against parking. */
    atomic_u32 phase; /* enum sched_phase; written under control */
    atomic_u32 exiting;
    atomic_u32 gate;         /* threads between shutdown_gate_enter and leave */
    pthread_mutex_t control; /* one start or stop at a time */
    struct {
        pthread_mutex_t lock;
        pthread_cond_t changed; /* a worker found nothing to do */
    } quiet;
    uint32_t started; /* threads created and not joined; under control */
};

/* `config` has its defaults filled in; `runtime_id` is 1 to PID_RUNTIME_MAX.
 * Returns 0 or SKUA_E_NO_MEMORY. */
NODISCARD int scheduler_init(struct scheduler *sched, const skua_runtime_config *config,
                             uint32_t runtime_id, struct registry *registry,
                             struct idle_driver *driver);
void scheduler_deinit(struct scheduler *sched);

#endif
