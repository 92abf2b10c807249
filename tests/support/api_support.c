/* SPDX-License-Identifier: MIT */
#include "api_support.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "runtime_support.h"

/* Long enough for a slow machine with a sanitizer, shorter than the time limit of the test. */
#define HANG_SECONDS 120
#define HANG_NS      (HANG_SECONDS * UINT64_C(1000000000))

/* ---- a runtime ---- */

uint64_t api_stall_limit_ns = API_NEVER_STUCK;

void api_create(struct api *api, skua_runtime_config config)
{
    counting_allocator_init(&api->memory);
    config.alloc = counting_allocate;
    config.alloc_arg = &api->memory;
    if (config.stall_limit_ns == 0) {
        config.stall_limit_ns = api_stall_limit_ns;
    }
    assert_int_equal(skua_runtime_create(&api->runtime, &config), 0);
}

void api_start(struct api *api)
{
    assert_int_equal(skua_runtime_start(api->runtime), 0);
}

void api_run(struct api *api, uint32_t workers)
{
    api_create(api, (skua_runtime_config){.worker_count = workers});
    api_start(api);
}

void api_destroy(struct api *api)
{
    const skua_stats stats = api_stats(api);
    assert_int_equal(stats.live, 0);
    assert_int_equal(stats.finished, stats.spawned);
    assert_int_equal(skua_runtime_destroy(api->runtime), 0);
    assert_true(counting_allocator_is_clean(&api->memory));
}

void api_stop(struct api *api)
{
    assert_int_equal(skua_runtime_stop(api->runtime, HANG_NS), 0);
    api_destroy(api);
}

void api_stop_by_force(struct api *api)
{
    int error = skua_runtime_stop(api->runtime, 0);
    if (error == SKUA_E_STUCK) { /* a busy machine may take its time over the last step */
        error = skua_runtime_stop(api->runtime, HANG_NS);
    }
    assert_int_equal(error, SKUA_E_TIMEOUT);
    api_destroy(api);
}

skua_stats api_stats(const struct api *api)
{
    skua_stats stats = {0};
    assert_true(skua_stats_read(api->runtime, &stats, NULL, 0) > 0);
    return stats;
}

/* ---- waiting ---- */

static struct timespec hang_time(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += HANG_SECONDS;
    return time;
}

_Noreturn static void hang(const char *what)
{
    (void)fprintf(stderr, "api_support: waited %d s for %s\n", HANG_SECONDS, what);
    test_describe();
    abort();
}

/* For conditions that nobody announces. */
static void look_again(const struct timespec *limit, const char *what)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > limit->tv_sec) {
        hang(what);
    }
    (void)sched_yield();
}

void tally_init(struct tally *tally)
{
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&tally->lock, NULL);
    (void)pthread_cond_init(&tally->grown, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    tally->count = 0;
}

void tally_add(struct tally *tally, uint64_t amount)
{
    (void)pthread_mutex_lock(&tally->lock);
    tally->count += amount;
    (void)pthread_cond_broadcast(&tally->grown);
    (void)pthread_mutex_unlock(&tally->lock);
}

void tally_wait(struct tally *tally, uint64_t at_least)
{
    const struct timespec limit = hang_time();
    (void)pthread_mutex_lock(&tally->lock);
    while (tally->count < at_least) {
        if (pthread_cond_timedwait(&tally->grown, &tally->lock, &limit) != 0) {
            hang("a tally");
        }
    }
    (void)pthread_mutex_unlock(&tally->lock);
}

uint64_t tally_count(struct tally *tally)
{
    (void)pthread_mutex_lock(&tally->lock);
    const uint64_t count = tally->count;
    (void)pthread_mutex_unlock(&tally->lock);
    return count;
}

void api_wait_state(const struct api *api, skua_pid pid, enum skua_process_state state)
{
    const struct timespec limit = hang_time();
    skua_process_snapshot info;
    while (skua_process_info(api->runtime, pid, &info) != 0 || info.state != state) {
        look_again(&limit, "the state of a process");
    }
}

void api_wait_steps(const struct api *api, skua_pid pid, uint64_t at_least)
{
    const struct timespec limit = hang_time();
    skua_process_snapshot info;
    while (skua_process_info(api->runtime, pid, &info) == 0 && info.steps < at_least) {
        look_again(&limit, "the steps of a process");
    }
}

void api_wait_live(const struct api *api, uint64_t count)
{
    const struct timespec limit = hang_time();
    skua_stats stats;
    while (skua_stats_read(api->runtime, &stats, NULL, 0) > 0 && stats.live != count) {
        look_again(&limit, "the number of processes");
    }
}

/* ---- payloads that count their drops ---- */

static void count_drop(void *data, size_t size)
{
    struct tracked *item = data;
    (void)size;
    (void)atomic_fetch_add(&item->drops, 1);
}

skua_payload tracked_payload(uint32_t type, struct tracked *item)
{
    return skua_payload_owned(type, item, sizeof *item, count_drop);
}

skua_payload tracked_oversized(size_t limit, struct tracked *item)
{
    skua_payload payload = tracked_payload(0, item);
    payload.as.owned.size = limit + 1;
    return payload;
}

uint64_t tracked_value(const skua_payload *payload)
{
    const struct tracked *item = skua_payload_data(payload);
    return item->value;
}

void assert_drops(struct tracked *items, size_t count, unsigned expected)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(atomic_load(&items[i].drops), expected);
    }
}

static bool is_dropped(void *arg)
{
    const struct tracked *item = arg;
    return atomic_load(&item->drops) != 0;
}

void await_drop(struct tracked *item)
{
    wait_until(is_dropped, item, "the drop of a payload");
}

/* ---- threads ---- */

struct starting_line {
    pthread_barrier_t barrier;
    void (*function)(void *arg);
};

struct runner {
    struct starting_line *line;
    void *arg;
    pthread_t thread;
};

static void *run(void *arg)
{
    struct runner *runner = arg;
    (void)pthread_barrier_wait(&runner->line->barrier);
    runner->line->function(runner->arg);
    return NULL;
}

void api_in_threads(size_t count, void (*function)(void *arg), void *args, size_t arg_size)
{
    struct starting_line line = {.function = function};
    struct runner runners[16];
    assert_in_range(count, 1, COUNT_OF(runners));
    assert_int_equal(pthread_barrier_init(&line.barrier, NULL, (unsigned)count), 0);
    for (size_t i = 0; i < count; i++) {
        runners[i] = (struct runner){.line = &line, .arg = (char *)args + i * arg_size};
        assert_int_equal(pthread_create(&runners[i].thread, NULL, run, &runners[i]), 0);
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pthread_join(runners[i].thread, NULL), 0);
    }
    assert_int_equal(pthread_barrier_destroy(&line.barrier), 0);
}

/* ---- processes ---- */

int api_init_world(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)ctx;
    if (input_count == 0 || input[0].storage != SKUA_PAYLOAD_POINTER) {
        return SKUA_E_INVALID;
    }
    const void *world = skua_payload_data(&input[0]);
    memcpy(self, &world, sizeof world);
    return 0;
}

void *api_world(const void *self)
{
    void *world;
    memcpy(&world, self, sizeof world);
    return world;
}

skua_payload api_world_payload(void *world)
{
    return skua_payload_pointer(0, world, NULL);
}

skua_pid api_submit(const struct api *api, const skua_process_type *type, void *world)
{
    skua_payload input = api_world_payload(world);
    skua_pid pid = {0};
    assert_int_equal(skua_process_submit(api->runtime, type, input, &pid), 0);
    assert_false(skua_pid_is_none(pid));
    return pid;
}

skua_exit api_run_process(const struct api *api, const skua_process_type *type, void *world)
{
    skua_payload input = api_world_payload(world);
    skua_exit exit = {.error = SKUA_E_USER};
    assert_int_equal(skua_process_run(api->runtime, type, input, &exit), 0);
    assert_ptr_equal(exit.type, type);
    return exit;
}

void api_wait_end(const struct api *api, skua_pid pid)
{
    const int error = skua_process_wait(api->runtime, pid, HANG_NS, NULL);
    assert_true(error == 0 || error == SKUA_E_NO_PROCESS);
}

static int idler_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    return 0;
}

const skua_process_type api_idler = {.name = "idler", .step = idler_step};
