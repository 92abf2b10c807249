/* SPDX-License-Identifier: MIT */
/* Payloads that own a copy of their bytes. */
#ifndef SKUA_PROCESS_PAYLOAD_H
#define SKUA_PROCESS_PAYLOAD_H

#include <skua/payload.h>

#include <string.h>

#include "base/allocator.h"

/* As skua_payload_copy. The allocator must outlive the payload. */
NODISCARD int payload_copy(const struct allocator *allocator, uint32_t type, const void *data,
                           size_t size, skua_payload *out);

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

static inline void payload_drop_all(skua_payload *payloads, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        skua_payload_drop(&payloads[i]);
    }
}

#endif
