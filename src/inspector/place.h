/* SPDX-License-Identifier: MIT */
/* Where the sockets of inspectors are: a folder that belongs to the user alone. */
#ifndef SKUA_INSPECTOR_PLACE_H
#define SKUA_INSPECTOR_PLACE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "base/compiler.h"

/* As skua_inspect_directory. */
int place_directory(char *text, size_t size);

/* Opens the socket of a runtime, which then listens, and writes down its address. Returns its
 * descriptor, or -1 with the reason in errno. */
NODISCARD int place_listen(uint32_t runtime_number, struct sockaddr_un *address);

#endif
