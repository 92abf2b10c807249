/* SPDX-License-Identifier: MIT */
/* The server of examples/12_kv in the simulator: two clients use the same keys at the same time,
 * while all goes wrong that can in a network, memory is missing, and processes of the server are
 * killed. What they are answered must be what some order of their commands explains. */
#include "example_kv.h"

#include "effort.h"
#include "kv_client.h"

static struct kv_history history;

TEST(some_order_explains_what_two_clients_are_answered)
{
    size_t answered = 0;
    size_t lost = 0;
    uint64_t connections = 0;
    size_t kills = 0;
    size_t failures = 0;
    FOR_ROUNDS (seed, EFFORT(1000)) {
        world_open_sim(seed, SIM_NO_FAULTS);
        example_kv_start(2);
        kv_play(&history, EXAMPLE_KV_ADDRESS, client_type.name, seed);
        for (size_t i = 0; i < history.count; i++) {
            const bool is_lost = history.operations[i].answered == LINEAR_UNANSWERED;
            answered += !is_lost;
            lost += is_lost;
        }
        connections += history.connections;
        kills += sim_fault_count(SKUA_SIM_PROCESS_KILL);
        failures += sim_fault_count(SKUA_SIM_NO_MEMORY);
        if (!kv_is_explained(&history, stderr)) {
            fail_msg("seed %llu", (unsigned long long)seed);
        }
    }
    /* Most is answered, some is not, clients do connect again, and faults do happen. */
    assert_in_range(answered, EFFORT(40000), EFFORT(90000));
    assert_in_range(lost, EFFORT(1000), EFFORT(30000));
    assert_in_range(connections, EFFORT(2500), EFFORT(20000));
    assert_in_range(kills, EFFORT(500), EFFORT(10000));
    assert_in_range(failures, EFFORT(500), EFFORT(10000));
}
