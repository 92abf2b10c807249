/* SPDX-License-Identifier: MIT */
#include "dispatch/registry.h"

#include <stdalign.h>
#include <string.h>

void registry_init(struct registry *registry, const struct allocator *allocator)
{
    /* Not by a compound literal, which may need as much stack as it is large. */
    memset(registry, 0, sizeof *registry);
    registry->allocator = allocator;
}

static size_t array_size(size_t capacity)
{
    return capacity * sizeof(struct registry_entry);
}

void registry_deinit(struct registry *registry)
{
    allocator_free(registry->allocator, registry->others, array_size(registry->other_capacity),
                   alignof(struct registry_entry));
}

/* The position of the first entry whose id is not smaller. */
static size_t lower_bound(const struct registry *registry, uint32_t id)
{
    size_t low = 0;
    size_t high = registry->other_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (registry->others[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const skua_handler *registry_find_other(const struct registry *registry, uint32_t id)
{
    const size_t position = lower_bound(registry, id);
    if (position < registry->other_count && registry->others[position].id == id) {
        return &registry->others[position].handler;
    }
    return NULL;
}

static bool make_room_locked(struct registry *registry)
{
    if (registry->other_count < registry->other_capacity) {
        return true;
    }
    const size_t capacity = registry->other_capacity == 0 ? 16 : 2 * registry->other_capacity;
    struct registry_entry *others =
        allocator_grow(registry->allocator, registry->others, array_size(registry->other_capacity),
                       array_size(capacity), alignof(struct registry_entry));
    if (others == NULL) {
        return false;
    }
    registry->others = others;
    registry->other_capacity = capacity;
    return true;
}

int registry_add_locked(struct registry *registry, uint32_t id, const skua_handler *handler)
{
    if (registry->frozen) {
        return SKUA_E_FROZEN;
    }
    if (registry_find(registry, id) != NULL) {
        return SKUA_E_COMMAND_EXISTS;
    }
    if (id < REGISTRY_DIRECT) {
        registry->direct[id] = *handler;
        return 0;
    }
    if (!make_room_locked(registry)) {
        return SKUA_E_NO_MEMORY;
    }
    const size_t position = lower_bound(registry, id);
    memmove(&registry->others[position + 1], &registry->others[position],
            array_size(registry->other_count - position));
    registry->others[position] = (struct registry_entry){.id = id, .handler = *handler};
    registry->other_count++;
    return 0;
}

void registry_freeze_locked(struct registry *registry)
{
    registry->frozen = true;
}
