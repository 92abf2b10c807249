/* SPDX-License-Identifier: MIT */
#include "desk.h"

static void note_call(struct desk *desk, const skua_command *command)
{
    (void)atomic_fetch_add(&desk->calls, 1);
    (void)pthread_mutex_lock(&desk->lock);
    desk->last_command = command->id;
    desk->last_runtime = command->runtime;
    (void)pthread_mutex_unlock(&desk->lock);
}

static int double_it(void *arg, skua_command *command, skua_payload *result)
{
    note_call(arg, command);
    *result = skua_payload_u64(DESK_RESULT, 2 * skua_payload_to_u64(&command->input));
    return 0;
}

static int fail_it(void *arg, skua_command *command, skua_payload *result)
{
    (void)result;
    note_call(arg, command);
    return DESK_ERROR;
}

static int keep_it(void *arg, skua_command *command, skua_payload *result)
{
    struct desk *desk = arg;
    (void)result;
    note_call(desk, command);
    (void)pthread_mutex_lock(&desk->lock);
    const uint64_t n = tally_count(&desk->kept_count);
    if (n < DESK_KEPT_MAX) {
        desk->kept[n] = command->completion;
        desk->deadlines[n] = command->deadline;
    }
    tally_add(&desk->kept_count, 1);
    (void)pthread_mutex_unlock(&desk->lock);
    return n < DESK_KEPT_MAX ? SKUA_PENDING : SKUA_E_NO_MEMORY;
}

static int complete_it(void *arg, skua_command *command, skua_payload *result)
{
    (void)result;
    note_call(arg, command);
    const uint64_t number = skua_payload_to_u64(&command->input);
    const int error = skua_command_complete(command->runtime, command->completion, 0,
                                            skua_payload_u64(DESK_RESULT, number));
    return error != 0 ? error : SKUA_PENDING;
}

static int stick(void *arg, skua_command *command, skua_payload *result)
{
    struct desk *desk = arg;
    (void)result;
    note_call(desk, command);
    tally_add(&desk->stuck, 1);
    tally_wait(&desk->released, tally_count(&desk->stuck));
    return 0;
}

struct desk *desk_open(void)
{
    struct desk *desk = test_alloc(sizeof *desk);
    (void)pthread_mutex_init(&desk->lock, NULL);
    tally_init(&desk->kept_count);
    tally_init(&desk->stuck);
    tally_init(&desk->released);
    world_register(DESK_DOUBLE, double_it, desk);
    world_register(DESK_FAIL, fail_it, desk);
    world_register(DESK_KEEP, keep_it, desk);
    world_register(DESK_COMPLETE, complete_it, desk);
    world_register(DESK_STICK, stick, desk);
    return desk;
}

struct desk *desk_open_with(skua_runtime_config config)
{
    world_create(config);
    struct desk *desk = desk_open();
    world_start();
    return desk;
}

struct desk *desk_open_virtual(void)
{
    world_create_virtual((skua_runtime_config){0});
    struct desk *desk = desk_open();
    world_start();
    return desk;
}

void desk_await_kept(struct desk *desk, uint64_t count)
{
    tally_wait(&desk->kept_count, count);
}

int desk_complete(struct desk *desk, size_t n, int error, uint64_t value)
{
    return skua_command_complete(world_runtime(), desk->kept[n], error,
                                 skua_payload_u64(DESK_RESULT, value));
}

int desk_complete_with(struct desk *desk, size_t n, skua_payload result)
{
    return skua_command_complete(world_runtime(), desk->kept[n], 0, result);
}

void assert_late(struct desk *desk, size_t n)
{
    struct tracked result = {0};
    const uint64_t late = world_stats().late_completions;
    assert_int_equal(skua_command_complete(world_runtime(), desk->kept[n], 0,
                                           tracked_payload(DESK_RESULT, &result)),
                     SKUA_E_LATE);
    assert_drops(&result, 1, 1);
    assert_int_equal(world_stats().late_completions, late + 1);
}

void desk_await_stuck(struct desk *desk, uint64_t count)
{
    tally_wait(&desk->stuck, count);
}

void desk_release(struct desk *desk)
{
    tally_add(&desk->released, tally_count(&desk->stuck) - tally_count(&desk->released));
}
