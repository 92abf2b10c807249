/* SPDX-License-Identifier: MIT */
/* Descriptors of the library's own. A program may close one by mistake (a descriptor that it closes
 * twice, closefrom), and the number may then mean a file of the program. So the library keeps what
 * tells files apart, looks at it before it uses a number for what would harm another file, and
 * never closes a number that is not its own any more.
 *
 * For pipes and sockets, whose inode numbers are unique; those of epoll and eventfd are not. */
#ifndef SKUA_BASE_OWN_FD_H
#define SKUA_BASE_OWN_FD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"

struct own_fd {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

#define OWN_FD_NONE ((struct own_fd){.fd = -1})

/* Takes a descriptor that was just opened; OWN_FD_NONE if it is -1. */
struct own_fd own_fd_of(int fd);

/* Whether the number still means the file; false if there is none. */
NODISCARD bool own_fd_is_ours(const struct own_fd *own);

/* Closes it, if it is still ours; there is none afterwards. */
void own_fd_close(struct own_fd *own);

/* Both ends of a new pipe, neither of which blocks. Returns 0 or, with the reason in errno, -1. */
NODISCARD int own_fd_open_pipe(struct own_fd *read_end, struct own_fd *write_end);

/* Writes a byte to the write end of a pipe, if it is still ours. If the read end is not, nothing
 * happens, not even a SIGPIPE. */
void own_fd_write(const struct own_fd *write_end);

#endif
