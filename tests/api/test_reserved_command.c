/* SPDX-License-Identifier: MIT */
/* The numbers of commands that belong to the library: what a program may not do with them. */
#include "desk.h"
#include "dispatch/reserved.h"
#include "handlers.h"
#include "timers.h"

static skua_payload with_inline_size(skua_payload payload, uint16_t size)
{
    payload.inline_size = size;
    return payload;
}

static skua_payload inline_bytes(uint16_t size)
{
    return with_inline_size(skua_payload_u64(0, SECOND), size);
}

TEST(reserved_commands_refuse_payloads_that_are_not_theirs)
{
    static const enum reserved_command commands[] = {RESERVED_SLEEP,    RESERVED_TIMER,
                                                     RESERVED_TICKER,   RESERVED_READABLE,
                                                     RESERVED_WRITABLE, RESERVED_BLOCKING};
    world_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    const skua_payload owned = tracked_payload(0, &actor->item);
    const skua_payload payloads[] = {
        skua_payload_empty(0),
        inline_bytes(0),
        inline_bytes(4),
        inline_bytes(7),
        inline_bytes(16),
        inline_bytes(24),
        with_inline_size(owned, 0),
        with_inline_size(owned, sizeof(uint64_t)),
        skua_payload_pointer(0, &actor->item, owned.as.owned.drop),
    };
    const uint64_t nodes = nodes_in_use();
    for (size_t i = 0; i < COUNT_OF(payloads) * COUNT_OF(commands); i++) {
        const uint32_t command = reserved_id(commands[i % COUNT_OF(commands)]);
        const skua_payload payload = payloads[i / COUNT_OF(commands)];
        actor_perform(actor, ACTS(with_payload(yields(command, command, 0, 0), payload)));
        assert_then_saw(actor, completion(command, SKUA_E_INVALID));
    }
    assert_drops(&actor->item, 1, 3 * COUNT_OF(commands));
    assert_int_equal(timers_armed(), 0);
    assert_nobody_waits();
    assert_int_equal(nodes_in_use(), nodes);
}

TEST(reserved_commands_refuse_numbers_that_make_no_sense)
{
    static const struct {
        enum reserved_command command;
        uint64_t number;
    } cases[] = {
        {RESERVED_SLEEP, SKUA_DURATION_MAX + 1},
        {RESERVED_SLEEP, UINT64_MAX},
        {RESERVED_TICKER, 0},
        {RESERVED_TICKER, SKUA_DURATION_MAX + 1},
        {RESERVED_TICKER, UINT64_MAX},
        {RESERVED_READABLE, (uint64_t)INT32_MAX + 1},
        {RESERVED_READABLE, UINT64_MAX},
        {RESERVED_WRITABLE, (uint64_t)INT32_MAX + 1},
        {RESERVED_WRITABLE, UINT64_C(1) << 32},
        {RESERVED_BLOCKING, 0},
        {RESERVED_BLOCKING, UINT64_MAX},
    };
    world_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        actor_perform(actor, ACTS(yields(i, reserved_id(cases[i].command), 0, cases[i].number)));
        assert_then_saw(actor, completion(i, SKUA_E_INVALID));
    }
    assert_int_equal(timers_armed(), 0);
    assert_nobody_waits();
}

TEST(reserved_numbers_without_a_command_are_unknown)
{
    world_open_virtual();
    struct actor *actor =
        actor_start(ACTS(yields(0, reserved_id(RESERVED_BLOCKING) + 1, 0, 1),
                         yields(1, UINT32_MAX - 1, 0, 1), yields(2, UINT32_MAX, 0, 1)));
    world_settle();
    assert_completed_each_once(actor, 3, SKUA_E_UNKNOWN_COMMAND);
}

TEST(reserved_numbers_cannot_be_registered)
{
    const uint32_t reserved[] = {SKUA_COMMAND_RESERVED, reserved_id(RESERVED_BLOCKING),
                                 SKUA_COMMAND_RESERVED + 1000, UINT32_MAX};
    const skua_handler handler = {.name = "handler", .run = never_called};
    world_create((skua_runtime_config){.worker_count = 1});
    for (size_t i = 0; i < COUNT_OF(reserved); i++) {
        assert_int_equal(skua_command_register(world_runtime(), reserved[i], &handler),
                         SKUA_E_INVALID);
    }
    world_register(SKUA_COMMAND_RESERVED - 1, never_called, NULL);
    world_start();
}
