/* SPDX-License-Identifier: MIT */
/* The simulator's faults: each comes, is recorded, and does not come at rate 0; handlers and pools
 * in a simulation; a simulation without memory; faults that are switched while it runs. (Delayed
 * messages are in test_sim_messages.c.) */
#include "actor.h"
#include "desk.h"
#include "sim_trace.h"
#include "threads.h"

#define SEED    11
#define SEEDS   50
#define START   SKUA_SIM_START_NS
#define COMMAND 100

static const skua_blocking_pool safe_pool = {.name = "pool", .sim_safe = true};

/* ---- handlers ---- */

static int double_it(skua_payload *input, skua_payload *result)
{
    *result = skua_payload_u64(0, 2 * skua_payload_to_u64(input));
    return 0;
}

/* A client of a handler, a blocking call and a timer. */
struct client {
    struct seen ends[3];
    uint32_t handler_calls;
};

/* Timers are spared by all faults. */
static struct client run_client(skua_sim_faults faults)
{
    struct client client = {.handler_calls = 0};
    world_create_sim(SEED, (skua_sim_config){.faults = faults});
    struct desk *desk = desk_open();
    world_register_pool(safe_pool);
    world_start();
    struct actor *actor =
        actor_new(ACTS(yields(0, DESK_DOUBLE, 0, 21), offloads(1, "pool", double_it, 21),
                       sleeps(2, SKUA_MILLISECOND), awaits(3), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_int_equal(actor->seen_count, 3);
    for (size_t i = 0; i < 3; i++) {
        client.ends[actor->seen[i].tag] = actor->seen[i];
    }
    assert_int_equal(client.ends[2].type, SKUA_EVENT_COMPLETION);
    assert_int_equal(client.ends[2].error, 0);
    assert_in_range(client.ends[2].now, START + SKUA_MILLISECOND, START + 2 * SKUA_MILLISECOND);
    client.handler_calls = desk->calls;
    return client;
}

TEST(handlers_without_faults_work_as_always)
{
    const struct client client = run_client(SIM_NO_FAULTS);
    assert_int_equal(client.handler_calls, 1);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(client.ends[i].error, 0);
        assert_int_equal(client.ends[i].value, 42);
        assert_true(client.ends[i].now < START + 10 * SKUA_MICROSECOND);
    }
    assert_int_equal(sim_count(SKUA_SIM_FAULT, 0), 0);
}

TEST(handler_error_is_injected_without_a_call)
{
    const struct client client = run_client((skua_sim_faults){.handler_error = SIM_ALWAYS});
    const char *const names[] = {"handler", "blocking"};
    assert_int_equal(client.handler_calls, 0);
    assert_int_equal(sim_fault_count(SKUA_SIM_HANDLER_ERROR), 2);
    for (size_t i = 0; i < 2; i++) {
        const skua_sim_record *fault = sim_find(SKUA_SIM_FAULT, SKUA_SIM_HANDLER_ERROR, i);
        assert_int_equal(client.ends[i].error, SKUA_E_INJECTED);
        assert_string_equal(fault->type_name, names[i]);
        assert_int_equal(fault->pid.bits, sim_find(SKUA_SIM_STEP, 0, 0)->pid.bits);
    }
}

TEST(slow_completion_brings_the_same_later)
{
    const uint64_t longest = 1000 * SKUA_SECOND;
    const struct client client =
        run_client((skua_sim_faults){.slow_completion = SIM_ALWAYS, .delay_max_ns = longest});
    assert_int_equal(client.handler_calls, 1);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(client.ends[i].error, 0);
        assert_int_equal(client.ends[i].value, 42);
        assert_in_range(client.ends[i].now, START + SKUA_MILLISECOND,
                        START + longest + SKUA_SECOND);
    }
    assert_int_equal(sim_fault_count(SKUA_SIM_SLOW_COMPLETION), 2);
}

static int fail_with_result(void *arg, skua_command *command, skua_payload *result)
{
    (void)command;
    *result = tracked_payload(0, arg);
    return SKUA_E_USER;
}

/* Errors can be slow, too, and what comes with them is dropped once. */
TEST(slow_completion_of_a_failure_is_a_failure)
{
    const uint32_t rates[] = {0, SIM_ALWAYS};
    FOR_ROWS (rate, rates) {
        struct tracked result = {0};
        world_create_sim(SEED, (skua_sim_config){.faults.slow_completion = *rate});
        world_register(COMMAND, fail_with_result, &result);
        world_start();
        struct actor *actor = actor_new(ACTS(yields(1, COMMAND, 0, 0), awaits(1), finishes(0)));
        assert_result(actor_run(actor), 0);
        assert_saw(actor, completion(1, SKUA_E_USER));
        assert_drops(&result, 1, 1);
    }
}

struct doubles {
    unsigned run;
    unsigned simulate;
};

static int count_run(void *arg, skua_command *command, skua_payload *result)
{
    struct doubles *calls = arg;
    (void)command;
    (void)result;
    calls->run++;
    return 0;
}

static int count_simulate(void *arg, skua_command *command, skua_payload *result)
{
    struct doubles *calls = arg;
    (void)result;
    calls->simulate++;
    return command->id == COMMAND && command->deadline == SKUA_FOREVER ? 0 : SKUA_E_USER;
}

TEST(handlers_say_whether_they_may_be_called)
{
    const struct {
        skua_handler handler;
        int error;
        struct doubles calls;
    } rows[] = {
        {{.run = count_run}, SKUA_E_NOT_SIMULATED, {0, 0}},
        {{.run = count_run, .sim_safe = true}, 0, {1, 0}},
        {{.run = count_run, .sim_safe = true, .simulate = count_simulate}, 0, {0, 1}},
        {{.run = count_run, .simulate = count_simulate}, 0, {0, 1}},
    };
    FOR_ROWS (row, rows) {
        struct doubles calls = {0};
        skua_handler handler = row->handler;
        handler.arg = &calls;
        world_create_sim(SEED, (skua_sim_config){0});
        world_register_handler(COMMAND, handler);
        assert_int_equal(skua_command_register(world_runtime(), COMMAND, &handler),
                         SKUA_E_COMMAND_EXISTS);
        world_start();
        assert_int_equal(skua_command_register(world_runtime(), COMMAND + 1, &handler),
                         SKUA_E_FROZEN);
        struct actor *actor = actor_new(ACTS(yields(1, COMMAND, 0, 0), awaits(1), finishes(0)));
        assert_result(actor_run(actor), 0);
        assert_saw(actor, completion(1, row->error));
        assert_int_equal(calls.run, row->calls.run);
        assert_int_equal(calls.simulate, row->calls.simulate);
    }
}

TEST(pools_say_whether_they_may_be_used)
{
    const bool rows[] = {false, true};
    FOR_ROWS (is_safe, rows) {
        world_create_sim(SEED, (skua_sim_config){0});
        world_register_pool((skua_blocking_pool){
            .name = SKUA_BLOCKING_DEFAULT, .direct = true, .sim_safe = *is_safe});
        world_start();
        struct actor *actor =
            actor_new(ACTS(offloads(1, NULL, double_it, 1), awaits(1), finishes(0)));
        assert_result(actor_run(actor), 0);
        assert_saw(actor, completion(1, *is_safe ? 0 : SKUA_E_NOT_SIMULATED));
    }
}

/* ---- memory ---- */

static int copy_payload(void *arg)
{
    static const char bytes[100];
    skua_payload copy;
    (void)arg;
    const int error = skua_payload_copy(world_runtime(), 0, bytes, sizeof bytes, &copy);
    skua_payload_drop(&copy);
    return error;
}

static int allocate(struct turn *turn, const struct act *act)
{
    void *memory = skua_alloc(turn->ctx, 100);
    (void)act;
    skua_free(turn->ctx, memory, 100);
    return memory == NULL ? SKUA_E_NO_MEMORY : 0;
}

TEST(memory_fails_always_or_never)
{
    const struct {
        uint32_t rate;
        int error;
        size_t faults;
    } rows[] = {{0, 0, 0}, {SIM_ALWAYS, SKUA_E_NO_MEMORY, 2}};
    FOR_ROWS (row, rows) {
        world_open_sim(SEED, (skua_sim_faults){.no_memory = row->rate});
        assert_result(
            actor_run(actor_new(ACTS(refused(does(allocate, NULL), row->error),
                                     refused(calls(copy_payload, NULL), row->error), finishes(0)))),
            0);
        assert_int_equal(sim_fault_count(SKUA_SIM_NO_MEMORY), row->faults);
        assert_int_equal(copy_payload(NULL), 0); /* outside of turns there is memory */
    }
}

/* ---- the program's own allocator has no memory ---- */

static int run_out_of_memory(void *arg)
{
    (void)arg;
    counting_allocator_fail_from(&world->api->memory, 1);
    return 0;
}

static int have_memory_again(void *arg)
{
    (void)arg;
    counting_allocator_fail_never(&world->api->memory);
    return 0;
}

static int complete_nobody_later(void *result)
{
    return skua_sim_complete_after(world_runtime(), (skua_completion){{0}, 0}, 1, 0,
                                   tracked_payload(0, result));
}

/* What cannot be put off is refused, or happens at once. */
TEST(agenda_without_memory_loses_nothing)
{
    struct tracked letter = {0};
    struct tracked result = {0};
    world_create_sim(SEED, (skua_sim_config){.faults = {.message_delay = SIM_ALWAYS,
                                                        .slow_completion = SIM_ALWAYS}});
    (void)desk_open();
    world_start();
    struct actor *actor = actor_new(NO_ACTS);
    actor->script = ACTS(
        sleeps(2, 1), awaits(1), /* so that there are event nodes */
        calls(run_out_of_memory, NULL), refused(sends_item(actor, 0, &letter), SKUA_E_NO_MEMORY),
        refused(calls(complete_nobody_later, &result), SKUA_E_NO_MEMORY),
        yields(1, DESK_DOUBLE, 0, 21), awaits(1), calls(have_memory_again, NULL), finishes(0));
    assert_result(actor_run(actor), 0);
    assert_drops(&letter, 1, 1);
    assert_drops(&result, 1, 1);
    assert_saw(actor, completion(2, 0), completion_of(1, DESK_RESULT, 42));
    assert_true(actor->seen[1].now < START + SKUA_MILLISECOND);
}

/* More are Ready than the driver has room for. */
TEST(crowd_without_memory_runs_all_the_same)
{
    struct actor *actors[500];
    world_open_sim(SEED, SIM_NO_FAULTS);
    for (size_t i = 0; i < COUNT_OF(actors); i++) {
        actors[i] = actor_start(NO_ACTS);
    }
    (void)run_out_of_memory(NULL);
    world_settle();
    for (size_t i = 0; i < COUNT_OF(actors); i++) {
        assert_int_equal(actors[i]->steps, 1);
    }
}

TEST(registering_without_memory_leaves_nothing_behind)
{
    const skua_handler handler = {.name = "far", .run = count_run, .sim_safe = true};
    uint64_t failures = 0;
    world_create_sim(SEED, (skua_sim_config){0});
    for (int error = SKUA_E_NO_MEMORY; error != 0; failures += error != 0) {
        counting_allocator_fail_once(&world->api->memory, failures + 1);
        error = skua_command_register(world_runtime(), 100000, &handler);
        assert_true(error == 0 || error == SKUA_E_NO_MEMORY);
    }
    assert_true(failures > 0);
    (void)have_memory_again(NULL);
}

/* ---- processes ---- */

#define TICKS 50

/* Gives the simulation turns to interfere before. */
static struct actor *new_ticking(void)
{
    return actor_new(ACTS(ticker(1, SKUA_MILLISECOND), awaits(TICKS), finishes(0)));
}

static size_t wakes_of(const struct actor *actor)
{
    size_t count = 0;
    for (size_t i = 0; i < sim_fault_count(SKUA_SIM_SPURIOUS_WAKE); i++) {
        const skua_sim_record *wake = sim_find(SKUA_SIM_FAULT, SKUA_SIM_SPURIOUS_WAKE, i);
        count += skua_pid_equal(wake->pid, actor->pid);
    }
    return count;
}

TEST(wake_for_no_reason_calls_no_step)
{
    const struct {
        uint32_t rate;
        size_t least;
        size_t most;
    } rows[] = {{0, 0, 0}, {SIM_ALWAYS, TICKS, 2 * TICKS}};
    FOR_ROWS (row, rows) {
        struct actor *sleepers[3];
        world_open_sim(SEED, (skua_sim_faults){.spurious_wake = row->rate});
        for (size_t i = 0; i < 3; i++) {
            sleepers[i] = actor_start(NO_ACTS);
        }
        world_settle(); /* it comes to rest, however often they are woken */
        assert_result(actor_run(new_ticking()), 0);
        world_settle();
        const size_t wakes = sim_fault_count(SKUA_SIM_SPURIOUS_WAKE);
        assert_in_range(wakes, row->least, row->most);
        for (size_t i = 0; i < 3; i++) {
            const skua_process_snapshot info = world_info(sleepers[i]->pid);
            assert_int_equal(sleepers[i]->steps, 1);
            assert_int_equal(info.steps, 1);
            assert_int_equal(info.state, SKUA_PROCESS_IDLE);
            assert_in_range(wakes_of(sleepers[i]), wakes / 10, wakes / 2); /* each has its share */
        }
    }
}

TEST(wake_spares_those_that_are_ready)
{
    world_open_sim(SEED, (skua_sim_faults){.spurious_wake = SIM_ALWAYS});
    assert_result(actor_run(actor_new(ACTS(continues(9), finishes(0)))), 0);
    assert_int_equal(sim_count(SKUA_SIM_FAULT, 0), 0);
}

static bool may_kill_victims(void *arg, const skua_process_snapshot *info)
{
    unsigned *asked = arg;
    *asked += 1;
    return strcmp(info->type_name, "victim") == 0;
}

TEST(kill_ends_those_that_may_be)
{
    unsigned asked = 0;
    struct actor *victims[5];
    world_open_sim(SEED, (skua_sim_faults){.process_kill = SIM_ALWAYS,
                                           .may_kill = may_kill_victims,
                                           .may_kill_arg = &asked});
    struct actor *spared = actor_start(NO_ACTS);
    for (size_t i = 0; i < COUNT_OF(victims); i++) {
        victims[i] = actor_new(NO_ACTS);
        victims[i]->type.name = "victim";
        actor_submit(victims[i]);
    }
    assert_result(actor_run(new_ticking()), 0);
    assert_true(asked >= COUNT_OF(victims));
    assert_int_equal(spared->closes, 0);
    assert_int_equal(sim_fault_count(SKUA_SIM_PROCESS_KILL), COUNT_OF(victims));
    for (size_t i = 0; i < COUNT_OF(victims); i++) {
        const skua_sim_record *end = sim_find(SKUA_SIM_EXIT, 0, i);
        assert_int_equal(victims[i]->closes, 1);
        assert_string_equal(sim_find(SKUA_SIM_FAULT, SKUA_SIM_PROCESS_KILL, i)->type_name,
                            "victim");
        assert_string_equal(end->type_name, "victim");
        assert_int_equal(end->error, SKUA_E_TERMINATED);
    }
    world_close(); /* which asks as well */
}

TEST(kill_without_a_say_ends_any)
{
    world_open_sim(SEED, (skua_sim_faults){.process_kill = SIM_ALWAYS});
    assert_failed(actor_run(new_ticking()), SKUA_E_TERMINATED);
}

/* A rate is a rate: about a tenth, over many occasions. */
TEST(rates_are_met)
{
    size_t wakes = 0;
    size_t turns = 0;
    FOR_ROUNDS (seed, SEEDS) {
        world_open_sim(seed, (skua_sim_faults){.spurious_wake = SIM_ALWAYS / 10});
        (void)actor_start(NO_ACTS);
        assert_result(actor_run(new_ticking()), 0);
        wakes += sim_fault_count(SKUA_SIM_SPURIOUS_WAKE);
        turns += sim_count(SKUA_SIM_STEP, 0);
    }
    assert_in_range(wakes, turns / 13, turns / 8);
}

/* ---- switching ---- */

static int switch_faults(void *faults)
{
    return skua_sim_faults_set(world_runtime(), faults);
}

static void open_desk(skua_sim_faults faults)
{
    world_create_sim(SEED, (skua_sim_config){.faults = faults});
    (void)desk_open();
    world_start();
}

TEST(faults_switched_off_come_no_more)
{
    const skua_sim_faults all = {
        .message_delay = SIM_ALWAYS, .handler_error = SIM_ALWAYS, .spurious_wake = SIM_ALWAYS};
    skua_sim_faults none = {0};
    open_desk(all);
    (void)actor_start(NO_ACTS);
    assert_result(actor_run(new_ticking()), 0);
    const size_t faults = sim_fault_count(0);
    assert_true(faults > 0);
    assert_int_equal(switch_faults(&none), 0);
    struct actor *actor = actor_new(NO_ACTS);
    actor->script = ACTS(sends(actor, 0, 1), yields(1, DESK_DOUBLE, 0, 21), awaits(2), finishes(0));
    assert_result(actor_run(actor), 0);
    assert_result(actor_run(new_ticking()), 0);
    assert_int_equal(sim_fault_count(0), faults);
}

/* From inside a step; each command has the faults of the moment in which it is carried out. */
TEST(faults_are_switched_in_the_middle_of_a_run)
{
    skua_sim_faults errors = {.handler_error = SIM_ALWAYS};
    skua_sim_faults delays = {.slow_completion = SIM_ALWAYS}; /* of the default length */
    skua_sim_faults none = {0};
    open_desk(SIM_NO_FAULTS);
    struct actor *actor =
        actor_new(ACTS(yields(1, DESK_DOUBLE, 0, 21), awaits(1), calls(switch_faults, &errors),
                       yields(2, DESK_DOUBLE, 0, 21), awaits(1), calls(switch_faults, &delays),
                       yields(3, DESK_DOUBLE, 0, 21), awaits(1), calls(switch_faults, &none),
                       yields(4, DESK_DOUBLE, 0, 21), awaits(1), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_saw(actor, completion_of(1, DESK_RESULT, 42), completion(2, SKUA_E_INJECTED),
               completion_of(3, DESK_RESULT, 42), completion_of(4, DESK_RESULT, 42));
    assert_int_equal(sim_fault_count(0), 2);
    const uint64_t delay = actor->seen[2].now - actor->seen[1].now;
    assert_in_range(delay, 1, 11 * SKUA_MILLISECOND);
}

/* Trouble for a while, then none. */
static uint64_t hash_with_switches(uint64_t seed, uint64_t until)
{
    skua_sim_faults some = {.message_delay = SIM_ALWAYS / 4, .spurious_wake = SIM_ALWAYS / 4};
    skua_sim_faults none = {0};
    world_open_sim(seed, SIM_NO_FAULTS);
    struct actor *server = actor_start(ACTS(awaits(TICKS), finishes(0)));
    struct actor *client = actor_new(NO_ACTS);
    client->script = ACTS(ticker(1, SKUA_MILLISECOND), awaits(1), sends(server, 0, 1), awaits(9),
                          sends(server, 0, 2), awaits(9), sends(server, 0, 3), finishes(0));
    actor_submit(client);
    assert_int_equal(skua_sim_run(world_runtime(), START + 2 * SKUA_MILLISECOND), 1);
    assert_int_equal(switch_faults(&some), 0);
    assert_int_equal(skua_sim_run(world_runtime(), until), 1);
    assert_int_equal(switch_faults(&none), 0);
    world_settle();
    const uint64_t hash = skua_sim_hash(world_runtime());
    world_close();
    return hash;
}

TEST(faults_switched_alike_give_the_same_run)
{
    size_t different = 0;
    FOR_ROUNDS (seed, SEEDS) {
        const uint64_t hash = hash_with_switches(seed, START + 15 * SKUA_MILLISECOND);
        assert_int_equal(hash_with_switches(seed, START + 15 * SKUA_MILLISECOND), hash);
        different += hash_with_switches(seed, START + 3 * SKUA_MILLISECOND) != hash;
    }
    assert_true(different > 0);
}

TEST(faults_that_are_no_rates_change_nothing)
{
    const skua_sim_faults wrong[] = {
        {.message_delay = SIM_ALWAYS + 1}, {.handler_error = SIM_ALWAYS + 1},
        {.slow_completion = UINT32_MAX},   {.no_memory = SIM_ALWAYS + 1},
        {.spurious_wake = SIM_ALWAYS + 1}, {.process_kill = SIM_ALWAYS + 1},
        {.delay_max_ns = UINT64_MAX},
    };
    open_desk((skua_sim_faults){.handler_error = SIM_ALWAYS});
    FOR_ROWS (faults, wrong) {
        assert_int_equal(skua_sim_faults_set(world_runtime(), faults), SKUA_E_INVALID);
    }
    assert_int_equal(switch_faults(NULL), SKUA_E_INVALID);
    struct actor *actor = actor_new(ACTS(yields(1, DESK_DOUBLE, 0, 21), awaits(1), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_saw(actor, completion(1, SKUA_E_INJECTED));
}

struct elsewhere {
    skua_sim_faults faults;
    int result;
};

static void switch_here(void *arg)
{
    struct elsewhere *elsewhere = arg;
    elsewhere->result = switch_faults(&elsewhere->faults);
}

static int switch_elsewhere(void *arg)
{
    const struct elsewhere *elsewhere = arg;
    thread_run(switch_here, arg);
    return elsewhere->result;
}

/* Any thread may, as long as no other one drives. */
TEST(faults_are_switched_by_who_drives)
{
    struct elsewhere elsewhere = {.faults.handler_error = SIM_ALWAYS};
    open_desk(SIM_NO_FAULTS);
    assert_result(
        actor_run(actor_new(ACTS(refused(calls(switch_elsewhere, &elsewhere), SKUA_E_BUSY),
                                 yields(1, DESK_DOUBLE, 0, 21), awaits(1), finishes(0)))),
        0);
    assert_int_equal(sim_fault_count(0), 0);
    assert_int_equal(switch_elsewhere(&elsewhere), 0);
    assert_result(actor_run(actor_new(ACTS(yields(1, DESK_DOUBLE, 0, 21), awaits(1), finishes(0)))),
                  0);
    assert_int_equal(sim_fault_count(SKUA_SIM_HANDLER_ERROR), 1);
}
