/* SPDX-License-Identifier: MIT */
/* The smallest useful program: a process that greets whoever writes to it, and one that asks. */
#include <skua/skua.h>
#include <stdio.h>

enum { NAME = 1, GREETING = 2 };

/* The greeter has no state of its own. It answers every message and stays. */
static int greeter_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    (void)self;
    (void)out;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            skua_step_done(out, skua_payload_empty(0));
        } else {
            skua_context_send(ctx, events[i].from, skua_payload_empty(GREETING));
        }
    }
    return 0;
}

static const skua_process_type greeter = {.name = "greeter", .step = greeter_step};

/* The asker starts a greeter in its first step, which has no events, and ends with the answer. */
static int asker_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    (void)self;
    if (count == 0) {
        skua_pid pid;
        const int error = skua_context_spawn(ctx, &greeter, NULL, NULL, 0, &pid);
        return error != 0 ? error : skua_context_send(ctx, pid, skua_payload_empty(NAME));
    }
    if (events[0].type == SKUA_EVENT_MESSAGE && events[0].payload.type == GREETING) {
        skua_step_done(out, skua_payload_u64(GREETING, 42));
    }
    return 0;
}

static const skua_process_type asker = {.name = "asker", .step = asker_step};

int main(void)
{
    skua_runtime *runtime;
    skua_exit exit = {.error = SKUA_E_NO_MEMORY};
    if (skua_runtime_create(&runtime, NULL) != 0 || skua_runtime_start(runtime) != 0 ||
        skua_process_run(runtime, &asker, NULL, NULL, 0, &exit) != 0 || exit.error != 0) {
        fprintf(stderr, "failed: %s\n", skua_error_text(exit.error));
        return 1;
    }
    printf("hello, world: the answer is %llu\n",
           (unsigned long long)skua_payload_to_u64(&exit.result));
    skua_runtime_stop(runtime, SKUA_FOREVER);
    return skua_runtime_destroy(runtime);
}
