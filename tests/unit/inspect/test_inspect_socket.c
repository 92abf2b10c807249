/* SPDX-License-Identifier: MIT */
/* The folder of the sockets, and the sockets in it: what is made, what is refused. */
#include "inspect/inspect_socket.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "scratch.h"

#define RUNTIME 7

static mode_t mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(lstat(path, &status), 0);
    return status.st_mode;
}

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

/* ---- where ---- */

static void inspect_socket_is_in_the_runtime_directory(void **state)
{
    (void)state;
    char expected[SCRATCH_PATH_SIZE];
    char text[SCRATCH_PATH_SIZE];
    scratch_path(expected, "skua");
    assert_int_equal(inspect_socket_directory(text, sizeof text), strlen(expected));
    assert_string_equal(text, expected);
}

static void inspect_socket_without_a_runtime_directory_is_in_tmp(void **state)
{
    (void)state;
    char missing[SCRATCH_PATH_SIZE];
    scratch_path(missing, "not/there");
    const char *const useless[] = {NULL, "", "relative/path", missing, "/dev/null"};
    char expected[50];
    char text[50];
    (void)snprintf(expected, sizeof expected, "/tmp/skua-%u", (unsigned)geteuid());
    for (size_t i = 0; i < sizeof useless / sizeof useless[0]; i++) {
        assert_int_equal(useless[i] != NULL ? setenv("XDG_RUNTIME_DIR", useless[i], 1)
                                            : unsetenv("XDG_RUNTIME_DIR"),
                         0);
        assert_int_equal(inspect_socket_directory(text, sizeof text), strlen(expected));
        assert_string_equal(text, expected);
    }
}

static void inspect_socket_directory_is_cut_and_counted(void **state)
{
    (void)state;
    char whole[SCRATCH_PATH_SIZE];
    char text[10];
    scratch_path(whole, "skua");
    assert_int_equal(inspect_socket_directory(text, sizeof text), strlen(whole));
    assert_int_equal(strlen(text), sizeof text - 1);
    assert_memory_equal(text, whole, sizeof text - 1);
}

/* ---- the folder ---- */

static void inspect_socket_makes_its_folder_for_the_user_alone(void **state)
{
    (void)state;
    struct sockaddr_un address;
    char path[SCRATCH_PATH_SIZE];
    const mode_t before = umask(0);
    const int fd = listen_here(&address);
    (void)umask(before);
    scratch_path(path, "skua");
    assert_int_equal(mode_of(path), S_IFDIR | 0700);
    assert_int_equal(close(fd), 0);
}

static void inspect_socket_uses_a_folder_that_is_there(void **state)
{
    (void)state;
    struct sockaddr_un address;
    char path[SCRATCH_PATH_SIZE];
    scratch_path(path, "skua");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(close(listen_here(&address)), 0);
}

static void inspect_socket_refuses_a_link_to_a_folder(void **state)
{
    (void)state;
    char path[SCRATCH_PATH_SIZE];
    char target[SCRATCH_PATH_SIZE];
    scratch_path(path, "skua");
    scratch_path(target, "target");
    assert_int_equal(mkdir(target, 0700), 0);
    assert_int_equal(symlink(target, path), 0);
    assert_refused(EACCES);
    assert_int_equal(scratch_count(target), 0);
}

static void inspect_socket_refuses_a_file(void **state)
{
    (void)state;
    char path[SCRATCH_PATH_SIZE];
    scratch_path(path, "skua");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
    assert_refused(EACCES);
}

/* Each of the rights of others, alone. */
static void inspect_socket_refuses_a_folder_that_is_open_to_others(void **state)
{
    (void)state;
    char path[SCRATCH_PATH_SIZE];
    scratch_path(path, "skua");
    assert_int_equal(mkdir(path, 0700), 0);
    for (mode_t right = 01; right <= 040; right <<= 1) {
        assert_int_equal(chmod(path, 0700 | right), 0);
        assert_refused(EACCES);
    }
    assert_int_equal(scratch_count(path), 0);
}

/* Only root can give a folder away. */
static void inspect_socket_refuses_a_folder_of_another_user(void **state)
{
    (void)state;
    char path[SCRATCH_PATH_SIZE];
    if (geteuid() != 0) {
        skip();
    }
    scratch_path(path, "skua");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chown(path, 12345, 12345), 0);
    assert_refused(EACCES);
    assert_int_equal(scratch_count(path), 0);
}

static void inspect_socket_where_no_folder_can_be_made_is_refused(void **state)
{
    (void)state;
    assert_int_equal(setenv("XDG_RUNTIME_DIR", "/proc", 1), 0);
    assert_refused(ENOENT);
}

/* Every length around that which the address of a socket has room for. */
static void inspect_socket_whose_name_is_too_long_is_refused(void **state)
{
    (void)state;
    struct sockaddr_un address;
    char path[SCRATCH_PATH_SIZE];
    char name[40];
    const int tail = snprintf(name, sizeof name, "/skua/%ld.%u", (long)getpid(), RUNTIME);
    const size_t longest = sizeof address.sun_path - 1 - (size_t)tail;
    for (size_t length = longest - 2; length <= sizeof address.sun_path + 2; length++) {
        scratch_path(path, "");
        memset(path + strlen(path), 'n', sizeof path - strlen(path));
        path[length] = '\0';
        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(setenv("XDG_RUNTIME_DIR", path, 1), 0);
        if (length <= longest) {
            assert_int_equal(close(listen_here(&address)), 0);
        } else {
            assert_refused(ENAMETOOLONG);
        }
    }
}

/* ---- the socket ---- */

static void inspect_socket_is_for_the_user_alone_and_listens(void **state)
{
    (void)state;
    struct sockaddr_un address;
    char name[40];
    char path[SCRATCH_PATH_SIZE];
    const mode_t before = umask(0);
    const int fd = listen_here(&address);
    (void)umask(before);
    (void)snprintf(name, sizeof name, "skua/%ld.%u", (long)getpid(), RUNTIME);
    scratch_path(path, name);
    assert_string_equal(address.sun_path, path);
    assert_int_equal(mode_of(path), S_IFSOCK | 0600);
    assert_int_equal(connect_to(&address), 0);
    assert_int_equal(close(fd), 0);
}

/* A program with the same number has crashed. */
static void inspect_socket_takes_the_place_of_a_leftover(void **state)
{
    (void)state;
    struct sockaddr_un address;
    assert_int_equal(close(listen_here(&address)), 0);
    assert_int_equal(connect_to(&address), ECONNREFUSED);
    const int fd = listen_here(&address);
    assert_int_equal(connect_to(&address), 0);
    assert_int_equal(close(fd), 0);
}

static void inspect_socket_that_is_taken_by_something_else_is_refused(void **state)
{
    (void)state;
    struct sockaddr_un address;
    assert_int_equal(close(listen_here(&address)), 0);
    assert_int_equal(unlink(address.sun_path), 0);
    assert_int_equal(mkdir(address.sun_path, 0700), 0);
    assert_refused(EADDRINUSE);
    assert_int_equal(mode_of(address.sun_path), S_IFDIR | 0700);
}

#define SCRATCH_TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(inspect_socket_is_in_the_runtime_directory),
        SCRATCH_TEST(inspect_socket_without_a_runtime_directory_is_in_tmp),
        SCRATCH_TEST(inspect_socket_directory_is_cut_and_counted),
        SCRATCH_TEST(inspect_socket_makes_its_folder_for_the_user_alone),
        SCRATCH_TEST(inspect_socket_uses_a_folder_that_is_there),
        SCRATCH_TEST(inspect_socket_refuses_a_link_to_a_folder),
        SCRATCH_TEST(inspect_socket_refuses_a_file),
        SCRATCH_TEST(inspect_socket_refuses_a_folder_that_is_open_to_others),
        SCRATCH_TEST(inspect_socket_refuses_a_folder_of_another_user),
        SCRATCH_TEST(inspect_socket_where_no_folder_can_be_made_is_refused),
        SCRATCH_TEST(inspect_socket_whose_name_is_too_long_is_refused),
        SCRATCH_TEST(inspect_socket_is_for_the_user_alone_and_listens),
        SCRATCH_TEST(inspect_socket_takes_the_place_of_a_leftover),
        SCRATCH_TEST(inspect_socket_that_is_taken_by_something_else_is_refused),
    };
    return cmocka_run_group_tests_name("inspect_socket", tests, NULL, NULL);
}
