/* SPDX-License-Identifier: MIT */
/* Blocking calls, one at a time: what comes back, what becomes of those that nobody waits for any
 * more, what is refused, and what the function may do. */
#include "blocking_support.h"
#include "stopper.h"

#define NARROW "narrow" /* a pool of one thread */

static const skua_blocking_pool narrow = {.name = NARROW, .thread_limit = 1};

static void open_with(skua_blocking_pool pool)
{
    world_create((skua_runtime_config){0});
    pool_register(pool);
    world_start();
}

/* ---- what comes back ---- */

TEST(call_completes_with_what_its_function_returns)
{
    static const struct {
        int returned;
        int expected;
    } rows[] = {
        {0, 0},
        {SKUA_E_TIMEOUT, SKUA_E_TIMEOUT},
        {SKUA_E_USER - 7, SKUA_E_USER - 7},
        {INT32_MIN, INT32_MIN},
        {1, SKUA_E_INVALID},
        {INT32_MAX, SKUA_E_INVALID},
    };
    world_open();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (unsigned kind = 0; kind < 4; kind++) {
            struct job *job = job_new((struct job){
                .returns = rows[i].returned, .gives = (kind & 1) != 0, .takes = (kind & 2) != 0});
            job_run(job, NULL, job_end(i, job, rows[i].expected));
        }
    }
}

TEST(call_runs_on_a_thread_with_the_name_of_its_pool)
{
    static const struct {
        const char *pool;
        const char *thread;
    } rows[] = {
        {NULL, "skua-default"},
        {SKUA_BLOCKING_DEFAULT, "skua-default"},
        {"disk", "skua-disk"},
        {"a name of some length", "skua-a name of "},
    };
    world_create((skua_runtime_config){0});
    pool_register((skua_blocking_pool){.name = rows[2].pool});
    pool_register((skua_blocking_pool){.name = rows[3].pool});
    world_start();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct job *job = job_new((struct job){0});
        job_run(job, rows[i].pool, job_end(1, job, 0));
        assert_string_equal(job->thread, rows[i].thread);
    }
}

TEST(pool_of_an_unknown_name_is_not_found)
{
    static const char *const unknown[] = {"", "disc", "disk ", "defaul", "default2"};
    open_with((skua_blocking_pool){.name = "disk"});
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        skua_pool pool = {0};
        assert_int_equal(skua_blocking_find(world_runtime(), unknown[i], &pool),
                         SKUA_E_UNKNOWN_POOL);
    }
}

/* The yield itself says so, and takes the input. */
TEST(call_on_an_unknown_pool_is_refused)
{
    open_with((skua_blocking_pool){.name = "disk"});
    struct job *job = job_new((struct job){.gives = true});
    struct actor *actor = actor_new(ACTS(refused(runs_job(1, "disc", job), SKUA_E_UNKNOWN_POOL),
                                         finds_input_dropped(job), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_int_equal(job->begun, 0);
    assert_saw_nothing(actor);
}

/* ---- calls that nobody waits for any more ---- */

/* Two calls on a pool of one thread: the first runs, the second has to wait. */
struct pair {
    struct job *running;
    struct job *queued;
};

static struct pair pair_new(void)
{
    return (struct pair){.running = job_new((struct job){.waits = true, .gives = true}),
                         .queued = job_new((struct job){.gives = true})};
}

/* A function that runs goes on to its end and its result is dropped; the other never begins. */
static void assert_abandoned(struct pair pair)
{
    assert_int_equal(pair.running->ended, 0);
    job_release(pair.running);
    struct job *after = job_new((struct job){0});
    job_run(after, NARROW, job_end(9, after, 0)); /* behind both */
    assert_int_equal(pair.running->ended, 1);
    assert_int_equal(pair.queued->begun, 0);
    assert_int_equal(world_stats().late_completions, 1);
    world_close();
}

TEST(call_taken_back_ends_at_once_and_its_result_is_dropped)
{
    const struct pair pair = pair_new();
    open_with(narrow);
    struct actor *actor =
        actor_start(ACTS(runs_job(1, NARROW, pair.running), runs_job(2, NARROW, pair.queued)));
    job_await_begun(pair.running);
    actor_perform(actor, ACTS(cancels(1), cancels(2), awaits(2)));
    assert_abandoned(pair);
    assert_saw(actor, failure(1, SKUA_E_CANCELLED), failure(2, SKUA_E_CANCELLED),
               cancel(SKUA_E_STOPPED));
}

TEST(call_past_its_deadline_ends_at_once_and_its_result_is_dropped)
{
    const struct pair pair = pair_new();
    world_create_virtual((skua_runtime_config){0});
    pool_register(narrow);
    world_start();
    struct actor *actor =
        actor_start(ACTS(until(WORLD_START + SKUA_SECOND, runs_job(1, NARROW, pair.running)),
                         until(WORLD_START + 3 * SKUA_SECOND, runs_job(2, NARROW, pair.queued))));
    job_await_begun(pair.running);
    world_settle();
    assert_saw_nothing(actor);
    world_advance(2 * SKUA_SECOND);
    assert_saw(actor, failure(1, SKUA_E_TIMEOUT));
    world_advance(2 * SKUA_SECOND);
    assert_abandoned(pair);
    assert_saw(actor, failure(1, SKUA_E_TIMEOUT), failure(2, SKUA_E_TIMEOUT),
               cancel(SKUA_E_STOPPED));
}

TEST(call_of_a_process_that_is_ended_is_dropped_or_its_result_is)
{
    const struct pair pair = pair_new();
    open_with(narrow);
    struct actor *actor =
        actor_start(ACTS(runs_job(1, NARROW, pair.running), runs_job(2, NARROW, pair.queued)));
    job_await_begun(pair.running);
    actor_await_state(actor, SKUA_PROCESS_BLOCKED);
    assert_int_equal(world_terminate(actor->pid), 0);
    actor_await_end(actor);
    assert_abandoned(pair);
    assert_saw_nothing(actor);
}

TEST(call_that_waits_at_its_deadline_leaves_the_one_before_it_alone)
{
    const struct pair pair = pair_new();
    world_create_virtual((skua_runtime_config){0});
    pool_register(narrow);
    world_start();
    struct actor *actor =
        actor_start(ACTS(runs_job(1, NARROW, pair.running),
                         until(WORLD_START + SKUA_SECOND, runs_job(2, NARROW, pair.queued))));
    job_await_begun(pair.running);
    world_settle();
    world_advance(2 * SKUA_SECOND);
    job_release(pair.running);
    actor_await_seen(actor, 2);
    struct job *after = job_new((struct job){0});
    job_run(after, NARROW, job_end(9, after, 0));
    assert_int_equal(pair.queued->begun, 0);
    world_close();
    assert_saw(actor, failure(2, SKUA_E_TIMEOUT), job_end(1, pair.running, 0),
               cancel(SKUA_E_STOPPED));
}

/* Whether its function has begun by then depends on how busy the threads are. */
TEST(call_that_is_given_no_time_times_out)
{
    const struct pair pair = pair_new();
    open_with(narrow);
    struct actor *actor = actor_new(ACTS(within(0, runs_job(1, NARROW, pair.running)),
                                         expects(failure(1, SKUA_E_TIMEOUT)), finishes(0)));
    assert_result(actor_run(actor), 0);
    job_release(pair.running);
    struct job *after = job_new((struct job){0});
    job_run(after, NARROW, job_end(9, after, 0)); /* behind it */
    assert_int_equal(pair.running->ended, pair.running->begun);
}

TEST(call_of_a_failing_step_is_dropped)
{
    open_with(narrow);
    struct job *job = job_new((struct job){.gives = true});
    assert_failed(actor_run(actor_new(ACTS(runs_job(1, NARROW, job), fails(SKUA_E_USER)))),
                  SKUA_E_USER);
    struct job *after = job_new((struct job){0});
    job_run(after, NARROW, job_end(1, after, 0)); /* behind the other, if there were one */
    assert_int_equal(job->begun, 0);
}

/* ---- calls of a step that is done ---- */

/* A pool that is busy, and the process whose call it is busy with. */
static struct job *open_busy(void)
{
    struct job *busy = job_new((struct job){.waits = true});
    open_with(narrow);
    struct actor *actor = actor_start(ACTS(runs_job(1, NARROW, busy)));
    job_await_begun(busy);
    actor_await_state(actor, SKUA_PROCESS_BLOCKED);
    return busy;
}

/* Its process is gone before a thread gets to it, and its result is dropped. */
TEST(call_of_a_last_step_is_carried_out_unheard)
{
    struct job *busy = open_busy();
    struct job *job = job_new((struct job){.gives = true});
    struct job *in_time = job_new((struct job){.gives = true, .takes = true});
    struct actor *actor =
        actor_new(ACTS(runs_job(1, NARROW, job),
                       within(SKUA_DURATION_MAX, runs_job(2, NARROW, in_time)), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_int_equal(job->begun, 0);
    job_release(busy);
    struct job *after = job_new((struct job){0});
    job_run(after, NARROW, job_end(1, after, 0)); /* behind both */
    assert_int_equal(job->ended, 1);
    assert_int_equal(in_time->ended, 1);
    assert_saw_nothing(actor);
}

/* The stop waits for it, as for one that runs. */
TEST(call_of_a_last_step_is_carried_out_during_a_stop)
{
    struct job *busy = open_busy();
    struct job *last = job_new((struct job){.gives = true});
    struct job *taken_back = job_new((struct job){0});
    struct actor *waiting = actor_start(ACTS(runs_job(1, NARROW, taken_back)));
    actor_await_state(waiting, SKUA_PROCESS_BLOCKED);
    assert_result(actor_run(actor_new(ACTS(runs_job(1, NARROW, last), finishes(0)))), 0);
    struct stopper *stopper = stopper_begin(SKUA_FOREVER);
    world_await_live(0);
    assert_int_equal(last->begun, 0);
    job_release(busy);
    assert_int_equal(stopper_join(stopper), 0);
    assert_int_equal(last->ended, 1);
    assert_int_equal(taken_back->begun, 0);
}

/* However it ends, once its step has said so. */
TEST(call_of_a_last_step_is_carried_out_even_if_the_process_is_terminated)
{
    struct job *busy = open_busy();
    struct job *last = job_new((struct job){.gives = true});
    struct actor *actor = actor_start(ACTS(runs_job(1, NARROW, last), holds(), finishes(0)));
    actor_await_held(actor, 1);
    assert_int_equal(world_terminate(actor->pid), 0);
    actor_let_go(actor);
    actor_await_end(actor);
    assert_int_equal(actor->exit_error, SKUA_E_TERMINATED);
    job_release(busy);
    world_close();
    assert_int_equal(last->ended, 1);
}

/* Calls of earlier steps end with their process, as at any other end. */
TEST(call_of_an_earlier_step_is_dropped_when_the_process_is_done)
{
    struct job *busy = open_busy();
    struct job *job = job_new((struct job){.gives = true});
    assert_result(actor_run(actor_new(ACTS(runs_job(1, NARROW, job), continues(1), finishes(0)))),
                  0);
    job_release(busy);
    struct job *after = job_new((struct job){0});
    job_run(after, NARROW, job_end(1, after, 0));
    assert_int_equal(job->begun, 0);
}

TEST(call_of_a_last_step_is_carried_out_in_a_simulation)
{
    FOR_ROUNDS (seed, 20) {
        struct job *job = job_new((struct job){.gives = true});
        world_create_sim(seed, (skua_sim_config){.faults.slow_completion = seed % 2 * 1000000});
        pool_register((skua_blocking_pool){.name = NARROW, .sim_safe = true});
        world_start();
        assert_result(actor_run(actor_new(ACTS(runs_job(1, NARROW, job), finishes(0)))), 0);
        world_close(); /* also what is put off beyond that */
        assert_int_equal(job->ended, 1);
    }
}

/* ---- bad input ---- */

#define PAYLOAD_LIMIT 100

struct misuse {
    struct tracked items[6];
    skua_context *kept;
};

static int unused(skua_payload *input, skua_payload *result)
{
    (void)input;
    (void)result;
    return SKUA_E_USER;
}

static int call_wrongly(struct turn *turn, const struct act *act)
{
    struct misuse *misuse = act->arg;
    skua_payload large = tracked_payload(0, &misuse->items[2]);
    large.as.owned.size = PAYLOAD_LIMIT + 1;
    const int errors[] = {
        skua_yield_blocking(NULL, 0, (skua_pool){0}, unused, tracked_payload(0, &misuse->items[0]),
                            SKUA_FOREVER),
        skua_yield_blocking(turn->ctx, 0, (skua_pool){0}, NULL,
                            tracked_payload(0, &misuse->items[1]), SKUA_FOREVER),
        skua_yield_blocking(turn->ctx, 0, (skua_pool){0}, unused, large, SKUA_FOREVER),
        skua_yield_blocking(turn->ctx, 0, (skua_pool){0}, unused,
                            tracked_payload(0, &misuse->items[3]), SKUA_DURATION_MAX + 1),
        skua_yield_blocking(turn->ctx, 0, (skua_pool){UINT32_MAX}, unused,
                            tracked_payload(0, &misuse->items[4]), SKUA_FOREVER),
    };
    static const int expected[] = {SKUA_E_INVALID, SKUA_E_INVALID, SKUA_E_PAYLOAD_SIZE,
                                   SKUA_E_DURATION, SKUA_E_UNKNOWN_POOL};
    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        if (errors[i] != expected[i]) {
            actor_surprise(turn->actor, "call %zu: %s", i, skua_error_name(errors[i]));
        }
    }
    misuse->kept = turn->ctx;
    return 0;
}

TEST(call_with_bad_arguments_is_refused_and_takes_its_input)
{
    struct misuse *misuse = test_alloc(sizeof *misuse);
    world_open_with((skua_runtime_config){.payload_limit = PAYLOAD_LIMIT});
    struct actor *actor = actor_new(ACTS(does(call_wrongly, misuse), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_int_equal(skua_yield_blocking(misuse->kept, 0, (skua_pool){0}, unused,
                                         tracked_payload(0, &misuse->items[5]), SKUA_FOREVER),
                     SKUA_E_CONTEXT); /* the step is over */
    assert_drops(misuse->items, COUNT_OF(misuse->items), 1);
    assert_saw_nothing(actor);
}

/* ---- what a function may do ---- */

struct helper {
    struct actor *listener;
    struct actor *started;
    int errors[5];
};

static int use_runtime(skua_payload *input, skua_payload *result)
{
    struct helper *helper = (struct helper *)(uintptr_t)skua_payload_to_u64(input);
    skua_runtime *runtime = world_runtime();
    (void)result;
    helper->errors[0] = world_send(helper->listener->pid, skua_payload_u64(1, 2));
    helper->errors[1] = actor_try_submit(helper->started);
    helper->errors[2] = skua_process_wait(runtime, helper->listener->pid, 0, NULL);
    helper->errors[3] = skua_runtime_stop(runtime, SKUA_FOREVER);
    helper->errors[4] = skua_runtime_destroy(runtime);
    return 0;
}

TEST(function_may_call_the_runtime_but_not_stop_it)
{
    static const int expected[] = {0, 0, SKUA_E_TIMEOUT, SKUA_E_INSIDE_STEP, SKUA_E_BUSY};
    world_open();
    struct helper helper = {.listener = actor_start(NO_ACTS),
                            .started = actor_new(ACTS(finishes(0)))};
    struct actor *actor = actor_new(ACTS(runs(1, NULL, use_runtime, (uintptr_t)&helper),
                                         expects(completion_of(1, 0, 0)), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_memory_equal(helper.errors, expected, sizeof expected);
    actor_await_end(helper.started);
    actor_await_seen(helper.listener, 1);
    assert_saw(helper.listener, message(1, 2));
}

/* ---- memory ---- */

/* A call for which the n-th allocation fails. */
struct shortage {
    uint64_t n;
    struct act call;
    int error;
};

static int call_in_shortage(struct turn *turn, const struct act *act)
{
    struct shortage *shortage = act->arg;
    counting_allocator_fail_once(&world->api->memory, shortage->n);
    shortage->error = perform(turn, shortage->call);
    return 0;
}

/* Until the call has ended, unless it was refused in the step. */
static int await_end_of_shortage(struct turn *turn, const struct act *act)
{
    const struct shortage *shortage = act->arg;
    if (shortage->error == 0 && turn->actor->seen_count == 0) {
        return ACT_WAITS;
    }
    counting_allocator_fail_never(&world->api->memory);
    turn->actor->read = turn->actor->seen_count;
    return 0;
}

enum outcome { REFUSED_IN_STEP, REFUSED_LATER, NOT_REFUSED };

static enum outcome call_with_failure(uint64_t n)
{
    struct job *job = job_new((struct job){0});
    struct job *after = job_new((struct job){0});
    struct shortage shortage = {.n = n, .call = runs_job(1, NULL, job)};
    world_open_with((skua_runtime_config){.worker_count = 1});
    struct actor *actor =
        actor_new(ACTS(does(call_in_shortage, &shortage), does(await_end_of_shortage, &shortage),
                       runs_job(2, NULL, after), expects(completion(2, 0)), finishes(0)));
    assert_result(actor_run(actor), 0);
    world_close();
    assert_int_equal(after->begun, 1);
    if (shortage.error != 0) {
        assert_int_equal(shortage.error, SKUA_E_NO_MEMORY);
        assert_saw(actor, completion(2, 0));
        assert_int_equal(job->begun, 0);
        return REFUSED_IN_STEP;
    }
    const bool refused = actor->seen[0].error != 0;
    assert_saw(actor, completion(1, refused ? SKUA_E_NO_MEMORY : 0), completion(2, 0));
    assert_int_equal(job->begun, !refused);
    return refused ? REFUSED_LATER : NOT_REFUSED;
}

TEST(failure_of_any_allocation_is_reported_and_harmless)
{
    unsigned outcomes[3] = {0};
    for (uint64_t n = 1; outcomes[NOT_REFUSED] == 0; n++) {
        outcomes[call_with_failure(n)]++;
    }
    assert_true(outcomes[REFUSED_IN_STEP] >= 1);  /* the call; its worker has event nodes */
    assert_int_equal(outcomes[REFUSED_LATER], 1); /* the thread */
}
