/* @NAME@: a program of processes, for Skua. `make run` builds and runs it.
 *
 * There is one process. It counts, twice a second, until Ctrl-C; or as far as an argument says:
 *
 *     make run ARGS=10
 */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

/* What the process knows. Nobody else can touch it, so it needs no lock. */
struct counter {
    uint64_t count;
    uint64_t limit;
    bool started;
};

/* Called once, with the arguments; `self` has been filled with zeros. */
static int counter_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                        size_t input_count)
{
    struct counter *counter = self;
    (void)ctx;
    (void)method;
    counter->limit = UINT64_MAX;
    if (input_count > 0) {
        counter->limit = strtoull(skua_payload_data(&input[0]), NULL, 10);
    }
    return 0;
}

/* Called at the start, and whenever something has arrived. It must not wait for anything: it asks
 * for what it wants next, and returns. */
static int counter_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct counter *counter = self;
    bool cancelled = false;
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_TICK) {
            counter->count++;
            printf("%" PRIu64 "\n", counter->count);
        }
        cancelled = cancelled || events[i].type == SKUA_EVENT_CANCEL; /* Ctrl-C */
    }
    if (cancelled || counter->count >= counter->limit) {
        skua_step_done(out, skua_payload_u64(0, counter->count)); /* the result: printed, too */
        return 0;
    }
    if (!counter->started) {
        counter->started = true;
        return skua_step_ticker(out, 0, SKUA_SECOND / 2);
    }
    return 0; /* the process waits for the next event */
}

static const skua_process_type counter_type = {
    .name = "counter",
    .state_size = sizeof(struct counter),
    .init = counter_init,
    .step = counter_step,
};

SKUA_MODULE(.name = "@NAME@", .about = "counts until it is told to stop", .root = &counter_type);
