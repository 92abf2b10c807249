/* SPDX-License-Identifier: MIT */
/* What ends under those that wait for descriptors: the descriptor, the process, the runtime. */
#include <limits.h>
#include <unistd.h>

#include "waits.h"

#define CROWD 100

/* ---- descriptors ---- */

TEST(close_ends_all_waits_of_the_descriptor)
{
    struct actor *crowd[CROWD];
    world_open();
    const struct ends pair = full_pair_open();
    const struct ends quiet = pipe_open();
    struct actor *bystander = reader_start(quiet.near);
    for (size_t i = 0; i < CROWD; i++) {
        crowd[i] = waiter_start(pair.near, i % 2 == 0);
    }
    assert_int_equal(waited_for(), 2);

    assert_int_equal(fd_close_by_runtime(pair.near), 0);

    assert_false(fd_is_open(pair.near));
    for (size_t i = 0; i < CROWD; i++) {
        assert_wait_ends(crowd[i], SKUA_E_CLOSED);
    }
    let_poller_catch_up();
    assert_waits(bystander, 0);
    assert_int_equal(waited_for(), 1);
    assert_int_equal(world_stats().ready, 1); /* by catching up */
    assert_int_equal(fd_close_by_runtime(pair.near), SKUA_E_DESCRIPTOR);
    write_byte(quiet.far);
    assert_wait_ends(bystander, 0);
}

TEST(close_without_waiters_closes_before_start_and_after_stop)
{
    static const int wrong[] = {-1, INT_MIN, INT_MAX};
    const uint32_t files = os_file_count();
    world_create((skua_runtime_config){0});
    const struct ends pipe = pipe_open();
    const struct ends other = pipe_open();
    assert_int_equal(skua_descriptor_close(NULL, pipe.near), SKUA_E_INVALID);
    assert_true(fd_is_open(pipe.near));
    assert_int_equal(fd_close_by_runtime(pipe.near), 0);
    assert_false(fd_is_open(pipe.near));
    world_start();
    assert_int_equal(fd_close_by_runtime(pipe.far), 0);
    assert_int_equal(fd_close_by_runtime(pipe.far), SKUA_E_DESCRIPTOR);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(fd_close_by_runtime(wrong[i]), SKUA_E_DESCRIPTOR);
    }
    struct actor *reader = reader_start(other.near);
    assert_int_equal(skua_runtime_stop(world_runtime(), SKUA_FOREVER), 0);
    assert_int_equal(fd_close_by_runtime(other.near), 0);
    assert_false(fd_is_open(other.near));
    assert_saw(reader, cancel(SKUA_E_STOPPED));
    world_close();
    assert_int_equal(os_file_count(), files + 1); /* other.far */
}

static int close_it(struct turn *turn, const struct act *act)
{
    return skua_descriptor_close(skua_runtime_of(turn->ctx), *(const int *)act->arg);
}

TEST(close_within_a_step_ends_the_waits_of_others)
{
    world_open_with((skua_runtime_config){.worker_count = 1});
    int number = pipe_open().near;
    struct actor *reader = reader_start(number);
    assert_result(actor_run(actor_new(ACTS(does(close_it, &number), finishes(0)))), 0);
    fd_disown(number);
    assert_wait_ends(reader, SKUA_E_CLOSED);
}

/* skua_descriptor_close is about the number: the file lives on. */
TEST(close_of_one_number_leaves_the_waits_for_the_other_alone)
{
    world_open();
    const struct ends pipe = pipe_open();
    const int alive = fd_own(dup(pipe.near));
    struct actor *reader = reader_start(pipe.near);
    struct actor *other = reader_start(alive);

    assert_int_equal(fd_close_by_runtime(pipe.near), 0);
    assert_wait_ends(reader, SKUA_E_CLOSED);
    let_poller_catch_up();
    assert_waits(other, 0);
    const int writer = number_reuse(pipe.near);
    struct actor *fresh = reader_start(pipe.near);

    write_byte(pipe.far);
    assert_wait_ends(other, 0);
    let_poller_catch_up();
    assert_waits(fresh, 0);
    write_byte(writer);
    assert_wait_ends(fresh, 0);
    assert_saw(reader, wait_end(SKUA_E_CLOSED));
}

/* ---- processes and runtimes ---- */

TEST(process_that_is_ended_while_it_waits_leaves_the_others_alone)
{
    struct actor *crowd[CROWD];
    world_open();
    const struct ends pipe = pipe_open();
    for (size_t i = 0; i < CROWD; i++) {
        crowd[i] = reader_start(pipe.near);
    }
    for (size_t i = 0; i < CROWD; i += 2) {
        assert_int_equal(world_terminate(crowd[i]->pid), 0);
        actor_await_end(crowd[i]);
    }

    write_byte(pipe.far);

    for (size_t i = 1; i < CROWD; i += 2) {
        assert_wait_ends(crowd[i], 0);
    }
    let_poller_catch_up();
    for (size_t i = 0; i < CROWD; i += 2) {
        assert_saw_nothing(crowd[i]);
    }
    assert_int_equal(waited_for(), 0);
}

/* What is left of its wait goes with the next check. */
TEST(last_process_that_waits_may_be_ended)
{
    world_open();
    const struct ends pipe = pipe_open();
    struct actor *reader = reader_start(pipe.near);
    const uint64_t blocks = counting_allocator_live_blocks(&world->api->memory);
    assert_int_equal(world_terminate(reader->pid), 0);
    actor_await_end(reader);

    assert_int_equal(check_descriptors(), UINT64_MAX);

    assert_int_equal(waited_for(), 0);
    assert_int_equal(counting_allocator_live_blocks(&world->api->memory), blocks - 1);
    struct actor *next = reader_start(pipe.near);
    write_byte(pipe.far);
    assert_wait_ends(next, 0);
}

TEST(stop_ends_processes_that_wait)
{
    struct actor *crowd[CROWD];
    const uint32_t files = os_file_count();
    world_open();
    const struct ends pair = pair_open();
    for (size_t i = 0; i < CROWD; i++) {
        const struct act wait = waits_readable(1, i % 2 == 0 ? pair.near : pair.far);
        crowd[i] = actor_start(i % 3 == 0 ? ACTS(within(3600 * SKUA_SECOND, wait)) : ACTS(wait));
        actor_await_state(crowd[i], SKUA_PROCESS_BLOCKED);
    }
    world_close(); /* all of them end by themselves, when they are asked to */
    for (size_t i = 0; i < CROWD; i++) {
        assert_saw(crowd[i], cancel(SKUA_E_STOPPED));
    }
    assert_true(fd_is_open(pair.near) && fd_is_open(pair.far)); /* they are the program's */
    assert_int_equal(os_file_count(), files + 2);
}

TEST(stop_ends_processes_that_wait_and_will_not_end)
{
    world_open();
    const struct ends pipe = pipe_open();
    for (int i = 0; i < CROWD; i++) {
        struct actor *deaf = actor_new(ACTS(waits_readable(1, pipe.near)));
        deaf->ignores_cancel = true;
        actor_submit(deaf);
        actor_await_state(deaf, SKUA_PROCESS_BLOCKED);
    }
    world_expect_survivors();
}
