/* SPDX-License-Identifier: MIT */
/* The server of examples/12_kv on the first host of a simulation. Once in a program. */
#ifndef SKUA_TESTS_EXAMPLE_KV_H
#define SKUA_TESTS_EXAMPLE_KV_H

#define KV_NO_MAIN
#include "../../examples/12_kv.c"

#include "sim_hosts.h"

#define EXAMPLE_KV_ADDRESS "10.0.0.1:6379"

/* Starts it, with so many shards. */
static inline void example_kv_start(size_t shards)
{
    const struct start start = {.address = "0.0.0.0:6379", .count = shards};
    skua_payload input;
    assert_int_equal(start_payload(world_runtime(), start, &input), 0);
    assert_int_equal(skua_sim_host_submit(world_runtime(), 1, &server_type, input, NULL), 0);
}

#endif
