/* SPDX-License-Identifier: MIT */
#include "stopper.h"

#include "actor.h"
#include "threads.h"

int stop_patiently(uint64_t timeout_ns)
{
    int result = skua_runtime_stop(world_runtime(), timeout_ns);
    while (result == SKUA_E_STUCK) {
        result = skua_runtime_stop(world_runtime(), SKUA_FOREVER);
    }
    return result;
}

struct stopper {
    struct thread *thread;
    struct tally begun;
    uint64_t timeout_ns;
    int result;
};

static void stop(void *arg)
{
    struct stopper *stopper = arg;
    tally_add(&stopper->begun, 1);
    stopper->result = stop_patiently(stopper->timeout_ns);
}

struct stopper *stopper_start(uint64_t timeout_ns)
{
    struct stopper *stopper = test_alloc(sizeof *stopper);
    stopper->timeout_ns = timeout_ns;
    tally_init(&stopper->begun);
    stopper->thread = thread_start(stop, stopper);
    tally_wait(&stopper->begun, 1);
    return stopper;
}

static bool is_refused(void *arg)
{
    return actor_try_submit(arg) == SKUA_E_STOPPED;
}

struct stopper *stopper_begin(uint64_t timeout_ns)
{
    struct stopper *stopper = stopper_start(timeout_ns);
    struct actor *scout = actor_new(NO_ACTS); /* whom a stop that has begun refuses before init */
    scout->init_returns = SKUA_E_USER;
    wait_until(is_refused, scout, "the stop to begin");
    return stopper;
}

bool stopper_is_busy(struct stopper *stopper)
{
    return !thread_is_done(stopper->thread);
}

int stopper_join(struct stopper *stopper)
{
    thread_join(stopper->thread);
    return stopper->result;
}
