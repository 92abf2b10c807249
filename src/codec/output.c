/* SPDX-License-Identifier: MIT */
/* Collecting what is to be written. The bytes lie behind a head that knows how to free them, so
 * that they can be given away as a payload. */
#include <skua/codec.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/allocator.h"

struct block {
    struct allocator allocator;
    size_t size; /* of all of it */
    char bytes[];
};

#define BLOCK_MIN ((size_t)64)

static struct block *block_of(char *bytes)
{
    return (struct block *)(void *)(bytes - offsetof(struct block, bytes));
}

static void drop_block(void *data, size_t size)
{
    struct block *block = block_of(data);
    const struct allocator allocator = block->allocator;
    (void)size;
    allocator_free(&allocator, block, block->size, _Alignof(struct block));
}

static struct block *grow_block(const skua_output *output, size_t size)
{
    const struct allocator allocator = {output->alloc != NULL ? output->alloc : allocator_default,
                                        output->alloc_arg};
    struct block *block = NULL;
    if (output->data == NULL) {
        block = allocator_alloc(&allocator, size, _Alignof(struct block));
    } else {
        block = allocator_grow(&allocator, block_of(output->data), block_of(output->data)->size,
                               size, _Alignof(struct block));
    }
    if (block != NULL) {
        block->allocator = allocator;
        block->size = size;
    }
    return block;
}

bool skua_output_grow_(skua_output *output, size_t size)
{
    size_t total = BLOCK_MIN;
    while (total - sizeof(struct block) < output->size + size) {
        total *= 2;
    }
    struct block *block = output->error == 0 ? grow_block(output, total) : NULL;
    if (block == NULL) {
        output->error = SKUA_E_NO_MEMORY;
        output->size = output->capacity; /* so that nothing smaller gets in after this */
        return false;
    }
    output->data = block->bytes;
    output->capacity = total - sizeof(struct block);
    return true;
}

#define NUMBER_SIZE 20 /* a sign and 19 digits */

/* Writes a number so that it ends at `at`. Returns where it begins. */
static char *write_number(char *at, int64_t number)
{
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (number < 0) {
        *--at = '-';
    }
    return at;
}

void skua_output_number(skua_output *output, int64_t number)
{
    char text[NUMBER_SIZE];
    const char *at = write_number(text + sizeof text, number);
    skua_output_put(output, at, (size_t)(text + sizeof text - at));
}

void skua_output_count(skua_output *output, char mark, int64_t number)
{
    char text[1 + NUMBER_SIZE + 2];
    char *at = write_number(text + 1 + NUMBER_SIZE, number);
    text[1 + NUMBER_SIZE] = '\r';
    text[1 + NUMBER_SIZE + 1] = '\n';
    if (mark != '\0') {
        *--at = mark;
    }
    skua_output_put(output, at, (size_t)(text + sizeof text - at));
}

void skua_output_chunk(skua_output *output, char mark, skua_bytes chunk)
{
    skua_output_count(output, mark, (int64_t)chunk.size);
    skua_output_bytes(output, chunk);
    skua_output_put(output, "\r\n", 2);
}

void skua_output_replace(skua_output *output, size_t at, size_t size, skua_bytes bytes)
{
    const size_t old = skua_output_peek(output).size;
    at = at < old ? at : old;
    size = size < old - at ? size : old - at;
    const size_t behind = old - at - size;
    if (output->capacity - output->size + size < bytes.size &&
        !skua_output_grow_(output, bytes.size - size)) {
        return;
    }
    if (output->error != 0 || output->data == NULL) {
        return; /* nothing by nothing */
    }
    memmove(output->data + at + bytes.size, output->data + at + size, behind);
    if (bytes.size > 0) {
        memcpy(output->data + at, bytes.data, bytes.size);
    }
    output->size = at + bytes.size + behind;
}

void skua_output_format(skua_output *output, const char *format, ...)
{
    char text[128];
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    const int length = vsnprintf(text, sizeof text, format, values);
    const size_t size = length > 0 ? (size_t)length : 0;
    if (size < sizeof text) {
        skua_output_put(output, text, size);
    } else if (output->capacity - output->size > size || skua_output_grow_(output, size + 1)) {
        (void)vsnprintf(output->data + output->size, size + 1, format, again);
        output->size += size;
    }
    va_end(again);
    va_end(values);
}

int skua_output_take(skua_output *output, skua_payload *payload)
{
    if (output == NULL || payload == NULL) {
        return SKUA_E_INVALID;
    }
    *payload = skua_nothing();
    const int error = output->error;
    if (error != 0) {
        skua_output_clear(output);
    } else if (output->size > SKUA_PAYLOAD_INLINE_SIZE) {
        *payload = skua_payload_owned(0, output->data, output->size, drop_block);
        output->data = NULL;
        output->capacity = 0;
    } else if (output->size > 0) {
        payload->storage = SKUA_PAYLOAD_INLINE;
        payload->inline_size = (uint16_t)output->size;
        memcpy(payload->as.bytes, output->data, output->size);
    }
    output->size = 0;
    return error;
}

void skua_output_clear(skua_output *output)
{
    if (output != NULL && output->data != NULL) {
        drop_block(output->data, output->size);
    }
    if (output != NULL) {
        output->data = NULL;
        output->size = output->capacity = 0;
        output->error = 0;
    }
}
