/* SPDX-License-Identifier: MIT */
/* The functions of skua/inspect.h and skua/metrics.h. */
#include <skua/inspect.h>
#include <skua/metrics.h>

#include "inspect/inspect_socket.h"
#include "inspect/metrics.h"
#include "runtime/caller.h"
#include "runtime/runtime.h"

int skua_metrics_format(skua_runtime *runtime, char *text, size_t size)
{
    if (runtime == NULL || (text == NULL && size > 0)) {
        return SKUA_E_INVALID;
    }
    const struct worker *worker = caller_look(runtime);
    const int length = metrics_format(&runtime->sched, text, size);
    caller_look_away(runtime, worker);
    return length;
}

int skua_inspect_directory(char *text, size_t size)
{
    return text != NULL ? inspect_socket_directory(text, size) : SKUA_E_INVALID;
}
