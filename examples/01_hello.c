/* SPDX-License-Identifier: MIT */
/* The smallest useful program, the one in the README: a process that adds up what it is sent. */
#include <skua/skua.h>
#include <stdio.h>

struct counter {
    uint64_t total;
};

/* Called with the events that have arrived; owns `self`; never runs on two threads at once. */
static int counter_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct counter *counter = self;
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            skua_step_done(out, skua_payload_u64(0, counter->total));
            return 0;
        }
        counter->total += skua_payload_to_u64(&events[i].payload);
    }
    return 0; /* wait for more */
}

static const skua_process_type counter_type = {
    .name = "counter",
    .state_size = sizeof(struct counter),
    .step = counter_step,
};

int main(void)
{
    skua_runtime *runtime;
    skua_pid pid;
    skua_exit exit;
    if (skua_runtime_create(&runtime, NULL) != 0 || skua_runtime_start(runtime) != 0 ||
        skua_process_submit(runtime, &counter_type, NULL, NULL, 0, &pid) != 0) {
        return 1;
    }
    for (uint64_t i = 1; i <= 100; i++) {
        skua_message_send(runtime, pid, skua_payload_u64(0, i));
    }
    skua_process_cancel(runtime, pid, 0);
    if (skua_process_wait(runtime, pid, SKUA_FOREVER, &exit) == 0) {
        printf("total %llu\n", (unsigned long long)skua_payload_to_u64(&exit.result));
    }
    skua_runtime_stop(runtime, SKUA_FOREVER);
    return skua_runtime_destroy(runtime);
}
