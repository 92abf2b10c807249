/* SPDX-License-Identifier: MIT */
/* The inspector's socket, in a folder that belongs to the user alone. */
#ifndef SKUA_INSPECT_INSPECT_SOCKET_H
#define SKUA_INSPECT_INSPECT_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "base/compiler.h"

/* As skua_inspect_directory. */
int inspect_socket_directory(char *text, size_t size);

/* Opens a listening socket for a runtime and stores its address. Returns the descriptor, or -1 with
 * the reason in errno. */
NODISCARD int inspect_socket_listen(uint32_t runtime_number, struct sockaddr_un *address);

#endif
