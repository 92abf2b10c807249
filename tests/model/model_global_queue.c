/* SPDX-License-Identifier: MIT */
/* concurrent/global_queue.h: chains are pushed to its inbox while others sort that in and pop
 * batches under its lock, and while others look whether there is something: as a hint, and in the
 * re-check of the parking protocol. The queue is the real
 * one, and so are sched/idle.c and concurrent/parking.c, with which workers search, sleep and are
 * woken here. Mutexes are open, so that the others come in between.
 *
 * A *stuck* worker gets one piece of work and never comes back: then each piece needs a worker of
 * its own, so a chain that is pushed with one wake-up must wake as many as it has pieces.
 *
 * INV-3:  what is pushed is popped once; nothing else is.
 * INV-6:  the items of one pusher come out in the order they went in.
 * INV-8, INV-9: who sleeps in the end has its bit set and no token; nobody searches.
 * INV-10: no item waits while a worker sleeps.
 * INV-21: what is counted as sorted is so when nobody is at it, and never more than was pushed,
 *         but for one that stands for those that are just being moved. */
#include <stdlib.h>
#include <string.h>

#include "explore.h"
#include "no_sources.h"
#include "one_queue.h"
#include "rig.h"
#include "sched/chores.h"
#include "sched/poll.h"
#include "sched/shutdown.h"
#include "sched/worker.h"

#define WORKERS_MAX   3
#define PUSHERS       3 /* the last one is the setup */
#define ITEMS_MAX     8 /* of one pusher */
#define TOKEN_NONE    0
#define TOKEN_AWAITED 2

struct item {
    struct process process; /* its link is the queue's */
    uint32_t pusher;
    uint32_t number;
    bool pushed;
    uint32_t popped;
};

static struct item items[PUSHERS][ITEMS_MAX];
EXPLORE_OWN static uint32_t pushed_count; /* before the push begins */
static struct scheduler sched;
static struct worker workers[WORKERS_MAX];

/* ---- the queue ---- */

static struct item *item_of(struct queue_link *link)
{
    return (struct item *)(void *)process_of_link(link);
}

static void account(struct item *item)
{
    EXPLORE_CHECK(item->pushed && ++item->popped == 1, "INV-3: popped once");
    explore_note("has item %u of pusher %u", (unsigned)item->number, (unsigned)item->pusher);
}

static void account_batch(struct queue_link **links, uint32_t count)
{
    uint32_t last[PUSHERS] = {0};
    for (uint32_t i = 0; i < count; i++) {
        struct item *item = item_of(links[i]);
        account(item);
        EXPLORE_CHECK(item->number >= last[item->pusher], "INV-6: a batch is in order");
        last[item->pusher] = item->number + 1;
    }
}

static uint32_t pop(uint32_t most)
{
    struct queue_link *links[PUSHERS * ITEMS_MAX + 1];
    const uint32_t count = global_queue_pop_any(&sched.global, links, most, 1);
    EXPLORE_CHECK(count <= most, "as many as asked for at most");
    account_batch(links, count);
    return count;
}

static void check_sorted(void)
{
    const uint32_t sorted = load_relaxed(&sched.global.sorted);
    EXPLORE_CHECK(sorted <= (pushed_count > 0 ? pushed_count : 1), "INV-21: no more than pushed");
}

/* Chains of the lengths that the digits of a text say, from one pusher. */
struct pushing {
    uint32_t pusher;
    const char *chains;
};

static void push_chain(struct item *first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        first[i].pushed = true;
        /* A link is what its last use left, except within the chain. */
        first[i].process.link.queue.next =
            i > 0 ? &first[i - 1].process.link.queue : &first[count - 1].process.link.queue;
    }
    pushed_count += count;
    explore_note("pushes %u", (unsigned)count);
    global_queue_push_any(&sched.global, &first[count - 1].process.link.queue,
                          &first->process.link.queue);
}

static void push_all(const struct pushing *pushing, bool wakes)
{
    struct item *next = items[pushing->pusher];
    for (const char *at = pushing->chains; *at != '\0'; at++) {
        const uint32_t count = (uint32_t)(*at - '0');
        push_chain(next, count);
        next += count;
        if (wakes) {
            idle_wake_one(&sched, NULL);
        }
    }
}

/* ---- in place of find_work.c, steal.c, shutdown.c, chores.c and poll.c ---- */

static struct item *pop_one(void)
{
    struct queue_link *link;
    if (!global_queue_has_items(&sched.global) ||
        global_queue_pop_any(&sched.global, &link, 1, 1) == 0) {
        return NULL;
    }
    account(item_of(link));
    return item_of(link);
}

static struct process *take_work(struct scheduler *from)
{
    (void)from;
    struct item *item = pop_one();
    return item != NULL ? &item->process : NULL;
}

/* The search that follows looks into the same source. */
struct process *find_work(struct worker *worker)
{
    (void)worker;
    return NULL;
}

void shutdown_worker_is_quiet(struct scheduler *all)
{
    (void)all;
}

/* ---- threads ---- */

static const uint32_t numbers[] = {0, 1, 2, 3, 4};

static void run_pusher(const void *pushing)
{
    push_all(pushing, false);
}

static void run_publisher(const void *pushing)
{
    push_all(pushing, true);
}

/* Pops batches of the sizes that the digits of a text say. */
static void run_popper(const void *sizes)
{
    for (const char *at = sizes; *at != '\0'; at++) {
        explore_note("popped %u", (unsigned)pop((uint32_t)(*at - '0')));
    }
}

/* Pops by the hint, as find_work.c does. */
static void run_hinted_popper(const void *tries)
{
    for (int left = atoi(tries); left > 0; left--) {
        (void)pop_one();
    }
}

static void run_reader(const void *tries)
{
    for (int left = atoi(tries); left > 0; left--) {
        (void)global_queue_has_items_recheck(&sched.global);
        check_sorted();
    }
}

static void run_stuck(const void *number)
{
    (void)!idle_find(&workers[*(const uint32_t *)number]);
}

static void run_worker(const void *number)
{
    while (idle_find(&workers[*(const uint32_t *)number]) != NULL) {
    }
}

/* ---- the beginning and the end ---- */

static void setup_items(void)
{
    memset(items, 0, sizeof items);
    for (uint32_t pusher = 0; pusher < PUSHERS; pusher++) {
        for (uint32_t i = 0; i < ITEMS_MAX; i++) {
            items[pusher][i].pusher = pusher;
            items[pusher][i].number = i;
        }
    }
    pushed_count = 0;
}

static void setup_workers(uint32_t worker_count)
{
    setup_items();
    global_queue_init(&sched.global);
    rig_init_scheduler(&sched, workers, worker_count, WORKERS_MAX);
    for (uint32_t i = 0; i < WORKERS_MAX; i++) {
        has_looked[i] = false;
        explore_ignore(&workers[i].deque, sizeof workers[i].deque); /* always empty */
    }
    explore_ignore(&sched.spare.resting, sizeof sched.spare.resting); /* no spare workers */
    explore_ignore(&sched.exiting, sizeof sched.exiting);
}

static void setup_none(void)
{
    setup_workers(0);
}

/* Three items are there before anybody comes. */
static void setup_three_items(void)
{
    setup_none();
    push_chain(items[PUSHERS - 1], 3);
}

static void setup_one(void)
{
    setup_workers(1);
}

static void setup_two(void)
{
    setup_workers(2);
}

static void setup_three(void)
{
    setup_workers(3);
}

static uint32_t list_length(struct queue_link *link)
{
    uint32_t length = 0;
    for (; link != NULL; link = link->next) {
        EXPLORE_CHECK(item_of(link)->pushed && item_of(link)->popped == 0, "INV-3: not popped yet");
        EXPLORE_CHECK(++length <= pushed_count, "INV-3: the list ends");
    }
    return length;
}

static void check_items(void)
{
    uint32_t popped = 0;
    for (uint32_t pusher = 0; pusher < PUSHERS; pusher++) {
        for (uint32_t i = 0; i < ITEMS_MAX; i++) {
            popped += items[pusher][i].popped;
        }
    }
    const uint32_t sorted = list_length(sched.global.first);
    const uint32_t left = sorted + list_length(load_relaxed(&sched.global.inbox));
    EXPLORE_CHECK(popped + left == pushed_count, "INV-3: nothing is lost");
    EXPLORE_CHECK(load_relaxed(&sched.global.sorted) == sorted, "INV-21: the count is right");
}

/* What was popped of a pusher is what it pushed first. */
static void check_order(void)
{
    for (uint32_t pusher = 0; pusher < PUSHERS; pusher++) {
        for (uint32_t i = 1; i < ITEMS_MAX; i++) {
            const struct item *item = &items[pusher][i];
            EXPLORE_CHECK(item->popped == 0 || !item[-1].pushed || item[-1].popped == 1,
                          "INV-6: first in, first out");
        }
    }
}

static void finish(void)
{
    check_items();
    check_order();
}

static bool no_item_waits(void)
{
    EXPLORE_CHECK(!global_queue_has_items(&sched.global), "INV-10: no item waits for a sleeper");
    return true;
}

static void finish_parked(void)
{
    finish();
    EXPLORE_CHECK(load_relaxed(&sched.parking.searching) == 0, "INV-9: nobody searches");
    const uint64_t sleepers = load_relaxed(&sched.parking.sleepers[0]);
    for (uint32_t i = 0; i < sched.worker_count; i++) {
        const bool sleeps = (sleepers >> i & 1) != 0;
        EXPLORE_CHECK(load_relaxed(&workers[i].token.word) == (sleeps ? TOKEN_AWAITED : TOKEN_NONE),
                      "INV-8: the bits are those that sleep, and no token is left over");
    }
}

static const struct pushing one = {0, "1"};
static const struct pushing one_one = {0, "11"};
static const struct pushing two = {0, "2"};
static const struct pushing two_one = {0, "21"};
static const struct pushing three = {0, "3"};
static const struct pushing many = {0, "1213"};
static const struct pushing other_one = {1, "1"};
static const struct pushing other_two = {1, "2"};
static const struct pushing other_many = {1, "311"};

#define PUSHER(chains)          EXPLORE_THREAD("pusher", run_pusher, &(chains))
#define OTHER_PUSHER(chains)    EXPLORE_THREAD("pusher2", run_pusher, &(chains))
#define PUBLISHER(chains)       EXPLORE_THREAD("publisher", run_publisher, &(chains))
#define OTHER_PUBLISHER(chains) EXPLORE_THREAD("publisher2", run_publisher, &(chains))
#define POPPER(sizes)           EXPLORE_THREAD("popper", run_popper, sizes)
#define OTHER_POPPER(sizes)     EXPLORE_THREAD("popper2", run_popper, sizes)
#define HINTED_POPPER(tries)    EXPLORE_THREAD("hinted", run_hinted_popper, tries)
#define READER(tries)           EXPLORE_THREAD("reader", run_reader, tries)
#define STUCK(number)           EXPLORE_THREAD("stuck" #number, run_stuck, &numbers[number])
#define WORKER(number)          EXPLORE_THREAD("worker" #number, run_worker, &numbers[number])

#define MODEL(name_, mode_, bound_, stale_, setup_, finish_, ...)                                  \
    {                                                                                              \
        .name = name_, .mode = mode_, .bound = bound_, .stale = stale_, .mutexes_are_open = true,  \
        .setup = setup_, .threads = {__VA_ARGS__}, .may_rest = no_item_waits, .finish = finish_,   \
    }
#define QUEUE(name_, setup_, ...)                                                                  \
    MODEL(name_, EXPLORE_ALL, 0, UINT32_MAX, setup_, finish, __VA_ARGS__)
#define PARKED(name_, setup_, ...)                                                                 \
    MODEL(name_, EXPLORE_ALL, 0, 1, setup_, finish_parked, __VA_ARGS__)
#define BOUNDED(name_, bound_, stale_, setup_, ...)                                                \
    MODEL(name_, EXPLORE_PREEMPTIONS, bound_, stale_, setup_, finish_parked, __VA_ARGS__)
#define RANDOM(name_, setup_, finish_, ...)                                                        \
    MODEL(name_, EXPLORE_RANDOM, 50000, 2, setup_, finish_, __VA_ARGS__)

static const struct explore_model models[] = {
    /* The queue and its length. */
    QUEUE("push_pop", setup_none, PUSHER(two_one), POPPER("22"), READER("2")),
    QUEUE("two_pushers", setup_none, PUSHER(two), OTHER_PUSHER(other_two), POPPER("31")),
    QUEUE("two_poppers", setup_three_items, PUSHER(two), POPPER("22"), OTHER_POPPER("3"),
          READER("1")),
    QUEUE("by_hint", setup_none, PUSHER(two_one), HINTED_POPPER("2"), POPPER("2")),
    QUEUE("emptied", setup_three_items, PUSHER(one_one), POPPER("41"), HINTED_POPPER("2")),
    RANDOM("many", setup_three_items, finish, PUSHER(many), OTHER_PUSHER(other_one), POPPER("2121"),
           OTHER_POPPER("1311"), READER("5")),
    /* Against workers that go to sleep. */
    PARKED("one", setup_one, WORKER(0), PUBLISHER(two)),
    PARKED("one_twice", setup_one, WORKER(0), PUBLISHER(one_one)),
    PARKED("one_popped", setup_one, WORKER(0), PUBLISHER(two), POPPER("1")),
    BOUNDED("one_two_publishers", 2, 2, setup_one, WORKER(0), PUBLISHER(two),
            OTHER_PUBLISHER(other_one)),
    BOUNDED("chain_stuck", 3, 1, setup_two, STUCK(0), STUCK(1), PUBLISHER(two)),
    BOUNDED("chain_popped_stuck", 2, 1, setup_two, STUCK(0), STUCK(1), PUBLISHER(three),
            POPPER("2")),
    BOUNDED("two_publishers_stuck", 2, 1, setup_two, STUCK(0), STUCK(1), PUBLISHER(one),
            OTHER_PUBLISHER(other_one)),
    BOUNDED("two_workers", 2, 1, setup_two, WORKER(0), WORKER(1), PUBLISHER(two_one)),
    BOUNDED("chain_three_stuck", 2, 0, setup_three, STUCK(0), STUCK(1), STUCK(2), PUBLISHER(three)),
    RANDOM("many_stuck", setup_three, finish_parked, STUCK(0), STUCK(1), STUCK(2), PUBLISHER(two),
           OTHER_PUBLISHER(other_two)),
    RANDOM("many_workers", setup_three, finish_parked, WORKER(0), WORKER(1), WORKER(2),
           PUBLISHER(many), OTHER_PUBLISHER(other_many)),
};

EXPLORE_MAIN(models)
