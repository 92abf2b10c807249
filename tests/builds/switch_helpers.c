/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <skua/skua.h>

#include "switch.h"

void fail_elsewhere(int error)
{
    errno = error;
}

bool has_failed_with(int error)
{
    return errno == error;
}

/* Not even link-time optimization knows what it is. */
static int *(*volatile location)(void) = __errno_location;

int *errno_of_thread(void)
{
    return location();
}
