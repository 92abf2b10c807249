/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "base/os_error.h"
#include "net/sockets.h"

int sockets_error(int system_error)
{
    int error = SKUA_E_NETWORK;
    switch (system_error) {
    case ECONNRESET:
    case EPIPE:
    case ECONNABORTED:
    case ENOTCONN:
    case ETIMEDOUT: /* of keepalive, or of an unanswered connect */
        error = SKUA_E_RESET;
        break;
    case ECONNREFUSED:
    case ENOENT: /* of a Unix address */
        error = SKUA_E_REFUSED;
        break;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
        error = SKUA_E_UNREACHABLE;
        break;
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
    case EINVAL:
        error = SKUA_E_ADDRESS;
        break;
    case EADDRINUSE:
        error = SKUA_E_ADDRESS_IN_USE;
        break;
    case EACCES:
    case EPERM:
        error = SKUA_E_PERMISSION;
        break;
    case EMFILE:
    case ENFILE:
        error = SKUA_E_DESCRIPTORS;
        break;
    case ENOMEM:
    case ENOBUFS:
    case ENOSPC: /* of an epoll: fs.epoll.max_user_watches */
        error = SKUA_E_NO_MEMORY;
        break;
    default:
        break;
    }
    return os_error_keep(system_error, error);
}
