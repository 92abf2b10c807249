/* SPDX-License-Identifier: MIT */
/* watch/monitor_thread.h: the monitor goes to sleep when no worker is busy, and is awake while one
 * is in a step. The monitor, the workers' loop and their sleeping, and what steps in for them are
 * the real code; a step is what the model says, all work is in one queue, and a spare worker that
 * is started does nothing. Every operation of the monitor is a step of the explorer, with its mutex
 * held too.
 *
 * MO-monitor: while a worker is busy, the monitor sleeps for a while at most. And: a step that does
 * not return is found, what waits in its worker's next slot is freed, and the monitor ends when it
 * is told to. */
#include <string.h>

#include "base/thread.h"
#include "explore.h"
#include "no_sources.h"
#include "one_queue.h"
#include "rig.h"
#include "sched/chores.h"
#include "sched/poll.h"
#include "sched/shutdown.h"
#include "sched/spare.h"
#include "sched/timers.h"
#include "sched/worker.h"
#include "watch/monitor_thread.h"

#define WORKERS_MAX   2
#define SLEEP_AFTER   6 /* looks that find all asleep */
#define TOKEN_AWAITED 2

static struct {
    void *(*function)(void *arg);
    void *arg;
} created;

static struct monitor_thread watching;
static struct process work;
static struct process readied; /* by a step that then does not return */
static bool readies;
static uint32_t stuck_count; /* steps from this one on do not return */
EXPLORE_OWN static uint32_t steps;
static bool in_step[WORKERS_MAX];
static uint32_t freed;
static bool blocks; /* the first step does, until it is permitted to go on */
static atomic_u32 permissions;
static bool monitor_has_ended;
static atomic_u32 never; /* stays zero */

/* ---- in place of step.c, find_work.c, steal.c, submit.c ---- */

static struct process *take_work(struct scheduler *from)
{
    return rig_take_work(from) ? &work : NULL;
}

/* The first ones return, the others do not. */
void step_run(struct worker *worker, struct process *process)
{
    (void)process;
    const uint32_t number = steps++;
    store_release(&worker->running, 1 + number);
    in_step[worker->index] = true;
    explore_note("is in step %u", (unsigned)number);
    counter_add_owner(&worker->stats.steps, 1);
    if (blocks) {
        spare_begin_block(worker);
        explore_take(&permissions);
        spare_end_block(worker);
    }
    if (number >= stuck_count) {
        if (readies) {
            store_release(&worker->next, &readied);
        }
        explore_take(&never);
    }
    in_step[worker->index] = false;
}

void find_release_next(struct worker *worker)
{
    (void)worker;
}

void submit_all_to_global(struct worker *worker)
{
    (void)worker;
}

struct process *find_work(struct worker *worker)
{
    return take_work(worker->sched);
}

void submit_outside(struct scheduler *sched, struct process *process)
{
    (void)sched;
    EXPLORE_CHECK(process == &readied && ++freed == 1, "what was readied is freed once");
}

/* ---- in place of shutdown.c, chores.c, poll.c, timers.c and thread.c ---- */

void shutdown_worker_is_quiet(struct scheduler *sched)
{
    (void)sched;
}

void chores_check_if_overdue(struct scheduler *sched, uint64_t now)
{
    (void)sched;
    (void)now;
}

void poll_check(struct scheduler *sched, struct worker *worker, uint64_t now)
{
    (void)sched;
    (void)worker;
    (void)now;
    EXPLORE_CHECK(false, "there are no descriptors");
}

uint64_t timers_next(struct scheduler *sched)
{
    (void)sched;
    return UINT64_MAX;
}

void timers_fire_all(struct scheduler *sched, struct worker *worker, uint64_t now)
{
    (void)sched;
    (void)worker;
    (void)now;
    EXPLORE_CHECK(false, "there are no timers");
}

void thread_unblock_signal(int signal)
{
    (void)signal;
    EXPLORE_CHECK(false, "no signal asks for backtraces");
}

/* The monitor is the explorer's first thread. */
int thread_create(pthread_t *thread, const char *name, void *(*function)(void *arg), void *arg)
{
    (void)name;
    *thread = 0;
    if (function != worker_main) {
        created.function = function;
        created.arg = arg;
    }
    return 0;
}

/* ---- threads ---- */

static const uint32_t numbers[] = {0, 1, 2, 3};

static void run_monitor(const void *arg)
{
    (void)arg;
    (void)created.function(created.arg);
    monitor_has_ended = true;
}

static void run_worker(const void *number)
{
    (void)worker_main(&rig.workers[*(const uint32_t *)number]);
}

static void run_publisher(const void *count)
{
    for (uint32_t i = 0; i < *(const uint32_t *)count; i++) {
        (void)fetch_add_seq_cst(&rig.global.sorted, 1);
        idle_wake_one(&rig, NULL);
    }
}

static void run_permitting(const void *arg)
{
    (void)arg;
    (void)fetch_add_seq_cst(&permissions, 1);
}

static void run_stopper(const void *arg)
{
    (void)arg;
    rig.monitor->stop(rig.monitor);
    EXPLORE_CHECK(monitor_has_ended, "the monitor has ended when stop returns");
}

/* ---- the beginning and the end ---- */

static void ignore_the_rest(void)
{
    for (uint32_t i = 0; i < rig.worker_count; i++) {
        struct worker *worker = &rig.workers[i];
        explore_ignore(&worker->deque, sizeof worker->deque);
        explore_heed(&worker->running);
    }
    explore_ignore(&rig.phase, sizeof rig.phase);
    explore_ignore(&rig.poll, sizeof rig.poll);
    explore_ignore(&rig.exiting, sizeof rig.exiting);
}

/* All but the first `returning` steps do not return. Every step takes longer than the limit. There
 * is room for one spare worker. */
static void setup(uint32_t workers, uint32_t returning)
{
    rig_reset(workers + 1);
    rig.worker_count = workers;
    store_relaxed(&rig.threads, workers);
    rig.config.stall_limit_ns = 0;
    memset(&watching, 0, sizeof watching);
    rig.monitor = &watching.monitor;
    int error = monitor_thread_init(&watching, &rig);
    EXPLORE_CHECK(error == 0, "the rig has memory");
    error = rig.monitor->start(rig.monitor);
    EXPLORE_CHECK(error == 0, "the monitor is started");
    store_relaxed(&rig.global.sorted, 0);
    store_relaxed(&never, 0);
    store_relaxed(&permissions, 0);
    memset(in_step, 0, sizeof in_step);
    memset(has_looked, 0, sizeof has_looked);
    stuck_count = returning;
    steps = freed = 0;
    readies = blocks = monitor_has_ended = false;
    ignore_the_rest();
}

static void setup_one(void)
{
    setup(1, 0);
}

static void setup_one_returning(void)
{
    setup(1, 1);
}

static void setup_two(void)
{
    setup(2, 1);
}

static void setup_readying(void)
{
    setup(1, 0);
    readies = true;
}

static void setup_blocking(void)
{
    setup(1, 0);
    blocks = true;
}

static void setup_blocking_alone(void)
{
    setup_blocking();
    rig.capacity = rig.worker_count; /* no spare worker */
}

/* Blocks for ever, but is covered. */
static bool is_away(uint32_t worker)
{
    return load_relaxed(&rig.workers[worker].absence) == (ABSENCE_BLOCKS | ABSENCE_COVERED);
}

static bool nobody_is_busy(void)
{
    for (uint32_t i = 0; i < rig.worker_count; i++) {
        const bool sleeps = load_relaxed(&rig.workers[i].token.word) == TOKEN_AWAITED;
        EXPLORE_CHECK(sleeps != in_step[i], "a worker sleeps or is in a step");
        if (in_step[i] && !is_away(i)) {
            return false;
        }
    }
    return true;
}

/* The workers sleep or are stuck; the monitor sleeps, or waits for its next look. */
static bool monitor_watches(void)
{
    const bool sleeps = explore_sleeps_for_good(0);
    EXPLORE_CHECK(sleeps == (load_relaxed(&rig.monitor_asleep) != 0), "it says whether it sleeps");
    EXPLORE_CHECK(!sleeps || nobody_is_busy(), "MO-monitor: it sleeps only if nobody is busy");
    return true;
}

/* There was time for any number of looks. */
static bool monitor_has_found_all(void)
{
    for (uint32_t i = 0; i < rig.worker_count; i++) {
        const uint32_t absence = load_relaxed(&rig.workers[i].absence);
        EXPLORE_CHECK(!in_step[i] || (absence & ABSENCE_COVERED) != 0,
                      "a step that does not return is found");
    }
    EXPLORE_CHECK(!readies || steps == 0 || freed == 1, "what it holds up is freed");
    EXPLORE_CHECK(!nobody_is_busy() || explore_sleeps_for_good(0),
                  "the monitor sleeps when nobody is busy");
    return monitor_watches();
}

/* At once, or when the time of a look has come. */
static bool monitor_ends(void)
{
    EXPLORE_CHECK(load_relaxed(&rig.monitor_asleep) == 0, "it does not count as asleep");
    return monitor_has_ended || !explore_sleeps_for_good(0);
}

#define MONITOR          EXPLORE_THREAD("monitor", run_monitor, NULL)
#define WORKER(number)   EXPLORE_THREAD("worker" #number, run_worker, &numbers[number])
#define PUBLISHER(count) EXPLORE_THREAD("publisher", run_publisher, &numbers[count])
#define PERMITTING       EXPLORE_THREAD("permitting", run_permitting, NULL)
#define STOPPER          EXPLORE_THREAD("stopper", run_stopper, NULL)

/* Time passes at any moment, often enough for the monitor to fall asleep and look again. */
#define QUICK(name_, mode_, bound_, setup_, ...)                                                   \
    {                                                                                              \
        .name = name_, .mode = mode_, .bound = bound_, .setup = setup_,                            \
        .threads = {MONITOR, __VA_ARGS__}, .timeouts = SLEEP_AFTER + 2, .mutexes_are_open = true,  \
        .may_rest = monitor_watches,                                                               \
    }
#define BOUNDED(name_, bound_, setup_, ...)                                                        \
    QUICK(name_, EXPLORE_PREEMPTIONS, bound_, setup_, __VA_ARGS__)
#define RANDOM(name_, setup_, ...) QUICK(name_, EXPLORE_RANDOM, 100000, setup_, __VA_ARGS__)
/* It passes when nothing else happens. Who looks then sees what is newest: a worker that has gone
 * back to sleep long ago would otherwise be taken for stuck, the limit being zero. */
#define SLOW(name_, bound_, setup_, ...)                                                           \
    {                                                                                              \
        .name = name_, .mode = EXPLORE_PREEMPTIONS, .bound = bound_, .setup = setup_,              \
        .threads = {MONITOR, __VA_ARGS__}, .timeouts = 3 * SLEEP_AFTER, .time_is_slow = true,      \
        .mutexes_are_open = true, .may_rest = monitor_has_found_all, .never_stale = true,          \
    }

static const struct explore_model models[] = {
    BOUNDED("wake", 2, setup_one, WORKER(0), PUBLISHER(1)),
    BOUNDED("wake_twice", 2, setup_one_returning, WORKER(0), PUBLISHER(2)),
    BOUNDED("wake_two", 1, setup_two, WORKER(0), WORKER(1), PUBLISHER(2)),
    RANDOM("wake_two_random", setup_two, WORKER(0), WORKER(1), PUBLISHER(2)),
    SLOW("sleep", 2, setup_one, WORKER(0)),
    BOUNDED("block", 2, setup_blocking, WORKER(0), PUBLISHER(1), PERMITTING),
    BOUNDED("block_alone", 2, setup_blocking_alone, WORKER(0), PUBLISHER(1)),
    SLOW("sleep_while_blocked", 2, setup_blocking, WORKER(0), PUBLISHER(1)),
    SLOW("find", 2, setup_one, WORKER(0), PUBLISHER(1)),
    SLOW("free_next", 2, setup_readying, WORKER(0), PUBLISHER(1)),
    SLOW("find_one_of_two", 1, setup_two, WORKER(0), WORKER(1), PUBLISHER(2)),
    {
        .name = "stop",
        .mode = EXPLORE_PREEMPTIONS,
        .bound = 2,
        .timeouts = 4 * SLEEP_AFTER, /* a busy look makes it begin again */
        .mutexes_are_open = true,
        .setup = setup_one,
        .threads = {MONITOR, WORKER(0), STOPPER},
        .may_rest = monitor_ends,
    },
};

EXPLORE_MAIN(models)
