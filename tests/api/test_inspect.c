/* SPDX-License-Identifier: MIT */
/* The inspector as its clients see it: when its socket is there, and every request of
 * docs/inspector.md with its answer. Clients that mean harm are in test_inspect_clients.c, traces
 * in test_inspect_trace.c. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture.h"
#include "inspect_client.h"
#include "process/table.h"
#include "scratch.h"
#include "sim_support.h"

#define WORKERS 2
#define HANG_NS (UINT64_C(120) * SKUA_SECOND)

static struct capture capture;

/* ---- a runtime that can be looked into ---- */

static int setup(void **state)
{
    api_stall_limit_ns = API_NEVER_STUCK;
    return unsetenv("SKUA_INSPECT") != 0 || unsetenv("SKUA_DEBUG") != 0 ? -1 : scratch_setup(state);
}

static int teardown(void **state)
{
    return unsetenv("SKUA_INSPECT") != 0 ? -1 : scratch_teardown(state);
}

static void run_inspected(struct api *api, uint32_t workers)
{
    api_create(api, (skua_runtime_config){.worker_count = workers, .inspect = true});
    api_start(api);
}

/* With a client. */
static void begin(struct api *api, struct inspect_client *client)
{
    run_inspected(api, WORKERS);
    inspect_open(client, api->runtime);
}

static void end(struct api *api, struct inspect_client *client)
{
    inspect_close(client);
    api_stop(api);
}

static skua_pid submit_idle(const struct api *api)
{
    const skua_pid pid = api_submit(api, &api_idler, NULL);
    api_wait_state(api, pid, SKUA_PROCESS_IDLE);
    return pid;
}

/* ---- the socket ---- */

static mode_t mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(lstat(path, &status), 0);
    return status.st_mode;
}

static void socket_is_there_from_start_to_stop(void **state)
{
    (void)state;
    struct api api;
    char folder[SCRATCH_PATH_SIZE];
    scratch_path(folder, "skua");
    api_create(&api, (skua_runtime_config){.worker_count = 1, .inspect = true});
    const struct sockaddr_un address = inspect_address(api.runtime);
    assert_int_equal(scratch_count(scratch_folder()), 0);
    api_start(&api);
    assert_int_equal(mode_of(folder), S_IFDIR | 0700);
    assert_int_equal(mode_of(address.sun_path), S_IFSOCK | 0600);
    assert_int_equal(scratch_count(folder), 1);
    inspect_say_hello(api.runtime);
    assert_int_equal(skua_runtime_stop(api.runtime, HANG_NS), 0);
    assert_int_equal(scratch_count(folder), 0);
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
    assert_true(counting_allocator_is_clean(&api.memory));
}

static void socket_is_there_if_somebody_wants_it(void **state)
{
    (void)state;
    static const struct {
        const char *environment;
        bool configuration;
        bool expected;
    } cases[] = {
        {NULL, false, false}, {NULL, true, true},  {"", false, false}, {"", true, true},
        {"0", false, false},  {"0", true, false},  {"1", false, true}, {"1", true, true},
        {"yes", false, true}, {"yes", true, true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct api api;
        const char *wish = cases[i].environment;
        assert_int_equal(wish != NULL ? setenv("SKUA_INSPECT", wish, 1) : unsetenv("SKUA_INSPECT"),
                         0);
        api_create(&api,
                   (skua_runtime_config){.worker_count = 1, .inspect = cases[i].configuration});
        api_start(&api);
        assert_int_equal(inspect_is_there(api.runtime), cases[i].expected);
        if (cases[i].expected) {
            inspect_say_hello(api.runtime);
        }
        api_stop(&api);
    }
}

static void socket_of_a_simulation_does_not_exist(void **state)
{
    (void)state;
    struct sim_scene scene;
    assert_int_equal(setenv("SKUA_INSPECT", "1", 1), 0);
    sim_begin(&scene, 1, (skua_sim_faults){0});
    assert_int_equal(scratch_count(scratch_folder()), 0);
    sim_end(&scene);
}

static void close_folder_to_nobody(void)
{
    char folder[SCRATCH_PATH_SIZE];
    scratch_path(folder, "skua");
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chmod(folder, 0755), 0);
}

static void close_folder_to_others(void)
{
    char folder[SCRATCH_PATH_SIZE];
    scratch_path(folder, "skua");
    assert_int_equal(chmod(folder, 0700), 0);
}

/* The program has asked for it, so it hears of it; and may try again. */
static void folder_that_is_refused_is_an_error_by_configuration(void **state)
{
    (void)state;
    struct api api;
    const uint32_t threads = os_wait_alone();
    const uint32_t files = os_file_count();
    close_folder_to_nobody();
    api_create(&api, (skua_runtime_config){.worker_count = 1, .inspect = true});
    const uint64_t blocks = counting_allocator_live_blocks(&api.memory);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(skua_runtime_start(api.runtime), SKUA_E_INSPECT);
    }
    assert_int_equal(os_wait_alone(), threads);
    assert_int_equal(os_file_count(), files);
    assert_int_equal(counting_allocator_live_blocks(&api.memory), blocks);
    assert_int_equal(skua_runtime_stop(api.runtime, 0), SKUA_E_NOT_STARTED);
    close_folder_to_others();
    api_start(&api);
    inspect_say_hello(api.runtime);
    api_stop(&api);
}

/* Also where the configuration has asked for it, too. */
static void folder_that_is_refused_is_an_error_by_both(void **state)
{
    (void)state;
    struct api api;
    close_folder_to_nobody();
    assert_int_equal(setenv("SKUA_INSPECT", "1", 1), 0);
    api_create(&api, (skua_runtime_config){.worker_count = 1, .inspect = true});
    assert_int_equal(skua_runtime_start(api.runtime), SKUA_E_INSPECT);
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
}

static void folder_that_is_refused_is_a_warning_by_environment(void **state)
{
    (void)state;
    struct api api;
    struct probe probe = {.habit = PROBE_ENDS};
    close_folder_to_nobody();
    assert_int_equal(setenv("SKUA_INSPECT", "1", 1), 0);
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    capture_begin(&capture);
    const int error = skua_runtime_start(api.runtime);
    const char *said = capture_end(&capture);
    assert_int_equal(error, 0);
    char expected[600];
    (void)snprintf(
        expected, sizeof expected,
        "skua: SKUA_INSPECT: the socket for looking inside could not be opened: %s/skua: "
        "Permission denied\n",
        scratch_folder());
    assert_string_equal(said, expected);
    assert_int_equal(probe_submit(api.runtime, &probe, NULL), 0);
    api_wait_live(&api, 0);
    assert_false(inspect_is_there(api.runtime));
    api_stop(&api);
}

/* A start that is refused later takes the socket away again, and does not touch that of a runtime
 * which has started. */
static void socket_survives_a_second_start(void **state)
{
    (void)state;
    struct api api;
    run_inspected(&api, 1);
    assert_int_equal(skua_runtime_start(api.runtime), SKUA_E_STARTED);
    inspect_say_hello(api.runtime);
    assert_int_equal(skua_runtime_stop(api.runtime, HANG_NS), 0);
    assert_int_equal(skua_runtime_start(api.runtime), SKUA_E_STOPPED);
    assert_false(inspect_is_there(api.runtime));
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
}

static void two_runtimes_have_two_sockets(void **state)
{
    (void)state;
    struct api apis[2];
    struct inspect_client clients[2];
    skua_pid pids[2];
    char request[50];
    for (uint32_t i = 0; i < 2; i++) {
        begin(&apis[i], &clients[i]);
        pids[i] = submit_idle(&apis[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        inspect_ask(&clients[i], "hello");
        assert_int_equal(inspect_number(clients[i].lines, 2), pids[i].bits >> 52);
        (void)snprintf(request, sizeof request, "process %016" PRIx64, pids[i].bits);
        inspect_ask(&clients[i], request);
        inspect_ask_wrong(&clients[1 - i], request, SKUA_E_FOREIGN_PID);
    }
    end(&apis[0], &clients[0]);
    inspect_ask(&clients[1], "hello");
    end(&apis[1], &clients[1]);
}

/* ---- hello, stats ---- */

static void hello_tells_what_program_it_is(void **state)
{
    (void)state;
    struct api api;
    struct inspect_client client;
    begin(&api, &client);
    inspect_ask(&client, "hello");
    const struct inspect_line *line = client.lines;
    assert_int_equal(client.line_count, 1);
    assert_int_equal(line->count, 6);
    assert_string_equal(line->fields[0], "program");
    assert_int_equal(inspect_number(line, 1), getpid());
    assert_true(inspect_number(line, 2) > 0);
    assert_string_equal(line->fields[3], program_invocation_short_name);
    assert_string_equal(line->fields[4], skua_version());
    const uint64_t age = inspect_number(line, 5);
    inspect_ask(&client, "hello");
    assert_true(inspect_number(client.lines, 5) > age);
    end(&api, &client);
}

#define ADD_NAME(name) #name,
static const char *const counter_names[] = {SKUA_STATS_MAP(ADD_NAME)};
#define COUNTERS COUNT_OF(counter_names)

/* The column of a counter, counted from the first. */
static size_t column(const char *name)
{
    for (size_t i = 0; i < COUNTERS; i++) {
        if (strcmp(counter_names[i], name) == 0) {
            return i;
        }
    }
    fail();
    return 0;
}

static void stats_have_a_column_for_every_counter(void **state)
{
    (void)state;
    struct api api;
    struct inspect_client client;
    begin(&api, &client);
    inspect_ask(&client, "stats");
    assert_int_equal(client.line_count, 3 + WORKERS);
    assert_int_equal(client.lines[0].count, 5);
    assert_string_equal(client.lines[0].fields[0], "now");
    assert_string_equal(client.lines[1].fields[0], "counters");
    assert_int_equal(client.lines[1].count, 1 + COUNTERS);
    for (size_t i = 0; i < COUNTERS; i++) {
        assert_string_equal(client.lines[1].fields[1 + i], counter_names[i]);
    }
    assert_string_equal(client.lines[2].fields[0], "total");
    assert_int_equal(client.lines[2].count, 1 + COUNTERS);
    for (size_t i = 0; i < WORKERS; i++) {
        const struct inspect_line *line = &client.lines[3 + i];
        assert_string_equal(line->fields[0], "worker");
        assert_int_equal(line->count, 7 + COUNTERS);
        assert_int_equal(inspect_number(line, 1), i);
        assert_string_equal(line->fields[2], "worker");
    }
    end(&api, &client);
}

static void stats_are_those_of_the_program(void **state)
{
    (void)state;
    struct api api;
    struct inspect_client client;
    begin(&api, &client);
    const skua_pid pid = submit_idle(&api);
    (void)submit_idle(&api);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(skua_message_send(api.runtime, pid, skua_payload_empty(0)), 0);
        api_wait_steps(&api, pid, 2 + i);
    }
    api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
    inspect_ask(&client, "stats");
    const struct inspect_line *now = inspect_find(&client, "now", 0);
    const struct inspect_line *total = inspect_find(&client, "total", 0);
    assert_true(inspect_number(now, 1) >= inspect_number(now, 2)); /* the clock is older than it */
    assert_int_equal(inspect_number(now, 3), 2);
    assert_int_equal(inspect_number(now, 4), 0);
    assert_int_equal(inspect_number(total, 1 + column("spawned")), 2);
    assert_int_equal(inspect_number(total, 1 + column("messages")), 5);
    assert_int_equal(inspect_number(total, 1 + column("steps")), 7);
    uint64_t steps = 0;
    for (size_t i = 0; i < WORKERS; i++) {
        steps += inspect_number(inspect_find(&client, "worker", i), 7 + column("steps"));
    }
    assert_int_equal(steps, 7);
    end(&api, &client);
}

/* One worker is held up, with more waiting behind. */
static void stats_tell_what_the_workers_do(void **state)
{
    (void)state;
    struct api api;
    struct inspect_client client;
    struct blocker blocker;
    run_inspected(&api, 1);
    inspect_open(&client, api.runtime);
    blocker_start(&blocker, &api);
    inspect_ask(&client, "stats");
    const struct inspect_line *line = inspect_find(&client, "worker", 0);
    assert_string_equal(line->fields[3], "running");
    assert_int_equal(inspect_pid(line, 5).bits, blocker.pid.bits);
    assert_string_equal(line->fields[6], "blocker");
    blocker_release(&blocker);
    api_wait_end(&api, blocker.pid);
    do { /* it searches for a moment before it sleeps */
        inspect_ask(&client, "stats");
        line = inspect_find(&client, "worker", 0);
    } while (strcmp(line->fields[3], "parked") != 0 && strcmp(line->fields[3], "polling") != 0);
    assert_int_equal(inspect_number(line, 4), 0);
    assert_int_equal(inspect_pid(line, 5).bits, 0);
    assert_string_equal(line->fields[6], "-");
    end(&api, &client);
}

static void stats_tell_of_spare_workers(void **state)
{
    (void)state;
    struct api api;
    struct inspect_client client;
    struct blocker blocker;
    api_create(&api, (skua_runtime_config){
                         .worker_count = 1, .stall_limit_ns = SKUA_MILLISECOND, .inspect = true});
    api_start(&api);
    inspect_open(&client, api.runtime);
    blocker_start(&blocker, &api);
    do { /* until one has stepped in */
        inspect_ask(&client, "stats");
    } while (inspect_count(&client, "worker") < 2);
    const struct inspect_line *line = inspect_find(&client, "worker", 1);
    assert_int_equal(inspect_number(line, 1), 1);
    assert_string_equal(line->fields[2], "spare");
    blocker_release(&blocker);
    end(&api, &client);
}

/* ---- processes ---- */

#define CROWD 700

static void assert_process_line(const struct inspect_line *line)
{
    assert_int_equal(line->count, 8);
    assert_string_equal(line->fields[0], "process");
    (void)inspect_pid(line, 1);
    for (size_t i = 4; i < 8; i++) {
        (void)inspect_number(line, i);
    }
}

static void processes_by_pid_are_all_there_once(void **state)
{
    (void)state;
    static const uint32_t limits[] = {1, 7, 100, 256};
    struct api api;
    struct inspect_client client;
    skua_pid pids[CROWD];
    begin(&api, &client);
    for (uint32_t i = 0; i < CROWD; i++) {
        pids[i] = submit_idle(&api);
    }
    for (size_t l = 0; l < COUNT_OF(limits); l++) {
        bool seen[CROWD] = {false};
        skua_pid after = {0};
        size_t total = 0;
        const struct inspect_line *more;
        do {
            char request[60];
            (void)snprintf(request, sizeof request, "processes pid %" PRIx64 " %" PRIu32,
                           after.bits, limits[l]);
            inspect_ask(&client, request);
            const size_t count = inspect_count(&client, "process");
            for (size_t i = 0; i < count; i++) {
                const struct inspect_line *line = inspect_find(&client, "process", i);
                assert_process_line(line);
                assert_string_equal(line->fields[2], "idler");
                assert_string_equal(line->fields[3], "idle");
                assert_int_equal(inspect_number(line, 5), 1);
                for (uint32_t k = 0; k < CROWD; k++) {
                    if (pids[k].bits == inspect_pid(line, 1).bits) {
                        assert_false(seen[k]);
                        seen[k] = true;
                    }
                }
            }
            total += count;
            const struct inspect_line *tail = inspect_find(&client, "seen", 0);
            assert_int_equal(tail->count, 3);
            assert_int_equal(inspect_number(tail, 1), CROWD);
            assert_int_equal(inspect_number(tail, 2), 0);
            more = inspect_find(&client, "more", 0);
            assert_int_equal(more != NULL, count == limits[l]);
            if (more != NULL) {
                after = inspect_pid(more, 1);
                assert_int_equal(after.bits,
                                 inspect_pid(inspect_find(&client, "process", count - 1), 1).bits);
            }
        } while (more != NULL);
        assert_int_equal(total, CROWD);
    }
    end(&api, &client);
}

/* The runtime of the clients is its own age, and that of the list is not in the future. */
static void processes_are_sorted_by_what_is_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t field;
    } orders[] = {{"mailbox", 4}, {"steps", 5}, {"run", 6}, {"age", 7}};
    struct api api;
    struct inspect_client client;
    struct blocker blocker;
    skua_pid pids[10];
    char request[60];
    run_inspected(&api, 1);
    inspect_open(&client, api.runtime);
    for (uint32_t i = 0; i < COUNT_OF(pids); i++) {
        pids[i] = submit_idle(&api);
        for (uint32_t m = 0; m < i; m++) { /* a step for each */
            assert_int_equal(skua_message_send(api.runtime, pids[i], skua_payload_empty(0)), 0);
            api_wait_steps(&api, pids[i], m + 2);
        }
    }
    blocker_start(&blocker, &api);
    for (uint32_t i = 0; i < COUNT_OF(pids); i++) {
        for (uint32_t m = 0; m < 10 - i; m++) {
            assert_int_equal(skua_message_send(api.runtime, pids[i], skua_payload_empty(0)), 0);
        }
    }
    for (size_t o = 0; o < COUNT_OF(orders); o++) {
        (void)snprintf(request, sizeof request, "processes %s 0 11", orders[o].name);
        inspect_ask(&client, request);
        assert_int_equal(inspect_count(&client, "process"), 11);
        assert_null(inspect_find(&client, "more", 0));
        for (size_t i = 0; i < 11; i++) {
            assert_process_line(inspect_find(&client, "process", i));
        }
        for (size_t i = 1; i < 11; i++) {
            assert_true(inspect_number(inspect_find(&client, "process", i), orders[o].field) <=
                        inspect_number(inspect_find(&client, "process", i - 1), orders[o].field));
        }
        const struct inspect_line *tail = inspect_find(&client, "seen", 0);
        assert_int_equal(inspect_number(tail, 1), 11);
        (void)inspect_number(tail, 2);
    }
    inspect_ask(&client, "processes mailbox 0 1");
    assert_int_equal(inspect_pid(client.lines, 1).bits, pids[0].bits);
    assert_int_equal(inspect_number(client.lines, 4), 10);
    inspect_ask(&client, "processes steps 0 1");
    assert_int_equal(inspect_pid(client.lines, 1).bits, pids[9].bits);
    assert_int_equal(inspect_number(client.lines, 5), 10);
    blocker_release(&blocker);
    end(&api, &client);
}

static void processes_of_an_empty_runtime_are_none(void **state)
{
    (void)state;
    static const char *const requests[] = {"processes pid 0 256", "processes run 0 256"};
    struct api api;
    struct inspect_client client;
    begin(&api, &client);
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        inspect_ask(&client, requests[i]);
        assert_int_equal(client.line_count, 1);
        assert_string_equal(client.lines[0].fields[0], "seen");
        assert_int_equal(inspect_number(client.lines, 1), 0);
    }
    end(&api, &client);
}

/* ---- one process ---- */

static int wait_for_cancel(void *self, skua_context *ctx, skua_event *events, size_t count,
                           skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)api_finish_if_cancelled(events, count, out);
    return 0;
}

static const char *const method_names[] = {"begin", "a\tb", NULL};
static const skua_process_type strange_type = {
    .name = "na\tme\nof \x7f\x01"
            "01234567890123456789012345678901234567890123456789012345678901234567890",
    .state_size = 777,
    .methods = method_names,
    .step = wait_for_cancel,
    .mailbox_limit = 33,
};

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
    char request[50];
    (void)snprintf(request, sizeof request, "process %" PRIx64, pid.bits);
    inspect_ask(client, request);
    assert_process_line(client->lines);
    assert_int_equal(inspect_pid(client->lines, 1).bits, pid.bits);
}

/* How many processes a filter, the words behind the limit, lets through. */
static size_t count_filtered(struct inspect_client *client, const char *filter)
{
    char request[200];
    uint64_t after = 0;
    size_t total = 0;
    const struct inspect_line *more;
    do {
        (void)snprintf(request, sizeof request, "processes pid %" PRIx64 " 100 %s", after, filter);
        inspect_ask(client, request);
        total += inspect_count(client, "process");
        assert_int_equal(inspect_count(client, "seen"), 1);
        more = inspect_find(client, "more", 0);
        after = more != NULL ? inspect_pid(more, 1).bits : 0;
    } while (more != NULL);
    return total;
}

static void processes_are_filtered_by_state_and_type(void **state)
{
    (void)state;
    static const struct {
        const char *filter;
        size_t count;
    } cases[] = {
        {"any", 303},
        {"idle", 302},
        {"running", 1},
        {"blocked", 0},
        {"any idler", 301},
        {"running blocker", 1},
        {"idle blocker", 0},
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
    struct api api;
    struct inspect_client client;
    struct blocker blocker;
    skua_pid pid;
    begin(&api, &client);
    for (uint32_t i = 0; i < 300; i++) {
        (void)submit_idle(&api);
    }
    assert_int_equal(skua_process_submit(api.runtime, &strange_type, NULL, NULL, 0, &pid), 0);
    api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
    blocker_start(&blocker, &api);
    (void)submit_idle(&api);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(count_filtered(&client, cases[i].filter), cases[i].count);
    }
    blocker_release(&blocker);
    end(&api, &client);
}

/* A filter that lets few through gets its answer in pages, none of which takes long. */
static void page_that_finds_nothing_ends_all_the_same(void **state)
{
    (void)state;
    struct api api;
    struct inspect_client client;
    begin(&api, &client);
    for (uint32_t i = 0; i < 100100; i++) {
        (void)api_submit(&api, &api_idler, NULL);
    }
    inspect_ask(&client, "processes pid 0 256 any nobody");
    assert_int_equal(inspect_count(&client, "process"), 0);
    assert_int_equal(inspect_count(&client, "more"), 1);
    assert_int_equal(count_filtered(&client, "any nobody"), 0);
    assert_int_equal(count_filtered(&client, "any idler"), 100100);
    end(&api, &client);
}

/* Names that would break a line are made harmless, and cut. */
static void process_is_told_with_its_details(void **state)
{
    (void)state;
    struct api api;
    struct inspect_client client;
    skua_pid pid;
    begin(&api, &client);
    assert_int_equal(skua_process_submit(api.runtime, &strange_type, NULL, NULL, 0, &pid), 0);
    api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
    ask_process(&client, pid);
    assert_string_equal(client.lines[0].fields[2],
                        "na?me?of ??01234567890123456789012345678901234567890123456789012");
    assert_string_equal(client.lines[0].fields[3], "idle");
    assert_string_equal(detail(&client, "mailbox_limit"), "33");
    assert_string_equal(detail(&client, "state_size"), "777");
    assert_string_equal(detail(&client, "methods"), "begin a?b");
    assert_null(detail(&client, "worker"));
    end(&api, &client);
}

static void process_that_runs_is_told_with_its_worker(void **state)
{
    (void)state;
    struct api api;
    struct inspect_client client;
    struct blocker blockers[WORKERS];
    bool seen[WORKERS] = {false};
    begin(&api, &client);
    for (uint32_t i = 0; i < WORKERS; i++) {
        blocker_start(&blockers[i], &api);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        ask_process(&client, blockers[i].pid);
        assert_string_equal(client.lines[0].fields[3], "running");
        assert_string_equal(detail(&client, "methods"), "main");
        const char *worker = detail(&client, "worker");
        assert_non_null(worker);
        assert_in_range(atoi(worker), 0, WORKERS - 1);
        seen[atoi(worker)] = true;
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        assert_true(seen[i]);
        blocker_release(&blockers[i]);
    }
    end(&api, &client);
}

static void process_that_is_none_is_an_error(void **state)
{
    (void)state;
    struct api api;
    struct inspect_client client;
    char request[50];
    begin(&api, &client);
    const skua_pid pid = submit_idle(&api);
    assert_int_equal(skua_process_terminate(api.runtime, pid), 0);
    api_wait_end(&api, pid);
    (void)snprintf(request, sizeof request, "process %016" PRIx64, pid.bits);
    inspect_ask_wrong(&client, request, SKUA_E_NO_PROCESS);
    (void)snprintf(request, sizeof request, "process %016" PRIx64,
                   pid.bits + (UINT64_C(1) << PID_SLOT_BITS)); /* not begun yet */
    inspect_ask_wrong(&client, request, SKUA_E_NO_PROCESS);
    (void)snprintf(request, sizeof request, "process %016" PRIx64, pid.bits | 0x3ffffff);
    inspect_ask_wrong(&client, request, SKUA_E_NO_PROCESS);
    inspect_ask_wrong(&client, "process 0", SKUA_E_NO_PROCESS);
    inspect_ask_wrong(&client, "process ffffffffffffffff", SKUA_E_FOREIGN_PID);
    end(&api, &client);
}

/* ---- metrics ---- */

/* At rest, the same as the function of the library writes; but for the age. */
static void metrics_are_those_of_the_library(void **state)
{
    (void)state;
    static char expected[(size_t)1 << 17];
    struct api api;
    struct inspect_client client;
    begin(&api, &client);
    (void)submit_idle(&api);
    inspect_ask(&client, "metrics");
    assert_in_range(skua_metrics_format(api.runtime, expected, sizeof expected), 1,
                    sizeof expected - 1);
    size_t count = 0;
    char *rest = expected;
    for (char *line = strsep(&rest, "\n"); rest != NULL; line = strsep(&rest, "\n")) {
        assert_true(count < client.line_count);
        assert_string_equal(client.lines[count].fields[0], "text");
        assert_int_equal(client.lines[count].count, 2);
        const size_t name = strcspn(line, " ");
        assert_memory_equal(client.lines[count].fields[1], line, name + 1);
        if (strncmp(line, "skua_processes ", name) == 0) {
            assert_string_equal(client.lines[count].fields[1], "skua_processes 1");
        }
        count++;
    }
    assert_int_equal(client.line_count, count);
    end(&api, &client);
}

/* ---- requests that are none ---- */

static void request_that_is_none_is_an_error(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "",
        " ",
        "hell",
        "helloo",
        "HELLO",
        " hello",
        "hello ",
        "hello world",
        "hello\r",
        "stats 1",
        "metrics 1",
        "processes",
        "processes pid",
        "processes pid 0",
        "processes pid 0 10 ",
        "processes pid 0 10 11",
        "processes pid 0 10 done",
        "processes pid 0 10 idler",
        "processes pid 0 10  idler",
        "processes run 0 10 any",
        "processes run 0 10 any idler",
        "processes  pid 0 10",
        "processes pid 0 0",
        "processes pid 0 257",
        "processes pid 0 18446744073709551617",
        "processes pid 0 -1",
        "processes pid 0 +1",
        "processes pid 0 0x10",
        "processes pid -1 10",
        "processes pid 0x1 10",
        "processes pid 1ffffffffffffffff 10",
        "processes pid g 10",
        "processes pid  10",
        "processes size 0 10",
        "processes run 1 10",
        "process",
        "process ",
        "process 1 2",
        "process xyz",
        "process -1",
        "trace",
        "trace go",
        "trace start now",
        "trace read", /* nothing has been started */
        "trace stop",
        "a b c d e f g h i j k l m n o p q r s t u v w x y z",
        "%s%n%s%n",
    };
    struct api api;
    struct inspect_client client;
    begin(&api, &client);
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        inspect_ask_wrong(&client, requests[i], SKUA_E_INVALID);
        inspect_ask(&client, "hello");
    }
    end(&api, &client);
}

/* 200 bytes are a request, and 201 are the end. */
static void request_that_is_too_long_ends_the_connection(void **state)
{
    (void)state;
    struct api api;
    struct inspect_client client;
    char request[202];
    begin(&api, &client);
    memset(request, 'x', sizeof request);
    request[200] = '\0';
    inspect_ask_wrong(&client, request, SKUA_E_INVALID);
    inspect_ask(&client, "hello");
    memcpy(request + 199, "xx\n", 3);
    inspect_send(&client, request, sizeof request);
    assert_true(inspect_is_closed(&client));
    inspect_say_hello(api.runtime);
    end(&api, &client);
}

/* One after the other, however they are cut into pieces; the last without its end, which never
 * comes. */
static void requests_are_answered_in_order(void **state)
{
    (void)state;
    static const char sent[] = "hello\nstats\n\nhello\nhel";
    struct api api;
    struct inspect_client client;
    for (size_t piece = 1; piece < sizeof sent; piece += 3) {
        begin(&api, &client);
        for (size_t at = 0; at < sizeof sent - 1; at += piece) {
            const size_t left = sizeof sent - 1 - at;
            inspect_send(&client, sent + at, left < piece ? left : piece);
        }
        assert_int_equal(shutdown(client.fd, SHUT_WR), 0);
        char text[8192];
        size_t length = 0;
        ssize_t count;
        while ((count = recv(client.fd, text + length, sizeof text - 1 - length, 0)) > 0) {
            length += (size_t)count;
        }
        assert_int_equal(count, 0);
        text[length] = '\0';
        const char *first = strstr(text, "program\t");
        const char *second = strstr(text, "\nend\nnow\t");
        const char *third = strstr(text, "\nend\nerror\tSKUA_E_INVALID\t");
        const char *fourth = strstr(text, "\nprogram\t");
        assert_ptr_equal(first, text);
        assert_true(first < second && second < third && third < fourth);
        assert_string_equal(text + length - 5, "\nend\n");
        end(&api, &client);
    }
}

/* ---- while the runtime stops ---- */

struct stopper {
    skua_runtime *runtime;
    int error;
    pthread_t thread;
};

static void *stop_runtime(void *arg)
{
    struct stopper *stopper = arg;
    stopper->error = skua_runtime_stop(stopper->runtime, HANG_NS);
    return NULL;
}

static bool has_been_cancelled(void *arg)
{
    struct probe *probe = arg;
    return atomic_load(&probe->stops) > 0;
}

/* One wants to know most of all what is going on when a program does not come to its end. */
static void inspector_answers_while_the_runtime_stops(void **state)
{
    (void)state;
    struct api api;
    struct inspect_client client;
    struct probe probe = {.habit = PROBE_IGNORES};
    skua_pid pid;
    begin(&api, &client);
    assert_int_equal(probe_submit(api.runtime, &probe, &pid), 0);
    struct stopper stopper = {.runtime = api.runtime};
    assert_int_equal(pthread_create(&stopper.thread, NULL, stop_runtime, &stopper), 0);
    wait_until(has_been_cancelled, &probe, "the cancel event");
    inspect_ask(&client, "processes pid 0 10");
    assert_int_equal(inspect_pid(client.lines, 1).bits, pid.bits);
    inspect_say_hello(api.runtime);
    assert_int_equal(skua_process_terminate(api.runtime, pid), 0);
    assert_int_equal(pthread_join(stopper.thread, NULL), 0);
    assert_int_equal(stopper.error, 0);
    assert_true(inspect_is_closed(&client));
    assert_false(inspect_is_there(api.runtime));
    inspect_close(&client);
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
    assert_true(counting_allocator_is_clean(&api.memory));
}

/* A step that does not return is what an inspector is for. */
static void inspector_answers_when_the_stop_is_stuck(void **state)
{
    (void)state;
    struct api api;
    struct inspect_client client;
    struct blocker blocker;
    run_inspected(&api, 1);
    inspect_open(&client, api.runtime);
    blocker_start(&blocker, &api);
    assert_int_equal(skua_runtime_stop(api.runtime, 0), SKUA_E_STUCK);
    inspect_ask(&client, "stats");
    assert_int_equal(inspect_pid(inspect_find(&client, "worker", 0), 5).bits, blocker.pid.bits);
    blocker_release(&blocker);
    assert_int_equal(skua_runtime_stop(api.runtime, HANG_NS), SKUA_E_TIMEOUT);
    assert_true(inspect_is_closed(&client));
    inspect_close(&client);
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
    assert_true(counting_allocator_is_clean(&api.memory));
}

/* Clients of all kinds: silent ones, one with half a request, one that traces, one that has not
 * read its answers. */
static void runtime_stops_under_its_clients(void **state)
{
    (void)state;
    struct api api;
    struct inspect_client clients[5];
    run_inspected(&api, WORKERS);
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        inspect_open(&clients[i], api.runtime);
        inspect_ask(&clients[i], "hello");
    }
    inspect_send(&clients[1], "hel", 3);
    inspect_ask(&clients[2], "trace start");
    for (uint32_t i = 0; i < 100; i++) {
        inspect_send(&clients[3], "metrics\n", 8);
    }
    inspect_ask(&clients[4], "metrics");
    api_stop(&api);
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        while (!inspect_is_closed(&clients[i])) {
        }
        inspect_close(&clients[i]);
    }
}

/* ---- who asks, and what disturbs ---- */

struct stranger {
    skua_runtime *runtime;
    bool could_connect;
    ssize_t received;
};

/* The system call changes the user of this thread alone; the C library would change all. */
static void *ask_as_a_stranger(void *arg)
{
    struct stranger *stranger = arg;
    char byte;
    if (syscall(SYS_setresuid, 12345, 12345, 12345) != 0) {
        return NULL;
    }
    const int fd = inspect_connect(stranger->runtime);
    stranger->could_connect = fd >= 0;
    if (fd >= 0) {
        (void)send(fd, "hello\n", 6, MSG_NOSIGNAL);
        stranger->received = recv(fd, &byte, 1, 0);
        (void)close(fd);
    }
    return NULL;
}

/* Even if somebody has opened the folder and the socket to all. */
static void stranger_is_not_answered(void **state)
{
    (void)state;
    struct api api;
    pthread_t thread;
    char folder[SCRATCH_PATH_SIZE];
    if (geteuid() != 0) {
        skip();
    }
    run_inspected(&api, 1);
    struct stranger stranger = {.runtime = api.runtime, .received = 1};
    assert_int_equal(pthread_create(&thread, NULL, ask_as_a_stranger, &stranger), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(stranger.could_connect);
    const struct sockaddr_un address = inspect_address(api.runtime);
    scratch_path(folder, "skua");
    assert_int_equal(chmod(scratch_folder(), 0755), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(chmod(address.sun_path, 0666), 0);
    assert_int_equal(pthread_create(&thread, NULL, ask_as_a_stranger, &stranger), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(stranger.could_connect);
    assert_true(stranger.received <= 0);
    inspect_say_hello(api.runtime);
    api_stop(&api);
}

/* The inspector's thread, by its name. */
static pid_t find_thread(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    pid_t found = 0;
    assert_non_null(tasks);
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        char path[300];
        char text[32] = "";
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (file != NULL) {
            (void)!fgets(text, sizeof text, file);
            (void)fclose(file);
        }
        if (strncmp(text, name, strlen(name)) == 0) {
            found = (pid_t)atoi(task->d_name);
        }
    }
    (void)closedir(tasks);
    return found;
}

static atomic_uint signals;

static void count_signal(int number)
{
    (void)number;
    (void)atomic_fetch_add(&signals, 1);
}

static bool has_signals(void *arg)
{
    return atomic_load(&signals) >= *(unsigned *)arg;
}

/* A profiler's signal comes at any time, and most often while the thread waits. */
static void signal_does_not_end_the_inspector(void **state)
{
    (void)state;
    struct api api;
    struct sigaction before;
    const struct sigaction action = {.sa_handler = count_signal};
    atomic_store(&signals, 0);
    assert_int_equal(sigaction(SIGPROF, &action, &before), 0);
    run_inspected(&api, 1);
    const pid_t thread = find_thread("skua-inspect");
    assert_true(thread > 0);
    for (unsigned i = 1; i <= 200; i++) {
        assert_int_equal(syscall(SYS_tgkill, getpid(), thread, SIGPROF), 0);
        wait_until(has_signals, &i, "the signal");
        if (i % 10 == 0) {
            inspect_say_hello(api.runtime);
        }
    }
    api_stop(&api);
    assert_int_equal(sigaction(SIGPROF, &before, NULL), 0);
}

/* ---- memory ---- */

/* Each allocation of a start fails in turn, until one start gets by without. */
static void start_without_memory_may_be_tried_again(void **state)
{
    (void)state;
    struct api api;
    uint64_t failed = 0;
    api_create(&api, (skua_runtime_config){.worker_count = 1, .inspect = true});
    const uint64_t blocks = counting_allocator_live_blocks(&api.memory);
    int error;
    do {
        counting_allocator_fail_once(&api.memory, failed + 1);
        error = skua_runtime_start(api.runtime);
        if (error != 0) {
            assert_int_equal(error, SKUA_E_NO_MEMORY);
            assert_int_equal(counting_allocator_live_blocks(&api.memory), blocks);
            assert_false(inspect_is_there(api.runtime));
            failed++;
        }
    } while (error != 0);
    counting_allocator_fail_never(&api.memory);
    assert_true(failed > 0);
    inspect_say_hello(api.runtime);
    api_stop(&api);
}

/* A runtime at rest allocates nothing of its own accord, so it is the client's memory that fails.
 */
static void client_without_memory_is_turned_away(void **state)
{
    (void)state;
    struct api api;
    struct inspect_client client;
    struct inspect_client other;
    begin(&api, &client);
    inspect_ask(&client, "hello");
    counting_allocator_fail_once(&api.memory, 1);
    inspect_open(&other, api.runtime);
    assert_true(inspect_read(&other));
    assert_string_equal(other.error, "SKUA_E_NO_MEMORY");
    assert_true(inspect_is_closed(&other));
    inspect_close(&other);
    inspect_say_hello(api.runtime);
    inspect_ask(&client, "hello");
    end(&api, &client);
}

static void answer_without_memory_is_an_error(void **state)
{
    (void)state;
    static const char *const requests[] = {"metrics", "trace start"};
    struct api api;
    struct inspect_client client;
    begin(&api, &client);
    inspect_ask(&client, "hello");
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        counting_allocator_fail_once(&api.memory, 1);
        inspect_ask_wrong(&client, requests[i], SKUA_E_NO_MEMORY);
        inspect_ask(&client, requests[i]);
    }
    end(&api, &client);
}

#define SCRATCH_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    watchdog_start();
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(socket_is_there_from_start_to_stop),
        SCRATCH_TEST(socket_is_there_if_somebody_wants_it),
        SCRATCH_TEST(socket_of_a_simulation_does_not_exist),
        SCRATCH_TEST(folder_that_is_refused_is_an_error_by_configuration),
        SCRATCH_TEST(folder_that_is_refused_is_an_error_by_both),
        SCRATCH_TEST(folder_that_is_refused_is_a_warning_by_environment),
        SCRATCH_TEST(socket_survives_a_second_start),
        SCRATCH_TEST(two_runtimes_have_two_sockets),
        SCRATCH_TEST(hello_tells_what_program_it_is),
        SCRATCH_TEST(stats_have_a_column_for_every_counter),
        SCRATCH_TEST(stats_are_those_of_the_program),
        SCRATCH_TEST(stats_tell_what_the_workers_do),
        SCRATCH_TEST(stats_tell_of_spare_workers),
        SCRATCH_TEST(processes_by_pid_are_all_there_once),
        SCRATCH_TEST(processes_are_sorted_by_what_is_asked_for),
        SCRATCH_TEST(processes_of_an_empty_runtime_are_none),
        SCRATCH_TEST(processes_are_filtered_by_state_and_type),
        SCRATCH_TEST(page_that_finds_nothing_ends_all_the_same),
        SCRATCH_TEST(process_is_told_with_its_details),
        SCRATCH_TEST(process_that_runs_is_told_with_its_worker),
        SCRATCH_TEST(process_that_is_none_is_an_error),
        SCRATCH_TEST(metrics_are_those_of_the_library),
        SCRATCH_TEST(request_that_is_none_is_an_error),
        SCRATCH_TEST(request_that_is_too_long_ends_the_connection),
        SCRATCH_TEST(requests_are_answered_in_order),
        SCRATCH_TEST(inspector_answers_while_the_runtime_stops),
        SCRATCH_TEST(inspector_answers_when_the_stop_is_stuck),
        SCRATCH_TEST(runtime_stops_under_its_clients),
        SCRATCH_TEST(stranger_is_not_answered),
        SCRATCH_TEST(signal_does_not_end_the_inspector),
        SCRATCH_TEST(start_without_memory_may_be_tried_again),
        SCRATCH_TEST(client_without_memory_is_turned_away),
        SCRATCH_TEST(answer_without_memory_is_an_error),
    };
    return cmocka_run_group_tests_name("inspect", tests, NULL, NULL);
}
