/* SPDX-License-Identifier: MIT */
/* Whether somebody can look inside of a runtime, from its start to its stop. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mutex.h"
#include "runtime/runtime.h"
#include "sched/shutdown.h"

/* What the environment says: 1, 0, or nothing, which is -1. */
static int wish_of_environment(void)
{
    const char *wish = secure_getenv("SKUA_INSPECT");
    if (wish == NULL || wish[0] == '\0') {
        return -1;
    }
    return strcmp(wish, "0") != 0;
}

/* A program that has not asked for it, only its environment, does not fail for want of it. */
static int start_inspector(skua_runtime *runtime)
{
    const int wish = wish_of_environment();
    if (wish == 0 || (wish < 0 && !runtime->sched.config.inspect)) {
        return 0;
    }
    errno = 0;
    const int error = inspector_start(&runtime->inspector, &runtime->sched);
    if (error != 0 && !runtime->sched.config.inspect) {
        (void)fprintf(stderr, "skua: SKUA_INSPECT: %s%s%s\n", skua_error_text(error),
                      errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
        return 0;
    }
    return error;
}

static void end_locked(skua_runtime *runtime)
{
    if (runtime->inspector != NULL) {
        inspector_stop(runtime->inspector);
        runtime->inspector = NULL;
    }
}

static int start_locked(skua_runtime *runtime)
{
    int error = shutdown_refuse_start(&runtime->sched);
    if (error != 0) {
        return error;
    }
    error = start_inspector(runtime);
    if (error != 0) {
        return error;
    }
    error = shutdown_start(&runtime->sched);
    if (error != 0) {
        end_locked(runtime);
    }
    return error;
}

int inspection_start(skua_runtime *runtime)
{
    mutex_lock(&runtime->inspection);
    const int error = start_locked(runtime);
    mutex_unlock(&runtime->inspection);
    return error;
}

void inspection_end(skua_runtime *runtime)
{
    mutex_lock(&runtime->inspection);
    end_locked(runtime);
    mutex_unlock(&runtime->inspection);
}
