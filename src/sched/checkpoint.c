/* SPDX-License-Identifier: MIT */
#include "sched/checkpoint.h"

#include "sched/held_back.h"
#include "sched/poll.h"
#include "sched/timers.h"

/* Looking at the descriptors is a system call. What it finds goes to the end of the global queue:
 * as long as something waits there, it may as well wait in the kernel, up to a point. */
#define POLL_PERIOD_NS UINT64_C(50000)
#define POLL_BEHIND_NS UINT64_C(500000)
/* A worker whose timers have been due for so long is in a long step, stuck or resting. */
#define OVERDUE_NS UINT64_C(100000)
#define LOOKS_MAX  4

/* The wheel of another worker with timers that are overdue; or its own. It looks at a few, going
 * round: with many workers, looking at all would cost more than it is worth. */
static uint32_t find_overdue(struct worker *worker, uint64_t now)
{
    struct scheduler *sched = worker->sched;
    const uint32_t threads = scheduler_threads(sched);
    for (uint32_t i = 0; i < LOOKS_MAX && i < threads; i++) {
        const uint32_t other = worker->look_at++ % threads;
        const uint64_t due = deadlines_next(&sched->deadlines, other);
        if (UNLIKELY(due <= now && now - due >= OVERDUE_NS)) {
            return other;
        }
    }
    return worker->index;
}

static void check_descriptors(struct worker *worker, uint64_t now)
{
    struct scheduler *sched = worker->sched;
    const uint64_t last = load_relaxed(&sched->poll.last); /* hint */
    if (load_relaxed(&sched->poll.waits) == 0 ||           /* hint: the next check sees it */
        now <= last || now - last < POLL_PERIOD_NS) {
        return;
    }
    if (now - last >= POLL_BEHIND_NS || !global_queue_has_items(&sched->global)) {
        poll_check(sched, worker, time_now(sched->time));
    }
}

/* Fires one wheel: its own, or every other time that of another worker, if there is need. What a
 * batch wakes comes before what the last one woke. So if a million timers are due, the next batch
 * waits until most of the last have run, or these would wait for all others. The cheap clock only
 * tells that there may be something to do: no timer fires by it. */
static void check_timers(struct worker *worker, uint64_t now, bool looks_around)
{
    struct scheduler *sched = worker->sched;
    const bool is_due = deadlines_next(&sched->deadlines, worker->index) <= now;
    if (LIKELY(!is_due && !looks_around) ||
        cheap_clock_since(now, worker->fired_at) < CHECK_NS / 2) {
        return;
    }
    const bool own_first = is_due && !worker->fired_own;
    const uint32_t wheel = looks_around && !own_first ? find_overdue(worker, now) : worker->index;
    worker->fired_own = wheel == worker->index;
    if (is_due || !worker->fired_own) {
        worker->fired_at = now;
        timers_fire(sched, worker, wheel, time_now(sched->time));
    }
}

/* Its own timers each time; what concerns all workers not more often than it should. */
static void check_sources(struct worker *worker, uint64_t now)
{
    const bool looks_around = cheap_clock_since(now, worker->sources_at) >= CHECK_NS;
    check_timers(worker, now, looks_around);
    if (looks_around) {
        held_back_check(worker);
        worker->sources_at = now;
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
