/* SPDX-License-Identifier: MIT */
/* Steps at their limits: memory of an impossible size, own memory up to the type's limit, a state
 * of no size, and numbers that no step should return. */
#include <limits.h>

#include "actor.h"
#include "desk.h"

#define PAYLOAD_LIMIT 1000
#define EXPECT(call, expected)                                                                     \
    if ((call) != (expected)) {                                                                    \
        actor_surprise(turn->actor, "%s", #call);                                                  \
    }

/* ---- memory ---- */

static int allocate_wrongly(struct turn *turn, const struct act *act)
{
    skua_context *ctx = turn->ctx;
    skua_payload payload;
    void *data = ctx;
    (void)act;
    EXPECT(skua_alloc(ctx, 0), NULL);
    EXPECT(skua_alloc(ctx, SIZE_MAX), NULL);
    EXPECT(skua_alloc(ctx, (size_t)PTRDIFF_MAX + 1), NULL);
    skua_free(ctx, NULL, 0);
    skua_free(ctx, NULL, 8);
    EXPECT(skua_payload_alloc(ctx, 1, 0, &data, &payload), SKUA_E_INVALID);
    EXPECT(skua_payload_alloc(ctx, 1, 8, NULL, &payload), SKUA_E_INVALID);
    EXPECT(skua_payload_alloc(ctx, 1, 8, &data, NULL), SKUA_E_INVALID);
    EXPECT(skua_payload_alloc(ctx, 1, PAYLOAD_LIMIT + 1, &data, &payload), SKUA_E_PAYLOAD_SIZE);
    EXPECT(payload.storage, SKUA_PAYLOAD_EMPTY);
    EXPECT(data, NULL);
    EXPECT(skua_payload_alloc(ctx, 1, PAYLOAD_LIMIT, &data, &payload), 0);
    skua_payload_drop(&payload);
    return 0;
}

TEST(memory_of_an_impossible_size_is_refused)
{
    (void)desk_open_with((skua_runtime_config){.payload_limit = PAYLOAD_LIMIT});
    assert_result(actor_run(actor_new(ACTS(does(allocate_wrongly, NULL), finishes(1)))), 1);
}

#define OWN_LIMIT 1000

static bool is_zeroed(const char *memory, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (memory[i] != 0) {
            return false;
        }
    }
    return true;
}

static int reach_own_limit(struct turn *turn, const struct act *act)
{
    skua_context *ctx = turn->ctx;
    void **kept = act->arg;
    void *large = NULL;
    void *small = NULL;
    void *none = ctx;
    EXPECT(skua_own_alloc(ctx, 0, &none), SKUA_E_INVALID);
    EXPECT(none, NULL);
    EXPECT(skua_own_alloc(ctx, 8, NULL), SKUA_E_INVALID);
    EXPECT(skua_own_alloc(ctx, OWN_LIMIT + 1, &none), SKUA_E_OWN_LIMIT);
    EXPECT(skua_own_alloc(ctx, SIZE_MAX, &none), SKUA_E_OWN_LIMIT);
    EXPECT(skua_own_alloc(ctx, OWN_LIMIT - 400, &large), 0);
    EXPECT(skua_own_alloc(ctx, 401, &none), SKUA_E_OWN_LIMIT);
    EXPECT(none, NULL);
    EXPECT(skua_own_alloc(ctx, 400, &small), 0);
    EXPECT(skua_own_alloc(ctx, 1, &none), SKUA_E_OWN_LIMIT);
    EXPECT(is_zeroed(large, OWN_LIMIT - 400) && is_zeroed(small, 400), true);
    EXPECT(skua_own_free(ctx, large), 0);
    EXPECT(skua_own_alloc(ctx, OWN_LIMIT - 400, &large), 0);
    EXPECT(skua_own_free(ctx, *kept), *kept == NULL ? 0 : SKUA_E_INVALID); /* of another process */
    *kept = small;
    return 0;
}

TEST(own_memory_ends_at_the_limit_of_the_type)
{
    void *kept = NULL;
    (void)desk_open_with((skua_runtime_config){0});
    struct actor *actors[2];
    for (size_t i = 0; i < COUNT_OF(actors); i++) {
        actors[i] = actor_new(ACTS(does(reach_own_limit, &kept)));
        actors[i]->type.own_limit = OWN_LIMIT;
        actor_submit(actors[i]);
        actor_perform(actors[i], NO_ACTS);
    }
}

static int exceed_all_memory(struct turn *turn, const struct act *act)
{
    void *none = turn;
    (void)act;
    EXPECT(skua_own_alloc(turn->ctx, SIZE_MAX, &none), SKUA_E_NO_MEMORY);
    EXPECT(none, NULL);
    EXPECT(skua_own_alloc(turn->ctx, (size_t)PTRDIFF_MAX, &none), SKUA_E_NO_MEMORY);
    return 0;
}

TEST(own_memory_without_a_limit_ends_with_all_memory)
{
    (void)desk_open_with((skua_runtime_config){0});
    assert_result(actor_run(actor_new(ACTS(does(exceed_all_memory, NULL), finishes(1)))), 1);
}

/* ---- a state of no size ---- */

static atomic_uint stateless_calls;

static int stateless_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    (void)input;
    (void)count;
    stateless_calls += self == NULL;
    return 0;
}

static int stateless_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)events;
    (void)count;
    stateless_calls += self == NULL;
    return skua_done(ctx, skua_nothing());
}

static void stateless_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)ctx;
    (void)exit;
    stateless_calls += self == NULL;
}

TEST(state_of_no_size_is_null)
{
    static const skua_process_type stateless = {.name = "stateless",
                                                .init = stateless_init,
                                                .step = stateless_step,
                                                .close = stateless_close};
    skua_exit exit;
    stateless_calls = 0;
    (void)desk_open_with((skua_runtime_config){0});
    assert_int_equal(skua_process_run(world_runtime(), &stateless, skua_nothing(), &exit), 0);
    assert_int_equal(exit.error, 0);
    assert_int_equal(stateless_calls, 3);
}

/* ---- what a step returns ---- */

TEST(step_that_returns_a_positive_number_fails)
{
    static const int positive[] = {1, 2, INT_MAX};
    struct tracked items[COUNT_OF(positive)] = {{0}};
    (void)desk_open_with((skua_runtime_config){0});
    for (size_t i = 0; i < COUNT_OF(positive); i++) {
        struct actor *actor =
            actor_new(ACTS(yields_item(1, DESK_DOUBLE, 0, &items[i]), fails(positive[i])));
        assert_failed(actor_run(actor), SKUA_E_INVALID);
        assert_saw_nothing(actor);
    }
    assert_drops(items, COUNT_OF(items), 1); /* as with any failure, the yields are dropped */
}

/* Done is final, whatever the step returns. */
TEST(step_that_is_done_does_not_fail)
{
    static const int returns[] = {SKUA_E_USER, -1, 1, INT_MAX, INT_MIN};
    (void)desk_open_with((skua_runtime_config){0});
    for (size_t i = 0; i < COUNT_OF(returns); i++) {
        assert_result(actor_run(actor_new(ACTS(finishes(i), fails(returns[i])))), i);
    }
}

/* The first result is kept, those that are refused are dropped. */
TEST(step_that_is_done_twice_keeps_the_first_result)
{
    struct tracked items[2] = {{.value = 5}, {.value = 6}};
    (void)desk_open_with((skua_runtime_config){0});
    struct actor *actor = actor_new(
        ACTS(finishes_with(0, &items[0]), refused(finishes_with(0, &items[1]), SKUA_E_DONE)));
    assert_result(actor_run(actor), 5);
    assert_drops(items, COUNT_OF(items), 1);
}
