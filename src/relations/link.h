/* SPDX-License-Identifier: MIT */
/* Links: two processes that end together.
 *
 * A link is two nodes, its *halves*, each on the list of one party, and each knows where the other
 * is and which guard that has. Only the worker that runs a party touches its list. Whoever makes
 * the link files its own half and pushes the other to the peer, where it is filed on arrival.
 *
 * A half is also the signal that ends the link. When a party ends or unlinks, it takes its half off
 * its list, changes its guard, and pushes it to the peer. There it names the other half: if that
 * still has the guard that the signal knows, it is taken off the list and released, and what has to
 * be done is done; otherwise the peer has unlinked or ended, too, and its own half is on its way.
 * Either way the half that arrived is released; and whoever cannot push one, because the peer is
 * gone, releases it. So each half is released once, in whatever order ends and unlinks cross; no
 * signal is mistaken for that of another link, between the same two parties, say; and an unlink
 * needs no answer: from then on no signal finds the half.
 *
 * What is pushed from one process to another arrives in order, so a half is filed before the signal
 * that names it arrives. Only a process that ends may drop the two in another order, and has not
 * filed the half then: that still has its spare node, and is on no list. The signal leaves it
 * alone; it goes back to its maker, which has unlinked it, with the news of the end. */
#ifndef SKUA_RELATIONS_LINK_H
#define SKUA_RELATIONS_LINK_H

#include "process/annex.h"

/* Makes the two halves of a link on nodes that nobody knows yet. */
struct link_party {
    skua_pid pid;
    uint32_t half;
    uint32_t flags;
    uint64_t tag;
};
void link_make(struct object_pool *events, const struct link_party *one,
               const struct link_party *other);

/* Files a half; takes it off the list. After that, signals to it are stale. */
void link_file_owner(struct object_pool *events, struct annex *annex, uint32_t index);
void link_remove_owner(struct object_pool *events, struct annex *annex, uint32_t index);

/* The half that a signal names, if that is still on a list; or OBJECT_NONE. */
NODISCARD uint32_t link_find_peer_owner(const struct object_pool *events,
                                        const struct event_node *signal);

/* Takes one half off the list; there must be one. */
NODISCARD uint32_t link_take_owner(struct object_pool *events, struct annex *annex);

#endif
