/* SPDX-License-Identifier: MIT */
/* sched/shedding.c with deliver.c, step.c and exit.c: messages that find a mailbox full, whose
 * process drops new or old ones, or ends because of that.
 *
 * INV-3:  at most one token.
 * INV-5:  an accepted message is handed to a step once, or dropped and reported once.
 * INV-6:  the messages of one sender arrive in order.
 * INV-20: each node is given back exactly once.
 * INV-21: limits are kept; who drops old messages gets the newest; who ends because it has too many
 *         says so; in the end no place in the mailbox is taken. */
#define TOKENS_MARK EXPLORE_OWN

#include <string.h>

#include "close_only.h"
#include "explore.h"
#include "no_blocking.h"
#include "no_callers.h"
#include "no_timers.h"
#include "one_worker.h"
#include "plain_context.h"
#include "receiver_queue.h"
#include "rig.h"
#include "sched/deliver.h"
#include "sched/poll.h"
#include "sched/spare.h"
#include "sched/worker.h"
#include "tables.h"

#define SENDERS      2
#define MESSAGES_MAX 4 /* of a sender */

struct message {
    uint32_t sender;
    uint32_t number; /* from 1; 0: not sent */
    bool is_sent;    /* and its sender knows what came of it */
    int error;
    uint32_t delivered;
    uint32_t reported; /* as a dead letter */
    uint32_t dropped;
};

EXPLORE_OWN static uint32_t ended;
EXPLORE_OWN static int exit_error;
EXPLORE_OWN static uint32_t last_number[SENDERS];
EXPLORE_OWN static struct message messages[SENDERS][MESSAGES_MAX];

/* ---- the process ---- */

static void drop_message(void *data, size_t size)
{
    (void)size;
    EXPLORE_CHECK(++((struct message *)data)->dropped == 1, "a payload is dropped once");
}

static void note_dead_letter(void *arg, const skua_dead_letter *letter)
{
    (void)arg;
    struct message *message = letter->payload->as.owned.data;
    explore_note("%u of %u is a dead letter", (unsigned)message->number, (unsigned)message->sender);
    EXPLORE_CHECK(++message->reported == 1, "INV-5: reported once");
}

static uint32_t limit_of(void)
{
    return process_type(process)->mailbox_limit;
}

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    uint32_t got = 0;
    (void)self;
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_MESSAGE) {
            struct message *message = events[i].payload.as.owned.data;
            explore_note("gets %u of %u", (unsigned)message->number, (unsigned)message->sender);
            EXPLORE_CHECK(++message->delivered == 1, "INV-5: handed to a step once");
            EXPLORE_CHECK(message->number > last_number[message->sender], "INV-6: in order");
            last_number[message->sender] = message->number;
            got++;
        }
    }
    EXPLORE_CHECK(got <= limit_of() + 1, "INV-21: no step gets more than the mailbox may hold");
    return 0;
}

static void close_process(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self;
    (void)ctx;
    ended++;
    exit_error = exit->error;
}

#define TYPE(name_, limit_, overflow_)                                                             \
    {                                                                                              \
        .name = name_, .step = step, .close = close_process, .mailbox_limit = limit_,              \
        .overflow = overflow_,                                                                     \
    }
static const skua_process_type drops_new = TYPE("new", 1, SKUA_OVERFLOW_DROP_NEW);
static const skua_process_type drops_old = TYPE("old", 1, SKUA_OVERFLOW_DROP_OLD);
static const skua_process_type drops_two = TYPE("two", 2, SKUA_OVERFLOW_DROP_OLD);
static const skua_process_type ends = TYPE("ends", 1, SKUA_OVERFLOW_END);

/* ---- threads ---- */

/* One that has woken the process may be above the limit. */
static void check_limit(void)
{
    const bool is_old = process_type(process)->overflow == SKUA_OVERFLOW_DROP_OLD;
    uint32_t waiting = 0;
    FOR_MESSAGES(message)
    {
        waiting += message->is_sent && message->error == 0 && message->delivered == 0 &&
                   message->dropped == 0;
    }
    EXPLORE_CHECK(waiting <= (is_old ? 2 : 1) * limit_of() + 1, "INV-21: the limit is kept");
}

struct letters {
    uint32_t sender;
    uint32_t count;
};

static void run_sender(const void *arg)
{
    const struct letters *letters = arg;
    for (uint32_t i = 0; i < letters->count; i++) {
        struct message *message = &messages[letters->sender][i];
        *message = (struct message){.sender = letters->sender, .number = i + 1};
        skua_payload payload = skua_payload_pointer(0, message, drop_message);
        explore_note("sends %u", (unsigned)message->number);
        message->error = deliver_message(&rig, &rig.workers[1 + letters->sender], (skua_pid){0},
                                         its_pid, &payload);
        message->is_sent = true;
        explore_note("%s", skua_error_name(message->error));
        check_limit();
    }
}

/* ---- the beginning and the end ---- */

static void setup_with(const skua_process_type *type)
{
    rig_reset(1 + SENDERS);
    rig.config.on_dead_letter = note_dead_letter;
    memset(messages, 0, sizeof messages);
    memset(last_number, 0, sizeof last_number);
    ended = 0;
    exit_error = 0;
    make_receiver(type);
}

static void setup_new(void)
{
    setup_with(&drops_new);
}

static void setup_old(void)
{
    setup_with(&drops_old);
}

static void setup_old_resting(void)
{
    setup_old();
    let_receiver_rest();
}

static void setup_two(void)
{
    setup_with(&drops_two);
}

static void setup_ends(void)
{
    setup_with(&ends);
}

static void check(void)
{
    FOR_MESSAGES(message)
    {
        const bool is_accepted = message->number != 0 && message->error == 0;
        EXPLORE_CHECK(message->delivered + message->reported == is_accepted,
                      "INV-5: what was accepted is handed over or reported");
        EXPLORE_CHECK(message->dropped == (message->number != 0), "each payload is dropped");
    }
    check_receiver();
}

/* As many as are dropped have found a place: one sender, and fewer than twice the limit. */
static void check_newest(void)
{
    check();
    const struct message *newest = &messages[0][0];
    FOR_MESSAGES(message)
    {
        newest = message->number > newest->number ? message : newest;
    }
    EXPLORE_CHECK(newest->delivered == 1, "INV-21: the newest is handed over");
}

/* Whether somebody found the mailbox full, or the process gone because of another. */
static void check_overflow(void)
{
    bool is_full = false;
    check();
    FOR_MESSAGES(message)
    {
        is_full = is_full || message->error == SKUA_E_MAILBOX_FULL;
    }
    EXPLORE_CHECK(ended == is_full, "INV-21: it ends if it has too many, and only then");
    EXPLORE_CHECK(ended == 0 || exit_error == SKUA_E_OVERFLOW, "INV-21: and says so");
}

static void check_killed(void)
{
    check();
    EXPLORE_CHECK(ended == 1, "it ended");
}

static const struct letters two_a = {0, 2};
static const struct letters three_a = {0, 3};
static const struct letters four_a = {0, 4};
static const struct letters two_b = {1, 2};
static const struct letters four_b = {1, 4};

#define SENDER(letters)  EXPLORE_THREAD("sender", run_sender, &(letters))
#define SENDER2(letters) EXPLORE_THREAD("sender2", run_sender, &(letters))

#define MAY_REST all_is_done

static const struct explore_model models[] = {
    BOUNDED("drop_new", 3, setup_new, check, WORKER, SENDER(two_a), SENDER2(two_b)),
    BOUNDED("drop_new_killed", 2, setup_new, check_killed, WORKER, SENDER(three_a), KILLER),
    BOUNDED("drop_old", 3, setup_two, check_newest, WORKER, SENDER(four_a)),
    BOUNDED("drop_old_two", 2, setup_old, check, WORKER, SENDER(three_a), SENDER2(two_b)),
    BOUNDED("drop_old_resting", 2, setup_old_resting, check, WORKER, SENDER(three_a),
            SENDER2(two_b)),
    BOUNDED("drop_old_killed", 2, setup_old, check_killed, WORKER, SENDER(three_a), KILLER),
    BOUNDED("end", 3, setup_ends, check_overflow, WORKER, SENDER(three_a)),
    BOUNDED("end_two", 2, setup_ends, check_overflow, WORKER, SENDER(two_a), SENDER2(two_b)),
    BOUNDED("end_killed", 2, setup_ends, check_killed, WORKER, SENDER(three_a), KILLER),
    RANDOM("many_old", setup_two, check, WORKER, SENDER(four_a), SENDER2(four_b)),
    RANDOM("many_ends", setup_ends, check_overflow, WORKER, SENDER(four_a), SENDER2(four_b)),
};

EXPLORE_MAIN(models)
