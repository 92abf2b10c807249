/* SPDX-License-Identifier: MIT */
/* A counter that a driver calls again and again, in versions: upgrade_1.c and so on. Each call must
 * be answered with the next number; the driver says when it meets another version, and when that
 * has answered some calls. */
#include <skua/skua.h>
#include <stdio.h>

#define CALL   1
#define ENOUGH 50

struct counter {
    uint64_t before[VERSION - 1 + 1]; /* another layout for each version */
    uint64_t count;
};

static int counter_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct counter *counter = self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CALL) {
            (void)skua_reply(ctx, events[i].request, 0,
                             skua_payload_u64(VERSION, ++counter->count));
        }
    }
    return 0;
}

static int counter_migrate(uint32_t version, const void *old_state, void *new_state,
                           skua_context *ctx)
{
    struct counter *counter = new_state;
    (void)ctx;
    counter->count = ((const uint64_t *)old_state)[version]; /* behind `before` */
    return VERSION == 3 ? SKUA_E_VERSION : 0;                /* that one cannot */
}

static const skua_process_type counter_type = {.name = "counter",
                                               .state_size = sizeof(struct counter),
                                               .step = counter_step,
                                               .calls = true,
                                               .migrate = VERSION != 5 ? counter_migrate : NULL,
                                               .version = VERSION};

struct driver {
    skua_pid counter;
    uint64_t count;
    uint64_t since; /* calls since the version changed */
    uint32_t version;
};

static int call(struct driver *driver, skua_context *ctx)
{
    return skua_yield_call(ctx, CALL, driver->counter, skua_nothing(), SKUA_FOREVER);
}

static int take_reply(struct driver *driver, skua_context *ctx, const skua_event *event)
{
    if (event->error != 0 || skua_payload_to_u64(&event->payload) != ++driver->count) {
        return SKUA_E_USER;
    }
    if (event->payload.type != driver->version) {
        driver->version = event->payload.type;
        driver->since = 0;
        printf("version %u\n", driver->version);
    }
    if (++driver->since == ENOUGH) {
        printf("version %u has answered\n", driver->version);
    }
    return skua_yield_sleep(ctx, CALL + 1, SKUA_MILLISECOND);
}

static int driver_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct driver *driver = self;
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            error = skua_spawn(ctx, &counter_type, skua_nothing(), &driver->counter);
            error = error != 0 ? error : call(driver, ctx);
        } else if (events[i].type == SKUA_EVENT_COMPLETION) {
            error = events[i].tag == CALL ? take_reply(driver, ctx, &events[i]) : call(driver, ctx);
        }
    }
    return error;
}

static const skua_process_type driver_type = {
    .name = "driver", .state_size = sizeof(struct driver), .step = driver_step};
static const skua_process_type *const types[] = {&counter_type, NULL};

SKUA_MODULE(.name = "counted", .root = &driver_type, .types = types);
