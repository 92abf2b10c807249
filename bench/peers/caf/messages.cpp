/* SPDX-License-Identifier: MIT */
/* Workloads of actors that talk. */
#include "bench.hpp"

#include <vector>

using namespace caf;

using ask_atom = atom_constant<atom("ask")>;
using answer_atom = atom_constant<atom("answer")>;
using next_atom = atom_constant<atom("next")>;
using end_atom = atom_constant<atom("end")>;

/* ---- pingpong and pairs: two actors, or many twos, and round trips ---- */

/* Answers all it is asked. It ends when nobody holds a handle to it any more. Returning the answer
 * would be shorter, but takes more instructions: CAF then makes a promise and keeps it. */
static behavior pong(event_based_actor *self)
{
    return {[=](ask_atom) {
        self->send(actor_cast<actor>(self->current_sender()), answer_atom::value);
    }};
}

struct round_trips {
    uint64_t done = 0;
};

/* Tells the number of its round trips. */
static behavior ping(stateful_actor<round_trips> *self, const actor &parent, uint64_t count)
{
    const actor other = self->spawn(pong);
    self->send(other, ask_atom::value);
    return {[=](answer_atom) {
        self->state.done++;
        if (self->state.done < count) {
            self->send(other, ask_atom::value);
        } else {
            self->send(parent, self->state.done);
            self->quit();
        }
    }};
}

measurement bench_pingpong(uint32_t workers)
{
    return run_root(workers, 2 * million, million, ping, uint64_t{million});
}

constexpr uint32_t pair_count = 1000;
constexpr uint64_t pair_trips = 1000;

struct pairs_state {
    uint64_t trips = 0;
    uint32_t ended = 0;
};

static behavior pairs(stateful_actor<pairs_state> *self, const actor &parent)
{
    for (uint32_t i = 0; i < pair_count; i++) {
        self->spawn(ping, actor{self}, pair_trips);
    }
    return {[=](uint64_t trips) {
        self->state.trips += trips;
        self->state.ended++;
        if (self->state.ended == pair_count) {
            self->send(parent, self->state.trips);
            self->quit();
        }
    }};
}

measurement bench_pairs(uint32_t workers)
{
    const uint64_t trips = pair_count * pair_trips;
    return run_root(workers, 2 * trips, trips, pairs);
}

/* ---- ring: actors in a circle pass tokens on ---- */

constexpr uint32_t ring_length = 1000;

struct node_state {
    actor next;
};

/* A token is a number: how often it is still to be passed on. Who gets one that is 0 tells the
 * root, which has built the ring and put the tokens in. */
static behavior node(stateful_actor<node_state> *self, const actor &next, const actor &root)
{
    self->state.next = next;
    return {
        [=](uint64_t left) {
            if (left > 0) {
                self->send(self->state.next, left - 1);
            } else {
                self->send(root, end_atom::value);
            }
        },
        [=](next_atom, const actor &first) { self->state.next = first; },
    };
}

struct ring_state {
    uint64_t ended = 0;
};

/* The last node comes first; it hears of the first one when that exists. All are linked to the
 * root: they hold each other and would never end by themselves. */
static void build_ring(stateful_actor<ring_state> *self, uint32_t tokens)
{
    std::vector<actor> starts(tokens);
    actor last;
    actor next;
    for (uint32_t i = 0; i < ring_length; i++) {
        next = self->spawn<linked>(node, next, actor{self});
        last = i == 0 ? next : last;
        starts[i * tokens / ring_length] = next;
    }
    self->send(last, next_atom::value, next);
    for (const actor &start : starts) {
        self->send(start, uint64_t{million / tokens - 1});
    }
}

static behavior ring(stateful_actor<ring_state> *self, const actor &parent, uint32_t tokens)
{
    build_ring(self, tokens);
    return {[=](end_atom) {
        self->state.ended++;
        if (self->state.ended == tokens) {
            self->send(parent, self->state.ended);
            self->quit(exit_reason::user_shutdown);
        }
    }};
}

measurement bench_ring(uint32_t workers)
{
    return run_root(workers, million, 1, ring, 1u);
}

measurement bench_ring100(uint32_t workers)
{
    return run_root(workers, million, 100, ring, 100u);
}

/* ---- fanin: many producers, one consumer ---- */

constexpr uint32_t producers = 100;
constexpr uint64_t produce_each = 10000;

static void producer(event_based_actor *self, const actor &consumer)
{
    for (uint64_t i = 0; i < produce_each; i++) {
        self->send(consumer, i);
    }
}

struct consumer_state {
    uint64_t count = 0;
    uint64_t sum = 0;
};

static behavior consumer(stateful_actor<consumer_state> *self, const actor &parent)
{
    for (uint32_t i = 0; i < producers; i++) {
        self->spawn(producer, actor{self});
    }
    return {[=](uint64_t number) {
        consumer_state &state = self->state;
        state.sum += number;
        state.count++;
        if (state.count == producers * produce_each) {
            self->send(parent, state.sum);
            self->quit();
        }
    }};
}

measurement bench_fanin(uint32_t workers)
{
    return run_root<sharing_config>(workers, producers * produce_each,
                                    producers * produce_each * (produce_each - 1) / 2, consumer);
}

/* ---- fanout: one asks many, all answer, and again ---- */

constexpr uint32_t listeners = 1000;
constexpr uint64_t rounds = 1000;

struct speaker_state {
    std::vector<actor> listeners;
    uint64_t round = 0;
    uint32_t missing = 0;
};

static void ask_all(stateful_actor<speaker_state> *self)
{
    self->state.missing = listeners;
    for (const actor &listener : self->state.listeners) {
        self->send(listener, ask_atom::value);
    }
}

static behavior speaker(stateful_actor<speaker_state> *self, const actor &parent)
{
    for (uint32_t i = 0; i < listeners; i++) {
        self->state.listeners.push_back(self->spawn(pong));
    }
    ask_all(self);
    return {[=](answer_atom) {
        speaker_state &state = self->state;
        state.missing--;
        if (state.missing > 0) {
            return;
        }
        state.round++;
        if (state.round < rounds) {
            ask_all(self);
        } else {
            self->send(parent, state.round);
            self->quit();
        }
    }};
}

measurement bench_fanout(uint32_t workers)
{
    return run_root<sharing_config>(workers, 2 * listeners * rounds, rounds, speaker);
}

/* ---- yield: an actor that gives control back and is resumed at once ---- */

struct yielder_state {
    uint64_t done = 0;
};

/* CAF has no commands. What comes closest is a message to oneself, its users' way to go on later.
 * An actor that has one goes on without a turn of its worker: this is CAF at its best. */
static behavior yielder(stateful_actor<yielder_state> *self, const actor &parent)
{
    self->send(self, uint64_t{0});
    return {[=](uint64_t number) {
        expect_right(number == self->state.done, "the numbers in turn");
        self->state.done++;
        if (self->state.done < million) {
            self->send(self, self->state.done);
        } else {
            self->send(parent, self->state.done);
            self->quit();
        }
    }};
}

measurement bench_yield(uint32_t workers)
{
    return run_root(workers, million, million, yielder);
}
