/* SPDX-License-Identifier: MIT */
#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_MAX_COUNT 4096

/* The descriptors of a test or of a round (see FOR_ROUNDS), which may have begun within a test. */
struct hoard {
    struct hoard *outer;
    uint64_t test_number;
    size_t count;
    int fds[OPEN_MAX_COUNT];
};

static struct hoard *hoard;

static void close_all(void)
{
    struct hoard *ended = hoard;
    hoard = ended->outer;
    if (world->test_number == ended->test_number) {
        world_close();
    }
    while (ended->count > 0) {
        assert_int_equal(close(ended->fds[--ended->count]), 0); /* nobody else has */
    }
}

int fd_own(int fd)
{
    assert_true(fd >= 0);
    if (hoard == NULL || hoard->test_number != test_number) {
        struct hoard *inner = test_alloc(sizeof *inner);
        inner->outer = hoard;
        inner->test_number = test_number;
        hoard = inner;
        test_at_end(close_all);
    }
    assert_in_range(hoard->count, 0, OPEN_MAX_COUNT - 1);
    hoard->fds[hoard->count++] = fd;
    return fd;
}

static bool take_out(struct hoard *from, int fd)
{
    for (size_t i = 0; i < from->count; i++) {
        if (from->fds[i] == fd) {
            from->fds[i] = from->fds[--from->count];
            return true;
        }
    }
    return false;
}

void fd_disown(int fd)
{
    for (struct hoard *from = hoard; from != NULL; from = from->outer) {
        if (take_out(from, fd)) {
            return;
        }
    }
    fail_msg("descriptor %d is not the test's", fd);
}

void fd_close(int fd)
{
    fd_disown(fd);
    assert_int_equal(close(fd), 0);
}

bool fd_is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

int fd_close_by_runtime(int fd)
{
    const int error = skua_descriptor_close(world_runtime(), fd);
    if (error == 0) {
        fd_disown(fd);
    }
    return error;
}

static struct ends own_both(const int ends[2])
{
    return (struct ends){.near = fd_own(ends[0]), .far = fd_own(ends[1])};
}

struct ends pipe_open(void)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    return own_both(ends);
}

struct ends pair_open(void)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    return own_both(ends);
}

struct ends full_pair_open(void)
{
    const struct ends pair = pair_open();
    fill(pair.near);
    return pair;
}

int eventfd_open(void)
{
    return fd_own(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
}

int file_open(void)
{
    char path[] = "/tmp/skua-test-XXXXXX";
    const int fd = fd_own(mkostemp(path, O_CLOEXEC));
    assert_int_equal(unlink(path), 0);
    return fd;
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* An interface that is down can be listened on, but not reached. Connecting a datagram socket sends
 * nothing, and needs a way to the address all the same. */
bool has_loopback(void)
{
    const struct sockaddr_in address = loopback(9);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool is_reachable =
        fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    assert_true(is_reachable || errno == EAFNOSUPPORT || errno == ENETUNREACH ||
                errno == EADDRNOTAVAIL);
    assert_true(fd < 0 || close(fd) == 0);
    return is_reachable;
}

void need_loopback(void)
{
    if (!has_loopback()) {
        print_message("127.0.0.1 cannot be reached\n");
        skip();
    }
}

int listener_open(void)
{
    const struct sockaddr_in address = loopback(0); /* a port of the system's choice */
    const int fd = fd_own(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

uint16_t port_of(int listener)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    return ntohs(address.sin_port);
}

int connection_open(uint16_t port, int flags)
{
    const struct sockaddr_in address = loopback(port);
    const int fd = fd_own(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
    assert_true(connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ||
                errno == EINPROGRESS || errno == ECONNREFUSED);
    return fd;
}

/* By a bare system call: a thread sanitizer would take the reuse of a number that somebody waits
 * for, which is the point, for a race. */
int number_reuse(int number)
{
    int ends[2];
    assert_int_equal(syscall(SYS_pipe2, ends, O_NONBLOCK | O_CLOEXEC), 0);
    if (ends[1] == number) {
        ends[1] = fcntl(ends[1], F_DUPFD_CLOEXEC, 0); /* the number is overwritten below */
    }
    if (ends[0] != number) {
        int copy;
        do { /* busy: another thread is just opening a file with this number */
            copy = dup2(ends[0], number);
        } while (copy < 0 && errno == EBUSY);
        assert_int_equal(copy, number);
        assert_int_equal(close(ends[0]), 0);
    }
    (void)fd_own(number);
    return fd_own(ends[1]);
}

void write_byte(int fd)
{
    assert_int_equal(write(fd, "x", 1), 1);
}

void signal_eventfd(int fd)
{
    const uint64_t one = 1;
    assert_int_equal(write(fd, &one, sizeof one), sizeof one);
}

void fill(int fd)
{
    static const char block[4096];
    while (write(fd, block, sizeof block) > 0) {
    }
    assert_int_equal(errno, EAGAIN);
    while (write(fd, block, 1) > 0) {
    }
    assert_int_equal(errno, EAGAIN);
}

void drain(int fd)
{
    char block[4096];
    while (read(fd, block, sizeof block) > 0) {
    }
    assert_int_equal(errno, EAGAIN);
}

static struct rlimit allowance; /* before the test has changed it */
static uint64_t allowance_number;

static void restore_allowance(void)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &allowance), 0);
}

void files_allow(uint64_t count)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (allowance_number != test_number) {
        allowance_number = test_number;
        allowance = limit;
        test_at_end(restore_allowance);
    }
    limit.rlim_cur = count < limit.rlim_max ? count : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

void files_allow_many(void)
{
    files_allow(RLIM_INFINITY);
}
