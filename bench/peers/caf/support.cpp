/* SPDX-License-Identifier: MIT */
/* What several workloads need. */
#include "bench.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

worker_config::worker_config(uint32_t workers)
{
    set("scheduler.max-threads", workers);
}

sharing_config::sharing_config(uint32_t workers) : worker_config{workers}
{
    set("scheduler.policy", caf::atom("sharing"));
}

taking_turns_config::taking_turns_config(uint32_t workers) : worker_config{workers}
{
    set("scheduler.max-throughput", 1);
}

uint64_t now_ns()
{
    using namespace std::chrono;
    const auto now = steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(duration_cast<nanoseconds>(now).count());
}

double cpu_seconds()
{
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

uint64_t resident_bytes()
{
    uint64_t size = 0;
    uint64_t resident = 0;
    std::ifstream{"/proc/self/statm"} >> size >> resident;
    return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t context_switches()
{
    uint64_t total = 0;
    const std::string first = std::to_string(getpid());
    for (const auto &task : std::filesystem::directory_iterator{"/proc/self/task"}) {
        if (task.path().filename() == first) {
            continue;
        }
        std::ifstream status{task.path() / "status"};
        for (std::string line; std::getline(status, line);) {
            if (line.find("ctxt_switches:") != std::string::npos) {
                total += std::stoull(line.substr(line.find(':') + 1));
            }
        }
    }
    return total;
}

void expect_right(bool right, const char *what)
{
    if (!right) {
        std::fprintf(stderr, "caf: wrong result: %s\n", what);
        std::_Exit(1); /* actors may still run: nothing is to be destroyed below them */
    }
}

measurement finish(uint64_t ops, uint64_t elapsed_ns)
{
    measurement result;
    result.ops = ops;
    result.elapsed_ns = elapsed_ns;
    result.resident_bytes = resident_bytes();
    return result;
}

void wait_until_empty(caf::actor_system &system, caf::actor_id before, uint64_t actors)
{
    system.await_all_actors_done();
    expect_right(system.latest_actor_id() - before == actors, "how many actors there were");
}
