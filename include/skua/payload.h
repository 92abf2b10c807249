/* SPDX-License-Identifier: MIT */
/* Payloads: the data that messages, commands, completions and results carry.
 *
 * A payload is a small value: a type number of yours, and up to 24 bytes inside it or a pointer to
 * memory that it owns, with the function that frees it. A payload has one owner. A call that
 * *takes* a payload owns it from then on, even if it returns an error, and drops it exactly once.
 * Never copy the struct and use both copies: nothing notices that (what is noticed is the use of a
 * payload after skua_payload_take, or after a call that takes it by its address). To give one thing
 * to many, share it (skua_payload_shared).
 *
 * Build payloads with the functions below; the fields are for reading. For messages with several
 * fields see skua/message.h. */
#ifndef SKUA_PAYLOAD_H
#define SKUA_PAYLOAD_H

#include <skua/error.h>
#include <skua/types.h>

/* Bytes that fit inside a payload. */
#define SKUA_PAYLOAD_INLINE_SIZE 24

/* Frees what a payload owns. Called once, on whichever thread drops the payload. */
typedef void skua_drop_fn(void *data, size_t size);

/* Where the data of a payload is. */
enum skua_payload_storage {
    SKUA_PAYLOAD_EMPTY = 0, /* there is none */
    SKUA_PAYLOAD_INLINE,    /* inside */
    SKUA_PAYLOAD_TAKEN,     /* moved elsewhere: sending it again is refused with SKUA_E_TAKEN */
    SKUA_PAYLOAD_OWNED,     /* `size` bytes at `data` */
    SKUA_PAYLOAD_SHARED,    /* likewise, with several owners, who may only read */
    SKUA_PAYLOAD_POINTER, /* behind a bare pointer that means something inside this program only */
};

/* A type number, and data or none. */
typedef struct skua_payload {
    uint32_t type;        /* a number of yours; Skua passes it on */
    uint16_t storage;     /* enum skua_payload_storage */
    uint16_t inline_size; /* how many of the bytes below are in use */
    union {
        /* SKUA_PAYLOAD_INLINE: the data. */
        unsigned char bytes[SKUA_PAYLOAD_INLINE_SIZE];
        /* The same as numbers, as skua_payload_u64 writes them. */
        uint64_t words[SKUA_PAYLOAD_INLINE_SIZE / sizeof(uint64_t)];
        /* SKUA_PAYLOAD_OWNED, SKUA_PAYLOAD_SHARED and SKUA_PAYLOAD_POINTER. */
        struct {
            void *data;         /* the bytes, or the object */
            size_t size;        /* of the bytes; 0 for an object */
            skua_drop_fn *drop; /* null: nothing to free */
        } owned;
    } as;
} skua_payload;

SKUA_BEGIN_DECLS

/* ---- small ones ---- */

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

/* An empty payload of type 0: for a spawn without input, or an end without a result. */
static inline skua_payload skua_nothing(void)
{
    return skua_payload_empty(0);
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

/* ---- larger ones ---- */

/* A payload that owns `size` bytes at `data`. `drop` frees them: skua_drop_free for what malloc
 * made, a function of yours for anything else. */
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

/* A payload of bytes that outlive it, such as a string constant. Nothing is copied or freed;
 * receivers may only read it. */
static inline skua_payload skua_payload_static(uint32_t type, const void *data, size_t size)
{
    return skua_payload_owned(type, (void *)(uintptr_t)data, size, NULL);
}

/* A payload that hands over an object of this program. Its size counts as 0. */
static inline skua_payload skua_payload_pointer(uint32_t type, void *object, skua_drop_fn *drop)
{
    skua_payload payload = skua_payload_owned(type, object, 0, drop);
    payload.storage = SKUA_PAYLOAD_POINTER;
    return payload;
}

/* Frees what malloc, calloc or strdup of the C library made: a drop function.
 * Takes:   data.      Threads: any.      Blocks: never. */
SKUA_API void skua_drop_free(void *data, size_t size);

/* Makes a payload with a copy of `size` bytes: inside it if they fit, otherwise in memory of the
 * runtime's allocator. In a process, skua_runtime_of gives the runtime.
 * Borrows: data.      Gives: *payload.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null runtime or payload, or null data with a size);
 *          SKUA_E_PAYLOAD_SIZE; SKUA_E_NO_MEMORY. On error *payload is empty. */
SKUA_API SKUA_NODISCARD int skua_payload_copy(skua_runtime *runtime, uint32_t type,
                                              const void *data, size_t size, skua_payload *payload);

/* Makes a payload of `size` bytes for the caller to fill before it sends it. Saves a copy.
 * Gives:   *payload, and *data, where its bytes are; they are not zeroed.
 * Threads: worker (inside init, step or close).      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null, or a size of 0); SKUA_E_CONTEXT; SKUA_E_PAYLOAD_SIZE;
 *          SKUA_E_NO_MEMORY. On error *payload is empty and *data null. */
SKUA_API SKUA_NODISCARD int skua_payload_alloc(skua_context *ctx, uint32_t type, size_t size,
                                               void **data, skua_payload *payload);

/* ---- one thing to many ---- */

/* Makes a payload with a counted copy of `size` bytes. Each skua_payload_ref gives one more payload
 * of the same bytes; the last to be dropped frees them. Receivers may only read.
 * Borrows: data.      Gives: *payload.      Threads: any.      Blocks: never.
 * Returns: as skua_payload_copy. */
SKUA_API SKUA_NODISCARD int skua_payload_shared(skua_runtime *runtime, uint32_t type,
                                                const void *data, size_t size,
                                                skua_payload *payload);

/* Gives one more payload with the same data, for another receiver. Works for shared payloads, and
 * for those that own nothing: inside, static, empty.
 * Borrows: payload.      Gives: *another.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null); SKUA_E_TAKEN; SKUA_E_NOT_SHARED (it owns memory alone). On
 *          error *another is empty. */
SKUA_API SKUA_NODISCARD int skua_payload_ref(const skua_payload *payload, skua_payload *another);

/* ---- reading ---- */

/* The payload's bytes, or the object of a pointer payload; null if there is none.
 * Gives: a pointer that is valid while the payload is. */
static inline const void *skua_payload_data(const skua_payload *payload)
{
    if (payload->storage >= SKUA_PAYLOAD_OWNED) {
        return payload->as.owned.data;
    }
    return payload->storage == SKUA_PAYLOAD_INLINE ? payload->as.bytes : NULL;
}

/* How many bytes the payload carries. */
static inline size_t skua_payload_size(const skua_payload *payload)
{
    if (payload->storage >= SKUA_PAYLOAD_OWNED) {
        return payload->as.owned.size;
    }
    return payload->storage == SKUA_PAYLOAD_INLINE ? payload->inline_size : 0;
}

/* Reads the number of a payload of this type, made by skua_payload_u64.
 * Returns: 0; SKUA_E_PAYLOAD_TYPE (another type, or not 8 bytes inside): *value is then 0. */
static inline int skua_payload_get_u64(const skua_payload *payload, uint32_t type, uint64_t *value)
{
    const bool matches = payload->type == type && payload->storage == SKUA_PAYLOAD_INLINE &&
                         payload->inline_size == sizeof *value;
    *value = matches ? payload->as.words[0] : 0;
    return matches ? 0 : SKUA_E_PAYLOAD_TYPE;
}

/* Reads the PID of a payload of this type, made by skua_payload_pid.
 * Returns: 0; SKUA_E_PAYLOAD_TYPE: *pid is then zero. */
static inline int skua_payload_get_pid(const skua_payload *payload, uint32_t type, skua_pid *pid)
{
    return skua_payload_get_u64(payload, type, &pid->bits);
}

/* Reads the bytes of a payload of this type, if there are exactly `size` of them.
 * Gives:   *data, valid while the payload is; null on error.
 * Returns: 0; SKUA_E_PAYLOAD_TYPE. */
static inline int skua_payload_get_bytes(const skua_payload *payload, uint32_t type, size_t size,
                                         const void **data)
{
    const bool matches = payload->type == type && payload->storage != SKUA_PAYLOAD_POINTER &&
                         payload->storage != SKUA_PAYLOAD_TAKEN &&
                         skua_payload_size(payload) == size;
    *data = matches ? skua_payload_data(payload) : NULL;
    return matches ? 0 : SKUA_E_PAYLOAD_TYPE;
}

/* The number of a payload, whatever its type; 0 if it has no 8 bytes inside. */
static inline uint64_t skua_payload_to_u64(const skua_payload *payload)
{
    if (payload->storage != SKUA_PAYLOAD_INLINE || payload->inline_size < sizeof(uint64_t)) {
        return 0;
    }
    return payload->as.words[0];
}

/* The PID of a payload, whatever its type; zero if it has no 8 bytes inside. */
static inline skua_pid skua_payload_to_pid(const skua_payload *payload)
{
    skua_pid pid;
    pid.bits = skua_payload_to_u64(payload);
    return pid;
}

/* ---- ownership ---- */

/* Moves a payload out: the caller owns the result, and what stays behind is marked as taken. This
 * is how a process keeps or passes on what an event brought. */
static inline skua_payload skua_payload_take(skua_payload *payload)
{
    skua_payload taken = *payload;
    payload->storage = SKUA_PAYLOAD_TAKEN;
    return taken;
}

/* Frees what the payload owns and leaves it empty. Dropping one without data does nothing. */
static inline void skua_payload_drop(skua_payload *payload)
{
    if (payload->storage >= SKUA_PAYLOAD_OWNED && payload->as.owned.drop != NULL) {
        payload->as.owned.drop(payload->as.owned.data, payload->as.owned.size);
    }
    payload->storage = SKUA_PAYLOAD_EMPTY;
    payload->inline_size = 0;
}

SKUA_END_DECLS

#endif
