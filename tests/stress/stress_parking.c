/* SPDX-License-Identifier: MIT */
/* Stress of concurrent/parking.h: workers take units of work from a few shared sources and sleep by
 * the protocol, as sched/idle.c does; publishers add units in bursts and now and then wait until
 * everything is done, so that the workers fall asleep again and again. Workers publish as well.
 * Some units are one half of a meeting: the worker that has one waits until another worker has
 * taken the other, so it is not enough that some worker is awake. One sleeper at a time does so in
 * a poller, which ends for no reason now and then.
 *
 * A unit that nobody wakes up for stays where it is, the publishers wait for it for ever, and the
 * watchdog ends the program. At the end nobody may count as searching or sleeping, and no token may
 * be left over. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>

#include "base/mutex.h"
#include "concurrent/parking.h"
#include "stress_support.h"

/* P2 to P4. */
static int claim_any(struct parking *from, int last_choice)
{
    return parking_may_claim(from) ? parking_claim_sleeper_any(from, last_choice) : PARKING_NOBODY;
}

#define WORKERS       4
#define PUBLISHERS    2
#define ORDINARY      3
#define SOURCES       (ORDINARY + PUBLISHERS) /* and one for the meetings of each publisher */
#define SEARCH_ROUNDS 4
#define UNITS_MAX     4
#define BURST_SHIFTS  7
#define DEFAULT_OPS   12000000

struct worker {
    CACHE_ALIGNED uint64_t random;
    uint32_t number;
    uint64_t in_hand; /* units taken and not yet worked on */
    uint32_t source;  /* where they came from */
    struct park_token token;
};

struct publisher {
    CACHE_ALIGNED uint64_t random;
    uint32_t number;
};

struct source {
    CACHE_ALIGNED atomic_u64 units;
};

static struct stress stress;
static struct parking parking;
static struct source sources[SOURCES];
static struct worker workers[WORKERS];
static struct publisher publishers[PUBLISHERS];
static struct stress_counter published[PUBLISHERS + WORKERS];
static struct stress_counter consumed[WORKERS];
static atomic_u64 arrivals[PUBLISHERS]; /* at its meetings so far, two for each */
static atomic_u32 exiting;
static atomic_u32 holder; /* of the poller's role: 1 + its number, or 0 */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_interrupted;
} poller;

static uint64_t sum(struct stress_counter *counters, uint32_t count)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        total += load_acquire(&counters[i].value); /* pairs with the addition */
    }
    return total;
}

/* ---- publishing ---- */

static void interrupt_poller(void)
{
    mutex_lock(&poller.lock);
    poller.is_interrupted = true;
    (void)pthread_cond_signal(&poller.changed);
    mutex_unlock(&poller.lock);
}

static void give_token(uint32_t worker)
{
    if (park_token_give_any(&workers[worker].token)) {
        interrupt_poller();
    }
}

static void wake_one(uint64_t *random)
{
    const int claimed = claim_any(&parking, (int)load_relaxed(&holder) - 1); /* P2 to P4; a hint */
    if (claimed != PARKING_NOBODY) {
        stress_pause(random, 8);
        give_token((uint32_t)claimed); /* P5 */
    }
}

/* `thread` is the number of the publisher, or PUBLISHERS and more for a worker. */
static void publish(uint32_t thread, uint64_t *random, uint32_t source, uint32_t units)
{
    (void)fetch_add_acq_rel(&published[thread].value, units); /* before it can be consumed */
    (void)fetch_add_seq_cst(&sources[source].units, units);   /* P1 */
    stress_pause(random, 16);
    wake_one(random);
    stress_count(&stress, thread, units);
}

static void publish_ordinary(uint32_t thread, uint64_t *random)
{
    const uint32_t units = 1 + random_below(random, UNITS_MAX);
    publish(thread, random, random_below(random, ORDINARY), units);
}

static bool all_is_consumed(void)
{
    const uint64_t done = sum(consumed, WORKERS); /* first: what it counts was published before */
    return done == sum(published, PUBLISHERS + WORKERS);
}

static void wait_until_consumed(void)
{
    const uint64_t goal = sum(published, PUBLISHERS + WORKERS);
    while (sum(consumed, WORKERS) < goal) {
        (void)sched_yield();
    }
}

static void publish_burst(struct publisher *publisher)
{
    const uint32_t shift = random_below(&publisher->random, 2 * BURST_SHIFTS);
    const uint32_t burst = shift < BURST_SHIFTS ? UINT32_C(1) << shift : 1;
    for (uint32_t i = 0; i < burst; i++) {
        publish_ordinary(publisher->number, &publisher->random);
    }
}

static void publish_meeting(struct publisher *publisher)
{
    for (uint32_t half = 0; half < 2; half++) {
        publish(publisher->number, &publisher->random, ORDINARY + publisher->number, 1);
    }
}

static void *run_publisher(void *arg)
{
    struct publisher *publisher = arg;
    while (stress_goes_on(&stress, stress.ops)) {
        if (random_below(&publisher->random, 4) == 0) {
            publish_meeting(publisher);
            wait_until_consumed(); /* one at a time, or the workers could all wait in meetings */
        } else {
            publish_burst(publisher);
        }
        if (random_below(&publisher->random, 4) != 0) {
            wait_until_consumed();
        }
        stress_pause(&publisher->random, 2);
    }
    return NULL;
}

/* ---- working ---- */

/* Takes some units, but only one half of a meeting; false if there are none. */
static bool consume(struct worker *worker, uint32_t source)
{
    uint64_t seen = load_relaxed(&sources[source].units); /* re-checked by the compare-exchange */
    for (;;) {
        if (seen == 0) {
            return false;
        }
        const uint64_t most = source < ORDINARY ? 1 + random_below(&worker->random, UNITS_MAX) : 1;
        const uint64_t units = seen < most ? seen : most;
        if (cas_seq_cst(&sources[source].units, &seen, seen - units)) {
            worker->in_hand = units;
            worker->source = source;
            return true;
        }
    }
}

/* Waits for the worker that has the other half. */
static void meet(uint32_t publisher)
{
    const uint64_t arrival = fetch_add_acq_rel(&arrivals[publisher], 1) + 1;
    while (load_acquire(&arrivals[publisher]) < arrival + arrival % 2) {
        (void)sched_yield();
    }
}

/* What a worker does with the work it has found: sometimes more of it. Only then is it done. */
static void work(struct worker *worker)
{
    stress_pause(&worker->random, 8);
    if (worker->source >= ORDINARY) {
        meet(worker->source - ORDINARY);
    } else if (random_below(&worker->random, 8) == 0) {
        publish_ordinary(PUBLISHERS + worker->number, &worker->random);
    }
    (void)fetch_add_acq_rel(&consumed[worker->number].value, worker->in_hand);
    stress_count(&stress, PUBLISHERS + worker->number, worker->in_hand);
}

static bool work_is_visible(void)
{
    for (uint32_t i = 0; i < SOURCES; i++) {
        if (load_seq_cst(&sources[i].units) > 0) { /* S3 */
            return true;
        }
    }
    return false;
}

static bool search(struct worker *worker)
{
    for (uint32_t round = 0; round < SEARCH_ROUNDS; round++) {
        const uint32_t start = random_below(&worker->random, SOURCES);
        for (uint32_t i = 0; i < SOURCES; i++) {
            if (consume(worker, (start + i) % SOURCES)) {
                return true;
            }
        }
        stress_pause(&worker->random, 2);
    }
    return false;
}

static void leave_search(struct worker *worker)
{
    if (parking_end_search_owner(&parking) && work_is_visible()) {
        wake_one(&worker->random);
    }
}

static bool must_exit(void)
{
    return load_seq_cst(&exiting) != 0;
}

/* Waits until somebody has interrupted it, or not at all. */
static void wait_in_poller(struct worker *worker)
{
    mutex_lock(&poller.lock);
    while (!poller.is_interrupted && random_below(&worker->random, 4) != 0) {
        (void)condition_wait_until(&poller.changed, &poller.lock, UINT64_MAX);
    }
    poller.is_interrupted = false;
    mutex_unlock(&poller.lock);
}

/* As sched/poll.c: back among the searchers by itself, or by the token. */
static void sleep_in_poller(struct worker *worker)
{
    bool must_take = !park_token_start_polling_owner(&worker->token);
    if (!must_take) {
        wait_in_poller(worker);
        stress_pause(&worker->random, 4);
        must_take = !park_token_end_polling_owner(&worker->token) ||
                    !parking_retract_owner(&parking, worker->number);
    }
    if (must_take) {
        park_token_take_owner(&worker->token);
    }
    store_seq_cst(&holder, 0);
}

static bool take_role(const struct worker *worker)
{
    uint32_t nobody = 0;
    return cas_seq_cst(&holder, &nobody, worker->number + 1);
}

static void park(struct worker *worker, bool searching)
{
    parking_announce_owner(&parking, worker->number, searching); /* S1, S2 */
    stress_pause(&worker->random, 4);
    if (work_is_visible() || must_exit()) { /* S3 */
        if (parking_retract_owner(&parking, worker->number)) {
            return;
        }
    }
    if (take_role(worker)) {
        sleep_in_poller(worker); /* S4 */
    } else {
        park_token_take_owner(&worker->token); /* S4 */
    }
}

/* Returns false when the worker must exit. */
static bool find(struct worker *worker)
{
    bool searching = parking_start_search_owner(&parking);
    for (;;) {
        if (searching && search(worker)) {
            leave_search(worker);
            return true;
        }
        if (must_exit()) {
            if (searching) {
                leave_search(worker);
            }
            return false;
        }
        park(worker, searching);
        searching = true;
    }
}

static void *run_worker(void *arg)
{
    struct worker *worker = arg;
    while (consume(worker, worker->number % ORDINARY) || find(worker)) {
        work(worker);
    }
    return NULL;
}

/* ---- the whole ---- */

static void end_workers(void)
{
    store_seq_cst(&exiting, 1);
    for (uint32_t i = 0; i < WORKERS; i++) {
        if (parking_claim_worker_any(&parking, i)) {
            give_token(i);
        }
    }
}

static void describe(void)
{
    (void)fprintf(stderr, "searching %" PRIu32 ", sleepers %" PRIx64 "\n",
                  load_relaxed(&parking.searching), load_relaxed(&parking.sleepers[0]));
    for (uint32_t i = 0; i < SOURCES; i++) {
        (void)fprintf(stderr, "source %" PRIu32 ": %" PRIu64 " units\n", i,
                      load_relaxed(&sources[i].units));
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        (void)fprintf(stderr, "token %" PRIu32 ": %" PRIu32 "\n", i,
                      load_relaxed(&workers[i].token.word));
    }
}

static void check_balance(void)
{
    bool balanced = load_seq_cst(&parking.searching) == 0 && !work_is_visible();
    for (uint32_t i = 0; i < PARKING_GROUPS; i++) {
        balanced = balanced && load_seq_cst(&parking.sleepers[i]) == 0;
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        balanced = balanced && load_acquire(&workers[i].token.word) == 0;
    }
    if (!balanced) {
        stress_fault(&stress, STRESS_BROKEN, "something is left over:");
        describe();
    }
}

int main(int argc, char **argv)
{
    stress_begin(&stress, argc, argv, DEFAULT_OPS);
    stress_describe_with(&stress, describe);
    parking_init(&parking, WORKERS, WORKERS);
    mutex_init(&poller.lock);
    condition_init(&poller.changed);
    pthread_t threads[WORKERS];
    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i].random = stress_stream(&stress, i);
        workers[i].number = i;
        threads[i] = stress_start_thread(run_worker, &workers[i]);
    }
    for (uint32_t i = 0; i < PUBLISHERS; i++) {
        publishers[i].random = stress_stream(&stress, WORKERS + i);
        publishers[i].number = i;
    }
    stress_run_threads(PUBLISHERS, run_publisher, publishers, sizeof *publishers);
    while (!all_is_consumed()) {
        (void)sched_yield();
    }
    end_workers();
    for (uint32_t i = 0; i < WORKERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    check_balance();
    return stress_end(&stress);
}
