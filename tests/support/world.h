/* SPDX-License-Identifier: MIT */
/* The runtime of the current test. There is one at a time, so nothing has to be handed around; it
 * is stopped, destroyed and checked for leaks when the test ends:
 *
 *   TEST(sleep_of_no_time_ends_at_once)
 *   {
 *       world_open_virtual();
 *       struct actor *actor = actor_start(ACTS(sleeps(1, 0)));
 *       world_settle();
 *       assert_saw(actor, completion(1, 0));
 *   }
 *
 * A test that has closed its runtime (world_close) may open another.
 *
 * Time is real (world_open), moved by the test (world_open_virtual, see virtual_time.h), or
 * simulated (world_open_sim). Tests of several runtimes use api_support.h itself. */
#ifndef SKUA_TESTS_WORLD_H
#define SKUA_TESTS_WORLD_H

#include "api_support.h"
#include "runtime_support.h"
#include "sim_support.h"
#include "test.h"
#include "virtual_time.h"

/* An instant on no grid whatever: when virtual time begins. */
#define WORLD_START UINT64_C(98765432109876543)

struct world {
    struct api *api; /* that of `real` or of `sim` */
    struct api real;
    uint64_t test_number;
    struct world *outer; /* that of the test, if this is one of a round */
    bool is_open;
    bool is_started;
    bool is_virtual;
    bool is_simulated;
    bool is_forced; /* some processes ignore the cancel event and have to be ended */
    struct virtual_time time;
    struct sim_scene sim;
};

/* That of the current test. Never null. */
extern struct world *world;

/* With as many workers as the runner says, and the defaults. */
void world_open(void);

/* With this configuration; 0 workers: as many as the runner says. If its `sim` is set, this is a
 * simulation as by world_open_sim. */
void world_open_with(skua_runtime_config config);

/* The same with a clock and a poller that obey the test. */
void world_open_virtual(void);
void world_open_virtual_with(skua_runtime_config config);

/* The same in the simulator. */
void world_open_sim(uint64_t seed, skua_sim_faults faults);

/* Created, but not started: for tests that register handlers or pools. world_start follows. */
void world_create(skua_runtime_config config);
void world_create_virtual(skua_runtime_config config);
void world_create_sim(uint64_t seed, skua_sim_config config);
void world_start(void);

/* The same; returns what skua_runtime_start did. */
int world_try_start(void);

/* Stops the runtime, which has to work; it remains until world_close or the end of the test. */
void world_stop(void);

/* Stops the runtime now, for tests that check something afterwards, or whose local variables are
 * used until then. Every process has to finish by
 * itself, unless world_expect_survivors was called, and every block of memory has to be back. */
void world_close(void);

/* Some processes of this test ignore the cancel event and have to be ended by the stop. */
void world_expect_survivors(void);

skua_runtime *world_runtime(void);

/* Until so many processes are alive and the places of all others are free again. */
void world_await_live(uint64_t count);

/* ---- virtual time, and that of the simulator ---- */

/* Until nothing moves any more. In the simulator: runs until nothing can happen. */
void world_settle(void);

uint64_t world_now(void);

/* Moves the clock and runs what falls due; in the simulator, what is due before. A timer is due at
 * the end of its span of the clock's resolution: see firing_time in timers.h. */
void world_advance(uint64_t duration_ns);
void world_advance_to(uint64_t instant);

/* Moves the clock only: for tests that hold a step. */
void world_set_clock(uint64_t instant);

/* ---- what is done from the thread of the test ---- */

/* Each returns what the public function does. */
int world_send(skua_pid to, skua_payload payload);
int world_send_urgent(skua_pid to, skua_payload payload);
int world_cancel(skua_pid pid, int reason);
int world_terminate(skua_pid pid);
skua_process_snapshot world_info(skua_pid pid); /* of a process that lives */
skua_stats world_stats(void);

/* Registers a handler, which the simulator may call; after world_create. */
void world_register(uint32_t command, skua_handler_fn *run, void *arg);
void world_register_handler(uint32_t command, skua_handler handler);
void world_register_pool(skua_blocking_pool pool);

#endif
