/* SPDX-License-Identifier: MIT */
#include "inspect/inspect_socket.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 8

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The variable may be left over from an ended session whose folder is gone. */
int inspect_socket_directory(char *text, size_t size)
{
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    if (runtime != NULL && runtime[0] == '/' && is_folder(runtime)) {
        return snprintf(text, size, "%s/skua", runtime);
    }
    return snprintf(text, size, "/tmp/skua-%u", (unsigned)geteuid());
}

/* Makes the folder if it does not exist. In /tmp anybody could have made it, so it must be a
 * folder, not a link to one, belong to this user and be closed to all others. */
static int make_directory(const char *path)
{
    struct stat status;
    if (mkdir(path, S_IRWXU) != 0 && errno != EEXIST) {
        return -1;
    }
    if (lstat(path, &status) != 0) {
        return -1;
    }
    if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
        (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        errno = EACCES;
        return -1;
    }
    return 0;
}

static int name_socket(uint32_t runtime_number, struct sockaddr_un *address)
{
    char directory[sizeof address->sun_path];
    const int length = inspect_socket_directory(directory, sizeof directory);
    if (length < 0 || (size_t)length >= sizeof directory) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (make_directory(directory) != 0) {
        return -1;
    }
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    /* In two steps, so that the compiler sees that truncation is handled. */
    char name[32];
    (void)snprintf(name, sizeof name, "/%ld.%u", (long)getpid(), runtime_number);
    const int whole =
        snprintf(address->sun_path, sizeof address->sun_path, "%s%s", directory, name);
    if (whole < 0 || (size_t)whole >= sizeof address->sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return 0;
}

/* Between bind and chmod the folder's mode keeps others out. */
static int bind_and_listen(int fd, const struct sockaddr_un *address)
{
    (void)unlink(address->sun_path); /* left by a program with the same number that crashed */
    if (bind(fd, (const struct sockaddr *)address, sizeof *address) != 0) {
        return -1;
    }
    if (chmod(address->sun_path, S_IRUSR | S_IWUSR) == 0 && listen(fd, BACKLOG) == 0) {
        return 0;
    }
    const int error = errno;
    (void)unlink(address->sun_path);
    errno = error;
    return -1;
}

int inspect_socket_listen(uint32_t runtime_number, struct sockaddr_un *address)
{
    if (name_socket(runtime_number, address) != 0) {
        return -1;
    }
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    if (bind_and_listen(fd, address) != 0) {
        const int error = errno;
        (void)close(fd);
        errno = error;
        return -1;
    }
    return fd;
}
