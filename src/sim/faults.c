/* SPDX-License-Identifier: MIT */
/* The faults of a simulation: what goes wrong, and when. */
#include <skua/clock.h>

#include "base/assert.h"
#include "base/random.h"
#include "process/payload.h"
#include "sched/deliver.h"
#include "sched/process_info.h"
#include "sched/worker.h"
#include "sim/sim.h"

bool sim_draw(struct sim *sim, uint32_t per_million)
{
    return UNLIKELY(per_million > 0) && sim->faults_are_on &&
           random_below(&sim->random, SIM_RATE_MAX) < per_million;
}

bool sim_goes_wrong(struct sim *sim, uint32_t per_million, const skua_sim_record *record)
{
    if (!sim_draw(sim, per_million)) {
        return false;
    }
    sim_record(sim, record);
    return true;
}

skua_sim_record sim_fault_here(struct sim *sim, enum skua_sim_fault fault)
{
    const skua_pid pid = sim_worker(sim)->context->self;
    return (skua_sim_record){.type = SKUA_SIM_FAULT,
                             .what = fault,
                             .pid = pid,
                             .type_name = process_info_type_name(sim->sched, pid)};
}

uint64_t sim_some_time_later(struct sim *sim)
{
    const uint64_t delay = 1 + random_next(&sim->random) % sim->config.faults.delay_max_ns;
    return time_after(sim_now(sim), delay);
}

/* ---- processes ---- */

/* Whether this fault can hit the process. */
static bool is_eligible(const skua_sim_faults *faults, enum skua_sim_fault fault,
                        const skua_process_snapshot *info)
{
    if (fault == SKUA_SIM_SPURIOUS_WAKE) {
        return info->state != SKUA_PROCESS_READY;
    }
    return faults->may_kill == NULL || faults->may_kill(faults->may_kill_arg, info);
}

/* Picks a process that this fault can hit, each with equal probability; false if there is none. */
static bool find_victim(struct sim *sim, enum skua_sim_fault fault, skua_process_snapshot *victim)
{
    struct process_table *table = &sim->sched->table;
    skua_process_snapshot info;
    uint32_t eligible = 0;
    *victim = (skua_process_snapshot){0};
    for (uint32_t slot = 1; object_pool_holds(&table->pool, slot); slot++) {
        struct process *process = object_pool_at(&table->pool, slot);
        const uint32_t tag = state_peek(process);
        const skua_pid pid = process_table_pid(table, process, state_generation(tag));
        if ((tag & STATE_KILL) == 0 && process_info_read(sim->sched, pid, &info) == 0 &&
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
    skua_process_snapshot info;
    if (LIKELY(per_million == 0) || random_below(&sim->random, SIM_RATE_MAX) >= per_million ||
        !find_victim(sim, fault, &info)) {
        return;
    }
    sim_record(sim, &(skua_sim_record){.type = SKUA_SIM_FAULT,
                                       .what = fault,
                                       .pid = info.pid,
                                       .type_name = info.type_name});
    (void)deliver_request(sim->sched, sim_worker(sim), info.pid, request); /* it is alive */
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

/* Fails during a turn: in steps, handlers and whatever else a turn does. Other threads allocate
 * too, and must not consume the simulation's random numbers. */
static void *allocate(void *arg, void *pointer, size_t old_size, size_t new_size, size_t alignment)
{
    struct sim *sim = arg;
    if (new_size > old_size && worker_here(sim->sched) != NULL) {
        const skua_sim_record failure = sim_fault_here(sim, SKUA_SIM_NO_MEMORY);
        if (sim_goes_wrong(sim, sim->config.faults.no_memory, &failure)) {
            return NULL;
        }
    }
    return sim->allocator.function(sim->allocator.arg, pointer, old_size, new_size, alignment);
}

struct allocator sim_allocator(struct sim *sim)
{
    return (struct allocator){allocate, sim};
}

/* ---- messages and completions ---- */

/* What this turn does to another process; `from` is the sender it names, or none. */
static struct agenda_item turn_item(struct sim *sim, enum agenda_type type, skua_pid from,
                                    skua_pid to)
{
    const skua_pid turn = sim_worker(sim)->context->self;
    return (struct agenda_item){
        .type = type,
        .payload = skua_payload_empty(0),
        .sender = skua_pid_is_none(from) ? turn : from,
        .turn = turn,
        .to = to,
    };
}

/* Draws whether it is delayed. What will be refused anyway is not. */
static bool is_delayed(struct sim *sim, const struct agenda_item *item)
{
    struct process *process;
    if (process_table_find_live(&sim->sched->table, item->to, &process) != 0) {
        return false;
    }
    const skua_sim_record fault = {.type = SKUA_SIM_FAULT,
                                   .what = SKUA_SIM_MESSAGE_DELAY,
                                   .pid = item->to,
                                   .from = item->sender,
                                   .type_name = process_info_type_name(sim->sched, item->to)};
    return sim_goes_wrong(sim, sim->config.faults.message_delay, &fault);
}

/* Decides when it happens. What one process does to another happens in that order, as on threads:
 * so what follows something delayed is delayed, too. Returns whether that is later. */
static bool happens_later(struct sim *sim, struct agenda_item *item)
{
    const uint64_t last = agenda_last(&sim->agenda, item);
    item->when = is_delayed(sim, item) ? sim_some_time_later(sim) : sim_now(sim);
    item->when = item->when > last ? item->when : last;
    return item->when > sim_now(sim);
}

/* Puts a message on the agenda. It has its place in the mailbox from now on. */
static int send_later(struct sim *sim, skua_pid from, struct agenda_item *item,
                      skua_payload *payload)
{
    int error = agenda_make_room(&sim->agenda) ? 0 : SKUA_E_NO_MEMORY;
    if (error == 0) {
        error = (item->is_urgent ? deliver_prepare_urgent : deliver_prepare)(
            sim->sched, sim_worker(sim), from, item->to, payload, &item->as.event);
    }
    if (error != 0) {
        payload_discard(payload);
        return error < 0 ? error : 0; /* one that was dropped is none to the sender */
    }
    item->payload = skua_payload_take(payload);
    agenda_add(&sim->agenda, item);
    return 0;
}

/* Whether a message of this turn is put off; *error is then what came of that. */
static bool is_put_off(struct sim *sim, skua_pid from, skua_pid to, skua_payload *payload,
                       int *error)
{
    struct agenda_item item = turn_item(sim, AGENDA_EVENT, from, to);
    if (!happens_later(sim, &item)) {
        return false;
    }
    *error = send_later(sim, from, &item, payload);
    return true;
}

int sim_send(struct sim *sim, struct worker *worker, skua_pid from, skua_pid to,
             skua_payload *payload)
{
    int error;
    if (worker != NULL && is_put_off(sim, from, to, payload, &error)) {
        return error;
    }
    return deliver_message(sim->sched, worker, from, to, payload);
}

/* It may be late, but no later one of its sender overtakes it. */
int sim_send_urgent(struct sim *sim, struct worker *worker, skua_pid from, skua_pid to,
                    skua_payload *payload)
{
    if (worker != NULL) {
        struct agenda_item item = turn_item(sim, AGENDA_EVENT, from, to);
        item.is_urgent = true;
        if (happens_later(sim, &item)) {
            return send_later(sim, from, &item, payload);
        }
    }
    return deliver_urgent(sim->sched, worker, from, to, payload);
}

int sim_cancel(struct sim *sim, skua_pid to, int reason)
{
    struct agenda_item item = turn_item(sim, AGENDA_EVENT, (skua_pid){0}, to);
    item.when = agenda_last(&sim->agenda, &item);
    if (item.when <= sim_now(sim)) {
        return deliver_cancel(sim->sched, sim_worker(sim), to, reason);
    }
    if (!agenda_make_room(&sim->agenda)) {
        return SKUA_E_NO_MEMORY;
    }
    const int error =
        deliver_prepare_cancel(sim->sched, sim_worker(sim), to, reason, &item.as.event);
    if (error == 0) {
        agenda_add(&sim->agenda, &item);
    }
    return error;
}

/* Without memory for that, it happens at once. */
static bool take_signal(struct detour *detour, skua_pid from, skua_pid to, uint32_t node)
{
    struct sim *sim = CONTAINER_OF(detour, struct sim, detour);
    struct agenda_item item = turn_item(sim, AGENDA_SIGNAL, from, to);
    item.as.signal = node;
    if (!happens_later(sim, &item) || !agenda_make_room(&sim->agenda)) {
        return false;
    }
    agenda_add(&sim->agenda, &item);
    return true;
}

static bool take_completion(struct detour *detour, skua_pid from, skua_completion completion,
                            int error, skua_payload *result)
{
    struct sim *sim = CONTAINER_OF(detour, struct sim, detour);
    struct agenda_item item = turn_item(sim, AGENDA_COMPLETION, from, completion.process);
    item.as.completion.call = completion;
    item.as.completion.error = error;
    if (!happens_later(sim, &item) || !agenda_make_room(&sim->agenda)) {
        return false;
    }
    item.payload = skua_payload_take(result);
    agenda_add(&sim->agenda, &item);
    return true;
}

static bool give_back(struct detour *detour, skua_pid to, uint32_t *node)
{
    struct sim *sim = CONTAINER_OF(detour, struct sim, detour);
    struct agenda_item item;
    if (!agenda_take_signal(&sim->agenda, to, &item)) {
        return false;
    }
    *node = item.as.signal;
    return true;
}

static bool take_message(struct detour *detour, skua_pid from, skua_pid to, skua_payload *payload,
                         int *error)
{
    return is_put_off(CONTAINER_OF(detour, struct sim, detour), from, to, payload, error);
}

void sim_make_detour(struct sim *sim)
{
    sim->detour = (struct detour){take_message, take_signal, take_completion, give_back};
    sim->sched->detour = &sim->detour;
}

void sim_drop_events(struct sim *sim, const skua_exit *exit)
{
    struct agenda_item item;
    while (agenda_take_event(&sim->agenda, exit->pid, &item)) {
        if (item.type == AGENDA_SIGNAL) {
            deliver_release_node(sim->sched, sim_worker(sim), item.as.signal);
            continue; /* the end of something that has ended */
        }
        const bool arrived = deliver_prepared(sim->sched, sim_worker(sim), &item.as.event);
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
    agenda_add_completion(&sim->agenda, time_after(sim_now(sim), delay_ns), completion, error,
                          result);
    return 0;
}
