/* SPDX-License-Identifier: MIT */
/* Simulated runtimes that keep their trace. Most tests have theirs as the world (world_open_sim);
 * those of several at once use a scene itself. */
#ifndef SKUA_TESTS_SIM_SUPPORT_H
#define SKUA_TESTS_SIM_SUPPORT_H

#include "runtime_support.h"

/* The rate of a fault that always happens. */
#define SIM_ALWAYS 1000000

#define SIM_NO_FAULTS ((skua_sim_faults){0})

struct sim_trace {
    skua_sim_record *records;
    size_t count;
    size_t capacity;
};

struct sim_scene {
    struct api api;
    skua_runtime *runtime; /* that of api */
    struct sim_trace trace;
};

/* Creates a simulated runtime; api_start(&scene->api) starts it. Its trace is kept in the scene,
 * unless the configuration has an on_record. */
void sim_create(struct sim_scene *scene, uint64_t seed, skua_sim_config config);
void sim_create_with(struct sim_scene *scene, skua_runtime_config config);

/* Both, with the defaults but for the faults. */
void sim_begin(struct sim_scene *scene, uint64_t seed, skua_sim_faults faults);

/* Runs until nothing can happen any more, which it must come to. */
void sim_run_to_rest(struct sim_scene *scene);

/* api_stop, and releases the trace. */
void sim_end(struct sim_scene *scene);

void sim_trace_free(struct sim_trace *trace);

#endif
