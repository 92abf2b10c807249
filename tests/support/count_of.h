/* SPDX-License-Identifier: MIT */
#ifndef SKUA_TESTS_COUNT_OF_H
#define SKUA_TESTS_COUNT_OF_H

/* How many elements an array has. */
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
