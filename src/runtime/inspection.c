/* SPDX-License-Identifier: MIT */
/* Whether somebody can look inside of a runtime, from its start to its stop. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mutex.h"
#include "inspector/place.h"
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

static void complain(const char *variable, int error)
{
    const int reason = errno;
    char folder[PATH_MAX];
    if (error == SKUA_E_INSPECT) {
        (void)place_directory(folder, sizeof folder);
        (void)fprintf(stderr, "skua: %s: %s: %s: %s\n", variable, skua_error_text(error), folder,
                      strerror(reason));
    } else {
        (void)fprintf(stderr, "skua: %s: %s\n", variable, skua_error_text(error));
    }
}

/* A program that has not asked for it, only its environment, does not fail for want of it. */
static int start_as_wished(skua_runtime *runtime, struct inspector_wishes wishes)
{
    if (!wishes.listens && wishes.schedtrace_ns == 0) {
        return 0;
    }
    const int error = inspector_start(&runtime->inspector, &runtime->sched, wishes);
    if (error == 0 || (wishes.listens && runtime->sched.config.inspect)) {
        return error;
    }
    if (!wishes.listens) {
        complain("SKUA_DEBUG", error);
        return 0;
    }
    complain("SKUA_INSPECT", error);
    wishes.listens = false;
    return start_as_wished(runtime, wishes);
}

static int start_inspector(skua_runtime *runtime)
{
    const int wish = wish_of_environment();
    return start_as_wished(runtime,
                           (struct inspector_wishes){
                               .listens = wish == 1 || (wish < 0 && runtime->sched.config.inspect),
                               .schedtrace_ns = runtime->debug.schedtrace_ns,
                           });
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
