/* SPDX-License-Identifier: MIT */
/* The list of workloads. */
#include "bench.h"

const struct workload workloads[] = {
    {"spawn", "ns per process", "a million processes from inside one, 100 a step", bench_spawn},
    {"spawn-burst", "ns per process", "the same in one step: all alive at once", bench_spawn_burst},
    {"submit", "ns per process", "a million processes from a thread outside", bench_submit},
    {"pingpong", "ns per message", "two processes, a million round trips", bench_pingpong},
    {"pairs", "ns per message", "1,000 times two processes, 1,000 round trips each", bench_pairs},
    {"ring", "ns per message", "1,000 processes in a ring, one token, a million hops", bench_ring},
    {"ring100", "ns per message", "the same with 100 tokens", bench_ring100},
    {"fanin", "ns per message", "100 producers, 10,000 messages each, one consumer", bench_fanin},
    {"fanout", "ns per message", "one asks 1,000, all answer; 1,000 rounds", bench_fanout},
    {"skynet", "ns per process", "a tree of ten branches each, a million leaves", bench_skynet},
    {"fib", "ns per process", "fib(30), a process for every call", bench_fib},
    {"steal", "ns per process", "one process starts 20,000 tasks of uneven length", bench_steal},
    {"yield", "ns per yield", "a million commands, each completed at once", bench_yield},
    {"idle-memory", "bytes per process", "a million idle processes with 64 bytes of state",
     bench_idle_memory},
    {"idle-cpu", "wake-ups in 5 s", "10,000 idle processes", bench_idle_cpu},
    {"timers", "s for all", "a million processes asleep for 0-1000 ms, from start to end",
     bench_timers},
    {"wake", "x a bare futex", "a message from outside to a sleeping runtime, one per ms",
     bench_wake},
    {"stuck", "ms, the slowest", "all workers stuck: a message, a timer, a descriptor",
     bench_stuck},
    {"idle-sources", "wake-ups in 5 s", "10,000 timers an hour away, 1,000 descriptors",
     bench_idle_sources},
    {"after-burst", "MiB above start", "memory after a million processes have ended",
     bench_after_burst},
    {0},
};
