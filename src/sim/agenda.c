/* SPDX-License-Identifier: MIT */
#include "sim/agenda.h"

#include <stdalign.h>

#include "base/assert.h"

#define CAPACITY_MIN 64

void agenda_init(struct agenda *agenda, const struct allocator *allocator)
{
    *agenda = (struct agenda){.allocator = allocator};
}

void agenda_deinit(struct agenda *agenda)
{
    SKUA_ASSERT(agenda->count == 0 && agenda->reserved == 0);
    allocator_free(agenda->allocator, agenda->items, agenda->capacity * sizeof(struct agenda_item),
                   alignof(struct agenda_item));
}

static bool make_room_for(struct agenda *agenda, size_t places)
{
    if (agenda->count + agenda->reserved + places <= agenda->capacity) {
        return true;
    }
    const size_t capacity = agenda->capacity == 0 ? CAPACITY_MIN : 2 * agenda->capacity;
    struct agenda_item *items = allocator_grow(
        agenda->allocator, agenda->items, agenda->capacity * sizeof(struct agenda_item),
        capacity * sizeof(struct agenda_item), alignof(struct agenda_item));
    if (items == NULL) {
        return false;
    }
    agenda->items = items;
    agenda->capacity = capacity;
    return true;
}

bool agenda_make_room(struct agenda *agenda)
{
    return make_room_for(agenda, 1);
}

bool agenda_reserve(struct agenda *agenda, size_t places)
{
    SKUA_ASSERT(places <= CAPACITY_MIN);
    if (!make_room_for(agenda, places)) {
        return false;
    }
    agenda->reserved += places;
    return true;
}

void agenda_release(struct agenda *agenda, size_t places)
{
    SKUA_ASSERT(places <= agenda->reserved);
    agenda->reserved -= places;
}

static bool is_before(const struct agenda_item *a, const struct agenda_item *b)
{
    return a->when != b->when ? a->when < b->when : a->serial < b->serial;
}

/* Puts an item into the free place `at` of the heap and moves it up to where it belongs. */
static void rise(struct agenda *agenda, size_t at, const struct agenda_item *item)
{
    while (at > 0 && is_before(item, &agenda->items[(at - 1) / 2])) {
        agenda->items[at] = agenda->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    agenda->items[at] = *item;
}

/* The same, moving it down. */
static void sink(struct agenda *agenda, size_t at, const struct agenda_item *item)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < agenda->count &&
            is_before(&agenda->items[child + 1], &agenda->items[child])) {
            child++;
        }
        if (child >= agenda->count || is_before(item, &agenda->items[child])) {
            break;
        }
        agenda->items[at] = agenda->items[child];
        at = child;
    }
    agenda->items[at] = *item;
}

void agenda_add(struct agenda *agenda, const struct agenda_item *item)
{
    if (item->type == AGENDA_NETWORK) {
        agenda_release(agenda, 1);
    }
    SKUA_ASSERT(agenda->count + agenda->reserved < agenda->capacity);
    struct agenda_item added = *item;
    added.serial = agenda->serial++;
    agenda->ordered += !skua_pid_is_none(added.to);
    rise(agenda, agenda->count++, &added);
}

void agenda_add_completion(struct agenda *agenda, uint64_t when, skua_completion call, int error,
                           skua_payload *result)
{
    agenda_add(agenda, &(struct agenda_item){
                           .when = when,
                           .type = AGENDA_COMPLETION,
                           .payload = skua_payload_take(result),
                           .as.completion = {.call = call, .error = error},
                       });
}

uint64_t agenda_next(const struct agenda *agenda)
{
    return agenda->count > 0 ? agenda->items[0].when : UINT64_MAX;
}

/* Removes an item; the last one fills its place. */
static void take_at(struct agenda *agenda, size_t at, struct agenda_item *item)
{
    *item = agenda->items[at];
    agenda->ordered -= !skua_pid_is_none(item->to);
    agenda->reserved += item->type == AGENDA_NETWORK;
    const struct agenda_item last = agenda->items[--agenda->count];
    if (at == agenda->count) {
        return;
    }
    if (is_before(&last, item)) {
        rise(agenda, at, &last);
    } else {
        sink(agenda, at, &last);
    }
}

void agenda_take(struct agenda *agenda, struct agenda_item *item)
{
    SKUA_ASSERT(agenda->count > 0);
    take_at(agenda, 0, item);
}

/* Removes an item of one of two types for this process. */
static bool take_to(struct agenda *agenda, skua_pid to, enum agenda_type one,
                    enum agenda_type other, struct agenda_item *item)
{
    for (size_t i = 0; i < agenda->count && agenda->ordered > 0; i++) {
        const enum agenda_type type = agenda->items[i].type;
        if ((type == one || type == other) && skua_pid_equal(agenda->items[i].to, to)) {
            take_at(agenda, i, item);
            return true;
        }
    }
    return false;
}

bool agenda_take_event(struct agenda *agenda, skua_pid to, struct agenda_item *item)
{
    return take_to(agenda, to, AGENDA_EVENT, AGENDA_SIGNAL, item);
}

bool agenda_take_signal(struct agenda *agenda, skua_pid to, struct agenda_item *item)
{
    return take_to(agenda, to, AGENDA_SIGNAL, AGENDA_SIGNAL, item);
}

static bool concerns(const struct agenda_item *item, uint32_t what, uint32_t matter)
{
    return item->type == AGENDA_NETWORK && item->as.network.what == what &&
           item->as.network.matter == matter;
}

void agenda_take_network(struct agenda *agenda, uint32_t what, uint32_t matter)
{
    struct agenda_item item;
    size_t at = 0;
    while (at < agenda->count && !concerns(&agenda->items[at], what, matter)) {
        at++;
    }
    SKUA_ASSERT(at < agenda->count);
    take_at(agenda, at, &item);
}

static bool comes_first(const struct agenda_item *item, const struct agenda_item *next)
{
    return (item->is_urgent || !next->is_urgent) && skua_pid_equal(item->to, next->to) &&
           (skua_pid_equal(item->sender, next->sender) || skua_pid_equal(item->turn, next->turn));
}

uint64_t agenda_last(const struct agenda *agenda, const struct agenda_item *next)
{
    uint64_t last = 0;
    for (size_t i = 0; i < agenda->count && agenda->ordered > 0; i++) {
        const struct agenda_item *item = &agenda->items[i];
        if (item->when > last && comes_first(item, next)) {
            last = item->when;
        }
    }
    return last;
}
