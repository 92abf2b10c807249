/* SPDX-License-Identifier: MIT */
/* The text of a name, in the form in which it is stored, hashed and compared: words of eight bytes,
 * the first in the lowest bits. The last word has zero to seven bytes of the text, and in its
 * highest byte how many: no byte of a name is so small, so that a name differs from every longer
 * one in its own last word, and what an entry has behind that does not matter. */
#ifndef SKUA_RELATIONS_NAME_KEY_H
#define SKUA_RELATIONS_NAME_KEY_H

#include <stdint.h>

#include "base/compiler.h"

#define NAME_LENGTH_MAX 63
/* Room for a name and its end. */
#define NAME_SIZE  (NAME_LENGTH_MAX + 1)
#define NAME_WORDS (NAME_SIZE / 8)

struct name_key {
    uint64_t words[NAME_WORDS];
    uint32_t count; /* of words, the last one included */
    uint64_t hash;  /* the highest bits and the lowest are the best */
};

/* Returns 0, SKUA_E_NAME or SKUA_E_NAME_LENGTH. Reads NAME_SIZE bytes at most. */
NODISCARD int name_key_make(struct name_key *key, const char *text, uint64_t seed);

/* Writes the text of a key's words, with its end; returns its length. */
uint32_t name_key_text(const uint64_t words[NAME_WORDS], char text[NAME_SIZE]);

#endif
