/* SPDX-License-Identifier: MIT */
/* dispatch/call.h: one process yields commands; completers on other threads complete them, twice,
 * late, or while the process ends. The code is the real one, from sched/step.c down; the run queue
 * is a counter.
 *
 * INV-7:  of all completions of a call one is accepted; it is delivered once or dropped with its
 *         process; none reaches another call that uses the same node.
 * INV-20: each node is given back exactly once.
 * And every result that was handed in is dropped exactly once. */
#include <string.h>

#include "close_only.h"
#include "completers.h"
#include "dispatch/call.h"
#include "explore.h"
#include "killer.h"
#include "no_blocking.h"
#include "no_callers.h"
#include "no_timers.h"
#include "one_token.h"
#include "one_worker.h"
#include "plain_context.h"
#include "rig.h"
#include "sched/deliver.h"
#include "sched/poll.h"
#include "sched/spare.h"
#include "sched/spawn.h"
#include "sched/worker.h"
#include "tables.h"

#define CALLS_MAX      3
#define COMPLETERS_MAX 2
#define TRIES_MAX      2
#define COMMAND        7

/* What the process does. */
static struct {
    int handler_result; /* SKUA_PENDING, or 0: the handler is done at once */
    bool ends_at_once;  /* done in the step that yields */
    bool yields_again;  /* one more call in the step after the first completion */
    uint32_t messages;  /* that are sent to it, in all */
    uint32_t sends;     /* of them, while it runs */
    bool in_order;      /* nobody else completes its calls */
    bool views;         /* looks at its first call in the step after the first, as inspectors do */
} plan;

struct call {
    skua_completion completion;
    uint32_t accepted; /* completions that were */
    uint32_t delivered;
};

static struct registry registry;
static uint32_t call_count;
static uint32_t messages;
static uint32_t completions;
static struct call calls[CALLS_MAX];
/* A completer that had to take a node back uses it again at once, for a call of its own. */
static struct {
    bool open;
    uint32_t node;
    skua_completion completion;
} reused[COMPLETERS_MAX];
static uint32_t dropped[CALLS_MAX][COMPLETERS_MAX + 1][TRIES_MAX]; /* results */

/* ---- in place of submit.c ---- */

void submit_ready(struct scheduler *sched, struct worker *worker, struct process *ready)
{
    (void)sched;
    (void)worker;
    EXPLORE_CHECK(ready == process, "INV-7: only the one process is woken");
    enqueue();
}

void submit_unfinished(struct worker *worker, struct process *ready)
{
    submit_ready(&rig, worker, ready);
}

void submit_behind_all(struct worker *worker, struct process *ending)
{
    explore_note("ends in slices");
    submit_ready(&rig, worker, ending);
}

/* ---- results ---- */

static skua_payload make_result(uint32_t call, uint32_t who, uint32_t try)
{
    return skua_payload_pointer(0, &dropped[call][who][try], drop_result);
}

/* ---- the process ---- */

static int handle(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    const uint32_t number = call_count++;
    calls[number].completion = command->completion;
    explore_note("opens call %u", (unsigned)number);
    for (uint32_t i = 0; i < COMPLETERS_MAX; i++) {
        (void)fetch_add_seq_cst(&issued[i], 1);
    }
    if (plan.handler_result == 0) {
        *result = make_result(number, COMPLETERS_MAX, 0);
    }
    return plan.handler_result;
}

static void yield_next(skua_context *ctx, uint64_t tag)
{
    const int error = skua_yield(ctx, tag, COMMAND, skua_payload_empty(0), SKUA_FOREVER);
    EXPLORE_CHECK(error == 0, "the rig has memory");
}

/* Looks at a call that is listed, whatever its completer does. */
static void view(const struct call *call)
{
    struct call_view seen;
    if (call_view_owner(event_at(&rig.events, call_index(call->completion)), &seen)) {
        EXPLORE_CHECK(seen.kind == CALL_SUBJECT_COMMAND && seen.number == COMMAND && seen.tag == 0,
                      "MO-view: what is seen of an open call is true");
        EXPLORE_CHECK(!seen.has_deadline, "MO-view: what is seen of an open call is true");
    }
}

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    bool has_begun = true;
    bool has_more = false;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_MESSAGE) {
            explore_note("gets a message");
            messages++;
            continue;
        }
        if (events[i].type == SKUA_EVENT_START) {
            has_begun = false;
            continue;
        }
        if (events[i].type == SKUA_EVENT_CONTINUE) {
            continue;
        }
        EXPLORE_CHECK(events[i].tag < call_count, "INV-7: of a call that was opened");
        explore_note("gets completion %u", (unsigned)events[i].tag);
        EXPLORE_CHECK(!plan.in_order || events[i].tag == completions,
                      "what is done at once arrives in order");
        completions++;
        EXPLORE_CHECK(++calls[events[i].tag].delivered == 1, "INV-7: one completion to a call");
        has_more = plan.yields_again;
    }
    for (uint32_t i = 0; i < yields && !has_begun; i++) {
        yield_next(ctx, i);
    }
    if (plan.yields_again && count == 1 && events[0].type == SKUA_EVENT_CONTINUE) {
        yield_next(ctx, call_count);
    }
    if (plan.views && has_begun && calls[0].delivered == 0) {
        view(&calls[0]);
    }
    if (plan.views && !has_begun) {
        return skua_continue(ctx);
    }
    if (plan.ends_at_once) {
        return skua_done(ctx, skua_nothing());
    }
    /* The node of this completion is free by then. */
    return has_more ? skua_continue(ctx) : 0;
}

static const skua_process_type type = {.name = "caller", .step = step, .close = count_end};

/* ---- threads ---- */

static const uint32_t numbers[] = {0, 1};

static void send_message(struct worker *worker)
{
    skua_payload payload = skua_payload_empty(0);
    const int error = deliver_message(&rig, worker, (skua_pid){0}, its_pid, &payload);
    EXPLORE_CHECK(error == 0, "the process is alive");
}

static void run_sender(const void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < plan.sends; i++) {
        send_message(&rig.workers[COMPLETERS_MAX]); /* no completer uses it then */
    }
}

/* Opens a call of its own on the node that the worker gets next. */
static void reuse_node(uint32_t who, struct worker *worker)
{
    uint32_t index;
    EXPLORE_CHECK(deliver_acquire_node(&rig, worker, &index), "the rig has memory");
    struct event_node *node = event_at(&rig.events, index);
    memset(&node->as, 0xff, sizeof node->as);
    reused[who].completion = call_open_owner(node, index, (skua_pid){UINT64_MAX});
    reused[who].node = index;
    reused[who].open = true;
}

static void complete(uint32_t who, uint32_t call, uint32_t try)
{
    struct worker *worker = &rig.workers[1 + who];
    skua_payload result = make_result(call, who, try);
    const uint32_t free_before = worker->caches.events.active.count;
    explore_note("completes call %u", (unsigned)call);
    const int outcome = deliver_completion(&rig, worker, calls[call].completion, 0, &result);
    explore_note("%s", outcome == 0 ? "was accepted" : "came too late");
    if (outcome == 0) {
        EXPLORE_CHECK(++calls[call].accepted == 1, "INV-7: one completion is accepted");
    }
    if (worker->caches.events.active.count != free_before && !reused[who].open) {
        reuse_node(who, worker); /* the process has ended, and the node came back */
    }
}

/* ---- the beginning and the end ---- */

static void setup(void)
{
    rig_reset(1 + COMPLETERS_MAX); /* the last two complete */
    rig.registry = &registry;
    registry.direct[COMMAND] = (skua_handler){.name = "command", .run = handle};
    memset(calls, 0, sizeof calls);
    memset(reused, 0, sizeof reused);
    memset(dropped, 0, sizeof dropped);
    memset(&plan, 0, sizeof plan);
    tokens = ended = call_count = messages = completions = 0;
    store_relaxed(&queue, 0);
    for (uint32_t i = 0; i < COMPLETERS_MAX; i++) {
        store_relaxed(&issued[i], 0);
    }
    process = rig_spawn(&rig.outside.caches.processes, &type, &its_pid);
    explore_ignore(&process->type, sizeof process->type);
    explore_ignore(&process->progress, sizeof process->progress);
    explore_ignore(&process->consumed, sizeof process->consumed);
    enqueue();
    plan.handler_result = SKUA_PENDING;
    yields = 1;
}

static void setup_two_calls(void)
{
    setup();
    yields = 2;
}

static void setup_ending(void)
{
    setup();
    plan.ends_at_once = true;
}

static void setup_ending_two_calls(void)
{
    setup_two_calls();
    plan.ends_at_once = true;
}

/* More calls than are revoked in one slice (EXIT_SLICE). */
static void setup_three_calls(void)
{
    setup();
    yields = 3;
}

static void setup_ending_three_calls(void)
{
    setup_three_calls();
    plan.ends_at_once = true;
}

static void setup_done_at_once(void)
{
    setup();
    plan.handler_result = 0;
}

/* What came at once goes behind the messages, if there are any. */
static void setup_done_at_once_busy(void)
{
    setup_two_calls();
    plan.handler_result = 0;
    plan.in_order = true;
    plan.messages = plan.sends = 2;
}

/* More messages than one step gets were there before. */
static void setup_done_at_once_overflowing(void)
{
    setup_done_at_once_busy();
    while (plan.messages < SKUA_EVENTS_PER_STEP + 3) {
        send_message(NULL);
        plan.messages++;
    }
}

static void setup_viewed(void)
{
    setup();
    plan.views = true;
}

static void setup_again(void)
{
    setup();
    plan.yields_again = true;
}

static uint32_t count_drops(uint32_t call)
{
    uint32_t count = 0;
    for (uint32_t who = 0; who <= COMPLETERS_MAX; who++) {
        for (uint32_t try = 0; try < TRIES_MAX; try++) {
            count += dropped[call][who][try];
        }
    }
    return count;
}

/* The node that a completer used again is still its own. */
static uint32_t close_reused(void)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < COMPLETERS_MAX; i++) {
        if (reused[i].open) {
            struct event_node *node = event_at(&rig.events, reused[i].node);
            EXPLORE_CHECK(call_claim_any(node, call_guard(reused[i].completion)),
                          "INV-7: a later call on the same node is not touched");
            open++;
        }
    }
    return open;
}

/* `results` were handed in for each of the first calls, none for the one that came later. */
static void check(uint32_t results)
{
    const uint32_t later = call_count > yields ? call_count - yields : 0;
    const uint32_t live = close_reused() + (ended == 0 ? later : 0);
    EXPLORE_CHECK(rig_free_nodes() + live == rig_all_nodes(), "INV-20: every node is given back");
    EXPLORE_CHECK(messages == plan.messages, "INV-5: every message is delivered");
    for (uint32_t i = 0; i < call_count - later; i++) {
        EXPLORE_CHECK(count_drops(i) == results, "every result is dropped");
        EXPLORE_CHECK(ended > 0 || calls[i].delivered == 1, "INV-7: a completion is delivered");
        EXPLORE_CHECK(calls[i].delivered <= calls[i].accepted || plan.handler_result == 0,
                      "INV-7: only what was accepted is delivered");
    }
}

static void check_no_completer(void)
{
    check(0);
}

static void check_one_completer(void)
{
    check(1);
}

/* Or one completer, and the handler itself. */
static void check_two_completers(void)
{
    check(2);
}

static void check_again(void)
{
    check(3);
    if (ended == 0) {
        const skua_completion later = calls[1].completion;
        EXPLORE_CHECK(call_count == 2 && call_index(later) == call_index(calls[0].completion),
                      "the later call has the same node");
        EXPLORE_CHECK(call_claim_any(event_at(&rig.events, call_index(later)), call_guard(later)),
                      "INV-7: the later call stays open");
    }
    EXPLORE_CHECK(calls[1].delivered == 0 && calls[1].accepted == 0, "INV-7: nobody completed it");
}

#define SENDER            EXPLORE_THREAD("sender", run_sender, NULL)
#define COMPLETER         EXPLORE_THREAD("completer", run_completer, &numbers[0])
#define COMPLETER2        EXPLORE_THREAD("completer2", run_completer, &numbers[1])
#define DOUBLE_COMPLETER2 EXPLORE_THREAD("completer2", run_double_completer, &numbers[1])

#define MAY_REST all_is_done

static const struct explore_model models[] = {
    ALL("one_completer", setup, check_one_completer, WORKER, COMPLETER),
    ALL("two_completers", setup, check_two_completers, WORKER, COMPLETER, COMPLETER2),
    ALL("two_calls", setup_two_calls, check_one_completer, WORKER, COMPLETER),
    ALL("two_calls_two_completers", setup_two_calls, check_two_completers, WORKER, COMPLETER,
        COMPLETER2),
    ALL("done_at_once", setup_done_at_once, check_two_completers, WORKER, COMPLETER),
    ALL("done_at_once_busy", setup_done_at_once_busy, check_one_completer, WORKER, SENDER),
    BOUNDED("done_at_once_overflowing", 2, setup_done_at_once_overflowing, check_one_completer,
            WORKER, SENDER),
    ALL("ending", setup_ending, check_one_completer, WORKER, COMPLETER),
    ALL("ending_two_completers", setup_ending, check_two_completers, WORKER, COMPLETER, COMPLETER2),
    ALL("ending_two_calls", setup_ending_two_calls, check_two_completers, WORKER, COMPLETER,
        COMPLETER2),
    ALL("ending_in_slices_alone", setup_ending_three_calls, check_no_completer, WORKER),
    BOUNDED("ending_in_slices", 4, setup_ending_three_calls, check_one_completer, WORKER,
            COMPLETER),
    BOUNDED("ending_in_slices_two_completers", 3, setup_ending_three_calls, check_two_completers,
            WORKER, COMPLETER, COMPLETER2),
    BOUNDED("killed_in_slices", 3, setup_ending_three_calls, check_one_completer, WORKER, COMPLETER,
            KILLER),
    ALL("killed", setup, check_one_completer, WORKER, COMPLETER, KILLER),
    BOUNDED("killed_two_calls", 4, setup_two_calls, check_one_completer, WORKER, COMPLETER, KILLER),
    ALL("killed_two_completers", setup, check_two_completers, WORKER, COMPLETER, COMPLETER2,
        KILLER),
    ALL("viewed", setup_viewed, check_one_completer, WORKER, COMPLETER),
    ALL("again", setup_again, check_again, WORKER, COMPLETER, DOUBLE_COMPLETER2),
    BOUNDED("again_killed", 4, setup_again, check_again, WORKER, COMPLETER, DOUBLE_COMPLETER2,
            KILLER),
};

EXPLORE_MAIN(models)
