/* SPDX-License-Identifier: MIT */
/* The second driver of processes: one thread, virtual time, every choice from a seed.
 *
 * The scheduler is the real one, with a single worker that no thread belongs to. What becomes Ready
 * goes to the worker's queues as always; the driver empties these into a list of its own and picks
 * from that at random. A turn is step_run, as on threads. Timers lie in the worker's wheel, and the
 * scheduler's time source is the virtual clock. The rest comes in through the seams that are there:
 * the allocator fails (faults.c), handlers are wrapped when they are registered (handlers.c),
 * messages between processes pass through sim_send (faults.c), steps are watched by an observer
 * (record.c).
 *
 * Only the thread that drives touches all this, so nothing here is locked. Other threads may send,
 * submit and complete: that ends in the scheduler's own structures. */
#ifndef SKUA_SIM_SIM_H
#define SKUA_SIM_SIM_H

#include <skua/sim.h>

#include "blocking/blocking.h"
#include "sched/scheduler.h"
#include "sim/agenda.h"

/* Rates of faults are so many in this many. */
#define SIM_RATE_MAX 1000000

struct sim_handler;

struct sim {
    struct scheduler *sched;
    skua_sim_config config;
    struct allocator allocator; /* the program's own, which does not fail for fun */
    struct time_source time;
    atomic_u64 now; /* written by the driving thread; others may ask what time it is */
    uint64_t random;
    uint64_t hash;
    uint64_t steps_troubled; /* how many steps there had been when trouble last was a choice */
    struct observer observer;
    struct agenda agenda;
    struct process **ready; /* Ready processes; their tokens are here (INV-3) */
    size_t ready_count;
    size_t ready_capacity;
    struct sim_handler *handlers; /* a list */
    bool faults_are_on;           /* from start to stop */
    atomic_u32 driven;            /* a thread is at it */
    struct sim *outer;            /* of that thread: the one whose step or function drives this */
};

/* sim.c. `sched` need not be initialised yet. `allocator` is the program's. Returns 0,
 * SKUA_E_INVALID or SKUA_E_NO_MEMORY. */
NODISCARD int sim_init(struct sim *sim, const skua_sim_config *config, uint64_t seed,
                       struct scheduler *sched, struct allocator allocator);

/* Last of all: the memory of the other parts goes through it. */
void sim_deinit(struct sim *sim);

/* Tells the scheduler and the blocking pools, once they are initialised, who drives them. Registers
 * the commands that are not simulated. Returns 0 or SKUA_E_NO_MEMORY. */
NODISCARD int sim_attach(struct sim *sim, struct blocking *blocking);

/* As skua_runtime_start and stop. */
NODISCARD int sim_start(struct sim *sim);
NODISCARD int sim_stop(struct sim *sim, uint64_t timeout_ns);

/* SKUA_E_NOT_STARTED or SKUA_E_STOPPED if nothing happens (any more); otherwise 0. */
NODISCARD int sim_refuse(struct sim *sim);

/* As skua_sim_run and skua_sim_step, not inside a step. */
int sim_run(struct sim *sim, uint64_t until);
int sim_step(struct sim *sim);

/* Runs until a waiter's process has ended, and removes the waiter. Returns 0, SKUA_E_TIMEOUT,
 * SKUA_E_AT_REST, SKUA_E_BUSY. */
NODISCARD int sim_wait(struct sim *sim, struct exit_waiter *waiter, uint64_t timeout_ns);

static inline uint64_t sim_now(struct sim *sim)
{
    return load_relaxed(&sim->now); /* one thread writes; others want no order */
}

static inline struct worker *sim_worker(struct sim *sim)
{
    return &sim->sched->workers[0];
}

/* faults.c: whether something that goes wrong so often does so now; if so, it is recorded, with the
 * process or the handler it concerns. */
NODISCARD bool sim_goes_wrong(struct sim *sim, uint32_t per_million, const skua_sim_record *record);

/* The record of a fault that concerns the process that runs. */
skua_sim_record sim_fault_here(struct sim *sim, enum skua_sim_fault fault);

/* An instant from now on. */
uint64_t sim_some_time_later(struct sim *sim);

/* Wakes or ends a process now and then. */
void sim_trouble_processes(struct sim *sim);

/* The memory of the simulated runtime. */
struct allocator sim_allocator(struct sim *sim);

/* As deliver_message, from a step or handler on the simulated worker or (worker: null) from
 * outside; and as deliver_cancel, on that worker. */
int sim_send(struct sim *sim, struct worker *worker, skua_pid from, skua_pid to,
             skua_payload *payload);
int sim_cancel(struct sim *sim, skua_pid to, int reason);

/* A process has ended: drops what is under way to it, so that its place has an empty mailbox. */
void sim_drop_events(struct sim *sim, skua_pid to);

/* As skua_sim_complete_after. Takes result, always. */
int sim_complete_after(struct sim *sim, skua_completion completion, uint64_t delay_ns, int error,
                       skua_payload *result);

/* handlers.c: as registry_add_locked, but the simulator comes between. */
NODISCARD int sim_register(struct sim *sim, uint32_t id, const skua_handler *handler);
void sim_free_handlers(struct sim *sim);

/* The simulate function of the blocking pools. */
int sim_run_job(void *arg, struct blocking_job *job);

/* record.c */
void sim_record(struct sim *sim, const skua_sim_record *record);
void sim_observe(struct sim *sim);

#endif
