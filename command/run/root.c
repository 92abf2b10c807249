/* SPDX-License-Identifier: MIT */
/* `skua run`: the root process, from its arguments to its end. */
#include <stdlib.h>
#include <string.h>

#include "command/run/session.h"

/* Of virtual time, between two looks at what else is to be done. */
#define SLICE_MIN (100 * SKUA_MICROSECOND)
#define SLICE_MAX (3600 * SKUA_SECOND)

/* Even if each takes a millisecond, Ctrl-C does not wait for longer than a second. */
#define SLICE_STEPS_MIN 200
#define SLICE_STEPS_MAX 1000

/* The arguments as payloads; null if there is no memory. */
static skua_payload *copy_arguments(struct session *session)
{
    const struct run_options *options = session->options;
    skua_payload *input = calloc(options->argument_count + 1, sizeof input[0]);
    for (size_t i = 0; input != NULL && i < options->argument_count; i++) {
        const char *argument = options->arguments[i];
        if (skua_payload_copy(session->runtime, 0, argument, strlen(argument) + 1, &input[i]) !=
            0) {
            while (i > 0) {
                skua_payload_drop(&input[--i]);
            }
            free(input);
            input = NULL;
        }
    }
    return input;
}

void root_note_exit(void *arg, skua_exit *exit)
{
    struct session *session = arg;
    if (skua_pid_equal(exit->pid, session->root)) {
        session->exit = *exit;
        session->exit.result = skua_payload_take(&exit->result);
        session->exited = true;
    }
}

bool root_is_another(void *arg, const skua_process_snapshot *info)
{
    const struct session *session = arg;
    return !skua_pid_equal(info->pid, session->root);
}

uint64_t root_count_steps(const struct session *session)
{
    skua_stats stats = {0};
    (void)skua_stats_read(session->runtime, &stats, NULL, 0);
    return stats.steps;
}

/* A slice of virtual time that has neither so few steps that slices cost more than what is in them,
 * nor so many that a signal would wait for its end. Not by the time that they took: the clock rests
 * at the end of a slice, and has to be the same in every run of a seed. */
static uint64_t next_slice(uint64_t slice, uint64_t steps)
{
    if (steps < SLICE_STEPS_MIN && slice < SLICE_MAX) {
        return 2 * slice;
    }
    return steps > SLICE_STEPS_MAX && slice > SLICE_MIN ? slice / 2 : slice;
}

/* Looks up from time to time: whether to stop, and whether there is anything to come. (A wait
 * without a time-out would tell the latter by itself.) */
static enum ending drive(struct session *session)
{
    uint64_t slice = SLICE_MIN;
    for (uint64_t left = session->options->timeout_ns;;) {
        const uint64_t steps = root_count_steps(session);
        session->error =
            skua_process_wait(session->runtime, session->root, left < slice ? left : slice, NULL);
        if (session->error != SKUA_E_TIMEOUT) {
            return ROOT_ENDED;
        }
        session->error = 0;
        if (sem_trywait(&session->stop_asked) == 0) {
            return ROOT_LEFT;
        }
        if (left <= slice) {
            return ROOT_TIMED_OUT;
        }
        if (skua_sim_run(session->runtime, skua_sim_now(session->runtime)) == 0) {
            return ROOT_RESTS;
        }
        left -= slice;
        slice = next_slice(slice, root_count_steps(session) - steps);
    }
}

static void simulate_root(struct session *session, skua_payload *input)
{
    const struct run_options *options = session->options;
    session->ending = ROOT_ENDED;
    session->error =
        skua_process_submit_with(session->runtime,
                                 &(skua_spawn_options){.type = session->module->root,
                                                       .method = options->method,
                                                       .input = input,
                                                       .input_count = options->argument_count},
                                 &session->root);
    if (session->error == 0) {
        session->ending = drive(session);
    }
}

static void execute_root(struct session *session, skua_payload *input)
{
    const struct run_options *options = session->options;
    session->ending = ROOT_ENDED;
    session->error =
        skua_process_run_with(session->runtime,
                              &(skua_spawn_options){.type = session->module->root,
                                                    .method = options->method,
                                                    .input = input,
                                                    .input_count = options->argument_count},
                              &session->exit);
    session->exited = session->error == 0;
}

void root_run(struct session *session)
{
    skua_payload *input = copy_arguments(session);
    if (input == NULL) {
        session->ending = ROOT_ENDED;
        session->error = SKUA_E_NO_MEMORY;
    } else if (session->options->sim) {
        simulate_root(session, input);
    } else {
        execute_root(session, input);
    }
    free(input);
}
