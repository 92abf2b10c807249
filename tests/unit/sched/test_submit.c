/* SPDX-License-Identifier: MIT */
/* Where processes go that have had their turns or are new, and when a worker steals again, on a
 * scheduler without threads. */
#include "base/monotonic.h"
#include "sched/worker.h"
#include "scheduler_rig.h"

/* More messages than a process can take in its turns. */
#define MANY (STEP_TURNS_MAX * SKUA_EVENTS_PER_STEP + 1)

static int go_on(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    return skua_continue(ctx);
}

static const skua_process_type busy = {.name = "busy", .step = go_on};

/* Makes a process that is Ready; its token is the caller's. */
static struct process *spawn(const skua_process_type *type)
{
    struct process *process = rig_spawn(worker(0), type);
    assert_ptr_equal(exchange_acq_rel(&worker(0)->next, NULL), process);
    return process;
}

static struct process *spawn_with_backlog(void)
{
    struct process *late = spawn(&rig_resting);
    for (uint32_t i = 0; i < MANY; i++) {
        rig_send(late);
    }
    return late;
}

static void assert_next(struct process *process)
{
    assert_ptr_equal(load_relaxed(&worker(0)->next), process);
}

/* What is in the first worker's deque, newest first, and in the global queue, oldest first. It is
 * put back. */
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

static void assert_in_global(struct process *const *processes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct queue_link *link;
        assert_int_equal(global_queue_pop_any(&rig.sched.global, &link, 1, 1), 1);
        assert_ptr_equal(process_of_link(link), processes[i]);
    }
    assert_false(global_queue_has_items(&rig.sched.global));
    for (size_t i = 0; i < count; i++) {
        submit_outside(&rig.sched, processes[i]);
    }
}

#define PROCESSES(...) ((struct process *[]){__VA_ARGS__})

/* ---- after its turns ---- */

static void assert_had_its_turns(struct process *process)
{
    assert_int_equal(process_progress(process) >> PROCESS_STEP_SHIFT, STEP_TURNS_MAX);
}

TEST(unfinished_process_with_a_backlog_stays_with_its_worker)
{
    scheduler_rig_open();
    struct process *late = spawn_with_backlog();
    struct process *others[] = {spawn(&rig_resting), spawn(&rig_resting)};
    submit_to_deque(worker(0), others[0]);
    submit_outside(&rig.sched, others[1]);
    step_run(worker(0), late);
    assert_had_its_turns(late);
    assert_true(late->backlog != OBJECT_NONE);
    assert_in_range(mailbox_length(late), 1, SKUA_EVENTS_PER_STEP);
    assert_next(late);
    assert_in_global(PROCESSES(others[1]), 1);
}

TEST(unfinished_process_with_a_backlog_takes_the_place_of_another)
{
    scheduler_rig_open();
    struct process *late = spawn_with_backlog();
    struct process *other = spawn(&rig_resting);
    submit_ready(&rig.sched, worker(0), other);
    step_run(worker(0), late);
    assert_next(late);
    assert_in_deque(PROCESSES(other), 1);
}

TEST(unfinished_process_that_continues_goes_behind)
{
    scheduler_rig_open();
    struct process *active = spawn(&busy);
    struct process *others[] = {spawn(&rig_resting), spawn(&rig_resting), spawn(&rig_resting)};
    submit_ready(&rig.sched, worker(0), others[0]);
    submit_ready(&rig.sched, worker(0), others[1]);
    submit_outside(&rig.sched, others[2]);
    step_run(worker(0), active);
    assert_had_its_turns(active);
    assert_next(others[1]);
    assert_in_global(PROCESSES(others[2], active), 2);
}

TEST(unfinished_process_that_continues_alone_stays)
{
    scheduler_rig_open();
    struct process *active = spawn(&busy);
    step_run(worker(0), active);
    assert_next(active);
    assert_false(global_queue_has_items(&rig.sched.global));
}

/* It had all that was there when its last turn began. */
TEST(unfinished_process_with_news_only_goes_behind)
{
    scheduler_rig_open();
    struct process *active = spawn(&busy);
    submit_outside(&rig.sched, spawn(&rig_resting));
    step_run(worker(0), active);
    assert_true(global_queue_has_items(&rig.sched.global));
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
        children[i] = spawn(&rig_resting);
    }
    for (uint32_t i = 0; i < 3; i++) {
        submit_spawned(&rig.sched, worker(0), children[i]);
        assert_next(children[0]);
    }
    assert_in_deque(PROCESSES(children[2], children[1]), 2);
}

TEST(spawned_process_of_a_step_that_blocks_is_for_others)
{
    scheduler_rig_open();
    struct process *child = spawn(&rig_resting);
    worker(0)->blocks = true;
    submit_spawned(&rig.sched, worker(0), child);
    worker(0)->blocks = false;
    assert_next(NULL);
    assert_in_deque(PROCESSES(child), 1);
}

TEST(spawned_process_from_outside_goes_to_the_global_queue)
{
    scheduler_rig_open();
    struct process *child = spawn(&rig_resting);
    submit_spawned(&rig.sched, NULL, child);
    assert_next(NULL);
    assert_in_global(PROCESSES(child), 1);
}

/* ---- senders to a process that is behind ---- */

TEST(sender_to_a_crowded_mailbox_has_had_its_turns)
{
    scheduler_rig_open();
    struct process *process = spawn(&rig_resting);
    submit_to_deque(worker(0), process);
    worker(0)->turns_left = STEP_TURNS_MAX;
    for (uint32_t i = 1; i < MANY; i++) {
        rig_send(process);
    }
    assert_int_equal(worker(0)->turns_left, STEP_TURNS_MAX);
    rig_send(process);
    assert_int_equal(worker(0)->turns_left, 1);
}

/* ---- after many picks of the next slot ---- */

/* What the worker picks when the next slot has had its streak; `behind`: a process with a backlog
 * has stayed there. */
static struct process *pick_after_streak(bool behind)
{
    worker(0)->phase = 1; /* no other rule of fairness is due */
    worker(0)->next_streak = 3;
    worker(0)->is_behind = behind;
    return find_work(worker(0));
}

static void fill_queues(struct process *const *in_deque, struct process *const *in_global)
{
    for (size_t i = 0; i < 2; i++) {
        submit_to_deque(worker(0), in_deque[i]);
        submit_outside(&rig.sched, in_global[i]);
    }
}

static void put_back(struct process *const *processes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        submit_outside(&rig.sched, processes[i]);
    }
}

TEST(streak_is_followed_by_the_oldest_of_the_deque)
{
    scheduler_rig_open();
    struct process *local[] = {spawn(&rig_resting), spawn(&rig_resting)};
    struct process *global[] = {spawn(&rig_resting), spawn(&rig_resting)};
    fill_queues(local, global);
    struct process *picks[] = {pick_after_streak(false), pick_after_streak(false),
                               pick_after_streak(false), pick_after_streak(false)};
    put_back(picks, COUNT_OF(picks));
    assert_memory_equal(picks, PROCESSES(local[0], local[1], global[0], global[1]), sizeof picks);
}

/* Such processes keep the deque from ever being empty. */
TEST(streak_of_processes_with_a_backlog_is_followed_by_both_queues_in_turn)
{
    scheduler_rig_open();
    struct process *local[] = {spawn(&rig_resting), spawn(&rig_resting)};
    struct process *global[] = {spawn(&rig_resting), spawn(&rig_resting)};
    fill_queues(local, global);
    struct process *picks[] = {pick_after_streak(true), pick_after_streak(true),
                               pick_after_streak(true), pick_after_streak(true)};
    put_back(picks, COUNT_OF(picks));
    assert_memory_equal(picks, PROCESSES(global[0], local[0], global[1], local[1]), sizeof picks);
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

TEST(thief_that_was_busy_for_long_does_not_wait)
{
    scheduler_rig_open();
    assert_true(search_after_theft(UINT32_MAX, monotonic_ns()) > 0);
    assert_int_equal(search_after_theft(STEAL_WORTH_NS, 0), 0); /* since the machine started */
}

TEST(thief_of_nothing_is_not_judged)
{
    scheduler_rig_open();
    const uint32_t patience = search_after_theft(UINT32_MAX, monotonic_ns());
    assert_null(idle_find(worker(0)));
    assert_int_equal(worker(0)->last_steal.patience, patience);
}
