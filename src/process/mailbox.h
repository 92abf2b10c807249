/* SPDX-License-Identifier: MIT */
/* How many messages wait in a mailbox, and the limit on them.
 *
 * A sender reserves a place before it pushes and returns it if it could not push; the worker counts
 * a message as consumed when it hands it to a step or drops it. Both counters belong to the slot
 * and outlive its processes: reserved - consumed is the number of waiting messages plus the senders
 * between reserving and pushing, in this process or, for a moment, in an earlier one of the slot.
 * (They restart at zero when the slot's memory has been returned to the system, which happens only
 * while there are no senders: chores.c.) A sender may be refused a moment too early, while another
 * refused sender still holds a place.
 *
 * The message that wakes a process reserves nothing, which saves an atomic operation: no message
 * waits at that moment, only calls that the process has not answered may have places. Its sender
 * looks whether they leave room, and counts it as soon as it has the process's token, by lowering
 * `consumed` by one (state_wake_any). Others may take the last place before that, or have reserved
 * it and not yet pushed: so one message more than the limit may wait, never two.
 *
 * Completions and cancel events do not count: the receiver itself bounds their number.
 *
 * Relaxed: the counters carry no data, and each is exact on its own. */
#ifndef SKUA_PROCESS_MAILBOX_H
#define SKUA_PROCESS_MAILBOX_H

#include "process/process.h"

static inline uint32_t mailbox_length(struct process *process)
{
    /* acquire: sched/process_info.c reads the word after these. */
    const uint32_t consumed = load_acquire(&process->consumed);
    const int32_t length = (int32_t)(load_acquire(&process->reserved) - consumed);
    return length > 0 ? (uint32_t)length : 0; /* the pair of loads is not atomic */
}

static inline void mailbox_unreserve_any(struct process *process)
{
    (void)fetch_sub_relaxed(&process->reserved, 1); /* counter */
}

NODISCARD static inline bool mailbox_reserve_any(struct process *process)
{
    const uint32_t reserved = fetch_add_relaxed(&process->reserved, 1); /* counter */
    const uint32_t consumed = load_relaxed(&process->consumed);         /* counter */
    /* Signed: by the second load, messages later than this one may have been consumed. */
    const int32_t ahead = (int32_t)(reserved - consumed);
    if (UNLIKELY(ahead >= (int32_t)load_relaxed(&process->mailbox_limit))) {
        mailbox_unreserve_any(process);
        return false;
    }
    return true;
}

/* Whether a message may wake the process, if that waits. */
NODISCARD static inline bool mailbox_has_room(struct process *process)
{
    const uint32_t consumed = load_relaxed(&process->consumed);          /* counter */
    const uint32_t length = load_relaxed(&process->reserved) - consumed; /* counter */
    return LIKELY(length == 0) || (int32_t)length < (int32_t)load_relaxed(&process->mailbox_limit);
}

/* The following are for the holder of the process's token. */

static inline void mailbox_consume_owner(struct process *process, uint32_t count)
{
    store_relaxed(&process->consumed, load_relaxed(&process->consumed) + count); /* one writer */
}

/* Counts the message that woke the process, which has reserved no place. */
static inline void mailbox_count_waking_owner(struct process *process)
{
    store_relaxed(&process->consumed, load_relaxed(&process->consumed) - 1); /* one writer */
}

#endif
