/* SPDX-License-Identifier: MIT */
/* sched/deliver.c, step.c, settle.c and exit.c: messages and requests on their way to a process,
 * with the real code from the send to the step and to the end of the process. The run queue is a
 * counter.
 *
 * INV-3:  at most one token.
 * INV-4:  one worker at a time runs the process.
 * INV-5:  an accepted message is handed to a step once, or dropped when the process ends.
 * INV-6:  the messages of one sender arrive in order.
 * INV-7:  a message for a process that has ended reaches no later one in its slot.
 * INV-20: each node is given back exactly once.
 * INV-21: a mailbox never holds more messages than its limit, and one more that has woken the
 *         process, and in a large one those that workers have not counted yet; one at rest refuses
 *         nothing; the counters agree in the end.
 * And: each payload is dropped once; the cancel event of the shutdown comes once; a waiter that
 * was admitted is told. */
#define TOKENS_MARK EXPLORE_OWN

#include <string.h>

#include "close_only.h"
#include "explore.h"
#include "no_blocking.h"
#include "no_callers.h"
#include "no_timers.h"
#include "plain_context.h"
#include "receiver.h"
#include "rig.h"
#include "sched/deliver.h"
#include "sched/exit_wait.h"
#include "sched/poll.h"
#include "sched/spare.h"
#include "sched/spawn.h"
#include "sched/worker.h"
#include "tables.h"

#define RUNNERS      2
#define SENDERS      2
#define MESSAGES_MAX 4    /* of a sender */
#define OLD_MAX      1000 /* sent before the threads begin */
#define MESSAGES     (SENDERS * MESSAGES_MAX + OLD_MAX)
#define LARGE        (8 * MAILBOX_TALLY_MAX * RIG_WORKERS_MAX) /* of large mailboxes the smallest */
#define NEXT_IN_SLOT 1
#define REASON       (-77) /* of a cancel */

struct message {
    uint32_t sender;
    uint32_t number;
    uint32_t incarnation; /* of the slot, from 0 */
    int error;            /* what the send returned */
    uint32_t delivered;
    uint32_t dropped;
};

/* What the process does. */
static struct {
    uint32_t continues;  /* steps that ask for another */
    uint32_t ends_after; /* messages; 0: never */
    uint32_t sends;      /* messages to itself, in its first step */
    bool next_in_slot;   /* when it has ended, another is made in its place */
} plan;

static skua_pid next_pid; /* of the later process in the slot */
static bool is_limited;   /* its mailbox may be full */
static uint32_t beyond;   /* the limit: so many more may wait */
static uint32_t incarnation;
EXPLORE_OWN static uint32_t holders;
EXPLORE_OWN static uint32_t ended;
EXPLORE_OWN static int exit_error;
EXPLORE_OWN static uint32_t cancels;
EXPLORE_OWN static uint32_t last_number[SENDERS];
EXPLORE_OWN static struct message messages[MESSAGES];
static uint32_t old_count;
EXPLORE_OWN static bool has_rested;
static struct exit_waiter waiter;
static int watch_error;

/* ---- in place of submit.c ---- */

void submit_ready(struct scheduler *sched, struct worker *worker, struct process *ready)
{
    (void)sched;
    (void)worker;
    EXPLORE_CHECK(ready == process, "only the one process is woken");
    has_rested = true;
    enqueue();
}

void submit_unfinished(struct worker *worker, struct process *ready)
{
    (void)worker;
    EXPLORE_CHECK(ready == process, "only the one process has had its turns");
    explore_note("has had its turns");
    enqueue();
}

void submit_behind_all(struct worker *worker, struct process *ending)
{
    (void)worker;
    EXPLORE_CHECK(ending == process, "only the one process ends");
    explore_note("ends in slices");
    enqueue();
}

/* ---- sending ---- */

static const skua_pid somebody = {1};

static void drop_message(void *data, size_t size)
{
    (void)size;
    struct message *message = data;
    EXPLORE_CHECK(++message->dropped == 1, "a payload is dropped once");
}

static void send(struct message *message, struct worker *worker, skua_pid to)
{
    explore_note("sends %u", (unsigned)message->number);
    skua_payload payload = skua_payload_pointer(0, message, drop_message);
    const skua_pid from = worker != NULL ? somebody : (skua_pid){0};
    message->error = deliver_message(&rig, worker, from, to, &payload);
    explore_note("%s", skua_error_name(message->error));
    EXPLORE_CHECK(message->error != SKUA_E_MAILBOX_FULL || is_limited,
                  "a mailbox with room refuses nothing");
}

static void send_itself(skua_context *ctx)
{
    for (; plan.sends > 0; plan.sends--) {
        struct message *message = &messages[SENDERS * MESSAGES_MAX + old_count++];
        *message = (struct message){.sender = SENDERS};
        send(message, ctx->worker, ctx->self);
    }
}

/* ---- the process ---- */

static void receive(skua_event *event)
{
    struct message *message = event->payload.as.owned.data;
    explore_note("gets %u of %u", (unsigned)message->number, (unsigned)message->sender);
    EXPLORE_CHECK(++message->delivered == 1, "INV-5: handed to a step once");
    EXPLORE_CHECK(message->incarnation == incarnation, "INV-7: of the process it was sent to");
    if (message->sender < SENDERS) {
        EXPLORE_CHECK(message->number > last_number[message->sender], "INV-6: in order");
        last_number[message->sender] = message->number;
    }
}

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    uint32_t *const received = self;
    EXPLORE_CHECK(skua_pid_equal(ctx->self, incarnation == 0 ? its_pid : next_pid),
                  "the process knows its name");
    EXPLORE_CHECK(holders++ == 0, "INV-4: one worker runs it");
    (void)load_relaxed(&queue); /* so that somebody else may come in between */
    uint32_t taken = 0;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            EXPLORE_CHECK(++cancels == 1, "the cancel event of the shutdown comes once");
        } else if (events[i].type == SKUA_EVENT_MESSAGE) {
            receive(&events[i]);
            taken++;
        }
    }
    /* Who reserved before it went to rest may push after another has woken it. */
    EXPLORE_CHECK(taken <= load_relaxed(&process->mailbox_limit) + beyond + (has_rested ? 1 : 0),
                  "INV-21: the limit is kept");
    *received += taken;
    send_itself(ctx);
    holders--;
    if (plan.ends_after != 0 && *received >= plan.ends_after) {
        return skua_done(ctx, skua_nothing());
    }
    if (plan.continues > 0) {
        plan.continues--;
        return skua_continue(ctx);
    }
    return 0;
}

static void close_process(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self;
    EXPLORE_CHECK(ctx->process == process, "only the one process ends");
    explore_note("ends the process: %s", skua_error_name(exit->error));
    exit_error = exit->error;
    ended++;
}

#define RECEIVER .state_size = 4, .step = step, .close = close_process
static const skua_process_type type = {.name = "receiver", RECEIVER, .cancel = SKUA_CANCEL_EVENT};
static const skua_process_type small_type = {
    .name = "small", RECEIVER, .cancel = SKUA_CANCEL_EVENT, .mailbox_limit = 1};
static const skua_process_type pair_type = {
    .name = "pair", RECEIVER, .cancel = SKUA_CANCEL_EVENT, .mailbox_limit = 2};
static const skua_process_type large_type = {
    .name = "large", RECEIVER, .cancel = SKUA_CANCEL_EVENT, .mailbox_limit = LARGE};
static const skua_process_type mortal_type = {.name = "mortal", RECEIVER}; /* a cancel ends it */

/* ---- threads ---- */

/* Another process in the slot that the worker has just freed. */
static void make_next(struct worker *worker)
{
    plan.next_in_slot = false;
    plan.ends_after = 0;
    incarnation = NEXT_IN_SLOT;
    const struct process *const next =
        rig_spawn(&worker->caches.processes, process_type(process), &next_pid);
    EXPLORE_CHECK(next == process, "the slot is used again");
    enqueue();
}

static const uint32_t numbers[] = {0, 1};

static void run_worker(const void *number)
{
    struct worker *worker = &rig.workers[*(const uint32_t *)number];
    for (;;) {
        explore_take(&queue);
        tokens--;
        step_run(worker, process);
        if (ended == 1 && plan.next_in_slot) {
            make_next(worker);
        }
    }
}

struct letters {
    uint32_t sender;
    uint32_t count;
    uint32_t incarnation; /* that they are for */
};

static void run_sender(const void *arg)
{
    const struct letters *letters = arg;
    struct worker *worker = &rig.workers[RUNNERS + letters->sender];
    for (uint32_t i = 0; i < letters->count; i++) {
        struct message *message = &messages[letters->sender * MESSAGES_MAX + i];
        *message = (struct message){
            .sender = letters->sender, .number = i + 1, .incarnation = letters->incarnation};
        /* Generations are counted from 1. A PID may be known before its process is visible. */
        const skua_pid to = letters->incarnation == 0
                                ? its_pid
                                : process_table_pid(&rig.table, process, 1 + letters->incarnation);
        send(message, worker, to);
    }
    mailbox_settle_owner(&worker->tally); /* as when its step is over */
}

static void run_canceller(const void *arg)
{
    (void)arg;
    (void)deliver_request(&rig, NULL, its_pid, STATE_CANCEL);
}

/* Cancels between two of its messages. */
static void run_reasoner(const void *arg)
{
    const struct letters *letters = arg;
    struct message *const own = &messages[letters->sender * MESSAGES_MAX];
    for (uint32_t i = 0; i < 2; i++) {
        own[i] = (struct message){.sender = letters->sender, .number = i + 1};
    }
    struct worker *worker = &rig.workers[RUNNERS + letters->sender];
    send(&own[0], worker, its_pid);
    (void)deliver_cancel(&rig, worker, its_pid, REASON);
    send(&own[1], worker, its_pid);
    mailbox_settle_owner(&worker->tally);
}

/* As skua_process_wait, up to the waiting. */
static void run_watcher(const void *arg)
{
    (void)arg;
    exit_wait_add(&rig, &waiter);
    watch_error = deliver_request(&rig, NULL, its_pid, STATE_WATCHED);
    if (watch_error != 0 && !exit_wait_remove(&rig, &waiter)) {
        watch_error = 0;
    }
}

/* ---- the beginning and the end ---- */

static void setup_with(const skua_process_type *its_type)
{
    rig_reset(RUNNERS + SENDERS); /* the first run the process, the others send */
    memset(messages, 0, sizeof messages[0] * SENDERS * MESSAGES_MAX);
    memset(last_number, 0, sizeof last_number);
    memset(&plan, 0, sizeof plan);
    holders = ended = cancels = incarnation = old_count = 0;
    exit_error = 0;
    is_limited = its_type->mailbox_limit != 0;
    beyond = 0;
    has_rested = false;
    make_receiver(its_type);
    waiter = (struct exit_waiter){.pid = its_pid};
    watch_error = 0;
}

static void setup(void)
{
    setup_with(&type);
}

static void setup_small(void)
{
    setup_with(&small_type);
}

/* The process has begun and rests. */
static void setup_resting(const skua_process_type *its_type)
{
    setup_with(its_type);
    let_receiver_rest();
    has_rested = true;
}

static void setup_large_resting(void)
{
    setup_resting(&type);
}

static void setup_small_resting(void)
{
    setup_resting(&small_type);
}

static void setup_pair_resting(void)
{
    setup_resting(&pair_type);
}

static void setup_mortal(void)
{
    setup_with(&mortal_type);
}

static void setup_mortal_resting(void)
{
    setup_resting(&mortal_type);
}

static void setup_mortal_busy(void)
{
    setup_with(&mortal_type);
    plan.continues = 6;
}

static void setup_small_busy(void)
{
    setup_with(&small_type);
    plan.continues = 3;
}

static void setup_busy(void)
{
    setup_with(&type);
    plan.continues = 6; /* more than it gets in one go */
}

static void setup_ending(void)
{
    setup_with(&type);
    plan.ends_after = 1;
}

/* The first message ends the process, and the next one gets its slot. */
static void setup_next_in_slot(void)
{
    setup_with(&pair_type);
    plan.ends_after = 1;
    plan.next_in_slot = true;
}

/* It sends to itself, while it runs and so is busy. */
static void setup_selfish(void)
{
    setup_with(&type);
    plan.sends = 1;
}

/* Messages wait already. */
static void lade_with(uint32_t count)
{
    while (old_count < count) {
        struct message *message = &messages[SENDERS * MESSAGES_MAX + old_count++];
        *message = (struct message){.sender = SENDERS};
        send(message, NULL, its_pid);
        EXPLORE_CHECK(message->error == 0, "the rig has memory");
    }
}

static void setup_laden_with(uint32_t count)
{
    setup_with(&type);
    lade_with(count);
}

/* All but one place of a mailbox is taken whose senders count late. */
static void setup_large(void)
{
    setup_with(&large_type);
    beyond = SENDERS * MAILBOX_TALLY_MAX - 1;
    lade_with(LARGE - 1);
}

/* So many that the process must go behind before it has seen them all. */
static void setup_overflowing(void)
{
    setup_laden_with(4 * SKUA_EVENTS_PER_STEP + 1);
}

/* More than are dropped in one slice (EXIT_SLICE). */
static void setup_laden(void)
{
    setup_laden_with(3);
}

static void check_message(const struct message *message)
{
    if (message->error == 0) {
        EXPLORE_CHECK(message->delivered == 1 || ended > 0, "INV-5: a live process gets it all");
    } else {
        EXPLORE_CHECK(message->delivered == 0, "INV-5: what was refused is not delivered");
    }
    EXPLORE_CHECK(message->dropped == 1, "each payload is dropped");
}

static void check(void)
{
    for (uint32_t i = 0; i < SENDERS * MESSAGES_MAX + old_count; i++) {
        if (messages[i].number != 0 || messages[i].sender == SENDERS) {
            check_message(&messages[i]);
        }
    }
    check_receiver();
}

static void check_cancelled(void)
{
    check();
    EXPLORE_CHECK(cancels == 1, "the cancel event of the shutdown comes once");
}

static void check_ended(void)
{
    check();
    EXPLORE_CHECK(ended == 1, "it ended");
}

/* Cancels of a process that they end take their place among its events. */
static void check_stopped(void)
{
    check_ended();
    EXPLORE_CHECK(exit_error == SKUA_E_STOPPED, "INV-19: the shutdown is the reason");
    EXPLORE_CHECK(cancels == 0, "INV-19: its step hears nothing of it");
}

static void check_reasoned(void)
{
    check_ended();
    EXPLORE_CHECK(exit_error == REASON, "INV-6: the cancel is the reason");
    EXPLORE_CHECK(messages[0].delivered == 1, "INV-6: what was sent before it is delivered");
    EXPLORE_CHECK(messages[1].delivered == 0, "INV-6: what was sent after it is not");
}

static void check_killed(void)
{
    check_ended();
    EXPLORE_CHECK(exit_error == SKUA_E_TERMINATED, "how it ended is not forgotten");
}

static void check_watched(void)
{
    check_ended();
    EXPLORE_CHECK(waiter.done == (watch_error == 0), "a waiter that was admitted is told");
}

static const struct letters one_a = {0, 1, 0};
static const struct letters two_a = {0, 2, 0};
static const struct letters three_a = {0, 3, 0};
static const struct letters four_a = {0, 4, 0};
static const struct letters one_b = {1, 1, 0};
static const struct letters two_b = {1, 2, 0};
static const struct letters four_b = {1, 4, 0};
static const struct letters later_two = {1, 2, NEXT_IN_SLOT};
static const struct letters later_four = {1, 4, NEXT_IN_SLOT};

#define WORKER           EXPLORE_THREAD("worker", run_worker, &numbers[0])
#define WORKER2          EXPLORE_THREAD("worker2", run_worker, &numbers[1])
#define SENDER(letters)  EXPLORE_THREAD("sender", run_sender, &(letters))
#define SENDER2(letters) EXPLORE_THREAD("sender2", run_sender, &(letters))
#define CANCELLER        EXPLORE_THREAD("canceller", run_canceller, NULL)
#define REASONER         EXPLORE_THREAD("reasoner", run_reasoner, &two_a)
#define WATCHER          EXPLORE_THREAD("waiter", run_watcher, NULL)

#define MAY_REST all_is_done

static const struct explore_model models[] = {
    ALL("one_sender", setup, check, WORKER, SENDER(three_a)),
    BOUNDED("two_senders", 3, setup, check, WORKER, SENDER(two_a), SENDER2(one_b)),
    BOUNDED("busy", 3, setup_busy, check, WORKER, SENDER(three_a)),
    BOUNDED("busy_two_workers", 3, setup_busy, check, WORKER, WORKER2, SENDER(two_a)),
    BOUNDED("full", 3, setup_small, check, WORKER, SENDER(two_a), SENDER2(two_b)),
    BOUNDED("full_busy", 2, setup_small_busy, check, WORKER, SENDER(two_a), SENDER2(two_b)),
    BOUNDED("wakers", 3, setup_large_resting, check, WORKER, SENDER(two_a), SENDER2(two_b)),
    BOUNDED("wakers_two_workers", 3, setup_large_resting, check, WORKER, WORKER2, SENDER(one_a),
            SENDER2(one_b)),
    BOUNDED("full_resting", 3, setup_small_resting, check, WORKER, SENDER(two_a), SENDER2(two_b)),
    BOUNDED("pair_resting", 3, setup_pair_resting, check, WORKER, SENDER(two_a), SENDER2(two_b)),
    BOUNDED("killed_resting", 3, setup_small_resting, check_ended, WORKER, SENDER(two_a), KILLER),
    BOUNDED("cancelled_resting", 3, setup_small_resting, check_cancelled, WORKER, SENDER(two_a),
            CANCELLER),
    BOUNDED("watched_resting", 3, setup_small_resting, check, WORKER, SENDER(two_a), WATCHER),
    BOUNDED("overflowing", 2, setup_overflowing, check, WORKER, SENDER(two_a)),
    BOUNDED("overflowing_requests", 2, setup_overflowing, check_cancelled, WORKER, CANCELLER,
            WATCHER),
    BOUNDED("killed", 3, setup, check_ended, WORKER, SENDER(two_a), KILLER),
    BOUNDED("killed_full", 2, setup_small, check_ended, WORKER, SENDER(two_a), SENDER2(one_b),
            KILLER),
    BOUNDED("killed_laden", 3, setup_laden, check_killed, WORKER, SENDER(two_a), KILLER),
    BOUNDED("killed_laden_two_workers", 3, setup_laden, check_killed, WORKER, WORKER2,
            SENDER(one_a), KILLER),
    BOUNDED("watched_laden", 3, setup_laden, check_watched, WORKER, KILLER, WATCHER),
    BOUNDED("cancelled_twice", 2, setup, check_cancelled, WORKER, SENDER(two_a), CANCELLER,
            CANCELLER),
    BOUNDED("stopped", 3, setup_mortal, check_stopped, WORKER, SENDER(two_a), CANCELLER),
    BOUNDED("stopped_resting", 3, setup_mortal_resting, check_stopped, WORKER, SENDER(two_a),
            CANCELLER),
    BOUNDED("stopped_busy", 3, setup_mortal_busy, check_stopped, WORKER, WORKER2, CANCELLER),
    BOUNDED("reasoned", 3, setup_mortal, check_reasoned, WORKER, REASONER, SENDER2(one_b)),
    BOUNDED("reasoned_busy", 3, setup_mortal_busy, check_reasoned, WORKER, WORKER2, REASONER),
    BOUNDED("watched", 3, setup_ending, check_watched, WORKER, SENDER(two_a), WATCHER),
    BOUNDED("watched_killed", 4, setup, check_watched, WORKER, KILLER, WATCHER),
    BOUNDED("next_in_slot", 3, setup_next_in_slot, check_ended, WORKER, SENDER(three_a),
            SENDER2(later_two)),
    BOUNDED("selfish", 3, setup_selfish, check, WORKER, SENDER(one_a)),
    BOUNDED("large", 2, setup_large, check, WORKER, SENDER(three_a), SENDER2(two_b)),
    RANDOM("many_large", setup_large, check, WORKER, WORKER2, SENDER(four_a), SENDER2(four_b)),
    RANDOM("many", setup_small, check, WORKER, SENDER(four_a), SENDER2(four_b)),
    RANDOM("many_resting", setup_pair_resting, check, WORKER, WORKER2, SENDER(four_a),
           SENDER2(four_b)),
    RANDOM("many_requests", setup, check_watched, WORKER, SENDER(four_a), CANCELLER, KILLER,
           WATCHER),
    RANDOM("many_next_in_slot", setup_next_in_slot, check_ended, WORKER, SENDER(four_a),
           SENDER2(later_four)),
};

EXPLORE_MAIN(models)
