/* SPDX-License-Identifier: MIT */
/* What the tests of the simulator share: simulated runtimes that keep their trace, and processes
 * whose step is a function of the test. One thread runs it all, so nothing here is atomic. */
#ifndef SKUA_TESTS_SIM_SUPPORT_H
#define SKUA_TESTS_SIM_SUPPORT_H

#include "runtime_support.h"

/* Every fault, always. */
#define SIM_ALWAYS 1000000

/* ---- a simulated runtime and its trace ---- */

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

/* Creates a simulated runtime; api_start(&scene->api) starts it. */
void sim_create(struct sim_scene *scene, uint64_t seed, skua_sim_config config);

/* Both, with the defaults but for the faults. */
void sim_begin(struct sim_scene *scene, uint64_t seed, skua_sim_faults faults);

/* api_stop, and releases the trace. */
void sim_end(struct sim_scene *scene);

/* Releases the trace only, of a runtime that is gone. */
void sim_trace_free(struct sim_trace *trace);

/* How many records have this type and (unless it is 0) this `what`. */
size_t sim_count(const struct sim_scene *scene, enum skua_sim_record_type type, uint32_t what);

/* The n-th of these, from 0; there must be one. */
const skua_sim_record *sim_find(const struct sim_scene *scene, enum skua_sim_record_type type,
                                uint32_t what, size_t n);

/* Runs until nothing can happen any more, which it must come to. */
void sim_run_to_rest(struct sim_scene *scene);

/* ---- processes ---- */

/* What a step gets. */
struct sim_turn {
    skua_context *ctx;
    skua_event *events;
    size_t count;
    skua_step *out;
};

typedef int sim_actor_fn(void *arg, const struct sim_turn *turn);

/* A process whose step is `function`; outlives it. */
struct sim_actor {
    sim_actor_fn *function;
    void *arg;
    skua_pid pid;
    unsigned steps;
    unsigned closes;
};

/* Its type; several names, for tests that tell processes apart. The input is the actor, as by
 * api_world_payload. */
extern const skua_process_type sim_actor_type;
extern const skua_process_type sim_other_actor_type;

/* Submits an actor. */
void sim_submit(struct sim_scene *scene, struct sim_actor *actor);

/* Runs one to its end and returns how that was; it must come to it. */
skua_exit sim_run_actor(struct sim_scene *scene, sim_actor_fn *function, void *arg);

/* The completion with this tag among the events of a step, or null. */
skua_event *sim_completion(const struct sim_turn *turn, uint64_t tag);

/* Finishes without a result. */
int sim_done(const struct sim_turn *turn);

#endif
