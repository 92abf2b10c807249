/* SPDX-License-Identifier: MIT */
/* sched/submit.c, find_work.c and steal.c: the next slot of a worker, which its owner fills and
 * empties while thieves empty it too, and the ways from there to the deque and the queues that all
 * share.
 * The functions are the real ones; only waking is left out.
 *
 * INV-3: the token of a process is in exactly one next slot, deque or queue, or in one worker's
 *        hands: nothing that was submitted is lost or found twice. */
#include <stdlib.h>

#include "explore.h"
#include "hand_out.h"
#include "nothing_due.h"
#include "rig.h"
#include "sched/checkpoint.h"
#include "sched/worker.h"
#include "tables.h"

#define WORKERS_MAX 3
#define SOME_EVENT  1
#define PARENT      (PROCESSES_MAX - 3)

static struct scheduler sched;
static struct worker workers[WORKERS_MAX];
static skua_context of_parent = {.process = &processes[PARENT]};
static uint32_t outside_first; /* processes from here on come from outside */

/* Where a thief finds the events of what it has taken. */
static struct event_node nodes[SOME_EVENT + 1];
static void *node_segment = nodes;

/* In place of idle.c. */
void idle_wake_one(struct scheduler *all, struct worker *worker)
{
    (void)all;
    (void)worker;
}

static void account(const struct process *process)
{
    const size_t number = (size_t)(process - processes);
    EXPLORE_CHECK(number < PROCESSES_MAX, "INV-3: what is found was submitted");
    EXPLORE_CHECK(submitted[number], "INV-3: found once");
    submitted[number] = false;
    explore_note("has %u", (unsigned)number);
}

/* What goes on by its own will, or has events left, or has readied two others at once. */
static void go_on(struct worker *worker, struct process *process, char how, uint32_t *number)
{
    process->backlog = how == 's' ? SOME_EVENT : OBJECT_NONE;
    for (uint32_t i = 0; how == 'w' && i < 2; i++) {
        submit_later(worker, hand_out((*number)++));
    }
    submit_unfinished(worker, hand_out((uint32_t)(process - processes)));
}

/* n fills the next slot, d the deque, c does one of these by starting a process, and p wakes who
 * has started those; f looks for work; b, s and w do too, and what they find goes
 * on: by its own will, because it has events left, or because it has more to ready. */
static void run_owner(const void *program)
{
    struct worker *worker = &workers[0];
    uint32_t number = 0;
    for (const char *at = program; *at != '\0'; at++) {
        if (*at == 'n') {
            submit_ready(worker->sched, worker, hand_out(number++));
        } else if (*at == 'd') {
            submit_to_deque(worker, hand_out(number++));
        } else if (*at == 'c') {
            submit_spawned(worker->sched, worker, hand_out(number++));
        } else if (*at == 'p') {
            submit_ready(worker->sched, worker, hand_out(PARENT));
        } else {
            struct process *process = find_work(worker);
            if (process != NULL) {
                account(process);
            }
            if (process != NULL && *at != 'f') {
                go_on(worker, process, *at, &number);
            }
        }
    }
}

/* Steals as at the end of a search, then looks into its own deque; both twice. */
static void run_thief(const void *number)
{
    struct worker *worker = &workers[atoi(number)];
    for (int round = 0; round < 2; round++) {
        steal_begin(worker);
        struct process *process = steal(worker, true);
        if (process != NULL) {
            account(process);
        }
        process = find_work(worker);
        if (process != NULL) {
            account(process);
        }
    }
}

static void push_behind(uint32_t number)
{
    struct queue_link *link = &hand_out(number)->link.queue;
    global_queue_push_any(&sched.behind, link, link);
}

static void run_outside(const void *count)
{
    for (int i = 0; i < atoi(count); i++) {
        submit_outside(&sched, hand_out(outside_first + (uint32_t)i));
    }
}

static void setup(uint32_t worker_count)
{
    rig_init_scheduler(&sched, workers, worker_count, WORKERS_MAX);
    global_queue_init(&sched.global);
    explore_heed(&sched.behind);
    sched.events.segments = &node_segment;
    outside_first = PARENT + 1;
    workers[0].context = &of_parent;
    for (uint32_t i = 0; i < PROCESSES_MAX; i++) {
        submitted[i] = false;
    }
}

static void setup_two(void)
{
    setup(2);
}

static void setup_three(void)
{
    setup(3);
}

/* The owner's first pick is one for fairness. */
static void make_fair(void)
{
    checkpoint_hasten(&workers[0]);
    workers[0].oldest_due = workers[0].behind_due = 0;
    workers[0].gave_way = true; /* so what is in the next slot goes to the deque */
}

static void setup_two_fair(void)
{
    setup(2);
    make_fair();
}

static void setup_three_fair(void)
{
    setup(3);
    make_fair();
}

/* And there is something behind. */
static void setup_two_behind(void)
{
    setup_two_fair();
    push_behind(PROCESSES_MAX - 1);
    push_behind(PROCESSES_MAX - 2);
}

static void drain(struct worker *worker)
{
    struct process *process = exchange_acq_rel(&worker->next, NULL);
    while (process != NULL) {
        account(process);
        process = deque_pop_owner(&worker->deque);
    }
    while ((process = find_work(worker)) != NULL) {
        account(process);
    }
}

static void finish(void)
{
    for (uint32_t i = 0; i < sched.worker_count; i++) {
        drain(&workers[i]);
    }
    for (uint32_t i = 0; i < PROCESSES_MAX; i++) {
        EXPLORE_CHECK(!submitted[i], "INV-3: nothing is lost");
    }
    EXPLORE_CHECK(!global_queue_has_items(&sched.global), "INV-3: the length is right");
    EXPLORE_CHECK(!global_queue_has_items(&sched.behind), "INV-3: the length is right");
}

#define OWNER(program) EXPLORE_THREAD("owner", run_owner, program)
#define THIEF          EXPLORE_THREAD("thief", run_thief, "1")
#define OTHER_THIEF    EXPLORE_THREAD("other", run_thief, "2")
#define OUTSIDE(count) EXPLORE_THREAD("outside", run_outside, count)

#define MAY_REST NULL
#define RANDOM_MODEL(name_, setup_, ...)                                                           \
    {                                                                                              \
        .name = name_, .mode = EXPLORE_RANDOM, .bound = 50000, .stale = 2, .setup = setup_,        \
        .threads = {__VA_ARGS__}, .finish = finish,                                                \
    }

static const struct explore_model models[] = {
    WEAK("put_take", setup_two, finish, OWNER("nf"), THIEF),
    WEAK("put_take_put", setup_two, finish, OWNER("nfnf"), THIEF),
    WEAK("put_put", setup_two, finish, OWNER("nnf"), THIEF),
    ALL("put_two_thieves", setup_three, finish, OWNER("nfnf"), THIEF, OTHER_THIEF),
    ALL("displace_two_thieves", setup_three, finish, OWNER("nnff"), THIEF, OTHER_THIEF),
    WEAK("fair", setup_two_fair, finish, OWNER("nnnff"), THIEF),
    ALL("fair_two_thieves", setup_three_fair, finish, OWNER("nnf"), THIEF, OTHER_THIEF),
    WEAK("behind", setup_two, finish, OWNER("nbf"), THIEF),
    ALL("behind_outside", setup_two, finish, OWNER("nbb"), THIEF, OUTSIDE("1")),
    WEAK("behind_first", setup_two_behind, finish, OWNER("nbf"), THIEF),
    WEAK("stays", setup_two, finish, OWNER("nsf"), THIEF),
    WEAK("stays_before_others", setup_two, finish, OWNER("ndnsf"), THIEF),
    WEAK("readies", setup_two, finish, OWNER("nwf"), THIEF),
    WEAK("readies_and_goes_on", setup_two, finish, OWNER("nwffw"), THIEF),
    WEAK("readies_beside_others", setup_two, finish, OWNER("ndwff"), THIEF),
    WEAK("readies_and_spills", setup_two, finish, OWNER("ndddwf"), THIEF),
    WEAK("follows_children", setup_two, finish, OWNER("cccfpff"), THIEF),
    WEAK("follows_until_displaced", setup_two, finish, OWNER("cccfpfnff"), THIEF),
    WEAK("spill", setup_two, finish, OWNER("ddddnnf"), THIEF),
    RANDOM_MODEL("follows_two_thieves", setup_three, OWNER("cccfpff"), THIEF, OTHER_THIEF),
    RANDOM_MODEL("many", setup_three, OWNER("nnfbnnsbffnsnbf"), THIEF, OTHER_THIEF, OUTSIDE("2")),
};

EXPLORE_MAIN(models)
