/* SPDX-License-Identifier: MIT */
/* Words and numbers in bytes. By hand, because what the C library has for them asks for a zero at
 * the end, or for a locale. */
#include <skua/codec.h>
#include <string.h>

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
