/* SPDX-License-Identifier: MIT */
/* Command handlers for tests. The desk belongs to the current world; open it between world_create
 * and world_start:
 *
 *   world_create((skua_runtime_config){0});
 *   struct desk *desk = desk_open();
 *   world_start();
 *   struct actor *actor = actor_start(ACTS(yields(1, DESK_KEEP, 0, 21)));
 *   desk_await_kept(desk, 1);
 *   assert_int_equal(desk_complete(desk, 0, 0, 42), 0); */
#ifndef SKUA_TESTS_DESK_H
#define SKUA_TESTS_DESK_H

#include "world.h"

#define DESK_KEPT_MAX 1024
#define DESK_ERROR    (SKUA_E_USER - 90) /* what DESK_FAIL returns */
#define DESK_RESULT   UINT32_C(90)       /* the type of results */

/* The commands. */
enum {
    DESK_DOUBLE,   /* completes at once, with twice the number of its payload */
    DESK_FAIL,     /* returns DESK_ERROR */
    DESK_KEEP,     /* stays pending until the test completes it */
    DESK_COMPLETE, /* completes by a call before it returns, with the number of its payload */
    DESK_STICK,    /* does not return until desk_release, and then completes: its worker is held */
    DESK_UNKNOWN,  /* has no handler */
};

struct desk {
    pthread_mutex_t lock;
    skua_completion kept[DESK_KEPT_MAX]; /* by DESK_KEEP, in their order */
    uint64_t deadlines[DESK_KEPT_MAX];
    struct tally kept_count;
    struct tally stuck;
    struct tally released;
    atomic_uint calls;
    /* Of the last call, for the test that made it. */
    uint32_t last_command;
    skua_runtime *last_runtime;
};

struct desk *desk_open(void);

/* world_create, desk_open and world_start. */
struct desk *desk_open_with(skua_runtime_config config);

/* Opens a world of virtual time with a desk in it. */
struct desk *desk_open_virtual(void);

void desk_await_kept(struct desk *desk, uint64_t count);

/* Completes the n-th that was kept; returns what skua_command_complete did. Any thread. */
int desk_complete(struct desk *desk, size_t n, int error, uint64_t value);
int desk_complete_with(struct desk *desk, size_t n, skua_payload result);

/* That the n-th ended before: a completion now is refused, and its result dropped and counted. */
void assert_late(struct desk *desk, size_t n);

/* Until some DESK_STICK does not return; lets all go on that are held so. */
void desk_await_stuck(struct desk *desk, uint64_t count);
void desk_release(struct desk *desk);

#endif
