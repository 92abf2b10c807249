/* SPDX-License-Identifier: MIT */
/* Contexts: which verbs each call of a process may use, and what becomes of those that are kept. */
#include "sched/context.h"

#include <pthread.h>

#include "sched/worker.h"
#include "scheduler_rig.h"

static uint32_t logged;

static void count_line(void *arg, const skua_log *log)
{
    (void)arg;
    (void)log;
    logged++;
    rig.now += SKUA_SECOND; /* or the next would be left out */
}

static void open_context(uint32_t phase)
{
    scheduler_rig_open();
    logged = 0;
    rig.sched.config.on_log = count_line;
    worker(0)->context->phase = phase;
}

static void close_contexts(void)
{
    for (uint32_t i = 0; i < WORKER_CONTEXTS; i++) {
        worker(0)->contexts[i].phase = CONTEXT_CLOSED;
    }
}

/* ---- phases ---- */

static const uint32_t masks[] = {CONTEXT_SPAWNS, CONTEXT_ANY};
static const uint32_t phases[] = {CONTEXT_INIT, CONTEXT_STEP, CONTEXT_CLOSE};

TEST(verb_is_allowed_in_its_phases_only)
{
    FOR_ROWS (phase, phases) {
        open_context(*phase);
        const skua_context *ctx = worker(0)->context;
        for (size_t i = 0; i < COUNT_OF(masks); i++) {
            const bool may = (masks[i] & *phase) != 0;
            logged = 0;
            assert_int_equal(context_refuse(ctx, masks[i]), may ? 0 : SKUA_E_CONTEXT);
            assert_int_equal(context_check(ctx, masks[i]), may ? 0 : SKUA_E_CONTEXT);
            assert_int_equal(logged, may ? 0 : 2);
        }
        assert_true(context_is_plain(ctx));
        close_contexts();
    }
}

TEST(verb_is_allowed_in_checked_contexts_of_the_same_phase)
{
    FOR_ROWS (phase, phases) {
        open_context(*phase | CONTEXT_CHECKED);
        const skua_context *ctx = worker(0)->context;
        assert_false(context_is_plain(ctx));
        for (size_t i = 0; i < COUNT_OF(masks); i++) {
            const bool may = (masks[i] & *phase) != 0;
            assert_int_equal(context_refuse(ctx, masks[i]), may ? 0 : SKUA_E_CONTEXT);
        }
        close_contexts();
    }
}

TEST(context_that_is_closed_or_none_is_refused)
{
    open_context(CONTEXT_CLOSED);
    const skua_context *ctx = worker(0)->context;
    for (size_t i = 0; i < COUNT_OF(masks); i++) {
        assert_int_equal(context_refuse(ctx, masks[i]), SKUA_E_CONTEXT);
        assert_int_equal(context_refuse(NULL, masks[i]), SKUA_E_INVALID);
    }
    assert_false(context_is_plain(ctx));
    assert_int_equal(logged, COUNT_OF(masks));
}

TEST(output_is_that_of_a_step_only)
{
    int error = 1;
    open_context(CONTEXT_STEP);
    assert_ptr_equal(context_output(worker(0)->context, &error), &worker(0)->out);
    assert_int_equal(error, 0);
    worker(0)->context->phase = CONTEXT_INIT;
    assert_null(context_output(worker(0)->context, &error));
    assert_int_equal(error, SKUA_E_CONTEXT);
    assert_null(context_output(NULL, &error));
    assert_int_equal(error, SKUA_E_INVALID);
    close_contexts();
}

/* ---- threads and turns ---- */

static void *use_elsewhere(void *arg)
{
    const skua_context *ctx = arg;
    static int error;
    error = context_refuse(ctx, CONTEXT_SPAWNS);
    return &error;
}

static bool may_yield(const skua_context *ctx)
{
    int error;
    return context_output(ctx, &error) != NULL;
}

static int refuse_elsewhere(skua_context *ctx)
{
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, use_elsewhere, ctx), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    return *(int *)result;
}

TEST(checked_context_is_refused_on_another_thread)
{
    open_context(CONTEXT_STEP | CONTEXT_CHECKED);
    assert_int_equal(refuse_elsewhere(worker(0)->context), SKUA_E_CONTEXT);
    assert_int_equal(logged, 1);
    assert_int_equal(context_refuse(worker(0)->context, CONTEXT_SPAWNS), 0);
    worker(0)->context->phase = CONTEXT_STEP; /* not checked: nobody notices */
    assert_int_equal(refuse_elsewhere(worker(0)->context), 0);
    close_contexts();
}

/* A checked worker takes another for every call, so that one that was kept is closed. */
TEST(checked_contexts_take_turns_and_know_their_process)
{
    open_context(CONTEXT_CLOSED);
    struct worker *first = worker(0);
    struct process *process = rig_spawn(NULL, &rig_resting);
    first->is_checked = true;
    context_set_process(first, process, rig_pid(process));
    const skua_context *last = first->context;
    for (uint32_t i = 0; i < 3 * WORKER_CONTEXTS; i++) {
        const skua_context *opened = context_open(first, CONTEXT_STEP);
        assert_ptr_equal(opened, first->context);
        assert_ptr_not_equal(first->context, last);
        assert_in_range(first->context - first->contexts, 0, WORKER_CONTEXTS - 1);
        assert_ptr_equal(first->context->process, process);
        assert_true(skua_pid_equal(first->context->self, rig_pid(process)));
        assert_ptr_equal(first->context->worker, first);
        assert_int_equal(first->context->phase, CONTEXT_STEP | CONTEXT_CHECKED);
        assert_int_equal(context_refuse(last, CONTEXT_ANY), SKUA_E_CONTEXT); /* was kept */
        last = first->context;
        context_close(first);
    }
}

TEST(plain_context_is_the_same_for_every_call)
{
    open_context(CONTEXT_CLOSED);
    struct worker *first = worker(0);
    first->is_checked = false;
    const skua_context *ctx = first->context;
    for (uint32_t i = 0; i < 5; i++) {
        assert_ptr_equal(context_open(first, CONTEXT_CLOSE), ctx);
        assert_int_equal(ctx->phase, CONTEXT_CLOSE);
        context_close(first);
        assert_int_equal(ctx->phase, CONTEXT_CLOSED);
    }
}

/* ---- in the calls of a process ---- */

static skua_context *kept;
static uint32_t seen; /* phases */

static int init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)self;
    (void)input;
    (void)count;
    seen |= ctx->phase & CONTEXT_ANY;
    assert_int_equal(context_refuse(ctx, CONTEXT_SPAWNS), 0);
    assert_false(may_yield(ctx));
    return 0;
}

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    seen |= ctx->phase & CONTEXT_ANY;
    kept = ctx;
    assert_true(may_yield(ctx));
    return skua_done(ctx, skua_nothing());
}

static void close_process(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self;
    (void)exit;
    seen |= ctx->phase & CONTEXT_ANY;
    assert_int_equal(context_refuse(ctx, CONTEXT_ANY), 0);
    assert_int_equal(context_refuse(ctx, CONTEXT_SPAWNS), SKUA_E_CONTEXT);
}

static const skua_process_type visitor = {
    .name = "visitor", .init = init, .step = step, .close = close_process};

TEST(calls_of_a_process_have_their_phases_and_leave_contexts_closed)
{
    static const bool checked[] = {false, true};
    FOR_ROWS (is_checked, checked) {
        open_context(CONTEXT_CLOSED);
        worker(0)->is_checked = *is_checked;
        seen = 0;
        (void)rig_spawn(worker(0), &visitor);
        rig_run_all();
        assert_int_equal(seen, CONTEXT_ANY);
        assert_int_equal(context_refuse(kept, CONTEXT_ANY), SKUA_E_CONTEXT);
        for (uint32_t i = 0; i < WORKER_CONTEXTS; i++) {
            assert_int_equal(worker(0)->contexts[i].phase, CONTEXT_CLOSED);
        }
    }
}
