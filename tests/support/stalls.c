/* SPDX-License-Identifier: MIT */
#include "stalls.h"

#include "base/monotonic.h"
#include "runtime/runtime.h"

/* Of the last runtime that stalls_create has made. In memory of its own, as the world is. */
static struct stall_log {
    pthread_mutex_t lock;
    uint32_t count;
    struct stall_record records[STALLS_MAX];
    const char *react_to;
    void (*react)(const skua_stall *stall);
} * stalls;

static void note(void *arg, const skua_stall *stall)
{
    struct stall_log *log = arg;
    (void)pthread_mutex_lock(&log->lock);
    if (log->count < STALLS_MAX) {
        struct stall_record *record = &log->records[log->count++];
        *record = (struct stall_record){.stall = *stall, .when = monotonic_ns()};
        for (uint32_t i = 0; i < stall->frame_count; i++) {
            record->frames[i] = stall->frames[i];
        }
        record->stall.frames = record->frames;
    }
    if (log->react != NULL && strcmp(stall->type_name, log->react_to) == 0) {
        log->react(stall);
        log->react = NULL; /* its close may get stuck as well */
    }
    (void)pthread_mutex_unlock(&log->lock);
}

void stalls_create(skua_runtime_config config)
{
    stalls = test_alloc(sizeof *stalls);
    assert_int_equal(pthread_mutex_init(&stalls->lock, NULL), 0);
    config.on_stall = note;
    config.on_stall_arg = stalls;
    api_stall_limit_ns = 0;
    world_create(config);
    api_stall_limit_ns = API_NEVER_STUCK;
}

void stalls_open(skua_runtime_config config)
{
    stalls_create(config);
    world_start();
}

void stalls_react(const char *type_name, void (*react)(const skua_stall *stall))
{
    (void)pthread_mutex_lock(&stalls->lock);
    stalls->react_to = type_name;
    stalls->react = react;
    (void)pthread_mutex_unlock(&stalls->lock);
}

/* How often it was named; the last time is copied to *last, if there is one. */
static uint32_t find(const struct actor *actor, struct stall_record *last)
{
    uint32_t times = 0;
    (void)pthread_mutex_lock(&stalls->lock);
    for (uint32_t i = 0; i < stalls->count; i++) {
        if (skua_pid_equal(stalls->records[i].stall.pid, actor->pid)) {
            times++;
            *last = stalls->records[i];
        }
    }
    (void)pthread_mutex_unlock(&stalls->lock);
    return times;
}

static bool is_named(void *arg)
{
    return stall_count_of(arg) > 0;
}

struct stall_record stall_await(const struct actor *actor)
{
    struct stall_record record = {0};
    wait_until(is_named, (void *)actor, "a stall to be reported");
    (void)find(actor, &record);
    return record;
}

uint32_t stall_count_of(const struct actor *actor)
{
    struct stall_record record;
    return find(actor, &record);
}

uint32_t stall_count(void)
{
    (void)pthread_mutex_lock(&stalls->lock);
    const uint32_t count = stalls->count;
    (void)pthread_mutex_unlock(&stalls->lock);
    return count;
}

void assert_stalled_once(const struct actor *actor, const char *type_name)
{
    struct stall_record record = {0};
    assert_int_equal(find(actor, &record), 1);
    assert_string_equal(record.stall.type_name, type_name);
    assert_true(record.stall.elapsed_ns >= world_runtime()->sched.config.stall_limit_ns);
    assert_true(record.stall.elapsed_ns <= record.when - actor->init_now);
}

bool stalls_are_impossible_since(uint64_t instant)
{
    return monotonic_ns() - instant < world_runtime()->sched.config.stall_limit_ns;
}

void assert_stalls_without_frames(void)
{
    const uint32_t count = stall_count();
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(stalls->records[i].stall.frame_count, 0);
    }
}
