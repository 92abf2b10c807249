/* SPDX-License-Identifier: MIT */
/* Whom an ending process must tell: callers that it owes an answer, processes that watch it or are
 * linked to it. They are in its annex, and in ending.notices if their signals had not been taken
 * yet. */
#ifndef SKUA_SCHED_FAREWELL_H
#define SKUA_SCHED_FAREWELL_H

#include "sched/scheduler.h"

/* The process is about to be closed to events: gives up what others can find it by, or push to it
 * without being asked: its names, its groups, its calls, and what it owes (ending.unclosed). Lowers
 * `*budget`; false if there is more. */
NODISCARD bool farewell_leave(struct worker *worker, struct process *process, struct ending *ending,
                              uint32_t *budget);

/* Whether others hear of its end, so that the log need not. Whoever ends with it hears of nothing:
 * of processes that are linked in a circle each might count on the next. */
NODISCARD bool farewell_is_watched(struct scheduler *sched, struct process *process,
                                   const struct ending *ending);

/* Whether so many must be told, or so many blocks of its memory freed, that it takes several
 * slices. */
NODISCARD bool farewell_is_long(struct scheduler *sched, struct process *process,
                                const struct ending *ending);

/* Tells one of them; false if there is nobody left. `annex` is that of the process, or null. The
 * result may go to one that joins. */
bool farewell_tell(struct worker *worker, struct annex *annex, struct ending *ending);

#endif
