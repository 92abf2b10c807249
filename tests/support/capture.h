/* SPDX-License-Identifier: MIT */
/* What the program writes to its standard error, for tests of what the library prints there. It
 * goes to memory, so nobody has to wait for the test to read it. */
#ifndef SKUA_TESTS_CAPTURE_H
#define SKUA_TESTS_CAPTURE_H

#include <stddef.h>

struct capture {
    int saved; /* the standard error of the test */
    int file;
    char text[(size_t)1 << 18]; /* what capture_read has found */
};

/* From now on; what a failing test says goes there, too. */
void capture_begin(struct capture *capture);

/* Everything so far. */
const char *capture_read(struct capture *capture);

/* Until `wanted` is in it. Aborts the program if it takes minutes. */
void capture_wait(struct capture *capture, const char *wanted);

/* Gives the standard error back, and returns what was written. */
const char *capture_end(struct capture *capture);

#endif
