/* SPDX-License-Identifier: MIT */
#include "dispatch/deadlines.h"

#include <string.h>

#include "base/mutex.h"
#include "dispatch/call.h"

/* Calls moved within a wheel per acquisition of its lock, at most. */
#define MOVES_MAX 256
/* One in so many of a batch is for calls that are due later than others that are still to come. */
#define LATEST_SHARE 4
#define CROWD_NS     UINT64_C(1000000)

static size_t wheels_size(uint32_t count)
{
    return count * sizeof(struct deadline_wheel);
}

bool deadlines_init(struct deadlines *deadlines, const struct allocator *allocator,
                    struct object_pool *events, uint32_t wheel_count)
{
    *deadlines = (struct deadlines){.allocator = allocator, .events = events};
    deadlines->wheels = allocator_alloc(allocator, wheels_size(wheel_count), CACHE_LINE);
    if (deadlines->wheels == NULL) {
        return false;
    }
    deadlines->count = wheel_count;
    for (uint32_t i = 0; i < wheel_count; i++) {
        struct deadline_wheel *wheel = &deadlines->wheels[i];
        store_relaxed(&wheel->next, WHEEL_NEVER); /* not shared yet */
        mutex_init(&wheel->lock);
        wheel_init(&wheel->wheel, events, offsetof(struct event_node, as.call.timer));
    }
    return true;
}

void deadlines_deinit(struct deadlines *deadlines)
{
    for (uint32_t i = 0; i < deadlines->count; i++) {
        mutex_deinit(&deadlines->wheels[i].lock);
    }
    allocator_free(deadlines->allocator, deadlines->wheels, wheels_size(deadlines->count),
                   CACHE_LINE);
}

/* Publishes when the wheel is next due. Returns whether that is earlier than before. */
static bool publish_next_locked(struct deadline_wheel *wheel, uint64_t next)
{
    const uint64_t before = load_relaxed(&wheel->next); /* written under the lock only */
    if (next != before) {
        (void)exchange_seq_cst(&wheel->next, next); /* MO-timer */
    }
    return next < before;
}

static bool publish_locked(struct deadline_wheel *wheel)
{
    return publish_next_locked(wheel, wheel_next(&wheel->wheel));
}

static bool add_locked(struct deadline_wheel *wheel, uint32_t call, uint64_t when, uint64_t past)
{
    wheel_add(&wheel->wheel, call, when, past);
    /* Nothing in the wheel is due before `next`. So it need not be searched: what is added comes
     * first, or does not matter. */
    const uint64_t before = load_relaxed(&wheel->next); /* written under the lock only */
    return when < before && publish_next_locked(wheel, wheel_due_at(when));
}

bool deadlines_arm_any(struct deadlines *deadlines, uint32_t wheel, uint32_t call, uint64_t when,
                       uint64_t past)
{
    struct deadline_wheel *armed = &deadlines->wheels[wheel];
    event_at(deadlines->events, call)->as.call.wheel = wheel + 1;
    mutex_lock(&armed->lock);
    const bool earlier = add_locked(armed, call, when, past);
    mutex_unlock(&armed->lock);
    return earlier;
}

static struct deadline_wheel *armed_wheel(struct deadlines *deadlines,
                                          const struct event_node *node)
{
    return &deadlines->wheels[node->as.call.wheel - 1];
}

void deadlines_disarm_any(struct deadlines *deadlines, uint32_t call)
{
    struct event_node *node = event_at(deadlines->events, call);
    struct deadline_wheel *wheel = armed_wheel(deadlines, node);
    mutex_lock(&wheel->lock);
    if (node->as.call.timer.when != 0) {
        wheel_remove(&wheel->wheel, call);
        if (wheel->wheel.count == 0) {
            (void)publish_locked(wheel); /* otherwise one spurious wake-up costs less */
        }
    }
    mutex_unlock(&wheel->lock);
}

/* Whether calls have been due for so long that there must be a crowd of them. */
static bool is_crowded_locked(const struct wheel *wheel, uint64_t now)
{
    const uint64_t next = wheel_next(wheel);
    return next <= now && now - next >= CROWD_NS;
}

/* Takes due calls out of the wheel, the latest before the others: who comes first runs first. */
static uint32_t expire_locked(struct wheel *wheel, uint64_t now, struct wheel_due *due,
                              uint32_t most)
{
    const uint32_t room = most / LATEST_SHARE;
    const uint32_t ordered = wheel_expire(wheel, now, &due[room], most - room, MOVES_MAX);
    const uint32_t latest =
        is_crowded_locked(wheel, now) ? wheel_expire_latest(wheel, now, due, room) : 0;
    memmove(&due[latest], &due[room], ordered * sizeof *due);
    return latest + ordered;
}

uint32_t deadlines_collect_any(struct deadlines *deadlines, uint32_t wheel, uint64_t now,
                               struct wheel_due *due, uint32_t most)
{
    struct deadline_wheel *from = &deadlines->wheels[wheel];
    uint32_t claimed = 0;
    mutex_lock(&from->lock);
    const uint32_t count = expire_locked(&from->wheel, now, due, most);
    for (uint32_t i = 0; i < count; i++) {
        struct event_node *node = event_at(deadlines->events, due[i].index);
        const uint32_t guard = load_relaxed(&node->guard); /* re-checked by the claim */
        if (call_claim_any(node, guard)) {
            due[claimed++] = due[i];
        }
    }
    (void)publish_locked(from);
    mutex_unlock(&from->lock);
    return claimed;
}

uint64_t deadlines_next_of_all(struct deadlines *deadlines, uint32_t count)
{
    uint64_t next = WHEEL_NEVER;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t candidate = deadlines_next(deadlines, i);
        next = candidate < next ? candidate : next;
    }
    return next;
}
