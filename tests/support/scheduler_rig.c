/* SPDX-License-Identifier: MIT */
#include "scheduler_rig.h"

#include "runtime/runtime.h"
#include "sched/deliver.h"
#include "sched/shutdown.h"
#include "sched/spawn.h"
#include "sched/worker.h"

#define PIDS_MAX 2048

struct scheduler_rig rig;

static uint64_t read_clock(struct time_source *source)
{
    (void)source;
    return rig.now;
}

static int rest(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    return 0;
}

const skua_process_type rig_resting = {.name = "resting", .step = rest};

static int stay_pending(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return SKUA_PENDING;
}

static void close_rig(void)
{
    for (uint32_t i = 0; i < rig.pid_count; i++) {
        rig_kill(rig.pids[i]);
    }
    rig_run_all();
    worker_set_current(NULL);
    registry_deinit(&rig.registry);
    scheduler_deinit(&rig.sched);
}

void scheduler_rig_open(void)
{
    memory_open();
    rig = (struct scheduler_rig){.time.now = read_clock,
                                 .now = SCHEDULER_RIG_BEGIN,
                                 .pids = test_alloc(PIDS_MAX * sizeof(skua_pid))};
    const skua_runtime_config wish = {.worker_count = SCHEDULER_RIG_WORKERS,
                                      .spare_limit = 1,
                                      .alloc = counting_allocate,
                                      .alloc_arg = &memory};
    const skua_handler handler = {.name = "pending", .run = stay_pending};
    skua_runtime_config config;
    assert_int_equal(config_resolve(&wish, &config), 0);
    assert_int_equal(
        scheduler_init(&rig.sched, &config, 1, &rig.registry, &rig.time, &rig.poller, &rig.monitor),
        0);
    registry_init(&rig.registry, &rig.sched.allocator);
    assert_int_equal(registry_add_locked(&rig.registry, RIG_PENDING, &handler), 0);
    store_seq_cst(&rig.sched.threads, SCHEDULER_RIG_WORKERS);
    shutdown_open_locked(&rig.sched);
    worker_set_current(worker(0)); /* contexts that are checked want it */
    test_at_end(close_rig);
}

struct worker *worker(uint32_t index)
{
    return &rig.sched.workers[index];
}

struct process *rig_spawn(struct worker *by, const skua_process_type *type)
{
    struct process *process = NULL;
    assert_in_range(rig.pid_count, 0, PIDS_MAX - 1);
    skua_pid *pid = &rig.pids[rig.pid_count++];
    const struct spawn_request request = {.type = type, .pid = pid};
    assert_int_equal(spawn_process(&rig.sched, by, &request), 0);
    assert_int_equal(process_table_find(&rig.sched.table, *pid, &process), 0);
    return process;
}

struct process *rig_spawn_taken(const skua_process_type *type)
{
    struct process *process = rig_spawn(worker(0), type);
    assert_ptr_equal(exchange_acq_rel(&worker(0)->next, NULL), process);
    return process;
}

skua_pid rig_pid(struct process *process)
{
    return process_table_pid(&rig.sched.table, process, state_generation(state_peek(process)));
}

void rig_send(struct process *to)
{
    skua_payload payload = skua_payload_empty(0);
    assert_int_equal(deliver_message(&rig.sched, worker(0), (skua_pid){0}, rig_pid(to), &payload),
                     0);
}

void rig_kill(skua_pid pid)
{
    (void)deliver_request(&rig.sched, worker(0), pid, STATE_KILL);
}

void rig_run_all(void)
{
    struct process *process;
    while ((process = find_work(worker(0))) != NULL) {
        step_run(worker(0), process);
    }
    store_seq_cst(&worker(0)->running, RUNNING_NOTHING);
}
