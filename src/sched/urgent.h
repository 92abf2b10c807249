/* SPDX-License-Identifier: MIT */
/* Urgent messages: a step gets them before the ordinary events that wait.
 *
 * They go the way of all events, as nodes of type EVENT_URGENT. The backlog has them in front. So
 * when the owner takes the event list whole, it sorts. But mostly it leaves the list alone until
 * the backlog is used up, as there is no way to append to that but to walk to its end. The bit
 * STATE_URGENT then says that an urgent message is in the list, and the owner fetches it: it takes
 * the list, picks out the urgent ones, and puts the others back where they were, at the bottom,
 * below what has come meanwhile. Only whoever holds the token takes from the list, and pushers
 * read no links, so it may write to those of the nodes in there.
 *
 * If every fetch went through the whole list, a hundred urgent messages to a process that a million
 * others wait for would take minutes. So what is put back is one node, a bundle, at the bottom of
 * the list: the next fetch looks at what has come since and adds it to the bundle. Without memory
 * for the bundle the events go back one by one.
 *
 * While the backlog has urgent ones in front there is nothing to fetch: those in the list are
 * younger. A batch ends behind them if there are more in the list (urgent_are_more_to_come). */
#ifndef SKUA_SCHED_URGENT_H
#define SKUA_SCHED_URGENT_H

#include "sched/scheduler.h"

static inline bool urgent_is(const struct event_node *node)
{
    return node->as.event.type == EVENT_URGENT;
}

/* Whether the backlog begins with one. */
static inline bool urgent_is_first(const struct object_pool *events, const struct process *process)
{
    return process->backlog != OBJECT_NONE && urgent_is(event_at(events, process->backlog));
}

/* Sorts a backlog that the event list was just added to. */
void urgent_sort(struct worker *worker, struct process *process);

/* Fetches those in the event list, which stays where it is otherwise. */
void urgent_fetch(struct worker *worker, struct process *process);

/* Whether what follows this urgent message in the backlog must wait for others in the list. */
NODISCARD bool urgent_are_more_to_come(const struct object_pool *events, struct process *process,
                                       const struct event_node *node);

/* The events of a bundle, at a link of the backlog, take its place. */
void urgent_unpack(struct worker *worker, uint32_t *link);

/* A bundle has come to the front of the backlog and was taken out: the same. */
void urgent_take_bundle(struct worker *worker, struct process *process, uint32_t index);

#endif
