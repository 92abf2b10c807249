/* SPDX-License-Identifier: MIT */
/* Payloads with a copy of their bytes. */
#ifndef SKUA_PROCESS_PAYLOAD_H
#define SKUA_PROCESS_PAYLOAD_H

#include <skua/payload.h>

#include "base/alloc.h"

/* As skua_payload_copy. The allocator must outlive the payload. */
NODISCARD int payload_copy(const struct allocator *allocator, uint32_t type, const void *data,
                           size_t size, skua_payload *out);

static inline void payload_drop_all(skua_payload *payloads, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        skua_payload_drop(&payloads[i]);
    }
}

#endif
