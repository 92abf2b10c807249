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

enum {
    SUM = 1,
    FAILED = 2
}; /* what a node tells its parent: a sum, or an error without its sign */

/* What a node is told: who waits for its sum, and which numbers are below it. */
struct range {
    skua_pid parent;
    uint64_t first;
    uint64_t size;
};

struct node {
    struct range range;
    uint64_t sum;
    unsigned waiting;
    bool started;
};

static int node_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                     size_t input_count)
{
    struct node *node = self;
    (void)ctx, (void)method, (void)input_count;
    node->range = *(const struct range *)skua_payload_data(&input[0]);
    return 0;
}

static skua_step_fn node_step;
static const skua_process_type node_type = {
    .name = "node", .state_size = sizeof(struct node), .init = node_init, .step = node_step};

static int start_node(skua_context *ctx, struct range range)
{
    skua_payload input; /* 24 bytes: they travel inside the payload */
    const int error = skua_payload_copy(skua_context_runtime(ctx), 0, &range, sizeof range, &input);
    return error != 0 ? error : skua_context_spawn(ctx, &node_type, NULL, &input, 1, NULL);
}

static int start_children(struct node *node, skua_context *ctx)
{
    struct range child = {skua_context_self(ctx), node->range.first, node->range.size / DEGREE};
    int error = 0;
    for (; error == 0 && node->waiting < DEGREE; node->waiting++, child.first += child.size) {
        error = start_node(ctx, child);
    }
    if (error != 0) { /* a parent that is not told would wait for ever */
        skua_context_send(ctx, node->range.parent, skua_payload_u64(FAILED, (uint64_t)-error));
    }
    return error;
}

static int node_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    struct node *node = self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            return events[i].error;
        }
        if (events[i].payload.type == FAILED) {
            skua_step_done(out, skua_payload_empty(0));
            return skua_context_send_from(ctx, node->range.parent, &events[i].payload);
        }
        node->sum += skua_payload_to_u64(&events[i].payload);
        node->waiting--;
    }
    if (!node->started && node->range.size > 1) {
        node->started = true;
        return start_children(node, ctx);
    }
    if (node->waiting > 0) {
        return 0;
    }
    const uint64_t sum = node->started ? node->sum : node->range.first; /* a leaf has no children */
    skua_step_done(out, skua_payload_empty(0));
    return skua_context_send(ctx, node->range.parent, skua_payload_u64(SUM, sum));
}

/* The root: starts the tree, waits for its sum, and checks it. */
struct skynet {
    uint64_t leaves;
    uint64_t began;
};

static int finish(const struct skynet *skynet, skua_context *ctx, skua_step *out, uint64_t sum)
{
    const double time_ns = (double)(skua_context_now(ctx) - skynet->began);
    const uint64_t processes = (skynet->leaves * DEGREE - 1) / (DEGREE - 1);
    printf("sum of 0 .. %" PRIu64 ": %" PRIu64 "\n", skynet->leaves - 1, sum);
    printf("%" PRIu64 " processes in %.3f s: %.1f million a second, %.0f ns each\n", processes,
           time_ns / 1e9, (double)processes / time_ns * 1e3, time_ns / (double)processes);
    skua_step_done(out, skua_payload_empty(0));
    return sum == skynet->leaves * (skynet->leaves - 1) / 2 ? 0 : SKUA_E_USER - 3;
}

static int skynet_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct skynet *skynet = self;
    if (count > 0) { /* whatever comes first is the end */
        const uint64_t number = skua_payload_to_u64(&events[0].payload);
        if (events[0].type == SKUA_EVENT_CANCEL) {
            return events[0].error;
        }
        return events[0].payload.type == SUM ? finish(skynet, ctx, out, number) : -(int)number;
    }
    if (skynet->began == 0) {
        skynet->began = skua_context_now(ctx);
        return start_node(ctx, (struct range){skua_context_self(ctx), 0, skynet->leaves});
    }
    return 0;
}

static int skynet_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                       size_t input_count)
{
    struct skynet *skynet = self;
    (void)ctx, (void)method;
    skynet->leaves = input_count > 0 ? strtoull(skua_payload_data(&input[0]), NULL, 10) : 1000000;
    uint64_t rest = skynet->leaves;
    while (rest > 1 && rest % DEGREE == 0) {
        rest /= DEGREE;
    }
    return rest == 1 ? 0 : SKUA_E_INVALID; /* no power of ten */
}

static const skua_process_type skynet_type = {.name = "skynet",
                                              .state_size = sizeof(struct skynet),
                                              .init = skynet_init,
                                              .step = skynet_step};

SKUA_MODULE(.name = "skynet", .about = "a tree of a million processes that add up their numbers",
            .root = &skynet_type, .types = (const skua_process_type *const[]){&node_type, NULL});
