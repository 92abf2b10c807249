/* SPDX-License-Identifier: MIT */
/* The start of a process. */
#ifndef SKUA_SCHED_SPAWN_H
#define SKUA_SCHED_SPAWN_H

#include "sched/scheduler.h"
#include "sched/shutdown.h"
#include "sched/upgrade.h"

struct spawn_request {
    const skua_process_type *type;
    const char *method; /* null: the first */
    skua_payload *input;
    size_t input_count;
    skua_pid *pid;                     /* may be null; written before the process can run */
    struct exit_waiter *waiter;        /* may be null; added before the process can run */
    const skua_spawn_options *options; /* null: none of what follows the input in there */
    skua_context *parent;              /* who starts it, with options; or null: a thread */
    const skua_context *starter;       /* who starts it in any way; or null: not a process */
    struct birth *birth;               /* of one with a supervisor (sched/children.h), or null */
    bool is_prepared;                  /* by spawn_process: `birth` and the newest type are in it */
};

/* Whether these options ask for more than a process: most do not (sched/relate.h). */
static inline bool spawn_relates(const skua_spawn_options *options)
{
    return options->monitor || options->join || options->link || options->name != NULL ||
           options->label != NULL || options->socket.bits != 0 || options->supervisor.bits != 0;
}

static inline struct spawn_request spawn_request_of(const skua_spawn_options *options,
                                                    skua_pid *pid)
{
    return (struct spawn_request){
        .type = options->type,
        .method = options->method,
        .input = options->input,
        .input_count = options->input_count,
        .pid = pid,
        .options = UNLIKELY(spawn_relates(options)) ? options : NULL,
    };
}

/* Starts a process for `worker`, or for an outside thread if that is null. Takes the input,
 * always. Returns 0 or an error that skua_process_submit documents. */
NODISCARD int spawn_process(struct scheduler *sched, struct worker *worker,
                            const struct spawn_request *request);

/* The same for the process of an open context, with one input and nothing else. Most processes are
 * started like this, so there is a short way for those of the type that the worker has started
 * last. */
NODISCARD int spawn_from(const skua_context *starter, const skua_process_type *type,
                         skua_payload *input, skua_pid *pid);

/* Before a process runs. If it has not made a step yet, a scan of all processes may have missed it:
 * then this makes the request that the scan would have made, to end (MO-stop) or to change its type
 * (MO-upgrade). Publishing needs no atomic operation of its own, since every new process goes
 * through a seq_cst one before its first step: the exchange that pushes it to a deque or takes it
 * out of a next slot, or the compare-exchange that pushes it to the global queue. A scan begins
 * with all of these (scheduler_see_spawned). So if the phase, say, is loaded here before it
 * changes, that operation comes before the scan, which then sees the process. Being asked to end
 * twice does no harm. False: it cannot run yet (upgrade.h), and is queued behind all that waits. */
NODISCARD bool spawn_catch_up(struct worker *worker, struct process *process, skua_pid pid);
NODISCARD static inline bool spawn_before_step(struct worker *worker, struct process *process,
                                               skua_pid pid)
{
    const bool is_overtaken =
        process_is_new(process_progress(process)) &&
        (UNLIKELY(shutdown_phase(worker->sched) != PHASE_RUNNING) || /* MO-stop */
         upgrade_is_known(worker->sched));                           /* MO-upgrade */
    return LIKELY(!is_overtaken) || spawn_catch_up(worker, process, pid);
}

/* Closes the state of a process, with an open context of that process. */
void spawn_close_state(skua_context *ctx, const skua_exit *exit);

/* Releases all memory that belongs to a process whose state is closed. Returns the node of its
 * annex, which the caller must release, or OBJECT_NONE. */
NODISCARD uint32_t spawn_release_state(struct scheduler *sched, struct process *process);

/* The name of a type's method number `number`; and the number of a method, or SKUA_METHODS_MAX if
 * the type has none of this name. A null stands for the first. */
const char *spawn_method_name(const skua_process_type *type, uint32_t number);
NODISCARD uint32_t spawn_method_number(const skua_process_type *type, const char *method);

/* Whether processes of a type can be started. */
NODISCARD bool spawn_type_is_valid(const skua_process_type *type);

/* 0, or why the runtime starts no processes now. */
NODISCARD int spawn_check_phase(struct scheduler *sched);

/* How many messages may wait for a process of a type. */
static inline uint32_t spawn_mailbox_limit(const struct scheduler *sched,
                                           const skua_process_type *type)
{
    return type->mailbox_limit != 0 ? type->mailbox_limit : sched->config.mailbox_limit;
}

#endif
