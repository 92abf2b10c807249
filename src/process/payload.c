/* SPDX-License-Identifier: MIT */
#include "process/payload.h"

#include <skua/error.h>
#include <stdalign.h>
#include <string.h>

/* A copied payload keeps its allocator just before its bytes, because a drop function gets only
 * those. */
struct copy_header {
    alignas(max_align_t) const struct allocator *allocator;
};

static void drop_copy(void *data, size_t size)
{
    struct copy_header *header = (struct copy_header *)data - 1;
    allocator_free(header->allocator, header, sizeof *header + size, alignof(max_align_t));
}

int payload_copy(const struct allocator *allocator, uint32_t type, const void *data, size_t size,
                 skua_payload *out)
{
    *out = skua_payload_empty(type);
    if (size <= SKUA_PAYLOAD_INLINE_SIZE) {
        out->storage = SKUA_PAYLOAD_INLINE;
        out->inline_size = (uint16_t)size;
        if (size > 0) {
            memcpy(out->as.bytes, data, size);
        }
        return 0;
    }
    if (size > PTRDIFF_MAX - sizeof(struct copy_header)) {
        return SKUA_E_NO_MEMORY;
    }
    struct copy_header *header =
        allocator_alloc(allocator, sizeof *header + size, alignof(max_align_t));
    if (header == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    header->allocator = allocator;
    memcpy(header + 1, data, size);
    *out = skua_payload_owned(type, header + 1, size, drop_copy);
    return 0;
}
