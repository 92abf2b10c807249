/* SPDX-License-Identifier: MIT */
/* The start of a process. */
#ifndef SKUA_SCHED_SPAWN_H
#define SKUA_SCHED_SPAWN_H

#include "sched/scheduler.h"

struct spawn_request {
    const skua_process_type *type;
    const char *method; /* null: the first */
    skua_payload *input;
    size_t input_count;
    skua_pid *pid;                     /* may be null; written before the process can run */
    struct exit_waiter *waiter;        /* may be null; added before the process can run */
    const skua_spawn_options *options; /* null: none of what follows the input in there */
    skua_context *parent;              /* who starts it, with options; or null: a thread */
};

/* Whether these options ask for more than a process: most do not (sched/relate.h). */
static inline bool spawn_relates(const skua_spawn_options *options)
{
    return options->monitor || options->join || options->link || options->name != NULL ||
           options->label != NULL || options->socket.bits != 0;
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

/* Closes the state of a process, with an open context of that process. */
void spawn_close_state(skua_context *ctx, const skua_exit *exit);

/* Releases all memory that belongs to a process whose state is closed. Returns the node of its
 * annex, which the caller must release, or OBJECT_NONE. */
NODISCARD uint32_t spawn_release_state(struct scheduler *sched, struct process *process);

/* The name of a type's method number `number`. */
const char *spawn_method_name(const skua_process_type *type, uint32_t number);

#endif
