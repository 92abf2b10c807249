/* SPDX-License-Identifier: MIT */
/* concurrent/parking.h and sched/idle.c: workers that search, sleep and are woken. All work is one
 * counter, the length of the global queue: publishers add to it and call idle_wake_one, workers
 * take from it through idle_find. A search looks at it once; that a real one looks again makes it
 * find more, not less.
 *
 * A *stuck* worker gets one piece of work and never comes back. Then each piece needs a worker of
 * its own, and work that waits while a worker sleeps is a wake-up that was lost, even if it only
 * cost parallelism.
 *
 * INV-8:  only who claimed a sleeper gives it a token; who sleeps in the end has its bit set and no
 *         token.
 * INV-9:  `searching` is back at zero in the end.
 * INV-10: no work waits while a worker sleeps. */
#include "explore.h"
#include "no_sources.h"
#include "one_queue.h"
#include "rig.h"
#include "sched/chores.h"
#include "sched/poll.h"
#include "sched/shutdown.h"
#include "sched/worker.h"

#define WORKERS_MAX   3
#define TOKEN_NONE    0
#define TOKEN_AWAITED 2

static struct scheduler sched;
static struct worker workers[WORKERS_MAX];
static struct process work;

/* ---- in place of find_work.c, steal.c, shutdown.c, chores.c and poll.c ---- */

static struct process *take_work(struct scheduler *from)
{
    if (!rig_take_work(from)) {
        return NULL;
    }
    explore_note("has work");
    return &work;
}

void shutdown_worker_is_quiet(struct scheduler *stopping)
{
    (void)stopping;
}

/* The search that follows looks into the same source. */
struct process *find_work(struct worker *worker)
{
    (void)worker;
    return NULL;
}

/* ---- threads ---- */

static const uint32_t numbers[] = {0, 1, 2, 3};

static void publish(struct worker *worker)
{
    (void)fetch_add_seq_cst(&sched.global.sorted, 1); /* P1 */
    idle_wake_one(&sched, worker);
}

static void run_publisher(const void *count)
{
    for (uint32_t i = 0; i < *(const uint32_t *)count; i++) {
        publish(NULL);
    }
}

/* As worker_main, when find_work has found nothing. */
static void run_stuck(const void *number)
{
    (void)!idle_find(&sched.workers[*(const uint32_t *)number]);
}

/* Publishes in its step, then does not come back. */
static void run_stuck_publishing(const void *number)
{
    struct worker *worker = &sched.workers[*(const uint32_t *)number];
    if (idle_find(worker) != NULL) {
        publish(worker);
    }
}

static void run_worker(const void *number)
{
    while (idle_find(&sched.workers[*(const uint32_t *)number]) != NULL) {
    }
}

/* As shutdown.c lets the workers exit. */
static void run_stopper(const void *arg)
{
    (void)arg;
    store_seq_cst(&sched.exiting, 1);
    idle_wake_all(&sched);
}

/* ---- the beginning and the end ---- */

static void setup(uint32_t worker_count)
{
    rig_init_scheduler(&sched, workers, worker_count, WORKERS_MAX);
    store_relaxed(&sched.global.sorted, 0);
    for (uint32_t i = 0; i < WORKERS_MAX; i++) {
        has_looked[i] = false;
        explore_ignore(&workers[i].deque, sizeof workers[i].deque); /* always empty */
    }
}

static void setup_running(uint32_t worker_count)
{
    setup(worker_count);
    explore_ignore(&sched.exiting, sizeof sched.exiting); /* nobody sets it */
}

static void setup_one(void)
{
    setup_running(1);
}

static void setup_two(void)
{
    setup_running(2);
}

static void setup_three(void)
{
    setup_running(3);
}

/* A piece of work for each is there before anybody looks. */
static void setup_two_with_work(void)
{
    setup_running(2);
    store_relaxed(&sched.global.sorted, 2);
}

static void setup_two_stopping(void)
{
    setup(2);
}

static bool no_work_is_left(void)
{
    EXPLORE_CHECK(load_relaxed(&sched.global.sorted) == 0, "INV-10: no work waits for a sleeper");
    return true;
}

static void finish(void)
{
    EXPLORE_CHECK(load_relaxed(&sched.parking.searching) == 0, "INV-9: nobody searches");
    const uint64_t sleepers = load_relaxed(&sched.parking.sleepers[0]);
    for (uint32_t i = 0; i < sched.worker_count; i++) {
        const bool sleeps = (sleepers >> i & 1) != 0;
        EXPLORE_CHECK(load_relaxed(&workers[i].token.word) == (sleeps ? TOKEN_AWAITED : TOKEN_NONE),
                      "INV-8: the bits are those that sleep, and no token is left over");
    }
}

#define PUBLISHER(count)  EXPLORE_THREAD("publisher", run_publisher, &numbers[count])
#define PUBLISHER2(count) EXPLORE_THREAD("publisher2", run_publisher, &numbers[count])
#define STUCK(number)     EXPLORE_THREAD("stuck" #number, run_stuck, &numbers[number])
#define STUCK_PUBLISHING(number)                                                                   \
    EXPLORE_THREAD("busy" #number, run_stuck_publishing, &numbers[number])
#define WORKER(number) EXPLORE_THREAD("worker" #number, run_worker, &numbers[number])
#define STOPPER        EXPLORE_THREAD("stopper", run_stopper, NULL)

#define MODEL(name_, setup_, mode_, bound_, ...)                                                   \
    {                                                                                              \
        .name = name_, .mode = mode_, .bound = bound_, .setup = setup_, .threads = {__VA_ARGS__},  \
        .may_rest = no_work_is_left, .finish = finish,                                             \
    }
#define ALL(name_, setup_, ...) MODEL(name_, setup_, EXPLORE_ALL, 0, __VA_ARGS__)
#define BOUNDED(name_, bound_, setup_, ...)                                                        \
    MODEL(name_, setup_, EXPLORE_PREEMPTIONS, bound_, __VA_ARGS__)
#define RANDOM(name_, setup_, ...) MODEL(name_, setup_, EXPLORE_RANDOM, 100000, __VA_ARGS__)

static const struct explore_model models[] = {
    ALL("one", setup_one, WORKER(0), PUBLISHER(2)),
    BOUNDED("one_two_publishers", 4, setup_one, WORKER(0), PUBLISHER(1), PUBLISHER2(1)),
    BOUNDED("two_stuck_one_piece", 4, setup_two, STUCK(0), STUCK(1), PUBLISHER(1)),
    ALL("two_stuck_with_work", setup_two_with_work, STUCK(0), STUCK(1)),
    BOUNDED("two_stuck", 4, setup_two, STUCK(0), STUCK(1), PUBLISHER(2)),
    BOUNDED("two_stuck_two_publishers", 3, setup_two, STUCK(0), STUCK(1), PUBLISHER(1),
            PUBLISHER2(1)),
    BOUNDED("two_stuck_chain", 4, setup_two, STUCK_PUBLISHING(0), STUCK_PUBLISHING(1),
            PUBLISHER(1)),
    BOUNDED("two_workers", 3, setup_two, WORKER(0), WORKER(1), PUBLISHER(2)),
    BOUNDED("three_stuck", 2, setup_three, STUCK(0), STUCK(1), STUCK(2), PUBLISHER(3)),
    BOUNDED("three_stuck_two_publishers", 1, setup_three, STUCK(0), STUCK(1), STUCK(2),
            PUBLISHER(1), PUBLISHER2(1)),
    RANDOM("three_stuck_random", setup_three, STUCK(0), STUCK(1), STUCK(2), PUBLISHER(2),
           PUBLISHER2(1)),
    RANDOM("three_workers", setup_three, WORKER(0), WORKER(1), WORKER(2), PUBLISHER(3),
           PUBLISHER2(3)),
    {
        .name = "stop",
        .mode = EXPLORE_PREEMPTIONS,
        .bound = 2,
        .setup = setup_two_stopping,
        .threads = {WORKER(0), WORKER(1), PUBLISHER(1), STOPPER},
        .finish = finish, /* and nobody may sleep for ever */
    },
    {
        .name = "token",
        .mode = EXPLORE_PREEMPTIONS,
        .bound = 2,
        .spurious_wakes = 2,
        .setup = setup_two,
        .threads = {STUCK(0), STUCK(1), PUBLISHER(2)},
        .may_rest = no_work_is_left,
        .finish = finish,
    },
};

EXPLORE_MAIN(models)
