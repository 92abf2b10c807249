/* SPDX-License-Identifier: MIT */
/* A worker without work searches for a while, does the chores that are due, then sleeps: in the
 * poller if nobody has its role yet and there are timers or descriptors, otherwise on its token.
 * concurrent/parking.h has the protocol that keeps it from sleeping through work; the steps have
 * the same names here. */
#include <sched.h>

#include "base/assert.h"
#include "base/monotonic.h"
#include "sched/checkpoint.h"
#include "sched/chores.h"
#include "sched/monitor.h"
#include "sched/note.h"
#include "sched/poll.h"
#include "sched/shutdown.h"
#include "sched/worker.h"

/* A search goes through all sources again and again, first with short pauses, then with
 * sched_yield. Twelve yields take about as long as two futex calls, the price of sleeping and being
 * woken. */
#define ROUNDS_TIGHT 3
#define ROUNDS_MAX   15
/* Beside threads that compute, one can take milliseconds: then the next round is the last. */
#define YIELD_LONG_NS UINT64_C(50000)

/* About 3 us; see take_before_yielding. */
#define PATIENT_PAUSES 250

/* Searches that are made again for the sake of next slots; see must_search_again. */
#define RETRIES 2

/* Stealing has a price: a process's record, events and memory move to another core, and back to the
 * victim later. So a thief whose stolen processes finished almost at once backs off: it searches
 * for a while before it steals again, longer each time, up to about 50 us. After a steal that was
 * worth it, that time is halved: among small ones it may have been chance. */
#define PATIENCE_STEP 8
#define PATIENCE_MAX  200

static void give_token(struct scheduler *sched, uint32_t worker)
{
    if (park_token_give_any(&sched->workers[worker].token)) { /* P5 */
        sched->poller->interrupt(sched->poller);
    }
}

/* The worker that waits in the poller, or PARKING_NOBODY. It is woken only if nobody else can be,
 * because another worker would then have to take over its role. */
static int poller_holder(struct scheduler *sched)
{
    const uint32_t holder = load_relaxed(&sched->poll.holder); /* hint */
    return holder <= sched->capacity ? (int)holder - 1 : PARKING_NOBODY;
}

/* Off the path of those who publish. */
static NOINLINE void claim_and_wake(struct scheduler *sched, struct worker *worker)
{
    const int claimed =
        parking_claim_sleeper_any(&sched->parking, poller_holder(sched)); /* P3, P4 */
    if (claimed != PARKING_NOBODY) {
        NOTE_COUNT(sched, worker, wakes);
        give_token(sched, (uint32_t)claimed);
    }
}

void idle_wake_one(struct scheduler *sched, struct worker *worker)
{
    if (UNLIKELY(parking_may_claim(&sched->parking))) { /* P2 */
        claim_and_wake(sched, worker);
    }
}

void idle_wake_all(struct scheduler *sched)
{
    const uint32_t threads = scheduler_threads(sched);
    for (uint32_t i = 0; i < threads; i++) {
        if (parking_claim_worker_any(&sched->parking, i)) {
            give_token(sched, i);
        }
    }
}

/* S3 for the queues. Next slots do not count, since their workers are awake. */
bool idle_work_is_visible(struct scheduler *sched)
{
    if (global_queue_has_items_recheck(&sched->global) ||
        global_queue_has_items_recheck(&sched->behind)) {
        return true;
    }
    const uint32_t threads = scheduler_threads(sched);
    for (uint32_t i = 0; i < threads; i++) {
        if (deque_has_items_any(&sched->workers[i].deque)) {
            return true;
        }
    }
    return false;
}

static void pause_tight(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Returns whether others must want the CPU, because yielding it took so long. */
static bool pause_between(struct worker *worker, uint32_t round)
{
    if (round <= ROUNDS_TIGHT) {
        pause_tight();
        return false;
    }
    const uint64_t before = cheap_clock_now(&worker->clock);
    (void)sched_yield();
    return cheap_clock_since(cheap_clock_now(&worker->clock), before) >= YIELD_LONG_NS;
}

/* Before it yields the CPU for the first time, a worker that was woken and sees a process in the
 * next slot of another gives that one a little time to take it, and otherwise takes it itself. The
 * kernel likes to wake a thread on the CPU of the one that wakes it: then the other is in a step
 * that cannot go on before this thread yields, and would keep the CPU for long. */
static struct process *take_before_yielding(struct worker *worker)
{
    if (worker->retries == 0 || !steal_is_tempting(worker)) {
        return NULL;
    }
    for (uint32_t i = 0; i < PATIENT_PAUSES; i++) {
        pause_tight();
    }
    return steal_from_next_slots(worker);
}

/* With every other worker asleep there is nobody to steal from, and work from outside wakes a
 * sleeper. Going on would only cost: a server that sleeps between two requests would do so for
 * each. And the kernel delays a thread that has yielded when it next wakes, which made waking an
 * idle runtime three times as slow. */
static bool is_alone(struct scheduler *sched)
{
    const uint32_t resting = load_seq_cst(&sched->spare.resting); /* MO-spare */
    return parking_asleep(&sched->parking) + resting + 1 >= scheduler_threads(sched);
}

static bool must_exit(struct scheduler *sched)
{
    return load_seq_cst(&sched->exiting) != 0; /* MO-stop: pairs with shutdown.c */
}

static bool is_stopping(struct scheduler *sched)
{
    return UNLIKELY(shutdown_phase(sched) != PHASE_RUNNING);
}

/* Whether the search may as well end. A stop must not wait for it. */
static bool is_futile(struct scheduler *sched, uint32_t round)
{
    if (round <= ROUNDS_TIGHT) {
        return false;
    }
    return (round == ROUNDS_TIGHT + 1 && is_alone(sched)) || is_stopping(sched);
}

/* Rounds in which the worker does not steal yet. None during a stop, whose searches are too short
 * for that: it would search for ever beside the deque of a worker that is stuck in a step. */
static uint32_t rounds_of_patience(const struct worker *worker)
{
    return is_stopping(worker->sched) ? 0 : worker->last_steal.patience;
}

static struct process *climb_ladder(struct worker *worker)
{
    uint32_t patience = rounds_of_patience(worker);
    uint32_t last = patience + ROUNDS_MAX;
    for (uint32_t round = 1; round <= last; round++) {
        if (is_futile(worker->sched, round)) {
            break;
        }
        struct process *process = find_shared(worker);
        if (process == NULL && round > patience) {
            process = steal(worker, round == last);
        }
        if (process == NULL && round == ROUNDS_TIGHT) {
            process = take_before_yielding(worker);
        }
        if (process != NULL) {
            return process;
        }
        if (pause_between(worker, round)) {
            last = round + 1 < last ? round + 1 : last;
            patience = round < patience ? round : patience;
        }
    }
    return NULL;
}

/* Adjusts the back-off by whether the last steal was worth it. A stolen process that spawns others
 * keeps its thief busy for long. */
static void judge_last_steal(struct last_steal *last_steal, uint64_t now)
{
    if (last_steal->count == 0) {
        return;
    }
    const bool small =
        now - last_steal->since < (uint64_t)last_steal->count * last_steal->min_ns_each;
    const uint32_t longer = 2 * last_steal->patience + PATIENCE_STEP;
    last_steal->patience = !small                  ? last_steal->patience / 2
                           : longer < PATIENCE_MAX ? longer
                                                   : PATIENCE_MAX;
    last_steal->count = 0;
}

/* For a worker that is alone. Another one may be about to fall asleep, or to be woken, with work in
 * its deque. */
static struct process *look_round(struct worker *worker)
{
    struct process *process = find_shared(worker);
    if (process == NULL) {
        process = steal(worker, false);
        worker->last_steal.since = process != NULL ? monotonic_ns() : 0;
    }
    return process;
}

static struct process *search(struct worker *worker)
{
    if (scheduler_threads(worker->sched) == 1) {
        return find_shared(worker); /* nobody to steal from or to yield to */
    }
    steal_begin(worker);
    if (worker->last_steal.count == 0 && is_alone(worker->sched)) {
        return look_round(worker);
    }
    const uint64_t start = monotonic_ns();
    judge_last_steal(&worker->last_steal, start);
    struct process *process = climb_ladder(worker);
    worker->last_steal.since = monotonic_ns();
    counter_add_owner(&worker->stats.searching_ns, worker->last_steal.since - start);
    return process;
}

/* Publishers that saw a searcher have woken nobody, so the last searcher to leave wakes another
 * worker if it sees more work. For sources that nobody waits for it does so only if it will be away
 * `for_long`: INV-13. */
static void leave_search(struct worker *worker, bool for_long)
{
    struct scheduler *sched = worker->sched;
    if (parking_end_search_owner(&sched->parking) &&
        (idle_work_is_visible(sched) || (for_long && poll_is_unattended(sched)))) {
        idle_wake_one(sched, worker);
    }
}

/* For a worker that was woken. A process that a step puts into its worker's next slot wakes nobody
 * while somebody searches. If the search is over before that, or if it began before the step and so
 * had to leave the process where it is, it is made again, but not without end: most next slots are
 * emptied in no time. */
static bool must_search_again(struct worker *worker)
{
    if (worker->retries == 0 || !steal_is_tempting(worker)) {
        return false;
    }
    worker->retries--;
    return true;
}

/* Sleeps until there may be work. On return the worker counts as searching. */
static void park(struct worker *worker, bool searching)
{
    struct scheduler *sched = worker->sched;
    SKUA_ASSERT(load_relaxed(&worker->next) == NULL && /* only this thread fills it */
                deque_length_owner(&worker->deque) ==
                    0); /* INV-10: it would sleep on its own work */
    parking_announce_owner(&sched->parking, worker->index, searching);                  /* S1, S2 */
    if (idle_work_is_visible(sched) || must_exit(sched) || must_search_again(worker)) { /* S3 */
        if (!parking_retract_owner(&sched->parking, worker->index)) {
            park_token_take_owner(&worker->token);
        }
        return;
    }
    counter_add_owner(&worker->stats.parks, 1);
    shutdown_worker_is_quiet(sched); /* after S1: a stop sees the bit, or this sees the stop */
    note_trace(sched, worker, TRACE_PARK, (skua_pid){0}, 0, 0);
    const bool polls = poll_try_take(sched, worker); /* S3, for timers and descriptors */
    if (sched->monitor->worker_sleeps != NULL) {
        sched->monitor->worker_sleeps(sched->monitor);
    }
    if (polls) {
        poll_sleep(worker); /* S4 */
    } else {
        park_token_take_owner(&worker->token); /* S4 */
    }
    worker->retries = RETRIES;
    note_trace(sched, worker, TRACE_UNPARK, (skua_pid){0}, 0, 0);
}

/* During chores the worker is as busy as during a step. Returns whether it searches afterwards. */
static bool do_chores(struct worker *worker, bool searching)
{
    if (searching) {
        leave_search(worker, true);
    }
    chores_do(worker);
    return parking_start_search_owner(&worker->sched->parking);
}

/* Passes the time until there may be work. Returns whether the worker searches afterwards. */
static bool do_chores_or_park(struct worker *worker, bool searching)
{
    if (UNLIKELY(chores_are_due(worker->sched))) {
        return do_chores(worker, searching);
    }
    stacks_flush(&worker->sched->stacks, &worker->stacks); /* others may use or trim them */
    chores_consider_trim(worker);
    park(worker, searching);
    return true;
}

static struct process *find_or_exit(struct worker *worker, bool searching)
{
    struct process *process = NULL;
    for (;;) {
        if (process == NULL) {
            shutdown_worker_is_quiet(worker->sched); /* before a search that may take long */
        }
        if (process == NULL && searching) {
            process = search(worker);
        }
        if (process != NULL || must_exit(worker->sched)) {
            if (searching) {
                leave_search(worker, worker->picks_are_long);
            }
            return process;
        }
        searching = do_chores_or_park(worker, searching);
        process = find_work(worker); /* polling and chores queue work here */
    }
}

struct process *idle_find(struct worker *worker)
{
    SKUA_ASSERT(worker->tally.count == 0);            /* mailbox.h: from here on others may trim */
    worker->retries = 0;                              /* it has not slept */
    store_seq_cst(&worker->running, RUNNING_NOTHING); /* MO-busy */
    struct process *process =
        find_or_exit(worker, parking_start_search_owner(&worker->sched->parking));
    idle_end(worker);
    return process;
}

void idle_end(struct worker *worker)
{
    checkpoint_restart(worker);
    store_seq_cst(&worker->running, RUNNING_UNKNOWN); /* MO-busy, MO-monitor */
    monitor_notice(worker->sched);
}
