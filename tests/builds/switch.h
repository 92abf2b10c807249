/* SPDX-License-Identifier: MIT */
/* For switch.c: functions of another file, which link-time optimization may make inline. */
#ifndef SKUA_TESTS_SWITCH_H
#define SKUA_TESTS_SWITCH_H

#include <stdbool.h>

void fail_elsewhere(int error);
bool has_failed_with(int error);

/* Where this thread has its errno, whatever the compiler thinks. */
int *errno_of_thread(void);

#endif
