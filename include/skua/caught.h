/* SPDX-License-Identifier: MIT */
/* What a wait does in C++: internal. The exceptions that are being handled, and how many are on
 * their way, are the C++ library's, for each thread. A task that waits meanwhile leaves nothing of
 * its own to others on its thread, and takes it along to the one where it goes on. In C, and where
 * there are no exceptions, this is nothing. */
#ifndef SKUA_CAUGHT_H
#define SKUA_CAUGHT_H

#include <stddef.h>

#include <skua/export.h>

#if defined(__cplusplus) && defined(__EXCEPTIONS) && defined(__GNUC__)

/* As the C++ ABI has it. */
struct skua_caught_ {
    void *handled;
    unsigned int flying;
};

/* That of this thread: __cxa_get_globals. By that name, compilers would take it for the same one
 * after a wait. Null in programs that throw nothing and have no C++ library. */
extern "C" __attribute__((weak)) struct skua_caught_ *
skua_caught_of_thread_(void) __asm__("__cxa_get_globals");

/* The type of an argument is that of the parameter, and not to be guessed. */
template <typename Type> struct skua_same_ {
    typedef Type type;
};

/* Calls a function that waits. The second is for those whose result must be used. */
template <typename... Types>
inline __attribute__((always_inline)) int skua_rest_(int (*function)(Types...),
                                                     typename skua_same_<Types>::type... arguments)
{
    const struct skua_caught_ kept =
        skua_caught_of_thread_ != NULL ? *skua_caught_of_thread_() : skua_caught_();
    if (__builtin_expect(kept.handled == NULL && kept.flying == 0, 1)) {
        return function(arguments...);
    }
    *skua_caught_of_thread_() = skua_caught_();
    const int result = function(arguments...);
    *skua_caught_of_thread_() = kept;
    return result;
}

template <typename... Types>
SKUA_NODISCARD inline __attribute__((always_inline)) int
skua_wait_for_(int (*function)(Types...), typename skua_same_<Types>::type... arguments)
{
    return skua_rest_(function, arguments...);
}

#define SKUA_REST_(function, ...) skua_rest_(function, __VA_ARGS__)
#define SKUA_WAIT_(function, ...) skua_wait_for_(function, __VA_ARGS__)

#else

#define SKUA_REST_(function, ...) function(__VA_ARGS__)
#define SKUA_WAIT_(function, ...) function(__VA_ARGS__)

#endif

#endif
