/* SPDX-License-Identifier: MIT */
/* Looking at sockets: snapshots, lists, and what a trace says of them. */
#include "net/sockets.h"
#include "sched/note.h"

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
    if (fd >= 0 && sockets->transport->address(sockets->transport, fd, of_peer, &address) == 0) {
        address_format(&address, text);
    }
}

/* What is read between the two looks at the word belongs to one use of the slot, but for the moment
 * in which that ends: all of it are statistics. */
bool sockets_peek(struct sockets *sockets, uint32_t slot, skua_socket_snapshot *snapshot)
{
    if (sockets_end_before(sockets, slot)) {
        return false;
    }
    struct socket *socket = socket_at(sockets, slot);
    const uint64_t word = load_acquire(&socket->word);     /* MO-socket */
    const skua_pid owner = {load_acquire(&socket->owner)}; /* MO-give */
    const bool lingers = ((uint32_t)word & SOCKET_LINGERS) != 0;
    if (skua_pid_is_none(owner) && !lingers) {
        return false;
    }
    const uint64_t active = load_acquire(&socket->active_at); /* before the word, as the next */
    const uint64_t now = time_now(sockets->sched->time);
    *snapshot = (skua_socket_snapshot){
        .socket = {(uint64_t)slot << 32 | socket_word_generation(word)},
        .owner = owner,
        .state = shown_state((uint32_t)word),
        .bytes_in = load_acquire(&socket->bytes_in),
        .bytes_out = load_acquire(&socket->bytes_out),
        .queued = load_acquire(&socket->queued),
        .idle_ns = now > active ? now - active : 0,
    };
    return socket_word_generation(load_acquire(&socket->word)) == socket_word_generation(word);
}

bool sockets_add_addresses(struct sockets *sockets, skua_socket_snapshot *snapshot)
{
    struct socket *socket = socket_at(sockets, socket_slot(snapshot->socket.bits));
    const int fd = socket_fd(socket);
    write_address(sockets, fd, false, snapshot->local);
    write_address(sockets, fd, true, snapshot->peer);
    return socket_word_generation(load_acquire(&socket->word)) == /* MO-socket */
           (uint32_t)snapshot->socket.bits;
}

bool sockets_snapshot(struct sockets *sockets, uint32_t slot, skua_socket_snapshot *snapshot)
{
    return sockets_peek(sockets, slot, snapshot) && sockets_add_addresses(sockets, snapshot);
}

uint32_t sockets_list_slots(struct socket_hooks *hooks, struct process *process, uint32_t *slots,
                            uint32_t capacity, uint32_t most)
{
    struct sockets *sockets = sockets_of_hooks(hooks);
    uint32_t count = 0;
    if ((process_progress(process) & PROCESS_SOCKETS) == 0) {
        return 0;
    }
    uint32_t slot = *sockets_list_of(sockets, process, false);
    while (slot != OBJECT_NONE && count < most) {
        if (count < capacity) {
            slots[count] = slot;
        }
        count++;
        slot = socket_at(sockets, slot)->next;
    }
    return count;
}

/* The signal, unless it is on its way to the owner, and the writes that are queued. */
void sockets_show_nodes(struct socket_hooks *hooks, void (*put)(void *arg, uint32_t node),
                        void *arg)
{
    struct sockets *sockets = sockets_of_hooks(hooks);
    for (uint32_t slot = 1; sockets_has_slot(sockets, slot); slot++) {
        struct socket *socket = socket_at(sockets, slot);
        if (socket->kind == SOCKET_FREE) {
            continue;
        }
        if ((load_acquire(&socket->word) & SOCKET_SIGNALLED) == 0) { /* MO-socket */
            put(arg, load_relaxed(&socket->signal));                 /* nothing moves */
        }
        for (uint32_t index = socket->first; index != OBJECT_NONE;) {
            put(arg, index);
            index = event_at(&sockets->sched->events, index)->next;
        }
    }
}

void socket_trace(struct sockets *sockets, struct worker *worker, struct socket *socket,
                  enum trace_kind kind, size_t count, uint64_t begun)
{
    const uint32_t duration = trace_duration(monotonic_ns() - begun);
    /* Its signal knows what it is called, for as long as it is open. */
    const uint32_t signal = load_relaxed(&socket->signal); /* its own */
    const uint64_t key = event_at(&sockets->sched->events, signal)->as.event.tag;
    const skua_pid owner = {load_relaxed(&socket->owner)}; /* the caller's, or nobody's */
    note_record_in(tracer_active(&sockets->sched->tracer), worker, kind, owner, key, duration,
                   count < UINT32_MAX ? (uint32_t)count : UINT32_MAX);
}
