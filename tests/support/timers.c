/* SPDX-License-Identifier: MIT */
#include "timers.h"

#include "base/mutex.h"
#include "runtime/runtime.h"

static struct scheduler *scheduler(void)
{
    return &world_runtime()->sched;
}

uint64_t firing_time(uint64_t instant)
{
    return (instant + RESOLUTION - 1) / RESOLUTION * RESOLUTION;
}

uint32_t timers_armed_with(uint32_t worker)
{
    struct deadline_wheel *wheel = &scheduler()->deadlines.wheels[worker];
    mutex_lock(&wheel->lock);
    uint32_t count = wheel->wheel.count;
    for (uint32_t i = 0; i < DEADLINE_PLACES; i++) {
        count += load_seq_cst(&wheel->beside[i]) != OBJECT_NONE; /* MO-beside */
    }
    mutex_unlock(&wheel->lock);
    return count;
}

uint32_t timers_armed(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < scheduler()->deadlines.count; i++) {
        count += timers_armed_with(i);
    }
    return count;
}

uint64_t timers_fired(void)
{
    return world_stats().timers;
}

static uint64_t cached(const struct pool_cache *cache)
{
    return (uint64_t)cache->active.count + cache->spare.count;
}

/* Right as long as the pool is not trimmed. */
uint64_t nodes_in_use(void)
{
    world_settle();
    struct scheduler *sched = scheduler();
    uint64_t unused = (uint64_t)object_pool_free_chains(&sched->events) * sched->events.batch +
                      cached(&sched->outside.caches.events);
    for (uint32_t i = 0; i < sched->capacity; i++) {
        unused += cached(&sched->workers[i].caches.events);
    }
    return load_relaxed(&sched->events.ready) - 1 - unused;
}

void await_before_timers(void)
{
    if (world->is_simulated) {
        world_set_clock(world_now() + SECOND);
    } else {
        world_settle();
    }
}

void look_at_timers(void)
{
    world_settle();
    virtual_nudge(&world->time);                          /* as the worker that waits for them */
    (void)actor_start(ACTS(continues(600), finishes(0))); /* and between the picks of a busy one */
    world_settle();
}

static bool more_have_fired(void *arg)
{
    return timers_fired() > *(const uint64_t *)arg;
}

void advance_until_fired(uint64_t instant)
{
    uint64_t before = timers_fired();
    virtual_await_wait_until(&world->time, instant);
    world_set_clock(instant);
    wait_until(more_have_fired, &before, "a timer to fire");
}

/* Or until the stacks of tasks are swept, if that is earlier. */
static uint64_t or_sweep(uint64_t instant)
{
    const uint64_t due = load_seq_cst(&world_runtime()->sched.chores.due[CHORE_SWEEP]);
    return due != UINT64_MAX && (instant == 0 || due < instant) ? due : instant;
}

void assert_waits_until(uint64_t instant)
{
    world_settle();
    assert_int_equal(virtual_wait_instant(&world->time), or_sweep(instant));
}

void assert_nobody_waits(void)
{
    assert_waits_until(0);
}

void assert_waits_for_nothing(void)
{
    world_settle();
    const uint64_t instant = virtual_wait_instant(&world->time);
    assert_true(instant == 0 || instant == SKUA_FOREVER);
    assert_int_equal(load_relaxed(&scheduler()->poll.waits), 0);
}
