/* SPDX-License-Identifier: MIT */
/* What the scheduler has done so far. */
#ifndef SKUA_STATS_H
#define SKUA_STATS_H

#include <skua/error.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* The counters, for programs that want a table of their own: X(name). They only grow.
 * Each worker has a set of its own; work done on threads that are not workers (submits, sends, late
 * completions) is counted in the total alone. */
#define SKUA_STATS_MAP(X)                                                                          \
    X(spawned)          /* processes made visible */                                               \
    X(finished)         /* processes ended and closed */                                           \
    X(messages)         /* messages accepted */                                                    \
    X(steps)            /* step calls */                                                           \
    X(next_pops)        /* processes taken from the worker's next slot */                          \
    X(local_pops)       /* processes taken from the worker's own deque */                          \
    X(global_pops)      /* processes taken from the queues that all workers share */               \
    X(steal_attempts)   /* attempts to steal from a deque */                                       \
    X(steal_successes)  /* attempts that got something */                                          \
    X(stolen)           /* processes that they got */                                              \
    X(spills)           /* times the deque was full and half went to the global queue */           \
    X(parks)            /* times the worker went to sleep */                                       \
    X(wakes)            /* times it woke a sleeping worker */                                      \
    X(searching_ns)     /* time spent looking for work */                                          \
    X(cpu_ns)           /* CPU time of the worker's thread: steps and what surrounds them */       \
    X(late_completions) /* completions that came too late or twice */                              \
    X(timers)           /* timers, ticks and deadlines that fired */                               \
    X(polls)            /* checks of the descriptors that are waited for */                        \
    X(ready)            /* waits for a descriptor that ended because it was ready */               \
    X(stalls)           /* steps found to run longer than the limit */                             \
    X(spares)           /* times a spare worker stepped in for a stuck or blocked one */           \
    X(trimmed_bytes)    /* memory given back after a burst */                                      \
    X(calls)            /* calls accepted by the processes that were called */                     \
    X(notices)          /* times a caller, a watcher or a link was told of the end of a process */ \
    X(accepted)         /* connections that came to listening sockets and were accepted */         \
    X(connected)        /* connections made to others */                                           \
    X(received_bytes)   /* bytes that came through sockets */                                      \
    X(sent_bytes)       /* bytes of sockets that the system has taken */                           \
    X(dead_unread)      /* messages whose receiver ended before it got them */                     \
    X(dead_new)         /* messages that found the mailbox full and were dropped */                \
    X(dead_old)         /* messages that were dropped to make room for newer ones */               \
    X(upgrades)         /* times a process changed its type while it lived */                      \
    X(upgrade_failures) /* upgrades that failed: the process has kept its type */                  \
    X(restarts)         /* times a supervisor started a child again */                             \
    X(give_ups)         /* supervisors that ended because that was too often */                    \
    X(held_back)        /* times a process rested because a receiver could not keep up */

/* The counters of one worker, or of all together. */
#define SKUA_STATS_FIELD(name) uint64_t name;
typedef struct skua_stats {
    uint64_t live; /* in the total: processes alive now; for one worker: 0 */
    SKUA_STATS_MAP(SKUA_STATS_FIELD)
} skua_stats;
#undef SKUA_STATS_FIELD

/* Like skua_stats_read, with the size of the caller's structs. */
SKUA_API int skua_stats_read_sized(skua_runtime *runtime, skua_stats *total, skua_stats *workers,
                                   size_t capacity, size_t stride);

/* Reads the statistics, while everything runs: counters read one after the other need not belong to
 * the same instant.
 * Gives:   *total (may be null), and workers[0] to workers[min(capacity, worker count) - 1]. Spare
 *          workers that have been started so far come last.
 * Threads: any.      Blocks: never.
 * Returns: the number of workers, spare ones included; SKUA_E_INVALID. */
static inline int skua_stats_read(skua_runtime *runtime, skua_stats *total, skua_stats *workers,
                                  size_t capacity)
{
    return skua_stats_read_sized(runtime, total, workers, capacity, sizeof *total);
}

SKUA_END_DECLS

#endif
