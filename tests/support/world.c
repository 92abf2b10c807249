/* SPDX-License-Identifier: MIT */
#include "world.h"

static struct world first_world; /* so that `world` is never null */
struct world *world = &first_world;

static void end_world(void)
{
    world_close();
    world = world->outer;
}

/* In memory of its own: what a failed test leaves behind does not disturb the next. */
static void begin(void)
{
    const bool is_first = world->test_number != test_number;
    struct world *outer = is_first ? world : world->outer;
    assert_true(is_first || !world->is_open);
    world = test_alloc(sizeof *world);
    world->outer = outer;
    world->is_open = true;
    world->test_number = test_number;
    if (is_first) {
        test_at_end(end_world);
    }
}

static skua_runtime_config with_workers(skua_runtime_config config)
{
    if (config.worker_count == 0) {
        config.worker_count = test_workers();
    }
    return config;
}

static void create_sim(skua_runtime_config config)
{
    begin();
    world->is_simulated = true;
    sim_create_with(&world->sim, config);
    world->api = &world->sim.api;
}

void world_create(skua_runtime_config config)
{
    if (config.sim != NULL) {
        create_sim(config);
        return;
    }
    begin();
    world->api = &world->real;
    api_create(world->api, with_workers(config));
}

void world_create_virtual(skua_runtime_config config)
{
    begin();
    world->is_virtual = true;
    if (config.stall_limit_ns == 0) {
        config.stall_limit_ns = VIRTUAL_STALL_LIMIT;
    }
    virtual_init(&world->time, WORLD_START);
    world->api = &world->real;
    virtual_create(&world->time, world->api, with_workers(config));
}

void world_create_sim(uint64_t seed, skua_sim_config config)
{
    create_sim((skua_runtime_config){.seed = seed, .sim = &config});
}

int world_try_start(void)
{
    const int error = skua_runtime_start(world_runtime());
    world->is_started |= error == 0;
    return error;
}

void world_start(void)
{
    assert_int_equal(world_try_start(), 0);
}

void world_open_with(skua_runtime_config config)
{
    world_create(config);
    world_start();
}

void world_open(void)
{
    world_open_with((skua_runtime_config){0});
}

void world_open_virtual_with(skua_runtime_config config)
{
    world_create_virtual(config);
    world_start();
}

void world_open_virtual(void)
{
    world_open_virtual_with((skua_runtime_config){0});
}

void world_open_sim(uint64_t seed, skua_sim_faults faults)
{
    world_create_sim(seed, (skua_sim_config){.faults = faults});
    world_start();
}

void world_expect_survivors(void)
{
    world->is_forced = true;
}

void world_stop(void)
{
    assert_int_equal(skua_runtime_stop(world_runtime(), SKUA_FOREVER), 0);
}

void world_close(void)
{
    if (!world->is_open) {
        return; /* the test has done so */
    }
    world->is_open = false;
    if (!world->is_started) {
        api_destroy(world->api);
    } else if (world->is_forced) {
        api_stop_by_force(world->api);
    } else {
        api_stop(world->api);
    }
    sim_trace_free(&world->sim.trace);
    if (world->is_virtual && world->is_started) {
        assert_virtual_is_sound(&world->time);
    }
}

skua_runtime *world_runtime(void)
{
    if (world->api == NULL) {
        fail_msg("this test has not opened a world");
    }
    return world->api->runtime;
}

void world_await_live(uint64_t count)
{
    api_wait_live(world->api, count);
}

void world_settle(void)
{
    if (world->is_simulated) {
        sim_run_to_rest(&world->sim);
    } else {
        virtual_settle(&world->time);
    }
}

uint64_t world_now(void)
{
    return world->is_simulated ? skua_sim_now(world_runtime()) : virtual_now(&world->time);
}

void world_set_clock(uint64_t instant)
{
    if (world->is_simulated) {
        assert_true(skua_sim_run(world_runtime(), instant) >= 0);
        return;
    }
    virtual_advance_to(&world->time, instant);
}

void world_advance_to(uint64_t instant)
{
    world_settle();
    world_set_clock(instant);
    world_settle();
}

void world_advance(uint64_t duration_ns)
{
    world_advance_to(world_now() + duration_ns);
}

int world_send(skua_pid to, skua_payload payload)
{
    return skua_process_send(world_runtime(), to, payload);
}

int world_send_urgent(skua_pid to, skua_payload payload)
{
    return skua_process_send_urgent(world_runtime(), to, payload);
}

int world_cancel(skua_pid pid, int reason)
{
    return skua_process_cancel(world_runtime(), pid, reason);
}

int world_terminate(skua_pid pid)
{
    return skua_process_terminate(world_runtime(), pid);
}

skua_process_snapshot world_info(skua_pid pid)
{
    skua_process_snapshot info = {.state = 0};
    assert_int_equal(skua_process_info(world_runtime(), pid, &info), 0);
    return info;
}

skua_stats world_stats(void)
{
    return api_stats(world->api);
}

void world_register(uint32_t command, skua_handler_fn *run, void *arg)
{
    world_register_handler(
        command, (skua_handler){.name = "handler", .run = run, .arg = arg, .sim_safe = true});
}

void world_register_handler(uint32_t command, skua_handler handler)
{
    assert_int_equal(skua_command_register(world_runtime(), command, &handler), 0);
}

void world_register_pool(skua_blocking_pool pool)
{
    assert_int_equal(skua_blocking_register(world_runtime(), &pool, NULL), 0);
}
