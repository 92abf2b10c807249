/* SPDX-License-Identifier: MIT */
/* For tests of internal assertions and of crashes. */
#ifndef SKUA_TESTS_ABORTS_H
#define SKUA_TESTS_ABORTS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether function(arg) ends in abort(). It is tried in a child process, so whatever it does to
 * memory is not seen here. */
bool aborts(void (*function)(void *arg), void *arg);

/* Whether it also has this text among what it writes to stderr (its first few hundred bytes). If
 * not, that is shown. */
bool aborts_saying(void (*function)(void *arg), void *arg, const char *text);

/* The signal that ends function(arg); 0 if it returns, -1 if it exits with another status than 0.
 * What it writes to stderr, as far as it fits, is in `message`. The signals of crashes have no
 * handlers at first, not even under a sanitizer. */
int ends_by(void (*function)(void *arg), void *arg, char *message, size_t size);

#endif
