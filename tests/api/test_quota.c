/* SPDX-License-Identifier: MIT */
/* Quotas of processes and of bytes: exact at their limits, inherited, one within the other, and
 * given back however a process ends. On threads and simulated. */
#include "quotas.h"
#include "relations.h"

static struct actor *open_grantor(uint64_t driver, skua_quota quota)
{
    world_open_driver(driver);
    return grantor_start(quota);
}

/* Until nothing moves, and so many processes live. */
static void settle_with(uint64_t live)
{
    world_settle();
    world_await_live(live);
}

/* ---- processes ---- */

TEST(as_many_processes_as_the_quota_allows_can_be_started)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *top = open_grantor(driver, (skua_quota){.processes = 3});
        struct actor *children[3];
        for (size_t i = 0; i < 3; i++) {
            children[i] = actor_new(NO_ACTS);
            actor_perform(top, ACTS(spawns(children[i])));
            assert_used(top->pid, (uint32_t)i + 1, 0, 0);
        }
        struct actor *refused_one = actor_new(NO_ACTS);
        actor_perform(top, ACTS(refused(spawns(refused_one), SKUA_E_PROCESS_QUOTA)));
        assert_int_equal(refused_one->inits, 0); /* nobody has seen it */
        assert_used(top->pid, 3, 0, 0);
        actor_perform(children[1], ACTS(finishes(0)));
        settle_with(3);
        assert_used(top->pid, 2, 0, 0);
        actor_perform(top, ACTS(spawns(refused_one)));
        assert_used(top->pid, 3, 0, 0);
    }
}

TEST(what_children_start_counts_and_their_end_gives_it_back)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *top = open_grantor(driver, (skua_quota){.processes = 2});
        struct actor *child = actor_new(NO_ACTS);
        struct actor *grandchild = actor_new(NO_ACTS);
        struct actor *another = actor_new(NO_ACTS);
        actor_perform(top, ACTS(spawns(child)));
        actor_perform(child, ACTS(spawns(grandchild)));
        actor_perform(grandchild, ACTS(refused(spawns(another), SKUA_E_PROCESS_QUOTA)));
        actor_perform(top, ACTS(refused(spawns(another), SKUA_E_PROCESS_QUOTA)));
        assert_int_equal(world_terminate(child->pid), 0); /* the grandchild has no link to it */
        settle_with(2);
        assert_used(top->pid, 1, 0, 0);
        actor_tell(grandchild, ACTS(spawns(another), fails(SKUA_E_USER)));
        settle_with(2);
        assert_used(top->pid, 1, 0, 0);
    }
}

static int submit_inside(struct turn *turn, const struct act *act)
{
    (void)turn;
    return actor_try_submit(act->arg);
}

TEST(a_step_cannot_escape_by_the_functions_for_threads)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *top = open_grantor(driver, (skua_quota){.processes = 1});
        struct actor *child = actor_new(NO_ACTS);
        actor_perform(top, ACTS(spawns(child)));
        actor_perform(child,
                      ACTS(refused(does(submit_inside, actor_new(NO_ACTS)), SKUA_E_PROCESS_QUOTA)));
        struct actor *outside = actor_start(NO_ACTS); /* a thread has no quota */
        world_settle();
        assert_used(top->pid, 1, 0, 0);
        assert_true(world_info(outside->pid).steps > 0);
    }
}

TEST(what_an_init_starts_counts)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *top = open_grantor(driver, (skua_quota){.processes = 2});
        struct actor *child = actor_new(NO_ACTS);
        child->in_init = ACTS(spawns(actor_new(NO_ACTS)),
                              refused(spawns(actor_new(NO_ACTS)), SKUA_E_PROCESS_QUOTA));
        actor_perform(top, ACTS(spawns(child)));
        assert_used(top->pid, 2, 0, 0);
    }
}

TEST(an_init_that_fails_gives_its_place_back)
{
    FOR_ROUNDS (driver, DRIVERS) {
        void *memory;
        struct actor *top = open_grantor(driver, (skua_quota){.processes = 1, .bytes = 100});
        struct actor *child = actor_new(NO_ACTS);
        child->in_init = ACTS(owns(&memory, 100));
        child->init_returns = SKUA_E_USER;
        for (size_t i = 0; i < 5; i++) {
            actor_perform(top, ACTS(refused(spawns(child), SKUA_E_USER)));
            assert_used(top->pid, 0, 0, 0);
        }
    }
}

/* More than are told in one slice of its end. */
TEST(the_place_is_free_before_the_first_of_many_hears_of_the_end)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *top = open_grantor(driver, (skua_quota){.processes = 1});
        struct actor *child = actor_new(NO_ACTS);
        struct actor *next = actor_new(NO_ACTS);
        actor_perform(top, ACTS(spawns(child), for_each_tag(3000, monitors(0, child))));
        actor_tell(top, ACTS(awaits(1), spawns(next)));
        assert_int_equal(world_terminate(child->pid), 0);
        settle_with(2);
        assert_used(top->pid, 1, 0, 0);
    }
}

/* ---- quotas within quotas ---- */

TEST(what_is_under_a_quota_within_a_quota_counts_against_both)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *top = open_grantor(driver, (skua_quota){.processes = 4});
        struct actor *middle = actor_new(NO_ACTS);
        struct actor *leaves[3] = {actor_new(NO_ACTS), actor_new(NO_ACTS), actor_new(NO_ACTS)};
        actor_perform(top, ACTS(spawns(middle)));
        actor_perform(middle,
                      ACTS(grants((skua_quota){.processes = 2}), spawns(leaves[0]),
                           spawns(leaves[1]), refused(spawns(leaves[2]), SKUA_E_PROCESS_QUOTA)));
        assert_used(top->pid, 3, 0, 0);
        assert_used(middle->pid, 2, 0, 0);
        struct actor *other = actor_new(NO_ACTS);
        actor_perform(top, ACTS(spawns(other)));
        assert_int_equal(world_terminate(leaves[0]->pid), 0);
        settle_with(4);
        actor_perform(other, ACTS(spawns(actor_new(NO_ACTS))));
        actor_perform(middle, ACTS(refused(spawns(leaves[2]), SKUA_E_PROCESS_QUOTA)));
        assert_used(top->pid, 4, 0, 0);
        assert_used(middle->pid, 1, 0, 0); /* what was refused further out is not kept */
    }
}

TEST(a_quota_outlives_the_process_that_has_set_it)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *top = open_grantor(driver, (skua_quota){.processes = 3});
        struct actor *middle = actor_new(ACTS(grants((skua_quota){.processes = 1})));
        struct actor *leaf = actor_new(NO_ACTS);
        struct actor *another = actor_new(NO_ACTS);
        actor_perform(top, ACTS(spawns(middle)));
        actor_perform(middle, ACTS(spawns(leaf), finishes(0)));
        settle_with(2);
        actor_perform(leaf, ACTS(refused(spawns(another), SKUA_E_PROCESS_QUOTA)));
        assert_used(top->pid, 1, 0, 0);
        actor_perform(leaf, ACTS(finishes(0)));
        settle_with(1);
        assert_used(top->pid, 0, 0, 0);
    }
}

TEST(quotas_are_made_again_and_again)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *top = open_grantor(driver, (skua_quota){.processes = 400});
        for (size_t round = 0; round < 3; round++) {
            struct actor *middles[150];
            for (size_t i = 0; i < COUNT_OF(middles); i++) {
                middles[i] = actor_new(ACTS(grants((skua_quota){.processes = 1}),
                                            spawns(actor_new(ACTS(finishes(0))))));
                actor_perform(top, ACTS(spawns(middles[i])));
            }
            for (size_t i = 0; i < COUNT_OF(middles); i++) {
                actor_perform(middles[i], ACTS(finishes(0)));
            }
            settle_with(1);
            assert_used(top->pid, 0, 0, 0);
        }
    }
}

/* ---- bytes ---- */

TEST(as_many_bytes_as_the_quota_allows_can_be_owned)
{
    FOR_ROUNDS (driver, DRIVERS) {
        void *blocks[4];
        struct actor *top = open_grantor(driver, (skua_quota){.bytes = 1000});
        struct actor *one = actor_new(NO_ACTS);
        struct actor *other = actor_new(NO_ACTS);
        actor_perform(top, ACTS(spawns(one), spawns(other), owns(&blocks[3], 5000)));
        actor_perform(one, ACTS(owns(&blocks[0], 400), owns(&blocks[1], 100)));
        actor_perform(other, ACTS(refused(owns(&blocks[2], 501), SKUA_E_MEMORY_QUOTA),
                                  refused(owns(&blocks[2], SIZE_MAX), SKUA_E_NO_MEMORY),
                                  refused(owns(&blocks[2], SIZE_MAX / 4), SKUA_E_MEMORY_QUOTA)));
        assert_null(blocks[2]);
        actor_perform(other, ACTS(owns(&blocks[2], 500)));
        assert_used(top->pid, 0, 0, 1000); /* processes have no limit, and are not counted */
        actor_perform(one, ACTS(refused(owns(&blocks[3], 1), SKUA_E_MEMORY_QUOTA),
                                disowns(&blocks[1]), owns(&blocks[1], 99)));
        assert_used(top->pid, 0, 0, 999);
        assert_int_equal(world_terminate(one->pid), 0);
        settle_with(2);
        assert_used(top->pid, 0, 0, 500);
        actor_tell(other, ACTS(fails(SKUA_E_USER)));
        settle_with(1);
        assert_used(top->pid, 0, 0, 0);
    }
}

TEST(very_many_blocks_are_given_back_before_anybody_hears_of_the_end)
{
    enum { BLOCKS = 3000 };
    FOR_ROUNDS (driver, DRIVERS) {
        static void *block;
        struct actor *top = open_grantor(driver, (skua_quota){.processes = 1, .bytes = BLOCKS});
        struct actor *child = actor_new(ACTS(owns(&block, 1), repeats(BLOCKS - 1)));
        struct actor *next = actor_new(ACTS(owns(&block, BLOCKS)));
        actor_perform(top, ACTS(spawns(child), monitors(1, child)));
        assert_used(top->pid, 1, 0, BLOCKS);
        actor_tell(top, ACTS(awaits(1), spawns(next)));
        assert_int_equal(world_terminate(child->pid), 0);
        world_settle();
        assert_used(top->pid, 1, 0, BLOCKS);
        assert_true(world_info(next->pid).steps > 0);
    }
}

/* ---- what is wrong ---- */

static int grant_late(struct turn *turn, const struct act *act)
{
    (void)act;
    return skua_limit(turn->ctx, (skua_quota){.bytes = 1});
}

TEST(quotas_are_refused_if_they_limit_nothing_or_come_twice)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *actor =
            actor_start(ACTS(refused(grants((skua_quota){.processes = 0}), SKUA_E_INVALID),
                             grants((skua_quota){.processes = 1}),
                             refused(grants((skua_quota){.processes = 1}), SKUA_E_INVALID)));
        actor->in_close = ACTS(refused(does(grant_late, NULL), SKUA_E_CONTEXT));
        world_settle();
        skua_quota_use use;
        assert_int_equal(skua_limit(NULL, (skua_quota){.processes = 1}), SKUA_E_INVALID);
        assert_int_equal(skua_process_quota(NULL, actor->pid, &use), SKUA_E_INVALID);
        assert_int_equal(skua_process_quota(world_runtime(), actor->pid, NULL), SKUA_E_INVALID);
        assert_int_equal(skua_process_quota(world_runtime(), (skua_pid){0}, &use),
                         SKUA_E_NO_PROCESS);
        struct actor *plain = actor_start(NO_ACTS);
        world_settle();
        assert_int_equal(skua_process_quota(world_runtime(), plain->pid, &use), 0);
        assert_int_equal(use.limit.processes + use.limit.messages + use.limit.bytes, 0);
        assert_int_equal(skua_process_quota(world_runtime(), actor->pid, &use), 0);
        assert_int_equal(use.limit.processes, 1);
    }
}
