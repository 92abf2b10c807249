/* SPDX-License-Identifier: MIT */
#include "base/cpu.h"

#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than any kernel supports today (8192). */
#define CPU_BITS_MAX (1 << 16)

static uint32_t affinity_count(void)
{
    /* The kernel refuses a mask that is smaller than its own, so try larger ones. */
    for (size_t bits = CPU_SETSIZE; bits <= CPU_BITS_MAX; bits *= 2) {
        cpu_set_t *set = CPU_ALLOC(bits);
        if (set == NULL) {
            return 1;
        }
        const size_t size = CPU_ALLOC_SIZE(bits);
        const int result = sched_getaffinity(0, size, set);
        const int count = result == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (result == 0) {
            return count > 0 ? (uint32_t)count : 1;
        }
    }
    return 1;
}

uint32_t cpu_quota_parse(const char *text)
{
    uint64_t quota;
    uint64_t period;
    if (sscanf(text, "%" SCNu64 " %" SCNu64, &quota, &period) != 2 || period == 0) {
        return UINT32_MAX;
    }
    const uint64_t cpus = quota / period + (quota % period != 0);
    return cpus == 0 ? 1 : cpus < UINT32_MAX ? (uint32_t)cpus : UINT32_MAX;
}

/* Reads the first line that starts with `prefix`, without its newline; false if there is none. */
static bool read_line(const char *path, const char *prefix, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool found = false;
    while (!found && fgets(line, (int)size, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        found = strncmp(line, prefix, strlen(prefix)) == 0;
    }
    (void)fclose(file);
    return found;
}

/* Not on the stack: the thread that creates a runtime may have little of it. */
struct paths {
    char line[PATH_MAX];
    char path[PATH_MAX * 2];
};

/* The smallest quota of a group and those it is in; `paths->line` is that of the group. */
static uint32_t smallest_quota(struct paths *paths, const char *mount)
{
    char text[64];
    char *group = paths->line + strlen("0::");
    uint32_t quota = UINT32_MAX;
    for (;;) {
        (void)snprintf(paths->path, sizeof paths->path, "%s%s/cpu.max", mount, group);
        if (read_line(paths->path, "", text, sizeof text)) {
            const uint32_t own = cpu_quota_parse(text);
            quota = own < quota ? own : quota;
        }
        char *slash = strrchr(group, '/');
        if (slash == NULL) {
            return quota;
        }
        *slash = '\0';
    }
}

uint32_t cpu_quota_read(const char *cgroup_file, const char *mount)
{
    struct paths *paths = malloc(sizeof *paths);
    if (paths == NULL) {
        return UINT32_MAX;
    }
    /* The line of version 2 is "0::/the/group". */
    const bool found = read_line(cgroup_file, "0::/", paths->line, sizeof paths->line);
    const uint32_t quota = found ? smallest_quota(paths, mount) : UINT32_MAX;
    free(paths);
    return quota;
}

uint32_t cpu_usable_count(void)
{
    const uint32_t cpus = affinity_count();
    const uint32_t quota = cpu_quota_read("/proc/self/cgroup", "/sys/fs/cgroup");
    return quota < cpus ? quota : cpus;
}
