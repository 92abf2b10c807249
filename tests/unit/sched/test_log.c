/* SPDX-License-Identifier: MIT */
/* What the runtime has to say, and how often. */
#include "sched/log.h"

#include <stdio.h>

#include "sched/deliver.h"
#include "scheduler_rig.h"

#define SPAN       SKUA_SECOND
#define SPAN_LINES 5
#define TEXT_MAX   400

static struct {
    uint32_t count;
    char text[TEXT_MAX]; /* of the last line */
    skua_log last;
} lines;

static void keep_line(void *arg, const skua_log *log)
{
    assert_ptr_equal(arg, &lines);
    lines.count++;
    lines.last = *log;
    (void)snprintf(lines.text, sizeof lines.text, "%s", log->text);
    assert_null(strchr(log->text, '\n'));
}

static void open_log(void)
{
    scheduler_rig_open();
    memset(&lines, 0, sizeof lines);
    rig.sched.config.on_log = keep_line;
    rig.sched.config.on_log_arg = &lines;
}

static void fail_with(int error, uint64_t steps)
{
    const skua_exit exit = {.pid = {0x123}, .type = &rig_resting, .error = error};
    log_failure(&rig.sched, &exit, &(struct log_about){.steps = steps});
}

TEST(orderly_ends_are_known)
{
    static const struct {
        int error;
        bool is_orderly;
    } rows[] = {{0, true},
                {SKUA_E_STOPPED, true},
                {SKUA_E_CANCELLED, true},
                {SKUA_E_TERMINATED, false},
                {SKUA_E_USER, false},
                {-1, false}};
    FOR_ROWS (row, rows) {
        assert_int_equal(log_is_orderly(row->error), row->is_orderly);
    }
}

TEST(failure_names_process_type_step_and_error)
{
    open_log();
    fail_with(SKUA_E_NO_MEMORY, 42);
    assert_string_equal(lines.text, "process 0000000000000123 (resting) failed, step 42: "
                                    "SKUA_E_NO_MEMORY (-5002), out of memory");
    assert_int_equal(lines.last.level, SKUA_LOG_ERROR);
    assert_int_equal(lines.last.pid.bits, 0x123);
    assert_string_equal(lines.last.type_name, "resting");
}

TEST(failure_names_the_process_and_who_failed_first_if_there_is_such)
{
    open_log();
    skua_exit exit = {.pid = {0x123}, .type = &rig_resting, .error = SKUA_E_USER - 1};
    const struct log_about about = {.steps = 3, .name = "clock"};
    exit.cause = (skua_pid){0x456};
    log_failure(&rig.sched, &exit, &about);
    assert_string_equal(lines.text,
                        "process 0000000000000123 (resting, clock) failed, step 3: error -10001; "
                        "process 0000000000000456 failed first");
    exit.cause = exit.pid;
    log_failure(&rig.sched, &exit, &about);
    assert_string_equal(lines.text,
                        "process 0000000000000123 (resting, clock) failed, step 3: error -10001");
}

TEST(nobody_who_listens_is_told_nothing)
{
    open_log();
    rig.sched.config.on_log = NULL;
    fail_with(SKUA_E_USER, 1);
    log_misuse(worker(0)->context, "did something");
    rig.sched.config.on_log = keep_line;
    assert_int_equal(lines.count, 0);
    for (uint32_t i = 0; i < SPAN_LINES; i++) {
        fail_with(SKUA_E_USER, 1); /* and that has not counted */
    }
    assert_int_equal(lines.count, SPAN_LINES);
}

TEST(lines_of_one_span_are_limited_and_the_rest_is_counted)
{
    open_log();
    for (uint32_t i = 0; i < SPAN_LINES + 7; i++) {
        fail_with(SKUA_E_USER, 1);
        rig.now += SPAN / 20;
    }
    assert_int_equal(lines.count, SPAN_LINES);
    assert_null(strstr(lines.text, "left out"));
    rig.now = SCHEDULER_RIG_BEGIN + SPAN - 1;
    fail_with(SKUA_E_USER, 1);
    assert_int_equal(lines.count, SPAN_LINES);
    rig.now = SCHEDULER_RIG_BEGIN + SPAN;
    fail_with(SKUA_E_USER, 1);
    assert_int_equal(lines.count, SPAN_LINES + 1);
    assert_non_null(strstr(lines.text, " (lines left out before: 8)"));
    fail_with(SKUA_E_USER, 1);
    assert_int_equal(lines.count, SPAN_LINES + 2);
    assert_null(strstr(lines.text, "left out")); /* said once */
}

TEST(span_begins_with_its_first_line)
{
    open_log();
    rig.now += 100 * SPAN + SPAN / 2;
    for (uint32_t i = 0; i < SPAN_LINES; i++) {
        fail_with(SKUA_E_USER, 1);
    }
    rig.now += SPAN - 1;
    fail_with(SKUA_E_USER, 1);
    assert_int_equal(lines.count, SPAN_LINES);
    rig.now += 1;
    fail_with(SKUA_E_USER, 1);
    assert_int_equal(lines.count, SPAN_LINES + 1);
}

TEST(long_name_is_cut_and_the_line_has_its_end)
{
    static char name[1000];
    const skua_process_type type = {.name = name};
    open_log();
    memset(name, 'x', sizeof name - 1);
    const skua_exit exit = {.pid = {1}, .type = &type, .error = SKUA_E_CONTEXT, .cause = {2}};
    struct log_about about = {.steps = UINT64_MAX};
    memset(about.name, 'y', sizeof about.name - 1);
    for (uint32_t i = 0; i < SPAN_LINES + 1; i++) {
        log_failure(&rig.sched, &exit, &about);
    }
    rig.now += SPAN;
    log_failure(&rig.sched, &exit, &about); /* with a count at its end */
    assert_int_equal(lines.count, SPAN_LINES + 1);
    assert_in_range(strlen(lines.text), 100, 399);
}

/* ---- which ends of processes are told ---- */

static int error_of_step;

static int fail_in_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    return error_of_step;
}

static const skua_process_type failing = {.name = "failing", .step = fail_in_step};

TEST(process_that_fails_gives_a_line_unless_it_is_orderly)
{
    static const struct {
        int error;
        uint32_t lines;
        const char *name;
    } rows[] = {
        {SKUA_E_USER - 3, 1, "error "},
        {1, 1, "SKUA_E_INVALID"}, /* a positive number */
        {SKUA_E_CANCELLED, 0, NULL},
        {SKUA_E_STOPPED, 0, NULL},
    };
    FOR_ROWS (row, rows) {
        open_log();
        error_of_step = row->error;
        (void)rig_spawn(worker(0), &failing);
        rig_run_all();
        assert_int_equal(lines.count, row->lines);
        if (row->lines > 0) {
            assert_non_null(strstr(lines.text, "(failing) failed, step 1: "));
            assert_non_null(strstr(lines.text, row->name));
        }
    }
}

/* Whoever waits for it knows already. */
TEST(process_that_somebody_waits_for_gives_no_line)
{
    open_log();
    error_of_step = SKUA_E_USER;
    struct process *process = rig_spawn(worker(0), &failing);
    (void)deliver_request(&rig.sched, worker(0), rig_pid(process), STATE_WATCHED);
    rig_run_all();
    assert_int_equal(lines.count, 0);
}
