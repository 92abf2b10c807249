/* SPDX-License-Identifier: MIT */
#include "errand.h"

#include <skua/task.h>
#include <stdio.h>

/* The errands of a test or of a round. */
struct crew {
    struct crew *outer;
    struct errand *errands;
    uint64_t test_number;
};

static struct crew *crew;

/* ---- the process ---- */

static int init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    const int error = api_init_world(self, ctx, input, count);
    if (error == 0) {
        struct errand *errand = api_world(self);
        errand->pid = skua_self(ctx);
        (void)atomic_fetch_add(&errand->inits, 1);
    }
    return error;
}

static int run_main(void *self, skua_context *ctx)
{
    struct errand *errand = api_world(self);
    return errand->function(errand, ctx);
}

static int run_serve(void *self, skua_context *ctx, skua_event *event)
{
    struct errand *errand = api_world(self);
    return errand->serve(errand, ctx, event);
}

static void close_errand(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)ctx;
    struct errand *errand = api_world(self);
    if (errand != NULL) { /* otherwise its init had no input */
        errand->exit_error = exit->error;
        errand->exit_cause = exit->cause;
        (void)atomic_fetch_add(&errand->closes, 1);
        tally_add(&errand->closed, 1);
    }
}

/* ---- errands ---- */

static void check_errands(void)
{
    world_close(); /* all processes are gone then */
    struct errand *errand = crew->errands;
    crew = crew->outer;
    for (; errand != NULL; errand = errand->next) {
        if (errand->failures > 0) {
            fail_msg("%s: %s", errand->type.name, errand->failure);
        }
        assert_int_equal(errand->closes, errand->inits);
    }
}

static void join_crew(struct errand *errand)
{
    if (crew == NULL || crew->test_number != test_number) {
        struct crew *inner = test_alloc(sizeof *inner);
        *inner = (struct crew){.outer = crew, .test_number = test_number};
        crew = inner;
        test_at_end(check_errands);
    }
    errand->next = crew->errands;
    crew->errands = errand;
}

struct errand *errand_new(errand_fn *function)
{
    struct errand *errand = test_alloc(sizeof *errand);
    errand->type = (skua_process_type){.name = "errand",
                                       .state_size = sizeof(void *),
                                       .init = init,
                                       .main = run_main,
                                       .close = close_errand,
                                       .calls = true,
                                       .stack_size = (size_t)256 << 10}; /* room for sanitizers */
    errand->function = function;
    tally_init(&errand->closed);
    tally_init(&errand->noted);
    join_crew(errand);
    return errand;
}

struct errand *errand_new_server(errand_serve_fn *serve)
{
    struct errand *errand = errand_new(NULL);
    errand->type.main = NULL;
    errand->type.serve = run_serve;
    errand->serve = serve;
    return errand;
}

int errand_try_submit(struct errand *errand)
{
    skua_pid pid;
    const skua_payload self = api_world_payload(errand);
    return errand->host != 0
               ? skua_sim_host_submit(world_runtime(), errand->host, &errand->type, self, &pid)
               : skua_process_submit(world_runtime(), &errand->type, self, &pid);
}

void errand_submit(struct errand *errand)
{
    assert_int_equal(errand_try_submit(errand), 0);
}

struct errand *errand_start(errand_fn *function)
{
    struct errand *errand = errand_new(function);
    errand_submit(errand);
    return errand;
}

struct errand *errand_start_server(errand_serve_fn *serve)
{
    struct errand *errand = errand_new_server(serve);
    errand_submit(errand);
    return errand;
}

skua_exit errand_run(struct errand *errand)
{
    return api_run_process(world->api, &errand->type, errand);
}

void errands_go_on(uint64_t duration_ns)
{
    skua_runtime *runtime = world_runtime();
    if (!world->is_simulated) {
        world_advance(duration_ns);
        return;
    }
    assert_true(skua_sim_run(runtime, skua_sim_now(runtime) + duration_ns) >= 0);
}

void assert_errand_ended(struct errand *errand, int error)
{
    if (world->is_simulated) {
        errands_go_on(SKUA_MILLISECOND);
    } else {
        tally_wait(&errand->closed, errand->inits);
    }
    assert_int_equal(errand->closes, errand->inits);
    assert_int_equal(errand->exit_error, error);
}

/* ---- what they say ---- */

void note(struct errand *errand, uint64_t number)
{
    if (errand->note_count < ERRAND_NOTES_MAX) {
        errand->notes[errand->note_count++] = number;
    }
    tally_add(&errand->noted, 1);
}

void errand_check(struct errand *errand, bool holds, const char *what, int line)
{
    if (!holds && errand->failures++ == 0) {
        (void)snprintf(errand->failure, sizeof errand->failure, "line %d: not so: %s", line, what);
    }
}

uint64_t noted_error(int error)
{
    return (uint64_t)-error;
}

void assert_errand_noted(struct errand *errand, const uint64_t *expected, size_t count)
{
    assert_true(errand->failures == 0 || (print_message("%s\n", errand->failure), false));
    assert_int_equal(errand->note_count - errand->asserted, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(errand->notes[errand->asserted + i], expected[i]);
    }
    errand->asserted = errand->note_count;
}

void errand_send(const struct errand *errand, uint32_t type, uint64_t number)
{
    assert_int_equal(world_send(errand->pid, skua_payload_u64(type, number)), 0);
}

uint64_t receive_number(skua_context *ctx, uint64_t timeout_ns)
{
    skua_event *event;
    const int error = skua_task_receive(ctx, &event, timeout_ns);
    return error == 0 ? skua_payload_to_u64(&event->payload) : noted_error(error);
}
