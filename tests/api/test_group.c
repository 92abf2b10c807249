/* SPDX-License-Identifier: MIT */
/* Groups: who is a member, for how long, and who is told so. */
#include <stdio.h>
#include <string.h>

#include "groups.h"

#define LONGEST  "123456789 123456789 123456789 123456789 123456789 123456789 123"
#define TOO_LONG LONGEST "4"

TEST(members_are_listed_in_the_order_in_which_they_joined)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *one = actor_start(NO_ACTS);
        struct actor *two = actor_start(NO_ACTS);
        struct actor *three = actor_start(NO_ACTS);
        world_settle();
        assert_no_members("choir");
        actor_perform(two, ACTS(enters("choir")));
        actor_perform(one, ACTS(enters("choir"), enters("band")));
        actor_perform(three, ACTS(enters("choir")));
        assert_members("choir", two, one, three);
        assert_members("band", one);
        assert_no_members("choi");
        actor_perform(two, ACTS(leaves("choir"), refused(leaves("choir"), SKUA_E_NOT_MEMBER)));
        assert_members("choir", one, three);
        actor_perform(two, ACTS(enters("choir")));
        assert_members("choir", one, three, two);
        assert_int_equal(group_count(), 2);
        actor_perform(one, ACTS(leaves("band")));
        assert_int_equal(group_count(), 1);
    }
}

TEST(who_joins_twice_leaves_twice)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *member = actor_start(ACTS(enters("choir"), enters("choir")));
        world_settle();
        assert_members("choir", member);
        actor_perform(member, ACTS(leaves("choir")));
        assert_members("choir", member);
        actor_perform(member, ACTS(leaves("choir"), refused(leaves("choir"), SKUA_E_NOT_MEMBER)));
        assert_no_members("choir");
        assert_int_equal(group_count(), 0);
    }
}

static int check_is_no_member(struct turn *turn, const struct act *act)
{
    skua_pid pids[4];
    const int count = skua_group_members(skua_runtime_of(turn->ctx), "choir", pids, 4);
    for (int i = 0; i < count; i++) {
        if (skua_pid_equal(pids[i], act->peer->pid)) {
            actor_surprise(turn->actor, "somebody who has ended is a member");
        }
    }
    return 0;
}

TEST(process_that_ends_has_left_when_others_hear_of_it)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *stays = actor_start(ACTS(enters("choir")));
        struct actor *ends = actor_start(ACTS(enters("choir"), enters("choir"), enters("band")));
        world_settle();
        struct act looks = {.perform = check_is_no_member, .peer = ends};
        struct actor *watcher =
            actor_start(ACTS(monitors(1, ends), expects(end_of(1, ends, 0)), looks));
        ends->in_close = ACTS(looks, refused(leaves("choir"), SKUA_E_NOT_MEMBER));
        world_settle();
        actor_perform(ends, ACTS(finishes(0)));
        assert_int_equal(watcher->seen_count, 1);
        assert_members("choir", stays);
        assert_no_members("band");
    }
}

TEST(process_that_is_terminated_has_left)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *member = actor_start(ACTS(enters("choir")));
        world_settle();
        assert_int_equal(world_terminate(member->pid), 0);
        world_settle();
        assert_no_members("choir");
        assert_int_equal(group_count(), 0);
    }
}

/* ---- very many ---- */

enum { MANY_GROUPS = 20000 };

static const char *numbered(uint64_t number)
{
    static _Thread_local char text[32];
    (void)snprintf(text, sizeof text, "group %llu", (unsigned long long)number);
    return text;
}

static int enter_numbered(struct turn *turn, const struct act *act)
{
    return skua_group_join(turn->ctx, numbered(act->number));
}

/* Those with a number below 1,000, from both ends of that; then the others, oldest first. */
static int leave_numbered(struct turn *turn, const struct act *act)
{
    const uint64_t n = act->number;
    const uint64_t number = n >= 1000 ? n : n % 2 == 0 ? n / 2 : 999 - n / 2;
    const int error = skua_group_leave(turn->ctx, numbered(number));
    return error != 0                                                           ? error
           : skua_group_leave(turn->ctx, numbered(number)) == SKUA_E_NOT_MEMBER ? 0
                                                                                : SKUA_E_INVALID;
}

TEST(groups_of_a_process_are_left_in_any_order)
{
    world_open_virtual();
    struct actor *member = actor_start(ACTS(for_each_tag(MANY_GROUPS, does(enter_numbered, NULL))));
    world_settle();
    assert_int_equal(group_count(), MANY_GROUPS);
    actor_perform(member, ACTS(for_each_tag(MANY_GROUPS - 2, does(leave_numbered, NULL))));
    assert_int_equal(group_count(), 2);
    assert_no_members(numbered(0));
    assert_members(numbered(MANY_GROUPS - 2), member);
    assert_members(numbered(MANY_GROUPS - 1), member);
}

/* Others run before it has left them all, and those are in slices. */
TEST(very_many_groups_are_left_in_slices)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *member = actor_start(ACTS(for_each_tag(MANY_GROUPS, does(enter_numbered, NULL))));
    world_settle();
    assert_int_equal(world_terminate(member->pid), 0);
    size_t slices = 0;
    for (int before = group_count(); skua_sim_step(world_runtime()) == 1;) {
        const int now = group_count();
        assert_in_range(before - now, 0, 256);
        slices += before != now;
        before = now;
    }
    assert_in_range(slices, MANY_GROUPS / 256, MANY_GROUPS);
    assert_int_equal(group_count(), 0);
}

TEST(members_that_come_and_go_leave_no_gaps)
{
    enum { MEMBERS = 60 };
    world_open_virtual();
    struct actor *members[MEMBERS];
    for (size_t i = 0; i < MEMBERS; i++) {
        members[i] = actor_start(ACTS(enters("choir")));
        world_settle();
    }
    for (size_t i = 0; i < MEMBERS; i += 2) {
        actor_perform(members[i], ACTS(leaves("choir")));
    }
    for (size_t i = 0; i < MEMBERS; i += 2) {
        actor_perform(members[i], ACTS(enters("choir")));
    }
    const struct actor *expected[MEMBERS];
    for (size_t i = 0; i < MEMBERS; i++) {
        expected[i] = members[i < MEMBERS / 2 ? 2 * i + 1 : 2 * i - MEMBERS];
    }
    assert_these_members("choir", expected, MEMBERS);
}

/* ---- limits and bad input ---- */

TEST(groups_have_a_limit)
{
    world_open_virtual_with((skua_runtime_config){.group_limit = 2});
    struct actor *one = actor_start(ACTS(enters("a"), watches(1, "b"), expects(empty_snapshot(1)),
                                         refused(enters("c"), SKUA_E_GROUP_LIMIT)));
    struct actor *two = actor_start(NO_ACTS);
    world_settle();
    actor_perform(two, ACTS(enters("a"), enters("b"), refused(enters("c"), SKUA_E_GROUP_LIMIT),
                            watches(2, "c"), expects(failure(2, SKUA_E_GROUP_LIMIT))));
    actor_perform(one, ACTS(cancels(1), expects(failure(1, SKUA_E_CANCELLED)), leaves("a")));
    assert_saw(one, empty_snapshot(1), joined(1, two), failure(1, SKUA_E_CANCELLED));
    actor_perform(two, ACTS(leaves("a"), enters("c"), refused(enters("a"), SKUA_E_GROUP_LIMIT),
                            leaves("b"), enters("a")));
    assert_int_equal(group_count(), 2);
}

TEST(names_of_groups_are_checked)
{
    world_open_virtual();
    skua_pid pids[1];
    struct actor *actor = actor_start(
        ACTS(refused(enters(""), SKUA_E_NAME), refused(enters(NULL), SKUA_E_NAME),
             refused(enters("a\nb"), SKUA_E_NAME), refused(enters(TOO_LONG), SKUA_E_NAME_LENGTH),
             refused(leaves(""), SKUA_E_NAME), refused(leaves(TOO_LONG), SKUA_E_NAME_LENGTH),
             refused(leaves("a"), SKUA_E_NOT_MEMBER), refused(watches(1, ""), SKUA_E_NAME),
             refused(watches(1, TOO_LONG), SKUA_E_NAME_LENGTH),
             refused(publishes(1, NULL, 0, 0), SKUA_E_NAME),
             refused(publishes(1, TOO_LONG, 0, 0), SKUA_E_NAME_LENGTH), enters(LONGEST)));
    world_settle();
    assert_members(LONGEST, actor);
    assert_int_equal(skua_group_members(world_runtime(), "", pids, 1), SKUA_E_NAME);
    assert_int_equal(skua_group_members(world_runtime(), TOO_LONG, pids, 1), SKUA_E_NAME_LENGTH);
    assert_int_equal(skua_group_members(NULL, "a", pids, 1), SKUA_E_INVALID);
    assert_int_equal(skua_group_members(world_runtime(), "a", NULL, 1), SKUA_E_INVALID);
    assert_int_equal(skua_group_members(world_runtime(), LONGEST, NULL, 0), 1);
    assert_int_equal(skua_group_list(NULL, NULL, 0), SKUA_E_INVALID);
    assert_int_equal(skua_group_list(world_runtime(), NULL, 1), SKUA_E_INVALID);
    assert_int_equal(skua_group_list_sized(world_runtime(), NULL, 0, 0), SKUA_E_INVALID);
}

TEST(groups_are_for_steps)
{
    world_open_virtual();
    skua_context *kept = NULL;
    struct actor *actor = actor_new(ACTS(does(keep_context, &kept)));
    actor->in_init = ACTS(
        refused(enters("a"), SKUA_E_CONTEXT), refused(leaves("a"), SKUA_E_NOT_MEMBER),
        refused(watches(1, "a"), SKUA_E_CONTEXT), refused(publishes(1, "a", 0, 0), SKUA_E_CONTEXT));
    actor->in_close = ACTS(refused(enters("a"), SKUA_E_CONTEXT));
    actor_submit(actor);
    world_settle();
    assert_int_equal(skua_group_join(NULL, "a"), SKUA_E_INVALID);
    assert_int_equal(skua_group_leave(NULL, "a"), SKUA_E_INVALID);
    assert_int_equal(skua_yield_group_watch(NULL, 1, "a"), SKUA_E_INVALID);
    assert_int_equal(skua_yield_publish(NULL, 1, "a", skua_nothing()), SKUA_E_INVALID);
    assert_int_equal(group_count(), 0);
}

TEST(groups_are_listed_with_their_members_and_watches)
{
    world_open_virtual();
    skua_group_snapshot groups[3] = {{{0}, 0, 0}};
    struct actor *one = actor_start(ACTS(enters("choir"), watches(1, "choir"), awaits(1)));
    actor_perform(one, NO_ACTS);
    struct actor *two = actor_start(ACTS(enters("choir"), watches(2, "hall"), awaits(1)));
    actor_perform(two, NO_ACTS);
    assert_int_equal(skua_group_list(world_runtime(), groups, 1), 2);
    assert_int_equal(groups[1].name[0], '\0');
    assert_int_equal(skua_group_list(world_runtime(), groups, 3), 2);
    const int choir = strcmp(groups[0].name, "choir") == 0 ? 0 : 1;
    assert_string_equal(groups[choir].name, "choir");
    assert_int_equal(groups[choir].members, 2);
    assert_int_equal(groups[choir].watchers, 1);
    assert_string_equal(groups[1 - choir].name, "hall");
    assert_int_equal(groups[1 - choir].members, 0);
    assert_int_equal(groups[1 - choir].watchers, 1);
}
