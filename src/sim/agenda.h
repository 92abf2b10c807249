/* SPDX-License-Identifier: MIT */
/* What a simulation will do at a later instant, apart from timers: deliver delayed messages and
 * what must not overtake them, complete commands, run functions of blocking pools, let bytes
 * arrive. */
#ifndef SKUA_SIM_AGENDA_H
#define SKUA_SIM_AGENDA_H

#include <skua/command.h>

#include "base/allocator.h"
#include "blocking/pool.h"
#include "sched/deliver.h"

enum agenda_type { AGENDA_EVENT, AGENDA_SIGNAL, AGENDA_COMPLETION, AGENDA_JOB, AGENDA_NETWORK };

struct agenda_item {
    uint64_t when;
    uint64_t serial; /* items of one instant happen in the order they were added */
    enum agenda_type type;
    skua_payload payload; /* of the event or the completion */
    /* What one process does to another: the sender, and the process whose turn it was, which differ
     * in init. Items with either of them and the receiver in common stay in order. Zero if this
     * is none of that. */
    skua_pid sender;
    skua_pid turn;
    skua_pid to;
    bool is_urgent; /* it overtakes those that are not */
    union {
        struct prepared_event event;
        uint32_t signal; /* its node */
        struct {
            skua_completion call;
            int error;
        } completion;
        struct blocking_job *job;
        struct {
            uint32_t what; /* of the network it concerns: see network.h */
            uint32_t matter;
        } network;
    } as;
};

struct agenda {
    const struct allocator *allocator;
    struct agenda_item *items; /* a binary heap, the next one first */
    size_t count;
    size_t capacity;
    size_t ordered;  /* items that have a receiver */
    size_t reserved; /* places that are kept free for items of the network */
    uint64_t serial;
};

void agenda_init(struct agenda *agenda, const struct allocator *allocator);

/* After it has been emptied. */
void agenda_deinit(struct agenda *agenda);

/* Reserves room for one more item; false if there is no memory. */
NODISCARD bool agenda_make_room(struct agenda *agenda);

/* Adds an item; agenda_make_room has made room for it, or agenda_reserve if it is one of the
 * network's. */
void agenda_add(struct agenda *agenda, const struct agenda_item *item);

/* Keeps places free for items of the network, for what must not fail later; false if there is no
 * memory. An item that is taken gives its place back. */
NODISCARD bool agenda_reserve(struct agenda *agenda, size_t places);
void agenda_release(struct agenda *agenda, size_t places);

/* The same for a completion. Takes result. */
void agenda_add_completion(struct agenda *agenda, uint64_t when, skua_completion call, int error,
                           skua_payload *result);

/* When the next item is due; UINT64_MAX if there is none. */
uint64_t agenda_next(const struct agenda *agenda);

/* Removes the next item; there must be one. */
void agenda_take(struct agenda *agenda, struct agenda_item *item);

/* Removes an event or a signal for this process; false if there is none. */
NODISCARD bool agenda_take_event(struct agenda *agenda, skua_pid to, struct agenda_item *item);

/* The same for a signal only. */
NODISCARD bool agenda_take_signal(struct agenda *agenda, skua_pid to, struct agenda_item *item);

/* Removes an item of the network, which must be there. */
void agenda_take_network(struct agenda *agenda, uint32_t what, uint32_t matter);

/* When the last item that must precede this one will arrive; 0 if there is none. */
uint64_t agenda_last(const struct agenda *agenda, const struct agenda_item *next);

#endif
