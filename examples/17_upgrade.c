/* SPDX-License-Identifier: MIT */
/* A counter, and a process that calls it every 10 ms. While it runs, 17_upgrade_2 replaces it:
 *     skua run 17_upgrade.so &
 *     skua reload 17_upgrade_2.so
 * The counter goes on with the count that it has, and no call is lost. */
#include "upgrade.h"

struct counter {
    uint32_t count; /* soon too small */
};

static int counter_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct counter *counter = self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CALL) {
            counter->count++;
            counted_reply(ctx, events[i].request, (struct counted){counter->count, 1});
        }
    }
    return 0;
}

static const skua_process_type counter_type = {.name = "counter",
                                               .state_size = sizeof(struct counter),
                                               .step = counter_step,
                                               .calls = true,
                                               .version = 1};
static const skua_process_type *const types[] = {&counter_type, NULL};

SKUA_MODULE(.name = "upgrade", .about = "A counter that can be replaced while it is called.",
            .root = &caller_type, .types = types);
