/* SPDX-License-Identifier: MIT */
/* Looking at sockets. */
#include "net/sockets.h"

struct sockets_total sockets_count(struct socket_hooks *hooks)
{
    if (hooks == NULL) {
        return (struct sockets_total){0};
    }
    struct sockets *sockets = sockets_of_hooks(hooks);
    return (struct sockets_total){
        .open = load_relaxed(&sockets->count), /* statistics, all three */
        .lingering = load_relaxed(&sockets->lingering),
        .turned_away = load_relaxed(&sockets->turned_away),
    };
}

static enum skua_socket_state shown_state(uint32_t flags)
{
    return (flags & SOCKET_LINGERS) != 0      ? SKUA_SOCKET_CLOSING
           : (flags & SOCKET_LISTENS) != 0    ? SKUA_SOCKET_LISTENING
           : (flags & SOCKET_CONNECTS) != 0   ? SKUA_SOCKET_CONNECTING
           : (flags & SOCKET_SENDS_NONE) != 0 ? SKUA_SOCKET_SHUT_DOWN
                                              : SKUA_SOCKET_OPEN;
}

static void write_address(struct sockets *sockets, int fd, bool of_peer,
                          char text[SKUA_ADDRESS_SIZE])
{
    struct address address;
    text[0] = '\0';
    if (sockets->transport->address(sockets->transport, fd, of_peer, &address) == 0) {
        address_format(&address, text);
    }
}

bool sockets_snapshot(struct sockets *sockets, uint32_t slot, skua_socket_snapshot *snapshot)
{
    struct socket *socket = socket_at(sockets, slot);
    const uint64_t word = load_acquire(&socket->word);
    const uint64_t now = time_now(sockets->sched->time);
    const uint64_t active = load_relaxed(&socket->active_at); /* statistics, here and below */
    *snapshot = (skua_socket_snapshot){
        .socket = {(uint64_t)slot << 32 | socket_word_generation(word)},
        .owner = {load_acquire(&socket->owner)},
        .state = shown_state((uint32_t)word),
        .bytes_in = load_relaxed(&socket->bytes_in),
        .bytes_out = load_relaxed(&socket->bytes_out),
        .queued = load_relaxed(&socket->queued),
        .idle_ns = now > active ? now - active : 0,
    };
    write_address(sockets, socket_fd(socket), false, snapshot->local);
    write_address(sockets, socket_fd(socket), true, snapshot->peer);
    return (snapshot->owner.bits != 0 || snapshot->state == SKUA_SOCKET_CLOSING) &&
           socket_word_generation(load_acquire(&socket->word)) == socket_word_generation(word);
}
