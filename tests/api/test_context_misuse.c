/* SPDX-License-Identifier: MIT */
/* Contexts that are used after their call, in another one, or on another thread: every verb refuses
 * that by a named error, and nothing else happens. */
#include "actor.h"
#include "desk.h"
#include "runtime/runtime.h"
#include "sched/context.h"

#define SEEDS 20

/* What was kept, to be used when it must not be. */
static skua_context *kept;

static int double_it(skua_payload *input, skua_payload *result)
{
    *result = skua_payload_u64(2, 2 * skua_payload_to_u64(input));
    return 0;
}

/* ---- all verbs ---- */

/* How many verbs did not refuse it. */
static unsigned count_yields_accepted(skua_context *ctx, struct tracked *item)
{
    const skua_pool pool = {0};
    const skua_payload input = tracked_payload(0, item);
    unsigned accepted = 0;
    accepted += skua_yield(ctx, 1, DESK_KEEP, input, SKUA_FOREVER) != SKUA_E_CONTEXT;
    accepted += skua_yield_sleep(ctx, 1, 0) != SKUA_E_CONTEXT;
    accepted += skua_yield_timer(ctx, 1, 0) != SKUA_E_CONTEXT;
    accepted += skua_yield_ticker(ctx, 1, 1) != SKUA_E_CONTEXT;
    accepted += skua_yield_readable(ctx, 1, 0, SKUA_FOREVER) != SKUA_E_CONTEXT;
    accepted += skua_yield_writable(ctx, 1, 0, SKUA_FOREVER) != SKUA_E_CONTEXT;
    accepted += skua_yield_blocking(ctx, 1, pool, double_it, input, SKUA_FOREVER) != SKUA_E_CONTEXT;
    accepted += skua_yield_cancel(ctx, 1) != SKUA_E_CONTEXT;
    accepted += skua_continue(ctx) != SKUA_E_CONTEXT;
    accepted += skua_done(ctx, input) != SKUA_E_CONTEXT;
    return accepted;
}

static unsigned count_acts_accepted(skua_context *ctx, struct tracked *item, skua_pid other)
{
    const skua_payload input = tracked_payload(0, item);
    skua_payload inputs[1] = {input};
    const skua_spawn_options options = {.type = &api_idler, .input = inputs, .input_count = 1};
    void *memory = NULL;
    skua_payload payload;
    unsigned accepted = 0;
    accepted += skua_send(ctx, other, input) != SKUA_E_CONTEXT;
    accepted += skua_cancel(ctx, other, 0) != SKUA_E_CONTEXT;
    accepted += skua_terminate(ctx, other) != SKUA_E_CONTEXT;
    accepted += skua_spawn(ctx, &api_idler, input, NULL) != SKUA_E_CONTEXT;
    accepted += skua_spawn_with(ctx, &options, NULL) != SKUA_E_CONTEXT;
    accepted += skua_own_alloc(ctx, 8, &memory) != SKUA_E_CONTEXT;
    accepted += skua_own_free(ctx, &memory) != SKUA_E_CONTEXT;
    accepted += skua_payload_alloc(ctx, 1, 8, &memory, &payload) != SKUA_E_CONTEXT;
    accepted += skua_blocking_begin(ctx) != SKUA_E_CONTEXT;
    accepted += skua_blocking_end(ctx) != SKUA_E_CONTEXT;
    return accepted;
}

/* Those that return no error return nothing. */
static unsigned count_answers(skua_context *ctx)
{
    char byte;
    unsigned answers = 0;
    answers += !skua_pid_is_none(skua_self(ctx));
    answers += skua_runtime_of(ctx) != NULL;
    answers += skua_method(ctx) != NULL;
    answers += skua_now(ctx) != 0;
    answers += skua_random(ctx) != 0;
    answers += skua_alloc(ctx, 8) != NULL;
    skua_free(ctx, &byte, 1); /* is ignored, or this would end badly */
    return answers;
}

#define DROPS 6 /* of the item, by the functions above */

static unsigned count_accepted(skua_context *ctx, struct tracked *item, skua_pid other)
{
    return count_yields_accepted(ctx, item) + count_acts_accepted(ctx, item, other) +
           count_answers(ctx);
}

/* ---- after its call ---- */

/* One that init has kept, on a worker or outside, is refused in steps and between them. */
static int use_in_step(struct turn *turn, const struct act *act)
{
    volatile char stack[8192]; /* whatever was on it is gone */
    memset((char *)stack, 0x55, sizeof stack);
    struct tracked *item = act->arg;
    return count_accepted(kept, item, turn->actor->pid) == 0 ? 0 : SKUA_E_USER;
}

static void check_after_init(bool on_worker)
{
    struct tracked items[2] = {{0}};
    struct actor *actor = actor_new(ACTS(does(use_in_step, &items[0])));
    actor->in_init = ACTS(does(keep_context, &kept));
    if (on_worker) {
        struct actor *parent = actor_start(NO_ACTS);
        actor_perform(parent, ACTS(spawns(actor)));
    } else {
        actor_submit(actor);
    }
    if (world->is_simulated) {
        world_settle();
    } else {
        actor_await_state(actor, SKUA_PROCESS_IDLE);
    }
    assert_int_equal(count_accepted(kept, &items[1], actor->pid), 0);
    assert_drops(items, COUNT_OF(items), DROPS);
    world_close();
}

TEST(context_is_refused_after_init)
{
    for (int on_worker = 0; on_worker < 2; on_worker++) {
        world_open();
        check_after_init(on_worker);
        world_open_sim(1, SIM_NO_FAULTS);
        check_after_init(on_worker);
    }
}

static skua_context *kept_by_close;

static void keep_in_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self;
    (void)exit;
    kept_by_close = ctx;
}

TEST(context_is_refused_after_the_close_of_a_failed_init)
{
    struct tracked item = {0};
    world_open();
    struct actor *actor = actor_new(NO_ACTS);
    actor->init_returns = SKUA_E_USER;
    actor->type.close = keep_in_close;
    assert_int_equal(actor_try_submit(actor), SKUA_E_USER);
    assert_int_equal(count_accepted(kept_by_close, &item, actor->pid), 0);
    assert_drops(&item, 1, DROPS);
    actor->closes = actor->inits;
}

static void check_after_the_step(void)
{
    struct tracked item = {0};
    struct actor *other = actor_start(NO_ACTS);
    struct actor *actor = actor_start(ACTS(does(keep_context, &kept)));
    if (world->is_simulated) {
        world_settle();
    } else {
        actor_await_state(actor, SKUA_PROCESS_IDLE);
        actor_await_state(other, SKUA_PROCESS_IDLE);
    }
    assert_int_equal(count_accepted(kept, &item, other->pid), 0);
    assert_drops(&item, 1, DROPS);
    assert_int_equal(world_stats().live, 2);
    world_close();
    assert_saw(other, cancel(SKUA_E_STOPPED));
    assert_saw(actor, cancel(SKUA_E_STOPPED));
}

TEST(context_is_refused_after_its_step)
{
    world_open();
    check_after_the_step();
}

TEST(context_is_refused_after_its_step_in_the_simulator)
{
    FOR_ROUNDS (seed, SEEDS) {
        world_open_sim(seed, SIM_NO_FAULTS);
        check_after_the_step();
    }
}

/* ---- in another step, where contexts are checked ---- */

static bool are_checked(void)
{
    return world_runtime()->sched.context_flags != 0;
}

struct misuse {
    struct tracked item;
    struct actor *other;
    unsigned accepted;
};

static int use_kept(struct turn *turn, const struct act *act)
{
    struct misuse *misuse = act->arg;
    misuse->accepted += count_accepted(kept, &misuse->item, misuse->other->pid);
    /* Its own works. */
    return skua_pid_equal(skua_self(turn->ctx), turn->actor->pid) ? 0 : SKUA_E_USER;
}

static void check_in_later_steps(void)
{
    struct misuse misuse = {.accepted = 0};
    misuse.other = actor_start(NO_ACTS);
    struct actor *same =
        actor_new(ACTS(does(keep_context, &kept), continues(1), does(use_kept, &misuse),
                       does(keep_context, &kept), finishes(0)));
    struct actor *another = actor_new(ACTS(does(use_kept, &misuse), finishes(0)));
    assert_result(actor_run(same), 0);
    assert_result(actor_run(another), 0);
    assert_int_equal(misuse.accepted, 0);
    assert_drops(&misuse.item, 1, 2 * DROPS);
    assert_int_equal(world_stats().live, 1);
    world_close();
    assert_saw(misuse.other, cancel(SKUA_E_STOPPED));
}

TEST(context_is_refused_in_later_steps)
{
    test_of_steps("the context of a task is good for its life");
    world_open_with((skua_runtime_config){.worker_count = 1});
    if (are_checked()) {
        check_in_later_steps();
    }
}

TEST(context_is_refused_in_later_steps_in_the_simulator)
{
    test_of_steps("the context of a task is good for its life");
    FOR_ROUNDS (seed, SEEDS) {
        world_open_sim(seed, SIM_NO_FAULTS);
        assert_true(are_checked());
        check_in_later_steps();
    }
}

/* ---- on another thread ---- */

static void use_on_this_thread(void *arg)
{
    struct misuse *misuse = arg;
    misuse->accepted += count_accepted(kept, &misuse->item, misuse->other->pid);
}

static void *run_on_thread(void *arg)
{
    use_on_this_thread(arg);
    return NULL;
}

static int use_on_a_thread(struct turn *turn, const struct act *act)
{
    pthread_t thread;
    kept = turn->ctx;
    if (pthread_create(&thread, NULL, run_on_thread, act->arg) != 0) {
        return SKUA_E_THREAD;
    }
    return pthread_join(thread, NULL) == 0 ? 0 : SKUA_E_THREAD;
}

static void check_on_another_thread(void)
{
    struct misuse misuse = {.accepted = 0};
    misuse.other = actor_start(NO_ACTS);
    struct actor *actor =
        actor_new(ACTS(does(use_on_a_thread, &misuse), continues(1), finishes(1)));
    assert_result(actor_run(actor), 1); /* and its step goes on undisturbed */
    assert_int_equal(misuse.accepted, 0);
    assert_drops(&misuse.item, 1, DROPS);
    assert_int_equal(world_stats().live, 1);
    world_close();
    assert_saw(misuse.other, cancel(SKUA_E_STOPPED));
}

TEST(context_is_refused_on_another_thread)
{
    world_open();
    if (are_checked()) {
        check_on_another_thread();
    }
}

TEST(context_is_refused_on_another_thread_in_the_simulator)
{
    world_open_sim(4, SIM_NO_FAULTS);
    check_on_another_thread();
}

/* ---- in a call that does not allow the verb ---- */

static int yield_in_vain(struct turn *turn, const struct act *act)
{
    struct tracked *item = act->arg;
    return count_yields_accepted(turn->ctx, item) == 0 ? 0 : SKUA_E_USER;
}

TEST(init_cannot_yield)
{
    struct tracked items[2] = {0};
    (void)desk_open_with((skua_runtime_config){0});
    struct actor *outside = actor_new(ACTS(finishes(0)));
    struct actor *inside = actor_new(ACTS(finishes(0)));
    outside->in_init = ACTS(does(yield_in_vain, &items[0]));
    inside->in_init = ACTS(does(yield_in_vain, &items[1]));
    assert_result(actor_run(outside), 0);
    assert_result(actor_run(actor_new(
                      ACTS(spawns(inside), sleeps(1, 0), expects(completion(1, 0)), finishes(0)))),
                  0);
    world_await_live(0);
    assert_drops(items, 2, 3);
}

/* A spawn inside of a step has its own context for a while. */
TEST(context_works_on_after_a_spawn)
{
    world_open();
    struct actor *child = actor_new(NO_ACTS);
    struct actor *unborn = actor_new(NO_ACTS);
    unborn->init_returns = SKUA_E_USER;
    struct actor *actor =
        actor_new(ACTS(sleeps(1, 0), spawns(child), sleeps(2, 0),
                       refused(spawns(unborn), SKUA_E_USER), sleeps(3, 0), awaits(3), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_saw(actor, completion(1, 0), completion(2, 0), completion(3, 0));
}

/* ---- none ---- */

TEST(context_that_is_null_is_invalid)
{
    assert_int_equal(skua_continue(NULL), SKUA_E_INVALID);
    assert_int_equal(skua_done(NULL, skua_nothing()), SKUA_E_INVALID);
    assert_int_equal(skua_yield(NULL, 1, 1, skua_nothing(), 0), SKUA_E_INVALID);
    assert_int_equal(skua_yield_cancel(NULL, 1), SKUA_E_INVALID);
    assert_int_equal(skua_spawn(NULL, &api_idler, skua_nothing(), NULL), SKUA_E_INVALID);
    assert_int_equal(skua_own_free(NULL, NULL), SKUA_E_INVALID);
    assert_int_equal(count_answers(NULL), 0);
}
