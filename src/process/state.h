/* SPDX-License-Identifier: MIT */
/* The word of a process and every transition of it. Each is one atomic operation in this file.
 *
 *   {event list:32 | generation:25 | urgent:1 | watched:1 | cancel:1 | kill:1 | state:3}
 *
 *   Free --prepare--> Init --publish--> Ready <--- push, wake, request ---+
 *    ^                 |                | |                               |
 *    |      free       |         finish | | rest                          |
 *    +-----------------+                | +----------> Idle, Blocked -----+
 *    |      free                        v
 *    +------------------------------ Complete
 *
 * (state_prepare_owner, state_publish_owner, state_push_any and so on.)
 *
 *  Ready     exactly one token of the process exists: in a next slot, a deque, a shared queue, a
 *            thief's hands, or with the worker that runs it (INV-3). Whoever has the token is the
 *            only one to touch the fields of the record (INV-4). Whether it runs is noted in
 *            `progress`, for inspection: senders need not know, so no atomic operation is spent on
 *            it
 *  Idle,     no token; the event list is empty and neither kill nor cancel is set (INV-5): any
 *  Blocked   event, kill or cancel makes it Ready, and the thread that did so has the token and
 *            must enqueue it
 *  Complete  its worker tears it down; nothing is admitted any more
 *  Init      its spawner sets it up; no other thread knows of it
 *
 * The event that wakes a process does not go through the list: its sender has the token, so it can
 * put the event in the backlog itself, and the worker need not take it out of the word again.
 * Events that follow go to the list and are younger.
 *
 * The "wake-up flag" of a running process is simply a non-empty event list: state_rest_owner then
 * fails, so nothing that arrives during a step is lost (INV-5).
 *
 * `kill`, `cancel` and `watched` are requests of other threads that need no memory: end the
 * process, deliver the shutdown's cancel event to it, remember that a thread waits for its exit.
 * The token's holder collects them whenever it takes the list.
 *
 * `urgent` says that the list holds an urgent message. Whoever pushes one sets it in the same
 * operation, so the holder never sees the one without the other: a process that rests has neither
 * (INV-5), and one that leaves its list alone because of older events knows that it must look
 * (sched/urgent.h).
 *
 * MO-state: state_rest_owner and state_finish_owner release what the token's holder wrote to the
 * record; state_push_any, state_wake_any and state_request_any acquire it when they make the
 * process Ready. From there the token travels through queues that release and acquire on their
 * own. */
#ifndef SKUA_PROCESS_STATE_H
#define SKUA_PROCESS_STATE_H

#include "base/assert.h"
#include "concurrent/event_list.h"
#include "process/mailbox.h"
#include "process/process.h"

enum process_state {
    STATE_FREE = 0, /* as is a record whose memory was trimmed (object_pool.h) */
    STATE_READY = SKUA_PROCESS_READY,
    STATE_BLOCKED = SKUA_PROCESS_BLOCKED,
    STATE_IDLE = SKUA_PROCESS_IDLE,
    STATE_INIT,
    STATE_COMPLETE,
    STATE_RETIRED, /* Free for ever: its generations are used up */
};

#define STATE_MASK     UINT32_C(7)
#define STATE_KILL     (UINT32_C(1) << 3)
#define STATE_CANCEL   (UINT32_C(1) << 4)
#define STATE_WATCHED  (UINT32_C(1) << 5)
#define STATE_URGENT   (UINT32_C(1) << 6)
#define STATE_REQUESTS (STATE_KILL | STATE_CANCEL | STATE_WATCHED | STATE_URGENT)
/* Requests that overtake the events in the list; cancel waits behind them. */
#define STATE_AT_ONCE (STATE_KILL | STATE_WATCHED)

#define GENERATION_SHIFT 7
#define GENERATION_MAX   ((UINT32_C(1) << 25) - 1)

static inline enum process_state state_of(uint32_t tag)
{
    return (enum process_state)(tag & STATE_MASK);
}

static inline uint32_t state_generation(uint32_t tag)
{
    return tag >> GENERATION_SHIFT;
}

static inline uint32_t state_tag(uint32_t generation, enum process_state state)
{
    return generation << GENERATION_SHIFT | (uint32_t)state;
}

static inline bool state_is_live(uint32_t tag)
{
    /* Ready to Idle, in one comparison: Free, which is zero, becomes the largest number. */
    return (tag & STATE_MASK) - (uint32_t)STATE_READY <= (uint32_t)STATE_IDLE - STATE_READY;
}

static inline bool state_is_waiting(uint32_t tag)
{
    return state_of(tag) == STATE_IDLE || state_of(tag) == STATE_BLOCKED;
}

/* A snapshot of the tag, for decisions that are re-checked or need not be exact. */
static inline uint32_t state_peek(struct process *process)
{
    return event_list_tag(load_relaxed(&process->word)); /* re-checked or a snapshot */
}

/* What the caller of state_push_any and state_request_any must do next. */
enum state_duty {
    STATE_CLOSED,  /* the process is gone: the caller keeps its event */
    STATE_DONE,    /* nothing more */
    STATE_ENQUEUE, /* the process has become Ready, and the caller has its token: enqueue it */
};

/* Admits to a process that waits, which becomes Ready. */
static inline enum event_list_verdict state_gate_waiting(uint32_t *tag, uint32_t generation)
{
    if (state_generation(*tag) != generation || !state_is_waiting(*tag)) {
        return EVENT_LIST_REFUSED;
    }
    *tag &= ~STATE_MASK;
    *tag |= STATE_READY;
    return EVENT_LIST_CALLER;
}

/* Admits to any live process. */
static inline enum event_list_verdict state_gate(uint32_t *tag, uint32_t generation)
{
    if (state_generation(*tag) == generation && state_of(*tag) == STATE_READY) {
        return EVENT_LIST_ADDED;
    }
    return state_gate_waiting(tag, generation);
}

/* The same for an urgent message: the token's holder must look for it in the list. */
static inline enum event_list_verdict state_gate_urgent(uint32_t *tag, uint32_t generation)
{
    const enum event_list_verdict verdict = state_gate(tag, generation);
    *tag |= verdict == EVENT_LIST_ADDED ? STATE_URGENT : 0;
    return verdict;
}

/* Idle, Blocked -> Ready, for a message that has reserved no place in the mailbox (mailbox.h).
 * Returns true if the process waited; the caller must then enqueue it. Any thread. */
NODISCARD static inline bool state_wake_any(struct process *process, uint32_t generation,
                                            uint32_t index, uint32_t *next)
{
    if (event_list_push_any(&process->word, index, next, state_gate_waiting, generation) ==
        EVENT_LIST_REFUSED) {
        return false;
    }
    mailbox_count_waking_owner(process);
    *next = OBJECT_NONE;
    process->backlog = index;
    return true;
}

/* Idle, Blocked -> Ready, or adds to the list of one that is Ready. Any thread. */
NODISCARD static inline enum state_duty state_push_any(struct process *process, uint32_t generation,
                                                       uint32_t index, uint32_t *next)
{
    switch (event_list_push_any(&process->word, index, next, state_gate, generation)) {
    case EVENT_LIST_ADDED:
        return STATE_DONE;
    case EVENT_LIST_CALLER:
        *next = OBJECT_NONE;
        process->backlog = index;
        return STATE_ENQUEUE;
    case EVENT_LIST_REFUSED:
        break;
    }
    return STATE_CLOSED;
}

/* The same for an urgent message. */
NODISCARD enum state_duty state_push_urgent_any(struct process *process, uint32_t generation,
                                                uint32_t index, uint32_t *next);

/* Sets request bits. Kill and cancel wake the process, watched does not; no bits at all wake it
 * without a request. Any thread. */
NODISCARD enum state_duty state_request_any(struct process *process, uint32_t generation,
                                            uint32_t requests);

/* The functions that follow are for the holder of the token. */

/* Whether state_take_owner would return anything. */
static inline bool state_has_news_owner(struct process *process)
{
    const uint64_t word = load_relaxed(&process->word); /* a hint: state_rest_owner decides */
    return event_list_first(word) != OBJECT_NONE || (event_list_tag(word) & STATE_REQUESTS) != 0;
}

/* Takes the list and the requests; returns the word as it was. */
NODISCARD static inline uint64_t state_take_owner(struct process *process)
{
    const uint32_t generation = state_generation(state_peek(process)); /* fixed while Ready */
    const uint64_t before =
        event_list_take_owner(&process->word, state_tag(generation, STATE_READY));
    SKUA_ASSERT(state_of(event_list_tag(before)) == STATE_READY); /* INV-3 */
    return before;
}

/* Leaves the list where it is, because older events are still undelivered, and takes only the
 * requests that overtake it: cancel stays with the list. STATE_URGENT in what it returns says that
 * the list holds an urgent message, and stays as well. */
NODISCARD uint64_t state_take_requests_owner(struct process *process);

/* Takes the list with its urgent messages, and leaves the requests; returns the list. What is not
 * urgent must be put back. */
NODISCARD uint32_t state_take_list_owner(struct process *process);

/* Puts a node back to the list, which was taken a moment ago, if nothing has come since: returns
 * OBJECT_NONE. Otherwise returns the newest that has come. Nobody but the holder takes them, and
 * nobody reads a link but its own pusher, before the push: so it can add the node behind the
 * oldest of them. */
NODISCARD uint32_t state_put_back_owner(struct process *process, uint32_t index);

/* Ready -> Idle or Blocked, unless something has arrived: then returns false. */
NODISCARD static inline bool state_rest_owner(struct process *process, enum process_state target)
{
    const uint32_t generation = state_generation(state_peek(process)); /* fixed while Ready */
    uint64_t expected = event_list_word(OBJECT_NONE, state_tag(generation, STATE_READY));
    const uint64_t resting = event_list_word(OBJECT_NONE, state_tag(generation, target));
    return cas_acq_rel_relaxed(&process->word, &expected, resting); /* release MO-state */
}

/* Ready -> Complete; returns the word as it was, with the list to be dropped. */
NODISCARD static inline uint64_t state_finish_owner(struct process *process)
{
    const uint32_t generation = state_generation(state_peek(process)); /* fixed while Ready */
    const uint64_t before =
        event_list_take_owner(&process->word, state_tag(generation, STATE_COMPLETE));
    SKUA_ASSERT(state_of(event_list_tag(before)) == STATE_READY); /* INV-3 */
    return before;
}

/* Free -> Init. Returns the generation. */
static inline uint32_t state_prepare_owner(struct process *process)
{
    const uint32_t tag = state_peek(process); /* nobody else writes a Free word */
    SKUA_ASSERT(state_of(tag) == STATE_FREE);
    const uint32_t generation = state_generation(tag);
    store_relaxed(
        &process->word,
        event_list_word(OBJECT_NONE, state_tag(generation, STATE_INIT))); /* not visible */
    return generation;
}

/* Init -> Ready. Release MO-inspect. A scan of all processes that happens at this moment may miss
 * it; before its first step it finds out by itself what the scan was for (sched/spawn.h). */
static inline void state_publish_owner(struct process *process, uint32_t generation)
{
    store_release(&process->word, event_list_word(OBJECT_NONE, state_tag(generation, STATE_READY)));
}

/* Complete or Init -> Free, with the next generation: every PID to this slot is stale from now on.
 * Returns false if the generations of the slot are used up; it must then never be used again. */
NODISCARD static inline bool state_free_owner(struct process *process)
{
    const uint32_t tag = state_peek(process); /* nobody else writes Init or Complete */
    SKUA_ASSERT(state_of(tag) == STATE_INIT || state_of(tag) == STATE_COMPLETE);
    const uint32_t generation = state_generation(tag);
    const bool reusable = generation < GENERATION_MAX;
    const uint32_t next =
        reusable ? state_tag(generation + 1, STATE_FREE) : state_tag(generation, STATE_RETIRED);
    store_release(&process->word, event_list_word(OBJECT_NONE, next)); /* MO-state */
    return reusable;
}

#endif
