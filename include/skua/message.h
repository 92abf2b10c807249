/* SPDX-License-Identifier: MIT */
/* Messages with named fields. SKUA_MESSAGE declares one, with the functions that send and read it:
 *
 *     SKUA_MESSAGE(deposit, 7, uint64_t account; uint64_t cents;);
 *
 * makes `struct deposit`, the constant `deposit_number` (7, a number from 0 to INT_MAX that is
 * yours), and
 *
 *     int deposit_send(skua_context *ctx, skua_pid to, struct deposit message);
 *     int deposit_post(skua_runtime *runtime, skua_pid to, struct deposit message);
 *     int deposit_call(skua_context *ctx, uint64_t tag, skua_pid to, struct deposit message,
 *                      uint64_t timeout_ns);
 *     int deposit_reply(skua_context *ctx, skua_request request, struct deposit message);
 *     int deposit_payload(skua_runtime *runtime, struct deposit message, skua_payload *payload);
 *     int deposit_get(const skua_payload *payload, struct deposit *message);
 *
 * The first two send it, from a process and from any thread, and return what skua_send does. The
 * next two call a process with it and answer a call with it, as skua_yield_call and skua_reply do
 * (skua/call.h). `_payload` makes a payload of it, for results and commands, and returns what
 * skua_payload_copy does. The last reads it: 0, or SKUA_E_PAYLOAD_TYPE if the payload is something
 * else.
 *
 * Up to 24 bytes travel inside the payload, more in memory that it owns. The struct is packed:
 * padding would have undefined bytes, and make the hashes of simulations differ. So fields are
 * numbers, PIDs and arrays of such; a struct with padding of its own keeps that. Read and write the
 * fields, but keep no pointers to them. */
#ifndef SKUA_MESSAGE_H
#define SKUA_MESSAGE_H

#include <skua/call.h>
#include <skua/error.h>
#include <skua/payload.h>
#include <skua/process.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* Declares a message; see above. */
#define SKUA_MESSAGE(name, number, ...)                                                            \
    struct __attribute__((packed)) name {                                                          \
        __VA_ARGS__                                                                                \
    };                                                                                             \
    enum { name##_number = (number) };                                                             \
    __attribute__((unused)) static inline int name##_payload(                                      \
        skua_runtime *runtime, struct name message, skua_payload *payload)                         \
    {                                                                                              \
        return skua_payload_copy(runtime, (uint32_t)(number), &message, sizeof message, payload);  \
    }                                                                                              \
    __attribute__((unused)) static inline int name##_send(skua_context *ctx, skua_pid to,          \
                                                          struct name message)                     \
    {                                                                                              \
        return skua_send_bytes(ctx, to, (uint32_t)(number), &message, sizeof message);             \
    }                                                                                              \
    __attribute__((unused)) static inline int name##_call(                                         \
        skua_context *ctx, uint64_t tag, skua_pid to, struct name message, uint64_t timeout_ns)    \
    {                                                                                              \
        skua_payload payload;                                                                      \
        const int error =                                                                          \
            skua_payload_of_bytes(ctx, (uint32_t)(number), &message, sizeof message, &payload);    \
        return error != 0 ? error : skua_yield_call_from(ctx, tag, to, &payload, timeout_ns);      \
    }                                                                                              \
    __attribute__((unused)) static inline int name##_reply(                                        \
        skua_context *ctx, skua_request request, struct name message)                              \
    {                                                                                              \
        skua_payload payload;                                                                      \
        const int error =                                                                          \
            skua_payload_of_bytes(ctx, (uint32_t)(number), &message, sizeof message, &payload);    \
        return error != 0 ? error : skua_reply_from(ctx, request, 0, &payload);                    \
    }                                                                                              \
    __attribute__((unused)) static inline int name##_post(skua_runtime *runtime, skua_pid to,      \
                                                          struct name message)                     \
    {                                                                                              \
        skua_payload payload;                                                                      \
        const int error = name##_payload(runtime, message, &payload);                              \
        return error != 0 ? error : skua_process_send(runtime, to, payload);                       \
    }                                                                                              \
    __attribute__((unused)) static inline int name##_get(const skua_payload *payload,              \
                                                         struct name *message)                     \
    {                                                                                              \
        const void *data;                                                                          \
        const int error =                                                                          \
            skua_payload_get_bytes(payload, (uint32_t)(number), sizeof *message, &data);           \
        if (error == 0) {                                                                          \
            __builtin_memcpy(message, data, sizeof *message);                                      \
        }                                                                                          \
        return error;                                                                              \
    }                                                                                              \
    struct name /* a semicolon follows */

/* Makes a payload of a copy of `size` bytes: inside it if they fit.
 * Borrows: data.      Gives: *payload.      Threads: worker (inside init, step or close).
 * Blocks:  never.      Returns: 0; as skua_payload_alloc. */
static inline int skua_payload_of_bytes(skua_context *ctx, uint32_t type, const void *data,
                                        size_t size, skua_payload *payload)
{
    *payload = skua_payload_empty(type);
    if (size <= SKUA_PAYLOAD_INLINE_SIZE) {
        payload->storage = SKUA_PAYLOAD_INLINE;
        payload->inline_size = (uint16_t)size;
        __builtin_memcpy(payload->as.bytes, data, size);
        return 0;
    }
    void *copy;
    const int error = skua_payload_alloc(ctx, type, size, &copy, payload);
    if (error == 0) {
        __builtin_memcpy(copy, data, size);
    }
    return error;
}

/* Sends a copy of `size` bytes: inside the payload if they fit.
 * Borrows: data.      Threads: worker (inside init, step or close).      Blocks: never.
 * Returns: as skua_send. */
static inline int skua_send_bytes(skua_context *ctx, skua_pid to, uint32_t type, const void *data,
                                  size_t size)
{
    skua_payload payload;
    const int error = skua_payload_of_bytes(ctx, type, data, size, &payload);
    return error != 0 ? error : skua_send_from(ctx, to, &payload);
}

SKUA_END_DECLS

#endif
