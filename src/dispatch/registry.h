/* SPDX-License-Identifier: MIT */
/* Which handler carries out which command. Filled before the runtime starts, then frozen: after
 * that it is only read, by all workers, without any synchronisation (starting a worker's thread
 * makes it visible to that worker). */
#ifndef SKUA_DISPATCH_REGISTRY_H
#define SKUA_DISPATCH_REGISTRY_H

#include <skua/command.h>

#include "base/allocator.h"

#define REGISTRY_DIRECT 256

struct registry_entry {
    uint32_t id;
    skua_handler handler;
};

struct registry {
    const struct allocator *allocator;
    bool frozen;
    skua_handler direct[REGISTRY_DIRECT]; /* by id; run is null where there is none */
    struct registry_entry *others;        /* ids from 256 on, sorted */
    size_t other_count;
    size_t other_capacity;
};

void registry_init(struct registry *registry, const struct allocator *allocator);
void registry_deinit(struct registry *registry);

/* Returns 0, SKUA_E_COMMAND_EXISTS, SKUA_E_FROZEN or SKUA_E_NO_MEMORY. */
NODISCARD int registry_add_locked(struct registry *registry, uint32_t id,
                                  const skua_handler *handler);

void registry_freeze_locked(struct registry *registry);

const skua_handler *registry_find_other(const struct registry *registry, uint32_t id);

/* The handler of a command, or null. */
static inline const skua_handler *registry_find(const struct registry *registry, uint32_t id)
{
    if (LIKELY(id < REGISTRY_DIRECT)) {
        return registry->direct[id].run != NULL ? &registry->direct[id] : NULL;
    }
    return registry_find_other(registry, id);
}

#endif
