/* SPDX-License-Identifier: MIT */
/* What a seed stands for: how large a program is, its limits, how it ends, what goes wrong. */
#include "property.h"

/* Processes of supervisors and their children: more than there ever are. */
#define CREW_ROOM 512

uint32_t draw(uint64_t *random, uint32_t bound)
{
    return random_below(random, bound);
}

bool chance(uint64_t *random, uint32_t percent)
{
    return draw(random, 100) < percent;
}

/* A fault that is not there at all, or up to so often in a million occasions. */
static uint32_t rate(uint64_t *random, uint32_t most)
{
    const bool is_there = chance(random, 50);
    const uint32_t often = 1 + draw(random, most);
    return is_there ? often : 0;
}

static skua_sim_network generate_network(uint64_t *random)
{
    skua_sim_network network = {.window = 1 + draw(random, 600)};
    network.connect_refused = rate(random, 200000);
    network.connect_delay = rate(random, 200000);
    network.accept_delay = rate(random, 200000);
    network.no_descriptors = rate(random, 100000);
    network.short_read = rate(random, 400000);
    network.short_write = rate(random, 400000);
    network.reset = rate(random, 20000);
    network.silent_drop = rate(random, 10000);
    network.eof_late = rate(random, 400000);
    network.clog = rate(random, 50000);
    network.partition = rate(random, 20000);
    return network;
}

static skua_sim_faults generate_faults(uint64_t *random, uint64_t moment_ns)
{
    skua_sim_faults faults = {.delay_max_ns = 8 * moment_ns};
    faults.message_delay = rate(random, 300000);
    faults.handler_error = rate(random, 200000);
    faults.slow_completion = rate(random, 300000);
    faults.no_memory = rate(random, 100000);
    faults.spurious_wake = rate(random, 200000);
    faults.process_kill = rate(random, 20000);
    faults.network = generate_network(random);
    return faults;
}

static uint64_t generate_stop_timeout(uint64_t *random, const struct program *program)
{
    if (program->everybody_obeys) {
        return 30 * SKUA_SECOND; /* ends a hang on threads */
    }
    const uint32_t moments = draw(random, 6);
    return moments * program->moment_ns;
}

void program_generate(struct program *program, uint64_t seed, enum driver driver)
{
    uint64_t random = random_mix(seed + RANDOM_STEP);
    *program = (struct program){.seed = seed, .driver = driver};
    /* Threads have to wait for what the simulator jumps over. */
    program->moment_ns = driver == DRIVER_SIM ? SKUA_MILLISECOND : 30 * SKUA_MICROSECOND;
    program->workers = 1 + draw(&random, 4);
    program->actors = 4 + draw(&random, ACTORS_MAX - 3);
    program->outsiders = 1 + draw(&random, OUTSIDERS_MAX);
    program->roots = 1 + draw(&random, 8);
    program->operations = draw(&random, 100);
    program->plan_max = 1 + draw(&random, 40);
    program->process_limit = chance(&random, 30) ? 2 + draw(&random, 10) : ACTORS_MAX;
    program->mailbox_limit = 1 + draw(&random, 24);
    program->everybody_obeys = chance(&random, 40);
    program->comes_to_rest = chance(&random, 60);
    program->uses_sockets = chance(&random, 60);
    program->uses_crews = chance(&random, 35) && program->process_limit == ACTORS_MAX;
    program->process_limit += program->uses_crews ? CREW_ROOM : 0;
    program->stop_timeout_ns = generate_stop_timeout(&random, program);
    if (driver == DRIVER_SIM && chance(&random, 30)) { /* slow steps: ticks come late */
        program->step_ns = 1 + draw(&random, 2 * SKUA_MILLISECOND);
    }
    if (driver == DRIVER_SIM && chance(&random, 60)) {
        program->faults = generate_faults(&random, program->moment_ns);
    }
}
