/* SPDX-License-Identifier: MIT */
/* sched/held_back.h: senders that are held back, events that wake them meanwhile, receivers that
 * come to rest, workers without work, and time. The code is the real one: held_back.c, poll.c,
 * idle.c and the words of the processes; what the poller would wait for, and the clock, are one
 * word, and the shared queue is a few counters.
 *
 * Two workers are idle, or become so; two more are busy with a step for ever, at the end of which
 * their senders are held back. A sender that is let go runs once and rests; but some are held back
 * once more before that.
 *
 * INV-3: whoever runs a sender has its only token; INV-5: what woke it is seen.
 * INV-10: no work waits while a worker sleeps.
 * INV-13, INV-15: while some are held back and a worker sleeps, one waits in the poller, no longer
 * than until the first is let go.
 * INV-46: a sender that continues and rests is in a line, and is let go in time. */
#include <string.h>

#include "explore.h"
#include "no_next_slots.h"
#include "rig.h"
#include "sched/chores.h"
#include "sched/deliver.h"
#include "sched/held_back.h"
#include "sched/poll.h"
#include "sched/shutdown.h"
#include "sched/timers.h"
#include "sched/worker.h"
#include "tables.h"
#include "world.h"

#define IDLE_WORKERS 2
#define BUSY         2 /* the number of the first that is busy */
#define SENDERS      2

_Static_assert(HELD_BACK_NS == INSTANT(1), "one tick lets all go");

static const skua_process_type type = {.name = "process"};

static struct {
    struct process *process;
    skua_pid pid;
    atomic_u32 tokens; /* in the shared queue */
    bool runs;         /* plain: who has no token races */
    uint32_t again;    /* how often it is held back once more */
    uint32_t steps;
    uint32_t requests; /* that it has seen */
    bool takes_part;
    bool has_ended;
} senders[SENDERS];

static struct process *receivers[SENDERS];
static bool has_looked[IDLE_WORKERS]; /* in this search */
static bool two_lines;

/* ---- in place of submit.c, find_work.c, steal.c, deliver.c, shutdown.c ---- */

static uint32_t number_of(const struct process *process)
{
    const uint32_t number = process == senders[0].process ? 0 : 1;
    EXPLORE_CHECK(senders[number].process == process, "INV-3: only senders are let go");
    return number;
}

void submit_outside(struct scheduler *sched, struct process *process)
{
    const uint32_t before = fetch_add_seq_cst(&senders[number_of(process)].tokens, 1);
    EXPLORE_CHECK(before == 0, "INV-3: a process has one token");
    (void)fetch_add_seq_cst(&sched->global.sorted, 1); /* P1 */
    idle_wake_one(sched, NULL);
}

static struct process *take_shared(void)
{
    if (!rig_take_work(&rig)) {
        return NULL;
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        if (exchange_seq_cst(&senders[i].tokens, 0) != 0) {
            return senders[i].process;
        }
    }
    EXPLORE_CHECK(false, "INV-3: what is counted is there");
    return NULL;
}

struct process *find_shared(struct worker *worker)
{
    if (has_looked[worker->index]) {
        return NULL;
    }
    has_looked[worker->index] = true;
    return take_shared();
}

struct process *find_work(struct worker *worker)
{
    struct process *process = take_shared();
    return process != NULL ? process : held_back_take(worker);
}

void steal_begin(struct worker *worker)
{
    has_looked[worker->index] = false;
}

struct process *steal(struct worker *worker, bool last_pass)
{
    (void)worker;
    (void)last_pass;
    return NULL;
}

void submit_ready(struct scheduler *sched, struct worker *worker, struct process *process)
{
    (void)worker;
    submit_outside(sched, process);
}

struct process *deliver_call(struct scheduler *sched, struct worker *worker, skua_pid owner,
                             uint32_t call)
{
    (void)sched;
    (void)worker;
    (void)owner;
    (void)call;
    EXPLORE_CHECK(false, "there are no timers");
    return NULL;
}

int deliver_request(struct scheduler *sched, struct worker *worker, skua_pid to, uint32_t request)
{
    (void)sched;
    (void)worker;
    (void)to;
    (void)request;
    EXPLORE_CHECK(false, "no task is woken");
    return 0;
}

void shutdown_worker_is_quiet(struct scheduler *sched)
{
    (void)sched;
}

/* ---- running a sender ---- */

/* Its pick ends, after a send to its receiver. */
static bool hold_back(struct worker *worker, uint32_t number)
{
    worker->crowded = receivers[two_lines ? number : 0];
    worker->context->self = senders[number].pid;
    senders[number].takes_part = true;
    return held_back_try(worker, senders[number].process);
}

static void end_sender(uint32_t number)
{
    struct process *process = senders[number].process;
    explore_note("ends sender %u", number);
    senders[number].has_ended = true;
    (void)!state_finish_owner(process);
    (void)!state_free_owner(process);
}

/* Takes what has come, then rests. */
static void settle(uint32_t number)
{
    struct process *process = senders[number].process;
    do {
        const uint32_t requests = event_list_tag(state_take_owner(process)) & STATE_REQUESTS;
        senders[number].requests |= requests;
        if ((requests & STATE_KILL) != 0) {
            end_sender(number);
            return;
        }
    } while (!state_rest_owner(process, STATE_IDLE));
}

static void run_sender(struct worker *worker, uint32_t number)
{
    struct process *process = senders[number].process;
    explore_note("runs sender %u", number);
    EXPLORE_CHECK(!senders[number].runs, "INV-4: one at a time runs it");
    senders[number].runs = true;
    senders[number].steps++;
    const bool again = senders[number].again > 0;
    senders[number].again -= again ? 1 : 0;
    senders[number].runs = false;
    if (again && hold_back(worker, number)) {
        return;
    }
    process_set_progress_owner(process, 0);
    settle(number);
}

/* ---- threads ---- */

static const uint32_t numbers[] = {0, 1, 2, 3, 4};

static void work(struct worker *worker)
{
    for (;;) {
        struct process *process = find_work(worker);
        if (process == NULL) {
            process = idle_find(worker);
        }
        EXPLORE_CHECK(process != NULL, "nobody tells it to exit");
        run_sender(worker, number_of(process));
    }
}

static void run_worker(const void *number)
{
    work(&rig.workers[*(const uint32_t *)number]);
}

/* The step of a sender ends on a worker that stays busy. */
static void run_holding(const void *number)
{
    const uint32_t sender = *(const uint32_t *)number;
    explore_note("holds back sender %u", sender);
    if (!hold_back(&rig.workers[BUSY + sender], sender)) {
        run_sender(&rig.workers[BUSY + sender], sender);
    }
}

/* The same, and then its worker looks for work. */
static void run_holding_worker(const void *number)
{
    const uint32_t sender = *(const uint32_t *)number;
    if (!hold_back(&rig.workers[0], sender)) {
        run_sender(&rig.workers[0], sender);
    }
    work(&rig.workers[0]);
}

/* The receiver of sender 0 has caught up, and its worker looks for work. */
static void run_receiving_worker(const void *number)
{
    explore_note("the receiver rests");
    (void)!state_rest_owner(receivers[0], STATE_IDLE);
    work(&rig.workers[*(const uint32_t *)number]);
}

static void request(uint32_t number, uint32_t what)
{
    struct process *process = senders[number].process;
    if (state_request_any(process, pid_generation(senders[number].pid), what) == STATE_ENQUEUE) {
        submit_outside(&rig, process);
    }
}

/* As an event would: it wakes, and must be seen. */
static void run_waking(const void *number)
{
    explore_note("wakes sender %u", *(const uint32_t *)number);
    request(*(const uint32_t *)number, STATE_CANCEL);
}

static void run_killing(const void *number)
{
    explore_note("kills sender %u", *(const uint32_t *)number);
    request(*(const uint32_t *)number, STATE_KILL);
}

/* A checkpoint of a worker that has other work. */
static void run_checkpoint(const void *arg)
{
    (void)arg;
    held_back_release(&rig, time_now(rig.time));
}

/* ---- the beginning and the end ---- */

static struct poller model_poller = {.wait = wait_for_events, .interrupt = interrupt};

static void ignore_the_rest(void)
{
    for (uint32_t i = 0; i < rig.worker_count; i++) {
        explore_ignore(&rig.workers[i].deque, sizeof rig.workers[i].deque);
        explore_ignore(&rig.deadlines.wheels[i].next, sizeof(atomic_u64));
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        explore_ignore(&senders[i].process->progress, sizeof(atomic_u64));
    }
    explore_ignore(&rig.phase, sizeof rig.phase);
    explore_ignore(&rig.exiting, sizeof rig.exiting);
    explore_ignore(&rig.threads, sizeof rig.threads);
    explore_ignore(&rig.poll.last, sizeof rig.poll.last);
    explore_ignore(&rig.poll.waits, sizeof rig.poll.waits);
    explore_ignore(&rig.chores, sizeof rig.chores);
    explore_ignore(&rig.spare, sizeof rig.spare);
    explore_ignore(&rig.monitor_asleep, sizeof rig.monitor_asleep);
    explore_ignore(&rig.events.chain_count, sizeof rig.events.chain_count);
    explore_ignore(&rig.table.pool.chain_count, sizeof rig.table.pool.chain_count);
}

static void setup(void)
{
    rig_reset(IDLE_WORKERS + SENDERS);
    explore_heed(&rig.held_back);
    rig.time = &model_clock;
    rig.poller = &model_poller;
    world_begin();
    memset(has_looked, 0, sizeof has_looked);
    memset(senders, 0, sizeof senders);
    two_lines = false;
    struct pool_cache *cache = &rig.outside.caches.processes;
    skua_pid pid;
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i].process = rig_spawn(cache, &type, &senders[i].pid);
        receivers[i] = rig_spawn(cache, &type, &pid);
    }
    ignore_the_rest();
}

static void setup_two_lines(void)
{
    setup();
    two_lines = true;
}

static void setup_again(void)
{
    setup();
    senders[0].again = 1;
}

/* Sender 0 is held back already. */
static void setup_held(void)
{
    setup();
    EXPLORE_CHECK(hold_back(&rig.workers[BUSY], 0), "there is a place");
}

static void setup_held_again(void)
{
    setup_held();
    senders[0].again = 1;
}

/* Both are, and there is no third place. */
static void setup_full(void)
{
    setup_held();
    EXPLORE_CHECK(hold_back(&rig.workers[BUSY + 1], 1), "there is a place");
}

/* When a sender is let go; NEVER: it is in no line. */
static uint64_t end_of(uint32_t number)
{
    uint64_t until = NEVER;
    for (uint32_t i = 0; i < HELD_BACK_LINES; i++) {
        const struct held_line *line = &rig.held_back.lines[i];
        for (uint32_t j = 0; j < line->count; j++) {
            const struct held_place *place = &line->places[(line->first + j) % HELD_BACK_MAX];
            if (place->pid.bits == senders[number].pid.bits && place->until < until) {
                until = place->until;
            }
        }
    }
    return until;
}

static bool somebody_sleeps(void)
{
    return sleeps(0) || sleeps(1);
}

static bool all_are_attended(void)
{
    const uint64_t due = load_relaxed(&rig.held_back.due);
    if (!somebody_sleeps()) {
        return true;
    }
    EXPLORE_CHECK(load_relaxed(&rig.global.sorted) == 0, "INV-10: no work waits for a sleeper");
    if (due != NEVER) {
        world_check_attended(due);
    }
    world_check_sleeper();
    return true;
}

static void check_sender(uint32_t number)
{
    struct process *process = senders[number].process;
    const uint32_t tag = state_peek(process);
    if (senders[number].has_ended) {
        EXPLORE_CHECK(load_relaxed(&senders[number].tokens) == 0, "INV-3: nothing is left of it");
        return;
    }
    EXPLORE_CHECK(!senders[number].takes_part || state_of(tag) != STATE_READY ||
                      load_relaxed(&senders[number].tokens) == 1,
                  "INV-3: who is Ready has a token");
    EXPLORE_CHECK((tag & STATE_REQUESTS) == 0 || !state_is_waiting(tag),
                  "INV-5: who rests has seen all");
    if (state_is_waiting(tag) && (process_progress(process) & PROCESS_CONTINUES) != 0) {
        const uint64_t until = end_of(number);
        EXPLORE_CHECK(until != NEVER, "INV-46: it is in a line");
        EXPLORE_CHECK(load_relaxed(&rig.held_back.due) <= until, "INV-46: and somebody knows");
        EXPLORE_CHECK(!somebody_sleeps() || until > time_of(load_relaxed(&outside)),
                      "INV-46: it is let go in time");
    }
}

static void finish(void)
{
    EXPLORE_CHECK(load_relaxed(&rig.parking.searching) == 0, "INV-9: nobody searches");
    const uint32_t holder = load_relaxed(&rig.poll.holder);
    EXPLORE_CHECK(holder == 0 || poller_state.sleeps, "who has the role waits in the poller");
    for (uint32_t i = 0; i < SENDERS; i++) {
        check_sender(i);
    }
}

/* Sender 0 was woken, or let go, and nobody holds it back for ever. */
static void finish_run(void)
{
    finish();
    EXPLORE_CHECK(senders[0].steps > 0, "INV-46: it runs again");
}

static void finish_seen(void)
{
    finish_run();
    EXPLORE_CHECK(senders[0].requests == STATE_CANCEL, "INV-5: what woke it is seen");
}

static void finish_ended(void)
{
    finish();
    EXPLORE_CHECK(senders[0].has_ended, "INV-5: it is killed, held back or not");
}

#define WORKER(number)    EXPLORE_THREAD("worker" #number, run_worker, &numbers[number])
#define HOLDING(sender)   EXPLORE_THREAD("hold" #sender, run_holding, &numbers[sender])
#define HOLDING_WORKER    EXPLORE_THREAD("holder", run_holding_worker, &numbers[0])
#define RECEIVING(number) EXPLORE_THREAD("receiver", run_receiving_worker, &numbers[number])
#define WAKING            EXPLORE_THREAD("event", run_waking, &numbers[0])
#define KILLING           EXPLORE_THREAD("kill", run_killing, &numbers[0])
#define CHECKPOINT        EXPLORE_THREAD("checkpoint", run_checkpoint, NULL)
#define CLOCK             EXPLORE_THREAD("clock", run_clock, &numbers[1])

#define MAY_REST all_are_attended

/* More than one word is used under the lock and without it. */
#define OPEN(name_, bound_, setup_, finish_, ...)                                                  \
    {                                                                                              \
        .name = name_, .mode = EXPLORE_PREEMPTIONS, .bound = bound_, .mutexes_are_open = true,     \
        .setup = setup_, .threads = {__VA_ARGS__}, .may_rest = MAY_REST, .finish = finish_,        \
    }

static const struct explore_model models[] = {
    /* A sender is held back beside idle workers. */
    ALL("hold_one", setup, finish, WORKER(0), HOLDING(0)),
    WEAK("hold_one_weak", setup, finish, WORKER(0), HOLDING(0)),
    OPEN("hold", 2, setup, finish, WORKER(0), WORKER(1), HOLDING(0)),
    OPEN("hold_two", 2, setup, finish, WORKER(0), HOLDING(0), HOLDING(1)),
    OPEN("hold_for_two", 2, setup_two_lines, finish, WORKER(0), HOLDING(0), HOLDING(1)),
    /* Something wakes it. */
    OPEN("wake", 3, setup, finish_seen, WORKER(0), HOLDING(0), WAKING),
    OPEN("wake_again", 3, setup_again, finish_seen, WORKER(0), HOLDING(0), WAKING),
    OPEN("kill", 3, setup, finish_ended, WORKER(0), HOLDING(0), KILLING),
    OPEN("kill_in_time", 2, setup_held, finish_ended, WORKER(0), KILLING, CLOCK),
    /* Its time is over. */
    OPEN("time_one", 3, setup_held, finish_run, WORKER(0), CLOCK),
    OPEN("time", 2, setup_held, finish_run, WORKER(0), WORKER(1), CLOCK),
    OPEN("time_two", 2, setup_full, finish_run, WORKER(0), WORKER(1), CLOCK),
    OPEN("time_again", 2, setup_held_again, finish_run, WORKER(0), CLOCK),
    OPEN("time_for_two", 2, setup_two_lines, finish, WORKER(0), HOLDING(0), HOLDING(1), CLOCK),
    OPEN("time_and_checkpoint", 2, setup_held, finish_run, WORKER(0), CHECKPOINT, CLOCK),
    OPEN("time_and_event", 2, setup_held, finish_seen, WORKER(0), WAKING, CLOCK),
    /* The receiver rests. */
    OPEN("rest", 3, setup_held, finish_run, RECEIVING(0), WORKER(1)),
    OPEN("rest_while_holding", 3, setup, finish, HOLDING_WORKER, RECEIVING(1)),
    OPEN("rest_and_event", 2, setup_held, finish_seen, RECEIVING(0), WAKING),
    OPEN("rest_and_time", 2, setup_full, finish_run, RECEIVING(0), WORKER(1), CLOCK),
    OPEN("rest_again", 2, setup_held_again, finish_run, RECEIVING(0), WORKER(1), WAKING),
    RANDOM("many", setup_held_again, finish_seen, RECEIVING(0), WORKER(1), WAKING, HOLDING(1),
           CLOCK),
    RANDOM("many_for_two", setup_two_lines, finish, WORKER(0), RECEIVING(1), HOLDING(0), HOLDING(1),
           CLOCK),
};

EXPLORE_MAIN(models)
