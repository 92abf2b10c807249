/* SPDX-License-Identifier: MIT */
#include "sim_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- a simulated runtime and its trace ---- */

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

void sim_create(struct sim_scene *scene, uint64_t seed, skua_sim_config config)
{
    memset(scene, 0, sizeof *scene);
    config.on_record = note;
    config.on_record_arg = &scene->trace;
    api_create(&scene->api, (skua_runtime_config){.seed = seed, .sim = &config});
    scene->runtime = scene->api.runtime;
}

void sim_begin(struct sim_scene *scene, uint64_t seed, skua_sim_faults faults)
{
    sim_create(scene, seed, (skua_sim_config){.faults = faults});
    api_start(&scene->api);
}

void sim_end(struct sim_scene *scene)
{
    api_stop(&scene->api);
    sim_trace_free(&scene->trace);
}

void sim_trace_free(struct sim_trace *trace)
{
    free(trace->records);
    *trace = (struct sim_trace){0};
}

static bool fits(const skua_sim_record *record, enum skua_sim_record_type type, uint32_t what)
{
    return record->type == type && (what == 0 || record->what == what);
}

size_t sim_count(const struct sim_scene *scene, enum skua_sim_record_type type, uint32_t what)
{
    size_t count = 0;
    for (size_t i = 0; i < scene->trace.count; i++) {
        count += fits(&scene->trace.records[i], type, what);
    }
    return count;
}

const skua_sim_record *sim_find(const struct sim_scene *scene, enum skua_sim_record_type type,
                                uint32_t what, size_t n)
{
    for (size_t i = 0; i < scene->trace.count; i++) {
        if (fits(&scene->trace.records[i], type, what) && n-- == 0) {
            return &scene->trace.records[i];
        }
    }
    fail_msg("no such record");
    return NULL;
}

void sim_run_to_rest(struct sim_scene *scene)
{
    assert_int_equal(skua_sim_run(scene->runtime, SKUA_FOREVER), 0);
}

/* ---- processes ---- */

static int actor_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    struct sim_actor *actor = api_world(self);
    const struct sim_turn turn = {ctx, events, count, out};
    actor->steps++;
    return actor->function(actor->arg, &turn);
}

static void actor_close(void *self)
{
    struct sim_actor *actor = api_world(self);
    actor->closes++;
}

const skua_process_type sim_actor_type = {
    .name = "actor",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = actor_step,
    .close = actor_close,
};

const skua_process_type sim_other_actor_type = {
    .name = "other",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = actor_step,
    .close = actor_close,
};

void sim_submit(struct sim_scene *scene, struct sim_actor *actor)
{
    actor->pid = api_submit(&scene->api, &sim_actor_type, actor);
}

skua_exit sim_run_actor(struct sim_scene *scene, sim_actor_fn *function, void *arg)
{
    struct sim_actor actor = {.function = function, .arg = arg};
    const skua_exit exit = api_run_process(&scene->api, &sim_actor_type, &actor);
    assert_int_equal(actor.closes, 1);
    return exit;
}

skua_event *sim_completion(const struct sim_turn *turn, uint64_t tag)
{
    for (size_t i = 0; i < turn->count; i++) {
        if (turn->events[i].type == SKUA_EVENT_COMPLETION && turn->events[i].tag == tag) {
            return &turn->events[i];
        }
    }
    return NULL;
}

int sim_done(const struct sim_turn *turn)
{
    skua_step_done(turn->out, skua_payload_empty(0));
    return 0;
}
