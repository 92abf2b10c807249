/* SPDX-License-Identifier: MIT */
/* What several workloads need. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

skua_runtime *bench_create(uint32_t workers)
{
    skua_runtime *runtime;
    expect_ok(skua_runtime_create(&runtime, &(skua_runtime_config){.worker_count = workers}),
              "create");
    return runtime;
}

struct measurement bench_finish(skua_runtime *runtime, double value)
{
    struct measurement measurement = {.value = value};
    (void)skua_stats_read(runtime, &measurement.stats, NULL, 0);
    expect_ok(skua_runtime_stop(runtime, SKUA_FOREVER), "stop");
    expect_ok(skua_runtime_destroy(runtime), "destroy");
    return measurement;
}

void bench_sleep(long ns)
{
    nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}

void bench_wait_until_empty(skua_runtime *runtime, uint64_t processes)
{
    skua_stats stats;
    while (skua_stats_read(runtime, &stats, NULL, 0) > 0 && stats.live > 0) {
        bench_sleep(20000);
    }
    if (stats.finished != processes) {
        fprintf(stderr, "skua-bench: %" PRIu64 " processes finished, not %" PRIu64 "\n",
                stats.finished, processes);
        exit(1);
    }
}

uint64_t bench_resident_bytes(void)
{
    unsigned long size = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        if (fscanf(file, "%lu %lu", &size, &resident) != 2) {
            resident = 0;
        }
        fclose(file);
    }
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t bench_context_switches(void)
{
    uint64_t total = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
        char path[300];
        char line[200];
        if (task->d_name[0] == '.' || strtol(task->d_name, NULL, 10) == getpid()) {
            continue;
        }
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(path, "re");
        while (status != NULL && fgets(line, sizeof line, status) != NULL) {
            const char *count = strstr(line, "ctxt_switches:");
            total += count != NULL ? strtoull(count + strlen("ctxt_switches:"), NULL, 10) : 0;
        }
        if (status != NULL) {
            fclose(status);
        }
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    return total;
}
