/* SPDX-License-Identifier: MIT */
#include "sched/checkpoint.h"

#include "sched/poll.h"
#include "sched/timers.h"

/* Looking at the descriptors is a system call. */
#define POLL_PERIOD_NS UINT64_C(50000)
/* A worker whose timers have been due for so long is in a long step, stuck or resting. */
#define OVERDUE_NS UINT64_C(100000)

/* The timers of the other workers. */
static void check_other_timers(struct worker *worker, uint64_t now)
{
    struct scheduler *sched = worker->sched;
    const uint32_t threads = scheduler_threads(sched);
    for (uint32_t i = 0; i < threads; i++) {
        const uint64_t due = deadlines_next(&sched->deadlines, i);
        if (UNLIKELY(due <= now && now - due >= OVERDUE_NS)) {
            timers_fire(sched, worker, i, time_now(sched->time));
        }
    }
}

static void check_descriptors(struct worker *worker, uint64_t now)
{
    struct scheduler *sched = worker->sched;
    const uint64_t last = load_relaxed(&sched->poll.last);   /* hint */
    const bool waits = load_relaxed(&sched->poll.waits) > 0; /* hint: the next check sees it */
    if (waits && now > last && now - last >= POLL_PERIOD_NS) {
        poll_check(sched, worker, time_now(sched->time));
    }
}

/* Its own timers, each time; what concerns all workers, not more often than it should. The cheap
 * clock only tells that there may be something to do: no timer fires by it. */
static void check_sources(struct worker *worker, uint64_t now)
{
    struct scheduler *sched = worker->sched;
    if (UNLIKELY(deadlines_next(&sched->deadlines, worker->index) <= now)) {
        timers_fire(sched, worker, worker->index, time_now(sched->time));
    }
    if (cheap_clock_since(now, worker->sources_at) >= CHECK_NS) {
        worker->sources_at = now;
        check_other_timers(worker, now);
        check_descriptors(worker, now);
    }
}

/* Grants as many picks as should take CHECK_NS, going by the last ones: it doubles the number while
 * that is too few, and starts from one again when it was too many. */
static void grant_picks(struct worker *worker, uint64_t took)
{
    worker->picks_are_long = took >= 2 * CHECK_NS * worker->picks_granted;
    if (took >= 2 * CHECK_NS) {
        worker->picks_granted = 1;
    } else if (took < CHECK_NS / 2 && worker->picks_granted < PICKS_MAX) {
        worker->picks_granted *= 2;
    }
    store_relaxed(&worker->picks_left, worker->picks_granted); /* MO-countdown */
}

struct checkpoint_result checkpoint(struct worker *worker)
{
    const uint64_t now = checkpoint_clock(worker);
    const struct checkpoint_result result = {
        .now = now,
        .measured = worker->measured,
        .took = cheap_clock_since(now, worker->checked_at),
    };
    grant_picks(worker, result.took);
    worker->measured = PICK_ANY;
    worker->checked_at = now;
    check_sources(worker, now);
    return result;
}
