/* SPDX-License-Identifier: MIT */
/* The numbers of commands that belong to the library: a program can neither yield nor register
 * them. */
#include "desk.h"
#include "dispatch/service.h"
#include "handlers.h"
#include "timers.h"

/* Those of all services, and others. */
enum { NUMBERS = SERVICE_COUNT + 3 };

static uint32_t reserved_number(size_t n)
{
    const uint32_t others[] = {service_command(SERVICE_COUNT), UINT32_MAX - 1, UINT32_MAX};
    return n < SERVICE_COUNT ? service_command((enum service_id)n) : others[n - SERVICE_COUNT];
}

TEST(reserved_numbers_cannot_be_yielded)
{
    test_of_steps("a task keeps the node of an event until it receives the next");
    world_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    world_settle();
    const uint64_t nodes = nodes_in_use();
    for (size_t n = 0; n < NUMBERS; n++) {
        const uint32_t number = reserved_number(n);
        actor_perform(actor,
                      ACTS(refused(yields(1, number, 0, SECOND), SKUA_E_RESERVED),
                           refused(within(SECOND, yields(1, number, 0, 0)), SKUA_E_RESERVED),
                           refused(yields_item(1, number, 0, &actor->item), SKUA_E_RESERVED)));
    }
    assert_saw_nothing(actor);
    assert_drops(&actor->item, 1, NUMBERS);
    assert_int_equal(timers_armed(), 0);
    assert_nobody_waits();
    assert_int_equal(nodes_in_use(), nodes);
}

TEST(reserved_numbers_cannot_be_registered)
{
    const skua_handler handler = {.name = "handler", .run = never_called};
    world_create((skua_runtime_config){.worker_count = 1});
    for (size_t n = 0; n < NUMBERS; n++) {
        assert_int_equal(skua_command_register(world_runtime(), reserved_number(n), &handler),
                         SKUA_E_RESERVED);
    }
    world_register(SKUA_COMMAND_RESERVED - 1, never_called, NULL);
    world_start();
}
