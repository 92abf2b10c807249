/* SPDX-License-Identifier: MIT */
/* What goes wrong in a simulation, and when. */
#include <skua/clock.h>

#include "base/assert.h"
#include "base/random.h"
#include "sched/inspect.h"
#include "sched/worker.h"
#include "sim/sim.h"

#define MILLION 1000000

bool sim_goes_wrong(struct sim *sim, uint32_t per_million, const skua_sim_record *record)
{
    if (LIKELY(per_million == 0) || !sim->faults_are_on ||
        random_below(&sim->random, MILLION) >= per_million) {
        return false;
    }
    sim_record(sim, record);
    return true;
}

uint64_t sim_some_time_later(struct sim *sim)
{
    const uint64_t delay = 1 + random_next(&sim->random) % sim->config.faults.delay_max_ns;
    return time_after(sim_now(sim), delay);
}

/* ---- processes ---- */

/* Whether this can happen to a process. */
static bool is_eligible(const skua_sim_faults *faults, enum skua_sim_fault fault,
                        const skua_process_info *info)
{
    if (fault == SKUA_SIM_SPURIOUS_WAKE) {
        return info->state != SKUA_PROCESS_READY;
    }
    return faults->may_kill == NULL || faults->may_kill(faults->may_kill_arg, info);
}

/* One of those that this can happen to, each as likely as the others; false if there is none. */
static bool find_victim(struct sim *sim, enum skua_sim_fault fault, skua_process_info *victim)
{
    struct process_table *table = &sim->sched->table;
    skua_process_info info;
    uint32_t eligible = 0;
    for (uint32_t slot = 1; object_pool_holds(&table->pool, slot); slot++) {
        struct process *process = object_pool_at(&table->pool, slot);
        const uint32_t tag = state_peek(process);
        const skua_pid pid = process_table_pid(table, process, state_generation(tag));
        if ((tag & STATE_KILL) == 0 && inspect_process(sim->sched, pid, &info) == 0 &&
            is_eligible(&sim->config.faults, fault, &info) &&
            random_below(&sim->random, ++eligible) == 0) {
            *victim = info;
        }
    }
    return eligible > 0;
}

static void trouble(struct sim *sim, uint32_t per_million, enum skua_sim_fault fault,
                    uint32_t request)
{
    skua_process_info info;
    if (LIKELY(per_million == 0) || random_below(&sim->random, MILLION) >= per_million ||
        !find_victim(sim, fault, &info)) {
        return;
    }
    sim_record(sim, &(skua_sim_record){.type = SKUA_SIM_FAULT,
                                       .what = fault,
                                       .pid = info.pid,
                                       .type_name = info.type_name});
    (void)deliver_request(sim->sched, &sim->sched->workers[0], info.pid, request); /* it is alive */
}

void sim_trouble_processes(struct sim *sim)
{
    if (sim->faults_are_on) {
        const skua_sim_faults *faults = &sim->config.faults;
        trouble(sim, faults->spurious_wake, SKUA_SIM_SPURIOUS_WAKE, 0);
        trouble(sim, faults->process_kill, SKUA_SIM_PROCESS_KILL, STATE_KILL);
    }
}

/* ---- memory ---- */

/* Fails in steps, handlers and what else a turn does. Other threads allocate, too, and must not
 * touch what the simulation draws its faults from. */
static void *allocate(void *arg, void *pointer, size_t old_size, size_t new_size, size_t alignment)
{
    struct sim *sim = arg;
    const skua_sim_record failure = {.type = SKUA_SIM_FAULT, .what = SKUA_SIM_NO_MEMORY};
    if (new_size > old_size && worker_here(sim->sched) != NULL &&
        sim_goes_wrong(sim, sim->config.faults.no_memory, &failure)) {
        return NULL;
    }
    return sim->allocator.function(sim->allocator.arg, pointer, old_size, new_size, alignment);
}

struct allocator sim_allocator(struct sim *sim)
{
    return (struct allocator){allocate, sim};
}

/* ---- messages and completions ---- */

/* When a message arrives: now, later, or, to stay in order, with the last one before it. */
static uint64_t time_of_arrival(struct sim *sim, skua_pid from, skua_pid to)
{
    const skua_sim_record fault = {.type = SKUA_SIM_FAULT,
                                   .what = SKUA_SIM_MESSAGE_DELAY,
                                   .pid = to,
                                   .from = from,
                                   .type_name = inspect_type_name(sim->sched, to)};
    const uint64_t last = agenda_last_message(&sim->agenda, from, to);
    const uint64_t arrival = sim_goes_wrong(sim, sim->config.faults.message_delay, &fault)
                                 ? sim_some_time_later(sim)
                                 : sim_now(sim);
    return arrival > last ? arrival : last;
}

static int post(struct sim *sim, uint64_t arrival, skua_pid from, skua_pid to,
                const skua_payload *payload)
{
    struct agenda_item item = {
        .when = arrival,
        .type = AGENDA_MESSAGE,
        .payload = *payload,
        .as.message = {.from = from, .to = to},
    };
    if (!agenda_make_room(&sim->agenda)) {
        return SKUA_E_NO_MEMORY;
    }
    const int error = deliver_prepare(sim->sched, &sim->sched->workers[0], from, to, payload,
                                      &item.as.message.prepared);
    if (error == 0) {
        agenda_add(&sim->agenda, &item);
    }
    return error;
}

int sim_send(struct sim *sim, skua_pid from, skua_pid to, skua_payload *payload)
{
    const uint64_t arrival = time_of_arrival(sim, from, to);
    if (LIKELY(arrival <= sim_now(sim))) {
        return deliver_message(sim->sched, &sim->sched->workers[0], from, to, payload);
    }
    const int error = post(sim, arrival, from, to, payload);
    if (error != 0) {
        skua_payload_drop(payload);
    }
    return error;
}

void sim_drop_messages(struct sim *sim, skua_pid to)
{
    struct agenda_item item;
    while (agenda_take_message(&sim->agenda, to, &item)) {
        const bool arrived =
            deliver_prepared(sim->sched, &sim->sched->workers[0], &item.as.message.prepared);
        SKUA_ASSERT(!arrived);
        skua_payload_drop(&item.payload);
    }
}

int sim_complete_after(struct sim *sim, skua_completion completion, uint64_t delay_ns, int error,
                       skua_payload *result)
{
    int refused = sim_refuse(sim);
    if (error > 0 || delay_ns > SKUA_DURATION_MAX) {
        refused = SKUA_E_INVALID;
    } else if (refused == 0 && !agenda_make_room(&sim->agenda)) {
        refused = SKUA_E_NO_MEMORY;
    }
    if (refused != 0) {
        skua_payload_drop(result);
        return refused;
    }
    agenda_add(&sim->agenda, &(struct agenda_item){
                                 .when = time_after(sim_now(sim), delay_ns),
                                 .type = AGENDA_COMPLETION,
                                 .payload = skua_payload_take(result),
                                 .as.completion = {.call = completion, .error = error},
                             });
    return 0;
}
