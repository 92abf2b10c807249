/* SPDX-License-Identifier: MIT */
/* Audits: a scheduler without threads that is in order passes, and each fault that is planted in it
 * is found and named. */
#include "watch/audit.h"

#include <stdio.h>

#include "aborts.h"
#include "dispatch/call.h"
#include "pool_support.h"
#include "sched/deliver.h"
#include "sched/poll.h"
#include "sched/worker.h"
#include "scheduler_rig.h"

#define DEADLINE (SCHEDULER_RIG_BEGIN + SKUA_SECOND / 2)

/* Moments after which even a limited audit has been made. */
#define MOMENTS 64

/* One process for each way in which one can be somewhere. */
static struct process *idle;
static struct process *calling; /* Blocked, with a call that has no deadline */
static struct process *timed;   /* Blocked, with one that has */
static struct process *in_global;
static struct process *in_deque; /* with a message */
static struct process *in_next;  /* with another one */

static int call(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    return skua_yield(ctx, 0, RIG_PENDING, skua_payload_empty(0), SKUA_FOREVER);
}

static int call_with_timeout(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    return skua_yield(ctx, 0, RIG_PENDING, skua_nothing(), DEADLINE - SCHEDULER_RIG_BEGIN);
}

static const skua_process_type calling_type = {.name = "calling", .step = call};
static const skua_process_type timed_type = {.name = "timed", .step = call_with_timeout};

/* Three processes rest. */
static void open_resting(void)
{
    scheduler_rig_open();
    idle = rig_spawn(worker(0), &rig_resting);
    calling = rig_spawn(worker(0), &calling_type);
    timed = rig_spawn(worker(0), &timed_type);
    rig_run_all();
}

/* And three more are Ready. */
static void open_busy(void)
{
    open_resting();
    in_global = rig_spawn(NULL, &rig_resting);
    in_next = rig_spawn(worker(0), &rig_resting);
    in_deque = rig_spawn(worker(0), &rig_resting);
    rig_send(in_deque);
    rig_send(in_next);
}

static void audit(void)
{
    audit_now(&rig.sched, &(struct audit_moment){0});
}

static void call_function(void *arg)
{
    (*(void (**)(void))arg)();
}

/* Whether the function ends with such a message; %u in it is the slot of the process. */
static void assert_found(void (*function)(void), const char *finding, const struct process *process)
{
    char text[128];
    (void)snprintf(text, sizeof text, finding, process->slot);
    assert_true(aborts_saying(call_function, &function, text));
}

static void assert_nothing_found(void (*function)(void))
{
    assert_false(aborts(call_function, &function));
}

TEST(order_passes)
{
    open_busy();
    audit();
    rig_run_all();
    audit_now(&rig.sched, &(struct audit_moment){.is_at_rest = true});
}

/* A thread that is inside of a call may have a node in its hands. */
TEST(nothing_is_found_while_others_are_inside)
{
    uint32_t index = OBJECT_NONE;
    open_busy();
    assert_true(deliver_acquire_node(&rig.sched, worker(0), &index));
    (void)fetch_add_seq_cst(&rig.sched.callers, 1);
    audit();
    deliver_release_node(&rig.sched, worker(0), index);
    (void)fetch_sub_seq_cst(&rig.sched.callers, 1);
    audit();
}

/* ---- faults ---- */

/* A test that finds a fault, and says so of this process; what plants it follows. */
#define FAULT(name, process, finding)                                                              \
    static void name(void);                                                                        \
    static void audit_##name(void)                                                                 \
    {                                                                                              \
        name();                                                                                    \
        audit();                                                                                   \
    }                                                                                              \
    TEST(name##_is_found)                                                                          \
    {                                                                                              \
        open_busy();                                                                               \
        assert_found(audit_##name, finding, process);                                              \
    }                                                                                              \
    static void name(void)

static uint32_t take_node(void)
{
    return pool_take(&rig.sched.events, &worker(0)->caches.events);
}

static void give_node(uint32_t index)
{
    pool_give(&rig.sched.events, &worker(1)->caches.events, index);
}

static struct process *take_slot(struct caches *caches)
{
    struct object_pool *pool = &rig.sched.table.pool;
    return object_pool_at(pool, pool_take(pool, &caches->processes));
}

static uint32_t message_of(struct process *process)
{
    return event_list_first(load_relaxed(&process->word));
}

static struct event_node *node_at(uint32_t index)
{
    return event_at(&rig.sched.events, index);
}

static void push_global(struct process *process)
{
    struct queue_link *link = &process->link.queue;
    global_queue_push_any(&rig.sched.global, link, link);
}

FAULT(double_token, in_next, "INV-3: slot %u is in a next slot and in a deque")
{
    assert_true(deque_push_owner(&worker(1)->deque, in_next));
}

FAULT(token_lost_from_a_next_slot, in_next, "INV-3: slot %u is Ready and in no place")
{
    store_relaxed(&worker(0)->next, NULL);
}

FAULT(token_lost_from_a_deque, in_deque, "INV-3: slot %u is Ready and in no place")
{
    assert_ptr_equal(deque_pop_owner(&worker(0)->deque), in_deque);
}

FAULT(queued_idle_process, idle, "INV-3: slot %u is Idle and in the global queue")
{
    push_global(idle);
}

FAULT(queued_free_slot, idle, "is Free and in a deque")
{
    assert_true(deque_push_owner(&worker(0)->deque, take_slot(&worker(0)->caches)));
}

FAULT(miscounted_queue, idle, "INV-3: the global queue has 0 sorted processes and counts 1")
{
    (void)fetch_add_seq_cst(&rig.sched.global.sorted, 1);
}

FAULT(node_in_two_reserves, idle, "is in the reserve of a worker and in the reserve of a worker")
{
    worker(1)->out.reserve[0] = worker(0)->out.reserve[0];
    worker(1)->out.reserve_count = 1;
}

FAULT(node_lost_from_a_reserve, idle, "is in no list: it is lost")
{
    worker(0)->out.reserve_count--;
}

FAULT(freed_annex, idle, "and in use as an annex")
{
    const uint32_t node = take_node();
    (void)annex_attach_owner(&rig.sched.events, calling, node);
    give_node(node);
}

FAULT(lost_annex, calling, "is in no list: it is lost")
{
    (void)annex_attach_owner(&rig.sched.events, calling, take_node());
    (void)annex_detach_owner(&rig.sched.events, calling);
}

/* With its calls behind it. */
TEST(annex_and_reserve_pass)
{
    open_busy();
    assert_int_equal(worker(0)->out.reserve_count, STEP_RESERVE);
    (void)annex_attach_owner(&rig.sched.events, calling, take_node());
    audit();
    give_node(annex_detach_owner(&rig.sched.events, calling));
    audit();
}

FAULT(lost_slot, idle, "is Free and in no place")
{
    (void)take_slot(&rig.sched.outside.caches);
}

FAULT(freed_live_slot, idle, "INV-20: slot %u is Idle and in a cache")
{
    pool_give(&rig.sched.table.pool, &worker(0)->caches.processes, idle->slot);
}

FAULT(abandoned_init, idle, "is Init, and nobody is at it")
{
    (void)state_prepare_owner(take_slot(&worker(0)->caches));
}

FAULT(miscounted_processes, idle, "INV-20: 6 processes are alive, and 7 are counted")
{
    counter_add_any(&rig.sched.outside.stats.spawned, 1);
}

FAULT(miscounted_retired_slots, idle, "INV-20: 0 slots are Retired, and 1 are counted")
{
    object_pool_retire_any(&rig.sched.table.pool);
}

FAULT(miscounted_chains, idle, "INV-20: event node: the pool has 0 free chains")
{
    (void)fetch_add_relaxed(&rig.sched.events.chain_count, 1);
}

FAULT(lost_node, idle, "is in no list: it is lost")
{
    (void)take_node();
}

FAULT(node_given_twice, idle, "is in a cache of free objects and in a cache of free")
{
    const uint32_t index = take_node();
    give_node(index);
    give_node(index);
}

FAULT(freed_message, idle, "is in a cache of free objects and in a mailbox")
{
    give_node(message_of(in_next));
}

FAULT(shared_message, idle, "is in a mailbox and in a mailbox")
{
    node_at(message_of(in_next))->next = message_of(in_deque);
}

FAULT(message_shared_with_a_backlog, idle, " and in a ")
{
    in_global->backlog = message_of(in_deque);
}

FAULT(idle_process_with_a_message, idle, "INV-10: slot %u is Idle and has events")
{
    const uint32_t tag = state_peek(idle);
    const uint32_t index = take_node();
    node_at(index)->next = OBJECT_NONE;
    store_relaxed(&idle->word, event_list_word(index, tag));
}

FAULT(idle_process_with_a_backlog, idle, "INV-10: slot %u is Idle and has events")
{
    idle->backlog = take_node();
}

FAULT(idle_process_that_nobody_lets_go, idle, "INV-46: slot %u continues, but rests")
{
    process_set_progress_owner(idle, process_progress(idle) | PROCESS_CONTINUES);
}

FAULT(freed_call, idle, "is an open call and in a cache of free objects")
{
    give_node(calling->calls);
}

FAULT(forgotten_call, idle, "is in no list: it is lost")
{
    calling->calls = OBJECT_NONE;
}

FAULT(forgotten_call_with_a_deadline, idle, "is in a wheel, but no open call of a process")
{
    timed->calls = OBJECT_NONE;
}

FAULT(shared_call, idle, "is an open call twice")
{
    node_at(calling->calls)->as.call.next = timed->calls;
}

FAULT(call_in_two_lists, idle, "is an open call twice")
{
    idle->calls = calling->calls;
}

FAULT(misplaced_call, idle, "comes after 0, not")
{
    node_at(calling->calls)->as.call.previous = timed->calls;
}

FAULT(closed_call_in_a_list, idle, "is in a list of calls, but no open call")
{
    struct event_node *node = node_at(calling->calls);
    assert_true(call_claim_any(node, load_relaxed(&node->guard)));
}

FAULT(armed_free_node, idle, "is in the wheel of worker 0 and thinks otherwise")
{
    const uint32_t index = take_node();
    assert_false(deadlines_arm_any(&rig.sched.deadlines, 0, index, 2 * DEADLINE, rig.now));
    give_node(index);
}

FAULT(miscounted_wheel, idle, "INV-20: the wheel of worker 0 has 1 timers and counts 2")
{
    rig.sched.deadlines.wheels[0].wheel.count++;
}

FAULT(hidden_timer, idle, "INV-10: the wheel of worker 0 has an earlier timer")
{
    store_seq_cst(&rig.sched.deadlines.wheels[0].next, WHEEL_NEVER);
}

/* As a call whose timeout is long. */
static void move_timer_beside(void)
{
    struct deadline_wheel *wheel = &rig.sched.deadlines.wheels[0];
    wheel_remove(&wheel->wheel, timed->calls);
    assert_false(
        deadlines_put_beside_owner(&rig.sched.deadlines, 0, timed->calls, DEADLINE + SKUA_SECOND));
}

TEST(timer_beside_a_wheel_is_in_order)
{
    open_resting();
    move_timer_beside();
    audit();
}

FAULT(hidden_timer_beside_a_wheel, idle, "INV-10: beside the wheel of worker 0 is an earlier timer")
{
    move_timer_beside();
    store_seq_cst(&rig.sched.deadlines.wheels[0].next, WHEEL_NEVER);
}

FAULT(timer_in_a_wheel_and_beside_it, idle, "is armed twice, now in the wheel of worker 0")
{
    store_seq_cst(&rig.sched.deadlines.wheels[0].beside[0], timed->calls);
}

/* ---- what is wrong only at some moments ---- */

static void show_token_again(struct audit *audit, void *arg)
{
    (void)arg;
    audit_show_token(audit, in_next);
}

static void show_message(struct audit *audit, void *arg)
{
    (void)arg;
    audit_show_node(audit, message_of(in_next));
}

static struct audit_moment moment;

static void audit_at_the_moment(void)
{
    audit_now(&rig.sched, &moment);
}

TEST(contradictions_to_the_moment_are_found)
{
    static const struct {
        struct audit_moment moment;
        const char *finding;
    } rows[] = {
        {{.show = show_token_again},
         "INV-3: slot %u is in a next slot and in the simulator's list"},
        {{.show = show_message}, "is in the agenda and in a mailbox"},
        {{.is_at_rest = true}, "INV-10: at rest, slot"},
        {{.is_at_end = true}, "INV-20: at the end, slot"},
    };
    FOR_ROWS (row, rows) {
        open_busy();
        moment = row->moment;
        assert_found(audit_at_the_moment, row->finding, in_next);
    }
}

TEST(rest_with_something_due_is_found)
{
    open_resting();
    moment = (struct audit_moment){.is_at_rest = true};
    rig.now = 2 * DEADLINE;
    assert_found(audit_at_the_moment, "the wheel of worker 0 has something due", idle);
    rig.now = SCHEDULER_RIG_BEGIN;
}

/* ---- when all sleep ---- */

static void go_to_sleep(void)
{
    for (uint32_t i = 0; i < SCHEDULER_RIG_WORKERS; i++) {
        parking_announce_owner(&rig.sched.parking, i, false);
    }
}

static void go_to_sleep_and_poll(void)
{
    go_to_sleep();
    assert_true(poll_try_take(&rig.sched, worker(0)));
}

static void wake_up(void)
{
    for (uint32_t i = 0; i < SCHEDULER_RIG_WORKERS; i++) {
        assert_true(parking_retract_owner(&rig.sched.parking, i));
        assert_true(parking_end_search_owner(&rig.sched.parking));
    }
    store_seq_cst(&rig.sched.poll.holder, 0);
}

static void look_once(void)
{
    audit_asleep(&rig.sched, 1);
}

/* Like FAULT, of what all workers sleep on. */
#define SLEEP_FAULT(name, finding)                                                                 \
    static void name(void);                                                                        \
    static void look_at_##name(void)                                                               \
    {                                                                                              \
        name();                                                                                    \
        look_once();                                                                               \
    }                                                                                              \
    TEST(name##_is_found)                                                                          \
    {                                                                                              \
        open_resting();                                                                            \
        go_to_sleep_and_poll();                                                                    \
        assert_found(look_at_##name, finding, idle);                                               \
        look_once(); /* without a fault there is nothing to find */                                \
        wake_up();                                                                                 \
    }                                                                                              \
    static void name(void)

static struct process *make_ready(void)
{
    assert_int_equal(state_request_any(idle, pid_generation(rig_pid(idle)), STATE_KILL),
                     STATE_ENQUEUE);
    return idle;
}

SLEEP_FAULT(sleep_on_a_lost_token, "INV-10: all sleep, and slot %u is Ready")
{
    (void)make_ready();
}

SLEEP_FAULT(sleep_on_the_global_queue, "INV-10: all sleep, and the global queue is not empty")
{
    push_global(make_ready());
}

SLEEP_FAULT(sleep_on_a_deque, "INV-10: all sleep, and the deque of worker 1 is not empty")
{
    assert_true(deque_push_owner(&worker(1)->deque, make_ready()));
}

SLEEP_FAULT(sleep_on_a_next_slot, "INV-10: all sleep, and the next slot of worker 1 is not empty")
{
    store_relaxed(&worker(1)->next, make_ready());
}

SLEEP_FAULT(sleep_on_a_complete_process, "INV-3: all sleep, and slot %u is Complete")
{
    assert_true((state_finish_owner(make_ready()) & STATE_KILL) != 0);
}

SLEEP_FAULT(sleep_without_a_poller, "INV-10: all sleep, and nobody waits for timers")
{
    store_seq_cst(&rig.sched.poll.holder, 0);
}

SLEEP_FAULT(sleep_that_is_too_long, "INV-10: all sleep, and the poller until after")
{
    store_seq_cst(&rig.sched.poll.until, 2 * DEADLINE);
}

SLEEP_FAULT(sleep_while_some_are_held_back, "INV-10: all sleep, and the poller until after")
{
    store_seq_cst(&rig.sched.poll.until, DEADLINE / 2);
    store_seq_cst(&rig.sched.held_back.due, DEADLINE / 2 - 1);
}

/* While a worker is awake it may be about to see what there is. */
TEST(nothing_is_found_while_a_worker_is_awake)
{
    open_resting();
    struct process *process = make_ready();
    parking_announce_owner(&rig.sched.parking, 0, false);
    look_once();
    go_to_sleep_and_poll();
    store_seq_cst(&worker(1)->running, RUNNING_UNKNOWN);
    look_once();
    store_seq_cst(&worker(1)->running, RUNNING_NOTHING);
    wake_up();
    submit_ready(&rig.sched, worker(0), process);
}

/* ---- now and then ---- */

static uint32_t moments;

static void audit_a_lost_node_now_and_then(void)
{
    (void)take_node();
    for (uint32_t i = 0; i < moments; i++) {
        audit_now_and_then(&rig.sched, &(struct audit_moment){0});
    }
}

static void audit_sleep_now_and_then(void)
{
    for (uint32_t i = 0; i < moments; i++) {
        audit_asleep_now_and_then(&rig.sched, 0);
    }
}

TEST(limited_audits_wait_for_their_turn)
{
    open_busy();
    moments = 1;
    assert_nothing_found(audit_a_lost_node_now_and_then);
    moments = MOMENTS;
    assert_found(audit_a_lost_node_now_and_then, "it is lost", idle);
    go_to_sleep();
    moments = 1;
    assert_nothing_found(audit_sleep_now_and_then);
    moments = MOMENTS;
    assert_found(audit_sleep_now_and_then, "INV-10: all sleep", idle);
    wake_up();
}
