/* SPDX-License-Identifier: MIT */
/* The folder of the sockets, and the sockets in it: what is made, what is refused. */
#include "inspect/inspect_socket.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"
#include "test.h"

#define RUNTIME 7

/* Opens the socket, which has to work. */
static int listen_here(struct sockaddr_un *address)
{
    const int fd = inspect_socket_listen(RUNTIME, address);
    assert_true(fd >= 0);
    return fd;
}

static void assert_refused(int reason)
{
    struct sockaddr_un address;
    errno = 0;
    assert_int_equal(inspect_socket_listen(RUNTIME, &address), -1);
    assert_int_equal(errno, reason);
}

/* 0, or why not. */
static int connect_to(const struct sockaddr_un *address)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    const int error =
        connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : errno;
    assert_int_equal(close(fd), 0);
    return error;
}

/* The folder of the sockets: skua in the scratch folder. */
static const char *open_scratch(void)
{
    static char folder[SCRATCH_PATH_SIZE];
    scratch_open();
    scratch_path(folder, "skua");
    return folder;
}

static void set_runtime_directory(const char *path)
{
    assert_int_equal(
        path != NULL ? setenv("XDG_RUNTIME_DIR", path, 1) : unsetenv("XDG_RUNTIME_DIR"), 0);
}

static void assert_directory(const char *expected)
{
    char text[SCRATCH_PATH_SIZE];
    char start[10]; /* what does not fit is cut, but counted */
    assert_int_equal(inspect_socket_directory(text, sizeof text), strlen(expected));
    assert_string_equal(text, expected);
    assert_int_equal(inspect_socket_directory(start, sizeof start), strlen(expected));
    assert_int_equal(strlen(start), sizeof start - 1);
    assert_memory_equal(start, expected, sizeof start - 1);
}

/* ---- the folder ---- */

TEST(inspect_socket_is_in_the_runtime_directory)
{
    assert_directory(open_scratch());
}

TEST(inspect_socket_without_a_runtime_directory_is_in_tmp)
{
    char missing[SCRATCH_PATH_SIZE];
    char expected[50];
    (void)open_scratch();
    scratch_path(missing, "not/there");
    (void)snprintf(expected, sizeof expected, "/tmp/skua-%u", (unsigned)geteuid());
    const char *const useless[] = {NULL, "", ".", missing, "/dev/null"};
    for (size_t i = 0; i < COUNT_OF(useless); i++) {
        set_runtime_directory(useless[i]);
        assert_directory(expected);
    }
}

TEST(inspect_socket_uses_a_folder_that_is_there)
{
    struct sockaddr_un address;
    assert_int_equal(mkdir(open_scratch(), 0700), 0);
    assert_int_equal(close(listen_here(&address)), 0);
}

TEST(inspect_socket_refuses_a_link_to_a_folder)
{
    char target[SCRATCH_PATH_SIZE];
    const char *folder = open_scratch();
    scratch_path(target, "target");
    assert_int_equal(mkdir(target, 0700), 0);
    assert_int_equal(symlink(target, folder), 0);
    assert_refused(EACCES);
    assert_int_equal(scratch_count(target), 0);
}

TEST(inspect_socket_refuses_a_file)
{
    const char *folder = open_scratch();
    scratch_write("skua", "");
    assert_int_equal(chmod(folder, 0700), 0);
    assert_refused(EACCES);
}

/* Each of the rights of others, alone. */
TEST(inspect_socket_refuses_a_folder_that_is_open_to_others)
{
    const char *folder = open_scratch();
    assert_int_equal(mkdir(folder, 0700), 0);
    for (mode_t right = 01; right <= 040; right <<= 1) {
        assert_int_equal(chmod(folder, 0700 | right), 0);
        assert_refused(EACCES);
    }
    assert_int_equal(scratch_count(folder), 0);
}

/* Only root can give a folder away. */
TEST(inspect_socket_refuses_a_folder_of_another_user)
{
    if (geteuid() != 0) {
        skip();
    }
    const char *folder = open_scratch();
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chown(folder, 12345, 12345), 0);
    assert_refused(EACCES);
    assert_int_equal(scratch_count(folder), 0);
}

TEST(inspect_socket_where_no_folder_can_be_made_is_refused)
{
    (void)open_scratch();
    set_runtime_directory("/proc");
    assert_refused(ENOENT);
}

/* Every length around that which the address of a socket has room for. */
TEST(inspect_socket_whose_name_is_too_long_is_refused)
{
    struct sockaddr_un address;
    char path[SCRATCH_PATH_SIZE];
    char name[40];
    const int tail = snprintf(name, sizeof name, "/skua/%ld.%u", (long)getpid(), RUNTIME);
    const size_t longest = sizeof address.sun_path - 1 - (size_t)tail;
    (void)open_scratch();
    for (size_t length = longest - 2; length <= sizeof address.sun_path + 2; length++) {
        scratch_path(path, "");
        memset(path + strlen(path), 'n', sizeof path - strlen(path));
        path[length] = '\0';
        assert_int_equal(mkdir(path, 0700), 0);
        set_runtime_directory(path);
        if (length <= longest) {
            assert_int_equal(close(listen_here(&address)), 0);
        } else {
            assert_refused(ENAMETOOLONG);
        }
    }
}

/* ---- the socket ---- */

TEST(inspect_socket_and_its_folder_are_for_the_user_alone)
{
    struct sockaddr_un address;
    char name[40];
    char path[SCRATCH_PATH_SIZE];
    const char *folder = open_scratch();
    const mode_t before = umask(0);
    const int fd = listen_here(&address);
    (void)umask(before);
    (void)snprintf(name, sizeof name, "skua/%ld.%u", (long)getpid(), RUNTIME);
    scratch_path(path, name);
    assert_string_equal(address.sun_path, path);
    assert_int_equal(scratch_mode(folder), S_IFDIR | 0700);
    assert_int_equal(scratch_mode(path), S_IFSOCK | 0600);
    assert_int_equal(connect_to(&address), 0);
    assert_int_equal(close(fd), 0);
}

/* A program with the same number has crashed. */
TEST(inspect_socket_takes_the_place_of_a_leftover)
{
    struct sockaddr_un address;
    (void)open_scratch();
    assert_int_equal(close(listen_here(&address)), 0);
    assert_int_equal(connect_to(&address), ECONNREFUSED);
    const int fd = listen_here(&address);
    assert_int_equal(connect_to(&address), 0);
    assert_int_equal(close(fd), 0);
}

TEST(inspect_socket_that_is_taken_by_something_else_is_refused)
{
    struct sockaddr_un address;
    (void)open_scratch();
    assert_int_equal(close(listen_here(&address)), 0);
    assert_int_equal(unlink(address.sun_path), 0);
    assert_int_equal(mkdir(address.sun_path, 0700), 0);
    assert_refused(EADDRINUSE);
    assert_int_equal(scratch_mode(address.sun_path), S_IFDIR | 0700);
}
