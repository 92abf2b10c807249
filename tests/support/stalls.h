/* SPDX-License-Identifier: MIT */
/* What a runtime says of steps that do not return, by its on_stall:
 *
 *   stalls_open((skua_runtime_config){.worker_count = 1});
 *   struct actor *culprit = actor_start(ACTS(holds(), finishes(0)));
 *   (void)stall_await(culprit);
 *   assert_stalled_once(culprit, culprit->type.name);
 *   actor_let_go(culprit);
 *
 * A slow machine may make other steps stuck as well, so tests ask about their culprits. */
#ifndef SKUA_TESTS_STALLS_H
#define SKUA_TESTS_STALLS_H

#include "actor.h"
#include "watch/backtrace.h"

#define STALLS_MAX 256 /* that are noted */

struct stall_record {
    skua_stall stall; /* its frames are those below */
    uint64_t when;    /* of the call */
    void *frames[BACKTRACE_MAX];
};

/* world_open_with and world_create, noting stalls. A step is stuck after the library's default
 * time, if the configuration has no other. */
void stalls_open(skua_runtime_config config);
void stalls_create(skua_runtime_config config);

/* Has the monitor's thread call `react` for the first culprit of this type as well, after the
 * stall was noted and before anybody sees that. Before the culprit is started. */
void stalls_react(const char *type_name, void (*react)(const skua_stall *stall));

/* Until the actor's process was named; returns how, the last time. */
struct stall_record stall_await(const struct actor *actor);

/* How often it was named, and all together. Also when the runtime is gone. */
uint32_t stall_count_of(const struct actor *actor);
uint32_t stall_count(void);

/* That it was named once, as being of this type, and stuck for a time that is possible. */
void assert_stalled_once(const struct actor *actor, const char *type_name);

/* Whether a step that has begun since this instant of the monotonic clock cannot be stuck yet.
 * Tests in which a short step comes before what is stuck ask, and begin anew if a slow machine was
 * too late for that. */
bool stalls_are_impossible_since(uint64_t instant);

/* That nobody was told return addresses. */
void assert_stalls_without_frames(void);

#endif
