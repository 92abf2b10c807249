/* SPDX-License-Identifier: MIT */
/* Two processes, one message each way: one asks for a greeting and finishes with the answer. */
#include <skua/skua.h>

/* A step gets the events that have arrived. It never runs on two threads at once. */
static int greet(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    static const char text[] = "Hello, world!";
    (void)self; /* the state of the process: a greeter has none */
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_MESSAGE) {
            skua_send(ctx, events[i].from, skua_payload_static(0, text, sizeof text));
        }
    }
    return 0; /* wait for more */
}
static const skua_process_type greeter = {.name = "greeter", .step = greet};

static int ask(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    skua_pid pid;
    (void)self, (void)count;
    if (events[0].type == SKUA_EVENT_MESSAGE) { /* the answer: it becomes the result */
        return skua_done(ctx, skua_payload_take(&events[0].payload));
    }
    const int error = skua_spawn(ctx, &greeter, skua_nothing(), &pid); /* SKUA_EVENT_START */
    return error != 0 ? error : skua_send(ctx, pid, skua_nothing());
}
static const skua_process_type hello = {.name = "hello", .step = ask};

SKUA_MODULE(.name = "hello", .about = "asks for a greeting", .root = &hello);
