/* SPDX-License-Identifier: MIT */
#include "sim/hosts.h"

#include <string.h>

#include "base/mutex.h"
#include "process/table.h"

#define CAPACITY_MIN UINT32_C(256)

void hosts_init(struct process_hosts *hosts, const struct allocator *allocator)
{
    *hosts = (struct process_hosts){.allocator = allocator};
    mutex_init(&hosts->lock);
}

void hosts_deinit(struct process_hosts *hosts)
{
    allocator_free(hosts->allocator, hosts->numbers, hosts->capacity, 1);
    mutex_deinit(&hosts->lock);
}

static bool make_room_locked(struct process_hosts *hosts, uint32_t slot)
{
    uint32_t capacity = hosts->capacity > 0 ? hosts->capacity : CAPACITY_MIN;
    while (capacity <= slot) {
        capacity *= 2; /* slots have 26 bits */
    }
    if (capacity > hosts->capacity) {
        unsigned char *numbers =
            allocator_grow(hosts->allocator, hosts->numbers, hosts->capacity, capacity, 1);
        if (numbers == NULL) {
            return false;
        }
        memset(numbers + hosts->capacity, 0, capacity - hosts->capacity);
        hosts->numbers = numbers;
        hosts->capacity = capacity;
    }
    return true;
}

int hosts_set_any(struct process_hosts *hosts, skua_pid pid, uint32_t host)
{
    const uint32_t slot = pid_slot(pid);
    int error = 0;
    mutex_lock(&hosts->lock);
    if (slot >= hosts->capacity && host == HOSTS_FIRST) {
        /* No number means just that. */
    } else if (make_room_locked(hosts, slot)) {
        hosts->numbers[slot] = (unsigned char)host;
    } else {
        error = SKUA_E_NO_MEMORY;
    }
    mutex_unlock(&hosts->lock);
    return error;
}

uint32_t hosts_of(struct process_hosts *hosts, skua_pid pid)
{
    const uint32_t slot = pid_slot(pid);
    mutex_lock(&hosts->lock);
    const uint32_t host = slot < hosts->capacity ? hosts->numbers[slot] : 0;
    mutex_unlock(&hosts->lock);
    return host != 0 ? host : HOSTS_FIRST;
}
