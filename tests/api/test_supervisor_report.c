/* SPDX-License-Identifier: MIT */
/* Supervisors: their reports, and what they say in the log. */
#include <pthread.h>
#include <stdio.h>

#include "actor.h"
#include "timers.h"
#include "wards.h"

#define LINES_MAX 16

static struct {
    size_t count;
    struct {
        enum skua_log_level level;
        skua_pid pid;
        char text[400];
    } list[LINES_MAX];
} lines;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void note_line(void *arg, const skua_log *log)
{
    (void)arg;
    (void)pthread_mutex_lock(&lock);
    if (lines.count < LINES_MAX) {
        lines.list[lines.count].level = log->level;
        lines.list[lines.count].pid = log->pid;
        (void)snprintf(lines.list[lines.count].text, 400, "%s", log->text);
    }
    lines.count++;
    (void)pthread_mutex_unlock(&lock);
}

static void open_wards(void)
{
    memset(&lines, 0, sizeof lines);
    world_open_virtual_with((skua_runtime_config){.on_log = note_line});
    wards_open();
}

/* A line about a process, whose PID takes the place of "%s". */
static void assert_line(size_t number, enum skua_log_level level, const char *format, skua_pid pid)
{
    char expected[400];
    char digits[SKUA_PID_TEXT_SIZE];
    assert_true(number < lines.count);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(expected, sizeof expected, format, skua_pid_format(pid, digits));
#pragma GCC diagnostic pop
    assert_string_equal(lines.list[number].text, expected);
    assert_int_equal(lines.list[number].level, level);
    assert_int_equal(lines.list[number].pid.bits, pid.bits);
}

/* ---- reports ---- */

TEST(a_report_says_what_children_do)
{
    static const skua_child template = {.name = "more", .type = &other_ward_type};
    open_wards();
    skua_child slow = ward('d');
    slow.start_ns = SKUA_FOREVER;
    ward_of('d')->habits.is_never_ready = true;
    skua_child done = ward('a');
    done.restart = SKUA_RESTART_ON_ERROR;
    const skua_supervisor *inner =
        specification_copy((skua_supervisor){.name = "inner", WARDS(ward('z'))});
    const skua_pid top = supervise((skua_supervisor){
        .name = "top",
        WARDS(done, ward('b'), {.name = "c", .supervisor = inner}, slow, ward('e')),
        .templates = &template,
        .template_count = 1});
    const uint64_t begin = world_now();
    ward_finish('a');
    ward_fail('b', SKUA_E_USER);
    ward_fail('b', SKUA_E_USER - 1);

    const skua_child_report a = report_on(top, "a");
    assert_int_equal(a.state, SKUA_CHILD_STOPPED);
    assert_true(a.is_over);
    assert_int_equal(a.pid.bits, 0);
    assert_ptr_equal(a.type, &ward_type);
    const skua_child_report b = report_on(top, "b");
    assert_int_equal(b.state, SKUA_CHILD_WAITING);
    assert_int_equal(b.last_error, SKUA_E_USER - 1);
    assert_int_equal(b.restarts, 1);
    assert_in_range(b.next_start, begin + 7 * SKUA_MILLISECOND, begin + 13 * SKUA_MILLISECOND);
    const skua_child_report c = report_on(top, "c");
    assert_int_equal(c.state, SKUA_CHILD_RUNNING);
    assert_true(c.is_supervisor);
    assert_int_equal(report_on(c.pid, "z").pid.bits, ward_of('z')->pid.bits);
    assert_int_equal(report_on(top, "d").state, SKUA_CHILD_STARTING);
    const skua_child_report e = report_on(top, "e");
    assert_int_equal(e.state, SKUA_CHILD_STOPPED);
    assert_false(e.is_over || e.is_supervisor || e.is_dynamic);
    assert_int_equal(e.started_at, 0);
    assert_int_equal(report_size(top), 5);
}

static int ask_for_report(struct turn *turn, const struct act *act)
{
    return skua_yield_supervisor_report(turn->ctx, 1, *(const skua_pid *)act->arg, SKUA_SECOND);
}

static int read_report(struct turn *turn, const struct act *act)
{
    skua_child_report child;
    (void)act;
    assert_int_equal(turn->count, 1);
    assert_int_equal(skua_report_count(&turn->events[0].payload), 2);
    assert_int_equal(skua_report_child(&turn->events[0].payload, 1, &child), 0);
    assert_string_equal(child.name, "b");
    assert_int_equal(skua_report_child(&turn->events[0].payload, 2, &child), SKUA_E_INVALID);
    return 0;
}

TEST(a_process_can_ask_for_a_report)
{
    open_wards();
    skua_pid top = supervise((skua_supervisor){.name = "top", WARDS(ward('a'), ward('b'))});
    struct actor *actor = actor_new(
        ACTS(does(ask_for_report, &top), awaits(1), does(read_report, NULL), finishes(1)));
    assert_result(actor_run(actor), 1);
}

TEST(what_is_no_report_has_no_children)
{
    skua_child_report child;
    const skua_payload nothing = skua_nothing();
    const skua_payload other = skua_payload_u64(SKUA_SUPERVISOR_REPORT, 7);
    assert_int_equal(skua_report_count(NULL), 0);
    assert_int_equal(skua_report_count(&nothing), 0);
    assert_int_equal(skua_report_count(&other), 0);
    assert_int_equal(skua_report_child(&other, 0, &child), SKUA_E_INVALID);
    assert_int_equal(skua_report_child(&nothing, 0, NULL), SKUA_E_INVALID);
}

TEST(other_questions_are_refused)
{
    open_wards();
    skua_payload reply;
    const skua_pid top = supervise((skua_supervisor){.name = "top", WARDS(ward('a'))});
    assert_int_equal(
        skua_process_call(world_runtime(), top, skua_payload_u64(1, 1), SKUA_FOREVER, &reply),
        SKUA_E_INVALID);
    assert_int_equal(world_send(top, skua_payload_u64(1, 1)), 0); /* nor does it mind messages */
    world_settle();
    assert_diary("+a");
}

TEST(states_have_names)
{
    assert_string_equal(skua_child_state_name(SKUA_CHILD_STOPPED), "stopped");
    assert_string_equal(skua_child_state_name(SKUA_CHILD_STARTING), "starting");
    assert_string_equal(skua_child_state_name(SKUA_CHILD_RUNNING), "running");
    assert_string_equal(skua_child_state_name(SKUA_CHILD_WAITING), "waiting");
    assert_string_equal(skua_child_state_name(SKUA_CHILD_STOPPING), "stopping");
    assert_string_equal(skua_child_state_name((enum skua_child_state)9), "?");
}

/* ---- the log ---- */

TEST(every_restart_is_in_the_log)
{
    open_wards();
    skua_child child = ward('a');
    child.backoff.first_ns = child.backoff.max_ns = 1; /* no random digits in the line */
    child.budget = (skua_budget){2, 3 * SKUA_SECOND};
    (void)supervise((skua_supervisor){.name = "top", WARDS(child)});
    skua_pid pids[3];
    for (size_t i = 0; i < 3; i++) {
        pids[i] = ward_of('a')->pid;
        ward_fail('a', i == 0 ? SKUA_E_USER : SKUA_E_TIMEOUT);
        world_advance(SKUA_MILLISECOND);
    }
    world_await_live(0);
    assert_line(0, SKUA_LOG_WARNING,
                "supervisor top: child a (%s) failed with error -10000; starting it again now",
                pids[0]);
    assert_line(
        1, SKUA_LOG_WARNING,
        "supervisor top: child a (%s) failed with SKUA_E_TIMEOUT (-5016); starting it again "
        "in 0 us",
        pids[1]);
    assert_line(
        2, SKUA_LOG_ERROR,
        "supervisor top: child a (%s) failed with SKUA_E_TIMEOUT (-5016); giving up after 2 "
        "restarts of this child in 3 s",
        pids[2]);
}

TEST(starts_that_fail_are_in_the_log)
{
    open_wards();
    ward_of('a')->habits = (struct ward_habits){.init_error = SKUA_E_USER, .init_failures = 1};
    ward_of('b')->habits = (struct ward_habits){.init_error = SKUA_E_USER, .init_failures = 1};
    skua_child never = ward('b');
    never.restart = SKUA_RESTART_NEVER;
    (void)supervise((skua_supervisor){.name = "top", WARDS(ward('a'), never)});
    assert_int_equal(lines.count, 2);
    assert_string_equal(lines.list[0].text,
                        "supervisor top: child a could not start, error -10000; "
                        "starting it again now");
    assert_string_equal(lines.list[1].text,
                        "supervisor top: child b could not start, error -10000; "
                        "not restarting it");
}

TEST(one_that_is_not_ready_in_time_is_in_the_log)
{
    open_wards();
    skua_child child = ward('a');
    child.start_ns = SKUA_SECOND;
    child.budget = (skua_budget){1, 60 * SKUA_SECOND};
    ward_of('a')->habits.is_never_ready = true;
    (void)supervise((skua_supervisor){.name = "top", WARDS(child)});
    skua_pid pids[2];
    for (size_t i = 0; i < COUNT_OF(pids); i++) {
        pids[i] = ward_of('a')->pid;
        world_advance(SKUA_SECOND + SKUA_MILLISECOND);
    }
    world_await_live(0);
    assert_line(0, SKUA_LOG_WARNING,
                "supervisor top: child a (%s) was not ready within 1 s (start_ns); starting it "
                "again now",
                pids[0]);
    assert_line(1, SKUA_LOG_ERROR,
                "supervisor top: child a (%s) was not ready within 1 s (start_ns); giving up after "
                "1 restart of this child in 60 s",
                pids[1]);
}

TEST(who_holds_the_name_of_a_child_is_in_the_log)
{
    open_wards();
    skua_child child = ward('a');
    child.registered = true;
    child.restart = SKUA_RESTART_NEVER;
    skua_pid holder;
    assert_int_equal(
        skua_process_submit_with(world_runtime(),
                                 &(skua_spawn_options){.type = &ward_type,
                                                       .name = "a",
                                                       .input = (skua_payload[]){ward_input('z')},
                                                       .input_count = 1},
                                 &holder),
        0);
    (void)supervise((skua_supervisor){.name = "top", WARDS(child)});
    char digits[SKUA_PID_TEXT_SIZE];
    char expected[200];
    (void)snprintf(expected, sizeof expected,
                   "supervisor top: child a could not start, SKUA_E_NAME_TAKEN (-5044) by %s; not "
                   "restarting it",
                   skua_pid_format(holder, digits));
    assert_string_equal(lines.list[0].text, expected);
}

TEST(those_that_are_started_again_with_others_are_in_the_log)
{
    open_wards();
    skua_child never = ward('c');
    never.restart = SKUA_RESTART_NEVER;
    (void)supervise((skua_supervisor){.name = "top",
                                      .strategy = SKUA_STRATEGY_ALL,
                                      WARDS(ward('a'), ward('b'), never, ward('d'))});
    const skua_pid pids[] = {ward_of('a')->pid, ward_of('c')->pid, ward_of('d')->pid};
    ward_fail('b', SKUA_E_USER);
    assert_int_equal(lines.count, 4);
    assert_non_null(strstr(lines.list[0].text, "; starting it again now with 2 others"));
    assert_line(1, SKUA_LOG_WARNING,
                "supervisor top: child a (%s) is stopped and started again with child b", pids[0]);
    assert_line(2, SKUA_LOG_WARNING,
                "supervisor top: child c (%s) is stopped for good with child b", pids[1]);
    assert_line(3, SKUA_LOG_WARNING,
                "supervisor top: child d (%s) is stopped and started again with child b", pids[2]);
}

TEST(orderly_ends_are_not_worth_a_line)
{
    open_wards();
    skua_child child = ward('a');
    child.restart = SKUA_RESTART_ON_ERROR;
    (void)supervise((skua_supervisor){.name = "top", WARDS(child)});
    ward_finish('a');
    world_stop();
    assert_int_equal(lines.count, 0);
}

TEST(a_wrong_specification_is_in_the_log)
{
    open_wards();
    skua_child child = ward('a');
    child.budget.restarts = 1;
    assert_int_equal(skua_process_start_supervisor(
                         world_runtime(),
                         specification_copy((skua_supervisor){.name = "top", WARDS(child)}), NULL),
                     SKUA_E_SPECIFICATION);
    assert_int_equal(lines.count, 1);
    assert_string_equal(lines.list[0].text,
                        "supervisor top, child a: budget.restarts without a period");
}
