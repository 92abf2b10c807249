/* SPDX-License-Identifier: MIT */
/* `run --list` and `run WORKLOAD WORKERS`: runs one workload once and prints one JSON object. */
#include "bench.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string_view>

struct workload {
    const char *name;
    measurement (*run)(uint32_t workers);
};

constexpr workload workloads[] = {
    {"spawn", bench_spawn},     {"submit", bench_submit}, {"pingpong", bench_pingpong},
    {"pairs", bench_pairs},     {"ring", bench_ring},     {"ring100", bench_ring100},
    {"fanin", bench_fanin},     {"fanout", bench_fanout}, {"skynet", bench_skynet},
    {"fib", bench_fib},         {"yield", bench_yield},   {"idle-memory", bench_idle_memory},
    {"timers", bench_timers},   {"wake", bench_wake},     {"idle-cpu", bench_idle_cpu},
    {"steal", bench_steal},     {"call", bench_call},     {"call-timeout", bench_call_timeout},
    {"monitor", bench_monitor},
};

static void list()
{
    for (const workload &workload : workloads) {
        std::puts(workload.name);
    }
}

static const workload *find(std::string_view name)
{
    for (const workload &workload : workloads) {
        if (name == workload.name) {
            return &workload;
        }
    }
    return nullptr;
}

static void print_field(const char *name, double value)
{
    if (value != 0) {
        std::printf(", \"%s\": %.3f", name, value);
    }
}

static void print(const char *name, uint32_t workers, const measurement &result)
{
    const auto elapsed = static_cast<double>(result.elapsed_ns);
    std::printf("{\"workload\": \"%s\", \"workers\": %" PRIu32 ", \"ops\": %" PRIu64
                ", \"ns_per_op\": %.3f, \"rss_bytes\": %" PRIu64,
                name, workers, result.ops, elapsed / static_cast<double>(result.ops),
                result.resident_bytes);
    print_field("bytes_per_process", result.bytes_per_process);
    if (result.cpu_s > 0) {
        print_field("wall_s", elapsed / 1e9);
    }
    print_field("cpu_s", result.cpu_s);
    print_field("late_p50_us", result.late_p50_us);
    print_field("late_p99_us", result.late_p99_us);
    print_field("p50_us", result.p50_us);
    print_field("p99_us", result.p99_us);
    if (result.counts_wakeups) {
        std::printf(", \"wakeups\": %" PRIu64, result.wakeups);
    }
    std::puts("}");
}

int main(int argc, char **argv)
{
    if (argc == 2 && std::string_view{argv[1]} == "--list") {
        list();
        return 0;
    }
    const int workers = argc == 3 ? std::atoi(argv[2]) : 0;
    if (workers <= 0) {
        std::fprintf(stderr, "usage: run --list | run WORKLOAD WORKERS\n");
        return 2;
    }
    const workload *chosen = find(argv[1]);
    if (chosen == nullptr) {
        std::fprintf(stderr, "caf: there is no workload '%s'\n", argv[1]);
        return 2;
    }
    print(chosen->name, static_cast<uint32_t>(workers),
          chosen->run(static_cast<uint32_t>(workers)));
    return 0;
}
