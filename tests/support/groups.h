/* SPDX-License-Identifier: MIT */
/* Acts of actors that are in groups, watch them and write to them, and what the test sees of it.
 *
 *   struct actor *member = actor_start(ACTS(enters("choir"), expects(message(SONG, 1))));
 *   struct actor *other = actor_new(ACTS(publishes(7, "choir", SONG, 1), awaits(1)));
 *
 * Texts are borrowed until the end of the test. */
#ifndef SKUA_TESTS_GROUPS_H
#define SKUA_TESTS_GROUPS_H

#include "relations.h"

#include <skua/group.h>

/* ---- acts ---- */

struct act enters(const char *group);
struct act leaves(const char *group);
struct act watches(uint64_t tag, const char *group);
struct act publishes(uint64_t tag, const char *group, uint32_t type, uint64_t number);

/* ---- what an actor has seen ---- */

struct seen joined(uint64_t tag, const struct actor *member);
struct seen left(uint64_t tag, const struct actor *member);
/* In this order. */
#define snapshot_of(tag, ...)                                                                      \
    snapshot_of_these(tag, (const struct actor *const[]){__VA_ARGS__},                             \
                      COUNT_OF(((const struct actor *const[]){__VA_ARGS__})))
struct seen snapshot_of_these(uint64_t tag, const struct actor *const *members, size_t count);
struct seen empty_snapshot(uint64_t tag);
struct seen published(uint64_t tag, uint64_t accepted, uint64_t refused);

/* ---- from the thread of the test ---- */

/* That these are the members, in this order. */
#define assert_members(group, ...)                                                                 \
    assert_these_members(group, (const struct actor *const[]){__VA_ARGS__},                        \
                         COUNT_OF(((const struct actor *const[]){__VA_ARGS__})))
void assert_these_members(const char *group, const struct actor *const *members, size_t count);
void assert_no_members(const char *group);

/* How many groups there are. */
int group_count(void);

#endif
