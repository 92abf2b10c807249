/* SPDX-License-Identifier: MIT */
#include "waits.h"

#include <errno.h>
#include <unistd.h>

#include "base/mutex.h"
#include "runtime/runtime.h"

#define WAIT UINT64_C(77) /* the tag of readers and writers */

/* ---- acts ---- */

static int wait_for_reading(struct turn *turn, const struct act *act)
{
    return skua_yield_readable(turn->ctx, act->tag, (int)(int64_t)act->number,
                               act_timeout(turn, act));
}

static int wait_for_writing(struct turn *turn, const struct act *act)
{
    return skua_yield_writable(turn->ctx, act->tag, (int)(int64_t)act->number,
                               act_timeout(turn, act));
}

static struct act on(act_fn *function, int fd)
{
    return (struct act){.perform = function, .tag = WAIT, .number = (uint64_t)(int64_t)fd};
}

struct act waits_readable(uint64_t tag, int fd)
{
    struct act act = on(wait_for_reading, fd);
    act.tag = tag;
    return act;
}

struct act waits_writable(uint64_t tag, int fd)
{
    struct act act = on(wait_for_writing, fd);
    act.tag = tag;
    return act;
}

/* Begins the wait of an act that waits. */
static int begin_wait(struct turn *turn, const struct act *act, act_fn *wait)
{
    const int error = wait(turn, act);
    turn->actor->counter = 1;
    return error != 0 ? error : ACT_WAITS;
}

/* Whether there is no such wait any more, and how it ended. Leaves events alone that are no
 * completions, such as a cancel event. */
static bool wait_is_over(struct actor *actor, int *error)
{
    if (actor->counter == 0) {
        *error = 0;
        return true;
    }
    if (actor->read == actor->seen_count ||
        actor->seen[actor->read].type != SKUA_EVENT_COMPLETION) {
        return false;
    }
    *error = actor->seen[actor->read++].error;
    actor->counter = 0;
    return true;
}

/* Tries, and waits if it is too early for that; `move` returns as read and write do. */
static int move_byte(struct turn *turn, const struct act *act, ssize_t (*move)(int fd),
                     act_fn *wait, ssize_t expected)
{
    int error;
    if (!wait_is_over(turn->actor, &error)) {
        return ACT_WAITS;
    }
    if (error != 0) {
        return error;
    }
    const ssize_t moved = move((int)act->number);
    if (moved < 0 && errno == EAGAIN) {
        return begin_wait(turn, act, wait);
    }
    if (moved != expected) {
        actor_surprise(turn->actor, "%zd bytes, not %zd: %s", moved, expected, strerror(errno));
    }
    return 0;
}

static ssize_t read_one(int fd)
{
    char byte;
    return read(fd, &byte, 1);
}

static ssize_t write_one(int fd)
{
    return write(fd, "x", 1);
}

static int read_byte(struct turn *turn, const struct act *act)
{
    return move_byte(turn, act, read_one, wait_for_reading, 1);
}

static int read_end(struct turn *turn, const struct act *act)
{
    return move_byte(turn, act, read_one, wait_for_reading, 0);
}

static int send_byte(struct turn *turn, const struct act *act)
{
    return move_byte(turn, act, write_one, wait_for_writing, 1);
}

struct act reads(int fd)
{
    return on(read_byte, fd);
}

struct act reads_end(int fd)
{
    return on(read_end, fd);
}

struct act writes(int fd)
{
    return on(send_byte, fd);
}

static int read_on(struct turn *turn, const struct act *act)
{
    uint64_t data;
    int error;
    if (!wait_is_over(turn->actor, &error)) {
        return ACT_WAITS;
    }
    if (error != 0) {
        return error;
    }
    while (read((int)act->number, &data, sizeof data) > 0) {
    }
    return begin_wait(turn, act, wait_for_reading);
}

struct act reads_until(int fd, int error)
{
    return refused(on(read_on, fd), error);
}

/* ---- processes that wait ---- */

struct actor *waiter_start(int fd, bool writes)
{
    struct actor *actor =
        actor_start(ACTS(writes ? waits_writable(WAIT, fd) : waits_readable(WAIT, fd)));
    actor_await_state(actor, SKUA_PROCESS_BLOCKED);
    return actor;
}

struct actor *reader_start(int fd)
{
    return waiter_start(fd, false);
}

struct actor *writer_start(int fd)
{
    return waiter_start(fd, true);
}

struct seen wait_end(int error)
{
    return failure(WAIT, error);
}

void assert_wait_ends(struct actor *actor, int error)
{
    actor_await_seen(actor, 1);
    assert_saw(actor, wait_end(error));
}

void assert_waits(struct actor *actor, uint64_t events)
{
    assert_int_equal(world_info(actor->pid).state, SKUA_PROCESS_BLOCKED);
    assert_int_equal(tally_count(&actor->arrived), events);
}

static int wait_once(struct act wait)
{
    struct actor *actor = actor_new(ACTS(wait, awaits(1), finishes(0)));
    assert_result(actor_run(actor), 0);
    const int error = actor->seen[0].error;
    assert_saw(actor, wait_end(error));
    return error;
}

int wait_readable(int fd)
{
    return wait_once(waits_readable(WAIT, fd));
}

int wait_writable(int fd)
{
    return wait_once(waits_writable(WAIT, fd));
}

/* ---- the poller ---- */

static struct net *net(void)
{
    return &world_runtime()->net;
}

/* A process may hear of the end of its wait before the poller has let go of the lock under which it
 * counts. */
uint32_t waited_for(void)
{
    mutex_lock(&net()->lock);
    const uint32_t waits = load_seq_cst(&world_runtime()->sched.poll.waits);
    mutex_unlock(&net()->lock);
    return waits;
}

/* The kernel tells what is ready in that order, and what it tells at once is dealt with under one
 * lock. */
void let_poller_catch_up(void)
{
    const int sentinel = eventfd_open();
    signal_eventfd(sentinel);
    assert_int_equal(wait_readable(sentinel), 0);
    mutex_lock(&net()->lock);
    mutex_unlock(&net()->lock);
    assert_int_equal(fd_close_by_runtime(sentinel), 0);
}

uint64_t check_descriptors(void)
{
    struct poller *poller = &net()->poller;
    return poller->check(poller, NULL, 1);
}
