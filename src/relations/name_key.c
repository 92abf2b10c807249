/* SPDX-License-Identifier: MIT */
#include "relations/name_key.h"

#include <skua/error.h>

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "base/random.h"

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

/* Whether one of the bytes is below 0x20 or is 0x7f. A difference that borrows from the next byte
 * does so only if this one is such. */
static bool has_control(uint64_t word)
{
    const uint64_t deletes = word ^ EACH_BYTE(0x7f);
    const uint64_t below = (word - EACH_BYTE(0x20)) & ~word;
    const uint64_t equal = (deletes - EACH_BYTE(0x01)) & ~deletes;
    return ((below | equal) & EACH_BYTE(0x80)) != 0;
}

static uint64_t load_8(const char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return le64toh(word);
}

static uint64_t load_4(const char *bytes)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return le32toh(word);
}

/* The last `count` bytes of a text, fewer than eight. Overlapping loads take half the time of a
 * loop. */
static uint64_t load_end(const char *text, size_t length, size_t count)
{
    if (count == 0) {
        return 0;
    }
    if (length >= 8) {
        return load_8(text + length - 8) >> (64 - 8 * count);
    }
    if (count >= 4) {
        return load_4(text) | load_4(text + count - 4) << (8 * count - 32);
    }
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++) {
        word |= (uint64_t)(unsigned char)text[i] << (8 * i);
    }
    return word;
}

/* The multiplication brings all bits to the highest ones, the shift those to the lowest. */
static uint64_t add_to_hash(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * RANDOM_STEP;
    return hash ^ (hash >> 32);
}

int name_key_make(struct name_key *key, const char *text, uint64_t seed)
{
    const size_t length = text != NULL ? strnlen(text, NAME_SIZE) : 0;
    if (length == 0) {
        return SKUA_E_NAME;
    }
    if (length > NAME_LENGTH_MAX) {
        return SKUA_E_NAME_LENGTH;
    }
    const uint32_t whole = (uint32_t)length / 8;
    const size_t rest = length % 8;
    const uint64_t end = load_end(text, length, rest);
    bool is_bad = has_control(end | EACH_BYTE((uint64_t)' ') << (8 * rest));
    uint64_t hash = seed;
    for (uint32_t i = 0; i < whole; i++) {
        key->words[i] = load_8(text + (size_t)i * 8);
        is_bad |= has_control(key->words[i]);
        hash = add_to_hash(hash, key->words[i]);
    }
    key->words[whole] = end | (uint64_t)rest << 56;
    key->count = whole + 1;
    key->hash = add_to_hash(hash, key->words[whole]);
    return is_bad ? SKUA_E_NAME : 0;
}

uint32_t name_key_text(const uint64_t words[NAME_WORDS], char text[NAME_SIZE])
{
    uint32_t whole = 0;
    while (words[whole] >> 56 >= 8) {
        whole++;
    }
    const uint32_t length = whole * 8 + (uint32_t)(words[whole] >> 56);
    for (uint32_t i = 0; i < length; i++) {
        text[i] = (char)(words[i / 8] >> (i % 8 * 8));
    }
    text[length] = '\0';
    return length;
}
