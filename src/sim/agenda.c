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
    SKUA_ASSERT(agenda->count == 0);
    alloc_give(agenda->allocator, agenda->items, agenda->capacity * sizeof(struct agenda_item),
               alignof(struct agenda_item));
}

bool agenda_make_room(struct agenda *agenda)
{
    if (agenda->count < agenda->capacity) {
        return true;
    }
    const size_t capacity = agenda->capacity == 0 ? CAPACITY_MIN : 2 * agenda->capacity;
    struct agenda_item *items =
        alloc_grow(agenda->allocator, agenda->items, agenda->capacity * sizeof(struct agenda_item),
                   capacity * sizeof(struct agenda_item), alignof(struct agenda_item));
    if (items == NULL) {
        return false;
    }
    agenda->items = items;
    agenda->capacity = capacity;
    return true;
}

static bool is_before(const struct agenda_item *a, const struct agenda_item *b)
{
    return a->when != b->when ? a->when < b->when : a->serial < b->serial;
}

void agenda_add(struct agenda *agenda, const struct agenda_item *item)
{
    SKUA_ASSERT(agenda->count < agenda->capacity);
    struct agenda_item added = *item;
    added.serial = agenda->serial++;
    size_t at = agenda->count++;
    while (at > 0 && is_before(&added, &agenda->items[(at - 1) / 2])) {
        agenda->items[at] = agenda->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    agenda->items[at] = added;
}

uint64_t agenda_next(const struct agenda *agenda)
{
    return agenda->count > 0 ? agenda->items[0].when : UINT64_MAX;
}

/* Puts an item where the first one was, and lets it sink to its place. */
static void sink(struct agenda *agenda, const struct agenda_item *item)
{
    size_t at = 0;
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

void agenda_take(struct agenda *agenda, struct agenda_item *item)
{
    SKUA_ASSERT(agenda->count > 0);
    *item = agenda->items[0];
    agenda->count--;
    if (agenda->count > 0) {
        const struct agenda_item last = agenda->items[agenda->count];
        sink(agenda, &last);
    }
}

uint64_t agenda_last_message(const struct agenda *agenda, skua_pid from, skua_pid to)
{
    uint64_t last = 0;
    for (size_t i = 0; i < agenda->count; i++) {
        const struct agenda_item *item = &agenda->items[i];
        if (item->type == AGENDA_MESSAGE && item->when > last &&
            skua_pid_equal(item->as.message.from, from) &&
            skua_pid_equal(item->as.message.to, to)) {
            last = item->when;
        }
    }
    return last;
}
