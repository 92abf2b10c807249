/* SPDX-License-Identifier: MIT */
/* How long processes have run, by samples that the test makes up: the monitor, whose samples they
 * are, sleeps meanwhile. */
#include "watch/run_time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/runtime.h"
#include "runtime_support.h"

#define RUN_UNIT (UINT64_C(1) << RUN_SHIFT)

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
    return load_seq_cst(&scene->sched->monitor_asleep) != 0;
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
    api_stop(&scene->api);
}

static uint64_t busy_since(const struct scene *scene)
{
    return load_relaxed(&scene->worker->stats.busy_ns) - scene->busy;
}

/* What is less than a unit waits for the next time. */
static void run_time_loses_nothing(void **state)
{
    (void)state;
    struct scene scene;
    uint64_t rest = 0;
    uint64_t sum = 0;
    begin(&scene);
    for (uint64_t i = 0; i < 1000; i++) {
        const uint64_t span = i * 1234567 % (3 * RUN_UNIT);
        run_time_add(scene.sched, scene.worker, scene.pid, span, &rest);
        sum += span;
        assert_true(rest < RUN_UNIT);
        assert_int_equal(account_run(scene.process) + rest, sum);
    }
    assert_int_equal(busy_since(&scene), sum);
    end(&scene);
}

static void run_time_stays_at_its_largest_value(void **state)
{
    (void)state;
    struct scene scene;
    uint64_t rest = 0;
    begin(&scene);
    store_relaxed(&scene.process->run, UINT32_MAX - 1);
    for (uint32_t i = 0; i < 3; i++) {
        run_time_add(scene.sched, scene.worker, scene.pid, 2 * RUN_UNIT, &rest);
        assert_int_equal(account_run(scene.process), (uint64_t)UINT32_MAX << RUN_SHIFT);
    }
    end(&scene);
}

/* It is the worker's all the same. */
static void run_time_of_one_that_is_gone_is_nobodys(void **state)
{
    (void)state;
    struct scene scene;
    uint64_t rest = 0;
    begin(&scene);
    const skua_pid gone = {scene.pid.bits - (UINT64_C(1) << PID_SLOT_BITS)};
    const skua_pid never = {scene.pid.bits | ((UINT64_C(1) << PID_SLOT_BITS) - 1)};
    run_time_add(scene.sched, scene.worker, gone, 5 * RUN_UNIT, &rest);
    run_time_add(scene.sched, scene.worker, never, 5 * RUN_UNIT, &rest);
    assert_int_equal(account_run(scene.process), 0);
    assert_int_equal(busy_since(&scene), 10 * RUN_UNIT);
    end(&scene);
}

int main(void)
{
    watchdog_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_time_loses_nothing),
        cmocka_unit_test(run_time_stays_at_its_largest_value),
        cmocka_unit_test(run_time_of_one_that_is_gone_is_nobodys),
    };
    return cmocka_run_group_tests_name("run_time", tests, NULL, NULL);
}
