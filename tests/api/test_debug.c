/* SPDX-License-Identifier: MIT */
/* A program that was started with SKUA_DEBUG: what it prints, and that it otherwise does what it
 * would do without. */
#include <inttypes.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>

#include "actor.h"
#include "capture.h"
#include "idlers.h"
#include "runtime/runtime.h"
#include "workers.h"

static struct capture capture;

static void forget_debug(void)
{
    assert_int_equal(unsetenv("SKUA_DEBUG"), 0);
}

/* For the runtimes created from now on, until the end of the test; null: none. */
static void set_debug(const char *list)
{
    assert_int_equal(list != NULL ? setenv("SKUA_DEBUG", list, 1) : unsetenv("SKUA_DEBUG"), 0);
    test_at_end(forget_debug);
}

static skua_runtime_config config_in_force(void)
{
    skua_runtime_config config;
    assert_int_equal(skua_runtime_config_read(world_runtime(), &config), 0);
    return config;
}

/* The number of lines that a pattern matches. */
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

/* The dynamic linker does not know it. It calls itself so many times. */
__attribute__((noinline)) static void stuck_in_this_function(struct turn *turn, uint64_t depth)
{
    if (depth > 0) {
        stuck_in_this_function(turn, depth - 1);
    } else {
        (void)perform(turn, holds());
    }
    turn->actor->counter++; /* no tail call, which would leave no frame */
}

static int get_stuck(struct turn *turn, const struct act *act)
{
    stuck_in_this_function(turn, act->number);
    return 0;
}

static struct actor *captive_start(uint64_t depth)
{
    struct actor *captive = actor_new(ACTS({.perform = get_stuck, .number = depth}, finishes(0)));
    captive->type.name = "cap\ntive";
    actor_submit(captive);
    actor_await_held(captive, 1);
    return captive;
}

static void count_stall(void *arg, const skua_stall *stall)
{
    if (stall->elapsed_ns >= SKUA_MILLISECOND && strcmp(stall->type_name, "cap\ntive") == 0) {
        tally_add(arg, 1);
    }
}

/* A report is a line about the process, and one for each frame that is shown. */
#define FRAME_LINE "^    [^ ]+(\\+0x[0-9a-f]+)? (\\(.*\\))$"
#define GAP_LINE   "^    \\.\\.\\. [0-9]+ more \\.\\.\\.$"
#define FRAMES_MAX 16

/* So the monitor has seen it stuck a few times more. */
static bool has_run_on(void *arg)
{
    return world_info(*(const skua_pid *)arg).run_ns >= 20 * SKUA_MILLISECOND;
}

/* Has a step get stuck, again and again until its backtrace is there: a thread that gets no CPU
 * does not tell it in time. Returns what was printed. */
static const char *print_stall(uint64_t depth, struct tally *own)
{
    const char *wanted = "    stuck_in_this_function+0x";
    uint64_t attempts = 0;
    skua_pid pid;
    char line[200];
    tally_init(own);
    set_debug("stall=1ms");
    capture_begin(&capture);
    world_open_with((skua_runtime_config){.worker_count = 2,
                                          .stall_limit_ns = SKUA_DURATION_MAX,
                                          .on_stall = count_stall,
                                          .on_stall_arg = own});
    do {
        struct actor *captive = captive_start(depth);
        tally_wait(own, ++attempts); /* it has been printed then */
        pid = captive->pid;
        wait_until(has_run_on, &pid, "more samples of the stuck step");
        actor_let_go(captive);
        actor_await_end(captive);
    } while (attempts < 100 && strstr(capture_read(&capture), wanted) == NULL);
    world_close();
    const char *said = capture_end(&capture);
    assert_non_null(strstr(said, wanted));
    assert_int_equal(count_matches(said, "^skua: stall: .*cap.tive"), attempts);
    (void)snprintf(line, sizeof line,
                   "^skua: stall: process %016" PRIx64
                   " \\(cap\\?tive\\) has run for [1-9][0-9]* ms on worker [0-9]+$",
                   pid.bits);
    assert_int_equal(count_matches(said, line), 1);
    return said;
}

TEST(stall_is_printed_with_type_and_backtrace)
{
    struct tally own; /* calls of the program's own hook */
    const char *said = print_stall(0, &own);
    assert_int_equal(
        count_matches(said, "^    stuck_in_this_function\\+0x[0-9a-f]+ \\(test_debug\\)$"), 1);
    assert_int_equal(count_matches(said, "^    (step_run|worker_main|start_thread)\\+"), 0);
    assert_int_equal(count_matches(said, ""),
                     count_matches(said, "^skua: stall: ") + count_matches(said, FRAME_LINE));
}

TEST(stall_deep_down_is_printed_in_part)
{
    struct tally own;
    const char *said = strstr(print_stall(40, &own), "\n    ") + 1; /* the first with frames */
    const size_t lines = count_matches(said, FRAME_LINE) + count_matches(said, GAP_LINE);
    assert_int_equal(count_matches(said, GAP_LINE), 1);
    assert_int_equal(lines, FRAMES_MAX);
    assert_int_equal(count_matches(said, ""), lines);
}

TEST(stall_goes_before_the_configuration)
{
    static const struct {
        const char *list;
        int signal;
        uint64_t limit_ns;
        int signal_in_force;
    } rows[] = {
        {NULL, 0, 7 * SKUA_MILLISECOND, 0},
        {"stall=25ms", 0, 25 * SKUA_MILLISECOND, SIGURG},
        {"stall=25ms", SIGUSR2, 25 * SKUA_MILLISECOND, SIGUSR2},
        {"schedtrace=1000", 0, 7 * SKUA_MILLISECOND, 0},
        {"stall=2ms", 0, 2 * SKUA_MILLISECOND, SIGURG},
    };
    FOR_ROWS (row, rows) { /* the list is read for each of them */
        struct tally own;
        set_debug(row->list);
        world_create((skua_runtime_config){.worker_count = 1,
                                           .stall_limit_ns = 7 * SKUA_MILLISECOND,
                                           .stall_signal = row->signal,
                                           .on_stall = count_stall,
                                           .on_stall_arg = &own});
        const skua_runtime_config read = config_in_force();
        assert_int_equal(read.stall_limit_ns, row->limit_ns);
        assert_int_equal(read.stall_signal, row->signal_in_force);
        assert_ptr_equal(read.on_stall, count_stall); /* as if nobody stood in between */
        assert_ptr_equal(read.on_stall_arg, &own);
    }
}

TEST(stall_without_a_hook_of_the_program_is_printed)
{
    set_debug("stall=1ms");
    capture_begin(&capture);
    world_open_with((skua_runtime_config){.worker_count = 1});
    struct actor *captive = captive_start(0);
    capture_wait(&capture, "(cap?tive) has run for ");
    actor_let_go(captive);
    const skua_runtime_config read = config_in_force();
    world_close();
    (void)capture_end(&capture);
    assert_null(read.on_stall);
}

TEST(simulations_print_nothing)
{
    set_debug("stall=1ms,schedtrace=1,nonsense");
    capture_begin(&capture);
    world_open_sim(1, (skua_sim_faults){0});
    const skua_runtime_config read = config_in_force();
    world_close();
    assert_string_equal(capture_end(&capture), "");
    assert_int_equal(read.stall_signal, 0);
    assert_null(read.on_stall);
}

TEST(wrong_settings_are_said_whenever_a_runtime_is_created)
{
    FOR_ROUNDS (round, 2) {
        set_debug("nonsense,stall=3ms");
        capture_begin(&capture);
        world_create((skua_runtime_config){.worker_count = 1});
        assert_string_equal(capture_end(&capture),
                            "skua: SKUA_DEBUG: 'nonsense': unknown setting; known are migrate, "
                            "schedtrace, stacks and stall\n");
        assert_int_equal(world_runtime()->sched.config.stall_limit_ns, 3 * SKUA_MILLISECOND);
    }
}

/* ---- schedtrace ---- */

#define WORKER "[0-9]+:(running|searching|parked|polling|resting):[0-9]+"
#define DELTA  "=\\+[0-9]+"
/* The first may come before the workers do. */
#define SCHEDTRACE_LINE                                                                            \
    "^skua: schedtrace: runtime=[0-9]+ ms=[0-9]+ live=[0-9]+ global=[0-9]+ behind=[0-9]+ "         \
    "workers=\\[(" WORKER "( " WORKER ")*)?\\] spawned" DELTA " finished" DELTA " messages" DELTA  \
    " steps" DELTA " stolen" DELTA " parks" DELTA " wakes" DELTA " stalls" DELTA "$"

/* The line about the runtime, as the thread that prints it would have it. */
static const char *line_since(struct schedtrace *trace)
{
    static char buffer[1000];
    struct text line = {.at = buffer, .size = sizeof buffer};
    debug_format_schedtrace(trace, &world_runtime()->sched, 1234567890, &line);
    assert_in_range(line.length, 1, sizeof buffer - 1);
    assert_int_equal(count_matches(buffer, SCHEDTRACE_LINE), 1);
    assert_ptr_equal(strchr(buffer, '\n'), buffer + line.length - 1);
    return buffer;
}

TEST(schedtrace_says_what_has_happened_since_the_line_before)
{
    struct schedtrace trace = {0};
    world_open_with((skua_runtime_config){.worker_count = 1});
    workers_await_asleep(0);
    const char *line = line_since(&trace);
    assert_non_null(
        strstr(line, " ms=1234 live=0 global=0 behind=0 workers=[0:parked:0] spawned=+0 "));
    for (int i = 0; i < 12; i++) {
        const skua_pid pid = api_submit(world->api, &api_idler, NULL);
        assert_int_equal(world_send(pid, skua_payload_empty(0)), 0);
        if (i > 0) {
            assert_int_equal(world_cancel(pid, SKUA_E_CANCELLED), 0);
        }
    }
    world_await_live(1);
    workers_await_asleep(0);
    line = line_since(&trace);
    assert_non_null(strstr(line, " live=1 "));
    assert_non_null(strstr(line, " spawned=+12 finished=+11 messages=+12 "));
    line = line_since(&trace);
    assert_non_null(strstr(line, " live=1 "));
    assert_non_null(strstr(line, " spawned=+0 finished=+0 messages=+0 steps=+0 "));
}

TEST(schedtrace_shows_a_worker_that_runs_and_what_waits_for_it)
{
    struct schedtrace trace = {0};
    world_open_with((skua_runtime_config){.worker_count = 1});
    struct actor *behind = actor_new(NO_ACTS);
    struct actor *hermit = actor_start(ACTS(spawns(behind), holds()));
    actor_await_held(hermit, 1);
    assert_non_null(strstr(line_since(&trace), " workers=[0:running:1] "));
    actor_let_go(hermit);
}

static bool spare_is_shown_to_rest(void *arg)
{
    struct schedtrace trace = {0};
    (void)arg;
    return count_matches(line_since(&trace), " [1-9][0-9]*:resting:0") == 1;
}

TEST(schedtrace_shows_a_spare_worker_that_rests)
{
    world_open_with((skua_runtime_config){.worker_count = 1});
    struct actor *hermit = actor_start(ACTS(blocks(), finishes(0)));
    actor_await_held(hermit, 1);
    assert_result(actor_run(actor_new(ACTS(finishes(1)))), 1); /* there may be two */
    actor_let_go(hermit);
    world_await_live(0);
    workers_let_spares_rest();
    wait_until(spare_is_shown_to_rest, NULL, "the spare worker to be shown");
}

static bool has_lines(void *arg)
{
    return count_matches(capture_read(&capture), SCHEDTRACE_LINE) >= *(const size_t *)arg;
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
TEST(schedtrace_is_printed_every_so_often)
{
    set_debug("schedtrace=1");
    capture_begin(&capture);
    world_open_with((skua_runtime_config){.worker_count = 2});
    wait_until(has_lines, &(size_t){3}, "lines");
    (void)idler_start();
    capture_wait(&capture, " live=1 ");
    world_close();
    const char *said = capture_end(&capture);
    assert_in_range(count_matches(said, SCHEDTRACE_LINE), 4, SIZE_MAX);
    assert_int_equal(count_matches(said, SCHEDTRACE_LINE), count_matches(said, ""));
    assert_times_rise(said);
}

/* That one wish of the environment cannot be fulfilled is no reason to drop the other. */
TEST(schedtrace_is_printed_without_the_socket_that_cannot_be_opened)
{
    set_debug("schedtrace=1");
    assert_int_equal(setenv("SKUA_INSPECT", "1", 1), 0);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", "/proc", 1), 0);
    capture_begin(&capture);
    world_open_with((skua_runtime_config){.worker_count = 1});
    wait_until(has_lines, &(size_t){1}, "lines");
    world_close();
    const char *said = capture_end(&capture);
    assert_int_equal(unsetenv("SKUA_INSPECT"), 0);
    assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
    assert_int_equal(count_matches(said, "^skua: SKUA_INSPECT: .*No such file or directory"), 1);
    assert_int_equal(count_matches(said, ""), 1 + count_matches(said, SCHEDTRACE_LINE));
}
