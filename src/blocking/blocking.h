/* SPDX-License-Identifier: MIT */
/* The blocking pools of a runtime, and the yield of skua/blocking.h that runs a function on one.
 * The scheduler handles blocking within a step: sched/spare.h. */
#ifndef SKUA_BLOCKING_BLOCKING_H
#define SKUA_BLOCKING_BLOCKING_H

#include <skua/blocking.h>
#include <skua/command.h>

#include "blocking/pool.h"
#include "sched/scheduler.h"

struct named_pool {
    const char *name;
    bool sim_safe;
    struct blocking_pool pool;
};

struct blocking {
    struct scheduler *sched;
    /* In place of the pools' threads, if not null: takes the job, or returns an error. */
    int (*simulate)(void *arg, struct blocking_job *job);
    /* In place of calling functions at all, if not null: as skua_sim_services.blocking. */
    int (*stand_in)(void *arg, skua_completion completion, skua_pool pool,
                    skua_blocking_fn *function, skua_payload *input, skua_payload *result);
    void *simulate_arg;
    struct named_pool pools[SKUA_BLOCKING_POOLS_MAX]; /* written before the workers start */
    uint32_t count;
    bool default_is_set; /* by the program, which may do so once */
};

/* Creates the default pool. */
void blocking_init(struct blocking *blocking, struct scheduler *sched);
void blocking_deinit(struct blocking *blocking);

/* Makes it the scheduler's service for blocking calls. */
void blocking_attach(struct blocking *blocking);

/* What the function of a yield will get. */
const skua_payload *blocking_input(const struct yield *yield);

/* As skua_blocking_find. */
NODISCARD int blocking_find(struct blocking *blocking, const char *name, skua_pool *handle);

/* As skua_blocking_register, before the workers start. */
NODISCARD int blocking_add_locked(struct blocking *blocking, const skua_blocking_pool *pool);

/* Ends the threads, after the workers have ended; false if some have not returned at the monotonic
 * deadline. May be called again. */
NODISCARD bool blocking_stop_locked(struct blocking *blocking, uint64_t deadline_ns);

#endif
