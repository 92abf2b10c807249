/* SPDX-License-Identifier: MIT */
/* sched/urgent.c with deliver.c, defer.c, step.c, settle.c and exit.c: urgent messages on their way
 * to a process that has other events, that has deferred some, that is about to rest, or that ends.
 * Its steps get one event each, so that most events wait, some in the backlog and some in the list.
 *
 * INV-3:  at most one token.
 * INV-5:  an accepted message is handed to a step once, or dropped when the process ends; none is
 *         slept on.
 * INV-6:  the urgent messages of one sender arrive in order, and so do its ordinary ones.
 * INV-20: each node is given back exactly once.
 * INV-21: in the end no place in the mailbox is taken.
 * INV-33: who gets an ordinary message has got every urgent one that was sent before its last step
 *         ended. */
#define TOKENS_MARK EXPLORE_OWN

#include <string.h>

#include "close_only.h"
#include "explore.h"
#include "no_blocking.h"
#include "no_callers.h"
#include "no_timers.h"
#include "plain_context.h"
#include "receiver_queue.h"
#include "rig.h"
#include "sched/deliver.h"
#include "sched/poll.h"
#include "sched/spare.h"
#include "sched/spawn.h"
#include "sched/worker.h"
#include "tables.h"

#define RUNNERS      2
#define SENDERS      3 /* the last has sent before the threads begin */
#define MESSAGES_MAX 5 /* of a sender */

struct message {
    uint32_t sender;
    uint32_t number; /* from 1; 0: not sent */
    bool is_urgent;
    bool is_accepted; /* and its sender knows */
    bool was_waiting; /* when the last step ended */
    int error;
    uint32_t delivered;
    uint32_t dropped;
};

static atomic_u32 urgent_sent[SENDERS]; /* the number of the last one that was */
EXPLORE_OWN static uint32_t ended;
EXPLORE_OWN static uint32_t continues; /* steps that ask for another */
EXPLORE_OWN static uint32_t defers;    /* steps that defer ordinary messages; the last resumes */
EXPLORE_OWN static uint32_t last_number[SENDERS][2];
EXPLORE_OWN static struct message messages[SENDERS][MESSAGES_MAX];

/* ---- the process ---- */

static void drop_message(void *data, size_t size)
{
    const struct message *message = data;
    (void)size;
    EXPLORE_CHECK(++((struct message *)data)->dropped == 1, "a payload is dropped once");
    explore_note("drops %u", (unsigned)message->number);
}

/* One that has woken the process may be above the limit of ordinary ones. */
static void check_limit(void)
{
    uint32_t waiting = 0;
    FOR_MESSAGES(message)
    {
        waiting += message->is_accepted && message->delivered == 0 && message->dropped == 0;
    }
    EXPLORE_CHECK(waiting <= 2 * process_type(process)->mailbox_limit + 1,
                  "INV-21: the limit is kept");
}

static void receive(const skua_event *event)
{
    struct message *got = event->payload.as.owned.data;
    uint32_t *const last = &last_number[got->sender][got->is_urgent];
    explore_note("gets %u of %u", (unsigned)got->number, (unsigned)got->sender);
    EXPLORE_CHECK(++got->delivered == 1, "INV-5: handed to a step once");
    EXPLORE_CHECK(got->number > *last, "INV-6: in order");
    *last = got->number;
    FOR_MESSAGES(message)
    {
        EXPLORE_CHECK(got->is_urgent || !message->was_waiting || message->delivered > 0,
                      "INV-33: the urgent ones come first");
    }
}

/* It hears of them from their senders: otherwise none could be said to be before it. */
static void look_who_waits(void)
{
    for (uint32_t sender = 0; sender < SENDERS - 1; sender++) {
        const uint32_t last = load_acquire(&urgent_sent[sender]);
        for (uint32_t i = 0; i < last; i++) {
            messages[sender][i].was_waiting =
                messages[sender][i].is_urgent && messages[sender][i].error == 0;
        }
    }
}

static bool puts_off(skua_context *ctx, skua_event *event)
{
    const struct message *message = event->payload.as.owned.data;
    if (defers == 0 || message->is_urgent) {
        return false;
    }
    explore_note("defers %u of %u", (unsigned)message->number, (unsigned)message->sender);
    EXPLORE_CHECK(skua_defer(ctx, event) == 0, "it can be deferred");
    return true;
}

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_MESSAGE && !puts_off(ctx, &events[i])) {
            receive(&events[i]);
        }
    }
    if (defers > 0 && --defers == 0) {
        EXPLORE_CHECK(skua_resume(ctx) == 0, "it can resume");
    }
    look_who_waits();
    if (continues > 0) {
        continues--;
        return skua_continue(ctx);
    }
    return 0;
}

static void close_process(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self;
    (void)ctx;
    (void)exit;
    ended++;
}

static const skua_process_type type = {
    .name = "urgent", .step = step, .close = close_process, .urgent = true, .mailbox_limit = 8};
static const skua_process_type small_type = {
    .name = "small", .step = step, .close = close_process, .urgent = true, .mailbox_limit = 1};

/* ---- threads ---- */

static const uint32_t numbers[] = {0, 1};

static void run_worker(const void *number)
{
    struct worker *worker = &rig.workers[*(const uint32_t *)number];
    for (;;) {
        explore_take(&queue);
        tokens--;
        step_run(worker, process);
    }
}

/* 'u' is an urgent message, 'o' an ordinary one. */
struct letters {
    uint32_t sender;
    const char *kinds;
};

static void run_sender(const void *arg)
{
    const struct letters *letters = arg;
    struct worker *worker =
        letters->sender < SENDERS - 1 ? &rig.workers[RUNNERS + letters->sender] : NULL;
    for (uint32_t i = 0; letters->kinds[i] != 0; i++) {
        struct message *message = &messages[letters->sender][i];
        *message = (struct message){
            .sender = letters->sender, .number = i + 1, .is_urgent = letters->kinds[i] == 'u'};
        skua_payload payload = skua_payload_pointer(0, message, drop_message);
        explore_note("sends %u", (unsigned)message->number);
        message->error = (message->is_urgent ? deliver_urgent : deliver_message)(
            &rig, worker, (skua_pid){0}, its_pid, &payload);
        message->is_accepted = message->error == 0;
        check_limit();
        if (message->is_urgent) {
            store_release(&urgent_sent[letters->sender], message->number);
        }
        explore_note("%s", skua_error_name(message->error));
    }
}

/* ---- the beginning and the end ---- */

static void setup_with(const skua_process_type *its_type, uint32_t events_max)
{
    rig_reset(RUNNERS + SENDERS - 1);
    for (uint32_t i = 0; i < RUNNERS; i++) {
        rig.workers[i].events_max = events_max;
    }
    memset(messages, 0, sizeof messages);
    memset(last_number, 0, sizeof last_number);
    for (uint32_t i = 0; i < SENDERS; i++) {
        store_relaxed(&urgent_sent[i], 0);
    }
    ended = continues = defers = 0;
    make_receiver(its_type);
}

static void setup(void)
{
    setup_with(&type, 1);
}

static void setup_small(void)
{
    setup_with(&small_type, 1);
}

static void setup_busy(void)
{
    setup_with(&type, SKUA_EVENTS_PER_STEP);
    continues = 2;
}

static void add_old(void)
{
    static const struct letters old = {SENDERS - 1, "ooo"};
    run_sender(&old);
}

/* Messages wait already. */
static void setup_laden(void)
{
    setup();
    add_old();
}

/* It defers the first of them, and then those that come again. */
static void setup_deferring(void)
{
    setup_laden();
    defers = 3;
}

/* Two events to a step. */
static void setup_pairs(void)
{
    setup_with(&type, 2);
    add_old();
}

static void setup_resting(void)
{
    setup();
    let_receiver_rest();
}

static void check(void)
{
    FOR_MESSAGES(message)
    {
        if (message->number == 0) {
            continue;
        }
        EXPLORE_CHECK(message->delivered == (message->error == 0) || ended > 0,
                      "INV-5: a live process gets what was accepted, and no more");
        EXPLORE_CHECK(message->dropped == 1, "each payload is dropped");
    }
    check_receiver();
}

static void check_ended(void)
{
    check();
    EXPLORE_CHECK(ended == 1, "it ended");
}

static const struct letters urgent_a = {0, "u"};
static const struct letters two_urgent_a = {0, "uu"};
static const struct letters four_urgent_a = {0, "uuuu"};
static const struct letters mixed_a = {0, "ou"};
static const struct letters growing_a = {0, "oouou"};
static const struct letters many_a = {0, "ouou"};
static const struct letters ordinary_b = {1, "o"};
static const struct letters urgent_b = {1, "u"};
static const struct letters mixed_b = {1, "ou"};
static const struct letters two_ordinary_b = {1, "oo"};
static const struct letters many_b = {1, "uoou"};

#define WORKER           EXPLORE_THREAD("worker", run_worker, &numbers[0])
#define WORKER2          EXPLORE_THREAD("worker2", run_worker, &numbers[1])
#define SENDER(letters)  EXPLORE_THREAD("sender", run_sender, &(letters))
#define SENDER2(letters) EXPLORE_THREAD("sender2", run_sender, &(letters))

#define MAY_REST all_is_done

static const struct explore_model models[] = {
    ALL("vs_rest", setup, check, WORKER, SENDER(two_urgent_a)),
    BOUNDED("vs_rest_two", 3, setup, check, WORKER, SENDER(urgent_a), SENDER2(urgent_b)),
    ALL("wakes", setup_resting, check, WORKER, SENDER(mixed_a)),
    BOUNDED("wakes_two", 3, setup_resting, check, WORKER, SENDER(mixed_a), SENDER2(urgent_b)),
    BOUNDED("busy", 2, setup_busy, check, WORKER, SENDER(mixed_a), SENDER2(mixed_b)),
    BOUNDED("laden", 3, setup_laden, check, WORKER, SENDER(two_urgent_a)),
    BOUNDED("laden_mixed", 3, setup_laden, check, WORKER, SENDER(mixed_a)),
    BOUNDED("laden_others", 3, setup_laden, check, WORKER, SENDER(urgent_a), SENDER2(ordinary_b)),
    BOUNDED("laden_bundle", 2, setup_laden, check, WORKER, SENDER(mixed_a),
            SENDER2(two_ordinary_b)),
    BOUNDED("pairs", 3, setup_pairs, check, WORKER, SENDER(four_urgent_a)),
    RANDOM("laden_grows", setup_laden, check, WORKER, SENDER(growing_a)),
    BOUNDED("laden_two_workers", 2, setup_laden, check, WORKER, WORKER2, SENDER(mixed_a)),
    BOUNDED("deferring", 2, setup_deferring, check, WORKER, SENDER(two_urgent_a)),
    BOUNDED("deferring_killed", 2, setup_deferring, check_ended, WORKER, SENDER(mixed_a), KILLER),
    BOUNDED("full", 2, setup_small, check, WORKER, SENDER(four_urgent_a), SENDER2(mixed_b)),
    BOUNDED("killed", 2, setup_laden, check_ended, WORKER, SENDER(mixed_a), KILLER),
    RANDOM("many", setup_laden, check, WORKER, WORKER2, SENDER(many_a), SENDER2(many_b)),
    RANDOM("many_deferring", setup_deferring, check, WORKER, WORKER2, SENDER(many_a),
           SENDER2(many_b)),
    RANDOM("many_killed", setup_laden, check_ended, WORKER, SENDER(many_a), SENDER2(many_b),
           KILLER),
};

EXPLORE_MAIN(models)
