/* SPDX-License-Identifier: MIT */
/* What a step asks for: whether it is done, and its yields. Each worker has one and reuses it for
 * every step. */
#ifndef SKUA_PROCESS_STEP_OUTPUT_H
#define SKUA_PROCESS_STEP_OUTPUT_H

#include <skua/error.h>
#include <skua/process.h>

#include "base/allocator.h"
#include "process/event.h"

enum step_status { STEP_WAITS, STEP_CONTINUES, STEP_DONE };

/* Event nodes that a worker keeps for steps that meet SKUA_E_NO_MEMORY and want to sleep. */
#define STEP_RESERVE 8

struct address;
struct blocking_call;
struct group_watch;
struct publishing;

/* Something that the step asked for. Its node will carry the completion; acquiring it up front
 * means that nothing can fail once the yield is accepted. */
struct yield {
    uint32_t command; /* a program's, or that of a service (dispatch/service.h) */
    uint32_t node;    /* OBJECT_NONE: not a yield, but what is done in its place among them: a write
                       * that nobody waits for, a change of the type, or else taking back those
                       * tagged `cancels` */
    union {
        uint64_t timeout; /* from the end of the step on; SKUA_FOREVER: none */
        uint64_t cancels;
    };
    union {
        skua_payload payload;       /* of a program's command */
        uint64_t duration;          /* of a sleep or ticker */
        uint64_t instant;           /* of a timer */
        int fd;                     /* of a wait for a descriptor */
        struct blocking_call *call; /* of a function on a blocking pool */
        struct {                    /* of a call, a monitor or a send */
            skua_pid pid;           /* of whom */
            uint32_t node;          /* that is sent there */
            uint32_t dependent;     /* of a call on behalf of a request: a node for that */
            skua_request request;
            uint64_t deadline; /* of a call, known when it is dispatched */
        } peer;
        struct { /* of who waits for a name */
            char *text;
            uint32_t node; /* that waits */
        } name;
        struct { /* of who watches a group */
            char *text;
            struct group_watch *watch;
        } group;
        struct { /* of what is published */
            struct publishing *record;
            uint32_t node; /* for later slices of it */
        } publish;
        struct { /* of a read, or of who waits for a connection or the end of input */
            skua_socket socket;
            size_t want;
            uint32_t delimiter;
            uint8_t mode; /* as in net/sockets.h */
        } read;
        struct { /* of a write */
            skua_socket socket;
            uint32_t node; /* that carries the bytes */
        } write;
        uint32_t become;           /* the node of a request to change the type (sched/upgrade.h) */
        struct address *addresses; /* of a connect: where to, and from where (net/sockets.h) */
    } as;
};

struct step_output {
    enum step_status status;
    uint32_t yield_count;
    uint32_t yield_capacity;
    struct yield *yields;
    skua_payload result; /* of STEP_DONE */
    /* Set once, by the worker. */
    const struct allocator *allocator;
    struct object_pool *events;
    struct pool_cache *event_cache;
    size_t payload_limit;
    uint32_t reserve_count;
    uint32_t reserve[STEP_RESERVE];
};

/* Begins a step. */
static inline void step_output_reset(struct step_output *out)
{
    out->status = STEP_WAITS;
    out->yield_count = 0;
}

/* Room for the first yields, so that they need no memory. False if there is none. */
NODISCARD bool step_output_init(struct step_output *out);
void step_output_deinit(struct step_output *out);

/* Whether a request can be added at once; otherwise step_output_refuse returns SKUA_E_DONE,
 * SKUA_E_NO_MEMORY, or 0 if there is room now. */
static inline bool step_output_has_room(const struct step_output *out)
{
    return LIKELY(out->status != STEP_DONE && out->yield_count < out->yield_capacity);
}
NODISCARD int step_output_refuse(struct step_output *out);

/* Appends a yield, for which there is room. */
static inline struct yield *step_output_append(struct step_output *out, uint64_t tag,
                                               uint32_t command, uint32_t node)
{
    event_at(out->events, node)->as.call.tag = tag;
    struct yield *yield = &out->yields[out->yield_count++];
    yield->command = command;
    yield->node = node;
    yield->timeout = SKUA_FOREVER;
    return yield;
}

/* Adds a yield of this command, whose arguments the caller fills in; it has no timeout. Returns 0,
 * SKUA_E_DONE or SKUA_E_NO_MEMORY. The second one draws on the reserve if there is no memory. */
NODISCARD static inline int step_output_add(struct step_output *out, uint64_t tag, uint32_t command,
                                            struct yield **yield)
{
    uint32_t node;
    const int error = step_output_has_room(out) ? 0 : step_output_refuse(out);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    if (UNLIKELY(!event_acquire_owner(out->events, out->event_cache, &node))) {
        return SKUA_E_NO_MEMORY;
    }
    *yield = step_output_append(out, tag, command, node);
    return 0;
}
NODISCARD int step_output_yield_reserved(struct step_output *out, uint64_t tag, uint32_t command,
                                         struct yield **yield);

/* As step_output_add, with a timeout. Also returns SKUA_E_DURATION. */
NODISCARD static inline int step_output_yield(struct step_output *out, uint64_t tag,
                                              uint32_t command, uint64_t timeout,
                                              struct yield **yield)
{
    if (UNLIKELY(timeout > SKUA_DURATION_MAX && timeout != SKUA_FOREVER)) {
        return SKUA_E_DURATION;
    }
    const int error = step_output_add(out, tag, command, yield);
    if (LIKELY(error == 0)) {
        (*yield)->timeout = timeout;
    }
    return error;
}

/* Whether it takes back others. */
static inline bool yield_cancels(const struct yield *yield)
{
    return yield->node == OBJECT_NONE && yield->command == 0;
}

/* Adds a request to take back yields. Returns 0, SKUA_E_DONE or SKUA_E_NO_MEMORY. */
NODISCARD int step_output_cancel(struct step_output *out, uint64_t tag);

/* The same for something that a service does without a completion. */
NODISCARD static inline int step_output_act(struct step_output *out, uint32_t command,
                                            struct yield **yield)
{
    const int error = step_output_has_room(out) ? 0 : step_output_refuse(out);
    if (LIKELY(error == 0)) {
        *yield = &out->yields[out->yield_count++];
        (*yield)->command = command;
        (*yield)->node = OBJECT_NONE;
        (*yield)->timeout = SKUA_FOREVER;
    }
    return error;
}

/* Fills the reserve as far as there is memory; empties it. */
void step_output_fill_reserve(struct step_output *out);
void step_output_drain_reserve(struct step_output *out);

#endif
