/* SPDX-License-Identifier: MIT */
/* Tasks, for a debugger, in the simulator: two wait, and one calls task_is_here when they do. */
#include <skua/skua.h>

/* After a call, which would otherwise be a jump, and leave no frame. */
#define NO_JUMP __asm__ volatile("" : : : "memory")

__attribute__((noinline)) int task_is_here(int error);
int task_is_here(int error)
{
    NO_JUMP;
    return error;
}

static __attribute__((noinline)) int wait_below(skua_context *ctx, int depth)
{
    skua_event *event;
    const int error =
        depth > 0 ? wait_below(ctx, depth - 1) : skua_task_receive(ctx, &event, SKUA_FOREVER);
    NO_JUMP;
    return error;
}

static int receiver_main(void *self, skua_context *ctx)
{
    (void)self;
    const int error = wait_below(ctx, 2);
    NO_JUMP;
    return error;
}

static int sleeper_main(void *self, skua_context *ctx)
{
    (void)self;
    const int error = skua_task_sleep(ctx, 3600 * SKUA_SECOND);
    NO_JUMP;
    return error;
}

/* In virtual time, which passes when nobody has anything to do. */
static int root_main(void *self, skua_context *ctx)
{
    static const skua_process_type receiver = {
        .name = "receiver", .main = receiver_main, .stack_size = 16 << 10};
    static const skua_process_type sleeper = {.name = "sleeper", .main = sleeper_main};
    int error = skua_spawn(ctx, &receiver, skua_nothing(), NULL);
    (void)self;
    if (error == 0) {
        error = skua_spawn(ctx, &sleeper, skua_nothing(), NULL);
    }
    if (error == 0) {
        error = skua_task_sleep(ctx, SKUA_SECOND);
    }
    error = task_is_here(error);
    NO_JUMP;
    return error;
}

static const skua_process_type root_type = {.name = "root", .main = root_main};

SKUA_MODULE(.name = "tasks", .root = &root_type);
