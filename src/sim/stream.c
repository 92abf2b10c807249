/* SPDX-License-Identifier: MIT */
/* Streams of the simulated network: what comes to an endpoint, reading, writing and ends. */
#include <errno.h>
#include <skua/clock.h>

#include "base/monotonic.h"
#include "base/random.h"
#include "sim/sim.h"

/* As long as Linux goes on asking, and how long it waits after the first time. */
#define CONNECT_MAX_NS   (127 * SKUA_SECOND)
#define CONNECT_RETRY_NS SKUA_SECOND

/* How long a dead connection is probed: as net/kernel.c has it. */
#define PROBES_NS (UINT64_C(4) * 15 * SKUA_SECOND)

static uint64_t later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Draws a fault on the way from an endpoint to the other. */
static bool goes_wrong(struct network *network, uint32_t per_million, enum skua_sim_fault fault,
                       const struct endpoint *from)
{
    return network_goes_wrong(network, per_million, fault, from->host, from->peer->host,
                              from->stream);
}

static void record_arrival(struct network *network, const struct endpoint *to,
                           enum skua_sim_arrival what, uint64_t count, int error)
{
    network_record(network, &(skua_sim_record){
                                .type = SKUA_SIM_NETWORK,
                                .what = what,
                                .count = count,
                                .error = error,
                                .host = to->peer->host,
                                .peer_host = to->host,
                                .stream = to->stream,
                            });
}

/* ---- what is on its way ---- */

static uint64_t room_of(const struct network *network, const struct endpoint *endpoint)
{
    const uint64_t window = network_faults(network)->window;
    return window > endpoint->unread ? window - endpoint->unread : 0;
}

uint32_t stream_state(const struct network *network, const struct endpoint *endpoint)
{
    const struct inflow *in = &endpoint->in;
    uint32_t flags = 0;
    if (endpoint->error != 0) {
        flags |= SOCKET_FAILED;
    }
    if (in->arrived > 0 || in->is_at_end) {
        flags |= SOCKET_READABLE;
    }
    if (in->is_at_end) {
        flags |= SOCKET_HANGUP;
    }
    if (!endpoint->is_connecting && room_of(network, endpoint) > 0) {
        flags |= SOCKET_WRITABLE;
    }
    return flags;
}

/* Plans the arrival of the next thing that comes. */
static void plan_arrival(struct network *network, struct endpoint *endpoint)
{
    const struct inflow *in = &endpoint->in;
    if (in->has_opening) {
        network_plan(network, endpoint, MATTER_ARRIVAL, in->opening_when);
    } else if (in->in_flight != NULL) {
        network_plan(network, endpoint, MATTER_ARRIVAL, in->in_flight->when);
    } else if (in->ending != ENDING_NONE) {
        network_plan(network, endpoint, MATTER_ARRIVAL, in->ending_when);
    }
}

/* When something arrives that is sent now, unless what is before it comes later. */
static uint64_t arrival_at(struct network *network, const struct endpoint *to, uint64_t earliest)
{
    return later_of(paths_arrival(network, to->peer->host, to->host), earliest);
}

void stream_send_opening(struct network *network, struct endpoint *to, uint64_t earliest, int error)
{
    to->in.has_opening = true;
    to->in.opening_error = error;
    to->in.opening_when = arrival_at(network, to, earliest);
    plan_arrival(network, to);
}

/* Tells the other side how this one's output ends, unless that can make no difference. */
static void send_ending(struct network *network, struct endpoint *from, enum stream_ending ending)
{
    struct endpoint *to = from->peer;
    uint64_t earliest = 0;
    if (to->is_closed || from->is_dead || to->error != 0 || to->in.ending == ENDING_RESET) {
        return;
    }
    if (ending == ENDING_END &&
        goes_wrong(network, network_faults(network)->eof_late, SKUA_SIM_EOF_LATE, from)) {
        earliest = sim_some_time_later(network->sim);
    }
    to->in.ending = ending;
    to->in.ending_when = arrival_at(network, to, earliest);
    plan_arrival(network, to);
}

/* Whoever connects does not wait for ever. */
static void limit_connect(struct network *network, struct endpoint *endpoint)
{
    struct endpoint *client = endpoint->is_connecting ? endpoint : endpoint->peer;
    if (client->is_connecting && !client->is_closed) {
        network_plan(network, client, MATTER_TIMER, time_after(client->began, CONNECT_MAX_NS));
    }
}

/* Whether nothing is in the way to this endpoint. Otherwise it is tried again when that has gone.
 */
static bool has_open_path(struct network *network, struct endpoint *to, enum matter matter)
{
    const uint64_t open_at = paths_open_at(network, to->peer->host, to->host);
    if (open_at == 0) {
        return true;
    }
    if (open_at < UINT64_MAX) {
        network_plan(network, to, matter, open_at);
    }
    limit_connect(network, to);
    return false;
}

/* The answer to a connect. */
static uint32_t arrive_answer(struct network *network, struct endpoint *endpoint)
{
    const int error = endpoint->in.opening_error;
    endpoint->in.has_opening = false;
    record_arrival(network, endpoint, SKUA_SIM_ARRIVES_ANSWER, 0, error);
    if (!endpoint->is_connecting) {
        return 0; /* it has given up, or was closed */
    }
    network_unplan(network, endpoint, MATTER_TIMER);
    endpoint->is_connecting = false;
    endpoint->error = error;
    return error != 0 ? SOCKET_FAILED : SOCKET_WRITABLE;
}

static void arrive_request(struct network *network, struct endpoint *endpoint)
{
    record_arrival(network, endpoint, SKUA_SIM_ARRIVES_CONNECT, 0, 0);
    if (connections_knock(network, endpoint)) {
        endpoint->in.has_opening = false;
    } else {
        endpoint->in.opening_when = time_after(sim_now(network->sim), CONNECT_RETRY_NS);
        limit_connect(network, endpoint);
    }
}

static uint32_t arrive_bytes(struct network *network, struct endpoint *endpoint, uint64_t now)
{
    struct inflow *in = &endpoint->in;
    size_t size = 0;
    for (; in->in_flight != NULL && in->in_flight->when <= now;
         in->in_flight = in->in_flight->next) {
        size += in->in_flight->size;
    }
    if (size == 0) {
        return 0;
    }
    in->arrived += size;
    record_arrival(network, endpoint, SKUA_SIM_ARRIVES_BYTES, size, 0);
    if (endpoint->is_closed || endpoint->error != 0) {
        inflow_drop_arrived(network, in);
        send_ending(network, endpoint, ENDING_RESET);
        return 0;
    }
    return SOCKET_READABLE;
}

static uint32_t arrive_ending(struct network *network, struct endpoint *endpoint)
{
    struct inflow *in = &endpoint->in;
    const enum stream_ending ending = in->ending;
    in->ending = ENDING_NONE;
    record_arrival(network, endpoint,
                   ending == ENDING_END ? SKUA_SIM_ARRIVES_END : SKUA_SIM_ARRIVES_RESET, 0, 0);
    if (ending == ENDING_END) {
        in->is_at_end = true;
        return SOCKET_READABLE | SOCKET_HANGUP;
    }
    endpoint->error = ECONNRESET;
    if (random_below(&network->sim->random, 2) == 0) {
        inflow_drop_arrived(network, in); /* systems differ in what can still be read */
    }
    return SOCKET_FAILED;
}

void stream_arrive(struct network *network, struct endpoint *endpoint)
{
    struct inflow *in = &endpoint->in;
    const uint64_t now = sim_now(network->sim);
    uint32_t flags = 0;
    if (!has_open_path(network, endpoint, MATTER_ARRIVAL)) {
        return;
    }
    if (in->has_opening && in->opening_when <= now) {
        if (endpoint->is_client) {
            flags |= arrive_answer(network, endpoint);
        } else {
            arrive_request(network, endpoint);
        }
    }
    if (!in->has_opening) {
        flags |= arrive_bytes(network, endpoint, now);
    }
    if (!in->has_opening && in->in_flight == NULL && in->ending != ENDING_NONE &&
        in->ending_when <= now) {
        flags |= arrive_ending(network, endpoint);
    }
    plan_arrival(network, endpoint);
    if (flags != 0) {
        network_report(network, endpoint, flags); /* last: it may be closed now */
    }
}

static void plan_acknowledgement(struct network *network, struct endpoint *writer)
{
    if (writer->acknowledged == 0 && writer->acknowledgable > 0 && !writer->is_closed &&
        !writer->is_dead) {
        writer->acknowledged = writer->acknowledgable;
        writer->acknowledgable = 0;
        network_plan(network, writer, MATTER_ACKNOWLEDGEMENT,
                     paths_arrival(network, writer->peer->host, writer->host));
    }
}

void stream_acknowledge(struct network *network, struct endpoint *endpoint)
{
    if (!has_open_path(network, endpoint, MATTER_ACKNOWLEDGEMENT)) {
        return;
    }
    endpoint->unread -= endpoint->acknowledged;
    endpoint->acknowledged = 0;
    plan_acknowledgement(network, endpoint);
    if (endpoint->waits && room_of(network, endpoint) > 0) {
        endpoint->waits = false;
        network_report(network, endpoint, SOCKET_WRITABLE);
    }
}

void stream_resume(struct network *network, struct endpoint *endpoint)
{
    network_unplan(network, endpoint, MATTER_ARRIVAL);
    plan_arrival(network, endpoint);
    if (endpoint->acknowledged > 0 && !endpoint->is_closed && !endpoint->is_dead) {
        network_unplan(network, endpoint, MATTER_ACKNOWLEDGEMENT);
        network_plan(network, endpoint, MATTER_ACKNOWLEDGEMENT, sim_now(network->sim));
    }
}

/* ---- ends ---- */

/* Whoever connects has given that up: the other side hears of it if it has heard of the request. */
static void take_request_back(struct network *network, struct endpoint *client)
{
    struct endpoint *peer = client->peer;
    if (peer->in.has_opening) {
        peer->in.has_opening = false;
        peer->is_closed = true;
        network_unplan(network, peer, MATTER_ARRIVAL);
    } else {
        send_ending(network, client, ENDING_RESET);
    }
}

void stream_give_up(struct network *network, struct endpoint *endpoint)
{
    endpoint->is_connecting = false;
    endpoint->error = ETIMEDOUT;
    take_request_back(network, endpoint);
    network_report(network, endpoint, SOCKET_FAILED);
}

static void free_end(struct network *network, struct endpoint *endpoint)
{
    inflow_drop_in_flight(network, &endpoint->in);
    inflow_drop_arrived(network, &endpoint->in);
    network->gone.written += endpoint->written;
    network->gone.read += endpoint->in.read;
    network->gone.dropped += endpoint->in.dropped;
    network_remove(network, endpoint);
}

void stream_free(struct network *network, struct endpoint *endpoint)
{
    struct endpoint *peer = endpoint->peer;
    free_end(network, endpoint);
    free_end(network, peer);
}

void stream_close(struct network *network, struct endpoint *endpoint, bool reset)
{
    const bool was_connecting = endpoint->is_connecting;
    const bool has_unread = endpoint->in.arrived > 0;
    endpoint->is_closed = true;
    endpoint->is_connecting = false;
    network_unplan(network, endpoint, MATTER_REPORT);
    network_unplan(network, endpoint, MATTER_TIMER);
    network_unplan(network, endpoint, MATTER_ACKNOWLEDGEMENT);
    inflow_drop_arrived(network, &endpoint->in);
    if (was_connecting) {
        take_request_back(network, endpoint);
    } else if (endpoint->error == 0 && (reset || has_unread)) {
        send_ending(network, endpoint, ENDING_RESET);
    } else if (endpoint->error == 0 && !endpoint->is_shut) {
        send_ending(network, endpoint, ENDING_END);
    }
    if (endpoint->peer->is_closed) {
        stream_free(network, endpoint);
    }
}

int stream_shutdown(struct network *network, struct endpoint *endpoint)
{
    if (endpoint->is_listener || endpoint->is_connecting || endpoint->error != 0) {
        return -ENOTCONN;
    }
    if (!endpoint->is_shut) {
        endpoint->is_shut = true;
        send_ending(network, endpoint, ENDING_END);
    }
    return 0;
}

/* ---- faults of a stream ---- */

/* For both sides: this one notices at once. */
static void break_off(struct network *network, struct endpoint *endpoint)
{
    struct inflow *in = &endpoint->in;
    inflow_drop_in_flight(network, in);
    inflow_drop_arrived(network, in);
    in->ending = ENDING_NONE;
    network_unplan(network, endpoint, MATTER_ARRIVAL);
    endpoint->error = ECONNRESET;
    send_ending(network, endpoint, ENDING_RESET);
    network_plan(network, endpoint, MATTER_REPORT, sim_now(network->sim));
}

/* Probes find out that it is dead. */
static void limit_death(struct network *network, struct endpoint *endpoint)
{
    if (endpoint->is_dead && endpoint->is_held && !endpoint->is_closed && endpoint->error == 0 &&
        !endpoint->is_connecting && endpoint->keepalive_ns != 0) {
        const uint64_t idle = time_after(sim_now(network->sim), endpoint->keepalive_ns);
        network_plan(network, endpoint, MATTER_TIMER, time_after(idle, PROBES_NS));
    }
}

void stream_keep_alive(struct network *network, struct endpoint *endpoint, uint64_t idle_ns)
{
    endpoint->keepalive_ns = idle_ns;
    if (idle_ns == 0 && !endpoint->is_connecting) {
        network_unplan(network, endpoint, MATTER_TIMER);
    }
    limit_death(network, endpoint);
}

static void let_die(struct network *network, struct endpoint *endpoint)
{
    struct inflow *in = &endpoint->in;
    endpoint->is_dead = true;
    inflow_drop_in_flight(network, in);
    in->has_opening = false;
    in->ending = ENDING_NONE;
    network_unplan(network, endpoint, MATTER_ARRIVAL);
    network_unplan(network, endpoint, MATTER_ACKNOWLEDGEMENT);
    limit_connect(network, endpoint); /* the answer is lost, too */
    limit_death(network, endpoint);
}

/* ---- reading and writing ---- */

/* So many of `size` bytes, which is at least 2, that it is noticed. */
static size_t part_of(struct network *network, size_t size)
{
    const uint32_t bound = size - 1 < UINT32_MAX ? (uint32_t)(size - 1) : UINT32_MAX;
    return 1 + random_below(&network->sim->random, bound);
}

/* Nothing to read. */
static ssize_t end_of(const struct endpoint *endpoint)
{
    if (endpoint->error != 0) {
        return -endpoint->error;
    }
    return endpoint->in.is_at_end ? 0 : -EAGAIN;
}

ssize_t stream_read(struct network *network, struct endpoint *endpoint, void *data, size_t size)
{
    const skua_sim_network *faults = network_faults(network);
    struct inflow *in = &endpoint->in;
    size_t most = size < in->arrived ? size : in->arrived;
    if (endpoint->is_listener) {
        return -ENOTCONN;
    }
    if (most == 0) {
        return end_of(endpoint);
    }
    if (endpoint->error == 0 && goes_wrong(network, faults->reset, SKUA_SIM_RESET, endpoint)) {
        break_off(network, endpoint);
        return -ECONNRESET;
    }
    if (most > 1 && goes_wrong(network, faults->short_read, SKUA_SIM_SHORT_READ, endpoint)) {
        most = part_of(network, most);
        network_plan(network, endpoint, MATTER_REPORT,
                     paths_arrival(network, endpoint->host, endpoint->host));
    }
    inflow_take(network, in, data, most);
    endpoint->peer->acknowledgable += most;
    plan_acknowledgement(network, endpoint->peer);
    return (ssize_t)most;
}

static size_t size_of_all(const struct iovec *pieces, int count)
{
    size_t size = 0;
    for (int i = 0; i < count; i++) {
        size += pieces[i].iov_len;
    }
    return size;
}

/* Why nothing can be written, or 0. */
static int refuse_write(const struct endpoint *endpoint)
{
    if (endpoint->is_listener) {
        return -ENOTCONN;
    }
    if (endpoint->error != 0 || endpoint->is_shut) {
        return -EPIPE;
    }
    return endpoint->is_connecting ? -EAGAIN : 0;
}

/* The size of what is written now; what is missing to all is either without room or a fault's. */
static size_t size_of_write(struct network *network, struct endpoint *endpoint, size_t all)
{
    const uint64_t room = room_of(network, endpoint);
    size_t size = all < room ? all : (size_t)room;
    endpoint->waits = size < all;
    if (size > 1 &&
        goes_wrong(network, network_faults(network)->short_write, SKUA_SIM_SHORT_WRITE, endpoint)) {
        size = part_of(network, size);
        network_plan(network, endpoint, MATTER_REPORT,
                     paths_arrival(network, endpoint->host, endpoint->host));
    }
    return size;
}

static void send_segment(struct network *network, struct endpoint *from, struct segment *segment)
{
    struct endpoint *to = from->peer;
    from->written += segment->size;
    from->unread += segment->size;
    if (from->is_dead || to->error != 0) {
        to->in.dropped += segment->size;
        inflow_free_segment(network, segment);
        return;
    }
    paths_trouble(network, from);
    segment->when = arrival_at(network, to, 0);
    inflow_append(&to->in, segment);
    plan_arrival(network, to);
}

ssize_t stream_write(struct network *network, struct endpoint *endpoint, const struct iovec *pieces,
                     int count)
{
    const skua_sim_network *faults = network_faults(network);
    const size_t all = size_of_all(pieces, count);
    const int refused = refuse_write(endpoint);
    if (refused != 0 || all == 0) {
        return refused;
    }
    if (room_of(network, endpoint) == 0) {
        endpoint->waits = true;
        return -EAGAIN;
    }
    if (!endpoint->is_dead && goes_wrong(network, faults->reset, SKUA_SIM_RESET, endpoint)) {
        break_off(network, endpoint);
        return -ECONNRESET;
    }
    if (!endpoint->is_dead &&
        goes_wrong(network, faults->silent_drop, SKUA_SIM_SILENT_DROP, endpoint)) {
        let_die(network, endpoint);
        let_die(network, endpoint->peer);
    }
    const size_t size = size_of_write(network, endpoint, all);
    struct segment *segment = inflow_new_segment(network, pieces, size);
    if (segment == NULL) {
        return -ENOMEM;
    }
    send_segment(network, endpoint, segment);
    return (ssize_t)size;
}
