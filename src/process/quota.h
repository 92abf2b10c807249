/* SPDX-License-Identifier: MIT */
/* Quotas: how many processes, messages and bytes all processes under a supervisor may have together
 * (skua_limit). This file is the counters; sched/limits.h says who counts when.
 *
 * A quota is one object that all its processes share. It lies within another one, its parent, if
 * the process that set it counts against one itself: whatever is charged to a quota is charged to
 * all those around it. A counter grows by a compare-and-swap, so it never passes its limit
 * (INV-44). If a quota further out is full, what was charged further in is refunded: meanwhile
 * another may be refused further in, although in the end nothing is in use there, as by a mailbox
 * (process/mailbox.h). To rule that out, all levels would have to be charged at once, by a lock. A
 * counter without a limit is not kept. Relaxed: the counters carry no data, and each is exact on
 * its own.
 *
 * Lifetime. Held by whoever set the quota, by each process that counts against it, and by each
 * quota within it; the last of them to let go frees it. A sender knows only the number of a quota,
 * from the record of the receiver, which may end at any moment. So quotas are type-stable, as
 * records are: their memory stays quotas until the runtime is destroyed, and a stale number leads
 * to a free quota or to another one. The sender first pins what it finds: it holds it, unless
 * nobody else does. Then it looks at the word of the receiver: if that is still alive, it has held
 * its own quota all the time, so that is the one. If not, the sender lets go; the wrong quota has
 * lived a little longer, and nothing was charged to it. While a quota is held its parent does not
 * change, so a refund finds those that were charged: when nobody holds a quota, its counters are
 * zero (INV-45).
 *
 * MO-quota: whoever makes a quota releases what it wrote with the first hold, and a pin acquires
 * it; whoever lets go releases what it did to the quota, and the last one acquires it. */
#ifndef SKUA_PROCESS_QUOTA_H
#define SKUA_PROCESS_QUOTA_H

#include <pthread.h>
#include <stdbool.h>

#include "base/allocator.h"
#include "base/atomic.h"
#include "base/compiler.h"

enum quota_kind {
    QUOTA_PROCESSES,
    QUOTA_MESSAGES,
    QUOTA_BYTES,
    QUOTA_KINDS,
};

struct quota {
    CACHE_ALIGNED atomic_u64 used[QUOTA_KINDS];
    uint64_t limit[QUOTA_KINDS]; /* 0: none, and nothing is counted */
    atomic_u32 holders;          /* 0: it is free */
    uint32_t number;             /* never changes; from 1 on */
    bool meters;                 /* it, or one around it, limits messages */
    struct quota *parent;        /* or null; of a free one: the next that is free */
};

/* Chunks of quotas, each twice as large as the one before; fewer in models. */
#ifndef QUOTA_CHUNK
#define QUOTA_CHUNK 64
#endif
#define QUOTA_CHUNKS 18
/* Numbers fit into the mark of a mailbox (process/mailbox.h). */
#define QUOTAS_MAX (((uint32_t)QUOTA_CHUNK << QUOTA_CHUNKS) - QUOTA_CHUNK)

struct quotas {
    const struct allocator *allocator;
    pthread_mutex_t lock;
    atomic_ptr chunks[QUOTA_CHUNKS]; /* written under lock */
    uint32_t made;                   /* under lock: quotas that there are, free ones included */
    struct quota *free;              /* under lock */
};

void quotas_init(struct quotas *quotas, const struct allocator *allocator);
void quotas_deinit(struct quotas *quotas);

/* The quota of a number that some quota has had. */
NODISCARD struct quota *quotas_at(struct quotas *quotas, uint32_t number);

/* Makes a quota within `parent`, which the caller holds or is null. The caller holds the new one.
 * Null if there is no memory, or if there are QUOTAS_MAX. */
NODISCARD struct quota *quota_make_any(struct quotas *quotas, struct quota *parent,
                                       const uint64_t limit[QUOTA_KINDS]);

/* One more holds it; somebody does already. */
static inline void quota_hold_any(struct quota *quota)
{
    (void)fetch_add_relaxed(&quota->holders, 1); /* the other has it */
}

/* The same for who does not know whether somebody does; false: nobody. */
NODISCARD bool quota_pin_any(struct quota *quota);

/* One less; the last frees it. */
void quota_let_go_any(struct quotas *quotas, struct quota *quota);

/* Charges it, and all around it; false, and nothing is charged, if one of them is full. The caller
 * holds it, as for the next. */
NODISCARD bool quota_charge_any(struct quota *quota, enum quota_kind kind, uint64_t amount);
void quota_refund_any(struct quota *quota, enum quota_kind kind, uint64_t amount);

#endif
