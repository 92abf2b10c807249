/* SPDX-License-Identifier: MIT */
/* The books of sockets: what was written at each end, what was read at the other, and how each has
 * ended. */
#include <stdio.h>
#include <string.h>

#include "property.h"

static struct wire wires[WIRES_MAX];
static atomic_u32 wires_made;

static uint32_t get(atomic_u32 *counter)
{
    return load_relaxed(counter); /* see property.h */
}

static uint32_t made(void)
{
    const uint32_t asked = get(&wires_made);
    return asked < WIRES_MAX ? asked : WIRES_MAX;
}

void wires_begin(void)
{
    memset(wires, 0, sizeof wires);
    for (uint32_t i = 0; i < WIRES_MAX; i++) {
        wires[i].number = i;
    }
    store_relaxed(&wires_made, 0); /* see property.h */
}

struct wire *wire_new(skua_socket socket)
{
    const uint32_t number = fetch_add_relaxed(&wires_made, 1); /* see property.h */
    if (number >= WIRES_MAX) {
        return NULL;
    }
    wires[number].socket = socket;
    return &wires[number];
}

/* ---- streams ---- */

/* What the stream of an end begins with. */
static uint64_t head_of(uint32_t number)
{
    const uint64_t check = random_mix(world.program.seed ^ random_mix(number + 1));
    return check << 32 | number;
}

static unsigned char byte_of(uint32_t number, uint32_t at)
{
    const uint64_t head = head_of(number);
    return (unsigned char)(at < sizeof head ? head >> 8 * at : random_mix(head + at));
}

void wire_fill(const struct wire *wire, uint32_t from, unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_of(wire->number, from + (uint32_t)i);
    }
}

/* Two ends know each other as soon as one has read what the other has written first. */
static void marry(struct wire *wire, struct wire *peer)
{
    struct wire *const both[] = {wire, peer};
    for (size_t i = 0; i < 2; i++) {
        const uint32_t other = both[1 - i]->number + 1;
        const uint32_t known = get(&both[i]->peer);
        store_relaxed(&both[i]->peer, other); /* see property.h */
        if (known != 0 && known != other) {
            fault("wire %u: gets what was written to another", both[i]->number);
        }
    }
}

static void learn_peer(struct wire *wire)
{
    uint64_t head = 0;
    for (size_t i = 0; i < sizeof wire->head; i++) {
        head |= (uint64_t)wire->head[i] << 8 * i;
    }
    const uint32_t number = (uint32_t)head;
    if (number >= made() || head != head_of(number) || number == wire->number) {
        fault("wire %u: the first bytes are of no stream", wire->number);
    } else {
        marry(wire, &wires[number]);
    }
}

static struct wire *peer_of(struct wire *wire)
{
    const uint32_t peer = get(&wire->peer);
    return peer != 0 ? &wires[peer - 1] : NULL;
}

void wire_read(struct wire *wire, const unsigned char *bytes, size_t size)
{
    uint32_t at = get(&wire->read);
    if (wire->has_read_all && size > 0) {
        fault("wire %u: reads on after the end of input", wire->number);
    }
    for (size_t i = 0; i < size; i++, at++) {
        if (at < sizeof wire->head) {
            wire->head[at] = bytes[i];
        } else if (peer_of(wire) != NULL && bytes[i] != byte_of(peer_of(wire)->number, at)) {
            fault("wire %u: byte %u is another one than was written", wire->number, at);
            break;
        }
        if (at + 1 == sizeof wire->head) {
            learn_peer(wire);
        }
    }
    store_relaxed(&wire->read, at); /* see property.h */
    if (peer_of(wire) != NULL && at > get(&peer_of(wire)->written)) {
        fault("wire %u: reads more than was written", wire->number);
    }
}

void wire_read_all(struct wire *wire)
{
    wire->has_read_all = true;
}

/* ---- rest ---- */

static bool is_over(struct wire *wire)
{
    return get(&wire->is_closed) != 0 || get(&wire->is_ended) != 0;
}

/* Nothing but what processes do can break a connection. */
static bool is_network_sound(void)
{
    const skua_sim_network *network = &world.program.faults.network;
    return network->reset == 0 && network->silent_drop == 0 && network->partition == 0;
}

/* Whether the peer may have given up, because it has written what this end does not read. This end
 * need not have been told: it waits for nothing. */
static bool is_unread(struct wire *wire, struct wire *peer)
{
    return get(&wire->waits_for_bytes) == 0 && get(&peer->written) > get(&wire->read);
}

static const char *restlessness(struct wire *wire, struct wire *peer)
{
    const bool is_broken = get(&wire->is_broken) != 0;
    if (is_broken || get(&peer->is_broken) != 0 || get(&wire->is_closed) != 0) {
        const bool has_reason = is_over(peer) || get(&wire->is_closed) != 0 ||
                                get(&peer->is_broken) != 0 || get(&peer->is_adrift) != 0 ||
                                get(&wire->may_be_idle) != 0 || get(&peer->may_be_idle) != 0 ||
                                is_unread(wire, peer) || is_unread(peer, wire);
        return is_broken && is_network_sound() && !has_reason ? "is broken without a reason" : NULL;
    }
    if (get(&wire->waits_for_bytes) != 0 && get(&peer->written) > get(&wire->read)) {
        return "waits for bytes that were written";
    }
    const bool waits = get(&wire->waits_for_bytes) != 0 || get(&wire->waits_for_end) != 0;
    return waits && is_over(peer) ? "waits for an end that was made" : NULL;
}

void wire_describe(struct wire *wire, char *text, size_t size)
{
    const struct wire *peer = peer_of(wire);
    (void)snprintf(text, size, "wire %u, closed %u, %u written, peer %d", wire->number,
                   get(&wire->is_closed), get(&wire->written),
                   peer != NULL ? (int)peer->number : -1);
}

bool wires_are_at_rest(bool is_expected)
{
    bool rests = true;
    if (world.program.faults.network.silent_drop > 0) {
        return true; /* somebody may wait for ever */
    }
    for (uint32_t i = 0; i < made(); i++) {
        struct wire *peer = peer_of(&wires[i]);
        const char *reason = peer != NULL ? restlessness(&wires[i], peer) : NULL;
        rests = rests && reason == NULL;
        if (reason != NULL && is_expected) {
            fault("wire %u to %u: %s", i, peer->number, reason);
        }
    }
    return rests;
}

/* ---- the end ---- */

/* Whoever has read the end of input has read all that was written, and somebody has ended that. The
 * system has no resets of Unix sockets: there, who is killed seems to have ended it, also if it
 * never heard that the socket is its own. */
static void check_end(const struct wire *wire, struct wire *peer)
{
    const bool was_killed = get(&peer->was_reset) != 0 || get(&peer->is_adrift) != 0;
    const bool may_be_reset = was_killed && !in_simulator();
    const uint32_t written = get(&peer->written);
    const uint32_t got = load_relaxed(&wire->read); /* see property.h */
    if (got != written && !may_be_reset) {
        fault("wire %u: the input ends after %u bytes of %u", wire->number, got, written);
    }
    if (get(&peer->is_ended) == 0 && get(&peer->is_adrift) == 0 && !may_be_reset) {
        fault("wire %u: the input ends, but nobody has ended it", wire->number);
    }
}

void wires_check(void)
{
    for (uint32_t i = 0; i < made(); i++) {
        struct wire *peer = peer_of(&wires[i]);
        if (wires[i].has_read_all && peer != NULL) {
            check_end(&wires[i], peer);
        }
        if (get(&wires[i].is_closed) == 0 && get(&wires[i].is_adrift) == 0) {
            fault("wire %u: its process has ended, but not it", i);
        }
    }
}
