/* SPDX-License-Identifier: MIT */
/* Two processes, one message each way: one asks for a greeting and is done with the answer. */
#include <skua/skua.h>

/* A step is called with what has arrived, and never on two threads at once. */
static int greet(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    static char text[] = "Hello, world!";
    (void)self; /* its state: a greeter needs none */
    (void)out;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            return events[i].error; /* the program ends: so does this process */
        }
        skua_context_send(ctx, events[i].from, skua_payload_owned(0, text, sizeof text, NULL));
    }
    return 0; /* wait for more */
}
static const skua_process_type greeter = {.name = "greeter", .step = greet};

static int ask(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    (void)self;
    if (count > 0) {
        skua_step_done(out, skua_payload_take(&events[0].payload));
        return events[0].error;
    }
    skua_pid pid; /* the first step comes before any message: time to start others */
    const int error = skua_context_spawn(ctx, &greeter, NULL, NULL, 0, &pid);
    return error != 0 ? error : skua_context_send(ctx, pid, skua_payload_empty(0));
}
static const skua_process_type hello = {.name = "hello", .step = ask};

SKUA_MODULE(.name = "hello", .about = "asks for a greeting", .root = &hello);
