/* SPDX-License-Identifier: MIT */
/* When processes began and how long they have run, with times that the test makes up: the monitor,
 * whose times they are, sleeps meanwhile. */
#include "sched/account.h"

#include "base/monotonic.h"
#include "runtime/runtime.h"
#include "runtime_support.h"

#define BORN_UNIT (UINT64_C(1) << BORN_SHIFT)
#define RUN_UNIT  (UINT64_C(1) << RUN_SHIFT)

struct scene {
    struct api api;
    struct scheduler *sched;
    struct worker *worker;
    skua_pid pid;
    struct process *process;
    uint64_t busy; /* of the worker, before the test */
};

static bool monitor_sleeps(void *arg)
{
    struct scene *scene = arg;
    return load_seq_cst(&scene->sched->monitor.asleep) != 0;
}

/* A process at rest. */
static void begin(struct scene *scene)
{
    api_run(&scene->api, 1);
    scene->sched = &scene->api.runtime->sched;
    scene->worker = &scene->sched->workers[0];
    scene->pid = api_submit(&scene->api, &api_idler, NULL);
    scene->process = process_at(&scene->sched->table, pid_slot(scene->pid));
    api_wait_state(&scene->api, scene->pid, SKUA_PROCESS_IDLE);
    wait_until(monitor_sleeps, scene, "the monitor to sleep");
    store_relaxed(&scene->process->run, 0);
    scene->busy = load_relaxed(&scene->worker->stats.busy_ns);
}

static void end(struct scene *scene)
{
    store_relaxed(&scene->sched->monitor.looked, 0);
    api_stop(&scene->api);
}

static void set_age_of_runtime(struct scene *scene, uint64_t age)
{
    store_relaxed(&scene->sched->monitor.looked, scene->sched->created + age);
}

static uint64_t busy_since(const struct scene *scene)
{
    return load_relaxed(&scene->worker->stats.busy_ns) - scene->busy;
}

/* ---- age ---- */

TEST(account_now_is_that_of_the_monitor)
{
    struct scene scene;
    begin(&scene);
    set_age_of_runtime(&scene, 5);
    assert_int_equal(account_now(scene.sched), scene.sched->created + 5);
    end(&scene);
}

TEST(account_now_is_the_clocks_while_the_monitor_sleeps)
{
    struct scene scene;
    begin(&scene);
    const uint64_t before = monotonic_ns();
    const uint64_t now = account_now(scene.sched);
    assert_in_range(now, before, monotonic_ns());
    end(&scene);
}

TEST(account_age_is_right_to_a_unit)
{
    static const uint64_t births[] = {0, 1, BORN_UNIT - 1, BORN_UNIT, 1000 * BORN_UNIT + 7};
    struct scene scene;
    begin(&scene);
    for (size_t i = 0; i < COUNT_OF(births); i++) {
        set_age_of_runtime(&scene, births[i]);
        account_begin(scene.sched, scene.process);
        const uint64_t age = account_age(scene.sched, scene.process);
        assert_in_range(age, 0, BORN_UNIT - 1);
        set_age_of_runtime(&scene, births[i] + 12345678901);
        assert_int_equal(account_age(scene.sched, scene.process), age + 12345678901);
    }
    end(&scene);
}

/* A look of the monitor may be older than the process. */
TEST(account_age_is_never_negative)
{
    struct scene scene;
    begin(&scene);
    set_age_of_runtime(&scene, 10 * BORN_UNIT);
    account_begin(scene.sched, scene.process);
    set_age_of_runtime(&scene, 9 * BORN_UNIT);
    assert_int_equal(account_age(scene.sched, scene.process), 0);
    end(&scene);
}

/* After more than two years. */
TEST(account_birth_stays_at_its_largest_value)
{
    struct scene scene;
    begin(&scene);
    set_age_of_runtime(&scene, ((uint64_t)UINT32_MAX + 5) << BORN_SHIFT);
    account_begin(scene.sched, scene.process);
    assert_int_equal(load_relaxed(&scene.process->born), UINT32_MAX);
    assert_int_equal(account_age(scene.sched, scene.process), 5 * BORN_UNIT);
    end(&scene);
}

/* ---- run time ---- */

/* What is less than a unit waits for the next time. */
TEST(account_run_time_loses_nothing)
{
    struct scene scene;
    uint64_t rest = 0;
    uint64_t sum = 0;
    begin(&scene);
    for (uint64_t i = 0; i < 1000; i++) {
        const uint64_t span = i * 1234567 % (3 * RUN_UNIT);
        account_add(scene.sched, scene.worker, scene.pid, span, &rest);
        sum += span;
        assert_true(rest < RUN_UNIT);
        assert_int_equal(account_run(scene.process) + rest, sum);
    }
    assert_int_equal(busy_since(&scene), sum);
    end(&scene);
}

TEST(account_run_time_stays_at_its_largest_value)
{
    struct scene scene;
    uint64_t rest = 0;
    begin(&scene);
    store_relaxed(&scene.process->run, UINT32_MAX - 1);
    for (uint32_t i = 0; i < 3; i++) {
        account_add(scene.sched, scene.worker, scene.pid, 2 * RUN_UNIT, &rest);
        assert_int_equal(account_run(scene.process), (uint64_t)UINT32_MAX << RUN_SHIFT);
    }
    end(&scene);
}

/* It is the worker's all the same. */
TEST(account_run_time_of_one_that_is_gone_is_nobodys)
{
    struct scene scene;
    uint64_t rest = 0;
    begin(&scene);
    const skua_pid gone = {scene.pid.bits - (UINT64_C(1) << PID_SLOT_BITS)};
    const skua_pid never = {scene.pid.bits | ((UINT64_C(1) << PID_SLOT_BITS) - 1)};
    account_add(scene.sched, scene.worker, gone, 5 * RUN_UNIT, &rest);
    account_add(scene.sched, scene.worker, never, 5 * RUN_UNIT, &rest);
    assert_int_equal(account_run(scene.process), 0);
    assert_int_equal(busy_since(&scene), 10 * RUN_UNIT);
    end(&scene);
}

TEST(account_of_a_new_process_begins_at_zero)
{
    struct scene scene;
    uint64_t rest = 0;
    begin(&scene);
    account_add(scene.sched, scene.worker, scene.pid, 5 * RUN_UNIT, &rest);
    assert_int_equal(account_run(scene.process), 5 * RUN_UNIT);
    account_begin(scene.sched, scene.process);
    assert_int_equal(account_run(scene.process), 0);
    end(&scene);
}
