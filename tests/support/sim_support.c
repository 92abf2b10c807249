/* SPDX-License-Identifier: MIT */
#include "sim_support.h"

/* ---- the trace ---- */

static void note(void *arg, const skua_sim_record *record)
{
    struct sim_trace *trace = arg;
    if (trace->count == trace->capacity) {
        trace->capacity = trace->capacity == 0 ? 256 : 2 * trace->capacity;
        trace->records = realloc(trace->records, trace->capacity * sizeof *trace->records);
        if (trace->records == NULL) {
            abort();
        }
    }
    trace->records[trace->count++] = *record;
}

void sim_trace_free(struct sim_trace *trace)
{
    free(trace->records);
    *trace = (struct sim_trace){0};
}

/* ---- a simulated runtime ---- */

void sim_create_with(struct sim_scene *scene, skua_runtime_config config)
{
    skua_sim_config sim = *config.sim;
    memset(scene, 0, sizeof *scene);
    if (sim.on_record == NULL) {
        sim.on_record = note;
        sim.on_record_arg = &scene->trace;
    }
    config.sim = &sim;
    api_create(&scene->api, config);
    scene->runtime = scene->api.runtime;
}

void sim_create(struct sim_scene *scene, uint64_t seed, skua_sim_config config)
{
    sim_create_with(scene, (skua_runtime_config){.seed = seed, .sim = &config});
}

void sim_begin(struct sim_scene *scene, uint64_t seed, skua_sim_faults faults)
{
    sim_create(scene, seed, (skua_sim_config){.faults = faults});
    api_start(&scene->api);
}

void sim_run_to_rest(struct sim_scene *scene)
{
    assert_int_equal(skua_sim_run(scene->runtime, SKUA_FOREVER), 0);
}

void sim_end(struct sim_scene *scene)
{
    api_stop(&scene->api);
    sim_trace_free(&scene->trace);
}
