/* SPDX-License-Identifier: MIT */
#include "telemetry/counters.h"

void counters_read(struct counters *counters, skua_stats *out)
{
#define READ(name) out->name = load_relaxed(&counters->name); /* statistic */
    SKUA_STATS_MAP(READ)
#undef READ
    out->live = 0;
}
