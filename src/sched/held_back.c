/* SPDX-License-Identifier: MIT */
#include "sched/held_back.h"

#include "base/mutex.h"
#include "process/annex.h"
#include "process/state.h"
#include "sched/poll.h"
#include "sched/worker.h"

/* Those that are let go together. */
#define BATCH 32

/* What it takes to move a message to another core, and its node back. */
#define CHEAP_NS 100

void held_back_init(struct scheduler *sched)
{
    store_relaxed(&sched->held_back.due, UINT64_MAX); /* not shared yet */
    mutex_init(&sched->held_back.lock);
}

void held_back_deinit(struct scheduler *sched)
{
    mutex_deinit(&sched->held_back.lock);
}

/* ---- lines ---- */

static struct held_place *place_in(struct held_line *line, uint32_t number)
{
    return &line->places[(line->first + number) % HELD_BACK_MAX];
}

static uint64_t due_of(struct held_line *line)
{
    return line->count > 0 ? place_in(line, 0)->until : UINT64_MAX;
}

/* The line of a receiver, or an empty one that becomes its line; null if there is no place. */
static struct held_line *find_line_locked(struct scheduler *sched, const struct process *receiver)
{
    struct held_line *found = NULL;
    for (uint32_t i = 0; i < HELD_BACK_LINES; i++) {
        struct held_line *line = &sched->held_back.lines[i];
        if (line->count == 0) {
            found = line;
        } else if (line->receiver == receiver) {
            return line->count < HELD_BACK_MAX ? line : NULL;
        }
    }
    return found;
}

/* Returns whether it has become earlier. */
static bool update_due_locked(struct scheduler *sched)
{
    uint64_t due = UINT64_MAX;
    for (uint32_t i = 0; i < HELD_BACK_LINES; i++) {
        const uint64_t other = due_of(&sched->held_back.lines[i]);
        due = other < due ? other : due;
    }
    return due < exchange_seq_cst(&sched->held_back.due, due); /* P1, MO-poll */
}

static skua_pid remove_locked(struct held_line *line)
{
    const skua_pid pid = place_in(line, 0)->pid;
    line->first = (line->first + 1) % HELD_BACK_MAX;
    line->count--;
    return pid;
}

/* ---- holding back ---- */

static bool is_ready(struct process *process)
{
    return state_of(state_peek(process)) == STATE_READY; /* a hint: time lets go as well */
}

/* Ready -> Blocked or Idle, as settle.c does; false if something has arrived. */
static bool come_to_rest(const struct worker *worker, struct process *process)
{
    const uint32_t calls = *annex_calls(&worker->sched->events, process);
    return state_rest_owner(process, calls != OBJECT_NONE ? STATE_BLOCKED : STATE_IDLE);
}

/* Returns when the process will be let go; 0: it is not held back. */
static uint64_t join_locked(struct worker *worker, struct process *process, bool *is_earlier)
{
    struct scheduler *sched = worker->sched;
    const skua_pid pid = worker->context->self;
    struct held_line *line = find_line_locked(sched, worker->crowded);
    if (line == NULL || !come_to_rest(worker, process)) {
        return 0;
    }
    const uint64_t until = time_after(time_now(sched->time), HELD_BACK_NS);
    line->receiver = worker->crowded;
    *place_in(line, line->count++) = (struct held_place){pid, until};
    *is_earlier = line->count == 1 && update_due_locked(sched);
    return until;
}

/* Whether its last step has sent to a process that is crowded and about to run, and it has nothing
 * to do but to go on. Who was told to end goes on. */
static bool should_be_held_back(struct worker *worker, struct process *process)
{
    const uint64_t flags = PROCESS_CONTINUES | PROCESS_CANCELLED;
    return worker->crowded != NULL &&
           worker->crowded_at == load_relaxed(&worker->stats.steps) && /* this thread's */
           (process_progress(process) & flags) == PROCESS_CONTINUES && worker->crowded != process &&
           is_ready(worker->crowded);
}

/* Whether a message costs less than moving it to another core: what was sent, and most often
 * handled, since the last look. Otherwise senders and receiver had better run side by side.
 * Simulations have no such costs. */
static bool messages_are_cheap(struct worker *worker)
{
    struct time_source *time = worker->sched->time;
    if (!time->is_monotonic) {
        return true;
    }
    const uint64_t now = time_now(time);
    const uint64_t messages = load_relaxed(&worker->stats.messages); /* this thread's */
    const bool is_cheap = worker->rated_at == 0 ||
                          now - worker->rated_at < CHEAP_NS * (messages - worker->rated_messages);
    worker->rated_at = now;
    worker->rated_messages = messages;
    return is_cheap;
}

bool held_back_try(struct worker *worker, struct process *process)
{
    struct scheduler *sched = worker->sched;
    if (!should_be_held_back(worker, process) || !messages_are_cheap(worker)) {
        return false;
    }
    bool is_earlier = false;
    mutex_lock(&sched->held_back.lock);
    const uint64_t until = join_locked(worker, process, &is_earlier);
    mutex_unlock(&sched->held_back.lock);
    if (is_earlier) {
        poll_publish(sched, worker, until);
    }
    if (until != 0) {
        counter_add_owner(&worker->stats.held_back, 1);
    }
    return until != 0;
}

/* ---- letting go ---- */

/* Returns the process if it was held back, or rested for other reasons: the caller has its
 * token. */
static struct process *wake(struct scheduler *sched, skua_pid pid)
{
    struct process *process = process_at(&sched->table, pid_slot(pid));
    const enum state_duty duty = state_request_any(process, pid_generation(pid), 0);
    return duty == STATE_ENQUEUE ? process : NULL;
}

/* Removes the oldest of a line whose receiver rests, or has ended, or has another in its record;
 * false if there is none. */
static bool remove_one(struct scheduler *sched, skua_pid *pid)
{
    bool found = false;
    mutex_lock(&sched->held_back.lock);
    for (uint32_t i = 0; i < HELD_BACK_LINES && !found; i++) {
        struct held_line *line = &sched->held_back.lines[i];
        if (line->count > 0 && !is_ready(line->receiver)) {
            *pid = remove_locked(line);
            (void)update_due_locked(sched);
            found = true;
        }
    }
    mutex_unlock(&sched->held_back.lock);
    return found;
}

struct process *held_back_take(struct worker *worker)
{
    struct scheduler *sched = worker->sched;
    struct process *process = NULL;
    skua_pid pid;
    while (UNLIKELY(held_back_next(sched) != UINT64_MAX) && process == NULL &&
           remove_one(sched, &pid)) {
        process = wake(sched, pid);
    }
    return process;
}

/* Removes those whose time is over, as many as there is room for. */
static uint32_t remove_due(struct scheduler *sched, uint64_t now, skua_pid *pids)
{
    uint32_t count = 0;
    mutex_lock(&sched->held_back.lock);
    for (uint32_t i = 0; i < HELD_BACK_LINES; i++) {
        struct held_line *line = &sched->held_back.lines[i];
        while (count < BATCH && due_of(line) <= now) {
            pids[count++] = remove_locked(line);
        }
    }
    (void)update_due_locked(sched);
    mutex_unlock(&sched->held_back.lock);
    return count;
}

void held_back_release(struct scheduler *sched, uint64_t now)
{
    while (UNLIKELY(held_back_next(sched) <= now)) {
        skua_pid pids[BATCH];
        const uint32_t count = remove_due(sched, now, pids);
        for (uint32_t i = 0; i < count; i++) {
            struct process *process = wake(sched, pids[i]);
            if (process != NULL) {
                submit_outside(sched, process);
            }
        }
    }
}

/* A worker without other work takes one itself, at once, and wakes nobody for it. */
static bool has_other_work(struct worker *worker)
{
    return deque_length_owner(&worker->deque) > 0 ||
           global_queue_has_items(&worker->sched->global) ||
           global_queue_has_items(&worker->sched->behind);
}

void held_back_check(struct worker *worker)
{
    struct scheduler *sched = worker->sched;
    if (LIKELY(held_back_next(sched) == UINT64_MAX)) {
        return;
    }
    struct process *process = has_other_work(worker) ? held_back_take(worker) : NULL;
    if (process != NULL) {
        submit_outside(sched, process);
    }
    held_back_release(sched, time_now(sched->time));
}

bool held_back_has(struct scheduler *sched, skua_pid pid)
{
    bool found = false;
    mutex_lock(&sched->held_back.lock);
    for (uint32_t i = 0; i < HELD_BACK_LINES; i++) {
        struct held_line *line = &sched->held_back.lines[i];
        for (uint32_t number = 0; number < line->count; number++) {
            found |= place_in(line, number)->pid.bits == pid.bits;
        }
    }
    mutex_unlock(&sched->held_back.lock);
    return found;
}
