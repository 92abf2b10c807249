/* SPDX-License-Identifier: MIT */
#include "sched/context.h"

#include "sched/log.h"
#include "sched/worker.h"

uint32_t context_flags(const skua_runtime_config *config)
{
#ifdef SKUA_AUDIT
    (void)config;
    return CONTEXT_CHECKED;
#else
    return config->sim != NULL ? CONTEXT_CHECKED : 0;
#endif
}

void context_init(struct worker *worker)
{
    worker->is_checked = worker->sched->context_flags != 0;
    worker->context = &worker->contexts[0];
    for (uint32_t i = 0; i < WORKER_CONTEXTS; i++) {
        worker->contexts[i] = (skua_context){.sched = worker->sched, .worker = worker};
    }
    for (uint32_t i = 0; i < INIT_CONTEXTS; i++) {
        worker->init_contexts[i] = (skua_context){.sched = worker->sched, .worker = worker};
    }
}

skua_context *context_claim_outside(struct scheduler *sched)
{
    for (uint32_t i = 0; i < OUTSIDE_CONTEXTS; i++) {
        const uint32_t bit = UINT32_C(1) << i;
        if ((fetch_or_seq_cst(&sched->outside.init_claims, bit) & bit) == 0) { /* MO-init */
            skua_context *context = &sched->outside.init_contexts[i];
            context->sched = sched;
            return context;
        }
    }
    return NULL;
}

void context_unclaim_outside(skua_context *context)
{
    struct scheduler *sched = context->sched;
    const ptrdiff_t index = context - sched->outside.init_contexts;
    if (index >= 0 && index < OUTSIDE_CONTEXTS) { /* otherwise it is the spare one */
        (void)fetch_and_seq_cst(&sched->outside.init_claims, ~(UINT32_C(1) << index)); /* MO-init */
    }
}

void context_rotate(struct worker *worker)
{
    const skua_context *last = worker->context;
    worker->context =
        last == &worker->contexts[WORKER_CONTEXTS - 1] ? &worker->contexts[0] : worker->context + 1;
    context_set_process(worker, last->process, last->self);
}

int context_check(const skua_context *ctx, uint32_t allowed)
{
    if (ctx == NULL) {
        return SKUA_E_INVALID;
    }
    if (ctx->phase == CONTEXT_CLOSED) {
        log_misuse(ctx, "used its context after the call that it was for");
        return SKUA_E_CONTEXT;
    }
    if ((ctx->phase & CONTEXT_CHECKED) != 0 && ctx->worker != NULL &&
        worker_of_thread() != ctx->worker) {
        log_misuse(ctx, "used its context on another thread");
        return SKUA_E_CONTEXT;
    }
    if ((ctx->phase & allowed) == 0) {
        log_misuse(ctx, ctx->phase & CONTEXT_INIT ? "asked for something that init may not do"
                                                  : "asked for something that close may not do");
        return SKUA_E_CONTEXT;
    }
    return 0;
}
