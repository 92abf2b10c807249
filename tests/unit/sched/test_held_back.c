/* SPDX-License-Identifier: MIT */
/* Senders whose receiver cannot keep up: who is held back, and who lets them go, on a scheduler
 * without threads. */
#include "sched/held_back.h"

#include "sched/checkpoint.h"
#include "sched/deliver.h"
#include "sched/poll.h"
#include "sched/process_info.h"
#include "sched/worker.h"
#include "scheduler_rig.h"

/* As in deliver.c; some may not be counted yet. */
#define CROWD (SKUA_EVENTS_PER_STEP + MAILBOX_TALLY_MAX + 1)

static struct process *receiver; /* of all senders that run */
static size_t messages;          /* that senders have seen */

/* Sends one message and goes on. */
static int send_on(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    for (size_t i = 0; i < count; i++) {
        messages += events[i].type == SKUA_EVENT_MESSAGE ? 1 : 0;
    }
    rig_send(receiver);
    return skua_continue(ctx);
}

/* Sends one and rests. */
static int send_once(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    rig_send(receiver);
    return 0;
}

/* Sends one, has a message itself, and goes on. */
static int send_both(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct process *here = worker(0)->context->process;
    (void)self;
    (void)events;
    (void)count;
    rig_send(here);
    rig_send(receiver);
    return skua_continue(ctx);
}

static const skua_process_type sending = {.name = "sending", .step = send_on};
static const skua_process_type sending_once = {.name = "sending once", .step = send_once};
static const skua_process_type sending_both = {.name = "sending both", .step = send_both};
static const skua_process_type ending = {
    .name = "ending", .step = send_on, .cancel = SKUA_CANCEL_END};

/* A receiver that is crowded, and Ready: its token is the caller's. */
static struct process *spawn_crowded(void)
{
    struct process *process = rig_spawn_taken(&rig_resting);
    for (uint32_t i = 0; i < CROWD; i++) {
        rig_send(process);
    }
    return process;
}

static void run(struct process *process)
{
    checkpoint_restart(worker(0));
    step_run(worker(0), process);
}

/* The receiver takes what it has, and rests. */
static void catch_up(struct process *process)
{
    struct process *next = process;
    do {
        run(next);
        next = exchange_acq_rel(&worker(0)->next, NULL);
    } while (next == process);
    assert_null(next);
    assert_true(state_is_waiting(state_peek(process)));
}

static void open_rig(void)
{
    scheduler_rig_open();
    receiver = spawn_crowded();
    messages = 0;
}

static uint64_t count_held_back(void)
{
    return load_relaxed(&worker(0)->stats.held_back);
}

static bool nothing_is_queued(void)
{
    return load_relaxed(&worker(0)->next) == NULL && !idle_work_is_visible(&rig.sched);
}

static void assert_held_back(struct process *process)
{
    assert_true(state_is_waiting(state_peek(process)));
    assert_true(held_back_has(&rig.sched, rig_pid(process)));
}

static struct process *take_global(void)
{
    struct queue_link *link = NULL;
    return global_queue_pop_any(&rig.sched.global, &link, 1, 1) == 1 ? process_of_link(link) : NULL;
}

/* A sender that is held back. */
static struct process *hold_back(void)
{
    struct process *sender = rig_spawn_taken(&sending);
    run(sender);
    assert_held_back(sender);
    assert_true(nothing_is_queued());
    return sender;
}

/* ---- who is held back ---- */

TEST(sender_that_continues_is_held_back_after_one_step)
{
    open_rig();
    struct process *sender = hold_back();
    assert_int_equal(process_steps(sender), 1);
    assert_int_equal(count_held_back(), 1);
    assert_int_equal(held_back_next(&rig.sched), rig.now + HELD_BACK_NS);
    submit_to_deque(worker(0), receiver);
}

TEST(process_that_is_held_back_counts_as_ready)
{
    open_rig();
    struct process *sender = hold_back();
    skua_process_snapshot info;
    assert_int_equal(process_info_read(&rig.sched, rig_pid(sender), &info), 0);
    assert_int_equal(info.state, SKUA_PROCESS_READY);
    submit_to_deque(worker(0), receiver);
}

static void assert_not_held_back(struct process *sender)
{
    run(sender);
    assert_int_equal(count_held_back(), 0);
    assert_int_equal(held_back_next(&rig.sched), UINT64_MAX);
}

TEST(sender_that_rests_is_not_held_back)
{
    open_rig();
    assert_not_held_back(rig_spawn_taken(&sending_once));
    submit_to_deque(worker(0), receiver);
}

TEST(sender_with_events_is_not_held_back)
{
    open_rig();
    assert_not_held_back(rig_spawn_taken(&sending_both));
    submit_to_deque(worker(0), receiver);
}

TEST(sender_to_itself_is_not_held_back)
{
    open_rig();
    submit_to_deque(worker(0), receiver);
    struct process *sender = rig_spawn_taken(&sending);
    receiver = sender;
    for (uint32_t i = 0; i < CROWD; i++) {
        rig_send(sender);
    }
    assert_not_held_back(sender);
}

/* It waits for something else than the time to take its messages. */
TEST(sender_to_a_receiver_that_rests_is_not_held_back)
{
    open_rig();
    struct process *sender = rig_spawn_taken(&sending);
    worker(0)->context->self = rig_pid(sender);
    worker(0)->crowded = rig_spawn_taken(&rig_resting);
    catch_up(worker(0)->crowded);
    worker(0)->crowded_at = load_relaxed(&worker(0)->stats.steps);
    process_set_progress_owner(sender, PROCESS_CONTINUES | PROCESS_STEP_ONE);
    worker(0)->is_pressed = true;
    assert_false(held_back_try(worker(0), sender));
    submit_to_deque(worker(0), sender);
    submit_to_deque(worker(0), receiver);
}

TEST(sender_that_was_told_to_cancel_is_not_held_back)
{
    open_rig();
    struct process *sender = rig_spawn_taken(&sending);
    assert_int_equal(deliver_request(&rig.sched, worker(0), rig_pid(sender), STATE_CANCEL), 0);
    assert_not_held_back(sender);
    submit_to_deque(worker(0), receiver);
}

TEST(sender_without_a_place_goes_to_the_global_queue)
{
    open_rig();
    for (uint32_t i = 0; i < HELD_BACK_MAX; i++) {
        (void)hold_back();
    }
    struct process *sender = rig_spawn_taken(&sending);
    submit_to_deque(worker(0), receiver);
    run(sender);
    assert_int_equal(count_held_back(), HELD_BACK_MAX);
    assert_ptr_equal(take_global(), sender);
    submit_outside(&rig.sched, sender);
}

TEST(there_are_lines_for_a_few_receivers)
{
    struct process *receivers[HELD_BACK_LINES + 1];
    scheduler_rig_open();
    for (uint32_t i = 0; i <= HELD_BACK_LINES; i++) {
        receiver = receivers[i] = spawn_crowded();
        run(rig_spawn_taken(&sending));
        assert_int_equal(count_held_back(), i < HELD_BACK_LINES ? i + 1 : HELD_BACK_LINES);
    }
    for (uint32_t i = 0; i <= HELD_BACK_LINES; i++) {
        submit_to_deque(worker(0), receivers[i]);
    }
}

/* ---- who lets them go ---- */

TEST(message_wakes_it_at_once)
{
    open_rig();
    struct process *sender = hold_back();
    rig_send(sender);
    assert_ptr_equal(exchange_acq_rel(&worker(0)->next, NULL), sender);
    run(sender);
    assert_int_equal(messages, 1);
    assert_int_equal(process_steps(sender), 2);
    assert_held_back(sender); /* a second time; the first is still in the line */
    assert_int_equal(count_held_back(), 2);
    submit_to_deque(worker(0), receiver);
}

TEST(cancel_and_kill_wake_it_at_once)
{
    open_rig();
    struct process *sender = rig_spawn_taken(&ending);
    run(sender);
    assert_held_back(sender);
    const skua_pid pid = rig_pid(sender);
    assert_int_equal(deliver_cancel(&rig.sched, worker(0), pid, SKUA_E_CANCELLED), 0);
    rig_run_all();
    skua_process_snapshot info;
    assert_int_equal(process_info_read(&rig.sched, pid, &info), SKUA_E_NO_PROCESS);
    submit_to_deque(worker(0), receiver);
}

TEST(worker_without_work_runs_the_oldest_when_the_receiver_rests)
{
    open_rig();
    struct process *senders[] = {hold_back(), hold_back()};
    assert_null(find_work(worker(0)));
    catch_up(receiver);
    assert_ptr_equal(find_work(worker(0)), senders[0]);
    submit_to_deque(worker(0), senders[0]);
    assert_held_back(senders[1]);
    assert_int_equal(held_back_next(&rig.sched), rig.now + HELD_BACK_NS);
}

TEST(worker_without_work_lets_go_whose_receiver_has_ended)
{
    open_rig();
    struct process *sender = hold_back();
    struct process *next = receiver;
    rig_kill(rig_pid(receiver));
    do {
        run(next);
        next = find_work(worker(0));
    } while (next == receiver); /* its end takes a while */
    assert_ptr_equal(next, sender);
    submit_to_deque(worker(0), sender);
    receiver = rig_spawn_taken(&rig_resting); /* for the sender's last steps */
    submit_to_deque(worker(0), receiver);
}

TEST(time_lets_go_all_that_have_waited_so_long)
{
    open_rig();
    struct process *first = hold_back();
    rig.now += HELD_BACK_NS / 2;
    struct process *second = hold_back();
    held_back_release(&rig.sched, rig.now);
    assert_true(nothing_is_queued());
    rig.now += HELD_BACK_NS / 2;
    held_back_release(&rig.sched, rig.now);
    assert_ptr_equal(take_global(), first);
    submit_outside(&rig.sched, first);
    assert_held_back(second);
    assert_int_equal(held_back_next(&rig.sched), rig.now + HELD_BACK_NS / 2);
    submit_to_deque(worker(0), receiver);
}

TEST(checkpoint_lets_go_one_whose_receiver_rests_to_the_global_queue)
{
    open_rig();
    struct process *senders[] = {hold_back(), hold_back()};
    struct process *other = rig_spawn_taken(&rig_resting);
    submit_outside(&rig.sched, other);
    held_back_check(worker(0));
    assert_held_back(senders[0]);
    catch_up(receiver);
    held_back_check(worker(0));
    assert_ptr_equal(take_global(), other);
    assert_ptr_equal(take_global(), senders[0]);
    assert_null(take_global());
    assert_held_back(senders[1]);
    submit_outside(&rig.sched, other);
    submit_outside(&rig.sched, senders[0]);
}

/* A worker that is about to have no work takes it itself. */
TEST(checkpoint_of_a_worker_without_other_work_leaves_it)
{
    open_rig();
    struct process *sender = hold_back();
    catch_up(receiver);
    held_back_check(worker(0));
    assert_held_back(sender);
}

TEST(poller_waits_for_it)
{
    open_rig();
    assert_false(poll_is_unattended(&rig.sched));
    (void)hold_back();
    assert_true(poll_is_unattended(&rig.sched));
    assert_false(poll_is_late(&rig.sched));
    rig.now += HELD_BACK_NS;
    assert_true(poll_is_late(&rig.sched));
    submit_to_deque(worker(0), receiver);
}

/* ---- what is left in a line ---- */

TEST(who_was_woken_meanwhile_is_let_go_for_nothing)
{
    open_rig();
    struct process *sender = hold_back();
    rig_send(sender);
    struct process *taken = exchange_acq_rel(&worker(0)->next, NULL);
    assert_ptr_equal(taken, sender);
    catch_up(receiver);
    assert_null(find_work(worker(0))); /* it is Ready */
    assert_int_equal(held_back_next(&rig.sched), UINT64_MAX);
    submit_to_deque(worker(0), sender);
}

TEST(who_rests_for_another_reason_has_no_step)
{
    open_rig();
    struct process *sender = hold_back();
    rig_send(sender);
    assert_ptr_equal(exchange_acq_rel(&worker(0)->next, NULL), sender);
    process_set_progress_owner(sender, process_progress(sender) & ~PROCESS_CONTINUES);
    store_relaxed(&sender->type, &rig_resting);
    run(sender);
    assert_true(state_is_waiting(state_peek(sender)));
    assert_int_equal(process_steps(sender), 2);
    catch_up(receiver);
    assert_ptr_equal(find_work(worker(0)), sender);
    run(sender);
    assert_int_equal(process_steps(sender), 2);
    assert_true(state_is_waiting(state_peek(sender)));
}

TEST(who_has_ended_is_not_mistaken_for_the_next_in_its_place)
{
    open_rig();
    struct process *sender = hold_back();
    rig_kill(rig_pid(sender));
    rig_run_all();
    struct process *next = rig_spawn_taken(&rig_resting);
    assert_ptr_equal(next, sender); /* the same record */
    run(next);
    assert_int_equal(process_steps(next), 1);
    rig.now += HELD_BACK_NS;
    held_back_release(&rig.sched, rig.now);
    assert_true(nothing_is_queued());
    assert_int_equal(held_back_next(&rig.sched), UINT64_MAX);
    submit_to_deque(worker(0), receiver);
}
