/* SPDX-License-Identifier: MIT */
/* close() behind the runtime's back: the system tells nobody, the number may become another file,
 * and the old file may live on under another number. */
#include <unistd.h>

#include "base/monotonic.h"
#include "runtime/runtime.h"
#include "waits.h"

/* ---- a number that is reused ---- */

/* A process waits for the near end of a pipe, whose number then becomes another pipe. */
struct reuse {
    int number;
    int alive;      /* the old file under another number, or -1 */
    int old_writer; /* to the old file */
    int writer;     /* to the new one */
    struct actor *old;
};

static struct reuse reuse_under_waiter(bool lives_on)
{
    const struct ends pipe = pipe_open();
    struct reuse reuse = {.number = pipe.near,
                          .alive = lives_on ? fd_own(dup(pipe.near)) : -1,
                          .old_writer = pipe.far,
                          .old = reader_start(pipe.near)};
    fd_close(pipe.near);
    reuse.writer = number_reuse(pipe.near);
    return reuse;
}

TEST(number_that_is_reused_serves_the_new_waiter_only)
{
    world_open();
    const struct reuse reuse = reuse_under_waiter(false);
    struct actor *fresh = reader_start(reuse.number);

    assert_wait_ends(reuse.old, SKUA_E_CLOSED);
    let_poller_catch_up();
    assert_waits(fresh, 0);
    write_byte(reuse.writer);
    assert_wait_ends(fresh, 0);
    assert_saw(reuse.old, wait_end(SKUA_E_CLOSED));
    assert_int_equal(waited_for(), 0);
}

/* The kernel still reports about the old file. */
TEST(old_file_of_a_reused_number_wakes_nobody)
{
    world_open();
    const struct reuse reuse = reuse_under_waiter(true);
    struct actor *fresh = reader_start(reuse.number);
    assert_wait_ends(reuse.old, SKUA_E_CLOSED);

    write_byte(reuse.old_writer);
    let_poller_catch_up();
    assert_waits(fresh, 0);

    write_byte(reuse.writer);
    assert_wait_ends(fresh, 0);
    assert_int_equal(wait_readable(reuse.alive), 0); /* its other number can be waited for */
    assert_saw(reuse.old, wait_end(SKUA_E_CLOSED));
}

TEST(new_file_of_a_number_does_not_wake_who_waited_for_the_old_one)
{
    world_open();
    const struct reuse reuse = reuse_under_waiter(true);

    write_byte(reuse.writer); /* nobody waits for this file */
    let_poller_catch_up();
    assert_waits(reuse.old, 0);

    assert_int_equal(check_descriptors(), UINT64_MAX); /* nothing is left to check */
    assert_wait_ends(reuse.old, SKUA_E_CLOSED);
    assert_int_equal(wait_readable(reuse.number), 0);
}

/* Nobody has waited for the new file of the number, so this event is still about the old one. */
TEST(old_file_of_a_reused_number_does_not_serve_its_waiter_any_more)
{
    world_open();
    const struct reuse reuse = reuse_under_waiter(true);

    write_byte(reuse.old_writer);

    assert_wait_ends(reuse.old, SKUA_E_CLOSED);
    struct actor *fresh = reader_start(reuse.number);
    write_byte(reuse.writer);
    assert_wait_ends(fresh, 0);
    assert_int_equal(waited_for(), 0);
}

TEST(number_that_is_reused_by_a_regular_file_serves_nobody)
{
    world_open();
    const int file = file_open();
    for (int checked = 0; checked < 2; checked++) {
        const struct ends pipe = pipe_open();
        (void)fd_own(dup(pipe.near));
        struct actor *old = reader_start(pipe.near);
        assert_int_equal(dup2(file, pipe.near), pipe.near); /* closes it, too */
        if (checked == 1) {
            (void)check_descriptors();
            assert_wait_ends(old, SKUA_E_CLOSED);
        }
        assert_int_equal(wait_readable(pipe.near), SKUA_E_DESCRIPTOR);
        assert_int_equal(wait_writable(pipe.near), SKUA_E_DESCRIPTOR);
        assert_int_equal(waited_for(), 0);
        assert_wait_ends(old, SKUA_E_CLOSED);
    }
}

/* Only the number is gone: that its file becomes ready is a way to find out, not to be served. */
TEST(closed_number_of_a_file_that_lives_on_ends_the_wait_as_closed)
{
    world_open();
    for (int checked = 0; checked < 2; checked++) {
        const struct ends pipe = pipe_open();
        const int alive = fd_own(dup(pipe.near));
        struct actor *reader = reader_start(pipe.near);
        struct actor *other = reader_start(alive);
        fd_close(pipe.near);

        if (checked == 1) {
            (void)check_descriptors();
            assert_wait_ends(reader, SKUA_E_CLOSED);
            let_poller_catch_up();
            assert_waits(other, 0);
        }
        write_byte(pipe.far);

        assert_wait_ends(other, 0);
        assert_wait_ends(reader, SKUA_E_CLOSED);
        (void)check_descriptors();
        let_poller_catch_up();
        assert_saw(reader, wait_end(SKUA_E_CLOSED));
        assert_int_equal(waited_for(), 0);
    }
}

/* ---- the check for closed descriptors ---- */

TEST(check_finds_what_was_closed_and_leaves_the_rest_alone)
{
    enum { PIPES = 600 }; /* more than are checked at once */
    struct actor *readers[PIPES];
    struct ends pipes[PIPES];
    files_allow_many();
    world_open();
    for (size_t i = 0; i < PIPES; i++) {
        pipes[i] = pipe_open();
        readers[i] = reader_start(pipes[i].near);
    }
    assert_int_equal(waited_for(), PIPES);
    for (size_t i = 0; i < PIPES; i += 3) {
        fd_close(pipes[i].near);
    }

    assert_true(check_descriptors() > 1 && check_descriptors() < UINT64_MAX); /* later again */

    for (size_t i = 0; i < PIPES; i += 3) {
        assert_wait_ends(readers[i], SKUA_E_CLOSED);
    }
    let_poller_catch_up();
    assert_int_equal(waited_for(), PIPES - PIPES / 3);
    for (size_t i = 0; i < PIPES; i++) {
        if (i % 3 != 0) {
            assert_waits(readers[i], 0);
            write_byte(pipes[i].far);
            assert_wait_ends(readers[i], 0);
        }
    }
    assert_int_equal(waited_for(), 0);
    assert_int_equal(check_descriptors(), UINT64_MAX);
}

/* The check of a runtime, counted. */
static atomic_uint checks;
static uint64_t (*checks_really)(struct poller *poller, struct worker *worker, uint64_t now);

static uint64_t count_check(struct poller *poller, struct worker *worker, uint64_t now)
{
    (void)atomic_fetch_add(&checks, 1);
    return checks_really(poller, worker, now);
}

/* Its chore is wanted as soon as something is waited for. Its time, ten seconds from then, is put
 * into the past; the worker in the poller looks when it is woken. Who is told then must run at
 * once, and not when that worker happens to wake for the next check. */
TEST(check_runs_by_itself_when_its_time_has_come)
{
    world_create((skua_runtime_config){0});
    struct scheduler *sched = &world_runtime()->sched;
    atomic_store(&checks, 0);
    checks_really = world_runtime()->net.poller.check;
    world_runtime()->net.poller.check = count_check;
    world_start();
    const struct ends pipe = pipe_open();
    struct actor *reader = reader_start(pipe.near);
    struct actor *bystander = reader_start(pipe_open().near);
    const uint64_t due = load_seq_cst(&sched->chores.due[CHORE_CHECK]);
    assert_true(due > monotonic_ns() && due < monotonic_ns() + 11 * SKUA_SECOND);
    fd_close(pipe.near);

    store_seq_cst(&sched->chores.due[CHORE_CHECK], monotonic_ns());
    sched->poller->interrupt(sched->poller);

    assert_wait_ends(reader, SKUA_E_CLOSED);
    assert_int_equal(atomic_load(&checks), 1);
    let_poller_catch_up();
    assert_waits(bystander, 0);
    assert_true(load_seq_cst(&sched->chores.due[CHORE_CHECK]) >= due);
}
