/* SPDX-License-Identifier: MIT */
/* Workloads of finding processes by their names. */
#include <stdio.h>

#include "bench.h"

#define NAMES      1000u
#define NAME_SIZE  16u
#define FIND_TIMES 10000u /* each of them */

static struct {
    skua_runtime *runtime;
    char texts[NAMES][NAME_SIZE];
    skua_name numbers[NAMES];
    skua_pid pids[NAMES];
} directory;

static void fill_directory(skua_runtime *runtime)
{
    directory.runtime = runtime;
    for (uint32_t i = 0; i < NAMES; i++) {
        char *text = directory.texts[i];
        snprintf(text, NAME_SIZE, "process %u", i);
        const skua_spawn_options options = {.type = &bench_idler_type, .name = text};
        expect_ok(skua_process_submit_with(runtime, &options, &directory.pids[i]), "submit");
        expect_ok(skua_name_of(runtime, text, &directory.numbers[i]), "number");
    }
}

static bool finds_by_text(uint32_t i)
{
    skua_pid pid;
    return skua_name_find(directory.runtime, directory.texts[i], &pid) == 0 &&
           skua_pid_equal(pid, directory.pids[i]);
}

static bool finds_by_number(uint32_t i)
{
    skua_pid pid;
    return skua_name_holder(directory.runtime, directory.numbers[i], &pid) == 0 &&
           skua_pid_equal(pid, directory.pids[i]);
}

struct finder {
    uint32_t times;
    bool uses_numbers;
    uint64_t found;
};

static int finder_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)input;
    (void)input_count;
    ((struct finder *)self)->uses_numbers = skua_method(ctx)[0] == 'n';
    return 0;
}

/* Finds them all in one step, and again. */
static int finder_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct finder *finder = self;
    (void)events;
    (void)count;
    for (uint32_t i = 0; i < NAMES; i++) {
        finder->found += finder->uses_numbers ? finds_by_number(i) : finds_by_text(i);
    }
    finder->times++;
    return finder->times < FIND_TIMES ? skua_continue(ctx)
                                      : skua_done(ctx, skua_payload_u64(0, finder->found));
}

static const char *const finder_methods[] = {"text", "number", NULL};
static const skua_process_type finder_type = {
    .name = "finder",
    .state_size = sizeof(struct finder),
    .methods = finder_methods,
    .init = finder_init,
    .step = finder_step,
};

static struct measurement run_finder(uint32_t workers, const char *method)
{
    skua_runtime *runtime = bench_start(workers);
    fill_directory(runtime);
    return bench_run_counted(runtime, &finder_type, method, (uint64_t)NAMES * FIND_TIMES,
                             "name-find");
}

struct measurement bench_name_find(uint32_t workers)
{
    return run_finder(workers, "text");
}

struct measurement bench_name_number(uint32_t workers)
{
    return run_finder(workers, "number");
}
