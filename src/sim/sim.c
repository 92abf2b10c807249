/* SPDX-License-Identifier: MIT */
#include "sim/sim.h"

#include <skua/clock.h>
#include <stdalign.h>

#include "base/assert.h"
#include "base/mutex.h"
#include "base/random.h"
#include "base/sized.h"
#include "sched/exit_wait.h"
#include "sched/held_back.h"
#include "sched/shutdown.h"
#include "sched/signal.h"
#include "sched/spare.h"
#include "sched/stats.h"
#include "sched/timers.h"
#include "sched/worker.h"
#include "watch/audit.h"
#include "watch/crash_report.h"

#define STEP_NS_DEFAULT SKUA_MICROSECOND
#define READY_MIN       64

/* A step that is cut short gets at most this many events. */
#define SHORT_BATCH_MAX 8
#define TURNS_MAX       4

static uint64_t read_clock(struct time_source *source)
{
    return sim_now(CONTAINER_OF(source, struct sim, time));
}

/* UINT64_MAX is reserved for what never happens. */
static void set_clock(struct sim *sim, uint64_t now)
{
    store_relaxed(&sim->now, now < UINT64_MAX ? now : UINT64_MAX - 1); /* see sim_now */
}

/* ---- life ---- */

static bool make_room(struct sim *sim)
{
    const size_t capacity = sim->ready_capacity == 0 ? READY_MIN : 2 * sim->ready_capacity;
    struct process **ready =
        allocator_grow(&sim->allocator, sim->ready, sim->ready_capacity * sizeof(struct process *),
                       capacity * sizeof(struct process *), alignof(struct process *));
    if (ready == NULL) {
        return false;
    }
    sim->ready = ready;
    sim->ready_capacity = capacity;
    return true;
}

int sim_init(struct sim *sim, const skua_sim_config *config, uint64_t seed, struct scheduler *sched,
             struct allocator allocator)
{
    if (!sim_config_is_valid(config)) {
        return SKUA_E_INVALID;
    }
    *sim = (struct sim){
        .sched = sched,
        .config = *config,
        .allocator = allocator,
        .time.now = read_clock,
        .random = random_mix(seed),
        .steps_troubled = UINT64_MAX,
    };
    if (sim->config.step_ns == 0) {
        sim->config.step_ns = STEP_NS_DEFAULT;
    }
    sim_apply_faults(sim, &config->faults);
    set_clock(sim, SKUA_SIM_START_NS);
    agenda_init(&sim->agenda, &sim->allocator);
    network_init(&sim->network, sim);
    return make_room(sim) ? 0 : SKUA_E_NO_MEMORY;
}

void sim_deinit(struct sim *sim)
{
    network_deinit(&sim->network);
    agenda_deinit(&sim->agenda);
    sim_free_handlers(sim);
    allocator_free(&sim->allocator, sim->ready, sim->ready_capacity * sizeof(struct process *),
                   alignof(struct process *));
}

void sim_attach(struct sim *sim, struct blocking *blocking, struct sockets *sockets)
{
    sim_observe(sim);
    sim_make_detour(sim);
    blocking->simulate = sim_run_job;
    blocking->stand_in = sim->config.services.blocking != NULL ? sim_stand_in : NULL;
    blocking->simulate_arg = sim;
    struct service *services = sim->sched->services;
    services[SERVICE_READABLE] =
        (struct service){.name = "readable", .start = sim_start_wait, .arg = sim};
    services[SERVICE_WRITABLE] =
        (struct service){.name = "writable", .start = sim_start_wait, .arg = sim};
    sockets->transport = &sim->network.transport;
    network_attach(&sim->network, sockets);
}

/* ---- what happens next ---- */

/* Whether a Ready process is in the worker's queues. */
static bool is_queued(struct sim *sim)
{
    return load_relaxed(&sim_worker(sim)->next) != NULL || /* only this thread fills it */
           idle_work_is_visible(sim->sched);
}

/* Moves the Ready processes from the worker's queues to the list, as many as there is memory for.
 * Only if there are any: a futile pick counts as a pick, and then a run in many pieces would differ
 * from the same run in one. */
static void collect_ready(struct sim *sim)
{
    while (is_queued(sim) && (sim->ready_count < sim->ready_capacity || make_room(sim))) {
        struct process *process = find_work(sim_worker(sim));
        SKUA_ASSERT(process != NULL);
        sim->ready[sim->ready_count++] = process;
    }
}

static struct process *pick(struct sim *sim)
{
    const uint32_t bound = sim->ready_count < UINT32_MAX ? (uint32_t)sim->ready_count : UINT32_MAX;
    const uint32_t at = random_below(&sim->random, bound);
    struct process *process = sim->ready[at];
    sim->ready[at] = sim->ready[--sim->ready_count];
    return process;
}

/* Chooses how many events and steps a turn has: often as many as on threads, often few. */
static void cut_turn(struct sim *sim, struct worker *worker)
{
    const bool is_short = random_below(&sim->random, 2) == 0;
    worker->events_max =
        is_short ? 1 + random_below(&sim->random, SHORT_BATCH_MAX) : SKUA_EVENTS_PER_STEP;
    worker->turns_max = 1 + random_below(&sim->random, TURNS_MAX);
}

static void run_turn(struct sim *sim)
{
    struct worker *worker = sim_worker(sim);
    struct process *process = pick(sim);
    struct worker *outer = worker_of_thread(); /* a step of another runtime may drive this one */
    cut_turn(sim, worker);
    worker_set_current(worker);
    step_run(worker, process);
    spare_return(worker);
    worker_set_current(outer);
    store_seq_cst(&worker->running, RUNNING_NOTHING); /* MO-busy */
    set_clock(sim, time_after(sim_now(sim), sim->config.step_ns));
}

static void arrive(struct sim *sim, struct agenda_item *item)
{
    struct scheduler *sched = sim->sched;
    switch (item->type) {
    case AGENDA_EVENT:
        if (!deliver_prepared(sched, sim_worker(sim), &item->as.event)) {
            skua_payload_drop(&item->payload);
        }
        break;
    case AGENDA_SIGNAL:
        if (!signal_push_now(sched, sim_worker(sim), item->to, item->as.signal)) {
            deliver_release_node(sched, sim_worker(sim), item->as.signal);
        }
        break;
    case AGENDA_COMPLETION:
        (void)deliver_completion(sched, sim_worker(sim), item->as.completion.call,
                                 item->as.completion.error, &item->payload);
        break;
    case AGENDA_JOB:
        blocking_job_carry_out(item->as.job);
        break;
    case AGENDA_NETWORK:
        network_act(&sim->network, item->as.network.what, item->as.network.matter);
        break;
    }
}

/* Does everything that is due: first the agenda, then the timers, each in order of time. Timers
 * fire as of now, so that a ticker tells a late process how many ticks it missed. */
static void catch_up(struct sim *sim)
{
    const uint64_t now = sim_now(sim);
    struct agenda_item item;
    while (agenda_next(&sim->agenda) <= now) {
        agenda_take(&sim->agenda, &item);
        arrive(sim, &item);
    }
    while (timers_next(sim->sched) <= now) {
        timers_fire_all(sim->sched, sim_worker(sim), now);
    }
    held_back_release(sim->sched, now);
}

static uint64_t next_instant(struct sim *sim)
{
    timers_correct_next(sim_worker(sim)); /* time must not pass for what has ended */
    const uint64_t timer = timers_next(sim->sched);
    const uint64_t other = agenda_next(&sim->agenda);
    const uint64_t held = held_back_next(sim->sched);
    const uint64_t first = timer < other ? timer : other;
    return first < held ? first : held;
}

/* Faults hit processes only if there was a step since the last time. Turns that a fault itself
 * caused do not count, so a run comes to rest whatever the rates. */
static void trouble_processes(struct sim *sim)
{
    const uint64_t steps = load_relaxed(&sim_worker(sim)->stats.steps); /* this thread's */
    if (steps != sim->steps_troubled) {
        sim->steps_troubled = steps;
        sim_trouble_processes(sim);
        collect_ready(sim);
    }
}

/* Processes that are held back run when others rest. With nothing Ready, all do; otherwise it is
 * left to chance, as another worker would or would not be without work just now. */
static void let_go(struct sim *sim)
{
    struct scheduler *sched = sim->sched;
    if (held_back_next(sched) == UINT64_MAX ||
        (sim->ready_count > 0 && random_below(&sim->random, 2) == 0)) {
        return;
    }
    struct process *process = held_back_take(sim_worker(sim));
    if (process != NULL) {
        submit_outside(sched, process);
        collect_ready(sim);
    }
}

/* Does the next thing if it is due before `until`; false if nothing is. */
static bool act(struct sim *sim, uint64_t until)
{
    if (sim_now(sim) >= until) {
        return false;
    }
    catch_up(sim);
    collect_ready(sim);
    let_go(sim);
    if (sim->ready_count > 0) {
        trouble_processes(sim);
        run_turn(sim);
        return true;
    }
    const uint64_t next = next_instant(sim);
    if (next >= until) {
        return false;
    }
    set_clock(sim, next);
    sim_record(sim, &(skua_sim_record){.type = SKUA_SIM_CLOCK});
    return true;
}

/* Nothing more happens before `until`: moves the clock there. */
static void skip_to(struct sim *sim, uint64_t until)
{
    if (until != SKUA_FOREVER && sim_now(sim) < until) {
        set_clock(sim, until);
    }
}

/* ---- audits ---- */

static void show(struct audit *audit, void *arg)
{
    const struct sim *sim = arg;
    for (size_t i = 0; i < sim->ready_count; i++) {
        audit_show_token(audit, sim->ready[i]);
    }
    for (size_t i = 0; i < sim->agenda.count; i++) {
        const struct agenda_item *item = &sim->agenda.items[i];
        if (item->type == AGENDA_EVENT) {
            audit_show_node(audit, item->as.event.index);
        } else if (item->type == AGENDA_SIGNAL) {
            audit_show_signal(audit, item->as.signal);
        }
    }
}

/* Between two turns, with `own_calls` public calls in progress on this thread. */
static void check_between_turns(struct sim *sim, uint32_t own_calls)
{
    audit_now_and_then(sim->sched,
                       &(struct audit_moment){.own_calls = own_calls, .show = show, .arg = sim});
}

/* Another thread may have submitted something since the simulation came to rest, so this checks no
 * more than is true between turns. That suffices: the queues were empty, and every Ready process
 * has a token. */
static void check_at_rest(struct sim *sim)
{
    (void)network_audit(&sim->network);
    audit_now(sim->sched, &(struct audit_moment){.own_calls = 1, .show = show, .arg = sim});
}

static void check_at_end(struct sim *sim)
{
    (void)network_audit(&sim->network);
    audit_now(sim->sched, &(struct audit_moment){
                              .is_at_rest = true, .is_at_end = true, .show = show, .arg = sim});
}

/* ---- driving ---- */

/* The simulations that this thread drives, innermost first: a step may drive another one. */
static _Thread_local struct sim *driving;

static bool is_driven_here(const struct sim *sim)
{
    const struct sim *at = driving;
    while (at != NULL && at != sim) {
        at = at->outer;
    }
    return at == sim;
}

/* False if another thread drives it, or this one already does. */
static bool claim(struct sim *sim)
{
    if (exchange_acq_rel(&sim->driven, 1) != 0) { /* MO-sim */
        return false;
    }
    sim->outer = driving;
    driving = sim;
    return true;
}

static void end_driving(struct sim *sim)
{
    driving = sim->outer;
    store_release(&sim->driven, 0); /* MO-sim */
}

bool sim_enter(struct sim *sim, bool *was_inside)
{
    *was_inside = is_driven_here(sim);
    return *was_inside || claim(sim);
}

void sim_leave(struct sim *sim, bool was_inside)
{
    if (!was_inside) {
        end_driving(sim);
    }
}

int sim_refuse(struct sim *sim)
{
    switch (shutdown_phase(sim->sched)) {
    case PHASE_CREATED:
        return SKUA_E_NOT_STARTED;
    case PHASE_STOPPED:
        return SKUA_E_STOPPED;
    case PHASE_RUNNING:
    case PHASE_STOPPING:
    case PHASE_ENDING:
        break;
    }
    return 0;
}

/* Checks the phase after claiming: nobody else can stop the runtime then. */
static int begin_driving(struct sim *sim)
{
    if (!claim(sim)) {
        return SKUA_E_BUSY;
    }
    const int refused = sim_refuse(sim);
    if (refused != 0) {
        end_driving(sim);
    }
    return refused;
}

static bool is_at_rest(struct sim *sim)
{
    return sim->ready_count == 0 && !is_queued(sim) && next_instant(sim) == UINT64_MAX;
}

int sim_run(struct sim *sim, uint64_t until)
{
    const int error = begin_driving(sim);
    if (error != 0) {
        return error;
    }
    while (act(sim, until)) {
        check_between_turns(sim, 1);
    }
    skip_to(sim, until);
    const bool at_rest = is_at_rest(sim);
    if (at_rest) {
        check_at_rest(sim);
        sim_name_cycles(sim);
    }
    end_driving(sim);
    return at_rest ? 0 : 1;
}

int sim_step(struct sim *sim)
{
    const int error = begin_driving(sim);
    if (error != 0) {
        return error;
    }
    const int done = act(sim, SKUA_FOREVER) ? 1 : 0;
    check_between_turns(sim, 1);
    end_driving(sim);
    return done;
}

/* Runs until the waiter's process has ended. */
static int drive_until_done(struct sim *sim, const struct exit_waiter *waiter, uint64_t deadline)
{
    while (!waiter->done && act(sim, deadline)) {
        check_between_turns(sim, 1);
    }
    if (waiter->done) {
        return 0;
    }
    skip_to(sim, deadline);
    if (deadline != SKUA_FOREVER) {
        return SKUA_E_TIMEOUT;
    }
    sim_name_cycles(sim);
    return SKUA_E_AT_REST;
}

int sim_wait(struct sim *sim, struct exit_waiter *waiter, uint64_t timeout_ns)
{
    int error = begin_driving(sim);
    if (error == 0) {
        error = drive_until_done(sim, waiter, time_after(sim_now(sim), timeout_ns));
        end_driving(sim);
    }
    const int left = exit_wait_until(sim->sched, waiter, 0);
    SKUA_ASSERT(left == 0 || left == SKUA_E_TIMEOUT);
    return waiter->done ? 0 : error; /* another thread may have run it to its exit */
}

/* ---- start and stop ---- */

int sim_start(struct sim *sim)
{
    struct scheduler *sched = sim->sched;
    int refused = shutdown_refuse_start(
        sched); /* a step may call this while its own thread stops the runtime */
    if (refused != 0) {
        return refused;
    }
    mutex_lock(&sched->control);
    refused = shutdown_refuse_start(sched);
    if (refused == 0) {
        store_seq_cst(&sched->threads, 1); /* MO-spare: so that its wheel and counters are read */
        step_output_fill_reserve(&sim_worker(sim)->out);
        sim->faults_are_on = true;
        if (sched->config.crash_report) {
            crash_report_install();
        }
        shutdown_open_locked(sched);
    }
    mutex_unlock(&sched->control);
    return refused;
}

/* False if some are still alive when nothing more happens before the deadline. */
static bool drive_until_empty(struct sim *sim, uint64_t deadline)
{
    while (stats_live(sim->sched) > 0 && act(sim, deadline)) {
        check_between_turns(sim, 0);
    }
    return stats_live(sim->sched) == 0;
}

/* Drops what is left: it concerns processes that are gone. Only the blocking calls of their last
 * steps are still made. */
static void empty_agenda(struct sim *sim)
{
    struct agenda_item item;
    while (sim->agenda.count > 0) {
        agenda_take(&sim->agenda, &item);
        if (item.type == AGENDA_JOB && item.as.job->drop != NULL) {
            item.as.job->drop(item.as.job);
        } else if (item.type == AGENDA_NETWORK) {
            network_forget(&sim->network, item.as.network.what, item.as.network.matter);
        } else {
            arrive(sim, &item);
        }
    }
}

static int stop_driven_locked(struct sim *sim, uint64_t timeout_ns)
{
    struct scheduler *sched = sim->sched;
    const uint64_t deadline = time_after(sim_now(sim), timeout_ns);
    int result = 0;
    shutdown_ask_locked(sched);
    if (!drive_until_empty(sim, deadline)) {
        skip_to(sim, deadline);
        sim->faults_are_on = false;
        (void)shutdown_end_survivors_locked(sched);
        const bool empty = drive_until_empty(sim, SKUA_FOREVER);
        SKUA_ASSERT(empty); /* all are Ready and marked to end */
        result = SKUA_E_TIMEOUT;
    }
    while (socket_hooks_linger(sched->sockets) && act(sim, deadline)) {
        check_between_turns(sim, 0);
    }
    sim->faults_are_on = false;
    empty_agenda(sim);
    step_output_drain_reserve(&sim_worker(sim)->out);
    check_at_end(sim);
    return result;
}

int sim_stop(struct sim *sim, uint64_t timeout_ns)
{
    struct scheduler *sched = sim->sched;
    if (is_driven_here(sim)) {
        return SKUA_E_INSIDE_STEP; /* this thread may hold `control` */
    }
    mutex_lock(&sched->control);
    int result = begin_driving(sim);
    if (result == 0) {
        result = stop_driven_locked(sim, timeout_ns);
        if (sched->config.crash_report) {
            crash_report_remove();
        }
        store_seq_cst(&sched->phase, PHASE_STOPPED);
        end_driving(sim);
    }
    mutex_unlock(&sched->control);
    return result == SKUA_E_STOPPED ? 0 : result;
}
