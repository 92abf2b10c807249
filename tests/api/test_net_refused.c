/* SPDX-License-Identifier: MIT */
/* Descriptors that cannot be waited for, and waits that the allocator or the system refuses. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/runtime.h"
#include "waits.h"

/* ---- descriptors ---- */

static void assert_refused(int fd)
{
    assert_int_equal(wait_readable(fd), SKUA_E_DESCRIPTOR);
    assert_int_equal(wait_writable(fd), SKUA_E_DESCRIPTOR);
    assert_int_equal(waited_for(), 0);
}

/* Only a mistake can lead to them, but it must not cost the runtime its wake-ups. */
TEST(descriptors_of_the_runtime_are_refused)
{
    world_open();
    struct epoll_set *set = &world_runtime()->net.set;
    assert_refused((int)load_relaxed(&set->epoll));
    assert_refused(set->read_end.fd);
    assert_refused(set->write_end.fd);
    struct actor *reader = reader_start(pipe_open().near);
    assert_int_equal(world_cancel(reader->pid, SKUA_E_USER), 0);
    actor_await_end(reader);
    assert_saw(reader, cancel(SKUA_E_USER));
}

TEST(descriptor_that_is_no_such_thing_is_refused)
{
    world_open();
    const int directory = fd_own(open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const int closed = fd_own(dup(directory));
    fd_close(closed);
    assert_refused(file_open());
    const uint64_t bytes = counting_allocator_live_bytes(&world->api->memory);

    assert_refused(directory);
    assert_refused(closed);
    assert_refused(100000);
    assert_refused(INT_MAX);

    /* A made-up number does not make the runtime keep a table of that size. */
    assert_true(counting_allocator_live_bytes(&world->api->memory) < bytes + 100000);
}

static int wait_without_step(struct turn *turn, const struct act *act)
{
    (void)act;
    if (skua_yield_readable(NULL, 0, 0, SKUA_FOREVER) != SKUA_E_INVALID ||
        skua_yield_writable(NULL, 0, 0, SKUA_FOREVER) != SKUA_E_INVALID) {
        actor_surprise(turn->actor, "a wait without a step");
    }
    return 0;
}

TEST(bad_arguments_are_refused_at_once)
{
    world_open();
    struct actor *actor = actor_new(ACTS(refused(waits_readable(0, -1), SKUA_E_DESCRIPTOR),
                                         refused(waits_writable(0, -1), SKUA_E_DESCRIPTOR),
                                         refused(waits_readable(0, INT_MIN), SKUA_E_DESCRIPTOR),
                                         refused(waits_writable(0, INT_MIN), SKUA_E_DESCRIPTOR),
                                         does(wait_without_step, NULL), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_int_equal(waited_for(), 0);
}

/* ---- memory ---- */

/* A wait whose n-th allocation fails. */
struct attempt {
    uint64_t n;
    int fd;
    int refusal; /* in the step */
    int error;   /* of the wait */
};

static int wait_short_of_memory(struct turn *turn, const struct act *act)
{
    struct attempt *attempt = act->arg;
    struct actor *actor = turn->actor;
    if (actor->counter++ == 0) {
        counting_allocator_fail_once(&world->api->memory, attempt->n);
        attempt->refusal = perform(turn, waits_readable(1, attempt->fd));
        if (attempt->refusal == 0) {
            return ACT_WAITS;
        }
    } else {
        attempt->error = actor->seen[actor->read++].error;
    }
    counting_allocator_fail_never(&world->api->memory);
    return 0;
}

/* What became of it. The second wait has all the memory it wants, and works. */
enum outcome { REFUSED_IN_STEP, REFUSED_LATER, NOT_REFUSED };

static enum outcome wait_with_failure(struct attempt attempt, int writer)
{
    world_open_with((skua_runtime_config){.worker_count = 1});
    struct actor *actor =
        actor_start(ACTS(does(wait_short_of_memory, &attempt), waits_readable(2, attempt.fd),
                         expects(completion(2, 0)), finishes(0)));
    actor_await_state(actor, SKUA_PROCESS_BLOCKED);
    write_byte(writer);
    actor_await_end(actor);
    drain(attempt.fd);
    assert_int_equal(waited_for(), 0);
    world_close();
    if (attempt.refusal != 0) {
        assert_int_equal(attempt.refusal, SKUA_E_NO_MEMORY);
        return REFUSED_IN_STEP;
    }
    if (attempt.error != 0) {
        assert_int_equal(attempt.error, SKUA_E_NO_MEMORY);
        return REFUSED_LATER;
    }
    return NOT_REFUSED;
}

TEST(failure_of_any_allocation_is_reported_and_harmless)
{
    unsigned outcomes[3] = {0};
    const struct ends pipe = pipe_open();
    const int high = fd_own(fcntl(pipe.near, F_DUPFD_CLOEXEC, 500)); /* the table has to grow */
    for (uint64_t n = 1; outcomes[NOT_REFUSED] == 0; n++) {
        outcomes[wait_with_failure((struct attempt){.n = n, .fd = high}, pipe.far)]++;
    }
    assert_int_equal(outcomes[REFUSED_IN_STEP], 0); /* its node is in the pool already */
    assert_int_equal(outcomes[REFUSED_LATER], 2);   /* none for the waiter, none for the table */
}

/* ---- files ---- */

TEST(start_without_files_can_be_tried_again)
{
    int failures = 0;
    int error = SKUA_E_POLLER;
    struct rlimit limit;
    const struct ends pipe = pipe_open();
    world_create((skua_runtime_config){.worker_count = 2, .stall_signal = SIGUSR2});
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const int next = fd_own(dup(pipe.near));
    fd_close(next);
    const uint32_t threads = os_wait_alone();
    const uint32_t files = os_file_count();

    for (rlim_t allowed = (rlim_t)next; error != 0; allowed++) {
        files_allow(allowed);
        error = world_try_start();
        files_allow(limit.rlim_cur);
        if (error != 0) {
            failures++;
            assert_int_equal(error, SKUA_E_POLLER);
            assert_int_equal(os_thread_count(), threads);
            assert_int_equal(os_file_count(), files);
            assert_int_equal(skua_runtime_stop(world_runtime(), 0), SKUA_E_NOT_STARTED);
        }
    }

    assert_true(failures >= 2); /* one for each of the files that it needs */
    struct actor *reader = reader_start(pipe.near);
    write_byte(pipe.far);
    assert_wait_ends(reader, 0);
    world_close();
    assert_int_equal(os_file_count(), files);
}
