/* SPDX-License-Identifier: MIT */
/* Reading.
 *
 * Bytes go from the system into a block of the worker's. A completion then takes what it asked for:
 * a copy if that is little, the block itself if it is much; what is left over stays with the
 * socket. If the call has ended meanwhile, or there is no memory for the copy, all of it stays. So
 * no byte is lost, and an idle connection has no buffer. */
#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "net/sockets.h"
#include "net/transport_io.h"
#include "process/payload.h"
#include "sched/deliver.h"
#include "sched/note.h"
#include "sched/worker.h"

/* What one turn reads at most of one socket. */
#define TURN_BYTES  ((size_t)256 * 1024)
#define TURN_ROUNDS 16

/* A block that is filled so far becomes the payload itself. */
#define HAND_OVER_MIN (SKUA_READ_MAX / 4)

/* A socket that keeps bytes has room for so many at least, and reads so many of a line at once. */
#define INPUT_MIN  ((size_t)1024)
#define INPUT_READ ((size_t)4096)

/* ---- blocks ---- */

static struct block *make_block(const struct allocator *allocator, size_t capacity)
{
    struct block *block =
        allocator_alloc(allocator, sizeof *block + capacity, alignof(struct block));
    if (block != NULL) {
        block->allocator = allocator;
        block->capacity = capacity;
        block->start = 0;
        block->end = 0;
        block->scanned = 0;
    }
    return block;
}

static void drop_block(void *data, size_t size)
{
    (void)size;
    block_free((struct block *)(void *)((unsigned char *)data - offsetof(struct block, data)));
}

static size_t length_of(const struct block *block)
{
    return block->end - block->start;
}

static void empty(struct block *block)
{
    block->start = block->end = block->scanned = 0;
}

/* The block that this worker reads into; null without memory. */
static struct block *scratch_of(struct sockets *sockets, const struct worker *worker)
{
    struct socket_scratch *scratch = &sockets->scratch[worker->index];
    if (UNLIKELY(scratch->block == NULL)) {
        scratch->block = make_block(&sockets->sched->allocator, SKUA_READ_MAX);
    }
    return scratch->block;
}

/* A larger or tidier block for the socket's input, with room for `more`; false without memory. */
static bool make_room(struct sockets *sockets, struct socket *socket, size_t more)
{
    struct block *old = socket->input;
    const size_t length = old != NULL ? length_of(old) : 0;
    size_t capacity = INPUT_MIN;
    if (old != NULL && old->capacity - old->end >= more) {
        return true;
    }
    while (capacity < length + more) {
        capacity *= 2;
    }
    struct block *block = make_block(&sockets->sched->allocator, capacity);
    if (block == NULL) {
        return false;
    }
    if (old != NULL) {
        memcpy(block->data, old->data + old->start, length);
        block->end = length;
        block->scanned = old->scanned > old->start ? old->scanned - old->start : 0;
        block_free(old);
    }
    socket->input = block;
    return true;
}

/* Keeps what is left in the worker's block for a socket that has kept nothing. There is always a
 * way: the block itself. */
static NOINLINE void keep_rest(struct sockets *sockets, const struct worker *worker,
                               struct socket *socket)
{
    struct block **scratch = &sockets->scratch[worker->index].block;
    const size_t length = length_of(*scratch);
    if (length >= HAND_OVER_MIN || !make_room(sockets, socket, length)) {
        socket->input = *scratch;
        *scratch = NULL;
        return;
    }
    memcpy(socket->input->data, (*scratch)->data + (*scratch)->start, length);
    socket->input->end = length;
    empty(*scratch);
}

/* The same if there may be nothing left. */
static void keep(struct sockets *sockets, const struct worker *worker, struct socket *socket)
{
    struct block *scratch = sockets->scratch[worker->index].block;
    if (UNLIKELY(length_of(scratch) > 0)) {
        keep_rest(sockets, worker, socket);
    } else {
        empty(scratch);
    }
}

/* ---- from the system ---- */

/* Whether it is worth asking the system. */
static ALWAYS_INLINE bool may_be_ready(struct socket *socket)
{
    if ((socket->ready & SOCKET_ENDS_READ) == 0) {
        const uint32_t flags = (uint32_t)load_relaxed(&socket->word); /* hint */
        if ((flags & SOCKET_ENDS_READ) == 0) {
            return false;
        }
        socket_absorb(socket,
                      socket_word_clear_owner(&socket->word, SOCKET_ENDS_READ) & SOCKET_ENDS_READ);
    }
    return true;
}

/* Reads up to `size` bytes to where a block ends. Returns how many; 0: the end of input; -EAGAIN;
 * or another negative errno. */
static ALWAYS_INLINE ssize_t fetch_into(struct sockets *sockets, struct worker *worker,
                                        struct socket *socket, struct block *block, size_t size)
{
    struct transport *transport = sockets->transport;
    if (!may_be_ready(socket)) {
        return -EAGAIN;
    }
    const uint64_t begun = socket_trace_begin(sockets);
    const ssize_t count =
        transport_read(transport, socket_fd(socket), block->data + block->end, size);
    if (count > 0) {
        block->end += (size_t)count;
        store_relaxed(&socket->bytes_in, /* for inspectors */
                      load_relaxed(&socket->bytes_in) + (uint64_t)count);
        NOTE_AMOUNT(sockets->sched, worker, received_bytes, (uint64_t)count);
        socket_note_bytes(sockets, worker, socket, TRACE_READ, (size_t)count, begun);
        socket_note_active(socket, worker);
        if ((size_t)count < size && (socket->flags & SOCKET_IS_LOCAL) == 0) {
            socket->ready &= (uint8_t)~SOCKET_READABLE; /* it is empty now, but see URGENT */
        }
    } else if (count == -EAGAIN) {
        socket->ready &= (uint8_t)~SOCKET_ENDS_READ;
    } else if (count == 0 && (socket->flags & SOCKET_BROKEN) != 0) {
        return -ECONNRESET; /* a write was told before */
    } else if (count == 0) {
        socket->flags |= SOCKET_ENDED;
    }
    return count;
}

/* ---- what a read wants ---- */

static enum read_mode mode_of(const struct socket *socket)
{
    return socket->mode % 4;
}

/* Where the delimiter ends, from `start` on; 0 if it is not there. */
static size_t find_delimiter(const struct socket *socket, struct block *block)
{
    const size_t length = socket->mode / 4;
    unsigned char delimiter[4];
    memcpy(delimiter, &socket->delimiter, sizeof delimiter);
    size_t at = block->scanned > block->start ? block->scanned : block->start;
    while (block->end - at >= length) {
        const unsigned char *found =
            memchr(block->data + at, delimiter[0], block->end - at - (length - 1));
        if (found == NULL) {
            break;
        }
        at = (size_t)(found - block->data);
        if (memcmp(found, delimiter, length) == 0) {
            return at + length - block->start;
        }
        at++;
    }
    block->scanned = block->end >= length - 1 ? block->end - (length - 1) : 0;
    return 0;
}

/* How many of the bytes in a block the read gets: 0 if it has to wait for more. *error says that
 * there will never be enough. */
static size_t portion(const struct socket *socket, struct block *block, int *error)
{
    const size_t length = length_of(block);
    const bool ended = (socket->flags & SOCKET_ENDED) != 0;
    *error = 0;
    if (mode_of(socket) == READ_SOME) {
        return length < socket->want ? length : socket->want;
    }
    if (mode_of(socket) == READ_EXACTLY) {
        return length >= socket->want ? socket->want : ended ? length : 0;
    }
    const size_t line = find_delimiter(socket, block);
    if (line > socket->want || (line == 0 && length >= socket->want)) {
        *error = SKUA_E_TOO_LONG;
        return 0;
    }
    return line != 0 ? line : ended ? length : 0;
}

/* ---- one read ---- */

/* What the read that is open has come to. */
enum reading {
    READING_WAITS,
    READING_PAUSES, /* it has had its turn, and there may be more */
    READING_DONE,   /* `count` bytes are at the front of `block` */
    READING_FAILED,
};
struct progress {
    enum reading state;
    struct block *block; /* the socket's input or the worker's; null: there are no bytes */
    size_t count;
    int error;
};

static struct progress done_with(struct block *block, size_t count)
{
    return (struct progress){.state = READING_DONE, .block = block, .count = count};
}

static struct progress failed_with(int error, struct block *block)
{
    return (struct progress){.state = READING_FAILED, .block = block, .error = error};
}

/* What a negative outcome of fetch_into means. */
static struct progress without_bytes(struct socket *socket, ssize_t outcome)
{
    if (LIKELY(outcome == -EAGAIN)) {
        return (struct progress){.state = READING_WAITS};
    }
    socket->failure = (int16_t)sockets_error((int)-outcome);
    return failed_with(socket->failure, NULL);
}

/* Whether what a block holds is enough. */
static bool is_enough(const struct socket *socket, struct block *block, struct progress *progress)
{
    int error;
    const size_t count = portion(socket, block, &error);
    if (count > 0) {
        *progress = done_with(block, count);
    } else if (error != 0) {
        *progress = failed_with(error, block);
    } else {
        return false;
    }
    return true;
}

/* Makes room for the bytes that are to follow what the socket has kept; false without memory. A
 * long piece grows as it comes, so that nobody can claim memory by announcing much. */
static bool make_room_for_more(struct sockets *sockets, struct socket *socket)
{
    const size_t kept = socket_buffered(socket);
    const size_t missing = mode_of(socket) == READ_EXACTLY ? socket->want - kept : INPUT_READ;
    const size_t growth = kept < SKUA_READ_MAX ? SKUA_READ_MAX : kept;
    return make_room(sockets, socket, missing < growth ? missing : growth);
}

/* Where the next bytes go, and how many: behind what the socket has kept, or else to the worker's
 * block. Null without memory. */
static struct block *place_for(struct sockets *sockets, struct worker *worker,
                               struct socket *socket, size_t *size)
{
    if (socket->input == NULL) {
        *size = mode_of(socket) == READ_SOME && socket->want < SKUA_READ_MAX ? socket->want
                                                                             : SKUA_READ_MAX;
        return scratch_of(sockets, worker);
    }
    if (!make_room_for_more(sockets, socket)) {
        return NULL;
    }
    const size_t kept = socket_buffered(socket);
    *size = socket->input->capacity - socket->input->end;
    if (mode_of(socket) == READ_EXACTLY && *size > socket->want - kept) {
        *size = socket->want - kept; /* so that the block can become the payload */
    }
    return socket->input;
}

/* Reads until there is enough, the system has no more, or the turn is over. */
static NOINLINE struct progress read_on(struct sockets *sockets, struct worker *worker,
                                        struct socket *socket)
{
    struct progress progress;
    size_t total = 0;
    if (socket->input != NULL && is_enough(socket, socket->input, &progress)) {
        return progress;
    }
    if (socket->failure != 0) {
        return failed_with(socket->failure, NULL);
    }
    for (int round = 0; round < TURN_ROUNDS && total < TURN_BYTES; round++) {
        size_t size;
        if ((socket->flags & SOCKET_ENDED) != 0) {
            return done_with(socket->input, socket_buffered(socket));
        }
        struct block *block = place_for(sockets, worker, socket, &size);
        if (block == NULL) {
            return failed_with(SKUA_E_NO_MEMORY, NULL);
        }
        const ssize_t count = fetch_into(sockets, worker, socket, block, size);
        if (count < 0) {
            return without_bytes(socket, count);
        }
        total += (size_t)count;
        if (count > 0 && is_enough(socket, block, &progress)) {
            return progress;
        }
        if (block != socket->input) {
            keep(sockets, worker, socket);
        }
    }
    return (struct progress){.state = READING_PAUSES};
}

/* Whether any number of bytes is enough, and none have been kept: then the first that come are all
 * that the read gets. */
static bool takes_first(const struct socket *socket)
{
    return socket->input == NULL && mode_of(socket) == READ_SOME && socket->failure == 0 &&
           (socket->flags & SOCKET_ENDED) == 0;
}

/* The same as read_on for such a read, as most are. */
static ALWAYS_INLINE struct progress read_first(struct sockets *sockets, struct worker *worker,
                                                struct socket *socket)
{
    struct block *block = scratch_of(sockets, worker);
    if (UNLIKELY(block == NULL)) {
        return failed_with(SKUA_E_NO_MEMORY, NULL);
    }
    const size_t size = socket->want < SKUA_READ_MAX ? socket->want : SKUA_READ_MAX;
    const ssize_t count = fetch_into(sockets, worker, socket, block, size);
    if (LIKELY(count > 0)) {
        return done_with(block, (size_t)count);
    }
    return count == 0 ? done_with(NULL, 0) : without_bytes(socket, count);
}

/* The payload of a read that is done. Takes the bytes from the block, unless there is no memory. */
static int take_payload(struct sockets *sockets, const struct worker *worker, struct socket *socket,
                        const struct progress *progress, skua_payload *payload)
{
    struct block *block = progress->block;
    int error = 0;
    *payload = skua_payload_empty(0);
    if (block == NULL) {
        return 0;
    }
    if (progress->count >= HAND_OVER_MIN && block->start == 0 && progress->count == block->end) {
        *payload = skua_payload_owned(0, block->data, block->end, drop_block);
        if (block == socket->input) {
            socket->input = NULL;
        } else {
            sockets->scratch[worker->index].block = NULL;
        }
        return 0;
    }
    error = payload_copy_reusing(&sockets->sched->allocator, &sockets->scratch[worker->index].spare,
                                 block->data + block->start, progress->count, payload);
    if (error == 0) {
        block->start += progress->count;
    }
    if (block != socket->input) {
        keep(sockets, worker, socket);
    } else if (block->start == block->end) {
        block_free(block);
        socket->input = NULL;
    }
    return error;
}

/* The worker's block must not hold bytes of this socket when another one is read. */
static void put_back(struct sockets *sockets, const struct worker *worker, struct socket *socket,
                     const struct progress *progress)
{
    if (progress->block != NULL && progress->block != socket->input) {
        keep(sockets, worker, socket);
    }
}

/* What the read comes to: 0 and a payload, or an error. */
static int conclude(struct sockets *sockets, const struct worker *worker, struct socket *socket,
                    const struct progress *progress, skua_payload *payload)
{
    if (progress->state == READING_DONE) {
        return take_payload(sockets, worker, socket, progress, payload);
    }
    *payload = skua_payload_empty(0);
    put_back(sockets, worker, socket, progress);
    return progress->error;
}

/* Whether the owner waits from now on; otherwise there is something to read. */
static bool waits(struct socket *socket)
{
    return socket_word_wait_owner(&socket->word, SOCKET_WAITS_TO_READ, SOCKET_ENDS_READ);
}

/* Reads for the open read, which nobody may have ended yet. False if it waits. */
static ALWAYS_INLINE bool finishes(struct sockets *sockets, struct worker *worker,
                                   struct socket *socket, uint32_t slot, struct progress *progress)
{
    for (;;) {
        *progress = takes_first(socket) ? read_first(sockets, worker, socket)
                                        : read_on(sockets, worker, socket);
        if (progress->state == READING_PAUSES) {
            sockets_signal_self(sockets, worker, socket, slot, SOCKET_WAITS_TO_READ,
                                SOCKET_READABLE);
            return false;
        }
        if (progress->state != READING_WAITS) {
            return true;
        }
        if (waits(socket)) {
            return false;
        }
        (void)may_be_ready(socket);
    }
}

/* A socket that has just taken what was reported may also have failed with nothing to read. */
void socket_go_on_reading(struct sockets *sockets, struct worker *worker, struct process *process,
                          struct socket *socket, uint32_t slot)
{
    struct progress progress;
    skua_payload payload;
    const uint64_t call = socket->reader;
    if (call == 0) {
        return;
    }
    if (!deliver_is_open(sockets->sched, (skua_completion){.call = call})) {
        socket->reader = 0; /* its time was up, or it was taken back */
        return;
    }
    if (!finishes(sockets, worker, socket, slot, &progress)) {
        return;
    }
    socket->reader = 0;
    if (!sockets_claim(worker, call)) {
        put_back(sockets, worker, socket, &progress);
        return;
    }
    const int error = conclude(sockets, worker, socket, &progress, &payload);
    sockets_complete(worker, process, call, error, &payload);
}

/* ---- the yield ---- */

/* Gives a read to the socket; 0 or why it has none. */
static int begin(struct sockets *sockets, struct socket *socket, const struct yield *yield)
{
    if (socket->failure != 0 && socket->input == NULL) {
        return socket->failure;
    }
    if (socket->reader != 0 &&
        deliver_is_open(sockets->sched, (skua_completion){.call = socket->reader})) {
        return SKUA_E_SOCKET_BUSY;
    }
    socket->reader = 0;
    socket->want = yield->as.read.want;
    socket->delimiter = yield->as.read.delimiter;
    socket->mode = yield->as.read.mode;
    if (socket->input != NULL) {
        socket->input->scanned = socket->input->start; /* this one may look for something else */
    }
    return 0;
}

/* The read has begun. */
static NOINLINE int try_read(struct sockets *sockets, struct worker *worker, struct socket *socket,
                             const struct yield *yield, skua_completion completion,
                             skua_payload *result)
{
    const skua_context *context = worker->context;
    const uint32_t slot = socket_slot(yield->as.read.socket.bits);
    struct progress progress;
    if (yield->timeout != SKUA_FOREVER) { /* its time may be up at any moment */
        socket->reader = completion.call;
        socket_go_on_reading(sockets, worker, context->process, socket, slot);
        return SKUA_PENDING;
    }
    if (!finishes(sockets, worker, socket, slot, &progress)) {
        socket->reader = completion.call;
        return SKUA_PENDING;
    }
    return conclude(sockets, worker, socket, &progress, result);
}

/* Most often there is nothing yet, as the read before has emptied the socket. */
int sockets_start_read(void *arg, struct worker *worker, const struct yield *yield,
                       skua_completion completion, skua_payload *result)
{
    struct sockets *sockets = arg;
    struct socket *socket = sockets_find(sockets, worker->context->self, yield->as.read.socket);
    const int refused = socket == NULL ? SKUA_E_CLOSED : begin(sockets, socket, yield);
    if (UNLIKELY(refused != 0)) {
        return refused;
    }
    if (takes_first(socket) && !may_be_ready(socket) && LIKELY(waits(socket))) {
        socket->reader = completion.call;
        return SKUA_PENDING;
    }
    return try_read(sockets, worker, socket, yield, completion, result);
}

int sockets_start_hangup(void *arg, struct worker *worker, const struct yield *yield,
                         skua_completion completion, skua_payload *result)
{
    (void)result;
    struct sockets *sockets = arg;
    struct socket *socket = sockets_find(sockets, worker->context->self, yield->as.read.socket);
    struct socket_extra *extra = socket != NULL ? socket_extra(sockets, socket) : NULL;
    if (extra == NULL) {
        return socket == NULL ? SKUA_E_CLOSED : SKUA_E_NO_MEMORY;
    }
    if (socket->failure != 0) {
        return socket->failure;
    }
    if (extra->end_waiter != 0 &&
        deliver_is_open(sockets->sched, (skua_completion){.call = extra->end_waiter})) {
        return SKUA_E_SOCKET_BUSY;
    }
    if ((socket->flags & SOCKET_HUNG_UP) == 0 &&
        !socket_word_wait_owner(&socket->word, SOCKET_WAITS_FOR_END, SOCKET_ENDS_INPUT)) {
        socket_absorb(socket, socket_word_clear_owner(&socket->word, SOCKET_ENDS_INPUT) &
                                  SOCKET_ENDS_INPUT);
    }
    if ((socket->flags & SOCKET_HUNG_UP) != 0) {
        return socket_end_of_input(socket);
    }
    extra->end_waiter = completion.call;
    return SKUA_PENDING;
}
