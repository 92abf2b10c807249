/* SPDX-License-Identifier: MIT */
/* The word of a process and every transition of it. Each is one atomic operation in this file.
 *
 *   {event list:32 | generation:26 | watched:1 | cancel:1 | kill:1 | state:3}
 *
 *   Free --state_prepare--> Init --state_publish--> Ready <----------------------------+
 *    ^                       |                        | state_begin                    |
 *    |     state_free        |                        v            state_requeue       |
 *    +-----------------------+      +------------- Running ----------------------------+
 *    |                              | state_finish    | state_rest                     |
 *    |     state_free               v                 v       state_push,              |
 *    +--------------------------- Complete      Idle, Blocked --state_request----------+
 *
 *  Ready     exactly one token of the process is in a next slot, a deque, the global queue or a
 *            thief's hands (INV-3); whoever holds it may move the process to Running
 *  Running   one worker has it and is the only one to touch its fields (INV-4)
 *  Idle,     in no queue; the event list is empty and neither kill nor cancel is set (INV-5): any
 *  Blocked   event, kill or cancel makes it Ready, and the thread that did so must enqueue it
 *  Complete  its worker takes it apart; nothing is admitted any more
 *  Init      its spawner prepares it; nobody else knows it
 *
 * The "wakeup flag" of a Running process is simply an event list that is not empty: state_rest
 * fails then, so nothing that arrives during a step is lost (INV-5).
 *
 * `kill`, `cancel` and `watched` are requests from outside that need no memory: end the process,
 * give it the cancel event of the shutdown, remember that a thread waits for its exit. Running's
 * holder collects them whenever it takes the list.
 *
 * MO-state: state_rest, state_requeue and state_finish release what the worker wrote to the record;
 * state_push and state_request (when they make it Ready) and state_begin acquire it. Between the
 * two, the token travels through a queue with release and acquire of its own. */
#ifndef SKUA_PROCESS_STATE_H
#define SKUA_PROCESS_STATE_H

#include "base/assert.h"
#include "concurrent/event_list.h"
#include "process/process.h"

enum process_state {
    STATE_FREE = 0, /* so is a record whose memory was given back (object_pool.h) */
    STATE_READY = SKUA_PROCESS_READY,
    STATE_RUNNING = SKUA_PROCESS_RUNNING,
    STATE_BLOCKED = SKUA_PROCESS_BLOCKED,
    STATE_IDLE = SKUA_PROCESS_IDLE,
    STATE_INIT,
    STATE_COMPLETE,
    STATE_RETIRED, /* Free for ever: its generations are used up */
};

/* state_begin and state_requeue move between the two by adding and subtracting one. */
_Static_assert(STATE_RUNNING == STATE_READY + 1, "adjacent, in this order");

#define STATE_MASK     UINT32_C(7)
#define STATE_KILL     (UINT32_C(1) << 3)
#define STATE_CANCEL   (UINT32_C(1) << 4)
#define STATE_WATCHED  (UINT32_C(1) << 5)
#define STATE_REQUESTS (STATE_KILL | STATE_CANCEL | STATE_WATCHED)
/* Those that do not wait for their turn behind the events in the list, as cancel does. */
#define STATE_URGENT (STATE_KILL | STATE_WATCHED)

#define GENERATION_SHIFT 6
#define GENERATION_MAX   ((UINT32_C(1) << 26) - 1)

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

/* A look at the word, for decisions that are re-checked or need not be exact. */
static inline uint32_t state_peek(struct process *process)
{
    return event_list_tag(load_relaxed(&process->word)); /* re-checked or a snapshot */
}

/* What the caller of state_push and state_request must do next. */
enum state_duty {
    STATE_CLOSED,  /* the process is gone: take back what was offered */
    STATE_DONE,    /* nothing more */
    STATE_ENQUEUE, /* the process has become Ready: put it in a queue */
};

/* Admits to a live process of the given generation, and wakes it if it waits. */
static inline bool state_gate(uint32_t *tag, uint32_t generation)
{
    if (state_generation(*tag) != generation || !state_is_live(*tag)) {
        return false;
    }
    if (state_is_waiting(*tag)) {
        *tag &= ~STATE_MASK;
        *tag |= STATE_READY;
    }
    return true;
}

/* Idle, Blocked -> Ready, or adds to Ready and Running. Any thread. */
NODISCARD static inline enum state_duty state_push(struct process *process, uint32_t generation,
                                                   uint32_t index, uint32_t *next)
{
    uint32_t before;
    if (!event_list_push_any(&process->word, index, next, state_gate, generation, &before)) {
        return STATE_CLOSED;
    }
    return state_is_waiting(before) ? STATE_ENQUEUE : STATE_DONE;
}

/* Sets request bits. Kill and cancel wake, watched does not; none at all only wakes, for no reason.
 * Any thread. */
NODISCARD enum state_duty state_request(struct process *process, uint32_t generation,
                                        uint32_t requests);

/* Ready -> Running, by the holder of the token; takes the list and the requests, returned with the
 * word as it was. */
NODISCARD static inline uint64_t state_begin(struct process *process)
{
    const uint32_t generation = state_generation(state_peek(process)); /* fixed while Ready */
    const uint64_t before =
        event_list_take_owner(&process->word, state_tag(generation, STATE_RUNNING));
    SKUA_ASSERT(state_of(event_list_tag(before)) == STATE_READY); /* INV-3, INV-4 */
    return before;
}

/* Ready -> Running, and Running, leaving the list where it is, because older events are still
 * undelivered. Only urgent requests are taken: cancel stays with the list. */
NODISCARD uint64_t state_begin_keep(struct process *process);
NODISCARD uint64_t state_take_requests(struct process *process);

/* Running: takes what has arrived since. */
NODISCARD static inline uint64_t state_take(struct process *process)
{
    const uint32_t generation = state_generation(state_peek(process)); /* fixed while Running */
    return event_list_take_owner(&process->word, state_tag(generation, STATE_RUNNING));
}

/* Running: whether state_take would bring something. */
static inline bool state_has_news(struct process *process)
{
    const uint64_t word = load_relaxed(&process->word); /* a hint: state_rest looks for certain */
    return event_list_first(word) != OBJECT_NONE || (event_list_tag(word) & STATE_REQUESTS) != 0;
}

/* Running -> Idle or Blocked, unless something has arrived: then returns false. */
NODISCARD static inline bool state_rest(struct process *process, enum process_state target)
{
    const uint32_t generation = state_generation(state_peek(process)); /* fixed while Running */
    uint64_t expected = event_list_word(OBJECT_NONE, state_tag(generation, STATE_RUNNING));
    const uint64_t resting = event_list_word(OBJECT_NONE, state_tag(generation, target));
    return cas_acq_rel_relaxed(&process->word, &expected, resting); /* release MO-state */
}

/* Running -> Ready, keeping the list. The caller then holds the token. */
static inline void state_requeue(struct process *process)
{
    (void)fetch_sub_acq_rel(&process->word, STATE_RUNNING - STATE_READY); /* release MO-state */
}

/* Running -> Complete; returns the word as it was, with the list to be dropped. */
NODISCARD static inline uint64_t state_finish(struct process *process)
{
    const uint32_t generation = state_generation(state_peek(process)); /* fixed while Running */
    const uint64_t before =
        event_list_take_owner(&process->word, state_tag(generation, STATE_COMPLETE));
    SKUA_ASSERT(state_of(event_list_tag(before)) == STATE_RUNNING); /* INV-4 */
    return before;
}

/* Free -> Init. Returns the generation. */
uint32_t state_prepare(struct process *process);

/* Init -> Ready. seq_cst MO-stop: the spawner looks at the stop flag after it. */
static inline void state_publish(struct process *process, uint32_t generation)
{
    const uint64_t ready = event_list_word(OBJECT_NONE, state_tag(generation, STATE_READY));
    (void)exchange_seq_cst(&process->word, ready);
}

/* Complete or Init -> Free, with the next generation: every PID to this slot is stale from now on.
 * Returns false if the generations of the slot are used up; it must never be used again then. */
NODISCARD bool state_free(struct process *process);

#endif
