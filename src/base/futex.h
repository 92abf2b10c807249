/* SPDX-License-Identifier: MIT */
/* The kernel's wait queue on a 32-bit word. */
#ifndef SKUA_BASE_FUTEX_H
#define SKUA_BASE_FUTEX_H

#include "base/atomic.h"

/* Sleeps while *word == expected, or returns at once; may return for no reason. */
void futex_wait(atomic_u32 *word, uint32_t expected);

/* Wakes one thread that sleeps on word. */
void futex_wake_one(atomic_u32 *word);

#endif
