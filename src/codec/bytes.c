/* SPDX-License-Identifier: MIT */
/* Words, numbers and hashes of bytes. By hand, because what the C library has for them asks for a
 * zero at the end, or for a locale. */
#include <skua/codec.h>
#include <string.h>

#define COUNT_DIGITS 19 /* of the largest number that has no sign and surely fits */

static unsigned char lower(char letter)
{
    return (unsigned char)(letter >= 'A' && letter <= 'Z' ? letter | 32 : letter);
}

bool skua_bytes_is(skua_bytes bytes, const char *word)
{
    size_t i = 0;
    while (i < bytes.size && word[i] != '\0' && lower(bytes.data[i]) == lower(word[i])) {
        i++;
    }
    return i == bytes.size && word[i] == '\0';
}

/* Eight bytes as a number, the first the lowest. */
static uint64_t word_at(const char *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : __builtin_bswap64(word);
}

/* Both halves of the product, so that the low bits of the result depend on high ones, too. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    const wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Eight bytes at a time; the last eight may overlap those before them. */
uint64_t skua_bytes_hash(skua_bytes bytes, uint64_t seed)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hash = mix(seed ^ bytes.size, odd) ^ seed;
    uint64_t last = 0;
    for (size_t i = 8; i < bytes.size; i += 8) {
        hash = mix(hash ^ word_at(bytes.data + i - 8), odd);
    }
    if (bytes.size >= 8) {
        last = word_at(bytes.data + bytes.size - 8);
    } else {
        for (size_t i = 0; i < bytes.size; i++) {
            last = last << 8 | (unsigned char)bytes.data[i];
        }
    }
    return mix(hash ^ last, UINT64_C(0xd6e8feb86659fd93));
}

int skua_bytes_to_number(skua_bytes bytes, int64_t *number)
{
    const bool is_negative = bytes.size > 1 && bytes.data[0] == '-';
    int64_t value = 0;
    bool is_wrong = bytes.size == 0;
    for (size_t i = is_negative; i < bytes.size && !is_wrong; i++) {
        const int digit = bytes.data[i] - '0';
        is_wrong = digit < 0 || digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
                   __builtin_add_overflow(value, is_negative ? -digit : digit, &value);
    }
    *number = is_wrong ? 0 : value;
    return is_wrong ? SKUA_E_INVALID : 0;
}

bool skua_bytes_cut_line(skua_bytes *bytes, skua_bytes *line)
{
    const char *end = bytes->size > 0 ? memchr(bytes->data, '\n', bytes->size) : NULL;
    if (end == NULL) {
        return false;
    }
    const size_t length = (size_t)(end - bytes->data);
    const bool has_return = length > 0 && end[-1] == '\r';
    *line = (skua_bytes){bytes->data, has_return ? length - 1 : length};
    *bytes = (skua_bytes){end + 1, bytes->size - length - 1};
    return true;
}

/* How long the line end is with which bytes begin; 0 if it has not all come; or an error. */
static int line_end(const char *data, size_t size)
{
    if (size > 0 && data[0] == '\n') {
        return 1;
    }
    if (size > 1 && data[0] == '\r' && data[1] == '\n') {
        return 2;
    }
    return size == 0 || (size == 1 && data[0] == '\r') ? 0 : SKUA_E_INVALID;
}

/* By hand: a server does this for every word that it is sent. Zeros in front are digits, too, so
 * that there is an end to how long a line can be. */
int skua_bytes_cut_count(skua_bytes *bytes, char mark, size_t limit, size_t *count)
{
    const size_t start = mark != '\0', size = bytes->size;
    size_t at = start, value = 0;
    *count = 0;
    if (size > 0 && start > 0 && bytes->data[0] != mark) {
        return SKUA_E_INVALID;
    }
    while (at < size && at < start + COUNT_DIGITS && bytes->data[at] >= '0' &&
           bytes->data[at] <= '9') {
        value = value * 10 + (size_t)(bytes->data[at++] - '0');
    }
    if (value > limit) {
        return SKUA_E_TOO_LONG;
    }
    if (at >= size) {
        return 0;
    }
    const int end = at > start ? line_end(bytes->data + at, size - at) : SKUA_E_INVALID;
    if (end > 0) {
        *count = value;
        *bytes = (skua_bytes){bytes->data + at + end, size - at - (size_t)end};
    }
    return end > 0 ? 1 : end;
}

int skua_bytes_cut_chunk(skua_bytes *bytes, char mark, size_t limit, skua_bytes *chunk)
{
    skua_bytes rest = *bytes;
    size_t size;
    const int more = skua_bytes_cut_count(&rest, mark, limit, &size);
    *chunk = (skua_bytes){NULL, 0};
    if (more <= 0 || rest.size < size) {
        return more < 0 ? more : 0;
    }
    const int end = line_end(rest.data + size, rest.size - size);
    if (end > 0) {
        *chunk = (skua_bytes){rest.data, size};
        *bytes = (skua_bytes){rest.data + size + end, rest.size - size - (size_t)end};
    }
    return end > 0 ? 1 : end;
}

int skua_bytes_cut_chunks(skua_bytes *bytes, char mark, size_t limit, size_t count,
                          skua_bytes *chunks)
{
    skua_bytes rest = *bytes, chunk;
    int more = 1;
    for (size_t i = 0; i < count && more > 0; i++) {
        more = skua_bytes_cut_chunk(&rest, mark, limit, &chunk);
    }
    *chunks = (skua_bytes){bytes->data, more > 0 ? bytes->size - rest.size : 0};
    *bytes = more > 0 ? rest : *bytes;
    return more;
}
