/* SPDX-License-Identifier: MIT */
/* The order of a worker's sources: its next slot, its deque (newest first), the global queue, the
 * queue behind.
 *
 * There are two classes of processes. A process that has used up its slice and merely continues
 * goes *behind*; whatever was woken or is new comes first. So a process that reacts waits for one
 * slice of those that compute, however many they are.
 *
 * That order alone is unfair: two processes that wake each other would hold the next slot for ever,
 * a deque that is never empty would starve the global queue, and both the queue behind. So there
 * are rules of fairness, in time. They are applied at a *checkpoint*: a worker counts its picks,
 * and at zero reads the clock.
 *  - While picks are short, there are up to PICKS_MAX between two checkpoints, or CHECK_NS. When
 *    they are long, every pick begins with a checkpoint. The monitor asks for one if picks have
 *    become long since the last (checkpoint_hasten).
 *  - The oldest process of the deque is picked, or of the global queue: they take turns. After such
 *    a pick the others come first: for OLDEST_NS if it was short, so that those that converse stay
 *    in the cache; for as long as it took, if that was LASTING_NS or more. If the deque was empty
 *    since the last such pick, and was filled at once (submit.c), its oldest is put off once, by
 *    OLDEST_NS.
 *  - After a pick from behind that took d, the first class comes first for d. Then the queue behind
 *    is due again: it gets half of the time if the first class always has work, and no more.
 *
 * The bound (INV-16), for a Ready process with n others ahead of it in its queue. Let p be the
 * longest pick that is made meanwhile: SLICE_NS and four steps at most (slice.h), or one step while
 * picks are long.
 *  - In the next slot it waits for the end of the current pick; then it runs, or goes to the deque;
 *    or it gives way to the newest in the deque, back to where what it has readied or started
 *    begins, until the next pick of another source.
 *  - Out of the deque or the global queue a worker picks it after at most 2 (n + 1) picks of the
 *    oldest. From the beginning of one to that of the next the worker spends at most p, then
 *    max(OLDEST_NS, p), then the time to a checkpoint, then a pick from behind, then one from the
 *    next slot. To that comes OLDEST_NS, once: while it is in the deque, that is not empty.
 *  - Out of the queue behind some worker picks it after n + 1 picks from there, and every worker
 *    makes one at least every 2 p and the time to a checkpoint and a pick of the oldest.
 *  - A process that is held back is in no queue (held_back.h): HELD_BACK_NS and the time to a
 *    checkpoint later, at most, it is in the global queue.
 *  - The time to a checkpoint is at most that of PICKS_MAX picks, and, while the monitor runs, two
 *    of its samples and a pick.
 * It leaves its queue to run; or, while a worker was without work of its own, to that worker's
 * deque; or, out of a deque that overflows, to the end of the global queue. Due timers and ready
 * descriptors wait for a checkpoint and no longer; what a busy worker then finds ready goes to the
 * global queue (poll_check). */
#include "sched/checkpoint.h"
#include "sched/held_back.h"
#include "sched/worker.h"

#define OLDEST_NS    UINT64_C(20000)
#define LASTING_NS   UINT64_C(1000)
#define GLOBAL_BATCH 16

static struct process *empty_next(struct worker *worker)
{
    if (load_relaxed(&worker->next) == NULL) { /* only this thread fills it */
        return NULL;
    }
    return exchange_seq_cst(&worker->next, NULL); /* MO-next: a thief may take it; MO-stop */
}

/* Another process runs first. The one in the next slot has waited for one step already and must not
 * wait for a second where nobody can see it: it goes to the deque, and a parked worker is woken. */
void find_release_next(struct worker *worker)
{
    worker->next_gives_way = false;
    struct process *process = empty_next(worker);
    if (process != NULL) {
        submit_to_deque(worker, process);
    }
}

static ALWAYS_INLINE struct process *take_newest(struct worker *worker)
{
    struct process *process = deque_pop_owner(&worker->deque);
    if (process != NULL) {
        counter_add_owner(&worker->stats.local_pops, 1);
    }
    return process;
}

/* If the deque was empty not long ago, its oldest can wait. */
static struct process *take_oldest(struct worker *worker)
{
    void *process;
    if (UNLIKELY(worker->is_renewed)) {
        worker->is_renewed = false;
        worker->oldest_due = worker->checked_at + OLDEST_NS;
        return NULL;
    }
    if (deque_length_owner(&worker->deque) == 0 ||
        deque_steal_any(&worker->deque, &process, 1) != 1) {
        return NULL; /* empty, or a thief was faster, which is just as good */
    }
    counter_add_owner(&worker->stats.local_pops, 1);
    return process;
}

/* Takes one, and up to `extra` more into the deque. */
static struct process *take_shared(struct worker *worker, struct global_queue *queue,
                                   uint32_t extra)
{
    if (!global_queue_has_items(queue)) {
        return NULL;
    }
    struct queue_link *links[1 + GLOBAL_BATCH];
    const uint32_t count =
        global_queue_pop_any(queue, links, 1 + extra, worker->sched->worker_count);
    if (count == 0) {
        return NULL;
    }
    counter_add_owner(&worker->stats.global_pops, count);
    /* The oldest runs now; the rest are pushed newest first, so that the oldest pops first. */
    for (uint32_t i = count - 1; i > 0; i--) {
        submit_to_deque(worker, process_of_link(links[i]));
    }
    return process_of_link(links[0]);
}

/* Only one at a time: in a deque it would belong to the first class. */
static struct process *take_behind(struct worker *worker)
{
    struct process *process = take_shared(worker, &worker->sched->behind, 0);
    if (process != NULL) {
        checkpoint_measure(worker, PICK_BEHIND);
    }
    return process;
}

struct process *find_shared(struct worker *worker)
{
    struct process *process = take_shared(worker, &worker->sched->global, GLOBAL_BATCH);
    return process != NULL ? process : take_behind(worker);
}

/* The oldest of the deque or of the global queue, by turns; but a deque that has overflowed has
 * nothing older than what it spilled. It takes only what it runs: moving more processes into a
 * deque that is never empty would gain them nothing. */
static struct process *take_longest_waiting(struct worker *worker)
{
    struct global_queue *global = &worker->sched->global;
    const bool global_first = worker->has_spilled || !worker->global_was_first;
    worker->has_spilled = false;
    struct process *process = global_first ? take_shared(worker, global, 0) : take_oldest(worker);
    worker->global_was_first = global_first;
    if (process == NULL) {
        process = global_first ? take_oldest(worker) : take_shared(worker, global, 0);
    }
    if (process != NULL) {
        checkpoint_measure(worker, PICK_OLDEST);
    }
    return process;
}

/* The last pick was measured: when its kind comes first again. */
static void set_due(struct worker *worker, const struct checkpoint_result *result)
{
    const uint64_t took = result->took;
    if (result->measured == PICK_BEHIND) {
        worker->behind_due = result->now + took + 1; /* also on a clock that stands still */
    } else if (result->measured == PICK_OLDEST) {
        worker->oldest_due = result->now + (took >= LASTING_NS ? took : OLDEST_NS);
    }
}

/* What is in the next slot was woken just now, perhaps by a timer, and goes first, once. If it went
 * to the deque, the next timers that fire would bury it there. */
static bool gives_way_to_next(struct worker *worker)
{
    worker->gave_way = !worker->gave_way && !worker->next_gives_way &&
                       load_relaxed(&worker->next) != NULL; /* its own */
    if (worker->gave_way) {
        checkpoint_hasten(worker);
    }
    return worker->gave_way;
}

/* The pick that fairness calls for, if one is due. */
static NOINLINE struct process *take_fair(struct worker *worker)
{
    const struct checkpoint_result result = checkpoint(worker);
    struct process *process = NULL;
    set_due(worker, &result);
    const bool behind_is_due =
        result.now >= worker->behind_due && global_queue_has_items(&worker->sched->behind);
    const bool oldest_is_due = result.now >= worker->oldest_due;
    if ((behind_is_due || oldest_is_due) && gives_way_to_next(worker)) {
        return NULL;
    }
    if (behind_is_due) {
        process = take_behind(worker);
    }
    if (process == NULL && oldest_is_due) {
        process = take_longest_waiting(worker);
    }
    if (process != NULL) {
        find_release_next(worker);
    }
    return process;
}

/* One that the process in the next slot waits for; null if all of them have run. */
static NOINLINE struct process *take_before_next(struct worker *worker)
{
    const bool is_left = load_relaxed(&worker->next) != NULL && /* a thief may have taken it */
                         deque_count_from_owner(&worker->deque, worker->next_follows) > 0;
    struct process *process = is_left ? take_newest(worker) : NULL;
    worker->next_gives_way = process != NULL;
    return process;
}

struct process *find_work(struct worker *worker)
{
    struct process *process;
    if (UNLIKELY(checkpoint_is_due(worker))) {
        process = take_fair(worker);
        if (process != NULL) {
            return process;
        }
    }
    if (UNLIKELY(worker->next_gives_way)) {
        process = take_before_next(worker);
        if (process != NULL) {
            return process;
        }
    }
    process = empty_next(worker);
    if (process != NULL) {
        counter_add_owner(&worker->stats.next_pops, 1);
        return process;
    }
    process = take_newest(worker);
    if (process == NULL) {
        worker->family.parent = NULL;
        process = find_shared(worker);
    }
    return process != NULL ? process : held_back_take(worker);
}
