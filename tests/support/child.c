/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime_support.h"

int child_run(int (*function)(int arg), int arg)
{
    (void)fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        watchdog_start();
        _exit(function(arg));
    }
    int status;
    pid_t reaped;
    do {
        reaped = waitpid(child, &status, 0);
    } while (reaped < 0 && errno == EINTR);
    assert_int_equal(reaped, child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}
