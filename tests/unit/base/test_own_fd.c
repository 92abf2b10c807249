/* SPDX-License-Identifier: MIT */
#include "base/own_fd.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "test.h"

struct pipe_ends {
    struct own_fd reader;
    struct own_fd writer;
};

static struct pipe_ends open_pipe(void)
{
    struct pipe_ends pipe;
    assert_int_equal(own_fd_open_pipe(&pipe.reader, &pipe.writer), 0);
    return pipe;
}

static void close_pipe(struct pipe_ends *pipe)
{
    own_fd_close(&pipe->reader);
    own_fd_close(&pipe->writer);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

TEST(descriptor_is_ours_until_it_is_closed)
{
    struct pipe_ends pipe = open_pipe();
    const int number = pipe.reader.fd;
    assert_true(own_fd_is_ours(&pipe.reader));
    assert_true(own_fd_is_ours(&pipe.writer));
    own_fd_close(&pipe.reader);
    assert_int_equal(pipe.reader.fd, -1);
    assert_false(is_open(number));
    assert_false(own_fd_is_ours(&pipe.reader));
    own_fd_close(&pipe.reader); /* nothing happens */
    close_pipe(&pipe);
}

TEST(descriptor_that_somebody_else_has_closed_is_not_ours)
{
    struct pipe_ends pipe = open_pipe();
    assert_int_equal(close(pipe.reader.fd), 0);
    assert_false(own_fd_is_ours(&pipe.reader));
    close_pipe(&pipe);
}

TEST(number_that_means_another_file_is_not_ours_and_stays_open)
{
    struct pipe_ends pipe = open_pipe();
    struct pipe_ends other = open_pipe();
    const int number = pipe.reader.fd;
    assert_int_equal(dup2(other.reader.fd, number), number);
    assert_false(own_fd_is_ours(&pipe.reader));
    own_fd_close(&pipe.reader);
    assert_true(is_open(number));
    assert_int_equal(close(number), 0);
    close_pipe(&pipe);
    close_pipe(&other);
}

TEST(none_is_never_ours)
{
    const struct own_fd none = OWN_FD_NONE;
    const struct own_fd refused = own_fd_of(-1);
    assert_false(own_fd_is_ours(&none));
    assert_int_equal(refused.fd, -1);
    own_fd_write(&none);
}

TEST(write_arrives_and_never_blocks)
{
    char byte;
    struct pipe_ends pipe = open_pipe();
    own_fd_write(&pipe.writer);
    assert_int_equal(read(pipe.reader.fd, &byte, 1), 1);
    for (int i = 0; i < 100000; i++) { /* more than fit in */
        own_fd_write(&pipe.writer);
    }
    close_pipe(&pipe);
}

static bool sigpipe_is_pending(void)
{
    sigset_t pending;
    assert_int_equal(sigpending(&pending), 0);
    return sigismember(&pending, SIGPIPE) == 1;
}

/* If it did, the test would be over: nobody handles the signal. */
TEST(write_without_a_reader_sends_no_signal)
{
    sigset_t sigpipe;
    sigset_t before;
    struct pipe_ends pipe = open_pipe();
    own_fd_close(&pipe.reader);
    own_fd_write(&pipe.writer);
    /* One that waits already is left to whoever waits for it. */
    assert_int_equal(sigemptyset(&sigpipe), 0);
    assert_int_equal(sigaddset(&sigpipe, SIGPIPE), 0);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &sigpipe, &before), 0);
    own_fd_write(&pipe.writer);
    assert_false(sigpipe_is_pending());
    assert_int_equal(raise(SIGPIPE), 0);
    own_fd_write(&pipe.writer);
    assert_true(sigpipe_is_pending());
    assert_int_equal(sigtimedwait(&sigpipe, NULL, &(struct timespec){0}), SIGPIPE);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    close_pipe(&pipe);
}
