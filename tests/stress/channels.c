/* SPDX-License-Identifier: MIT */
#include "channels.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mutex.h"

#define CHANNELS_FIRST 900 /* more than the other descriptors ever need */
#define FILES_NEEDED   (CHANNELS_FIRST + 2 * CHANNELS)

/* ---- descriptors ---- */

bool make_pair(uint64_t *random, int fds[2])
{
    const long error =
        once_in(random, 2)
            ? syscall(SYS_pipe2, fds, O_NONBLOCK | O_CLOEXEC)
            : syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds);
    stress_expect(error == 0, "making a pair of descriptors", errno);
    return error == 0;
}

void close_bare(int fd)
{
    stress_expect(syscall(SYS_close, fd) == 0, "close", fd);
}

long read_bytes(int fd, void *bytes, size_t size)
{
    return syscall(SYS_read, fd, bytes, size);
}

long write_bytes(int fd, const void *bytes, size_t size)
{
    return syscall(SYS_write, fd, bytes, size);
}

void drain(int fd)
{
    char bytes[4096];
    while (read_bytes(fd, bytes, sizeof bytes) > 0) {
    }
}

void fill(int fd)
{
    static const char bytes[4096];
    while (write_bytes(fd, bytes, sizeof bytes) > 0) {
    }
}

/* ---- channels ---- */

static struct {
    pthread_mutex_t lock;
    bool is_open; /* under lock, as is whatever is done with the numbers but waiting */
} channels[CHANNELS];

void channels_begin(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < FILES_NEEDED) {
        files.rlim_cur = FILES_NEEDED;
        stress_expect(setrlimit(RLIMIT_NOFILE, &files) == 0, "too few descriptors are allowed",
                      FILES_NEEDED);
    }
    for (uint32_t i = 0; i < CHANNELS; i++) {
        mutex_init(&channels[i].lock);
    }
}

void channels_end(void)
{
    for (uint32_t i = 0; i < CHANNELS; i++) {
        mutex_deinit(&channels[i].lock);
    }
}

int channel_fd(uint32_t channel, uint32_t end)
{
    return CHANNELS_FIRST + (int)(2 * channel + end);
}

bool channel_is_proper(uint32_t channel)
{
    return channel % 2 == 0;
}

static void open_channel_locked(uint64_t *random, uint32_t channel)
{
    int fds[2];
    if (!make_pair(random, fds)) {
        return;
    }
    for (uint32_t end = 0; end < 2; end++) {
        const long fd = syscall(SYS_dup3, fds[end], channel_fd(channel, end), O_CLOEXEC);
        stress_expect(fd >= 0, "dup3", errno);
        close_bare(fds[end]);
    }
    channels[channel].is_open = true;
}

static void close_channel_locked(uint32_t channel)
{
    for (uint32_t end = 0; end < 2; end++) {
        const int fd = channel_fd(channel, end);
        if (channel_is_proper(channel)) {
            const int error = skua_descriptor_close(current.runtime, fd);
            stress_expect(error == 0, "closing a channel", error);
        } else {
            close_bare(fd);
        }
    }
    channels[channel].is_open = false;
}

/* Another pair takes its place: after a moment without any, or, in the case of one that is closed
 * behind the runtime's back, by one system call. */
static void replace_channel_locked(uint64_t *random, uint32_t channel)
{
    if (channel_is_proper(channel) || once_in(random, 2)) {
        close_channel_locked(channel);
        stress_pause(random, 2);
    }
    open_channel_locked(random, channel);
}

static void use_channel_locked(uint64_t *random, uint32_t channel)
{
    static const char bytes[8];
    switch (random_below(random, 8)) {
    case 0:
        replace_channel_locked(random, channel);
        break;
    case 1:
        fill(channel_fd(channel, 1));
        break;
    case 2:
    case 3:
        (void)write_bytes(channel_fd(channel, 1), bytes, sizeof bytes);
        break;
    default:
        drain(channel_fd(channel, 0));
        break;
    }
}

void use_channel(uint64_t *random)
{
    const uint32_t channel = random_below(random, CHANNELS);
    mutex_lock(&channels[channel].lock);
    if (channels[channel].is_open) {
        use_channel_locked(random, channel);
    }
    mutex_unlock(&channels[channel].lock);
    stress_operation();
}

void open_channels(uint64_t *random)
{
    for (uint32_t i = 0; i < CHANNELS; i++) {
        mutex_lock(&channels[i].lock);
        open_channel_locked(random, i);
        mutex_unlock(&channels[i].lock);
    }
}

void close_channels(uint64_t *random, bool proper)
{
    for (uint32_t i = 0; i < CHANNELS; i++) {
        if (channel_is_proper(i) == proper) {
            mutex_lock(&channels[i].lock);
            close_channel_locked(i);
            mutex_unlock(&channels[i].lock);
            stress_pause(random, 2);
        }
    }
}
