/* SPDX-License-Identifier: MIT */
/* Waiting for real descriptors: what ends a wait and what does not, descriptors that are closed or
 * become another file under it, and what the system or the allocator refuses. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mutex.h"
#include "dispatch/reserved.h"
#include "runtime/runtime.h"
#include "runtime_support.h"

/* ---- descriptors ---- */

static void make_pipe(int ends[2])
{
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
}

static void make_pair(int ends[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
}

static void make_eventfd(int ends[2])
{
    ends[0] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ends[1] = -1;
    assert_true(ends[0] >= 0);
}

static void close_both(const int ends[2])
{
    assert_int_equal(close(ends[0]), 0);
    assert_true(ends[1] < 0 || close(ends[1]) == 0);
}

static void write_byte(int fd)
{
    assert_int_equal(write(fd, "x", 1), 1);
}

static void signal_eventfd(int fd)
{
    const uint64_t one = 1;
    assert_int_equal(write(fd, &one, sizeof one), sizeof one);
}

/* Until nothing more fits in. */
static void fill(int fd)
{
    static const char block[4096];
    while (write(fd, block, sizeof block) > 0) {
    }
    assert_int_equal(errno, EAGAIN);
    while (write(fd, block, 1) > 0) {
    }
    assert_int_equal(errno, EAGAIN);
}

/* Until nothing is left. */
static void drain(int fd)
{
    char block[4096];
    while (read(fd, block, sizeof block) > 0) {
    }
    assert_int_equal(errno, EAGAIN);
}

static struct sockaddr_in loopback(in_port_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static struct sockaddr_in address_of(int fd)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    return address;
}

static void make_listener(int ends[2])
{
    const struct sockaddr_in address = loopback(0);
    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ends[1] = -1;
    assert_true(ends[0] >= 0);
    assert_int_equal(bind(ends[0], (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(ends[0], 1), 0);
}

static int connect_to(struct sockaddr_in address, int flags)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    assert_true(fd >= 0);
    const int error = connect(fd, (const struct sockaddr *)&address, sizeof address);
    assert_true(error == 0 || errno == EINPROGRESS || errno == ECONNREFUSED);
    return fd;
}

/* Things to read from: ends[0] is waited for. */
struct kind {
    void (*open)(int ends[2]);
    void (*make_readable)(int ends[2]);
};

static void write_to_other(int ends[2])
{
    write_byte(ends[1]);
}

static void signal_this(int ends[2])
{
    signal_eventfd(ends[0]);
}

static void connect_to_this(int ends[2])
{
    ends[1] = connect_to(address_of(ends[0]), 0);
}

static const struct kind kinds[] = {
    {make_pipe, write_to_other},
    {make_pair, write_to_other},
    {make_eventfd, signal_this},
    {make_listener, connect_to_this},
};

/* Raises the number of files that may be open. Returns what it was. */
static rlim_t allow_many_files(void)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}

static void allow_files(rlim_t count)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = count;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* ---- a process that waits ---- */

#define TAG_WAIT UINT64_C(77)

/* How a test asks it to take its wait back. */
#define REASON_TAKE_BACK (SKUA_E_USER - 1)

/* Outlives the process. It waits for the descriptor in its first step and again at every message;
 * it ends when the runtime stops. */
struct watch {
    int fd;
    bool writes;
    bool reads_ahead;    /* all there is, as soon as it is told */
    uint64_t timeout_ns; /* or 0: none */
    uint32_t repeats;    /* it waits again by itself so often */
    struct tally ended;
    atomic_int error;      /* of the last wait that ended */
    atomic_uint strangers; /* events that are none of its own */
    skua_pid pid;
};

static void note_end(struct watch *watch, int error)
{
    atomic_store(&watch->error, error);
    tally_add(&watch->ended, 1);
}

static void begin_wait(struct watch *watch, skua_context *ctx, skua_step *out)
{
    int error = watch->writes ? skua_step_wait_writable(out, TAG_WAIT, watch->fd)
                              : skua_step_wait_readable(out, TAG_WAIT, watch->fd);
    if (error == 0 && watch->timeout_ns > 0) {
        error = skua_step_deadline(out, skua_context_deadline(ctx, watch->timeout_ns));
    }
    if (error != 0) {
        note_end(watch, error);
    }
}

static void end_wait(struct watch *watch, const skua_event *event, skua_context *ctx,
                     skua_step *out)
{
    uint64_t data; /* what an eventfd wants, more than a test has written into a pipe */
    (void)atomic_fetch_add(&watch->strangers, event->tag != TAG_WAIT);
    (void)atomic_fetch_add(&watch->strangers, skua_payload_size(&event->payload) != 0);
    if (watch->reads_ahead && event->error == 0) {
        (void)!read(watch->fd, &data, sizeof data);
    }
    if (watch->repeats > 0) {
        watch->repeats--;
        begin_wait(watch, ctx, out);
    }
    note_end(watch, event->error); /* last: the test may go on from here */
}

static int take_event(struct watch *watch, const skua_event *event, skua_context *ctx,
                      skua_step *out)
{
    switch ((enum skua_event_type)event->type) {
    case SKUA_EVENT_MESSAGE:
        begin_wait(watch, ctx, out);
        return 0;
    case SKUA_EVENT_COMPLETION:
        end_wait(watch, event, ctx, out);
        return 0;
    case SKUA_EVENT_CANCEL:
        if (event->error == REASON_TAKE_BACK) {
            return skua_step_cancel(out, TAG_WAIT);
        }
        skua_step_done(out, skua_payload_empty(0));
        return 0;
    case SKUA_EVENT_TICK:
        break;
    }
    (void)atomic_fetch_add(&watch->strangers, 1);
    return 0;
}

static int watch_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    struct watch *watch = api_world(self);
    int error = 0;
    if (count == 0) {
        begin_wait(watch, ctx, out);
    }
    for (size_t i = 0; i < count && error == 0; i++) {
        error = take_event(watch, &events[i], ctx, out);
    }
    return error;
}

static const skua_process_type watch_type = {
    .name = "watch", .state_size = sizeof(void *), .init = api_init_world, .step = watch_step};

/* Returns at once. */
static void watch_submit(struct watch *watch, const struct api *api)
{
    tally_init(&watch->ended);
    atomic_init(&watch->error, 1);
    atomic_init(&watch->strangers, 0);
    watch->pid = api_submit(api, &watch_type, watch);
}

/* Returns when it waits, for something that is not ready. */
static void watch_start(struct watch *watch, const struct api *api)
{
    watch_submit(watch, api);
    api_wait_state(api, watch->pid, SKUA_PROCESS_BLOCKED);
}

static void watch_again(struct watch *watch, const struct api *api)
{
    assert_int_equal(skua_message_send(api->runtime, watch->pid, skua_payload_empty(0)), 0);
}

/* Waits for the `times`-th end, which must be the last so far. */
static void expect_end(struct watch *watch, uint64_t times, int error)
{
    tally_wait(&watch->ended, times);
    assert_int_equal(tally_count(&watch->ended), times);
    assert_int_equal(atomic_load(&watch->error), error);
    assert_int_equal(atomic_load(&watch->strangers), 0);
}

/* Waits for a descriptor that is already ready. */
static void expect_ready(const struct api *api, int fd, bool writes)
{
    struct watch watch = {.fd = fd, .writes = writes};
    watch_submit(&watch, api);
    expect_end(&watch, 1, 0);
    assert_int_equal(skua_process_cancel(api->runtime, watch.pid, SKUA_E_STOPPED), 0);
    api_wait_end(api, watch.pid);
}

static struct net *net_of(const struct api *api)
{
    return &api->runtime->net;
}

/* Descriptors that are waited for. A process may hear of the end of its wait before the poller has
 * let go of the lock under which it counts. */
static uint32_t waits_of(const struct api *api)
{
    mutex_lock(&net_of(api)->lock);
    const uint32_t waits = load_seq_cst(&api->runtime->sched.poll.waits);
    mutex_unlock(&net_of(api)->lock);
    return waits;
}

/* Until the poller has dealt with all that was ready before: the kernel tells what is ready in that
 * order, and what it tells at once is dealt with under one lock. */
static void let_poller_catch_up(const struct api *api)
{
    int sentinel[2];
    make_eventfd(sentinel);
    signal_eventfd(sentinel[0]);
    expect_ready(api, sentinel[0], false);
    mutex_lock(&net_of(api)->lock);
    mutex_unlock(&net_of(api)->lock);
    assert_int_equal(skua_descriptor_close(api->runtime, sentinel[0]), 0);
}

static void assert_waits(struct watch *watch, const struct api *api, uint64_t ended)
{
    skua_process_info info;
    assert_int_equal(skua_process_info_read(api->runtime, watch->pid, &info), 0);
    assert_int_equal(info.state, SKUA_PROCESS_BLOCKED);
    assert_int_equal(tally_count(&watch->ended), ended);
}

/* ---- what ends a wait ---- */

TEST(net_wait_for_every_kind_ends_when_it_becomes_readable)
{
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        FOR_WORKER_COUNTS(workers)
        {
            int ends[2];
            struct api api;
            api_run(&api, workers);
            kinds[i].open(ends);
            struct watch watch = {.fd = ends[0]};
            watch_start(&watch, &api);
            let_poller_catch_up(&api);
            assert_waits(&watch, &api, 0);

            kinds[i].make_readable(ends);

            expect_end(&watch, 1, 0);
            assert_int_equal(api_stats(&api).ready, 2); /* and the sentinel */
            api_stop(&api);
            close_both(ends);
        }
    }
}

TEST(net_wait_for_what_is_readable_already_ends_at_once)
{
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        int ends[2];
        struct api api;
        api_run(&api, 2);
        kinds[i].open(ends);
        kinds[i].make_readable(ends);

        expect_ready(&api, ends[0], false);

        api_stop(&api);
        close_both(ends);
    }
}

/* The kernel is asked for edges, but a wait is about the state. */
TEST(net_wait_for_data_that_was_left_unread_ends_every_time)
{
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        int ends[2];
        struct api api;
        api_run(&api, 2);
        kinds[i].open(ends);
        struct watch watch = {.fd = ends[0], .repeats = 999};
        watch_start(&watch, &api);

        kinds[i].make_readable(ends);
        expect_end(&watch, 1000, 0);

        expect_ready(&api, ends[0], false); /* for another process, too */
        api_stop(&api);
        assert_int_equal(tally_count(&watch.ended), 1000);
        close_both(ends);
    }
}

TEST(net_wait_after_reading_all_waits_for_new_data)
{
    int ends[2];
    struct api api;
    api_run(&api, 2);
    make_pipe(ends);
    struct watch watch = {.fd = ends[0], .reads_ahead = true, .repeats = UINT32_MAX};
    watch_start(&watch, &api);
    for (uint64_t round = 1; round <= 1000; round++) {
        write_byte(ends[1]);
        expect_end(&watch, round, 0);
    }
    api_wait_state(&api, watch.pid, SKUA_PROCESS_BLOCKED);
    let_poller_catch_up(&api);
    assert_waits(&watch, &api, 1000);
    api_stop(&api);
    close_both(ends);
}

static void (*const two_way[])(int ends[2]) = {make_pipe, make_pair};

/* ends[1] is written to. */
TEST(net_wait_ends_when_there_is_room_to_write)
{
    for (size_t i = 0; i < COUNT_OF(two_way); i++) {
        int ends[2];
        struct api api;
        api_run(&api, 2);
        two_way[i](ends);
        expect_ready(&api, ends[1], true);
        fill(ends[1]);
        struct watch watch = {.fd = ends[1], .writes = true};
        watch_start(&watch, &api);
        let_poller_catch_up(&api);
        assert_waits(&watch, &api, 0);

        drain(ends[0]);

        expect_end(&watch, 1, 0);
        api_stop(&api);
        close_both(ends);
    }
}

TEST(net_wait_for_a_connection_ends_when_it_stands)
{
    int listener[2];
    struct api api;
    api_run(&api, 2);
    make_listener(listener);
    const int client = connect_to(address_of(listener[0]), SOCK_NONBLOCK);

    expect_ready(&api, client, true);
    expect_ready(&api, listener[0], false);

    const int server = accept4(listener[0], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(server >= 0);
    struct watch watch = {.fd = server};
    watch_start(&watch, &api);
    write_byte(client);
    expect_end(&watch, 1, 0);
    api_stop(&api);
    close_both((const int[]){server, client});
    close_both(listener);
}

TEST(net_wait_for_a_connection_ends_when_it_is_refused)
{
    int listener[2];
    struct api api;
    api_run(&api, 1);
    make_listener(listener);
    const struct sockaddr_in nobody = address_of(listener[0]);
    close_both(listener);
    const int client = connect_to(nobody, SOCK_NONBLOCK);

    expect_ready(&api, client, true);
    expect_ready(&api, client, false);

    api_stop(&api);
    assert_int_equal(close(client), 0);
}

/* ---- both directions, many waiters ---- */

/* A socket that can be neither read nor written. */
static void make_full_pair(int ends[2])
{
    make_pair(ends);
    fill(ends[0]);
}

TEST(net_reader_and_writer_of_one_descriptor_are_told_separately)
{
    for (int reader_first = 0; reader_first < 2; reader_first++) {
        int ends[2];
        struct api api;
        api_run(&api, 2);
        make_full_pair(ends);
        struct watch reader = {.fd = ends[0]};
        struct watch writer = {.fd = ends[0], .writes = true};
        struct watch *first = reader_first ? &reader : &writer;
        struct watch *second = reader_first ? &writer : &reader;
        watch_start(&reader, &api);
        watch_start(&writer, &api);
        assert_int_equal(waits_of(&api), 1); /* one descriptor */

        for (int i = 0; i < 2; i++) {
            if ((i == 0) == (reader_first == 1)) {
                write_byte(ends[1]);
            } else {
                drain(ends[1]);
            }
            expect_end(i == 0 ? first : second, 1, 0);
            let_poller_catch_up(&api);
            if (i == 0) {
                assert_waits(second, &api, 0);
            }
        }

        assert_int_equal(tally_count(&first->ended), 1);
        assert_int_equal(waits_of(&api), 0);
        api_stop(&api);
        close_both(ends);
    }
}

#define CROWD 100

TEST(net_all_waiters_of_one_descriptor_are_told)
{
    const uint32_t workers = test_workers();
    int ends[2];
    struct watch crowd[CROWD] = {{0}};
    struct api api;
    api_run(&api, workers);
    make_full_pair(ends);
    for (size_t i = 0; i < CROWD; i++) {
        crowd[i].fd = ends[0];
        crowd[i].writes = i % 4 == 3;
        watch_start(&crowd[i], &api);
    }

    write_byte(ends[1]);

    for (size_t i = 0; i < CROWD; i++) {
        if (!crowd[i].writes) {
            expect_end(&crowd[i], 1, 0);
        }
    }
    let_poller_catch_up(&api);
    for (size_t i = 0; i < CROWD; i++) {
        if (crowd[i].writes) {
            assert_waits(&crowd[i], &api, 0);
        }
    }
    drain(ends[1]);
    for (size_t i = 0; i < CROWD; i++) {
        expect_end(&crowd[i], 1, 0);
    }
    assert_int_equal(waits_of(&api), 0);
    api_stop(&api);
    close_both(ends);
}

/* One process, many waits of its own. */
static int multiple_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                         skua_step *out)
{
    struct watch *watch = api_world(self);
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        (void)atomic_fetch_add(&watch->strangers, events[i].type != SKUA_EVENT_COMPLETION);
        (void)atomic_fetch_add(&watch->strangers, events[i].error != 0);
        (void)atomic_fetch_add(&watch->strangers, events[i].tag >= CROWD);
    }
    for (uint64_t tag = 0; count == 0 && tag < CROWD; tag++) {
        if (skua_step_wait_readable(out, tag, watch->fd) != 0) {
            return SKUA_E_USER;
        }
    }
    tally_add(&watch->ended, count);
    if (tally_count(&watch->ended) == CROWD) {
        skua_step_done(out, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type multiple_type = {.name = "multiple",
                                                .state_size = sizeof(void *),
                                                .init = api_init_world,
                                                .step = multiple_step};

TEST(net_process_may_wait_for_one_descriptor_many_times)
{
    int ends[2];
    struct api api;
    api_run(&api, 2);
    make_pipe(ends);
    struct watch watch = {.fd = ends[0]};
    tally_init(&watch.ended);
    const skua_pid pid = api_submit(&api, &multiple_type, &watch);
    api_wait_state(&api, pid, SKUA_PROCESS_BLOCKED);
    assert_int_equal(tally_count(&watch.ended), 0);

    write_byte(ends[1]);

    tally_wait(&watch.ended, CROWD);
    api_wait_end(&api, pid);
    assert_int_equal(tally_count(&watch.ended), CROWD);
    assert_int_equal(atomic_load(&watch.strangers), 0);
    assert_int_equal(api_stats(&api).ready, CROWD);
    api_stop(&api);
    close_both(ends);
}

/* ---- who looks ---- */

/* Nobody has to know about what nobody waits for, although the kernel knows the descriptor. */
TEST(net_descriptor_that_nobody_waits_for_wakes_nobody)
{
    int ends[2];
    int quiet[2];
    const struct timespec moment = {.tv_nsec = 100000}; /* in which somebody could wake */
    struct api api;
    api_run(&api, 2);
    make_pipe(ends);
    make_pipe(quiet);
    struct watch bystander = {.fd = quiet[0]}; /* so that a worker is in the poller */
    watch_start(&bystander, &api);
    write_byte(ends[1]);
    expect_ready(&api, ends[0], false);
    let_poller_catch_up(&api);
    const uint64_t before = api_stats(&api).polls;

    for (int i = 0; i < 500; i++) {
        write_byte(ends[1]);
        (void)nanosleep(&moment, NULL);
    }

    assert_true(api_stats(&api).polls < before + 50); /* the monitor looks now and then */
    assert_waits(&bystander, &api, 0);
    api_stop(&api);
    close_both(ends);
    close_both(quiet);
}

#define COMMAND_STAY 7

/* Keeps the worker in the same step until the test permits it to go on. */
static int stay_handler(void *arg, skua_command *command, skua_payload *result)
{
    (void)command;
    (void)result;
    tally_wait(arg, 1);
    return 0;
}

static int stay_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    const struct watch *watch = api_world(self);
    (void)ctx;
    if (count > 0) {
        (void)api_finish_if_cancelled(events, count, out);
        return 0;
    }
    const int error = skua_step_wait_readable(out, TAG_WAIT, watch->fd);
    return error != 0 ? error : skua_step_yield(out, COMMAND_STAY, 0, skua_payload_empty(0));
}

static const skua_process_type stay_type = {
    .name = "stay", .state_size = sizeof(void *), .init = api_init_world, .step = stay_step};

static bool one_was_ready(void *arg)
{
    return api_stats(arg).ready == 1;
}

/* No step counts as stuck here, so the monitor does not help. */
TEST(net_wait_is_attended_while_the_worker_that_began_it_is_busy)
{
    int ends[2];
    struct tally permission;
    struct api api;
    const skua_handler handler = {.name = "stay", .run = stay_handler, .arg = &permission};
    tally_init(&permission);
    api_create(&api, (skua_runtime_config){.worker_count = 2, .stall_limit_ns = API_NEVER_STUCK});
    assert_int_equal(skua_command_register(api.runtime, COMMAND_STAY, &handler), 0);
    api_start(&api);
    make_pipe(ends);
    struct watch watch = {.fd = ends[0]};
    (void)api_submit(&api, &stay_type, &watch);
    write_byte(ends[1]);

    wait_until(one_was_ready, &api, "the other worker to look at the descriptor");

    tally_add(&permission, 1);
    api_stop(&api);
    close_both(ends);
}

/* ---- hang-ups and errors ---- */

TEST(net_hang_up_ends_the_wait_of_a_reader)
{
    for (size_t i = 0; i < COUNT_OF(two_way); i++) {
        int ends[2];
        char byte;
        struct api api;
        api_run(&api, 2);
        two_way[i](ends);
        struct watch watch = {.fd = ends[0]};
        watch_start(&watch, &api);

        assert_int_equal(close(ends[1]), 0);

        expect_end(&watch, 1, 0);
        assert_int_equal(read(ends[0], &byte, 1), 0);
        expect_ready(&api, ends[0], false);
        api_stop(&api);
        assert_int_equal(close(ends[0]), 0);
    }
}

TEST(net_hang_up_ends_the_wait_of_a_writer)
{
    void (*const before)(int) = signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < COUNT_OF(two_way); i++) {
        int ends[2];
        struct api api;
        api_run(&api, 2);
        two_way[i](ends);
        fill(ends[1]);
        struct watch watch = {.fd = ends[1], .writes = true};
        watch_start(&watch, &api);

        assert_int_equal(close(ends[0]), 0);

        expect_end(&watch, 1, 0);
        assert_int_equal(write(ends[1], "x", 1), -1);
        assert_int_equal(errno, EPIPE);
        api_stop(&api);
        assert_int_equal(close(ends[1]), 0);
    }
    (void)signal(SIGPIPE, before);
}

TEST(net_hang_up_ends_the_waits_of_both)
{
    int ends[2];
    struct api api;
    api_run(&api, 2);
    make_full_pair(ends);
    struct watch reader = {.fd = ends[0]};
    struct watch writer = {.fd = ends[0], .writes = true};
    watch_start(&reader, &api);
    watch_start(&writer, &api);

    assert_int_equal(close(ends[1]), 0);

    expect_end(&reader, 1, 0);
    expect_end(&writer, 1, 0);
    api_stop(&api);
    assert_int_equal(close(ends[0]), 0);
}

/* The other side writes no more, but still reads. */
TEST(net_half_close_ends_the_wait_of_a_reader_only)
{
    int ends[2];
    struct api api;
    api_run(&api, 2);
    make_full_pair(ends);
    struct watch reader = {.fd = ends[0]};
    struct watch writer = {.fd = ends[0], .writes = true};
    watch_start(&reader, &api);
    watch_start(&writer, &api);

    assert_int_equal(shutdown(ends[1], SHUT_WR), 0);

    expect_end(&reader, 1, 0);
    let_poller_catch_up(&api);
    assert_waits(&writer, &api, 0);
    drain(ends[1]);
    expect_end(&writer, 1, 0);
    api_stop(&api);
    close_both(ends);
}

/* ---- deadlines and taking back ---- */

TEST(net_wait_ends_at_its_deadline)
{
    for (int writes = 0; writes < 2; writes++) {
        int ends[2];
        struct api api;
        api_run(&api, 2);
        make_full_pair(ends);
        struct watch watch = {
            .fd = ends[0], .writes = writes == 1, .timeout_ns = SKUA_MILLISECOND, .repeats = 9};
        watch_submit(&watch, &api);
        expect_end(&watch, 10, SKUA_E_TIMEOUT);
        assert_int_equal(api_stats(&api).ready, 0);
        api_stop(&api);
        close_both(ends);
    }
}

TEST(net_wait_that_has_timed_out_does_not_disturb_the_next_one)
{
    const uint32_t workers = test_workers();
    int ends[2];
    struct api api;
    api_run(&api, workers);
    make_pipe(ends);
    struct watch watch = {.fd = ends[0], .timeout_ns = SKUA_MILLISECOND};
    struct watch other = {.fd = ends[0]};
    watch_submit(&watch, &api);
    expect_end(&watch, 1, SKUA_E_TIMEOUT);
    api_wait_state(&api, watch.pid, SKUA_PROCESS_IDLE);
    watch.timeout_ns = 0;
    watch_again(&watch, &api);
    api_wait_state(&api, watch.pid, SKUA_PROCESS_BLOCKED);
    watch_start(&other, &api);
    let_poller_catch_up(&api);
    assert_waits(&watch, &api, 1);

    write_byte(ends[1]);

    expect_end(&watch, 2, 0);
    expect_end(&other, 1, 0);
    api_stop(&api);
    assert_int_equal(tally_count(&watch.ended), 2);
    close_both(ends);
}

TEST(net_descriptor_that_is_ready_first_has_no_time_out)
{
    int ends[2];
    struct api api;
    api_run(&api, 2);
    make_pipe(ends);
    struct watch watch = {.fd = ends[0], .timeout_ns = 3600 * SKUA_SECOND};
    watch_start(&watch, &api);
    write_byte(ends[1]);
    expect_end(&watch, 1, 0);
    assert_int_equal(api_stats(&api).timers, 0);
    api_stop(&api);
    close_both(ends);
}

TEST(net_wait_that_is_taken_back_ends_with_that)
{
    const uint32_t workers = test_workers();
    int ends[2];
    struct api api;
    api_run(&api, workers);
    make_pipe(ends);
    struct watch watch = {.fd = ends[0]};
    struct watch other = {.fd = ends[0]};
    watch_start(&watch, &api);
    watch_start(&other, &api);

    assert_int_equal(skua_process_cancel(api.runtime, watch.pid, REASON_TAKE_BACK), 0);
    expect_end(&watch, 1, SKUA_E_CANCELLED);
    write_byte(ends[1]);
    expect_end(&other, 1, 0);
    let_poller_catch_up(&api);
    assert_int_equal(tally_count(&watch.ended), 1);

    watch_again(&watch, &api);
    expect_end(&watch, 2, 0);
    api_stop(&api);
    close_both(ends);
}

/* Waits and takes it back, again and again, without the descriptor ever being ready. */
struct fickle {
    int fd;
    uint32_t rounds;
    uint32_t wrong;
    struct tally done;
};

static int fickle_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct fickle *fickle = api_world(self);
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        fickle->wrong +=
            events[i].type == SKUA_EVENT_COMPLETION && events[i].error != SKUA_E_CANCELLED;
    }
    if (api_finish_if_cancelled(events, count, out)) {
        return 0;
    }
    if (fickle->rounds == 0) {
        tally_add(&fickle->done, 1);
        return 0;
    }
    fickle->rounds--;
    const int error = skua_step_wait_readable(out, TAG_WAIT, fickle->fd);
    return error != 0 ? error : skua_step_cancel(out, TAG_WAIT);
}

static const skua_process_type fickle_type = {
    .name = "fickle", .state_size = sizeof(void *), .init = api_init_world, .step = fickle_step};

TEST(net_waits_that_ended_otherwise_leave_no_memory_behind)
{
    int ends[2];
    struct api api;
    api_run(&api, 1);
    make_pipe(ends);
    struct fickle fickle = {.fd = ends[0], .rounds = 10000};
    tally_init(&fickle.done);
    struct watch resident = {.fd = ends[0]}; /* must not be forgotten with the others */
    watch_start(&resident, &api);
    const uint64_t before = counting_allocator_live_blocks(&api.memory);

    (void)api_submit(&api, &fickle_type, &fickle);
    tally_wait(&fickle.done, 1);

    assert_int_equal(fickle.wrong, 0);
    assert_true(counting_allocator_live_blocks(&api.memory) < before + 20);
    assert_waits(&resident, &api, 0);
    write_byte(ends[1]);
    expect_end(&resident, 1, 0);
    api_stop(&api);
    close_both(ends);
}

/* ---- descriptors that cannot be waited for ---- */

static void expect_refused(const struct api *api, int fd)
{
    for (int writes = 0; writes < 2; writes++) {
        struct watch watch = {.fd = fd, .writes = writes == 1};
        watch_submit(&watch, api);
        expect_end(&watch, 1, SKUA_E_DESCRIPTOR);
        assert_int_equal(skua_process_cancel(api->runtime, watch.pid, SKUA_E_STOPPED), 0);
        api_wait_end(api, watch.pid);
    }
    assert_int_equal(waits_of(api), 0);
}

/* Only a mistake can lead to them, but it must not cost the runtime its wake-ups. */
TEST(net_descriptors_of_the_runtime_are_refused)
{
    struct api api;
    int ends[2];
    make_pipe(ends);
    api_run(&api, 1);
    expect_refused(&api, api.runtime->net.epoll);
    expect_refused(&api, api.runtime->net.wake_up);
    struct watch watch = {.fd = ends[0]};
    watch_start(&watch, &api);
    api_wait_steps(&api, watch.pid, 1);
    assert_int_equal(skua_process_cancel(api.runtime, watch.pid, SKUA_E_STOPPED), 0);
    api_wait_end(&api, watch.pid);
    api_stop(&api);
    close_both(ends);
}

TEST(net_descriptor_that_is_no_such_thing_is_refused)
{
    char path[] = "/tmp/skua-test-net-XXXXXX";
    struct api api;
    api_run(&api, 2);
    const int file = mkstemp(path);
    const int directory = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(file >= 0 && directory >= 0);
    const int closed = dup(directory);
    assert_int_equal(close(closed), 0);
    expect_refused(&api, file);
    const uint64_t bytes = counting_allocator_live_bytes(&api.memory);

    expect_refused(&api, directory);
    expect_refused(&api, closed);
    expect_refused(&api, 100000);
    expect_refused(&api, INT_MAX);
    expect_refused(&api, -1);
    expect_refused(&api, INT_MIN);

    /* A made-up number does not make the runtime keep a table of that size. */
    assert_true(counting_allocator_live_bytes(&api.memory) < bytes + 100000);
    api_stop(&api);
    close_both((const int[]){file, directory});
    assert_int_equal(unlink(path), 0);
}

static void call_with_nothing(void *arg, skua_context *ctx, skua_step *out)
{
    int *errors = arg;
    (void)ctx;
    (void)out;
    errors[0] = skua_step_wait_readable(NULL, 0, 0);
    errors[1] = skua_step_wait_writable(NULL, 0, 0);
    errors[2] = skua_step_wait_readable(out, 0, -1);
    errors[3] = skua_step_wait_writable(out, 0, -1);
}

TEST(net_bad_arguments_are_refused_at_once)
{
    int errors[4] = {0};
    struct api api;
    api_run(&api, 1);
    api_in_step(&api, call_with_nothing, errors);
    assert_int_equal(errors[0], SKUA_E_INVALID);
    assert_int_equal(errors[1], SKUA_E_INVALID);
    assert_int_equal(errors[2], SKUA_E_DESCRIPTOR);
    assert_int_equal(errors[3], SKUA_E_DESCRIPTOR);
    api_stop(&api);
}

/* Yields the numbers of these commands itself, with payloads that are not theirs. */
static const skua_payload foreign_payloads[] = {
    {.storage = SKUA_PAYLOAD_EMPTY},
    {.storage = SKUA_PAYLOAD_INLINE, .inline_size = 4},
    {.storage = SKUA_PAYLOAD_POINTER},
    {.storage = SKUA_PAYLOAD_INLINE, .inline_size = 8, .as.words = {UINT64_C(1) << 32}},
};

static int foreign_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct watch *watch = api_world(self);
    (void)ctx;
    for (size_t i = 0; i < COUNT_OF(foreign_payloads) && count == 0; i++) {
        if (skua_step_yield(out, reserved_id(RESERVED_READABLE), i, foreign_payloads[i]) != 0 ||
            skua_step_yield(out, reserved_id(RESERVED_WRITABLE), i, foreign_payloads[i]) != 0) {
            return SKUA_E_USER;
        }
    }
    for (size_t i = 0; i < count; i++) {
        (void)atomic_fetch_add(&watch->strangers, events[i].error != SKUA_E_INVALID);
    }
    tally_add(&watch->ended, count);
    if (tally_count(&watch->ended) == 2 * COUNT_OF(foreign_payloads)) {
        skua_step_done(out, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type foreign_type = {
    .name = "foreign", .state_size = sizeof(void *), .init = api_init_world, .step = foreign_step};

TEST(net_commands_that_are_yielded_by_number_need_a_descriptor)
{
    struct watch watch = {0};
    struct api api;
    api_run(&api, 1);
    tally_init(&watch.ended);
    const skua_exit exit = api_run_process(&api, &foreign_type, &watch);
    assert_int_equal(exit.error, 0);
    assert_int_equal(tally_count(&watch.ended), 2 * COUNT_OF(foreign_payloads));
    assert_int_equal(atomic_load(&watch.strangers), 0);
    assert_int_equal(waits_of(&api), 0);
    api_stop(&api);
}

/* ---- closing ---- */

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

TEST(net_close_ends_all_waits_of_the_descriptor)
{
    const uint32_t workers = test_workers();
    int ends[2];
    int quiet[2];
    struct watch crowd[CROWD] = {{0}};
    struct api api;
    api_run(&api, workers);
    make_full_pair(ends);
    make_pipe(quiet);
    struct watch bystander = {.fd = quiet[0]};
    watch_start(&bystander, &api);
    for (size_t i = 0; i < CROWD; i++) {
        crowd[i].fd = ends[0];
        crowd[i].writes = i % 2 == 0;
        watch_start(&crowd[i], &api);
    }
    assert_int_equal(waits_of(&api), 2);

    assert_int_equal(skua_descriptor_close(api.runtime, ends[0]), 0);

    assert_false(is_open(ends[0]));
    for (size_t i = 0; i < CROWD; i++) {
        expect_end(&crowd[i], 1, SKUA_E_CLOSED);
    }
    let_poller_catch_up(&api);
    assert_waits(&bystander, &api, 0);
    assert_int_equal(waits_of(&api), 1);
    assert_int_equal(api_stats(&api).ready, 1); /* the sentinel */
    assert_int_equal(skua_descriptor_close(api.runtime, ends[0]), SKUA_E_DESCRIPTOR);
    write_byte(quiet[1]);
    expect_end(&bystander, 1, 0);
    api_stop(&api);
    assert_int_equal(close(ends[1]), 0);
    close_both(quiet);
}

TEST(net_close_without_waiters_closes)
{
    int ends[2];
    struct api api;
    const uint32_t files = os_file_count();
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    make_pipe(ends);
    assert_int_equal(skua_descriptor_close(NULL, ends[0]), SKUA_E_INVALID);
    assert_true(is_open(ends[0]));
    assert_int_equal(skua_descriptor_close(api.runtime, ends[0]), 0); /* before start */
    assert_false(is_open(ends[0]));
    api_start(&api);
    assert_int_equal(skua_descriptor_close(api.runtime, ends[1]), 0);
    assert_int_equal(skua_descriptor_close(api.runtime, ends[1]), SKUA_E_DESCRIPTOR);
    assert_int_equal(skua_descriptor_close(api.runtime, -1), SKUA_E_DESCRIPTOR);
    assert_int_equal(skua_descriptor_close(api.runtime, INT_MIN), SKUA_E_DESCRIPTOR);
    assert_int_equal(skua_descriptor_close(api.runtime, INT_MAX), SKUA_E_DESCRIPTOR);
    make_pipe(ends);
    struct watch watch = {.fd = ends[0]};
    watch_start(&watch, &api);
    assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), 0);
    assert_int_equal(skua_descriptor_close(api.runtime, ends[0]), 0); /* after stop */
    assert_false(is_open(ends[0]));
    assert_int_equal(tally_count(&watch.ended), 0);
    api_stop(&api);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(os_file_count(), files);
}

static void close_in_step(void *arg, skua_context *ctx, skua_step *out)
{
    int *fd = arg;
    (void)out;
    *fd = skua_descriptor_close(skua_context_runtime(ctx), *fd);
}

TEST(net_close_within_a_step_ends_the_waits_of_others)
{
    int ends[2];
    struct api api;
    api_run(&api, 1);
    make_pipe(ends);
    struct watch watch = {.fd = ends[0]};
    watch_start(&watch, &api);
    int closed = ends[0];
    api_in_step(&api, close_in_step, &closed);
    assert_int_equal(closed, 0);
    expect_end(&watch, 1, SKUA_E_CLOSED);
    api_stop(&api);
    assert_int_equal(close(ends[1]), 0);
}

/* ---- close() behind the runtime's back ---- */

/* Makes `number`, which is closed, mean a new pipe's end to read from. Returns the end to write. By
 * a bare system call: a thread sanitizer would take the reuse of a number that somebody waits for,
 * which is the point here, for a race. */
static int reuse_number(int number)
{
    int ends[2];
    assert_int_equal(syscall(SYS_pipe2, ends, O_NONBLOCK | O_CLOEXEC), 0);
    if (ends[1] == number) {
        const int moved = fcntl(ends[1], F_DUPFD_CLOEXEC, 0);
        assert_true(moved >= 0);
        ends[1] = moved; /* the number is overwritten below */
    }
    if (ends[0] != number) {
        assert_int_equal(dup2(ends[0], number), number);
        assert_int_equal(close(ends[0]), 0);
    }
    return ends[1];
}

/* The check of descriptors that are waited for runs every ten seconds of an idle runtime. It may be
 * called by any thread, so the test does not have to wait for that. */
static uint64_t check_now(const struct api *api)
{
    struct poller *poller = &net_of(api)->poller;
    return poller->check(poller, NULL, 1);
}

TEST(net_number_that_is_reused_serves_the_new_waiter_only)
{
    const uint32_t workers = test_workers();
    int before[2];
    struct api api;
    api_run(&api, workers);
    make_pipe(before);
    struct watch old = {.fd = before[0]};
    watch_start(&old, &api);
    assert_int_equal(close(before[0]), 0);
    const int writer = reuse_number(before[0]);
    struct watch fresh = {.fd = before[0]};

    watch_start(&fresh, &api);

    expect_end(&old, 1, SKUA_E_CLOSED);
    let_poller_catch_up(&api);
    assert_waits(&fresh, &api, 0);
    write_byte(writer);
    expect_end(&fresh, 1, 0);
    assert_int_equal(tally_count(&old.ended), 1);
    assert_int_equal(waits_of(&api), 0);
    api_stop(&api);
    close_both(before);
    assert_int_equal(close(writer), 0);
}

/* The old file lives on under another number, so the kernel still reports about it. */
TEST(net_old_file_of_a_reused_number_wakes_nobody)
{
    const uint32_t workers = test_workers();
    int before[2];
    struct api api;
    api_run(&api, workers);
    make_pipe(before);
    const int alive = dup(before[0]);
    struct watch old = {.fd = before[0]};
    watch_start(&old, &api);
    assert_int_equal(close(before[0]), 0);
    const int writer = reuse_number(before[0]);
    struct watch fresh = {.fd = before[0]};
    watch_start(&fresh, &api);
    expect_end(&old, 1, SKUA_E_CLOSED);

    write_byte(before[1]); /* the old file is readable now */
    let_poller_catch_up(&api);
    assert_waits(&fresh, &api, 0);

    write_byte(writer);
    expect_end(&fresh, 1, 0);
    expect_ready(&api, alive, false); /* and its other number can be waited for */
    assert_int_equal(tally_count(&old.ended), 1);
    api_stop(&api);
    close_both(before);
    close_both((const int[]){alive, writer});
}

TEST(net_new_file_of_a_number_does_not_wake_who_waited_for_the_old_one)
{
    int before[2];
    struct api api;
    api_run(&api, 2);
    make_pipe(before);
    const int alive = dup(before[0]);
    struct watch old = {.fd = before[0]};
    watch_start(&old, &api);
    assert_int_equal(close(before[0]), 0);
    const int writer = reuse_number(before[0]);

    write_byte(writer); /* nobody waits for this file */
    let_poller_catch_up(&api);
    assert_waits(&old, &api, 0);

    assert_true(check_now(&api) == UINT64_MAX); /* nothing is left to check */
    expect_end(&old, 1, SKUA_E_CLOSED);
    expect_ready(&api, before[0], false);
    api_stop(&api);
    close_both(before);
    close_both((const int[]){alive, writer});
}

TEST(net_number_that_is_reused_by_a_regular_file_serves_nobody)
{
    char path[] = "/tmp/skua-test-net-XXXXXX";
    int before[2];
    struct api api;
    api_run(&api, 2);
    make_pipe(before);
    const int file = mkstemp(path);
    assert_true(file >= 0);
    for (int checked = 0; checked < 2; checked++) {
        struct watch old = {.fd = before[0]};
        watch_start(&old, &api);
        const int alive = dup(before[0]);
        assert_int_equal(dup2(file, before[0]), before[0]); /* closes it, too */
        if (checked == 1) {
            (void)check_now(&api);
            expect_end(&old, 1, SKUA_E_CLOSED);
        }
        expect_refused(&api, before[0]);
        expect_end(&old, 1, SKUA_E_CLOSED);
        assert_int_equal(dup2(alive, before[0]), before[0]);
        assert_int_equal(close(alive), 0);
        assert_int_equal(skua_process_cancel(api.runtime, old.pid, SKUA_E_STOPPED), 0);
        api_wait_end(&api, old.pid);
    }
    api_stop(&api);
    close_both(before);
    assert_int_equal(close(file), 0);
    assert_int_equal(unlink(path), 0);
}

TEST(net_check_finds_what_was_closed_and_leaves_the_rest_alone)
{
    enum { PIPES = 600 }; /* more than are checked at once */
    struct watch *watches = calloc(PIPES, sizeof *watches);
    int(*ends)[2] = calloc(PIPES, sizeof *ends);
    assert_non_null(watches);
    assert_non_null(ends);
    const rlim_t files = allow_many_files();
    struct api api;
    api_run(&api, 2);
    for (size_t i = 0; i < PIPES; i++) {
        make_pipe(ends[i]);
        watches[i].fd = ends[i][0];
        watch_start(&watches[i], &api);
    }
    assert_int_equal(waits_of(&api), PIPES);
    for (size_t i = 0; i < PIPES; i += 3) {
        assert_int_equal(close(ends[i][0]), 0);
    }

    assert_true(check_now(&api) > 1 && check_now(&api) < UINT64_MAX); /* and later again */

    for (size_t i = 0; i < PIPES; i += 3) {
        expect_end(&watches[i], 1, SKUA_E_CLOSED);
    }
    let_poller_catch_up(&api);
    assert_int_equal(waits_of(&api), PIPES - PIPES / 3);
    for (size_t i = 0; i < PIPES; i++) {
        if (i % 3 != 0) {
            assert_waits(&watches[i], &api, 0);
            write_byte(ends[i][1]);
            expect_end(&watches[i], 1, 0);
            assert_int_equal(close(ends[i][0]), 0);
        }
        assert_int_equal(close(ends[i][1]), 0);
    }
    assert_int_equal(waits_of(&api), 0);
    assert_true(check_now(&api) == UINT64_MAX);
    api_stop(&api);
    allow_files(files);
    free(ends);
    free(watches);
}

/* The check of a runtime, counted. */
static atomic_uint checks;
static uint64_t (*checks_really)(struct poller *poller, struct worker *worker, uint64_t now);

static uint64_t count_check(struct poller *poller, struct worker *worker, uint64_t now)
{
    (void)atomic_fetch_add(&checks, 1);
    return checks_really(poller, worker, now);
}

/* The same by the runtime itself: its chore is wanted as soon as something is waited for. Its time,
 * ten seconds from then, is put into the past; the worker in the poller looks when it is woken. Who
 * is told then must run at once, and not when that worker happens to wake for the next check. */
TEST(net_check_runs_by_itself_when_its_time_has_come)
{
    const uint32_t workers = test_workers();
    int ends[2];
    int quiet[2];
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = workers});
    atomic_store(&checks, 0);
    checks_really = net_of(&api)->poller.check;
    net_of(&api)->poller.check = count_check;
    api_start(&api);
    struct scheduler *sched = &api.runtime->sched;
    make_pipe(ends);
    make_pipe(quiet);
    struct watch watch = {.fd = ends[0]};
    struct watch bystander = {.fd = quiet[0]};
    watch_start(&watch, &api);
    watch_start(&bystander, &api);
    const uint64_t due = load_seq_cst(&sched->chores.due[CHORE_CHECK]);
    assert_true(due > monotonic_ns() && due < monotonic_ns() + 11 * SKUA_SECOND);
    assert_int_equal(close(ends[0]), 0);

    store_seq_cst(&sched->chores.due[CHORE_CHECK], monotonic_ns());
    sched->poller->interrupt(sched->poller);

    expect_end(&watch, 1, SKUA_E_CLOSED);
    assert_int_equal(atomic_load(&checks), 1);
    let_poller_catch_up(&api);
    assert_waits(&bystander, &api, 0);
    assert_true(load_seq_cst(&sched->chores.due[CHORE_CHECK]) >= due);
    api_stop(&api);
    assert_int_equal(close(ends[1]), 0);
    close_both(quiet);
}

/* Only the number is gone: that its file becomes ready is a way to find out, not to be served. */
TEST(net_closed_number_of_a_file_that_lives_on_ends_the_wait_as_closed)
{
    for (int checked = 0; checked < 2; checked++) {
        int ends[2];
        struct api api;
        api_run(&api, 2);
        make_pipe(ends);
        const int alive = dup(ends[0]);
        struct watch watch = {.fd = ends[0]};
        struct watch other = {.fd = alive};
        watch_start(&watch, &api);
        watch_start(&other, &api);
        assert_int_equal(close(ends[0]), 0);

        if (checked == 1) {
            (void)check_now(&api);
            expect_end(&watch, 1, SKUA_E_CLOSED);
            let_poller_catch_up(&api);
            assert_waits(&other, &api, 0);
        }
        write_byte(ends[1]);

        expect_end(&other, 1, 0);
        expect_end(&watch, 1, SKUA_E_CLOSED);
        (void)check_now(&api);
        let_poller_catch_up(&api);
        assert_int_equal(tally_count(&watch.ended), 1);
        assert_int_equal(waits_of(&api), 0);
        api_stop(&api);
        close_both((const int[]){alive, ends[1]});
    }
}

/* Nobody has waited for the new file of the number, so this event is still about the old one. */
TEST(net_old_file_of_a_reused_number_does_not_serve_its_waiter_any_more)
{
    int ends[2];
    struct api api;
    api_run(&api, 2);
    make_pipe(ends);
    const int alive = dup(ends[0]);
    struct watch old = {.fd = ends[0]};
    watch_start(&old, &api);
    assert_int_equal(close(ends[0]), 0);
    const int writer = reuse_number(ends[0]);

    write_byte(ends[1]);

    expect_end(&old, 1, SKUA_E_CLOSED);
    struct watch fresh = {.fd = ends[0]};
    watch_start(&fresh, &api);
    write_byte(writer);
    expect_end(&fresh, 1, 0);
    assert_int_equal(waits_of(&api), 0);
    api_stop(&api);
    close_both(ends);
    close_both((const int[]){alive, writer});
}

/* skua_descriptor_close is about the number as well: the file lives on. */
TEST(net_close_of_one_number_leaves_the_waits_for_the_other_alone)
{
    int ends[2];
    struct api api;
    api_run(&api, 2);
    make_pipe(ends);
    const int alive = dup(ends[0]);
    struct watch watch = {.fd = ends[0]};
    struct watch other = {.fd = alive};
    watch_start(&watch, &api);
    watch_start(&other, &api);

    assert_int_equal(skua_descriptor_close(api.runtime, ends[0]), 0);
    expect_end(&watch, 1, SKUA_E_CLOSED);
    let_poller_catch_up(&api);
    assert_waits(&other, &api, 0);
    const int writer = reuse_number(ends[0]);
    struct watch fresh = {.fd = ends[0]};
    watch_start(&fresh, &api);

    write_byte(ends[1]);
    expect_end(&other, 1, 0);
    let_poller_catch_up(&api);
    assert_waits(&fresh, &api, 0);
    write_byte(writer);
    expect_end(&fresh, 1, 0);
    assert_int_equal(tally_count(&watch.ended), 1);
    api_stop(&api);
    close_both(ends);
    close_both((const int[]){alive, writer});
}

/* ---- processes and runtimes that end ---- */

TEST(net_process_that_is_ended_while_it_waits_leaves_the_others_alone)
{
    const uint32_t workers = test_workers();
    int ends[2];
    struct watch crowd[CROWD] = {{0}};
    struct api api;
    api_run(&api, workers);
    make_pipe(ends);
    for (size_t i = 0; i < CROWD; i++) {
        crowd[i].fd = ends[0];
        watch_start(&crowd[i], &api);
    }
    for (size_t i = 0; i < CROWD; i += 2) {
        assert_int_equal(skua_process_terminate(api.runtime, crowd[i].pid), 0);
        api_wait_end(&api, crowd[i].pid);
    }

    write_byte(ends[1]);

    for (size_t i = 0; i < CROWD; i++) {
        if (i % 2 == 1) {
            expect_end(&crowd[i], 1, 0);
        }
    }
    let_poller_catch_up(&api);
    for (size_t i = 0; i < CROWD; i += 2) {
        assert_int_equal(tally_count(&crowd[i].ended), 0);
    }
    assert_int_equal(waits_of(&api), 0);
    api_stop(&api);
    close_both(ends);
}

/* What is left of its wait goes with the next check. */
TEST(net_last_process_that_waits_may_be_ended)
{
    int ends[2];
    struct api api;
    api_run(&api, 2);
    make_pipe(ends);
    struct watch watch = {.fd = ends[0]};
    watch_start(&watch, &api);
    const uint64_t blocks = counting_allocator_live_blocks(&api.memory);
    assert_int_equal(skua_process_terminate(api.runtime, watch.pid), 0);
    api_wait_end(&api, watch.pid);

    assert_true(check_now(&api) == UINT64_MAX);

    assert_int_equal(waits_of(&api), 0);
    assert_int_equal(counting_allocator_live_blocks(&api.memory), blocks - 1);
    struct watch next = {.fd = ends[0]};
    watch_start(&next, &api);
    write_byte(ends[1]);
    expect_end(&next, 1, 0);
    api_stop(&api);
    close_both(ends);
}

TEST(net_stop_ends_processes_that_wait)
{
    const uint32_t workers = test_workers();
    int ends[2];
    struct watch crowd[CROWD] = {{0}};
    struct api api;
    const uint32_t files = os_file_count();
    api_run(&api, workers);
    make_pipe(ends);
    for (size_t i = 0; i < CROWD; i++) {
        crowd[i].fd = ends[i % 2];
        crowd[i].writes = false;
        crowd[i].timeout_ns = i % 3 == 0 ? 3600 * SKUA_SECOND : 0;
        watch_start(&crowd[i], &api);
    }
    api_stop(&api); /* all of them end by themselves, when they are asked to */
    for (size_t i = 0; i < CROWD; i++) {
        assert_int_equal(tally_count(&crowd[i].ended), 0);
    }
    assert_true(is_open(ends[0]) && is_open(ends[1])); /* they are the program's */
    close_both(ends);
    assert_int_equal(os_file_count(), files);
}

/* Waits and hears of nothing else. */
static int deaf_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    const struct watch *watch = api_world(self);
    (void)ctx;
    (void)events;
    return count == 0 ? skua_step_wait_readable(out, TAG_WAIT, watch->fd) : 0;
}

static const skua_process_type deaf_type = {
    .name = "deaf", .state_size = sizeof(void *), .init = api_init_world, .step = deaf_step};

TEST(net_stop_ends_processes_that_wait_and_will_not_end)
{
    int ends[2];
    struct watch watch;
    struct api api;
    api_run(&api, 2);
    make_pipe(ends);
    watch.fd = ends[0];
    for (int i = 0; i < CROWD; i++) {
        const skua_pid pid = api_submit(&api, &deaf_type, &watch);
        api_wait_state(&api, pid, SKUA_PROCESS_BLOCKED);
    }
    api_stop_by_force(&api);
    close_both(ends);
}

/* ---- many ---- */

#define MANY 1000

static void shuffle(size_t *order, size_t count, uint64_t *seed)
{
    for (size_t i = 0; i < count; i++) {
        order[i] = i;
    }
    for (size_t i = count - 1; i > 0; i--) {
        const size_t j = seed_next(seed) % (i + 1);
        const size_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* Each has got exactly what it was to get, and waits for more. */
static void expect_served(struct watch *watches, const uint64_t *expected, const struct api *api)
{
    for (size_t i = 0; i < MANY; i++) {
        expect_end(&watches[i], expected[i], expected[i] > 0 ? 0 : 1);
    }
    let_poller_catch_up(api);
    for (size_t i = 0; i < MANY; i++) {
        api_wait_state(api, watches[i].pid, SKUA_PROCESS_BLOCKED);
        assert_int_equal(tally_count(&watches[i].ended), expected[i]);
    }
    assert_int_equal(waits_of(api), MANY);
}

TEST(net_thousand_descriptors_are_each_served_as_often_as_they_are_ready)
{
    uint64_t seed = seed_choose();
    const rlim_t files = allow_many_files();
    struct watch *watches = calloc(MANY, sizeof *watches);
    assert_non_null(watches);
    FOR_WORKER_COUNTS(workers)
    {
        size_t order[MANY];
        uint64_t expected[MANY] = {0};
        struct api api;
        api_run(&api, workers);
        for (size_t i = 0; i < MANY; i++) {
            int ends[2];
            make_eventfd(ends);
            watches[i] = (struct watch){.fd = ends[0], .reads_ahead = true, .repeats = UINT32_MAX};
            watch_start(&watches[i], &api);
        }
        for (int round = 0; round < 3; round++) {
            shuffle(order, MANY, &seed);
            for (size_t i = 0; i < MANY / 2; i++) {
                signal_eventfd(watches[order[i]].fd);
                expected[order[i]]++;
            }
            expect_served(watches, expected, &api);
        }
        for (size_t i = 0; i < MANY; i++) {
            watches[i].repeats = 0; /* it rests, and the call below is what it sees next */
            assert_int_equal(skua_descriptor_close(api.runtime, watches[i].fd), 0);
            expect_end(&watches[i], expected[i] + 1, SKUA_E_CLOSED);
        }
        api_stop(&api);
    }
    allow_files(files);
    free(watches);
}

/* ---- a conversation ---- */

/* Reads and writes one byte at a time until the system says EAGAIN, then waits. */
struct talker {
    int fd;
    uint32_t left;    /* bytes to read */
    uint32_t answers; /* bytes to write */
    uint32_t waits;
    int wrong; /* errno, or the error of a wait */
};

static bool talk(struct talker *talker)
{
    char byte = 'x';
    while (talker->left > 0 || talker->answers > 0) {
        const ssize_t done =
            talker->answers > 0 ? write(talker->fd, &byte, 1) : read(talker->fd, &byte, 1);
        if (done == 0) {
            return true; /* the other one has closed its end */
        }
        if (done < 0) {
            talker->wrong = errno == EAGAIN ? 0 : errno;
            return errno != EAGAIN;
        }
        if (talker->answers > 0) {
            talker->answers--;
        } else {
            talker->left--;
            talker->answers += talker->left > 0;
        }
    }
    return true;
}

static int talker_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct talker *talker = api_world(self);
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type != SKUA_EVENT_COMPLETION || events[i].error != 0) {
            talker->wrong = events[i].error;
            return SKUA_E_USER;
        }
    }
    if (talk(talker)) {
        skua_step_done(out, skua_payload_empty(0));
        return 0;
    }
    talker->waits++;
    return talker->answers > 0 ? skua_step_wait_writable(out, 0, talker->fd)
                               : skua_step_wait_readable(out, 0, talker->fd);
}

static const skua_process_type talker_type = {
    .name = "talker", .state_size = sizeof(void *), .init = api_init_world, .step = talker_step};

#define EXCHANGES 5000

TEST(net_conversation_of_two_processes_loses_no_wake_up)
{
    const uint32_t workers = test_workers();
    int ends[2];
    struct api api;
    api_run(&api, workers);
    make_pair(ends);
    /* The first begins with a byte of its own; the last one that it reads ends it. */
    struct talker talkers[2] = {{.fd = ends[0], .left = EXCHANGES, .answers = 1},
                                {.fd = ends[1], .left = EXCHANGES + 1}};
    const skua_pid other = api_submit(&api, &talker_type, &talkers[1]);
    const skua_exit exit = api_run_process(&api, &talker_type, &talkers[0]);
    assert_int_equal(exit.error, 0);
    assert_int_equal(talkers[0].left, 0);
    assert_int_equal(close(ends[0]), 0); /* the other reads the end of the file */
    api_wait_end(&api, other);
    assert_int_equal(talkers[0].wrong, 0);
    assert_int_equal(talkers[1].left, 1);
    assert_true(talkers[0].waits > 0);
    api_stop(&api);
    assert_int_equal(close(ends[1]), 0);
}

/* ---- what is refused ---- */

/* Waits for a descriptor; in its step the n-th allocation from then on fails. What it gets is an
 * error or a wait that works; then it waits once more, with all the memory it wants. */
struct short_of_memory {
    struct counting_allocator *memory;
    int fd;
    uint64_t n;
    int yield_error;
    int error; /* of the first wait */
    int second_error;
    struct tally ended; /* the rest is the test's after that */
};

static int ask_again(struct short_of_memory *world, skua_step *out)
{
    counting_allocator_fail_never(world->memory);
    return skua_step_wait_readable(out, 2, world->fd);
}

static int short_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    struct short_of_memory *world = api_world(self);
    (void)ctx;
    if (count == 0) {
        counting_allocator_fail_once(world->memory, world->n);
        world->yield_error = skua_step_wait_readable(out, 1, world->fd);
        return world->yield_error != 0 ? ask_again(world, out) : 0;
    }
    if (events[0].tag == 1) {
        world->error = events[0].error;
        return ask_again(world, out);
    }
    world->second_error = events[0].error;
    tally_add(&world->ended, 1);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type short_type = {
    .name = "short", .state_size = sizeof(void *), .init = api_init_world, .step = short_step};

/* What became of the wait whose n-th allocation failed. */
enum outcome { REFUSED_IN_STEP, REFUSED_LATER, NOT_REFUSED };

static enum outcome wait_with_failure(uint64_t n, int fd, int writer)
{
    struct api api;
    struct short_of_memory world = {.fd = fd, .n = n, .second_error = 1};
    tally_init(&world.ended);
    api_run(&api, 1);
    world.memory = &api.memory;
    const skua_pid pid = api_submit(&api, &short_type, &world);
    api_wait_state(&api, pid, SKUA_PROCESS_BLOCKED);
    write_byte(writer);
    tally_wait(&world.ended, 1);
    api_wait_end(&api, pid);
    drain(fd);
    assert_true(world.yield_error == 0 || world.yield_error == SKUA_E_NO_MEMORY);
    assert_true(world.error == 0 || world.error == SKUA_E_NO_MEMORY);
    assert_int_equal(world.second_error, 0);
    assert_int_equal(waits_of(&api), 0);
    api_stop(&api);
    if (world.yield_error != 0) {
        return REFUSED_IN_STEP;
    }
    return world.error != 0 ? REFUSED_LATER : NOT_REFUSED;
}

TEST(net_failure_of_any_allocation_is_reported_and_harmless)
{
    int ends[2];
    unsigned outcomes[3] = {0};
    make_pipe(ends);
    const int high = fcntl(ends[0], F_DUPFD_CLOEXEC, 500); /* so that the table has to grow */
    assert_true(high >= 500);
    for (uint64_t n = 1; outcomes[NOT_REFUSED] == 0; n++) {
        outcomes[wait_with_failure(n, high, ends[1])]++;
    }
    assert_true(outcomes[REFUSED_IN_STEP] >= 1);  /* no place for the yield or its completion */
    assert_int_equal(outcomes[REFUSED_LATER], 2); /* none for the waiter, none for the table */
    assert_int_equal(close(high), 0);
    close_both(ends);
}

TEST(net_start_without_files_can_be_tried_again)
{
    int ends[2];
    int failures = 0;
    int error = SKUA_E_POLLER;
    struct api api;
    struct rlimit limit;
    make_pipe(ends);
    api_create(&api, (skua_runtime_config){.worker_count = 2, .stall_signal = SIGUSR2});
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const int next = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
    assert_true(next > 0);
    assert_int_equal(close(next), 0);
    const uint32_t threads = os_wait_alone();
    const uint32_t files = os_file_count();

    for (rlim_t allowed = (rlim_t)next; error != 0; allowed++) {
        allow_files(allowed);
        error = skua_runtime_start(api.runtime);
        allow_files(limit.rlim_cur);
        if (error != 0) {
            failures++;
            assert_int_equal(error, SKUA_E_POLLER);
            assert_int_equal(os_thread_count(), threads);
            assert_int_equal(os_file_count(), files);
            assert_int_equal(skua_runtime_stop(api.runtime, 0), SKUA_E_NOT_STARTED);
        }
    }

    assert_true(failures >= 2); /* one for each of the files that it needs */
    struct watch watch = {.fd = ends[0]};
    watch_start(&watch, &api);
    write_byte(ends[1]);
    expect_end(&watch, 1, 0);
    api_stop(&api);
    assert_int_equal(os_file_count(), files);
    close_both(ends);
}
