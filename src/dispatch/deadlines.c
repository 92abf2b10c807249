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

/* In `next`: it may be about to become later. Otherwise it is even, or WHEEL_NEVER. */
#define IN_QUESTION UINT64_C(1)

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
        wheel->turn = 0;
        for (uint32_t place = 0; place < DEADLINE_PLACES; place++) {
            store_relaxed(&wheel->beside[place], OBJECT_NONE); /* not shared yet */
        }
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

/* The same for a call that is added. Nothing is due before `next`, so the wheel need not be
 * searched: this call comes first, or does not matter. */
static bool publish_added_locked(struct deadline_wheel *wheel, uint64_t when)
{
    const uint64_t before = load_relaxed(&wheel->next); /* written under the lock only */
    return when < before && publish_next_locked(wheel, wheel_due_at(when));
}

/* Moves what lies beside the wheel into it. */
static void take_in_locked(const struct object_pool *events, struct deadline_wheel *wheel)
{
    for (uint32_t i = 0; i < DEADLINE_PLACES; i++) {
        if (load_seq_cst(&wheel->beside[i]) == OBJECT_NONE) { /* B2, MO-beside */
            continue;
        }
        const uint32_t call = exchange_acq_rel(&wheel->beside[i], OBJECT_NONE); /* MO-beside */
        if (call != OBJECT_NONE) {
            wheel_add(&wheel->wheel, call, event_at(events, call)->as.call.timer.when, 0);
        }
    }
}

/* Between these two, `next` may become later. */
static void begin_correction_locked(const struct object_pool *events, struct deadline_wheel *wheel)
{
    const uint64_t before = load_relaxed(&wheel->next);         /* written under the lock only */
    (void)exchange_seq_cst(&wheel->next, before | IN_QUESTION); /* B1, MO-beside */
    take_in_locked(events, wheel);
}

static void end_correction_locked(struct deadline_wheel *wheel)
{
    (void)publish_next_locked(wheel, wheel_next(&wheel->wheel)); /* B3 */
}

static void set_place(struct event_node *node, uint32_t wheel, uint32_t place)
{
    node->as.call.wheel = (uint16_t)wheel; /* at most PARKING_WORKERS_MAX */
    node->as.call.place = (uint16_t)place;
}

bool deadlines_arm_any(struct deadlines *deadlines, uint32_t wheel, uint32_t call, uint64_t when,
                       uint64_t past)
{
    struct deadline_wheel *armed = &deadlines->wheels[wheel];
    set_place(event_at(deadlines->events, call), wheel + 1, 0);
    mutex_lock(&armed->lock);
    wheel_add(&armed->wheel, call, when, past);
    const bool earlier = publish_added_locked(armed, when);
    mutex_unlock(&armed->lock);
    return earlier;
}

/* The number of the next place, which is emptied if need be. */
static uint32_t free_place(const struct object_pool *events, struct deadline_wheel *own)
{
    const uint32_t place = own->turn++ % DEADLINE_PLACES;
    if (UNLIKELY(load_relaxed(&own->beside[place]) != OBJECT_NONE)) { /* only the owner fills it */
        mutex_lock(&own->lock);
        take_in_locked(events, own);
        mutex_unlock(&own->lock);
    }
    return place;
}

static NOINLINE bool publish_put_beside(struct deadline_wheel *own, uint64_t when)
{
    mutex_lock(&own->lock);
    const bool earlier = publish_added_locked(own, when);
    mutex_unlock(&own->lock);
    return earlier;
}

bool deadlines_put_beside_owner(struct deadlines *deadlines, uint32_t wheel, uint32_t call,
                                uint64_t when)
{
    struct deadline_wheel *own = &deadlines->wheels[wheel];
    struct event_node *node = event_at(deadlines->events, call);
    const uint32_t place = free_place(deadlines->events, own);
    set_place(node, wheel + 1, place + 1);
    node->as.call.timer.when = when;
    (void)exchange_seq_cst(&own->beside[place], call); /* A1, MO-beside */
    const uint64_t next = load_seq_cst(&own->next);    /* A2, MO-beside */
    return UNLIKELY(when < next || (next & IN_QUESTION) != 0) && publish_put_beside(own, when);
}

void deadlines_correct_any(struct deadlines *deadlines, uint32_t wheel)
{
    struct deadline_wheel *corrected = &deadlines->wheels[wheel];
    if (deadlines_next(deadlines, wheel) == WHEEL_NEVER) {
        return; /* nothing is later */
    }
    mutex_lock(&corrected->lock);
    begin_correction_locked(deadlines->events, corrected);
    end_correction_locked(corrected);
    mutex_unlock(&corrected->lock);
}

static struct deadline_wheel *armed_wheel(struct deadlines *deadlines,
                                          const struct event_node *node)
{
    return &deadlines->wheels[node->as.call.wheel - 1];
}

/* Takes a call out of its place beside the wheel; false if it is not there, or not any more. */
static bool take_from_beside(struct deadline_wheel *wheel, const struct event_node *node,
                             uint32_t call)
{
    uint32_t expected = call;
    const uint32_t place = node->as.call.place;
    return place != 0 &&
           cas_acq_rel_relaxed(&wheel->beside[place - 1], &expected, OBJECT_NONE); /* MO-beside */
}

void deadlines_disarm_any(struct deadlines *deadlines, uint32_t call)
{
    struct event_node *node = event_at(deadlines->events, call);
    struct deadline_wheel *wheel = armed_wheel(deadlines, node);
    if (take_from_beside(wheel, node, call)) {
        return;
    }
    mutex_lock(&wheel->lock);
    if (node->as.call.timer.when != 0) {
        wheel_remove(&wheel->wheel, call);
        if (wheel->wheel.count == 0) { /* otherwise one spurious wake-up costs less */
            begin_correction_locked(deadlines->events, wheel);
            end_correction_locked(wheel);
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
    begin_correction_locked(deadlines->events, from);
    const uint32_t count = expire_locked(&from->wheel, now, due, most);
    for (uint32_t i = 0; i < count; i++) {
        struct event_node *node = event_at(deadlines->events, due[i].index);
        const uint32_t guard = load_relaxed(&node->guard); /* re-checked by the claim */
        if (call_claim_any(node, guard)) {
            due[claimed++] = due[i];
        }
    }
    end_correction_locked(from);
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
