/* SPDX-License-Identifier: MIT */
#include "inspect/worker_view.h"

uint32_t worker_view_queue_length(struct worker *worker)
{
    const bool has_next = load_relaxed(&worker->next) != NULL; /* a snapshot */
    return deque_length_any(&worker->deque) + has_next;
}

/* What a worker that runs nothing is doing. A worker that was claimed and is not awake yet counts
 * as searching, a spare one as resting. */
static const char *say_idle(struct worker *worker)
{
    struct scheduler *sched = worker->sched;
    if (parking_is_asleep(&sched->parking, worker->index)) {
        const bool polls = load_relaxed(&sched->poll.holder) == worker->index + 1; /* a snapshot */
        return polls ? "polling" : "parked";
    }
    return worker->retires && park_token_is_awaited(&worker->token) ? "resting" : "searching";
}

struct worker_view worker_view_read(struct worker *worker)
{
    const uint64_t running = load_acquire(&worker->running); /* MO-monitor: the PID's record */
    struct worker_view view = {.queue = worker_view_queue_length(worker)};
    view.doing = running == RUNNING_NOTHING ? say_idle(worker) : "running";
    view.pid.bits = running == RUNNING_UNKNOWN ? 0 : running;
    return view;
}
