/* SPDX-License-Identifier: MIT */
#include "virtual_time.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/mutex.h"
#include "runtime/runtime.h"
#include "sched/chores.h"
#include "sched/deliver.h"
#include "sched/poll.h"
#include "sched/stats.h"
#include "sched/worker.h"

/* Long enough for a slow machine with a sanitizer, shorter than the time limit of the test. */
#define HANG_SECONDS 120

_Noreturn static void hang(const char *what)
{
    (void)fprintf(stderr, "virtual_time: waited %d s for %s\n", HANG_SECONDS, what);
    test_describe();
    abort();
}

static uint64_t hang_time(void)
{
    return monotonic_deadline(HANG_SECONDS * SKUA_SECOND);
}

/* ---- the clock ---- */

static uint64_t clock_now(struct time_source *source)
{
    return virtual_now(CONTAINER_OF(source, struct virtual_time, time));
}

uint64_t virtual_now(struct virtual_time *virtual)
{
    return load_acquire(&virtual->now); /* who sees the new time has seen what came before it */
}

void virtual_advance_to(struct virtual_time *virtual, uint64_t instant)
{
    mutex_lock(&virtual->lock);
    SKUA_ASSERT(instant >= virtual_now(virtual));
    store_release(&virtual->now, instant); /* as virtual_now */
    (void)pthread_cond_broadcast(&virtual->changed);
    mutex_unlock(&virtual->lock);
}

/* ---- the poller: for the holder of the role ---- */

static void enter_locked(struct virtual_time *virtual)
{
    virtual->seen.overlaps += virtual->users > 0;
    virtual->users++;
}

static size_t ready_locked(const struct virtual_time *virtual)
{
    size_t ready = 0;
    for (size_t i = 0; i < virtual->wait_count; i++) {
        ready += virtual->waits[i].ready;
    }
    return ready;
}

static bool may_return_locked(struct virtual_time *virtual, uint64_t deadline)
{
    return virtual->interrupted || ready_locked(virtual) > 0 ||
           (deadline != UINT64_MAX && virtual_now(virtual) >= deadline);
}

static int index_of_this_thread(void)
{
    const struct worker *worker = worker_of_thread();
    return worker != NULL ? (int)worker->index : VIRTUAL_NOBODY;
}

static void wait_locked(struct virtual_time *virtual, uint64_t deadline)
{
    virtual->seen.waits++;
    virtual->waiter = index_of_this_thread();
    virtual->until = deadline;
    (void)pthread_cond_broadcast(&virtual->changed);
    while (!may_return_locked(virtual, deadline)) {
        (void)condition_wait_until(&virtual->changed, &virtual->lock, UINT64_MAX);
    }
    virtual->waiter = VIRTUAL_NOBODY;
}

static uint32_t wait_in_poller(struct poller *poller, uint64_t deadline)
{
    struct virtual_time *virtual = CONTAINER_OF(poller, struct virtual_time, poller);
    mutex_lock(&virtual->lock);
    enter_locked(virtual);
    if (deadline > 0) {
        wait_locked(virtual, deadline);
    } else {
        virtual->seen.looks++;
    }
    virtual->interrupted = false;
    const uint32_t ready = (uint32_t)ready_locked(virtual);
    virtual->users--;
    mutex_unlock(&virtual->lock);
    return ready;
}

/* Moves those waits for which `is_over` out of the list; returns how many. */
static size_t remove_locked(struct virtual_time *virtual,
                            bool (*is_over)(struct virtual_time *, const struct virtual_wait *),
                            struct virtual_wait *removed)
{
    size_t kept = 0;
    size_t count = 0;
    for (size_t i = 0; i < virtual->wait_count; i++) {
        const struct virtual_wait wait = virtual->waits[i];
        if (is_over(virtual, &wait)) {
            removed[count++] = wait;
        } else {
            virtual->waits[kept++] = wait;
        }
    }
    virtual->wait_count = kept;
    return count;
}

static bool is_ready(struct virtual_time *virtual, const struct virtual_wait *wait)
{
    (void)virtual;
    return wait->ready;
}

/* The lock is not held while calls are completed: that may interrupt the poller, here. */
static void deliver_ready(struct poller *poller, struct worker *worker, uint32_t ready)
{
    struct virtual_time *virtual = CONTAINER_OF(poller, struct virtual_time, poller);
    struct virtual_wait over[VIRTUAL_WAITS_MAX];
    (void)ready;
    mutex_lock(&virtual->lock);
    enter_locked(virtual);
    const size_t count = remove_locked(virtual, is_ready, over);
    mutex_unlock(&virtual->lock);
    for (size_t i = 0; i < count; i++) {
        skua_payload nothing = skua_payload_empty(0);
        (void)fetch_sub_seq_cst(&virtual->sched->poll.waits, 1);
        if (deliver_is_open(virtual->sched, over[i].completion)) {
            (void)deliver_completion(virtual->sched, worker, over[i].completion, 0, &nothing);
        }
    }
    mutex_lock(&virtual->lock);
    virtual->users--;
    mutex_unlock(&virtual->lock);
}

/* ---- the poller: for others ---- */

static int open_poller(struct poller *poller)
{
    struct virtual_time *virtual = CONTAINER_OF(poller, struct virtual_time, poller);
    mutex_lock(&virtual->lock);
    virtual->seen.opens++;
    mutex_unlock(&virtual->lock);
    return 0;
}

static void close_poller(struct poller *poller)
{
    struct virtual_time *virtual = CONTAINER_OF(poller, struct virtual_time, poller);
    mutex_lock(&virtual->lock);
    virtual->seen.closes++;
    mutex_unlock(&virtual->lock);
}

static void interrupt(struct poller *poller)
{
    struct virtual_time *virtual = CONTAINER_OF(poller, struct virtual_time, poller);
    mutex_lock(&virtual->lock);
    virtual->interrupted = true;
    virtual->seen.interrupts++;
    (void)pthread_cond_broadcast(&virtual->changed);
    mutex_unlock(&virtual->lock);
}

static bool has_ended(struct virtual_time *virtual, const struct virtual_wait *wait)
{
    return !deliver_is_open(virtual->sched, wait->completion);
}

/* Forgets the waits that have ended otherwise. */
static uint64_t check(struct poller *poller, struct worker *worker, uint64_t now)
{
    struct virtual_time *virtual = CONTAINER_OF(poller, struct virtual_time, poller);
    struct virtual_wait over[VIRTUAL_WAITS_MAX];
    (void)worker;
    mutex_lock(&virtual->lock);
    virtual->seen.checks++;
    const size_t count = remove_locked(virtual, has_ended, over);
    const bool again = virtual->wait_count > 0 && virtual->check_period_ns > 0;
    mutex_unlock(&virtual->lock);
    (void)fetch_sub_seq_cst(&virtual->sched->poll.waits, (uint32_t)count);
    return again ? now + virtual->check_period_ns : UINT64_MAX;
}

/* ---- the command ---- */

static bool add_wait(struct virtual_time *virtual, uint64_t source, skua_completion completion)
{
    mutex_lock(&virtual->lock);
    const bool fits = virtual->wait_count < VIRTUAL_WAITS_MAX;
    if (fits) {
        virtual->waits[virtual->wait_count++] = (struct virtual_wait){.source = source,
                                                                      .completion = completion};
    }
    mutex_unlock(&virtual->lock);
    return fits;
}

/* In the order that sched/poll.h asks for: register, count, publish. */
static int wait_for_source(void *arg, skua_command *command, skua_payload *result)
{
    struct virtual_time *virtual = arg;
    struct scheduler *sched = virtual->sched;
    struct worker *worker = worker_here(sched);
    (void)result;
    if (!add_wait(virtual, skua_payload_to_u64(&command->input), command->completion)) {
        return SKUA_E_NO_MEMORY;
    }
    (void)fetch_add_seq_cst(&sched->poll.waits, 1);
    poll_publish(sched, worker, UINT64_MAX);
    if (virtual->check_period_ns > 0) {
        chores_schedule(sched, worker, CHORE_CHECK,
                        virtual_now(virtual) + virtual->check_period_ns);
    }
    return SKUA_PENDING;
}

size_t virtual_make_ready(struct virtual_time *virtual, uint64_t source)
{
    size_t count = 0;
    mutex_lock(&virtual->lock);
    for (size_t i = 0; i < virtual->wait_count; i++) {
        struct virtual_wait *wait = &virtual->waits[i];
        if (wait->source == source && !wait->ready) {
            wait->ready = true;
            count++;
        }
    }
    (void)pthread_cond_broadcast(&virtual->changed);
    mutex_unlock(&virtual->lock);
    return count;
}

size_t virtual_wait_count(struct virtual_time *virtual)
{
    mutex_lock(&virtual->lock);
    const size_t count = virtual->wait_count;
    mutex_unlock(&virtual->lock);
    return count;
}

/* ---- beginning and end ---- */

void virtual_init(struct virtual_time *virtual, uint64_t now)
{
    *virtual = (struct virtual_time){
        .time = {.now = clock_now},
        .poller =
            {
                .open = open_poller,
                .close = close_poller,
                .wait = wait_in_poller,
                .deliver = deliver_ready,
                .interrupt = interrupt,
                .check = check,
            },
        .now = now,
        .waiter = VIRTUAL_NOBODY,
    };
    mutex_init(&virtual->lock);
    condition_init(&virtual->changed);
}

void virtual_create(struct virtual_time *virtual, struct api *api, skua_runtime_config config)
{
    counting_allocator_init(&api->memory);
    config.alloc = counting_allocate;
    config.alloc_arg = &api->memory;
    assert_int_equal(runtime_create(&api->runtime, &config, &virtual->time, &virtual->poller), 0);
    virtual->sched = &api->runtime->sched;
    const skua_handler handler = {.name = "virtual-wait", .run = wait_for_source, .arg = virtual};
    assert_int_equal(skua_command_register(api->runtime, VIRTUAL_WAIT, &handler), 0);
}

void assert_virtual_is_sound(const struct virtual_time *virtual)
{
    assert_int_equal(virtual->seen.opens, 1);
    assert_int_equal(virtual->seen.closes, 1);
    assert_int_equal(virtual->seen.overlaps, 0);
    assert_int_equal(virtual->users, 0);
    assert_int_equal(virtual->waiter, VIRTUAL_NOBODY);
}

/* ---- who waits ---- */

static bool sleeps_locked(struct virtual_time *virtual)
{
    return virtual->waiter != VIRTUAL_NOBODY && !may_return_locked(virtual, virtual->until);
}

int virtual_waiter(struct virtual_time *virtual)
{
    mutex_lock(&virtual->lock);
    const int waiter = sleeps_locked(virtual) ? virtual->waiter : VIRTUAL_NOBODY;
    mutex_unlock(&virtual->lock);
    return waiter;
}

uint64_t virtual_wait_instant(struct virtual_time *virtual)
{
    mutex_lock(&virtual->lock);
    const uint64_t until = sleeps_locked(virtual) ? virtual->until : 0;
    mutex_unlock(&virtual->lock);
    return until;
}

uint64_t virtual_interrupts(struct virtual_time *virtual)
{
    mutex_lock(&virtual->lock);
    const uint64_t interrupts = virtual->seen.interrupts;
    mutex_unlock(&virtual->lock);
    return interrupts;
}

uint64_t virtual_wait_calls(struct virtual_time *virtual)
{
    mutex_lock(&virtual->lock);
    const uint64_t calls = virtual->seen.waits;
    mutex_unlock(&virtual->lock);
    return calls;
}

static void wait_for_change_locked(struct virtual_time *virtual, uint64_t limit, const char *what)
{
    if (!condition_wait_until(&virtual->changed, &virtual->lock, limit)) {
        hang(what);
    }
}

void virtual_await_wait_until(struct virtual_time *virtual, uint64_t instant)
{
    const uint64_t limit = hang_time();
    mutex_lock(&virtual->lock);
    while (!sleeps_locked(virtual) || virtual->until != instant) {
        wait_for_change_locked(virtual, limit, "a worker to wait until an instant");
    }
    mutex_unlock(&virtual->lock);
}

void virtual_nudge(struct virtual_time *virtual)
{
    const uint64_t limit = hang_time();
    mutex_lock(&virtual->lock);
    const uint64_t calls = virtual->seen.waits;
    virtual->interrupted = true;
    (void)pthread_cond_broadcast(&virtual->changed);
    while (virtual->seen.waits == calls || !sleeps_locked(virtual)) {
        wait_for_change_locked(virtual, limit, "a worker to wait again");
    }
    mutex_unlock(&virtual->lock);
}

/* A moment's look at the whole scheduler. */
struct look {
    bool quiet;
    uint64_t steps;
    uint64_t parks;
    uint64_t polls;
};

static bool all_workers_sleep(struct scheduler *sched)
{
    const uint32_t resting = load_seq_cst(&sched->spare.resting);
    return parking_asleep(&sched->parking) + resting == scheduler_threads(sched);
}

static bool poller_is_quiet(struct virtual_time *virtual)
{
    const bool held = load_seq_cst(&virtual->sched->poll.holder) != 0;
    return held ? virtual_waiter(virtual) != VIRTUAL_NOBODY : !poll_is_unattended(virtual->sched);
}

/* It fires timers that are late, which those that a test has moved the clock to all are. */
static bool monitor_is_quiet(struct virtual_time *virtual)
{
    struct skua_runtime *runtime = CONTAINER_OF(virtual->sched, struct skua_runtime, sched);
    return load_seq_cst(&runtime->monitor.is_sampling) == 0;
}

static struct look look_around(struct virtual_time *virtual)
{
    struct scheduler *sched = virtual->sched;
    struct look look = {
        .quiet = all_workers_sleep(sched) && poller_is_quiet(virtual) &&
                 monitor_is_quiet(virtual) && !idle_work_is_visible(sched) &&
                 all_workers_sleep(sched),
    };
    skua_stats stats;
    stats_read_total(sched, &stats);
    look.steps = stats.steps;
    look.parks = stats.parks;
    look.polls = stats.polls;
    return look;
}

/* A worker that has its bit among the sleepers has nothing in hand and has yet to look at every
 * source, or has done so. So one look in which nobody is awake and no source has anything would do,
 * if it took no time. Two of them, between which nobody woke, do as well. What the monitor takes
 * out of a wheel is in a queue when its sample is over: so the queues are looked at after it. */
void virtual_settle(struct virtual_time *virtual)
{
    const uint64_t limit = hang_time();
    for (struct look before = {.quiet = false};;) {
        const struct look now = look_around(virtual);
        if (before.quiet && now.quiet && before.steps == now.steps && before.parks == now.parks &&
            before.polls == now.polls) {
            return;
        }
        if (monotonic_ns() > limit) {
            hang("the runtime to settle");
        }
        before = now;
        (void)sched_yield();
    }
}
