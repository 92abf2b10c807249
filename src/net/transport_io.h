/* SPDX-License-Identifier: MIT */
/* Reading from and writing to a transport: the system's own calls, inlined where they are needed
 * (base/system_call.h), unless another transport stands in their place. */
#ifndef SKUA_NET_TRANSPORT_IO_H
#define SKUA_NET_TRANSPORT_IO_H

#include <sys/socket.h>

#include "base/system_call.h"
#include "net/transport.h"

static ALWAYS_INLINE ssize_t transport_read(struct transport *transport, int fd, void *data,
                                            size_t size)
{
    ssize_t count;
    if (UNLIKELY(transport->read != NULL)) {
        return transport->read(transport, fd, data, size);
    }
    do {
        count = system_call(SYS_recvfrom, fd, system_call_pointer(data), (long)size, 0, 0, 0);
    } while (UNLIKELY(count == -EINTR));
    return count;
}

/* One piece needs no message header, which the system would have to copy. MSG_NOSIGNAL: no
 * SIGPIPE. */
static ALWAYS_INLINE ssize_t transport_write_one(struct transport *transport, int fd,
                                                 const struct iovec *piece)
{
    ssize_t count;
    if (UNLIKELY(transport->write != NULL)) {
        return transport->write(transport, fd, piece, 1);
    }
    do {
        count = system_call(SYS_sendto, fd, system_call_pointer(piece->iov_base),
                            (long)piece->iov_len, MSG_NOSIGNAL, 0, 0);
    } while (UNLIKELY(count == -EINTR));
    return count;
}

static inline ssize_t transport_write(struct transport *transport, int fd,
                                      const struct iovec *pieces, int count)
{
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces,
                                   .msg_iovlen = (size_t)count};
    ssize_t written;
    if (count == 1) {
        return transport_write_one(transport, fd, pieces);
    }
    if (transport->write != NULL) {
        return transport->write(transport, fd, pieces, count);
    }
    do {
        written =
            system_call(SYS_sendmsg, fd, system_call_pointer(&message), MSG_NOSIGNAL, 0, 0, 0);
    } while (written == -EINTR);
    return written;
}

#endif
