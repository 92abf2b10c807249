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
 * waits at that moment, only calls that the process has not answered, and events that it has
 * deferred, may have places. Its sender looks whether they leave room, and counts it as soon as it
 * has the process's token, by lowering `consumed` by one (state_wake_any). Others may take the last
 * place before that, or have reserved it and not yet pushed: so one message more than the limit may
 * wait, never two.
 *
 * For a process whose type drops old messages (sched/shedding.h) up to twice the limit may wait, or
 * MAILBOX_BURST more if the limit is small: a burst that comes while it does not run must not cost
 * it the newest.
 *
 * Urgent messages count like others, but have twice as many places, and MAILBOX_SPARE: so a full
 * mailbox still takes as many of them as its limit, even if a step has deferred more events than
 * there is room for. They always reserve.
 *
 * A message that is deferred counts again. It had been counted as consumed when the step got it, so
 * others may have taken its place: a step that defers may leave more than the limit, by
 * SKUA_EVENTS_PER_STEP, and nobody is let in until they are fewer.
 *
 * Where a worker sends one message after the other to a busy process, it counts sixteen at a time
 * (MAILBOX_TALLY_MAX), which saves one of two atomic operations. Its *tally* are those that it has
 * pushed and not counted yet. It settles the tally when it sends to another process, and when the
 * step, init, close or slice of a publication that sends is over. Until then `reserved` lags
 * behind, and so many more than the limit may wait: a worker pushes without a place only while less
 * than the limit is counted, and then has fewer than MAILBOX_TALLY_MAX uncounted. So this is for
 * large mailboxes, of whose limit all tallies together are an eighth at most. A tally is the
 * slot's, like the counters, and settled before its worker parks, so no memory is trimmed that it
 * points to. If its process has ended meanwhile, the next one in the slot would seem to have room
 * for as many more. So a process with a small mailbox is given another slot (sched/slot.h).
 *
 * Messages to some processes also count against a quota (process/quota.h). In place of their limit
 * such a process has a mark, with the number of the quota, which is negative where limits are
 * compared: no message may wake the process, and no place can be reserved the usual way. So all
 * senders end up where mailboxes are full, and nobody else pays for the difference. From there
 * sched/limits.h takes over: the limit itself is that of the type.
 *
 * Completions and cancel events do not count: the receiver itself bounds their number.
 *
 * Relaxed: the counters carry no data, and each is exact on its own. */
#ifndef SKUA_PROCESS_MAILBOX_H
#define SKUA_PROCESS_MAILBOX_H

#include "process/process.h"

/* Fewer in models, all three. */
#ifndef MAILBOX_SPARE
#define MAILBOX_SPARE (2 * SKUA_EVENTS_PER_STEP)
#endif
#ifndef MAILBOX_BURST
#define MAILBOX_BURST 1000
#endif
#ifndef MAILBOX_TALLY_MAX
#define MAILBOX_TALLY_MAX 16
#endif

/* What stands in place of the limit if messages count against a quota, or if the process only has
 * or is under one (0). Larger than all limits, and negative. */
#define MAILBOX_MARK (UINT32_C(1) << 31)

static inline uint32_t mailbox_marked(uint32_t quota)
{
    return MAILBOX_MARK | quota;
}

static inline bool mailbox_is_marked(struct process *process)
{
    return UNLIKELY(load_relaxed(&process->mailbox_limit) >= MAILBOX_MARK); /* fixed */
}

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

/* Reserves a place unless so many are taken already. */
NODISCARD static inline bool mailbox_reserve_within_any(struct process *process, uint32_t limit)
{
    const uint32_t reserved = fetch_add_relaxed(&process->reserved, 1); /* counter */
    const uint32_t consumed = load_relaxed(&process->consumed);         /* counter */
    /* Signed: by the second load, messages later than this one may have been consumed. */
    const int32_t ahead = (int32_t)(reserved - consumed);
    if (UNLIKELY(ahead >= (int32_t)limit)) {
        mailbox_unreserve_any(process);
        return false;
    }
    return true;
}

NODISCARD static inline bool mailbox_reserve_any(struct process *process)
{
    return mailbox_reserve_within_any(process, load_relaxed(&process->mailbox_limit)); /* fixed */
}

/* The lowest limit of large mailboxes, with so many workers. */
static inline uint32_t mailbox_large(uint32_t workers)
{
    return workers * 8 * MAILBOX_TALLY_MAX;
}

/* Messages that a worker has sent to a process and not counted yet. */
struct mailbox_tally {
    struct process *process;
    uint32_t count;
};

static inline void mailbox_settle_owner(struct mailbox_tally *tally)
{
    if (tally->count > 0) {
        (void)fetch_add_relaxed(&tally->process->reserved, tally->count); /* counter */
        tally->count = 0;
    }
}

/* Whether a worker may push a message first, and count it then, if the mailbox has room. `large`:
 * see mailbox_large. */
NODISCARD static inline bool mailbox_may_tally(struct process *process, uint32_t large)
{
    return (int32_t)load_relaxed(&process->mailbox_limit) >= /* fixed; not one with a mark */
           (int32_t)large;
}

/* Whether nothing is left uncounted of what the last process of a slot has got. (Not if just as
 * many senders have reserved a place there and are about to find that it has ended.) */
static inline bool mailbox_is_settled(struct process *process)
{
    const uint32_t consumed = load_relaxed(&process->consumed); /* counter */
    return (int32_t)(load_relaxed(&process->reserved) - consumed) >= 0;
}

static inline void mailbox_tally_owner(struct mailbox_tally *tally, struct process *process)
{
    if (tally->process != process) {
        mailbox_settle_owner(tally);
        tally->process = process;
    }
    if (++tally->count == MAILBOX_TALLY_MAX) {
        mailbox_settle_owner(tally);
    }
}

/* So many more than the limit, as far as there are so many places. */
static inline uint32_t mailbox_beyond(uint32_t limit, uint32_t more)
{
    const uint32_t left = SKUA_MAILBOX_MAX - limit;
    return limit + (more < left ? more : left);
}

/* How many may wait for a process that drops old messages. */
static inline uint32_t mailbox_shedding_limit(uint32_t limit)
{
    return mailbox_beyond(limit, limit > MAILBOX_BURST ? limit : MAILBOX_BURST);
}

/* How many may be taken before an urgent message is refused. */
static inline uint32_t mailbox_urgent_limit(uint32_t limit)
{
    return mailbox_beyond(limit, limit) + MAILBOX_SPARE;
}

/* Whether a message may wake the process, if that waits. */
NODISCARD static inline bool mailbox_has_room(struct process *process)
{
    const uint32_t consumed = load_relaxed(&process->consumed);                      /* counter */
    const uint32_t length = load_relaxed(&process->reserved) - consumed;             /* counter */
    return LIKELY((int32_t)length < (int32_t)load_relaxed(&process->mailbox_limit)); /* fixed */
}

/* The following are for the holder of the process's token. */

/* How many places more than the limit are taken. */
static inline uint32_t mailbox_excess_owner(struct process *process, uint32_t limit)
{
    const uint32_t length = mailbox_length(process);
    return length > limit ? length - limit : 0;
}

static inline void mailbox_consume_owner(struct process *process, uint32_t count)
{
    store_relaxed(&process->consumed, load_relaxed(&process->consumed) + count); /* one writer */
}

/* A message that was consumed is back in the mailbox. */
static inline void mailbox_return_owner(struct process *process)
{
    store_relaxed(&process->consumed, load_relaxed(&process->consumed) - 1); /* one writer */
}

/* Counts the message that woke the process, which has reserved no place. */
static inline void mailbox_count_waking_owner(struct process *process)
{
    store_relaxed(&process->consumed, load_relaxed(&process->consumed) - 1); /* one writer */
}

#endif
