/* SPDX-License-Identifier: MIT */
#include "net/transport_io.h"
#include "runtime/runtime.h"
#include "wire.h"

/* One runtime at a time has it. */
static struct meddler *meddler;
static struct transport real;

static ssize_t count_read(struct transport *transport, int fd, void *data, size_t size)
{
    (void)transport;
    (void)atomic_fetch_add(&meddler->reads, 1);
    return transport_read(&real, fd, data, size);
}

/* The first pieces, as far as they fit. */
static int cut_pieces(struct iovec *cut, const struct iovec *pieces, int count, size_t most)
{
    int taken = 0;
    for (; taken < count && most > 0; taken++) {
        cut[taken] = pieces[taken];
        cut[taken].iov_len = cut[taken].iov_len < most ? cut[taken].iov_len : most;
        most -= cut[taken].iov_len;
    }
    return taken;
}

static ssize_t write_some_bytes(struct transport *transport, int fd, const struct iovec *pieces,
                                int count)
{
    (void)transport;
    struct iovec cut[64];
    const size_t most = meddler->write_most;
    unsigned before = meddler->most_pieces;
    (void)atomic_fetch_add(&meddler->writes, 1);
    while (before < (unsigned)count &&
           !atomic_compare_exchange_weak(&meddler->most_pieces, &before, (unsigned)count)) {
    }
    if (most == 0) {
        return transport_write(&real, fd, pieces, count);
    }
    return transport_write(&real, fd, cut, cut_pieces(cut, pieces, count, most));
}

static int accept_or_fail(struct transport *transport, int fd)
{
    (void)atomic_fetch_add(&meddler->accepts, 1);
    const int error = meddler->accept_error;
    if (error != 0 && meddler->accept_fails > 0 &&
        atomic_fetch_sub(&meddler->accept_fails, 1) == 1) {
        meddler->accept_error = 0;
    }
    return error != 0 ? -error : real.accept(transport, fd);
}

static int watch_or_fail(struct transport *transport, int fd, uint64_t key)
{
    const int error = meddler->watch_error;
    return error != 0 ? -error : real.watch(transport, fd, key);
}

struct meddler *meddler_install(void)
{
    struct transport *transport = world_sockets()->transport;
    meddler = test_alloc(sizeof *meddler);
    real = *transport;
    transport->read = count_read;
    transport->write = write_some_bytes;
    transport->accept = accept_or_fail;
    transport->watch = watch_or_fail;
    return meddler;
}
