/* SPDX-License-Identifier: MIT */
/* A process in two versions that behave alike, but keep their state in another way: a counter. It
 * adds the number of each message to its total, answers a call with its total, and says how it was
 * upgraded. */
#ifndef SKUA_TESTS_VERSIONS_H
#define SKUA_TESTS_VERSIONS_H

#include "world.h"

/* What a counter does with a message of this type; with any other it adds. */
enum counter_message {
    COUNTER_ADD,
    COUNTER_BECOME, /* calls skua_become with the type that the payload points to */
    COUNTER_DONE,   /* ends, with its total */
    COUNTER_FAIL,   /* becomes the type, and fails in the same step */
    COUNTER_LEAVE,  /* becomes the type, and is done in the same step */
    COUNTER_WAIT,   /* one that serves waits for the next COUNTER_GO */
    COUNTER_GO,
};

/* Steps: the state is in the record in all four combinations, and too large for it. */
extern const skua_process_type counter_small_1; /* 8 bytes */
extern const skua_process_type counter_large_1; /* 200 bytes */
extern const skua_process_type counter_small_2; /* 40 bytes */
extern const skua_process_type counter_large_2; /* 300 bytes */
extern const skua_process_type counter_small_3;

/* The same that serve. */
extern const skua_process_type counter_serve_1; /* 8 bytes */
extern const skua_process_type counter_serve_2; /* 60 bytes: too many for a task */

/* A version 2 that fails to migrate with COUNTER_REFUSES, after having written to the new state. */
#define COUNTER_REFUSES (SKUA_E_USER - 38)
extern const skua_process_type counter_refuses;

/* What all of them have seen; reset by counters_reset. */
extern atomic_uint counter_migrations; /* that succeeded */
extern atomic_uint counter_closes;
extern atomic_int counter_told; /* the error of the last SKUA_EVENT_BECOME */
void counters_reset(void);

skua_pid counter_start(const skua_process_type *type);
void counter_add(skua_pid pid, uint64_t number);

/* Has a counter do something with a type. */
void counter_order(skua_pid pid, enum counter_message what, const skua_process_type *type);

/* Its total, by a call. */
uint64_t counter_total(skua_pid pid);

/* The version that it has, once it has no more to do. */
uint32_t counter_version(skua_pid pid);

/* Upgrades all counters of a type; returns as skua_runtime_upgrade does. */
int counters_upgrade(const skua_process_type *from, const skua_process_type *to);

/* Until everybody who was asked has answered. */
skua_upgrade_progress counters_await(const skua_process_type *from, const skua_process_type *to);

#endif
