/* SPDX-License-Identifier: MIT */
/* Processes from outside: ending them, asking them to finish, waiting for them, hearing of their
 * end, and looking at them. */
#include <sched.h>

#include "api_support.h"

#define ERROR_STEP (SKUA_E_USER - 2)

enum { RESULT = 7, KEEP_IT = 1 };

/* ---- a process that does as it is told ---- */

enum order { STAY = 1, FINISH, FAIL, PAUSE, YIELD, CONTINUE, TERMINATE_YOURSELF };

struct subject {
    struct tally entered;  /* a step that pauses has begun */
    struct tally released; /* it may go on */
    struct tally stepped;
    atomic_uint closes;
    uint64_t pauses;
    skua_event cancel; /* the last one */
    unsigned cancels;
    bool deaf; /* does not finish when it is cancelled */
    uint64_t order_of_events[8];
    size_t event_count;
};

static void subject_init(struct subject *subject)
{
    *subject = (struct subject){.closes = 0};
    tally_init(&subject->entered);
    tally_init(&subject->released);
    tally_init(&subject->stepped);
}

static int obey(struct subject *subject, skua_context *ctx, enum order order, skua_step *out)
{
    switch (order) {
    case STAY:
        return 0;
    case FINISH:
        skua_step_done(out, skua_payload_u64(RESULT, 99));
        return 0;
    case FAIL:
        return ERROR_STEP;
    case PAUSE:
        tally_add(&subject->entered, 1);
        tally_wait(&subject->released, ++subject->pauses);
        return 0;
    case YIELD:
        return skua_step_yield(out, KEEP_IT, 0, skua_payload_empty(0));
    case CONTINUE:
        skua_step_continue(out);
        return 0;
    case TERMINATE_YOURSELF:
        return skua_process_terminate(skua_context_runtime(ctx), skua_context_self(ctx));
    }
    return SKUA_E_INVALID;
}

static void note_event(struct subject *subject, const skua_event *event)
{
    if (subject->event_count < COUNT_OF(subject->order_of_events)) {
        subject->order_of_events[subject->event_count++] =
            event->type == SKUA_EVENT_CANCEL ? 0 : event->payload.type;
    }
}

static int subject_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct subject *subject = api_world(self);
    int error = 0;
    for (size_t i = 0; i < count; i++) {
        note_event(subject, &events[i]);
        if (events[i].type == SKUA_EVENT_CANCEL) {
            subject->cancel = events[i];
            subject->cancels++;
            if (!subject->deaf || events[i].error == SKUA_E_STOPPED) {
                skua_step_done(out, skua_payload_empty(0));
            }
        } else {
            error |= obey(subject, ctx, (enum order)events[i].payload.type, out);
        }
    }
    tally_add(&subject->stepped, 1);
    return error;
}

static void subject_close(void *self)
{
    struct subject *subject = api_world(self);
    (void)atomic_fetch_add(&subject->closes, 1);
}

static const skua_process_type subject_type = {
    .name = "subject",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = subject_step,
    .close = subject_close,
};

static void tell(const struct api *api, skua_pid pid, enum order order)
{
    assert_int_equal(skua_message_send(api->runtime, pid, skua_payload_empty(order)), 0);
}

/* Keeps commands, so that their processes stay Blocked. */
static int keep_it(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return SKUA_PENDING;
}

/* ---- what the runtime reports ---- */

#define EXITS_MOST 32

struct exits {
    struct {
        skua_exit exit;
        unsigned closes; /* of the subject, when its end was reported */
    } list[EXITS_MOST];
    atomic_uint count;
    struct subject *subject; /* may be null */
    bool take_results;
    struct tally reported;
};

static void note_exit(void *arg, skua_exit *exit)
{
    struct exits *exits = arg;
    const unsigned index = atomic_fetch_add(&exits->count, 1);
    if (index < EXITS_MOST) {
        exits->list[index].exit = *exit;
        exits->list[index].closes = exits->subject != NULL ? exits->subject->closes : 0;
    }
    if (exits->take_results) {
        (void)skua_payload_take(&exit->result); /* it is in the list now */
    }
    tally_add(&exits->reported, 1);
}

static void exits_init(struct exits *exits, struct subject *subject)
{
    *exits = (struct exits){.subject = subject};
    tally_init(&exits->reported);
}

static void start_with_exits(struct api *api, uint32_t workers, struct exits *exits)
{
    const skua_handler keeper = {.name = "keep it", .run = keep_it};
    api_create(api, (skua_runtime_config){
                        .worker_count = workers, .on_exit = note_exit, .on_exit_arg = exits});
    assert_int_equal(skua_command_register(api->runtime, KEEP_IT, &keeper), 0);
    api_start(api);
}

/* The only process that ended, apart from blockers, was this one, and it ended so. */
static void assert_one_exit(struct exits *exits, skua_pid pid, int error)
{
    unsigned found = 0;
    for (unsigned i = 0; i < exits->count; i++) {
        const skua_exit *exit = &exits->list[i].exit;
        if (exit->type != &subject_type) {
            continue;
        }
        found++;
        assert_true(skua_pid_equal(exit->pid, pid));
        assert_int_equal(exit->error, error);
        assert_int_equal(exits->list[i].closes, 1);
    }
    assert_int_equal(found, 1);
    assert_int_equal(exits->subject->closes, 1);
}

/* ---- terminate ---- */

TEST(terminate_of_a_ready_process_ends_it_before_its_step)
{
    struct api api;
    struct subject subject;
    struct exits exits;
    struct blocker blocker;
    struct tracked item = {0};
    subject_init(&subject);
    exits_init(&exits, &subject);
    start_with_exits(&api, 1, &exits);
    blocker_start(&blocker, &api);
    const skua_pid pid = api_submit(&api, &subject_type, &subject);
    assert_int_equal(skua_message_send(api.runtime, pid, tracked_payload(STAY, &item)), 0);
    assert_int_equal(skua_process_terminate(api.runtime, pid), 0);
    blocker_release(&blocker);
    api_wait_live(&api, 0);
    assert_int_equal(tally_count(&subject.stepped), 0);
    assert_drops(&item, 1, 1);
    api_stop(&api);
    assert_one_exit(&exits, pid, SKUA_E_TERMINATED);
}

static void check_terminate_of_a_waiting_process(enum order order, enum skua_process_state waiting)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct subject subject;
    struct exits exits;
    subject_init(&subject);
    exits_init(&exits, &subject);
    start_with_exits(&api, workers, &exits);
    const skua_pid pid = api_submit(&api, &subject_type, &subject);
    tell(&api, pid, order);
    tally_wait(&subject.stepped, 1);
    api_wait_state(&api, pid, waiting);
    const uint64_t steps = tally_count(&subject.stepped);
    assert_int_equal(skua_process_terminate(api.runtime, pid), 0);
    api_wait_live(&api, 0);
    assert_int_equal(tally_count(&subject.stepped), steps);
    api_stop(&api);
    assert_one_exit(&exits, pid, SKUA_E_TERMINATED);
    assert_int_equal(subject.cancels, 0);
}

TEST(terminate_of_an_idle_process_ends_it_without_a_step)
{
    check_terminate_of_a_waiting_process(STAY, SKUA_PROCESS_IDLE);
}

TEST(terminate_of_a_blocked_process_ends_it_without_a_step)
{
    check_terminate_of_a_waiting_process(YIELD, SKUA_PROCESS_BLOCKED);
}

/* The step that runs is its last, whatever it asks for and whatever still waits. */
static void check_terminate_of_a_running_process(enum order also, unsigned messages)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct subject subject;
    struct exits exits;
    struct blocker blockers[4];
    subject_init(&subject);
    exits_init(&exits, &subject);
    start_with_exits(&api, workers, &exits);
    const skua_pid pid = api_submit(&api, &subject_type, &subject);
    tally_wait(&subject.stepped, 1);
    api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
    /* All messages are to be there when the step begins. */
    for (uint32_t i = 0; i < workers; i++) {
        blocker_start(&blockers[i], &api);
    }
    tell(&api, pid, PAUSE);
    tell(&api, pid, also);
    for (unsigned i = 0; i < messages; i++) {
        tell(&api, pid, STAY);
    }
    for (uint32_t i = 0; i < workers; i++) {
        blocker_release(&blockers[i]);
    }
    tally_wait(&subject.entered, 1);
    assert_int_equal(skua_process_terminate(api.runtime, pid), 0);
    assert_int_equal(subject.closes, 0);
    tally_add(&subject.released, 1);
    api_wait_live(&api, 0);
    api_stop(&api);
    assert_int_equal(tally_count(&subject.stepped), 2);
    assert_one_exit(&exits, pid, SKUA_E_TERMINATED);
}

TEST(terminate_of_a_running_process_ends_it_after_its_step)
{
    check_terminate_of_a_running_process(STAY, 0);
    check_terminate_of_a_running_process(CONTINUE, 0);
    check_terminate_of_a_running_process(YIELD, 0);
}

TEST(terminate_of_a_running_process_leaves_waiting_messages_unread)
{
    check_terminate_of_a_running_process(STAY, 3 * SKUA_EVENTS_PER_STEP);
}

TEST(terminate_of_itself_ends_after_the_step)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct subject subject;
    struct exits exits;
    subject_init(&subject);
    exits_init(&exits, &subject);
    start_with_exits(&api, workers, &exits);
    const skua_pid pid = api_submit(&api, &subject_type, &subject);
    tally_wait(&subject.stepped, 1);
    tell(&api, pid, TERMINATE_YOURSELF);
    api_wait_live(&api, 0);
    api_stop(&api);
    assert_int_equal(tally_count(&subject.stepped), 2);
    assert_one_exit(&exits, pid, SKUA_E_TERMINATED);
}

TEST(terminate_again_changes_nothing)
{
    struct api api;
    struct subject subject;
    struct exits exits;
    subject_init(&subject);
    exits_init(&exits, &subject);
    start_with_exits(&api, 1, &exits);
    const skua_pid pid = api_submit(&api, &subject_type, &subject);
    tell(&api, pid, PAUSE);
    tally_wait(&subject.entered, 1);
    assert_int_equal(skua_process_terminate(api.runtime, pid), 0);
    assert_int_equal(skua_process_terminate(api.runtime, pid), 0); /* it still runs */
    tally_add(&subject.released, 1);
    api_wait_live(&api, 0);
    assert_int_equal(skua_process_terminate(api.runtime, pid), SKUA_E_NO_PROCESS);
    api_stop(&api);
    assert_one_exit(&exits, pid, SKUA_E_TERMINATED);
}

/* A process that others were preferred to, with messages it has not read, is only queued. */
TEST(terminate_of_a_requeued_process_ends_it_without_a_step)
{
    struct api api;
    struct subject subject;
    struct exits exits;
    struct blocker blocker;
    skua_process_info info;
    subject_init(&subject);
    exits_init(&exits, &subject);
    start_with_exits(&api, 1, &exits);
    const skua_pid pid = api_submit(&api, &subject_type, &subject);
    tell(&api, pid, PAUSE);
    tally_wait(&subject.entered, 1);
    for (unsigned i = 0; i < 40 * SKUA_EVENTS_PER_STEP; i++) {
        tell(&api, pid, STAY);
    }
    blocker_submit(&blocker, &api);
    tally_add(&subject.released, 1);
    tally_wait(&blocker.entered, 1); /* so the other one has given way */
    assert_int_equal(skua_process_info_read(api.runtime, pid, &info), 0);
    assert_int_equal(info.state, SKUA_PROCESS_READY);
    assert_true(info.mailbox_length > 0);
    const uint64_t steps = tally_count(&subject.stepped);
    assert_int_equal(skua_process_terminate(api.runtime, pid), 0);
    blocker_release(&blocker);
    api_wait_live(&api, 0);
    assert_int_equal(tally_count(&subject.stepped), steps);
    api_stop(&api);
    assert_one_exit(&exits, pid, SKUA_E_TERMINATED);
}

/* ---- cancel ---- */

static void check_cancel(enum order order, enum skua_process_state waiting)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct subject subject;
    struct exits exits;
    subject_init(&subject);
    exits_init(&exits, &subject);
    start_with_exits(&api, workers, &exits);
    const skua_pid pid = api_submit(&api, &subject_type, &subject);
    tell(&api, pid, order);
    tally_wait(&subject.stepped, 1);
    api_wait_state(&api, pid, waiting);
    assert_int_equal(skua_process_cancel(api.runtime, pid, -1234), 0);
    api_wait_live(&api, 0);
    assert_int_equal(skua_process_cancel(api.runtime, pid, -1234), SKUA_E_NO_PROCESS);
    api_stop(&api);
    assert_int_equal(subject.cancels, 1);
    assert_int_equal(subject.cancel.type, SKUA_EVENT_CANCEL);
    assert_int_equal(subject.cancel.error, -1234);
    assert_int_equal(subject.cancel.tag, 0);
    assert_true(skua_pid_is_none(subject.cancel.from));
    assert_int_equal(subject.cancel.payload.storage, SKUA_PAYLOAD_EMPTY);
    assert_one_exit(&exits, pid, 0);
}

TEST(cancel_reaches_an_idle_process_with_its_reason)
{
    check_cancel(STAY, SKUA_PROCESS_IDLE);
}

TEST(cancel_reaches_a_blocked_process_with_its_reason)
{
    check_cancel(YIELD, SKUA_PROCESS_BLOCKED);
}

TEST(cancel_of_a_process_that_does_not_listen_leaves_it_alive)
{
    struct api api;
    struct subject subject;
    struct exits exits;
    subject_init(&subject);
    subject.deaf = true;
    exits_init(&exits, &subject);
    start_with_exits(&api, 1, &exits);
    const skua_pid pid = api_submit(&api, &subject_type, &subject);
    tally_wait(&subject.stepped, 1);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(skua_process_cancel(api.runtime, pid, 0), 0);
        tally_wait(&subject.stepped, 1 + i);
        api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
        skua_process_info info;
        assert_int_equal(skua_process_info_read(api.runtime, pid, &info), 0);
        assert_int_equal(info.mailbox_length, 0); /* it never was a message */
    }
    tell(&api, pid, PAUSE);
    tally_wait(&subject.entered, 1);
    assert_int_equal(subject.cancels, 3);
    tally_add(&subject.released, 1);
    api_stop(&api);
    assert_int_equal(subject.cancels, 4); /* the last one from the shutdown */
    assert_int_equal(subject.cancel.error, SKUA_E_STOPPED);
    assert_one_exit(&exits, pid, 0);
}

TEST(cancel_keeps_its_place_among_messages)
{
    struct api api;
    struct subject subject;
    struct exits exits;
    subject_init(&subject);
    subject.deaf = true;
    exits_init(&exits, &subject);
    start_with_exits(&api, 1, &exits);
    const skua_pid pid = api_submit(&api, &subject_type, &subject);
    tell(&api, pid, PAUSE);
    tally_wait(&subject.entered, 1);
    tell(&api, pid, STAY);
    assert_int_equal(skua_process_cancel(api.runtime, pid, 0), 0);
    tell(&api, pid, CONTINUE);
    assert_int_equal(skua_process_cancel(api.runtime, pid, 0), 0);
    tell(&api, pid, PAUSE);
    tally_add(&subject.released, 1);
    tally_wait(&subject.entered, 2);
    static const uint64_t expected[] = {PAUSE, STAY, 0, CONTINUE, 0, PAUSE};
    assert_int_equal(subject.event_count, COUNT_OF(expected));
    assert_memory_equal(subject.order_of_events, expected, sizeof expected);
    tally_add(&subject.released, 1);
    api_stop(&api);
}

/* ---- on_exit ---- */

static const struct {
    enum order order;
    int error;
} own_ends[] = {{FINISH, 0}, {FAIL, ERROR_STEP}};

TEST(on_exit_tells_how_a_process_ended_by_itself)
{
    for (size_t i = 0; i < COUNT_OF(own_ends); i++) {
        struct api api;
        struct subject subject;
        struct exits exits;
        subject_init(&subject);
        exits_init(&exits, &subject);
        start_with_exits(&api, 2, &exits);
        const skua_pid pid = api_submit(&api, &subject_type, &subject);
        tell(&api, pid, own_ends[i].order);
        tally_wait(&exits.reported, 1);
        api_stop(&api);
        assert_one_exit(&exits, pid, own_ends[i].error);
        const skua_payload *result = &exits.list[0].exit.result;
        if (own_ends[i].error == 0) {
            assert_int_equal(result->type, RESULT);
            assert_int_equal(skua_payload_to_u64(result), 99);
        } else {
            assert_int_equal(result->storage, SKUA_PAYLOAD_EMPTY);
        }
    }
}

static int stubborn_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                         skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    (void)out;
    return 0;
}

static const skua_process_type stubborn_type = {.name = "stubborn", .step = stubborn_step};

TEST(on_exit_tells_of_processes_ended_by_the_shutdown)
{
    struct api api;
    struct exits exits;
    skua_pid pids[5];
    exits_init(&exits, NULL);
    start_with_exits(&api, 2, &exits);
    for (size_t i = 0; i < COUNT_OF(pids); i++) {
        assert_int_equal(skua_process_submit(api.runtime, &stubborn_type, NULL, NULL, 0, &pids[i]),
                         0);
    }
    api_stop_by_force(&api);
    assert_int_equal(exits.count, COUNT_OF(pids));
    for (size_t i = 0; i < COUNT_OF(pids); i++) {
        unsigned found = 0;
        for (size_t j = 0; j < COUNT_OF(pids); j++) {
            found += skua_pid_equal(exits.list[j].exit.pid, pids[i]);
        }
        assert_int_equal(found, 1);
        assert_int_equal(exits.list[i].exit.error, SKUA_E_TERMINATED);
        assert_ptr_equal(exits.list[i].exit.type, &stubborn_type);
    }
}

/* Ends with a result that owns memory. */
static int giver_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    struct tracked *item = api_world(self);
    (void)ctx;
    if (count > 0 && events[0].type == SKUA_EVENT_MESSAGE) {
        skua_step_done(out, tracked_payload(RESULT, item));
    } else {
        (void)api_finish_if_cancelled(events, count, out);
    }
    return 0;
}

static const skua_process_type giver_type = {
    .name = "giver", .state_size = sizeof(void *), .init = api_init_world, .step = giver_step};

TEST(on_exit_may_take_the_result)
{
    struct api api;
    struct exits exits;
    struct tracked item = {0};
    exits_init(&exits, NULL);
    exits.take_results = true;
    start_with_exits(&api, 1, &exits);
    const skua_pid pid = api_submit(&api, &giver_type, &item);
    tell(&api, pid, STAY);
    tally_wait(&exits.reported, 1);
    api_stop(&api);
    assert_drops(&item, 1, 0);
    assert_ptr_equal(skua_payload_data(&exits.list[0].exit.result), &item);
}

TEST(result_that_nobody_wants_is_dropped_once)
{
    struct api api;
    struct exits exits;
    struct tracked item = {0};
    exits_init(&exits, NULL);
    start_with_exits(&api, 1, &exits);
    const skua_pid pid = api_submit(&api, &giver_type, &item);
    tell(&api, pid, STAY);
    api_wait_live(&api, 0);
    api_stop(&api);
    assert_drops(&item, 1, 1);
}

/* ---- wait ---- */

TEST(wait_for_a_process_that_stays_times_out)
{
    struct api api;
    skua_exit exit = {.error = ERROR_STEP};
    api_run(&api, 1);
    const skua_pid pid = api_submit(&api, &api_idler, NULL);
    assert_int_equal(skua_process_wait(api.runtime, pid, 0, &exit), SKUA_E_TIMEOUT);
    assert_int_equal(skua_process_wait(api.runtime, pid, 1000000, &exit), SKUA_E_TIMEOUT);
    assert_int_equal(skua_process_wait(api.runtime, pid, 1000000, NULL), SKUA_E_TIMEOUT);
    assert_int_equal(api_stats(&api).live, 1);
    api_stop(&api);
}

/* Waiting for a process is none of its business. */
TEST(wait_for_a_process_gives_it_no_step)
{
    struct api api;
    struct subject subject;
    subject_init(&subject);
    api_run(&api, 1);
    const skua_pid pid = api_submit(&api, &subject_type, &subject);
    tally_wait(&subject.stepped, 1);
    api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
    assert_int_equal(skua_process_wait(api.runtime, pid, 0, NULL), SKUA_E_TIMEOUT);
    tell(&api, pid, PAUSE);
    tally_wait(&subject.entered, 1);
    assert_int_equal(skua_process_wait(api.runtime, pid, 0, NULL), SKUA_E_TIMEOUT);
    tally_add(&subject.released, 1);
    tally_wait(&subject.stepped, 2);
    api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
    assert_int_equal(tally_count(&subject.stepped), 2);
    api_stop(&api);
}

TEST(wait_for_a_finished_process_is_refused)
{
    struct api api;
    struct subject subject;
    skua_exit exit = {.error = ERROR_STEP};
    subject_init(&subject);
    api_run(&api, 1);
    const skua_pid pid = api_submit(&api, &subject_type, &subject);
    tell(&api, pid, FINISH);
    api_wait_live(&api, 0);
    assert_int_equal(skua_process_wait(api.runtime, pid, SKUA_FOREVER, &exit), SKUA_E_NO_PROCESS);
    assert_int_equal(skua_process_wait(api.runtime, (skua_pid){0}, SKUA_FOREVER, &exit),
                     SKUA_E_NO_PROCESS);
    api_stop(&api);
}

/* A thread that waits. That it waits can be seen only from its success: a process that ends a
 * moment too early is SKUA_E_NO_PROCESS. */
#define WAITERS 3

struct waiter {
    const struct api *api;
    skua_pid pid;
    struct tally *ready;
    atomic_uint *closes; /* of the process; may be null */
    bool ends_it; /* does not wait, but makes the process finish when the others are about to */
    int error;
    skua_exit exit;
    unsigned closes_at_return;
};

static void wait_or_end(void *arg)
{
    struct waiter *waiter = arg;
    if (waiter->ends_it) {
        tally_wait(waiter->ready, WAITERS);
        for (unsigned i = 0; i < 20; i++) {
            (void)sched_yield(); /* now the others would like to begin */
        }
        waiter->error =
            skua_message_send(waiter->api->runtime, waiter->pid, skua_payload_empty(FINISH));
        return;
    }
    tally_add(waiter->ready, 1);
    waiter->error =
        skua_process_wait(waiter->api->runtime, waiter->pid, SKUA_FOREVER, &waiter->exit);
    waiter->closes_at_return = waiter->closes != NULL ? atomic_load(waiter->closes) : 1;
}

static void check_waiter(const struct waiter *waiter)
{
    assert_true(waiter->error == 0 || waiter->error == SKUA_E_NO_PROCESS);
    if (waiter->error == 0) {
        assert_true(skua_pid_equal(waiter->exit.pid, waiter->pid));
        assert_int_equal(waiter->exit.error, 0);
        assert_int_equal(waiter->exit.result.type, RESULT);
        assert_int_equal(waiter->closes_at_return, 1);
    }
}

/* Lets several threads wait for one process; returns how many were there in time. */
static unsigned wait_together(const struct api *api, const skua_process_type *type, void *world,
                              atomic_uint *closes, struct waiter *waiters)
{
    struct tally ready;
    unsigned in_time = 0;
    tally_init(&ready);
    const skua_pid pid = api_submit(api, type, world);
    for (size_t i = 0; i <= WAITERS; i++) {
        waiters[i] = (struct waiter){
            .api = api, .pid = pid, .ready = &ready, .closes = closes, .ends_it = i == WAITERS};
    }
    api_in_threads(WAITERS + 1, wait_or_end, waiters, sizeof waiters[0]);
    assert_int_equal(waiters[WAITERS].error, 0);
    for (size_t i = 0; i < WAITERS; i++) {
        check_waiter(&waiters[i]);
        in_time += waiters[i].error == 0;
    }
    return in_time;
}

#define WAIT_ROUNDS 500

TEST(wait_of_several_threads_tells_each_the_result)
{
    struct api api;
    unsigned complete_rounds = 0;
    api_run(&api, 2);
    for (unsigned round = 0; round < WAIT_ROUNDS && complete_rounds < 5; round++) {
        struct subject subject;
        struct waiter waiters[WAITERS + 1];
        subject_init(&subject);
        const unsigned in_time =
            wait_together(&api, &subject_type, &subject, &subject.closes, waiters);
        complete_rounds += in_time == WAITERS;
        for (size_t i = 0; i < WAITERS; i++) {
            if (waiters[i].error == 0) {
                assert_int_equal(skua_payload_to_u64(&waiters[i].exit.result), 99);
            }
        }
        api_wait_live(&api, 0);
        assert_int_equal(subject.closes, 1);
    }
    assert_true(complete_rounds > 0);
    api_stop(&api);
}

TEST(wait_of_several_threads_gives_an_owned_result_to_one)
{
    struct api api;
    unsigned complete_rounds = 0;
    api_run(&api, 2);
    for (unsigned round = 0; round < WAIT_ROUNDS && complete_rounds < 5; round++) {
        struct tracked item = {0};
        struct waiter waiters[WAITERS + 1];
        const unsigned in_time = wait_together(&api, &giver_type, &item, NULL, waiters);
        complete_rounds += in_time == WAITERS;
        unsigned owners = 0;
        for (size_t i = 0; i < WAITERS; i++) {
            owners += waiters[i].exit.result.storage == SKUA_PAYLOAD_OWNED;
        }
        api_wait_live(&api, 0);
        assert_int_equal(owners, in_time > 0 ? 1 : 0);
        for (size_t i = 0; i < WAITERS; i++) {
            skua_payload_drop(&waiters[i].exit.result);
        }
        assert_drops(&item, 1, 1);
    }
    assert_true(complete_rounds > 0);
    api_stop(&api);
}

struct inside_calls {
    int errors[4];
    struct tracked items[2];
};

static int waiting_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                        size_t input_count)
{
    (void)api_init_world(self, ctx, method, input, input_count);
    int *error = api_world(self);
    *error =
        skua_process_wait(skua_context_runtime(ctx), skua_context_self(ctx), SKUA_FOREVER, NULL);
    return ERROR_STEP;
}

static const skua_process_type waiting_type = {
    .name = "waiting", .state_size = sizeof(void *), .init = waiting_init, .step = stubborn_step};

static void wait_inside(void *arg, skua_context *ctx, skua_step *out)
{
    struct inside_calls *calls = arg;
    skua_runtime *runtime = skua_context_runtime(ctx);
    skua_payload input[] = {tracked_payload(0, &calls->items[0]),
                            tracked_payload(0, &calls->items[1])};
    skua_payload where = api_world_payload(&calls->errors[3]);
    (void)out;
    calls->errors[0] = skua_process_wait(runtime, skua_context_self(ctx), SKUA_FOREVER, NULL);
    calls->errors[1] = skua_process_wait(runtime, skua_context_self(ctx), 0, NULL);
    calls->errors[2] = skua_process_run(runtime, &api_idler, NULL, input, 2, NULL);
    (void)skua_context_spawn(ctx, &waiting_type, NULL, &where, 1, NULL);
}

TEST(wait_and_run_inside_a_step_or_init_are_refused)
{
    struct api api;
    struct inside_calls calls = {0};
    api_run(&api, 1);
    api_in_step(&api, wait_inside, &calls);
    api_stop(&api);
    for (size_t i = 0; i < COUNT_OF(calls.errors); i++) {
        assert_int_equal(calls.errors[i], SKUA_E_INSIDE_STEP);
    }
    assert_drops(calls.items, 2, 1);
}

/* For another runtime, a worker of this one is a thread like any other. */
static void start_and_end_elsewhere(void *arg, skua_context *ctx, skua_step *out)
{
    const struct api *other = arg;
    skua_pid pid = {0};
    (void)ctx;
    (void)out;
    if (skua_process_submit(other->runtime, &stubborn_type, NULL, NULL, 0, &pid) == 0) {
        (void)skua_process_terminate(other->runtime, pid);
    }
}

TEST(call_to_another_runtime_from_a_step_works)
{
    struct api api;
    struct api other;
    api_run(&api, 1);
    api_run(&other, 1);
    api_in_step(&api, start_and_end_elsewhere, &other);
    assert_int_equal(api_stats(&other).spawned, 1);
    api_wait_live(&other, 0);
    api_stop(&api);
    api_stop(&other);
}

/* ---- run ---- */

/* Ends in its first step, as its input says. */
struct verdict {
    int error;
    atomic_uint closes;
    struct tracked item;
};

static int verdict_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct verdict *verdict = api_world(self);
    (void)ctx;
    (void)events;
    (void)count;
    skua_step_done(out, tracked_payload(RESULT, &verdict->item));
    return verdict->error;
}

static void verdict_close(void *self)
{
    struct verdict *verdict = api_world(self);
    (void)atomic_fetch_add(&verdict->closes, 1);
}

static const skua_process_type verdict_type = {
    .name = "verdict",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = verdict_step,
    .close = verdict_close,
};

TEST(run_returns_how_the_process_ended_after_its_close)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct verdict done = {.error = 0};
    struct verdict failed = {.error = ERROR_STEP};
    struct verdict unheard = {.error = 0};
    api_run(&api, workers);
    skua_exit exit = api_run_process(&api, &verdict_type, &done);
    assert_int_equal(done.closes, 1);
    assert_int_equal(exit.error, 0);
    assert_ptr_equal(skua_payload_data(&exit.result), &done.item);
    assert_drops(&done.item, 1, 0);
    skua_payload_drop(&exit.result);

    exit = api_run_process(&api, &verdict_type, &failed);
    assert_int_equal(failed.closes, 1);
    assert_int_equal(exit.error, ERROR_STEP);
    assert_int_equal(exit.result.storage, SKUA_PAYLOAD_EMPTY);
    assert_drops(&failed.item, 1, 1);

    skua_payload input = api_world_payload(&unheard);
    assert_int_equal(skua_process_run(api.runtime, &verdict_type, NULL, &input, 1, NULL), 0);
    api_wait_live(&api, 0);
    assert_drops(&unheard.item, 1, 1);
    api_stop(&api);
}

/* ---- info ---- */

static skua_process_info look(const struct api *api, skua_pid pid)
{
    skua_process_info info = {.type_name = NULL};
    assert_int_equal(skua_process_info_read(api->runtime, pid, &info), 0);
    assert_true(skua_pid_equal(info.pid, pid));
    assert_string_equal(info.type_name, "subject");
    return info;
}

TEST(info_shows_a_ready_process)
{
    struct api api;
    struct subject subject;
    struct blocker blocker;
    subject_init(&subject);
    api_run(&api, 1);
    blocker_start(&blocker, &api);
    const skua_pid pid = api_submit(&api, &subject_type, &subject);
    for (unsigned i = 0; i < 3; i++) {
        tell(&api, pid, STAY);
        const skua_process_info info = look(&api, pid);
        assert_int_equal(info.state, SKUA_PROCESS_READY);
        assert_int_equal(info.steps, 0);
        assert_int_equal(info.mailbox_length, i + 1);
    }
    blocker_release(&blocker);
    api_stop(&api);
}

TEST(info_shows_a_running_process)
{
    struct api api;
    struct subject subject;
    subject_init(&subject);
    api_run(&api, 1);
    const skua_pid pid = api_submit(&api, &subject_type, &subject);
    tally_wait(&subject.stepped, 1);
    api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
    tell(&api, pid, PAUSE);
    tally_wait(&subject.entered, 1);
    skua_process_info info = look(&api, pid);
    assert_int_equal(info.state, SKUA_PROCESS_RUNNING);
    assert_int_equal(info.steps, 2);
    assert_int_equal(info.mailbox_length, 0); /* the step has it */
    tell(&api, pid, STAY);
    assert_int_equal(skua_process_cancel(api.runtime, pid, 0), 0);
    info = look(&api, pid);
    assert_int_equal(info.mailbox_length, 1); /* cancel events do not count */
    tally_add(&subject.released, 1);
    api_stop(&api);
}

static void check_info_of_a_waiting_process(enum order order, enum skua_process_state waiting)
{
    struct api api;
    struct subject subject;
    struct exits exits;
    subject_init(&subject);
    exits_init(&exits, &subject);
    start_with_exits(&api, 2, &exits);
    const skua_pid pid = api_submit(&api, &subject_type, &subject);
    tally_wait(&subject.stepped, 1);
    api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
    for (uint64_t step = 2; step < 5; step++) {
        tell(&api, pid, order);
        tally_wait(&subject.stepped, step);
        api_wait_state(&api, pid, waiting);
        const skua_process_info info = look(&api, pid);
        assert_int_equal(info.state, waiting);
        assert_int_equal(info.steps, step);
        assert_int_equal(info.mailbox_length, 0);
    }
    api_stop(&api);
}

TEST(info_shows_an_idle_process)
{
    check_info_of_a_waiting_process(STAY, SKUA_PROCESS_IDLE);
}

TEST(info_shows_a_blocked_process)
{
    check_info_of_a_waiting_process(YIELD, SKUA_PROCESS_BLOCKED);
}

TEST(info_of_a_finished_process_is_refused)
{
    struct api api;
    struct subject subject;
    skua_process_info info;
    subject_init(&subject);
    api_run(&api, 1);
    const skua_pid pid = api_submit(&api, &subject_type, &subject);
    tell(&api, pid, FINISH);
    api_wait_live(&api, 0);
    assert_int_equal(skua_process_info_read(api.runtime, pid, &info), SKUA_E_NO_PROCESS);
    api_stop(&api);
}

TEST(state_names_are_those_of_the_header)
{
    assert_string_equal(skua_process_state_name(SKUA_PROCESS_READY), "ready");
    assert_string_equal(skua_process_state_name(SKUA_PROCESS_RUNNING), "running");
    assert_string_equal(skua_process_state_name(SKUA_PROCESS_BLOCKED), "blocked");
    assert_string_equal(skua_process_state_name(SKUA_PROCESS_IDLE), "idle");
    assert_string_equal(skua_process_state_name((enum skua_process_state)99), "?");
}
