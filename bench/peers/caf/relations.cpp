/* SPDX-License-Identifier: MIT */
/* Workloads of actors that ask each other and watch each other. */
#include "bench.hpp"

#include <chrono>

using namespace caf;

using question_atom = atom_constant<atom("question")>;
using reply_atom = atom_constant<atom("reply")>;

/* ---- call, call-timeout: one asks, the other answers ---- */

static behavior server(event_based_actor *)
{
    return {[](question_atom) { return reply_atom::value; }};
}

struct caller_state {
    actor server;
    uint64_t answers = 0;
};

static void ask(stateful_actor<caller_state> *self, const actor &parent, const duration &timeout)
{
    self->request(self->state.server, timeout, question_atom::value).then([=](reply_atom) {
        self->state.answers++;
        if (self->state.answers < million) {
            ask(self, parent, timeout);
        } else {
            self->send(parent, self->state.answers);
            self->quit();
        }
    });
}

/* What it has to do is in the handlers of its requests. */
static void caller(stateful_actor<caller_state> *self, const actor &parent, duration timeout)
{
    self->state.server = self->spawn(server);
    ask(self, parent, timeout);
}

measurement bench_call(uint32_t workers)
{
    return run_root(workers, million, million, caller, duration{infinite});
}

measurement bench_call_timeout(uint32_t workers)
{
    return run_root(workers, million, million, caller, duration{std::chrono::seconds{10}});
}

/* ---- monitor: set and taken back ---- */

static behavior idler(event_based_actor *)
{
    return {[](question_atom) {}};
}

static void observer(event_based_actor *self, const actor &parent)
{
    const actor other = self->spawn(idler);
    uint64_t taken_back = 0;
    while (taken_back < million) {
        self->monitor(other);
        self->demonitor(other.address());
        taken_back++;
    }
    self->send(parent, taken_back);
}

measurement bench_monitor(uint32_t workers)
{
    return run_root(workers, million, million, observer);
}
