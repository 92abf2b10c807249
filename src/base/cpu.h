/* SPDX-License-Identifier: MIT */
/* How many CPUs this program may use. */
#ifndef SKUA_BASE_CPU_H
#define SKUA_BASE_CPU_H

#include <stdint.h>

/* The smaller of the affinity mask and the quota of the control group (version 2), at least 1. */
uint32_t cpu_usable_count(void);

/* The CPUs that the quota of one control group amounts to, rounded up; UINT32_MAX without a limit.
 * `text` is the content of its cpu.max: "max 100000" or "150000 100000". */
uint32_t cpu_quota_parse(const char *text);

/* The tightest quota on the way from the group that `cgroup_file` (a /proc/self/cgroup) names to
 * the root of the hierarchy mounted at `mount`; UINT32_MAX without a limit. */
uint32_t cpu_quota_read(const char *cgroup_file, const char *mount);

#endif
