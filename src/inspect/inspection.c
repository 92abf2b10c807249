/* SPDX-License-Identifier: MIT */
#include "inspect/inspection.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mutex.h"
#include "inspect/inspect_socket.h"
#include "sched/shutdown.h"

/* A simulation has no threads to report on. */
void inspection_init(struct inspection *inspection, skua_runtime_config *config)
{
    mutex_init(&inspection->lock);
    inspection->on_stall = (struct debug_stall){config->on_stall, config->on_stall_arg};
    if (config->sim != NULL) {
        return;
    }
    inspection->debug = debug_read_environment();
    if (inspection->debug.stall_ns != 0) {
        config->stall_limit_ns = inspection->debug.stall_ns;
        config->stall_signal = config->stall_signal != 0 ? config->stall_signal : SIGURG;
        config->on_stall = debug_print_stall;
        config->on_stall_arg = &inspection->on_stall;
    }
}

void inspection_deinit(struct inspection *inspection)
{
    mutex_deinit(&inspection->lock);
}

/* SKUA_INSPECT overrides the configuration. */
static bool should_listen(const skua_runtime_config *config)
{
    const char *setting = secure_getenv("SKUA_INSPECT");
    if (setting == NULL || setting[0] == '\0') {
        return config->inspect;
    }
    return strcmp(setting, "0") != 0;
}

/* With one write, and not by fprintf, which needs much stack: the thread that starts a runtime may
 * have little of it. What is longer than a socket's path can be is cut. */
static void complain(const char *variable, int error)
{
    const int reason = errno;
    char folder[128];
    char text[128];
    char line[512];
    int length;
    if (error == SKUA_E_INSPECT) {
        (void)inspect_socket_directory(folder, sizeof folder);
        length = snprintf(line, sizeof line, "skua: %s: %s: %s: %s\n", variable,
                          skua_error_text(error), folder, strerror_r(reason, text, sizeof text));
    } else {
        length = snprintf(line, sizeof line, "skua: %s: %s\n", variable, skua_error_text(error));
    }
    (void)!write(STDERR_FILENO, line, (size_t)length);
}

/* Starts the inspector if it has something to do. */
static int start_with_locked(struct inspection *inspection, struct scheduler *sched,
                             struct inspector_options options)
{
    return options.listens || options.schedtrace_ns != 0
               ? inspector_start(&inspection->inspector, sched, options)
               : 0;
}

/* If only the environment asks for the inspector, the program starts without it on failure. */
static int start_inspector_locked(struct inspection *inspection, struct scheduler *sched)
{
    struct inspector_options options = {
        .listens = should_listen(&sched->config),
        .schedtrace_ns = inspection->debug.schedtrace_ns,
    };
    int error = start_with_locked(inspection, sched, options);
    if (error != 0 && options.listens) {
        if (sched->config.inspect) {
            return error;
        }
        complain("SKUA_INSPECT", error);
        options.listens = false;
        error = start_with_locked(inspection, sched, options);
    }
    if (error != 0) {
        complain("SKUA_DEBUG", error);
    }
    return 0;
}

static void end_locked(struct inspection *inspection)
{
    if (inspection->inspector != NULL) {
        inspector_stop(inspection->inspector);
        inspection->inspector = NULL;
    }
}

/* What SKUA_DEBUG wants of the workers, which have not started. */
static void set_up(const struct debug_settings *debug, struct scheduler *sched)
{
    sched->measures_stacks = debug->stacks;
    sched->migrates = debug->migrate;
    for (uint32_t i = 0; debug->migrate && i < sched->capacity; i++) {
        sched->workers[i].turns_max = 1; /* a task goes on elsewhere */
    }
}

static int start_locked(struct inspection *inspection, struct scheduler *sched)
{
    int error = shutdown_refuse_start(sched);
    if (error != 0) {
        return error;
    }
    set_up(&inspection->debug, sched);
    error = start_inspector_locked(inspection, sched);
    if (error != 0) {
        return error;
    }
    error = shutdown_start(sched);
    if (error != 0) {
        end_locked(inspection);
    }
    return error;
}

int inspection_start(struct inspection *inspection, struct scheduler *sched)
{
    mutex_lock(&inspection->lock);
    const int error = start_locked(inspection, sched);
    mutex_unlock(&inspection->lock);
    return error;
}

void inspection_end(struct inspection *inspection, struct scheduler *sched)
{
    mutex_lock(&inspection->lock);
    end_locked(inspection);
    debug_print_stacks(sched);
    mutex_unlock(&inspection->lock);
}
