/* SPDX-License-Identifier: MIT */
/* Workloads of actors that wait. */
#include "bench.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

using namespace caf;
using namespace std::chrono_literals;

using wake_atom = atom_constant<atom("wake")>;

/* ---- samples ---- */

class samples
{
  public:
    explicit samples(uint32_t capacity) : values_(capacity) {}

    /* From any thread. */
    void add(uint64_t value)
    {
        values_.at(count_.fetch_add(1)) = value;
    }

    uint32_t count() const
    {
        return count_;
    }

    double percentile(uint32_t percent)
    {
        std::sort(values_.begin(), values_.end());
        return static_cast<double>(values_.at(values_.size() * percent / 100));
    }

  private:
    std::vector<uint64_t> values_;
    std::atomic<uint32_t> count_{0};
};

static void wait_for(const std::atomic<uint32_t> &counter, uint32_t value)
{
    while (counter < value) {
        std::this_thread::sleep_for(10ms);
    }
}

/* ---- idle actors: what they cost in memory and in wake-ups ---- */

struct idler_state {
    std::array<unsigned char, 64> bytes;
};

static std::atomic<uint32_t> idlers{0};

static behavior idler(stateful_actor<idler_state> *self)
{
    self->state.bytes.fill(1);
    idlers++;
    return {[=](wake_atom) { self->quit(); }};
}

/* Starts as many as there is room for handles, and waits until each has had its first turn. An
 * actor to which there is no handle ends when it has nothing to do. */
static void start_idlers(actor_system &system, std::vector<actor> &handles)
{
    for (actor &handle : handles) {
        handle = system.spawn(idler);
    }
    wait_for(idlers, static_cast<uint32_t>(handles.size()));
}

measurement bench_idle_memory(uint32_t workers)
{
    worker_config config{workers};
    actor_system system{config};
    std::vector<actor> handles(million); /* resident before the count begins */
    const uint64_t before = resident_bytes();
    const uint64_t begin = now_ns();
    start_idlers(system, handles);
    measurement result = finish(million, now_ns() - begin);
    result.bytes_per_process = static_cast<double>(result.resident_bytes - before) / million;
    return result;
}

measurement bench_idle_cpu(uint32_t workers)
{
    sharing_config config{workers};
    actor_system system{config};
    std::vector<actor> handles(10000);
    start_idlers(system, handles);
    std::this_thread::sleep_for(500ms);
    const uint64_t begin = now_ns();
    const uint64_t before = context_switches();
    std::this_thread::sleep_for(5s);
    const uint64_t wakeups = context_switches() - before;
    measurement result = finish(handles.size(), now_ns() - begin);
    result.counts_wakeups = true;
    result.wakeups = wakeups;
    return result;
}

/* ---- timers: a million actors, each asleep for its own time ---- */

static samples lateness{million}; /* microseconds */

static std::chrono::nanoseconds next_delay()
{
    thread_local std::mt19937 random; /* the same delays in every run */
    return std::chrono::nanoseconds{std::uniform_int_distribution<>{0, 999999999}(random)};
}

static behavior sleeper(event_based_actor *self)
{
    const std::chrono::nanoseconds delay = next_delay();
    const uint64_t due = now_ns() + static_cast<uint64_t>(delay.count());
    self->delayed_send(self, delay, wake_atom::value);
    return {[=](wake_atom) {
        const uint64_t now = now_ns();
        expect_right(now >= due, "timers: one fired early");
        lateness.add((now - due) / 1000);
        self->quit();
    }};
}

measurement bench_timers(uint32_t workers)
{
    taking_turns_config config{workers};
    actor_system system{config};
    const double cpu = cpu_seconds();
    measurement result = run_million(system, sleeper);
    result.cpu_s = cpu_seconds() - cpu;
    expect_right(lateness.count() == million, "timers: not all have fired");
    result.late_p50_us = lateness.percentile(50);
    result.late_p99_us = lateness.percentile(99);
    return result;
}

/* ---- wake: from a send outside to the actor ---- */

constexpr uint32_t wakes = 1000;

static samples wake_times{wakes};      /* nanoseconds */
static std::atomic<uint32_t> awake{0}; /* counts the samples that are complete */

static behavior woken()
{
    return {[](uint64_t sent) {
        wake_times.add(now_ns() - sent);
        awake++;
    }};
}

/* A millisecond between sends, as with Skua. Workers that steal would sleep 50 us at a time between
 * looks into their queues, from which no send wakes them, and later 10 ms at a time. */
measurement bench_wake(uint32_t workers)
{
    sharing_config config{workers};
    actor_system system{config};
    const actor receiver = system.spawn(woken);
    for (uint32_t i = 0; i < wakes; i++) {
        std::this_thread::sleep_for(1ms);
        anon_send(receiver, now_ns());
    }
    wait_for(awake, wakes);
    const double p50 = wake_times.percentile(50);
    measurement result = finish(wakes, static_cast<uint64_t>(p50 * wakes));
    result.p50_us = p50 / 1e3;
    result.p99_us = wake_times.percentile(99) / 1e3;
    return result;
}
