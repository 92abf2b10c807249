/* SPDX-License-Identifier: MIT */
/* Callers' structs, which may be older or newer than the library.
 *
 * A struct of the interface grows only at its end. A program is compiled with the struct of its
 * time, and its size comes with every call: so the library never touches a byte behind it. Zero
 * means the default in everything that is read, and what a field would say that the other side does
 * not know is zero. */
#ifndef SKUA_BASE_SIZED_H
#define SKUA_BASE_SIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* Reads a caller's struct into `own`; fields that the caller does not know become zero, and so do
 * all if `given` is null. False if the caller sets a field that this library does not know: one
 * that must not be ignored. */
bool sized_read(void *own, size_t own_size, const void *given, size_t given_size);

/* Writes `own` into a caller's struct, as far as the caller knows it; fields that only the caller
 * knows become zero. */
void sized_write(void *given, size_t given_size, const void *own, size_t own_size);

/* Whether the reserved words at the end of a struct are zero, as they must be. */
NODISCARD bool reserved_are_zero(const uintptr_t *words, size_t size);

#endif
