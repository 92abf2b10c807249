/* @NAME@: a program of processes, for Skua. `make run` builds and runs it.
 *
 * It has one process, a task, which counts twice a second until Ctrl-C, or up to an argument:
 *
 *     make run ARGS=10
 */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

/* What the process knows. Nobody else can touch it, so it needs no lock. */
struct counter {
    uint64_t limit;
};

/* Called once. `self` is zeroed; `input` has the arguments. */
static int counter_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct counter *counter = self;
    (void)ctx;
    counter->limit = count > 0 ? strtoull(skua_payload_data(&input[0]), NULL, 10) : UINT64_MAX;
    return 0;
}

/* The whole life of the process, on a small stack of its own. While it waits, its thread runs
 * others. A wait that returns an error means that it should end: return it. */
static int counter_main(void *self, skua_context *ctx)
{
    const struct counter *counter = self;
    uint64_t next = 0; /* when the next period ends */
    for (uint64_t count = 1; count <= counter->limit; count++) {
        const int error = skua_task_ticker(ctx, SKUA_SECOND / 2, &next, NULL);
        if (error != 0) {
            return error;
        }
        printf("%" PRIu64 "\n", count);
    }
    /* `skua run` prints the result, too. */
    return skua_done(ctx, skua_payload_u64(0, counter->limit));
}

static const skua_process_type counter_type = {.name = "counter",
                                               .state_size = sizeof(struct counter),
                                               .init = counter_init,
                                               .main = counter_main};

SKUA_MODULE(.name = "@NAME@", .about = "counts until it is told to stop", .root = &counter_type);
