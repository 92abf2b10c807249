/* SPDX-License-Identifier: MIT */
/* Clients of a key-value store in a simulated network, which write down what they ask and what they
 * are answered. They send several commands at once, do not always wait for the answers before they
 * send more, give up a connection that says nothing for a while, and connect again. */
#ifndef SKUA_TESTS_KV_CLIENT_H
#define SKUA_TESTS_KV_CLIENT_H

#include "kv_history.h"
#include "sim_hosts.h"

#define KV_CLIENTS  2
#define KV_COMMANDS 30 /* of each */

/* Lets clients on the hosts from 2 on ask a server that has been started on host 1 of the world,
 * until they have asked enough, with all that can go wrong in a network, too little memory, and
 * processes of the server that are killed, which have a type of this name: how often depends on the
 * seed. The history begins anew. */
void kv_play(struct kv_history *history, const char *address, const char *victims, uint64_t seed);

#endif
