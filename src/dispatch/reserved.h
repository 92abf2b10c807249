/* SPDX-License-Identifier: MIT */
/* The ids of Skua's own commands. Programs use them through dedicated functions. They can also
 * yield them directly: a payload that those functions could not have built gets SKUA_E_INVALID. */
#ifndef SKUA_DISPATCH_RESERVED_H
#define SKUA_DISPATCH_RESERVED_H

#include <skua/command.h>

enum reserved_command {
    RESERVED_SLEEP,
    RESERVED_TIMER,
    RESERVED_TICKER,
    RESERVED_READABLE,
    RESERVED_WRITABLE,
    RESERVED_BLOCKING,
};

static inline uint32_t reserved_id(enum reserved_command command)
{
    return SKUA_COMMAND_RESERVED + (uint32_t)command;
}

/* Reads the number that is the payload of most of them; false if there is none. */
static inline bool reserved_number(const skua_payload *payload, uint64_t *number)
{
    *number = payload->as.words[0];
    return payload->storage == SKUA_PAYLOAD_INLINE && payload->inline_size == sizeof *number;
}

#endif
