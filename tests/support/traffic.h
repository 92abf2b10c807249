/* SPDX-License-Identifier: MIT */
/* Two processes of the current world that send a message to and fro, of type "answerer": they keep
 * a program busy for as long as the test likes, and remember nothing. */
#ifndef SKUA_TESTS_TRAFFIC_H
#define SKUA_TESTS_TRAFFIC_H

#include "world.h"

struct traffic {
    skua_pid pids[2];
    atomic_uint_fast64_t left;     /* messages that may still be sent */
    atomic_uint_fast64_t messages; /* that have come */
};

/* They rest. The memory lives until the end of the test. */
struct traffic *traffic_start(void);

/* The first message to the first of them, and so many more in between. */
void traffic_begin(struct traffic *traffic, uint64_t more);
#define TRAFFIC_FOR_EVER UINT64_MAX /* until they are cancelled */

/* Until so many messages have come in all. */
void traffic_await(struct traffic *traffic, uint64_t messages);

/* Until both rest. */
void traffic_await_rest(const struct traffic *traffic);

#endif
