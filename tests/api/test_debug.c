/* SPDX-License-Identifier: MIT */
/* A program that was started with SKUA_DEBUG: what it prints, and that it otherwise does what it
 * would do without. */
#include <inttypes.h>
#include <regex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "capture.h"
#include "runtime/runtime.h"
#include "sim_support.h"

static struct capture capture;

/* For the runtimes created from now on; null: none. */
static void set_debug(const char *list)
{
    assert_int_equal(list != NULL ? setenv("SKUA_DEBUG", list, 1) : unsetenv("SKUA_DEBUG"), 0);
}

static int forget_debug(void **state)
{
    (void)state;
    return unsetenv("SKUA_DEBUG");
}

/* The number of lines that a pattern matches as a whole. */
static size_t count_matches(const char *text, const char *pattern)
{
    char line[1000];
    regex_t regex;
    size_t matches = 0;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");
        assert_in_range(length, 0, sizeof line - 1);
        memcpy(line, text, length);
        line[length] = '\0';
        matches += regexec(&regex, line, 0, NULL, 0) == 0;
        text += length + (text[length] == '\n');
    }
    regfree(&regex);
    return matches;
}

/* ---- stall ---- */

/* A step that is stuck in a function which the dynamic linker knows by its name. */
struct captive {
    struct tally entered;
    struct tally released;
};

void stuck_in_this_function(struct captive *captive);

__attribute__((noinline)) void stuck_in_this_function(struct captive *captive)
{
    tally_add(&captive->entered, 1);
    tally_wait(&captive->released, 1);
    tally_add(&captive->entered, 1); /* no tail call, which would leave no frame */
}

static int captive_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    (void)ctx;
    (void)events;
    (void)count;
    stuck_in_this_function(api_world(self));
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type captive_type = {.name = "cap\ntive",
                                               .state_size = sizeof(void *),
                                               .init = api_init_world,
                                               .step = captive_step};

static void count_stall(void *arg, const skua_stall *stall)
{
    if (stall->elapsed_ns >= SKUA_MILLISECOND && strcmp(stall->type_name, "cap\ntive") == 0) {
        tally_add(arg, 1);
    }
}

/* One stuck step, until it has been printed and the program's own hook has been called. */
static skua_pid print_captive(const struct api *api, struct tally *own)
{
    struct captive captive;
    const uint64_t before = tally_count(own);
    tally_init(&captive.entered);
    tally_init(&captive.released);
    const skua_pid pid = api_submit(api, &captive_type, &captive);
    tally_wait(&captive.entered, 1);
    tally_wait(own, before + 1);
    tally_add(&captive.released, 1);
    api_wait_end(api, pid);
    return pid;
}

/* A thread that gets no CPU does not tell its backtrace in time, so this is tried a few times. */
static void stall_is_printed_with_type_and_backtrace(void **state)
{
    (void)state;
    char line[200];
    skua_pid pid = {0};
    uint64_t attempts = 0;
    struct api api;
    struct tally own;
    tally_init(&own);
    set_debug("stall=1ms");
    capture_begin(&capture);
    api_create(&api, (skua_runtime_config){.worker_count = 2,
                                           .stall_limit_ns = SKUA_DURATION_MAX,
                                           .on_stall = count_stall,
                                           .on_stall_arg = &own});
    api_start(&api);
    do {
        pid = print_captive(&api, &own);
        attempts++;
    } while (attempts < 100 && strstr(capture_read(&capture), "stuck_in_this_function") == NULL);
    api_stop(&api);
    const char *said = capture_end(&capture);

    assert_non_null(strstr(said, "(stuck_in_this_function+0x"));
    (void)snprintf(line, sizeof line,
                   "^skua: stall: process %016" PRIx64
                   " \\(cap\\?tive\\) has run for [1-9][0-9]* ms on worker [0-9]+$",
                   pid.bits);
    assert_int_equal(count_matches(said, line), 1);
    assert_int_equal(count_matches(said, "^skua: stall: .*cap.tive"), attempts);
}

static void stall_goes_before_the_configuration(void **state)
{
    (void)state;
    struct tally own;
    skua_runtime_config config = {.worker_count = 1,
                                  .stall_limit_ns = 7 * SKUA_MILLISECOND,
                                  .on_stall = count_stall,
                                  .on_stall_arg = &own};
    static const struct {
        const char *list;
        int signal;
        uint64_t limit_ns;
        int signal_in_force;
    } cases[] = {
        {NULL, 0, 7 * SKUA_MILLISECOND, 0},
        {"stall=25ms", 0, 25 * SKUA_MILLISECOND, SIGURG},
        {"stall=25ms", SIGUSR2, 25 * SKUA_MILLISECOND, SIGUSR2},
        {"schedtrace=1000", 0, 7 * SKUA_MILLISECOND, 0},
        {"stall=2ms", 0, 2 * SKUA_MILLISECOND, SIGURG},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) { /* the list is read for each of them */
        skua_runtime_config read;
        struct api api;
        set_debug(cases[i].list);
        config.stall_signal = cases[i].signal;
        api_create(&api, config);
        assert_int_equal(skua_runtime_config_read(api.runtime, &read), 0);
        assert_int_equal(read.stall_limit_ns, cases[i].limit_ns);
        assert_int_equal(read.stall_signal, cases[i].signal_in_force);
        assert_ptr_equal(read.on_stall, count_stall); /* as if nobody stood in between */
        assert_ptr_equal(read.on_stall_arg, &own);
        assert_int_equal(skua_runtime_destroy(api.runtime), 0);
    }
}

static void stall_without_a_hook_of_the_program_is_printed(void **state)
{
    (void)state;
    skua_runtime_config read;
    struct api api;
    struct captive captive;
    tally_init(&captive.entered);
    tally_init(&captive.released);
    set_debug("stall=1ms");
    capture_begin(&capture);
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    api_start(&api);
    (void)api_submit(&api, &captive_type, &captive);
    capture_wait(&capture, "(cap?tive) has run for ");
    tally_add(&captive.released, 1);
    (void)skua_runtime_config_read(api.runtime, &read);
    api_wait_live(&api, 0);
    api_stop(&api);
    (void)capture_end(&capture);
    assert_null(read.on_stall);
}

static void simulations_print_nothing(void **state)
{
    (void)state;
    skua_runtime_config read;
    struct sim_scene scene;
    set_debug("stall=1ms,schedtrace=1,nonsense");
    capture_begin(&capture);
    sim_begin(&scene, 1, (skua_sim_faults){0});
    (void)skua_runtime_config_read(scene.runtime, &read);
    sim_end(&scene);
    assert_string_equal(capture_end(&capture), "");
    assert_int_equal(read.stall_signal, 0);
    assert_null(read.on_stall);
}

static void wrong_settings_are_said_when_a_runtime_is_created(void **state)
{
    (void)state;
    struct api api;
    set_debug("nonsense,stall=3ms");
    for (int i = 0; i < 2; i++) {
        capture_begin(&capture);
        api_create(&api, (skua_runtime_config){.worker_count = 1});
        const char *said = capture_end(&capture);
        assert_string_equal(said, "skua: SKUA_DEBUG: 'nonsense': unknown setting; known are "
                                  "schedtrace and stall\n");
        assert_int_equal(api.runtime->sched.config.stall_limit_ns, 3 * SKUA_MILLISECOND);
        assert_int_equal(skua_runtime_destroy(api.runtime), 0);
    }
}

/* ---- schedtrace ---- */

#define WORKER "[0-9]+:(running|searching|parked|polling|resting):[0-9]+"
#define DELTA  "=\\+[0-9]+"
/* The first may come before the workers do. */
#define SCHEDTRACE_LINE                                                                            \
    "^skua: schedtrace: runtime=[0-9]+ ms=[0-9]+ live=[0-9]+ global=[0-9]+ workers=\\[(" WORKER    \
    "( " WORKER ")*)?\\] spawned" DELTA " finished" DELTA " messages" DELTA " steps" DELTA         \
    " stolen" DELTA " parks" DELTA " wakes" DELTA " stalls" DELTA "$"

/* The line about a runtime, as the thread that prints it would have it. */
static const char *line_about(const struct api *api, struct schedtrace *trace)
{
    static char buffer[1000];
    struct text line = {.at = buffer, .size = sizeof buffer};
    debug_format_schedtrace(trace, &api->runtime->sched, 1234567890, &line);
    assert_in_range(line.length, 1, sizeof buffer - 1);
    assert_int_equal(count_matches(buffer, SCHEDTRACE_LINE), 1);
    assert_ptr_equal(strchr(buffer, '\n'), buffer + line.length - 1);
    return buffer;
}

static bool all_are_parked(void *arg)
{
    const struct api *api = arg;
    struct scheduler *sched = &api->runtime->sched;
    return parking_asleep(&sched->parking) == sched->worker_count;
}

#define PROCESSES 12

static void schedtrace_says_what_has_happened_since_the_line_before(void **state)
{
    (void)state;
    struct schedtrace trace = {0};
    struct api api;
    api_run(&api, 1);
    wait_until(all_are_parked, &api, "the worker to park");
    const char *line = line_about(&api, &trace);
    assert_non_null(strstr(line, " ms=1234 live=0 global=0 workers=[0:parked:0] spawned=+0 "));

    for (int i = 0; i < PROCESSES; i++) {
        const skua_pid pid = api_submit(&api, &api_idler, NULL);
        assert_int_equal(skua_message_send(api.runtime, pid, skua_payload_empty(0)), 0);
        if (i > 0) {
            assert_int_equal(skua_process_cancel(api.runtime, pid, SKUA_E_CANCELLED), 0);
        }
    }
    api_wait_live(&api, 1);
    wait_until(all_are_parked, &api, "the worker to park");
    line = line_about(&api, &trace);
    assert_non_null(strstr(line, " live=1 "));
    assert_non_null(strstr(line, " spawned=+12 finished=+11 messages=+12 "));

    line = line_about(&api, &trace);
    assert_non_null(strstr(line, " live=1 "));
    assert_non_null(strstr(line, " spawned=+0 finished=+0 messages=+0 steps=+0 "));
    api_stop(&api);
}

/* Stays in its step, with a process in the queue behind it, or blocks. */
struct hermit {
    struct tally entered;
    struct tally released;
    bool blocks;
};

static int hermit_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct hermit *hermit = api_world(self);
    (void)events;
    (void)count;
    if (hermit->blocks) {
        (void)skua_blocking_begin(ctx);
    } else {
        (void)skua_context_spawn(ctx, &api_idler, NULL, NULL, 0, NULL);
    }
    tally_add(&hermit->entered, 1);
    tally_wait(&hermit->released, 1);
    if (hermit->blocks) {
        (void)skua_blocking_end(ctx);
    }
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type hermit_type = {
    .name = "hermit", .state_size = sizeof(void *), .init = api_init_world, .step = hermit_step};

static void hermit_start(struct hermit *hermit, const struct api *api)
{
    tally_init(&hermit->entered);
    tally_init(&hermit->released);
    (void)api_submit(api, &hermit_type, hermit);
    tally_wait(&hermit->entered, 1);
}

static void schedtrace_shows_a_worker_that_runs_and_what_waits_for_it(void **state)
{
    (void)state;
    struct schedtrace trace = {0};
    struct hermit hermit = {.blocks = false};
    struct api api;
    api_run(&api, 1);
    hermit_start(&hermit, &api);
    assert_non_null(strstr(line_about(&api, &trace), " workers=[0:running:1] "));
    tally_add(&hermit.released, 1);
    api_wait_live(&api, 1);
    api_stop(&api);
}

/* No worker does anything, nor will it. */
static bool all_sleep(void *arg)
{
    const struct api *api = arg;
    struct scheduler *sched = &api->runtime->sched;
    const uint32_t resting = load_seq_cst(&sched->spare.resting);
    return parking_asleep(&sched->parking) + resting == scheduler_threads(sched);
}

static bool spare_is_shown_to_rest(void *arg)
{
    const struct api *api = arg;
    struct schedtrace trace = {0};
    return count_matches(line_about(api, &trace), " [1-9][0-9]*:resting:0") == 1;
}

static void schedtrace_shows_a_spare_worker_that_rests(void **state)
{
    (void)state;
    struct probe probe = {.habit = PROBE_ENDS};
    struct hermit hermit = {.blocks = true};
    struct api api;
    api_run(&api, 1);
    hermit_start(&hermit, &api);
    (void)api_run_process(&api, &probe_type, &probe); /* on a spare worker; there may be two */
    tally_add(&hermit.released, 1);
    api_wait_live(&api, 0);
    wait_until(all_sleep, &api, "all workers to sleep");
    if (load_seq_cst(&api.runtime->sched.spare.resting) == 0) {
        struct blocker blocker; /* one that sleeps rests after the next process that it runs */
        blocker_start(&blocker, &api);
        (void)api_run_process(&api, &probe_type, &probe);
        blocker_release(&blocker);
        api_wait_end(&api, blocker.pid);
    }
    wait_until(spare_is_shown_to_rest, &api, "the spare worker to be shown");
    api_stop(&api);
}

static bool has_lines(void *arg)
{
    const size_t *count = arg;
    return count_matches(capture_read(&capture), SCHEDTRACE_LINE) >= *count;
}

static void assert_times_rise(const char *text)
{
    uint64_t last = 0;
    while ((text = strstr(text, " ms=")) != NULL) {
        text += strlen(" ms=");
        const uint64_t time = strtoull(text, NULL, 10);
        assert_true(time >= last);
        last = time;
    }
}

/* Lines come while the program does nothing and while it does something, from a thread that needs
 * no socket. */
static void schedtrace_is_printed_every_so_often(void **state)
{
    (void)state;
    struct api api;
    set_debug("schedtrace=1");
    capture_begin(&capture);
    api_run(&api, 2);
    wait_until(has_lines, &(size_t){3}, "lines");
    const skua_pid pid = api_submit(&api, &api_idler, NULL);
    capture_wait(&capture, " live=1 ");
    assert_int_equal(skua_process_cancel(api.runtime, pid, SKUA_E_CANCELLED), 0);
    api_stop(&api);
    const char *said = capture_end(&capture);
    assert_in_range(count_matches(said, SCHEDTRACE_LINE), 4, SIZE_MAX);
    assert_int_equal(count_matches(said, SCHEDTRACE_LINE), count_matches(said, ""));
    assert_times_rise(said);
}

/* That one wish of the environment cannot be fulfilled is no reason to drop the other. */
static void schedtrace_is_printed_without_the_socket_that_cannot_be_opened(void **state)
{
    (void)state;
    struct api api;
    set_debug("schedtrace=1");
    assert_int_equal(setenv("SKUA_INSPECT", "1", 1), 0);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", "/proc", 1), 0);
    capture_begin(&capture);
    api_run(&api, 1);
    wait_until(has_lines, &(size_t){1}, "lines");
    api_stop(&api);
    const char *said = capture_end(&capture);
    assert_int_equal(unsetenv("SKUA_INSPECT"), 0);
    assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
    assert_int_equal(count_matches(said, "^skua: SKUA_INSPECT: .*No such file or directory"), 1);
    assert_int_equal(count_matches(said, ""), 1 + count_matches(said, SCHEDTRACE_LINE));
}

int main(void)
{
#define DEBUG_TEST(test) cmocka_unit_test_teardown(test, forget_debug)
    const struct CMUnitTest tests[] = {
        DEBUG_TEST(stall_is_printed_with_type_and_backtrace),
        DEBUG_TEST(stall_goes_before_the_configuration),
        DEBUG_TEST(stall_without_a_hook_of_the_program_is_printed),
        DEBUG_TEST(simulations_print_nothing),
        DEBUG_TEST(wrong_settings_are_said_when_a_runtime_is_created),
        DEBUG_TEST(schedtrace_says_what_has_happened_since_the_line_before),
        DEBUG_TEST(schedtrace_shows_a_worker_that_runs_and_what_waits_for_it),
        DEBUG_TEST(schedtrace_shows_a_spare_worker_that_rests),
        DEBUG_TEST(schedtrace_is_printed_every_so_often),
        DEBUG_TEST(schedtrace_is_printed_without_the_socket_that_cannot_be_opened),
    };
    api_stall_limit_ns = API_NEVER_STUCK;
    watchdog_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
