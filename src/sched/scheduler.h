/* SPDX-License-Identifier: MIT */
/* What the workers share, and what each worker has to itself. */
#ifndef SKUA_SCHED_SCHEDULER_H
#define SKUA_SCHED_SCHEDULER_H

#include <pthread.h>
#include <skua/runtime.h>
#include <skua/switch.h>

#include "base/allocator.h"
#include "base/cheap_clock.h"
#include "base/compiler.h"
#include "base/time_source.h"
#include "concurrent/deque.h"
#include "concurrent/global_queue.h"
#include "concurrent/object_pool.h"
#include "concurrent/parking.h"
#include "dispatch/deadlines.h"
#include "dispatch/registry.h"
#include "dispatch/service.h"
#include "process/event.h"
#include "process/mailbox.h"
#include "process/quota.h"
#include "process/step_output.h"
#include "process/table.h"
#include "relations/groups.h"
#include "relations/lineage.h"
#include "relations/names.h"
#include "sched/detour.h"
#include "sched/poller.h"
#include "task/stacks.h"
#include "telemetry/account.h"
#include "telemetry/counters.h"
#include "telemetry/observer.h"
#include "telemetry/tracer.h"

_Static_assert(SKUA_WORKERS_MAX + SKUA_SPARES_MAX == PARKING_WORKERS_MAX, "all have a bit");

/* Free objects for one thread, so that the hot paths touch no shared allocator. */
struct caches {
    struct pool_cache events;
    struct pool_cache processes;
};

struct monitor;
struct worker;

/* See sched/context.h. What every process uses fills one cache line. */
struct skua_context {
    union {
        struct skua_wait_ wait; /* of a task; skua/switch.h says what lies where */
        struct {
            uint64_t head[2];
            struct scheduler *sched;
            struct worker *worker; /* null: init runs on an outside thread */
            struct process *process;
            skua_pid self;
            uint64_t now; /* 0: not read yet in this step */
            uint32_t phase;
            uint32_t random_calls; /* in this step */
        };
    };
};

_Static_assert(offsetof(struct skua_context, sched) == offsetof(struct skua_wait_, context),
               "the inline functions leave it alone");
_Static_assert(offsetof(struct skua_context, random_calls) + sizeof(uint32_t) == CACHE_LINE,
               "it fills a line");

#define WORKER_CONTEXTS  4
#define INIT_CONTEXTS    8
#define OUTSIDE_CONTEXTS 32

/* `running` of an idle worker; and of one that is awake and runs no process: it has just stopped
 * being idle, or the process that it picked has to wait. Not PIDs. */
#define RUNNING_NOTHING UINT64_C(0)
#define RUNNING_UNKNOWN UINT64_MAX

/* A worker's last steal, and how long it backs off from the next (idle.c). */
struct last_steal {
    uint32_t count;       /* processes stolen; 0: its last work came from elsewhere */
    uint32_t min_ns_each; /* a steal that kept it busy for less was not worth it; 0: any is */
    uint32_t patience;    /* rounds of the next search in which it does not steal */
    uint64_t since;       /* when it began to run what it found */
};

/* What a pick is measured for (find_work.c). */
enum pick_kind {
    PICK_ANY,    /* nothing */
    PICK_OLDEST, /* it came first because it had waited longest */
    PICK_BEHIND, /* it comes from the queue behind */
};

/* What a stop saw a worker do; see stuck.h. */
struct stuck_sample {
    uint64_t running;
    uint64_t steps;
    uint64_t cpu_ns;     /* when it was first seen in this */
    uint64_t nap_cpu_ns; /* in the last sample */
    uint32_t naps;       /* samples in a row in which its thread slept */
};

/* Processes that one process readies before they are queued: see submit_woken. */
#define WOKEN_MAX 256

struct worker {
    struct deque deque;
    /* The process that this worker's step woke last; it runs next. Only the owner fills the slot;
     * the owner empties it, or a thief late in its search (steal.c). */
    CACHE_ALIGNED atomic_ptr next;

    /* For the owner only; but the monitor may write picks_left. */
    CACHE_ALIGNED struct scheduler *sched;
    uint32_t index;
    atomic_u32 picks_left;   /* until the next checkpoint (checkpoint.h) */
    uint32_t picks_granted;  /* at the last one */
    enum pick_kind measured; /* what the current pick is */
    bool picks_are_long;     /* as of the last checkpoint */
    bool global_was_first;   /* when the oldest was last picked */
    bool has_spilled;        /* since then */
    bool is_renewed;         /* its deque was empty since the oldest was last due */
    bool next_gives_way;     /* to the newest in the deque (submit.c): */
    uint32_t next_follows;   /* from this index on */
    struct {                 /* see submit_spawned */
        const struct process *parent;
        uint32_t eldest; /* where the first of its children went in the deque */
    } family;
    bool gave_way;       /* at the last checkpoint the next slot came first */
    uint64_t checked_at; /* when the last checkpoint was, or a measured pick began */
    bool fired_own;      /* of the timers that it looked at last */
    uint64_t fired_at;   /* when it last fired timers */
    uint64_t sources_at; /* when it last looked at the sources of other workers */
    uint32_t look_at;    /* whose timers it looks at next, modulo their number */
    uint64_t oldest_due; /* when the oldest comes first again (find_work.c) */
    uint64_t behind_due; /* when the queue behind does */
    struct cheap_clock clock;
    uint64_t random;
    struct caches caches;
    struct stack_cache stacks;
    uint64_t waits;               /* of tasks, ever: see tasks_next_tag */
    skua_context *context;        /* of the process that it runs */
    const skua_context *starting; /* whose init it runs within a step, or null */
    struct step_output out;
    pthread_t thread;
    uint64_t *victim_steps; /* per worker: its steps when the current search began */
    uint32_t retries;       /* searches left for what is in the next slot of another (idle.c) */
    struct last_steal last_steal;
    bool retires;    /* a spare worker: rests when it is not needed (spare.h) */
    bool blocks;     /* its step is in a blocking section: nothing may wait for its end */
    bool is_checked; /* its contexts are (context.h) */
    bool puts_off;   /* the handler's result: set by the simulator while the handler runs */
    const skua_process_type *checked_type; /* the last one that it found valid (spawn.c) */
    const skua_process_type *plain_type;   /* the same, if it is plain; otherwise null */
    uint32_t events_max;                   /* per step; smaller in simulations only */
    uint32_t turns_max;                    /* per pick; smaller in simulations, and to migrate */
    struct mailbox_tally tally;            /* of what runs; see process/mailbox.h */
    bool is_pressed;                       /* back-pressure: its pick ends with this step */
    struct process *crowded;               /* the receiver that was why, when one last was */
    uint64_t crowded_at;                   /* its steps then */
    uint64_t rated_at;                     /* when what a message costs was last seen; 0: never */
    uint64_t rated_messages;               /* that it had sent by then */
    struct {                               /* what its process has readied at once (submit.c) */
        uint32_t count;
        struct process *processes[WOKEN_MAX];
    } woken;
    uint32_t init_turn;
    uint64_t swept_steps;          /* its steps when it last asked for a sweep (chores.c) */
    struct description *described; /* filled in, told when the turn is over (describe.h) */
    CACHE_ALIGNED skua_context contexts[WORKER_CONTEXTS]; /* the first; or, if they are checked, by
                                                             turns */
    skua_event batch[SKUA_EVENTS_PER_STEP];
    uint32_t kept_count; /* events of a step that may defer (defer.h); 0: this is none */
    uint32_t kept[SKUA_EVENTS_PER_STEP];       /* the nodes of its messages; or OBJECT_NONE */
    skua_context init_contexts[INIT_CONTEXTS]; /* by turns */

    /* What it sleeps on; see concurrent/parking.h. */
    struct park_token token;

    /* Written by the owner at every pick, read by the monitor. */
    CACHE_ALIGNED atomic_u64 running; /* the PID it runs, or one of the two below */
    atomic_u32 reporting;             /* tells of the end of a process that is counted already */
    struct counters stats;
    CACHE_ALIGNED atomic_u32 absence; /* see spare.h */
    atomic_u32 cpu_clock;             /* its thread's; see cpu_clock.h */
    atomic_u32 thread_id;             /* as the kernel knows it; 0: none yet */
    struct stuck_sample stuck;        /* whoever stops the runtime uses it, under control */
};

enum sched_phase {
    PHASE_CREATED,
    PHASE_RUNNING,
    PHASE_STOPPING, /* every process has been or is being sent a cancel event */
    PHASE_ENDING,   /* every process has been or is being ended */
    PHASE_STOPPED,
};

/* Work of idle priority; see chores.h. */
enum chore {
    CHORE_TRIM,    /* give memory back */
    CHORE_CHECK,   /* find waits that can never end */
    CHORE_SWEEP,   /* give back what lies below the stack pointers of tasks that wait */
    CHORE_SOCKETS, /* look after the deadlines of sockets */
    CHORE_COUNT,
};

/* A thread that waits for the exit of a process; lies on its stack. */
struct exit_waiter {
    struct exit_waiter *next;
    skua_pid pid;
    skua_exit *exit; /* may be null */
    bool told;       /* how the process ended: nothing can stop the wait from succeeding */
    bool done;       /* and nothing of it is left */
};

/* See log.h. */
struct log {
    pthread_mutex_t lock;
    uint64_t since;   /* under lock: when the current span began */
    uint64_t dropped; /* under lock: lines left out since the last one written */
    uint32_t lines;   /* under lock: written in this span */
};

/* See held_back.h; fewer in models. */
#ifndef HELD_BACK_LINES
#define HELD_BACK_LINES 4
#endif
#ifndef HELD_BACK_MAX
#define HELD_BACK_MAX 256
#endif

struct held_place {
    skua_pid pid;
    uint64_t until; /* it is let go then, at the latest */
};

/* A line, if its count is not 0. */
struct held_line {
    struct process *receiver; /* whichever is in this record */
    uint32_t first;           /* the oldest */
    uint32_t count;
    struct held_place places[HELD_BACK_MAX];
};

struct scheduler {
    /* Written before the workers start. */
    skua_runtime *runtime; /* whose scheduler it is; only handed on */
    skua_runtime_config config;
    struct allocator allocator;
    struct registry *registry;
    struct service services[SERVICE_COUNT];
    struct time_source *time;
    struct poller *poller;
    struct monitor *monitor;
    struct observer *observer;    /* null: nobody looks */
    struct detour *detour;        /* null: there is none (detour.h) */
    struct socket_hooks *sockets; /* see socket_hooks.h */
    struct tracer tracer;
    bool migrates;          /* tasks change their workers (step.c) */
    bool measures_stacks;   /* see stack_use.h */
    uint32_t context_flags; /* in the phases of all contexts (context.h) */
    struct worker *workers;
    uint32_t worker_count; /* that run when all are busy */
    uint32_t capacity;     /* with the spare ones */

    atomic_u32 threads; /* workers that have a thread: the first ones */

    struct process_table table;
    struct object_pool events;
    struct deadlines deadlines;
    struct names names;
    struct groups groups;
    struct lineage lineage;
    struct quotas quotas;
    atomic_ptr upgrades;  /* see upgrade.h; null: no type was replaced */
    struct stacks stacks; /* of tasks */
    struct global_queue global;
    struct global_queue behind; /* processes that used up their slice (find_work.c) */
    struct parking parking;

    /* See poll.h. */
    struct {
        CACHE_ALIGNED atomic_u32 holder; /* of the role: 0: nobody; 1 + worker; or UINT32_MAX */
        atomic_u32 waits;                /* descriptors that are waited for */
        atomic_u64 until;                /* when the holder will wake by itself */
        atomic_u64 last;                 /* when somebody last looked */
    } poll;

    /* See spare.h. */
    struct {
        CACHE_ALIGNED atomic_u32 surplus; /* how many spare workers are one too many */
        atomic_u32 resting;               /* spare workers that rest; written under lock */
        pthread_mutex_t lock;
        uint32_t rest[SKUA_SPARES_MAX]; /* under lock: their numbers */
    } spare;

    /* See chores.h. */
    struct {
        CACHE_ALIGNED atomic_u64 due[CHORE_COUNT]; /* UINT64_MAX: not wanted */
        atomic_u32 busy;                           /* somebody is at it */
        atomic_u64 kept;                           /* free memory that trimming had to leave */
        uint64_t trim_delay;                       /* of whoever is at it */
        /* The sweep. */
        atomic_u32 woken;      /* tasks that were woken to be trimmed, and have not been */
        atomic_u64 swept;      /* bytes given back since it began */
        atomic_u64 delay;      /* from activity to the next */
        struct stack_place at; /* of whoever is at it: the next stack */
    } chores;

    CACHE_ALIGNED atomic_u32 monitor_asleep; /* until a worker wakes it; see monitor.h */
    struct account account;

    struct log log;

    /* See stack_use.h. */
    struct {
        pthread_mutex_t lock;
        struct stack_use *first; /* under lock */
    } stack_uses;

    atomic_u32 callers; /* threads that are not workers, inside of a call; see runtime/caller.h */

    /* Threads that are not workers share one set of caches. */
    struct {
        CACHE_ALIGNED pthread_mutex_t lock;
        struct caches caches;
        struct counters stats; /* atomic, without the lock */
        skua_context init_contexts[OUTSIDE_CONTEXTS];
        atomic_u32 init_claims; /* a bit for each of them that is in use */
    } outside;

    struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct exit_waiter *first; /* under lock */
    } exit_waiters;

    /* See describe.h. */
    struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        uint32_t awaited; /* under lock: answers that the inspector waits for */
        uint32_t open;    /* under lock: questions on their way, those included */
    } descriptions;

    /* Start and stop. seq_cst MO-stop: `phase` against the gate and first steps (spawn.h),
     * `exiting` against parking. */
    atomic_u32 phase; /* enum sched_phase; written under control */
    atomic_u32 exiting;
    pthread_mutex_t control; /* one start or stop at a time */
    /* Threads between shutdown_gate_enter and leave. Not beside what workers read all the time. */
    CACHE_ALIGNED atomic_u32 gate;
    struct {
        pthread_mutex_t lock;
        pthread_cond_t changed; /* a worker found nothing to do */
    } quiet;

    /* See held_back.h; the last, because it is large. */
    struct {
        CACHE_ALIGNED atomic_u64 due; /* written under lock */
        pthread_mutex_t lock;
        struct held_line lines[HELD_BACK_LINES]; /* under lock */
    } held_back;
};

/* How many workers exist. */
static inline uint32_t scheduler_threads(struct scheduler *sched)
{
    return load_seq_cst(&sched->threads); /* MO-spare: before looking at what they hold */
}

/* Before a scan of all processes for the sake of what was stored just now: either the scan sees a
 * process, or that is seen before its first step (MO-stop, MO-upgrade; see spawn_catch_up). */
static inline void scheduler_see_spawned(struct scheduler *sched)
{
    const uint32_t threads = scheduler_threads(sched);
    for (uint32_t i = 0; i < threads; i++) {
        deque_see_pushes_any(&sched->workers[i].deque);
        (void)load_seq_cst(&sched->workers[i].next); /* MO-stop */
    }
    global_queue_see_pushes_any(&sched->global);
}

/* `config` has its defaults filled in; `runtime_id` is 1 to PID_RUNTIME_MAX.
 * Returns 0 or SKUA_E_NO_MEMORY. */
NODISCARD int scheduler_init(struct scheduler *sched, const skua_runtime_config *config,
                             uint32_t runtime_id, struct registry *registry,
                             struct time_source *time, struct poller *poller,
                             struct monitor *monitor);
void scheduler_deinit(struct scheduler *sched);

#endif
