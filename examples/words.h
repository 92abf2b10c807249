/* SPDX-License-Identifier: MIT */
/* Words and how often they occur: plain C for 03_word_count.c, nothing of Skua is in here. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
    char text[24]; /* longer ones are cut */
    uint64_t count;
};

struct words {
    struct word *list;
    size_t length, capacity;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct word *)a)->text, ((const struct word *)b)->text);
}

static int by_count(const void *a, const void *b)
{
    const struct word *left = a, *right = b;
    return left->count == right->count ? by_text(a, b) : left->count < right->count ? 1 : -1;
}

/* Sorts the words and makes one of equal ones. */
static void words_combine(struct words *words)
{
    size_t kept = 0;
    if (words->length > 0) {
        qsort(words->list, words->length, sizeof words->list[0], by_text);
    }
    for (size_t i = 0; i < words->length; i++) {
        if (kept > 0 && by_text(&words->list[kept - 1], &words->list[i]) == 0) {
            words->list[kept - 1].count += words->list[i].count;
        } else {
            words->list[kept++] = words->list[i];
        }
    }
    words->length = kept;
}

static bool words_grow(struct words *words)
{
    const size_t capacity = words->capacity * 2 + 64;
    struct word *list = realloc(words->list, capacity * sizeof list[0]);
    if (list != NULL) {
        words->list = list;
        words->capacity = capacity;
    }
    return list != NULL;
}

/* False: there is no memory. */
static bool words_add(struct words *words, const struct word *word)
{
    if (words->length == words->capacity) {
        words_combine(words); /* where words come often this is enough */
        if (words->length >= words->capacity / 2 && !words_grow(words)) {
            return false;
        }
    }
    words->list[words->length++] = *word;
    return true;
}

/* Adds the words of an open file: runs of letters, in lower case. */
static bool words_scan(struct words *words, FILE *file)
{
    struct word word = {.count = 1};
    size_t letters = 0;
    int c;
    do {
        c = getc(file);
        if (isalpha(c)) {
            word.text[letters] = (char)tolower(c);
            letters += letters < sizeof word.text - 1;
        } else if (letters > 0) {
            memset(word.text + letters, 0, sizeof word.text - letters);
            letters = 0;
            if (!words_add(words, &word)) {
                return false;
            }
        }
    } while (c != EOF);
    words_combine(words);
    return !ferror(file);
}

/* Adds the words of a file by its name. False: it says why on stderr. */
static bool words_read(struct words *words, const char *name)
{
    FILE *file = fopen(name, "re");
    const bool good = file != NULL && words_scan(words, file);
    if (!good) {
        fprintf(stderr, "%s: %s\n", name, strerror(errno));
    }
    if (file != NULL) {
        fclose(file);
    }
    return good;
}

/* Prints the most frequent words. Returns how many there are in all, each as often as it occurs. */
static uint64_t words_show(struct words *words, size_t shown)
{
    uint64_t total = 0;
    words_combine(words);
    if (words->length > 0) {
        qsort(words->list, words->length, sizeof words->list[0], by_count);
    }
    for (size_t i = 0; i < words->length; i++) {
        total += words->list[i].count;
        if (i < shown) {
            printf("%8" PRIu64 "  %s\n", words->list[i].count, words->list[i].text);
        }
    }
    return total;
}
