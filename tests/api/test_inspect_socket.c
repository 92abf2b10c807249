/* SPDX-License-Identifier: MIT */
/* The inspector's socket: when it is there, where, for whom, and what keeps it from being opened.
 * What is asked through it is in the other test_inspect_*.c. */
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "actor.h"
#include "capture.h"
#include "idlers.h"
#include "inspected.h"
#include "threads.h"

static const skua_runtime_config one_worker = {.worker_count = 1, .inspect = true};

static void wish(const char *value)
{
    assert_int_equal(value != NULL ? setenv("SKUA_INSPECT", value, 1) : unsetenv("SKUA_INSPECT"),
                     0);
}

/* ---- when ---- */

TEST(socket_is_there_from_start_to_stop)
{
    char folder[SCRATCH_PATH_SIZE];
    inspected_prepare();
    scratch_path(folder, "skua");
    world_create(one_worker);
    const struct sockaddr_un address = inspect_address(world_runtime());
    assert_int_equal(scratch_count(scratch_folder()), 0);
    world_start();
    assert_int_equal(scratch_mode(folder), S_IFDIR | 0700);
    assert_int_equal(scratch_mode(address.sun_path), S_IFSOCK | 0600);
    assert_int_equal(scratch_count(folder), 1);
    inspect_say_hello(world_runtime());
    world_stop();
    assert_int_equal(scratch_count(folder), 0);
}

TEST(socket_is_there_if_somebody_wants_it)
{
    static const struct {
        const char *environment;
        bool configuration;
        bool expected;
    } rows[] = {
        {NULL, false, false}, {NULL, true, true},  {"", false, false}, {"", true, true},
        {"0", false, false},  {"0", true, false},  {"1", false, true}, {"1", true, true},
        {"yes", false, true}, {"yes", true, true},
    };
    FOR_ROWS (row, rows) {
        inspected_prepare();
        wish(row->environment);
        world_open_with((skua_runtime_config){.worker_count = 1, .inspect = row->configuration});
        assert_int_equal(inspect_is_there(world_runtime()), row->expected);
        if (row->expected) {
            inspect_say_hello(world_runtime());
        }
    }
}

TEST(socket_of_a_simulation_does_not_exist)
{
    inspected_prepare();
    wish("1");
    world_open_sim(1, (skua_sim_faults){0});
    assert_int_equal(scratch_count(scratch_folder()), 0);
}

/* A start that is refused does not touch the socket of a runtime which has started. */
TEST(socket_survives_a_second_start)
{
    inspected_open(one_worker);
    assert_int_equal(skua_runtime_start(world_runtime()), SKUA_E_STARTED);
    inspect_say_hello(world_runtime());
    world_stop();
    assert_int_equal(skua_runtime_start(world_runtime()), SKUA_E_STOPPED);
    assert_false(inspect_is_there(world_runtime()));
}

TEST(two_runtimes_have_two_sockets)
{
    struct api other;
    struct inspect_client there;
    inspected_open(one_worker);
    api_create(&other, one_worker);
    api_start(&other);
    struct inspect_client *here = client_open();
    inspect_open(&there, other.runtime);
    const skua_pid pids[] = {idler_start(), api_submit(&other, &api_idler, NULL)};
    struct inspect_client *clients[] = {here, &there};
    for (size_t i = 0; i < 2; i++) {
        client_ask(clients[i], "hello");
        assert_int_equal(inspect_number(clients[i]->lines, 2), pids[i].bits >> 52);
        client_ask(clients[i], "process %016" PRIx64, pids[i].bits);
        client_ask_wrong(clients[1 - i], SKUA_E_FOREIGN_PID, "process %016" PRIx64, pids[i].bits);
    }
    world_close();
    client_ask(&there, "hello");
    inspect_close(&there);
    api_stop(&other);
}

/* ---- a folder that others may read is refused ---- */

static void make_folder(mode_t mode)
{
    char folder[SCRATCH_PATH_SIZE];
    scratch_path(folder, "skua");
    (void)mkdir(folder, 0700); /* unless it is there */
    assert_int_equal(chmod(folder, mode), 0);
}

/* The program has asked for it, so it hears of it; and may try again. */
TEST(folder_that_is_refused_is_an_error_by_configuration)
{
    const uint32_t threads = os_wait_alone();
    inspected_prepare();
    make_folder(0755);
    const uint32_t files = os_file_count();
    world_create(one_worker);
    const uint64_t blocks = counting_allocator_live_blocks(&world->api->memory);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(skua_runtime_start(world_runtime()), SKUA_E_INSPECT);
    }
    assert_int_equal(os_wait_alone(), threads);
    assert_int_equal(os_file_count(), files);
    assert_int_equal(counting_allocator_live_blocks(&world->api->memory), blocks);
    assert_int_equal(skua_runtime_stop(world_runtime(), 0), SKUA_E_NOT_STARTED);
    make_folder(0700);
    world_start();
    inspect_say_hello(world_runtime());
}

TEST(folder_that_is_refused_is_an_error_if_the_environment_wants_it_too)
{
    inspected_prepare();
    make_folder(0755);
    wish("1");
    world_create(one_worker);
    assert_int_equal(skua_runtime_start(world_runtime()), SKUA_E_INSPECT);
}

TEST(folder_that_is_refused_is_a_warning_by_environment)
{
    static struct capture capture;
    char expected[600];
    inspected_prepare();
    make_folder(0755);
    wish("1");
    world_create((skua_runtime_config){.worker_count = 1});
    capture_begin(&capture);
    const int error = skua_runtime_start(world_runtime());
    const char *said = capture_end(&capture);
    assert_int_equal(error, 0);
    world->is_started = true;
    (void)snprintf(expected, sizeof expected,
                   "skua: SKUA_INSPECT: cannot open the inspector socket: %s/skua: "
                   "Permission denied\n",
                   scratch_folder());
    assert_string_equal(said, expected);
    assert_result(actor_run(actor_new(ACTS(finishes(1)))), 1);
    assert_false(inspect_is_there(world_runtime()));
}

/* ---- memory ---- */

/* Each allocation of a start fails in turn, until one start gets by without. */
TEST(start_without_memory_may_be_tried_again)
{
    uint64_t failed = 0;
    int error;
    inspected_prepare();
    world_create(one_worker);
    struct counting_allocator *memory = &world->api->memory;
    const uint64_t blocks = counting_allocator_live_blocks(memory);
    for (;;) {
        counting_allocator_fail_once(memory, failed + 1);
        error = skua_runtime_start(world_runtime());
        if (error == 0) {
            break;
        }
        assert_int_equal(error, SKUA_E_NO_MEMORY);
        assert_int_equal(counting_allocator_live_blocks(memory), blocks);
        assert_false(inspect_is_there(world_runtime()));
        failed++;
    }
    world->is_started = true;
    counting_allocator_fail_never(memory);
    assert_true(failed > 0);
    inspect_say_hello(world_runtime());
}

/* A runtime at rest allocates nothing of its own accord, so it is the client's memory that
 * fails. */
TEST(client_without_memory_is_turned_away)
{
    inspected_open(one_worker);
    struct inspect_client *client = client_open();
    client_ask(client, "hello");
    wait_until_all_have_slept(world_runtime());
    counting_allocator_fail_once(&world->api->memory, 1);
    struct inspect_client *other = client_open();
    assert_true(inspect_read(other));
    assert_string_equal(other->error, "SKUA_E_NO_MEMORY");
    assert_true(inspect_is_closed(other));
    inspect_say_hello(world_runtime());
    client_ask(client, "hello");
}

/* ---- who asks, and what disturbs ---- */

struct stranger {
    bool could_connect;
    ssize_t received;
};

/* The system call changes the user of this thread alone; the C library would change all. */
static void ask_as_a_stranger(void *arg)
{
    struct stranger *stranger = arg;
    char byte;
    if (syscall(SYS_setresuid, 12345, 12345, 12345) != 0) {
        return;
    }
    const int fd = inspect_connect(world_runtime());
    stranger->could_connect = fd >= 0;
    if (fd >= 0) {
        (void)send(fd, "hello\n", 6, MSG_NOSIGNAL);
        stranger->received = recv(fd, &byte, 1, 0);
        (void)close(fd);
    }
}

/* Even if somebody has opened the folder and the socket to all. */
TEST(stranger_is_not_answered)
{
    struct stranger stranger = {.received = 1};
    if (geteuid() != 0) {
        skip();
    }
    inspected_open(one_worker);
    thread_run(ask_as_a_stranger, &stranger);
    assert_false(stranger.could_connect);
    const struct sockaddr_un address = inspect_address(world_runtime());
    assert_int_equal(chmod(scratch_folder(), 0755), 0);
    make_folder(0755);
    assert_int_equal(chmod(address.sun_path, 0666), 0);
    thread_run(ask_as_a_stranger, &stranger);
    assert_true(stranger.could_connect);
    assert_true(stranger.received <= 0);
    inspect_say_hello(world_runtime());
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
    return signals >= *(unsigned *)arg;
}

/* A profiler's signal comes at any time, and most often while the thread waits. */
TEST(signal_does_not_end_the_inspector)
{
    struct sigaction before;
    const struct sigaction action = {.sa_handler = count_signal};
    signals = 0;
    assert_int_equal(sigaction(SIGPROF, &action, &before), 0);
    inspected_open(one_worker);
    const pid_t thread = find_thread("skua-inspect");
    assert_true(thread > 0);
    for (unsigned i = 1; i <= 200; i++) {
        assert_int_equal(syscall(SYS_tgkill, getpid(), thread, SIGPROF), 0);
        wait_until(has_signals, &i, "the signal");
        if (i % 10 == 0) {
            inspect_say_hello(world_runtime());
        }
    }
    world_close();
    assert_int_equal(sigaction(SIGPROF, &before, NULL), 0);
}
