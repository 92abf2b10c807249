/* SPDX-License-Identifier: MIT */
#include "process/payload.h"

#include <stdalign.h>
#include <stdlib.h>

#include "base/atomic.h"

/* What stands before the bytes of a payload in the runtime's memory: a drop function gets only
 * those. */
struct payload_memory {
    alignas(max_align_t) const struct allocator *allocator;
    atomic_u32 owners; /* of a shared payload */
    uint32_t capacity; /* in bytes; 0: as many as the payload has */
};

/* What is worth keeping for the next payload. */
#define REUSED_MAX 1024

static struct payload_memory *header_of(void *data)
{
    return (struct payload_memory *)data - 1;
}

static void drop_bytes(void *data, size_t size)
{
    struct payload_memory *header = header_of(data);
    const size_t capacity = header->capacity != 0 ? header->capacity : size;
    allocator_free(header->allocator, header, sizeof *header + capacity, alignof(max_align_t));
}

/* acq_rel MO-shared: all that the other owners read happens before the last one frees it. */
static void drop_shared(void *data, size_t size)
{
    if (fetch_sub_acq_rel(&header_of(data)->owners, 1) == 1) {
        drop_bytes(data, size);
    }
}

int payload_refuse_outside(const skua_payload *payload, size_t limit)
{
    if (payload->storage == SKUA_PAYLOAD_TAKEN) {
        return SKUA_E_TAKEN;
    }
    return payload->as.owned.size <= limit ? 0 : SKUA_E_PAYLOAD_SIZE;
}

void skua_drop_free(void *data, size_t size)
{
    (void)size;
    free(data);
}

int payload_alloc(const struct allocator *allocator, uint32_t type, size_t size, skua_payload *out)
{
    *out = skua_payload_empty(type);
    if (size > PTRDIFF_MAX - sizeof(struct payload_memory)) {
        return SKUA_E_NO_MEMORY;
    }
    struct payload_memory *header =
        allocator_alloc(allocator, sizeof *header + size, alignof(max_align_t));
    if (header == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    header->allocator = allocator;
    header->capacity = size <= REUSED_MAX ? (uint32_t)size : 0;
    *out = skua_payload_owned(type, header + 1, size, drop_bytes);
    return 0;
}

static int copy_to_memory(const struct allocator *allocator, uint32_t type, const void *data,
                          size_t size, skua_payload *out)
{
    const int error = payload_alloc(allocator, type, size, out);
    if (error == 0) {
        memcpy(out->as.owned.data, data, size);
    }
    return error;
}

int payload_copy(const struct allocator *allocator, uint32_t type, const void *data, size_t size,
                 skua_payload *out)
{
    if (size > SKUA_PAYLOAD_INLINE_SIZE) {
        return copy_to_memory(allocator, type, data, size, out);
    }
    *out = skua_payload_empty(type);
    out->storage = SKUA_PAYLOAD_INLINE;
    out->inline_size = (uint16_t)size;
    if (size > 0) {
        memcpy(out->as.bytes, data, size);
    }
    return 0;
}

/* A payload that is kept for long has not much more memory than it needs. */
static bool fits(const struct payload_memory *spare, size_t size)
{
    return spare != NULL && size <= spare->capacity && spare->capacity <= 2 * size;
}

int payload_copy_reusing(const struct allocator *allocator, struct payload_memory **spare,
                         const void *data, size_t size, skua_payload *out)
{
    if (size <= SKUA_PAYLOAD_INLINE_SIZE || !fits(*spare, size)) {
        return payload_copy(allocator, 0, data, size, out);
    }
    *out = skua_payload_owned(0, *spare + 1, size, drop_bytes);
    *spare = NULL;
    memcpy(out->as.owned.data, data, size);
    return 0;
}

void payload_drop_for_reuse(const struct allocator *allocator, struct payload_memory **spare,
                            skua_payload *payload)
{
    if (payload->storage != SKUA_PAYLOAD_OWNED || payload->as.owned.drop != drop_bytes) {
        skua_payload_drop(payload);
        return;
    }
    struct payload_memory *memory = header_of(payload->as.owned.data);
    if (memory->allocator != allocator || memory->capacity == 0) {
        skua_payload_drop(payload);
        return;
    }
    payload_free_spare(*spare); /* the newest is in the cache, and fits what comes next */
    *spare = memory;
    *payload = skua_nothing();
}

void payload_free_spare(struct payload_memory *spare)
{
    if (spare != NULL) {
        drop_bytes(spare + 1, spare->capacity);
    }
}

int payload_share(const struct allocator *allocator, uint32_t type, const void *data, size_t size,
                  skua_payload *out)
{
    if (size <= SKUA_PAYLOAD_INLINE_SIZE) {
        return payload_copy(allocator, type, data, size, out); /* copying it is sharing it */
    }
    const int error = copy_to_memory(allocator, type, data, size, out);
    if (error == 0) {
        out->storage = SKUA_PAYLOAD_SHARED;
        out->as.owned.drop = drop_shared;
        store_relaxed(&header_of(out->as.owned.data)->owners, 1); /* not shared yet */
    }
    return error;
}

/* Relaxed: the caller is one of the owners, so the count cannot reach zero meanwhile; whatever
 * hands the new payload to another thread orders the bytes. */
void payload_add_owners(const skua_payload *payload, uint32_t count)
{
    if (payload->storage == SKUA_PAYLOAD_SHARED) {
        (void)fetch_add_relaxed(&header_of(payload->as.owned.data)->owners, count); /* counter */
    }
}

int payload_refuse_sharing(const skua_payload *payload)
{
    if (payload->storage == SKUA_PAYLOAD_TAKEN) {
        return SKUA_E_TAKEN;
    }
    const bool is_owned = payload->storage >= SKUA_PAYLOAD_OWNED &&
                          payload->storage != SKUA_PAYLOAD_SHARED && payload->as.owned.drop != NULL;
    return is_owned ? SKUA_E_NOT_SHARED : 0;
}

int skua_payload_ref(const skua_payload *payload, skua_payload *another)
{
    if (another == NULL) {
        return SKUA_E_INVALID;
    }
    *another = skua_nothing();
    if (payload == NULL) {
        return SKUA_E_INVALID;
    }
    const int error = payload_refuse_sharing(payload);
    if (error == 0) {
        payload_add_owners(payload, 1);
        *another = *payload;
    }
    return error;
}
