/* SPDX-License-Identifier: MIT */
/* Taking back yields by their tags, of very many: each completes exactly once. Were it slow, these
 * tests would take minutes. */
#include "actor.h"
#include "desk.h"

#define MANY  UINT64_C(100000)
#define SOME  UINT64_C(2000)
#define FAR   (SKUA_SECOND * 3600 * 24)
#define SEEDS 10

/* ---- tags in some order ---- */

enum order { FORWARD, BACKWARD, SHUFFLED, ORDERS };

static uint64_t *tags_in_order(enum order order, uint64_t count)
{
    uint64_t *tags = test_alloc(count * sizeof *tags);
    uint64_t random = 7;
    for (uint64_t i = 0; i < count; i++) {
        tags[i] = order == BACKWARD ? count - 1 - i : i;
    }
    for (uint64_t i = count; order == SHUFFLED && i > 1; i--) {
        const uint64_t other = seed_next(&random) % i;
        const uint64_t tag = tags[i - 1];
        tags[i - 1] = tags[other];
        tags[other] = tag;
    }
    return tags;
}

/* ---- acts ---- */

/* Kinds of yields that stay open. */
enum kind { TIMER, SLEEP, TICKER, COMMAND, KINDS };

struct load {
    uint64_t count;
    uint64_t tags;     /* different ones: the n-th yield has the tag n % tags */
    unsigned kinds;    /* of the enum above: the n-th yield is of the kind n % kinds */
    uint64_t *order;   /* in which tags are taken back */
    uint64_t per_step; /* so many in each step */
};

static int open_one(skua_context *ctx, enum kind kind, uint64_t tag)
{
    switch (kind) {
    case TIMER:
        return skua_yield_timer(ctx, tag, SKUA_FOREVER);
    case SLEEP:
        return skua_yield_sleep(ctx, tag, FAR);
    case TICKER:
        return skua_yield_ticker(ctx, tag, FAR);
    case COMMAND:
    case KINDS:
        break;
    }
    return skua_yield(ctx, tag, DESK_KEEP, skua_nothing(), SKUA_FOREVER);
}

static int open_all(struct turn *turn, const struct act *act)
{
    const struct load *load = act->arg;
    int error = 0;
    for (uint64_t i = 0; i < load->count && error == 0; i++) {
        error = open_one(turn->ctx, (enum kind)(i % load->kinds), i % load->tags);
    }
    return error;
}

/* Takes all back, so many in each step. */
static int take_back(struct turn *turn, const struct act *act)
{
    const struct load *load = act->arg;
    uint64_t *done = &turn->actor->counter;
    for (uint64_t i = 0; i < load->per_step && *done < load->tags; i++) {
        const int error = skua_yield_cancel(turn->ctx, load->order[(*done)++]);
        if (error != 0) {
            return error;
        }
    }
    if (*done == load->tags) {
        return 0;
    }
    const int error = skua_continue(turn->ctx);
    return error != 0 ? error : ACT_WAITS;
}

/* Each tag has its share of the completions, all by the cancel. */
static void check_completions(const struct actor *actor, const struct load *load)
{
    uint64_t *came = test_alloc(load->tags * sizeof *came);
    assert_int_equal(actor->seen_count, load->count);
    for (uint64_t i = 0; i < load->count; i++) {
        const struct seen *seen = &actor->seen[i];
        const struct seen expected = failure(seen->tag, SKUA_E_CANCELLED);
        assert_true(seen_matches(seen, &expected));
        assert_in_range(seen->tag, 0, load->tags - 1);
        came[seen->tag]++;
    }
    for (uint64_t tag = 0; tag < load->tags; tag++) {
        assert_int_equal(came[tag], load->count / load->tags + (tag < load->count % load->tags));
    }
}

static struct actor *run_load(struct load *load)
{
    struct actor *actor = actor_new(ACTS(does(open_all, load), continues(1), does(take_back, load),
                                         awaits(load->count), finishes(0)));
    assert_result(actor_run(actor), 0);
    check_completions(actor, load);
    return actor;
}

/* ---- tests ---- */

TEST(very_many_yields_are_taken_back_in_any_order)
{
    FOR_ROUNDS (round, ORDERS) {
        world_open_with((skua_runtime_config){.worker_count = 2});
        struct load load = {.count = MANY, .tags = MANY, .kinds = 1, .per_step = MANY};
        load.order = tags_in_order((enum order)(round - 1), MANY);
        (void)run_load(&load);
    }
}

TEST(very_many_yields_are_taken_back_a_few_in_each_step)
{
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct load load = {.count = MANY, .tags = MANY, .kinds = TICKER + 1, .per_step = 10};
    load.order = tags_in_order(SHUFFLED, MANY);
    (void)run_load(&load);
}

TEST(yields_with_one_tag_are_taken_back_together)
{
    static const uint64_t tags[] = {1, 2, 7, 1000};
    FOR_ROWS (count, tags) {
        world_open_with((skua_runtime_config){.worker_count = 2});
        struct load load = {.count = MANY, .tags = *count, .kinds = TICKER + 1, .per_step = 3};
        load.order = tags_in_order(SHUFFLED, *count);
        (void)run_load(&load);
    }
}

TEST(yields_of_all_kinds_are_taken_back_in_every_run)
{
    FOR_ROUNDS (seed, SEEDS) {
        world_create_sim(seed, (skua_sim_config){0});
        (void)desk_open();
        world_start();
        struct load load = {.count = SOME, .tags = SOME / seed, .kinds = KINDS, .per_step = seed};
        load.order = tags_in_order((enum order)(seed % ORDERS), load.tags);
        (void)run_load(&load);
    }
}

/* In one step with their yields, before anything has been started. */
TEST(yields_are_taken_back_in_their_own_step)
{
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct load load = {.count = SOME, .tags = SOME, .kinds = 2, .per_step = SOME};
    load.order = tags_in_order(SHUFFLED, SOME);
    struct actor *actor =
        actor_new(ACTS(does(open_all, &load), does(take_back, &load), awaits(SOME), finishes(0)));
    assert_result(actor_run(actor), 0);
    check_completions(actor, &load);
}

TEST(yields_are_opened_and_taken_back_again_and_again)
{
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct load load = {.count = SOME, .tags = SOME, .kinds = TICKER + 1, .per_step = 100};
    load.order = tags_in_order(SHUFFLED, SOME);
    struct actor *actor =
        actor_new(ACTS(does(open_all, &load), continues(1), does(take_back, &load), awaits(SOME),
                       repeats(9), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_int_equal(actor->seen_count, 10 * SOME);
    for (uint64_t i = 0; i < 10; i++) {
        load.count = SOME;
        struct actor part = {.seen = &actor->seen[i * SOME], .seen_count = SOME};
        check_completions(&part, &load);
    }
}

/* ---- those that were taken back and still wait to be delivered ---- */

static int open_and_take_back(struct turn *turn, const struct act *act)
{
    int error = 0;
    for (uint64_t i = 0; i < act->number && error == 0; i++) {
        error = skua_yield_timer(turn->ctx, act->tag, SKUA_FOREVER);
        error = error != 0 ? error : skua_yield_cancel(turn->ctx, act->tag);
    }
    return error;
}

TEST(yield_is_taken_back_among_many_of_its_tag)
{
    FOR_ROUNDS (seed, SEEDS) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct load load = {.count = 100, .tags = 100, .kinds = 1};
        struct actor *actor =
            actor_new(ACTS(does(open_all, &load), continues(1),
                           (struct act){.perform = open_and_take_back, .tag = 200, .number = SOME},
                           awaits(SOME), finishes(0)));
        assert_result(actor_run(actor), 0);
        for (uint64_t i = 0; i < SOME; i++) {
            const struct seen expected = failure(200, SKUA_E_CANCELLED);
            assert_true(seen_matches(&actor->seen[i], &expected));
        }
    }
}

static int open_several(struct turn *turn, const struct act *act)
{
    int error = 0;
    for (uint64_t i = 0; i < act->number && error == 0; i++) {
        error = skua_yield_timer(turn->ctx, act->tag, SKUA_FOREVER);
    }
    return error;
}

static struct act opens(uint64_t tag, uint64_t count)
{
    return (struct act){.perform = open_several, .tag = tag, .number = count};
}

/* The first few are taken back without an index, the others with one, all in one step. */
TEST(yields_are_taken_back_when_few_become_many)
{
    FOR_ROUNDS (seed, SEEDS) {
        world_open_sim(seed, SIM_NO_FAULTS);
        const uint64_t total = 9 + 40 + 40 + 3;
        struct actor *actor =
            actor_new(ACTS(opens(1, 9), cancels(1), opens(2, 40), opens(1, 40), cancels(1),
                           opens(1, 3), cancels(1), awaits(total - 40), cancels(2), awaits(40),
                           cancels(1), cancels(2), continues(1), finishes(0)));
        assert_result(actor_run(actor), 0);
        assert_int_equal(actor->seen_count, total);
        for (uint64_t i = 0; i < total; i++) {
            const struct seen expected = failure(i < total - 40 ? 1 : 2, SKUA_E_CANCELLED);
            assert_true(seen_matches(&actor->seen[i], &expected));
        }
    }
}

/* Every other one has ended before; tags that nobody has do no harm. */
TEST(yields_that_have_ended_are_not_taken_back)
{
    struct desk *desk = desk_open_with((skua_runtime_config){.worker_count = 2});
    struct load load = {.count = 1000, .tags = 1000, .kinds = 1, .per_step = 1000};
    load.order = tags_in_order(SHUFFLED, 1000);
    struct actor *actor =
        actor_start(ACTS(for_each_tag(1000, yields(0, DESK_KEEP, 0, 0)), awaits(500), cancels(5000),
                         cancels(UINT64_MAX), does(take_back, &load), awaits(500),
                         does(take_back, &load), continues(1), finishes(0)));
    desk_await_kept(desk, 1000);
    for (size_t i = 0; i < 1000; i += 2) {
        assert_int_equal(desk_complete(desk, i, 0, i), 0);
    }
    actor_await_end(actor);
    bool came[1000] = {0};
    assert_int_equal(actor->seen_count, 1000);
    for (size_t i = 0; i < 1000; i++) {
        const struct seen *seen = &actor->seen[i];
        assert_int_equal(seen->error, seen->tag % 2 == 0 ? 0 : SKUA_E_CANCELLED);
        assert_false(came[seen->tag]);
        came[seen->tag] = true;
    }
    for (size_t i = 1; i < 1000; i += 2) {
        assert_late(desk, i);
    }
}

/* What is open when the process ends is nobody's. */
TEST(very_many_yields_end_with_their_process)
{
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct load load = {.count = MANY, .tags = MANY, .kinds = TICKER + 1, .per_step = 1};
    load.order = tags_in_order(FORWARD, MANY);
    struct actor *actor = actor_new(ACTS(does(open_all, &load), continues(1), cancels(5),
                                         cancels(MANY - 1), awaits(2), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_int_equal(actor->seen_count, 2);
}
