/* SPDX-License-Identifier: MIT */
/* The registry of command handlers: every kind of id, in any order, until it is frozen. */
#include "dispatch/registry.h"

#include "base/random.h"
#include "handlers.h"
#include "test_memory.h"

#define MANY 1000

static struct registry registry;

static void close_registry(void)
{
    registry_deinit(&registry);
}

static void open_registry(void)
{
    memory_open();
    registry_init(&registry, &memory.allocator);
    test_at_end(close_registry);
}

/* Handlers are told apart by their arg: the address of marks[number]. */
static char marks[MANY];

static int add(uint32_t id, uint32_t number)
{
    static skua_handler handler; /* the same one each time: the registry has to copy it */
    handler = (skua_handler){.name = "test", .run = complete_at_once, .arg = &marks[number]};
    return registry_add_locked(&registry, id, &handler);
}

static void assert_found(uint32_t id, uint32_t number)
{
    const skua_handler *handler = registry_find(&registry, id);
    assert_non_null(handler);
    assert_string_equal(handler->name, "test");
    assert_true(handler->run == complete_at_once);
    assert_ptr_equal(handler->arg, &marks[number]);
}

static void assert_unknown(uint32_t id)
{
    assert_null(registry_find(&registry, id));
}

/* Of the ids only the first `count` were added, with their places as numbers. */
static void assert_first_found_only(const uint32_t *ids, uint32_t id_count, uint32_t count)
{
    for (uint32_t i = 0; i < id_count; i++) {
        if (i < count) {
            assert_found(ids[i], i);
        } else {
            assert_unknown(ids[i]);
        }
    }
}

static const uint32_t border_ids[] = {
    0, 1, REGISTRY_DIRECT - 1, REGISTRY_DIRECT, REGISTRY_DIRECT + 1, UINT32_MAX - 1, UINT32_MAX};
#define BORDER_COUNT COUNT_OF(border_ids)

TEST(registry_finds_each_border_id_and_no_neighbour)
{
    open_registry();
    assert_first_found_only(border_ids, BORDER_COUNT, 0);
    for (uint32_t i = 0; i < BORDER_COUNT; i++) {
        assert_int_equal(add(border_ids[i], i), 0);
        assert_first_found_only(border_ids, BORDER_COUNT, i + 1);
    }
}

TEST(registry_second_handler_of_a_command_is_refused)
{
    open_registry();
    for (uint32_t i = 0; i < BORDER_COUNT; i++) {
        assert_int_equal(add(border_ids[i], i), 0);
        assert_int_equal(add(border_ids[i], 500), SKUA_E_COMMAND_EXISTS);
        assert_found(border_ids[i], i);
    }
}

TEST(registry_direct_ids_need_no_memory)
{
    open_registry();
    for (uint32_t id = 0; id < REGISTRY_DIRECT; id++) {
        assert_int_equal(add(id, id), 0);
    }
    for (uint32_t id = 0; id < REGISTRY_DIRECT; id++) {
        assert_found(id, id);
    }
    assert_int_equal(counting_allocator_attempts(&memory), 0);
}

TEST(registry_frozen_refuses_and_still_finds)
{
    static const uint32_t late_ids[] = {6, 501, 5};
    open_registry();
    assert_int_equal(add(5, 1), 0);
    assert_int_equal(add(500, 2), 0);
    registry_freeze_locked(&registry);
    for (size_t i = 0; i < COUNT_OF(late_ids); i++) {
        assert_int_equal(add(late_ids[i], 3), SKUA_E_FROZEN);
    }
    assert_unknown(6);
    assert_unknown(501);
    assert_found(5, 1);
    assert_found(500, 2);
}

/* ---- many ids ---- */

/* Different ids, spread over the whole range, in random order. */
static void choose_ids(uint32_t *ids)
{
    uint64_t random = 20240609;
    for (uint32_t i = 0; i < MANY; i++) {
        ids[i] = i * UINT32_C(4294967);
    }
    for (uint32_t i = MANY - 1; i > 0; i--) {
        const uint32_t other = random_below(&random, i + 1);
        const uint32_t id = ids[i];
        ids[i] = ids[other];
        ids[other] = id;
    }
}

TEST(registry_finds_a_thousand_ids_added_in_random_order)
{
    uint32_t ids[MANY];
    open_registry();
    choose_ids(ids);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(add(ids[i], i), 0);
        if (i % 100 == 17 || i == MANY - 1) {
            assert_first_found_only(ids, MANY, i + 1);
        }
    }
    for (uint32_t i = 0; i < MANY; i++) {
        assert_unknown(ids[i] + 1);
        assert_int_equal(add(ids[i], 0), SKUA_E_COMMAND_EXISTS);
    }
}

TEST(registry_finds_ids_added_in_falling_and_rising_order)
{
    uint32_t ids[200];
    open_registry();
    for (uint32_t i = 0; i < 200; i++) {
        ids[i] = i < 100 ? 10000 - i : 20000 + i;
        assert_int_equal(add(ids[i], i), 0);
    }
    assert_first_found_only(ids, 200, 200);
}

/* ---- no memory ---- */

TEST(registry_without_memory_refuses_and_recovers)
{
    open_registry();
    counting_allocator_fail_from(&memory, 1);
    assert_int_equal(add(1000, 0), SKUA_E_NO_MEMORY);
    assert_unknown(1000);
    assert_int_equal(add(5, 1), 0); /* needs none */
    counting_allocator_fail_never(&memory);
    assert_int_equal(add(1000, 0), 0);
    assert_found(1000, 0);
    assert_found(5, 1);
}

/* Adds until there is no room, and lets exactly that growth fail, several times. */
TEST(registry_without_memory_to_grow_keeps_what_it_has)
{
    uint32_t ids[200];
    uint32_t failures = 0;
    open_registry();
    for (uint32_t i = 0; i < 200; i++) {
        ids[i] = 1000 + i;
        counting_allocator_fail_once(&memory, 1);
        int error = add(ids[i], i);
        if (error != 0) {
            failures++;
            assert_int_equal(error, SKUA_E_NO_MEMORY);
            assert_unknown(ids[i]);
            error = add(ids[i], i);
        }
        assert_int_equal(error, 0);
    }
    assert_true(failures > 1);
    assert_first_found_only(ids, 200, 200);
}
