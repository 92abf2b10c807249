/* SPDX-License-Identifier: MIT */
#include "sched/aside.h"

#include "sched/urgent.h"

static struct task *task_of(const struct process *process)
{
    return process->state.of_task.task;
}

void aside_insert(const struct object_pool *events, struct process *process, uint32_t previous,
                  uint32_t index)
{
    uint32_t *link =
        previous == OBJECT_NONE ? &process->state.of_task.aside : &event_at(events, previous)->next;
    event_at(events, index)->next = *link;
    *link = index;
    if (event_at(events, index)->next == OBJECT_NONE) {
        process->state.of_task.aside_last = index;
    }
}

/* The last of the urgent ones, which come first; or OBJECT_NONE. */
static uint32_t last_urgent(const struct object_pool *events, const struct process *process)
{
    const struct task *task = task_of(process);
    uint32_t last = task != NULL ? task->urgent_aside : OBJECT_NONE;
    uint32_t next =
        last != OBJECT_NONE ? event_at(events, last)->next : process->state.of_task.aside;
    while (next != OBJECT_NONE && urgent_is(event_at(events, next))) {
        last = next;
        next = event_at(events, next)->next;
    }
    return last;
}

void aside_put_urgent(const struct object_pool *events, struct process *process, uint32_t index)
{
    aside_insert(events, process, last_urgent(events, process), index);
    task_of(process)->urgent_aside = index; /* without a stack it would have been wanted */
}

void aside_resume(const struct object_pool *events, struct process *process, uint32_t first,
                  uint32_t last)
{
    const uint32_t previous = last_urgent(events, process);
    uint32_t *link =
        previous == OBJECT_NONE ? &process->state.of_task.aside : &event_at(events, previous)->next;
    event_at(events, last)->next = *link;
    if (*link == OBJECT_NONE) {
        process->state.of_task.aside_last = last;
    }
    *link = first;
}

void aside_take_out(const struct object_pool *events, struct process *process, uint32_t previous,
                    uint32_t index)
{
    const struct event_node *node = event_at(events, index);
    struct task *task = task_of(process);
    if (previous == OBJECT_NONE) {
        process->state.of_task.aside = node->next;
    } else {
        event_at(events, previous)->next = node->next;
    }
    if (process->state.of_task.aside_last == index) {
        process->state.of_task.aside_last = previous;
    }
    if (task != NULL && task->swept == index) {
        task->swept = OBJECT_NONE;
    }
    if (task != NULL && task->urgent_aside == index) {
        task->urgent_aside = previous;
    }
}

void aside_put_back(const struct object_pool *events, struct process *process, uint32_t previous,
                    uint32_t index)
{
    struct event_node *node = event_at(events, index);
    aside_take_out(events, process, previous, index);
    node->next = process->backlog;
    process->backlog = index;
}

void aside_put_all_back(const struct object_pool *events, struct process *process)
{
    if (process->state.of_task.aside != OBJECT_NONE) {
        if (task_of(process) != NULL) {
            task_of(process)->swept = OBJECT_NONE;
            task_of(process)->urgent_aside = OBJECT_NONE;
        }
        event_at(events, process->state.of_task.aside_last)->next = process->backlog;
        process->backlog = process->state.of_task.aside;
        process->state.of_task.aside = OBJECT_NONE;
    }
}
