/* SPDX-License-Identifier: MIT */
/* Threads that wait for a process to end. The word of the process knows that there are some, so
 * that ordinary exits take no lock. */
#ifndef SKUA_SCHED_WATCH_H
#define SKUA_SCHED_WATCH_H

#include "sched/scheduler.h"

/* Adds a watcher with its pid set; the process must then be told by STATE_WATCHED. */
void watch_add(struct scheduler *sched, struct watcher *watcher);

/* Waits until the watcher's process has ended or the deadline passes, and removes the watcher.
 * Returns 0 or SKUA_E_TIMEOUT. */
NODISCARD int watch_wait(struct scheduler *sched, struct watcher *watcher, uint64_t deadline_ns);

/* Removes a watcher whose process turned out not to exist. */
void watch_remove(struct scheduler *sched, struct watcher *watcher);

/* Tells all watchers of a process how it ended. The first that wants a result which owns memory
 * takes it. */
void watch_report(struct scheduler *sched, skua_exit *exit);

#endif
