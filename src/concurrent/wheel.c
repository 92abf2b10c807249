/* SPDX-License-Identifier: MIT */
#include "concurrent/wheel.h"

#include <string.h>

#include "base/assert.h"

#define TICK_MAX ((UINT64_C(1) << (WHEEL_LEVELS * WHEEL_LEVEL_BITS)) - 1)

struct position {
    uint32_t level;
    uint32_t slot;
};

void wheel_init(struct wheel *wheel, const struct object_pool *pool, size_t link_offset)
{
    memset(wheel, 0, sizeof *wheel); /* not by a compound literal: that may be 6 KiB of stack */
    wheel->pool = pool;
    wheel->link_offset = link_offset;
}

/* The tick at whose beginning an object is due: never before `when`. */
static uint64_t tick_of(uint64_t when)
{
    const uint64_t span = UINT64_C(1) << WHEEL_TICK_SHIFT;
    const uint64_t tick = when / span + (when % span != 0);
    return tick < TICK_MAX ? tick : TICK_MAX;
}

uint64_t wheel_due_at(uint64_t when)
{
    return tick_of(when > 0 ? when : 1) << WHEEL_TICK_SHIFT;
}

static uint32_t index_on(uint32_t level, uint64_t tick)
{
    return (uint32_t)(tick >> (level * WHEEL_LEVEL_BITS)) % WHEEL_SLOTS;
}

static struct position position_for(const struct wheel *wheel, uint64_t tick)
{
    const uint64_t difference = tick ^ wheel->current;
    const uint32_t level =
        difference == 0 ? 0 : (63 - (uint32_t)__builtin_clzll(difference)) / WHEEL_LEVEL_BITS;
    return (struct position){level, index_on(level, tick)};
}

static void insert(struct wheel *wheel, uint32_t index, struct wheel_link *link)
{
    uint64_t tick = tick_of(link->when);
    if (tick < wheel->current) {
        tick = wheel->current; /* overdue: due now */
    }
    const struct position position = position_for(wheel, tick);
    const uint64_t bit = UINT64_C(1) << position.slot;
    uint32_t *first = &wheel->first[position.level][position.slot];
    uint64_t *earliest = &wheel->earliest[position.level][position.slot];
    if ((wheel->occupied[position.level] & bit) == 0) {
        wheel->occupied[position.level] |= bit;
        *first = OBJECT_NONE;
        *earliest = tick;
    }
    if (tick < *earliest) {
        *earliest = tick;
    }
    link->previous = OBJECT_NONE;
    link->next = *first;
    if (*first != OBJECT_NONE) {
        wheel_link_of(wheel, *first)->previous = index;
    }
    *first = index;
}

void wheel_add(struct wheel *wheel, uint32_t index, uint64_t when, uint64_t past)
{
    if (wheel->count == 0 && wheel->current < past >> WHEEL_TICK_SHIFT) {
        wheel->current = past >> WHEEL_TICK_SHIFT;
    }
    struct wheel_link *link = wheel_link_of(wheel, index);
    link->when = when > 0 ? when : 1;
    insert(wheel, index, link);
    wheel->count++;
}

/* The slot whose list begins with this object. */
static struct position position_of_first(const struct wheel *wheel, uint32_t index, uint64_t when)
{
    const uint64_t tick = tick_of(when);
    for (uint32_t level = 0; level < WHEEL_LEVELS; level++) {
        const uint32_t slot = index_on(level, tick);
        if ((wheel->occupied[level] >> slot & 1) != 0 && wheel->first[level][slot] == index) {
            return (struct position){level, slot};
        }
    }
    /* It was overdue when it was added. */
    const uint32_t slot = index_on(0, wheel->current);
    SKUA_ASSERT((wheel->occupied[0] >> slot & 1) != 0 && wheel->first[0][slot] == index);
    return (struct position){0, slot};
}

static void set_first(struct wheel *wheel, struct position position, uint32_t first)
{
    wheel->first[position.level][position.slot] = first;
    if (first == OBJECT_NONE) {
        wheel->occupied[position.level] &= ~(UINT64_C(1) << position.slot);
    } else {
        wheel_link_of(wheel, first)->previous = OBJECT_NONE;
    }
}

/* Takes an object that is not the first of its slot out. */
static void unlink_later(struct wheel *wheel, const struct wheel_link *link)
{
    wheel_link_of(wheel, link->previous)->next = link->next;
    if (link->next != OBJECT_NONE) {
        wheel_link_of(wheel, link->next)->previous = link->previous;
    }
}

void wheel_remove(struct wheel *wheel, uint32_t index)
{
    struct wheel_link *link = wheel_link_of(wheel, index);
    if (link->previous == OBJECT_NONE) {
        set_first(wheel, position_of_first(wheel, index, link->when), link->next);
    } else {
        unlink_later(wheel, link);
    }
    link->when = 0;
    wheel->count--;
}

uint64_t wheel_next(const struct wheel *wheel)
{
    uint64_t earliest = TICK_MAX;
    if (wheel->count == 0) {
        return WHEEL_NEVER;
    }
    for (uint32_t level = 0; level < WHEEL_LEVELS; level++) {
        if (wheel->occupied[level] != 0) {
            const uint32_t slot = (uint32_t)__builtin_ctzll(wheel->occupied[level]);
            const uint64_t tick = wheel->earliest[level][slot];
            earliest = tick < earliest ? tick : earliest;
        }
    }
    return earliest << WHEEL_TICK_SHIFT;
}

/* The slot to empty next, and the tick at which it begins. A slot of a higher level that the
 * current tick is in is still cascading and comes before all others. False if the wheel is
 * empty. */
static bool next_slot(const struct wheel *wheel, struct position *position, uint64_t *begin)
{
    for (uint32_t level = WHEEL_LEVELS - 1; level > 0; level--) {
        const uint32_t slot = index_on(level, wheel->current);
        if ((wheel->occupied[level] >> slot & 1) != 0) {
            *position = (struct position){level, slot};
            *begin = wheel->current;
            return true;
        }
    }
    for (uint32_t level = 0; level < WHEEL_LEVELS; level++) {
        if (wheel->occupied[level] != 0) {
            const uint32_t shift = level * WHEEL_LEVEL_BITS;
            const uint32_t slot = (uint32_t)__builtin_ctzll(wheel->occupied[level]);
            const uint64_t above = wheel->current >> shift >> WHEEL_LEVEL_BITS;
            *position = (struct position){level, slot};
            *begin = (above << WHEEL_LEVEL_BITS | slot) << shift;
            return true;
        }
    }
    return false;
}

static uint32_t shift_first(struct wheel *wheel, struct position position)
{
    const uint32_t index = wheel->first[position.level][position.slot];
    set_first(wheel, position, wheel_link_of(wheel, index)->next);
    return index;
}

static bool is_empty(const struct wheel *wheel, struct position position)
{
    return (wheel->occupied[position.level] >> position.slot & 1) == 0;
}

uint32_t wheel_expire(struct wheel *wheel, uint64_t now, struct wheel_due *due, uint32_t most,
                      uint32_t budget)
{
    const uint64_t tick = now >> WHEEL_TICK_SHIFT;
    uint32_t count = 0;
    struct position position;
    uint64_t begin;
    while (next_slot(wheel, &position, &begin) && begin <= tick) {
        wheel->current = begin;
        while (!is_empty(wheel, position)) {
            if (position.level > 0 ? budget-- == 0 : count == most) {
                return count;
            }
            const uint32_t index = shift_first(wheel, position);
            struct wheel_link *link = wheel_link_of(wheel, index);
            if (position.level > 0) {
                insert(wheel, index, link);
            } else {
                due[count++] = (struct wheel_due){.when = link->when, .index = index};
                link->when = 0;
                wheel->count--;
            }
        }
    }
    if (wheel->current < tick) {
        wheel->current = tick; /* nothing lies between; additions now land on a low level */
    }
    return count;
}

/* The slots of a level that have begun by `tick`, from the one that the current tick is in on; but
 * on the higher levels without that one, which is cascading. */
static uint64_t begun_slots(const struct wheel *wheel, uint32_t level, uint64_t tick)
{
    const uint32_t above = (level + 1) * WHEEL_LEVEL_BITS;
    const uint32_t from = index_on(level, wheel->current) + (level > 0);
    const uint32_t to =
        (tick >> above) > (wheel->current >> above) ? WHEEL_SLOTS - 1 : index_on(level, tick);
    if (from > to) {
        return 0;
    }
    return wheel->occupied[level] & UINT64_MAX << from & UINT64_MAX >> (WHEEL_SLOTS - 1 - to);
}

/* Takes what is due out of one slot. *looks is how many objects may still be looked at. */
static uint32_t expire_some(struct wheel *wheel, struct position position, uint64_t tick,
                            struct wheel_due *due, uint32_t *looks)
{
    uint32_t count = 0;
    uint32_t index = wheel->first[position.level][position.slot];
    while (index != OBJECT_NONE && *looks > 0) {
        struct wheel_link *link = wheel_link_of(wheel, index);
        const uint32_t next = link->next;
        --*looks;
        if (tick_of(link->when) <= tick) {
            if (link->previous == OBJECT_NONE) {
                set_first(wheel, position, next);
            } else {
                unlink_later(wheel, link);
            }
            due[count++] = (struct wheel_due){.when = link->when, .index = index};
            link->when = 0;
            wheel->count--;
        }
        index = next;
    }
    return count;
}

uint32_t wheel_expire_latest(struct wheel *wheel, uint64_t now, struct wheel_due *due,
                             uint32_t most)
{
    const uint64_t tick = now >> WHEEL_TICK_SHIFT;
    uint32_t looks = tick >= wheel->current ? most : 0;
    uint32_t count = 0;
    for (uint32_t level = WHEEL_LEVELS; level-- > 0 && looks > 0;) {
        uint64_t begun = begun_slots(wheel, level, tick);
        while (begun != 0 && looks > 0) {
            const uint32_t slot = 63 - (uint32_t)__builtin_clzll(begun);
            begun &= ~(UINT64_C(1) << slot);
            count += expire_some(wheel, (struct position){level, slot}, tick, &due[count], &looks);
        }
    }
    return count;
}
