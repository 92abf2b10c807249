/* SPDX-License-Identifier: MIT */
/* Atomic operations, with the memory order in the name. This is the only file that includes
 * <stdatomic.h>: to list the orders in use, search for the names below; to see what each pair of
 * them carries across threads, read docs/memory-orders.md.
 *
 * There are no stand-alone fences: thread sanitizers do not understand them.
 *
 * With SKUA_MODEL defined every operation first calls model_point(), where the interleaving
 * explorer of tests/model may switch to another thread. */
#ifndef SKUA_BASE_ATOMIC_H
#define SKUA_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic(uint32_t) atomic_u32;
typedef _Atomic(uint64_t) atomic_u64;
typedef _Atomic(void *) atomic_ptr;

#ifdef SKUA_MODEL
void model_point(void);
#define ATOMIC_OP(operation) (model_point(), (operation))
#else
#define ATOMIC_OP(operation) (operation)
#endif

#define load_relaxed(p) ATOMIC_OP(atomic_load_explicit((p), memory_order_relaxed))
#define load_acquire(p) ATOMIC_OP(atomic_load_explicit((p), memory_order_acquire))
#define load_seq_cst(p) ATOMIC_OP(atomic_load_explicit((p), memory_order_seq_cst))

#define store_relaxed(p, v) ATOMIC_OP(atomic_store_explicit((p), (v), memory_order_relaxed))
#define store_release(p, v) ATOMIC_OP(atomic_store_explicit((p), (v), memory_order_release))
#define store_seq_cst(p, v) ATOMIC_OP(atomic_store_explicit((p), (v), memory_order_seq_cst))

#define exchange_acq_rel(p, v) ATOMIC_OP(atomic_exchange_explicit((p), (v), memory_order_acq_rel))
#define exchange_seq_cst(p, v) ATOMIC_OP(atomic_exchange_explicit((p), (v), memory_order_seq_cst))

#define fetch_add_relaxed(p, v) ATOMIC_OP(atomic_fetch_add_explicit((p), (v), memory_order_relaxed))
#define fetch_add_acq_rel(p, v) ATOMIC_OP(atomic_fetch_add_explicit((p), (v), memory_order_acq_rel))
#define fetch_add_seq_cst(p, v) ATOMIC_OP(atomic_fetch_add_explicit((p), (v), memory_order_seq_cst))
#define fetch_sub_relaxed(p, v) ATOMIC_OP(atomic_fetch_sub_explicit((p), (v), memory_order_relaxed))
#define fetch_sub_acq_rel(p, v) ATOMIC_OP(atomic_fetch_sub_explicit((p), (v), memory_order_acq_rel))
#define fetch_sub_seq_cst(p, v) ATOMIC_OP(atomic_fetch_sub_explicit((p), (v), memory_order_seq_cst))
#define fetch_or_seq_cst(p, v)  ATOMIC_OP(atomic_fetch_or_explicit((p), (v), memory_order_seq_cst))
#define fetch_and_acq_rel(p, v) ATOMIC_OP(atomic_fetch_and_explicit((p), (v), memory_order_acq_rel))
#define fetch_and_seq_cst(p, v) ATOMIC_OP(atomic_fetch_and_explicit((p), (v), memory_order_seq_cst))

/* A failed compare-exchange writes what it saw to *expected, with the order named last. */
#define cas_acq_rel_relaxed(p, expected, v)                                                        \
    ATOMIC_OP(atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_acq_rel,  \
                                                      memory_order_relaxed))
#define cas_acq_rel_acquire(p, expected, v)                                                        \
    ATOMIC_OP(atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_acq_rel,  \
                                                      memory_order_acquire))
#define cas_seq_cst(p, expected, v)                                                                \
    ATOMIC_OP(atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_seq_cst,  \
                                                      memory_order_seq_cst))

#endif
