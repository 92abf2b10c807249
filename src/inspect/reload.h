/* SPDX-License-Identifier: MIT */
/* The requests `reload` and `upgrades` of docs/inspector.md. */
#ifndef SKUA_INSPECT_RELOAD_H
#define SKUA_INSPECT_RELOAD_H

#include "inspect/text.h"
#include "sched/scheduler.h"

/* Has the program load a file: `words` is its name and, after a tab, perhaps that of a type. Then
 * the answer has the upgrades that came of it. Returns 0, or an error with the reason in `why`,
 * which is empty if the error says it all. Modifies the words. */
NODISCARD int reload_file(struct scheduler *sched, char *words, struct text *out, char *why,
                          size_t why_size);

/* Adds the upgrades after this one, newest first. */
void reload_add_upgrades(struct scheduler *sched, uint64_t after, struct text *out);

#endif
