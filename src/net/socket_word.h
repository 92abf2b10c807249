/* SPDX-License-Identifier: MIT */
/* The word of a socket: what the transport has reported of it, and who is told.
 *
 * {generation:32 | flags:32}. Two parties write it: the thread that reports readiness, and the
 * worker that runs the owner. Everything else of a socket is the owner's alone.
 *
 * The owner of a socket that was not ready waits for a report; nobody may miss one:
 *
 *   owner                                         reporter
 *   O1 clear READABLE, by a read-modify-write     K1 the system: the socket becomes readable
 *   O2 read: EAGAIN                               K2 set READABLE; if the owner waits and no signal
 *   O3 set WAITS_TO_READ; READABLE again?            is on its way: set SIGNALLED as well,
 *      then read again, else rest                    in one compare-exchange, and push the signal
 *
 * INV-30: if data has come after O2, a report of it (K2) comes after O1, so that O1 does not clear
 * it. In the order of all changes of the word, either K2 comes before O3, which then sees READABLE;
 * or O3 comes before K2, which then sees WAITS_TO_READ and signals. What was reported before O1 was
 * readable before O2, which comes after. So nothing counts reports, and nothing can wrap around
 * between O1 and O3. Writing has flags of its own, so a report about one direction neither
 * clears nor keeps anything of the other.
 *
 * The signal is one event node, which belongs to the socket. SIGNALLED is set while it is on its
 * way: by the reporter that pushes it, until the owner has taken it out of its mailbox. So it is in
 * one list at most (INV-31). If the socket is closed meanwhile, the generation changes, and whoever
 * has the node then releases it. By then the socket may be used again and have another node, so who
 * reports reads which node it is before K2, and who has taken one keeps to that.
 *
 * Who finds nobody to push it to clears SIGNALLED (K3). Another thread's report that came between
 * K2 and K3 has found it set and left the signalling to this one; if the owner waits for what has
 * been reported, K3 sees that, and an alarm makes up for it (socket_signal.c).
 *
 * A report names the generation that it is about; a socket that was closed and opened again has
 * another one. It has 32 bits, and one that is about to wrap is never used again (sockets.c).
 *
 * MO-socket: K2 acquires what the owner did before O3, above all who the owner is, and releases
 * what the system said; O1, O3 and the taking of a signal acquire that. The node is stored with
 * release when the socket is opened, and whoever knows a generation comes after that. So a report
 * reads the node of that use, or of a later one; if of a later one, it acquires the change of the
 * generation as well, and K2 finds that. */
#ifndef SKUA_NET_SOCKET_WORD_H
#define SKUA_NET_SOCKET_WORD_H

#include <stdbool.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* What a transport reports. */
#define SOCKET_READABLE UINT32_C(1)
#define SOCKET_WRITABLE UINT32_C(2)
#define SOCKET_HANGUP   UINT32_C(4) /* the peer writes no more: there is an end of input to read */
#define SOCKET_FAILED   UINT32_C(8) /* reading or writing says why */
/* There is urgent data: a read may stop in front of it, though more has come. As that has been
 * reported, nothing else is going to be: so there may be something to read until a read says that
 * there is not. What was read while this had not been reported yet does no harm, since the report
 * comes after that read. */
#define SOCKET_URGENT UINT32_C(16)
/* A deadline may have passed. */
#define SOCKET_ALARM UINT32_C(32)

#define SOCKET_WAITS_TO_READ  UINT32_C(64)
#define SOCKET_WAITS_TO_WRITE UINT32_C(128)
#define SOCKET_WAITS_FOR_END  UINT32_C(256) /* of input */
#define SOCKET_SIGNALLED      UINT32_C(512)
#define SOCKET_LINGERS        UINT32_C(1024) /* it has no owner any more: whoever reports writes */

/* What it is, for those who inspect; the owner has it in `kind`, too. */
#define SOCKET_LISTENS    UINT32_C(2048)
#define SOCKET_CONNECTS   UINT32_C(4096)
#define SOCKET_SENDS_NONE UINT32_C(8192) /* it has been shut down */

#define SOCKET_REPORTS    (SOCKET_ENDS_READ | SOCKET_WRITABLE)
#define SOCKET_ENDS_READ  (SOCKET_READABLE | SOCKET_HANGUP | SOCKET_FAILED | SOCKET_URGENT)
#define SOCKET_ENDS_WRITE (SOCKET_WRITABLE | SOCKET_FAILED)
#define SOCKET_ENDS_INPUT (SOCKET_HANGUP | SOCKET_FAILED)

enum socket_duty {
    SOCKET_NOTHING, /* nobody waits for this, or the socket is another one by now */
    SOCKET_SIGNAL,  /* push its signal to its owner */
    SOCKET_WRITE,   /* it lingers: write what is left */
};

static inline uint32_t socket_word_generation(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

/* Whether these flags end a wait of the owner. */
static inline bool socket_word_wakes(uint32_t waits, uint32_t reported)
{
    return ((waits & SOCKET_WAITS_TO_READ) != 0 && (reported & SOCKET_ENDS_READ) != 0) ||
           ((waits & SOCKET_WAITS_TO_WRITE) != 0 && (reported & SOCKET_ENDS_WRITE) != 0) ||
           ((waits & SOCKET_WAITS_FOR_END) != 0 && (reported & SOCKET_ENDS_INPUT) != 0) ||
           (reported & SOCKET_ALARM) != 0;
}

/* K2. Reports `flags` about the socket of this generation; returns what the caller must do. */
NODISCARD static inline enum socket_duty socket_word_report_any(atomic_u64 *word,
                                                                uint32_t generation, uint32_t flags)
{
    uint64_t old = load_relaxed(word); /* re-checked by the exchange */
    for (;;) {
        const uint32_t before = (uint32_t)old;
        if (socket_word_generation(old) != generation) {
            return SOCKET_NOTHING;
        }
        const bool signals =
            (before & (SOCKET_SIGNALLED | SOCKET_LINGERS)) == 0 && socket_word_wakes(before, flags);
        const uint64_t new = old | flags | (signals ? SOCKET_SIGNALLED : 0);
        if (cas_acq_rel_relaxed(word, &old, new)) { /* MO-socket */
            return (before & SOCKET_LINGERS) != 0 ? SOCKET_WRITE
                   : signals                      ? SOCKET_SIGNAL
                                                  : SOCKET_NOTHING;
        }
    }
}

/* The owner has taken the signal: it may be pushed again. Clears all that it will look after now,
 * and returns what was reported. (O1 for all directions.) */
static inline uint32_t socket_word_take_owner(atomic_u64 *word)
{
    return (uint32_t)fetch_and_acq_rel(
        word, ~(uint64_t)(SOCKET_SIGNALLED | SOCKET_REPORTS | SOCKET_ALARM | SOCKET_WAITS_TO_READ |
                          SOCKET_WAITS_TO_WRITE | SOCKET_WAITS_FOR_END)); /* MO-socket */
}

/* O1. Returns the flags from before. */
static inline uint32_t socket_word_clear_owner(atomic_u64 *word, uint32_t flags)
{
    return (uint32_t)fetch_and_acq_rel(word, ~(uint64_t)flags); /* MO-socket */
}

/* O3. Says that the owner waits for one of `ends`; false if that has been reported already: then it
 * does not wait. */
NODISCARD static inline bool socket_word_wait_owner(atomic_u64 *word, uint32_t waits, uint32_t ends)
{
    const uint32_t before = (uint32_t)fetch_or_seq_cst(word, waits); /* MO-socket */
    if ((before & ends) == 0) {
        return true;
    }
    (void)fetch_and_acq_rel(word, ~(uint64_t)waits); /* a signal too many does no harm */
    return false;
}

/* K3. The signal could not be pushed, as the owner has ended: the node is the socket's again. False
 * if the socket is another one by now: then the node is nobody's. */
NODISCARD static inline bool socket_word_unsignal_any(atomic_u64 *word, uint32_t generation)
{
    uint64_t old = load_relaxed(word); /* re-checked by the exchange */
    do {
        if (socket_word_generation(old) != generation) {
            return false;
        }
    } while (!cas_acq_rel_relaxed(word, &old, old & ~(uint64_t)SOCKET_SIGNALLED)); /* MO-socket */
    return true;
}

/* The socket lingers from now on: reports no longer signal. Returns the flags from before. */
static inline uint32_t socket_word_linger_owner(atomic_u64 *word)
{
    return (uint32_t)fetch_or_seq_cst(word, SOCKET_LINGERS); /* MO-socket */
}

/* Ends this use of the socket. Returns whether its signal is on its way: then whoever has that
 * releases the node. */
NODISCARD static inline bool socket_word_retire_owner(atomic_u64 *word)
{
    const uint64_t next = (uint64_t)(socket_word_generation(load_relaxed(word)) + 1) << 32;
    return (exchange_acq_rel(word, next) & SOCKET_SIGNALLED) != 0; /* MO-socket; one writer of the
                                                                      generation */
}

#endif
