/* SPDX-License-Identifier: MIT */
#include "capture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime_support.h"

void capture_begin(struct capture *capture)
{
    capture->file = memfd_create("standard error", MFD_CLOEXEC);
    assert_true(capture->file >= 0);
    /* Or of two threads that write at once, one writes over the other. */
    assert_int_equal(fcntl(capture->file, F_SETFL, O_APPEND), 0);
    capture->saved = dup(STDERR_FILENO);
    assert_true(capture->saved >= 0);
    assert_int_equal(dup2(capture->file, STDERR_FILENO), STDERR_FILENO);
}

const char *capture_read(struct capture *capture)
{
    const ssize_t length = pread(capture->file, capture->text, sizeof capture->text - 1, 0);
    capture->text[length > 0 ? length : 0] = '\0';
    return capture->text;
}

struct wish {
    struct capture *capture;
    const char *wanted;
};

static bool is_there(void *arg)
{
    const struct wish *wish = arg;
    return strstr(capture_read(wish->capture), wish->wanted) != NULL;
}

void capture_wait(struct capture *capture, const char *wanted)
{
    struct wish wish = {capture, wanted};
    wait_until(is_there, &wish, wanted);
}

const char *capture_end(struct capture *capture)
{
    (void)dup2(capture->saved, STDERR_FILENO);
    (void)capture_read(capture);
    assert_int_equal(close(capture->saved), 0);
    assert_int_equal(close(capture->file), 0);
    return capture->text;
}
