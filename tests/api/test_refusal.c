/* SPDX-License-Identifier: MIT */
/* What the system refuses: threads, and the files that the inspector and waiting for descriptors
 * need. The linker puts the functions below between the library and the C library (--wrap, see
 * CMakeLists.txt), so that any one call can be made to fail, whatever the limits of the machine
 * are.
 *
 * Limits that are real are tested in test_alloc_failure.c (threads) and test_net_refused.c (files). */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture.h"
#include "inspect_client.h"
#include "runtime_support.h"
#include "scratch.h"

/* ---- between the library and the system ---- */

/* The first ones are needed by every start, the others by the inspector only. */
enum function {
    PTHREAD_CREATE,
    EPOLL_CREATE,
    EVENTFD,
    EPOLL_CTL,
    SOCKET,
    BIND,
    LISTEN,
    ACCEPT,
    FUNCTIONS
};
#define FUNCTIONS_OF_START (EPOLL_CTL + 1)

/* Which calls of a function are refused: those numbered from `first` to `last`, beginning with 1 at
 * the last refuse_calls. */
struct refusal {
    atomic_uint calls;
    atomic_uint first;
    atomic_uint last;
};

static struct refusal refusals[FUNCTIONS];

static void refuse_calls(enum function function, unsigned first, unsigned last)
{
    struct refusal *refusal = &refusals[function];
    atomic_store(&refusal->last, 0);
    atomic_store(&refusal->calls, 0);
    atomic_store(&refusal->first, first);
    atomic_store(&refusal->last, last);
}

static void refuse_all(enum function function)
{
    refuse_calls(function, 1, UINT_MAX);
}

static void refuse_none(enum function function)
{
    refuse_calls(function, 1, 0);
}

static bool is_refused(enum function function)
{
    struct refusal *refusal = &refusals[function];
    const unsigned call = atomic_fetch_add(&refusal->calls, 1) + 1;
    return call >= atomic_load(&refusal->first) && call <= atomic_load(&refusal->last);
}

static unsigned calls_of(enum function function)
{
    return atomic_load(&refusals[function].calls);
}

/* The names are the linker's. */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg);
int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __real_eventfd(unsigned value, int flags);
int __wrap_eventfd(unsigned value, int flags);
int __real_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __real_bind(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size);
int __real_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog);
int __real_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg)
{
    return is_refused(PTHREAD_CREATE) ? EAGAIN
                                      : __real_pthread_create(thread, attributes, start, arg);
}

static int fail_with(int error)
{
    errno = error;
    return -1;
}

int __wrap_epoll_create1(int flags)
{
    return is_refused(EPOLL_CREATE) ? fail_with(EMFILE) : __real_epoll_create1(flags);
}

int __wrap_eventfd(unsigned value, int flags)
{
    return is_refused(EVENTFD) ? fail_with(ENFILE) : __real_eventfd(value, flags);
}

int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    return is_refused(EPOLL_CTL) ? fail_with(ENOSPC)
                                 : __real_epoll_ctl(epoll, operation, fd, event);
}

int __wrap_socket(int domain, int type, int protocol)
{
    return is_refused(SOCKET) ? fail_with(ENFILE) : __real_socket(domain, type, protocol);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size)
{
    return is_refused(BIND) ? fail_with(EROFS) : __real_bind(fd, address, size);
}

int __wrap_listen(int fd, int backlog)
{
    return is_refused(LISTEN) ? fail_with(ENOBUFS) : __real_listen(fd, backlog);
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    return is_refused(ACCEPT) ? fail_with(EMFILE) : __real_accept4(fd, address, size, flags);
}

/* ---- start ---- */

#define WORKERS 3
#define SIGNAL  SIGUSR2

/* What a start that failed must leave as it was. */
struct surroundings {
    uint32_t threads;
    uint32_t files;
    uint64_t blocks;
};

static void (*handler_of_signal(void))(int)
{
    struct sigaction action;
    assert_int_equal(sigaction(SIGNAL, NULL, &action), 0);
    return action.sa_handler;
}

static struct surroundings look_around(struct api *api)
{
    return (struct surroundings){
        .threads = os_wait_alone(),
        .files = os_file_count(),
        .blocks = counting_allocator_live_blocks(&api->memory),
    };
}

static void assert_as_if_never_started(struct api *api, const struct surroundings *before)
{
    struct probe probe = {.habit = PROBE_ENDS};
    const struct surroundings now = look_around(api);
    assert_int_equal(now.threads, before->threads);
    assert_int_equal(now.files, before->files);
    assert_int_equal(now.blocks, before->blocks);
    assert_ptr_equal(handler_of_signal(), SIG_DFL);
    assert_int_equal(skua_runtime_stop(api->runtime, 0), SKUA_E_NOT_STARTED);
    assert_int_equal(probe_submit(api->runtime, &probe, NULL), SKUA_E_NOT_STARTED);
    assert_int_equal(atomic_load(&probe.inits), 0);
}

/* All that start has to set up is there. */
static void assert_usable(struct api *api)
{
    struct probe probe = {.habit = PROBE_ENDS};
    assert_int_equal(skua_runtime_start(api->runtime), SKUA_E_STARTED);
    for (int i = 0; i < 100; i++) {
        skua_pid pid;
        assert_int_equal(probe_submit(api->runtime, &probe, &pid), 0);
        api_wait_end(api, pid);
    }
    api_wait_live(api, 0);
    assert_int_equal(atomic_load(&probe.closes), 100);
    assert_true(handler_of_signal() != SIG_DFL);
}

static void create(struct api *api)
{
    api_create(api, (skua_runtime_config){.worker_count = WORKERS, .stall_signal = SIGNAL});
}

/* Refuses the first call, then the second, and so on until start needs no more of them. Returns how
 * many it needs. */
static unsigned refuse_one_after_the_other(struct api *api, enum function function, int expected)
{
    const struct surroundings before = look_around(api);
    for (unsigned n = 1;; n++) {
        refuse_calls(function, n, n);
        const int error = skua_runtime_start(api->runtime);
        const unsigned calls = calls_of(function);
        refuse_none(function);
        if (error == 0) {
            assert_int_equal(calls, n - 1);
            return calls;
        }
        assert_int_equal(error, expected);
        assert_true(calls >= n);
        assert_as_if_never_started(api, &before);
    }
}

static void check_start(enum function function, int expected, unsigned needed)
{
    struct api api;
    create(&api);
    const struct surroundings before = look_around(&api);
    assert_int_equal(refuse_one_after_the_other(&api, function, expected), needed);
    assert_usable(&api);
    api_stop(&api);
    assert_int_equal(os_wait_alone(), before.threads);
    assert_int_equal(os_file_count(), before.files);
}

static void refusal_of_any_thread_of_start_can_be_tried_again(void **state)
{
    (void)state;
    check_start(PTHREAD_CREATE, SKUA_E_THREAD, WORKERS + 1); /* and the monitor */
}

static void refusal_of_any_file_of_start_can_be_tried_again(void **state)
{
    (void)state;
    check_start(EPOLL_CREATE, SKUA_E_POLLER, 1);
    check_start(EVENTFD, SKUA_E_POLLER, 1);
    check_start(EPOLL_CTL, SKUA_E_POLLER, 1);
}

static void refusal_of_start_leaves_a_runtime_that_can_be_destroyed(void **state)
{
    (void)state;
    static const int expected[FUNCTIONS_OF_START] = {SKUA_E_THREAD, SKUA_E_POLLER, SKUA_E_POLLER,
                                                     SKUA_E_POLLER};
    for (enum function function = 0; function < FUNCTIONS_OF_START; function++) {
        struct api api;
        create(&api);
        refuse_all(function);
        assert_int_equal(skua_runtime_start(api.runtime), expected[function]);
        assert_int_equal(skua_runtime_start(api.runtime), expected[function]);
        refuse_none(function);
        assert_int_equal(skua_runtime_destroy(api.runtime), 0);
        assert_true(counting_allocator_is_clean(&api.memory));
    }
}

/* Before a start that works, commands and pools can still be registered. */
static int do_nothing(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return 0;
}

static void refusal_of_start_freezes_nothing(void **state)
{
    (void)state;
    const skua_handler handler = {.name = "late", .run = do_nothing};
    const skua_blocking_pool pool = {.name = "late"};
    struct api api;
    create(&api);
    refuse_all(PTHREAD_CREATE);
    assert_int_equal(skua_runtime_start(api.runtime), SKUA_E_THREAD);
    refuse_none(PTHREAD_CREATE);
    assert_int_equal(skua_command_register(api.runtime, 1, &handler), 0);
    assert_int_equal(skua_blocking_register(api.runtime, &pool), 0);
    api_start(&api);
    assert_int_equal(skua_command_register(api.runtime, 2, &handler), SKUA_E_FROZEN);
    api_stop(&api);
}

/* ---- the inspector ---- */

static void create_inspected(struct api *api)
{
    api_create(api, (skua_runtime_config){
                        .worker_count = WORKERS, .stall_signal = SIGNAL, .inspect = true});
}

/* The n-th call of a function is refused: start fails and leaves no socket; then it works. */
static void check_inspected_start(enum function function, unsigned n, int expected)
{
    struct api api;
    create_inspected(&api);
    const struct surroundings before = look_around(&api);
    refuse_calls(function, n, n);
    assert_int_equal(skua_runtime_start(api.runtime), expected);
    refuse_none(function);
    assert_as_if_never_started(&api, &before);
    assert_false(inspect_is_there(api.runtime));
    api_start(&api);
    assert_usable(&api);
    inspect_say_hello(api.runtime);
    api_stop(&api);
    assert_int_equal(os_wait_alone(), before.threads);
    assert_int_equal(os_file_count(), before.files);
}

static void refusal_of_the_inspectors_files_can_be_tried_again(void **state)
{
    (void)state;
    check_inspected_start(EVENTFD, 1, SKUA_E_INSPECT);
    check_inspected_start(SOCKET, 1, SKUA_E_INSPECT);
    check_inspected_start(BIND, 1, SKUA_E_INSPECT);
    check_inspected_start(LISTEN, 1, SKUA_E_INSPECT);
}

/* The socket was there already. */
static void refusal_of_what_comes_behind_the_inspector_ends_it(void **state)
{
    (void)state;
    check_inspected_start(EVENTFD, 2, SKUA_E_POLLER);
    check_inspected_start(EPOLL_CREATE, 1, SKUA_E_POLLER);
    for (unsigned n = 1; n <= WORKERS + 2; n++) { /* its own, the workers', the monitor's */
        check_inspected_start(PTHREAD_CREATE, n, SKUA_E_THREAD);
    }
}

/* Only the environment has asked for it. */
static void refusal_of_the_inspector_is_a_warning_by_environment(void **state)
{
    (void)state;
    static const struct {
        enum function function;
        const char *reason;
    } cases[] = {
        {SOCKET, "/skua: Too many open files in system\n"},
        {PTHREAD_CREATE, "the system refused to create a thread\n"},
    };
    static struct capture capture;
    assert_int_equal(setenv("SKUA_INSPECT", "1", 1), 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct api api;
        create(&api);
        capture_begin(&capture);
        refuse_calls(cases[i].function, 1, 1);
        const int error = skua_runtime_start(api.runtime);
        refuse_none(cases[i].function);
        const char *said = capture_end(&capture);
        assert_int_equal(error, 0);
        assert_ptr_equal(strstr(said, "skua: SKUA_INSPECT: "), said);
        assert_ptr_equal(strstr(said, cases[i].reason),
                         said + strlen(said) - strlen(cases[i].reason));
        assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* one line */
        assert_false(inspect_is_there(api.runtime));
        assert_usable(&api);
        api_stop(&api);
    }
    assert_int_equal(unsetenv("SKUA_INSPECT"), 0);
}

/* No descriptors are left for a while. A client that waits gets its turn afterwards. */
static void refusal_of_a_connection_makes_the_client_wait(void **state)
{
    (void)state;
    struct api api;
    struct inspect_client client;
    create_inspected(&api);
    api_start(&api);
    refuse_calls(ACCEPT, 1, 3);
    inspect_open(&client, api.runtime);
    inspect_ask(&client, "hello");
    assert_int_equal(calls_of(ACCEPT), 4);
    refuse_none(ACCEPT);
    inspect_close(&client);
    api_stop(&api);
}

/* ---- threads of a blocking pool ---- */

#define CALLS 3

/* A process that makes some blocking calls and ends with the last of them. */
struct caller {
    struct tracked inputs[CALLS];
    int errors[CALLS];
    unsigned ended;
};

static atomic_uint runs;

static int count_run(skua_payload *input, skua_payload *result)
{
    (void)input;
    (void)result;
    (void)atomic_fetch_add(&runs, 1);
    return 0;
}

static int caller_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct caller *caller = api_world(self);
    (void)ctx;
    for (uint64_t i = 0; i < CALLS && count == 0; i++) {
        const int error =
            skua_step_blocking(out, i, NULL, count_run, tracked_payload(0, &caller->inputs[i]));
        if (error != 0) {
            return error;
        }
    }
    for (size_t i = 0; i < count; i++) {
        caller->errors[events[i].tag] = events[i].error;
        caller->ended++;
    }
    if (caller->ended == CALLS) {
        skua_step_done(out, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type caller_type = {
    .name = "caller", .state_size = sizeof(void *), .init = api_init_world, .step = caller_step};

/* Makes the calls; returns how many ended with `error`. */
static unsigned call_all(const struct api *api, int error)
{
    struct caller caller = {.ended = 0};
    unsigned count = 0;
    const skua_exit exit = api_run_process(api, &caller_type, &caller);
    assert_int_equal(exit.error, 0);
    assert_drops(caller.inputs, CALLS, 1);
    for (size_t i = 0; i < CALLS; i++) {
        count += caller.errors[i] == error;
    }
    return count;
}

static void refusal_of_a_pools_only_thread_is_the_error_of_the_call(void **state)
{
    (void)state;
    struct api api;
    api_run(&api, 1);
    const uint32_t threads = os_thread_count();
    atomic_store(&runs, 0);
    refuse_all(PTHREAD_CREATE);
    assert_int_equal(call_all(&api, SKUA_E_THREAD), CALLS);
    assert_int_equal(calls_of(PTHREAD_CREATE), CALLS); /* each has tried */
    refuse_none(PTHREAD_CREATE);
    assert_int_equal(atomic_load(&runs), 0);
    assert_int_equal(os_thread_count(), threads);

    assert_int_equal(call_all(&api, 0), CALLS);
    assert_int_equal(atomic_load(&runs), CALLS);
    api_stop(&api);
}

/* One thread is there: it does the work of those that could not be made. */
static void refusal_of_a_pools_next_thread_makes_calls_wait(void **state)
{
    (void)state;
    struct api api;
    api_run(&api, 1);
    atomic_store(&runs, 0);
    refuse_calls(PTHREAD_CREATE, 2, UINT_MAX);
    assert_int_equal(call_all(&api, 0), CALLS);
    refuse_none(PTHREAD_CREATE);
    assert_int_equal(atomic_load(&runs), CALLS);
    api_stop(&api);
}

/* ---- spare workers ---- */

/* A step that keeps the only worker until it is told to go on. */
struct keeper {
    bool says_so; /* by skua_blocking_begin */
    int begun;
    int ended;
    struct tally entered;
    struct tally released;
};

static int keeper_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct keeper *keeper = api_world(self);
    (void)events;
    (void)count;
    keeper->begun = keeper->says_so ? skua_blocking_begin(ctx) : 0;
    tally_add(&keeper->entered, 1);
    tally_wait(&keeper->released, 1);
    keeper->ended = keeper->says_so ? skua_blocking_end(ctx) : 0;
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type keeper_type = {
    .name = "keeper", .state_size = sizeof(void *), .init = api_init_world, .step = keeper_step};

static bool has_tried_often(void *arg)
{
    (void)arg;
    return calls_of(PTHREAD_CREATE) >= 5;
}

static bool has_a_spare(void *arg)
{
    return api_stats(arg).spares > 0;
}

static void check_spare(bool says_so)
{
    struct keeper keeper = {.says_so = says_so};
    struct probe probe = {.habit = PROBE_ENDS};
    struct api api;
    skua_pid waiting;
    tally_init(&keeper.entered);
    tally_init(&keeper.released);
    api_create(&api, (skua_runtime_config){.worker_count = 1, .stall_limit_ns = SKUA_MILLISECOND});
    api_start(&api);
    const uint32_t threads = os_thread_count();
    refuse_all(PTHREAD_CREATE);
    const skua_pid kept = api_submit(&api, &keeper_type, &keeper);
    tally_wait(&keeper.entered, 1);
    assert_int_equal(probe_submit(api.runtime, &probe, &waiting), 0);

    /* The monitor does not give up. Until it succeeds, nobody else can run. */
    wait_until(has_tried_often, NULL, "the monitor to ask for a thread again");
    assert_int_equal(atomic_load(&probe.steps), 0);
    assert_int_equal(api_stats(&api).spares, 0);
    assert_int_equal(os_thread_count(), threads);
    refuse_none(PTHREAD_CREATE);
    api_wait_end(&api, waiting);
    assert_int_equal(atomic_load(&probe.closes), 1);
    wait_until(has_a_spare, &api, "the spare worker to be counted"); /* which follows its start */

    tally_add(&keeper.released, 1);
    api_wait_end(&api, kept);
    assert_int_equal(keeper.begun, 0);
    assert_int_equal(keeper.ended, 0);
    api_stop(&api);
    (void)os_wait_alone();
}

static void refusal_of_a_spare_for_a_blocking_step_is_made_up_for(void **state)
{
    (void)state;
    check_spare(true);
}

static void refusal_of_a_spare_for_a_stuck_step_is_made_up_for(void **state)
{
    (void)state;
    check_spare(false);
}

/* A spare that could not be started does not count, but for the moment of trying. */
static bool has_one_worker(void *arg)
{
    const struct api *api = arg;
    return skua_stats_read(api->runtime, NULL, NULL, 0) == 1;
}

/* Without any spare worker the step goes on as if nothing had been said, and all can be stopped. */
static void refusal_of_every_spare_only_takes_the_time_of_the_step(void **state)
{
    (void)state;
    struct keeper keeper = {.says_so = true};
    struct probe probe = {.habit = PROBE_ENDS};
    struct api api;
    skua_pid waiting;
    tally_init(&keeper.entered);
    tally_init(&keeper.released);
    api_run(&api, 1);
    refuse_all(PTHREAD_CREATE);
    const skua_pid kept = api_submit(&api, &keeper_type, &keeper);
    tally_wait(&keeper.entered, 1);
    assert_int_equal(probe_submit(api.runtime, &probe, &waiting), 0);
    tally_add(&keeper.released, 1);
    api_wait_end(&api, kept);
    api_wait_end(&api, waiting);
    assert_int_equal(api_stats(&api).spares, 0);
    wait_until(has_one_worker, &api, "the spare worker to be forgotten");
    api_stop(&api);
    refuse_none(PTHREAD_CREATE);
    assert_int_equal(keeper.begun, 0);
    assert_int_equal(keeper.ended, 0);
    assert_int_equal(atomic_load(&probe.closes), 1);
}

/* ---- registrations ---- */

/* Waits for a descriptor and ends with the wait's error. */
static int waiter_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    const int *fd = api_world(self);
    (void)ctx;
    if (count == 0) {
        return skua_step_wait_writable(out, 0, *fd);
    }
    skua_step_done(out, skua_payload_u64(0, (uint64_t)(int64_t)events[0].error));
    return 0;
}

static const skua_process_type waiter_type = {
    .name = "waiter", .state_size = sizeof(void *), .init = api_init_world, .step = waiter_step};

static int wait_for(const struct api *api, int fd)
{
    const skua_exit exit = api_run_process(api, &waiter_type, &fd);
    assert_int_equal(exit.error, 0);
    return (int)(int64_t)skua_payload_to_u64(&exit.result);
}

static void refusal_of_a_registration_is_the_error_of_the_wait(void **state)
{
    (void)state;
    struct api api;
    api_run(&api, 1);
    const int fd = eventfd(0, EFD_CLOEXEC);
    assert_true(fd >= 0);
    refuse_all(EPOLL_CTL);
    assert_int_equal(wait_for(&api, fd), SKUA_E_NO_MEMORY); /* ENOSPC: too many are watched */
    refuse_none(EPOLL_CTL);
    assert_int_equal(wait_for(&api, fd), 0);
    api_stop(&api);
    assert_int_equal(close(fd), 0);
}

#define INSPECTED_TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusal_of_any_thread_of_start_can_be_tried_again),
        cmocka_unit_test(refusal_of_any_file_of_start_can_be_tried_again),
        cmocka_unit_test(refusal_of_start_leaves_a_runtime_that_can_be_destroyed),
        cmocka_unit_test(refusal_of_start_freezes_nothing),
        INSPECTED_TEST(refusal_of_the_inspectors_files_can_be_tried_again),
        INSPECTED_TEST(refusal_of_what_comes_behind_the_inspector_ends_it),
        INSPECTED_TEST(refusal_of_the_inspector_is_a_warning_by_environment),
        INSPECTED_TEST(refusal_of_a_connection_makes_the_client_wait),
        cmocka_unit_test(refusal_of_a_pools_only_thread_is_the_error_of_the_call),
        cmocka_unit_test(refusal_of_a_pools_next_thread_makes_calls_wait),
        cmocka_unit_test(refusal_of_a_spare_for_a_blocking_step_is_made_up_for),
        cmocka_unit_test(refusal_of_a_spare_for_a_stuck_step_is_made_up_for),
        cmocka_unit_test(refusal_of_every_spare_only_takes_the_time_of_the_step),
        cmocka_unit_test(refusal_of_a_registration_is_the_error_of_the_wait),
    };
    for (enum function function = 0; function < FUNCTIONS; function++) {
        refuse_none(function);
    }
    watchdog_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
