/* SPDX-License-Identifier: MIT */
#include "idlers.h"

skua_pid idler_start(void)
{
    const skua_pid pid = api_submit(world->api, &api_idler, NULL);
    api_wait_state(world->api, pid, SKUA_PROCESS_IDLE);
    return pid;
}

skua_pid *idlers_start(size_t count)
{
    skua_pid *pids = test_alloc(count * sizeof *pids);
    for (size_t i = 0; i < count; i++) {
        pids[i] = api_submit(world->api, &api_idler, NULL);
    }
    for (size_t i = 0; i < count; i++) {
        api_wait_state(world->api, pids[i], SKUA_PROCESS_IDLE);
    }
    return pids;
}

void idler_make_steps(skua_pid pid, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t steps = world_info(pid).steps;
        assert_int_equal(world_send(pid, skua_payload_empty(0)), 0);
        api_wait_steps(world->api, pid, steps + 1);
        api_wait_state(world->api, pid, SKUA_PROCESS_IDLE);
    }
}

void idler_end(skua_pid pid)
{
    assert_int_equal(world_terminate(pid), 0);
    api_wait_end(world->api, pid);
}
