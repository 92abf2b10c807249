/* SPDX-License-Identifier: MIT */
/* What the system refuses: threads, and the files that the inspector and waiting for descriptors
 * need. The linker puts the functions below between the library and the C library (--wrap, see
 * CMakeLists.txt), so that any one call can be made to fail, whatever the limits of the machine
 * are.
 *
 * Limits that are real are tested in test_alloc_failure.c (threads) and test_net_refused.c
 * (files). */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "blocking_support.h"
#include "capture.h"
#include "handlers.h"
#include "inspect_client.h"
#include "scratch.h"
#include "waits.h"

/* ---- between the library and the system ---- */

enum function { PTHREAD_CREATE, EPOLL_CREATE, PIPE, EPOLL_CTL, SOCKET, BIND, LISTEN, ACCEPT };

/* Which calls of a function are refused: those numbered from `first` to `last`, beginning with 1 at
 * the last refuse_calls. */
struct refusal {
    atomic_uint calls;
    atomic_uint first;
    atomic_uint last;
};

static struct refusal refusals[ACCEPT + 1];

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
int __real_pipe2(int *ends, int flags);
int __wrap_pipe2(int *ends, int flags);
int __real_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
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

int __wrap_pipe2(int *ends, int flags)
{
    return is_refused(PIPE) ? fail_with(ENFILE) : __real_pipe2(ends, flags);
}

int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    return is_refused(EPOLL_CTL) ? fail_with(ENOSPC)
                                 : __real_epoll_ctl(epoll, operation, fd, event);
}

/* Whatever the call, it has six registers for its arguments. */
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    return number == SYS_epoll_ctl && is_refused(EPOLL_CTL)
               ? fail_with(ENOSPC)
               : __real_syscall(number, a, b, c, d, e, f);
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

static void create(void)
{
    world_create((skua_runtime_config){.worker_count = WORKERS, .stall_signal = SIGNAL});
}

/* What a start that failed must leave as it was. */
struct surroundings {
    uint32_t threads;
    uint32_t files;
    uint64_t blocks;
};

static struct surroundings look_around(void)
{
    return (struct surroundings){
        .threads = os_wait_alone(),
        .files = os_file_count(),
        .blocks = counting_allocator_live_blocks(&world->api->memory),
    };
}

static void (*handler_of_signal(void))(int)
{
    struct sigaction action;
    assert_int_equal(sigaction(SIGNAL, NULL, &action), 0);
    return action.sa_handler;
}

static void assert_as_if_never_started(struct surroundings before)
{
    struct actor *actor = actor_new(ACTS(finishes(0)));
    const struct surroundings now = look_around();
    assert_int_equal(now.threads, before.threads);
    assert_int_equal(now.files, before.files);
    /* Workers that began have made the pool of event nodes grow, once. */
    assert_in_range(now.blocks, before.blocks, before.blocks + 1);
    assert_ptr_equal(handler_of_signal(), SIG_DFL);
    assert_int_equal(skua_runtime_stop(world_runtime(), 0), SKUA_E_NOT_STARTED);
    assert_int_equal(actor_try_submit(actor), SKUA_E_NOT_STARTED);
    assert_int_equal(actor->inits, 0);
}

/* All that start has to set up is there. */
static void assert_usable(void)
{
    assert_int_equal(world_try_start(), SKUA_E_STARTED);
    for (int i = 0; i < 100; i++) {
        assert_result(actor_run(actor_new(ACTS(finishes(0)))), 0);
    }
    assert_true(handler_of_signal() != SIG_DFL);
}

static void close_and_compare(struct surroundings before)
{
    world_close();
    assert_int_equal(os_wait_alone(), before.threads);
    assert_int_equal(os_file_count(), before.files);
}

/* What every start calls. */
static const struct {
    enum function function;
    int error;
    unsigned calls;
} needed[] = {
    {PTHREAD_CREATE, SKUA_E_THREAD, WORKERS + 1}, /* and the monitor */
    {EPOLL_CREATE, SKUA_E_POLLER, 1},
    {PIPE, SKUA_E_POLLER, 1},
    {EPOLL_CTL, SKUA_E_POLLER, 2},
};

TEST(refusal_of_any_call_of_start_can_be_tried_again)
{
    FOR_ROWS (row, needed) {
        create();
        const struct surroundings before = look_around();
        for (unsigned n = 1; n <= row->calls; n++) {
            refuse_calls(row->function, n, n);
            assert_int_equal(world_try_start(), row->error);
            assert_true(calls_of(row->function) >= n);
            refuse_none(row->function);
            assert_as_if_never_started(before);
        }
        world_start();
        assert_int_equal(calls_of(row->function), row->calls);
        assert_usable();
        close_and_compare(before);
    }
}

TEST(refusal_of_start_leaves_a_runtime_that_can_be_destroyed)
{
    FOR_ROWS (row, needed) {
        create();
        refuse_all(row->function);
        assert_int_equal(world_try_start(), row->error);
        assert_int_equal(world_try_start(), row->error);
        refuse_none(row->function);
        world_close(); /* by destroying it only */
    }
}

/* Before a start that works, commands and pools can still be registered. */
TEST(refusal_of_start_freezes_nothing)
{
    const skua_handler handler = {.name = "late", .run = complete_at_once};
    const skua_blocking_pool pool = {.name = "late"};
    create();
    refuse_all(PTHREAD_CREATE);
    assert_int_equal(world_try_start(), SKUA_E_THREAD);
    refuse_none(PTHREAD_CREATE);
    assert_int_equal(skua_command_register(world_runtime(), 1, &handler), 0);
    assert_int_equal(skua_blocking_register(world_runtime(), &pool, NULL), 0);
    world_start();
    assert_int_equal(skua_command_register(world_runtime(), 2, &handler), SKUA_E_FROZEN);
}

/* ---- the inspector ---- */

static void create_inspected(void)
{
    world_create(
        (skua_runtime_config){.worker_count = WORKERS, .stall_signal = SIGNAL, .inspect = true});
}

/* Start fails and leaves no socket; then it works. */
static void check_inspected_start(enum function function, unsigned n, int expected)
{
    scratch_open();
    create_inspected();
    const struct surroundings before = look_around();
    refuse_calls(function, n, n);
    assert_int_equal(world_try_start(), expected);
    refuse_none(function);
    assert_as_if_never_started(before);
    assert_false(inspect_is_there(world_runtime()));
    world_start();
    assert_usable();
    inspect_say_hello(world_runtime());
    close_and_compare(before);
}

TEST(refusal_of_what_the_inspector_needs_can_be_tried_again)
{
    static const struct {
        enum function function;
        unsigned n;
        int error;
    } calls[] = {
        {PIPE, 1, SKUA_E_INSPECT},
        {SOCKET, 1, SKUA_E_INSPECT},
        {BIND, 1, SKUA_E_INSPECT},
        {LISTEN, 1, SKUA_E_INSPECT},
        {PTHREAD_CREATE, 1, SKUA_E_THREAD},
        /* What comes after it: the socket was there already. */
        {PIPE, 2, SKUA_E_POLLER},
        {EPOLL_CREATE, 1, SKUA_E_POLLER},
    };
    FOR_ROWS (call, calls) {
        check_inspected_start(call->function, call->n, call->error);
    }
}

TEST(refusal_of_any_thread_after_the_inspector_ends_it)
{
    FOR_ROUNDS (n, WORKERS + 1) { /* the workers', the monitor's */
        check_inspected_start(PTHREAD_CREATE, 1 + (unsigned)n, SKUA_E_THREAD);
    }
}

/* Only the environment has asked for it. */
TEST(refusal_of_the_inspector_is_a_warning_by_environment)
{
    static const struct {
        enum function function;
        const char *reason;
    } cases[] = {
        {SOCKET, "/skua: Too many open files in system\n"},
        {PTHREAD_CREATE, "the system refused to create a thread\n"},
    };
    static struct capture capture;
    assert_int_equal(setenv("SKUA_INSPECT", "1", 1), 0);
    FOR_ROWS (row, cases) {
        scratch_open();
        create();
        capture_begin(&capture);
        refuse_calls(row->function, 1, 1);
        const int error = world_try_start();
        refuse_none(row->function);
        const char *said = capture_end(&capture);
        assert_int_equal(error, 0);
        assert_ptr_equal(strstr(said, "skua: SKUA_INSPECT: "), said);
        assert_ptr_equal(strstr(said, row->reason), said + strlen(said) - strlen(row->reason));
        assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* one line */
        assert_false(inspect_is_there(world_runtime()));
        assert_usable();
    }
    assert_int_equal(unsetenv("SKUA_INSPECT"), 0);
}

/* No descriptors are left for a while. A client that waits gets its turn afterwards. */
TEST(refusal_of_a_connection_makes_the_client_wait)
{
    struct inspect_client client;
    scratch_open();
    create_inspected();
    world_start();
    refuse_calls(ACCEPT, 1, 3);
    inspect_open(&client, world_runtime());
    inspect_ask(&client, "hello");
    assert_int_equal(calls_of(ACCEPT), 4);
    refuse_none(ACCEPT);
    inspect_close(&client);
}

/* ---- threads of a blocking pool ---- */

#define CALLS 3

/* A process makes some calls, all of which end so. Returns the job, which counts what has run. */
static struct job *call_all(int error)
{
    struct job *job = job_new((struct job){0});
    struct actor *caller = actor_new(ACTS(runs_job(0, NULL, job), runs_job(1, NULL, job),
                                          runs_job(2, NULL, job), awaits(CALLS), finishes(0)));
    assert_result(actor_run(caller), 0);
    assert_completed_each_once(caller, CALLS, error);
    assert_int_equal(job->input_drops, CALLS);
    return job;
}

TEST(refusal_of_a_pools_only_thread_is_the_error_of_the_call)
{
    (void)os_wait_alone();
    world_open();
    const uint32_t threads = os_thread_count();
    refuse_all(PTHREAD_CREATE);
    assert_int_equal(call_all(SKUA_E_THREAD)->begun, 0);
    assert_int_equal(calls_of(PTHREAD_CREATE), CALLS); /* each has tried */
    refuse_none(PTHREAD_CREATE);
    assert_int_equal(os_thread_count(), threads);

    assert_int_equal(call_all(0)->begun, CALLS);
}

/* One thread is there: it does the work of those that could not be made. */
TEST(refusal_of_a_pools_next_thread_makes_calls_wait)
{
    world_open();
    refuse_calls(PTHREAD_CREATE, 2, UINT_MAX);
    assert_int_equal(call_all(0)->begun, CALLS);
    refuse_none(PTHREAD_CREATE);
}

/* ---- spare workers ---- */

static bool has_tried_often(void *arg)
{
    (void)arg;
    return calls_of(PTHREAD_CREATE) >= 5;
}

static bool has_a_spare(void *arg)
{
    (void)arg;
    return world_stats().spares > 0;
}

/* A step keeps the only worker. The monitor does not give up; until it succeeds, nobody else can
 * run. */
static void check_spare(struct act keep)
{
    (void)os_wait_alone();
    world_open_with((skua_runtime_config){.worker_count = 1, .stall_limit_ns = SKUA_MILLISECOND});
    const uint32_t threads = os_thread_count();
    refuse_all(PTHREAD_CREATE);
    struct actor *keeper = actor_start(ACTS(keep, finishes(0)));
    actor_await_held(keeper, 1);
    struct actor *waiting = actor_start(ACTS(finishes(0)));

    wait_until(has_tried_often, NULL, "the monitor to ask for a thread again");
    assert_int_equal(waiting->steps, 0);
    assert_int_equal(world_stats().spares, 0);
    assert_int_equal(os_thread_count(), threads);
    refuse_none(PTHREAD_CREATE);
    actor_await_end(waiting);
    wait_until(has_a_spare, NULL, "the spare worker to be counted"); /* after its start */

    actor_let_go(keeper);
    actor_await_end(keeper);
}

TEST(refusal_of_a_spare_for_a_blocking_step_is_made_up_for)
{
    check_spare(blocks());
}

TEST(refusal_of_a_spare_for_a_stuck_step_is_made_up_for)
{
    check_spare(holds());
}

/* A spare that could not be started does not count, but for the moment of trying. */
static bool has_one_worker(void *arg)
{
    (void)arg;
    return skua_stats_read(world_runtime(), NULL, NULL, 0) == 1;
}

/* Without any spare worker the step goes on as if nothing had been said, and all can be stopped. */
TEST(refusal_of_every_spare_only_takes_the_time_of_the_step)
{
    world_open_with((skua_runtime_config){.worker_count = 1});
    refuse_all(PTHREAD_CREATE);
    struct actor *keeper = actor_start(ACTS(blocks(), finishes(0)));
    actor_await_held(keeper, 1);
    struct actor *waiting = actor_start(ACTS(finishes(0)));
    actor_let_go(keeper);
    actor_await_end(keeper);
    actor_await_end(waiting);
    assert_int_equal(world_stats().spares, 0);
    wait_until(has_one_worker, NULL, "the spare worker to be forgotten");
    world_close();
    refuse_none(PTHREAD_CREATE);
}

/* ---- registrations ---- */

TEST(refusal_of_a_registration_is_the_error_of_the_wait)
{
    world_open();
    const int fd = eventfd_open();
    refuse_all(EPOLL_CTL);
    assert_int_equal(wait_writable(fd), SKUA_E_NO_MEMORY); /* ENOSPC: too many are watched */
    refuse_none(EPOLL_CTL);
    assert_int_equal(wait_writable(fd), 0);
}
