/* SPDX-License-Identifier: MIT */
#include "sched/watch.h"

#include "base/mutex.h"

void watch_add(struct scheduler *sched, struct watcher *watcher)
{
    mutex_lock(&sched->watch.lock);
    watcher->done = false;
    watcher->next = sched->watch.first;
    sched->watch.first = watcher;
    mutex_unlock(&sched->watch.lock);
}

static void remove_locked(struct scheduler *sched, struct watcher *watcher)
{
    struct watcher **link = &sched->watch.first;
    while (*link != watcher) {
        link = &(*link)->next;
    }
    *link = watcher->next;
}

void watch_remove(struct scheduler *sched, struct watcher *watcher)
{
    mutex_lock(&sched->watch.lock);
    remove_locked(sched, watcher);
    mutex_unlock(&sched->watch.lock);
}

int watch_wait(struct scheduler *sched, struct watcher *watcher, uint64_t deadline_ns)
{
    mutex_lock(&sched->watch.lock);
    bool in_time = true;
    while (!watcher->done && in_time) {
        in_time = condition_wait_until(&sched->watch.changed, &sched->watch.lock, deadline_ns);
    }
    const bool done = watcher->done;
    remove_locked(sched, watcher);
    mutex_unlock(&sched->watch.lock);
    return done ? 0 : SKUA_E_TIMEOUT;
}

/* A result inside the payload can be given to everybody, one that owns memory only once. */
static void hand_over(skua_exit *exit, skua_exit *to)
{
    *to = *exit;
    if (exit->result.storage >= SKUA_PAYLOAD_OWNED) {
        exit->result = skua_payload_empty(exit->result.type);
    }
}

void watch_report(struct scheduler *sched, skua_exit *exit)
{
    mutex_lock(&sched->watch.lock);
    for (struct watcher *watcher = sched->watch.first; watcher != NULL; watcher = watcher->next) {
        if (!watcher->done && skua_pid_equal(watcher->pid, exit->pid)) {
            if (watcher->exit != NULL) {
                hand_over(exit, watcher->exit);
            }
            watcher->done = true;
        }
    }
    (void)pthread_cond_broadcast(&sched->watch.changed);
    mutex_unlock(&sched->watch.lock);
}
