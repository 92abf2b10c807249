/* SPDX-License-Identifier: MIT */
/* sched/admission.c, signal.c and farewell.c: a sender that waits for room in a mailbox, against
 * the receiver's end, cancels, timeouts and the sender's own end, in all orders in which these
 * cross.
 *
 * INV-14: a send has one completion.
 * INV-20: each node is given back exactly once, and then nobody who knew it touches it.
 * INV-42: a send that completes with 0 was delivered, or its receiver ended with it in its mailbox;
 *         one that completes with an error was not delivered; nobody waits for a receiver that has
 *         ended; what one process sends arrives in order. */
#include "cast.h"
#include "process/mailbox.h"
#include "sched/admission.h"

#define TIMEOUT  (RIG_BEGINNING / 2)
#define SENT_MAX 4

enum { ANN, BOB };

/* What Ann does to Bob; TAKE_BACK acts on what she sent last. */
enum { ADMIT = ACTS, ADMIT_TIMED, TAKE_BACK };

struct letter {
    uint32_t ends;
    int error;
    uint32_t delivered;
    uint32_t dropped;
};

/* Each is touched by its owner's thread alone, and read in the end. */
static struct letter letters[SENT_MAX];
static uint32_t sent;
static uint32_t last_seen;

static void drop_letter(void *data, size_t size)
{
    (void)size;
    EXPLORE_CHECK(++((struct letter *)data)->dropped == 1, "a payload is dropped once");
}

static int perform(skua_context *ctx, uint32_t who, uint32_t act)
{
    EXPLORE_CHECK(who == ANN, "only Ann acts");
    if (act == TAKE_BACK) {
        return skua_yield_cancel(ctx, sent - 1);
    }
    const uint32_t number = sent++;
    return skua_yield_send(ctx, number, parts[BOB].pid,
                           skua_payload_pointer(number, &letters[number], drop_letter),
                           act == ADMIT_TIMED ? TIMEOUT : SKUA_FOREVER);
}

static bool get_event(skua_context *ctx, uint32_t who, skua_event *event)
{
    (void)ctx;
    if (event->type == SKUA_EVENT_START) {
        return true;
    }
    if (event->type == SKUA_EVENT_COMPLETION) {
        struct letter *letter = &letters[event->tag];
        explore_note("send %u ends: %s", (unsigned)event->tag, skua_error_name(event->error));
        EXPLORE_CHECK(who == ANN && ++letter->ends == 1, "INV-14: one completion to a send");
        letter->error = event->error;
        return false;
    }
    EXPLORE_CHECK(event->type == SKUA_EVENT_MESSAGE && who == BOB, "nothing else comes");
    explore_note("gets %u", (unsigned)event->payload.type);
    EXPLORE_CHECK(++letters[event->payload.type].delivered == 1, "INV-42: delivered once");
    EXPLORE_CHECK(event->payload.type + 1 > last_seen, "INV-42: in order");
    last_seen = event->payload.type + 1;
    return false;
}

static void take_leave(skua_context *ctx, uint32_t who)
{
    (void)ctx;
    (void)who;
}

static const skua_process_type plain = {PART_TYPE("plain")};
static const skua_process_type narrow = {PART_TYPE("narrow"), .mailbox_limit = 1};

static void prepare(void)
{
    admission_attach(&rig);
    memset(letters, 0, sizeof letters);
    sent = last_seen = 0;
}

/* Bob has begun; Ann sends two: the second one waits. */
#define NOW "1"
SCENE(now, NOW, {&plain, {ADMIT, ADMIT}}, {&narrow, {PAUSE, PAUSE, FAIL}})
SCENE(stays, NOW, {&plain, {ADMIT, ADMIT, ADMIT}}, {&narrow, {PAUSE}})
SCENE(timed_with_room, NOW, {&plain, {ADMIT_TIMED}}, {&narrow, {PAUSE}})
SCENE(timed_with_room_ending, NOW, {&plain, {ADMIT_TIMED}}, {&narrow, {PAUSE, FAIL}})

/* It is on its way. */
#define SENT "10"
SCENE(taken_back, SENT, {&plain, {ADMIT, ADMIT, PAUSE, TAKE_BACK}}, {&narrow, {PAUSE}})
SCENE(taken_back_ending, SENT, {&plain, {ADMIT, ADMIT, PAUSE, TAKE_BACK}}, {&narrow, {PAUSE, FAIL}})
SCENE(timed, SENT, {&plain, {ADMIT, ADMIT_TIMED}}, {&narrow, {PAUSE}})
SCENE(timed_ending, SENT, {&plain, {ADMIT, ADMIT_TIMED}}, {&narrow, {PAUSE, FAIL}})
SCENE(sender_ends, SENT, {&plain, {ADMIT, ADMIT, PAUSE, END}}, {&narrow, {PAUSE}})
SCENE(all_of_it, "", {&plain, {ADMIT, ADMIT_TIMED, PAUSE, ADMIT, TAKE_BACK, ADMIT}},
      {&narrow, {PAUSE, PAUSE, PAUSE, FAIL}})

static void check(void)
{
    const bool bob_lives = is_live(BOB);
    for (uint32_t i = 0; i < sent; i++) {
        const struct letter *letter = &letters[i];
        EXPLORE_CHECK(letter->dropped == 1, "each payload is dropped");
        if (letter->ends == 0) {
            EXPLORE_CHECK(!is_live(ANN), "INV-42: nobody waits for ever");
        } else if (letter->error == 0) {
            EXPLORE_CHECK(letter->delivered == 1 || !bob_lives, "INV-42: admitted, so delivered");
        } else {
            EXPLORE_CHECK(letter->delivered == 0, "INV-42: an error, so not delivered");
            EXPLORE_CHECK(letter->error != SKUA_E_NO_PROCESS || !bob_lives,
                          "INV-42: only who has ended is not there");
        }
    }
    EXPLORE_CHECK(!bob_lives || mailbox_length(parts[BOB].process) == 0,
                  "INV-21: no places are taken");
    cast_end();
}

#define ANN_RUNS PART("ann", ANN)
#define BOB_RUNS PART("bob", BOB)

static const struct explore_model models[] = {
    WEAK("room_waiter_vs_exit", now, check, ANN_RUNS, BOB_RUNS),
    BOUNDED("room_waiter_vs_kill", 2, stays, check, ANN_RUNS, BOB_RUNS, KILLS(BOB)),
    WEAK("admission_vs_cancel", taken_back, check, ANN_RUNS, BOB_RUNS),
    WEAK("admission_vs_timeout", timed, check, ANN_RUNS, BOB_RUNS, FIRES),
    BOUNDED("room_vs_timeout", 3, timed_with_room, check, ANN_RUNS, BOB_RUNS, FIRES),
    BOUNDED("room_vs_timeout_and_exit", 3, timed_with_room_ending, check, ANN_RUNS, BOB_RUNS,
            FIRES),
    BOUNDED("admission_vs_sender_exit", 3, sender_ends, check, ANN_RUNS, BOB_RUNS),
    WEAK("cancel_vs_exit", taken_back_ending, check, ANN_RUNS, BOB_RUNS),
    WEAK("timeout_vs_exit", timed_ending, check, ANN_RUNS, BOB_RUNS, FIRES),
    RANDOM("many", all_of_it, check, ANN_RUNS, BOB_RUNS, FIRES),
    RANDOM("many_kills", all_of_it, check, ANN_RUNS, BOB_RUNS, FIRES, KILLS(BOB)),
};

EXPLORE_MAIN(models)
