/* SPDX-License-Identifier: MIT */
#include "process/payload.h"

#include <stdalign.h>
#include <stdlib.h>

#include "base/atomic.h"

/* What stands before the bytes of a payload in the runtime's memory: a drop function gets only
 * those. */
struct bytes_header {
    alignas(max_align_t) const struct allocator *allocator;
    atomic_u32 owners; /* of a shared payload */
};

static struct bytes_header *header_of(void *data)
{
    return (struct bytes_header *)data - 1;
}

static void drop_bytes(void *data, size_t size)
{
    struct bytes_header *header = header_of(data);
    allocator_free(header->allocator, header, sizeof *header + size, alignof(max_align_t));
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
    if (size > PTRDIFF_MAX - sizeof(struct bytes_header)) {
        return SKUA_E_NO_MEMORY;
    }
    struct bytes_header *header =
        allocator_alloc(allocator, sizeof *header + size, alignof(max_align_t));
    if (header == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    header->allocator = allocator;
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
static int add_owner(const skua_payload *payload)
{
    (void)fetch_add_relaxed(&header_of(payload->as.owned.data)->owners, 1); /* counter */
    return 0;
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
    int error = 0;
    if (payload->storage == SKUA_PAYLOAD_SHARED) {
        error = add_owner(payload);
    } else if (payload->storage == SKUA_PAYLOAD_TAKEN) {
        error = SKUA_E_TAKEN;
    } else if (payload->storage >= SKUA_PAYLOAD_OWNED && payload->as.owned.drop != NULL) {
        error = SKUA_E_NOT_SHARED;
    }
    if (error == 0) {
        *another = *payload;
    }
    return error;
}
