/* SPDX-License-Identifier: MIT */
/* What a runtime says of the ends of processes, by its on_exit:
 *
 *   struct exits *exits = exits_new();
 *   world_open_with((skua_runtime_config){NOTES_EXITS(exits)});
 *   struct actor *actor = actor_start(ACTS(fails(-1)));
 *   exits_await(exits, 1);
 *   assert_exited(exits, actor, -1); */
#ifndef SKUA_TESTS_EXITS_H
#define SKUA_TESTS_EXITS_H

#include "actor.h"

#define EXITS_MAX 64 /* that are noted; the others are only counted */

struct exits {
    bool take_results; /* out of the exits, which keep a copy here */
    atomic_uint count;
    atomic_uint failures; /* those that were no success */
    struct {
        skua_exit exit;
        unsigned closes; /* of an actor, at that moment */
    } list[EXITS_MAX];
    struct tally noted;
};

struct exits *exits_new(void);

/* In the configuration of a runtime. */
#define NOTES_EXITS(exits) .on_exit = exits_note, .on_exit_arg = (exits)
void exits_note(void *arg, skua_exit *exit);

void exits_await(struct exits *exits, uint64_t count);

/* That the end of this actor was told once, after its close, and was this one. */
void assert_exited(struct exits *exits, const struct actor *actor, int error);

#endif
