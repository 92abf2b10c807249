/* SPDX-License-Identifier: MIT */
/* Where processes go that have had their turns or are new, and when a worker steals again, on a
 * scheduler without threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/monotonic.h"
#include "counting_allocator.h"
#include "runtime/runtime.h"
#include "sched/deliver.h"
#include "sched/monitor.h"
#include "sched/shutdown.h"
#include "sched/spawn.h"
#include "sched/worker.h"

#define WORKERS 2
#define PROBES  4

/* More messages than a process can take in its turns. */
#define MANY (STEP_TURNS_MAX * SKUA_EVENTS_PER_STEP + 1)

static struct {
    struct counting_allocator memory;
    struct scheduler sched;
    struct registry registry;
    struct time_source time;
    struct poller poller;
    struct monitor monitor;
    skua_pid pids[PROBES];
    struct process *processes[PROBES];
} rig;

static uint64_t read_clock(struct time_source *source)
{
    (void)source;
    return UINT64_C(1000000000);
}

static struct worker *worker(void)
{
    return &rig.sched.workers[0];
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

static int go_on(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    skua_step_continue(out);
    return 0;
}

static const skua_process_type resting = {.name = "resting", .step = rest};
static const skua_process_type busy = {.name = "busy", .step = go_on};

/* Makes a process that is Ready; its token is the caller's. */
static struct process *spawn(uint32_t number, const skua_process_type *type)
{
    const struct spawn_request request = {.type = type, .pid = &rig.pids[number]};
    assert_int_equal(spawn_process(&rig.sched, worker(), &request), 0);
    assert_int_equal(process_table_find(&rig.sched.table, rig.pids[number], &rig.processes[number]),
                     0);
    struct process *process = exchange_acq_rel(&worker()->next, NULL);
    assert_ptr_equal(process, rig.processes[number]);
    return process;
}

static void send(uint32_t to)
{
    skua_payload payload = skua_payload_empty(0);
    assert_int_equal(deliver_message(&rig.sched, worker(), (skua_pid){0}, rig.pids[to], &payload),
                     0);
}

static struct process *in_next(void)
{
    return load_relaxed(&worker()->next);
}

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
    assert_int_equal(
        scheduler_init(&rig.sched, &config, 1, &rig.registry, &rig.time, &rig.poller, &rig.monitor),
        0);
    registry_init(&rig.registry, &rig.sched.allocator);
    store_seq_cst(&rig.sched.threads, WORKERS);
    shutdown_open_locked(&rig.sched);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    struct process *process;
    for (uint32_t i = 0; i < PROBES; i++) {
        (void)deliver_request(&rig.sched, worker(), rig.pids[i], STATE_KILL);
        rig.pids[i] = (skua_pid){0};
    }
    while ((process = find_work(worker())) != NULL) {
        step_run(worker(), process);
    }
    store_seq_cst(&worker()->running, RUNNING_NOTHING);
    registry_deinit(&rig.registry);
    scheduler_deinit(&rig.sched);
    return counting_allocator_is_clean(&rig.memory) ? 0 : -1;
}

static void unfinished_process_with_a_backlog_stays_with_its_worker(void **state)
{
    (void)state;
    struct process *late = spawn(0, &resting);
    struct process *others[] = {spawn(1, &resting), spawn(2, &resting)};
    submit_to_deque(worker(), others[0]);
    submit_outside(&rig.sched, others[1]);
    for (uint32_t i = 0; i < MANY; i++) {
        send(0);
    }
    step_run(worker(), late);
    assert_int_equal(process_progress(late) >> PROCESS_STEP_SHIFT, STEP_TURNS_MAX);
    assert_true(late->backlog != OBJECT_NONE);
    assert_int_equal(mailbox_length(late), 1);
    assert_ptr_equal(in_next(), late);
    assert_true(global_queue_has_items(&rig.sched.global));
}

static void unfinished_process_with_a_backlog_takes_the_place_of_another(void **state)
{
    (void)state;
    struct process *late = spawn(0, &resting);
    struct process *other = spawn(1, &resting);
    for (uint32_t i = 0; i < MANY; i++) {
        send(0);
    }
    submit_ready(worker()->sched, worker(), other);
    step_run(worker(), late);
    assert_ptr_equal(in_next(), late);
    assert_ptr_equal(deque_pop_owner(&worker()->deque), other);
    submit_to_deque(worker(), other);
}

static void unfinished_process_that_continues_goes_behind(void **state)
{
    (void)state;
    struct process *active = spawn(0, &busy);
    struct process *others[] = {spawn(1, &resting), spawn(2, &resting), spawn(3, &resting)};
    submit_ready(worker()->sched, worker(), others[0]);
    submit_ready(worker()->sched, worker(), others[1]);
    submit_outside(&rig.sched, others[2]);
    step_run(worker(), active);
    assert_int_equal(process_progress(active) >> PROCESS_STEP_SHIFT, STEP_TURNS_MAX);
    assert_ptr_equal(in_next(), others[1]);
    struct queue_link *links[2];
    assert_int_equal(global_queue_pop_any(&rig.sched.global, &links[0], 1, 1), 1);
    assert_int_equal(global_queue_pop_any(&rig.sched.global, &links[1], 1, 1), 1);
    assert_ptr_equal(process_of_link(links[0]), others[2]);
    assert_ptr_equal(process_of_link(links[1]), active);
    submit_outside(&rig.sched, others[2]);
    submit_outside(&rig.sched, active);
}

static void unfinished_process_that_continues_alone_stays(void **state)
{
    (void)state;
    struct process *active = spawn(0, &busy);
    step_run(worker(), active);
    assert_ptr_equal(in_next(), active);
    assert_false(global_queue_has_items(&rig.sched.global));
}

/* It had all that was there when its last turn began. */
static void unfinished_process_with_news_only_goes_behind(void **state)
{
    (void)state;
    struct process *active = spawn(0, &busy);
    submit_outside(&rig.sched, spawn(1, &resting));
    step_run(worker(), active);
    assert_true(global_queue_has_items(&rig.sched.global));
    assert_null(in_next());
    send(0); /* it is Ready: nobody submits it */
    assert_null(in_next());
    assert_int_equal(active->backlog, OBJECT_NONE);
}

/* ---- new processes ---- */

static void spawned_process_runs_next_if_nothing_else_does(void **state)
{
    (void)state;
    struct process *first = spawn(0, &resting);
    submit_spawned(&rig.sched, worker(), first);
    assert_ptr_equal(in_next(), first);
}

static void spawned_process_displaces_nothing(void **state)
{
    (void)state;
    struct process *children[] = {spawn(0, &resting), spawn(1, &resting), spawn(2, &resting)};
    for (uint32_t i = 0; i < 3; i++) {
        submit_spawned(&rig.sched, worker(), children[i]);
    }
    assert_ptr_equal(in_next(), children[0]);
    assert_ptr_equal(deque_pop_owner(&worker()->deque), children[2]);
    assert_ptr_equal(deque_pop_owner(&worker()->deque), children[1]);
    submit_to_deque(worker(), children[1]);
    submit_to_deque(worker(), children[2]);
}

static void spawned_process_of_a_step_that_blocks_is_for_others(void **state)
{
    (void)state;
    struct process *child = spawn(0, &resting);
    worker()->blocks = true;
    submit_spawned(&rig.sched, worker(), child);
    worker()->blocks = false;
    assert_null(in_next());
    assert_int_equal(deque_length_owner(&worker()->deque), 1);
}

static void spawned_process_from_outside_goes_to_the_global_queue(void **state)
{
    (void)state;
    struct process *child = spawn(0, &resting);
    submit_spawned(&rig.sched, NULL, child);
    assert_null(in_next());
    assert_true(global_queue_has_items(&rig.sched.global));
}

/* ---- senders to a process that is behind ---- */

static void sender_to_a_crowded_mailbox_has_had_its_turns(void **state)
{
    (void)state;
    submit_to_deque(worker(), spawn(0, &resting));
    worker()->turns_left = STEP_TURNS_MAX;
    for (uint32_t i = 1; i < MANY; i++) {
        send(0);
    }
    assert_int_equal(worker()->turns_left, STEP_TURNS_MAX);
    send(0);
    assert_int_equal(worker()->turns_left, 1);
}

/* ---- thieves ---- */

/* A search that finds nothing, after a theft of one process that was worth so much and took so
 * long. Returns the looks that it has to make before the next theft. */
static uint32_t search_after_theft(uint32_t min_ns_each, uint64_t since)
{
    worker()->last_steal.count = 1;
    worker()->last_steal.min_ns_each = min_ns_each;
    worker()->last_steal.since = since;
    store_seq_cst(&rig.sched.exiting, 1); /* or it would sleep */
    assert_null(idle_find(worker()));
    assert_int_equal(worker()->last_steal.count, 0);
    return worker()->last_steal.patience;
}

static void thief_of_crumbs_waits_longer_each_time(void **state)
{
    (void)state;
    uint32_t before = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t patience = search_after_theft(UINT32_MAX, monotonic_ns());
        assert_true(patience > before);
        before = patience;
    }
    for (uint32_t i = 0; i < 4; i++) {
        before = search_after_theft(UINT32_MAX, monotonic_ns());
    }
    assert_int_equal(search_after_theft(UINT32_MAX, monotonic_ns()), before); /* there is an end */
}

static void thief_that_was_busy_for_long_does_not_wait(void **state)
{
    (void)state;
    assert_true(search_after_theft(UINT32_MAX, monotonic_ns()) > 0);
    assert_int_equal(search_after_theft(STEAL_WORTH_NS, 0), 0); /* since the machine started */
}

static void thief_of_nothing_is_not_judged(void **state)
{
    (void)state;
    const uint32_t patience = search_after_theft(UINT32_MAX, monotonic_ns());
    assert_null(idle_find(worker()));
    assert_int_equal(worker()->last_steal.patience, patience);
}

#define SUBMIT_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SUBMIT_TEST(unfinished_process_with_a_backlog_stays_with_its_worker),
        SUBMIT_TEST(unfinished_process_with_a_backlog_takes_the_place_of_another),
        SUBMIT_TEST(unfinished_process_that_continues_goes_behind),
        SUBMIT_TEST(unfinished_process_that_continues_alone_stays),
        SUBMIT_TEST(unfinished_process_with_news_only_goes_behind),
        SUBMIT_TEST(sender_to_a_crowded_mailbox_has_had_its_turns),
        SUBMIT_TEST(thief_of_crumbs_waits_longer_each_time),
        SUBMIT_TEST(thief_that_was_busy_for_long_does_not_wait),
        SUBMIT_TEST(thief_of_nothing_is_not_judged),
        SUBMIT_TEST(spawned_process_runs_next_if_nothing_else_does),
        SUBMIT_TEST(spawned_process_displaces_nothing),
        SUBMIT_TEST(spawned_process_of_a_step_that_blocks_is_for_others),
        SUBMIT_TEST(spawned_process_from_outside_goes_to_the_global_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
