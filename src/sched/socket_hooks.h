/* SPDX-License-Identifier: MIT */
/* What the scheduler does to the sockets of a process (net/sockets.h), which is above it. */
#ifndef SKUA_SCHED_SOCKET_HOOKS_H
#define SKUA_SCHED_SOCKET_HOOKS_H

#include <skua/types.h>
#include <stdbool.h>

struct process;
struct worker;

struct socket_hooks {
    /* Looks after deadlines: a chore (CHORE_SOCKETS). `worker` is the caller's or null. */
    void (*alarm)(struct socket_hooks *hooks, struct worker *worker, uint64_t now);
    /* The worker has taken a signal of a socket, or a socket that was given (EVENT_SOCKET,
     * EVENT_SOCKET_GIVEN), out of the backlog of its process. */
    void (*take)(struct socket_hooks *hooks, struct worker *worker, struct process *process,
                 uint32_t node);
    /* The same for a process that is ending. */
    void (*drop)(struct socket_hooks *hooks, struct worker *worker, uint32_t node);
    /* Closes sockets of a process that is ending with `error`: as many as *budget, which it lowers,
     * allows; false if there are more. */
    bool (*leave)(struct socket_hooks *hooks, struct worker *worker, struct process *process,
                  int error, uint32_t *budget);
    /* A socket of the parent becomes one of a child that is not known to anybody yet; 0 or an
     * error. And back, as the start of the child has failed. */
    int (*give_at_spawn)(struct socket_hooks *hooks, skua_context *parent, struct process *child,
                         skua_pid pid, skua_socket socket);
    void (*take_back)(struct socket_hooks *hooks, skua_context *parent, struct process *child,
                      skua_socket socket);
    /* How many sockets are written on, though their processes have closed them. If there is none
     * any more and the runtime stops, shutdown_worker_is_quiet is called. */
    uint32_t (*lingering)(struct socket_hooks *hooks);
    /* Shows the event nodes that sockets keep; for audits, at a quiet moment. */
    void (*show)(struct socket_hooks *hooks, void (*put)(void *arg, uint32_t node), void *arg);
    /* Which sockets a process has, by slot, the newest first: fills in as many as `capacity`. Its
     * worker calls. Returns how many there are; if there are more than `most`, that. */
    uint32_t (*list)(struct socket_hooks *hooks, struct process *process, uint32_t *slots,
                     uint32_t capacity, uint32_t most);
};

/* There are no sockets where only a part of a runtime is tested. */
static inline bool socket_hooks_linger(struct socket_hooks *hooks)
{
    return hooks != NULL && hooks->lingering(hooks) > 0;
}

#endif
