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

/* Postpones a completion that came at once. Returns SKUA_PENDING, or the outcome if there is no
 * memory. */
static int put_off(struct sim *sim, const skua_command *command, int outcome, skua_payload *result)
{
    if (!agenda_make_room(&sim->agenda)) {
        return outcome;
    }
    agenda_add_completion(&sim->agenda, sim_some_time_later(sim), command->completion, outcome,
                          result);
    return SKUA_PENDING;
}

static int handle(void *arg, skua_command *command, skua_payload *result)
{
    const struct sim_handler *handler = arg;
    struct sim *sim = handler->sim;
    const skua_sim_faults *faults = &sim->config.faults;
    const skua_handler *original = &handler->original;
    skua_sim_record fault = {
        .type = SKUA_SIM_FAULT,
        .what = SKUA_SIM_HANDLER_ERROR,
        .pid = command->completion.process,
        .type_name = original->name,
    };
    skua_handler_fn *run = original->simulate;
    if (run == NULL && original->sim_safe) {
        run = original->run;
    }
    if (run == NULL) {
        return SKUA_E_NOT_SIMULATED;
    }
    if (sim_goes_wrong(sim, faults->handler_error, &fault)) {
        return SKUA_E_INJECTED;
    }
    const int outcome = run(original->arg, command, result);
    fault.what = SKUA_SIM_SLOW_COMPLETION;
    if (outcome <= 0 && sim_goes_wrong(sim, faults->slow_completion, &fault)) {
        return put_off(sim, command, outcome, result);
    }
    return outcome;
}

int sim_register(struct sim *sim, uint32_t id, const skua_handler *handler)
{
    struct sim_handler *wrapped =
        allocator_alloc(&sim->allocator, sizeof *wrapped, alignof(struct sim_handler));
    if (wrapped == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    *wrapped = (struct sim_handler){.next = sim->handlers, .sim = sim, .original = *handler};
    const skua_handler wrapper = {.name = handler->name, .run = handle, .arg = wrapped};
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
