/* SPDX-License-Identifier: MIT */
/* Version 2 of the counter in 17_upgrade: its count is wider, and it remembers when it was last
 * called. `counter_migrate` makes that state from the old one. */
#include "upgrade.h"

struct old_counter {
    uint32_t count;
};

struct counter {
    uint64_t count;
    uint64_t last_call_ns;
};

static int counter_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct counter *counter = self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CALL) {
            counter->count++;
            counter->last_call_ns = skua_now(ctx);
            counted_reply(ctx, events[i].request, (struct counted){counter->count, 2});
        }
    }
    return 0;
}

static int counter_migrate(uint32_t old_version, const void *old_state, void *new_state,
                           skua_context *ctx)
{
    const struct old_counter *old = old_state;
    struct counter *counter = new_state;
    if (old_version != 1) {
        return SKUA_E_VERSION;
    }
    counter->count = old->count;
    counter->last_call_ns = skua_now(ctx);
    return 0;
}

static const skua_process_type counter_type = {.name = "counter",
                                               .state_size = sizeof(struct counter),
                                               .step = counter_step,
                                               .calls = true,
                                               .migrate = counter_migrate,
                                               .version = 2};
static const skua_process_type *const types[] = {&counter_type, NULL};

SKUA_MODULE(.name = "upgrade", .about = "The same counter, version 2.", .root = &caller_type,
            .types = types);
