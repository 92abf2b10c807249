/* @NAME@: a program of processes, for Skua. `make run` builds and runs it.
 *
 * It has one process, which counts twice a second until Ctrl-C, or up to an argument:
 *
 *     make run ARGS=10
 */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

/* What the process knows. Nobody else can touch it, so it needs no lock. */
struct counter {
    uint64_t count, limit;
};

/* Called once. `self` is zeroed; `input` has the arguments. */
static int counter_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct counter *counter = self;
    (void)ctx;
    counter->limit = count > 0 ? strtoull(skua_payload_data(&input[0]), NULL, 10) : UINT64_MAX;
    return 0;
}

/* Called whenever something has happened. It never waits: it asks for what it wants next, and
 * returns. */
static int counter_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct counter *counter = self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            return skua_yield_ticker(ctx, 0, SKUA_SECOND / 2);
        }
        printf("%" PRIu64 "\n", ++counter->count);
    }
    /* `skua run` prints the result, too. */
    return counter->count < counter->limit ? 0
                                           : skua_done(ctx, skua_payload_u64(0, counter->count));
}

static const skua_process_type counter_type = {.name = "counter",
                                               .state_size = sizeof(struct counter),
                                               .init = counter_init,
                                               .step = counter_step};

SKUA_MODULE(.name = "@NAME@", .about = "counts until it is told to stop", .root = &counter_type);
