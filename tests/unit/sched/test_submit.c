/* SPDX-License-Identifier: MIT */
/* Where processes go that have had their turns or are new, and when a worker steals again, on a
 * scheduler without threads. */
#include "base/monotonic.h"
#include "sched/checkpoint.h"
#include "sched/worker.h"
#include "scheduler_rig.h"

#define SLICE_STEPS 10

/* As in step.c. */
#define NEWS_TURNS_MAX 4
#define CLOCK_TURNS    4

/* More messages than a process can take in its slice. */
#define MANY (SLICE_STEPS * SKUA_EVENTS_PER_STEP + 1)

static int go_on(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    rig.now += SLICE_NS / SLICE_STEPS;
    return skua_continue(ctx);
}

static int take_time(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    rig.now += SLICE_NS / SLICE_STEPS;
    return 0;
}

/* Starts more than fit into a deque. */
static int start_many(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    for (uint32_t i = 0; i < DEQUE_CAPACITY + 2; i++) {
        (void)rig_spawn(worker(0), &rig_resting);
    }
    return skua_continue(ctx);
}

static const skua_process_type eager = {.name = "eager", .step = start_many};
static const skua_process_type busy = {.name = "busy", .step = go_on};
static const skua_process_type slow = {.name = "slow", .step = take_time, .mailbox_limit = MANY};

static struct process *spawn_with_backlog(void)
{
    struct process *late = rig_spawn_taken(&slow);
    for (uint32_t i = 0; i < MANY; i++) {
        rig_send(late);
    }
    return late;
}

static void assert_next(struct process *process)
{
    assert_ptr_equal(load_relaxed(&worker(0)->next), process);
}

/* What is in the first worker's deque, newest first, and in a shared queue, oldest first. It is put
 * back. */
static void assert_in_deque(struct process *const *processes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(deque_pop_owner(&worker(0)->deque), processes[i]);
    }
    assert_int_equal(deque_length_owner(&worker(0)->deque), 0);
    for (size_t i = count; i-- > 0;) {
        submit_to_deque(worker(0), processes[i]);
    }
}

static void assert_in_shared(struct global_queue *queue, struct process *const *processes,
                             size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct queue_link *link;
        assert_int_equal(global_queue_pop_any(queue, &link, 1, 1), 1);
        assert_ptr_equal(process_of_link(link), processes[i]);
    }
    assert_false(global_queue_has_items(queue));
    for (size_t i = 0; i < count; i++) {
        submit_outside(&rig.sched, processes[i]);
    }
}

static void assert_in_global(struct process *const *processes, size_t count)
{
    assert_in_shared(&rig.sched.global, processes, count);
}

static void assert_behind(struct process *process)
{
    assert_in_shared(&rig.sched.behind, &process, 1);
}

#define PROCESSES(...) ((struct process *[]){__VA_ARGS__})

static void put_second_to_sleep(void)
{
    parking_announce_owner(&rig.sched.parking, 1, false);
}

/* And ends its sleep or its search. */
static void assert_second_woken(bool woken)
{
    assert_int_equal(load_relaxed(&worker(0)->stats.wakes), woken ? 1 : 0);
    assert_int_equal(parking_retract_owner(&rig.sched.parking, 1), !woken);
    if (woken) {
        park_token_take_owner(&worker(1)->token);
    }
    assert_true(parking_end_search_owner(&rig.sched.parking)); /* the last one */
}

/* ---- after its slice ---- */

/* Runs a process for as long as it may. */
static void run_slice(struct process *process)
{
    checkpoint_restart(worker(0));
    step_run(worker(0), process);
}

TEST(unfinished_process_with_a_backlog_stays_with_its_worker)
{
    scheduler_rig_open();
    struct process *late = spawn_with_backlog();
    struct process *others[] = {rig_spawn_taken(&rig_resting), rig_spawn_taken(&rig_resting)};
    submit_to_deque(worker(0), others[0]);
    submit_outside(&rig.sched, others[1]);
    run_slice(late);
    assert_int_equal(process_steps(late), NEWS_TURNS_MAX);
    assert_true(late->backlog != OBJECT_NONE);
    assert_true(mailbox_length(late) > 0);
    assert_next(late);
    assert_in_global(PROCESSES(others[1]), 1);
}

TEST(unfinished_process_with_a_backlog_takes_the_place_of_another)
{
    scheduler_rig_open();
    struct process *late = spawn_with_backlog();
    struct process *other = rig_spawn_taken(&rig_resting);
    submit_ready(&rig.sched, worker(0), other);
    run_slice(late);
    assert_next(late);
    assert_in_deque(PROCESSES(other), 1);
}

TEST(unfinished_process_that_continues_goes_behind)
{
    scheduler_rig_open();
    struct process *active = rig_spawn_taken(&busy);
    struct process *others[] = {rig_spawn_taken(&rig_resting), rig_spawn_taken(&rig_resting),
                                rig_spawn_taken(&rig_resting)};
    submit_ready(&rig.sched, worker(0), others[0]);
    submit_ready(&rig.sched, worker(0), others[1]);
    submit_outside(&rig.sched, others[2]);
    run_slice(active);
    assert_in_range(process_steps(active), SLICE_STEPS, SLICE_STEPS + CLOCK_TURNS - 1);
    assert_next(others[1]);
    assert_in_global(PROCESSES(others[2]), 1);
    assert_behind(active);
}

/* It would go on producing while what it has produced waits. */
TEST(unfinished_process_under_pressure_waits_at_the_end_of_the_global_queue)
{
    scheduler_rig_open();
    struct process *active = rig_spawn_taken(&eager);
    run_slice(active);
    assert_int_equal(process_progress(active) >> PROCESS_STEP_SHIFT, 1);
    assert_false(global_queue_has_items(&rig.sched.behind));
    struct queue_link *links[DEQUE_CAPACITY + 1];
    const uint32_t count = global_queue_pop_any(&rig.sched.global, links, COUNT_OF(links), 1);
    assert_true(count > 1);
    assert_ptr_equal(process_of_link(links[count - 1]), active);
    for (uint32_t i = 0; i < count; i++) {
        submit_outside(&rig.sched, process_of_link(links[i]));
    }
}

/* Its worker picks it at once: there is nothing to wake anybody for. */
TEST(unfinished_process_that_continues_alone_stays)
{
    scheduler_rig_open();
    struct process *active = rig_spawn_taken(&busy);
    put_second_to_sleep();
    worker(0)->picks_are_long = true;
    run_slice(active);
    assert_second_woken(false);
    assert_next(active);
    assert_false(idle_work_is_visible(&rig.sched));
}

TEST(unfinished_process_does_not_stay_if_others_are_behind)
{
    scheduler_rig_open();
    struct process *active[] = {rig_spawn_taken(&busy), rig_spawn_taken(&busy)};
    struct process *other = rig_spawn_taken(&rig_resting);
    submit_outside(&rig.sched, other);
    run_slice(active[0]);
    worker(0)->behind_due = UINT64_MAX; /* but not yet */
    assert_ptr_equal(find_work(worker(0)), other);
    run_slice(active[1]);
    assert_next(NULL);
    assert_in_shared(&rig.sched.behind, active, 2);
    submit_outside(&rig.sched, other);
}

/* It had all that was there when its last turn began. */
TEST(unfinished_process_with_news_only_goes_behind)
{
    scheduler_rig_open();
    struct process *active = rig_spawn_taken(&busy);
    submit_outside(&rig.sched, rig_spawn_taken(&rig_resting));
    run_slice(active);
    assert_behind(active);
    assert_next(NULL);
    rig_send(active); /* it is Ready: nobody submits it */
    assert_next(NULL);
    assert_int_equal(active->backlog, OBJECT_NONE);
}

/* ---- new processes ---- */

TEST(spawned_process_runs_next_and_displaces_nothing)
{
    scheduler_rig_open();
    struct process *children[3];
    for (uint32_t i = 0; i < 3; i++) {
        children[i] = rig_spawn_taken(&rig_resting);
    }
    for (uint32_t i = 0; i < 3; i++) {
        submit_spawned(&rig.sched, worker(0), children[i]);
        assert_next(children[0]);
    }
    assert_in_deque(PROCESSES(children[2], children[1]), 2);
}

TEST(spawned_process_wakes_a_sleeper)
{
    scheduler_rig_open();
    struct process *child = rig_spawn_taken(&rig_resting);
    put_second_to_sleep();
    submit_spawned(&rig.sched, worker(0), child);
    assert_next(child);
    assert_second_woken(true);
}

TEST(woken_process_wakes_a_sleeper_while_picks_are_long)
{
    static const bool lengths[] = {false, true};
    scheduler_rig_open();
    struct process *process = rig_spawn_taken(&rig_resting);
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        put_second_to_sleep();
        worker(0)->picks_are_long = lengths[i];
        submit_ready(&rig.sched, worker(0), process);
        assert_second_woken(lengths[i]);
        assert_ptr_equal(find_work(worker(0)), process);
    }
    submit_ready(&rig.sched, worker(0), process);
}

TEST(spawned_process_of_a_step_that_blocks_is_for_others)
{
    scheduler_rig_open();
    struct process *child = rig_spawn_taken(&rig_resting);
    worker(0)->blocks = true;
    submit_spawned(&rig.sched, worker(0), child);
    worker(0)->blocks = false;
    assert_next(NULL);
    assert_in_deque(PROCESSES(child), 1);
}

TEST(spawned_process_from_outside_goes_to_the_global_queue)
{
    scheduler_rig_open();
    struct process *child = rig_spawn_taken(&rig_resting);
    submit_spawned(&rig.sched, NULL, child);
    assert_next(NULL);
    assert_in_global(PROCESSES(child), 1);
}

/* ---- senders to a process that cannot keep up ---- */

#define CROWD (SKUA_EVENTS_PER_STEP + 1) /* as in deliver.c */

TEST(sender_to_a_crowded_mailbox_has_had_its_slice)
{
    scheduler_rig_open();
    struct process *process = rig_spawn_taken(&rig_resting);
    submit_to_deque(worker(0), process);
    for (uint32_t i = 1; i < CROWD; i++) {
        rig_send(process);
    }
    assert_false(worker(0)->is_pressed);
    rig_send(process);
    assert_true(worker(0)->is_pressed);
}

/* ---- thieves ---- */

/* A search that finds nothing, after a theft of one process that was worth so much and took so
 * long. Returns the looks that it has to make before the next theft. */
static uint32_t search_after_theft(uint32_t min_ns_each, uint64_t since)
{
    worker(0)->last_steal.count = 1;
    worker(0)->last_steal.min_ns_each = min_ns_each;
    worker(0)->last_steal.since = since;
    store_seq_cst(&rig.sched.exiting, 1); /* or it would sleep */
    assert_null(idle_find(worker(0)));
    assert_int_equal(worker(0)->last_steal.count, 0);
    return worker(0)->last_steal.patience;
}

TEST(thief_of_crumbs_waits_longer_each_time)
{
    uint32_t before = 0;
    scheduler_rig_open();
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

TEST(thief_that_was_busy_for_long_waits_half_as_long_and_soon_no_more)
{
    scheduler_rig_open();
    uint32_t patience = search_after_theft(UINT32_MAX, monotonic_ns());
    assert_true(patience > 0);
    while (patience > 0) {
        const uint32_t before = patience;
        patience = search_after_theft(STEAL_WORTH_NS, 0); /* since the machine started */
        assert_int_equal(patience, before / 2);
    }
}

TEST(thief_of_nothing_is_not_judged)
{
    scheduler_rig_open();
    const uint32_t patience = search_after_theft(UINT32_MAX, monotonic_ns());
    assert_null(idle_find(worker(0)));
    assert_int_equal(worker(0)->last_steal.patience, patience);
}
