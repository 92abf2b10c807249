/* SPDX-License-Identifier: MIT */
/* The context of a process: what its init, step and close act through.
 *
 * A worker has one context and opens it for every call that it makes. `phase` says which call that
 * is, so that a verb that the call does not allow is refused, and so is a context that was kept: it
 * is closed between calls. A kept context could still be open for somebody else's call by then. To
 * notice that, a checked worker (in simulations and in debug builds) takes another of its contexts
 * for every step; its contexts also know their thread. All checks but the first comparison are off
 * the path of a send.
 *
 * MO-init: threads that are not workers share the contexts of their inits; a bit of
 * `outside.init_claims` hands one from thread to thread. */
#ifndef SKUA_SCHED_CONTEXT_H
#define SKUA_SCHED_CONTEXT_H

#include "sched/scheduler.h"

#define CONTEXT_INIT    UINT32_C(1)
#define CONTEXT_STEP    UINT32_C(2)
#define CONTEXT_CLOSE   UINT32_C(4)
#define CONTEXT_ANY     (CONTEXT_INIT | CONTEXT_STEP | CONTEXT_CLOSE)
#define CONTEXT_SPAWNS  (CONTEXT_INIT | CONTEXT_STEP) /* these are the lowest bits */
#define CONTEXT_CHECKED UINT32_C(8)                   /* never alone */
#define CONTEXT_CLOSED  UINT32_C(0)

/* Whether a context is open and needs no check: the one comparison on the path of a send. */
static inline bool context_is_plain(const skua_context *ctx)
{
    return ctx->phase - 1 < CONTEXT_ANY;
}

/* 0, or the error for a verb that is allowed in some phases only: CONTEXT_ANY or CONTEXT_SPAWNS.
 * The first function is the whole check, for contexts that the comparison in the second does not
 * settle. */
NODISCARD int context_check(const skua_context *ctx, uint32_t allowed);

NODISCARD static inline int context_refuse(const skua_context *ctx, uint32_t allowed)
{
    return LIKELY(ctx != NULL && ctx->phase - 1 < allowed) ? 0 : context_check(ctx, allowed);
}

/* 0, or the error for a verb that is allowed in steps only. */
NODISCARD static inline int context_refuse_but_step(const skua_context *ctx)
{
    const bool plain = LIKELY(ctx != NULL && ctx->phase == CONTEXT_STEP);
    return plain ? 0 : context_check(ctx, CONTEXT_STEP);
}

/* Where the step of a context writes what it asks for; null, with *error, if it may not. */
NODISCARD static inline struct step_output *context_output(const skua_context *ctx, int *error)
{
    *error = context_refuse_but_step(ctx);
    return LIKELY(*error == 0) ? &ctx->worker->out : NULL;
}

/* CONTEXT_CHECKED if the contexts of a runtime with this configuration are checked, or 0. */
uint32_t context_flags(const skua_runtime_config *config);

/* Prepares the contexts of a worker. */
void context_init(struct worker *worker);

/* Contexts for inits on threads that are not workers; null if all are in use. */
NODISCARD skua_context *context_claim_outside(struct scheduler *sched);
void context_unclaim_outside(skua_context *context);

/* Opens a context whose scheduler, worker and process are set. */
static inline void context_begin(skua_context *context, uint32_t phase)
{
    if (UNLIKELY(context->now != 0)) { /* few ask for the time, and a store is dearer than a test */
        context->now = 0;
    }
    context->phase = phase;
    context->random_calls = 0;
}

/* Opens a context for the init of a process, or for the close after an init that failed. It is not
 * on the stack, where a context that was kept could not be told from garbage; `spare`, which is, is
 * for more inits within inits than anybody should need. `worker` is the caller's or null. */
NODISCARD static inline skua_context *context_open_init(struct scheduler *sched,
                                                        struct worker *worker,
                                                        struct process *process, skua_pid pid,
                                                        uint32_t phase, skua_context *spare)
{
    skua_context *context = NULL;
    if (LIKELY(worker != NULL)) {
        context = &worker->init_contexts[worker->init_turn++ % INIT_CONTEXTS];
        context = LIKELY(context->phase == CONTEXT_CLOSED) ? context : NULL;
    } else {
        context = context_claim_outside(sched);
    }
    if (UNLIKELY(context == NULL)) {
        *spare = (skua_context){.sched = sched, .worker = worker};
        context = spare;
    }
    context->process = process;
    context->self = pid;
    context_begin(context, phase | sched->context_flags);
    return context;
}

static inline void context_close_init(skua_context *context)
{
    context->phase = CONTEXT_CLOSED;
    if (UNLIKELY(context->worker == NULL)) {
        context_unclaim_outside(context);
    } else {
        mailbox_settle_owner(&context->worker->tally);
    }
}

/* The worker turns to a process. */
static inline void context_set_process(struct worker *worker, struct process *process, skua_pid pid)
{
    skua_context *context = worker->context;
    context->process = process;
    context->self = pid;
}

/* Takes another context, for the same process. */
void context_rotate(struct worker *worker);

/* The context of the process whose init, step or close the worker is in, or null. */
NODISCARD static inline const skua_context *context_of_call(const struct worker *worker)
{
    const skua_context *context = worker->starting != NULL ? worker->starting : worker->context;
    return context != NULL && context->phase != CONTEXT_CLOSED ? context : NULL;
}

/* Opens the worker's context for a call of its process. */
static inline skua_context *context_open(struct worker *worker, uint32_t phase)
{
    if (UNLIKELY(worker->is_checked)) {
        context_rotate(worker);
        phase |= CONTEXT_CHECKED;
    }
    context_begin(worker->context, phase);
    return worker->context;
}

static inline void context_close(struct worker *worker)
{
    worker->context->phase = CONTEXT_CLOSED;
    mailbox_settle_owner(&worker->tally);
}

#endif
