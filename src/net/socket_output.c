/* SPDX-License-Identifier: MIT */
/* Writing.
 *
 * A write is an event node from the moment that it is yielded: its payload, in `tag` the call that
 * completes when the bytes have left (0: that has ended), in `from` how many have. So once a write
 * is accepted, nothing about it can fail for lack of memory. Writes of one step are queued one by
 * one, and leave when the last of them is. */
#include <errno.h>

#include "net/sockets.h"
#include "net/transport_io.h"
#include "process/payload.h"
#include "sched/deliver.h"
#include "sched/note.h"
#include "sched/worker.h"

/* What one turn writes at most to one socket, and in how many pieces at once. */
#define TURN_BYTES  ((size_t)256 * 1024)
#define TURN_ROUNDS 16
#define PIECES_MAX  64

static struct event_node *piece_at(struct sockets *sockets, uint32_t index)
{
    return event_at(&sockets->sched->events, index);
}

static size_t piece_length(const struct event_node *piece)
{
    return skua_payload_size(&piece->as.event.payload) - piece->as.event.from.bits;
}

/* `worker` is the caller's or null. */
static void release_piece(struct sockets *sockets, struct worker *worker, uint32_t index)
{
    skua_payload *payload = &piece_at(sockets, index)->as.event.payload;
    if (LIKELY(worker != NULL)) {
        payload_drop_for_reuse(&sockets->sched->allocator, &sockets->scratch[worker->index].spare,
                               payload);
    } else {
        skua_payload_drop(payload);
    }
    deliver_release_node(sockets->sched, worker, index);
}

static void count_queued(struct socket *socket, uint64_t queued)
{
    store_relaxed(&socket->queued, (uint32_t)queued); /* for inspectors; one writer */
}

static uint64_t queued_in(struct socket *socket)
{
    return load_relaxed(&socket->queued); /* one writer */
}

static void append(struct sockets *sockets, struct socket *socket, uint32_t index)
{
    piece_at(sockets, index)->next = OBJECT_NONE;
    if (socket->first == OBJECT_NONE) {
        socket->first = index;
    } else {
        piece_at(sockets, socket->last)->next = index;
    }
    socket->last = index;
}

/* ---- writing ---- */

/* Points at what is queued, as far as it fits. Returns how many pieces that is. */
static int gather_pieces(struct sockets *sockets, const struct socket *socket,
                         struct iovec pieces[PIECES_MAX])
{
    int count = 0;
    size_t total = 0;
    for (uint32_t index = socket->first;
         index != OBJECT_NONE && count < PIECES_MAX && total < TURN_BYTES; count++) {
        struct event_node *piece = piece_at(sockets, index);
        const size_t left = piece_length(piece);
        unsigned char *data =
            (unsigned char *)(uintptr_t)skua_payload_data(&piece->as.event.payload);
        pieces[count].iov_base = left > 0 ? data + piece->as.event.from.bits : NULL;
        pieces[count].iov_len = left;
        total += left;
        index = piece->next;
    }
    return count;
}

/* Writes that are done with, in the order in which they were made. */
struct done_writes {
    uint32_t first;
    uint32_t last;
};

/* Takes `count` bytes that have left off the queue, and their pieces once all has left. */
static void advance(struct sockets *sockets, struct socket *socket, size_t count,
                    struct done_writes *done)
{
    while (socket->first != OBJECT_NONE) {
        struct event_node *piece = piece_at(sockets, socket->first);
        const size_t left = piece_length(piece);
        if (left > count) {
            piece->as.event.from.bits += count;
            return;
        }
        count -= left;
        if (done->first == OBJECT_NONE) {
            done->first = socket->first;
        }
        done->last = socket->first;
        socket->first = piece->next;
        if (count == 0 &&
            (socket->first == OBJECT_NONE || piece_length(piece_at(sockets, socket->first)) > 0)) {
            return;
        }
    }
}

/* `worker` is the caller's or null. */
static ALWAYS_INLINE void count_sent(struct sockets *sockets, struct worker *worker,
                                     struct socket *socket, size_t count, uint64_t begun)
{
    count_queued(socket, queued_in(socket) - count);
    store_relaxed(&socket->bytes_out, load_relaxed(&socket->bytes_out) + count); /* statistic */
    NOTE_AMOUNT(sockets->sched, worker, sent_bytes, count);
    socket_note_bytes(sockets, worker, socket, TRACE_WRITE, count, begun);
    if (LIKELY(worker != NULL)) {
        socket_note_active(socket, worker);
    }
}

/* `worker` is the caller's or null. Returns 0 when all has left, -EAGAIN, -EINPROGRESS when the
 * turn is over, or why it failed. */
static int write_queued(struct sockets *sockets, struct worker *worker, struct socket *socket,
                        uint64_t now, struct done_writes *done)
{
    struct transport *transport = sockets->transport;
    struct iovec pieces[PIECES_MAX];
    size_t written = 0;
    *done = (struct done_writes){OBJECT_NONE, OBJECT_NONE};
    for (int round = 0; round < TURN_ROUNDS && written < TURN_BYTES; round++) {
        const int piece_count = gather_pieces(sockets, socket, pieces);
        const uint64_t begun = socket_trace_begin(sockets);
        const ssize_t count = transport_write(transport, socket_fd(socket), pieces, piece_count);
        if (count < 0) {
            return (int)count;
        }
        written += (size_t)count;
        advance(sockets, socket, (size_t)count, done);
        count_sent(sockets, worker, socket, (size_t)count, begun);
        socket->wrote_at = now;
        if (socket->first == OBJECT_NONE) {
            return 0;
        }
    }
    return -EINPROGRESS;
}

/* Completes the writes from one piece to another, in order. */
static void end_calls(struct sockets *sockets, struct worker *worker, struct process *process,
                      uint32_t index, uint32_t last, int error)
{
    const skua_payload nothing = skua_payload_empty(0);
    uint32_t ended = OBJECT_NONE;
    uint32_t *link = &ended; /* where the next one goes */
    while (index != OBJECT_NONE) {
        struct event_node *piece = piece_at(sockets, index);
        const uint64_t call = piece->as.event.tag;
        piece->as.event.tag = 0;
        if (call != 0 && sockets_claim(worker, call)) {
            link = sockets_complete_at(worker, link, call, error, &nothing);
        }
        index = index != last ? piece->next : OBJECT_NONE;
    }
    if (ended != OBJECT_NONE) {
        sockets_queue(worker, process, ended);
    }
}

static void release_pieces(struct sockets *sockets, struct worker *worker, uint32_t index,
                           uint32_t last)
{
    while (index != OBJECT_NONE) {
        const uint32_t next = index != last ? piece_at(sockets, index)->next : OBJECT_NONE;
        release_piece(sockets, worker, index);
        index = next;
    }
}

void socket_end_writes(struct sockets *sockets, struct worker *worker, struct process *process,
                       struct socket *socket, int error)
{
    end_calls(sockets, worker, process, socket->first, socket->last, error);
}

void socket_drop_output(struct sockets *sockets, struct worker *worker, struct process *process,
                        struct socket *socket, int error)
{
    uint32_t list = OBJECT_NONE;
    socket_end_writes(sockets, worker, process, socket, error);
    socket_put_output_aside(sockets, socket, &list);
    socket_release_output(sockets, worker, list);
}

void socket_shut_if_asked(struct sockets *sockets, struct socket *socket)
{
    if ((socket->flags & (SOCKET_SHUTS | SOCKET_SHUT)) == SOCKET_SHUTS && socket->unstarted == 0 &&
        socket->first == OBJECT_NONE && socket->failure == 0) {
        socket->flags |= SOCKET_SHUT;
        (void)fetch_or_seq_cst(&socket->word, SOCKET_SENDS_NONE); /* for inspectors */
        (void)sockets->transport->shutdown(sockets->transport, socket_fd(socket));
    }
}

/* Whether the owner waits until it can write; otherwise it can. */
static bool waits(struct socket *socket)
{
    if (socket_word_wait_owner(&socket->word, SOCKET_WAITS_TO_WRITE, SOCKET_ENDS_WRITE)) {
        return true;
    }
    socket_absorb(socket,
                  socket_word_clear_owner(&socket->word, SOCKET_ENDS_WRITE) & SOCKET_ENDS_WRITE);
    return false;
}

static void give_up(struct sockets *sockets, struct worker *worker, struct process *process,
                    struct socket *socket, uint32_t slot, int error)
{
    if (error == SKUA_E_RESET) {
        sockets_break(sockets, worker, process, socket, slot);
    } else {
        sockets_fail(sockets, worker, process, socket, error);
    }
}

void socket_go_on_writing(struct sockets *sockets, struct worker *worker, struct process *process,
                          struct socket *socket, uint32_t slot)
{
    struct done_writes done = {OBJECT_NONE, OBJECT_NONE};
    if (socket->first != OBJECT_NONE) {
        int outcome = write_queued(sockets, worker, socket, sockets_now(worker), &done);
        end_calls(sockets, worker, process, done.first, done.last, 0); /* before what fails now */
        release_pieces(sockets, worker, done.first, done.last);
        if (outcome == -EAGAIN) {
            sockets_set_alarm(sockets, worker, socket, socket_progress_end(socket));
            outcome = waits(socket) ? -EAGAIN : -EINPROGRESS;
        }
        if (outcome == -EINPROGRESS) {
            sockets_signal_self(sockets, worker, socket, slot, SOCKET_WAITS_TO_WRITE,
                                SOCKET_WRITABLE);
        } else if (outcome != -EAGAIN && outcome != 0) {
            give_up(sockets, worker, process, socket, slot, sockets_error(-outcome));
        }
    }
    socket_shut_if_asked(sockets, socket);
}

/* Puts the writes from one piece to another in front of a list. */
static void put_aside(struct sockets *sockets, uint32_t first, uint32_t last, uint32_t *list)
{
    if (first != OBJECT_NONE) {
        piece_at(sockets, last)->next = *list;
        *list = first;
    }
}

void socket_put_output_aside(struct sockets *sockets, struct socket *socket, uint32_t *list)
{
    put_aside(sockets, socket->first, socket->last, list);
    socket->first = OBJECT_NONE;
    socket->last = OBJECT_NONE;
    count_queued(socket, 0);
}

void socket_release_output(struct sockets *sockets, struct worker *worker, uint32_t list)
{
    release_pieces(sockets, worker, list, OBJECT_NONE);
}

bool socket_write_lingering_locked(struct sockets *sockets, struct worker *worker,
                                   struct socket *socket, uint32_t *list)
{
    struct done_writes done;
    for (;;) {
        const int outcome =
            write_queued(sockets, worker, socket, time_now(sockets->sched->time), &done);
        put_aside(sockets, done.first, done.last, list);
        if (outcome == -EAGAIN) {
            return false;
        }
        if (outcome != -EINPROGRESS) { /* nobody else's turn: the peer takes it as fast as it can */
            socket->failure = (int16_t)(outcome < 0 ? SKUA_E_RESET : 0);
            return true;
        }
    }
}

/* ---- the yield ---- */

/* Whether the only write of a step has left at once and whole, as nearly always. */
static bool leaves_alone(struct sockets *sockets, struct worker *worker, struct socket *socket,
                         uint32_t index)
{
    struct transport *transport = sockets->transport;
    struct event_node *piece = piece_at(sockets, index);
    const struct iovec bytes = {
        .iov_base = (void *)(uintptr_t)skua_payload_data(&piece->as.event.payload),
        .iov_len = piece_length(piece),
    };
    if (socket->first != OBJECT_NONE || socket->unstarted > 1 ||
        (socket->flags & (SOCKET_SHUTS | SOCKET_CLOSES)) != 0) {
        return false;
    }
    const uint64_t begun = socket_trace_begin(sockets);
    const ssize_t count = transport_write_one(transport, socket_fd(socket), &bytes);
    if (count < 0) {
        return false; /* the second try says why */
    }
    count_sent(sockets, worker, socket, (size_t)count, begun);
    piece->as.event.from.bits = (uint64_t)count;
    if ((size_t)count < bytes.iov_len) {
        return false;
    }
    socket->unstarted = 0;
    release_piece(sockets, worker, index);
    return true;
}

/* The write is queued, and the last one of its step sends all off. */
static void queue(struct sockets *sockets, struct worker *worker, struct process *process,
                  struct socket *socket, uint32_t slot, uint32_t index)
{
    if (socket->first == OBJECT_NONE) {
        socket->wrote_at = sockets_now(worker);
    }
    append(sockets, socket, index);
    socket->unstarted--;
    if (socket->unstarted == 0) {
        socket_go_on_writing(sockets, worker, process, socket, slot);
        if ((socket->flags & SOCKET_CLOSES) != 0) {
            sockets_close(sockets, worker, process, slot, false);
        }
    }
}

/* A write that never gets into the queue. */
static void drop_unqueued(struct sockets *sockets, struct worker *worker, struct socket *socket,
                          uint32_t index)
{
    socket->unstarted--;
    count_queued(socket, queued_in(socket) - piece_length(piece_at(sockets, index)));
    release_piece(sockets, worker, index);
}

/* The socket has failed, perhaps by a read of this step. Those before it in the step are queued,
 * and would wait for ever for the last one to send them off. */
static void refuse(struct sockets *sockets, struct worker *worker, struct socket *socket,
                   uint32_t slot, uint32_t index, int failure)
{
    struct process *process = worker->context->process;
    drop_unqueued(sockets, worker, socket, index);
    if (socket->unstarted > 0) {
        return;
    }
    socket_drop_output(sockets, worker, process, socket, failure);
    if ((socket->flags & SOCKET_CLOSES) != 0) {
        sockets_close(sockets, worker, process, slot, false);
    }
}

int sockets_start_write(void *arg, struct worker *worker, const struct yield *yield,
                        skua_completion completion, skua_payload *result)
{
    (void)result;
    struct sockets *sockets = arg;
    const skua_context *context = worker->context;
    const uint32_t slot = socket_slot(yield->as.write.socket.bits);
    struct socket *socket = socket_at(sockets, slot); /* it cannot have gone meanwhile */
    piece_at(sockets, yield->as.write.node)->as.event.tag = completion.call;
    const int failure = socket->failure != 0 ? socket->failure : socket_end_of_input(socket);
    if (failure != 0) {
        refuse(sockets, worker, socket, slot, yield->as.write.node, failure);
        return failure;
    }
    /* One that may have ended meanwhile is completed by the guard of its call. */
    if (yield->timeout == SKUA_FOREVER &&
        leaves_alone(sockets, worker, socket, yield->as.write.node)) {
        return 0;
    }
    queue(sockets, worker, context->process, socket, slot, yield->as.write.node);
    return SKUA_PENDING;
}

/* The step has failed, so its process ends. */
void sockets_discard_write(struct worker *worker, const struct yield *yield)
{
    struct sockets *sockets = sockets_of_hooks(worker->sched->sockets);
    struct socket *socket = socket_at(sockets, socket_slot(yield->as.write.socket.bits));
    drop_unqueued(sockets, worker, socket, yield->as.write.node);
}
