/* SPDX-License-Identifier: MIT */
/* What processes say of themselves (sched/describe.h), as lines of docs/inspector.md. */
#ifndef SKUA_INSPECT_DESCRIBED_H
#define SKUA_INSPECT_DESCRIBED_H

#include "inspect/text.h"
#include "sched/describe.h"

/* A line `described` for each of up to DESCRIBE_MAX processes. Returns how many were asked, with
 * those that owe them answers. */
NODISCARD uint32_t described_add(struct scheduler *sched, const skua_pid *pids, uint32_t count,
                                 struct text *out);

/* The same for one, with all there is to say of it. */
NODISCARD uint32_t described_add_details(struct scheduler *sched, skua_pid pid, struct text *out);

#endif
