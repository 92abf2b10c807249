/* SPDX-License-Identifier: MIT */
/* skua_done is final: what a step can still do after it, and what becomes of what it did before. */
#include "desk.h"
#include "exits.h"
#include "waits.h"

enum { RESULT = 7 };

static int double_it(skua_payload *input, skua_payload *result)
{
    *result = skua_payload_u64(2, 2 * skua_payload_to_u64(input));
    return 0;
}

static int continue_once(struct turn *turn, const struct act *act)
{
    (void)act;
    return skua_continue(turn->ctx);
}

/* That the process ends in its first step, with this item as its result. */
static void assert_done_with(struct actor *actor, struct tracked *item)
{
    skua_exit exit = actor_run(actor);
    assert_int_equal(exit.error, 0);
    assert_int_equal(exit.result.type, RESULT);
    assert_ptr_equal(skua_payload_data(&exit.result), item);
    assert_int_equal(actor->steps, 1);
    assert_int_equal(actor->exit_error, 0);
    assert_saw_nothing(actor);
    world_close();
    assert_drops(item, 1, 0); /* it is this thread's now */
}

TEST(done_refuses_all_that_would_come_later)
{
    struct tracked item = {0};
    struct tracked input = {0};
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    const struct act late[] = {
        yields(1, DESK_KEEP, 0, 1),
        yields_item(2, DESK_DOUBLE, 0, &input),
        sleeps(3, 0),
        timer(4, 0),
        ticker(5, SKUA_SECOND),
        offloads(6, NULL, double_it, 1),
        waits_readable(7, 0),
        waits_writable(8, 0),
        cancels(9),
        does(continue_once, NULL),
    };
    struct act acts[COUNT_OF(late) + 1] = {finishes_with(RESULT, &item)};
    for (size_t i = 0; i < COUNT_OF(late); i++) {
        acts[i + 1] = refused(late[i], SKUA_E_DONE);
    }
    assert_done_with(actor_new(script_copy(acts, COUNT_OF(acts))), &item);
    assert_drops(&input, 1, 1);
    assert_int_equal(desk->calls, 0);
}

TEST(done_keeps_its_first_result)
{
    struct tracked items[3] = {0};
    world_open();
    struct actor *actor =
        actor_new(ACTS(finishes_with(RESULT, &items[0]),
                       refused(finishes_with(RESULT + 1, &items[1]), SKUA_E_DONE),
                       refused(finishes_with(RESULT + 2, &items[2]), SKUA_E_DONE)));
    assert_done_with(actor, &items[0]);
    assert_drops(&items[1], 2, 1);
}

TEST(done_wins_over_what_the_step_returns)
{
    static const int returned[] = {SKUA_E_USER, -1, SKUA_E_STOPPED, 1};
    FOR_ROWS (value, returned) {
        struct tracked item = {0};
        world_open();
        assert_done_with(actor_new(ACTS(finishes_with(RESULT, &item), fails(*value))), &item);
    }
}

TEST(done_comes_after_what_was_said_before)
{
    struct tracked item = {0};
    world_open();
    assert_done_with(actor_new(ACTS(does(continue_once, NULL), finishes_with(RESULT, &item))),
                     &item);
}

TEST(done_lets_the_yields_before_it_be_carried_out)
{
    struct tracked inputs[2] = {0};
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    struct actor *actor = actor_new(
        ACTS(yields_item(1, DESK_DOUBLE, 0, &inputs[0]), yields_item(2, DESK_KEEP, 0, &inputs[1]),
             yields(3, DESK_KEEP, 0, 0), cancels(3), sleeps(4, SKUA_SECOND), finishes(9)));
    assert_result(actor_run(actor), 9);
    assert_int_equal(desk->calls, 3);
    assert_saw_nothing(actor); /* of their completions */
    assert_late(desk, 0);
    assert_late(desk, 1);
    assert_drops(inputs, 2, 1);
}

TEST(failed_step_drops_the_yields_before_it)
{
    struct tracked inputs[2] = {0};
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    struct actor *actor = actor_new(
        ACTS(yields_item(1, DESK_DOUBLE, 0, &inputs[0]), yields_item(2, DESK_KEEP, 0, &inputs[1]),
             sleeps(3, SKUA_SECOND), offloads(4, NULL, double_it, 1), fails(SKUA_E_USER)));
    assert_failed(actor_run(actor), SKUA_E_USER);
    assert_int_equal(desk->calls, 0);
    assert_drops(inputs, 2, 1);
}

/* What happens at once still does. */
TEST(done_does_not_keep_a_step_from_acting)
{
    world_open();
    struct actor *peer = actor_start(NO_ACTS);
    struct actor *child = actor_new(ACTS(finishes(0)));
    struct actor *actor = actor_new(ACTS(finishes(5), sends(peer, 1, 2), spawns(child)));
    assert_result(actor_run(actor), 5);
    actor_await_seen(peer, 1);
    assert_saw(peer, message(1, 2));
    world_await_live(1);
    assert_int_equal(child->closes, 1);
}

static int done_with_what_is_gone(struct turn *turn, const struct act *act)
{
    (void)act;
    skua_payload payload = skua_payload_u64(RESULT, 1);
    const skua_payload kept = skua_payload_take(&payload);
    if (skua_done_from(turn->ctx, &payload) != SKUA_E_TAKEN || skua_payload_to_u64(&kept) != 1 ||
        skua_done_from(turn->ctx, NULL) != SKUA_E_INVALID ||
        skua_done(NULL, skua_nothing()) != SKUA_E_INVALID) {
        return SKUA_E_USER;
    }
    return 0;
}

TEST(done_that_is_refused_ends_nothing)
{
    world_open();
    struct actor *actor =
        actor_new(ACTS(does(done_with_what_is_gone, NULL), continues(1), finishes(8)));
    assert_result(actor_run(actor), 8);
    assert_int_equal(actor->steps, 2);
}

TEST(done_is_nothing_for_init)
{
    struct tracked item = {0};
    world_open();
    struct actor *actor = actor_new(ACTS(finishes(8)));
    actor->in_init = ACTS(refused(finishes_with(RESULT, &item), SKUA_E_CONTEXT),
                          refused(does(continue_once, NULL), SKUA_E_CONTEXT));
    assert_result(actor_run(actor), 8);
    assert_drops(&item, 1, 1);
}

TEST(done_drops_the_events_that_come_after_it)
{
    FOR_ROUNDS (seed, 40) {
        struct tracked late[20] = {0};
        world_open_sim(seed, SIM_NO_FAULTS);
        struct actor *actor = actor_start(ACTS(awaits(1), finishes(1)));
        for (size_t i = 0; i < COUNT_OF(late); i++) {
            assert_int_equal(world_send(actor->pid, tracked_payload(1, &late[i])), 0);
        }
        world_settle();
        assert_int_equal(actor->closes, 1);
        assert_drops(late, COUNT_OF(late), 1);
    }
}
