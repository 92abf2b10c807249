/* SPDX-License-Identifier: MIT */
/* What the address and the thread sanitizer must be told of a stack. Without them, nothing.
 *
 * Each stack has a fiber of the thread sanitizer. Switching orders what the task does after what
 * its worker did, and the other way round, and nothing else: tasks on two workers are as unordered
 * as the workers. */
#ifndef SKUA_TASK_FIBER_H
#define SKUA_TASK_FIBER_H

#include <stddef.h>

#include "base/compiler.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define FIBER_ADDRESS 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define FIBER_ADDRESS 0
#endif
/* Models are compiled for that, and not linked with it. */
#if (defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)) && !defined(SKUA_MODEL)
#define FIBER_THREAD 1
#include <sanitizer/tsan_interface.h>
#else
#define FIBER_THREAD 0
#endif

#define IS_SANITIZED (FIBER_ADDRESS || FIBER_THREAD)

struct fiber {
#if FIBER_ADDRESS
    void *fake; /* the frames of the side that waits, which the sanitizer keeps elsewhere */
    void *host_fake;
    const void *host_low; /* the stack of the host */
    size_t host_size;
#endif
#if FIBER_THREAD
    void *own;
    void *host;
#endif
    char nothing; /* a struct is never empty */
};

/* The host is about to enter, and is back. */
static ALWAYS_INLINE void fiber_enter(struct fiber *fiber, const void *low, size_t size)
{
#if FIBER_ADDRESS
    __sanitizer_start_switch_fiber(&fiber->host_fake, low, size);
#endif
#if FIBER_THREAD
    if (fiber->own == NULL) {
        fiber->own = __tsan_create_fiber(0);
    }
    fiber->host = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber->own, 0);
#endif
    (void)fiber;
    (void)low;
    (void)size;
}

static ALWAYS_INLINE void fiber_is_back(struct fiber *fiber)
{
#if FIBER_ADDRESS
    __sanitizer_finish_switch_fiber(fiber->host_fake, NULL, NULL);
#endif
    (void)fiber;
}

/* The task is about to leave, and has been entered; the first time there was nothing before. */
static ALWAYS_INLINE void fiber_leave(struct fiber *fiber)
{
#if FIBER_ADDRESS
    __sanitizer_start_switch_fiber(&fiber->fake, fiber->host_low, fiber->host_size);
#endif
#if FIBER_THREAD
    __tsan_switch_to_fiber(fiber->host, 0);
#endif
    (void)fiber;
}

static ALWAYS_INLINE void fiber_is_entered(struct fiber *fiber)
{
#if FIBER_ADDRESS
    __sanitizer_finish_switch_fiber(fiber->fake, &fiber->host_low, &fiber->host_size);
#endif
    (void)fiber;
}

static inline void fiber_deinit(struct fiber *fiber, void *low, size_t size)
{
#if FIBER_ADDRESS
    __asan_unpoison_memory_region(low, size);
#endif
#if FIBER_THREAD
    if (fiber->own != NULL) {
        __tsan_destroy_fiber(fiber->own);
    }
#endif
    (void)fiber;
    (void)low;
    (void)size;
}

#endif
