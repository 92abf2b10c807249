/* SPDX-License-Identifier: MIT */
#include "net/sockets.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "base/mutex.h"
#include "base/os_error.h"
#include "dispatch/call.h"
#include "net/transport_io.h"
#include "process/payload.h"
#include "sched/checkpoint.h"
#include "sched/context.h"
#include "sched/deliver.h"
#include "sched/log.h"
#include "sched/note.h"
#include "sched/shutdown.h"
#include "sched/signal.h"
#include "sched/worker.h"

/* The most sockets that a runtime can have. */
#define SOCKETS_MAX (UINT32_C(1) << 24)

/* What is read and thrown away when a socket is closed, so that the peer is not reset. */
#define DISCARD_ROUNDS 4

/* ---- time ---- */

uint64_t sockets_now(struct worker *worker)
{
    return checkpoint_clock(worker);
}

void sockets_set_alarm(struct sockets *sockets, struct worker *worker, struct socket *socket,
                       uint64_t when)
{
    uint64_t before = load_relaxed(&socket->alarm_at); /* re-checked by the exchange */
    do {
        if (before != 0 && before <= when) {
            return; /* one is due before that already */
        }
        /* MO-alarm: either the look around sees this, or wake_at sees that it has begun. */
    } while (!cas_seq_cst(&socket->alarm_at, &before, when));
    sockets->transport->wake_at(sockets->transport, worker, when);
}

/* ---- sockets of processes ---- */

/* Where the list of the sockets of a process begins; null without memory. */
uint32_t *sockets_list_of(struct sockets *sockets, const struct process *process, bool make)
{
    atomic_ptr *entry = &sockets->owned[process->slot >> SOCKETS_OWNED_SHIFT];
    uint32_t *heads = load_acquire(entry); /* pairs with the exchange below */
    if (UNLIKELY(heads == NULL) && make) {
        const size_t size = SOCKETS_OWNED_SPAN * sizeof *heads;
        void *nobody = NULL;
        uint32_t *made =
            allocator_alloc_zeroed(&sockets->sched->allocator, size, alignof(uint32_t));
        if (made != NULL && !cas_seq_cst(entry, &nobody, (void *)made)) {
            allocator_free(&sockets->sched->allocator, made, size, alignof(uint32_t));
            made = nobody;
        }
        heads = made;
    }
    return heads != NULL ? &heads[process->slot % SOCKETS_OWNED_SPAN] : NULL;
}

bool sockets_list(struct sockets *sockets, struct process *process, struct socket *socket,
                  uint32_t slot)
{
    uint32_t *head = sockets_list_of(sockets, process, true);
    if (head == NULL) {
        return false;
    }
    socket->next = *head;
    socket->previous = OBJECT_NONE;
    if (*head != OBJECT_NONE) {
        socket_at(sockets, *head)->previous = slot;
    }
    *head = slot;
    socket->flags |= SOCKET_IS_LISTED;
    process_set_progress_owner(process, process_progress(process) | PROCESS_SOCKETS);
    return true;
}

void sockets_unlist(struct sockets *sockets, struct process *process, struct socket *socket)
{
    if ((socket->flags & SOCKET_IS_LISTED) == 0) {
        return; /* it was given, and closed before its new owner had heard of it */
    }
    socket->flags &= (uint8_t)~SOCKET_IS_LISTED;
    uint32_t *head = sockets_list_of(sockets, process, false);
    if (socket->previous != OBJECT_NONE) {
        socket_at(sockets, socket->previous)->next = socket->next;
    } else {
        *head = socket->next;
    }
    if (socket->next != OBJECT_NONE) {
        socket_at(sockets, socket->next)->previous = socket->previous;
    }
    if (*head == OBJECT_NONE) {
        process_set_progress_owner(process, process_progress(process) & ~PROCESS_SOCKETS);
    }
}

/* ---- memory ---- */

static void construct(void *object, uint32_t index, uint32_t floor)
{
    (void)index;
    struct socket *socket = object;
    memset(socket, 0, sizeof *socket);
    store_relaxed(&socket->word, (uint64_t)(floor + 1) << 32); /* not shared yet */
}

static size_t scratch_size(const struct sockets *sockets)
{
    return sockets->sched->capacity * sizeof(struct socket_scratch);
}

/* The first socket of a runtime makes the pool. */
static bool make_pool_locked(struct sockets *sockets)
{
    const struct allocator *allocator = &sockets->sched->allocator;
    const uint32_t slots = sockets->sched->table.pool.segment_count *
                           (uint32_t)(OBJECT_POOL_SEGMENT_SIZE / sizeof(struct process));
    const size_t entries = (slots >> SOCKETS_OWNED_SHIFT) + 1;
    if (load_relaxed(&sockets->is_ready) != 0) { /* under lock */
        return true;
    }
    if (sockets->owned == NULL) {
        sockets->owned =
            allocator_alloc_zeroed(allocator, entries * sizeof(atomic_ptr), alignof(atomic_ptr));
    }
    if (sockets->scratch == NULL) {
        sockets->scratch = allocator_alloc_zeroed(allocator, scratch_size(sockets),
                                                  alignof(struct socket_scratch));
    }
    if (sockets->owned == NULL || sockets->scratch == NULL ||
        !object_pool_init(&sockets->pool, allocator,
                          &(struct object_pool_shape){.layout = SOCKET_LAYOUT,
                                                      .limit = SOCKETS_MAX,
                                                      .cache_count = 1,
                                                      .construct = construct})) {
        return false;
    }
    store_release(&sockets->is_ready, 1); /* pairs with sockets_has_slot */
    return true;
}

static bool acquire_locked(struct sockets *sockets, uint32_t *slot)
{
    if (!make_pool_locked(sockets) ||
        object_acquire_owner(&sockets->pool, SOCKET_LAYOUT, &sockets->cache, slot) !=
            OBJECT_POOL_OK) {
        return false;
    }
    store_relaxed(&sockets->count, load_relaxed(&sockets->count) + 1); /* statistic */
    return true;
}

/* A generation that is about to repeat itself is the last one of its slot. */
static void release_locked(struct sockets *sockets, struct socket *socket, uint32_t slot)
{
    store_relaxed(&sockets->count, load_relaxed(&sockets->count) - 1); /* statistic */
    if (socket_word_generation(load_relaxed(&socket->word)) == UINT32_MAX) {
        object_pool_retire_any(&sockets->pool);
    } else {
        object_release_owner(&sockets->pool, SOCKET_LAYOUT, &sockets->cache, slot);
    }
}

struct socket_extra *socket_extra(struct sockets *sockets, struct socket *socket)
{
    if (socket->extra == NULL) {
        socket->extra = allocator_alloc_zeroed(&sockets->sched->allocator, sizeof *socket->extra,
                                               alignof(struct socket_extra));
    }
    return socket->extra;
}

static void free_extra(struct sockets *sockets, struct socket *socket)
{
    allocator_free(&sockets->sched->allocator, socket->extra, sizeof *socket->extra,
                   alignof(struct socket_extra));
    socket->extra = NULL;
}

void block_free(struct block *block)
{
    if (block != NULL) {
        allocator_free(block->allocator, block, sizeof *block + block->capacity,
                       alignof(struct block));
    }
}

/* ---- opening ---- */

static void fill(struct socket *socket, skua_pid owner, int fd, enum socket_kind kind,
                 uint32_t signal, uint64_t now)
{
    store_relaxed(&socket->fd, (uint32_t)fd); /* for inspectors, as are others here */
    store_release(&socket->signal, signal);   /* MO-socket */
    socket->reader = 0;
    socket->input = NULL;
    socket->first = OBJECT_NONE;
    socket->last = OBJECT_NONE;
    socket->extra = NULL;
    store_relaxed(&socket->bytes_in, 0);
    store_relaxed(&socket->bytes_out, 0);
    store_relaxed(&socket->active_at, now);
    store_relaxed(&socket->alarm_at, 0);
    store_relaxed(&socket->queued, 0);
    socket->unstarted = 0;
    socket->failure = 0;
    socket->kind = (uint8_t)kind;
    socket->ready = SOCKET_READABLE | SOCKET_WRITABLE; /* so that it is tried */
    socket->flags = 0;
    (void)fetch_or_seq_cst(&socket->word, kind == SOCKET_LISTENER     ? SOCKET_LISTENS
                                          : kind == SOCKET_CONNECTING ? SOCKET_CONNECTS
                                                                      : 0);
    store_release(&socket->owner, owner.bits); /* MO-give */
}

static int open_locked(struct sockets *sockets, struct worker *worker, skua_pid owner, int fd,
                       enum socket_kind kind, uint32_t *slot)
{
    struct scheduler *sched = sockets->sched;
    uint32_t signal;
    if (!deliver_acquire_node(sched, worker, &signal)) {
        return SKUA_E_NO_MEMORY;
    }
    if (!acquire_locked(sockets, slot)) {
        deliver_release_node(sched, worker, signal);
        return SKUA_E_NO_MEMORY;
    }
    struct socket *socket = socket_at(sockets, *slot);
    fill(socket, owner, fd, kind, signal, sockets_now(worker));
    struct event_node *node = event_at(&sched->events, signal);
    event_make(&node->as.event, SKUA_EVENT_MESSAGE, 0);
    node->as.event.type = EVENT_SOCKET;
    node->as.event.tag = socket_key(socket, *slot);
    return 0;
}

/* Ends what open_locked has begun. */
static void unopen_locked(struct sockets *sockets, struct worker *worker, uint32_t slot)
{
    struct socket *socket = socket_at(sockets, slot);
    socket->kind = SOCKET_FREE;
    store_relaxed(&socket->owner, 0);    /* whoever sees the next generation sees this: see ring */
    store_relaxed(&socket->alarm_at, 0); /* hint: an alarm too many is ignored */
    const bool is_on_its_way = socket_word_retire_owner(&socket->word);
    if (!is_on_its_way) {
        deliver_release_node(sockets->sched, worker,
                             load_relaxed(&socket->signal)); /* under lock */
    }
    release_locked(sockets, socket, slot);
}

/* What a socket that was opened needs besides its slot. */
static int furnish(struct sockets *sockets, struct process *process, struct socket *socket,
                   uint32_t slot)
{
    struct transport *transport = sockets->transport;
    if (!sockets_list(sockets, process, socket, slot) ||
        (socket->kind == SOCKET_LISTENER && socket_extra(sockets, socket) == NULL)) {
        return SKUA_E_NO_MEMORY;
    }
    const int refused = transport->watch(transport, socket_fd(socket), socket_key(socket, slot));
    return refused < 0 ? sockets_error(-refused) : 0;
}

int sockets_open(struct sockets *sockets, struct worker *worker, struct process *process,
                 skua_pid owner, int fd, enum socket_kind kind, uint32_t *slot)
{
    mutex_lock(&sockets->lock);
    int error = open_locked(sockets, worker, owner, fd, kind, slot);
    mutex_unlock(&sockets->lock);
    if (error != 0) {
        return error;
    }
    struct socket *socket = socket_at(sockets, *slot);
    error = furnish(sockets, process, socket, *slot);
    if (error != 0) {
        sockets_unlist(sockets, process, socket);
        free_extra(sockets, socket);
        mutex_lock(&sockets->lock);
        unopen_locked(sockets, worker, *slot);
        mutex_unlock(&sockets->lock);
    }
    return error;
}

/* ---- completions ---- */

static ALWAYS_INLINE uint32_t *complete_at(struct worker *worker, uint32_t *link, uint64_t call,
                                           int error, const skua_payload *result)
{
    struct scheduler *sched = worker->sched;
    const uint32_t index = call_index((skua_completion){.call = call});
    struct event_node *node = event_at(&sched->events, index);
    call_disarm_owner(&sched->deadlines, node, index);
    note_event(sched, worker, TRACE_COMPLETE, worker->context->self, index);
    call_complete_owner(node, error, result);
    node->next = *link;
    *link = index;
    return &node->next;
}

uint32_t *sockets_complete_at(struct worker *worker, uint32_t *link, uint64_t call, int error,
                              const skua_payload *result)
{
    return complete_at(worker, link, call, error, result);
}

void sockets_queue(struct worker *worker, struct process *process, uint32_t first)
{
    struct object_pool *events = &worker->sched->events;
    if (process->backlog == OBJECT_NONE && !state_has_news_owner(process)) {
        process->backlog = first;
        return;
    }
    const enum state_duty duty =
        state_push_any(process, pid_generation(worker->context->self), event_reverse(events, first),
                       &event_at(events, first)->next);
    SKUA_ASSERT(duty == STATE_DONE); /* it is Ready, and its token is here */
}

void sockets_complete(struct worker *worker, struct process *process, uint64_t call, int error,
                      const skua_payload *result)
{
    uint32_t index = OBJECT_NONE;
    (void)complete_at(worker, &index, call, error, result);
    sockets_queue(worker, process, index);
}

void sockets_end_call(struct worker *worker, struct process *process, uint64_t call, int error)
{
    const skua_payload nothing = skua_payload_empty(0);
    if (call != 0 && sockets_claim(worker, call)) {
        sockets_complete(worker, process, call, error, &nothing);
    }
}

/* ---- lingering ---- */

/* Nothing is left of the socket but its slot, for unopen_locked. */
static void dispose(struct sockets *sockets, struct socket *socket, bool reset)
{
    struct transport *transport = sockets->transport;
    if (socket->kind == SOCKET_LISTENER && !socket->extra->is_adopted &&
        transport->unlisten != NULL) {
        transport->unlisten(transport, socket_fd(socket));
    }
    if (socket->extra != NULL && socket->extra->held != 0) {
        transport->close(transport, (int)socket->extra->held - 1, true);
    }
    if (socket_fd(socket) >= 0) {
        transport->close(transport, socket_fd(socket), reset);
    }
    block_free(socket->input);
    socket->input = NULL;
    free_extra(sockets, socket);
}

/* What the peer has sent and nobody has read would make the system reset the connection, and the
 * peer might lose what it has not read. */
static void discard_input(struct sockets *sockets, struct socket *socket)
{
    unsigned char nowhere[4096];
    for (int i = 0; i < DISCARD_ROUNDS; i++) {
        if (transport_read(sockets->transport, socket_fd(socket), nowhere, sizeof nowhere) <= 0) {
            return;
        }
    }
}

/* What is left of its output goes to a list, for socket_release_output. */
static void end_lingering_locked(struct sockets *sockets, struct worker *worker, uint32_t slot,
                                 bool reset, uint32_t *list)
{
    struct socket *socket = socket_at(sockets, slot);
    socket_put_output_aside(sockets, socket, list);
    if (!reset) {
        discard_input(sockets, socket);
    }
    /* Under lock; MO-stop: before the stop is told. */
    store_seq_cst(&sockets->lingering, load_relaxed(&sockets->lingering) - 1);
    dispose(sockets, socket, reset);
    unopen_locked(sockets, worker, slot);
    shutdown_worker_is_quiet(sockets->sched);
}

/* Writes on for a socket without an owner, if it is still the one that the key names. */
void sockets_go_on_lingering(struct sockets *sockets, struct worker *worker, uint64_t key)
{
    const uint32_t slot = socket_slot(key);
    struct socket *socket = socket_at(sockets, slot);
    uint32_t list = OBJECT_NONE;
    mutex_lock(&sockets->lock);
    if (socket_word_generation(load_relaxed(&socket->word)) == (uint32_t)key) { /* under lock */
        const uint64_t now = time_now(sockets->sched->time);
        const uint32_t flags =
            socket_word_clear_owner(&socket->word, SOCKET_WRITABLE | SOCKET_ALARM);
        if (socket_write_lingering_locked(sockets, worker, socket, &list)) {
            end_lingering_locked(sockets, worker, slot, socket->failure != 0, &list);
        } else if ((flags & SOCKET_FAILED) != 0 || now >= socket_progress_end(socket)) {
            end_lingering_locked(sockets, worker, slot, true, &list);
        } else {
            sockets_set_alarm(sockets, worker, socket, socket_progress_end(socket));
        }
    }
    mutex_unlock(&sockets->lock);
    socket_release_output(sockets, worker, list);
}

/* ---- closing ---- */

static bool may_have_input(struct socket *socket)
{
    const uint32_t flags = (uint32_t)load_relaxed(&socket->word) | socket->ready; /* hint */
    return (flags & (SOCKET_READABLE | SOCKET_URGENT)) != 0 && (socket->flags & SOCKET_ENDED) == 0;
}

static void end_yields(struct sockets *sockets, struct worker *worker, struct process *process,
                       struct socket *socket, int error)
{
    const uint64_t reader = socket->reader;
    socket->reader = 0;
    socket_end_writes(sockets, worker, process, socket, error);
    sockets_end_call(worker, process, reader, error);
    if (socket->extra != NULL) {
        const uint64_t waiter = socket->extra->end_waiter;
        socket->extra->end_waiter = 0;
        sockets_end_call(worker, process, waiter, error);
    }
}

void sockets_close(struct sockets *sockets, struct worker *worker, struct process *process,
                   uint32_t slot, bool reset)
{
    struct socket *socket = socket_at(sockets, slot);
    sockets_unlist(sockets, process, socket);
    end_yields(sockets, worker, process, socket, SKUA_E_CLOSED);
    if (reset || socket->failure != 0 || (socket->flags & SOCKET_BROKEN) != 0) {
        socket_drop_output(sockets, worker, process, socket, SKUA_E_CLOSED);
        reset = socket->kind == SOCKET_STREAM;
    } else if (socket->kind == SOCKET_STREAM && may_have_input(socket)) {
        discard_input(sockets, socket);
    }
    const bool lingers = socket->first != OBJECT_NONE;
    const uint64_t key = socket_key(socket, slot);
    if (!lingers) {
        dispose(sockets, socket, reset); /* without the lock: the system may take a while */
    }
    mutex_lock(&sockets->lock);
    if (lingers) {
        store_relaxed(&sockets->lingering, load_relaxed(&sockets->lingering) + 1); /* under lock */
        /* In this order, so that there is always one of both: see ring. */
        (void)socket_word_linger_owner(&socket->word);
        store_release(&socket->owner, 0); /* MO-give */
    } else {
        unopen_locked(sockets, worker, slot);
    }
    mutex_unlock(&sockets->lock);
    if (lingers) {
        sockets_go_on_lingering(sockets, worker, key); /* what was reported meanwhile */
    }
}

int sockets_release(struct sockets *sockets, struct worker *worker, struct process *process,
                    uint32_t slot, int *fd)
{
    struct socket *socket = socket_at(sockets, slot);
    const int number = socket_fd(socket);
    const int refused = sockets->transport->detach(sockets->transport, number);
    if (refused < 0) {
        return sockets_error(-refused);
    }
    sockets_unlist(sockets, process, socket);
    mutex_lock(&sockets->lock);
    free_extra(sockets, socket);
    unopen_locked(sockets, worker, slot);
    mutex_unlock(&sockets->lock);
    *fd = number;
    return 0;
}

void sockets_fail(struct sockets *sockets, struct worker *worker, struct process *process,
                  struct socket *socket, int error)
{
    socket->failure = (int16_t)error;
    socket_drop_output(sockets, worker, process, socket, error);
    end_yields(sockets, worker, process, socket, error);
    sockets->transport->close(sockets->transport, socket_fd(socket), true);
    store_relaxed(&socket->fd, UINT32_MAX); /* for inspectors */
}

void sockets_break(struct sockets *sockets, struct worker *worker, struct process *process,
                   struct socket *socket, uint32_t slot)
{
    socket->flags |= SOCKET_BROKEN | SOCKET_HUNG_UP;
    socket->ready |= SOCKET_READABLE; /* what came before, or the end */
    socket_drop_output(sockets, worker, process, socket, SKUA_E_RESET);
    socket_go_on_reading(sockets, worker, process, socket, slot);
    if (socket->extra != NULL) {
        const uint64_t waiter = socket->extra->end_waiter;
        socket->extra->end_waiter = 0;
        sockets_end_call(worker, process, waiter, SKUA_E_RESET);
    }
}

/* ---- beginning and end ---- */

static uint32_t sockets_count_lingering(struct socket_hooks *hooks)
{
    return load_seq_cst(&sockets_of_hooks(hooks)->lingering); /* MO-stop */
}

void sockets_init(struct sockets *sockets, struct scheduler *sched, struct transport *transport)
{
    memset(sockets, 0, sizeof *sockets);
    sockets->hooks = (struct socket_hooks){.alarm = sockets_look_around,
                                           .take = sockets_take,
                                           .drop = sockets_drop,
                                           .leave = sockets_leave,
                                           .lingering = sockets_count_lingering,
                                           .give_at_spawn = sockets_give_at_spawn,
                                           .take_back = sockets_take_back,
                                           .show = sockets_show_nodes,
                                           .list = sockets_list_slots};
    sockets->sched = sched;
    sockets->transport = transport;
    mutex_init(&sockets->lock);
}

void sockets_attach(struct sockets *sockets)
{
    struct service *services = sockets->sched->services;
    sockets->sched->sockets = &sockets->hooks;
    services[SERVICE_ACCEPT] =
        (struct service){.name = "accept", .start = sockets_start_accept, .arg = sockets};
    services[SERVICE_CONNECT] = (struct service){.name = "connect",
                                                 .start = sockets_start_connect,
                                                 .discard = sockets_discard_connect,
                                                 .arg = sockets};
    services[SERVICE_READ] =
        (struct service){.name = "read", .start = sockets_start_read, .arg = sockets};
    services[SERVICE_WRITE] = (struct service){.name = "write",
                                               .start = sockets_start_write,
                                               .discard = sockets_discard_write,
                                               .arg = sockets};
    services[SERVICE_HANGUP] =
        (struct service){.name = "hangup", .start = sockets_start_hangup, .arg = sockets};
}

/* Closes what lingers; nothing else is left when the processes have ended. */
static void close_lingering(struct sockets *sockets)
{
    uint32_t list = OBJECT_NONE;
    mutex_lock(&sockets->lock);
    for (uint32_t slot = 1; load_relaxed(&sockets->lingering) > 0; slot++) { /* under lock */
        struct socket *socket = socket_at(sockets, slot);
        if (((uint32_t)load_relaxed(&socket->word) & SOCKET_LINGERS) != 0) { /* under lock */
            end_lingering_locked(sockets, NULL, slot, true, &list);
        }
    }
    mutex_unlock(&sockets->lock);
    socket_release_output(sockets, NULL, list);
}

void sockets_deinit(struct sockets *sockets)
{
    struct scheduler *sched = sockets->sched;
    if (load_relaxed(&sockets->is_ready) != 0) { /* at the end */
        close_lingering(sockets);
        for (uint32_t i = 0; i < sched->capacity; i++) {
            block_free(sockets->scratch[i].block);
            payload_free_spare(sockets->scratch[i].spare);
        }
        object_pool_deinit(&sockets->pool);
        store_relaxed(&sockets->is_ready, 0); /* the last audit is still to come */
    }
    const uint32_t slots = sched->table.pool.segment_count *
                           (uint32_t)(OBJECT_POOL_SEGMENT_SIZE / sizeof(struct process));
    const size_t entries = (slots >> SOCKETS_OWNED_SHIFT) + 1;
    if (sockets->owned != NULL) {
        for (size_t i = 0; i < entries; i++) {
            allocator_free(&sched->allocator, load_relaxed(&sockets->owned[i]), /* at the end */
                           SOCKETS_OWNED_SPAN * sizeof(uint32_t), alignof(uint32_t));
        }
    }
    allocator_free(&sched->allocator, sockets->owned, entries * sizeof(atomic_ptr),
                   alignof(atomic_ptr));
    allocator_free(&sched->allocator, sockets->scratch, scratch_size(sockets),
                   alignof(struct socket_scratch));
    mutex_deinit(&sockets->lock);
}
