/* SPDX-License-Identifier: MIT */
/* Hosts, and the paths between them: how long things take, and what is in their way. */
#include <skua/clock.h>
#include <stdalign.h>
#include <string.h>

#include "base/assert.h"
#include "base/monotonic.h"
#include "base/random.h"
#include "sim/sim.h"

/* Within a host things take so much less. */
#define OWN_HOST_PART 10

#define PORT_FIRST 49152

#define SIDE_MIN 4

/* ---- hosts ---- */

static struct path *path_between(const struct network *network, uint32_t from, uint32_t to)
{
    SKUA_ASSERT(from < network->side && to < network->side);
    return &network->paths[(size_t)from * network->side + to];
}

static struct path *copy_paths(const struct network *network, struct path *paths, uint32_t side)
{
    for (uint32_t from = 0; from < network->side; from++) {
        memcpy(&paths[(size_t)from * side], &network->paths[(size_t)from * network->side],
               network->side * sizeof(struct path));
    }
    return paths;
}

/* Makes the table of hosts and that of paths larger. */
static bool make_room(struct network *network, uint32_t side)
{
    const struct allocator *allocator = &network->sim->allocator;
    const size_t old_size = (size_t)network->side * network->side * sizeof(struct path);
    const size_t size = (size_t)side * side * sizeof(struct path);
    struct path *paths = allocator_alloc_zeroed(allocator, size, alignof(struct path));
    if (paths == NULL) {
        return false;
    }
    struct host *hosts =
        allocator_grow(allocator, network->hosts, network->side * sizeof(struct host),
                       side * sizeof(struct host), alignof(struct host));
    if (hosts == NULL) {
        allocator_free(allocator, paths, size, alignof(struct path));
        return false;
    }
    memset(hosts + network->side, 0, (side - network->side) * sizeof(struct host));
    copy_paths(network, paths, side);
    allocator_free(allocator, network->paths, old_size, alignof(struct path));
    network->paths = paths;
    network->hosts = hosts;
    network->side = side;
    return true;
}

/* Makes sure that the tables know a host, whether or not it exists. */
static bool know(struct network *network, uint32_t host)
{
    uint32_t side = network->side > 0 ? network->side : SIDE_MIN;
    while (side <= host) {
        side *= 2;
    }
    return side == network->side || make_room(network, side);
}

int paths_add_host(struct network *network, uint32_t host)
{
    if (!know(network, host)) {
        return SKUA_E_NO_MEMORY;
    }
    network->hosts[host].exists = true;
    return 0;
}

bool paths_has_host(const struct network *network, uint32_t host)
{
    return host == HOSTS_FIRST || (host < network->side && network->hosts[host].exists);
}

uint16_t paths_next_port(struct network *network, uint32_t host)
{
    struct host *at = &network->hosts[host];
    if (at->next_port < PORT_FIRST) { /* the first, or it has gone round */
        at->next_port = PORT_FIRST;
    }
    return at->next_port++;
}

/* ---- time ---- */

uint64_t paths_arrival(struct network *network, uint32_t from, uint32_t to)
{
    struct sim *sim = network->sim;
    const skua_sim_network *values = network_faults(network);
    const struct path *path = path_between(network, from, to);
    const uint64_t part = from == to ? OWN_HOST_PART : 1;
    uint64_t latency = path->latency_ns;
    if (latency == 0) {
        const uint64_t jitter = values->jitter_ns / part;
        latency = values->latency_ns / part + random_next(&sim->random) % (jitter + 1);
    }
    return time_after(sim_now(sim), latency);
}

uint64_t paths_open_at(const struct network *network, uint32_t from, uint32_t to)
{
    const struct path *path = path_between(network, from, to);
    const uint64_t open =
        path->cut_until > path->clogged_until ? path->cut_until : path->clogged_until;
    return open > sim_now(network->sim) ? open : 0;
}

/* ---- faults ---- */

static void record_fault(struct network *network, enum skua_sim_fault fault, uint32_t from,
                         uint32_t to)
{
    network_record(network, &(skua_sim_record){
                                .type = SKUA_SIM_FAULT,
                                .what = fault,
                                .host = from,
                                .peer_host = to,
                            });
}

static void cut(struct network *network, uint32_t from, uint32_t to, uint64_t until, uint64_t spare)
{
    struct path *path = path_between(network, from, to);
    if (from != to && path->cut_until < until) {
        path->cut_until = until;
        path->spared_until = time_after(until, spare);
        record_fault(network, SKUA_SIM_PARTITION, from, to);
    }
}

static void cut_both(struct network *network, uint32_t a, uint32_t b, uint32_t directions,
                     uint64_t until, uint64_t spare)
{
    if ((directions & 1) != 0) {
        cut(network, a, b, until, spare);
    }
    if ((directions & 2) != 0) {
        cut(network, b, a, until, spare);
    }
}

/* Whether two hosts are cut off from each other, or were a moment ago, in either direction: then no
 * partition is drawn, or it would go on for longer than the longest, and there might never be a
 * time when both hear each other. */
static bool are_spared(const struct network *network, uint32_t a, uint32_t b)
{
    const uint64_t now = sim_now(network->sim);
    return path_between(network, a, b)->spared_until > now ||
           path_between(network, b, a)->spared_until > now;
}

/* A partition of two hosts, which are not spared; or of one from all others that are not. One way,
 * the other, or both. */
static void draw_partition(struct network *network, uint32_t a, uint32_t b)
{
    struct sim *sim = network->sim;
    const skua_sim_network *values = network_faults(network);
    const uint64_t span = values->partition_max_ns - values->partition_min_ns;
    const uint64_t lasts = values->partition_min_ns + random_next(&sim->random) % (span + 1);
    const uint64_t until = time_after(sim_now(sim), lasts);
    const uint32_t directions = 1 + random_below(&sim->random, 3);
    if (random_below(&sim->random, 2) == 0) {
        cut_both(network, a, b, directions, until, values->partition_min_ns);
        return;
    }
    const uint32_t alone = random_below(&sim->random, 2) == 0 ? a : b;
    for (uint32_t other = HOSTS_FIRST; other < network->side; other++) {
        if (paths_has_host(network, other) && !are_spared(network, alone, other)) {
            cut_both(network, alone, other, directions, until, values->partition_min_ns);
        }
    }
}

void paths_trouble(struct network *network, const struct endpoint *from)
{
    struct sim *sim = network->sim;
    const skua_sim_network *values = network_faults(network);
    const uint32_t a = from->host;
    const uint32_t b = from->peer->host;
    if (a == b) {
        return;
    }
    struct path *path = path_between(network, a, b);
    if (network_goes_wrong(network, values->clog, SKUA_SIM_CLOG, a, b, 0)) {
        const uint64_t until = sim_some_time_later(sim);
        path->clogged_until = until > path->clogged_until ? until : path->clogged_until;
    }
    if (!are_spared(network, a, b) && sim_draw(sim, values->partition)) {
        draw_partition(network, a, b);
    }
}

/* ---- scripts ---- */

int paths_cut(struct network *network, uint32_t a, uint32_t b, bool both_ways)
{
    if (!know(network, a) || !know(network, b)) {
        return SKUA_E_NO_MEMORY;
    }
    for (uint32_t other = HOSTS_FIRST; other < network->side; other++) {
        if (b == other || (b == 0 && paths_has_host(network, other))) {
            cut_both(network, a, other, both_ways ? 3 : 1, UINT64_MAX, 0);
        }
    }
    return 0;
}

/* Whether a path is meant by these two numbers, of which 0 means any. */
static bool is_meant(uint32_t from, uint32_t to, uint32_t a, uint32_t b)
{
    return ((a == 0 || a == from) && (b == 0 || b == to)) ||
           ((a == 0 || a == to) && (b == 0 || b == from));
}

static void heal(struct network *network, uint32_t from, uint32_t to)
{
    struct path *path = path_between(network, from, to);
    const uint64_t now = sim_now(network->sim);
    if (path->cut_until > now || path->clogged_until > now) {
        path->cut_until = 0;
        path->clogged_until = 0;
        path->spared_until = time_after(now, network_faults(network)->partition_min_ns);
        record_fault(network, SKUA_SIM_HEAL, from, to);
    }
}

void paths_heal(struct network *network, uint32_t a, uint32_t b)
{
    for (uint32_t from = HOSTS_FIRST; from < network->side; from++) {
        for (uint32_t to = HOSTS_FIRST; to < network->side; to++) {
            if (is_meant(from, to, a, b)) {
                heal(network, from, to);
            }
        }
    }
    for (uint32_t i = 0; i < network->count; i++) {
        struct endpoint *endpoint = network->endpoints[i];
        if (endpoint != NULL && !endpoint->is_listener &&
            is_meant(endpoint->host, endpoint->peer->host, a, b)) {
            stream_resume(network, endpoint);
        }
    }
}

int paths_set_latency(struct network *network, uint32_t a, uint32_t b, uint64_t latency_ns)
{
    if (!know(network, a) || !know(network, b)) {
        return SKUA_E_NO_MEMORY;
    }
    path_between(network, a, b)->latency_ns = latency_ns;
    path_between(network, b, a)->latency_ns = latency_ns;
    return 0;
}
