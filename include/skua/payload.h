/* SPDX-License-Identifier: MIT */
/* Payloads: the data that messages, commands, completions and results carry.
 *
 * A payload is a small value: a type number of your own and either up to 24 bytes inside it, or a
 * pointer to data that it owns together with the function that drops it. Exactly one holder owns
 * a payload. A call that *takes* a payload owns it from then on, also when it returns an error;
 * Skua then drops it exactly once, wherever it ends. Do not copy the struct and use both.
 *
 * Build one with the functions below; the fields are for reading. */
#ifndef SKUA_PAYLOAD_H
#define SKUA_PAYLOAD_H

#include <skua/types.h>

/* So many bytes fit inside a payload. */
#define SKUA_PAYLOAD_INLINE_SIZE 24

/* Frees what a payload owns. Called once, on whichever thread the payload ends. */
typedef void skua_drop_fn(void *data, size_t size);

/* Where the data of a payload is. */
enum skua_payload_storage {
    SKUA_PAYLOAD_EMPTY = 0, /* nowhere: there is none */
    SKUA_PAYLOAD_INLINE,    /* the bytes are inside */
    SKUA_PAYLOAD_OWNED,     /* `size` bytes at `data` */
    SKUA_PAYLOAD_POINTER,   /* a bare pointer: it means something only inside this program */
};

/* A type number, and data or none. */
typedef struct skua_payload {
    uint32_t type;        /* a number of your own; Skua only passes it on */
    uint16_t storage;     /* enum skua_payload_storage */
    uint16_t inline_size; /* how many of the bytes below are in use */
    union {
        /* SKUA_PAYLOAD_INLINE: the data. */
        unsigned char bytes[SKUA_PAYLOAD_INLINE_SIZE];
        /* The same as numbers, as skua_payload_u64 writes them. */
        uint64_t words[SKUA_PAYLOAD_INLINE_SIZE / sizeof(uint64_t)];
        /* SKUA_PAYLOAD_OWNED and SKUA_PAYLOAD_POINTER. */
        struct {
            void *data;         /* the bytes, or the object */
            size_t size;        /* of the bytes; 0 for an object */
            skua_drop_fn *drop; /* null: nothing to free */
        } owned;
    } as;
} skua_payload;

SKUA_BEGIN_DECLS

/* A payload without data. */
static inline skua_payload skua_payload_empty(uint32_t type)
{
    skua_payload payload;
    payload.type = type;
    payload.storage = SKUA_PAYLOAD_EMPTY;
    payload.inline_size = 0;
    payload.as.words[0] = payload.as.words[1] = payload.as.words[2] = 0;
    return payload;
}

/* A payload that carries one number. */
static inline skua_payload skua_payload_u64(uint32_t type, uint64_t value)
{
    skua_payload payload = skua_payload_empty(type);
    payload.storage = SKUA_PAYLOAD_INLINE;
    payload.inline_size = sizeof value;
    payload.as.words[0] = value;
    return payload;
}

/* A payload that carries a PID. */
static inline skua_payload skua_payload_pid(uint32_t type, skua_pid pid)
{
    return skua_payload_u64(type, pid.bits);
}

/* A payload that owns `size` bytes at `data` and frees them with `drop` (null: nothing to free,
 * the bytes outlive the runtime). */
static inline skua_payload skua_payload_owned(uint32_t type, void *data, size_t size,
                                              skua_drop_fn *drop)
{
    skua_payload payload = skua_payload_empty(type);
    payload.storage = SKUA_PAYLOAD_OWNED;
    payload.as.owned.data = data;
    payload.as.owned.size = size;
    payload.as.owned.drop = drop;
    return payload;
}

/* A payload that owns an object of this program behind a pointer. It counts as 0 bytes. */
static inline skua_payload skua_payload_pointer(uint32_t type, void *object, skua_drop_fn *drop)
{
    skua_payload payload = skua_payload_owned(type, object, 0, drop);
    payload.storage = SKUA_PAYLOAD_POINTER;
    return payload;
}

/* The payload's bytes, or the object of a pointer payload; null if it is empty.
 * Gives: a pointer that is valid while the payload is. */
static inline const void *skua_payload_data(const skua_payload *payload)
{
    switch (payload->storage) {
    case SKUA_PAYLOAD_INLINE:
        return payload->as.bytes;
    case SKUA_PAYLOAD_OWNED:
    case SKUA_PAYLOAD_POINTER:
        return payload->as.owned.data;
    default:
        return NULL;
    }
}

/* How many bytes the payload carries. */
static inline size_t skua_payload_size(const skua_payload *payload)
{
    switch (payload->storage) {
    case SKUA_PAYLOAD_INLINE:
        return payload->inline_size;
    case SKUA_PAYLOAD_OWNED:
        return payload->as.owned.size;
    default:
        return 0;
    }
}

/* The number of a payload made by skua_payload_u64; 0 if it holds no 8 bytes inside. */
static inline uint64_t skua_payload_to_u64(const skua_payload *payload)
{
    if (payload->storage != SKUA_PAYLOAD_INLINE || payload->inline_size < sizeof(uint64_t)) {
        return 0;
    }
    return payload->as.words[0];
}

/* The PID of a payload made by skua_payload_pid; the zero PID if it holds no 8 bytes inside. */
static inline skua_pid skua_payload_to_pid(const skua_payload *payload)
{
    skua_pid pid;
    pid.bits = skua_payload_to_u64(payload);
    return pid;
}

/* Moves a payload out of where it is: the caller owns the result, an empty payload stays. This is
 * how a process keeps or passes on what an event brought. */
static inline skua_payload skua_payload_take(skua_payload *payload)
{
    skua_payload taken = *payload;
    payload->storage = SKUA_PAYLOAD_EMPTY;
    return taken;
}

/* Frees what the payload owns and leaves it empty. Dropping an empty one does nothing. */
static inline void skua_payload_drop(skua_payload *payload)
{
    if (payload->storage >= SKUA_PAYLOAD_OWNED && payload->as.owned.drop != NULL) {
        payload->as.owned.drop(payload->as.owned.data, payload->as.owned.size);
    }
    payload->storage = SKUA_PAYLOAD_EMPTY;
}

/* Makes a payload with a copy of `size` bytes: inside it if they fit, otherwise in memory of the
 * runtime's allocator, which must outlive the payload.
 * Borrows: data.      Gives: *out.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null runtime or out, or null data with a size);
 *          SKUA_E_PAYLOAD_SIZE; SKUA_E_NO_MEMORY. On error *out is empty. */
SKUA_API SKUA_NODISCARD int skua_payload_copy(skua_runtime *runtime, uint32_t type,
                                              const void *data, size_t size, skua_payload *out);

SKUA_END_DECLS

#endif
