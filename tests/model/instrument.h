/* SPDX-License-Identifier: MIT */
/* Puts the explorer under every atomic operation, mutex and condition variable. Included by the
 * compiler before anything else, in all sources of the models' build.
 *
 * base/atomic.h writes each operation as ATOMIC_OP(atomic_load_explicit(...)) and so on. Here that
 * becomes MODEL_atomic_load_explicit(...), which tells the explorer what is about to be done to
 * which word before it is done: that is what schedules are chosen by and traces are made of. */
#ifndef SKUA_MODEL_INSTRUMENT_H
#define SKUA_MODEL_INSTRUMENT_H

#include <pthread.h>

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

/* `operation` on the `size` bytes at `address` comes next. `name` and `where` are for traces. */
void model_access(const volatile void *address, size_t size, enum model_operation operation,
                  const char *name, const char *where);

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

#undef ATOMIC_OP
#define ATOMIC_OP(operation) MODEL_##operation

#define MODEL_LINE_TEXT(line) #line
#define MODEL_LINE(line)      MODEL_LINE_TEXT(line)
#define MODEL_ACCESS(p, operation)                                                                 \
    model_access((p), sizeof *(p), (operation), #p, __FILE__ ":" MODEL_LINE(__LINE__))

#define MODEL_atomic_load_explicit(p, order)                                                       \
    (MODEL_ACCESS(p, MODEL_LOAD), atomic_load_explicit((p), order))

/* The value may contain a load; that is an operation before this one. */
#define MODEL_atomic_store_explicit(p, value, order)                                               \
    __extension__({                                                                                \
        const __typeof__((void)0, *(p)) model_value = (value);                                     \
        MODEL_ACCESS(p, MODEL_STORE);                                                              \
        atomic_store_explicit((p), model_value, order);                                            \
    })

#define MODEL_atomic_exchange_explicit(p, value, order)                                            \
    (MODEL_ACCESS(p, MODEL_EXCHANGE), atomic_exchange_explicit((p), (value), order))
#define MODEL_atomic_fetch_add_explicit(p, value, order)                                           \
    (MODEL_ACCESS(p, MODEL_ADD), atomic_fetch_add_explicit((p), (value), order))
#define MODEL_atomic_fetch_sub_explicit(p, value, order)                                           \
    (MODEL_ACCESS(p, MODEL_SUBTRACT), atomic_fetch_sub_explicit((p), (value), order))
#define MODEL_atomic_fetch_or_explicit(p, value, order)                                            \
    (MODEL_ACCESS(p, MODEL_OR), atomic_fetch_or_explicit((p), (value), order))
#define MODEL_atomic_fetch_and_explicit(p, value, order)                                           \
    (MODEL_ACCESS(p, MODEL_AND), atomic_fetch_and_explicit((p), (value), order))
#define MODEL_atomic_compare_exchange_strong_explicit(p, expected, value, order, failure)          \
    (MODEL_ACCESS(p, MODEL_COMPARE_EXCHANGE),                                                      \
     atomic_compare_exchange_strong_explicit((p), (expected), (value), order, failure))

#endif
