/* SPDX-License-Identifier: MIT */
/* Acts of actors that have names and find each other by them, and what the test sees of it.
 *
 *   struct actor *holder = actor_start(ACTS(takes_name("clock")));
 *   struct actor *other = actor_new(ACTS(awaits_name(7, "clock"), awaits(1),
 *                                        sends_to_name("clock", 0, 5), finishes(0)));
 *
 * Texts are borrowed until the end of the test. */
#ifndef SKUA_TESTS_NAMES_H
#define SKUA_TESTS_NAMES_H

#include "relations.h"

/* ---- acts ---- */

/* Takes a name, which nobody has. That it succeeds gives no holder. */
struct act takes_name(const char *name);
/* Tries to, but another has it, perhaps itself, and is given. */
struct act meets_holder(const char *name, struct actor *holder);
struct act gives_up_name(const char *name);
struct act takes_label(const char *label);

/* That this actor has the name; null: nobody has. */
struct act finds(const char *name, struct actor *holder);

/* A yield and its completion. */
struct act awaits_name(uint64_t tag, const char *name);
struct seen holder_of(uint64_t tag, const struct actor *holder);

struct act sends_to_name(const char *name, uint32_t type, uint64_t number);
struct act sends_item_to_name(const char *name, struct tracked *item);
struct act asks_name(uint64_t tag, const char *name, uint64_t number);
struct act asks_name_item(uint64_t tag, const char *name, struct tracked *item);

/* Starts an actor with a name; the second finds that another has it, and is given that. */
struct act spawns_named(struct actor *actor, const char *name);
struct act finds_by_spawn(struct actor *actor, skua_spawn_options options, struct actor *holder);

/* ---- from the thread of the test ---- */

/* Starts one with these options; returns what skua_process_submit_with did. Any thread. */
int actor_try_submit_with(struct actor *actor, skua_spawn_options options, skua_pid *pid);
struct actor *named_start(const char *name, struct script script);

void assert_found(const char *name, const struct actor *holder);
void assert_nobody_has(const char *name);

/* The label of an actor that rests, in a world that has settled; "" if it has none. */
const char *label_of(const struct actor *actor);

#endif
