/* SPDX-License-Identifier: MIT */
/* sched/poll.h and sched/idle.c: idle workers, the poller's role, and sources that appear while
 * they go to sleep: timers, descriptors, chores, and work in the global queue. The code is the real
 * one, from idle.c down to the wheel; what the poller would wait for, and the clock, are one word.
 *
 * Two workers are idle; a third is busy with a step for ever, in which it arms timers. A *stuck*
 * worker gets one piece of work and never comes back: then somebody else must take its role.
 *
 * INV-8, INV-9: who sleeps has its bit set and no token; nobody searches in the end.
 * INV-10: no work waits while a worker sleeps.
 * INV-13: if a worker sleeps and there are sources, a worker waits for them in the poller.
 * INV-15: it waits no longer than until the earliest of them; no timer fires early, or twice. */
#include <string.h>

#include "dispatch/call.h"
#include "explore.h"
#include "no_next_slots.h"
#include "nobody_held_back.h"
#include "rig.h"
#include "sched/chores.h"
#include "sched/deliver.h"
#include "sched/poll.h"
#include "sched/shutdown.h"
#include "sched/timers.h"
#include "sched/worker.h"
#include "tables.h"
#include "world.h"

#define IDLE_WORKERS 2
#define BUSY         2 /* the number of the worker that arms timers */
#define TIMERS_MAX   3

static struct {
    uint32_t call;
    uint64_t when;
    uint32_t fired;
} timers[TIMERS_MAX];

static struct process work;
static bool has_found[IDLE_WORKERS];  /* in its next slot */
static bool has_looked[IDLE_WORKERS]; /* in this search */
static uint32_t delivered;            /* descriptors */
static bool are_checked;              /* the descriptors, by a chore */
static uint32_t checkers;
static atomic_u32 registered; /* descriptors that may become ready */

/* ---- work ---- */

static void publish_work(struct worker *worker)
{
    (void)fetch_add_seq_cst(&rig.global.sorted, 1); /* P1 */
    idle_wake_one(&rig, worker);
}

/* As submit.c: into the next slot; a second one where others can see it. */
static void hand_to(struct worker *worker)
{
    if (worker == NULL || has_found[worker->index]) {
        publish_work(worker);
    } else {
        has_found[worker->index] = true;
    }
}

static void deliver_ready(struct poller *poller, struct worker *worker, uint32_t ready)
{
    (void)poller;
    for (uint32_t i = 0; i < ready; i++) {
        explore_note("serves a descriptor");
        delivered++;
        (void)fetch_sub_seq_cst(&rig.poll.waits, 1);
        hand_to(worker);
    }
}

/* As net.c: it is done again while a descriptor is waited for. */
static uint64_t check_descriptors(struct poller *poller, struct worker *worker, uint64_t now)
{
    (void)poller;
    (void)worker;
    explore_note("checks the descriptors");
    EXPLORE_CHECK(checkers++ == 0, "one at a time does chores");
    const bool waits = load_seq_cst(&rig.poll.waits) > 0;
    checkers--;
    return waits ? now + INSTANT(1) : NEVER;
}

static struct poller model_poller = {
    .wait = wait_for_events,
    .deliver = deliver_ready,
    .interrupt = interrupt,
    .check = check_descriptors,
};

/* ---- in place of deliver.c, submit.c, find_work.c, steal.c, shutdown.c ---- */

struct process *deliver_call(struct scheduler *sched, struct worker *worker, skua_pid owner,
                             uint32_t call)
{
    (void)sched;
    (void)worker;
    const uint64_t number = owner.bits;
    explore_note("fires timer %u", (unsigned)number);
    EXPLORE_CHECK(number < TIMERS_MAX && timers[number].call == call, "a timer of this model");
    EXPLORE_CHECK(++timers[number].fired == 1, "INV-15: a timer fires once");
    EXPLORE_CHECK(time_of(explore_peek(&outside)) >= timers[number].when, "INV-15: not early");
    return &work;
}

/* There are no tasks to be trimmed. */
int deliver_request(struct scheduler *sched, struct worker *worker, skua_pid to, uint32_t request)
{
    (void)sched;
    (void)worker;
    (void)to;
    (void)request;
    EXPLORE_CHECK(false, "no task is woken");
    return 0;
}

void submit_ready(struct scheduler *sched, struct worker *worker, struct process *process)
{
    (void)sched;
    (void)process;
    hand_to(worker);
}

/* What the poller has brought. A real one looks further, as the search that follows here does. */
struct process *find_work(struct worker *worker)
{
    if (!has_found[worker->index]) {
        return NULL;
    }
    has_found[worker->index] = false;
    return &work;
}

/* Between two rounds of a search the worker looks whether all others sleep. Never: one is busy for
 * ever. So nothing is lost if that is no step. */
static void ignore_sleepers_until_next_round(bool last_pass)
{
    if (!last_pass) {
        explore_ignore(rig.parking.sleepers, sizeof rig.parking.sleepers);
    }
}

struct process *find_shared(struct worker *worker)
{
    if (has_looked[worker->index]) {
        explore_heed(rig.parking.sleepers);
        return NULL;
    }
    has_looked[worker->index] = true;
    return rig_take_work(&rig) ? &work : NULL;
}

void steal_begin(struct worker *worker)
{
    has_looked[worker->index] = false;
}

struct process *steal(struct worker *worker, bool last_pass)
{
    (void)worker;
    ignore_sleepers_until_next_round(last_pass);
    return NULL;
}

void shutdown_worker_is_quiet(struct scheduler *sched)
{
    (void)sched;
}

/* ---- threads ---- */

static const uint32_t numbers[] = {0, 1, 2, 3, 4};

static bool get_work(uint32_t worker)
{
    const bool found = idle_find(&rig.workers[worker]) != NULL;
    EXPLORE_CHECK(load_seq_cst(&rig.poll.holder) != worker + 1, "the role is not kept for a step");
    explore_note("%s", found ? "has work" : "exits");
    return found;
}

static void run_worker(const void *number)
{
    while (get_work(*(const uint32_t *)number)) {
    }
}

/* Its picks were long, too: others must do without it. */
static void run_stuck(const void *number)
{
    rig.workers[*(const uint32_t *)number].picks_are_long = true;
    (void)get_work(*(const uint32_t *)number);
}

/* Its picks were short, and this one is not: the monitor sees that. */
static void run_late(const void *number)
{
    (void)get_work(*(const uint32_t *)number);
    poll_hand_over(&rig, NULL);
}

static void arm(uint32_t timer)
{
    timers_arm(&rig.workers[BUSY], timers[timer].call,
               &(struct timing){.now = BEGINNING, .when = timers[timer].when});
}

/* In a step on the busy worker. */
static void run_arming(const void *timer)
{
    explore_note("arms timer %u", (unsigned)*(const uint32_t *)timer);
    arm(*(const uint32_t *)timer);
}

/* As net.c does for a command. */
static void register_descriptor(void)
{
    (void)fetch_add_seq_cst(&rig.poll.waits, 1); /* P1 */
    poll_publish(&rig, &rig.workers[BUSY], NEVER);
    if (are_checked) {
        chores_schedule(&rig, &rig.workers[BUSY], CHORE_CHECK, time_now(rig.time) + INSTANT(1));
    }
}

static void run_registering(const void *arg)
{
    (void)arg;
    register_descriptor();
    (void)fetch_add_seq_cst(&registered, 1);
}

static void run_peer(const void *arg)
{
    (void)arg;
    explore_take(&registered);
    explore_note("makes a descriptor ready");
    change_outside(UINT32_C(1) << READY_SHIFT);
}

static void run_submitting(const void *arg)
{
    (void)arg;
    publish_work(&rig.workers[BUSY]);
}

/* As the monitor does when nobody has looked for a while. */
static void run_monitor(const void *arg)
{
    (void)arg;
    poll_check(&rig, NULL, 0);
}

static void run_stopper(const void *arg)
{
    (void)arg;
    store_seq_cst(&rig.exiting, 1);
    idle_wake_all(&rig);
}

/* ---- the beginning and the end ---- */

static void open_timer(uint32_t number, uint32_t tick)
{
    uint32_t *call = &timers[number].call;
    const enum object_pool_result result = object_acquire_owner(
        &rig.events, rig.events.shape.layout, &rig.workers[BUSY].caches.events, call);
    EXPLORE_CHECK(result == OBJECT_POOL_OK, "the rig has memory");
    (void)call_open_owner(event_at(&rig.events, *call), *call, (skua_pid){number});
    timers[number].when = INSTANT(tick);
    timers[number].fired = 0;
}

/* Words that nobody writes, or that only count. */
static void ignore_the_rest(void)
{
    for (uint32_t i = 0; i <= BUSY; i++) {
        struct worker *worker = &rig.workers[i];
        explore_ignore(&worker->deque, sizeof worker->deque);
        if (i != BUSY) {
            explore_ignore(&rig.deadlines.wheels[i].next, sizeof(atomic_u64));
        }
    }
    explore_ignore(&rig.phase, sizeof rig.phase);
    explore_ignore(&rig.threads, sizeof rig.threads);
    explore_ignore(&rig.poll.last, sizeof rig.poll.last);
    explore_ignore(&rig.chores.kept, sizeof rig.chores.kept);
    explore_ignore(&rig.chores.due[CHORE_TRIM], sizeof rig.chores.due[CHORE_TRIM]);
    explore_ignore(&rig.spare, sizeof rig.spare);
    explore_ignore(&rig.monitor_asleep, sizeof rig.monitor_asleep);
    explore_ignore(&rig.events.chain_count, sizeof rig.events.chain_count);
    explore_ignore(&rig.table.pool.chain_count, sizeof rig.table.pool.chain_count);
}

/* Timers at 4, 3 and 2; it is 1. */
static void setup_any(void)
{
    rig_reset(IDLE_WORKERS + 1);
    rig.time = &model_clock;
    rig.poller = &model_poller;
    store_relaxed(&rig.global.sorted, 0);
    world_begin();
    store_relaxed(&registered, 0);
    for (uint32_t i = 0; i < TIMERS_MAX; i++) {
        open_timer(i, TIMERS_MAX + 1 - i);
    }
    memset(has_found, 0, sizeof has_found);
    memset(has_looked, 0, sizeof has_looked);
    delivered = checkers = 0;
    are_checked = false;
    ignore_the_rest();
}

static void ignore_chores(void)
{
    explore_ignore(&rig.chores, sizeof rig.chores);
}

static void ignore_exit(void)
{
    explore_ignore(&rig.exiting, sizeof rig.exiting);
}

/* No chores; and no timers but those that are armed later. */
static void setup(void)
{
    setup_any();
    ignore_chores();
    ignore_exit();
}

static void setup_with_timer(void)
{
    setup();
    arm(0);
}

static void setup_with_two_timers(void)
{
    setup_with_timer();
    arm(1);
}

static void setup_with_descriptor(void)
{
    setup();
    register_descriptor();
    store_relaxed(&registered, 1);
}

static void setup_with_descriptor_and_timer(void)
{
    setup_with_descriptor();
    arm(0);
}

static void setup_checked(void)
{
    setup_any();
    ignore_exit();
    are_checked = true;
}

static void setup_checked_with_descriptor(void)
{
    setup_checked();
    register_descriptor();
    store_relaxed(&registered, 1);
}

static void setup_stopping(void)
{
    setup_any();
    ignore_chores();
    arm(0);
}

static uint64_t earliest_source(void)
{
    uint64_t earliest = NEVER;
    for (uint32_t i = 0; i < TIMERS_MAX; i++) {
        const bool armed = event_at(&rig.events, timers[i].call)->as.call.wheel != 0;
        if (armed && timers[i].fired == 0 && timers[i].when < earliest) {
            earliest = timers[i].when;
        }
    }
    const uint64_t chore = load_relaxed(&rig.chores.due[CHORE_CHECK]);
    return chore < earliest ? chore : earliest;
}

/* All that have not ended sleep; nobody will change anything any more. */
static bool sources_are_attended(void)
{
    if (!sleeps(0) && !sleeps(1)) {
        return true;
    }
    EXPLORE_CHECK(load_relaxed(&rig.global.sorted) == 0, "INV-10: no work waits for a sleeper");
    const uint64_t earliest = earliest_source();
    if (earliest != NEVER || load_relaxed(&rig.poll.waits) > 0) {
        world_check_attended(earliest);
    }
    world_check_sleeper();
    return true;
}

static void finish(void)
{
    EXPLORE_CHECK(load_relaxed(&rig.parking.searching) == 0, "INV-9: nobody searches");
    const uint64_t sleepers = load_relaxed(&rig.parking.sleepers[0]);
    for (uint32_t i = 0; i < IDLE_WORKERS; i++) {
        const bool is_marked = (sleepers >> i & 1) != 0;
        EXPLORE_CHECK(is_marked == sleeps(i), "INV-8: the bits are those that sleep");
        EXPLORE_CHECK(is_marked || load_relaxed(&rig.workers[i].token.word) == TOKEN_NONE,
                      "INV-8: no token is left over");
        EXPLORE_CHECK(!has_found[i], "INV-3: what the poller brought is run");
    }
    const uint32_t holder = load_relaxed(&rig.poll.holder);
    EXPLORE_CHECK(holder == 0 ||
                      (holder <= IDLE_WORKERS && poller_state.sleeps &&
                       load_relaxed(&rig.workers[holder - 1].token.word) == TOKEN_POLLING),
                  "who has the role waits in the poller");
    EXPLORE_CHECK(delivered == poller_state.ready, "what is found ready is served");
    EXPLORE_CHECK(checkers == 0 && load_relaxed(&rig.chores.busy) == 0, "nobody does chores");
    EXPLORE_CHECK(!are_checked || load_relaxed(&rig.poll.waits) == 0 ||
                      load_relaxed(&rig.chores.due[CHORE_CHECK]) != NEVER,
                  "descriptors that are waited for will be checked");
}

/* Nobody is stuck, so that what is due is done. */
static void finish_all_done(void)
{
    finish();
    for (uint32_t i = 0; i < TIMERS_MAX; i++) {
        const bool armed = event_at(&rig.events, timers[i].call)->as.call.wheel != 0;
        EXPLORE_CHECK(!armed || timers[i].fired == 1 ||
                          timers[i].when > time_of(load_relaxed(&outside)),
                      "INV-15: what is due is fired");
    }
}

static void finish_exited(void)
{
    finish();
    EXPLORE_CHECK(!sleeps(0) && !sleeps(1), "all workers exit");
}

#define WORKER(number) EXPLORE_THREAD("worker" #number, run_worker, &numbers[number])
#define STUCK(number)  EXPLORE_THREAD("stuck" #number, run_stuck, &numbers[number])
#define LATE(number)   EXPLORE_THREAD("late" #number, run_late, &numbers[number])
#define ARMING(timer)  EXPLORE_THREAD("arming" #timer, run_arming, &numbers[timer])
#define CLOCK(ticks)   EXPLORE_THREAD("clock", run_clock, &numbers[ticks])
#define REGISTERING    EXPLORE_THREAD("register", run_registering, NULL)
#define PEER           EXPLORE_THREAD("peer", run_peer, NULL)
#define SUBMITTING     EXPLORE_THREAD("submitter", run_submitting, NULL)
#define MONITOR        EXPLORE_THREAD("monitor", run_monitor, NULL)
#define STOPPER        EXPLORE_THREAD("stopper", run_stopper, NULL)

#define MAY_REST sources_are_attended

static const struct explore_model models[] = {
    /* A source appears. */
    ALL("arm_one", setup, finish, WORKER(0), ARMING(0)),
    ALL("register_one", setup, finish, WORKER(0), REGISTERING),
    BOUNDED("arm", 2, setup, finish, WORKER(0), WORKER(1), ARMING(0)),
    BOUNDED("register", 2, setup, finish, WORKER(0), WORKER(1), REGISTERING),
    BOUNDED("arm_and_register", 2, setup, finish, WORKER(0), WORKER(1), ARMING(0), REGISTERING),
    /* A deadline that is earlier than the one before. */
    ALL("earlier_one", setup_with_timer, finish, WORKER(0), ARMING(1)),
    BOUNDED("earlier", 2, setup_with_timer, finish, WORKER(0), WORKER(1), ARMING(1)),
    BOUNDED("earlier_twice", 2, setup_with_timer, finish, WORKER(0), WORKER(1), ARMING(1),
            ARMING(2)),
    BOUNDED("earlier_with_descriptor", 2, setup_with_descriptor_and_timer, finish, WORKER(0),
            WORKER(1), ARMING(1)),
    /* What is waited for happens. */
    ALL("fire_one", setup_with_timer, finish_all_done, WORKER(0), CLOCK(3)),
    BOUNDED("fire", 2, setup_with_timer, finish_all_done, WORKER(0), WORKER(1), CLOCK(3)),
    BOUNDED("fire_two", 2, setup_with_two_timers, finish_all_done, WORKER(0), WORKER(1), CLOCK(3)),
    BOUNDED("fire_two_stuck", 2, setup_with_two_timers, finish, STUCK(0), STUCK(1), CLOCK(2)),
    BOUNDED("late", 2, setup_with_two_timers, finish, LATE(0), LATE(1), CLOCK(2)),
    BOUNDED("late_once", 2, setup_with_descriptor_and_timer, finish, LATE(0), WORKER(1), PEER),
    ALL("serve_one", setup_with_descriptor, finish, WORKER(0), PEER),
    BOUNDED("serve", 2, setup_with_descriptor, finish, WORKER(0), WORKER(1), PEER),
    BOUNDED("serve_stuck", 2, setup_with_descriptor_and_timer, finish, STUCK(0), STUCK(1), PEER),
    BOUNDED("arm_and_fire", 2, setup, finish_all_done, WORKER(0), WORKER(1), ARMING(2), CLOCK(1)),
    /* Work comes for who waits in the poller. */
    ALL("work_one", setup_with_timer, finish, WORKER(0), SUBMITTING),
    BOUNDED("work_stuck", 3, setup_with_timer, finish, STUCK(0), STUCK(1), SUBMITTING),
    BOUNDED("work_and_fire", 1, setup_with_timer, finish_all_done, WORKER(0), WORKER(1), SUBMITTING,
            CLOCK(3)),
    BOUNDED("work_and_earlier_stuck", 2, setup_with_timer, finish, STUCK(0), STUCK(1), SUBMITTING,
            ARMING(1)),
    /* Another thread has the role for a moment. */
    ALL("look_one", setup_with_descriptor, finish, WORKER(0), MONITOR),
    BOUNDED("look", 2, setup_with_descriptor, finish, WORKER(0), WORKER(1), MONITOR),
    BOUNDED("look_and_arm", 2, setup, finish, WORKER(0), WORKER(1), MONITOR, ARMING(0)),
    BOUNDED("look_and_serve", 2, setup_with_descriptor, finish, WORKER(0), WORKER(1), MONITOR,
            PEER),
    /* Chores. */
    ALL("check_one", setup_checked, finish, WORKER(0), REGISTERING),
    ALL("check_one_twice", setup_checked_with_descriptor, finish, WORKER(0), CLOCK(2)),
    BOUNDED("check", 2, setup_checked, finish, WORKER(0), WORKER(1), REGISTERING),
    BOUNDED("check_twice", 2, setup_checked_with_descriptor, finish, WORKER(0), WORKER(1),
            CLOCK(2)),
    BOUNDED("check_and_register", 2, setup_checked_with_descriptor, finish, WORKER(0), PEER,
            REGISTERING, CLOCK(1)),
    BOUNDED("check_and_serve", 1, setup_checked_with_descriptor, finish, WORKER(0), WORKER(1), PEER,
            CLOCK(1)),
    /* The end. */
    {
        .name = "stop",
        .mode = EXPLORE_PREEMPTIONS,
        .bound = 2,
        .setup = setup_stopping,
        .threads = {WORKER(0), WORKER(1), STOPPER},
        .finish = finish_exited, /* and nobody may sleep for ever */
    },
    {
        .name = "no_reason",
        .mode = EXPLORE_PREEMPTIONS,
        .bound = 2,
        .spurious_wakes = 1,
        .setup = setup_with_timer,
        .threads = {STUCK(0), STUCK(1), SUBMITTING, ARMING(1)},
        .may_rest = sources_are_attended,
        .finish = finish,
    },
    RANDOM("many", setup_with_timer, finish_all_done, WORKER(0), WORKER(1), ARMING(1), SUBMITTING,
           CLOCK(3)),
    RANDOM("many_descriptors", setup_with_descriptor_and_timer, finish, WORKER(0), WORKER(1), PEER,
           MONITOR, SUBMITTING),
    RANDOM("many_checks", setup_checked_with_descriptor, finish, WORKER(0), WORKER(1), PEER,
           CLOCK(1)),
    {
        .name = "many_wishes", /* for the same chore, while it is done */
        .mode = EXPLORE_RANDOM,
        .bound = 10000,
        .stale = 2,
        .setup = setup_checked_with_descriptor,
        .threads = {WORKER(0), PEER, REGISTERING, CLOCK(1)},
        .may_rest = sources_are_attended,
        .finish = finish,
    },
    RANDOM("many_stuck", setup_with_two_timers, finish, STUCK(0), STUCK(1), ARMING(2), SUBMITTING,
           CLOCK(2)),
};

EXPLORE_MAIN(models)
