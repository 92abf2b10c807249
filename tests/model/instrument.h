/* SPDX-License-Identifier: MIT */
/* Puts the explorer under every atomic operation, mutex and condition variable. Included by the
 * compiler before anything else, in all sources of the models' build.
 *
 * base/atomic.h writes each operation as ATOMIC_OP(atomic_load_explicit(...)) and so on. Here that
 * becomes MODEL_atomic_load_explicit(...), which has the explorer do it: it chooses when, and for a
 * load also which of the values that the memory orders let this thread see. */
#ifndef SKUA_MODEL_INSTRUMENT_H
#define SKUA_MODEL_INSTRUMENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/atomic.h"

enum model_operation {
    MODEL_LOAD,
    MODEL_STORE,
    MODEL_EXCHANGE,
    MODEL_ADD,
    MODEL_SUBTRACT,
    MODEL_OR,
    MODEL_AND,
    MODEL_COMPARE_EXCHANGE,
    /* The explorer's own. */
    MODEL_LOCK,       /* a mutex, and all that is done while it is held */
    MODEL_TAKE,       /* explore_take */
    MODEL_FUTEX_WAIT, /* goes to sleep */
    MODEL_FUTEX_WOKEN,
    MODEL_FUTEX_WAKE,
    MODEL_CONDITION, /* wakes from a condition variable */
    MODEL_JOIN,
    MODEL_UNKNOWN, /* model_point, from a source that was compiled without this file */
};

/* An operation as it stands in the source. */
struct model_site {
    size_t size;
    enum model_operation operation;
    memory_order order;
    memory_order failure; /* of a compare-exchange that fails */
    const char *name;     /* for traces, and so is `where` */
    const char *where;    /* empty: not known */
};

/* Does it, when its turn has come. Returns the value that was read, or for a store any. */
uint64_t model_operate(const struct model_site *site, const volatile void *address,
                       uint64_t operand);

/* The same for a compare-exchange, as <stdatomic.h> has it. `expected` points to a word of the same
 * size. */
bool model_compare_exchange(const struct model_site *site, const volatile void *address,
                            void *expected, uint64_t operand);

int model_mutex_lock(pthread_mutex_t *mutex);
int model_mutex_unlock(pthread_mutex_t *mutex);
#define pthread_mutex_lock   model_mutex_lock
#define pthread_mutex_unlock model_mutex_unlock

struct timespec;
int model_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int model_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                         const struct timespec *deadline);
int model_cond_signal(pthread_cond_t *condition);
int model_cond_broadcast(pthread_cond_t *condition);
#define pthread_cond_wait      model_cond_wait
#define pthread_cond_timedwait model_cond_timedwait
#define pthread_cond_signal    model_cond_signal
#define pthread_cond_broadcast model_cond_broadcast

/* For code whose threads a model has made of its own: `thread` is the number of one of those. */
int model_join(pthread_t thread, void **result);
#define pthread_join model_join

/* In sources whose plain accesses are watched the compiler sees to all but these. */
#if defined(__SANITIZE_THREAD__)
#define MODEL_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MODEL_WATCHED 1
#endif
#endif
void *model_memcpy(void *to, const void *from, size_t size);
void *model_memmove(void *to, const void *from, size_t size);
void *model_memset(void *to, int value, size_t size);
#ifdef MODEL_WATCHED
#define memcpy  model_memcpy
#define memmove model_memmove
#define memset  model_memset
#endif

#undef ATOMIC_OP
#define ATOMIC_OP(operation) MODEL_##operation

#define MODEL_LINE_TEXT(line) #line
#define MODEL_LINE(line)      MODEL_LINE_TEXT(line)

/* The type of *p without _Atomic. */
#define MODEL_TYPE(p) __typeof__((void)0, *(p))
/* A value that is to be written to *p: an integer or a pointer. */
#define MODEL_BITS(p, value) ((uint64_t)(uintptr_t)(MODEL_TYPE(p))(value))

#define MODEL_SITE(p, operation_, order_, failure_)                                                \
    __extension__({                                                                                \
        static const struct model_site model_site = {                                              \
            .size = sizeof *(p),                                                                   \
            .operation = (operation_),                                                             \
            .order = (order_),                                                                     \
            .failure = (failure_),                                                                 \
            .name = #p,                                                                            \
            .where = __FILE__ ":" MODEL_LINE(__LINE__),                                            \
        };                                                                                         \
        &model_site;                                                                               \
    })

/* A value may contain an operation; being an argument it is done before this one. */
#define MODEL_OPERATE(p, operation, value, order)                                                  \
    ((MODEL_TYPE(p))(uintptr_t)model_operate(MODEL_SITE(p, operation, order, order), (p),          \
                                             MODEL_BITS(p, value)))

#define MODEL_atomic_load_explicit(p, order) MODEL_OPERATE(p, MODEL_LOAD, 0, order)
#define MODEL_atomic_store_explicit(p, value, order)                                               \
    ((void)MODEL_OPERATE(p, MODEL_STORE, value, order))
#define MODEL_atomic_exchange_explicit(p, value, order)                                            \
    MODEL_OPERATE(p, MODEL_EXCHANGE, value, order)
#define MODEL_atomic_fetch_add_explicit(p, value, order) MODEL_OPERATE(p, MODEL_ADD, value, order)
#define MODEL_atomic_fetch_sub_explicit(p, value, order)                                           \
    MODEL_OPERATE(p, MODEL_SUBTRACT, value, order)
#define MODEL_atomic_fetch_or_explicit(p, value, order)  MODEL_OPERATE(p, MODEL_OR, value, order)
#define MODEL_atomic_fetch_and_explicit(p, value, order) MODEL_OPERATE(p, MODEL_AND, value, order)
#define MODEL_atomic_compare_exchange_strong_explicit(p, expected, value, order, failure)          \
    model_compare_exchange(MODEL_SITE(p, MODEL_COMPARE_EXCHANGE, order, failure), (p), (expected), \
                           MODEL_BITS(p, value))

#endif
