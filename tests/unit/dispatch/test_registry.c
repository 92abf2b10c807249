/* SPDX-License-Identifier: MIT */
/* The registry of command handlers: every kind of id, in any order, until it is frozen. */
#include "dispatch/registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "counting_allocator.h"

struct fixture {
    struct counting_allocator memory;
    struct registry registry;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    counting_allocator_init(&fixture.memory);
    registry_init(&fixture.registry, &fixture.memory.allocator);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    registry_deinit(&fixture->registry);
    return counting_allocator_is_clean(&fixture->memory) ? 0 : -1;
}

static int do_nothing(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return 0;
}

/* Handlers are told apart by their arg: the address of marks[number]. */
static char marks[1000];

static int add(struct fixture *fixture, uint32_t id, uint32_t number)
{
    const skua_handler handler = {.name = "test", .run = do_nothing, .arg = &marks[number]};
    return registry_add_locked(&fixture->registry, id, &handler);
}

static void assert_found(struct fixture *fixture, uint32_t id, uint32_t number)
{
    const skua_handler *handler = registry_find(&fixture->registry, id);
    assert_non_null(handler);
    assert_string_equal(handler->name, "test");
    assert_true(handler->run == do_nothing);
    assert_ptr_equal(handler->arg, &marks[number]);
}

static const uint32_t border_ids[] = {
    0, 1, REGISTRY_DIRECT - 1, REGISTRY_DIRECT, REGISTRY_DIRECT + 1, UINT32_MAX - 1, UINT32_MAX};
#define BORDER_COUNT (sizeof border_ids / sizeof border_ids[0])

static void registry_new_knows_no_command(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t i = 0; i < BORDER_COUNT; i++) {
        assert_null(registry_find(&fixture->registry, border_ids[i]));
    }
}

static void registry_finds_each_border_id_and_no_neighbour(void **state)
{
    for (uint32_t i = 0; i < BORDER_COUNT; i++) {
        struct fixture *fixture = *state;
        assert_int_equal(add(fixture, border_ids[i], i), 0);
        for (uint32_t j = 0; j < BORDER_COUNT; j++) {
            if (j <= i) {
                assert_found(fixture, border_ids[j], j);
            } else {
                assert_null(registry_find(&fixture->registry, border_ids[j]));
            }
        }
    }
}

static void registry_direct_ids_need_no_memory(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t id = 0; id < REGISTRY_DIRECT; id++) {
        assert_int_equal(add(fixture, id, id), 0);
    }
    for (uint32_t id = 0; id < REGISTRY_DIRECT; id++) {
        assert_found(fixture, id, id);
    }
    assert_int_equal(counting_allocator_attempts(&fixture->memory), 0);
}

static void registry_second_handler_of_a_command_is_refused(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t i = 0; i < BORDER_COUNT; i++) {
        assert_int_equal(add(fixture, border_ids[i], i), 0);
        assert_int_equal(add(fixture, border_ids[i], 500), SKUA_E_COMMAND_EXISTS);
        assert_found(fixture, border_ids[i], i);
    }
}

static void registry_frozen_refuses_and_still_finds(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(add(fixture, 5, 1), 0);
    assert_int_equal(add(fixture, 500, 2), 0);
    registry_freeze_locked(&fixture->registry);
    assert_int_equal(add(fixture, 6, 3), SKUA_E_FROZEN);
    assert_int_equal(add(fixture, 501, 3), SKUA_E_FROZEN);
    assert_int_equal(add(fixture, 5, 3), SKUA_E_FROZEN);
    assert_null(registry_find(&fixture->registry, 6));
    assert_null(registry_find(&fixture->registry, 501));
    assert_found(fixture, 5, 1);
    assert_found(fixture, 500, 2);
}

static void registry_keeps_a_copy_of_the_handler(void **state)
{
    struct fixture *fixture = *state;
    skua_handler handler = {.name = "test", .run = do_nothing, .arg = &marks[9]};
    assert_int_equal(registry_add_locked(&fixture->registry, 9, &handler), 0);
    assert_int_equal(registry_add_locked(&fixture->registry, 900, &handler), 0);
    handler = (skua_handler){0};
    assert_found(fixture, 9, 9);
    assert_found(fixture, 900, 9);
}

/* ---- many ids ---- */

#define MANY 1000

/* Different ids, spread over the whole range, in random order. */
static void choose_ids(uint32_t *ids, uint64_t *random)
{
    for (uint32_t i = 0; i < MANY; i++) {
        ids[i] = i * UINT32_C(4294967);
    }
    for (uint32_t i = MANY - 1; i > 0; i--) {
        const uint32_t other = random_below(random, i + 1);
        const uint32_t id = ids[i];
        ids[i] = ids[other];
        ids[other] = id;
    }
}

static void assert_first_found_only(struct fixture *fixture, const uint32_t *ids, uint32_t count)
{
    for (uint32_t i = 0; i < MANY; i++) {
        if (i < count) {
            assert_found(fixture, ids[i], i);
        } else {
            assert_null(registry_find(&fixture->registry, ids[i]));
        }
        assert_null(registry_find(&fixture->registry, ids[i] + 1));
    }
}

static void registry_finds_a_thousand_ids_added_in_random_order(void **state)
{
    struct fixture *fixture = *state;
    const uint64_t seed = 20240609;
    print_message("seed %llu\n", (unsigned long long)seed);
    uint64_t random = seed;
    uint32_t ids[MANY];
    choose_ids(ids, &random);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(add(fixture, ids[i], i), 0);
        if (i % 100 == 17) {
            assert_first_found_only(fixture, ids, i + 1);
        }
    }
    assert_first_found_only(fixture, ids, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(add(fixture, ids[i], 0), SKUA_E_COMMAND_EXISTS);
    }
}

static void registry_finds_ids_added_in_falling_and_rising_order(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(add(fixture, 10000 - i, i), 0);
    }
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(add(fixture, 20000 + i, 100 + i), 0);
    }
    for (uint32_t i = 0; i < 100; i++) {
        assert_found(fixture, 10000 - i, i);
        assert_found(fixture, 20000 + i, 100 + i);
    }
}

/* ---- no memory ---- */

static void registry_without_memory_refuses_and_recovers(void **state)
{
    struct fixture *fixture = *state;
    counting_allocator_fail_from(&fixture->memory, 1);
    assert_int_equal(add(fixture, 1000, 0), SKUA_E_NO_MEMORY);
    assert_null(registry_find(&fixture->registry, 1000));
    assert_int_equal(add(fixture, 5, 1), 0); /* needs none */
    counting_allocator_fail_never(&fixture->memory);
    assert_int_equal(add(fixture, 1000, 0), 0);
    assert_found(fixture, 1000, 0);
    assert_found(fixture, 5, 1);
}

/* Adds until there is no room, and lets exactly that growth fail, several times. */
static void registry_without_memory_to_grow_keeps_what_it_has(void **state)
{
    struct fixture *fixture = *state;
    uint32_t failures = 0;
    for (uint32_t i = 0; i < 200; i++) {
        counting_allocator_fail_once(&fixture->memory, 1);
        int error = add(fixture, 1000 + i, i);
        if (error != 0) {
            failures++;
            assert_int_equal(error, SKUA_E_NO_MEMORY);
            assert_null(registry_find(&fixture->registry, 1000 + i));
            error = add(fixture, 1000 + i, i);
        }
        assert_int_equal(error, 0);
    }
    assert_true(failures > 1);
    for (uint32_t i = 0; i < 200; i++) {
        assert_found(fixture, 1000 + i, i);
    }
}

#define REGISTRY_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REGISTRY_TEST(registry_new_knows_no_command),
        REGISTRY_TEST(registry_finds_each_border_id_and_no_neighbour),
        REGISTRY_TEST(registry_direct_ids_need_no_memory),
        REGISTRY_TEST(registry_second_handler_of_a_command_is_refused),
        REGISTRY_TEST(registry_frozen_refuses_and_still_finds),
        REGISTRY_TEST(registry_keeps_a_copy_of_the_handler),
        REGISTRY_TEST(registry_finds_a_thousand_ids_added_in_random_order),
        REGISTRY_TEST(registry_finds_ids_added_in_falling_and_rising_order),
        REGISTRY_TEST(registry_without_memory_refuses_and_recovers),
        REGISTRY_TEST(registry_without_memory_to_grow_keeps_what_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
