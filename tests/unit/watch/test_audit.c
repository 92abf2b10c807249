/* SPDX-License-Identifier: MIT */
/* Audits: a scheduler without threads that is in order passes, and each fault that is planted in it
 * is found and named. */
#include "watch/audit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "aborts.h"
#include "base/mutex.h"
#include "counting_allocator.h"
#include "dispatch/call.h"
#include "runtime/runtime.h"
#include "sched/deliver.h"
#include "sched/monitor.h"
#include "sched/poll.h"
#include "sched/shutdown.h"
#include "sched/spawn.h"
#include "sched/worker.h"

#define WORKERS   2
#define PENDING   1
#define BEGINNING UINT64_C(1000000000)
#define DEADLINE  (2 * BEGINNING)

/* Moments after which even a limited audit has been made. */
#define MOMENTS 64

/* One process for each way in which one can be somewhere. */
enum who {
    IDLE,
    CALLING, /* Blocked, with a call that has no deadline */
    TIMED,   /* Blocked, with one that has */
    IN_GLOBAL,
    IN_DEQUE, /* with a message */
    IN_NEXT,  /* with another one */
    WHO_COUNT,
};

static struct {
    struct counting_allocator memory;
    struct scheduler sched;
    struct registry registry;
    struct time_source time;
    struct poller poller;
    struct monitor monitor;
    uint64_t now;
    skua_pid pids[WHO_COUNT];
    struct process *processes[WHO_COUNT];
} rig;

/* ---- the scheduler ---- */

static uint64_t read_clock(struct time_source *source)
{
    (void)source;
    return rig.now;
}

static int stay_pending(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return SKUA_PENDING;
}

static int rest(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    (void)out;
    return 0;
}

static int call(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    return skua_step_yield(out, PENDING, 0, skua_payload_empty(0));
}

static int call_until(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    const int error = call(self, ctx, events, count, out);
    return error != 0 ? error : skua_step_deadline(out, DEADLINE);
}

static const skua_process_type resting = {.name = "resting", .step = rest};
static const skua_process_type calling = {.name = "calling", .step = call};
static const skua_process_type timed = {.name = "timed", .step = call_until};

static struct worker *worker(uint32_t index)
{
    return &rig.sched.workers[index];
}

static void spawn(enum who who, struct worker *by, const skua_process_type *type)
{
    const struct spawn_request request = {.type = type, .pid = &rig.pids[who]};
    assert_int_equal(spawn_process(&rig.sched, by, &request), 0);
    assert_int_equal(process_table_find(&rig.sched.table, rig.pids[who], &rig.processes[who]), 0);
}

static void run_all(void)
{
    struct process *process;
    while ((process = find_work(worker(0))) != NULL) {
        step_run(worker(0), process);
    }
    store_seq_cst(&worker(0)->running, RUNNING_NOTHING);
}

static void send(enum who to)
{
    skua_payload payload = skua_payload_empty(0);
    assert_int_equal(deliver_message(&rig.sched, worker(0), (skua_pid){0}, rig.pids[to], &payload),
                     0);
}

/* Three processes rest. */
static int set_up(void **state)
{
    (void)state;
    skua_runtime_config config;
    counting_allocator_init(&rig.memory);
    const skua_runtime_config wish = {
        .worker_count = WORKERS, .alloc = counting_allocate, .alloc_arg = &rig.memory};
    assert_int_equal(config_resolve(&wish, &config), 0);
    rig.sched = (struct scheduler){0};
    rig.registry = (struct registry){0};
    rig.time.now = read_clock;
    rig.now = BEGINNING;
    assert_int_equal(
        scheduler_init(&rig.sched, &config, 1, &rig.registry, &rig.time, &rig.poller, &rig.monitor),
        0);
    registry_init(&rig.registry, &rig.sched.allocator);
    const skua_handler handler = {.name = "pending", .run = stay_pending};
    assert_int_equal(registry_add_locked(&rig.registry, PENDING, &handler), 0);
    store_seq_cst(&rig.sched.threads, WORKERS);
    shutdown_open_locked(&rig.sched);
    spawn(IDLE, worker(0), &resting);
    spawn(CALLING, worker(0), &calling);
    spawn(TIMED, worker(0), &timed);
    run_all();
    return 0;
}

/* And three more are Ready. */
static int set_up_busy(void **state)
{
    set_up(state);
    spawn(IN_GLOBAL, NULL, &resting);
    spawn(IN_NEXT, worker(0), &resting);
    spawn(IN_DEQUE, worker(0), &resting);
    send(IN_DEQUE);
    send(IN_NEXT);
    return 0;
}

/* All that was spawned ends; which passes the last audit, of scheduler_deinit. */
static int tear_down(void **state)
{
    (void)state;
    for (int who = 0; who < WHO_COUNT; who++) {
        (void)deliver_request(&rig.sched, worker(0), rig.pids[who], STATE_KILL);
    }
    run_all();
    registry_deinit(&rig.registry);
    scheduler_deinit(&rig.sched);
    rig.pids[IN_GLOBAL] = rig.pids[IN_DEQUE] = rig.pids[IN_NEXT] = (skua_pid){0};
    return counting_allocator_is_clean(&rig.memory) ? 0 : -1;
}

/* ---- faults ---- */

struct fault {
    void (*plant)(void);
    const char *finding; /* some of the message; %u is the slot of `who` */
    enum who who;
    struct audit_moment moment;
};

/* Whether the audit finds the fault that the function plants. */
static bool is_found(void (*function)(void *arg), const struct fault *fault)
{
    char finding[128];
    (void)snprintf(finding, sizeof finding, fault->finding, rig.processes[fault->who]->slot);
    return aborts_saying(function, (void *)fault, finding);
}

static uint32_t take_node(void)
{
    uint32_t index = OBJECT_NONE;
    assert_true(deliver_acquire_node(&rig.sched, worker(0), &index));
    return index;
}

static void give_node(uint32_t index)
{
    object_release_owner(&rig.sched.events, rig.sched.events.shape.layout,
                         &worker(1)->caches.events, index);
}

static uint32_t message_of(enum who who)
{
    return event_list_first(load_relaxed(&rig.processes[who]->word));
}

static struct event_node *node_at(uint32_t index)
{
    return event_at(&rig.sched.events, index);
}

static void nothing(void) {}

static void double_token(void)
{
    assert_true(deque_push_owner(&worker(1)->deque, rig.processes[IN_NEXT]));
}

static void lose_token(void)
{
    store_relaxed(&worker(0)->next, NULL);
}

static void queue_idle(void)
{
    struct queue_link *link = &rig.processes[IDLE]->link.queue;
    global_queue_push_any(&rig.sched.global, link, link);
}

static void miscount_queue(void)
{
    (void)fetch_add_seq_cst(&rig.sched.global.sorted, 1);
}

static void pop_and_forget(void)
{
    assert_ptr_equal(deque_pop_owner(&worker(0)->deque), rig.processes[IN_DEQUE]);
}

static struct process *take_slot(struct caches *caches)
{
    struct object_pool *pool = &rig.sched.table.pool;
    uint32_t slot = OBJECT_NONE;
    assert_int_equal(object_acquire_owner(pool, pool->shape.layout, &caches->processes, &slot),
                     OBJECT_POOL_OK);
    return object_pool_at(pool, slot);
}

static void queue_free(void)
{
    assert_true(deque_push_owner(&worker(0)->deque, take_slot(&worker(0)->caches)));
}

static void leak_slot(void)
{
    (void)take_slot(&rig.sched.outside.caches);
}

static void free_live_slot(void)
{
    object_release_owner(&rig.sched.table.pool, rig.sched.table.pool.shape.layout,
                         &worker(0)->caches.processes, rig.processes[IDLE]->slot);
}

static void leave_init(void)
{
    (void)state_prepare_owner(take_slot(&worker(0)->caches));
}

static void miscount_live(void)
{
    counter_add_any(&rig.sched.outside.stats.spawned, 1);
}

static void miscount_retired(void)
{
    object_pool_retire_any(&rig.sched.table.pool);
}

static void miscount_chains(void)
{
    (void)fetch_add_relaxed(&rig.sched.events.chain_count, 1);
}

static void leak_node(void)
{
    (void)take_node();
}

static void give_node_twice(void)
{
    const uint32_t index = take_node();
    give_node(index);
    give_node(index);
}

static void give_message(void)
{
    give_node(message_of(IN_NEXT));
}

static void share_message(void)
{
    node_at(message_of(IN_NEXT))->next = message_of(IN_DEQUE);
}

static void share_with_backlog(void)
{
    rig.processes[IN_GLOBAL]->backlog = message_of(IN_DEQUE);
}

static void message_idle(void)
{
    struct process *process = rig.processes[IDLE];
    const uint32_t tag = state_peek(process);
    const uint32_t index = take_node();
    node_at(index)->next = OBJECT_NONE;
    store_relaxed(&process->word, event_list_word(index, tag));
}

static void backlog_idle(void)
{
    rig.processes[IDLE]->backlog = take_node();
}

static void give_call(void)
{
    give_node(rig.processes[CALLING]->calls);
}

static void forget_call(void)
{
    rig.processes[CALLING]->calls = OBJECT_NONE;
}

static void forget_timed_call(void)
{
    rig.processes[TIMED]->calls = OBJECT_NONE;
}

static void share_call(void)
{
    node_at(rig.processes[CALLING]->calls)->as.call.next = rig.processes[TIMED]->calls;
}

static void misplace_call(void)
{
    node_at(rig.processes[CALLING]->calls)->as.call.previous = rig.processes[TIMED]->calls;
}

static void list_call_twice(void)
{
    rig.processes[IDLE]->calls = rig.processes[CALLING]->calls;
}

static void close_call(void)
{
    struct event_node *node = node_at(rig.processes[CALLING]->calls);
    assert_true(call_claim_any(node, load_relaxed(&node->guard)));
}

static void arm_free_node(void)
{
    const uint32_t index = take_node();
    assert_false(deadlines_arm_any(&rig.sched.deadlines, 0, index, 2 * DEADLINE, BEGINNING));
    give_node(index);
}

static void miscount_wheel(void)
{
    rig.sched.deadlines.wheels[0].wheel.count++;
}

static void hide_timer(void)
{
    store_seq_cst(&rig.sched.deadlines.wheels[0].next, WHEEL_NEVER);
}

static void pass_deadline(void)
{
    rig.now = 2 * DEADLINE;
}

static void show_token_again(struct audit *audit, void *arg)
{
    (void)arg;
    audit_show_token(audit, rig.processes[IN_NEXT]);
}

static void show_message(struct audit *audit, void *arg)
{
    (void)arg;
    audit_show_node(audit, message_of(IN_NEXT));
}

static const struct fault faults[] = {
    {.plant = double_token,
     .finding = "INV-3: slot %u is in a next slot and in a deque",
     .who = IN_NEXT},
    {.plant = lose_token, .finding = "INV-3: slot %u is Ready and in no place", .who = IN_NEXT},
    {.plant = queue_idle, .finding = "INV-3: slot %u is Idle and in the global queue", .who = IDLE},
    {.plant = queue_free, .finding = "is Free and in a deque"},
    {.plant = nothing,
     .finding = "INV-3: slot %u is in a next slot and in the simulator's list",
     .who = IN_NEXT,
     .moment.show = show_token_again},
    {.plant = miscount_queue,
     .finding = "INV-3: the global queue has 0 sorted processes and counts 1"},
    {.plant = pop_and_forget,
     .finding = "INV-3: slot %u is Ready and in no place",
     .who = IN_DEQUE},
    {.plant = leak_slot, .finding = "is Free and in no place"},
    {.plant = free_live_slot, .finding = "INV-20: slot %u is Idle and in a cache", .who = IDLE},
    {.plant = leave_init, .finding = "is Init, and nobody is at it"},
    {.plant = miscount_live, .finding = "INV-20: 6 processes are alive, and 7 are counted"},
    {.plant = miscount_retired, .finding = "INV-20: 0 slots are Retired, and 1 are counted"},
    {.plant = miscount_chains, .finding = "INV-20: event node: the pool has 0 free chains"},
    {.plant = leak_node, .finding = "is in no list: it is lost"},
    {.plant = give_node_twice, .finding = "is in a cache of free objects and in a cache of free"},
    {.plant = give_message, .finding = "is in a cache of free objects and in a mailbox"},
    {.plant = share_message, .finding = "is in a mailbox and in a mailbox"},
    {.plant = share_with_backlog, .finding = " and in a "},
    {.plant = nothing, .finding = "is in the agenda and in a mailbox", .moment.show = show_message},
    {.plant = message_idle, .finding = "INV-10: slot %u is Idle and has events", .who = IDLE},
    {.plant = backlog_idle, .finding = "INV-10: slot %u is Idle and has events", .who = IDLE},
    {.plant = give_call, .finding = "is an open call and in a cache of free objects"},
    {.plant = forget_call, .finding = "is in no list: it is lost"},
    {.plant = forget_timed_call, .finding = "is in a wheel, but no open call of a process"},
    {.plant = share_call, .finding = "is an open call twice"},
    {.plant = misplace_call, .finding = "comes after 0, not"},
    {.plant = list_call_twice, .finding = "is an open call twice"},
    {.plant = close_call, .finding = "is in a list of calls, but no open call"},
    {.plant = arm_free_node, .finding = "is in the wheel of worker 0 and thinks otherwise"},
    {.plant = miscount_wheel, .finding = "INV-20: the wheel of worker 0 has 1 timers and counts 2"},
    {.plant = hide_timer, .finding = "INV-10: the wheel of worker 0 has an earlier timer"},
    {.plant = nothing, .finding = "INV-10: at rest, slot", .moment.is_at_rest = true},
    {.plant = nothing, .finding = "INV-20: at the end, slot", .moment.is_at_end = true},
};

static void audit_planted(void *arg)
{
    const struct fault *fault = arg;
    fault->plant();
    audit_now(&rig.sched, &fault->moment);
}

static void faults_are_found_and_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        assert_true(is_found(audit_planted, &faults[i]));
    }
}

static void audit_overdue(void *arg)
{
    (void)arg;
    pass_deadline();
    audit_now(&rig.sched, &(struct audit_moment){.is_at_rest = true});
}

static void rest_with_something_due_is_found(void **state)
{
    (void)state;
    assert_true(aborts_saying(audit_overdue, NULL, "the wheel of worker 0 has something due"));
}

static void order_passes(void **state)
{
    (void)state;
    audit_now(&rig.sched, &(struct audit_moment){0});
    run_all();
    audit_now(&rig.sched, &(struct audit_moment){.is_at_rest = true});
}

static void audit_now_and_then_leaked(void *arg)
{
    const uint32_t *moments = arg;
    leak_node();
    for (uint32_t i = 0; i < *moments; i++) {
        audit_now_and_then(&rig.sched, &(struct audit_moment){0});
    }
}

static void audit_sleep_now_and_then(void *arg)
{
    const uint32_t *moments = arg;
    for (uint32_t i = 0; i < *moments; i++) {
        audit_asleep_now_and_then(&rig.sched, 0);
    }
}

static void limited_audits_wait_for_their_turn(void **state)
{
    (void)state;
    uint32_t once = 1;
    uint32_t often = MOMENTS;
    assert_false(aborts(audit_now_and_then_leaked, &once));
    assert_true(aborts_saying(audit_now_and_then_leaked, &often, "it is lost"));
    for (uint32_t i = 0; i < WORKERS; i++) {
        parking_announce_owner(&rig.sched.parking, i, false);
    }
    assert_false(aborts(audit_sleep_now_and_then, &once));
    assert_true(aborts_saying(audit_sleep_now_and_then, &often, "INV-10: all sleep"));
    for (uint32_t i = 0; i < WORKERS; i++) {
        assert_true(parking_retract_owner(&rig.sched.parking, i));
        assert_true(parking_end_search_owner(&rig.sched.parking));
    }
}

/* A thread that is inside of a call may have a node in its hands. */
static void nothing_is_found_while_others_are_inside(void **state)
{
    (void)state;
    const uint32_t index = take_node();
    (void)fetch_add_seq_cst(&rig.sched.callers, 1);
    audit_now(&rig.sched, &(struct audit_moment){0});
    deliver_release_node(&rig.sched, worker(0), index);
    (void)fetch_sub_seq_cst(&rig.sched.callers, 1);
    audit_now(&rig.sched, &(struct audit_moment){0});
}

/* ---- when all sleep ---- */

static void go_to_sleep(void)
{
    parking_announce_owner(&rig.sched.parking, 0, false);
    parking_announce_owner(&rig.sched.parking, 1, false);
    assert_true(poll_try_take(&rig.sched, worker(0)));
}

static void wake_up(void)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        assert_true(parking_retract_owner(&rig.sched.parking, i));
        assert_true(parking_end_search_owner(&rig.sched.parking));
    }
    store_seq_cst(&rig.sched.poll.holder, 0);
}

static void look_once(void)
{
    audit_asleep(&rig.sched, 1);
}

static struct process *make_ready(void)
{
    struct process *process = rig.processes[IDLE];
    const uint32_t generation = pid_generation(rig.pids[IDLE]);
    assert_int_equal(state_request_any(process, generation, STATE_KILL), STATE_ENQUEUE);
    return process;
}

static void sleep_on_lost_token(void)
{
    (void)make_ready();
}

static void sleep_on_global(void)
{
    struct queue_link *link = &make_ready()->link.queue;
    global_queue_push_any(&rig.sched.global, link, link);
}

static void sleep_on_deque(void)
{
    assert_true(deque_push_owner(&worker(1)->deque, make_ready()));
}

static void sleep_on_next(void)
{
    store_relaxed(&worker(1)->next, make_ready());
}

static void sleep_on_complete(void)
{
    assert_true((state_finish_owner(make_ready()) & STATE_KILL) != 0);
}

static void sleep_without_poller(void)
{
    store_seq_cst(&rig.sched.poll.holder, 0);
}

static void sleep_too_long(void)
{
    store_seq_cst(&rig.sched.poll.until, 2 * DEADLINE);
}

static const struct fault sleeps[] = {
    {.plant = sleep_on_lost_token,
     .finding = "INV-10: all sleep, and slot %u is Ready",
     .who = IDLE},
    {.plant = sleep_on_global, .finding = "INV-10: all sleep, and the global queue is not empty"},
    {.plant = sleep_on_deque,
     .finding = "INV-10: all sleep, and the deque of worker 1 is not empty"},
    {.plant = sleep_on_next,
     .finding = "INV-10: all sleep, and the next slot of worker 1 is not empty"},
    {.plant = sleep_on_complete,
     .finding = "INV-3: all sleep, and slot %u is Complete",
     .who = IDLE},
    {.plant = sleep_without_poller, .finding = "INV-10: all sleep, and nobody waits for timers"},
    {.plant = sleep_too_long, .finding = "INV-10: all sleep, and the poller until after"},
};

static void audit_sleep(void *arg)
{
    const struct fault *fault = arg;
    fault->plant();
    look_once();
}

static void sleep_on_work_is_found_and_named(void **state)
{
    (void)state;
    go_to_sleep();
    for (size_t i = 0; i < sizeof sleeps / sizeof *sleeps; i++) {
        assert_true(is_found(audit_sleep, &sleeps[i]));
    }
    look_once(); /* without a fault there is nothing to find */
    wake_up();
}

/* While a worker is awake it may be about to see what there is. */
static void nothing_is_found_while_a_worker_is_awake(void **state)
{
    (void)state;
    struct process *process = make_ready();
    parking_announce_owner(&rig.sched.parking, 0, false);
    look_once();
    go_to_sleep();
    store_seq_cst(&worker(1)->running, RUNNING_UNKNOWN);
    look_once();
    store_seq_cst(&worker(1)->running, RUNNING_NOTHING);
    wake_up();
    submit_ready(worker(0)->sched, worker(0), process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(order_passes, set_up_busy, tear_down),
        cmocka_unit_test_setup_teardown(faults_are_found_and_named, set_up_busy, tear_down),
        cmocka_unit_test_setup_teardown(rest_with_something_due_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(limited_audits_wait_for_their_turn, set_up_busy, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_found_while_others_are_inside, set_up_busy,
                                        tear_down),
        cmocka_unit_test_setup_teardown(sleep_on_work_is_found_and_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_found_while_a_worker_is_awake, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
