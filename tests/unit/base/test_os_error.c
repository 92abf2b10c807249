/* SPDX-License-Identifier: MIT */
/* The errno behind the last error: kept, and for each thread its own. */
#include "base/os_error.h"

#include <errno.h>
#include <pthread.h>
#include <skua/error.h>

#include "test.h"

TEST(os_error_is_the_last_that_was_kept)
{
    assert_int_equal(os_error_keep(ENOENT, SKUA_E_THREAD), SKUA_E_THREAD);
    assert_int_equal(skua_error_os(), ENOENT);
    assert_int_equal(skua_error_os(), ENOENT); /* reading it changes nothing */
    assert_int_equal(os_error_keep(EAGAIN, -1), -1);
    assert_int_equal(skua_error_os(), EAGAIN);
    errno = EBADF;
    assert_int_equal(skua_error_os(), EAGAIN); /* it is not errno itself */
}

static void *look_elsewhere(void *arg)
{
    int *seen = arg;
    seen[0] = skua_error_os();
    (void)os_error_keep(EPERM, -1);
    seen[1] = skua_error_os();
    return NULL;
}

TEST(os_error_of_another_thread_is_its_own)
{
    pthread_t thread;
    int seen[2] = {-1, -1};
    (void)os_error_keep(ENOSPC, -1);
    assert_int_equal(pthread_create(&thread, NULL, look_elsewhere, seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(seen[0], 0);
    assert_int_equal(seen[1], EPERM);
    assert_int_equal(skua_error_os(), ENOSPC);
}
