/* SPDX-License-Identifier: MIT */
/* Workloads of actors that start and end. */
#include "bench.hpp"

using namespace caf;

/* ---- spawn and submit: a million actors without a behavior, which end when started ---- */

static void trivial(event_based_actor *) {}

measurement bench_spawn(uint32_t workers)
{
    taking_turns_config config{workers};
    actor_system system{config};
    return run_million(system, trivial);
}

measurement bench_submit(uint32_t workers)
{
    sharing_config config{workers};
    actor_system system{config};
    const actor_id before = system.latest_actor_id();
    const uint64_t begin = now_ns();
    for (uint32_t i = 0; i < million; i++) {
        system.spawn(trivial);
    }
    wait_until_empty(system, before, million);
    return finish(million, now_ns() - begin);
}

/* ---- trees: each actor starts some, waits for their numbers and tells the sum ---- */

struct branch {
    uint64_t sum = 0;
    uint32_t missing = 0; /* children that have not told yet */
};

/* Adds up what the children tell. */
static behavior gather(stateful_actor<branch> *self, const actor &parent, uint32_t children)
{
    self->state.missing = children;
    return {[=](uint64_t number) {
        branch &state = self->state;
        state.sum += number;
        state.missing--;
        if (state.missing == 0) {
            self->send(parent, state.sum);
            self->quit();
        }
    }};
}

constexpr uint64_t skynet_leaves = million;
constexpr uint32_t skynet_degree = 10;
constexpr uint64_t skynet_actors = 1111111;

static behavior skynet(stateful_actor<branch> *self, const actor &parent, uint64_t number,
                       uint64_t size)
{
    if (size == 1) {
        self->send(parent, number);
        return {};
    }
    const uint64_t share = size / skynet_degree;
    for (uint32_t i = 0; i < skynet_degree; i++) {
        self->spawn(skynet, actor{self}, number + i * share, share);
    }
    return gather(self, parent, skynet_degree);
}

measurement bench_skynet(uint32_t workers)
{
    return run_root(workers, skynet_actors, skynet_leaves * (skynet_leaves - 1) / 2, skynet,
                    uint64_t{0}, skynet_leaves);
}

constexpr uint64_t fib_n = 30;
constexpr uint64_t fib_result = 832040;
constexpr uint64_t fib_actors = 2692537;

static behavior fib(stateful_actor<branch> *self, const actor &parent, uint64_t n)
{
    if (n < 2) {
        self->send(parent, n);
        return {};
    }
    self->spawn(fib, actor{self}, n - 1);
    self->spawn(fib, actor{self}, n - 2);
    return gather(self, parent, 2);
}

measurement bench_fib(uint32_t workers)
{
    return run_root(workers, fib_actors, fib_result, fib, fib_n);
}

/* ---- steal: one actor starts uneven work, the other workers must come and take it ---- */

constexpr uint32_t tasks = 20000;
constexpr uint64_t turns_max = 20000;
constexpr uint64_t turns_step = 7919; /* a prime: the lengths differ, and are as Skua's */

static void task(event_based_actor *, uint64_t turns)
{
    volatile uint64_t work = 1;
    for (uint64_t i = 0; i < turns; i++) {
        work = work * 3 + i;
    }
}

static void foreman(event_based_actor *self)
{
    for (uint32_t i = 0; i < tasks; i++) {
        self->spawn(task, i * turns_step % turns_max);
    }
}

measurement bench_steal(uint32_t workers)
{
    sharing_config config{workers};
    actor_system system{config};
    const actor_id before = system.latest_actor_id();
    const uint64_t begin = now_ns();
    system.spawn(foreman);
    wait_until_empty(system, before, tasks + 1);
    return finish(tasks, now_ns() - begin);
}
