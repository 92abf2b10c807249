/* SPDX-License-Identifier: MIT */
/* The kernel's wait queue on a 32-bit word. */
#ifndef SKUA_BASE_FUTEX_H
#define SKUA_BASE_FUTEX_H

#include "base/atomic.h"

/* Sleeps if *word == expected, otherwise returns at once; may wake up spuriously. */
void futex_wait(atomic_u32 *word, uint32_t expected);

/* Wakes one thread that sleeps on word. */
void futex_wake_one(atomic_u32 *word);

#endif
