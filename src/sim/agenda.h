/* SPDX-License-Identifier: MIT */
/* What will happen in a simulation at a later instant, beside timers: messages that are delayed,
 * commands that complete later, functions on blocking pools. */
#ifndef SKUA_SIM_AGENDA_H
#define SKUA_SIM_AGENDA_H

#include <skua/command.h>

#include "base/alloc.h"
#include "blocking/pool.h"
#include "sched/deliver.h"

enum agenda_type { AGENDA_MESSAGE, AGENDA_COMPLETION, AGENDA_JOB };

struct agenda_item {
    uint64_t when;
    uint64_t serial; /* items of one instant happen in the order they were added */
    enum agenda_type type;
    skua_payload payload; /* of the message or the completion */
    union {
        struct {
            skua_pid from;
            skua_pid to;
            struct prepared_message prepared;
        } message;
        struct {
            skua_completion call;
            int error;
        } completion;
        struct blocking_job *job;
    } as;
};

struct agenda {
    const struct allocator *allocator;
    struct agenda_item *items; /* a binary heap, the next one first */
    size_t count;
    size_t capacity;
    uint64_t serial;
};

void agenda_init(struct agenda *agenda, const struct allocator *allocator);

/* After it has been emptied. */
void agenda_deinit(struct agenda *agenda);

/* Makes sure that the next item fits; false if there is no memory. */
NODISCARD bool agenda_make_room(struct agenda *agenda);

/* Adds an item, for which there is room. */
void agenda_add(struct agenda *agenda, const struct agenda_item *item);

/* When the next item is due; UINT64_MAX if there is none. */
uint64_t agenda_next(const struct agenda *agenda);

/* Takes the next item out; there must be one. */
void agenda_take(struct agenda *agenda, struct agenda_item *item);

/* Takes out a message to this process; false if there is none. */
NODISCARD bool agenda_take_message(struct agenda *agenda, skua_pid to, struct agenda_item *item);

/* When the last message between these two will arrive; 0 if none is under way. */
uint64_t agenda_last_message(const struct agenda *agenda, skua_pid from, skua_pid to);

#endif
