/* SPDX-License-Identifier: MIT */
/* What processes do with sockets: listen, connect, accept, read, write, shut down, close, pass on.
 * In the simulator between hosts; on threads by Unix sockets, and some by TCP. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "property.h"

#define LISTENERS        6 /* addresses, on each host */
#define TCP              0 /* the one that is no Unix socket, on threads */
#define SIZE_MAX_WRITTEN 200
#define DELIMITER        "\x0a"

static atomic_u32 tcp_port; /* that somebody listens on, or did */

static uint32_t get(atomic_u32 *counter)
{
    return load_relaxed(counter); /* see property.h */
}

static void set(atomic_u32 *flag)
{
    store_relaxed(flag, 1); /* see property.h */
}

static void unset(atomic_u32 *flag)
{
    store_relaxed(flag, 0); /* see property.h */
}

static uint64_t choose_timeout(uint64_t *random)
{
    const uint64_t moments = draw(random, 8);
    return chance(random, 40) ? moments * world.program.moment_ns : SKUA_FOREVER;
}

/* ---- which it has ---- */

static void forget(struct actor *actor, const struct wire *wire)
{
    for (uint32_t i = 0; i < actor->wire_count; i++) {
        if (actor->wires[i] == wire) {
            actor->wires[i] = actor->wires[--actor->wire_count];
            break;
        }
    }
}

static void close_socket(struct agent *agent, skua_socket socket)
{
    const int error = skua_socket_close(agent->ctx, socket);
    if (error != 0) {
        fault("process %u: closing a socket: %s", agent->actor->number, skua_error_name(error));
    }
}

static void close_wire(struct agent *agent, struct wire *wire)
{
    set(&wire->is_closed);
    set(&wire->is_ended);
    close_socket(agent, wire->socket);
    forget(agent->actor, wire);
    requests_note(agent->actor);
}

/* One that is its own now. */
static void keep(struct agent *agent, struct wire *wire)
{
    struct actor *actor = agent->actor;
    unset(&wire->is_adrift);
    actor->wires[actor->wire_count++] = wire;
    if (actor->wire_count == WIRES_OWN_MAX) {
        close_wire(agent, actor->wires[draw(&agent->random, WIRES_OWN_MAX)]);
    }
}

static void keep_new(struct agent *agent, skua_socket socket)
{
    struct wire *wire = wire_new(socket);
    if (wire != NULL) {
        keep(agent, wire);
    } else {
        close_socket(agent, socket);
    }
}

/* Whoever is told of a socket has it. */
static void check_own(const struct agent *agent, const struct wire *wire)
{
    skua_socket_snapshot snapshot;
    const int error = skua_socket_info(agent->ctx, wire->socket, &snapshot);
    if (error != 0 || !skua_pid_equal(snapshot.owner, skua_self(agent->ctx))) {
        fault("process %u: wire %u is not its own: %s", agent->actor->number, wire->number,
              skua_error_name(error));
    } else if (snapshot.bytes_in - snapshot.buffered < load_relaxed(&wire->read)) { /* its own */
        fault("wire %u: more was read than has come", wire->number);
    }
}

void wires_received(struct agent *agent, const skua_event *event)
{
    struct wire *wire = message_cargo(event);
    if (wire != NULL) {
        check_own(agent, wire);
        keep(agent, wire);
    }
}

void wires_start(struct agent *agent)
{
    struct wire *wire = agent->actor->heirloom;
    if (wire != NULL) {
        check_own(agent, wire);
        keep(agent, wire);
    }
}

void wires_close(struct actor *actor, const skua_exit *exit)
{
    const bool is_orderly = exit->error == 0 || exit->error == SKUA_E_STOPPED;
    for (uint32_t i = 0; i < actor->wire_count; i++) {
        struct wire *wire = actor->wires[i];
        unset(&wire->waits_for_bytes);
        unset(&wire->waits_for_end);
        set(is_orderly ? &wire->is_ended : &wire->was_reset);
        set(&wire->is_closed);
    }
}

/* ---- opening ---- */

static void write_address(char text[SKUA_ADDRESS_SIZE], uint32_t host, uint32_t listener)
{
    if (in_simulator()) {
        (void)snprintf(text, SKUA_ADDRESS_SIZE, host == 0 ? "0.0.0.0:%u" : "10.0.0.%u:%u",
                       host == 0 ? 1000 + listener : host, 1000 + listener);
    } else if (listener == TCP) {
        (void)snprintf(text, SKUA_ADDRESS_SIZE, "127.0.0.1:%u", host == 0 ? 0 : get(&tcp_port));
    } else {
        (void)snprintf(text, SKUA_ADDRESS_SIZE, "unix:@skua.property.%d.%" PRIu64 ".%u",
                       (int)getpid(), world.program.seed, listener);
    }
}

static bool may_not_listen(int error)
{
    return error == SKUA_E_ADDRESS_IN_USE || may_lack_memory(error) ||
           (error == SKUA_E_DESCRIPTORS && world.program.faults.network.no_descriptors > 0);
}

static void publish_port(const struct agent *agent)
{
    skua_socket_snapshot snapshot;
    unsigned port;
    if (skua_socket_info(agent->ctx, agent->actor->listener, &snapshot) == 0 &&
        sscanf(snapshot.local, "127.0.0.1:%u", &port) == 1) {
        store_relaxed(&tcp_port, port); /* see property.h */
    }
}

static void listen_somewhere(struct agent *agent)
{
    char address[SKUA_ADDRESS_SIZE];
    const uint32_t number = draw(&agent->random, LISTENERS);
    write_address(address, 0, number);
    const int error = skua_listen(agent->ctx, address, NULL, &agent->actor->listener);
    if (error != 0 && !may_not_listen(error)) {
        fault("process %u: listening at %s: %s", agent->actor->number, address,
              skua_error_name(error));
    }
    if (error == 0 && !in_simulator() && number == TCP) {
        publish_port(agent);
    }
}

static void check_begun(const struct request *request, int error)
{
    if (error != 0 && !may_lack_memory(error)) {
        fault("request %u of kind %d: %s", request->number, (int)request->kind,
              skua_error_name(error));
    }
}

static void accept_one(struct agent *agent)
{
    struct actor *actor = agent->actor;
    const bool has_rival = request_is_open(actor, REQUEST_ACCEPT, NULL);
    struct request *request = request_begin(actor, REQUEST_ACCEPT, &agent->random);
    if (request != NULL) {
        const uint64_t timeout = choose_timeout(&agent->random);
        request->has_rival = has_rival;
        const int error = skua_yield_accept(agent->ctx, request->tag, actor->listener, timeout);
        request_begun(request, agent->ctx, timeout, error);
        check_begun(request, error);
    }
}

static void connect_somewhere(struct agent *agent)
{
    char address[SKUA_ADDRESS_SIZE];
    struct request *request = request_begin(agent->actor, REQUEST_CONNECT, &agent->random);
    const uint32_t host = 1 + draw(&agent->random, HOSTS);
    write_address(address, host, draw(&agent->random, LISTENERS));
    if (request != NULL) {
        const uint64_t timeout = choose_timeout(&agent->random);
        const int error = skua_yield_connect(agent->ctx, request->tag, address, NULL, timeout);
        request_begun(request, agent->ctx, timeout, error);
        check_begun(request, error);
    }
}

static void open_something(struct agent *agent)
{
    struct actor *actor = agent->actor;
    const bool accepts = chance(&agent->random, 60);
    if (actor->listener.bits == 0 && accepts) {
        listen_somewhere(agent);
    }
    if (actor->listener.bits == 0 || !accepts) {
        connect_somewhere(agent);
    } else if (chance(&agent->random, 4)) {
        close_socket(agent, actor->listener);
        actor->listener.bits = 0;
        requests_note(actor);
    } else {
        accept_one(agent);
    }
}

/* ---- reading and writing ---- */

static bool has_open_read(const struct actor *actor, const struct wire *wire)
{
    return request_is_open(actor, REQUEST_READ, wire) ||
           request_is_open(actor, REQUEST_READ_EXACTLY, wire) ||
           request_is_open(actor, REQUEST_READ_UNTIL, wire);
}

static int yield_read(struct request *request, skua_context *ctx, uint64_t timeout)
{
    const skua_socket socket = request->wire->socket;
    if (request->kind == REQUEST_READ) {
        return skua_yield_read(ctx, request->tag, socket, request->size, timeout);
    }
    if (request->kind == REQUEST_READ_EXACTLY) {
        return skua_yield_read_exactly(ctx, request->tag, socket, request->size, timeout);
    }
    if (request->kind == REQUEST_READ_UNTIL) {
        return skua_yield_read_until(ctx, request->tag, socket, DELIMITER, request->size, timeout);
    }
    return skua_yield_hangup(ctx, request->tag, socket, timeout);
}

static uint32_t step_of(struct actor *actor)
{
    return get(&actor->steps);
}

static void read_something(struct agent *agent, struct wire *wire)
{
    static const enum request_kind kinds[] = {REQUEST_READ,       REQUEST_READ,
                                              REQUEST_READ,       REQUEST_READ_EXACTLY,
                                              REQUEST_READ_UNTIL, REQUEST_HANGUP};
    const enum request_kind kind = kinds[draw(&agent->random, sizeof kinds / sizeof kinds[0])];
    const bool has_rival = kind == REQUEST_HANGUP ? request_is_open(agent->actor, kind, wire)
                                                  : has_open_read(agent->actor, wire);
    /* Two reads of one step, of which the first can be done at once, may end in any order. */
    struct request *request = wire->read_in_step == step_of(agent->actor)
                                  ? NULL
                                  : request_begin(agent->actor, kind, &agent->random);
    if (request == NULL) {
        return;
    }
    const uint64_t timeout = choose_timeout(&agent->random);
    wire->read_in_step = kind != REQUEST_HANGUP ? step_of(agent->actor) : 0;
    request->wire = wire;
    request->has_rival = has_rival;
    request->size = 1 + draw(&agent->random, kind == REQUEST_READ ? PAYLOAD_LIMIT : 30);
    const int error = yield_read(request, agent->ctx, timeout);
    request_begun(request, agent->ctx, timeout, error);
    check_begun(request, error);
    if (error == 0 && timeout == SKUA_FOREVER && !has_rival) {
        if (kind == REQUEST_READ) {
            set(&wire->waits_for_bytes);
        } else if (kind == REQUEST_HANGUP) {
            set(&wire->waits_for_end);
        }
    }
}

static void check_written(const struct wire *wire, int error)
{
    const bool is_refused = error == SKUA_E_SHUT_DOWN;
    if (is_refused != wire->is_shut_down && !may_lack_memory(error)) {
        fault("wire %u: writing after, or before, it was shut down", wire->number);
    }
    if (error != 0 && !is_refused && !(error == SKUA_E_SOCKET_FULL && wire->has_limit) &&
        !may_lack_memory(error)) {
        fault("wire %u: writing: %s", wire->number, skua_error_name(error));
    }
}

static int write_payload(struct agent *agent, struct wire *wire, skua_payload payload)
{
    const bool tells = chance(&agent->random, 30);
    struct request *request =
        tells ? NULL : request_begin(agent->actor, REQUEST_WRITE, &agent->random);
    if (request == NULL) {
        return skua_socket_write(agent->ctx, wire->socket, payload);
    }
    const uint64_t timeout = choose_timeout(&agent->random);
    request->wire = wire;
    const int error = skua_yield_write(agent->ctx, request->tag, wire->socket, payload, timeout);
    request_begun(request, agent->ctx, timeout, error);
    return error;
}

static void write_something(struct agent *agent, struct wire *wire)
{
    unsigned char bytes[SIZE_MAX_WRITTEN];
    const uint32_t size = 1 + draw(&agent->random, SIZE_MAX_WRITTEN);
    const uint32_t from = get(&wire->written);
    skua_payload payload;
    wire_fill(wire, from, bytes, size);
    int error = skua_payload_copy(world.runtime, 0, bytes, size, &payload);
    if (error == 0) {
        store_relaxed(&wire->written, from + size); /* see property.h */
        error = write_payload(agent, wire, payload);
        check_written(wire, error);
    }
    if (error != 0) {
        store_relaxed(&wire->written, from); /* see property.h */
    }
}

static void shut_down(struct agent *agent, struct wire *wire)
{
    set(&wire->is_ended);
    wire->is_shut_down = true;
    const int error = skua_socket_shutdown(agent->ctx, wire->socket);
    if (error != 0) {
        fault("wire %u: shutting down: %s", wire->number, skua_error_name(error));
    }
}

static void set_option(struct agent *agent, struct wire *wire)
{
    const bool limits = chance(&agent->random, 50);
    const int error =
        limits ? skua_socket_set(agent->ctx, wire->socket, SKUA_SOCKET_WRITE_LIMIT,
                                 1 + draw(&agent->random, 500))
               : skua_socket_set(agent->ctx, wire->socket, SKUA_SOCKET_IDLE,
                                 (1 + draw(&agent->random, 50)) * world.program.moment_ns);
    wire->has_limit |= limits;
    if (!limits) {
        set(&wire->may_be_idle);
    }
    if (error != 0 && !may_lack_memory(error)) {
        fault("wire %u: an option: %s", wire->number, skua_error_name(error));
    }
}

/* What a read that has ended, and nobody has seen yet, has brought is the old owner's. */
static void pass_on(struct agent *agent, struct wire *wire)
{
    const bool waits =
        has_open_read(agent->actor, wire) || request_is_open(agent->actor, REQUEST_HANGUP, wire);
    const bool is_born = chance(&agent->random, 30);
    if (!waits && (is_born ? act_spawn_owner(agent, wire) : act_give(agent, wire))) {
        forget(agent->actor, wire);
    }
}

void wires_act(struct agent *agent)
{
    struct actor *actor = agent->actor;
    const uint32_t what = draw(&agent->random, 100);
    if (actor->wire_count == 0 || what < 15) {
        open_something(agent);
        return;
    }
    struct wire *wire = actor->wires[draw(&agent->random, actor->wire_count)];
    if (what < 50) {
        read_something(agent, wire);
    } else if (what < 80) {
        write_something(agent, wire);
    } else if (what < 84) {
        shut_down(agent, wire);
    } else if (what < 88) {
        close_wire(agent, wire);
    } else if (what < 95) {
        pass_on(agent, wire);
    } else if (what < 97) {
        set_option(agent, wire);
    } else {
        check_own(agent, wire);
    }
}

/* ---- what comes of it ---- */

static bool is_closed(const struct request *request)
{
    return request->kind == REQUEST_ACCEPT || load_relaxed(&request->wire->is_closed) != 0;
}

static bool may_end(const struct request *request, int error, uint64_t now)
{
    const skua_sim_network *network = &world.program.faults.network;
    const bool has_stream = request->wire != NULL;
    switch (error) {
    case 0:
        return true;
    case SKUA_E_CANCELLED:
        return request->is_cancelled;
    case SKUA_E_TIMEOUT:
        return now >= request->deadline || (request->kind == REQUEST_CONNECT && in_simulator());
    case SKUA_E_CLOSED:
        return request->kind != REQUEST_CONNECT && is_closed(request);
    case SKUA_E_SOCKET_BUSY:
        return request->has_rival;
    case SKUA_E_REFUSED:
        return request->kind == REQUEST_CONNECT;
    case SKUA_E_UNREACHABLE: /* a host that has had no process yet */
        return request->kind == REQUEST_CONNECT && in_simulator();
    case SKUA_E_DESCRIPTORS:
        return request->kind == REQUEST_CONNECT && network->no_descriptors > 0;
    case SKUA_E_RESET:
        return request->kind != REQUEST_ACCEPT;
    case SKUA_E_IDLE:
        return has_stream && load_relaxed(&request->wire->may_be_idle) != 0;
    case SKUA_E_NO_PROGRESS:
        return has_stream && in_simulator();
    case SKUA_E_TOO_LONG:
        return request->kind == REQUEST_READ_UNTIL;
    default:
        return may_lack_memory(error);
    }
}

static bool has_length(const struct request *request, const unsigned char *bytes, size_t size)
{
    if (request->kind != REQUEST_READ_UNTIL || size == 0) {
        return size <= request->size;
    }
    const unsigned char *found = memchr(bytes, DELIMITER[0], size);
    return found == NULL || found == bytes + size - 1;
}

/* Whether it says that the input has ended. */
static bool is_short(const struct request *request, const unsigned char *bytes, size_t size)
{
    if (request->kind == REQUEST_READ_EXACTLY) {
        return size < request->size;
    }
    return size == 0 || (request->kind == REQUEST_READ_UNTIL && bytes[size - 1] != DELIMITER[0]);
}

static void take_bytes(struct request *request, const skua_event *event)
{
    const unsigned char *bytes = skua_payload_data(&event->payload);
    const size_t size = skua_payload_size(&event->payload);
    if (!has_length(request, bytes, size)) {
        fault("request %u of kind %d: reads %zu bytes", request->number, (int)request->kind, size);
    }
    wire_read(request->wire, bytes, size);
    if (is_short(request, bytes, size)) {
        wire_read_all(request->wire);
    }
}

static void note_end(const struct request *request, int error)
{
    struct wire *wire = request->wire;
    if (request->kind == REQUEST_READ) {
        unset(&wire->waits_for_bytes);
    } else if (request->kind == REQUEST_HANGUP) {
        unset(&wire->waits_for_end);
    }
    if (error == SKUA_E_RESET || error == SKUA_E_IDLE || error == SKUA_E_NO_PROGRESS) {
        set(&wire->is_broken);
    }
}

void wires_completed(struct agent *agent, struct request *request, const skua_event *event)
{
    if (!may_end(request, event->error, skua_now(agent->ctx))) {
        fault("request %u of kind %d ends with %s (%d)", request->number, (int)request->kind,
              skua_error_name(event->error), event->error);
    }
    if (request->wire != NULL) {
        note_end(request, event->error);
    }
    if (event->error != 0) {
        return;
    }
    if (request->kind == REQUEST_ACCEPT || request->kind == REQUEST_CONNECT) {
        keep_new(agent, skua_payload_to_socket(&event->payload));
    } else if (request->kind != REQUEST_HANGUP && request->kind != REQUEST_WRITE) {
        take_bytes(request, event);
    }
}
