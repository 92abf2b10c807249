/* SPDX-License-Identifier: MIT */
/* dispatch/deadlines.h and sched/timers.h: calls that end when their time comes, against all the
 * other ways in which they end: a completion, a cancel, the exit of their process. The code is the
 * real one, from sched/step.c and sched/timers.c down; the run queue is a counter, and instead of
 * sleeping in the poller those who fire wait until poll_publish is called. Each looks at the wheel
 * and takes the time at which it has something to do for the time that it is.
 *
 * INV-14: whatever wants to end a call, it ends once; the process gets that one end, or none if it
 *         has ended itself. Of a ticker nothing comes after its end.
 *         Its handler, if that has left it pending, has completed it or is told that it is
 *         abandoned: once, and not before it has returned.
 * INV-15: whoever fires is told of every deadline: none stays in the wheel, or beside it.
 * INV-20: each node is given back exactly once, and when it is used again nobody who knew it before
 *         touches it.
 * And every result that was handed in is dropped exactly once. */
#include <skua/clock.h>
#include <string.h>

#include "clock/clock.h"
#include "close_only.h"
#include "completers.h"
#include "dispatch/call.h"
#include "explore.h"
#include "killer.h"
#include "no_blocking.h"
#include "no_callers.h"
#include "one_token.h"
#include "plain_context.h"
#include "rig.h"
#include "sched/deliver.h"
#include "sched/poll.h"
#include "sched/spare.h"
#include "sched/spawn.h"
#include "sched/timers.h"
#include "sched/worker.h"
#include "tables.h"

#define TICK    (UINT64_C(1) << WHEEL_TICK_SHIFT)
#define SOON    (RIG_BEGINNING + 5 * TICK)
#define TIMEOUT (10 * TICK)
#define LONG    (20000 * TICK) /* beside the wheel: there is one place */
#define FAR     (RIG_BEGINNING + 1000000 * TICK)
#define PERIOD  (5 * TICK)

#define CALLS_MAX 3
#define WORKERS   RIG_WORKERS_MAX
#define TRIES_MAX 2

/* The workers by what they do here, with a wheel for each: timers are in that of the first. */
enum { RUNNER, COMPLETER_1, COMPLETER_2, FIRER_1, FIRER_2 = COMPLETER_2 };

/* What is asked for. */
enum command {
    PENDING, /* somebody else completes it */
    INSTANT, /* its handler returns the result */
    PROMPT,  /* its handler completes it as somebody else would, and says that it is pending */
    SLEEP,   /* until SOON */
    TICKER,
};

/* What the process does. */
static struct {
    enum command command;
    uint64_t timeout;      /* of the first, */
    uint64_t more_each;    /* and of each other one so much more */
    bool cancels_at_once;  /* in the step that yields */
    bool cancels_next;     /* in the step after that, which comes at once */
    uint32_t cancels_tick; /* when it gets the tick with this number; 0: none */
    bool ends_at_once;
    /* One more in the step after the first end; nobody completes it. */
    enum { NO_MORE, MORE_TIMED, MORE_LONG, MORE_CANCELLED } more;
    uint64_t lateness; /* of those who fire */
} plan;

struct call {
    skua_completion completion;
    uint32_t accepted; /* completions that were */
    uint32_t told;     /* that it is abandoned */
    bool is_pending;   /* its handler has left it so */
    uint32_t ends;     /* that the process got */
    int error;         /* with which it ended */
    uint64_t periods;  /* that its ticks stood for */
};

static struct process *process;
static struct registry registry;
static atomic_u32 announced[WORKERS]; /* news for those who fire */
static uint32_t call_count;
static bool is_cancelled;
static struct call calls[CALLS_MAX];
static uint32_t dropped[CALLS_MAX][WORKERS][TRIES_MAX]; /* results */
static uint32_t handed_in;
/* A node that came back is used again at once, for a call with a timer in the last wheel. */
static struct {
    bool open;
    skua_completion completion;
} reused[WORKERS];

/* ---- in place of submit.c and poll.c ---- */

void submit_ready(struct scheduler *sched, struct worker *worker, struct process *ready)
{
    (void)sched;
    (void)worker;
    EXPLORE_CHECK(ready == process, "INV-14: only the one process is woken");
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

void poll_publish(struct scheduler *sched, struct worker *worker, uint64_t deadline)
{
    (void)sched;
    (void)worker;
    (void)deadline;
    for (uint32_t i = FIRER_2; i <= FIRER_1; i++) {
        (void)fetch_add_seq_cst(&announced[i], 1);
    }
}

/* ---- results ---- */

static skua_payload make_result(uint32_t call, uint32_t who, uint32_t try)
{
    handed_in++;
    return skua_payload_pointer(0, &dropped[call][who][try], drop_result);
}

/* ---- nodes that are used again ---- */

static uint32_t nodes_at_hand(const struct worker *worker)
{
    return worker->caches.events.active.count + worker->caches.events.spare.count;
}

static void reuse_node(struct worker *worker)
{
    uint32_t index;
    EXPLORE_CHECK(deliver_acquire_node(&rig, worker, &index), "the rig has memory");
    struct event_node *node = event_at(&rig.events, index);
    memset(&node->as, 0xff, sizeof node->as);
    reused[worker->index].completion = call_open_owner(node, index, (skua_pid){UINT64_MAX});
    reused[worker->index].open = true;
    (void)!deadlines_arm_any(&rig.deadlines, WORKERS - 1, index, FAR, 0);
}

/* Uses a node that has just come back, if one has. */
static void reuse_if_given(struct worker *worker, uint32_t before)
{
    if (nodes_at_hand(worker) > before && !reused[worker->index].open) {
        reuse_node(worker);
    }
}

/* ---- completions ---- */

static void complete(uint32_t who, uint32_t call, uint32_t try)
{
    struct worker *worker = &rig.workers[who];
    skua_payload result = make_result(call, who, try);
    const uint32_t before = nodes_at_hand(worker);
    explore_note("completes call %u", (unsigned)call);
    const int outcome = deliver_completion(&rig, worker, calls[call].completion, 0, &result);
    explore_note("%s", outcome == 0 ? "was accepted" : "came too late");
    if (outcome == 0) {
        EXPLORE_CHECK(++calls[call].accepted == 1, "INV-14: one completion is accepted");
    }
    reuse_if_given(worker, before);
}

/* ---- commands ---- */

static int handle_pending(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    (void)fetch_add_seq_cst(&issued[COMPLETER_1], 1);
    (void)fetch_add_seq_cst(&issued[COMPLETER_2], 1);
    return SKUA_PENDING;
}

static int handle_instant(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    *result = make_result(call_count - 1, RUNNER, 0);
    return 0;
}

static int handle_prompt(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    complete(RUNNER, call_count - 1, 0);
    return SKUA_PENDING;
}

static skua_handler_fn *const handlers[] = {
    [PENDING] = handle_pending,
    [INSTANT] = handle_instant,
    [PROMPT] = handle_prompt,
};

static void note_call(skua_completion completion)
{
    explore_note("opens call %u", (unsigned)call_count);
    calls[call_count++].completion = completion;
}

static int handle(void *arg, skua_command *command, skua_payload *result)
{
    struct call *call = &calls[call_count];
    note_call(command->completion);
    const int outcome = handlers[command->id](arg, command, result);
    call->is_pending = outcome == SKUA_PENDING;
    return outcome;
}

static void abandon(void *arg, skua_runtime *runtime, skua_completion completion)
{
    (void)arg;
    (void)runtime;
    uint32_t number = 0;
    while (number < call_count &&
           (calls[number].completion.call != completion.call ||
            !skua_pid_equal(calls[number].completion.process, completion.process))) {
        number++;
    }
    EXPLORE_CHECK(number < call_count, "INV-14: of a call that was opened");
    explore_note("call %u is abandoned", (unsigned)number);
    EXPLORE_CHECK(calls[number].is_pending, "INV-14: not before its handler has left it");
    EXPLORE_CHECK(++calls[number].told == 1, "INV-14: its handler is told once");
}

/* The real services, each behind one that notes its call. */
static struct service clock_services[SERVICE_COUNT];

static int start_noted(void *arg, struct worker *worker, const struct yield *yield,
                       skua_completion completion, skua_payload *result)
{
    const struct service *real = arg;
    note_call(completion);
    return real->start(real->arg, worker, yield, completion, result);
}

static void attach_clock(void)
{
    clock_attach(&rig);
    memcpy(clock_services, rig.services, sizeof clock_services);
    for (uint32_t i = 0; i < SERVICE_COUNT; i++) {
        rig.services[i].start = start_noted;
        rig.services[i].arg = &clock_services[i];
    }
}

/* ---- the process ---- */

struct self {
    uint32_t ticks;
    bool has_more;
};

static int yield_command(skua_context *ctx, enum command command, uint64_t timeout, uint32_t number)
{
    switch (command) {
    case SLEEP:
        return skua_yield_sleep(ctx, number, SOON - RIG_BEGINNING);
    case TICKER:
        return skua_yield_ticker(ctx, number, PERIOD);
    case PENDING:
    case INSTANT:
    case PROMPT:
        break;
    }
    return skua_yield(ctx, number, command, skua_nothing(), timeout);
}

static void yield_next(skua_context *ctx, enum command command, uint64_t timeout, uint32_t number)
{
    const int error = yield_command(ctx, command, timeout, number);
    EXPLORE_CHECK(error == 0, "the rig has memory");
}

static void cancel(skua_context *ctx, uint32_t first, uint32_t count)
{
    is_cancelled = true;
    for (uint32_t i = first; i < first + count; i++) {
        const int error = skua_yield_cancel(ctx, i);
        EXPLORE_CHECK(error == 0, "the rig has memory");
    }
}

static void yield_more(skua_context *ctx)
{
    static const uint64_t timeouts[] = {
        [MORE_TIMED] = TIMEOUT, [MORE_LONG] = LONG, [MORE_CANCELLED] = SKUA_FOREVER};
    yield_next(ctx, PENDING, timeouts[plan.more], call_count);
    if (plan.more == MORE_CANCELLED) {
        cancel(ctx, call_count, 1);
    }
    plan.more = NO_MORE;
}

/* The ticks stay on their grid, and none is forgotten. */
static void get_tick(struct self *self, struct call *call, const skua_event *event)
{
    explore_note("gets a tick of %u periods", (unsigned)skua_tick_count(event));
    EXPLORE_CHECK(plan.command == TICKER, "INV-14: only a ticker ticks");
    EXPLORE_CHECK(call->ends == 0, "INV-14: no tick after the end");
    EXPLORE_CHECK(event->error == 0 && skua_pid_is_none(event->from), "a tick has neither");
    EXPLORE_CHECK(skua_tick_count(event) > 0, "a tick stands for a period");
    call->periods += skua_tick_count(event);
    EXPLORE_CHECK(skua_tick_time(event) == RIG_BEGINNING + call->periods * PERIOD,
                  "the ticks stand for all periods so far");
    self->ticks++;
}

static void get_end(struct self *self, struct call *call, const skua_event *event)
{
    explore_note("call %u ends: %s", (unsigned)event->tag, skua_error_name(event->error));
    EXPLORE_CHECK(event->type == SKUA_EVENT_COMPLETION, "nothing else comes");
    EXPLORE_CHECK(++call->ends == 1, "INV-14: a call ends once");
    EXPLORE_CHECK(skua_pid_is_none(event->from), "the links of the call are not shown");
    call->error = event->error;
    self->has_more = plan.more != NO_MORE;
}

static void get_event(struct self *self, const skua_event *event)
{
    if (event->type == SKUA_EVENT_START || event->type == SKUA_EVENT_CONTINUE) {
        return;
    }
    EXPLORE_CHECK(event->tag < call_count, "INV-14: of a call that was opened");
    struct call *call = &calls[event->tag];
    if (event->type == SKUA_EVENT_TICK) {
        get_tick(self, call, event);
    } else {
        get_end(self, call, event);
    }
}

static int begin(skua_context *ctx)
{
    for (uint32_t i = 0; i < yields; i++) {
        yield_next(ctx, plan.command, plan.timeout + i * plan.more_each, i);
    }
    if (plan.cancels_at_once) {
        cancel(ctx, 0, yields);
    }
    if (plan.ends_at_once) {
        return skua_done(ctx, skua_nothing());
    }
    return plan.cancels_next ? skua_continue(ctx) : 0;
}

static int step(void *state, skua_context *ctx, skua_event *events, size_t count)
{
    struct self *self = state;
    for (size_t i = 0; i < count; i++) {
        get_event(self, &events[i]);
    }
    if (events[0].type == SKUA_EVENT_START) {
        return begin(ctx);
    }
    const bool tick_is_enough = plan.cancels_tick != 0 && self->ticks >= plan.cancels_tick;
    if (!is_cancelled && (plan.cancels_next || tick_is_enough)) {
        cancel(ctx, 0, yields);
    }
    if (self->has_more && count == 1 && events[0].type == SKUA_EVENT_CONTINUE) {
        self->has_more = false;
        yield_more(ctx);
    }
    /* The node of what came is free by then. */
    return self->has_more ? skua_continue(ctx) : 0;
}

static const skua_process_type type = {
    .name = "timed", .state_size = sizeof(struct self), .step = step, .close = count_end};

/* ---- threads ---- */

static const uint32_t numbers[WORKERS] = {0, 1, 2, 3};

static void run_worker(const void *arg)
{
    (void)arg;
    struct worker *worker = &rig.workers[RUNNER];
    for (;;) {
        explore_take(&queue);
        tokens--;
        step_run(worker, process);
        if (ended > 0) {
            reuse_node(worker); /* of its calls, if they have been revoked */
        }
    }
}

static void run_firer(const void *number)
{
    const uint32_t who = *(const uint32_t *)number;
    struct worker *worker = &rig.workers[who];
    for (;;) {
        explore_take(&announced[who]);
        for (uint64_t now; (now = deadlines_next(&rig.deadlines, RUNNER)) != WHEEL_NEVER;) {
            const uint32_t before = nodes_at_hand(worker);
            now += plan.lateness;
            explore_note("it is %u", (unsigned)((now - RIG_BEGINNING) / TICK));
            timers_fire(&rig, worker, RUNNER, now);
            reuse_if_given(worker, before);
        }
    }
}

/* ---- the beginning and the end ---- */

static void setup(void)
{
    rig_reset(WORKERS);
    rig.registry = &registry;
    attach_clock();
    for (uint32_t id = PENDING; id <= PROMPT; id++) {
        registry.direct[id] = (skua_handler){.name = "command", .run = handle, .abandon = abandon};
    }
    memset(calls, 0, sizeof calls);
    memset(reused, 0, sizeof reused);
    memset(dropped, 0, sizeof dropped);
    memset(&plan, 0, sizeof plan);
    plan.timeout = SKUA_FOREVER;
    tokens = ended = call_count = handed_in = 0;
    is_cancelled = false;
    store_relaxed(&queue, 0);
    for (uint32_t i = 0; i < WORKERS; i++) {
        store_relaxed(&issued[i], 0);
        store_relaxed(&announced[i], 0);
    }
    process = rig_spawn(&rig.outside.caches.processes, &type, &its_pid);
    explore_ignore(&process->type, sizeof process->type);
    explore_ignore(&process->progress, sizeof process->progress);
    explore_ignore(&process->consumed, sizeof process->consumed);
    enqueue();
    yields = 1;
}

static void setup_deadline(void)
{
    setup();
    plan.timeout = TIMEOUT;
}

static void setup_long(void)
{
    setup();
    plan.timeout = LONG;
}

static void setup_long_two(void)
{
    setup_long();
    plan.more_each = 2 * TICK; /* the first one's deadline covers the second one's */
    yields = 2;
}

static void setup_long_cancelled(void)
{
    setup_long();
    plan.cancels_next = true;
}

static void setup_long_ending(void)
{
    setup_long();
    plan.ends_at_once = true;
}

static void setup_long_again(void)
{
    setup_long();
    plan.more = MORE_LONG;
}

/* Only what comes at once counts. */
static void setup_no_time(void)
{
    setup();
    plan.timeout = 0;
}

static void setup_no_time_instant(void)
{
    setup_no_time();
    plan.command = INSTANT;
}

static void setup_deadline_two(void)
{
    setup_deadline();
    yields = 2;
}

static void setup_deadline_cancelled(void)
{
    setup_deadline();
    plan.cancels_next = true;
}

static void setup_deadline_cancelled_two(void)
{
    setup_deadline_two();
    plan.cancels_next = true;
}

static void setup_deadline_cancelled_at_once(void)
{
    setup_deadline();
    plan.cancels_at_once = true;
}

static void setup_deadline_ending(void)
{
    setup_deadline();
    plan.ends_at_once = true;
}

static void setup_deadline_ending_two(void)
{
    setup_deadline_two();
    plan.ends_at_once = true;
}

/* More calls than are revoked in one slice (EXIT_SLICE). */
static void setup_deadline_ending_three(void)
{
    setup_deadline_ending();
    yields = 3;
}

static void setup_deadline_instant(void)
{
    setup_deadline();
    plan.command = INSTANT;
}

static void setup_deadline_prompt(void)
{
    setup_deadline();
    plan.command = PROMPT;
}

static void setup_deadline_again(void)
{
    setup_deadline();
    plan.more = MORE_TIMED;
}

/* The later call has no deadline, whatever its node was used for. */
static void setup_deadline_then_none(void)
{
    setup_deadline();
    plan.more = MORE_CANCELLED;
}

static void setup_sleep(void)
{
    setup();
    plan.command = SLEEP;
}

static void setup_sleep_two(void)
{
    setup_sleep();
    yields = 2;
}

static void setup_sleep_cancelled(void)
{
    setup_sleep();
    plan.cancels_next = true;
}

static void setup_ticker(void)
{
    setup();
    plan.command = TICKER;
    plan.cancels_tick = 2;
}

static void setup_ticker_late(void)
{
    setup_ticker();
    plan.lateness = 2 * PERIOD + 1;
}

static void setup_ticker_then_none(void)
{
    setup_ticker();
    plan.cancels_tick = 1;
    plan.more = MORE_CANCELLED;
}

static void setup_ticker_cancelled(void)
{
    setup();
    plan.command = TICKER;
    plan.cancels_next = true;
}

static void setup_ticker_cancelled_two(void)
{
    setup_ticker_cancelled();
    yields = 2;
}

static void setup_ticker_ending(void)
{
    setup_ticker();
    plan.ends_at_once = true;
}

static uint32_t count_drops(void)
{
    uint32_t count = 0;
    for (uint32_t call = 0; call < CALLS_MAX; call++) {
        for (uint32_t who = 0; who < WORKERS; who++) {
            for (uint32_t try = 0; try < TRIES_MAX; try++) {
                count += dropped[call][who][try];
            }
        }
    }
    return count;
}

/* The nodes that were used again are as they were left. Returns how many there are. */
static uint32_t close_reused(void)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        if (reused[i].open) {
            const uint32_t index = call_index(reused[i].completion);
            struct event_node *node = event_at(&rig.events, index);
            EXPLORE_CHECK(node->as.call.wheel == WORKERS && node->as.call.timer.when == FAR,
                          "INV-14: the timer of a later call on the same node is not touched");
            EXPLORE_CHECK(call_claim_any(node, call_guard(reused[i].completion)),
                          "INV-14: a later call on the same node is not touched");
            deadlines_disarm_any(&rig.deadlines, index);
            open++;
        }
    }
    return open;
}

static void check_wheels(void)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        EXPLORE_CHECK(rig.deadlines.wheels[i].wheel.count == 0 &&
                          load_seq_cst(&rig.deadlines.wheels[i].beside[0]) == OBJECT_NONE,
                      "INV-15: no deadline is left");
        EXPLORE_CHECK(deadlines_next(&rig.deadlines, i) == WHEEL_NEVER,
                      "INV-15: who has nothing to wait for knows it");
    }
}

static void check_error(const struct call *call)
{
    if (call->accepted > 0) {
        EXPLORE_CHECK(call->error == 0, "INV-14: what was accepted is delivered");
        return;
    }
    switch (call->error) {
    case 0:
        EXPLORE_CHECK(plan.command == INSTANT || plan.command == SLEEP,
                      "INV-14: only what was accepted is delivered");
        break;
    case SKUA_E_TIMEOUT:
        EXPLORE_CHECK(plan.timeout != SKUA_FOREVER, "INV-14: only what has a timeout times out");
        EXPLORE_CHECK(plan.timeout != 0 || plan.command != INSTANT,
                      "INV-14: what is there at once needs no time");
        break;
    case SKUA_E_CANCELLED:
        EXPLORE_CHECK(is_cancelled, "INV-14: only what was cancelled says so");
        break;
    default:
        EXPLORE_CHECK(false, "INV-14: no other error comes");
    }
}

static void check(void)
{
    EXPLORE_CHECK(ended > 0 || call_count >= yields, "all handlers were called");
    for (uint32_t i = 0; i < call_count; i++) {
        EXPLORE_CHECK(ended > 0 || calls[i].ends == 1, "INV-14: a call ends");
        EXPLORE_CHECK(!calls[i].is_pending || calls[i].accepted + calls[i].told == 1,
                      "INV-14: its handler has completed it or is told");
        if (calls[i].ends > 0) {
            check_error(&calls[i]);
        }
    }
    EXPLORE_CHECK(count_drops() == handed_in, "every result is dropped");
    EXPLORE_CHECK(tokens == 0, "INV-3: all tokens were used");
    const uint32_t live = close_reused();
    check_wheels();
    EXPLORE_CHECK(rig_free_nodes() + live == rig_all_nodes(), "INV-20: every node is given back");
}

static void check_ended(void)
{
    check();
    EXPLORE_CHECK(ended == 1, "it ended");
}

/* The first call had an end, and the later one on the same node its own. */
static void check_again(int error)
{
    check();
    const uint32_t first = call_index(calls[0].completion);
    EXPLORE_CHECK(call_count == 2 && call_index(calls[1].completion) == first,
                  "the later call has the same node");
    EXPLORE_CHECK(calls[1].error == error && calls[1].accepted == 0,
                  "INV-14: the completions of the earlier call do not count for it");
}

static void check_timed_again(void)
{
    check_again(SKUA_E_TIMEOUT);
}

static void check_cancelled_again(void)
{
    check_again(SKUA_E_CANCELLED);
}

static void check_ticked(void)
{
    check();
    EXPLORE_CHECK(calls[0].periods >= plan.cancels_tick, "the ticks came");
}

#define WORKER           EXPLORE_THREAD("worker", run_worker, NULL)
#define COMPLETER        EXPLORE_THREAD("completer", run_completer, &numbers[COMPLETER_1])
#define DOUBLE_COMPLETER EXPLORE_THREAD("completer", run_double_completer, &numbers[COMPLETER_1])
#define FIRER            EXPLORE_THREAD("firer", run_firer, &numbers[FIRER_1])
#define FIRER2           EXPLORE_THREAD("firer2", run_firer, &numbers[FIRER_2])

#define MAY_REST all_is_done

/* What lies beside a wheel is reached without its lock. */
#define OPEN(name_, mode_, bound_, setup_, finish_, ...)                                           \
    {                                                                                              \
        .name = name_, .mode = mode_, .bound = bound_, .mutexes_are_open = true, .setup = setup_,  \
        .threads = {__VA_ARGS__}, .may_rest = MAY_REST, .finish = finish_,                         \
    }
#define OPEN_ALL(name_, setup_, finish_, ...)                                                      \
    OPEN(name_, EXPLORE_ALL, 0, setup_, finish_, __VA_ARGS__)
#define OPEN_BOUNDED(name_, bound_, setup_, finish_, ...)                                          \
    OPEN(name_, EXPLORE_PREEMPTIONS, bound_, setup_, finish_, __VA_ARGS__)

static const struct explore_model models[] = {
    ALL("deadline", setup_deadline, check, WORKER, FIRER),
    ALL("deadline_two_firers", setup_deadline, check, WORKER, FIRER, FIRER2),
    ALL("deadline_completed", setup_deadline, check, WORKER, FIRER, COMPLETER),
    BOUNDED("deadline_two_calls", 3, setup_deadline_two, check, WORKER, FIRER, COMPLETER),
    ALL("deadline_instant", setup_deadline_instant, check, WORKER, FIRER),
    ALL("no_time", setup_no_time, check, WORKER, FIRER),
    ALL("no_time_completed", setup_no_time, check, WORKER, FIRER, COMPLETER),
    ALL("no_time_instant", setup_no_time_instant, check, WORKER, FIRER),
    ALL("deadline_prompt", setup_deadline_prompt, check, WORKER, FIRER),
    ALL("deadline_cancelled", setup_deadline_cancelled, check, WORKER, FIRER),
    ALL("deadline_cancelled_at_once", setup_deadline_cancelled_at_once, check, WORKER, FIRER),
    BOUNDED("deadline_cancelled_completed", 4, setup_deadline_cancelled, check, WORKER, FIRER,
            COMPLETER),
    BOUNDED("deadline_cancelled_two_calls", 3, setup_deadline_cancelled_two, check, WORKER, FIRER,
            COMPLETER),
    ALL("deadline_ending", setup_deadline_ending, check_ended, WORKER, FIRER),
    ALL("deadline_ending_completed", setup_deadline_ending, check_ended, WORKER, FIRER, COMPLETER),
    BOUNDED("deadline_ending_two_calls", 3, setup_deadline_ending_two, check_ended, WORKER, FIRER,
            COMPLETER),
    BOUNDED("deadline_ending_in_slices", 3, setup_deadline_ending_three, check_ended, WORKER,
            FIRER),
    BOUNDED("deadline_ending_in_slices_completed", 2, setup_deadline_ending_three, check_ended,
            WORKER, FIRER, COMPLETER),
    BOUNDED("deadline_killed", 3, setup_deadline, check_ended, WORKER, FIRER, COMPLETER, KILLER),
    BOUNDED("deadline_again", 3, setup_deadline_again, check_timed_again, WORKER, FIRER,
            DOUBLE_COMPLETER),
    BOUNDED("deadline_then_none", 4, setup_deadline_then_none, check_cancelled_again, WORKER, FIRER,
            DOUBLE_COMPLETER),
    OPEN_ALL("long", setup_long, check, WORKER, FIRER),
    OPEN_ALL("long_completed", setup_long, check, WORKER, FIRER, COMPLETER),
    OPEN_ALL("long_two_calls", setup_long_two, check, WORKER, FIRER),
    {
        .name = "long_two_calls_weak",
        .mode = EXPLORE_PREEMPTIONS,
        .bound = 3,
        .stale = 2,
        .mutexes_are_open = true,
        .setup = setup_long_two,
        .threads = {WORKER, FIRER},
        .may_rest = MAY_REST,
        .finish = check,
    },
    OPEN_BOUNDED("long_two_firers", 2, setup_long_two, check, WORKER, FIRER, FIRER2),
    OPEN_BOUNDED("long_two_completed", 2, setup_long_two, check, WORKER, FIRER, COMPLETER),
    OPEN_ALL("long_cancelled", setup_long_cancelled, check, WORKER, FIRER),
    OPEN_BOUNDED("long_ending", 4, setup_long_ending, check_ended, WORKER, FIRER, COMPLETER),
    OPEN_BOUNDED("long_again", 2, setup_long_again, check_timed_again, WORKER, FIRER,
                 DOUBLE_COMPLETER),
    ALL("sleep", setup_sleep, check, WORKER, FIRER, FIRER2),
    BOUNDED("sleep_two", 3, setup_sleep_two, check, WORKER, FIRER, FIRER2),
    ALL("sleep_cancelled", setup_sleep_cancelled, check, WORKER, FIRER),
    ALL("sleep_killed", setup_sleep, check_ended, WORKER, FIRER, KILLER),
    ALL("ticker", setup_ticker, check_ticked, WORKER, FIRER),
    ALL("ticker_late", setup_ticker_late, check_ticked, WORKER, FIRER),
    ALL("ticker_then_none", setup_ticker_then_none, check_cancelled_again, WORKER, FIRER),
    BOUNDED("ticker_two_firers", 2, setup_ticker, check_ticked, WORKER, FIRER, FIRER2),
    ALL("ticker_cancelled", setup_ticker_cancelled, check, WORKER, FIRER),
    BOUNDED("ticker_cancelled_two", 4, setup_ticker_cancelled_two, check, WORKER, FIRER),
    ALL("ticker_ending", setup_ticker_ending, check_ended, WORKER, FIRER),
    BOUNDED("ticker_killed", 3, setup_ticker, check_ended, WORKER, FIRER, KILLER),
    RANDOM("many", setup_deadline_cancelled_two, check_ended, WORKER, FIRER, FIRER2, COMPLETER,
           KILLER),
    RANDOM("many_ticks", setup_ticker, check_ended, WORKER, FIRER, FIRER2, KILLER),
};

EXPLORE_MAIN(models)
