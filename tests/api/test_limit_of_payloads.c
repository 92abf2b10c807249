/* SPDX-License-Identifier: MIT */
/* The limit of bytes in a payload. */
#include "actor.h"

#define LIMIT 100

static void open_with_limit(size_t limit)
{
    world_open_with((skua_runtime_config){.payload_limit = limit});
}

/* A payload that says it has `size` bytes. Nobody reads them. */
static skua_payload sized(struct tracked *item, size_t size)
{
    return skua_payload_owned(0, item, size, tracked_payload(0, item).as.owned.drop);
}

TEST(payload_limit_holds_for_send)
{
    struct tracked items[3] = {0};
    open_with_limit(LIMIT);
    const skua_pid pid = actor_start(NO_ACTS)->pid;
    assert_int_equal(world_send(pid, sized(&items[0], LIMIT)), 0);
    assert_int_equal(world_send(pid, sized(&items[1], LIMIT + 1)), SKUA_E_PAYLOAD_SIZE);
    assert_int_equal(world_send(pid, sized(&items[2], SIZE_MAX)), SKUA_E_PAYLOAD_SIZE);
    assert_drops(&items[1], 2, 1);
    world_close();
    assert_drops(items, COUNT_OF(items), 1);
}

/* A process with one input. */
struct newcomer {
    const skua_process_type *type;
    skua_payload input;
};

static int spawn_newcomer(struct turn *turn, const struct act *act)
{
    struct newcomer *newcomer = act->arg;
    return skua_spawn(turn->ctx, newcomer->type, newcomer->input, NULL);
}

TEST(payload_limit_holds_for_sends_yields_and_spawns_of_processes)
{
    struct tracked good[3] = {0};
    struct tracked large[3] = {0};
    open_with_limit(LIMIT);
    struct actor *receiver = actor_start(NO_ACTS);
    struct actor *unborn = actor_new(NO_ACTS);
    struct newcomer newcomers[] = {{&api_idler, sized(&good[2], LIMIT)},
                                   {&unborn->type, sized(&large[2], LIMIT + 1)}};
    const struct act acts[][2] = {
        {with_payload(sends(receiver, 0, 0), sized(&good[0], LIMIT)),
         with_payload(sends(receiver, 0, 0), sized(&large[0], LIMIT + 1))},
        {with_payload(yields(0, 1, 0, 0), sized(&good[1], LIMIT)),
         with_payload(yields(0, 1, 0, 0), sized(&large[1], LIMIT + 1))},
        {does(spawn_newcomer, &newcomers[0]), does(spawn_newcomer, &newcomers[1])},
    };
    for (size_t i = 0; i < COUNT_OF(acts); i++) {
        const struct act refusal = refused(acts[i][1], SKUA_E_PAYLOAD_SIZE);
        assert_result(actor_run(actor_new(ACTS(acts[i][0], refusal, finishes(0)))), 0);
    }
    assert_drops(large, COUNT_OF(large), 1);
    world_close();
    assert_drops(good, COUNT_OF(good), 1);
    assert_int_equal(unborn->inits, 0);
}

TEST(payload_limit_holds_for_each_input_of_submit)
{
    open_with_limit(LIMIT);
    struct actor *unborn = actor_new(NO_ACTS);
    for (size_t large = 0; large < 3; large++) {
        struct tracked items[3] = {0};
        skua_payload input[3];
        for (size_t i = 0; i < 3; i++) {
            input[i] = sized(&items[i], i == large ? LIMIT + 1 : LIMIT);
        }
        assert_int_equal(
            skua_process_submit_with(
                world_runtime(),
                &(skua_spawn_options){.type = &unborn->type, .input = input, .input_count = 3},
                NULL),
            SKUA_E_PAYLOAD_SIZE);
        assert_drops(items, 3, 1);
    }
    assert_int_equal(world_stats().spawned, 0);
    assert_int_equal(unborn->inits, 0);
}

TEST(payload_limit_holds_for_copy)
{
    char bytes[LIMIT + 1];
    skua_payload payload;
    memset(bytes, 'x', sizeof bytes);
    open_with_limit(LIMIT);
    assert_int_equal(skua_payload_copy(world_runtime(), 1, bytes, LIMIT, &payload), 0);
    assert_int_equal(skua_payload_size(&payload), LIMIT);
    assert_memory_equal(skua_payload_data(&payload), bytes, LIMIT);
    skua_payload_drop(&payload);
    payload = skua_payload_u64(1, 1);
    assert_int_equal(skua_payload_copy(world_runtime(), 2, bytes, LIMIT + 1, &payload),
                     SKUA_E_PAYLOAD_SIZE);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
}

/* A limit below what fits inside a payload holds, too; a pointer has no bytes. */
TEST(payload_limit_holds_for_inline_payloads_but_not_pointers)
{
    struct tracked item = {0};
    skua_payload payload;
    open_with_limit(7);
    const skua_pid pid = actor_start(NO_ACTS)->pid;
    assert_int_equal(skua_payload_copy(world_runtime(), 1, "12345678", 8, &payload),
                     SKUA_E_PAYLOAD_SIZE);
    assert_int_equal(skua_payload_copy(world_runtime(), 1, "1234567", 7, &payload), 0);
    assert_int_equal(world_send(pid, payload), 0);
    assert_int_equal(world_send(pid, skua_payload_u64(0, 1)), SKUA_E_PAYLOAD_SIZE);
    payload = skua_payload_pointer(0, &item, tracked_payload(0, &item).as.owned.drop);
    assert_int_equal(world_send(pid, payload), 0);
    world_close();
    assert_drops(&item, 1, 1);
}
