/* SPDX-License-Identifier: MIT */
/* Cutting a stream into lines and frames.
 *
 * What waits is the carry, then the rest of the last payload, the piece. As long as things begin
 * and end within one payload, the carry is empty and they are taken out where they lie. What is
 * left of a piece when the next one comes moves to the carry; and when what began there is
 * complete, only its end is copied behind it. So every byte is copied into the carry at most once.
 *
 * Time stays proportional to the bytes: the carry doubles, moves down only if half of it or more
 * has been taken out, and what was searched for a line end is not searched again. */
#include <skua/codec.h>
#include <string.h>

#include "base/allocator.h"

#define CARRY_MIN ((size_t)64)

/* More than the limit may wait before an append: the prefix of a frame, or the "\r" of a line. */
#define BESIDE_LIMIT ((size_t)SKUA_FRAME_PREFIX_MAX)

static struct allocator memory_of(const skua_input *input)
{
    return (struct allocator){input->alloc != NULL ? input->alloc : allocator_default,
                              input->alloc_arg};
}

static size_t carried(const skua_input *input)
{
    return input->end - input->start;
}

static size_t rest_of_piece(const skua_input *input)
{
    return skua_payload_size(&input->piece) - input->used;
}

static const unsigned char *piece_bytes(const skua_input *input)
{
    const unsigned char *bytes = skua_payload_data(&input->piece);
    return bytes != NULL ? bytes + input->used : NULL;
}

static size_t waiting(const skua_input *input)
{
    return carried(input) + rest_of_piece(input);
}

static void free_carry(skua_input *input)
{
    const struct allocator allocator = memory_of(input);
    allocator_free(&allocator, input->carry, input->capacity, 1);
    input->carry = NULL;
    input->capacity = input->start = input->end = 0;
}

static void drop_piece(skua_input *input)
{
    skua_payload_drop(&input->piece);
    input->used = 0;
}

/* Every call begins with this: nobody looks any more at what was taken out before. */
static int begin(skua_input *input)
{
    if (input == NULL || input->limit == 0) {
        return SKUA_E_INVALID;
    }
    if (carried(input) == 0 && input->carry != NULL) {
        free_carry(input);
    }
    if (rest_of_piece(input) == 0) {
        drop_piece(input);
    }
    return input->error;
}

/* What waits is never longer than this, unless it has come in one piece. */
static size_t most_waiting(const skua_input *input)
{
    return input->limit <= SIZE_MAX - BESIDE_LIMIT ? input->limit + BESIDE_LIMIT : SIZE_MAX;
}

/* How large the carry becomes when it grows: not above the limit, if that is enough. */
static size_t next_capacity(const skua_input *input, size_t needed)
{
    const size_t most = most_waiting(input);
    size_t capacity = input->capacity > 0 ? input->capacity : CARRY_MIN;
    while (capacity < needed) {
        capacity *= 2;
    }
    return needed <= most && most < capacity ? most : capacity;
}

/* Makes room for so many bytes behind those of the carry. */
static int make_room(skua_input *input, size_t size)
{
    const struct allocator allocator = memory_of(input);
    const size_t needed = input->end + size;
    const bool is_tight = needed > input->capacity && needed > most_waiting(input);
    if (input->start > 0 && (input->start >= input->capacity / 2 || is_tight)) {
        memmove(input->carry, input->carry + input->start, carried(input));
        input->end -= input->start;
        input->start = 0;
    }
    if (input->capacity - input->end >= size) {
        return 0;
    }
    const size_t capacity = next_capacity(input, input->end + size);
    unsigned char *carry = input->carry == NULL ? allocator_alloc(&allocator, capacity, 1)
                                                : allocator_grow(&allocator, input->carry,
                                                                 input->capacity, capacity, 1);
    if (carry == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    input->carry = carry;
    input->capacity = capacity;
    return 0;
}

/* Moves so many bytes from the piece to the carry. */
static int stow(skua_input *input, size_t size)
{
    const int error = size > 0 ? make_room(input, size) : 0;
    if (error == 0 && size > 0) {
        memcpy(input->carry + input->end, piece_bytes(input), size);
        input->end += size;
        input->used += size;
    }
    return error;
}

/* Shows the first `size` bytes that wait, in one piece. */
static int gather(skua_input *input, size_t size, const unsigned char **data)
{
    int error = 0;
    *data = NULL;
    if (size > 0 && carried(input) == 0) {
        *data = piece_bytes(input);
    } else if (size > 0) {
        error = size > carried(input) ? stow(input, size - carried(input)) : 0;
        *data = error == 0 ? input->carry + input->start : NULL;
    }
    return error;
}

/* Takes out the first `size` bytes; whoever has gathered them may still look at them. */
static void consume(skua_input *input, size_t size)
{
    const size_t of_carry = size < carried(input) ? size : carried(input);
    input->start += of_carry;
    input->used += size - of_carry;
    input->scanned = 0;
}

/* ---- appending ---- */

static int append(skua_input *input, skua_payload *payload)
{
    if (payload->storage == SKUA_PAYLOAD_TAKEN || payload->storage == SKUA_PAYLOAD_POINTER) {
        return payload->storage == SKUA_PAYLOAD_TAKEN ? SKUA_E_TAKEN : SKUA_E_PAYLOAD_TYPE;
    }
    if (skua_payload_size(payload) == 0) {
        return 0;
    }
    if (waiting(input) > input->limit && waiting(input) - input->limit > BESIDE_LIMIT) {
        return SKUA_E_TOO_LONG;
    }
    const int error = stow(input, rest_of_piece(input));
    if (error == 0) {
        drop_piece(input);
        input->piece = skua_payload_take(payload);
    }
    return error;
}

int skua_input_append_from(skua_input *input, skua_payload *payload)
{
    int error = payload != NULL ? begin(input) : SKUA_E_INVALID;
    if (error == 0) {
        error = append(input, payload);
        input->error = error;
    }
    if (payload != NULL && payload->storage != SKUA_PAYLOAD_TAKEN) {
        skua_payload_drop(payload);
    }
    return error;
}

/* ---- lines ---- */

/* How many of `size` bytes are before the first line end; all of them if there is none. */
static size_t length_of_line(const unsigned char *bytes, size_t size)
{
    const unsigned char *end = size > 0 ? memchr(bytes, '\n', size) : NULL;
    return end != NULL ? (size_t)(end - bytes) : size;
}

/* How many bytes that wait are before the first line end; all of them if there is none. */
static size_t find_line_end(skua_input *input)
{
    size_t at = input->scanned;
    if (at < carried(input)) {
        at += length_of_line(input->carry + input->start + at, carried(input) - at);
    }
    if (at >= carried(input) && at < waiting(input)) {
        const size_t skipped = at - carried(input);
        at += length_of_line(piece_bytes(input) + skipped, rest_of_piece(input) - skipped);
    }
    input->scanned = at;
    return at;
}

static unsigned char byte_at(const skua_input *input, size_t index)
{
    return index < carried(input) ? input->carry[input->start + index]
                                  : piece_bytes(input)[index - carried(input)];
}

int skua_input_take_line(skua_input *input, skua_bytes *line)
{
    int error = line != NULL ? begin(input) : SKUA_E_INVALID;
    const unsigned char *data;
    if (error != 0) {
        return error;
    }
    *line = (skua_bytes){0};
    const size_t end = find_line_end(input);
    const size_t length = end > 0 && byte_at(input, end - 1) == '\r' ? end - 1 : end;
    if (length > input->limit) {
        return SKUA_E_TOO_LONG;
    }
    if (end == waiting(input)) {
        return 0;
    }
    error = gather(input, end + 1, &data);
    if (error != 0) {
        return error;
    }
    *line = (skua_bytes){(const char *)data, length};
    consume(input, end + 1);
    return 1;
}

/* ---- frames ---- */

#define LITTLE_ENDIAN_FLAG 0x10u

/* How many bytes a prefix has; 0 if there is no such format. */
static size_t prefix_size(enum skua_frame format)
{
    switch (format) {
    case SKUA_FRAME_U8:
    case SKUA_FRAME_BE16:
    case SKUA_FRAME_BE32:
    case SKUA_FRAME_BE64:
    case SKUA_FRAME_LE16:
    case SKUA_FRAME_LE32:
    case SKUA_FRAME_LE64:
        return (size_t)format & 0xf;
    default:
        return 0;
    }
}

/* By how much the byte with this index of a prefix is shifted. */
static unsigned shift_of(enum skua_frame format, size_t index)
{
    const size_t place =
        ((unsigned)format & LITTLE_ENDIAN_FLAG) != 0 ? index : prefix_size(format) - 1 - index;
    return 8 * (unsigned)place;
}

int skua_input_take_frame(skua_input *input, enum skua_frame format, skua_bytes *frame)
{
    const size_t prefix = prefix_size(format);
    int error = frame != NULL && prefix > 0 ? begin(input) : SKUA_E_INVALID;
    const unsigned char *data;
    uint64_t length = 0;
    if (error != 0) {
        return error;
    }
    *frame = (skua_bytes){0};
    if (waiting(input) < prefix) {
        return 0;
    }
    for (size_t i = 0; i < prefix; i++) {
        length |= (uint64_t)byte_at(input, i) << shift_of(format, i);
    }
    if (length > input->limit) {
        return SKUA_E_TOO_LONG;
    }
    if (waiting(input) - prefix < length) {
        return 0;
    }
    error = gather(input, prefix + (size_t)length, &data);
    if (error != 0) {
        return error;
    }
    *frame = (skua_bytes){(const char *)data + prefix, (size_t)length};
    consume(input, prefix + (size_t)length);
    return 1;
}

int skua_frame_prefix(enum skua_frame format, size_t size, void *prefix)
{
    const size_t length = prefix_size(format);
    unsigned char *bytes = prefix;
    if (prefix == NULL || length == 0) {
        return SKUA_E_INVALID;
    }
    if (length < sizeof size && size >> (8 * length) != 0) {
        return SKUA_E_TOO_LONG;
    }
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (unsigned char)((uint64_t)size >> shift_of(format, i));
    }
    return (int)length;
}

/* ---- the rest ---- */

int skua_input_peek(skua_input *input, skua_bytes *bytes)
{
    int error = bytes != NULL ? begin(input) : SKUA_E_INVALID;
    const unsigned char *data = NULL;
    if (error == 0) {
        error = gather(input, waiting(input), &data);
    }
    if (error == 0) {
        *bytes = (skua_bytes){(const char *)data, waiting(input)};
    }
    return error;
}

int skua_input_skip(skua_input *input, size_t size)
{
    if (input == NULL || size > waiting(input)) {
        return SKUA_E_INVALID;
    }
    consume(input, size);
    return 0;
}

size_t skua_input_size(const skua_input *input)
{
    return input != NULL ? waiting(input) : 0;
}

void skua_input_fail(skua_input *input, int error)
{
    if (input != NULL && input->error == 0) {
        input->error = error <= 0 ? error : SKUA_E_INVALID;
    }
}

skua_bytes skua_input_bytes(skua_input *input)
{
    skua_bytes bytes = {NULL, 0};
    skua_input_fail(input, skua_input_peek(input, &bytes));
    return bytes;
}

void skua_input_clear(skua_input *input)
{
    if (input != NULL) {
        free_carry(input);
        drop_piece(input);
        input->scanned = 0;
        input->error = 0;
    }
}
