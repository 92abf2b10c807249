/* SPDX-License-Identifier: MIT */
/* Processes as the inspector's clients are told of them: in pages, sorted, filtered, and one with
 * its details. A million of them are in test_inspect_crowd.c. */
#include <inttypes.h>
#include <stdio.h>

#include "actor.h"
#include "idlers.h"
#include "inspected.h"
#include "process/table.h"

#define WORKERS 2
#define CROWD   700

static void assert_process_line(const struct inspect_line *line)
{
    assert_int_equal(line->count, 8);
    assert_string_equal(line->fields[0], "process");
    (void)inspect_pid(line, 1);
    for (size_t i = 4; i < 8; i++) {
        (void)inspect_number(line, i);
    }
}

/* ---- lists ---- */

/* Which of the crowd have been seen. */
struct attendance {
    const skua_pid *pids;
    bool is_seen[CROWD];
    size_t limit; /* of a page */
};

static void check_page(void *arg, const struct inspect_client *page)
{
    struct attendance *attendance = arg;
    const size_t count = inspect_count(page, "process");
    for (size_t i = 0; i < count; i++) {
        const struct inspect_line *line = inspect_find(page, "process", i);
        assert_process_line(line);
        assert_string_equal(line->fields[2], "idler");
        assert_string_equal(line->fields[3], "idle");
        assert_int_equal(inspect_number(line, 5), 1);
        for (size_t k = 0; k < CROWD; k++) {
            if (skua_pid_equal(attendance->pids[k], inspect_pid(line, 1))) {
                assert_false(attendance->is_seen[k]);
                attendance->is_seen[k] = true;
            }
        }
    }
    const struct inspect_line *tail = inspect_find(page, "seen", 0);
    assert_int_equal(tail->count, 3);
    assert_int_equal(inspect_number(tail, 1), CROWD);
    assert_int_equal(inspect_number(tail, 2), 0);
    const struct inspect_line *more = inspect_find(page, "more", 0);
    assert_int_equal(more != NULL, count == attendance->limit);
    if (more != NULL) {
        assert_true(skua_pid_equal(inspect_pid(more, 1),
                                   inspect_pid(inspect_find(page, "process", count - 1), 1)));
    }
}

TEST(processes_by_pid_are_all_there_once)
{
    static const size_t limits[] = {1, 7, 100, 256};
    inspected_open((skua_runtime_config){.worker_count = WORKERS});
    struct inspect_client *client = client_open();
    const skua_pid *pids = idlers_start(CROWD);
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct attendance attendance = {.pids = pids, .limit = limits[i]};
        char limit[8];
        (void)snprintf(limit, sizeof limit, "%zu", limits[i]);
        assert_int_equal(client_walk(client, limit, check_page, &attendance), CROWD);
        for (size_t k = 0; k < CROWD; k++) {
            assert_true(attendance.is_seen[k]);
        }
    }
}

/* That the lines of processes are so many, the largest in this field first. */
static void assert_sorted(const struct inspect_client *client, size_t field, size_t count)
{
    assert_int_equal(inspect_count(client, "process"), count);
    assert_null(inspect_find(client, "more", 0));
    for (size_t i = 0; i < count; i++) {
        assert_process_line(&client->lines[i]);
        assert_true(i == 0 || inspect_number(&client->lines[i], field) <=
                                  inspect_number(&client->lines[i - 1], field));
    }
    const struct inspect_line *tail = inspect_find(client, "seen", 0);
    assert_int_equal(inspect_number(tail, 1), count);
    (void)inspect_number(tail, 2); /* how old the list is */
}

TEST(processes_are_sorted_by_what_is_asked_for)
{
    static const struct {
        const char *name;
        size_t field;
    } orders[] = {{"mailbox", 4}, {"steps", 5}, {"run", 6}, {"age", 7}};
    inspected_open((skua_runtime_config){.worker_count = 1});
    struct inspect_client *client = client_open();
    const skua_pid *pids = idlers_start(10);
    for (uint32_t i = 0; i < 10; i++) {
        idler_make_steps(pids[i], i);
    }
    struct actor *held = actor_start_held();
    for (uint32_t i = 0; i < 10; i++) {
        for (uint32_t m = 0; m < 10 - i; m++) {
            assert_int_equal(world_send(pids[i], skua_payload_empty(0)), 0);
        }
    }
    for (size_t i = 0; i < COUNT_OF(orders); i++) {
        client_ask(client, "processes %s 0 11", orders[i].name);
        assert_sorted(client, orders[i].field, 11);
    }
    client_ask(client, "processes mailbox 0 1");
    assert_true(skua_pid_equal(inspect_pid(client->lines, 1), pids[0]));
    assert_int_equal(inspect_number(client->lines, 4), 10);
    client_ask(client, "processes steps 0 1");
    assert_true(skua_pid_equal(inspect_pid(client->lines, 1), pids[9]));
    assert_int_equal(inspect_number(client->lines, 5), 10);
    actor_let_go(held);
}

TEST(processes_of_an_empty_runtime_are_none)
{
    static const char *const orders[] = {"pid", "run"};
    inspected_open((skua_runtime_config){.worker_count = WORKERS});
    struct inspect_client *client = client_open();
    for (size_t i = 0; i < COUNT_OF(orders); i++) {
        client_ask(client, "processes %s 0 256", orders[i]);
        assert_int_equal(client->line_count, 1);
        assert_string_equal(client->lines[0].fields[0], "seen");
        assert_int_equal(inspect_number(client->lines, 1), 0);
    }
}

/* ---- filters ---- */

/* With a name that would break a line and is longer than what is shown of it. */
static struct actor *start_strange(void)
{
    static const char *const methods[] = {"begin", "a\tb", NULL};
    struct actor *actor = actor_new(NO_ACTS);
    actor->type.name = "na\tme\nof \x7f\x01"
                       "01234567890123456789012345678901234567890123456789012345678901234567890";
    actor->type.state_size = 777;
    actor->type.methods = methods;
    actor->type.mailbox_limit = 33;
    actor->type.overflow = SKUA_OVERFLOW_DROP_OLD;
    actor_submit(actor);
    actor_await_state(actor, SKUA_PROCESS_IDLE);
    return actor;
}

TEST(processes_are_filtered_by_state_and_type)
{
    static const struct {
        const char *filter;
        size_t count;
    } rows[] = {
        {"any", 303},
        {"idle", 302},
        {"running", 1},
        {"blocked", 0},
        {"any idler", 301},
        {"running actor", 1},
        {"idle actor", 0},
        {"any idle", 0},
        {"any idlers", 0},
        {"any idler ", 0},
        {"any i?ler", 301},
        {"any ", 0},
        /* As it is shown: with spaces, with ? for what would break a line, and cut. */
        {"any na?me?of ??01234567890123456789012345678901234567890123456789012", 1},
        {"any na?me?of ??0123456789012345678901234567890123456789012345678901", 0},
        {"any na?me?of ??012345678901234567890123456789012345678901234567890123", 0},
    };
    inspected_open((skua_runtime_config){.worker_count = WORKERS});
    struct inspect_client *client = client_open();
    (void)idlers_start(301);
    (void)start_strange();
    struct actor *held = actor_start_held();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char rest[100];
        (void)snprintf(rest, sizeof rest, "100 %s", rows[i].filter);
        assert_int_equal(client_walk(client, rest, NULL, NULL), rows[i].count);
    }
    actor_let_go(held);
}

/* A filter that lets few through gets its answer in pages, none of which takes long. */
TEST(page_that_finds_nothing_ends_all_the_same)
{
    inspected_open((skua_runtime_config){.worker_count = WORKERS});
    struct inspect_client *client = client_open();
    (void)idlers_start(100100);
    client_ask(client, "processes pid 0 256 any nobody");
    assert_int_equal(inspect_count(client, "process"), 0);
    assert_int_equal(inspect_count(client, "more"), 1);
    assert_int_equal(client_walk(client, "100 any nobody", NULL, NULL), 0);
    assert_int_equal(client_walk(client, "100 any idler", NULL, NULL), 100100);
}

/* ---- one process ---- */

static const char *detail(const struct inspect_client *client, const char *name)
{
    for (size_t i = 0; i < inspect_count(client, "detail"); i++) {
        const struct inspect_line *line = inspect_find(client, "detail", i);
        assert_int_equal(line->count, 3);
        if (strcmp(line->fields[1], name) == 0) {
            return line->fields[2];
        }
    }
    return NULL;
}

static void ask_process(struct inspect_client *client, skua_pid pid)
{
    client_ask(client, "process %" PRIx64, pid.bits);
    assert_process_line(client->lines);
    assert_true(skua_pid_equal(inspect_pid(client->lines, 1), pid));
}

/* Names that would break a line are made harmless, and cut. */
TEST(process_is_told_with_its_details)
{
    inspected_open((skua_runtime_config){.worker_count = WORKERS});
    struct inspect_client *client = client_open();
    const skua_pid pid = start_strange()->pid;
    do { /* until the worker that has just run it is seen to rest */
        ask_process(client, pid);
    } while (detail(client, "worker") != NULL);
    assert_string_equal(client->lines[0].fields[2],
                        "na?me?of ??01234567890123456789012345678901234567890123456789012");
    assert_string_equal(client->lines[0].fields[3], "idle");
    assert_string_equal(detail(client, "mailbox_limit"), "33");
    assert_string_equal(detail(client, "state_size"), "777");
    assert_string_equal(detail(client, "overflow"), "drop old");
    assert_string_equal(detail(client, "methods"), "begin a?b");
}

static int rest_main(void *self, skua_context *ctx)
{
    skua_event *event;
    (void)self;
    return skua_task_receive(ctx, &event, SKUA_FOREVER);
}

TEST(task_is_told_with_its_stack)
{
    static const skua_process_type type = {.name = "rest", .main = rest_main, .stack_size = 20000};
    skua_pid pid = {0};
    inspected_open((skua_runtime_config){.worker_count = WORKERS});
    struct inspect_client *client = client_open();
    assert_int_equal(skua_process_submit(world_runtime(), &type, skua_payload_empty(0), &pid), 0);
    api_wait_state(world->api, pid, SKUA_PROCESS_IDLE); /* it has got its stack */
    ask_process(client, pid);
    assert_string_equal(detail(client, "stack_size"), "65536");
    const char *guard = detail(client, "stack_guard");
    assert_non_null(guard);
    assert_true(strcmp(guard, "page") == 0 || strcmp(guard, "mapping") == 0);
    if (!test_has_tasks()) {
        ask_process(client, actor_start(NO_ACTS)->pid);
        assert_null(detail(client, "stack_size"));
    }
}

TEST(process_that_runs_is_told_with_its_worker)
{
    struct actor *held[WORKERS];
    bool is_seen[WORKERS] = {false};
    inspected_open((skua_runtime_config){.worker_count = WORKERS});
    struct inspect_client *client = client_open();
    for (size_t i = 0; i < WORKERS; i++) {
        held[i] = actor_start_held();
    }
    for (size_t i = 0; i < WORKERS; i++) {
        ask_process(client, held[i]->pid);
        assert_string_equal(client->lines[0].fields[3], "running");
        assert_string_equal(detail(client, "methods"), "main");
        const char *worker = detail(client, "worker");
        assert_non_null(worker);
        assert_in_range(atoi(worker), 0, WORKERS - 1);
        is_seen[atoi(worker)] = true;
    }
    for (size_t i = 0; i < WORKERS; i++) {
        assert_true(is_seen[i]);
        actor_let_go(held[i]);
    }
}

TEST(process_that_is_none_is_an_error)
{
    inspected_open((skua_runtime_config){.worker_count = WORKERS});
    struct inspect_client *client = client_open();
    const skua_pid ended = idler_start();
    idler_end(ended);
    const struct {
        uint64_t pid;
        int error;
    } rows[] = {
        {ended.bits, SKUA_E_NO_PROCESS},
        {ended.bits + (UINT64_C(1) << PID_SLOT_BITS), SKUA_E_NO_PROCESS}, /* not begun yet */
        {ended.bits | 0x3ffffff, SKUA_E_NO_PROCESS},
        {0, SKUA_E_NO_PROCESS},
        {UINT64_MAX, SKUA_E_FOREIGN_PID},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        client_ask_wrong(client, rows[i].error, "process %" PRIx64, rows[i].pid);
    }
}
