/* SPDX-License-Identifier: MIT */
/* What may be relied on once something has ended: places are free, messages have been read, threads
 * are out of the library, and nothing that does not return holds up a stop. */

#include "api_support.h"
#include "effort.h"

#define ROUNDS   EFFORT(2000)
#define MESSAGES 150 /* more than one step gets */

/* ---- a place ---- */

static int end_step(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type ends = {.name = "ends", .step = end_step};

TEST(place_is_free_once_the_end_is_known)
{
    const uint32_t workers = test_workers();
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = workers, .process_limit = 1});
    api_start(&api);
    for (int round = 0; round < ROUNDS; round++) {
        skua_exit exit;
        assert_int_equal(skua_process_run(api.runtime, &ends, NULL, NULL, 0, &exit), 0);
        assert_int_equal(exit.error, 0);
    }
    api_stop(&api);
}

/* ---- accepted messages ---- */

struct counted {
    uint64_t total;
    uint32_t after_cancel;
    uint32_t cancels;
};

static int count_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    struct counted *counted = api_world(self);
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            counted->cancels++;
            skua_step_done(out, skua_payload_empty(0));
        } else {
            counted->total += skua_payload_to_u64(&events[i].payload);
            counted->after_cancel += counted->cancels > 0;
        }
    }
    return 0;
}

static const skua_process_type counts = {
    .name = "counts", .state_size = sizeof(void *), .init = api_init_world, .step = count_step};

TEST(stop_comes_behind_the_messages_before_it)
{
    for (int round = 0; round < EFFORT(200); round++) {
        struct counted counted = {0};
        struct api api;
        api_run(&api, 2);
        const skua_pid pid = api_submit(&api, &counts, &counted);
        for (uint64_t i = 1; i <= MESSAGES; i++) {
            assert_int_equal(skua_message_send(api.runtime, pid, skua_payload_u64(0, i)), 0);
        }
        api_stop(&api);
        assert_int_equal(counted.total, MESSAGES * (MESSAGES + 1) / 2);
        assert_int_equal(counted.cancels, 1);
        assert_int_equal(counted.after_cancel, 0);
    }
}

/* ---- threads ---- */

/* A handler that lets a thread of its own complete the command. */
static void *complete_it(void *arg)
{
    skua_command *command = arg;
    (void)skua_command_complete(command->runtime, command->completion, 0, skua_payload_empty(0));
    return NULL;
}

struct handed_over {
    skua_command command;
    pthread_t thread;
};

static int hand_over(void *arg, skua_command *command, skua_payload *result)
{
    struct handed_over *handed = arg;
    (void)result;
    handed->command = *command;
    return pthread_create(&handed->thread, NULL, complete_it, &handed->command) == 0
               ? SKUA_PENDING
               : SKUA_E_THREAD;
}

static int ask_step(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    (void)self;
    (void)ctx;
    if (count > 0) {
        skua_step_done(out, skua_payload_empty(0));
        return events[0].error;
    }
    return skua_step_yield(out, 1, 0, skua_payload_empty(0));
}

static const skua_process_type asks = {.name = "asks", .step = ask_step};

/* The completion is seen before the call that made it returns. The sanitizers see whether that call
 * then still uses a runtime that is gone. */
TEST(runtime_outlives_the_calls_whose_effect_was_seen)
{
    for (int round = 0; round < EFFORT(300); round++) {
        struct handed_over handed;
        struct api api;
        skua_exit exit;
        api_create(&api, (skua_runtime_config){.worker_count = 2});
        assert_int_equal(
            skua_command_register(
                api.runtime, 1,
                &(skua_handler){.name = "hand over", .run = hand_over, .arg = &handed}),
            0);
        api_start(&api);
        assert_int_equal(skua_process_run(api.runtime, &asks, NULL, NULL, 0, &exit), 0);
        assert_int_equal(exit.error, 0);
        api_stop(&api);
        assert_int_equal(pthread_join(handed.thread, NULL), 0);
    }
}

/* ---- what does not return ---- */

struct doors {
    struct tally entered;
    struct tally opened;
};

static void close_slowly(void *self)
{
    struct doors *doors = api_world(self);
    tally_add(&doors->entered, 1);
    tally_wait(&doors->opened, 1);
}

static const skua_process_type slow_to_close = {
    .name = "slow to close",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = end_step,
    .close = close_slowly,
};

TEST(stop_gives_up_on_a_close_that_does_not_return)
{
    struct doors doors;
    struct api api;
    tally_init(&doors.entered);
    tally_init(&doors.opened);
    api_run(&api, 2);
    (void)api_submit(&api, &slow_to_close, &doors);
    tally_wait(&doors.entered, 1);
    assert_int_equal(skua_runtime_stop(api.runtime, 0), SKUA_E_STUCK);
    assert_int_equal(skua_runtime_destroy(api.runtime), SKUA_E_BUSY);
    tally_add(&doors.opened, 1);
    assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), SKUA_E_TIMEOUT);
    api_stop(&api);
}

/* ---- a batch from the global queue ---- */

TEST(worker_without_work_takes_one_and_moves_sixteen)
{
    struct blocker blocker;
    struct api api;
    api_run(&api, 1);
    blocker_start(&blocker, &api);
    const skua_stats before = api_stats(&api);
    for (int i = 0; i < 17 * 20; i++) {
        assert_int_equal(skua_process_submit(api.runtime, &ends, NULL, NULL, 0, NULL), 0);
    }
    blocker_release(&blocker);
    api_wait_live(&api, 0);
    const skua_stats after = api_stats(&api);
    assert_int_equal(after.global_pops - before.global_pops, 17 * 20);
    /* All but one of each batch come through the deque; now and then fairness takes one alone. */
    assert_in_range(after.local_pops - before.local_pops, 16 * 17, 16 * 20);
    api_stop(&api);
}
