/* SPDX-License-Identifier: MIT */
/* For tests of internal assertions. */
#ifndef SKUA_TESTS_ABORTS_H
#define SKUA_TESTS_ABORTS_H

#include <stdbool.h>

/* Whether function(arg) ends in abort(). It is tried in a child process, so whatever it does to
 * memory is not seen here. */
bool aborts(void (*function)(void *arg), void *arg);

/* Whether it also has this text among what it writes to stderr (its first few hundred bytes). If
 * not, that is shown. */
bool aborts_saying(void (*function)(void *arg), void *arg, const char *text);

#endif
