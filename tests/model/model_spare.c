/* SPDX-License-Identifier: MIT */
/* sched/spare.h: workers that block in a step or are stuck in one, the spare workers that step in
 * for them, and those that are one too many and rest. The loop of a worker, its sleeping and the
 * spare workers' are the real code; a step is what the model says, all work is in one queue, and
 * the threads of spare workers are there from the beginning, waiting to be started.
 *
 * A step that *waits* can end only when another process has run: with one worker, only if a spare
 * one steps in.
 *
 * INV-3:  each process runs once.
 * INV-8, INV-9: who sleeps has its bit set and no token; nobody searches in the end.
 * INV-10: no work waits while a worker sleeps.
 * INV-18: surplus + covered absences = spare workers that do not rest.
 * And no worker is lost: each sleeps, rests, is in a step, or has exited; when all are told to
 * exit, all do. */
#define SEARCHERS(sched) scheduler_threads(sched)

#include <string.h>

#include "base/mutex.h"
#include "base/thread.h"
#include "explore.h"
#include "no_sources.h"
#include "one_queue.h"
#include "rig.h"
#include "sched/chores.h"
#include "sched/poll.h"
#include "sched/shutdown.h"
#include "sched/spare.h"
#include "sched/worker.h"

#define PROCESSES_MAX 8
#define TOKEN_NONE    0
#define TOKEN_AWAITED 2

/* What a step does. */
enum habit {
    ENDS,    /* at once */
    PERMITS, /* gives one permission */
    WAITS,   /* for a permission, without saying that it will */
    BLOCKS,  /* says so, waits for a permission, and says that it is back */
    FORGETS, /* the same, but does not say that it is back */
    TWICE,   /* blocks two times, the second time without needing a permission */
    STAYS,   /* gives one permission, and waits until the process that used it is back */
};

static const enum habit *habits;
static struct process processes[PROCESSES_MAX];
static uint32_t process_count;
EXPLORE_OWN static uint32_t taken; /* processes that have been picked */
static atomic_u32 ended;           /* processes that have run */
static atomic_u32 permissions;
static atomic_u32 returned;                 /* processes that blocked and are back */
static atomic_u32 entered;                  /* steps that wait without saying so */
static atomic_u32 started[RIG_WORKERS_MAX]; /* threads of spare workers */
static bool exited[RIG_WORKERS_MAX];
EXPLORE_OWN static bool in_step[RIG_WORKERS_MAX];
static uint32_t refusals; /* threads that the system will not create */
static atomic_u32 is_over;
static struct {
    pthread_mutex_t lock;
    pthread_cond_t never;
} watch;

/* ---- work ---- */

static struct process *take_work(struct scheduler *from)
{
    if (!rig_take_work(from)) {
        return NULL;
    }
    EXPLORE_CHECK(taken < process_count, "INV-3: each process runs once");
    return &processes[taken++];
}

static void wait_for_permission(void)
{
    explore_take(&permissions);
}

static void block(struct worker *worker, bool needs_permission)
{
    spare_begin_block(worker);
    if (needs_permission) {
        wait_for_permission();
    }
}

/* ---- in place of step.c, find_work.c, steal.c, submit.c ---- */

static void step(struct worker *worker, enum habit habit)
{
    switch (habit) {
    case ENDS:
        break;
    case PERMITS:
        (void)fetch_add_seq_cst(&permissions, 1);
        break;
    case WAITS:
        (void)fetch_add_seq_cst(&entered, 1);
        wait_for_permission();
        break;
    case BLOCKS:
        block(worker, true);
        spare_end_block(worker);
        (void)fetch_add_seq_cst(&returned, 1);
        break;
    case STAYS:
        (void)fetch_add_seq_cst(&permissions, 1);
        explore_take(&returned);
        break;
    case FORGETS:
        block(worker, true);
        break;
    case TWICE:
        block(worker, true);
        spare_end_block(worker);
        block(worker, false);
        spare_end_block(worker);
        break;
    }
}

void step_run(struct worker *worker, struct process *process)
{
    const uint32_t number = (uint32_t)(process - processes);
    explore_note("runs %u", (unsigned)number);
    in_step[worker->index] = true;
    step(worker, habits[number]);
    in_step[worker->index] = false;
    spare_return(worker); /* as step.c does */
    explore_note("has run %u", (unsigned)number);
    (void)fetch_add_seq_cst(&ended, 1);
}

struct process *find_work(struct worker *worker)
{
    return take_work(worker->sched);
}

void find_release_next(struct worker *worker)
{
    (void)worker;
}

void submit_all_to_global(struct worker *worker)
{
    idle_wake_one(&rig, worker);
}

void submit_outside(struct scheduler *sched, struct process *process)
{
    (void)sched;
    (void)process;
    EXPLORE_CHECK(false, "no task migrates");
}

/* ---- in place of shutdown.c, chores.c, poll.c and thread.c ---- */

void shutdown_worker_is_quiet(struct scheduler *sched)
{
    (void)sched;
}

void thread_unblock_signal(int signal)
{
    (void)signal;
    EXPLORE_CHECK(false, "no signal asks for backtraces");
}

int thread_create(pthread_t *thread, const char *name, void *(*function)(void *arg), void *arg)
{
    (void)name;
    EXPLORE_CHECK(function == worker_main, "only workers are started");
    const struct worker *worker = arg;
    if (refusals > 0) {
        refusals--;
        return SKUA_E_THREAD;
    }
    EXPLORE_CHECK(load_relaxed(&started[worker->index]) == 0, "a worker is started once");
    *thread = worker->index; /* the explorer's threads are in the same order */
    (void)fetch_add_relaxed(&started[worker->index], 1);
    return 0;
}

/* ---- threads ---- */

static const uint32_t numbers[] = {0, 1, 2, 3, 4};

static void run_worker(const void *number)
{
    struct worker *worker = &rig.workers[*(const uint32_t *)number];
    (void)worker_main(worker);
    explore_note("exits");
    exited[worker->index] = true;
}

static void run_spare(const void *number)
{
    explore_take(&started[*(const uint32_t *)number]);
    if (load_relaxed(&is_over) == 0) {
        run_worker(number);
    }
}

/* The monitor, which takes a worker for stuck. */
static void cover(uint32_t number)
{
    struct worker *worker = &rig.workers[number];
    const uint32_t absence = load_seq_cst(&worker->absence);
    if ((absence & ABSENCE_COVERED) == 0) {
        explore_note("covers worker %u", (unsigned)number);
        spare_cover(&rig, worker, absence);
    }
}

/* Rightly. */
static void run_monitor(const void *number)
{
    explore_take(&entered);
    cover(*(const uint32_t *)number);
}

/* At any moment: it may have looked long before. */
static void run_hasty_monitor(const void *number)
{
    cover(*(const uint32_t *)number);
}

static bool is_missed(const struct worker *worker)
{
    return in_step[worker->index] && (load_relaxed(&worker->absence) & ABSENCE_COVERED) == 0;
}

/* Again and again, until all processes have run. */
static void run_watching_monitor(const void *arg)
{
    (void)arg;
    mutex_lock(&watch.lock);
    while (load_relaxed(&ended) < process_count) {
        (void)condition_wait_until(&watch.never, &watch.lock, 1);
        mutex_unlock(&watch.lock);
        const uint32_t threads = scheduler_threads(&rig);
        for (uint32_t i = 0; i < threads; i++) {
            if (is_missed(&rig.workers[i])) {
                cover(i);
            }
        }
        mutex_lock(&watch.lock);
    }
    mutex_unlock(&watch.lock);
}

/* As shutdown.c, when no process is left. */
static void run_stopper(const void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < process_count; i++) {
        explore_take(&ended);
    }
    explore_note("tells all to exit");
    store_seq_cst(&rig.exiting, 1);
    idle_wake_all(&rig);
    spare_wake_resting(&rig);
    const uint32_t threads = scheduler_threads(&rig);
    for (uint32_t i = 0; i < threads; i++) {
        (void)pthread_join((pthread_t)i, NULL);
    }
    store_relaxed(&is_over, 1);
    for (uint32_t i = threads; i < rig.capacity; i++) {
        (void)fetch_add_relaxed(&started[i], 1); /* so that the explorer's threads end */
    }
}

/* ---- the beginning and the end ---- */

static void ignore_the_rest(void)
{
    for (uint32_t i = 0; i < rig.capacity; i++) {
        struct worker *worker = &rig.workers[i];
        explore_ignore(&worker->deque, sizeof worker->deque);
    }
    explore_ignore(&rig.phase, sizeof rig.phase);
    explore_ignore(&rig.poll, sizeof rig.poll);
    explore_ignore(&rig.monitor_asleep, sizeof rig.monitor_asleep);
}

/* All processes are there from the beginning. */
static void setup(uint32_t workers, uint32_t spares, const enum habit *plan, uint32_t count)
{
    rig_reset(workers + spares);
    rig.worker_count = workers;
    store_relaxed(&rig.threads, workers);
    parking_init(&rig.parking, rig.capacity, workers);
    store_relaxed(&rig.global.sorted, count);
    store_relaxed(&ended, 0);
    store_relaxed(&permissions, 0);
    store_relaxed(&returned, 0);
    store_relaxed(&entered, 0);
    store_relaxed(&is_over, 0);
    for (uint32_t i = 0; i < rig.capacity; i++) {
        rig.workers[i].retires = i >= workers;
        store_relaxed(&started[i], 0);
    }
    memset(exited, 0, sizeof exited);
    memset(in_step, 0, sizeof in_step);
    memset(has_looked, 0, sizeof has_looked);
    habits = plan;
    process_count = count;
    taken = refusals = 0;
    ignore_the_rest();
}

static const enum habit one_blocks[] = {BLOCKS, PERMITS};
static const enum habit one_stays[] = {BLOCKS, STAYS};
static const enum habit one_forgets[] = {FORGETS, PERMITS, ENDS};
static const enum habit one_blocks_twice[] = {TWICE, PERMITS};
static const enum habit one_waits[] = {WAITS, PERMITS};
static const enum habit two_block[] = {BLOCKS, BLOCKS, PERMITS, PERMITS};
static const enum habit in_turn[] = {BLOCKS, PERMITS, BLOCKS, PERMITS};
static const enum habit stuck_in_turn[] = {WAITS, PERMITS, BLOCKS, PERMITS, WAITS, PERMITS};
static const enum habit all_end[] = {ENDS, ENDS};
static const enum habit spare_blocks[] = {BLOCKS, BLOCKS, PERMITS, PERMITS, ENDS};

#define SETUP(name_, workers_, spares_, plan_)                                                     \
    static void name_(void)                                                                        \
    {                                                                                              \
        setup(workers_, spares_, plan_, COUNT_OF(plan_));                                          \
    }

SETUP(setup_blocks, 1, 1, one_blocks)
SETUP(setup_stays, 1, 1, one_stays)
SETUP(setup_forgets, 1, 1, one_forgets)
SETUP(setup_twice, 1, 2, one_blocks_twice)
SETUP(setup_waits, 1, 1, one_waits)
SETUP(setup_two_block, 2, 2, two_block)
SETUP(setup_in_turn, 1, 2, in_turn)
SETUP(setup_all_end, 1, 1, all_end)
SETUP(setup_spare_blocks, 1, 2, spare_blocks)

SETUP(setup_limit, 1, 1, in_turn)
SETUP(setup_limit_stuck, 1, 1, stuck_in_turn)

static void setup_refused(void)
{
    setup_limit();
    refusals = 1;
}

static bool rests(uint32_t worker)
{
    for (uint32_t i = 0; i < load_relaxed(&rig.spare.resting); i++) {
        if (rig.spare.rest[i] == worker) {
            return true;
        }
    }
    return false;
}

static bool is_marked(uint32_t worker)
{
    return (load_relaxed(&rig.parking.sleepers[0]) >> worker & 1) != 0;
}

/* All processes have run; those of whom none is left but sleepers. */
static bool all_is_done(void)
{
    return load_relaxed(&ended) == process_count;
}

static void check_workers(uint32_t threads)
{
    for (uint32_t i = 0; i < threads; i++) {
        const uint32_t word = load_relaxed(&rig.workers[i].token.word);
        EXPLORE_CHECK(!in_step[i], "every step ends");
        EXPLORE_CHECK(!(is_marked(i) && rests(i)), "INV-8: who rests is no sleeper");
        EXPLORE_CHECK((is_marked(i) || rests(i)) == !exited[i], "no worker is lost");
        EXPLORE_CHECK(word == (exited[i] ? TOKEN_NONE : TOKEN_AWAITED), "INV-8: tokens match");
        EXPLORE_CHECK(i >= rig.worker_count || !rests(i), "only spare workers rest");
    }
}

static void finish(void)
{
    const uint32_t threads = load_relaxed(&rig.threads);
    EXPLORE_CHECK(load_relaxed(&rig.parking.searching) == 0, "INV-9: nobody searches");
    EXPLORE_CHECK(load_relaxed(&rig.global.sorted) == 0, "INV-10: no work waits");
    check_workers(threads);
    uint32_t covered = 0;
    for (uint32_t i = 0; i < threads; i++) {
        covered += (load_relaxed(&rig.workers[i].absence) & ABSENCE_COVERED) != 0;
    }
    const uint32_t active = threads - rig.worker_count - load_relaxed(&rig.spare.resting);
    EXPLORE_CHECK(load_relaxed(&rig.spare.surplus) + covered == active,
                  "INV-18: surplus and covered absences are the spare workers that do not rest");
}

/* The spare worker comes back from its step when it is one too many. */
static void finish_rested(void)
{
    finish();
    EXPLORE_CHECK(load_relaxed(&rig.spare.surplus) == 0 && load_relaxed(&rig.spare.resting) == 1,
                  "who is one too many rests after its step");
}

static void finish_exited(void)
{
    for (uint32_t i = 0; i < load_relaxed(&rig.threads); i++) {
        EXPLORE_CHECK(exited[i], "all workers exit");
        EXPLORE_CHECK(load_relaxed(&rig.workers[i].token.word) == TOKEN_NONE, "no token is left");
    }
    EXPLORE_CHECK(load_relaxed(&rig.parking.searching) == 0, "INV-9: nobody searches");
    EXPLORE_CHECK(load_relaxed(&rig.parking.sleepers[0]) == 0, "INV-8: nobody sleeps");
    EXPLORE_CHECK(load_relaxed(&rig.spare.resting) == 0, "nobody rests");
}

#define WORKER(number)        EXPLORE_THREAD("worker" #number, run_worker, &numbers[number])
#define SPARE(number)         EXPLORE_THREAD("spare" #number, run_spare, &numbers[number])
#define MONITOR(number)       EXPLORE_THREAD("monitor", run_monitor, &numbers[number])
#define HASTY_MONITOR(number) EXPLORE_THREAD("monitor", run_hasty_monitor, &numbers[number])
#define WATCHING_MONITOR      EXPLORE_THREAD("monitor", run_watching_monitor, NULL)
#define STOPPER               EXPLORE_THREAD("stopper", run_stopper, NULL)

#define MODEL(name_, mode_, bound_, setup_, ...)                                                   \
    {                                                                                              \
        .name = name_, .mode = mode_, .bound = bound_, .setup = setup_, .threads = {__VA_ARGS__},  \
        .may_rest = all_is_done, .finish = finish, .mutexes_are_open = true,                       \
    }
#define ALL(name_, setup_, ...) MODEL(name_, EXPLORE_ALL, 0, setup_, __VA_ARGS__)
#define BOUNDED(name_, bound_, setup_, ...)                                                        \
    MODEL(name_, EXPLORE_PREEMPTIONS, bound_, setup_, __VA_ARGS__)
/* With a monitor that looks when nothing else happens. */
#define TIMED(name_, mode_, bound_, setup_, ...)                                                   \
    {                                                                                              \
        .name = name_, .mode = mode_, .bound = bound_, .setup = setup_, .threads = {__VA_ARGS__},  \
        .timeouts = 20, .time_is_slow = true, .may_rest = all_is_done, .finish = finish,           \
        .mutexes_are_open = true,                                                                  \
    }
#define WATCHED(name_, bound_, setup_, ...)                                                        \
    TIMED(name_, EXPLORE_PREEMPTIONS, bound_, setup_, __VA_ARGS__)
#define RANDOM(name_, setup_, ...) TIMED(name_, EXPLORE_RANDOM, 50000, setup_, __VA_ARGS__)
/* Nobody may sleep for ever. */
#define STOPPING(name_, bound_, setup_, ...)                                                       \
    {                                                                                              \
        .name = name_, .mode = EXPLORE_PREEMPTIONS, .bound = bound_, .setup = setup_,              \
        .threads = {__VA_ARGS__, STOPPER}, .finish = finish_exited, .mutexes_are_open = true,      \
    }

static const struct explore_model models[] = {
    BOUNDED("block", 3, setup_blocks, WORKER(0), SPARE(1)),
    {
        .name = "rest",
        .mode = EXPLORE_ALL,
        .setup = setup_stays,
        .threads = {WORKER(0), SPARE(1)},
        .may_rest = all_is_done,
        .finish = finish_rested,
    },
    BOUNDED("forget", 3, setup_forgets, WORKER(0), SPARE(1)),
    BOUNDED("twice", 3, setup_twice, WORKER(0), SPARE(1), SPARE(2)),
    BOUNDED("in_turn", 2, setup_in_turn, WORKER(0), SPARE(1), SPARE(2)),
    BOUNDED("two_block", 1, setup_two_block, WORKER(0), WORKER(1), SPARE(2), SPARE(3)),
    BOUNDED("spare_blocks", 2, setup_spare_blocks, WORKER(0), SPARE(1), SPARE(2)),
    BOUNDED("stuck", 3, setup_waits, WORKER(0), SPARE(1), MONITOR(0)),
    BOUNDED("block_and_cover", 2, setup_twice, WORKER(0), SPARE(1), SPARE(2), HASTY_MONITOR(0)),
    BOUNDED("cover_who_is_back", 3, setup_all_end, WORKER(0), SPARE(1), HASTY_MONITOR(0)),
    STOPPING("stop", 2, setup_blocks, WORKER(0), SPARE(1)),
    STOPPING("stop_two", 1, setup_spare_blocks, WORKER(0), SPARE(1), SPARE(2)),
    STOPPING("stop_after_cover", 2, setup_all_end, WORKER(0), SPARE(1), HASTY_MONITOR(0)),
    WATCHED("limit", 2, setup_limit, WORKER(0), SPARE(1), WATCHING_MONITOR),
    WATCHED("limit_stuck", 3, setup_limit_stuck, WORKER(0), SPARE(1), WATCHING_MONITOR),
    WATCHED("refused", 3, setup_refused, WORKER(0), SPARE(1), WATCHING_MONITOR),
    WATCHED("both", 1, setup_spare_blocks, WORKER(0), SPARE(1), SPARE(2), HASTY_MONITOR(0),
            WATCHING_MONITOR),
    RANDOM("many", setup_spare_blocks, WORKER(0), SPARE(1), SPARE(2), HASTY_MONITOR(0),
           WATCHING_MONITOR),
    RANDOM("many_two", setup_two_block, WORKER(0), WORKER(1), SPARE(2), SPARE(3), HASTY_MONITOR(1)),
};

EXPLORE_MAIN(models)
