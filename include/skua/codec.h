/* SPDX-License-Identifier: MIT */
/* From bytes to messages and back. An input cuts what is read from a stream into lines, frames or
 * pieces of your own, however the bytes were split on their way. An output collects what is to be
 * written.
 *
 *     skua_input input = {.limit = 4096};
 *     ...
 *     error = skua_input_append(&input, skua_payload_take(&event->payload)); // what a read gave
 *     while (error == 0 && (more = skua_input_take_line(&input, &line)) > 0) {
 *         ... line.size bytes at line.data, without the line end
 *     }
 *     error = more < 0 ? more : skua_yield_read(ctx, READ, socket, SKUA_READ_MAX, SKUA_FOREVER);
 *
 * What is taken out is mostly not copied: it lies in the payload that brought it. Only what begins
 * in one payload and ends in a later one is put together. An input takes time in proportion to its
 * bytes, also if they come one by one, and memory for at most `limit` bytes that wait, besides the
 * payload that came last; as long as nothing waits, it takes none. */
#ifndef SKUA_CODEC_H
#define SKUA_CODEC_H

#include <skua/error.h>
#include <skua/payload.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* ---- bytes ---- */

/* Some bytes that lie elsewhere; not ended by a zero. */
typedef struct skua_bytes {
    const char *data; /* where they begin; null if there are none */
    size_t size;      /* how many */
} skua_bytes;

/* The bytes of a payload; none if it has none, as a pointer payload.
 * Gives: bytes that are valid while the payload is.      Threads: any.      Blocks: never. */
static inline skua_bytes skua_payload_bytes(const skua_payload *payload)
{
    skua_bytes bytes;
    bytes.size = skua_payload_size(payload);
    bytes.data = bytes.size > 0 ? (const char *)skua_payload_data(payload) : NULL;
    return bytes;
}

/* The bytes of a text, without its zero; none of null.
 * Borrows: text.      Threads: any.      Blocks: never. */
static inline skua_bytes skua_bytes_of(const char *text)
{
    skua_bytes bytes;
    bytes.data = text;
    bytes.size = text != NULL ? __builtin_strlen(text) : 0;
    return bytes;
}

/* Whether they are this word, in upper or lower case: ASCII letters only.
 * Borrows: word.      Threads: any.      Blocks: never. */
SKUA_API bool skua_bytes_is(skua_bytes bytes, const char *word);

/* Whether they are the same as others.
 * Threads: any.      Blocks: never. */
static inline bool skua_bytes_equal(skua_bytes a, skua_bytes b)
{
    return a.size == b.size && (a.size == 0 || __builtin_memcmp(a.data, b.data, a.size) == 0);
}

/* A hash of them: the same on every machine. With a seed that others do not know they cannot easily
 * make many that have the same hash.
 * Threads: any.      Blocks: never.
 * Returns: the hash. */
SKUA_API uint64_t skua_bytes_hash(skua_bytes bytes, uint64_t seed);

/* Cuts a line off their beginning; it ends with "\n" or "\r\n".
 * Gives:   *line, without the line end.      Threads: any.      Blocks: never.
 * Returns: whether there was one; if not, they stay as they are. */
SKUA_API bool skua_bytes_cut_line(skua_bytes *bytes, skua_bytes *line);

/* Reads a decimal number, with or without a "-" before it and with nothing else.
 * Gives:   *number, 0 on error.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (not a number, or not one of 64 bits). */
SKUA_API SKUA_NODISCARD int skua_bytes_to_number(skua_bytes bytes, int64_t *number);

/* Cuts off a line that says how many of something follow: `mark` (0: nothing), and a count in
 * decimal. "*3\r\n" is such a line, with the mark '*'.
 * Gives:   *count, 0 if there is none.      Threads: any.      Blocks: never.
 * Returns: 1 (here it is); 0 (it has not all come); SKUA_E_TOO_LONG (more than `limit`);
 *          SKUA_E_INVALID (it is something else). Unless there is one, the bytes stay. */
SKUA_API SKUA_NODISCARD int skua_bytes_cut_count(skua_bytes *bytes, char mark, size_t limit,
                                                 size_t *count);

/* Cuts off a chunk: a line that says how many bytes it has, as above; the bytes; and a line end.
 * "$5\r\nhello\r\n" is one, with the mark '$'.
 * Gives:   *chunk, those bytes; none if there is none.      Threads: any.      Blocks: never.
 * Returns: 1 (here it is); 0 (it has not all come); SKUA_E_TOO_LONG (it says that it has more than
 *          `limit` bytes); SKUA_E_INVALID (it is something else). Unless there is one, the bytes
 *          stay. */
SKUA_API SKUA_NODISCARD int skua_bytes_cut_chunk(skua_bytes *bytes, char mark, size_t limit,
                                                 skua_bytes *chunk);

/* Cuts off several chunks, and leaves them as they are, with their counts and line ends.
 * Gives:   *chunks; none if there are not so many.      Threads: any.      Blocks: never.
 * Returns: 1 (here they are, or none were asked for); otherwise as skua_bytes_cut_chunk. */
SKUA_API SKUA_NODISCARD int skua_bytes_cut_chunks(skua_bytes *bytes, char mark, size_t limit,
                                                  size_t count, skua_bytes *chunks);

/* ---- taking apart ---- */

/* Bytes that have come and wait to be taken out. Set the limit, leave the rest zero, and do not
 * copy it while it is in use. */
typedef struct skua_input {
    size_t limit;         /* bytes of a line or frame, without line end or prefix; not 0 */
    skua_alloc_fn *alloc; /* where its memory comes from; null: malloc */
    void *alloc_arg;      /* handed to alloc */
    /* What follows is up to Skua. */
    int error;             /* that ended it: some bytes are missing since */
    unsigned char *carry;  /* the bytes before those of `piece` */
    size_t capacity;       /* of carry */
    size_t start, end;     /* the part of carry that waits */
    skua_payload piece;    /* came last */
    size_t used;           /* bytes at the beginning of piece that have been taken out */
    size_t scanned;        /* bytes that wait and among which no line ends */
    uintptr_t reserved[4]; /* zero */
} skua_input;

/* Like skua_input_append, with a pointer to the payload. */
SKUA_API SKUA_NODISCARD int skua_input_append_from(skua_input *input, skua_payload *payload);

/* Adds the bytes of a payload. Before that, take out all that there is: only part of a line or
 * frame should still wait. After an error the stream has a gap: nothing can be taken any more.
 * Takes:   payload, always.      Threads: the owner's.      Blocks: never.
 * Returns: 0; SKUA_E_TOO_LONG (more than `limit` bytes waited before); SKUA_E_NO_MEMORY;
 *          SKUA_E_PAYLOAD_TYPE (a pointer payload); SKUA_E_TAKEN; SKUA_E_INVALID (null, or no
 *          limit); the error of an earlier append. */
static inline SKUA_NODISCARD int skua_input_append(skua_input *input, skua_payload payload)
{
    return skua_input_append_from(input, &payload);
}

/* Takes out the next line. A line ends with "\n" or "\r\n".
 * Gives:   *line, without the line end, valid until the next call with this input; none if there
 *          is no line.
 * Threads: the owner's.      Blocks: never.
 * Returns: 1 (here it is); 0 (there is no whole line yet); SKUA_E_TOO_LONG (it has more than
 *          `limit` bytes, and stays); SKUA_E_NO_MEMORY (it stays, try again); SKUA_E_INVALID; the
 *          error of an earlier append. */
SKUA_API SKUA_NODISCARD int skua_input_take_line(skua_input *input, skua_bytes *line);

/* How the length of a frame, which does not count itself, is written before it: in how many bytes,
 * and in which order. */
enum skua_frame {
    SKUA_FRAME_U8 = 1,      /* one byte */
    SKUA_FRAME_BE16 = 2,    /* two, most significant first */
    SKUA_FRAME_BE32 = 4,    /* four */
    SKUA_FRAME_BE64 = 8,    /* eight */
    SKUA_FRAME_LE16 = 0x12, /* two, least significant first */
    SKUA_FRAME_LE32 = 0x14, /* four */
    SKUA_FRAME_LE64 = 0x18, /* eight */
};

/* The longest prefix. */
#define SKUA_FRAME_PREFIX_MAX 8

/* Takes out the next frame.
 * Gives:   *frame, without the prefix, valid until the next call with this input; none if there is
 *          no frame.
 * Threads: the owner's.      Blocks: never.
 * Returns: 1 (here it is); 0 (there is no whole frame yet); SKUA_E_TOO_LONG (it says that it has
 *          more than `limit` bytes, and stays); SKUA_E_NO_MEMORY (it stays, try again);
 *          SKUA_E_INVALID (also: no such format); the error of an earlier append. */
SKUA_API SKUA_NODISCARD int skua_input_take_frame(skua_input *input, enum skua_frame format,
                                                  skua_bytes *frame);

/* ---- for parsers of one's own ---- */

/* Shows all bytes that wait, in one piece, and leaves them there.
 * Gives:   *bytes, valid until the next call with this input.
 * Threads: the owner's.      Blocks: never.
 * Returns: 0; SKUA_E_NO_MEMORY (try again); SKUA_E_INVALID; the error of an earlier append. */
SKUA_API SKUA_NODISCARD int skua_input_peek(skua_input *input, skua_bytes *bytes);

/* Like skua_input_peek, for parsers that ask for the error later: without memory the input fails,
 * as by skua_input_fail.
 * Gives:   bytes, valid until the next call with this input; none if it has failed.
 * Threads: the owner's.      Blocks: never. */
SKUA_API skua_bytes skua_input_bytes(skua_input *input);

/* Takes out `size` bytes and throws them away. Where skua_input_peek has shown them they stay
 * readable until the next call.
 * Threads: the owner's.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (there are not so many). */
SKUA_API int skua_input_skip(skua_input *input, size_t size);

/* Gives up a stream whose bytes make no sense: from now on whoever appends or takes something gets
 * this error, a negative one, unless there was an earlier one.
 * Threads: the owner's.      Blocks: never. */
SKUA_API void skua_input_fail(skua_input *input, int error);

/* How many bytes wait: at the end of a stream, those of a line or frame that was cut off.
 * Threads: the owner's.      Blocks: never. */
SKUA_API size_t skua_input_size(const skua_input *input);

/* Frees what an input holds, for the `close` of its process. It is empty then, and can be used
 * again for another stream. Null is ignored.
 * Threads: the owner's.      Blocks: never. */
SKUA_API void skua_input_clear(skua_input *input);

/* ---- putting together ---- */

/* Writes the prefix of a frame of `size` bytes.
 * Gives:   prefix, which has room for SKUA_FRAME_PREFIX_MAX bytes.
 * Threads: any.      Blocks: never.
 * Returns: how many bytes it has; SKUA_E_TOO_LONG (no such prefix can say `size`);
 *          SKUA_E_INVALID (null, or no such format). */
SKUA_API SKUA_NODISCARD int skua_frame_prefix(enum skua_frame format, size_t size, void *prefix);

/* Makes a payload of a frame, to be written: its prefix and a copy of the bytes.
 * Borrows: data.      Gives: *payload, empty on error.
 * Threads: worker (inside init, step or close).      Blocks: never.
 * Returns: 0; as skua_frame_prefix; as skua_payload_alloc. */
static inline SKUA_NODISCARD int skua_frame_payload(skua_context *ctx, enum skua_frame format,
                                                    const void *data, size_t size,
                                                    skua_payload *payload)
{
    unsigned char prefix[SKUA_FRAME_PREFIX_MAX];
    const int length = skua_frame_prefix(format, size, prefix);
    const size_t total = size + (size_t)(length < 0 ? 0 : length);
    void *bytes = payload->as.bytes;
    int error = length < 0 ? length : 0;
    *payload = skua_payload_empty(0);
    if (error == 0 && total <= SKUA_PAYLOAD_INLINE_SIZE) {
        payload->storage = SKUA_PAYLOAD_INLINE;
        payload->inline_size = (uint16_t)total;
    } else if (error == 0) {
        error = skua_payload_alloc(ctx, 0, total, &bytes, payload);
    }
    if (error == 0) {
        __builtin_memcpy(bytes, prefix, total - size);
    }
    if (error == 0 && size > 0) {
        __builtin_memcpy((char *)bytes + (total - size), data, size);
    }
    return error;
}

/* Bytes that are collected to be written together. All zero is one that is empty. Putting something
 * in cannot fail: if there is no memory, skua_output_take says so. */
typedef struct skua_output {
    skua_alloc_fn *alloc; /* where its memory comes from; null: malloc */
    void *alloc_arg;      /* handed to alloc */
    /* What follows is up to Skua. */
    int error;             /* that makes it useless */
    char *data;            /* what was put in */
    size_t size, capacity; /* of that */
    uintptr_t reserved[4]; /* zero */
} skua_output;

/* Makes room for so many bytes more: internal. */
SKUA_API bool skua_output_grow_(skua_output *output, size_t size);

/* Puts in some bytes.
 * Borrows: data.      Threads: the owner's.      Blocks: never. */
static inline void skua_output_put(skua_output *output, const void *data, size_t size)
{
    if (output->capacity - output->size >= size || skua_output_grow_(output, size)) {
        if (size > 0) {
            __builtin_memcpy(output->data + output->size, data, size);
            output->size += size;
        }
    }
}

/* Likewise.
 * Threads: the owner's.      Blocks: never. */
static inline void skua_output_bytes(skua_output *output, skua_bytes bytes)
{
    skua_output_put(output, bytes.data, bytes.size);
}

/* Puts in a text, without its zero.
 * Borrows: text.      Threads: the owner's.      Blocks: never. */
static inline void skua_output_text(skua_output *output, const char *text)
{
    skua_output_put(output, text, __builtin_strlen(text));
}

/* Puts in a number, in decimal.
 * Threads: the owner's.      Blocks: never. */
SKUA_API void skua_output_number(skua_output *output, int64_t number);

/* Puts in what printf would print.
 * Borrows: format and what it names.      Threads: the owner's.      Blocks: never. */
SKUA_API __attribute__((format(printf, 2, 3))) void skua_output_format(skua_output *output,
                                                                       const char *format, ...);

/* Puts in a line with a count, or any number, for skua_bytes_cut_count.
 * Threads: the owner's.      Blocks: never. */
SKUA_API void skua_output_count(skua_output *output, char mark, int64_t number);

/* Puts in a chunk, for skua_bytes_cut_chunk.
 * Borrows: chunk.      Threads: the owner's.      Blocks: never. */
SKUA_API void skua_output_chunk(skua_output *output, char mark, skua_bytes chunk);

/* Shows what was put in so far, and leaves it there.
 * Gives:   bytes, valid until the next call with this output; none if there was no memory.
 * Threads: the owner's.      Blocks: never. */
static inline skua_bytes skua_output_peek(const skua_output *output)
{
    skua_bytes bytes;
    bytes.data = output->data;
    bytes.size = output->error == 0 ? output->size : 0;
    return bytes;
}

/* Puts bytes in place of `size` others, of which the first is number `at`, or of as many as there
 * are from there on; at the end, if there are none: so an output is also a text that can be edited.
 * Borrows: bytes, which are not the output's own.      Threads: the owner's.      Blocks: never. */
SKUA_API void skua_output_replace(skua_output *output, size_t at, size_t size, skua_bytes bytes);

/* Takes out all that was put in, as a payload to be written. The output is empty then.
 * Gives:   *payload; empty if nothing was put in, and on error.
 * Threads: the owner's.      Blocks: never.
 * Returns: 0; SKUA_E_NO_MEMORY (and what was put in is lost); SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_output_take(skua_output *output, skua_payload *payload);

/* Frees what an output holds. Null is ignored.
 * Threads: the owner's.      Blocks: never. */
SKUA_API void skua_output_clear(skua_output *output);

SKUA_END_DECLS

#endif
