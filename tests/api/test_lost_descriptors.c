/* SPDX-License-Identifier: MIT */
/* A program that closes descriptors of the runtime by mistake, one or all of them, and may get
 * their numbers for files of its own: processes still get their messages, timers and ends of waits,
 * the program is told, its own files are left alone, and a stop returns. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/mutex.h"
#include "inspected.h"
#include "runtime/runtime.h"
#include "stopper.h"
#include "waits.h"

/* To a sanitizer of threads, closing a descriptor that another thread uses is a race. Here it is
 * what the program does wrong. */
#ifdef __SANITIZE_THREAD__
const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
    return "race:own_fd_\nrace:epoll_set_\nrace:control_end\nrace:wait_for_\nrace:accept_client\n";
}
#endif

#define NUMBERS_MAX 1024
#define OF_POLLER   3 /* descriptors: an epoll and a pipe */
#define OF_BOTH     6 /* and with an inspector, which has a socket and a pipe */
#define PATIENCE_NS (20 * SKUA_MILLISECOND) /* of a wait that nothing else can end */

/* ---- which descriptors there are ---- */

struct numbers {
    bool is_open[NUMBERS_MAX];
};

static struct numbers open_numbers(void)
{
    struct numbers numbers = {0};
    for (int fd = 0; fd < NUMBERS_MAX; fd++) {
        numbers.is_open[fd] = fcntl(fd, F_GETFD) >= 0;
    }
    return numbers;
}

/* ---- a runtime ---- */

struct scene {
    int own[OF_BOTH]; /* numbers of the runtime */
    size_t count;
    struct tally complaints; /* lines about lost descriptors */
    struct ends pipe;
    struct actor *reader;   /* waits for the pipe */
    struct actor *listener; /* waits for a message */
};

static void note_line(void *arg, const skua_log *line)
{
    struct scene *scene = arg;
    const bool is_complaint =
        line->level == SKUA_LOG_ERROR && strstr(line->text, "has closed a descriptor") != NULL;
    tally_add(&scene->complaints, is_complaint);
}

/* With so many workers; 0: as many as the runner says. */
static struct scene *open_scene(bool inspect, uint32_t workers)
{
    struct scene *scene = test_alloc(sizeof *scene);
    tally_init(&scene->complaints);
    inspected_prepare();
    world_create((skua_runtime_config){
        .worker_count = workers, .inspect = inspect, .on_log = note_line, .on_log_arg = scene});
    world_runtime()->net.set.wait_max_ns = PATIENCE_NS;
    const struct numbers before = open_numbers();
    world_start();
    const struct numbers after = open_numbers();
    for (int fd = 0; fd < NUMBERS_MAX; fd++) {
        if (after.is_open[fd] && !before.is_open[fd]) {
            assert_in_range(scene->count, 0, OF_BOTH - 1);
            scene->own[scene->count++] = fd;
        }
    }
    assert_int_equal(scene->count, inspect ? OF_BOTH : OF_POLLER);
    scene->pipe = pipe_open();
    scene->reader = reader_start(scene->pipe.near);
    scene->listener = actor_start(NO_ACTS);
    actor_await_state(scene->listener, SKUA_PROCESS_IDLE);
    return scene;
}

/* Whatever was lost: what waited goes on, and so does what begins now. */
static void assert_works(struct scene *scene)
{
    assert_int_equal(world_send(scene->listener->pid, skua_payload_u64(1, 2)), 0);
    actor_await_seen(scene->listener, 1);
    assert_result(actor_run(actor_new(
                      ACTS(sleeps(1, SKUA_MILLISECOND), expects(completion(1, 0)), finishes(0)))),
                  0);
    write_byte(scene->pipe.far);
    assert_wait_ends(scene->reader, 0);
    const struct ends other = pipe_open();
    struct actor *reader = reader_start(other.near);
    write_byte(other.far);
    assert_wait_ends(reader, 0);
}

static void close_number(int fd)
{
    assert_int_equal(close(fd), 0);
}

/* At once: the poller replaces none before the last is closed. */
static void close_all(const struct scene *scene)
{
    struct epoll_set *set = &world_runtime()->net.set;
    mutex_lock(&set->lock);
    for (size_t i = 0; i < scene->count; i++) {
        close_number(scene->own[i]);
    }
    mutex_unlock(&set->lock);
}

/* ---- those of the poller ---- */

TEST(one_descriptor_that_is_closed_is_replaced)
{
    FOR_ROUNDS (round, OF_POLLER) {
        struct scene *scene = open_scene(false, 0);
        close_number(scene->own[round - 1]);
        assert_works(scene);
        tally_wait(&scene->complaints, 1);
        world_close();
        assert_int_equal(tally_count(&scene->complaints), 1);
    }
}

TEST(all_descriptors_that_are_closed_are_replaced)
{
    struct scene *scene = open_scene(false, 0);
    close_all(scene);
    assert_works(scene);
    tally_wait(&scene->complaints, 1);
}

TEST(stop_returns_whichever_descriptors_are_closed)
{
    FOR_ROUNDS (round, 1 << OF_POLLER) {
        struct scene *scene = open_scene(false, 0);
        for (size_t i = 0; i < OF_POLLER; i++) {
            if (((round - 1) >> i & 1) != 0) {
                close_number(scene->own[i]);
            }
        }
        assert_int_equal(stop_patiently(SKUA_FOREVER), 0);
        assert_saw(scene->reader, cancel(SKUA_E_STOPPED));
    }
}

/* The program closes its own, too, as closefrom does: there is nothing to wait for any more. */
TEST(descriptors_of_the_program_that_are_closed_as_well_end_their_waits)
{
    struct scene *scene = open_scene(false, 0);
    close_all(scene);
    fd_close(scene->pipe.near);
    assert_wait_ends(scene->reader, SKUA_E_CLOSED);
}

/* Then there is nothing to wait with, but all else goes on, and it is tried again. */
TEST(descriptors_that_cannot_be_replaced_are_missed_until_they_can)
{
    struct scene *scene = open_scene(false, 0);
    const struct ends other = pipe_open();
    files_allow(1);
    close_all(scene);
    assert_int_equal(wait_readable(other.near), SKUA_E_POLLER);
    assert_result(actor_run(actor_new(
                      ACTS(sleeps(1, SKUA_MILLISECOND), expects(completion(1, 0)), finishes(0)))),
                  0);
    tally_wait(&scene->complaints, 2);
    files_allow_many();
    assert_works(scene);
    assert_int_equal(tally_count(&scene->complaints), 2); /* of each once */
}

/* ---- numbers that mean a file of the program by now ---- */

/* What a program may open with that number. */
static int open_pipe_writer(int *other)
{
    const struct ends pipe = pipe_open();
    *other = pipe.near;
    return pipe.far;
}

static int open_socket(int *other)
{
    const struct ends pair = pair_open();
    *other = pair.near;
    return pair.far;
}

static int open_epoll(int *other)
{
    *other = -1;
    return fd_own(epoll_create1(EPOLL_CLOEXEC));
}

static int (*const openers[])(int *other) = {open_pipe_writer, open_socket, open_epoll};

/* That nothing has come out of the other end. */
static void assert_untouched(int other)
{
    char byte;
    assert_true(other < 0 || (read(other, &byte, 1) < 0 && errno == EAGAIN));
}

static void lose_to_program(bool inspect, uint32_t workers)
{
    const size_t count = inspect ? OF_BOTH : OF_POLLER;
    FOR_ROUNDS (round, count * COUNT_OF(openers)) {
        int other;
        struct scene *scene = open_scene(inspect, workers);
        const int file = openers[(round - 1) / count](&other);
        const int number = scene->own[(round - 1) % count];
        assert_int_equal(dup2(file, number), number);
        const struct own_fd programs = own_fd_of(number);
        assert_works(scene);
        world_close();
        assert_true(own_fd_is_ours(&programs)); /* here: the program's */
        assert_untouched(other);
        close_number(number);
    }
}

TEST(number_that_the_program_uses_is_left_alone)
{
    lose_to_program(false, 0);
}

/* It can be waited for, too, and closed. */
TEST(number_that_the_program_uses_can_be_waited_for)
{
    FOR_ROUNDS (round, OF_POLLER) {
        struct scene *scene = open_scene(false, 0);
        const int number = scene->own[round - 1];
        close_number(number);
        const int far = number_reuse(number);
        struct actor *reader = reader_start(number);
        assert_works(scene);
        write_byte(far);
        assert_wait_ends(reader, 0);
        assert_int_equal(fd_close_by_runtime(number), 0);
    }
}

/* ---- those of the inspector ---- */

/* The complaint comes before the new socket. */
static void await_listener(void)
{
    int fd;
    while ((fd = inspect_connect(world_runtime())) < 0) {
        (void)sched_yield();
    }
    assert_int_equal(close(fd), 0);
}

static void assert_answers(void)
{
    await_listener();
    struct inspect_client *client = client_open();
    client_ask(client, "stats");
    client_close(client);
}

TEST(descriptor_of_the_inspector_that_is_closed_is_replaced)
{
    FOR_ROUNDS (round, OF_BOTH) {
        struct scene *scene = open_scene(true, 2);
        struct inspect_client *client = client_open();
        client_ask(client, "stats");
        close_number(scene->own[round - 1]);
        assert_works(scene);
        tally_wait(&scene->complaints, 1);
        client_ask(client, "stats");
        assert_answers();
    }
}

TEST(all_descriptors_with_an_inspector_that_are_closed_are_replaced)
{
    struct scene *scene = open_scene(true, 2);
    close_all(scene);
    assert_works(scene);
    tally_wait(&scene->complaints, 4); /* two of each */
    assert_answers();
}

TEST(number_of_the_inspector_that_the_program_uses_is_left_alone)
{
    lose_to_program(true, 2);
}
