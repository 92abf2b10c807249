/* SPDX-License-Identifier: MIT */
/* What the tests of the public interface share: a runtime whose memory is accounted for, handshakes
 * between threads and steps, payloads that count their drops, and a few stock processes.
 *
 * Functions that assert are for the thread of the test only; the others say so. */
#ifndef SKUA_TESTS_API_SUPPORT_H
#define SKUA_TESTS_API_SUPPORT_H

#include <pthread.h>
#include <skua/skua.h>
#include <stdatomic.h>

#include "counting_allocator.h"
#include "test.h"

/* ---- a runtime ---- */

struct api {
    skua_runtime *runtime;
    struct counting_allocator memory;
};

/* The stall limit of runtimes whose configuration has none: at first one that no step reaches, so
 * that no spare worker steps in for a step that the test takes its time with. Zero: the library's
 * default. */
#define API_NEVER_STUCK SKUA_DURATION_MAX
extern uint64_t api_stall_limit_ns;

/* Creates a runtime with this configuration and a counting allocator. */
void api_create(struct api *api, skua_runtime_config config);

/* Starts what api_create made. */
void api_start(struct api *api);

/* Both, with the defaults. */
void api_run(struct api *api, uint32_t workers);

/* Stops and destroys the runtime: every process has to finish by itself, and every block of memory
 * has to be back. */
void api_stop(struct api *api);

/* The same, where some processes ignore the cancel event and have to be ended. */
void api_stop_by_force(struct api *api);

/* Destroys a runtime that was stopped or never started: no process and no memory is left. */
void api_destroy(struct api *api);

skua_stats api_stats(const struct api *api);

/* ---- waiting; all of these abort the program if it takes minutes ---- */

/* A number that only grows and that threads can wait for. Any thread; steps too, if the test wants
 * them to block. Nothing to release. */
struct tally {
    pthread_mutex_t lock;
    pthread_cond_t grown;
    uint64_t count;
};

void tally_init(struct tally *tally);
void tally_add(struct tally *tally, uint64_t amount);
void tally_wait(struct tally *tally, uint64_t at_least);
uint64_t tally_count(struct tally *tally);

/* Until a process is in this state. Any thread. A step can announce that it is about to return,
 * but only looking shows that the process rests. */
void api_wait_state(const struct api *api, skua_pid pid, enum skua_process_state state);

/* Until a process has had so many steps, or is gone. Any thread. */
void api_wait_steps(const struct api *api, skua_pid pid, uint64_t at_least);

/* Until so many processes are alive and the places of all others are free again. Any thread. */
void api_wait_live(const struct api *api, uint64_t count);

/* ---- payloads that count their drops ---- */

struct tracked {
    atomic_uint drops;
    uint64_t value;
};

/* A payload with the bytes of *item, whose drop only counts: a second one does not go unnoticed.
 * Any thread. */
skua_payload tracked_payload(uint32_t type, struct tracked *item);

/* The same, but it claims to be one byte longer than `limit`; nobody may look at its bytes. */
skua_payload tracked_oversized(size_t limit, struct tracked *item);

/* The number in such a payload. Any thread. */
uint64_t tracked_value(const skua_payload *payload);

void assert_drops(struct tracked *items, size_t count, unsigned expected);

/* Until the item has been dropped: for what a worker drops after others can see that its holder is
 * gone. */
void await_drop(struct tracked *item);

/* ---- threads ---- */

/* Runs function(args[i]) on `count` threads, which begin at the same time, and joins them. `args`
 * is an array of objects of `arg_size` bytes. */
void api_in_threads(size_t count, void (*function)(void *arg), void *args, size_t arg_size);

/* ---- processes ---- */

/* An init for types whose state begins with a pointer to what the test and its processes share: it
 * takes the pointer from the first input. */
int api_init_world(void *self, skua_context *ctx, skua_payload *input, size_t input_count);

/* What api_init_world has stored. */
void *api_world(const void *self);

/* The input of such a process. */
skua_payload api_world_payload(void *world);

/* Submits such a process. */
skua_pid api_submit(const struct api *api, const skua_process_type *type, void *world);

/* Submits one and returns how it ended. */
skua_exit api_run_process(const struct api *api, const skua_process_type *type, void *world);

/* Waits for the end of a process that may already be over, so how it ended is not told. */
void api_wait_end(const struct api *api, skua_pid pid);

/* Does nothing until it is cancelled. */
extern const skua_process_type api_idler;

#endif
