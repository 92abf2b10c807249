/* SPDX-License-Identifier: MIT */
/* Another program for what would change this one for good: its user, its limits, its CPUs. */
#ifndef SKUA_TESTS_CHILD_H
#define SKUA_TESTS_CHILD_H

/* Calls function(arg) in a child process and returns what that did, 0 to 255; the child has to come
 * to that. It must not assert, as the test goes on here. */
int child_run(int (*function)(int arg), int arg);

#endif
