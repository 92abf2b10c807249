/* SPDX-License-Identifier: MIT */
/* What becomes of what a step asked for, on a scheduler without threads: yields of steps that fail
 * or are done, the order of events that nobody sent, and cancels that end a process. */
#include "dispatch/call.h"
#include "sched/deliver.h"
#include "sched/worker.h"
#include "scheduler_rig.h"

#define EVENTS_MAX 16
#define REASON     (SKUA_E_USER - 7)

static struct {
    int (*act)(skua_context *ctx); /* in every step; may be null */
    uint32_t steps;
    uint32_t types[EVENTS_MAX]; /* of all events, in order */
    uint32_t count;
    uint32_t ends;
    int exit_error;
    int drops;
} play;

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    play.steps++;
    for (size_t i = 0; i < count && play.count < EVENTS_MAX; i++) {
        play.types[play.count++] = events[i].type;
    }
    return play.act != NULL ? play.act(ctx) : 0;
}

static void close_actor(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self;
    (void)ctx;
    play.ends++;
    play.exit_error = exit->error;
}

static const skua_process_type mortal = {.name = "mortal", .step = step, .close = close_actor};
static const skua_process_type tidy = {
    .name = "tidy", .step = step, .close = close_actor, .cancel = SKUA_CANCEL_EVENT};

static struct process *begin(const skua_process_type *type, int (*act)(skua_context *))
{
    scheduler_rig_open();
    memset(&play, 0, sizeof play);
    play.act = act;
    return rig_spawn(worker(0), type);
}

static void count_drop(void *data, size_t size)
{
    (void)data;
    (void)size;
    play.drops++;
}

static skua_payload counted(void)
{
    return skua_payload_pointer(0, &play, count_drop);
}

static void assert_events(const uint32_t *types, uint32_t count)
{
    assert_int_equal(play.count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(play.types[i], types[i]);
    }
}

#define EVENTS(...)                                                                                \
    (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)

static uint32_t unused_nodes(void)
{
    const struct pool_cache *cache = &worker(0)->caches.events;
    return cache->active.count + cache->spare.count + worker(0)->out.reserve_count;
}

/* ---- steps that fail ---- */

static int yield_and_fail(skua_context *ctx)
{
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(skua_yield(ctx, i, RIG_PENDING, counted(), SKUA_FOREVER), 0);
        assert_int_equal(skua_yield_cancel(ctx, i), 0);
    }
    return SKUA_E_USER;
}

TEST(yields_of_a_step_that_fails_are_dropped_with_their_nodes)
{
    (void)begin(&mortal, NULL);
    rig_send(rig_spawn(worker(0), &rig_resting)); /* there are nodes in the cache */
    rig_run_all();
    play.act = yield_and_fail;
    const uint32_t before = unused_nodes();
    (void)rig_spawn(worker(0), &mortal);
    rig_run_all();
    assert_int_equal(play.drops, 5);
    assert_int_equal(play.exit_error, SKUA_E_USER);
    assert_int_equal(unused_nodes(), before);
}

static int yield_and_end(skua_context *ctx)
{
    assert_int_equal(skua_yield(ctx, 1, RIG_PENDING, counted(), SKUA_FOREVER), 0);
    assert_int_equal(skua_done(ctx, counted()), 0);
    assert_int_equal(skua_yield(ctx, 2, RIG_PENDING, counted(), SKUA_FOREVER), SKUA_E_DONE);
    return SKUA_E_USER; /* which does not matter any more */
}

TEST(done_is_an_end_without_error_whatever_the_step_returns)
{
    (void)begin(&mortal, yield_and_end);
    rig_run_all();
    assert_int_equal(play.ends, 1);
    assert_int_equal(play.exit_error, 0);
    assert_int_equal(play.drops, 3);
}

static int return_positive(skua_context *ctx)
{
    (void)ctx;
    return 5;
}

TEST(positive_number_of_a_step_is_an_error)
{
    (void)begin(&mortal, return_positive);
    rig_run_all();
    assert_int_equal(play.exit_error, SKUA_E_INVALID);
}

/* ---- START and CONTINUE ---- */

static int continue_twice(skua_context *ctx)
{
    return play.steps <= 2 ? skua_continue(ctx) : 0;
}

TEST(start_is_first_and_continue_last)
{
    struct process *process = begin(&tidy, continue_twice);
    rig_send(process);
    rig_send(process);
    rig_run_all();
    assert_events(EVENTS(SKUA_EVENT_START, SKUA_EVENT_MESSAGE, SKUA_EVENT_MESSAGE,
                         SKUA_EVENT_CONTINUE, SKUA_EVENT_CONTINUE));
    rig_send(process);
    rig_run_all();
    assert_int_equal(play.types[5], SKUA_EVENT_MESSAGE);
    assert_int_equal(play.count, 6);
}

/* ---- where it rests ---- */

static int yield_pending(skua_context *ctx)
{
    return play.steps == 1 ? skua_yield(ctx, 1, RIG_PENDING, counted(), SKUA_FOREVER) : 0;
}

TEST(process_with_open_yields_rests_blocked_and_others_idle)
{
    struct process *process = begin(&tidy, NULL);
    rig_run_all();
    assert_int_equal(state_of(state_peek(process)), STATE_IDLE);
    play = (__typeof__(play)){.act = yield_pending};
    struct process *calling = rig_spawn(worker(0), &tidy);
    rig_run_all();
    assert_int_equal(state_of(state_peek(calling)), STATE_BLOCKED);
    rig_send(calling); /* a message wakes it all the same */
    rig_run_all();
    assert_int_equal(play.steps, 2);
    assert_int_equal(state_of(state_peek(calling)), STATE_BLOCKED);
}

/* ---- cancels ---- */

static void cancel(struct process *process, int reason)
{
    assert_int_equal(deliver_cancel(&rig.sched, worker(0), rig_pid(process), reason), 0);
}

TEST(cancel_ends_a_process_in_its_place_among_the_events)
{
    struct process *process = begin(&mortal, NULL);
    rig_send(process);
    cancel(process, REASON);
    rig_send(process); /* comes too late */
    cancel(process, SKUA_E_USER);
    rig_run_all();
    assert_events(EVENTS(SKUA_EVENT_START, SKUA_EVENT_MESSAGE));
    assert_int_equal(play.ends, 1);
    assert_int_equal(play.exit_error, REASON);
}

TEST(cancel_of_a_process_that_rests_ends_it_without_a_step)
{
    struct process *process = begin(&mortal, NULL);
    rig_run_all();
    cancel(process, REASON);
    rig_run_all();
    assert_int_equal(play.steps, 1);
    assert_int_equal(play.exit_error, REASON);
}

TEST(cancel_is_an_event_for_those_who_want_it)
{
    struct process *process = begin(&tidy, NULL);
    rig_send(process);
    cancel(process, REASON);
    rig_send(process);
    rig_run_all();
    assert_events(
        EVENTS(SKUA_EVENT_START, SKUA_EVENT_MESSAGE, SKUA_EVENT_CANCEL, SKUA_EVENT_MESSAGE));
    assert_int_equal(play.ends, 0);
}

static int continue_always(skua_context *ctx)
{
    return skua_continue(ctx);
}

/* The shutdown's comes after what was there, and only once. */
TEST(stop_ends_a_process_after_its_events)
{
    struct process *process = begin(&mortal, continue_always);
    rig_send(process);
    for (int i = 0; i < 2; i++) {
        (void)deliver_request(&rig.sched, worker(0), rig_pid(process), STATE_CANCEL);
    }
    rig_run_all();
    assert_int_equal(play.types[1], SKUA_EVENT_MESSAGE);
    assert_int_equal(play.ends, 1);
    assert_int_equal(play.exit_error, SKUA_E_STOPPED);
}

TEST(stop_is_one_event_for_those_who_want_it)
{
    struct process *process = begin(&tidy, NULL);
    rig_send(process);
    for (int i = 0; i < 3; i++) {
        (void)deliver_request(&rig.sched, worker(0), rig_pid(process), STATE_CANCEL);
        rig_run_all();
    }
    assert_events(EVENTS(SKUA_EVENT_START, SKUA_EVENT_MESSAGE, SKUA_EVENT_CANCEL));
}
