/* SPDX-License-Identifier: MIT */
/* The fork-join workloads of `skua bench` on oneTBB: runs one of them once and prints what came of
 * it as JSON.
 *
 * As always with oneTBB, the main thread counts as one of the workers: while it waits for a group
 * it runs tasks. Only in `submit` it does nothing but enqueue; there all workers are beside it. */
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_invoke.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

namespace
{

constexpr uint64_t million = 1000000;

struct measurement {
    uint64_t ops;
    double elapsed_ns;
};

/* ---- support ---- */

double nanoseconds_since(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin)
        .count();
}

/* Runs a function as a worker of the arena. */
template <typename Function>
measurement time_inside(tbb::task_arena &arena, uint64_t ops, Function function)
{
    const auto begin = std::chrono::steady_clock::now();
    arena.execute(function);
    return {ops, nanoseconds_since(begin)};
}

void expect_right(bool right, const char *what)
{
    if (!right) {
        std::fprintf(stderr, "wrong result: %s\n", what);
        std::exit(1);
    }
}

/* Counts tasks. Each worker has its own count: a shared one would cost more than a task. */
class task_counter
{
  public:
    /* The main thread may be one more. */
    explicit task_counter(int workers) : counts(static_cast<size_t>(workers) + 1) {}

    void add()
    {
        auto &count = counts[static_cast<size_t>(tbb::this_task_arena::current_thread_index())];
        count.value.store(count.value.load(std::memory_order_relaxed) + 1,
                          std::memory_order_release);
    }

    uint64_t total() const
    {
        uint64_t sum = 0;
        for (const auto &count : counts) {
            sum += count.value.load(std::memory_order_acquire);
        }
        return sum;
    }

  private:
    struct alignas(64) padded {
        std::atomic<uint64_t> value = 0;
    };
    std::vector<padded> counts;
};

/* oneTBB starts its threads with the first work. They are there when all have met: this one, too, if
 * it is a worker. */
void start_workers(tbb::task_arena &arena, int workers, bool joins)
{
    std::atomic<int> arrived = 0;
    std::atomic<int> left = 0;
    const auto meet = [&] {
        arrived++;
        while (arrived < workers) {
            usleep(10);
        }
        left++;
    };
    for (int i = joins ? 1 : 0; i < workers; i++) {
        arena.enqueue(meet);
    }
    if (joins) {
        arena.execute(meet);
    }
    while (left < workers) {
        usleep(10);
    }
}

uint64_t resident_bytes()
{
    uint64_t size = 0;
    uint64_t resident = 0;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

/* ---- spawn: a million trivial tasks from inside one ---- */

/* A hundred at a time, as in `skua bench`. In one go it is slower: the tasks would all be in memory
 * before the first of them is run. */
constexpr uint64_t spawn_steps = 10000;
constexpr uint64_t spawn_per_step = million / spawn_steps;

measurement spawn(tbb::task_arena &arena, int workers)
{
    task_counter ended(workers);
    const auto result = time_inside(arena, million, [&] {
        tbb::task_group group;
        for (uint64_t step = 0; step < spawn_steps; step++) {
            for (uint64_t i = 0; i < spawn_per_step; i++) {
                group.run([&] { ended.add(); });
            }
            group.wait();
        }
    });
    expect_right(ended.total() == million, "spawn: how many have ended");
    return result;
}

/* ---- submit: the same from a thread outside the arena ---- */

/* The thread looks for the end from time to time, as `skua bench` does. To enqueue the tasks of a
 * group and to wait for that was slower: it counts each task up and down in one place. */
measurement submit(tbb::task_arena &arena, int workers)
{
    task_counter ended(workers);
    const auto begin = std::chrono::steady_clock::now();
    for (uint64_t i = 0; i < million; i++) {
        arena.enqueue([&] { ended.add(); });
    }
    while (ended.total() < million) {
        usleep(20);
    }
    const double elapsed = nanoseconds_since(begin);
    expect_right(ended.total() == million, "submit: how many have ended");
    return {million, elapsed};
}

/* ---- trees: each task starts some, waits for them and adds up their numbers ---- */

constexpr uint64_t skynet_leaves = million;
constexpr uint64_t skynet_degree = 10;
constexpr uint64_t skynet_tasks = 1111111;

uint64_t skynet_task(uint64_t first, uint64_t size)
{
    if (size == 1) {
        return first;
    }
    const uint64_t share = size / skynet_degree;
    std::array<uint64_t, skynet_degree> sums;
    tbb::task_group group;
    for (uint64_t i = 0; i < skynet_degree; i++) {
        group.run([&sums, i, first, share] { sums[i] = skynet_task(first + i * share, share); });
    }
    group.wait();
    uint64_t sum = 0;
    for (const uint64_t part : sums) {
        sum += part;
    }
    return sum;
}

measurement skynet(tbb::task_arena &arena, int)
{
    uint64_t sum = 0;
    const auto result =
        time_inside(arena, skynet_tasks, [&] { sum = skynet_task(0, skynet_leaves); });
    expect_right(sum == skynet_leaves * (skynet_leaves - 1) / 2, "skynet: the sum");
    return result;
}

constexpr uint64_t fib_tasks = 2692537;

uint64_t fib_task(uint64_t n)
{
    if (n < 2) {
        return n;
    }
    uint64_t one = 0;
    uint64_t other = 0;
    tbb::task_group group;
    group.run([&one, n] { one = fib_task(n - 1); });
    group.run([&other, n] { other = fib_task(n - 2); });
    group.wait();
    return one + other;
}

measurement fib(tbb::task_arena &arena, int)
{
    uint64_t number = 0;
    const auto result = time_inside(arena, fib_tasks, [&] { number = fib_task(30); });
    expect_right(number == 832040, "fib: the result");
    return result;
}

/* ---- the same as they are written with oneTBB: a task runs one of its children itself ---- */

uint64_t skynet_inline_task(uint64_t first, uint64_t size)
{
    if (size == 1) {
        return first;
    }
    const uint64_t share = size / skynet_degree;
    std::array<uint64_t, skynet_degree> sums;
    tbb::task_group group;
    for (uint64_t i = 1; i < skynet_degree; i++) {
        group.run(
            [&sums, i, first, share] { sums[i] = skynet_inline_task(first + i * share, share); });
    }
    sums[0] = skynet_inline_task(first, share);
    group.wait();
    uint64_t sum = 0;
    for (const uint64_t part : sums) {
        sum += part;
    }
    return sum;
}

measurement skynet_inline(tbb::task_arena &arena, int)
{
    uint64_t sum = 0;
    const auto result =
        time_inside(arena, skynet_tasks, [&] { sum = skynet_inline_task(0, skynet_leaves); });
    expect_right(sum == skynet_leaves * (skynet_leaves - 1) / 2, "skynet-inline: the sum");
    return result;
}

/* parallel_invoke runs the last of its functions itself. */
uint64_t fib_inline_task(uint64_t n)
{
    if (n < 2) {
        return n;
    }
    uint64_t one = 0;
    uint64_t other = 0;
    tbb::parallel_invoke([&one, n] { one = fib_inline_task(n - 1); },
                         [&other, n] { other = fib_inline_task(n - 2); });
    return one + other;
}

measurement fib_inline(tbb::task_arena &arena, int)
{
    uint64_t number = 0;
    const auto result = time_inside(arena, fib_tasks, [&] { number = fib_inline_task(30); });
    expect_right(number == 832040, "fib-inline: the result");
    return result;
}

/* ---- steal: one task starts uneven work, the other workers must come and take it ---- */

constexpr uint64_t steal_tasks = 20000;
constexpr uint64_t turns_max = 20000;
constexpr uint64_t turns_step = 7919; /* a prime: the lengths differ, the same in every run */

void work(uint64_t turns)
{
    volatile uint64_t value = 1;
    for (uint64_t i = 0; i < turns; i++) {
        value = value * 3 + i;
    }
}

measurement steal(tbb::task_arena &arena, int workers)
{
    task_counter ended(workers);
    const auto result = time_inside(arena, steal_tasks, [&] {
        tbb::task_group group;
        for (uint64_t i = 0; i < steal_tasks; i++) {
            group.run([&ended, i] {
                work(i * turns_step % turns_max);
                ended.add();
            });
        }
        group.wait();
    });
    expect_right(ended.total() == steal_tasks, "steal: how many have ended");
    return result;
}

/* ---- the program ---- */

struct workload {
    const char *name;
    measurement (*run)(tbb::task_arena &arena, int workers);
    bool joins = true; /* the main thread is one of the workers */
};

constexpr workload workloads[] = {
    {"spawn", spawn},   {"submit", submit, false},
    {"skynet", skynet}, {"skynet-inline", skynet_inline},
    {"fib", fib},       {"fib-inline", fib_inline},
    {"steal", steal},
};

[[noreturn]] void refuse(const std::string &message)
{
    std::fprintf(stderr, "%s\nusage: run --list | run WORKLOAD WORKERS\n", message.c_str());
    std::exit(2);
}

const workload &find(const std::string &name)
{
    for (const auto &workload : workloads) {
        if (name == workload.name) {
            return workload;
        }
    }
    refuse("no workload '" + name + "'");
}

void run(const workload &workload, int workers)
{
    /* oneTBB counts the main thread, and keeps a place for it, in any case. */
    const int threads = workload.joins ? workers : workers + 1;
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                              static_cast<size_t>(threads));
    tbb::task_arena arena(threads);
    start_workers(arena, workers, workload.joins);
    const measurement result = workload.run(arena, workers);
    std::printf("{\"workload\": \"%s\", \"workers\": %d, \"ops\": %" PRIu64
                ", \"ns_per_op\": %.3f, \"rss_bytes\": %" PRIu64 "}\n",
                workload.name, workers, result.ops,
                result.elapsed_ns / static_cast<double>(result.ops), resident_bytes());
}

} // namespace

int main(int argc, char **argv)
{
    if (argc == 2 && std::string(argv[1]) == "--list") {
        for (const auto &workload : workloads) {
            std::puts(workload.name);
        }
        return 0;
    }
    if (argc != 3) {
        refuse("what is to be run?");
    }
    const workload &chosen = find(argv[1]);
    const int workers = std::atoi(argv[2]);
    if (workers < 1) {
        refuse("WORKERS is a number above 0");
    }
    run(chosen, workers);
    return 0;
}
