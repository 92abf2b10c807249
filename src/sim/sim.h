/* SPDX-License-Identifier: MIT */
/* The second driver of processes: one thread, virtual time, every choice from a seed.
 *
 * The scheduler is the real one, with a single worker that has no thread. Processes that become
 * Ready go to the worker's queues as always; the driver moves them to its own list and picks from
 * that at random. A turn is step_run, as on threads. Timers are in the worker's wheel, and the
 * scheduler's time source is the virtual clock. The rest uses seams that exist anyway: the
 * allocator fails (faults.c), handlers are wrapped when they are registered (handlers.c), a
 * message that a fault delays takes another way (sim_send, faults.c), an observer watches the
 * steps (record.c).
 *
 * Only the driving thread touches any of this, so nothing here is locked. Other threads may send,
 * submit and complete: that goes to the scheduler's own structures. */
#ifndef SKUA_SIM_SIM_H
#define SKUA_SIM_SIM_H

#include <skua/sim.h>

#include "blocking/blocking.h"
#include "relations/name_key.h"
#include "sched/scheduler.h"
#include "sim/agenda.h"
#include "sim/network.h"

/* Rates of faults are so many in this many. */
#define SIM_RATE_MAX 1000000

struct sim_handler;
struct spawn_request;

/* What a process is called; empty: nothing. */
struct sim_names {
    skua_pid pid;
    char name[NAME_SIZE];
    char label[NAME_SIZE];
};

struct sim {
    struct scheduler *sched;
    skua_sim_config config;
    struct allocator allocator; /* the program's; injects no faults */
    struct time_source time;
    atomic_u64 now; /* written by the driving thread, read by any */
    uint64_t random;
    uint64_t hash;
    uint64_t steps_troubled; /* the number of steps when faults were last drawn */
    uint64_t steps_searched; /* and when cycles of calls were last looked for */
    struct observer observer;
    struct sim_names names;   /* of the process that a record is about */
    struct sim_names leaving; /* of the last process that has given up its names */
    struct detour detour;
    struct agenda agenda;
    struct network network;
    struct process **ready; /* Ready processes; their tokens are here (INV-3) */
    size_t ready_count;
    size_t ready_capacity;
    struct sim_handler *handlers; /* a list */
    bool faults_are_on;           /* from start to stop */
    atomic_u32 driven;            /* a thread drives it */
    struct sim *outer;            /* of that thread: the one whose step or function drives this */
};

/* sim.c. `sched` need not be initialised yet. `allocator` is the program's. Returns 0,
 * SKUA_E_INVALID or SKUA_E_NO_MEMORY. */
NODISCARD int sim_init(struct sim *sim, const skua_sim_config *config, uint64_t seed,
                       struct scheduler *sched, struct allocator allocator);

/* Last: the other parts allocate through it. */
void sim_deinit(struct sim *sim);

/* Tells the scheduler, the blocking pools and the sockets, once they are initialised, who drives
 * them, and takes the place of the services that are not simulated. */
void sim_attach(struct sim *sim, struct blocking *blocking, struct sockets *sockets);

/* As skua_runtime_start and stop. */
NODISCARD int sim_start(struct sim *sim);
NODISCARD int sim_stop(struct sim *sim, uint64_t timeout_ns);

/* SKUA_E_NOT_STARTED or SKUA_E_STOPPED if it is not running; otherwise 0. */
NODISCARD int sim_refuse(struct sim *sim);

/* As skua_sim_run and skua_sim_step, not inside a step. */
int sim_run(struct sim *sim, uint64_t until);
int sim_step(struct sim *sim);

/* Runs until a waiter's process has ended, and removes the waiter. Returns 0, SKUA_E_TIMEOUT,
 * SKUA_E_AT_REST, SKUA_E_BUSY. */
NODISCARD int sim_wait(struct sim *sim, struct exit_waiter *waiter, uint64_t timeout_ns);

/* Keeps others from driving it, for a change; false if another thread drives it. */
NODISCARD bool sim_enter(struct sim *sim, bool *was_inside);
void sim_leave(struct sim *sim, bool was_inside);

static inline uint64_t sim_now(struct sim *sim)
{
    return load_relaxed(&sim->now); /* one writer; orders nothing */
}

static inline struct worker *sim_worker(struct sim *sim)
{
    return &sim->sched->workers[0];
}

/* faults.c: draws whether a fault of this rate happens now. */
NODISCARD bool sim_draw(struct sim *sim, uint32_t per_million);

/* The same; if so, records it with the process or handler it hits. */
NODISCARD bool sim_goes_wrong(struct sim *sim, uint32_t per_million, const skua_sim_record *record);

/* The record of a fault that hits the running process. */
skua_sim_record sim_fault_here(struct sim *sim, enum skua_sim_fault fault);

/* A random instant from now on. */
uint64_t sim_some_time_later(struct sim *sim);

/* Wakes or ends a random process, as often as the rates say. */
void sim_trouble_processes(struct sim *sim);

/* The memory of the simulated runtime. */
struct allocator sim_allocator(struct sim *sim);

/* As deliver_message, which carries all that no fault delays, from a step or handler on the
 * simulated worker or (worker: null) from outside; as deliver_urgent; and as deliver_cancel, on
 * that worker. */
int sim_send(struct sim *sim, struct worker *worker, skua_pid from, skua_pid to,
             skua_payload *payload);
int sim_send_urgent(struct sim *sim, struct worker *worker, skua_pid from, skua_pid to,
                    skua_payload *payload);
int sim_cancel(struct sim *sim, skua_pid to, int reason);

/* The same for signals and for completions of calls and monitors (sched/detour.h). */
void sim_make_detour(struct sim *sim);

/* A process has exited: drops delayed events to it, so that the next one in its slot starts with an
 * empty mailbox. */
void sim_drop_events(struct sim *sim, const skua_exit *exit);

/* As skua_sim_complete_after. Takes result, always. */
int sim_complete_after(struct sim *sim, skua_completion completion, uint64_t delay_ns, int error,
                       skua_payload *result);

/* handlers.c: as registry_add_locked, with the simulator around the handler. */
NODISCARD int sim_register(struct sim *sim, uint32_t id, const skua_handler *handler);
void sim_free_handlers(struct sim *sim);

/* The simulate and stand_in functions of the blocking pools. */
int sim_run_job(void *arg, struct blocking_job *job);
int sim_stand_in(void *arg, skua_completion completion, skua_pool pool, skua_blocking_fn *function,
                 skua_payload *input, skua_payload *result);

/* Waiting for descriptors: the program's double, or a refusal. */
int sim_start_wait(void *arg, struct worker *worker, const struct yield *yield,
                   skua_completion completion, skua_payload *result);

/* settings.c: whether skua_runtime_create takes it. */
NODISCARD bool sim_config_is_valid(const skua_sim_config *config);

/* Makes these the faults, with the defaults filled in. */
void sim_apply_faults(struct sim *sim, const skua_sim_faults *faults);

/* As skua_sim_faults_set, with faults that are not null. */
NODISCARD int sim_set_faults(struct sim *sim, const skua_sim_faults *faults);

/* As skua_sim_host_submit, with a payload; takes that. */
NODISCARD int sim_host_submit(struct sim *sim, struct worker *worker, uint32_t host,
                              const struct spawn_request *request);

/* The observer's process_starts. */
bool sim_place_process(struct observer *observer, const struct worker *worker, skua_pid pid);

/* As skua_sim_partition, skua_sim_heal and skua_sim_latency_set. */
NODISCARD int sim_partition(struct sim *sim, uint32_t a, uint32_t b, bool both_ways);
NODISCARD int sim_heal(struct sim *sim, uint32_t a, uint32_t b);
NODISCARD int sim_set_latency(struct sim *sim, uint32_t a, uint32_t b, uint64_t latency_ns);

/* cycle.c: logs cycles of calls, at rest. */
void sim_name_cycles(struct sim *sim);

/* record.c */
void sim_record(struct sim *sim, const skua_sim_record *record);
void sim_hash_add(struct sim *sim, uint64_t number);
void sim_observe(struct sim *sim);

#endif
