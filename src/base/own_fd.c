/* SPDX-License-Identifier: MIT */
#include "base/own_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct own_fd own_fd_of(int fd)
{
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) {
        return OWN_FD_NONE;
    }
    return (struct own_fd){.fd = fd, .device = status.st_dev, .inode = status.st_ino};
}

bool own_fd_is_ours(const struct own_fd *own)
{
    struct stat status;
    return own->fd >= 0 && fstat(own->fd, &status) == 0 && status.st_dev == own->device &&
           status.st_ino == own->inode;
}

void own_fd_close(struct own_fd *own)
{
    if (own_fd_is_ours(own)) {
        (void)close(own->fd);
    }
    *own = OWN_FD_NONE;
}

int own_fd_open_pipe(struct own_fd *read_end, struct own_fd *write_end)
{
    int ends[2];
    *read_end = *write_end = OWN_FD_NONE;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return -1;
    }
    *read_end = own_fd_of(ends[0]);
    *write_end = own_fd_of(ends[1]);
    return 0;
}

/* Takes a SIGPIPE that the calling thread has just caused, and not one that was there before. */
static void take_sigpipe(const sigset_t *sigpipe, bool was_pending)
{
    if (!was_pending) {
        while (sigtimedwait(sigpipe, NULL, &(struct timespec){0}) < 0 && errno == EINTR) {
        }
    }
}

void own_fd_write(const struct own_fd *write_end)
{
    sigset_t sigpipe;
    sigset_t pending;
    sigset_t mask;
    if (!own_fd_is_ours(write_end)) {
        return;
    }
    (void)sigemptyset(&sigpipe);
    (void)sigaddset(&sigpipe, SIGPIPE);
    (void)sigpending(&pending);
    (void)pthread_sigmask(SIG_BLOCK, &sigpipe, &mask);
    if (write(write_end->fd, "", 1) < 0 && errno == EPIPE) {
        take_sigpipe(&sigpipe, sigismember(&pending, SIGPIPE) == 1);
    }
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
}
