/* SPDX-License-Identifier: MIT */
/* Handlers in a simulation: the program's own, wrapped by the simulator, and the functions of the
 * blocking pools. */
#include <stdalign.h>

#include "sim/sim.h"

struct sim_handler {
    struct sim_handler *next;
    struct sim *sim;
    skua_handler original;
};

/* The faults that hit whatever carries out a yield of a process. */
static skua_sim_record fault_of(skua_completion completion, const char *name)
{
    return (skua_sim_record){
        .type = SKUA_SIM_FAULT,
        .what = SKUA_SIM_HANDLER_ERROR,
        .pid = completion.process,
        .type_name = name,
    };
}

/* Whether it fails before it begins. */
static bool fails(struct sim *sim, skua_completion completion, const char *name)
{
    const skua_sim_record fault = fault_of(completion, name);
    return sim_goes_wrong(sim, sim->config.faults.handler_error, &fault);
}

/* Its outcome, which a fault may put off if it came at once, unless there is no memory for that. */
static int put_off_or_not(struct sim *sim, skua_completion completion, const char *name,
                          int outcome, skua_payload *result)
{
    skua_sim_record fault = fault_of(completion, name);
    fault.what = SKUA_SIM_SLOW_COMPLETION;
    if (outcome > SKUA_PENDING) {
        return SKUA_E_INVALID;
    }
    if (outcome > 0 || !sim_goes_wrong(sim, sim->config.faults.slow_completion, &fault) ||
        !agenda_make_room(&sim->agenda)) {
        return outcome;
    }
    agenda_add_completion(&sim->agenda, sim_some_time_later(sim), completion, outcome, result);
    sim_worker(sim)->puts_off = true; /* the handler has left nothing pending */
    return SKUA_PENDING;
}

static int handle(void *arg, skua_command *command, skua_payload *result)
{
    const struct sim_handler *handler = arg;
    struct sim *sim = handler->sim;
    const skua_handler *original = &handler->original;
    skua_handler_fn *run = original->simulate;
    if (run == NULL && original->sim_safe) {
        run = original->run;
    }
    if (run == NULL) {
        return SKUA_E_NOT_SIMULATED;
    }
    if (fails(sim, command->completion, original->name)) {
        return SKUA_E_INJECTED;
    }
    const int outcome = run(original->arg, command, result);
    return put_off_or_not(sim, command->completion, original->name, outcome, result);
}

static void abandon(void *arg, skua_runtime *runtime, skua_completion completion)
{
    const struct sim_handler *handler = arg;
    handler->original.abandon(handler->original.arg, runtime, completion);
}

int sim_start_wait(void *arg, struct worker *worker, const struct yield *yield,
                   skua_completion completion, skua_payload *result)
{
    (void)worker;
    struct sim *sim = arg;
    const skua_sim_services *doubles = &sim->config.services;
    const bool writes = yield->command == service_command(SERVICE_WRITABLE);
    const char *name = writes ? "writable" : "readable";
    if (doubles->wait == NULL) {
        return SKUA_E_NOT_SIMULATED;
    }
    if (fails(sim, completion, name)) {
        return SKUA_E_INJECTED;
    }
    const int outcome = doubles->wait(doubles->arg, completion, yield->as.fd, writes);
    return put_off_or_not(sim, completion, name, outcome, result);
}

int sim_stand_in(void *arg, skua_completion completion, skua_pool pool, skua_blocking_fn *function,
                 skua_payload *input, skua_payload *result)
{
    struct sim *sim = arg;
    const skua_sim_services *doubles = &sim->config.services;
    if (fails(sim, completion, "blocking")) {
        return SKUA_E_INJECTED;
    }
    const int outcome = doubles->blocking(doubles->arg, completion, pool, function, input, result);
    return put_off_or_not(sim, completion, "blocking", outcome, result);
}

int sim_register(struct sim *sim, uint32_t id, const skua_handler *handler)
{
    struct sim_handler *wrapped =
        allocator_alloc(&sim->allocator, sizeof *wrapped, alignof(struct sim_handler));
    if (wrapped == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    *wrapped = (struct sim_handler){.next = sim->handlers, .sim = sim, .original = *handler};
    const skua_handler wrapper = {
        .name = handler->name,
        .run = handle,
        .arg = wrapped,
        .abandon = handler->abandon != NULL ? abandon : NULL,
    };
    const int error = registry_add_locked(sim->sched->registry, id, &wrapper);
    if (error != 0) {
        allocator_free(&sim->allocator, wrapped, sizeof *wrapped, alignof(struct sim_handler));
        return error;
    }
    sim->handlers = wrapped;
    return 0;
}

void sim_free_handlers(struct sim *sim)
{
    while (sim->handlers != NULL) {
        struct sim_handler *next = sim->handlers->next;
        allocator_free(&sim->allocator, sim->handlers, sizeof *next, alignof(struct sim_handler));
        sim->handlers = next;
    }
}

int sim_run_job(void *arg, struct blocking_job *job)
{
    struct sim *sim = arg;
    const skua_sim_faults *faults = &sim->config.faults;
    skua_sim_record fault = sim_fault_here(sim, SKUA_SIM_HANDLER_ERROR);
    fault.type_name = "blocking";
    if (sim_goes_wrong(sim, faults->handler_error, &fault)) {
        return SKUA_E_INJECTED;
    }
    if (!agenda_make_room(&sim->agenda)) {
        return SKUA_E_NO_MEMORY;
    }
    fault.what = SKUA_SIM_SLOW_COMPLETION;
    const bool slow = sim_goes_wrong(sim, faults->slow_completion, &fault);
    agenda_add(&sim->agenda, &(struct agenda_item){
                                 .when = slow ? sim_some_time_later(sim) : sim_now(sim),
                                 .type = AGENDA_JOB,
                                 .payload = skua_payload_empty(0),
                                 .as.job = job,
                             });
    return 0;
}
