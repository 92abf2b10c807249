/* SPDX-License-Identifier: MIT */
/* The workers' loop as a whole: worker.c, find_work.c, submit.c, steal.c, idle.c and poll.c as they
 * are, with steps that only submit. There are no timers and no descriptors (model_poll.c has them).
 * The searches are as long as the real ones, so this
 * looks at a sample of the schedules; model_parking.c and model_next.c look closer at the parts.
 *
 * A *stuck* step does not return. What it has put into the next slot then waits for a search; what
 * is in a deque or in the global queue must be found by whoever is left.
 *
 * INV-3:  nothing that was submitted is lost or run twice.
 * INV-8, INV-9: who sleeps in the end has its bit set and no token; nobody searches.
 * INV-10: no work waits in a deque or in the global queue while a worker sleeps. */
#include <string.h>

#include "explore.h"
#include "hand_out.h"
#include "no_upgrades.h"
#include "rig.h"
#include "sched/chores.h"
#include "sched/shutdown.h"
#include "sched/worker.h"

#define WORKERS_MAX   3
#define TOKEN_AWAITED 2
#define SOME_EVENT    1

/* What the step of a process does. */
struct plan {
    uint32_t first_child; /* when it runs for the first time, submits this and the following ones */
    uint32_t children;
    bool goes_behind; /* then: it has had its turns, and goes on by its own will */
    bool stays;       /* or it has events left */
    bool is_stuck;
};

static const struct plan *plans;
static struct scheduler sched;
static struct worker workers[WORKERS_MAX];
static uint32_t runs[PROCESSES_MAX];
static atomic_u32 never; /* stays zero */

/* ---- in place of step.c and shutdown.c ---- */

void step_run(struct worker *worker, struct process *process)
{
    const size_t number = (size_t)(process - processes);
    EXPLORE_CHECK(number < PROCESSES_MAX && submitted[number], "INV-3: found once");
    submitted[number] = false;
    runs[number]++;
    explore_note("runs %u", (unsigned)number);
    const struct plan *plan = &plans[number];
    for (uint32_t i = 0; i < plan->children && runs[number] == 1; i++) {
        submit_ready(worker->sched, worker, hand_out(plan->first_child + i));
    }
    if ((plan->goes_behind || plan->stays) && runs[number] == 1) {
        process->backlog = plan->stays ? SOME_EVENT : OBJECT_NONE;
        process_set_progress_owner(process, plan->goes_behind ? PROCESS_CONTINUES : 0);
        submit_unfinished(worker, hand_out((uint32_t)number));
    } else if (plan->is_stuck) {
        explore_take(&never);
    }
}

void shutdown_worker_is_quiet(struct scheduler *all)
{
    (void)all;
}

/* ---- threads ---- */

static const uint32_t numbers[] = {0, 1, 2, 3};

static void run_worker(const void *number)
{
    (void)worker_main(&workers[*(const uint32_t *)number]);
}

/* Submits the first processes from outside. */
static void run_outside(const void *count)
{
    for (uint32_t i = 0; i < *(const uint32_t *)count; i++) {
        submit_outside(&sched, hand_out(i));
    }
}

/* ---- the beginning and the end ---- */

static void setup(uint32_t worker_count, const struct plan *its_plans)
{
    plans = its_plans;
    rig_init_scheduler(&sched, workers, worker_count, WORKERS_MAX);
    store_relaxed(&never, 0);
    global_queue_init(&sched.global);
    explore_heed(&sched.behind);
    chores_init(&sched);
    memset(submitted, 0, sizeof submitted);
    memset(runs, 0, sizeof runs);
    for (uint32_t i = 0; i < WORKERS_MAX; i++) {
        workers[i].out.reserve_count = STEP_RESERVE;                    /* full: there is no pool */
        explore_ignore(&workers[i].absence, sizeof workers[i].absence); /* nobody looks for it */
    }
    explore_ignore(&sched.chores, sizeof sched.chores);
    explore_ignore(&sched.exiting, sizeof sched.exiting);
}

static const struct plan stuck[PROCESSES_MAX] = {
    {.is_stuck = true}, {.is_stuck = true}, {.is_stuck = true}};
static const struct plan stuck_parent[PROCESSES_MAX] = {
    {.first_child = 4, .children = 2, .is_stuck = true},
};
static const struct plan parents[PROCESSES_MAX] = {
    {.first_child = 3, .children = 3},
    {.first_child = 6, .children = 2},
};
/* It goes behind what its worker runs next, which does not return. */
static const struct plan behind_stuck[PROCESSES_MAX] = {
    {.first_child = 4, .children = 1, .goes_behind = true},
    [4] = {.is_stuck = true},
};

/* It stays before what it has woken, which does not return when another worker runs it. */
static const struct plan stays_stuck[PROCESSES_MAX] = {
    {.first_child = 4, .children = 2, .stays = true},
    [4] = {.is_stuck = true},
};

static void setup_two_stuck(void)
{
    setup(2, stuck);
}

static void setup_three_stuck(void)
{
    setup(3, stuck);
}

static void setup_stuck_parent(void)
{
    setup(2, stuck_parent);
}

static void setup_behind_stuck(void)
{
    setup(2, behind_stuck);
}

static void setup_stays_stuck(void)
{
    setup(2, stays_stuck);
}

static void setup_two_parents(void)
{
    setup(2, parents);
}

static void setup_three_parents(void)
{
    setup(3, parents);
}

static bool sleeps(uint32_t worker)
{
    return load_relaxed(&workers[worker].token.word) == TOKEN_AWAITED;
}

/* All threads sleep or are stuck. */
static bool no_work_waits(void)
{
    bool anybody_sleeps = false;
    bool work_waits =
        global_queue_has_items(&sched.global) || global_queue_has_items(&sched.behind);
    for (uint32_t i = 0; i < sched.worker_count; i++) {
        anybody_sleeps |= sleeps(i);
        work_waits |= deque_has_items_any(&workers[i].deque);
    }
    EXPLORE_CHECK(!anybody_sleeps || !work_waits, "INV-10: no work waits for a sleeper");
    return true;
}

static void finish(void)
{
    EXPLORE_CHECK(load_relaxed(&sched.parking.searching) == 0, "INV-9: nobody searches");
    const uint64_t sleepers = load_relaxed(&sched.parking.sleepers[0]);
    for (uint32_t i = 0; i < sched.worker_count; i++) {
        EXPLORE_CHECK((sleepers >> i & 1) == sleeps(i), "INV-8: the bits are those that sleep");
        const struct process *next = load_relaxed(&workers[i].next);
        EXPLORE_CHECK(next == NULL || !sleeps(i), "INV-10: nobody sleeps on its own work");
        if (next != NULL) {
            submitted[next - processes] = false;
        }
    }
    for (uint32_t i = 0; i < PROCESSES_MAX; i++) {
        EXPLORE_CHECK(!submitted[i] || global_queue_has_items(&sched.global) ||
                          global_queue_has_items(&sched.behind),
                      "INV-3: nothing is lost");
        EXPLORE_CHECK(runs[i] <= (plans[i].goes_behind || plans[i].stays ? 2 : 1),
                      "INV-3: nothing runs twice");
    }
}

#define WORKER(number) EXPLORE_THREAD("worker" #number, run_worker, &numbers[number])
#define OUTSIDE(count) EXPLORE_THREAD("outside", run_outside, &numbers[count])

#define MODEL(name_, mode_, bound_, setup_, ...)                                                   \
    {                                                                                              \
        .name = name_, .mode = mode_, .bound = bound_, .setup = setup_, .threads = {__VA_ARGS__},  \
        .may_rest = no_work_waits, .finish = finish,                                               \
    }
#define BOUNDED(name_, bound_, setup_, ...)                                                        \
    MODEL(name_, EXPLORE_PREEMPTIONS, bound_, setup_, __VA_ARGS__)
#define RANDOM(name_, setup_, ...) MODEL(name_, EXPLORE_RANDOM, 50000, setup_, __VA_ARGS__)

static const struct explore_model models[] = {
    BOUNDED("stuck", 2, setup_two_stuck, WORKER(0), WORKER(1), OUTSIDE(2)),
    BOUNDED("stuck_parent", 2, setup_stuck_parent, WORKER(0), WORKER(1), OUTSIDE(1)),
    BOUNDED("behind_stuck", 2, setup_behind_stuck, WORKER(0), WORKER(1), OUTSIDE(1)),
    BOUNDED("stays_stuck", 2, setup_stays_stuck, WORKER(0), WORKER(1), OUTSIDE(1)),
    BOUNDED("parents", 2, setup_two_parents, WORKER(0), WORKER(1), OUTSIDE(2)),
    RANDOM("stuck_random", setup_two_stuck, WORKER(0), WORKER(1), OUTSIDE(2)),
    RANDOM("stuck_parent_random", setup_stuck_parent, WORKER(0), WORKER(1), OUTSIDE(1)),
    RANDOM("parents_random", setup_two_parents, WORKER(0), WORKER(1), OUTSIDE(2)),
    RANDOM("three_stuck_random", setup_three_stuck, WORKER(0), WORKER(1), WORKER(2), OUTSIDE(3)),
    RANDOM("three_parents_random", setup_three_parents, WORKER(0), WORKER(1), WORKER(2),
           OUTSIDE(2)),
};

EXPLORE_MAIN(models)
