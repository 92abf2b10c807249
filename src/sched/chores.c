/* SPDX-License-Identifier: MIT */
#include "sched/chores.h"

#include "sched/deliver.h"
#include "sched/poll.h"
#include "sched/socket_hooks.h"
#include "sched/worker.h"

/* Trim when this much memory is free and the runtime has been idle for a while: one burst is often
 * followed by another. */
#define TRIM_BYTES    ((uint64_t)4 << 20)
#define TRIM_DELAY_NS (UINT64_C(250) * 1000000)
/* A trim that has to give up is retried after twice the delay, up to this. After so long it no
 * longer gives way to timers: otherwise a ticker with a short period would keep the memory for
 * ever. */
#define TRIM_DELAY_MAX_NS (UINT64_C(64) * 1000000000)
/* Stacks that are trimmed between two looks for real work. */
#define STACKS_AT_ONCE 16
/* How long the monitor leaves a check to the workers. */
#define CHECK_PATIENCE_NS UINT64_C(1000000000)

/* Tasks have what is below their stack pointers trimmed so long after they have run. A sweep that
 * gives back little is repeated after twice the time. */
#define SWEEP_DELAY_NS     (UINT64_C(10) * 1000000000)
#define SWEEP_DELAY_MAX_NS (UINT64_C(3600) * 1000000000)
#define SWEEP_BYTES        ((uint64_t)1 << 20)
/* Stacks that are looked at, and tasks that are woken, between two looks for real work. */
#define SWEEP_LOOKS 1024
#define SWEEP_TASKS 64

void chores_init(struct scheduler *sched)
{
    store_relaxed(&sched->chores.delay, SWEEP_DELAY_NS); /* not shared yet */
    for (uint32_t i = 0; i < CHORE_COUNT; i++) {
        store_relaxed(&sched->chores.due[i], UINT64_MAX); /* not shared yet */
    }
    sched->chores.trim_delay = TRIM_DELAY_NS;
}

void chores_schedule(struct scheduler *sched, struct worker *worker, enum chore chore,
                     uint64_t when)
{
    uint64_t never = UINT64_MAX;
    /* MO-poll: the worker that is doing the chore may be about to clear it, so a stale due time
     * must not pass for the current one. */
    if (load_seq_cst(&sched->chores.due[chore]) == never &&
        cas_seq_cst(&sched->chores.due[chore], &never, when)) {
        poll_publish(sched, worker, when);
    }
}

void chores_hasten(struct scheduler *sched, struct worker *worker, enum chore chore, uint64_t when)
{
    uint64_t due = load_seq_cst(&sched->chores.due[chore]); /* MO-poll */
    while (when < due) {
        if (cas_seq_cst(&sched->chores.due[chore], &due, when)) { /* MO-poll */
            poll_publish(sched, worker, when);
            return;
        }
    }
}

uint64_t chores_next(struct scheduler *sched)
{
    uint64_t next = UINT64_MAX;
    if (load_seq_cst(&sched->chores.busy) != 0) { /* MO-poll: that worker checks again */
        return next;
    }
    for (uint32_t i = 0; i < CHORE_COUNT; i++) {
        const uint64_t due = load_seq_cst(&sched->chores.due[i]); /* MO-poll */
        next = due < next ? due : next;
    }
    return next;
}

static uint64_t free_in(struct object_pool *pool)
{
    return (uint64_t)object_pool_free_chains(pool) * pool->batch * pool->shape.layout.size;
}

static uint64_t free_bytes(struct scheduler *sched)
{
    return free_in(&sched->table.pool) + free_in(&sched->events) +
           stacks_free_bytes(&sched->stacks);
}

/* If there may be much to win. Not for ever: a sweep makes no steps. */
static void consider_sweep(struct worker *worker)
{
    struct scheduler *sched = worker->sched;
    if (stacks_held_bytes(&sched->stacks) < TRIM_BYTES) {
        return;
    }
    const uint64_t steps = load_relaxed(&worker->stats.steps); /* this thread's */
    if (steps != worker->swept_steps) {
        const uint64_t delay = load_relaxed(&sched->chores.delay); /* a number */
        worker->swept_steps = steps;
        chores_schedule(sched, worker, CHORE_SWEEP, time_after(time_now(sched->time), delay));
    }
}

void chores_consider_trim(struct worker *worker)
{
    struct scheduler *sched = worker->sched;
    consider_sweep(worker);
    if (load_relaxed(&sched->chores.due[CHORE_TRIM]) == UINT64_MAX && /* re-checked by want */
        free_bytes(sched) >= load_relaxed(&sched->chores.kept) + TRIM_BYTES) { /* hint */
        chores_schedule(sched, worker, CHORE_TRIM,
                        time_after(time_now(sched->time), TRIM_DELAY_NS));
    }
}

/* No other worker runs processes and no outside thread is in a call, so nobody is still using a
 * record it has looked up. Whoever looks one up later finds a free record free, whether or not its
 * memory is still there. */
static bool is_quiescent(struct worker *worker)
{
    struct scheduler *sched = worker->sched;
    const uint32_t threads = scheduler_threads(sched);
    for (uint32_t i = 0; i < threads; i++) {
        if (i != worker->index &&
            load_seq_cst(&sched->workers[i].running) != RUNNING_NOTHING) { /* MO-busy */
            return false;
        }
    }
    return load_seq_cst(&sched->callers) == 0; /* MO-caller */
}

struct trimming {
    struct worker *worker;
    bool insists; /* it goes on although a timer is due */
    bool began;
    bool given_up;
};

/* Whether another chore is due. */
static bool check_is_due(struct scheduler *sched)
{
    const uint64_t due = load_relaxed(&sched->chores.due[CHORE_CHECK]); /* hint: asked again */
    return due != UINT64_MAX && due <= time_now(sched->time);
}

/* Whether there is something better to do. A trim sorts millions of objects: with one worker,
 * timers would wait for it, as they are no visible work until they have fired. */
static bool must_give_way(const struct trimming *trimming)
{
    struct scheduler *sched = trimming->worker->sched;
    return idle_work_is_visible(sched) ||
           (!trimming->insists && (poll_is_late(sched) || check_is_due(sched)));
}

/* The pool asks this every so often; first when it has taken its free objects out of circulation,
 * which is the moment when nobody may be about to use one of them (object_pool.h). */
static bool trimming_goes_on(void *arg)
{
    struct trimming *trimming = arg;
    const bool may_begin = trimming->began || is_quiescent(trimming->worker);
    trimming->began = true;
    trimming->given_up = !may_begin || must_give_way(trimming);
    return !trimming->given_up;
}

/* False if real work came up. */
static bool trim_pool(struct worker *worker, struct object_pool *pool)
{
    const bool insists = worker->sched->chores.trim_delay >= TRIM_DELAY_MAX_NS;
    struct trimming trimming = {.worker = worker, .insists = insists};
    const size_t bytes = object_pool_trim_any(pool, trimming_goes_on, &trimming);
    counter_add_owner(&worker->stats.trimmed_bytes, bytes);
    return !trimming.given_up;
}

/* The same for the stacks that no task has. They are under a lock, so others may go on. */
static bool trim_stacks(struct worker *worker)
{
    struct scheduler *sched = worker->sched;
    bool may_be_more = true;
    while (may_be_more && !idle_work_is_visible(sched)) {
        size_t bytes;
        may_be_more = stacks_trim(&sched->stacks, STACKS_AT_ONCE, &bytes);
        counter_add_owner(&worker->stats.trimmed_bytes, bytes);
    }
    return !may_be_more;
}

static uint64_t trim(struct worker *worker, uint64_t now)
{
    struct scheduler *sched = worker->sched;
    if (!trim_stacks(worker) || !trim_pool(worker, &sched->table.pool) ||
        !trim_pool(worker, &sched->events)) {
        uint64_t *delay = &sched->chores.trim_delay;
        *delay = *delay < TRIM_DELAY_MAX_NS ? 2 * *delay : *delay;
        return time_after(now, *delay);
    }
    sched->chores.trim_delay = TRIM_DELAY_NS;
    store_relaxed(&sched->chores.kept, free_bytes(sched)); /* hint */
    return UINT64_MAX;
}

/* The sweep is over. What the last tasks give back counts for the next. */
static void judge_sweep(struct scheduler *sched)
{
    const uint64_t delay = load_relaxed(&sched->chores.delay); /* only written here */
    const uint64_t twice = 2 * delay < SWEEP_DELAY_MAX_NS ? 2 * delay : SWEEP_DELAY_MAX_NS;
    const bool was_worth_it = load_relaxed(&sched->chores.swept) >= SWEEP_BYTES; /* a hint */
    store_relaxed(&sched->chores.swept, 0);                                      /* likewise */
    store_relaxed(&sched->chores.delay, was_worth_it ? SWEEP_DELAY_NS : twice);  /* a number */
    sched->chores.at = (struct stack_place){0};
}

/* Only whoever holds the token of a task may touch its stack. So tasks are woken for nothing, some
 * at a time; whoever finds that there is nothing for one trims it (inbox.c). */
static uint64_t sweep(struct worker *worker, uint64_t now)
{
    struct scheduler *sched = worker->sched;
    uint32_t woken = 0;
    for (uint32_t looks = 0; looks < SWEEP_LOOKS && woken < SWEEP_TASKS; looks++) {
        skua_pid pid;
        if (!stacks_next_owner(&sched->stacks, &sched->chores.at, &pid.bits)) {
            judge_sweep(sched);
            now = UINT64_MAX;
            break;
        }
        if (pid.bits != 0) {
            (void)fetch_add_relaxed(&sched->chores.woken, 1); /* a count */
            woken += deliver_request(sched, worker, pid, 0) == 0;
        }
    }
    return now;
}

static uint64_t check(struct worker *worker, uint64_t now)
{
    struct poller *poller = worker->sched->poller;
    return poller->check(poller, worker, now);
}

static uint64_t look_after_sockets(struct worker *worker, uint64_t now)
{
    struct socket_hooks *sockets = worker->sched->sockets;
    sockets->alarm(sockets, worker, now);
    return UINT64_MAX; /* it has said when to come again */
}

/* Schedules a chore again. If somebody has done so meanwhile, theirs stands. */
static void finish(struct scheduler *sched, struct worker *worker, enum chore chore, uint64_t again)
{
    if (again != UINT64_MAX) {
        chores_schedule(sched, worker, chore, again);
    }
}

/* Releases the chores. While one worker has them, others sleep without checking them. */
static void end(struct scheduler *sched, struct worker *worker)
{
    (void)exchange_seq_cst(&sched->chores.busy, 0); /* MO-poll */
    const uint64_t next = chores_next(sched);
    if (next != UINT64_MAX) {
        poll_publish(sched, worker, next);
    }
}

bool chores_are_due(struct scheduler *sched)
{
    const uint64_t next = chores_next(sched);
    return UNLIKELY(next != UINT64_MAX) && next <= time_now(sched->time) &&
           exchange_seq_cst(&sched->chores.busy, 1) == 0; /* MO-poll */
}

void chores_do(struct worker *worker)
{
    static uint64_t (*const functions[CHORE_COUNT])(struct worker *, uint64_t) = {
        [CHORE_TRIM] = trim,
        [CHORE_CHECK] = check,
        [CHORE_SWEEP] = sweep,
        [CHORE_SOCKETS] = look_after_sockets};
    struct scheduler *sched = worker->sched;
    const uint64_t now = time_now(sched->time);
    for (uint32_t i = 0; i < CHORE_COUNT; i++) {
        if (load_seq_cst(&sched->chores.due[i]) <= now) { /* MO-poll */
            /* First of all, so that whoever schedules it from now on gets another run. */
            (void)exchange_seq_cst(&sched->chores.due[i], UINT64_MAX); /* MO-poll */
            finish(sched, worker, i, functions[i](worker, now));
        }
    }
    end(sched, worker);
}

/* Claims a chore that no worker has found the time for. */
static bool is_overdue(struct scheduler *sched, enum chore chore, uint64_t now)
{
    const uint64_t due = load_seq_cst(&sched->chores.due[chore]); /* MO-poll */
    if (due > now || now - due < CHECK_PATIENCE_NS ||
        exchange_seq_cst(&sched->chores.busy, 1) != 0) { /* MO-poll */
        return false;
    }
    (void)exchange_seq_cst(&sched->chores.due[chore], UINT64_MAX); /* MO-poll */
    return true;
}

void chores_check_if_overdue(struct scheduler *sched, uint64_t now)
{
    if (is_overdue(sched, CHORE_CHECK, now)) {
        finish(sched, NULL, CHORE_CHECK, sched->poller->check(sched->poller, NULL, now));
        end(sched, NULL);
    }
    if (is_overdue(sched, CHORE_SOCKETS, now)) {
        sched->sockets->alarm(sched->sockets, NULL, now);
        end(sched, NULL);
    }
}
