/* SPDX-License-Identifier: MIT */
/* One program from beginning to end: the threads outside, rest, stop, and what holds after it. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "counting_allocator.h"
#include "property.h"

/* Ends a hang. */
#define PATIENCE_NS (30 * SKUA_SECOND)

/* By the virtual clock: far more than anything takes. */
#define PATIENCE_SIMULATED_NS (600 * SKUA_SECOND)

/* ---- a thread outside ---- */

static struct agent outsider(uint32_t number)
{
    return (struct agent){
        .sender = ACTORS_MAX + number,
        .random = random_mix(world.program.seed ^ random_mix(1000 + number)),
    };
}

static void do_chores_or_park(struct agent *agent)
{
    const uint32_t amount = draw(&agent->random, 12);
    if (!in_simulator()) {
        for (uint32_t i = 0; i < amount; i++) {
            (void)sched_yield();
        }
        return;
    }
    const bool in_steps = chance(&agent->random, 50);
    int result = 1;
    if (in_steps) {
        for (uint32_t i = 0; i < amount && result > 0; i++) {
            result = skua_sim_step(world.runtime);
        }
    } else {
        const uint64_t until = skua_sim_now(world.runtime) + amount * world.program.moment_ns / 4;
        result = skua_sim_run(world.runtime, until);
    }
    if (result < 0) {
        fault("driving the simulator: %s", skua_error_name(result));
    }
}

static void operate(struct agent *agent)
{
    const uint32_t what = draw(&agent->random, world.program.uses_crews ? 115 : 100);
    if (what >= 100) {
        act_crew(agent);
    } else if (what < 30) {
        act_spawn(agent);
    } else if (what < 70) {
        act_send(agent);
    } else if (what < 77) {
        act_cancel(agent);
    } else if (what < 81) {
        act_terminate(agent);
    } else if (what < 88) {
        act_look(agent);
    } else if (what < 96) {
        act_wait(agent);
    } else {
        act_run(agent);
    }
}

static void *be_outside(void *arg)
{
    struct agent *agent = arg;
    for (uint32_t i = 0; i < world.program.roots; i++) {
        act_spawn(agent);
    }
    for (uint32_t i = 0; i < world.program.operations; i++) {
        operate(agent);
        do_chores_or_park(agent);
    }
    return NULL;
}

/* ---- rest ---- */

static skua_stats stats(void)
{
    skua_stats total;
    (void)skua_stats_read(world.runtime, &total, NULL, 0); /* cannot fail */
    return total;
}

static void come_to_rest_simulated(void)
{
    const uint64_t end = skua_sim_now(world.runtime) + PATIENCE_SIMULATED_NS;
    const int result = skua_sim_run(world.runtime, end);
    if (result != 0) {
        fault("the simulator does not come to rest: %d", result);
    }
    (void)ledger_is_at_rest(true);
}

/* Nobody outside acts any more. All is quiet if all rest twice and none ran between. */
static bool is_quiet(void)
{
    const uint64_t before = stats().steps;
    return ledger_is_at_rest(false) && stats().steps == before && ledger_is_at_rest(false);
}

static uint64_t real_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SKUA_SECOND + (uint64_t)now.tv_nsec;
}

static void come_to_rest_on_threads(void)
{
    const uint64_t end = real_now() + PATIENCE_NS;
    while (!is_quiet()) {
        (void)sched_yield();
        if (real_now() > end) {
            (void)ledger_is_at_rest(true);
            fault("the program does not come to rest");
            return;
        }
    }
}

/* ---- stop ---- */

static void stop(void)
{
    const struct program *program = &world.program;
    store_relaxed(&world.stop_has_begun, 1); /* see property.h */
    int result = skua_runtime_stop(world.runtime, program->stop_timeout_ns);
    const bool was_stuck = result == SKUA_E_STUCK; /* this machine is slow, no step is */
    while (result == SKUA_E_STUCK) {
        result = skua_runtime_stop(world.runtime, PATIENCE_NS);
    }
    const bool forced = load_relaxed(&world.survivors) > 0 || was_stuck;
    if (result != 0 && result != SKUA_E_TIMEOUT) {
        fault("stop: %s", skua_error_name(result));
    }
    if (program->everybody_obeys && (result != 0 || forced)) {
        fault("everybody obeys, but stop returns %s", skua_error_name(result));
    }
    if (in_simulator() && (result == SKUA_E_TIMEOUT) != forced) {
        fault("stop returns %d with %u survivors", result, load_relaxed(&world.survivors));
    }
}

/* What a stopped runtime says, and that it agrees with the books. */
static void check_stopped(void)
{
    const skua_stats total = stats();
    uint64_t spawned = 0;
    uint64_t steps = 0;
    const uint32_t made = actor_count();
    for (uint32_t i = 0; i < made; i++) {
        struct actor *actor = actor_at(i);
        spawned += load_relaxed(&actor->is_published);
        steps += load_relaxed(&actor->steps);
    }
    spawned += crews_ended();
    if (total.live != 0 || total.spawned != spawned || total.finished != spawned) {
        fault("%u processes live after stop; %u began, %u ended, by the books %u",
              (uint32_t)total.live, (uint32_t)total.spawned, (uint32_t)total.finished,
              (uint32_t)spawned);
    }
    if (crews_are_used() ? total.steps < steps : total.steps != steps) {
        fault("%u steps, by the books %u", (uint32_t)total.steps, (uint32_t)steps);
    }
    mail_check_stats(&total);
    if (skua_process_submit(world.runtime, &script_types[0], skua_nothing(), NULL) !=
        SKUA_E_STOPPED) {
        fault("a process can be submitted after stop");
    }
}

/* ---- a program ---- */

static void on_record(void *arg, const skua_sim_record *record)
{
    (void)arg;
    ledger_on_record(record);
    if (world.program.trace) {
        char line[200];
        (void)skua_sim_record_format(record, line, sizeof line);
        (void)printf("%s\n", line);
    }
}

static void create(struct counting_allocator *memory)
{
    const struct program *program = &world.program;
    const skua_sim_config sim = {
        .step_ns = program->step_ns,
        .faults = program->faults,
        .on_record = on_record,
    };
    counting_allocator_init(memory);
    const skua_runtime_config config = {
        .worker_count = in_simulator() ? 0 : program->workers,
        .process_limit = program->process_limit,
        .mailbox_limit = program->mailbox_limit,
        .payload_limit = PAYLOAD_LIMIT,
        .seed = program->seed + 1, /* 0 is the default's */
        .alloc = counting_allocate,
        .alloc_arg = memory,
        .on_exit = ledger_on_exit,
        .on_survivor = ledger_on_survivor,
        .on_log = ledger_on_log,
        .on_dead_letter = mail_on_dead_letter,
        .sim = in_simulator() ? &sim : NULL,
    };
    if (skua_runtime_create(&world.runtime, &config) != 0) {
        abort();
    }
    commands_register();
    if (skua_runtime_start(world.runtime) != 0) {
        abort();
    }
}

static void drive_simulator(void)
{
    struct agent agent = outsider(0);
    (void)be_outside(&agent);
    if (world.program.comes_to_rest) {
        come_to_rest_simulated();
    }
    stop();
}

static void drive_threads(void)
{
    pthread_t threads[OUTSIDERS_MAX];
    struct agent agents[OUTSIDERS_MAX];
    const uint32_t count = world.program.outsiders;
    for (uint32_t i = 0; i < count; i++) {
        agents[i] = outsider(i);
        if (pthread_create(&threads[i], NULL, be_outside, &agents[i]) != 0) {
            abort();
        }
    }
    if (!world.program.comes_to_rest) {
        struct agent self = outsider(OUTSIDERS_MAX);
        do_chores_or_park(&self);
        stop(); /* while the others are at it */
    }
    for (uint32_t i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    if (world.program.comes_to_rest) {
        come_to_rest_on_threads();
        stop();
    }
}

/* The lowest number that is free: another one afterwards, if a descriptor was left behind. */
static int free_descriptor(void)
{
    const int fd = dup(STDERR_FILENO);
    (void)close(fd);
    return fd;
}

bool program_run(const struct program *program, uint64_t *hash)
{
    const int descriptor = free_descriptor();
    struct counting_allocator memory;
    world.program = *program;
    ledger_begin();
    mail_begin();
    letters_begin();
    requests_begin();
    wires_begin();
    crews_begin();
    create(&memory);
    commands_start();
    crews_start();
    if (in_simulator()) {
        drive_simulator();
    } else {
        drive_threads();
    }
    commands_end();
    check_stopped();
    *hash = skua_sim_hash(world.runtime);
    const int error = skua_runtime_destroy(world.runtime);
    if (error != 0) {
        fault("destroy: %s", skua_error_name(error));
    }
    if (free_descriptor() != descriptor) {
        fault("a descriptor was left behind");
    }
    if (!counting_allocator_is_clean(&memory)) {
        fault("memory is not what it was");
    }
    ledger_check();
    mail_check();
    crews_check();
    requests_check();
    wires_check();
    letters_check();
    return !ledger_has_faults();
}
