/* SPDX-License-Identifier: MIT */
/* Waiting for real descriptors: what ends a wait, what does not, and who is told. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "desk.h"
#include "waits.h"

#define CROWD 100

/* ---- things to read from: the near end is waited for ---- */

static struct ends open_eventfd(void)
{
    return (struct ends){.near = eventfd_open(), .far = -1};
}

static struct ends open_listener(void)
{
    return (struct ends){.near = listener_open(), .far = -1};
}

static void write_to_far(struct ends ends)
{
    write_byte(ends.far);
}

static void signal_near(struct ends ends)
{
    signal_eventfd(ends.near);
}

static void connect_to_near(struct ends ends)
{
    (void)connection_open(port_of(ends.near), 0);
}

static const struct kind {
    struct ends (*open)(void);
    void (*make_readable)(struct ends ends);
    bool needs_loopback;
} kinds[] = {
    {pipe_open, write_to_far, false},
    {pair_open, write_to_far, false},
    {open_eventfd, signal_near, false},
    {open_listener, connect_to_near, true},
};

/* Opens one and a runtime; false if that is not possible here. */
static bool begin_with(const struct kind *kind, struct ends *ends)
{
    if (kind->needs_loopback && !has_loopback()) {
        return false;
    }
    world_open();
    *ends = kind->open();
    return true;
}

/* Those with a far end that can be written to. */
typedef struct ends open_fn(void);
static open_fn *const two_way[] = {pipe_open, pair_open};

/* ---- what ends a wait ---- */

TEST(wait_ends_when_it_becomes_readable)
{
    FOR_ROWS (kind, kinds) {
        struct ends ends;
        if (!begin_with(kind, &ends)) {
            continue;
        }
        struct actor *reader = reader_start(ends.near);
        let_poller_catch_up();
        assert_waits(reader, 0);

        kind->make_readable(ends);

        assert_wait_ends(reader, 0);
        assert_int_equal(waited_for(), 0);        /* so the poller has counted it, too */
        assert_int_equal(world_stats().ready, 2); /* and what the poller caught up with */
    }
}

TEST(wait_for_what_is_readable_already_ends_at_once)
{
    FOR_ROWS (kind, kinds) {
        struct ends ends;
        if (!begin_with(kind, &ends)) {
            continue;
        }
        kind->make_readable(ends);
        assert_int_equal(wait_readable(ends.near), 0);
    }
}

/* The kernel is asked for edges, but a wait is about the state. */
TEST(wait_for_data_that_was_left_unread_ends_every_time)
{
    FOR_ROWS (kind, kinds) {
        struct ends ends;
        if (!begin_with(kind, &ends)) {
            continue;
        }
        struct actor *reader =
            actor_start(ACTS(waits_readable(1, ends.near), expects(completion_of(1, 0, 0)),
                             repeats(999), finishes(0)));
        actor_await_state(reader, SKUA_PROCESS_BLOCKED);

        kind->make_readable(ends);

        actor_await_end(reader);
        assert_int_equal(reader->seen_count, 1000);
        assert_int_equal(wait_readable(ends.near), 0); /* for another process, too */
    }
}

TEST(wait_after_reading_all_waits_for_new_data)
{
    world_open();
    const struct ends pipe = pipe_open();
    struct actor *reader = actor_start(ACTS(reads(pipe.near), repeats(1000)));
    for (uint64_t round = 1; round <= 1000; round++) {
        actor_await_state(reader, SKUA_PROCESS_BLOCKED);
        write_byte(pipe.far);
        actor_await_seen(reader, round);
    }
    actor_await_state(reader, SKUA_PROCESS_BLOCKED);
    let_poller_catch_up();
    assert_waits(reader, 1000);
}

TEST(wait_ends_when_there_is_room_to_write)
{
    FOR_ROWS (open, two_way) {
        world_open();
        const struct ends ends = (*open)();
        assert_int_equal(wait_writable(ends.far), 0);
        fill(ends.far);
        struct actor *writer = writer_start(ends.far);
        let_poller_catch_up();
        assert_waits(writer, 0);

        drain(ends.near);

        assert_wait_ends(writer, 0);
    }
}

TEST(wait_for_a_connection_ends_when_it_stands)
{
    need_loopback();
    world_open();
    const int listener = listener_open();
    const int client = connection_open(port_of(listener), SOCK_NONBLOCK);

    assert_int_equal(wait_writable(client), 0);
    assert_int_equal(wait_readable(listener), 0);

    const int server = fd_own(accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
    struct actor *reader = reader_start(server);
    write_byte(client);
    assert_wait_ends(reader, 0);
}

TEST(wait_for_a_connection_ends_when_it_is_refused)
{
    need_loopback();
    world_open();
    const int listener = listener_open();
    const uint16_t port = port_of(listener);
    fd_close(listener);
    const int client = connection_open(port, SOCK_NONBLOCK);

    assert_int_equal(wait_writable(client), 0);
    assert_int_equal(wait_readable(client), 0);
}

/* ---- hang-ups ---- */

TEST(hang_up_ends_the_wait_of_a_reader)
{
    FOR_ROWS (open, two_way) {
        char byte;
        world_open();
        const struct ends ends = (*open)();
        struct actor *reader = reader_start(ends.near);

        fd_close(ends.far);

        assert_wait_ends(reader, 0);
        assert_int_equal(read(ends.near, &byte, 1), 0);
        assert_int_equal(wait_readable(ends.near), 0);
    }
}

TEST(hang_up_ends_the_wait_of_a_writer)
{
    void (*const before)(int) = signal(SIGPIPE, SIG_IGN);
    FOR_ROWS (open, two_way) {
        world_open();
        const struct ends ends = (*open)();
        fill(ends.far);
        struct actor *writer = writer_start(ends.far);

        fd_close(ends.near);

        assert_wait_ends(writer, 0);
        assert_int_equal(write(ends.far, "x", 1), -1);
        assert_int_equal(errno, EPIPE);
    }
    (void)signal(SIGPIPE, before);
}

TEST(hang_up_ends_the_waits_of_both)
{
    world_open();
    const struct ends pair = full_pair_open();
    struct actor *reader = reader_start(pair.near);
    struct actor *writer = writer_start(pair.near);

    fd_close(pair.far);

    assert_wait_ends(reader, 0);
    assert_wait_ends(writer, 0);
}

/* The other side writes no more, but still reads. */
TEST(half_close_ends_the_wait_of_a_reader_only)
{
    world_open();
    const struct ends pair = full_pair_open();
    struct actor *reader = reader_start(pair.near);
    struct actor *writer = writer_start(pair.near);

    assert_int_equal(shutdown(pair.far, SHUT_WR), 0);

    assert_wait_ends(reader, 0);
    let_poller_catch_up();
    assert_waits(writer, 0);
    drain(pair.far);
    assert_wait_ends(writer, 0);
}

/* ---- both directions, many waiters ---- */

TEST(reader_and_writer_of_one_descriptor_are_told_separately)
{
    world_open();
    for (int reader_first = 0; reader_first < 2; reader_first++) {
        const struct ends pair = full_pair_open();
        struct actor *reader = reader_start(pair.near);
        struct actor *writer = writer_start(pair.near);
        struct actor *waiters[] = {reader_first ? reader : writer, reader_first ? writer : reader};
        assert_int_equal(waited_for(), 1); /* one descriptor */

        for (size_t i = 0; i < COUNT_OF(waiters); i++) {
            if (waiters[i] == reader) {
                write_byte(pair.far);
            } else {
                drain(pair.far);
            }
            assert_wait_ends(waiters[i], 0);
            let_poller_catch_up();
            if (i == 0) {
                assert_waits(waiters[1], 0);
            }
        }

        assert_saw(waiters[0], wait_end(0));
        assert_int_equal(waited_for(), 0);
    }
}

TEST(all_waiters_of_one_descriptor_are_told)
{
    struct actor *readers[CROWD];
    struct actor *writers[CROWD / 3];
    world_open();
    const struct ends pair = full_pair_open();
    for (size_t i = 0; i < CROWD; i++) {
        readers[i] = reader_start(pair.near);
        if (i % 3 == 2) {
            writers[i / 3] = writer_start(pair.near);
        }
    }

    write_byte(pair.far);

    for (size_t i = 0; i < CROWD; i++) {
        assert_wait_ends(readers[i], 0);
    }
    let_poller_catch_up();
    for (size_t i = 0; i < COUNT_OF(writers); i++) {
        assert_waits(writers[i], 0);
    }
    drain(pair.far);
    for (size_t i = 0; i < COUNT_OF(writers); i++) {
        assert_wait_ends(writers[i], 0);
    }
    for (size_t i = 0; i < CROWD; i++) {
        assert_saw(readers[i], wait_end(0));
    }
    assert_int_equal(waited_for(), 0);
}

TEST(process_may_wait_for_one_descriptor_many_times)
{
    struct act acts[CROWD];
    world_open();
    const struct ends pipe = pipe_open();
    for (size_t i = 0; i < CROWD; i++) {
        acts[i] = waits_readable(i, pipe.near);
    }
    struct actor *reader = actor_start(script_copy(acts, CROWD));
    actor_await_state(reader, SKUA_PROCESS_BLOCKED);
    assert_waits(reader, 0);

    write_byte(pipe.far);

    actor_await_seen(reader, CROWD);
    assert_completed_each_once(reader, CROWD, 0);
    assert_int_equal(waited_for(), 0); /* so the poller has counted them, too */
    assert_int_equal(world_stats().ready, CROWD);
}

/* ---- who looks ---- */

/* Nobody has to know about what nobody waits for, although the kernel knows the descriptor. */
TEST(descriptor_that_nobody_waits_for_wakes_nobody)
{
    const struct timespec moment = {.tv_nsec = 100000}; /* in which somebody could wake */
    world_open_with((skua_runtime_config){.worker_count = 2});
    const struct ends pipe = pipe_open();
    struct actor *bystander = reader_start(pipe_open().near); /* so a worker is in the poller */
    write_byte(pipe.far);
    assert_int_equal(wait_readable(pipe.near), 0);
    let_poller_catch_up();
    const uint64_t before = world_stats().polls;

    for (int i = 0; i < 500; i++) {
        write_byte(pipe.far);
        (void)nanosleep(&moment, NULL);
    }

    assert_true(world_stats().polls < before + 50); /* the monitor looks now and then */
    assert_waits(bystander, 0);
}

static bool one_was_ready(void *arg)
{
    (void)arg;
    return world_stats().ready == 1;
}

/* No step counts as stuck here, so the monitor does not help. */
TEST(wait_is_attended_while_the_worker_that_began_it_is_busy)
{
    world_create((skua_runtime_config){.worker_count = 2, .stall_limit_ns = API_NEVER_STUCK});
    struct desk *desk = desk_open();
    world_start();
    const struct ends pipe = pipe_open();
    struct actor *reader =
        actor_start(ACTS(waits_readable(1, pipe.near), yields(2, DESK_STICK, 0, 0)));
    write_byte(pipe.far);

    wait_until(one_was_ready, NULL, "the other worker to look at the descriptor");

    desk_await_stuck(desk, 1);
    assert_int_equal(tally_count(&reader->arrived), 0);
    desk_release(desk);
    actor_await_seen(reader, 2);
}

/* ---- deadlines and taking back ---- */

TEST(wait_ends_at_its_deadline)
{
    world_open();
    const struct ends pair = full_pair_open();
    for (int writes = 0; writes < 2; writes++) {
        struct act wait = writes ? waits_writable(1, pair.near) : waits_readable(1, pair.near);
        struct actor *actor =
            actor_new(ACTS(within(SKUA_MILLISECOND, wait), expects(completion(1, SKUA_E_TIMEOUT)),
                           repeats(9), finishes(0)));
        assert_result(actor_run(actor), 0);
        assert_int_equal(actor->seen_count, 10);
    }
    assert_int_equal(world_stats().ready, 0);
}

TEST(wait_without_time_tells_whether_it_is_ready_now)
{
    world_open();
    const struct ends pipe = pipe_open();
    struct actor *reader = actor_start(ACTS(within(0, waits_readable(1, pipe.near)), awaits(1)));
    actor_await_seen(reader, 1);
    write_byte(pipe.far);
    actor_perform(reader, ACTS(within(0, waits_readable(2, pipe.near)), awaits(1),
                               within(0, waits_writable(3, pipe.far)), awaits(1)));
    assert_saw(reader, completion(1, SKUA_E_TIMEOUT), completion(2, 0), completion(3, 0));
    world_close();
}

TEST(wait_that_has_timed_out_does_not_disturb_the_next_one)
{
    world_open();
    const struct ends pipe = pipe_open();
    struct actor *reader =
        actor_start(ACTS(within(SKUA_MILLISECOND, waits_readable(1, pipe.near))));
    actor_await_seen(reader, 1);
    actor_await_state(reader, SKUA_PROCESS_IDLE);
    actor_perform(reader, ACTS(waits_readable(2, pipe.near)));
    actor_await_state(reader, SKUA_PROCESS_BLOCKED);
    struct actor *other = reader_start(pipe.near);
    let_poller_catch_up();
    assert_waits(reader, 1);

    write_byte(pipe.far);

    actor_await_seen(reader, 2);
    assert_wait_ends(other, 0);
    world_close();
    assert_saw(reader, completion(1, SKUA_E_TIMEOUT), completion(2, 0), cancel(SKUA_E_STOPPED));
}

TEST(descriptor_that_is_ready_first_has_no_timeout)
{
    world_open();
    const struct ends pipe = pipe_open();
    struct actor *reader =
        actor_start(ACTS(within(3600 * SKUA_SECOND, waits_readable(1, pipe.near))));
    actor_await_state(reader, SKUA_PROCESS_BLOCKED);
    write_byte(pipe.far);
    actor_await_seen(reader, 1);
    assert_saw(reader, completion(1, 0));
    assert_int_equal(world_stats().timers, 0);
}

TEST(wait_that_is_taken_back_ends_with_that)
{
    world_open();
    const struct ends pipe = pipe_open();
    struct actor *reader = actor_start(ACTS(waits_readable(1, pipe.near)));
    struct actor *other = reader_start(pipe.near);
    actor_await_state(reader, SKUA_PROCESS_BLOCKED);

    actor_tell(reader, ACTS(cancels(1)));
    actor_await_seen(reader, 1);
    write_byte(pipe.far);
    assert_wait_ends(other, 0);
    let_poller_catch_up();
    assert_saw(reader, completion(1, SKUA_E_CANCELLED));

    actor_tell(reader, ACTS(waits_readable(2, pipe.near)));
    actor_await_seen(reader, 2);
    assert_saw_from(reader, 1, (const struct seen[]){completion(2, 0)}, 1);
}

TEST(waits_that_ended_otherwise_leave_no_memory_behind)
{
    world_open_with((skua_runtime_config){.worker_count = 1});
    const struct ends pipe = pipe_open();
    struct actor *resident = reader_start(pipe.near); /* not to be forgotten with the others */
    const uint64_t before = counting_allocator_live_blocks(&world->api->memory);

    struct actor *fickle =
        actor_start(ACTS(waits_readable(1, pipe.near), cancels(1),
                         expects(completion(1, SKUA_E_CANCELLED)), repeats(9999)));
    actor_await_seen(fickle, 10000);

    assert_true(counting_allocator_live_blocks(&world->api->memory) < before + 20);
    assert_waits(resident, 0);
    write_byte(pipe.far);
    assert_wait_ends(resident, 0);
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
static void assert_served(struct actor *const *readers, const uint64_t *expected)
{
    for (size_t i = 0; i < MANY; i++) {
        actor_await_seen(readers[i], expected[i]);
    }
    let_poller_catch_up();
    for (size_t i = 0; i < MANY; i++) {
        actor_await_state(readers[i], SKUA_PROCESS_BLOCKED);
        assert_waits(readers[i], expected[i]);
    }
    assert_int_equal(waited_for(), MANY);
}

TEST(thousand_descriptors_are_each_served_as_often_as_they_are_ready)
{
    uint64_t seed = seed_choose();
    int fds[MANY];
    struct actor *readers[MANY];
    size_t order[MANY];
    uint64_t expected[MANY] = {0};
    files_allow_many();
    world_open();
    for (size_t i = 0; i < MANY; i++) {
        fds[i] = eventfd_open();
        readers[i] = actor_start(ACTS(reads_until(fds[i], SKUA_E_CLOSED)));
        actor_await_state(readers[i], SKUA_PROCESS_BLOCKED);
    }
    for (int round = 0; round < 3; round++) {
        shuffle(order, MANY, &seed);
        for (size_t i = 0; i < MANY / 2; i++) {
            signal_eventfd(fds[order[i]]);
            expected[order[i]]++;
        }
        assert_served(readers, expected);
    }
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(fd_close_by_runtime(fds[i]), 0);
        actor_await_seen(readers[i], expected[i] + 1);
        assert_int_equal(readers[i]->seen[expected[i]].error, SKUA_E_CLOSED);
    }
}

#define EXCHANGES 5000

TEST(conversation_of_two_processes_loses_no_wake_up)
{
    world_open();
    const struct ends pair = pair_open();
    struct actor *echo = actor_start(ACTS(reads(pair.far), writes(pair.far), repeats(EXCHANGES - 1),
                                          reads_end(pair.far), finishes(0)));
    struct actor *talker =
        actor_new(ACTS(writes(pair.near), reads(pair.near), repeats(EXCHANGES - 1), finishes(0)));
    assert_result(actor_run(talker), 0);
    fd_close(pair.near);
    actor_await_end(echo);
    assert_true(talker->seen_count > 0); /* it had to wait */
}
