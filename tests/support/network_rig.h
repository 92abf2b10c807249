/* SPDX-License-Identifier: MIT */
/* The simulated network alone: the test is the sockets above it, and drives its clock. Processes
 * are numbers: process n is on host n. */
#ifndef SKUA_TESTS_NETWORK_RIG_H
#define SKUA_TESTS_NETWORK_RIG_H

#include "sim/sim.h"
#include "test_memory.h"

#define NETWORK_RIG_HOSTS 4
#define NETWORK_RIG_KEYS  256

struct network_rig {
    struct scheduler sched; /* nothing but zeros */
    struct sim sim;
    struct network *network; /* that of sim */
    struct transport *transport;
    uint32_t reports[NETWORK_RIG_KEYS]; /* by key: what was reported since net_forget_reports */
    uint32_t report_count;
    uint32_t alarms;
    uint32_t faults[SKUA_SIM_HEAL + 1]; /* how often each was recorded */
};

extern struct network_rig net;

/* Opens it for this test. */
void net_open(uint64_t seed, skua_sim_network faults);
void net_set_faults(skua_sim_network faults);

/* Lets happen what happens before an instant, or all. */
void net_run_for(uint64_t ns);
void net_run(void);
uint64_t net_now(void);

/* As the functions of the transport. Sockets are watched by their numbers as keys. */
int net_listen(uint32_t host, const char *address);
int net_listen_with(uint32_t host, const char *address, skua_listen_options options);
int net_connect(uint32_t host, const char *address);
int net_connect_from(uint32_t host, const char *address, const char *source);
int net_connected(int fd);
int net_accept(int listener);
ssize_t net_write(int fd, const char *text);
void net_shutdown(int fd);
void net_close(int fd);
void net_reset(int fd);

/* Writes so many bytes, which are counted up; and reads so many of them, or until there are none.
 * The bytes of a socket must come as they went. Return what the transport says, or the sum. */
ssize_t net_write_many(int fd, size_t size, uint64_t *from);
ssize_t net_read_many(int fd, size_t most, uint64_t *from);

/* What a read gives: so much text, or an error. */
void assert_reads(int fd, const char *text);
void assert_read_fails(int fd, int error);
void assert_at_end(int fd);
void assert_address(int fd, bool of_peer, const char *text);

/* What was reported of a socket since the last call. */
uint32_t net_reports(int fd);

/* A connection from one host to another, as two numbers; all is accepted and has settled. */
struct net_pair {
    int listener;
    int client;
    int server;
};
struct net_pair net_make_pair(uint32_t from, uint32_t to);
void net_close_pair(const struct net_pair *pair);

#endif
