/* SPDX-License-Identifier: MIT */
/* The workloads of `skua bench` as users of CAF, the C++ Actor Framework, write them: functions
 * that are event-based actors. They run on the scheduler that steals, or on the one that shares
 * where that was measured to be faster.
 *
 * A workload makes an actor system, runs once, checks that the result is right and says how long it
 * took. The files have the subjects of Skua's own. */
#ifndef PEER_BENCH_HPP
#define PEER_BENCH_HPP

#include <caf/all.hpp>

#include <cstdint>

constexpr uint32_t million = 1000000;

/* What a run has to say. Zero: it does not. */
struct measurement {
    uint64_t ops = 0;
    uint64_t elapsed_ns = 0;
    uint64_t resident_bytes = 0; /* of the program, before the system was stopped */
    double bytes_per_process = 0;
    double cpu_s = 0; /* user and system time of all threads */
    double late_p50_us = 0;
    double late_p99_us = 0;
    double p50_us = 0;
    double p99_us = 0;
    bool counts_wakeups = false;
    uint64_t wakeups = 0;
};

/* ---- support.cpp ---- */

struct worker_config : caf::actor_system_config {
    explicit worker_config(uint32_t workers);
};

/* All workers share one queue and sleep when it is empty; by default each has its own, and steals
 * from others. Better where work comes from one place, and for who waits. */
struct sharing_config : worker_config {
    explicit sharing_config(uint32_t workers);
};

/* One message a turn. By default an actor goes on as long as there is something in its mailbox. One
 * that starts a million others would not let them run in between; then the queue of its worker
 * grows long, and stealing, which walks along that queue, takes minutes. */
struct taking_turns_config : worker_config {
    explicit taking_turns_config(uint32_t workers);
};

uint64_t now_ns();
double cpu_seconds();
uint64_t resident_bytes();

/* Context switches of all threads but the first one. */
uint64_t context_switches();

/* Ends the program with a message unless the result is right. */
void expect_right(bool right, const char *what);

/* To be called before the system is stopped. */
measurement finish(uint64_t ops, uint64_t elapsed_ns);

/* Waits until no actor is alive; so many must have been started after the id `before`. */
void wait_until_empty(caf::actor_system &system, caf::actor_id before, uint64_t actors);

/* Starts `root`, which sends one number to the actor it gets as its first argument, and waits for
 * that number. */
template <class Config = worker_config, class Root, class... Arguments>
measurement run_root(uint32_t workers, uint64_t ops, uint64_t expected, Root root,
                     Arguments... arguments)
{
    Config config{workers};
    caf::actor_system system{config};
    caf::scoped_actor self{system};
    uint64_t result = 0;
    const uint64_t begin = now_ns();
    system.spawn(root, caf::actor_cast<caf::actor>(self), arguments...);
    self->receive([&](uint64_t number) { result = number; });
    const uint64_t elapsed = now_ns() - begin;
    expect_right(result == expected, "what the first actor has told");
    return finish(ops, elapsed);
}

struct starter_state {
    uint32_t started = 0;
};

using more_atom = caf::atom_constant<caf::atom("more")>;

/* Starts a million actors from inside one, a hundred for each message to itself. */
template <class Child> caf::behavior starter(caf::stateful_actor<starter_state> *self, Child child)
{
    self->send(self, more_atom::value);
    return {[=](more_atom) {
        for (uint32_t i = 0; i < 100; i++) {
            self->spawn(child);
        }
        self->state.started += 100;
        if (self->state.started < million) {
            self->send(self, more_atom::value);
        } else {
            self->quit();
        }
    }};
}

/* To be run with a `taking_turns_config`. */
template <class Child> measurement run_million(caf::actor_system &system, Child child)
{
    const caf::actor_id before = system.latest_actor_id();
    const uint64_t begin = now_ns();
    system.spawn(starter<Child>, child);
    wait_until_empty(system, before, million + 1);
    return finish(million, now_ns() - begin);
}

/* ---- the workloads, by file ---- */

/* processes.cpp: actors that start and end. */
measurement bench_spawn(uint32_t workers);
measurement bench_submit(uint32_t workers);
measurement bench_skynet(uint32_t workers);
measurement bench_fib(uint32_t workers);
measurement bench_steal(uint32_t workers);

/* messages.cpp: actors that talk. */
measurement bench_pingpong(uint32_t workers);
measurement bench_pairs(uint32_t workers);
measurement bench_ring(uint32_t workers);
measurement bench_ring100(uint32_t workers);
measurement bench_fanin(uint32_t workers);
measurement bench_fanout(uint32_t workers);
measurement bench_yield(uint32_t workers);

/* relations.cpp: actors that ask and watch each other. */
measurement bench_call(uint32_t workers);
measurement bench_call_timeout(uint32_t workers);
measurement bench_monitor(uint32_t workers);

/* idle.cpp: actors that wait. */
measurement bench_idle_memory(uint32_t workers);
measurement bench_idle_cpu(uint32_t workers);
measurement bench_timers(uint32_t workers);
measurement bench_wake(uint32_t workers);

#endif
