/* SPDX-License-Identifier: MIT */
/* Blocking pools: how many calls they take and run at once, who may be registered, their threads,
 * and how a runtime stops while their functions run. */
#include "blocking_support.h"
#include "crowd.h"
#include "runtime/runtime.h"
#include "stopper.h"
#include "workers.h"

#define NARROW "narrow"

static const skua_blocking_pool narrow = {.name = NARROW, .thread_limit = 1};

static void open_with(const skua_blocking_pool *pools, size_t count)
{
    world_create((skua_runtime_config){0});
    for (size_t i = 0; i < count; i++) {
        pool_register(pools[i]);
    }
    world_start();
}

static void run_simple_job(const char *pool)
{
    struct job *job = job_new((struct job){0});
    job_run(job, pool, job_end(1, job, 0));
}

/* ---- limits ---- */

#define EXCESS    3
#define CALLS_MAX 32

/* `threads` and `queue` calls are accepted and not one more; `threads` of them run. */
static void check_limits(const char *pool, uint32_t threads, uint32_t queue)
{
    const uint32_t accepted = threads + queue;
    struct job *jobs[CALLS_MAX];
    struct act acts[CALLS_MAX + 1 + EXCESS];
    for (uint32_t i = 0; i < accepted + EXCESS; i++) {
        jobs[i] = job_new((struct job){.waits = true, .gives = true});
        acts[i] = runs_job(i, pool, jobs[i]);
    }
    acts[accepted + EXCESS] = awaits(EXCESS);
    for (uint32_t i = 0; i < EXCESS; i++) {
        acts[accepted + EXCESS + 1 + i] = finds_input_dropped(jobs[accepted + i]);
    }
    struct actor *actor = actor_start(script_copy(acts, accepted + EXCESS + 1 + EXCESS));
    actor_await_seen(actor, EXCESS);
    for (uint32_t i = 0; i < threads; i++) {
        job_await_begun(jobs[i]); /* the oldest */
    }
    const struct blocking_pool_counts counts = pool_counts(pool);
    assert_int_equal(counts.threads, threads);
    assert_int_equal(counts.idle, 0);
    assert_int_equal(counts.queued, queue);
    for (uint32_t i = 0; i < accepted + EXCESS; i++) {
        job_release(jobs[i]);
    }
    actor_await_seen(actor, accepted + EXCESS);
    assert_int_equal(world_cancel(actor->pid, SKUA_E_STOPPED), 0);
    actor_await_end(actor);
    for (uint32_t i = 0; i < actor->seen_count - 1; i++) {
        const uint64_t tag = actor->seen[i].tag;
        assert_int_equal(actor->seen[i].error, i < EXCESS ? SKUA_E_POOL_FULL : 0);
        assert_int_equal(actor->seen[i].value, i < EXCESS ? 0 : jobs[tag]->result.value);
        assert_int_equal(jobs[i]->begun, i < accepted);
    }
}

TEST(pool_accepts_exactly_as_many_calls_as_its_limits_say)
{
    static const skua_blocking_pool pools[] = {
        {.name = "1+1", .thread_limit = 1, .queue_limit = 1},
        {.name = "1+7", .thread_limit = 1, .queue_limit = 7},
        {.name = "4+3", .thread_limit = 4, .queue_limit = 3},
        {.name = "1+0", .thread_limit = 1, .direct = true},
        {.name = "5+0", .thread_limit = 5, .queue_limit = 9, .direct = true},
    };
    open_with(pools, COUNT_OF(pools));
    for (int round = 0; round < 2; round++) { /* with new threads, then with idle ones */
        for (uint32_t i = 0; i < COUNT_OF(pools); i++) {
            check_limits(pools[i].name, pools[i].thread_limit,
                         pools[i].direct ? 0 : pools[i].queue_limit);
        }
    }
}

/* Memory whose release takes a thread of the pool until the next call was made. */
static struct {
    struct allocator inner;
    struct tally called;
} slow_memory;

static _Thread_local bool is_of_pool;

static int mark_thread(skua_payload *input, skua_payload *result)
{
    (void)input;
    (void)result;
    is_of_pool = true;
    return 0;
}

static void *release_slowly(void *arg, void *pointer, size_t old_size, size_t new_size,
                            size_t alignment)
{
    if (is_of_pool && new_size == 0) {
        tally_wait(&slow_memory.called, 1);
    }
    return slow_memory.inner.function(arg, pointer, old_size, new_size, alignment);
}

static int tell_call(void *arg)
{
    (void)arg;
    tally_add(&slow_memory.called, 1);
    return 0;
}

/* Who has heard of the end of a call finds its thread free, whatever that is still busy with. */
TEST(pool_without_a_queue_takes_one_call_after_the_other)
{
    world_create((skua_runtime_config){0});
    pool_register((skua_blocking_pool){.name = NARROW, .thread_limit = 1, .direct = true});
    tally_init(&slow_memory.called);
    slow_memory.inner = world_runtime()->sched.allocator;
    world_runtime()->sched.allocator.function = release_slowly;
    world_start();
    struct actor *actor = actor_new(ACTS(
        runs(1, NARROW, mark_thread, 0), expects(completion(1, 0)), runs(2, NARROW, mark_thread, 0),
        continues(1), calls(tell_call, NULL), expects(completion(2, 0)), finishes(0)));
    assert_result(actor_run(actor), 0);
}

TEST(default_pool_has_the_limits_that_were_registered_for_it)
{
    const skua_blocking_pool limits = {
        .name = SKUA_BLOCKING_DEFAULT, .thread_limit = 2, .queue_limit = 3};
    open_with(&limits, 1);
    check_limits(NULL, 2, 3);
}

#define DEFAULT_THREADS 16
#define DEFAULT_QUEUE   65536

TEST(default_pool_has_the_documented_limits)
{
    const uint64_t calls = DEFAULT_THREADS + DEFAULT_QUEUE + 2;
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct job *job = job_new((struct job){.waits = true});
    struct actor *actor = actor_start(ACTS(for_each_tag(calls, runs_job(0, NULL, job))));
    actor_await_seen(actor, 2); /* those that did not fit */
    tally_wait(&job->entered, DEFAULT_THREADS);
    assert_int_equal(pool_counts(NULL).threads, DEFAULT_THREADS);
    assert_int_equal(pool_counts(NULL).queued, DEFAULT_QUEUE);
    assert_int_equal(tally_count(&actor->arrived), 2);
    job_release(job);
    actor_await_seen(actor, calls);
    world_close();
    assert_int_equal(job->ended, DEFAULT_THREADS + DEFAULT_QUEUE);
    assert_int_equal(actor->seen_count, calls + 1);
    for (uint64_t i = 0; i < calls; i++) {
        assert_int_equal(actor->seen[i].error, i < 2 ? SKUA_E_POOL_FULL : 0);
    }
}

TEST(pools_do_not_wait_for_each_other)
{
    static const skua_blocking_pool pools[] = {
        {.name = "full", .thread_limit = 1, .queue_limit = 1},
        {.name = "other", .thread_limit = 1, .queue_limit = 1},
    };
    open_with(pools, COUNT_OF(pools));
    struct job *job = job_new((struct job){.waits = true});
    struct actor *actor = actor_start(
        ACTS(for_each_tag(3, runs_job(0, "full", job)), expects(completion(2, SKUA_E_POOL_FULL))));
    actor_await_seen(actor, 1);
    run_simple_job("other");
    run_simple_job(NULL);
    job_release(job);
}

/* ---- registering ---- */

TEST(register_refuses_what_it_cannot_keep)
{
    static const char *const names[] = {"1", "2",  "3",  "4",  "5",  "6",  "7", "8",
                                        "9", "10", "11", "12", "13", "14", "15"};
    _Static_assert(COUNT_OF(names) + 1 == SKUA_BLOCKING_POOLS_MAX, "with the default one, all");
    const skua_blocking_pool standard = {.name = SKUA_BLOCKING_DEFAULT};
    const skua_blocking_pool one_more = {.name = "16"};
    world_create((skua_runtime_config){0});
    skua_runtime *runtime = world_runtime();
    assert_int_equal(skua_blocking_register(NULL, &one_more, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_blocking_register(runtime, NULL, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_blocking_register(runtime, &(skua_blocking_pool){0}, NULL),
                     SKUA_E_INVALID);
    assert_int_equal(skua_blocking_register(runtime, &(skua_blocking_pool){.name = ""}, NULL),
                     SKUA_E_INVALID);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const skua_blocking_pool pool = {.name = names[i], .thread_limit = 1};
        assert_int_equal(skua_blocking_register(runtime, &pool, NULL), 0);
        assert_int_equal(skua_blocking_register(runtime, &pool, NULL), SKUA_E_POOL_EXISTS);
    }
    assert_int_equal(skua_blocking_register(runtime, &one_more, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_blocking_register(runtime, &standard, NULL), 0); /* it exists already */
    assert_int_equal(skua_blocking_register(runtime, &standard, NULL), SKUA_E_POOL_EXISTS);
    world_start();
    assert_int_equal(skua_blocking_register(runtime, &one_more, NULL), SKUA_E_FROZEN);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        run_simple_job(names[i]);
    }
    assert_int_equal(skua_runtime_stop(runtime, SKUA_FOREVER), 0);
    assert_int_equal(skua_blocking_register(runtime, &one_more, NULL), SKUA_E_FROZEN);
}

TEST(pools_of_a_runtime_that_never_starts_are_released)
{
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    assert_int_equal(skua_blocking_register(api.runtime, &narrow, NULL), 0);
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
    assert_true(counting_allocator_is_clean(&api.memory));
}

/* ---- threads ---- */

static bool has_no_thread(void *arg)
{
    return pool_counts(arg).threads == 0;
}

TEST(threads_without_work_end_and_come_again)
{
    static char name[] = "brief";
    (void)os_wait_alone();
    open_with(&(skua_blocking_pool){.name = name, .idle_ns = SKUA_MILLISECOND}, 1);
    const uint32_t threads = os_thread_count();
    for (int i = 0; i < 5; i++) {
        run_simple_job(name);
        wait_until(has_no_thread, name, "the pool's thread to end");
        os_wait_threads(threads);
    }
}

TEST(threads_that_are_idle_do_not_hold_up_the_stop)
{
    const uint32_t threads = os_wait_alone();
    world_create((skua_runtime_config){.worker_count = 1});
    pool_register((skua_blocking_pool){.name = "lasting", .idle_ns = SKUA_FOREVER});
    world_start();
    run_simple_job(NULL);
    run_simple_job("lasting");
    assert_int_equal(os_thread_count(), threads + 1 + 1 + 2); /* worker, monitor, pools */
    world_close();
    assert_int_equal(os_wait_alone(), threads);
}

/* ---- many ---- */

#define THREADS   4
#define PROCESSES 100
#define BATCH     10
#define ROUNDS    10

static struct meter *meter; /* of the functions that run */

static int double_and_measure(skua_payload *input, skua_payload *result)
{
    meter_enter(meter);
    *result = skua_payload_u64(0, 2 * skua_payload_to_u64(input));
    meter_leave(meter);
    return 0;
}

/* Ten calls at a time, ten times. */
static struct script customer_script(const char *pool)
{
    struct act acts[ROUNDS * (BATCH + 1) + 1];
    size_t count = 0;
    for (uint64_t tag = 0; tag < BATCH * ROUNDS; tag++) {
        acts[count++] = runs(tag, pool, double_and_measure, tag);
        if (tag % BATCH == BATCH - 1) {
            acts[count++] = awaits(BATCH);
        }
    }
    acts[count++] = finishes(0);
    return script_copy(acts, count);
}

TEST(pool_of_four_serves_ten_thousand_calls_four_at_a_time)
{
    open_with(&(skua_blocking_pool){.name = "four", .thread_limit = THREADS}, 1);
    const struct crowd customers = crowd_new(PROCESSES, customer_script("four"));
    meter = test_alloc(sizeof *meter);
    crowd_submit(customers);
    world_await_live(0);
    world_close();
    assert_int_equal(meter->inside, 0);
    assert_int_equal(meter->entries, PROCESSES * BATCH * ROUNDS);
    assert_in_range(meter->most, 1, THREADS);
    for (size_t i = 0; i < PROCESSES; i++) {
        const struct actor *customer = customers.actors[i];
        assert_completed_each_once(customer, BATCH * ROUNDS, 0);
        for (size_t k = 0; k < BATCH * ROUNDS; k++) {
            assert_int_equal(customer->seen[k].value, 2 * customer->seen[k].tag);
        }
    }
}

/* ---- stopping ---- */

/* One call that runs and some that wait behind it, of processes that end when they are asked to. */
struct busy_pool {
    struct job *jobs[4];
    struct actor *actors[4];
};

static struct busy_pool open_busy_pool(void)
{
    struct busy_pool busy;
    open_with(&narrow, 1);
    for (size_t i = 0; i < COUNT_OF(busy.jobs); i++) {
        busy.jobs[i] = job_new((struct job){.waits = true, .gives = true});
        busy.actors[i] = actor_start(ACTS(runs_job(1, NARROW, busy.jobs[i])));
        actor_await_state(busy.actors[i], SKUA_PROCESS_BLOCKED);
    }
    job_await_begun(busy.jobs[0]);
    return busy;
}

/* After the stop: only the first has run, and nobody has heard of it. */
static void assert_stopped(const struct busy_pool *busy)
{
    for (size_t i = 0; i < COUNT_OF(busy->jobs); i++) {
        assert_int_equal(busy->jobs[i]->ended, i == 0);
        assert_int_equal(busy->jobs[i]->input_drops, 1);
        if (busy->actors[i]->seen_count > 0) { /* if not, the time was up */
            assert_saw(busy->actors[i], cancel(SKUA_E_STOPPED));
        }
    }
    world_close();
}

TEST(function_that_does_not_return_makes_the_stop_stuck)
{
    const uint32_t threads = os_wait_alone();
    const struct busy_pool busy = open_busy_pool();
    skua_runtime *runtime = world_runtime();
    assert_int_equal(skua_runtime_stop(runtime, 50 * SKUA_MILLISECOND), SKUA_E_STUCK);
    assert_int_equal(skua_runtime_destroy(runtime), SKUA_E_BUSY);
    assert_int_equal(skua_runtime_stop(runtime, 0), SKUA_E_STUCK);
    assert_int_equal(skua_runtime_destroy(runtime), SKUA_E_BUSY);
    assert_int_equal(busy.jobs[0]->ended, 0);
    assert_int_equal(skua_runtime_start(runtime), SKUA_E_STOPPED);
    job_release(busy.jobs[0]);
    const int stopped = skua_runtime_stop(runtime, SKUA_FOREVER);
    /* A slow machine may not have ended the processes the first time. */
    assert_true(stopped == 0 || stopped == SKUA_E_TIMEOUT);
    assert_int_equal(os_wait_alone(), threads);
    assert_stopped(&busy);
}

TEST(function_is_waited_for_by_every_stop)
{
    FOR_ROUNDS (stops, 3) {
        const struct busy_pool busy = open_busy_pool();
        struct stopper *stoppers[3];
        for (size_t i = 0; i < stops; i++) {
            stoppers[i] = stopper_start(SKUA_FOREVER);
        }
        world_await_live(0);
        assert_int_equal(busy.jobs[0]->ended, 0);
        job_release(busy.jobs[0]);
        for (size_t i = 0; i < stops; i++) {
            assert_int_equal(stopper_join(stoppers[i]), 0);
        }
        assert_stopped(&busy);
    }
}
