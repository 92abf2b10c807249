/* SPDX-License-Identifier: MIT */
/* Supervisors: how they stop, when they stop by themselves, and what stops with the runtime. */
#include <stdio.h>

#include "exits.h"
#include "timers.h"
#include "wards.h"

#define TOP(...) ((skua_supervisor){.name = "top", __VA_ARGS__})

static void open_wards(void)
{
    world_open_virtual();
    wards_open();
}

static void pass(uint64_t duration_ns)
{
    world_advance(duration_ns + 2 * SKUA_CLOCK_RESOLUTION_NS);
}

static void cancel_and_settle(skua_pid supervisor)
{
    assert_int_equal(world_cancel(supervisor, 0), 0);
    world_settle();
}

static skua_child with_stop(skua_child child, uint64_t stop_ns)
{
    child.stop_ns = stop_ns;
    return child;
}

TEST(a_child_that_does_not_stop_is_ended)
{
    open_wards();
    ward_of('b')->habits.ignores_cancel = true;
    ward_of('c')->habits.ignores_cancel = true;
    const skua_pid top =
        supervise(TOP(WARDS(ward('a'), with_stop(ward('b'), SKUA_SECOND), ward('c'))));
    cancel_and_settle(top);
    assert_diary("+a+b+c");
    pass(5 * SKUA_SECOND);
    assert_diary("-c");
    pass(SKUA_SECOND);
    assert_diary("-b-a");
    assert_int_equal(ward_of('b')->exit_error, SKUA_E_TERMINATED);
    assert_int_equal(ward_of('a')->exit_error, SKUA_E_CANCELLED);
    world_await_live(0);
}

TEST(a_supervisor_within_has_the_time_that_its_children_take)
{
    open_wards();
    ward_of('a')->habits.stops_after_ns = 60 * SKUA_SECOND;
    const skua_supervisor *inner = specification_copy(
        (skua_supervisor){.name = "inner", WARDS(with_stop(ward('a'), SKUA_FOREVER))});
    const skua_pid top = supervise(TOP(WARDS({.name = "inner", .supervisor = inner})));
    cancel_and_settle(top);
    pass(59 * SKUA_SECOND);
    assert_diary("+a");
    pass(SKUA_SECOND);
    assert_diary("-a");
    assert_int_equal(ward_of('a')->exit_error, SKUA_E_CANCELLED);
}

TEST(a_child_that_waits_for_its_restart_is_not_started_any_more)
{
    open_wards();
    const skua_pid top = supervise(TOP(WARDS(ward('a'), ward('b'))));
    ward_fail('a', SKUA_E_USER);
    ward_fail('a', SKUA_E_USER);
    assert_diary("+a+b-a+a-a");
    cancel_and_settle(top);
    pass(60 * SKUA_SECOND);
    assert_diary("-b");
    world_await_live(0);
}

TEST(a_supervisor_ends_as_it_was_cancelled)
{
    static const int reasons[] = {SKUA_E_CANCELLED, SKUA_E_STOPPED, SKUA_E_USER - 3};
    FOR_ROWS (reason, reasons) {
        struct exits *exits = exits_new();
        world_open_virtual_with((skua_runtime_config){NOTES_EXITS(exits)});
        wards_open();
        const skua_pid top = supervise(TOP(WARDS(ward('a'))));
        assert_int_equal(world_cancel(top, *reason), 0);
        exits_await(exits, 2);
        assert_int_equal(exits->list[1].exit.error, *reason);
        assert_int_equal(ward_of('a')->exit_error,
                         *reason == SKUA_E_STOPPED ? SKUA_E_STOPPED : SKUA_E_CANCELLED);
    }
}

/* ---- significant children ---- */

static skua_child significant(char letter)
{
    skua_child child = ward(letter);
    child.significant = true;
    child.restart = SKUA_RESTART_ON_ERROR;
    return child;
}

TEST(a_supervisor_stops_when_a_significant_child_is_done)
{
    open_wards();
    (void)supervise(
        TOP(.auto_stop = SKUA_AUTO_STOP_ANY, WARDS(ward('a'), significant('b'), significant('c'))));
    ward_fail('b', SKUA_E_USER);
    ward_finish('a');
    assert_diary("+a+b+c-b+b-a+a");
    ward_finish('b');
    assert_diary("-b-c-a");
    world_await_live(0);
}

TEST(a_supervisor_stops_when_all_significant_children_are_done)
{
    open_wards();
    (void)supervise(
        TOP(.auto_stop = SKUA_AUTO_STOP_ALL, WARDS(ward('a'), significant('b'), significant('c'))));
    ward_finish('c');
    assert_diary("+a+b+c-c");
    ward_finish('b');
    assert_diary("-b-a");
    world_await_live(0);
}

/* ---- the runtime ---- */

/* Two trees and a process of its own: each tree in its order. */
TEST(every_root_stops_its_own)
{
    open_wards();
    (void)supervise(TOP(WARDS(ward('a'), ward('b'))));
    skua_pid alone;
    assert_int_equal(skua_process_submit(world_runtime(), &ward_type, ward_input('c'), &alone), 0);
    world_settle();
    world_stop();
    assert_int_equal(ward_of('a')->exit_error, SKUA_E_STOPPED);
    assert_int_equal(ward_of('b')->exit_error, SKUA_E_STOPPED);
    assert_int_equal(ward_of('c')->exit_error, SKUA_E_STOPPED);
}

static char survivor_path[64];

static void note_survivor(void *arg, const skua_process_snapshot *process)
{
    (void)arg;
    if (skua_pid_equal(process->pid, ward_of('b')->pid)) {
        (void)snprintf(survivor_path, sizeof survivor_path, "%s", process->path);
    } else if (strcmp(process->type_name, ward_type.name) != 0) {
        assert_true(process->path != NULL); /* supervisors, too: all are in the tree */
    }
}

TEST(process_without_a_supervisor_has_no_place_in_the_tree)
{
    char path[8] = "x";
    world_open();
    struct actor *actor = actor_start(NO_ACTS);
    assert_int_equal(skua_process_path(world_runtime(), actor->pid, path, sizeof path), 0);
    assert_string_equal(path, "");
    assert_int_equal(skua_process_path(world_runtime(), (skua_pid){0}, path, sizeof path),
                     SKUA_E_NO_PROCESS);
    assert_int_equal(skua_process_path(world_runtime(), (skua_pid){UINT64_MAX}, path, sizeof path),
                     SKUA_E_FOREIGN_PID);
    assert_int_equal(skua_process_path(world_runtime(), actor->pid, path, 0), SKUA_E_INVALID);
    assert_int_equal(skua_process_path(world_runtime(), actor->pid, NULL, 1), SKUA_E_INVALID);
    assert_int_equal(skua_process_path(NULL, actor->pid, path, sizeof path), SKUA_E_INVALID);
}

TEST(survivors_are_named_with_their_place_in_the_tree)
{
    world_open_virtual_with((skua_runtime_config){.on_survivor = note_survivor});
    wards_open();
    ward_of('b')->habits.ignores_cancel = true;
    const skua_supervisor *inner = specification_copy(
        (skua_supervisor){.name = "unused", WARDS(ward('a'), with_stop(ward('b'), SKUA_FOREVER))});
    (void)supervise(TOP(WARDS({.name = "orders", .supervisor = inner})));
    assert_diary("+a+b");
    char path[64];
    char end[5];
    assert_int_equal(skua_process_path(world_runtime(), ward_of('b')->pid, path, sizeof path), 0);
    assert_string_equal(path, "top/orders/b");
    assert_int_equal(skua_process_path(world_runtime(), ward_of('b')->pid, end, sizeof end), 0);
    assert_string_equal(end, "rs/b");
    world_expect_survivors();
    world_close();
    assert_string_equal(survivor_path, "top/orders/b");
    assert_int_equal(ward_of('b')->exit_error, SKUA_E_TERMINATED);
}
