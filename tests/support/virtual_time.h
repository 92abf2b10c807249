/* SPDX-License-Identifier: MIT */
/* A clock that moves only when the test says so, and a poller that waits by it: both in place of
 * the system's, for one runtime. Nothing that is tested on top of them waits for real time.
 *
 *   struct virtual_time virtual;
 *   virtual_init(&virtual, start);
 *   virtual_create(&virtual, &api, config);   // in place of api_create
 *   api_start(&api);
 *   ... a process sleeps until `due` ...
 *   virtual_settle(&virtual);                 // all that was begun has been done
 *   virtual_advance_to(&virtual, due);
 *   virtual_settle(&virtual);                 // and it has run
 *
 * The poller has no descriptors but sources that the test makes up, named by numbers: a process
 * waits for one by the command VIRTUAL_WAIT, with the number in its payload, and the test makes it
 * ready. A wait ends once, as with a descriptor that is registered for one shot. Ready sources are
 * found by whoever next looks or waits, and completed by deliver, so roles, deadlines and
 * cancellation can be tested as with real ones.
 *
 * The monitor measures steps by the real clock but timers by this one. Where it must not interfere,
 * the configuration has a stall limit that no test reaches: VIRTUAL_STALL_LIMIT.
 *
 * Functions that assert, or that abort the program when they have waited for minutes, are for the
 * thread of the test. */
#ifndef SKUA_TESTS_VIRTUAL_TIME_H
#define SKUA_TESTS_VIRTUAL_TIME_H

#include "api_support.h"
#include "base/time_source.h"
#include "sched/poller.h"

/* Waits for the source whose number is the payload. */
#define VIRTUAL_WAIT UINT32_C(200)

/* Waits that may be registered at once. */
#define VIRTUAL_WAITS_MAX 256

#define VIRTUAL_STALL_LIMIT (3600 * SKUA_SECOND)

/* No worker: what virtual_waiter returns when nobody waits. */
#define VIRTUAL_NOBODY (-1)

struct virtual_wait {
    uint64_t source;
    skua_completion completion;
    bool ready;
};

struct virtual_time {
    struct time_source time;
    struct poller poller;
    struct scheduler *sched;
    atomic_u64 now; /* relaxed: a clock orders nothing, and must not hide a missing order */

    /* Before start. */
    uint64_t check_period_ns; /* after it the chore that calls `check` is wanted; 0: never */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* All under lock. */
    bool interrupted;
    int waiter; /* the worker that waits, or VIRTUAL_NOBODY */
    uint64_t until;
    uint32_t users; /* threads inside of wait or deliver: the role's holder, and only one */
    struct virtual_wait waits[VIRTUAL_WAITS_MAX];
    size_t wait_count;
    struct {
        uint64_t waits; /* that may have blocked */
        uint64_t looks; /* that may not */
        uint64_t interrupts;
        uint64_t checks;
        uint32_t opens;
        uint32_t closes;
        uint32_t overlaps; /* calls of wait and deliver that found another one under way */
    } seen;
};

/* The clock begins at `now`. Nothing to release. */
void virtual_init(struct virtual_time *virtual, uint64_t now);

/* As api_create, with this clock and poller, and the command VIRTUAL_WAIT. */
void virtual_create(struct virtual_time *virtual, struct api *api, skua_runtime_config config);

/* ---- the clock ---- */

uint64_t virtual_now(struct virtual_time *virtual);

/* Not back: that aborts. Any thread, as the one above. */
void virtual_advance_to(struct virtual_time *virtual, uint64_t instant);

/* ---- who waits ---- */

/* Until a worker waits in the poller for exactly this instant, and nothing will wake it before: no
 * interrupt is on its way, nothing is ready. With one worker that also means that all that the
 * runtime was told before has been done. */
void virtual_await_wait_until(struct virtual_time *virtual, uint64_t instant);

/* The worker that waits so at this moment, or VIRTUAL_NOBODY. */
int virtual_waiter(struct virtual_time *virtual);

/* Until when it waits: UINT64_MAX if only for sources; 0 if nobody waits. */
uint64_t virtual_wait_instant(struct virtual_time *virtual);

/* Until nothing moves any more, whatever the number of workers: each sleeps, no queue has anything,
 * and the sources are waited for by one of them or there are none. Only while no step is held up
 * and no other thread uses the runtime. What steps have written is visible afterwards. */
void virtual_settle(struct virtual_time *virtual);

/* Lets whoever waits in the poller wake up for no reason, which the contract allows, and returns
 * when somebody waits there again. */
void virtual_nudge(struct virtual_time *virtual);

/* Calls of wait that could block, and of interrupt, so far. */
uint64_t virtual_wait_calls(struct virtual_time *virtual);
uint64_t virtual_interrupts(struct virtual_time *virtual);

/* ---- what is waited for ---- */

/* Makes a source ready for those that wait for it now; returns how many. Any thread. */
size_t virtual_make_ready(struct virtual_time *virtual, uint64_t source);

/* The waits that are registered, those that have ended by a deadline or the like included. */
size_t virtual_wait_count(struct virtual_time *virtual);

/* ---- at the end ---- */

/* After the runtime was stopped: the poller was opened and closed once and never used by two at a
 * time. */
void assert_virtual_is_sound(const struct virtual_time *virtual);

#endif
