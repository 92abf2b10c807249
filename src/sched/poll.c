/* SPDX-License-Identifier: MIT */
#include "sched/poll.h"

#include "sched/chores.h"
#include "sched/held_back.h"
#include "sched/note.h"
#include "sched/timers.h"
#include "sched/worker.h"

#define HOLDER_NOBODY  0
#define HOLDER_OUTSIDE UINT32_MAX

/* The value of `until` while the holder is awake: no deadline is earlier. */
#define UNTIL_AWAKE 0

static uint64_t earlier_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t next_deadline(struct scheduler *sched)
{
    const uint64_t timer = timers_next(sched);
    const uint64_t chore = chores_next(sched);
    return earlier_of(earlier_of(timer, chore), held_back_next(sched));
}

static bool has_sources(struct scheduler *sched)
{
    return load_seq_cst(&sched->poll.waits) > 0 || /* MO-poll */
           next_deadline(sched) != UINT64_MAX;
}

bool poll_is_unattended(struct scheduler *sched)
{
    return load_seq_cst(&sched->poll.holder) == HOLDER_NOBODY && has_sources(sched); /* MO-poll */
}

bool poll_is_late(struct scheduler *sched)
{
    const uint64_t next = earlier_of(timers_next(sched), held_back_next(sched));
    return next != UINT64_MAX && load_seq_cst(&sched->poll.holder) == HOLDER_NOBODY && /* MO-poll */
           next <= time_now(sched->time);
}

static bool take_role(struct scheduler *sched, uint32_t holder)
{
    uint32_t nobody = HOLDER_NOBODY;
    return cas_seq_cst(&sched->poll.holder, &nobody, holder); /* MO-poll */
}

static uint32_t holder_of(const struct worker *worker)
{
    return worker != NULL ? worker->index + 1 : HOLDER_OUTSIDE;
}

bool poll_try_take(struct scheduler *sched, struct worker *worker)
{
    timers_correct_next(worker);
    return poll_is_unattended(sched) && take_role(sched, holder_of(worker));
}

void poll_hand_over(struct scheduler *sched, struct worker *worker)
{
    if (poll_is_unattended(sched)) {
        idle_wake_one(sched, worker);
    }
}

/* INV-13. Wakes nobody if the caller is searching. */
static void release_role(struct scheduler *sched, struct worker *worker)
{
    (void)exchange_seq_cst(&sched->poll.holder, HOLDER_NOBODY); /* MO-poll */
    if ((worker == NULL || worker->picks_are_long) && has_sources(sched)) {
        idle_wake_one(sched, worker);
    }
}

void poll_publish(struct scheduler *sched, struct worker *worker, uint64_t deadline)
{
    if (load_seq_cst(&sched->poll.holder) == HOLDER_NOBODY) { /* P1b, MO-poll */
        idle_wake_one(sched, worker);
    } else if (deadline < load_seq_cst(&sched->poll.until)) { /* P1a, MO-poll */
        sched->poller->interrupt(sched->poller);
    }
}

/* W1, W2. */
static uint64_t announce_deadline(struct scheduler *sched)
{
    uint64_t deadline = next_deadline(sched);
    for (;;) {
        (void)exchange_seq_cst(&sched->poll.until, deadline); /* MO-poll */
        const uint64_t again = next_deadline(sched);
        if (again >= deadline) {
            return deadline;
        }
        deadline = again;
    }
}

static void record_poll(struct scheduler *sched, struct worker *worker, uint64_t now)
{
    store_relaxed(&sched->poll.last, now); /* hint: polling too often or too late does no harm */
    NOTE_COUNT(sched, worker, polls);
}

/* S4. Waits until there is a reason to wake up; returns how many descriptors are ready, and gives
 * the time. */
static uint32_t wait_in_poller(struct worker *worker, uint64_t *time)
{
    struct scheduler *sched = worker->sched;
    for (;;) {
        const uint64_t deadline = announce_deadline(sched);
        const uint32_t ready = sched->poller->wait(sched->poller, deadline);
        const uint64_t now = time_now(sched->time);
        (void)exchange_seq_cst(&sched->poll.until, UNTIL_AWAKE); /* MO-poll */
        record_poll(sched, worker, now);
        if (ready > 0 || now >= next_deadline(sched) || park_token_is_given(&worker->token)) {
            *time = now;
            return ready;
        }
    }
}

/* Becomes a searcher again: on its own, or by the token that somebody gave or is about to give. */
static void wake_up(struct worker *worker)
{
    const bool claimed = !park_token_end_polling_owner(&worker->token) ||
                         !parking_retract_owner(&worker->sched->parking, worker->index);
    if (claimed) {
        park_token_take_owner(&worker->token);
    }
}

void poll_sleep(struct worker *worker)
{
    struct scheduler *sched = worker->sched;
    uint32_t ready = 0;
    uint64_t now;
    if (park_token_start_polling_owner(&worker->token)) {
        ready = wait_in_poller(worker, &now);
        wake_up(worker);
    } else {
        park_token_take_owner(&worker->token);
        now = time_now(sched->time);
    }
    if (ready > 0) {
        sched->poller->deliver(sched->poller, worker, ready);
    }
    timers_fire_all(sched, worker, now);
    held_back_release(sched, now);
    release_role(sched, worker);
}

/* A worker that has work delivers as a thread from outside would, to the end of the global queue.
 * In its deque, where the newest comes first, each poll would bury what the last has brought. */
static bool goes_behind(struct worker *worker)
{
    return worker == NULL || load_relaxed(&worker->next) != NULL || /* only this thread fills it */
           deque_length_owner(&worker->deque) > 0 || global_queue_has_items(&worker->sched->global);
}

void poll_check(struct scheduler *sched, struct worker *worker, uint64_t now)
{
    if (!take_role(sched, holder_of(worker))) {
        return;
    }
    record_poll(sched, worker, now);
    const uint32_t ready = sched->poller->wait(sched->poller, 0);
    if (ready > 0) {
        sched->poller->deliver(sched->poller, goes_behind(worker) ? NULL : worker, ready);
    }
    release_role(sched, worker);
}
