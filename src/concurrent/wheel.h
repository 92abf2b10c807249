/* SPDX-License-Identifier: MIT */
/* A hierarchical timing wheel over the objects of a pool: adding and removing take constant time,
 * and each object is moved at most once per level on its way to being due.
 *
 * Time is counted in ticks of 2^16 ns. An object goes to the level of the highest bit in which its
 * tick differs from the wheel's current tick, six bits a level, and to the slot that those six
 * bits name. Level 0 holds ticks of the current 64, in slots of their own; level 1 the current
 * 4096, in slots of 64; and so on: eight levels cover all 64 bits of nanoseconds. When the current
 * tick enters a slot of a higher level, its objects move down (they *cascade*).
 *
 * On every level, objects that are still to come lie in the slots from the current one on: so the
 * first occupied slot of the lowest level that has one comes first, unless a cascade is under way.
 * A bitmap per level finds it. Slots remember their earliest tick, so that a sleeper wakes for a
 * timer, not for a cascade; removal does not correct it, which may cost one wake-up too many, never
 * a late one.
 *
 * (An instant in the very last tick of 64 bits, 584 years after the clock began, counts as the
 * beginning of that tick.)
 *
 * Work is done in bounded portions: a slot of a higher level may hold a million objects, and the
 * caller holds a lock. Not thread-safe on its own.
 *
 * Why not a heap: see docs/idle.md for the comparison in figures. */
#ifndef SKUA_CONCURRENT_WHEEL_H
#define SKUA_CONCURRENT_WHEEL_H

#include <stdbool.h>

#include "concurrent/object_pool.h"

#define WHEEL_TICK_SHIFT 16
#define WHEEL_LEVEL_BITS 6
#define WHEEL_LEVELS     8
#define WHEEL_SLOTS      (1u << WHEEL_LEVEL_BITS)
#define WHEEL_NEVER      UINT64_MAX

/* Lies inside an object, at the wheel's link_offset. */
struct wheel_link {
    uint64_t when; /* nanoseconds; 0 while not in a wheel */
    uint32_t next;
    uint32_t previous;
};

/* An object that was taken out because it is due. */
struct wheel_due {
    uint64_t when;
    uint32_t index;
};

struct wheel {
    const struct object_pool *pool;
    size_t link_offset;
    uint64_t current; /* everything up to this tick has expired, or is about to */
    uint32_t count;
    uint64_t occupied[WHEEL_LEVELS]; /* bit: the slot is not empty */
    uint32_t first[WHEEL_LEVELS][WHEEL_SLOTS];
    uint64_t earliest[WHEEL_LEVELS][WHEEL_SLOTS]; /* tick; of occupied slots; may be too early */
};

void wheel_init(struct wheel *wheel, const struct object_pool *pool, size_t link_offset);

static inline struct wheel_link *wheel_link_of(const struct wheel *wheel, uint32_t index)
{
    char *object = object_pool_at(wheel->pool, index);
    return (struct wheel_link *)(void *)(object + wheel->link_offset);
}

/* Adds an object that is due at `when` (0 counts as 1). `past` is an instant that has passed: an
 * empty wheel may begin there, so that the object lands on a low level even if the wheel has not
 * advanced for a long time. */
void wheel_add(struct wheel *wheel, uint32_t index, uint64_t when, uint64_t past);

/* When an object is due that is added with `when`: at the end of that tick. */
uint64_t wheel_due_at(uint64_t when);

/* Removes an object that is in the wheel. */
void wheel_remove(struct wheel *wheel, uint32_t index);

/* The instant before which nothing in the wheel is due: that of the earliest, rounded up to the end
 * of its tick, or earlier if that was removed. WHEEL_NEVER if the wheel is empty. */
uint64_t wheel_next(const struct wheel *wheel);

/* Takes out up to `most` objects that are due at `now`, earliest tick first, moving at most
 * `budget` others. There may be more while wheel_next is not after `now`. */
uint32_t wheel_expire(struct wheel *wheel, uint64_t now, struct wheel_due *due, uint32_t most,
                      uint32_t budget);

/* The same, latest first and in no exact order, looking at `most` objects and moving none. For when
 * a million are due: those that became due after them do not have to wait until all are out. It
 * goes from the latest slot that has begun back to the one that wheel_expire is in. */
uint32_t wheel_expire_latest(struct wheel *wheel, uint64_t now, struct wheel_due *due,
                             uint32_t most);

#endif
