/* SPDX-License-Identifier: MIT */
/* What one process does to another, by the way that the simulator gives it: later, or in order
 * behind what it has delayed. Scheduled by threads, there is no detour. */
#ifndef SKUA_SCHED_DETOUR_H
#define SKUA_SCHED_DETOUR_H

#include <skua/command.h>

struct detour {
    /* Whether it has taken a message of the process that the worker runs, to deliver it later:
     * *error is then what its sender is told. Otherwise it goes the way that it goes on threads. */
    bool (*take_message)(struct detour *detour, skua_pid from, skua_pid to, skua_payload *payload,
                         int *error);
    /* Whether it has taken the signal in this event node, of `from` to `to`, or the completion, and
     * will deliver it. */
    bool (*take_signal)(struct detour *detour, skua_pid from, skua_pid to, uint32_t node);
    bool (*take_completion)(struct detour *detour, skua_pid from, skua_completion completion,
                            int error, skua_payload *result);
    /* Gives back a signal to a process that is closed from now on; false if there is none. */
    bool (*give_back)(struct detour *detour, skua_pid to, uint32_t *node);
};

#endif
