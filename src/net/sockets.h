/* SPDX-License-Identifier: MIT */
/* Sockets of processes (skua/socket.h), above what they are made of (net/transport.h).
 *
 * A socket is an object of a type-stable pool, named by its slot and generation. It belongs to one
 * process, and all of it but its word (net/socket_word.h) and what is atomic is touched by the
 * worker that runs that process, and by nobody else: no lock is taken to read or to write. The
 * thread that hears from the transport changes the word, and pushes the socket's signal to the
 * owner if that waits (EVENT_SOCKET, sched/signal.h); the owner's worker takes it, reads or writes,
 * and queues the completion behind what has arrived: in front it could overtake that of an earlier
 * read.
 *
 * Try first, wait second: a read is tried if the socket may be ready as far as its owner knows, and
 * waits otherwise. A read that got less than it had room for has emptied the socket, unless urgent
 * data has been reported, so the next one waits without asking the system. What has come and was
 * not asked for yet stays with the system, unless it was read along with a line or frame before it:
 * then it is in `input`.
 *
 * Writes queue as event nodes, which carry the payload and the completion to be. All writes of one
 * step leave with the last of them, in one call.
 *
 * A socket without an owner lingers: it was closed when the system had not taken all of its output.
 * Whoever reports that it is writable writes on, under `lock`.
 *
 * Which sockets a process has is a list that begins in `owned`, by the slot of the process: four
 * bytes for each that has any. PROCESS_SOCKETS says that there is one. */
#ifndef SKUA_NET_SOCKETS_H
#define SKUA_NET_SOCKETS_H

#include <pthread.h>
#include <stdalign.h>

#include "base/monotonic.h"
#include "dispatch/call.h"
#include "net/socket_word.h"
#include "net/transport.h"
#include "sched/scheduler.h"
#include "sched/socket_hooks.h"

enum socket_kind { SOCKET_FREE, SOCKET_LISTENER, SOCKET_CONNECTING, SOCKET_STREAM };

enum read_mode { READ_SOME, READ_EXACTLY, READ_UNTIL };

/* Bytes that have been received: in the worker's hands, kept by a socket, or the memory of a
 * payload. */
struct block {
    alignas(max_align_t) const struct allocator *allocator;
    size_t capacity;
    size_t start; /* bytes from here */
    size_t end;   /* to here */
    size_t scanned;
    alignas(max_align_t) unsigned char data[];
};

/* What few sockets need. */
struct socket_extra {
    uint64_t idle_ns;     /* 0: for ever */
    uint64_t progress_ns; /* 0: the default */
    uint64_t write_limit; /* 0: the default */
    uint64_t keepalive_ns;
    uint64_t send_buffer; /* of a listener: for accepted sockets; the same above */
    uint64_t receive_buffer;
    uint64_t end_waiter; /* the call that waits for the end of input, or 0 */
    uint64_t held;       /* of a listener: 1 + a connection that came too late for its accept */
    uint64_t pause_ns;   /* of a listener: before it tries again to accept */
    bool delays;         /* of a listener: accepted sockets do not have nodelay */
    bool is_adopted;     /* of a listener: its file is not ours */
};

struct socket {
    atomic_u64 word;   /* see net/socket_word.h */
    atomic_u64 owner;  /* a PID; 0: it lingers */
    atomic_u32 fd;     /* for the transport */
    atomic_u32 signal; /* its event node */
    uint32_t next;     /* among the sockets of the owner */
    uint32_t previous;
    uint64_t reader; /* the call of the open read, accept or connect: skua_completion.call; or 0 */
    uint64_t want;   /* bytes that it wants */
    struct block *input; /* read from the system and not yet by the owner; or null */
    uint32_t first;      /* of the writes that are queued, or OBJECT_NONE */
    uint32_t last;
    struct socket_extra *extra; /* or null */
    atomic_u64 bytes_in;
    atomic_u64 bytes_out;
    atomic_u64 active_at; /* when data last went in either direction */
    uint64_t wrote_at;    /* when the peer last took something, or the queue began */
    atomic_u64 alarm_at;  /* when the owner wants to look at its deadlines; 0: never */
    atomic_u32 queued;    /* bytes of its writes */
    uint32_t delimiter;   /* its bytes, the first one lowest */
    uint16_t unstarted;   /* writes of this step that are not queued yet */
    int16_t failure;      /* the error that ended it, or 0 */
    uint8_t kind;         /* enum socket_kind */
    uint8_t mode;         /* enum read_mode, and 4 times the length of the delimiter */
    uint8_t ready;        /* reports that the owner knows of and that still hold */
    uint8_t flags;        /* below */
};

_Static_assert(sizeof(struct socket) == 2 * (size_t)CACHE_LINE, "an idle connection is small");

/* `flags`. */
#define SOCKET_IS_LISTED 1U  /* in the list of its owner */
#define SOCKET_ENDED     2U  /* the end of input has been read */
#define SOCKET_SHUTS     4U  /* no more is written after what is queued */
#define SOCKET_SHUT      8U  /* and that has been said to the peer */
#define SOCKET_CLOSES    16U /* at the end of this step */
#define SOCKET_HUNG_UP   32U /* the peer writes no more, or has failed */
/* A Unix socket: a read may leave something though it got less than it had room for, if the peer
 * passes descriptors. */
#define SOCKET_IS_LOCAL 64U
/* The peer has broken off, as a report or a write has shown. What came before can still be read. */
#define SOCKET_BROKEN 128U

#define SOCKET_LAYOUT                                                                              \
    ((struct object_layout){sizeof(struct socket), offsetof(struct socket, reader)})

/* Processes per entry of the directory `owned`. */
#define SOCKETS_OWNED_SHIFT 10
#define SOCKETS_OWNED_SPAN  (UINT32_C(1) << SOCKETS_OWNED_SHIFT)

/* What a worker keeps for the sockets of the processes that it runs. */
struct socket_scratch {
    CACHE_ALIGNED struct block *block; /* what reads go into, empty between them; or null */
    struct payload_memory *spare;      /* of a write that has left, for the next read; or null */
};

struct sockets {
    struct socket_hooks hooks; /* what the scheduler calls */
    struct scheduler *sched;
    struct transport *transport;
    atomic_ptr *owned;              /* of arrays of SOCKETS_OWNED_SPAN slots; written once each */
    struct socket_scratch *scratch; /* by worker */
    pthread_mutex_t lock;
    struct object_pool pool; /* acquired and released under lock */
    struct pool_cache cache; /* under lock */
    atomic_u32 is_ready;     /* the above exist; written under lock */
    atomic_u32 count;        /* open ones; written under lock */
    atomic_u32 lingering;    /* of them; written under lock */
    atomic_u64 turned_away;  /* connections, for lack of descriptors */
};

void sockets_init(struct sockets *sockets, struct scheduler *sched, struct transport *transport);

/* Makes them services of the scheduler. */
void sockets_attach(struct sockets *sockets);

void sockets_deinit(struct sockets *sockets);

/* ---- from a transport ---- */

/* Something may have changed. `key` is that of the watch; `worker` is the caller's or null. */
void sockets_report(struct sockets *sockets, struct worker *worker, uint64_t key, uint32_t flags);

/* Looks after the deadlines of sockets, as asked for by wake_at. */
void sockets_alarm(struct sockets *sockets, struct worker *worker, uint64_t now);

/* ---- for the owner's worker: sockets.c ---- */

static inline struct socket *socket_at(struct sockets *sockets, uint32_t slot)
{
    return object_at(&sockets->pool, SOCKET_LAYOUT, slot);
}

/* Whether there is a slot of this number, which may be forged. */
static inline bool sockets_has_slot(struct sockets *sockets, uint32_t slot)
{
    return load_acquire(&sockets->is_ready) != 0 && object_pool_holds(&sockets->pool, slot);
}

static inline uint64_t socket_key(struct socket *socket, uint32_t slot)
{
    /* The generation does not change while the caller has the socket. */
    return (uint64_t)slot << 32 | socket_word_generation(load_relaxed(&socket->word));
}

/* Its number in the transport; or -1. */
static inline int socket_fd(struct socket *socket)
{
    return (int)load_relaxed(&socket->fd); /* written when it is opened */
}

static inline uint32_t socket_slot(uint64_t key)
{
    return (uint32_t)(key >> 32);
}

/* The socket that a handle names, if it is this process's; otherwise null. */
NODISCARD static inline struct socket *sockets_find(struct sockets *sockets, skua_pid owner,
                                                    skua_socket handle)
{
    const uint32_t slot = socket_slot(handle.bits);
    if (UNLIKELY(!sockets_has_slot(sockets, slot))) {
        return NULL;
    }
    struct socket *socket = socket_at(sockets, slot);
    /* acquire MO-give: what the last owner did. */
    if (UNLIKELY(load_acquire(&socket->owner) != owner.bits ||
                 socket_word_generation(load_relaxed(&socket->word)) != (uint32_t)handle.bits ||
                 (socket->flags & SOCKET_CLOSES) != 0)) {
        return NULL;
    }
    return socket;
}

/* Makes a socket of a number of the transport, watched and owned by `process`. On error, which is
 * SKUA_E_NO_MEMORY as a rule, the number is the caller's to close. A listener has an
 * `extra`. */
NODISCARD int sockets_open(struct sockets *sockets, struct worker *worker, struct process *process,
                           skua_pid owner, int fd, enum socket_kind kind, uint32_t *slot);

/* Closes it for its owner, who is `process`. */
void sockets_close(struct sockets *sockets, struct worker *worker, struct process *process,
                   uint32_t slot, bool reset);

/* Takes it from its owner; and gives it to a process. */
void sockets_unlist(struct sockets *sockets, struct process *process, struct socket *socket);
NODISCARD bool sockets_list(struct sockets *sockets, struct process *process, struct socket *socket,
                            uint32_t slot);

/* As skua_socket_give. */
NODISCARD int sockets_give(struct sockets *sockets, skua_context *ctx, skua_socket handle,
                           skua_pid to);

/* Whether a yield is open on it, or something is queued. */
NODISCARD bool sockets_is_busy(struct sockets *sockets, const struct socket *socket);

/* As skua_socket_detach, once the handle is known to be good. */
NODISCARD int sockets_release(struct sockets *sockets, struct worker *worker,
                              struct process *process, uint32_t slot, int *fd);

/* Claims an open call of this process; false: it has ended otherwise. */
NODISCARD static inline bool sockets_claim(struct worker *worker, uint64_t call)
{
    const skua_completion completion = {.call = call};
    struct event_node *node = event_at(&worker->sched->events, call_index(completion));
    return call_claim_any(node, call_guard(completion));
}
/* Then completes it. The completion goes behind everything that has arrived: what an earlier read
 * has brought comes before what a later one brings, and an event that a task has recalled stays in
 * front. */
void sockets_complete(struct worker *worker, struct process *process, uint64_t call, int error,
                      const skua_payload *result);
/* The same at a place in a list of events, for sockets_queue; returns the place behind it. */
uint32_t *sockets_complete_at(struct worker *worker, uint32_t *link, uint64_t call, int error,
                              const skua_payload *result);
/* Queues a list of completions, oldest first; there is one at least. */
void sockets_queue(struct worker *worker, struct process *process, uint32_t first);
/* Claims and completes, without a result. */
void sockets_end_call(struct worker *worker, struct process *process, uint64_t call, int error);

/* Makes the signal come again, though nothing has been reported: the turn has been long enough. */
void sockets_signal_self(struct sockets *sockets, struct worker *worker, struct socket *socket,
                         uint32_t slot, uint32_t waits, uint32_t flags);

/* The socket has failed: all its yields end with `error`, and the connection is reset. */
void sockets_fail(struct sockets *sockets, struct worker *worker, struct process *process,
                  struct socket *socket, int error);

/* A write has shown that the peer has broken off: nothing can be written any more, and reads get
 * what came before. */
void sockets_break(struct sockets *sockets, struct worker *worker, struct process *process,
                   struct socket *socket, uint32_t slot);

/* The error that stands for an errno, which skua_error_os tells. */
NODISCARD int sockets_error(int system_error);

/* What few sockets need, made if there is none; null without memory. */
NODISCARD struct socket_extra *socket_extra(struct sockets *sockets, struct socket *socket);

/* When its deadlines are to be looked at next: not later than this. */
void sockets_set_alarm(struct sockets *sockets, struct worker *worker, struct socket *socket,
                       uint64_t when);
uint64_t sockets_now(struct worker *worker);

/* The peer may take nothing for this long, and so much may be queued, unless the program says
 * otherwise. */
#define SOCKETS_PROGRESS_NS (UINT64_C(30) * 1000000000)
#define SOCKETS_WRITE_LIMIT (UINT64_C(1) << 20)

/* When it has lasted too long that the peer has taken nothing. */
static inline uint64_t socket_progress_end(const struct socket *socket)
{
    const struct socket_extra *extra = socket->extra;
    return time_after(socket->wrote_at, extra != NULL && extra->progress_ns != 0
                                            ? extra->progress_ns
                                            : SOCKETS_PROGRESS_NS);
}

/* What was reported, and is no longer in the word, is the owner's to remember. */
static inline void socket_absorb(struct socket *socket, uint32_t flags)
{
    socket->ready |= (uint8_t)(flags & SOCKET_REPORTS);
    if ((flags & SOCKET_ENDS_INPUT) != 0) {
        socket->flags |= SOCKET_HUNG_UP;
    }
    if ((flags & SOCKET_FAILED) != 0) {
        socket->flags |= SOCKET_BROKEN;
    }
}

/* How a wait for the end of input ends. */
static inline int socket_end_of_input(const struct socket *socket)
{
    return (socket->flags & SOCKET_BROKEN) != 0 ? SKUA_E_RESET : 0;
}

/* When a read or write begins, if somebody traces; otherwise 0. */
static inline uint64_t socket_trace_begin(struct sockets *sockets)
{
    return UNLIKELY(tracer_active(&sockets->sched->tracer) != NULL) ? monotonic_ns() : 0;
}

/* Notes for a trace that so many bytes went through it, by a read or write that has `begun` then
 * and ends now; `worker` is the caller's or null. */
void socket_trace(struct sockets *sockets, struct worker *worker, struct socket *socket,
                  enum trace_kind kind, size_t count, uint64_t begun);
static inline void socket_note_bytes(struct sockets *sockets, struct worker *worker,
                                     struct socket *socket, enum trace_kind kind, size_t count,
                                     uint64_t begun)
{
    if (UNLIKELY(begun != 0)) {
        socket_trace(sockets, worker, socket, kind, count, begun);
    }
}

/* Data went through it. When, is known exactly if there is a limit to idling, and otherwise as of
 * the worker's last look at the clock. */
static inline void socket_note_active(struct socket *socket, struct worker *worker)
{
    const bool is_limited = socket->extra != NULL && socket->extra->idle_ns != 0;
    store_relaxed(&socket->active_at, /* for inspectors; one writer */
                  UNLIKELY(is_limited) ? sockets_now(worker) : worker->checked_at);
}

/* Writes on for a socket without an owner, if it is still the one that the key names. */
void sockets_go_on_lingering(struct sockets *sockets, struct worker *worker, uint64_t key);

/* Where the list of the sockets of a process begins; null if there is none, or no memory for it. */
NODISCARD uint32_t *sockets_list_of(struct sockets *sockets, const struct process *process,
                                    bool make);

/* ---- socket_signal.c, socket_give.c, socket_snapshot.c ---- */

static inline struct sockets *sockets_of_hooks(struct socket_hooks *hooks)
{
    return CONTAINER_OF(hooks, struct sockets, hooks);
}

/* As struct socket_hooks, each. */
void sockets_look_around(struct socket_hooks *hooks, struct worker *worker, uint64_t now);
void sockets_take(struct socket_hooks *hooks, struct worker *worker, struct process *process,
                  uint32_t node);
void sockets_drop(struct socket_hooks *hooks, struct worker *worker, uint32_t node);
NODISCARD bool sockets_leave(struct socket_hooks *hooks, struct worker *worker,
                             struct process *process, int error, uint32_t *budget);
NODISCARD int sockets_give_at_spawn(struct socket_hooks *hooks, skua_context *parent,
                                    struct process *child, skua_pid pid, skua_socket handle);
void sockets_take_back(struct socket_hooks *hooks, skua_context *parent, struct process *child,
                       skua_socket handle);
NODISCARD uint32_t sockets_list_slots(struct socket_hooks *hooks, struct process *process,
                                      uint32_t *slots, uint32_t capacity, uint32_t most);

/* A socket that was given has arrived. */
void sockets_take_given(struct sockets *sockets, struct worker *worker, struct process *process,
                        uint32_t node);

/* ---- socket_open.c, socket_input.c, socket_output.c ---- */

/* As service.start, each. */
int sockets_start_accept(void *arg, struct worker *worker, const struct yield *yield,
                         skua_completion completion, skua_payload *result);
int sockets_start_connect(void *arg, struct worker *worker, const struct yield *yield,
                          skua_completion completion, skua_payload *result);
int sockets_start_read(void *arg, struct worker *worker, const struct yield *yield,
                       skua_completion completion, skua_payload *result);
int sockets_start_write(void *arg, struct worker *worker, const struct yield *yield,
                        skua_completion completion, skua_payload *result);
int sockets_start_hangup(void *arg, struct worker *worker, const struct yield *yield,
                         skua_completion completion, skua_payload *result);
void sockets_discard_connect(struct worker *worker, const struct yield *yield);
void sockets_discard_write(struct worker *worker, const struct yield *yield);

/* The open accept, connect or read of a socket may be able to go on. */
void socket_go_on_accepting(struct sockets *sockets, struct worker *worker, struct process *process,
                            struct socket *socket);
void socket_go_on_connecting(struct sockets *sockets, struct worker *worker,
                             struct process *process, struct socket *socket, uint32_t slot);
void socket_go_on_reading(struct sockets *sockets, struct worker *worker, struct process *process,
                          struct socket *socket, uint32_t slot);

/* Writes what is queued, as far as it goes. */
void socket_go_on_writing(struct sockets *sockets, struct worker *worker, struct process *process,
                          struct socket *socket, uint32_t slot);

/* Says to the peer that no more is written, if the owner wants that and nothing is queued. */
void socket_shut_if_asked(struct sockets *sockets, struct socket *socket);

/* Writes on for a socket that lingers; under `lock`. Returns whether nothing more will come of it.
 * What has left is put in front of a list, for socket_release_output. */
NODISCARD bool socket_write_lingering_locked(struct sockets *sockets, struct worker *worker,
                                             struct socket *socket, uint32_t *list);

/* Puts what is queued there, too. */
void socket_put_output_aside(struct sockets *sockets, struct socket *socket, uint32_t *list);

/* Drops the payloads in such a list: not under `lock`, as the functions for that are the
 * program's. */
void socket_release_output(struct sockets *sockets, struct worker *worker, uint32_t list);

/* Ends all queued writes of `process`, the owner: its calls complete with `error`. */
void socket_drop_output(struct sockets *sockets, struct worker *worker, struct process *process,
                        struct socket *socket, int error);

/* Ends their calls with `error`, and leaves the bytes in the queue. */
void socket_end_writes(struct sockets *sockets, struct worker *worker, struct process *process,
                       struct socket *socket, int error);

/* Bytes that the owner could read at once. */
static inline size_t socket_buffered(const struct socket *socket)
{
    return socket->input != NULL ? socket->input->end - socket->input->start : 0;
}

void block_free(struct block *block);

/* ---- for those who inspect: any thread ---- */

/* How many there are. `hooks` may be null: none. */
struct sockets_total {
    uint32_t open; /* those that linger included */
    uint32_t lingering;
    uint64_t turned_away; /* connections, so far */
};
NODISCARD struct sockets_total sockets_count(struct socket_hooks *hooks);

/* Whether a slot, and those above it, cannot have a socket. */
static inline bool sockets_end_before(struct sockets *sockets, uint32_t slot)
{
    /* acquire: the pool exists if there is a socket. */
    return load_acquire(&sockets->count) == 0 || !object_pool_holds(&sockets->pool, slot);
}

/* As socket_hooks.show. */
void sockets_show_nodes(struct socket_hooks *hooks, void (*put)(void *arg, uint32_t node),
                        void *arg);

/* Fills in a snapshot of the socket in a slot, of any number; false if there is none. */
NODISCARD bool sockets_snapshot(struct sockets *sockets, uint32_t slot,
                                skua_socket_snapshot *snapshot);

/* The same in two parts: all but the addresses, which have to be asked for; and these, or false if
 * the socket has gone meanwhile. */
NODISCARD bool sockets_peek(struct sockets *sockets, uint32_t slot, skua_socket_snapshot *snapshot);
NODISCARD bool sockets_add_addresses(struct sockets *sockets, skua_socket_snapshot *snapshot);

#endif
