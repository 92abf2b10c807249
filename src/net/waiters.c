/* SPDX-License-Identifier: MIT */
#include "net/waiters.h"

#include <stdalign.h>

#include "sched/deliver.h"
#include "sched/note.h"

#define READABLE ((uint32_t)EPOLLIN | (uint32_t)EPOLLRDHUP)
#define WRITABLE ((uint32_t)EPOLLOUT)

/* Ended waiters do not matter as long as there are few waiters. */
#define WAITERS_FEW 8

void waiters_remove_locked(struct net *net, struct net_waiter **link)
{
    struct net_waiter *waiter = *link;
    *link = waiter->next;
    allocator_free(&net->sched->allocator, waiter, sizeof *waiter, alignof(struct net_waiter));
}

void waiters_count_locked(struct net *net, bool before, bool after)
{
    if (!before && after) {
        (void)fetch_add_seq_cst(&net->sched->poll.waits, 1); /* P1, MO-poll */
    } else if (before && !after) {
        (void)fetch_sub_seq_cst(&net->sched->poll.waits, 1); /* MO-poll */
    }
}

uint32_t waiters_wanted_by(const struct net_waiter *waiter)
{
    return waiter->writes ? WRITABLE : READABLE;
}

uint32_t waiters_readiness_of(uint32_t events)
{
    const uint32_t failed = EPOLLERR | EPOLLHUP;
    return ((events & (READABLE | failed)) != 0 ? READABLE : 0) |
           ((events & (WRITABLE | failed)) != 0 ? WRITABLE : 0);
}

static void complete_wait_locked(struct net *net, struct worker *worker,
                                 const struct net_waiter *waiter, int error)
{
    skua_payload nothing = skua_payload_empty(0);
    const int late = deliver_completion(net->sched, worker, waiter->completion, error, &nothing);
    if (late == 0 && error == 0) {
        NOTE_COUNT(net->sched, worker, ready);
    }
}

void waiters_scan_locked(struct net *net, struct worker *worker, struct net_descriptor *descriptor,
                         uint32_t events, int error)
{
    struct net_waiter **link = &descriptor->waiters;
    descriptor->wanted = 0;
    descriptor->count = 0;
    while (*link != NULL) {
        struct net_waiter *waiter = *link;
        const bool open = deliver_is_open(net->sched, waiter->completion);
        const bool ends = error != 0 || (events & waiters_wanted_by(waiter)) != 0;
        if (open && !ends) {
            descriptor->wanted |= waiters_wanted_by(waiter);
            descriptor->count++;
            link = &waiter->next;
            continue;
        }
        if (open) {
            complete_wait_locked(net, worker, waiter, error);
        }
        waiters_remove_locked(net, link);
    }
    descriptor->scan_at = 2 * descriptor->count + WAITERS_FEW;
}
