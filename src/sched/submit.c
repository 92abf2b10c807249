/* SPDX-License-Identifier: MIT */
/* Where a process goes when it becomes Ready.
 *
 * What waits in the next slot is not published: the worker picks it as soon as its step ends, and
 * waking another for it would cost more than most steps take. But if the step goes on for long, it
 * must not wait beside an idle worker. So a spawn, and a send while picks are long, wake a sleeper
 * all the same: it searches, and takes what is still there at the end of that (steal.c). That is a
 * hint, without the order of operations that parking.h demands; if it comes to nothing because the
 * other was about to fall asleep, the monitor frees the slot with its next sample.
 *
 * A process that readies hundreds at once, such as one that publishes to a group, notes them
 * (submit_later), and they go to the deque with one publication instead of one each. If nothing
 * else is there, it then waits in the next slot until they have run (`next_gives_way`). Through the
 * global queue it would go to whichever worker searches, with each slice to another, and so would
 * the event nodes of all whom it writes to: where a cache line takes 190 ns from core to core, that
 * tripled the time of a message. Thieves leave the slot alone; they may have those in the deque.
 *
 * In the same way, a parent that is woken while its children are the newest in the deque waits in
 * the next slot for them: it takes their answers in one step, instead of resting and waking for
 * each. It does not wait for a single child: with the slot taken, that would have to push its own
 * children to the deque, which costs as much as it saves. Whose children these are is a guess
 * (`family`), which is dropped when the eldest has been stolen, or find_work finds the deque
 * empty. */
#include "sched/held_back.h"
#include "sched/worker.h"

#define CHILDREN_MANY 2

static void push_shared(struct global_queue *queue, struct process *process)
{
    global_queue_push_any(queue, &process->link.queue, &process->link.queue);
}

/* Moves the older half of a full deque to the global queue, in order. */
static void spill(struct worker *worker)
{
    void *items[DEQUE_CAPACITY / 2];
    const int count = deque_steal_any(&worker->deque, items, DEQUE_CAPACITY / 2);
    if (count <= 0) {
        return; /* thieves made room */
    }
    for (int i = 1; i < count; i++) {
        struct process *process = items[i];
        struct process *older = items[i - 1];
        process->link.queue.next = &older->link.queue;
    }
    struct process *oldest = items[0];
    struct process *newest = items[count - 1];
    global_queue_push_any(&worker->sched->global, &newest->link.queue, &oldest->link.queue);
    counter_add_owner(&worker->stats.spills, 1);
    worker->has_spilled = true;
    worker->is_pressed = true; /* whoever readies so many goes on when they have run */
}

void submit_all_to_global(struct worker *worker)
{
    find_release_next(worker);
    while (deque_length_owner(&worker->deque) > 0) {
        spill(worker);
    }
    idle_wake_one(worker->sched, worker);
}

/* Not empty. */
static NOINLINE void push_woken(struct worker *worker)
{
    struct process **rest = worker->woken.processes;
    uint32_t left = worker->woken.count;
    for (;;) {
        const uint32_t pushed = deque_push_many_owner(&worker->deque, (void *const *)rest, left);
        rest += pushed;
        left -= pushed;
        if (LIKELY(left == 0)) {
            break;
        }
        spill(worker);
    }
    worker->woken.count = 0;
    idle_wake_one(worker->sched, worker);
}

void submit_woken(struct worker *worker)
{
    if (worker->woken.count > 0) {
        push_woken(worker);
    }
}

void submit_to_deque(struct worker *worker, struct process *process)
{
    while (UNLIKELY(!deque_push_owner(&worker->deque, process))) {
        spill(worker);
    }
    idle_wake_one(worker->sched, worker);
}

static bool put_in_empty_next(struct worker *worker, struct process *process)
{
    if (load_relaxed(&worker->next) != NULL) { /* only this thread fills it */
        return false;
    }
    store_release(&worker->next, process);  /* MO-next */
    if (UNLIKELY(worker->next_gives_way)) { /* a thief has taken the one that did */
        worker->next_gives_way = false;
    }
    return true;
}

void submit_outside(struct scheduler *sched, struct process *process)
{
    push_shared(&sched->global, process);
    idle_wake_one(sched, NULL);
}

/* Counts the children of worker->family in the deque, together with all that is newer; 0, for
 * unknown, if the eldest is no longer there. */
static uint32_t count_children(struct worker *worker)
{
    const int32_t count = deque_count_from_owner(&worker->deque, worker->family.eldest);
    return count > 0 && (uint32_t)count <= deque_length_owner(&worker->deque) ? (uint32_t)count : 0;
}

/* The next in the deque is a child of the process that runs. */
static void remember_child(struct worker *worker)
{
    const struct process *parent = worker->context->process;
    if (worker->family.parent != parent ||
        deque_count_from_owner(&worker->deque, worker->family.eldest) <= 0) {
        worker->family.parent = parent;
        worker->family.eldest = deque_bottom_owner(&worker->deque);
    }
}

void submit_spawned(struct scheduler *sched, struct worker *worker, struct process *process)
{
    if (UNLIKELY(worker == NULL)) {
        submit_outside(sched, process);
    } else if (worker->blocks || !put_in_empty_next(worker, process)) {
        remember_child(worker);
        submit_to_deque(worker, process);
    } else {
        idle_wake_one(sched, worker); /* whoever starts a child may well go on for long */
    }
}

static ALWAYS_INLINE void put_in_next(struct worker *worker, struct process *process)
{
    if (put_in_empty_next(worker, process)) {
        return;
    }
    worker->next_gives_way = false;
    struct process *displaced = exchange_acq_rel(&worker->next, process); /* MO-next */
    if (displaced != NULL) {
        submit_to_deque(worker, displaced);
    }
}

static NOINLINE void submit_ready_rarely(struct scheduler *sched, struct worker *worker,
                                         struct process *process)
{
    if (worker == NULL) {
        submit_outside(sched, process);
    } else if (worker->blocks) {
        submit_to_deque(worker, process);
    } else {
        put_in_next(worker, process);
        idle_wake_one(sched, worker); /* picks are long */
    }
}

/* What is in the next slot waits for what is in the deque from an index on. */
static void let_next_follow(struct worker *worker, uint32_t index)
{
    worker->next_gives_way = true;
    worker->next_follows = index;
}

static NOINLINE void put_parent_in_next(struct worker *worker, struct process *process)
{
    const bool follows = count_children(worker) >= CHILDREN_MANY; /* not what it may displace */
    put_in_next(worker, process);
    if (follows) {
        let_next_follow(worker, worker->family.eldest);
    }
}

void submit_ready(struct scheduler *sched, struct worker *worker, struct process *process)
{
    if (UNLIKELY(worker == NULL || worker->blocks || worker->picks_are_long)) {
        submit_ready_rarely(sched, worker, process);
    } else if (UNLIKELY(worker->family.parent == process)) {
        put_parent_in_next(worker, process);
    } else {
        put_in_next(worker, process);
    }
}

/* Nothing else is there, but for what it has just readied. */
static void stay(struct worker *worker, struct process *process)
{
    put_in_next(worker, process);
    if (worker->woken.count > 0) {
        let_next_follow(worker, deque_bottom_owner(&worker->deque));
        worker->is_renewed = true;
    }
}

/* If nothing else is there, it stays, which costs no atomic operation. Under back-pressure it must
 * not go on before those that it has put to work: it waits at the end of their queue. So does one
 * that does not continue: it has events to react to. */
static void submit_behind(struct worker *worker, struct process *process)
{
    struct scheduler *sched = worker->sched;
    const bool continues = (process_progress(process) & PROCESS_CONTINUES) != 0;
    struct global_queue *queue = continues && !worker->is_pressed ? &sched->behind : &sched->global;
    const bool alone = deque_length_owner(&worker->deque) == 0 &&
                       !global_queue_has_items(&sched->global) &&
                       !global_queue_has_items(&sched->behind) &&
                       load_relaxed(&worker->next) == NULL; /* only this thread fills it */
    if (alone) {
        stay(worker, process);
        return;
    }
    push_shared(queue, process);
    idle_wake_one(sched, worker);
}

void submit_unfinished(struct worker *worker, struct process *process)
{
    if (process->backlog != OBJECT_NONE) {
        put_in_next(worker, process);
    } else if (LIKELY(!worker->is_pressed) || !held_back_try(worker, process)) {
        submit_behind(worker, process);
    }
    submit_woken(worker);
}

void submit_behind_all(struct worker *worker, struct process *process)
{
    push_shared(&worker->sched->behind, process);
    idle_wake_one(worker->sched, worker);
}
