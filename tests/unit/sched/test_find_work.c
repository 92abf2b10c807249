/* SPDX-License-Identifier: MIT */
/* What a worker picks next, and when it reads the clock, on a scheduler without threads whose clock
 * is the test's. */
#include "sched/checkpoint.h"
#include "sched/context.h"
#include "sched/poll.h"
#include "sched/timers.h"
#include "sched/worker.h"
#include "scheduler_rig.h"

#define OLDEST_NS UINT64_C(20000) /* as in find_work.c */

/* Makes a process that is Ready; its token is the caller's. */
static struct process *spawn(void)
{
    struct process *process = rig_spawn(worker(0), &rig_resting);
    assert_ptr_equal(exchange_acq_rel(&worker(0)->next, NULL), process);
    return process;
}

static void put_behind(struct process *process)
{
    global_queue_push_any(&rig.sched.behind, &process->link.queue, &process->link.queue);
}

/* The next pick, which begins with a checkpoint after the last has taken `ns`. */
static struct process *pick_after(uint64_t ns)
{
    rig.now += ns;
    checkpoint_hasten(worker(0));
    return find_work(worker(0));
}

/* A worker that has just been idle, and for which nothing is due. */
static void open_rig(void)
{
    scheduler_rig_open();
    checkpoint_restart(worker(0));
    worker(0)->oldest_due = worker(0)->behind_due = rig.now + SKUA_SECOND;
}

static void assert_picks(struct process *const *expected, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(find_work(worker(0)), expected[i]);
    }
    assert_null(find_work(worker(0)));
    for (size_t i = 0; i < count; i++) {
        submit_outside(&rig.sched, expected[i]);
    }
}

#define PROCESSES(...) ((struct process *[]){__VA_ARGS__})

TEST(next_slot_deque_global_queue_and_the_queue_behind_come_in_this_order)
{
    open_rig();
    struct process *behind = spawn();
    struct process *global = spawn();
    struct process *local[] = {spawn(), spawn()};
    struct process *next = spawn();
    put_behind(behind);
    submit_outside(&rig.sched, global);
    submit_to_deque(worker(0), local[0]);
    submit_to_deque(worker(0), local[1]);
    submit_ready(&rig.sched, worker(0), next);
    assert_picks(PROCESSES(next, local[1], local[0], global, behind), 5);
}

/* ---- what a poll brings ---- */

static struct process *found[2]; /* by the next poll, the longest waiting first */

static uint32_t find_two(struct poller *poller, uint64_t deadline)
{
    (void)poller, (void)deadline;
    return 2;
}

/* As net/kernel.c: a worker runs first what it has readied last. */
static void deliver_two(struct poller *poller, struct worker *by, uint32_t ready)
{
    (void)poller;
    for (uint32_t i = 0; i < ready; i++) {
        submit_ready(&rig.sched, by, found[by != NULL ? ready - 1 - i : i]);
    }
}

static void poll_two(struct process *first, struct process *second)
{
    rig.poller.wait = find_two;
    rig.poller.deliver = deliver_two;
    found[0] = first;
    found[1] = second;
    poll_check(&rig.sched, worker(0), rig.now);
}

TEST(what_several_polls_bring_runs_in_their_order)
{
    open_rig();
    struct process *first[] = {spawn(), spawn()};
    struct process *second[] = {spawn(), spawn()};
    struct process *third[] = {spawn(), spawn()};
    poll_two(first[0], first[1]);
    poll_two(second[0], second[1]);
    poll_two(third[0], third[1]);
    assert_picks(PROCESSES(first[0], first[1], second[0], second[1], third[0], third[1]), 6);
}

/* ---- the oldest ---- */

TEST(oldest_of_the_deque_and_of_the_global_queue_take_turns)
{
    open_rig();
    struct process *local[] = {spawn(), spawn()};
    struct process *global[] = {spawn(), spawn()};
    for (size_t i = 0; i < 2; i++) {
        submit_to_deque(worker(0), local[i]);
        submit_outside(&rig.sched, global[i]);
    }
    struct process *picks[4];
    for (size_t i = 0; i < COUNT_OF(picks); i++) {
        worker(0)->measured = PICK_ANY;
        worker(0)->oldest_due = rig.now;
        picks[i] = pick_after(0);
    }
    assert_memory_equal(picks, PROCESSES(global[0], local[0], global[1], local[1]), sizeof picks);
    assert_picks(NULL, 0);
    for (size_t i = 0; i < COUNT_OF(picks); i++) {
        submit_outside(&rig.sched, picks[i]);
    }
}

/* Fairness gives way to what was woken just now, but not twice; then that is not held up where
 * nobody sees it. */
TEST(oldest_gives_way_to_the_next_slot_once_and_then_sends_it_to_the_deque)
{
    open_rig();
    struct process *global = spawn();
    struct process *next = spawn();
    submit_outside(&rig.sched, global);
    submit_ready(&rig.sched, worker(0), next);
    worker(0)->oldest_due = rig.now;
    assert_ptr_equal(find_work(worker(0)), next);
    submit_ready(&rig.sched, worker(0), next);
    assert_ptr_equal(find_work(worker(0)), global);
    assert_null(load_relaxed(&worker(0)->next));
    submit_outside(&rig.sched, global);
    assert_ptr_equal(find_work(worker(0)), next);
    submit_outside(&rig.sched, next);
}

/* After a pick of the oldest that took `took`, fresh processes come first for `pause`. */
static void assert_oldest_pauses(uint64_t took, uint64_t pause)
{
    struct process *global[] = {spawn(), spawn()};
    struct process *next = spawn();
    submit_outside(&rig.sched, global[0]);
    submit_outside(&rig.sched, global[1]);
    worker(0)->oldest_due = rig.now;
    assert_ptr_equal(pick_after(0), global[0]);
    submit_ready(&rig.sched, worker(0), next);
    assert_ptr_equal(pick_after(took), next);
    submit_to_deque(worker(0), next); /* newer than those in the global queue */
    assert_ptr_equal(pick_after(pause - 1), next);
    submit_to_deque(worker(0), next);
    worker(0)->global_was_first = false;
    assert_ptr_equal(pick_after(1), global[1]);
    submit_outside(&rig.sched, global[0]);
    submit_outside(&rig.sched, global[1]);
}

TEST(oldest_comes_first_again_after_a_while)
{
    open_rig();
    assert_oldest_pauses(100, OLDEST_NS);
}

TEST(oldest_that_takes_long_pauses_for_as_long)
{
    open_rig();
    assert_oldest_pauses(SKUA_MILLISECOND, SKUA_MILLISECOND);
}

/* ---- families ---- */

/* The first of so many children is in the next slot, the others are in the deque. */
static struct process *start_family(struct process **children, uint32_t count)
{
    struct process *parent = spawn();
    context_set_process(worker(0), parent, rig_pid(parent));
    for (uint32_t i = 0; i < count; i++) {
        children[i] = rig_spawn(worker(0), &rig_resting);
    }
    return parent;
}

/* The first child wakes its parent. */
static void wake_by_first(struct process *parent, struct process *first)
{
    assert_ptr_equal(find_work(worker(0)), first);
    submit_outside(&rig.sched, first);
    submit_ready(&rig.sched, worker(0), parent);
}

TEST(parent_that_a_child_wakes_comes_after_its_other_children_and_before_all_else)
{
    open_rig();
    struct process *older = spawn();
    struct process *children[3];
    submit_to_deque(worker(0), older);
    struct process *parent = start_family(children, 3);
    wake_by_first(parent, children[0]);
    assert_picks(PROCESSES(children[2], children[1], parent, older, children[0]), 5);
}

TEST(parent_does_not_wait_for_a_single_child)
{
    open_rig();
    struct process *children[2];
    struct process *parent = start_family(children, 2);
    wake_by_first(parent, children[0]);
    assert_picks(PROCESSES(parent, children[1], children[0]), 3);
}

TEST(who_is_woken_by_the_child_of_another_does_not_wait)
{
    open_rig();
    struct process *other = spawn();
    struct process *children[3];
    struct process *parent = start_family(children, 3);
    wake_by_first(other, children[0]);
    assert_picks(PROCESSES(other, children[2], children[1], children[0]), 4);
    submit_outside(&rig.sched, parent);
}

/* INV-16: it waits until the next pick of the oldest. */
TEST(parent_that_waits_for_children_is_released_by_fairness)
{
    open_rig();
    struct process *children[4];
    struct process *parent = start_family(children, 4);
    wake_by_first(parent, children[0]);
    worker(0)->oldest_due = rig.now;
    worker(0)->global_was_first = true;
    assert_ptr_equal(pick_after(0), children[1]); /* that does not give way to the next slot */
    assert_null(load_relaxed(&worker(0)->next));
    assert_picks(PROCESSES(parent, children[3], children[2], children[0]), 4);
    submit_outside(&rig.sched, children[1]);
}

/* Others may be in the deque by then. */
TEST(parent_whose_eldest_child_was_stolen_does_not_wait)
{
    open_rig();
    void *stolen;
    struct process *children[4];
    struct process *parent = start_family(children, 4);
    assert_int_equal(deque_steal_any(&worker(0)->deque, &stolen, 1), 1);
    assert_ptr_equal(stolen, children[1]);
    wake_by_first(parent, children[0]);
    assert_picks(PROCESSES(parent, children[3], children[2], children[0]), 4);
    submit_outside(&rig.sched, children[1]);
}

TEST(parent_whose_children_have_run_does_not_wait_for_others)
{
    open_rig();
    struct process *children[3];
    struct process *parent = start_family(children, 3);
    assert_picks(PROCESSES(children[0], children[2], children[1]), 3);
    while (find_work(worker(0)) != NULL) { /* they come from the global queue now */
    }
    struct process *others[] = {spawn(), spawn(), spawn()};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        submit_to_deque(worker(0), others[i]);
    }
    submit_ready(&rig.sched, worker(0), parent);
    assert_picks(PROCESSES(parent, others[2], others[1], others[0]), 4);
    for (size_t i = 0; i < COUNT_OF(children); i++) {
        submit_outside(&rig.sched, children[i]);
    }
}

TEST(who_takes_the_slot_of_a_stolen_parent_does_not_wait)
{
    open_rig();
    struct process *children[3];
    struct process *other = spawn();
    struct process *parent = start_family(children, 3);
    wake_by_first(parent, children[0]);
    assert_ptr_equal(exchange_acq_rel(&worker(0)->next, NULL), parent);
    submit_ready(&rig.sched, worker(0), other);
    assert_picks(PROCESSES(other, children[2], children[1], children[0]), 4);
    submit_outside(&rig.sched, parent);
}

/* ---- the queue behind ---- */

/* INV-16 for both classes: each has half of the time if the other always has work. */
TEST(pick_from_behind_is_followed_by_as_much_time_for_the_others)
{
    open_rig();
    struct process *behind[] = {spawn(), spawn()};
    struct process *next = spawn();
    put_behind(behind[0]);
    put_behind(behind[1]);
    submit_to_deque(worker(0), next);
    worker(0)->behind_due = rig.now;
    assert_ptr_equal(pick_after(0), behind[0]);
    assert_ptr_equal(pick_after(SKUA_MILLISECOND), next); /* that is how long it took */
    submit_to_deque(worker(0), next);
    assert_ptr_equal(pick_after(SKUA_MILLISECOND), next);
    submit_to_deque(worker(0), next);
    assert_ptr_equal(pick_after(1), behind[1]);
    submit_outside(&rig.sched, behind[0]);
    submit_outside(&rig.sched, behind[1]);
}

TEST(queue_behind_is_used_while_there_is_nothing_else)
{
    open_rig();
    struct process *behind[] = {spawn(), spawn()};
    put_behind(behind[0]);
    put_behind(behind[1]);
    worker(0)->behind_due = rig.now + SKUA_SECOND;
    assert_picks(behind, 2);
}

TEST(process_from_behind_is_taken_alone)
{
    open_rig();
    for (int i = 0; i < 10; i++) {
        put_behind(spawn());
    }
    struct process *process = find_work(worker(0));
    assert_non_null(process);
    assert_int_equal(deque_length_owner(&worker(0)->deque), 0);
    submit_outside(&rig.sched, process);
}

/* ---- checkpoints ---- */

/* Picks until the next checkpoint, if each takes `ns`. */
static uint32_t picks_to_checkpoint(uint64_t ns)
{
    uint32_t picks = 1;
    for (rig.now += ns; !checkpoint_is_due(worker(0)); rig.now += ns) {
        picks++;
    }
    (void)checkpoint(worker(0));
    return picks;
}

TEST(short_picks_have_a_checkpoint_now_and_then)
{
    static const uint32_t expected[] = {1, 2, 4, 8, 16, PICKS_MAX, PICKS_MAX};
    open_rig();
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        assert_int_equal(picks_to_checkpoint(30), expected[i]);
    }
}

TEST(picks_of_a_microsecond_have_a_checkpoint_after_about_as_many_as_they_should)
{
    open_rig();
    for (int i = 0; i < 10; i++) {
        (void)picks_to_checkpoint(SKUA_MICROSECOND);
    }
    const uint64_t took = picks_to_checkpoint(SKUA_MICROSECOND) * SKUA_MICROSECOND;
    assert_in_range(took, CHECK_NS / 2, 2 * CHECK_NS);
}

TEST(long_picks_have_a_checkpoint_each)
{
    open_rig();
    for (int i = 0; i < 10; i++) {
        (void)picks_to_checkpoint(30);
    }
    assert_int_equal(picks_to_checkpoint(SKUA_MILLISECOND), PICKS_MAX);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(picks_to_checkpoint(SKUA_MILLISECOND), 1);
    }
}

TEST(monitor_brings_a_checkpoint_forward)
{
    open_rig();
    for (int i = 0; i < 10; i++) {
        (void)picks_to_checkpoint(30);
    }
    assert_false(checkpoint_is_due(worker(0)));
    checkpoint_hasten(worker(0));
    assert_true(checkpoint_is_due(worker(0)));
}

TEST(idle_time_is_no_long_pick)
{
    open_rig();
    rig.now += SKUA_SECOND;
    checkpoint_restart(worker(0));
    rig.now += 100;
    (void)checkpoint(worker(0));
    assert_false(worker(0)->picks_are_long);
    assert_int_equal(worker(0)->picks_granted, 2);
}

TEST(slice_is_over_after_its_time_and_a_checkpoint_follows)
{
    open_rig();
    (void)picks_to_checkpoint(30);
    (void)picks_to_checkpoint(30);
    assert_false(checkpoint_is_due(worker(0)));
    rig.now += SLICE_NS - 1;
    assert_false(checkpoint_slice_is_over(worker(0)));
    rig.now += 1;
    assert_true(checkpoint_slice_is_over(worker(0)));
    assert_true(checkpoint_is_due(worker(0)));
}
