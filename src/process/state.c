/* SPDX-License-Identifier: MIT */
#include "process/state.h"

enum state_duty state_request_any(struct process *process, uint32_t generation, uint32_t requests)
{
    const bool wakes = requests != STATE_WATCHED;
    uint64_t seen = load_acquire(&process->word); /* MO-inspect: not older than what a scan saw */
    for (;;) {
        const uint32_t before = event_list_tag(seen);
        uint32_t tag = before;
        if (state_gate(&tag, generation) == EVENT_LIST_REFUSED) {
            return STATE_CLOSED;
        }
        tag = (wakes ? tag : before) | requests;
        /* acq_rel MO-state, as for state_push_any. */
        if (cas_acq_rel_relaxed(&process->word, &seen,
                                event_list_word(event_list_first(seen), tag))) {
            return wakes && state_is_waiting(before) ? STATE_ENQUEUE : STATE_DONE;
        }
    }
}

enum state_duty state_push_urgent_any(struct process *process, uint32_t generation, uint32_t index,
                                      uint32_t *next)
{
    switch (event_list_push_any(&process->word, index, next, state_gate_urgent, generation)) {
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

uint64_t state_take_requests_owner(struct process *process)
{
    uint64_t seen = state_peek(process) & (STATE_AT_ONCE | STATE_URGENT);
    if ((seen & STATE_AT_ONCE) != 0) { /* only this thread clears them */
        seen |= fetch_and_acq_rel(&process->word, ~(uint64_t)STATE_AT_ONCE);
    }
    return seen & (STATE_AT_ONCE | STATE_URGENT);
}

_Static_assert(OBJECT_NONE == 0, "a mask empties the list");

uint32_t state_take_list_owner(struct process *process)
{
    const uint64_t kept = UINT32_MAX & ~STATE_URGENT;
    return event_list_first(fetch_and_acq_rel(&process->word, kept)); /* acquire MO-event */
}

uint32_t state_put_back_owner(struct process *process, uint32_t index)
{
    uint64_t seen = load_acquire(&process->word); /* MO-event */
    while (event_list_first(seen) == OBJECT_NONE) {
        /* Requests may come meanwhile; acquire MO-event when it fails. */
        if (cas_acq_rel_acquire(&process->word, &seen,
                                event_list_word(index, event_list_tag(seen)))) {
            return OBJECT_NONE;
        }
    }
    return event_list_first(seen);
}

const char *skua_process_state_name(enum skua_process_state state)
{
    switch (state) {
    case SKUA_PROCESS_READY:
        return "ready";
    case SKUA_PROCESS_RUNNING:
        return "running";
    case SKUA_PROCESS_BLOCKED:
        return "blocked";
    case SKUA_PROCESS_IDLE:
        return "idle";
    }
    return "?";
}
