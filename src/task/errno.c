/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <skua/export.h>

#include "base/compiler.h"

SKUA_API int *skua_errno(void);

/* Only this way: the compiler must not find out that the location is the same for one thread, or it
 * would use on one what another has got. */
NOINLINE int *skua_errno(void)
{
    int *location = &errno;
    __asm__ volatile("" : "+r"(location) : : "memory");
    return location;
}
