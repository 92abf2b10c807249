/* SPDX-License-Identifier: MIT */
/* relations/request.h, sched/calls.c and sched/abandon.c: calls from process to process, against
 * all that can end them: the answer, a cancel, a timeout, the end of the caller or of the server, a
 * forward to another server. A part whose type abandons wants to hear that nobody waits any more.
 *
 * INV-14: a call has one completion, whoever wants to end it; only an answer that was accepted is
 *         delivered.
 * INV-20: each node is given back exactly once, and then nobody who knew it touches it.
 * INV-21: a request keeps its place in the mailbox until it is answered, and no longer.
 * INV-26: a request is owed by one server at a time, or dropped if nobody waits any more; a server
 *         that has it then and abandons hears so, once, and nothing of one that it has answered.
 * INV-27: a call on behalf of a request is taken back when nobody waits for the answer to that, and
 *         only then.
 * And every payload is dropped exactly once. */
#include <skua/call.h>

#include "cast.h"
#include "process/annex.h"
#include "sched/calls.h"

#define TIMEOUT (RIG_BEGINNING / 2)

/* The parts, by what they do in most cases. In some the last one calls, too. */
enum { CALLER, SERVER, OTHER };

/* SERVE comes first in a script that begins with a request. */
enum {
    SERVE = ACTS,
    REPLY,
    REPLY_IN_CLOSE,
    FORWARD,
    CALL_FOR,
    CALL_BACK_FOR,
    CALL,
    CALL_TIMED,
    CANCEL,
    SEND,
    DAWDLE
};

/* The tags of yields: a call, and one on behalf of a request. */
enum { ITS_CALL, ITS_CALL_FOR, TAGS };

/* What a part knows of a request that it got. */
enum hold {
    NOT_HELD,
    HELD,
    GONE, /* was answered or forwarded */
    LATE, /* it was told that nobody waits, when it tried */
    OVER, /* it got SKUA_EVENT_ABANDON */
};

struct held {
    skua_request request;
    uint64_t deadline;
    enum hold hold;
};

/* What a part has to remember; only its own thread touches it. */
struct memory {
    struct held held[PARTS_MAX]; /* by who has called */
    uint32_t opened[TAGS];       /* its own calls */
    uint32_t ends[TAGS];         /* and their completions */
    int errors[TAGS];
    bool is_timed;     /* its call */
    uint32_t accepted; /* answers */
    bool has_answered; /* before the calls on behalf of the request: they may go on */
    bool replies_in_close;
};

static struct memory memories[PARTS_MAX];
EXPLORE_OWN static uint32_t made, dropped; /* payloads */

/* There are no threads that call processes. */
int skua_process_run_sized(skua_runtime *runtime, const skua_process_type *type,
                           skua_payload *payload, skua_exit *exit, size_t exit_size)
{
    (void)exit_size;
    (void)runtime;
    (void)type;
    (void)payload;
    (void)exit;
    EXPLORE_CHECK(false, "only processes call");
    return SKUA_E_INVALID;
}

/* ---- payloads ---- */

static void drop_payload(void *data, size_t size)
{
    (void)size;
    EXPLORE_CHECK(--*(uint32_t *)data == 0, "a payload is dropped once");
    dropped++;
}

static skua_payload make_payload(void)
{
    EXPLORE_OWN static uint32_t owners[16];
    EXPLORE_CHECK(made < COUNT_OF(owners), "a model makes few payloads");
    owners[made] = 1;
    return skua_payload_pointer(0, &owners[made++], drop_payload);
}

/* ---- what the parts do ---- */

static int ask(skua_context *ctx, uint32_t who, uint64_t timeout)
{
    const uint32_t server = who == SERVER ? OTHER : SERVER;
    memories[who].opened[ITS_CALL]++;
    memories[who].is_timed = timeout != SKUA_FOREVER;
    return skua_yield_call(ctx, ITS_CALL, parts[server].pid, make_payload(), timeout);
}

/* The request that it acts on: the oldest. */
static struct held *first_held(uint32_t who)
{
    struct held *held = memories[who].held;
    while (held < &memories[who].held[PARTS_MAX - 1] && held->hold != HELD) {
        held++;
    }
    return held;
}

static void reply(skua_context *ctx, uint32_t who)
{
    struct held *held = first_held(who);
    if (held->hold != HELD) {
        return;
    }
    const int error = skua_reply(ctx, held->request, 0, make_payload());
    explore_note("replies: %s", skua_error_name(error));
    EXPLORE_CHECK(error == 0 || error == SKUA_E_LATE, "INV-14: an answer is in time or not");
    memories[who].accepted += error == 0;
    held->hold = error == 0 ? GONE : LATE;
}

static void forward(skua_context *ctx, uint32_t who)
{
    struct held *held = first_held(who);
    if (held->hold != HELD) {
        return;
    }
    const int error = skua_forward(ctx, held->request, parts[OTHER].pid, make_payload());
    explore_note("forwards: %s", skua_error_name(error));
    EXPLORE_CHECK(error == 0 || error == SKUA_E_LATE || error == SKUA_E_NO_PROCESS,
                  "INV-26: what cannot be forwarded stays");
    if (error != SKUA_E_NO_PROCESS) {
        held->hold = error == 0 ? GONE : LATE;
    }
}

static void call_for(skua_context *ctx, uint32_t who, uint32_t server)
{
    struct held *held = first_held(who);
    if (held->hold != HELD) {
        return;
    }
    const int error = skua_yield_call_for(ctx, ITS_CALL_FOR, held->request, parts[server].pid,
                                          make_payload(), SKUA_FOREVER);
    explore_note("calls on behalf: %s", skua_error_name(error));
    EXPLORE_CHECK(error == 0 || error == SKUA_E_LATE, "INV-27: somebody waits for it or not");
    memories[who].opened[ITS_CALL_FOR] += error == 0;
    held->hold = error == 0 ? HELD : LATE;
}

static void send(skua_context *ctx)
{
    skua_payload payload = make_payload();
    const int error = deliver_message(&rig, ctx->worker, ctx->self, parts[SERVER].pid, &payload);
    explore_note("sends: %s", skua_error_name(error));
}

static int perform(skua_context *ctx, uint32_t who, uint32_t act)
{
    switch (act) {
    case CALL:
        return ask(ctx, who, SKUA_FOREVER);
    case CALL_TIMED:
        return ask(ctx, who, TIMEOUT);
    case CANCEL:
        return skua_yield_cancel(ctx, ITS_CALL);
    case REPLY:
        memories[who].has_answered = first_held(who)->hold == HELD;
        reply(ctx, who);
        return 0;
    case FORWARD:
        forward(ctx, who);
        return 0;
    case CALL_FOR:
        call_for(ctx, who, OTHER);
        return 0;
    case CALL_BACK_FOR:
        call_for(ctx, who, CALLER);
        return 0;
    case SEND:
        send(ctx);
        return 0;
    case DAWDLE: /* before the threads begin */
        rig_now += TIMEOUT / 4;
        return 0;
    case REPLY_IN_CLOSE:
        memories[who].replies_in_close = true;
        return 0;
    default:
        EXPLORE_CHECK(act == SERVE, "it is an act");
        return 0;
    }
}

/* ---- what the parts get ---- */

static uint32_t count_held(uint32_t who)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < PARTS_MAX; i++) {
        count += memories[who].held[i].hold == HELD;
    }
    return count;
}

/* A message or a request has come. In the models with a limit nobody else sends at that time. */
static void check_room(uint32_t who)
{
    EXPLORE_CHECK(count_held(who) < load_relaxed(&parts[who].process->mailbox_limit),
                  "INV-21: what is owed leaves room for it");
}

static void check_deadline(uint32_t caller, uint64_t deadline)
{
    if (memories[caller].opened[ITS_CALL_FOR] == 0) {
        EXPLORE_CHECK((deadline != SKUA_FOREVER) == memories[caller].is_timed,
                      "INV-26: a server knows whether the caller waits for ever");
    } else {
        EXPLORE_CHECK(deadline <= memories[caller].held[CALLER].deadline,
                      "INV-27: a call on behalf of a request does not outlast it");
    }
}

static void get_request(skua_context *ctx, uint32_t who, const skua_event *event)
{
    const uint64_t deadline = skua_request_deadline(ctx, event->request);
    check_room(who);
    uint32_t caller = 0;
    while (!skua_pid_equal(parts[caller].pid, event->from)) {
        caller++;
    }
    struct held *held = &memories[who].held[caller];
    explore_note("gets a request");
    EXPLORE_CHECK(held->hold == NOT_HELD, "INV-26: a request is handed to a server once");
    check_deadline(caller, deadline);
    *held = (struct held){.request = event->request, .deadline = deadline, .hold = HELD};
}

static void get_abandon(uint32_t who, const skua_event *event)
{
    struct held *held = memories[who].held;
    while (held < &memories[who].held[PARTS_MAX - 1] && held->request.bits != event->request.bits) {
        held++;
    }
    explore_note("hears that nobody waits");
    EXPLORE_CHECK(held->request.bits == event->request.bits, "INV-26: of a request that it got");
    EXPLORE_CHECK(held->hold == HELD || held->hold == LATE,
                  "INV-26: once, and not of one that it has answered");
    held->hold = OVER;
}

/* A part that has called on behalf of a request answers that when it can. */
static void get_completion(skua_context *ctx, uint32_t who, const skua_event *event)
{
    explore_note("call %u ends: %s", (unsigned)event->tag, skua_error_name(event->error));
    EXPLORE_CHECK(event->tag < TAGS, "INV-14: of a call that it has made");
    EXPLORE_CHECK(++memories[who].ends[event->tag] <= memories[who].opened[event->tag],
                  "INV-14: one completion to a call");
    memories[who].errors[event->tag] = event->error;
    if (event->tag == ITS_CALL_FOR) {
        reply(ctx, who);
    }
}

static bool get_event(skua_context *ctx, uint32_t who, skua_event *event)
{
    switch (event->type) {
    case SKUA_EVENT_START:
        return *parts[who].script != SERVE;
    case SKUA_EVENT_CALL:
        get_request(ctx, who, event);
        return true;
    case SKUA_EVENT_ABANDON:
        get_abandon(who, event);
        return false;
    case SKUA_EVENT_MESSAGE:
        check_room(who);
        return false;
    default:
        EXPLORE_CHECK(event->type == SKUA_EVENT_COMPLETION, "nothing else comes");
        get_completion(ctx, who, event);
        return false;
    }
}

static void take_leave(skua_context *ctx, uint32_t who)
{
    if (memories[who].replies_in_close) {
        reply(ctx, who);
    }
}

/* ---- the beginning ---- */

static const skua_process_type plain = {PART_TYPE("plain"), .calls = true};
static const skua_process_type keen = {PART_TYPE("keen"), .calls = true, .abandons = true};
static const skua_process_type narrow = {PART_TYPE("narrow"), .calls = true, .abandons = true,
                                         .mailbox_limit = 1};

static void prepare(void)
{
    calls_attach(&rig);
    memset(memories, 0, sizeof memories);
    made = dropped = 0;
}

/* In these the request is on its way to a server that rests. */
#define SENT "10"
SCENE(sent, SENT, {&plain, {CALL}}, {&keen, {SERVE}})
SCENE(sent_cancelled, SENT, {&plain, {CALL, PAUSE, CANCEL}}, {&keen, {SERVE}})
SCENE(sent_ending, SENT, {&plain, {CALL, PAUSE, END}}, {&keen, {SERVE}})
SCENE(sent_timed, SENT, {&plain, {CALL_TIMED}}, {&keen, {SERVE}})
SCENE(sent_timed_ending, SENT, {&plain, {CALL_TIMED, PAUSE, END}}, {&keen, {SERVE}})
SCENE(sent_answered, SENT, {&plain, {CALL, PAUSE, CANCEL}}, {&keen, {SERVE, REPLY}})
SCENE(sent_answered_plainly, SENT, {&plain, {CALL, PAUSE, CANCEL}}, {&plain, {SERVE, REPLY}})
SCENE(sent_to_one_that_ends, SENT, {&plain, {CALL, PAUSE, CANCEL}}, {&keen, {SERVE, END}})

/* In these the server has it, and does something about it in its next step. */
#define HAS "101"
SCENE(has_answered, HAS, {&plain, {CALL, PAUSE, CANCEL}}, {&keen, {SERVE, PAUSE, REPLY}})
SCENE(has_answered_plainly, HAS, {&plain, {CALL, PAUSE, CANCEL}}, {&plain, {SERVE, PAUSE, REPLY}})
SCENE(has_answered_ending, HAS, {&plain, {CALL, PAUSE, END}}, {&keen, {SERVE, PAUSE, REPLY}})
SCENE(has_answered_timed, HAS, {&plain, {CALL_TIMED}}, {&keen, {SERVE, PAUSE, REPLY}})
SCENE(has_ended, HAS, {&plain, {CALL, PAUSE, CANCEL}}, {&keen, {SERVE, PAUSE, END}})
SCENE(has_ended_plainly, HAS, {&plain, {CALL, PAUSE, CANCEL}}, {&plain, {SERVE, PAUSE, END}})
SCENE(has_failed_timed, HAS, {&plain, {CALL_TIMED}}, {&keen, {SERVE, PAUSE, FAIL}})
SCENE(both_end, HAS, {&plain, {CALL, PAUSE, END}}, {&keen, {SERVE, PAUSE, END}})
SCENE(has_answered_in_close, HAS, {&plain, {CALL, PAUSE, CANCEL}},
      {&keen, {SERVE, REPLY_IN_CLOSE, PAUSE, END}})
SCENE(has_two, "1021", {&plain, {CALL, PAUSE, CANCEL}}, {&keen, {SERVE, PAUSE, END}},
      {&plain, {CALL, PAUSE, END}})

/* It has a call of its own, too: more than it gives up in one slice (EXIT_SLICE). */
SCENE(has_two_and_calls, "1021", {&plain, {CALL, PAUSE, CANCEL}},
      {&keen, {SERVE, CALL, PAUSE, END}}, {&plain, {CALL, PAUSE, END}})
SCENE(has_two_and_asks, "1021", {&plain, {CALL, PAUSE, CANCEL}}, {&keen, {SERVE, CALL, PAUSE, END}},
      {&plain, {CALL, PAUSE, REPLY}})

/* It has no room for more; another process calls it, or sends a message. */
SCENE(full_called, HAS, {&plain, {CALL, PAUSE, CANCEL}}, {&narrow, {SERVE}}, {&plain, {CALL}})
SCENE(full_sent_to, HAS, {&plain, {CALL, PAUSE, CANCEL}}, {&narrow, {SERVE}}, {&plain, {SEND}})

/* The server answers, and the node of the request is that of its own call to another. */
SCENE(has_answered_and_calls, "2101", {&plain, {CALL, PAUSE, CANCEL}},
      {&plain, {SERVE, PAUSE, REPLY, CALL}}, {&keen, {SERVE}})

/* With another server, to which it is passed on. */
SCENE(has_forwarded, "2101", {&plain, {CALL, PAUSE, CANCEL}}, {&keen, {SERVE, PAUSE, FORWARD}},
      {&keen, {SERVE}})
SCENE(has_forwarded_answered, "2101", {&plain, {CALL, PAUSE, CANCEL}},
      {&keen, {SERVE, PAUSE, FORWARD}}, {&keen, {SERVE, REPLY}})
SCENE(has_forwarded_timed, "2101", {&plain, {CALL_TIMED}}, {&plain, {SERVE, PAUSE, FORWARD}},
      {&keen, {SERVE}})
SCENE(has_forwarded_to_one_that_ends, "2101", {&plain, {CALL, PAUSE, CANCEL}},
      {&keen, {SERVE, PAUSE, FORWARD}}, {&keen, {PAUSE, END}})

/* With another server, which is called on its behalf. */
SCENE(calls_for, "2101", {&plain, {CALL, PAUSE, CANCEL}}, {&plain, {SERVE, PAUSE, CALL_FOR}},
      {&keen, {SERVE}})
SCENE(has_called_for, "21012", {&plain, {CALL, PAUSE, CANCEL}}, {&plain, {SERVE, CALL_FOR}},
      {&keen, {SERVE}})
SCENE(has_called_for_timed, "21012", {&plain, {CALL_TIMED}}, {&plain, {SERVE, CALL_FOR, DAWDLE}},
      {&keen, {SERVE}})
SCENE(has_called_for_answered, "21012", {&plain, {CALL, PAUSE, CANCEL}},
      {&plain, {SERVE, CALL_FOR}}, {&keen, {SERVE, PAUSE, REPLY}})
SCENE(has_called_for_ended, "21012", {&plain, {CALL, PAUSE, CANCEL}},
      {&plain, {SERVE, CALL_FOR, PAUSE, END}}, {&keen, {SERVE}})

/* And the caller, too: more calls on its behalf than are seen to in one slice
 * (DEPENDENTS_SLICE). */
SCENE(has_called_two_for, "21012", {&plain, {CALL, PAUSE, CANCEL}},
      {&plain, {SERVE, CALL_FOR, CALL_BACK_FOR}}, {&keen, {SERVE}})
SCENE(has_called_two_for_answered, "21012", {&plain, {CALL, PAUSE, CANCEL}},
      {&plain, {SERVE, CALL_FOR, CALL_BACK_FOR, PAUSE, REPLY}}, {&keen, {SERVE}})
SCENE(has_called_two_for_ended, "21012", {&plain, {CALL, PAUSE, CANCEL}},
      {&plain, {SERVE, CALL_FOR, CALL_BACK_FOR, PAUSE, END}}, {&keen, {SERVE}})

/* Nothing has happened yet. */
SCENE(all_of_it, "", {&plain, {CALL_TIMED, PAUSE, CANCEL}},
      {&keen, {SERVE, PAUSE, CALL_FOR, PAUSE, FORWARD}}, {&keen, {SERVE, PAUSE, REPLY}})

/* ---- the end ---- */

/* Its call, that which others may have got, is over. */
static bool has_ended_call(uint32_t caller)
{
    const struct memory *memory = &memories[caller];
    return !is_live(caller) ||
           memory->ends[memory->opened[ITS_CALL_FOR] != 0 ? ITS_CALL_FOR : ITS_CALL] != 0;
}

static bool is_held_by_any(uint32_t caller)
{
    for (uint32_t i = 0; i < part_count; i++) {
        if (is_live(i) && memories[i].held[caller].hold == HELD) {
            return true;
        }
    }
    return false;
}

static void check_server(uint32_t who)
{
    const struct annex *annex = annex_of(&rig.events, parts[who].process);
    EXPLORE_CHECK(count_held(who) == (annex != NULL ? annex->owed_count : 0),
                  "INV-26: a server owes what it has got and not answered");
    EXPLORE_CHECK(count_held(who) == mailbox_length(parts[who].process),
                  "INV-21: that has its place in the mailbox, and nothing else");
    for (uint32_t i = 0; i < part_count && process_type(parts[who].process)->abandons; i++) {
        EXPLORE_CHECK(memories[who].held[i].hold != HELD || !has_ended_call(i),
                      "INV-26: who has a request hears that nobody waits any more");
    }
}

static void check_caller(uint32_t who)
{
    const struct memory *memory = &memories[who];
    for (uint32_t tag = 0; tag < TAGS; tag++) {
        EXPLORE_CHECK(memory->ends[tag] == memory->opened[tag] || is_held_by_any(who),
                      "INV-14: a call ends, or somebody has it");
    }
    if (memory->opened[ITS_CALL_FOR] != 0) {
        const bool is_cancelled = memory->errors[ITS_CALL_FOR] == SKUA_E_CANCELLED;
        const bool is_over = has_ended_call(CALLER) && memories[CALLER].errors[ITS_CALL] != 0;
        EXPLORE_CHECK(memory->ends[ITS_CALL_FOR] == memory->opened[ITS_CALL_FOR] || !is_over ||
                          memory->has_answered,
                      "INV-27: a call on behalf of nobody is taken back");
        EXPLORE_CHECK(!is_cancelled || is_over || !is_live(CALLER),
                      "INV-27: only a call on behalf of nobody is taken back");
    }
}

static void check_answers(void)
{
    uint32_t given = 0;
    uint32_t got = 0;
    bool all_live = true;
    for (uint32_t i = 0; i < part_count; i++) {
        given += memories[i].accepted;
        all_live = all_live && is_live(i);
        for (uint32_t tag = 0; tag < TAGS; tag++) {
            got += memories[i].ends[tag] != 0 && memories[i].errors[tag] == 0;
        }
    }
    EXPLORE_CHECK(got == given || (got < given && !all_live),
                  "INV-14: what was accepted is delivered, and nothing else");
}

static void check(void)
{
    for (uint32_t i = 0; i < part_count; i++) {
        if (is_live(i)) {
            check_server(i);
            check_caller(i);
        }
    }
    check_answers();
    cast_end();
    EXPLORE_CHECK(made == dropped, "every payload is dropped");
}

#define CALLS  PART("caller", CALLER)
#define SERVES PART("server", SERVER)
#define OTHERS PART("other", OTHER)

static const struct explore_model models[] = {
    WEAK("abandon_vs_deliver", sent_cancelled, check, CALLS, SERVES),
    WEAK("caller_end_vs_deliver", sent_ending, check, CALLS, SERVES),
    WEAK("timeout_vs_deliver", sent_timed, check, CALLS, SERVES, FIRES),
    WEAK("abandon_vs_instant_reply", sent_answered, check, CALLS, SERVES),
    WEAK("abandon_vs_plain_reply", sent_answered_plainly, check, CALLS, SERVES),
    WEAK("abandon_vs_instant_end", sent_to_one_that_ends, check, CALLS, SERVES),
    WEAK("abandon_vs_reply", has_answered, check, CALLS, SERVES),
    WEAK("abandon_vs_late_reply", has_answered_plainly, check, CALLS, SERVES),
    WEAK("caller_end_vs_reply", has_answered_ending, check, CALLS, SERVES),
    WEAK("deadline_vs_reply", has_answered_timed, check, CALLS, SERVES, FIRES),
    BOUNDED("deadline_vs_reply_vs_server_exit", 3, has_answered_timed, check, CALLS, SERVES, FIRES,
            KILLS(SERVER)),
    ALL("deadline_vs_caller_exit", sent_timed_ending, check, CALLS, SERVES, FIRES),
    BOUNDED("deadline_vs_kill", 2, sent_timed, check, CALLS, SERVES, FIRES, KILLS(CALLER)),
    WEAK("abandon_vs_server_exit", has_ended, check, CALLS, SERVES),
    WEAK("abandon_vs_plain_exit", has_ended_plainly, check, CALLS, SERVES),
    WEAK("deadline_vs_server_exit", has_failed_timed, check, CALLS, SERVES, FIRES),
    WEAK("both_exit", both_end, check, CALLS, SERVES),
    WEAK("reply_in_close", has_answered_in_close, check, CALLS, SERVES),
    WEAK("server_killed", sent, check, CALLS, SERVES, KILLS(SERVER)),
    WEAK("kill_vs_deliver", sent_cancelled, check, CALLS, SERVES, KILLS(SERVER)),
    WEAK("two_owed", has_two, check, CALLS, SERVES, OTHERS),
    BOUNDED("two_owed_in_slices", 2, has_two_and_calls, check, CALLS, SERVES, OTHERS),
    BOUNDED("two_owed_in_slices_killed", 2, has_two_and_asks, check, CALLS, SERVES, OTHERS,
            KILLS(SERVER)),
    WEAK("full_called", full_called, check, CALLS, SERVES, OTHERS),
    WEAK("full_sent_to", full_sent_to, check, CALLS, SERVES, OTHERS),
    WEAK("abandon_vs_next_request", has_answered_and_calls, check, CALLS, SERVES, OTHERS),
    WEAK("abandon_vs_forward", has_forwarded, check, CALLS, SERVES, OTHERS),
    WEAK("forward_vs_reply", has_forwarded_answered, check, CALLS, SERVES, OTHERS),
    WEAK("deadline_vs_forward", has_forwarded_timed, check, CALLS, SERVES, OTHERS, FIRES),
    WEAK("forward_vs_exit", has_forwarded_to_one_that_ends, check, CALLS, SERVES, OTHERS),
    WEAK("call_for_vs_abandon", calls_for, check, CALLS, SERVES, OTHERS),
    WEAK("dependent_cancelled", has_called_for, check, CALLS, SERVES, OTHERS),
    BOUNDED("dependent_timed", 2, has_called_for_timed, check, CALLS, SERVES, OTHERS, FIRES),
    WEAK("dependent_answered", has_called_for_answered, check, CALLS, SERVES, OTHERS),
    WEAK("dependent_vs_exit", has_called_for_ended, check, CALLS, SERVES, OTHERS),
    WEAK("two_dependents", has_called_two_for, check, CALLS, SERVES, OTHERS),
    BOUNDED("two_dependents_killed", 2, has_called_two_for, check, CALLS, SERVES, OTHERS,
            KILLS(SERVER)),
    WEAK("two_dependents_vs_reply", has_called_two_for_answered, check, CALLS, SERVES, OTHERS),
    WEAK("two_dependents_vs_exit", has_called_two_for_ended, check, CALLS, SERVES, OTHERS),
    RANDOM("many", all_of_it, check, CALLS, SERVES, OTHERS, FIRES),
    RANDOM("many_kills", all_of_it, check, CALLS, SERVES, OTHERS, FIRES, KILLS(SERVER)),
};

EXPLORE_MAIN(models)
