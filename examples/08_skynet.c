/* SPDX-License-Identifier: MIT */
/* A tree of processes: every node starts ten children until there are a million leaves. A leaf
 * sends its number to its parent, a parent the sum of its children; the sum at the top is checked.
 *
 *   skua run 08_skynet.so [-- LEAVES]
 */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

#define DEGREE 10

enum { SUM = 1, FAILED }; /* what a node tells its parent: a sum, or an error without its sign */

/* What a node is told: who waits for its sum, and which numbers are below it. 24 bytes, so they
 * travel inside the payload. */
SKUA_MESSAGE(range, 0, skua_pid parent; uint64_t first; uint64_t size;);

struct node {
    struct range range;
    uint64_t sum;
    unsigned waiting;
};

static int node_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct node *node = self;
    (void)ctx, (void)count;
    return range_get(&input[0], &node->range);
}

/* A parent that is not told would wait for ever. */
static void node_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    const struct node *node = self;
    if (exit->error != 0) {
        skua_send(ctx, node->range.parent, skua_payload_u64(FAILED, (uint64_t)-exit->error));
    }
}

static skua_step_fn node_step;
static const skua_process_type node_type = {.name = "node",
                                            .state_size = sizeof(struct node),
                                            .init = node_init,
                                            .step = node_step,
                                            .close = node_close};

static int start_node(skua_context *ctx, struct range range)
{
    skua_payload input;
    const int error = range_payload(skua_runtime_of(ctx), range, &input);
    return error != 0 ? error : skua_spawn(ctx, &node_type, input, NULL);
}

static int start_children(struct node *node, skua_context *ctx)
{
    struct range child = {skua_self(ctx), node->range.first, node->range.size / DEGREE};
    int error = 0;
    for (; error == 0 && node->waiting < DEGREE; node->waiting++, child.first += child.size) {
        error = start_node(ctx, child);
    }
    return error;
}

static int node_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct node *node = self;
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++) {
        const uint64_t number = skua_payload_to_u64(&events[i].payload);
        if (events[i].type == SKUA_EVENT_START && node->range.size > 1) {
            error = start_children(node, ctx);
        } else if (events[i].type == SKUA_EVENT_START) {
            node->sum = node->range.first; /* a leaf */
        } else if (events[i].payload.type == FAILED) {
            error = -(int)number;
        } else {
            node->sum += number;
            node->waiting--;
        }
    }
    if (error != 0 || node->waiting > 0) {
        return error;
    }
    skua_done(ctx, skua_nothing());
    return skua_send(ctx, node->range.parent, skua_payload_u64(SUM, node->sum));
}

/* The root: starts the tree, waits for its sum, and checks it. */
struct skynet {
    uint64_t leaves;
    uint64_t began;
};

static int finish(const struct skynet *skynet, skua_context *ctx, uint64_t sum)
{
    const double time_ns = (double)(skua_now(ctx) - skynet->began);
    const uint64_t processes = (skynet->leaves * DEGREE - 1) / (DEGREE - 1);
    printf("sum of 0 .. %" PRIu64 ": %" PRIu64 "\n", skynet->leaves - 1, sum);
    printf("%" PRIu64 " processes in %.3f s: %.1f million a second, %.0f ns each\n", processes,
           time_ns / 1e9, (double)processes / time_ns * 1e3, time_ns / (double)processes);
    return sum == skynet->leaves * (skynet->leaves - 1) / 2 ? skua_done(ctx, skua_nothing())
                                                            : SKUA_E_USER - 3;
}

static int skynet_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct skynet *skynet = self;
    (void)count;
    if (events[0].type == SKUA_EVENT_START) {
        skynet->began = skua_now(ctx);
        return start_node(ctx, (struct range){skua_self(ctx), 0, skynet->leaves});
    }
    const uint64_t number = skua_payload_to_u64(&events[0].payload);
    return events[0].payload.type == SUM ? finish(skynet, ctx, number) : -(int)number;
}

static int skynet_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct skynet *skynet = self;
    (void)ctx;
    skynet->leaves = count > 0 ? strtoull(skua_payload_data(&input[0]), NULL, 10) : 1000000;
    uint64_t rest = skynet->leaves;
    while (rest > 1 && rest % DEGREE == 0) {
        rest /= DEGREE;
    }
    return rest == 1 ? 0 : SKUA_E_INVALID; /* not a power of ten */
}

static const skua_process_type skynet_type = {.name = "skynet",
                                              .state_size = sizeof(struct skynet),
                                              .init = skynet_init,
                                              .step = skynet_step};

SKUA_MODULE(.name = "skynet", .about = "a tree of a million processes that add up their numbers",
            .root = &skynet_type, .types = (const skua_process_type *const[]){&node_type, NULL});
