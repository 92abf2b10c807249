/* SPDX-License-Identifier: MIT */
/* The functions of skua/metrics.h. */
#include <skua/metrics.h>

#include "inspector/metrics.h"
#include "runtime/runtime.h"

int skua_metrics_format(skua_runtime *runtime, char *text, size_t size)
{
    if (runtime == NULL || (text == NULL && size > 0)) {
        return SKUA_E_INVALID;
    }
    return metrics_format(&runtime->sched, text, size);
}
