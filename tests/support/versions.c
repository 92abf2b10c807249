/* SPDX-License-Identifier: MIT */
#include "versions.h"

#include <skua/call.h>
#include <skua/task.h>
#include <skua/upgrade.h>

atomic_uint counter_migrations;
atomic_uint counter_closes;
atomic_int counter_told;

void counters_reset(void)
{
    atomic_store(&counter_migrations, 0);
    atomic_store(&counter_closes, 0);
    atomic_store(&counter_told, 0);
}

/* The total is the first field in odd versions and behind others in even ones, between marks that
 * nobody may change. */
#define MARK UINT64_C(0x5ea6d11)
struct odd_state {
    uint64_t total;
};
struct even_state {
    uint64_t before[3];
    uint64_t total;
    uint64_t after;
};

static bool is_even(const struct skua_process_type *type)
{
    return type->version % 2 == 0;
}

static uint64_t *total_in(void *state, uint32_t version)
{
    struct odd_state *odd = state;
    struct even_state *even = state;
    return version % 2 == 0 ? &even->total : &odd->total;
}

static void check_marks(const void *state, uint32_t version)
{
    const struct even_state *even = state;
    if (version % 2 == 0) {
        for (size_t i = 0; i < COUNT_OF(even->before); i++) {
            assert_int_equal(even->before[i], MARK + i);
        }
        assert_int_equal(even->after, MARK);
    }
}

static void set_marks(void *state, uint32_t version)
{
    struct even_state *even = state;
    if (version % 2 == 0) {
        for (size_t i = 0; i < COUNT_OF(even->before); i++) {
            even->before[i] = MARK + i;
        }
        even->after = MARK;
    }
}

/* ---- what they do ---- */

static int become(skua_context *ctx, const skua_payload *payload)
{
    const skua_process_type *type =
        (const skua_process_type *)(uintptr_t)skua_payload_to_u64(payload);
    atomic_store(&counter_told, skua_become(ctx, type));
    return 0;
}

static int handle(uint64_t *total, skua_context *ctx, skua_event *event)
{
    if (event->type == SKUA_EVENT_CALL) {
        (void)skua_reply(ctx, event->request, 0, skua_payload_u64(0, *total));
    } else if (event->type == SKUA_EVENT_BECOME) {
        atomic_store(&counter_told, event->error);
    } else if (event->type == SKUA_EVENT_MESSAGE) {
        switch (event->payload.type) {
        case COUNTER_BECOME:
            return become(ctx, &event->payload);
        case COUNTER_DONE:
            return skua_done(ctx, skua_payload_u64(0, *total));
        case COUNTER_FAIL:
            (void)become(ctx, &event->payload);
            return SKUA_E_USER;
        case COUNTER_LEAVE:
            (void)become(ctx, &event->payload);
            return skua_done(ctx, skua_payload_u64(0, *total));
        default:
            *total += skua_payload_to_u64(&event->payload);
            break;
        }
    }
    return 0;
}

static int step_version(void *self, skua_context *ctx, skua_event *events, size_t count,
                        uint32_t version)
{
    int error = 0;
    check_marks(self, version);
    for (size_t i = 0; i < count && error == 0; i++) {
        error = handle(total_in(self, version), ctx, &events[i]);
    }
    return error;
}

static int step_odd(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    return step_version(self, ctx, events, count, 1);
}

static int step_even(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    return step_version(self, ctx, events, count, 2);
}

static int serve_version(void *self, skua_context *ctx, skua_event *event, uint32_t version)
{
    skua_event *go;
    check_marks(self, version);
    if (event->type == SKUA_EVENT_MESSAGE && event->payload.type == COUNTER_WAIT) {
        (void)become(ctx, &event->payload);
        return skua_task_receive_type(ctx, COUNTER_GO, &go, SKUA_FOREVER);
    }
    return handle(total_in(self, version), ctx, event);
}

static int serve_odd(void *self, skua_context *ctx, skua_event *event)
{
    return serve_version(self, ctx, event, 1);
}

static int serve_even(void *self, skua_context *ctx, skua_event *event)
{
    return serve_version(self, ctx, event, 2);
}

/* ---- how they change ---- */

static int init_even(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    (void)input;
    (void)count;
    set_marks(self, 2);
    return 0;
}

static int migrate_to(uint32_t old_version, const void *old_state, void *new_state,
                      uint32_t version)
{
    check_marks(old_state, old_version);
    set_marks(new_state, version);
    *total_in(new_state, version) = *total_in((void *)old_state, old_version);
    atomic_fetch_add(&counter_migrations, 1);
    return 0;
}

static int migrate_to_odd(uint32_t old_version, const void *old_state, void *new_state,
                          skua_context *ctx)
{
    assert_int_not_equal(skua_self(ctx).bits, 0);
    return migrate_to(old_version, old_state, new_state, 1);
}

static int migrate_to_even(uint32_t old_version, const void *old_state, void *new_state,
                           skua_context *ctx)
{
    assert_int_equal(skua_continue(ctx), SKUA_E_CONTEXT);
    return migrate_to(old_version, old_state, new_state, 2);
}

static int refuse(uint32_t old_version, const void *old_state, void *new_state, skua_context *ctx)
{
    (void)old_version;
    (void)old_state;
    (void)ctx;
    memset(new_state, 0xff, sizeof(struct even_state));
    return COUNTER_REFUSES;
}

static void note_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)ctx;
    check_marks(self, is_even(exit->type) ? 2 : 1);
    atomic_fetch_add(&counter_closes, 1);
}

#define COUNTER_ODD(size, number)                                                                  \
    {                                                                                              \
        .name = "counter", .state_size = (size), .step = step_odd, .close = note_close,            \
        .calls = true, .migrate = migrate_to_odd, .version = (number)                              \
    }
#define COUNTER_EVEN(size, function)                                                               \
    {                                                                                              \
        .name = "counter", .state_size = (size), .init = init_even, .step = step_even,             \
        .close = note_close, .calls = true, .migrate = (function), .version = 2                    \
    }
const skua_process_type counter_small_1 = COUNTER_ODD(sizeof(struct odd_state), 1);
const skua_process_type counter_large_1 = COUNTER_ODD(200, 1);
const skua_process_type counter_small_3 = COUNTER_ODD(sizeof(struct odd_state), 3);
const skua_process_type counter_small_2 = COUNTER_EVEN(sizeof(struct even_state), migrate_to_even);
const skua_process_type counter_large_2 = COUNTER_EVEN(300, migrate_to_even);
const skua_process_type counter_refuses = COUNTER_EVEN(300, refuse);
const skua_process_type counter_serve_1 = {.name = "counter",
                                           .state_size = sizeof(struct odd_state),
                                           .serve = serve_odd,
                                           .close = note_close,
                                           .calls = true,
                                           .version = 1};
const skua_process_type counter_serve_2 = {.name = "counter",
                                           .state_size = 60,
                                           .init = init_even,
                                           .serve = serve_even,
                                           .close = note_close,
                                           .calls = true,
                                           .migrate = migrate_to_even,
                                           .version = 2};

/* ---- what a test does ---- */

skua_pid counter_start(const skua_process_type *type)
{
    skua_pid pid;
    assert_int_equal(skua_process_submit(world_runtime(), type, skua_nothing(), &pid), 0);
    return pid;
}

void counter_add(skua_pid pid, uint64_t number)
{
    assert_int_equal(world_send(pid, skua_payload_u64(COUNTER_ADD, number)), 0);
}

void counter_order(skua_pid pid, enum counter_message what, const skua_process_type *type)
{
    assert_int_equal(world_send(pid, skua_payload_u64(what, (uint64_t)(uintptr_t)type)), 0);
}

uint64_t counter_total(skua_pid pid)
{
    skua_payload reply;
    assert_int_equal(skua_process_call(world_runtime(), pid, skua_nothing(), SKUA_FOREVER, &reply),
                     0);
    return skua_payload_to_u64(&reply);
}

/* The first answer may come from the step that asks for a change, which is made after it; the
 * second comes from a later step. */
uint32_t counter_version(skua_pid pid)
{
    (void)counter_total(pid);
    (void)counter_total(pid);
    return world_info(pid).type_version;
}

int counters_upgrade(const skua_process_type *from, const skua_process_type *to)
{
    return skua_runtime_upgrade(world_runtime(), from, to);
}

struct upgrading {
    const skua_process_type *from;
    const skua_process_type *to;
    skua_upgrade_progress progress;
};

static bool is_over(void *arg)
{
    struct upgrading *upgrading = arg;
    skua_upgrade_progress *now = &upgrading->progress;
    assert_int_equal(skua_upgrade_read(world_runtime(), upgrading->from, upgrading->to, now), 0);
    return now->migrated + now->failed + now->gone == now->asked;
}

skua_upgrade_progress counters_await(const skua_process_type *from, const skua_process_type *to)
{
    struct upgrading upgrading = {.from = from, .to = to};
    if (world->is_simulated) {
        world_settle();
    }
    wait_until(is_over, &upgrading, "the upgrade");
    return upgrading.progress;
}
