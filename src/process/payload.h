/* SPDX-License-Identifier: MIT */
/* Payloads of bytes in the runtime's memory, and checks of those that programs pass in. */
#ifndef SKUA_PROCESS_PAYLOAD_H
#define SKUA_PROCESS_PAYLOAD_H

#include <skua/payload.h>

#include <string.h>

#include "base/allocator.h"

/* As skua_payload_copy. The allocator must outlive the payload, here and below. */
NODISCARD int payload_copy(const struct allocator *allocator, uint32_t type, const void *data,
                           size_t size, skua_payload *out);

/* The memory of a payload that is done with, for the next one. */
struct payload_memory;

/* As payload_copy; takes *spare, of the same allocator or null, if that fits. */
NODISCARD int payload_copy_reusing(const struct allocator *allocator, struct payload_memory **spare,
                                   const void *data, size_t size, skua_payload *out);

/* As skua_payload_drop; but a little memory of this allocator becomes *spare, if that is null. */
void payload_drop_for_reuse(const struct allocator *allocator, struct payload_memory **spare,
                            skua_payload *payload);

/* Null is ignored. */
void payload_free_spare(struct payload_memory *spare);

/* An owned payload of `size` bytes, which the caller fills. */
NODISCARD int payload_alloc(const struct allocator *allocator, uint32_t type, size_t size,
                            skua_payload *out);

/* As skua_payload_shared. */
NODISCARD int payload_share(const struct allocator *allocator, uint32_t type, const void *data,
                            size_t size, skua_payload *out);

/* 0, or why skua_payload_ref refuses it; and owners added to one that it does not refuse. */
NODISCARD int payload_refuse_sharing(const skua_payload *payload);
void payload_add_owners(const skua_payload *payload, uint32_t count);

/* 0, or the reason why a payload that a program passes in is refused. Most have their data
 * inside, or none: then inline_size is right, as skua_payload_empty and skua_payload_drop leave
 * it. */
NODISCARD int payload_refuse_outside(const skua_payload *payload, size_t limit);
NODISCARD static inline int payload_refuse(const skua_payload *payload, size_t limit)
{
    if (LIKELY(payload->storage <= SKUA_PAYLOAD_INLINE)) {
        return LIKELY(payload->inline_size <= limit) ? 0 : SKUA_E_PAYLOAD_SIZE;
    }
    return payload_refuse_outside(payload, limit);
}

/* Marks a payload whose content is elsewhere now. */
static inline void payload_mark_taken(skua_payload *payload)
{
    payload->storage = SKUA_PAYLOAD_TAKEN;
}

/* Drops a payload that nobody should look at again: one that owns nothing is left as it is. */
static inline void payload_drop_last(skua_payload *payload)
{
    if (UNLIKELY(payload->storage >= SKUA_PAYLOAD_OWNED)) {
        skua_payload_drop(payload);
    }
}

/* Drops the payload of a call that is refused before it looks at it; null is ignored. */
static inline void payload_discard(skua_payload *payload)
{
    if (payload != NULL) {
        skua_payload_drop(payload);
        payload_mark_taken(payload);
    }
}

/* Copies a payload that was probably built a moment ago, word by word as that was done: a wider
 * load would have to wait until all those stores have left the processor's store buffer. */
static inline void payload_put(skua_payload *to, const skua_payload *from)
{
    uint64_t head;
    memcpy(&head, from, sizeof head);
    memcpy(to, &head, sizeof head);
    to->as.words[0] = from->as.words[0];
    to->as.words[1] = from->as.words[1];
    to->as.words[2] = from->as.words[2];
}

_Static_assert(offsetof(skua_payload, as) == sizeof(uint64_t), "the head is one word");

static inline void payload_discard_all(skua_payload *payloads, size_t count)
{
    for (; count > 0; count--, payloads++) {
        skua_payload_drop(payloads);
        payload_mark_taken(payloads);
    }
}

#endif
