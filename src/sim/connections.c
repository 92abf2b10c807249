/* SPDX-License-Identifier: MIT */
/* Listening, connecting and accepting in the simulated network. */
#include <errno.h>

#include "base/assert.h"
#include "base/random.h"
#include "sim/sim.h"

#define BACKLOG_DEFAULT 4096

/* ---- listening ---- */

int connections_listen(struct network *network, uint32_t host, const struct address *address,
                       const skua_listen_options *options)
{
    struct address local = *address;
    const bool reuseport = options != NULL && options->reuseport;
    const int refused = bindings_claim(network, host, &local, reuseport);
    if (refused != 0) {
        return refused;
    }
    struct endpoint *listener = network_add(network, host);
    if (listener == NULL) {
        return -ENOMEM;
    }
    listener->is_listener = true;
    listener->local = local;
    listener->reuseport = reuseport;
    listener->backlog =
        options != NULL && options->backlog != 0 ? options->backlog : BACKLOG_DEFAULT;
    listener->serial = ++network->listens;
    listener->next = network->listeners;
    network->listeners = listener;
    return network_give_out(network, listener);
}

static struct endpoint *dequeue(struct endpoint *listener)
{
    struct endpoint *endpoint = listener->first;
    listener->first = endpoint->next;
    if (listener->first == NULL) {
        listener->last = NULL;
    }
    listener->queued--;
    endpoint->next = NULL;
    return endpoint;
}

void connections_stop_listening(struct network *network, struct endpoint *listener)
{
    while (listener->first != NULL) {
        stream_close(network, dequeue(listener), true);
    }
    struct endpoint **link = &network->listeners;
    while (*link != listener) {
        link = &(*link)->next;
    }
    *link = listener->next;
    network_remove(network, listener);
}

/* ---- accepting ---- */

int connections_accept(struct network *network, struct endpoint *listener)
{
    if (listener->first == NULL) {
        return -EAGAIN;
    }
    const struct endpoint *first = listener->first;
    if (network_goes_wrong(network, network_faults(network)->no_descriptors,
                           SKUA_SIM_NO_DESCRIPTORS, listener->host, listener->host,
                           first->stream)) {
        return -EMFILE;
    }
    return network_give_out(network, dequeue(listener));
}

bool connections_turn_away(struct network *network, struct endpoint *listener)
{
    if (listener->first == NULL) {
        return false;
    }
    stream_close(network, dequeue(listener), false);
    return true;
}

void connections_admit(struct network *network, struct endpoint *endpoint)
{
    struct endpoint *listener = network->endpoints[endpoint->listener];
    if (listener == NULL || listener->serial != endpoint->listener_serial) {
        stream_close(network, endpoint,
                     true); /* it was closed, and something else has the number */
        return;
    }
    if (listener->last != NULL) {
        listener->last->next = endpoint;
    } else {
        listener->first = endpoint;
    }
    listener->last = endpoint;
    network_plan(network, listener, MATTER_REPORT, sim_now(network->sim));
}

/* One of the listeners that take connections to the address of this endpoint; or null. */
static struct endpoint *find_listener(struct network *network, const struct endpoint *endpoint)
{
    struct endpoint *found = NULL;
    uint32_t count = 0;
    for (struct endpoint *at = network->listeners; at != NULL; at = at->next) {
        if (at->host == endpoint->host && bindings_cover(&at->local, &endpoint->local)) {
            count++;
            if (count == 1 || random_below(&network->sim->random, count) == 0) {
                found = at;
            }
        }
    }
    return found;
}

/* The errno of an address that nobody listens on. */
static int error_of_nobody(const struct address *address)
{
    const bool is_file = address->as.any.sa_family == AF_UNIX && address->as.un.sun_path[0] != '\0';
    return is_file ? ENOENT : ECONNREFUSED;
}

static void refuse(struct network *network, struct endpoint *endpoint, int error)
{
    endpoint->is_closed = true;
    stream_send_opening(network, endpoint->peer, 0, error);
}

bool connections_knock(struct network *network, struct endpoint *endpoint)
{
    const skua_sim_network *faults = network_faults(network);
    struct endpoint *listener = find_listener(network, endpoint);
    if (listener == NULL) {
        refuse(network, endpoint, error_of_nobody(&endpoint->local));
        return true;
    }
    if (network_goes_wrong(network, faults->connect_refused, SKUA_SIM_CONNECT_REFUSED,
                           endpoint->peer->host, endpoint->host, endpoint->stream)) {
        refuse(network, endpoint, ECONNREFUSED);
        return true;
    }
    if (listener->queued >= listener->backlog) {
        return false;
    }
    listener->queued++;
    endpoint->listener = listener->number;
    endpoint->listener_serial = listener->serial;
    stream_send_opening(network, endpoint->peer, 0, 0);
    if (network_goes_wrong(network, faults->accept_delay, SKUA_SIM_ACCEPT_DELAY,
                           endpoint->peer->host, endpoint->host, endpoint->stream)) {
        network_plan(network, endpoint, MATTER_TIMER, sim_some_time_later(network->sim));
    } else {
        connections_admit(network, endpoint);
    }
    return true;
}

/* ---- connecting ---- */

/* The two ends of a new stream; null if there is no memory. */
static struct endpoint *add_pair(struct network *network, uint32_t host, uint32_t target)
{
    struct endpoint *client = network_add(network, host);
    struct endpoint *server = client != NULL ? network_add(network, target) : NULL;
    if (server == NULL) {
        if (client != NULL) {
            network_remove(network, client);
        }
        return NULL;
    }
    client->peer = server;
    client->stream = ++network->streams;
    client->is_client = true;
    client->is_connecting = true;
    client->began = sim_now(network->sim);
    server->peer = client;
    server->stream = client->stream;
    return client;
}

int connections_connect(struct network *network, uint32_t host, const struct address *address,
                        const struct address *source)
{
    struct address remote = *address;
    struct address local;
    const int target = bindings_resolve(network, host, &remote);
    if (target < 0) {
        return target;
    }
    const int refused = bindings_choose(network, host, &remote, source, &local);
    if (refused != 0) {
        return refused;
    }
    struct endpoint *client = add_pair(network, host, (uint32_t)target);
    if (client == NULL) {
        return -ENOMEM;
    }
    client->local = local;
    client->remote = remote;
    client->peer->local = remote;
    client->peer->remote = local;
    uint64_t earliest = 0;
    if (network_goes_wrong(network, network_faults(network)->connect_delay, SKUA_SIM_CONNECT_DELAY,
                           host, (uint32_t)target, client->stream)) {
        earliest = sim_some_time_later(network->sim);
    }
    paths_trouble(network, client);
    stream_send_opening(network, client->peer, earliest, 0);
    return network_give_out(network, client);
}
