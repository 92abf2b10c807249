/* SPDX-License-Identifier: MIT */
/* sched/shutdown.c: stopping, while processes begin, run and end. The code is the real one: the
 * stop, spawning with its gate, the workers' loop, submitting, sleeping, steps and exits. Left out
 * are the monitor, spare workers, timers and descriptors, which have models of their own: that a
 * stop wakes them all is in model_poll.c, model_spare.c and model_monitor.c. Mutexes are open: a
 * stop holds one from beginning to end.
 *
 * INV-19: a stop that returns has ended every process, each with one close and at most one cancel
 *         event, exactly one if it waited for that; no token is left; all workers have exited and
 *         nobody sleeps.
 *         A process with a supervisor gets no cancel event, and ends with that.
 * INV-20: no slot is in use then.
 * INV-21: a spawn either is accepted, and that process is among those, or it fails and leaves
 *         nothing. */
#include <sched.h>
#include <string.h>

#include "explore.h"
#include "no_blocking.h"
#include "no_sources.h"
#include "no_timers.h"
#include "rig.h"
#include "sched/chores.h"
#include "sched/monitor.h"
#include "sched/poll.h"
#include "sched/shutdown.h"
#include "sched/spare.h"
#include "sched/spawn.h"
#include "sched/stuck.h"
#include "sched/worker.h"

#define LIVES_MAX  4
#define SLOTS_EACH 8 /* that a cache takes from the pool at once */
#define SHORT      1 /* a timeout that passes when the explorer says so */

/* What a process does. */
enum habit {
    ENDS,            /* in its first step */
    GOES_ON,         /* ends in its third */
    OBEYS,           /* ends when it is asked to */
    IGNORES,         /* does not end */
    SPAWNS,          /* first starts the next one, then obeys */
    SPAWNS_AND_ENDS, /* starts the next one and ends */
    STARTS_TWO,      /* the same with two, in the short way: the second goes to the deque */
    SUPERVISES,      /* first starts the next one as its child, then obeys */
    LEAVES_ONE,      /* ends, and on_exit starts the next one */
    LINGERS,         /* ends, and on_exit waits for a permission */
    SPAWNS_LATE,     /* tries to start the next one when it is asked to end */
    STAYS,           /* first waits for a permission in its step, then obeys */
};

struct life {
    enum habit habit;
    int error;      /* of its spawn */
    uint32_t begun; /* calls of init, and so on */
    uint32_t steps;
    uint32_t cancels;
    uint32_t survivals;
    uint32_t closes;
    bool is_child; /* it has a supervisor, which ends it: it is never asked */
};

static struct life lives[LIVES_MAX];
static atomic_u32 permissions;
static atomic_u32 submitted;        /* threads that have been at the gate */
EXPLORE_OWN static uint32_t exited; /* workers */
static bool monitor_ended;
static bool poller_closed;
static bool monitor_closed;
static int results[2]; /* of the stoppers */

/* ---- in place of spare.c, poll.c and chores.c ---- */

void spare_rest_if_surplus(struct worker *worker)
{
    (void)worker;
    EXPLORE_CHECK(false, "there are no spare workers");
}

void spare_wake_resting(struct scheduler *sched)
{
    (void)sched;
}

void poll_check(struct scheduler *sched, struct worker *worker, uint64_t now)
{
    (void)sched;
    (void)worker;
    (void)now;
    EXPLORE_CHECK(false, "there are no descriptors");
}

/* In place of stuck.c: whoever is in a step when a deadline passes is stuck. */
void stuck_begin_locked(struct scheduler *sched)
{
    (void)sched;
}

bool stuck_sample_locked(struct scheduler *sched)
{
    bool runs = false;
    for (uint32_t i = 0; i < sched->worker_count; i++) {
        runs = runs || load_relaxed(&sched->workers[i].running) != RUNNING_NOTHING;
    }
    return runs;
}

static void stop_monitor(struct monitor *its_monitor)
{
    (void)its_monitor;
    monitor_ended = true;
}

static void close_monitor(struct monitor *its_monitor)
{
    (void)its_monitor;
    EXPLORE_CHECK(poller_closed && exited == rig.worker_count, "INV-19: all threads have ended");
    monitor_closed = true;
}

static struct monitor monitor = {.stop = stop_monitor, .close = close_monitor};

static void close_poller(struct poller *poller)
{
    (void)poller;
    EXPLORE_CHECK(monitor_ended && exited == rig.worker_count, "INV-19: nobody uses the poller");
    poller_closed = true;
}

static struct poller poller = {.close = close_poller};

/* Only the stop gives way, to those who are in the gate; it looks again when one has left. */
int sched_yield(void)
{
    explore_take(&submitted);
    return 0;
}

/* ---- the processes ---- */

static int spawn(struct worker *worker, uint32_t number);
static int spawn_under(skua_context *ctx, uint32_t number);
static void start(skua_context *ctx, uint32_t number);

static uint32_t number_of(const struct life *life)
{
    return (uint32_t)(life - lives);
}

static int init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    struct life **life = self;
    EXPLORE_CHECK(count == 1, "the input arrives");
    *life = &lives[skua_payload_to_u64(input)];
    (*life)->begun++;
    return 0;
}

static bool is_cancelled(struct life *life, const skua_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_START || events[i].type == SKUA_EVENT_CONTINUE) {
            continue;
        }
        EXPLORE_CHECK(events[i].type == SKUA_EVENT_CANCEL, "nothing else is sent");
        explore_note("process %u is asked to end", (unsigned)number_of(life));
        EXPLORE_CHECK(++life->cancels == 1, "INV-19: one cancel event");
    }
    return life->cancels > 0;
}

/* What it does in a step but end. */
static void act(struct life *life, bool cancelled, skua_context *ctx)
{
    struct worker *worker = ctx->worker;
    const bool first = life->steps == 1;
    switch (life->habit) {
    case SPAWNS:
    case SPAWNS_AND_ENDS:
        if (first) {
            (void)spawn(worker, number_of(life) + 1);
        }
        break;
    case STARTS_TWO:
        if (first) {
            start(ctx, number_of(life) + 1);
            start(ctx, number_of(life) + 2);
        }
        break;
    case SUPERVISES:
        if (first) {
            (void)spawn_under(ctx, number_of(life) + 1);
        }
        break;
    case SPAWNS_LATE:
        if (cancelled) {
            EXPLORE_CHECK(spawn(worker, number_of(life) + 1) == SKUA_E_STOPPED,
                          "INV-19: nothing new after the cancel event");
        }
        break;
    case STAYS:
        if (first) {
            explore_note("stays in its step");
            explore_take(&permissions);
        }
        break;
    case ENDS:
    case LEAVES_ONE:
    case LINGERS:
    case GOES_ON:
    case OBEYS:
    case IGNORES:
        break;
    }
}

static bool ends(const struct life *life, bool cancelled)
{
    switch (life->habit) {
    case ENDS:
    case LEAVES_ONE:
    case LINGERS:
    case SPAWNS_AND_ENDS:
        return true;
    case GOES_ON:
        return life->steps == 3;
    case IGNORES:
        return false;
    case OBEYS:
    case SPAWNS:
    case STARTS_TWO:
    case SUPERVISES:
    case SPAWNS_LATE:
    case STAYS:
        break;
    }
    return cancelled;
}

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct life *life = *(struct life **)self;
    EXPLORE_CHECK(life->closes == 0, "INV-4: no step after the close");
    life->steps++;
    const bool cancelled = is_cancelled(life, events, count);
    act(life, cancelled, ctx);
    if (ends(life, cancelled)) {
        return skua_done(ctx, skua_payload_u64(0, number_of(life)));
    }
    return life->habit == GOES_ON ? skua_continue(ctx) : 0;
}

static void close_process(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)ctx;
    (void)exit;
    struct life *life = *(struct life **)self;
    explore_note("process %u is closed", (unsigned)number_of(life));
    EXPLORE_CHECK(++life->closes == 1, "INV-19: one close");
}

static const skua_process_type type = {
    .name = "process",
    .state_size = sizeof(struct life *),
    .init = init,
    .step = step,
    .close = close_process,
    .cancel = SKUA_CANCEL_EVENT,
};

static int outcome(uint32_t number, int error)
{
    lives[number].error = error;
    explore_note("process %u is %s", (unsigned)number, error == 0 ? "accepted" : "refused");
    EXPLORE_CHECK(error == 0 || error == SKUA_E_STOPPED, "INV-21: the right error");
    return error;
}

static int spawn_with(struct worker *worker, uint32_t number, skua_context *supervisor)
{
    skua_payload input = skua_payload_u64(0, number);
    const skua_spawn_options options = {.supervisor =
                                            supervisor != NULL ? supervisor->self : (skua_pid){0}};
    const struct spawn_request request = {.type = &type,
                                          .input = &input,
                                          .input_count = 1,
                                          .options = supervisor != NULL ? &options : NULL,
                                          .parent = supervisor};
    return outcome(number, spawn_process(&rig, worker, &request));
}

/* The worker has started one before. */
static void start(skua_context *ctx, uint32_t number)
{
    skua_payload input = skua_payload_u64(0, number);
    (void)outcome(number, spawn_from(ctx, &type, &input, NULL));
}

static int spawn(struct worker *worker, uint32_t number)
{
    return spawn_with(worker, number, NULL);
}

static int spawn_under(skua_context *ctx, uint32_t number)
{
    lives[number].is_child = true;
    return spawn_with(ctx->worker, number, ctx);
}

/* For the one worker of its cases. */
static void hear_of_end(void *arg, skua_exit *exit)
{
    (void)arg;
    const uint64_t number = skua_payload_to_u64(&exit->result);
    if (exit->error == 0 && lives[number].habit == LEAVES_ONE) {
        (void)spawn(&rig.workers[0], (uint32_t)number + 1);
    }
    if (exit->error == 0 && lives[number].habit == LINGERS) {
        explore_note("stays in on_exit");
        explore_take(&permissions);
    }
}

static void note_survivor(void *arg, const skua_process_snapshot *info)
{
    (void)arg;
    struct process *process;
    EXPLORE_CHECK(process_table_find(&rig.table, info->pid, &process) == 0, "survivors are known");
    struct life *life = *(struct life **)(void *)process->state.inline_state;
    EXPLORE_CHECK(++life->survivals == 1, "a survivor is named once");
}

/* ---- threads ---- */

static const uint32_t numbers[] = {0, 1, 2, 3};

static void run_worker(const void *number)
{
    (void)worker_main(&rig.workers[*(const uint32_t *)number]);
    explore_note("exits");
    exited++;
}

/* Starts one process from outside. */
static void run_submitter(const void *number)
{
    (void)spawn(NULL, *(const uint32_t *)number);
    (void)fetch_add_seq_cst(&submitted, 1);
}

static void run_permitter(const void *arg)
{
    (void)arg;
    (void)fetch_add_seq_cst(&permissions, 1);
}

static void check_stopped(void)
{
    EXPLORE_CHECK(load_relaxed(&rig.phase) == PHASE_STOPPED, "a stop that ends has stopped all");
    EXPLORE_CHECK(exited == rig.worker_count, "INV-19: all workers have exited");
    EXPLORE_CHECK(poller_closed, "the poller is closed");
    EXPLORE_CHECK(monitor_closed, "the monitor is closed");
}

/* A stop that found a step stuck is repeated, first while it is, then when it can go on. */
static int stop(uint64_t timeout)
{
    int result = shutdown_stop(&rig, timeout);
    if (result == SKUA_E_STUCK) {
        explore_note("a step is stuck");
        result = shutdown_stop(&rig, timeout);
    }
    if (result == SKUA_E_STUCK) {
        explore_note("the step is still stuck");
        run_permitter(NULL);
        result = shutdown_stop(&rig, UINT64_MAX);
    }
    explore_note("has stopped");
    check_stopped();
    return result;
}

struct stopping {
    uint32_t number;
    uint64_t timeout;
};

static void run_stopper(const void *arg)
{
    const struct stopping *stopping = arg;
    results[stopping->number] = stop(stopping->timeout);
    EXPLORE_CHECK(shutdown_stop(&rig, 0) == 0, "a stop of what has stopped does nothing");
}

/* ---- the beginning and the end ---- */

/* Slots that no process will use are looked at by the scans only. */
static void ignore_slots(uint32_t first, uint32_t end)
{
    const char *start = object_pool_at(&rig.table.pool, first);
    explore_ignore(start, (end - first) * sizeof(struct process));
}

/* Of a record only the word is of interest: all else belongs to who holds the process. */
static void ignore_records(uint32_t first, uint32_t end)
{
    for (uint32_t slot = first; slot < end; slot++) {
        const struct process *process = object_pool_at(&rig.table.pool, slot);
        explore_ignore(&process->reserved, sizeof *process - offsetof(struct process, reserved));
    }
}

/* A cache hands out its slots from the highest on. */
static void ignore_cache(uint32_t first, uint32_t used)
{
    ignore_slots(first, first + SLOTS_EACH - used);
    ignore_records(first + SLOTS_EACH - used, first + SLOTS_EACH);
}

/* The counts of beginnings and ends, which come first, decide when a stop goes on. */
static void ignore_rest_of(struct counters *stats)
{
    explore_heed(stats);
    explore_ignore(&stats->messages, sizeof *stats - offsetof(struct counters, messages));
}

static void ignore_the_rest(void)
{
    for (uint32_t i = 0; i < rig.worker_count; i++) {
        struct worker *worker = &rig.workers[i];
        ignore_rest_of(&worker->stats);
        explore_ignore(&worker->absence, sizeof worker->absence);
        if (rig.worker_count == 1) { /* there are no thieves */
            explore_ignore(&worker->next, sizeof worker->next);
            explore_ignore(&worker->deque, sizeof worker->deque);
        }
    }
    ignore_rest_of(&rig.outside.stats);
    explore_ignore(&rig.spare, sizeof rig.spare);
    explore_ignore(&rig.threads, sizeof rig.threads);
    explore_ignore(&rig.monitor_asleep, sizeof rig.monitor_asleep);
    explore_ignore(&rig.poll, sizeof rig.poll);
}

static void setup_scheduler(uint32_t workers)
{
    rig_reset(workers);
    rig.poller = &poller;
    rig.monitor = &monitor;
    rig.config.on_survivor = note_survivor;
    for (uint32_t i = 0; i < workers; i++) {
        rig.workers[i].thread = i; /* the explorer's threads are in the same order */
    }
    /* All others are asleep or rest, as it were: nobody gives way in its search (idle.c). */
    store_relaxed(&rig.spare.resting, workers - 1);
    memset(lives, 0, sizeof lives);
    store_relaxed(&permissions, 0);
    store_relaxed(&submitted, 0);
    exited = 0;
    monitor_ended = poller_closed = monitor_closed = false;
    memset(results, 0, sizeof results);
    ignore_the_rest();
}

/* A process for each habit; the first `begun` are there from the beginning. */
static void setup(uint32_t workers, uint32_t begun, const enum habit *habits)
{
    setup_scheduler(workers);
    for (uint32_t i = 0; i < LIVES_MAX; i++) {
        lives[i].habit = habits[i];
    }
    for (uint32_t i = 0; i < begun; i++) {
        const int error = spawn(NULL, i);
        EXPLORE_CHECK(error == 0, "it has not been stopped yet");
    }
    ignore_cache(1, LIVES_MAX);
}

#define SETUP(name_, workers_, begun_, ...)                                                        \
    static void name_(void)                                                                        \
    {                                                                                              \
        static const enum habit habits[LIVES_MAX] = {__VA_ARGS__};                                 \
        setup(workers_, begun_, habits);                                                           \
    }

SETUP(setup_nothing, 1, 0, ENDS)
SETUP(setup_nothing_two, 2, 0, ENDS)
SETUP(setup_ends, 1, 1, ENDS)
SETUP(setup_ends_two, 2, 2, ENDS, ENDS)
SETUP(setup_goes_on, 1, 2, GOES_ON, ENDS)
SETUP(setup_obeys, 1, 1, OBEYS)
SETUP(setup_obeys_two, 2, 2, OBEYS, OBEYS)
SETUP(setup_late, 1, 1, SPAWNS_LATE, OBEYS)
SETUP(setup_submit_ends, 1, 0, ENDS)
SETUP(setup_submit, 1, 0, OBEYS, OBEYS)
SETUP(setup_submit_and_obeys, 1, 1, OBEYS, OBEYS)
SETUP(setup_submit_two, 2, 0, OBEYS, OBEYS)
SETUP(setup_survivor, 1, 1, IGNORES)
SETUP(setup_survivors, 1, 2, IGNORES, OBEYS)
SETUP(setup_survivors_two, 2, 3, IGNORES, OBEYS, IGNORES)
SETUP(setup_stays, 1, 1, STAYS)
SETUP(setup_submit_survivor, 1, 0, IGNORES)

/* A worker that spawns has a cache of its own; its slots come behind those of the outside. */
static void setup_spawning(uint32_t workers, uint32_t begun, const enum habit *habits)
{
    setup(workers, begun, habits);
    for (uint32_t i = 0; i < workers; i++) {
        struct pool_cache *cache = &rig.workers[i].caches.processes;
        const enum object_pool_result result = object_pool_refill_owner(&rig.table.pool, cache);
        EXPLORE_CHECK(result == OBJECT_POOL_OK, "the rig has memory");
        ignore_cache(1 + (i + 1) * SLOTS_EACH, 1);
        if (workers == 1) {
            explore_heed(&rig.workers[i].next); /* the stop looks at it first */
        }
    }
}

#define SETUP_SPAWNING(name_, workers_, begun_, ...)                                               \
    static void name_(void)                                                                        \
    {                                                                                              \
        static const enum habit habits[LIVES_MAX] = {__VA_ARGS__};                                 \
        setup_spawning(workers_, begun_, habits);                                                  \
    }

SETUP_SPAWNING(setup_spawns, 1, 1, SPAWNS, OBEYS)
SETUP_SPAWNING(setup_spawns_two, 2, 1, SPAWNS, OBEYS)
SETUP_SPAWNING(setup_hands_over, 1, 1, SPAWNS_AND_ENDS, ENDS)
SETUP_SPAWNING(setup_hands_over_two, 2, 1, SPAWNS_AND_ENDS, OBEYS)
SETUP_SPAWNING(setup_spawns_survivor, 1, 1, SPAWNS, IGNORES)
SETUP_SPAWNING(setup_supervises, 1, 1, SUPERVISES, IGNORES)
SETUP_SPAWNING(setup_supervises_two, 2, 1, SUPERVISES, IGNORES)
SETUP_SPAWNING(setup_many, 2, 1, SPAWNS, OBEYS, OBEYS, ENDS)
SETUP_SPAWNING(setup_many_timed, 2, 1, SPAWNS, IGNORES, OBEYS, GOES_ON)

SETUP_SPAWNING(setup_heir_of_worker, 1, 1, LEAVES_ONE, OBEYS)
SETUP_SPAWNING(setup_survivor_of_worker, 1, 1, LEAVES_ONE, IGNORES)

static void setup_starting(const enum habit *habits)
{
    setup(1, 1, habits);
    struct worker *worker = &rig.workers[0];
    const enum object_pool_result result =
        object_pool_refill_owner(&rig.table.pool, &worker->caches.processes);
    EXPLORE_CHECK(result == OBJECT_POOL_OK, "the rig has memory");
    ignore_cache(1 + SLOTS_EACH, 2);
    worker->checked_type = worker->plain_type = &type;
    explore_heed(&worker->next);
    explore_heed(&worker->deque);
    explore_ignore(&worker->deque.head, sizeof worker->deque.head); /* there are no thieves */
    explore_ignore(worker->deque.slots, sizeof worker->deque.slots);
}

static void setup_starts_two(void)
{
    static const enum habit habits[LIVES_MAX] = {STARTS_TWO, ENDS, OBEYS};
    setup_starting(habits);
}

static void setup_starts_survivor(void)
{
    static const enum habit habits[LIVES_MAX] = {STARTS_TWO, ENDS, IGNORES};
    setup_starting(habits);
}

static void setup_heir(void)
{
    setup_heir_of_worker();
    rig.config.on_exit = hear_of_end;
}

static void setup_surviving_heir(void)
{
    setup_survivor_of_worker();
    rig.config.on_exit = hear_of_end;
}

static void setup_lingers(void)
{
    static const enum habit habits[LIVES_MAX] = {LINGERS};
    setup(1, 1, habits);
    rig.config.on_exit = hear_of_end;
}

/* The table grows while the stop looks through it. */
static void setup_spawns_growing(void)
{
    static const enum habit habits[LIVES_MAX] = {SPAWNS, OBEYS};
    setup(1, 1, habits);
    explore_heed(&rig.table.pool.ready);
}

static void check_parking(void)
{
    EXPLORE_CHECK(load_relaxed(&rig.parking.searching) == 0, "INV-9: nobody searches");
    EXPLORE_CHECK(load_relaxed(&rig.parking.sleepers[0]) == 0, "INV-19: nobody sleeps");
    EXPLORE_CHECK(!global_queue_has_items(&rig.global), "INV-19: no token is left");
    for (uint32_t i = 0; i < rig.worker_count; i++) {
        EXPLORE_CHECK(load_relaxed(&rig.workers[i].next) == NULL, "INV-19: no token is left");
    }
}

static void check_lives(void)
{
    for (uint32_t i = 0; i < LIVES_MAX; i++) {
        const struct life *life = &lives[i];
        EXPLORE_CHECK(life->closes == life->begun, "INV-19, INV-21: what begins is closed");
        EXPLORE_CHECK(life->error == 0 || life->steps == 0, "INV-21: what is refused never runs");
    }
}

static void check_slots(void)
{
    for (uint32_t slot = 1; slot < load_relaxed(&rig.table.pool.ready); slot++) {
        struct process *process = object_pool_at(&rig.table.pool, slot);
        EXPLORE_CHECK(state_of(state_peek(process)) == STATE_FREE, "INV-20: no slot is in use");
    }
}

static void finish_any(void)
{
    check_stopped();
    check_parking();
    check_lives();
    check_slots();
}

static bool waits_for_cancel(const struct life *life)
{
    return life->habit != ENDS && life->habit != GOES_ON && life->habit != SPAWNS_AND_ENDS &&
           life->habit != LEAVES_ONE && life->habit != LINGERS;
}

/* The stop was in no hurry: what waits for the cancel event has got it. */
static void finish(void)
{
    finish_any();
    EXPLORE_CHECK(results[0] == 0 && results[1] == 0, "all have ended in time");
    for (uint32_t i = 0; i < LIVES_MAX; i++) {
        const uint32_t cancels = lives[i].is_child ? 0 : 1;
        EXPLORE_CHECK(lives[i].steps == 0 || !waits_for_cancel(&lives[i]) ||
                          lives[i].cancels == cancels,
                      "INV-19: each root gets one cancel event");
        EXPLORE_CHECK(lives[i].survivals == 0, "nobody survives");
    }
}

/* The timeout may have passed. */
static void finish_timed(void)
{
    finish_any();
    EXPLORE_CHECK(results[0] == 0 || results[0] == SKUA_E_TIMEOUT, "in time or late");
    for (uint32_t i = 0; i < LIVES_MAX; i++) {
        const bool in_time = results[0] == 0 && results[1] == 0;
        EXPLORE_CHECK(!in_time || lives[i].survivals == 0, "survivors make the stop late");
    }
}

/* It has passed when nothing else could happen any more. */
static void finish_late(void)
{
    finish_any();
    EXPLORE_CHECK(results[0] == SKUA_E_TIMEOUT, "the stop is late");
    for (uint32_t i = 0; i < LIVES_MAX; i++) {
        const bool survives = lives[i].habit == IGNORES || lives[i].habit == STAYS;
        EXPLORE_CHECK(lives[i].survivals == (survives && lives[i].begun > 0),
                      "every survivor is named, nobody else");
        EXPLORE_CHECK(lives[i].habit != IGNORES || lives[i].cancels == 1,
                      "INV-19: each gets one cancel event");
    }
}

static const struct stopping patient = {0, UINT64_MAX};
static const struct stopping patient_too = {1, UINT64_MAX};
static const struct stopping hasty = {0, SHORT};

#define WORKER(number)    EXPLORE_THREAD("worker" #number, run_worker, &numbers[number])
#define SUBMITTER(number) EXPLORE_THREAD("submitter" #number, run_submitter, &numbers[number])
#define STOPPER           EXPLORE_THREAD("stopper", run_stopper, &patient)
#define STOPPER2          EXPLORE_THREAD("stopper2", run_stopper, &patient_too)
#define HASTY_STOPPER     EXPLORE_THREAD("stopper", run_stopper, &hasty)
#define PERMITTER         EXPLORE_THREAD("permitter", run_permitter, NULL)

#define MODEL(name_, mode_, bound_, stale_, timeouts_, slow_, setup_, finish_, ...)                \
    {                                                                                              \
        .name = name_, .mode = mode_, .bound = bound_, .stale = stale_, .timeouts = timeouts_,     \
        .time_is_slow = slow_, .mutexes_are_open = true, .setup = setup_,                          \
        .threads = {__VA_ARGS__}, .finish = finish_, /* and nobody may sleep for ever */           \
    }
#define ALL(name_, setup_, ...)                                                                    \
    MODEL(name_, EXPLORE_ALL, 0, 1, 0, false, setup_, finish, __VA_ARGS__)
#define BOUNDED(name_, bound_, stale_, setup_, ...)                                                \
    MODEL(name_, EXPLORE_PREEMPTIONS, bound_, stale_, 0, false, setup_, finish, __VA_ARGS__)
#define TIMED(name_, bound_, stale_, timeouts_, setup_, ...)                                       \
    MODEL(name_, EXPLORE_PREEMPTIONS, bound_, stale_, timeouts_, false, setup_, finish_timed,      \
          __VA_ARGS__)
#define LATE(name_, bound_, stale_, timeouts_, setup_, ...)                                        \
    MODEL(name_, EXPLORE_PREEMPTIONS, bound_, stale_, timeouts_, true, setup_, finish_late,        \
          __VA_ARGS__)
#define RANDOM(name_, timeouts_, setup_, finish_, ...)                                             \
    MODEL(name_, EXPLORE_RANDOM, 10000, 2, timeouts_, false, setup_, finish_, __VA_ARGS__)

static const struct explore_model models[] = {
    /* A worker that is about to sleep. */
    ALL("park", setup_nothing, WORKER(0), STOPPER),
    BOUNDED("park_two", 1, 1, setup_nothing_two, WORKER(0), WORKER(1), STOPPER),
    /* Processes that end anyway, and those that wait to be asked. */
    ALL("ends", setup_ends, WORKER(0), STOPPER),
    BOUNDED("goes_on", 2, 1, setup_goes_on, WORKER(0), STOPPER),
    BOUNDED("obeys", 2, 1, setup_obeys, WORKER(0), STOPPER),
    BOUNDED("ends_two", 1, 0, setup_ends_two, WORKER(0), WORKER(1), STOPPER),
    BOUNDED("obeys_two", 1, 0, setup_obeys_two, WORKER(0), WORKER(1), STOPPER),
    BOUNDED("supervises", 2, 1, setup_supervises, WORKER(0), STOPPER),
    BOUNDED("supervises_two", 1, 0, setup_supervises_two, WORKER(0), WORKER(1), STOPPER),
    BOUNDED("spawns_late", 2, 1, setup_late, WORKER(0), STOPPER),
    /* The gate. */
    BOUNDED("submit_ends", 2, 1, setup_submit_ends, WORKER(0), SUBMITTER(0), STOPPER),
    BOUNDED("submit", 2, 1, setup_submit, WORKER(0), SUBMITTER(0), STOPPER),
    BOUNDED("submit_twice", 1, 0, setup_submit, WORKER(0), SUBMITTER(0), SUBMITTER(1), STOPPER),
    BOUNDED("submit_and_obeys", 2, 0, setup_submit_and_obeys, WORKER(0), SUBMITTER(1), STOPPER),
    /* A worker that spawns. */
    BOUNDED("spawns", 2, 1, setup_spawns, WORKER(0), STOPPER),
    BOUNDED("spawns_growing", 2, 1, setup_spawns_growing, WORKER(0), STOPPER),
    BOUNDED("spawns_two", 1, 0, setup_spawns_two, WORKER(0), WORKER(1), STOPPER),
    BOUNDED("starts_two", 2, 1, setup_starts_two, WORKER(0), STOPPER),
    BOUNDED("hands_over", 3, 1, setup_hands_over, WORKER(0), STOPPER),
    BOUNDED("hands_over_two", 1, 0, setup_hands_over_two, WORKER(0), WORKER(1), STOPPER),
    BOUNDED("heir", 3, 1, setup_heir, WORKER(0), STOPPER),
    /* The timeout. */
    LATE("survivor", 2, 1, 1, setup_survivor, WORKER(0), HASTY_STOPPER),
    TIMED("survivor_timed", 2, 1, 1, setup_survivor, WORKER(0), HASTY_STOPPER),
    LATE("survivors", 2, 0, 1, setup_survivors, WORKER(0), HASTY_STOPPER),
    TIMED("survivors_timed", 2, 0, 1, setup_survivors, WORKER(0), HASTY_STOPPER),
    TIMED("survivors_two", 1, 0, 1, setup_survivors_two, WORKER(0), WORKER(1), HASTY_STOPPER),
    TIMED("submit_survivor", 2, 0, 1, setup_submit_survivor, WORKER(0), SUBMITTER(0),
          HASTY_STOPPER),
    TIMED("spawns_survivor", 2, 1, 1, setup_spawns_survivor, WORKER(0), HASTY_STOPPER),
    TIMED("starts_survivor", 2, 1, 1, setup_starts_survivor, WORKER(0), HASTY_STOPPER),
    TIMED("surviving_heir", 2, 1, 1, setup_surviving_heir, WORKER(0), HASTY_STOPPER),
    MODEL("spawns_ignoring", EXPLORE_PREEMPTIONS, 2, 0, 1, true, setup_spawns_survivor,
          finish_timed, WORKER(0), HASTY_STOPPER),
    /* A second stop: after one that gave up, and beside another. */
    LATE("stuck", 2, 1, 3, setup_stays, WORKER(0), HASTY_STOPPER),
    TIMED("stuck_timed", 1, 1, 3, setup_stays, WORKER(0), HASTY_STOPPER, PERMITTER),
    TIMED("lingers", 2, 1, 5, setup_lingers, WORKER(0), HASTY_STOPPER),
    BOUNDED("stop_twice", 2, 1, setup_obeys, WORKER(0), STOPPER, STOPPER2),
    RANDOM("obeys_two_random", 0, setup_obeys_two, finish, WORKER(0), WORKER(1), STOPPER),
    RANDOM("submit_two_random", 0, setup_submit_two, finish, WORKER(0), WORKER(1), SUBMITTER(0),
           STOPPER),
    RANDOM("spawns_two_random", 0, setup_spawns_two, finish, WORKER(0), WORKER(1), STOPPER),
    /* It takes three stale loads to count an end without its beginning. */
    MODEL("spawns_two_stale", EXPLORE_RANDOM, 40000, 3, 0, false, setup_spawns_two, finish,
          WORKER(0), WORKER(1), STOPPER),
    RANDOM("many", 0, setup_many, finish, WORKER(0), WORKER(1), SUBMITTER(2), SUBMITTER(3),
           STOPPER),
    RANDOM("many_timed", 2, setup_many_timed, finish_timed, WORKER(0), WORKER(1), SUBMITTER(2),
           SUBMITTER(3), HASTY_STOPPER),
    RANDOM("many_stops", 0, setup_many, finish, WORKER(0), WORKER(1), SUBMITTER(2), STOPPER,
           STOPPER2),
};

EXPLORE_MAIN(models)
