/* SPDX-License-Identifier: MIT */
#include "base/sized.h"

#include <string.h>

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

bool sized_read(void *own, size_t own_size, const void *given, size_t given_size)
{
    const unsigned char *bytes = given;
    const size_t known = bytes != NULL ? smaller(own_size, given_size) : 0;
    if (known > 0) {
        memcpy(own, bytes, known);
    }
    memset((unsigned char *)own + known, 0, own_size - known);
    for (size_t i = own_size; bytes != NULL && i < given_size; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

void sized_write(void *given, size_t given_size, const void *own, size_t own_size)
{
    const size_t known = smaller(given_size, own_size);
    memcpy(given, own, known);
    memset((unsigned char *)given + known, 0, given_size - known);
}

bool reserved_are_zero(const uintptr_t *words, size_t size)
{
    uintptr_t all = 0;
    for (size_t i = 0; i < size / sizeof *words; i++) {
        all |= words[i];
    }
    return all == 0;
}
