/* SPDX-License-Identifier: MIT */
/* What a server costs: CPU time and memory, read from outside. */
#include "load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SETTLE_NS     200000000 /* between two looks at the memory */
#define SETTLE_ROUNDS 15

uint64_t server_cpu_ns(pid_t server)
{
    clockid_t clock = 0;
    struct timespec used = {0};
    if (server == 0) {
        return 0;
    }
    const int error = clock_getcpuclockid(server, &clock);
    expect_right(error == 0 && clock_gettime(clock, &used) == 0, "the server has no CPU time");
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

static uint64_t read_memory(pid_t server)
{
    char path[64], line[256];
    uint64_t kibibytes = 0;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)server);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fail(path);
    }
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "Pss:", 4) == 0) {
            kibibytes = strtoull(line + 4, NULL, 10);
        }
    }
    fclose(file);
    expect_right(kibibytes > 0, "the server has no memory");
    return kibibytes * 1024;
}

uint64_t server_memory_bytes(pid_t server)
{
    const struct timespec pause = {.tv_nsec = SETTLE_NS};
    if (server == 0) {
        return 0;
    }
    uint64_t last = 0, memory = read_memory(server);
    for (int i = 0; i < SETTLE_ROUNDS && memory != last; i++) {
        nanosleep(&pause, NULL);
        last = memory;
        memory = read_memory(server);
    }
    return memory;
}
