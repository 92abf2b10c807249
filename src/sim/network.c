/* SPDX-License-Identifier: MIT */
#include "sim/network.h"

#include <errno.h>
#include <stdalign.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "sim/sim.h"

#define CAPACITY_MIN 64

/* What an item is about that is about no endpoint. */
#define NO_ENDPOINT UINT32_MAX

const skua_sim_network *network_faults(const struct network *network)
{
    return &network->sim->config.faults.network;
}

/* ---- records ---- */

void network_record(struct network *network, const skua_sim_record *record)
{
    struct sim *sim = network->sim;
    sim_hash_add(sim, (uint64_t)record->type << 32 | record->what);
    sim_hash_add(sim, (uint64_t)record->host << 32 | record->peer_host);
    sim_hash_add(sim, record->stream);
    sim_hash_add(sim, record->count);
    sim_record(sim, record);
}

bool network_goes_wrong(struct network *network, uint32_t per_million, enum skua_sim_fault fault,
                        uint32_t from, uint32_t to, uint64_t stream)
{
    if (!sim_draw(network->sim, per_million)) {
        return false;
    }
    network_record(network, &(skua_sim_record){.type = SKUA_SIM_FAULT,
                                               .what = fault,
                                               .host = from,
                                               .peer_host = to,
                                               .stream = stream});
    return true;
}

/* ---- endpoints ---- */

static bool make_room(struct network *network)
{
    const uint32_t capacity = network->capacity > 0 ? 2 * network->capacity : CAPACITY_MIN;
    struct endpoint **endpoints = allocator_grow(
        &network->sim->allocator, network->endpoints, network->capacity * sizeof(struct endpoint *),
        capacity * sizeof(struct endpoint *), alignof(struct endpoint *));
    if (endpoints == NULL) {
        return false;
    }
    network->endpoints = endpoints;
    network->capacity = capacity;
    return true;
}

/* The lowest number that is free, as a system gives it. */
static uint32_t find_number(const struct network *network)
{
    uint32_t number = network->used_below;
    while (number < network->count && network->endpoints[number] != NULL) {
        number++;
    }
    return number;
}

struct endpoint *network_add(struct network *network, uint32_t host)
{
    const struct allocator *allocator = &network->sim->allocator;
    const uint32_t number = find_number(network);
    if (number == network->capacity && !make_room(network)) {
        return NULL;
    }
    struct endpoint *endpoint =
        allocator_alloc_zeroed(allocator, sizeof *endpoint, alignof(struct endpoint));
    if (endpoint == NULL) {
        return NULL;
    }
    if (!agenda_reserve(&network->sim->agenda, MATTER_COUNT)) {
        allocator_free(allocator, endpoint, sizeof *endpoint, alignof(struct endpoint));
        return NULL;
    }
    endpoint->number = number;
    endpoint->host = host;
    network->endpoints[number] = endpoint;
    network->count += number == network->count;
    network->used_below = number + 1;
    return endpoint;
}

void network_remove(struct network *network, struct endpoint *endpoint)
{
    for (enum matter matter = 0; matter < MATTER_COUNT; matter++) {
        network_unplan(network, endpoint, matter);
    }
    agenda_release(&network->sim->agenda, MATTER_COUNT);
    network->endpoints[endpoint->number] = NULL;
    if (endpoint->number < network->used_below) {
        network->used_below = endpoint->number;
    }
    allocator_free(&network->sim->allocator, endpoint, sizeof *endpoint, alignof(struct endpoint));
}

int network_give_out(struct network *network, struct endpoint *endpoint)
{
    endpoint->is_held = true;
    network->gone.opened++;
    return (int)endpoint->number;
}

/* ---- the agenda ---- */

static void add_item(struct network *network, uint32_t what, uint32_t matter, uint64_t when)
{
    const uint64_t now = sim_now(network->sim);
    agenda_add(&network->sim->agenda, &(struct agenda_item){
                                          .when = when > now ? when : now,
                                          .type = AGENDA_NETWORK,
                                          .payload = skua_payload_empty(0),
                                          .as.network = {.what = what, .matter = matter},
                                      });
}

void network_plan(struct network *network, struct endpoint *endpoint, enum matter matter,
                  uint64_t when)
{
    if (!endpoint->has_item[matter]) {
        endpoint->has_item[matter] = true;
        add_item(network, endpoint->number, matter, when);
    }
}

void network_unplan(struct network *network, struct endpoint *endpoint, enum matter matter)
{
    if (endpoint->has_item[matter]) {
        endpoint->has_item[matter] = false;
        agenda_take_network(&network->sim->agenda, endpoint->number, matter);
    }
}

void network_report(struct network *network, const struct endpoint *endpoint, uint32_t flags)
{
    if (endpoint->is_watched && network->report != NULL) {
        network->report(network->sockets, sim_worker(network->sim), endpoint->key, flags);
    }
}

static void report_state(struct network *network, const struct endpoint *endpoint)
{
    uint32_t flags = 0;
    if (!endpoint->is_listener) {
        flags = stream_state(network, endpoint);
    } else if (endpoint->first != NULL) {
        flags = SOCKET_READABLE;
    }
    if (flags != 0) {
        network_report(network, endpoint, flags);
    }
}

static void ring(struct network *network)
{
    network->alarm_is_set = false;
    if (network->alarm != NULL) {
        network->alarm(network->sockets, sim_worker(network->sim), sim_now(network->sim));
    }
}

void network_forget(struct network *network, uint32_t what, uint32_t matter)
{
    if (what == NO_ENDPOINT) {
        network->alarm_is_set = false;
    } else {
        network->endpoints[what]->has_item[matter] = false;
    }
}

void network_act(struct network *network, uint32_t what, uint32_t matter)
{
    network_forget(network, what, matter);
    if (what == NO_ENDPOINT) {
        ring(network);
        return;
    }
    struct endpoint *endpoint = network->endpoints[what];
    switch ((enum matter)matter) {
    case MATTER_ARRIVAL:
        stream_arrive(network, endpoint);
        break;
    case MATTER_ACKNOWLEDGEMENT:
        stream_acknowledge(network, endpoint);
        break;
    case MATTER_REPORT:
        report_state(network, endpoint);
        break;
    case MATTER_TIMER:
        if (endpoint->is_held) {
            stream_give_up(network, endpoint);
        } else {
            connections_admit(network, endpoint);
        }
        break;
    case MATTER_ALARM:
        break;
    }
}

/* ---- the transport ---- */

static struct network *network_of(struct transport *transport)
{
    return CONTAINER_OF(transport, struct network, transport);
}

/* The endpoint of a number that was given out and is not closed yet; otherwise null. */
static struct endpoint *look_up(const struct network *network, int fd)
{
    if (fd < 0 || (uint32_t)fd >= network->count) {
        return NULL;
    }
    struct endpoint *endpoint = network->endpoints[fd];
    return endpoint != NULL && endpoint->is_held && !endpoint->is_closed ? endpoint : NULL;
}

/* The same for a number that must be such a one. */
static struct endpoint *find(const struct network *network, int fd)
{
    struct endpoint *endpoint = look_up(network, fd);
    SKUA_ASSERT(endpoint != NULL);
    return endpoint;
}

/* The host of a process; and makes sure of what every socket needs. Negative: an errno. */
static int prepare(struct network *network, skua_pid owner)
{
    if (!network->has_alarm) {
        if (!agenda_reserve(&network->sim->agenda, 1)) {
            return -ENOMEM;
        }
        network->has_alarm = true;
    }
    const uint32_t host = hosts_of(&network->process_hosts, owner);
    if (paths_add_host(network, host) != 0) {
        return -ENOMEM;
    }
    const bool fails = network_goes_wrong(network, network_faults(network)->no_descriptors,
                                          SKUA_SIM_NO_DESCRIPTORS, host, host, 0);
    return fails ? -EMFILE : (int)host;
}

static int open_listener(struct transport *transport, skua_pid owner, const struct address *address,
                         const skua_listen_options *options)
{
    struct network *network = network_of(transport);
    const int host = prepare(network, owner);
    return host < 0 ? host : connections_listen(network, (uint32_t)host, address, options);
}

static int start_connect(struct transport *transport, skua_pid owner, const struct address *address,
                         const struct address *source)
{
    struct network *network = network_of(transport);
    const int host = prepare(network, owner);
    return host < 0 ? host : connections_connect(network, (uint32_t)host, address, source);
}

static int is_connected(struct transport *transport, int fd)
{
    const struct endpoint *endpoint = find(network_of(transport), fd);
    if (endpoint->error != 0) {
        return -endpoint->error;
    }
    return endpoint->is_connecting ? -EINPROGRESS : 0;
}

static int accept_next(struct transport *transport, int fd)
{
    struct network *network = network_of(transport);
    struct endpoint *listener = find(network, fd);
    return listener->is_listener ? connections_accept(network, listener) : -EINVAL;
}

static ssize_t read_bytes(struct transport *transport, int fd, void *data, size_t size)
{
    struct network *network = network_of(transport);
    return stream_read(network, find(network, fd), data, size);
}

static ssize_t write_pieces(struct transport *transport, int fd, const struct iovec *pieces,
                            int count)
{
    struct network *network = network_of(transport);
    return stream_write(network, find(network, fd), pieces, count);
}

static int shut_down(struct transport *transport, int fd)
{
    struct network *network = network_of(transport);
    return stream_shutdown(network, find(network, fd));
}

static void close_number(struct transport *transport, int fd, bool reset)
{
    struct network *network = network_of(transport);
    struct endpoint *endpoint = find(network, fd);
    endpoint->is_watched = false;
    network->gone.closed++;
    if (endpoint->is_listener) {
        connections_stop_listening(network, endpoint);
    } else {
        stream_close(network, endpoint, reset);
    }
}

static int start_watch(struct transport *transport, int fd, uint64_t key)
{
    struct network *network = network_of(transport);
    struct endpoint *endpoint = find(network, fd);
    SKUA_ASSERT(!endpoint->is_watched);
    endpoint->is_watched = true;
    endpoint->key = key;
    network_plan(network, endpoint, MATTER_REPORT, sim_now(network->sim));
    return 0;
}

/* Nothing else that can be set makes a difference here. */
static int set_option(struct transport *transport, int fd, enum skua_socket_option option,
                      uint64_t value)
{
    struct network *network = network_of(transport);
    struct endpoint *endpoint = look_up(network, fd);
    if (endpoint == NULL) {
        return -EBADF; /* it has failed, and is closed already */
    }
    if (option == SKUA_SOCKET_KEEPALIVE && !endpoint->is_listener) {
        stream_keep_alive(network, endpoint, value);
    }
    return 0;
}

static int read_address(struct transport *transport, int fd, bool of_peer, struct address *address)
{
    const struct endpoint *endpoint = look_up(network_of(transport), fd);
    if (endpoint == NULL || (of_peer && endpoint->is_listener)) {
        return endpoint == NULL ? -EBADF : -ENOTCONN; /* whoever inspects may come late */
    }
    *address = of_peer ? endpoint->remote : endpoint->local;
    return 0;
}

static bool turn_away(struct transport *transport, int fd)
{
    struct network *network = network_of(transport);
    return connections_turn_away(network, find(network, fd));
}

static void wake_at(struct transport *transport, struct worker *worker, uint64_t when)
{
    (void)worker;
    struct network *network = network_of(transport);
    SKUA_ASSERT(network->has_alarm); /* there was a socket */
    if (network->alarm_is_set) {
        if (network->alarm_when <= when) {
            return;
        }
        agenda_take_network(&network->sim->agenda, NO_ENDPOINT, MATTER_ALARM);
    }
    network->alarm_is_set = true;
    network->alarm_when = when;
    add_item(network, NO_ENDPOINT, MATTER_ALARM, when);
}

/* ---- life ---- */

void network_init(struct network *network, struct sim *sim)
{
    *network = (struct network){
        .transport =
            {
                .listen = open_listener,
                .connect = start_connect,
                .connected = is_connected,
                .accept = accept_next,
                .read = read_bytes,
                .write = write_pieces,
                .shutdown = shut_down,
                .close = close_number,
                .watch = start_watch,
                .set = set_option,
                .address = read_address,
                .turn_away = turn_away,
                .wake_at = wake_at,
            },
        .sim = sim,
    };
    hosts_init(&network->process_hosts, &sim->allocator);
}

void network_attach(struct network *network, struct sockets *sockets)
{
    network->sockets = sockets;
    network->report = sockets_report;
    network->alarm = sockets_alarm;
}

void network_deinit(struct network *network)
{
    const struct allocator *allocator = &network->sim->allocator;
    const struct network_accounts accounts = network_audit(network);
    SKUA_ASSERT(accounts.opened == accounts.closed);
    for (uint32_t i = 0; i < network->count; i++) {
        if (network->endpoints[i] != NULL) {
            stream_free(network, network->endpoints[i]);
        }
    }
    if (network->alarm_is_set) {
        agenda_take_network(&network->sim->agenda, NO_ENDPOINT, MATTER_ALARM);
    }
    agenda_release(&network->sim->agenda, network->has_alarm);
    allocator_free(allocator, network->endpoints, network->capacity * sizeof(struct endpoint *),
                   alignof(struct endpoint *));
    allocator_free(allocator, network->paths,
                   (size_t)network->side * network->side * sizeof(struct path),
                   alignof(struct path));
    allocator_free(allocator, network->hosts, network->side * sizeof(struct host),
                   alignof(struct host));
    hosts_deinit(&network->process_hosts);
}

/* ---- accounts ---- */

struct network_accounts network_audit(const struct network *network)
{
    struct network_accounts sum = network->gone;
    for (uint32_t i = 0; i < network->count; i++) {
        const struct endpoint *endpoint = network->endpoints[i];
        if (endpoint == NULL || endpoint->is_listener) {
            continue;
        }
        const struct inflow *in = &endpoint->in;
        const uint64_t held = inflow_held(in);
        SKUA_ASSERT(endpoint->peer->written == in->read + in->dropped + held);
        SKUA_ASSERT(in->arrived <= held);
        sum.written += endpoint->written;
        sum.read += in->read;
        sum.dropped += in->dropped;
        sum.held += held;
    }
    SKUA_ASSERT(sum.written == sum.read + sum.dropped + sum.held);
    return sum;
}
