/* SPDX-License-Identifier: MIT */
/* A program that is one process; and processes whose state is what they are started with. */
#include <errno.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

#include "actor.h"
#include "capture.h"

/* ---- skua_run ---- */

struct job {
    uint32_t first;
    uint32_t second;
};

/* Ends with the error that the second number says. */
static int job_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    const struct job *job = self;
    (void)events, (void)count;
    assert_int_equal(job->first, 7);
    return job->second == 0 ? skua_done(ctx, skua_payload_u64(0, 1)) : SKUA_E_TIMEOUT;
}

static const skua_process_type job_type = {"job", sizeof(struct job), skua_init_bytes,
                                           .step = job_step};

static skua_payload job_payload(struct job job)
{
    struct job *copy = malloc(sizeof job);
    *copy = job;
    return skua_payload_owned(0, copy, sizeof job, skua_drop_free);
}

TEST(program_that_ends_well_has_status_0_and_says_nothing)
{
    static struct capture capture;
    capture_begin(&capture);
    const int status = skua_run(NULL, &job_type, job_payload((struct job){7, 0}));
    const char *said = capture_end(&capture);
    assert_int_equal(status, 0);
    assert_string_equal(said, "");
}

TEST(program_that_fails_has_status_1_and_says_why)
{
    static struct capture capture;
    const skua_runtime_config impossible = {.worker_count = SKUA_WORKERS_MAX + 1};
    const skua_process_type nameless = {.step = job_step};
    const struct {
        const skua_runtime_config *config;
        const skua_process_type *type;
        int error;
    } rows[] = {
        {NULL, &job_type, SKUA_E_TIMEOUT},
        {NULL, &nameless, SKUA_E_INVALID},
        {NULL, NULL, SKUA_E_INVALID},
        {&impossible, &job_type, SKUA_E_INVALID},
    };
    FOR_ROWS (row, rows) {
        char expected[200];
        capture_begin(&capture);
        const int status =
            skua_run(row->config, row->type, job_payload((struct job){.first = 7, .second = 1}));
        const char *said = capture_end(&capture);
        snprintf(expected, sizeof expected, "%s: %s\n", program_invocation_short_name,
                 skua_error_text(row->error));
        assert_int_equal(status, 1);
        assert_string_equal(said, expected);
    }
}

/* ---- skua_init_bytes ---- */

static int run_with(skua_payload *inputs, size_t count)
{
    const skua_spawn_options options = {.type = &job_type, .input = inputs, .input_count = count};
    return skua_process_run_with(world_runtime(), &options, NULL);
}

TEST(inputs_become_the_state_one_after_the_other)
{
    static const uint32_t numbers[] = {7, 0};
    world_open();
    skua_payload whole = skua_payload_static(0, numbers, sizeof numbers);
    assert_int_equal(run_with(&whole, 1), 0);
    skua_payload parts[] = {skua_nothing(), skua_payload_static(0, &numbers[0], sizeof(uint32_t)),
                            skua_payload_static(0, &numbers[1], sizeof(uint32_t))};
    assert_int_equal(run_with(parts, 3), 0);
    skua_payload shorter = skua_payload_static(0, numbers, sizeof(uint32_t));
    assert_int_equal(run_with(&shorter, 1), 0); /* the rest is zero */
}

TEST(inputs_that_cannot_be_a_state_are_refused)
{
    static const char bytes[sizeof(struct job) + 1];
    int object = 0;
    world_open();
    skua_payload longer = skua_payload_static(0, bytes, sizeof bytes);
    assert_int_equal(run_with(&longer, 1), SKUA_E_PAYLOAD_SIZE);
    skua_payload two[] = {skua_payload_static(0, bytes, sizeof bytes - 1),
                          skua_payload_static(0, bytes, 1)};
    assert_int_equal(run_with(two, 2), SKUA_E_PAYLOAD_SIZE);
    skua_payload pointer = skua_payload_pointer(0, &object, NULL);
    assert_int_equal(run_with(&pointer, 1), SKUA_E_PAYLOAD_TYPE);
    assert_int_equal(skua_init_bytes(&object, NULL, NULL, 0), SKUA_E_INVALID);
}
