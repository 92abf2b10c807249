/* SPDX-License-Identifier: MIT */
#include "sched/exit_wait.h"

#include "base/mutex.h"

void exit_wait_add(struct scheduler *sched, struct exit_waiter *waiter)
{
    mutex_lock(&sched->exit_waiters.lock);
    waiter->told = false;
    waiter->done = false;
    waiter->next = sched->exit_waiters.first;
    sched->exit_waiters.first = waiter;
    mutex_unlock(&sched->exit_waiters.lock);
}

static void remove_locked(struct scheduler *sched, struct exit_waiter *waiter)
{
    struct exit_waiter **link = &sched->exit_waiters.first;
    while (*link != waiter) {
        link = &(*link)->next;
    }
    *link = waiter->next;
}

bool exit_wait_remove(struct scheduler *sched, struct exit_waiter *waiter)
{
    mutex_lock(&sched->exit_waiters.lock);
    const bool told = waiter->told;
    if (!told) {
        remove_locked(sched, waiter);
    }
    mutex_unlock(&sched->exit_waiters.lock);
    return !told;
}

int exit_wait_until(struct scheduler *sched, struct exit_waiter *waiter, uint64_t deadline_ns)
{
    mutex_lock(&sched->exit_waiters.lock);
    bool in_time = true;
    while (!waiter->done && (in_time || waiter->told)) {
        in_time = condition_wait_until(&sched->exit_waiters.changed, &sched->exit_waiters.lock,
                                       waiter->told ? UINT64_MAX : deadline_ns);
    }
    const bool done = waiter->done;
    remove_locked(sched, waiter);
    mutex_unlock(&sched->exit_waiters.lock);
    return done ? 0 : SKUA_E_TIMEOUT;
}

/* A result inside the payload can be given to everybody, one that owns memory only once. */
skua_payload exit_wait_share(skua_payload *result)
{
    const skua_payload shared = *result;
    if (result->storage >= SKUA_PAYLOAD_OWNED) {
        *result = skua_payload_empty(result->type);
    }
    return shared;
}

void exit_wait_tell(struct scheduler *sched, skua_exit *exit)
{
    mutex_lock(&sched->exit_waiters.lock);
    for (struct exit_waiter *waiter = sched->exit_waiters.first; waiter != NULL;
         waiter = waiter->next) {
        if (!waiter->told && skua_pid_equal(waiter->pid, exit->pid)) {
            if (waiter->exit != NULL) {
                *waiter->exit = *exit;
                waiter->exit->result = exit_wait_share(&exit->result);
            }
            waiter->told = true;
        }
    }
    mutex_unlock(&sched->exit_waiters.lock);
}

void exit_wait_release(struct scheduler *sched, skua_pid pid)
{
    mutex_lock(&sched->exit_waiters.lock);
    for (struct exit_waiter *waiter = sched->exit_waiters.first; waiter != NULL;
         waiter = waiter->next) {
        waiter->done = waiter->done || (waiter->told && skua_pid_equal(waiter->pid, pid));
    }
    (void)pthread_cond_broadcast(&sched->exit_waiters.changed);
    mutex_unlock(&sched->exit_waiters.lock);
}
