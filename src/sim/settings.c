/* SPDX-License-Identifier: MIT */
/* What can be set of a simulation, before it starts and while it runs: faults, hosts and what is
 * between them. */
#include <skua/clock.h>

#include "base/sized.h"
#include "process/payload.h"
#include "sched/spawn.h"
#include "sched/worker.h"
#include "sim/sim.h"

#define DELAY_NS_DEFAULT         (10 * SKUA_MILLISECOND)
#define LATENCY_NS_DEFAULT       (100 * SKUA_MICROSECOND)
#define WINDOW_DEFAULT           (UINT32_C(64) * 1024)
#define PARTITION_MIN_NS_DEFAULT (100 * SKUA_MILLISECOND)
#define PARTITION_MAX_NS_DEFAULT (2 * SKUA_SECOND)

/* ---- faults ---- */

static bool are_rates(const uint32_t *rates, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (rates[i] > SIM_RATE_MAX) {
            return false;
        }
    }
    return true;
}

static bool is_valid_network(const skua_sim_network *network)
{
    const uint32_t rates[] = {
        network->connect_refused, network->connect_delay,
        network->accept_delay,    network->no_descriptors,
        network->short_read,      network->short_write,
        network->reset,           network->silent_drop,
        network->eof_late,        network->clog,
        network->partition,
    };
    const uint64_t shortest = network->partition_min_ns;
    const uint64_t longest = network->partition_max_ns;
    return are_rates(rates, sizeof rates / sizeof rates[0]) &&
           network->latency_ns <= SKUA_DURATION_MAX && network->jitter_ns <= SKUA_DURATION_MAX &&
           shortest <= SKUA_DURATION_MAX && longest <= SKUA_DURATION_MAX &&
           (longest == 0 || shortest <= longest) &&
           reserved_are_zero(network->reserved, sizeof network->reserved);
}

static bool are_valid(const skua_sim_faults *faults)
{
    const uint32_t rates[] = {
        faults->message_delay, faults->handler_error, faults->slow_completion,
        faults->no_memory,     faults->spurious_wake, faults->process_kill,
    };
    return are_rates(rates, sizeof rates / sizeof rates[0]) &&
           faults->delay_max_ns <= SKUA_DURATION_MAX && is_valid_network(&faults->network) &&
           reserved_are_zero(faults->reserved, sizeof faults->reserved);
}

bool sim_config_is_valid(const skua_sim_config *config)
{
    const skua_sim_services *services = &config->services;
    return are_valid(&config->faults) && config->step_ns <= SKUA_DURATION_MAX &&
           reserved_are_zero(services->reserved, sizeof services->reserved) &&
           reserved_are_zero(config->reserved, sizeof config->reserved);
}

static uint64_t value_or(uint64_t value, uint64_t otherwise)
{
    return value != 0 ? value : otherwise;
}

static void fill_in_network(skua_sim_network *network)
{
    network->latency_ns = value_or(network->latency_ns, LATENCY_NS_DEFAULT);
    network->jitter_ns = value_or(network->jitter_ns, network->latency_ns);
    network->window = (uint32_t)value_or(network->window, WINDOW_DEFAULT);
    network->partition_max_ns =
        value_or(network->partition_max_ns, network->partition_min_ns > PARTITION_MAX_NS_DEFAULT
                                                ? network->partition_min_ns
                                                : PARTITION_MAX_NS_DEFAULT);
    network->partition_min_ns =
        value_or(network->partition_min_ns, network->partition_max_ns < PARTITION_MIN_NS_DEFAULT
                                                ? network->partition_max_ns
                                                : PARTITION_MIN_NS_DEFAULT);
}

void sim_apply_faults(struct sim *sim, const skua_sim_faults *faults)
{
    sim->config.faults = *faults;
    sim->config.faults.delay_max_ns = value_or(faults->delay_max_ns, DELAY_NS_DEFAULT);
    fill_in_network(&sim->config.faults.network);
}

int sim_set_faults(struct sim *sim, const skua_sim_faults *faults)
{
    bool was_inside;
    if (!are_valid(faults)) {
        return SKUA_E_INVALID;
    }
    if (!sim_enter(sim, &was_inside)) {
        return SKUA_E_BUSY;
    }
    sim_apply_faults(sim, faults);
    sim_leave(sim, was_inside);
    return 0;
}

/* ---- hosts ---- */

/* The host that this thread starts a process on, with what that starts in its init. */
struct submission {
    const struct sim *sim;
    uint32_t host;
};
static _Thread_local struct submission submitting;

/* The process that starts another; none if it is a thread that does. */
static skua_pid parent_of(const struct worker *worker)
{
    if (worker == NULL || worker->context == NULL) {
        return (skua_pid){0};
    }
    return worker->starting != NULL ? worker->starting->self : worker->context->self;
}

bool sim_place_process(struct observer *observer, const struct worker *worker, skua_pid pid)
{
    struct sim *sim = CONTAINER_OF(observer, struct sim, observer);
    struct process_hosts *hosts = &sim->network.process_hosts;
    const skua_pid parent = parent_of(worker);
    uint32_t host = HOSTS_FIRST;
    if (submitting.sim == sim) {
        host = submitting.host;
    } else if (!skua_pid_is_none(parent)) {
        host = hosts_of(hosts, parent);
    }
    return hosts_set_any(hosts, pid, host) == 0;
}

static bool can_be_host(uint32_t host)
{
    return host >= HOSTS_FIRST && host <= SKUA_SIM_HOSTS_MAX;
}

static int submit(struct sim *sim, struct worker *worker, uint32_t host,
                  const struct spawn_request *request)
{
    const int refused = paths_add_host(&sim->network, host);
    if (refused != 0) {
        payload_discard_all(request->input, request->input_count);
        return refused;
    }
    const struct submission outer = submitting;
    submitting = (struct submission){sim, host};
    const int error = spawn_process(sim->sched, worker, request);
    submitting = outer;
    return error;
}

int sim_host_submit(struct sim *sim, struct worker *worker, uint32_t host,
                    const struct spawn_request *request)
{
    bool was_inside = false;
    if (!can_be_host(host) || !sim_enter(sim, &was_inside)) {
        payload_discard_all(request->input, request->input_count);
        return can_be_host(host) ? SKUA_E_BUSY : SKUA_E_INVALID;
    }
    const int error = submit(sim, worker, host, request);
    sim_leave(sim, was_inside);
    return error;
}

/* ---- what is between hosts ---- */

int sim_partition(struct sim *sim, uint32_t a, uint32_t b, bool both_ways)
{
    bool was_inside;
    if (!can_be_host(a) || b > SKUA_SIM_HOSTS_MAX || a == b) {
        return SKUA_E_INVALID;
    }
    if (!sim_enter(sim, &was_inside)) {
        return SKUA_E_BUSY;
    }
    const int error = paths_cut(&sim->network, a, b, both_ways);
    sim_leave(sim, was_inside);
    return error;
}

int sim_heal(struct sim *sim, uint32_t a, uint32_t b)
{
    bool was_inside;
    if (a > SKUA_SIM_HOSTS_MAX || b > SKUA_SIM_HOSTS_MAX || (a == b && a != 0)) {
        return SKUA_E_INVALID;
    }
    if (!sim_enter(sim, &was_inside)) {
        return SKUA_E_BUSY;
    }
    paths_heal(&sim->network, a, b);
    sim_leave(sim, was_inside);
    return 0;
}

int sim_set_latency(struct sim *sim, uint32_t a, uint32_t b, uint64_t latency_ns)
{
    bool was_inside;
    if (!can_be_host(a) || !can_be_host(b)) {
        return SKUA_E_INVALID;
    }
    if (latency_ns > SKUA_DURATION_MAX) {
        return SKUA_E_DURATION;
    }
    if (!sim_enter(sim, &was_inside)) {
        return SKUA_E_BUSY;
    }
    const int error = paths_set_latency(&sim->network, a, b, latency_ns);
    sim_leave(sim, was_inside);
    return error;
}
