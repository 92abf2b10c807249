/* SPDX-License-Identifier: MIT */
/* Workloads of processes that talk. */
#include "bench.h"

/* ---- pingpong and pairs: two processes, or many twos, and round trips ---- */

/* Returns what it gets. */
static int pong_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            continue;
        }
        error = skua_send(ctx, events[i].from, skua_nothing());
    }
    return error;
}

static const skua_process_type pong = {.name = "pong", .step = pong_step};

struct ping {
    skua_pid master; /* hears when it is done; none: nobody */
    skua_pid pong;
    uint64_t left;
};

/* Input: whom to tell, how many round trips. */
static int ping_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    struct ping *ping = self;
    (void)ctx;
    ping->left = MILLION;
    if (input_count == 2) {
        ping->master = skua_payload_to_pid(&input[0]);
        ping->left = skua_payload_to_u64(&input[1]);
    }
    return 0;
}

static int ping_end(const struct ping *ping, skua_context *ctx)
{
    skua_done(ctx, skua_nothing());
    int error = skua_terminate(ctx, ping->pong);
    if (error == 0 && !skua_pid_is_none(ping->master)) {
        error = skua_send(ctx, ping->master, skua_nothing());
    }
    return error;
}

static int ping_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct ping *ping = self;
    (void)count;
    if (bench_starts(events)) {
        const int error = skua_spawn(ctx, &pong, skua_nothing(), &ping->pong);
        return error != 0 ? error : skua_send(ctx, ping->pong, skua_nothing());
    }
    ping->left--;
    return ping->left == 0 ? ping_end(ping, ctx) : skua_send(ctx, ping->pong, skua_nothing());
}

static const skua_process_type ping_type = {
    .name = "ping", .state_size = sizeof(struct ping), .init = ping_init, .step = ping_step};

struct measurement bench_pingpong(uint32_t workers)
{
    skua_runtime *runtime = bench_start(workers);
    const uint64_t elapsed = bench_run(runtime, &ping_type, NULL, NULL);
    return bench_finish(runtime, UINT64_C(2) * MILLION, elapsed);
}

#define PAIRS       1000u
#define ROUND_TRIPS 1000u

/* Starts the pairs and waits for them. */
static int pairs_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    uint64_t *done = self;
    *done += bench_count(events, count);
    if (*done == PAIRS) {
        return skua_done(ctx, skua_payload_u64(0, *done));
    }
    int error = 0;
    for (uint32_t i = 0; bench_starts(events) && i < PAIRS && error == 0; i++) {
        skua_payload input[] = {skua_payload_pid(0, skua_self(ctx)),
                                skua_payload_u64(0, ROUND_TRIPS)};
        error = skua_spawn_with(
            ctx, &(skua_spawn_options){.type = &ping_type, .input = input, .input_count = 2}, NULL);
    }
    return error;
}

static const skua_process_type pairs_type = {
    .name = "pairs", .state_size = sizeof(uint64_t), .step = pairs_step};

struct measurement bench_pairs(uint32_t workers)
{
    uint64_t done;
    skua_runtime *runtime = bench_start(workers);
    const uint64_t elapsed = bench_run(runtime, &pairs_type, NULL, &done);
    expect_right(done == PAIRS, "pairs: how many have finished");
    return bench_finish(runtime, UINT64_C(2) * PAIRS * ROUND_TRIPS, elapsed);
}

/* ---- ring: processes in a circle pass tokens on ---- */

#define RING_LENGTH 1000u

/* A token is a number: how often it is still to be passed on. Who gets one that is 0 tells the
 * root, which has built the ring and put the tokens in. */
struct node {
    skua_pid next;
    skua_pid root;
};

static int node_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    struct node *node = self;
    (void)ctx;
    if (input_count == 2) {
        node->next = skua_payload_to_pid(&input[0]);
        node->root = skua_payload_to_pid(&input[1]);
    }
    return 0;
}

enum { MESSAGE_TOKEN = 1, MESSAGE_NEXT, MESSAGE_END };

static int node_pass(struct node *node, skua_context *ctx, const skua_payload *token)
{
    const uint64_t left = skua_payload_to_u64(token);
    return left > 0 ? skua_send(ctx, node->next, skua_payload_u64(MESSAGE_TOKEN, left - 1))
                    : skua_send(ctx, node->root, skua_payload_empty(MESSAGE_END));
}

static int node_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct node *node = self;
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            continue;
        }
        if (events[i].payload.type == MESSAGE_NEXT) {
            node->next = skua_payload_to_pid(&events[i].payload);
        } else {
            error = node_pass(node, ctx, &events[i].payload);
        }
    }
    return error;
}

static const skua_process_type node_type = {
    .name = "node", .state_size = sizeof(struct node), .init = node_init, .step = node_step};

struct ring {
    uint32_t tokens;
    uint64_t ended;
};

static int ring_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)input;
    (void)input_count;
    ((struct ring *)self)->tokens = skua_method(ctx)[0] == 'o' ? 1 : 100;
    return 0;
}

/* The last node comes first; it hears of the first one when that exists. */
static int ring_build(const struct ring *ring, skua_context *ctx)
{
    skua_pid last = {0};
    skua_pid next = {0};
    skua_pid starts[100];
    int error = 0;
    for (uint32_t i = 0; i < RING_LENGTH && error == 0; i++) {
        skua_payload input[] = {skua_payload_pid(0, next), skua_payload_pid(0, skua_self(ctx))};
        error = skua_spawn_with(
            ctx, &(skua_spawn_options){.type = &node_type, .input = input, .input_count = 2},
            &next);
        last = i == 0 ? next : last;
        starts[i * ring->tokens / RING_LENGTH] = next;
    }
    if (error == 0) {
        error = skua_send(ctx, last, skua_payload_pid(MESSAGE_NEXT, next));
    }
    const uint64_t hops = MILLION / ring->tokens;
    for (uint32_t i = 0; i < ring->tokens && error == 0; i++) {
        error = skua_send(ctx, starts[i], skua_payload_u64(MESSAGE_TOKEN, hops - 1));
    }
    return error;
}

static int ring_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct ring *ring = self;
    if (bench_starts(events)) {
        return ring_build(ring, ctx);
    }
    ring->ended += count;
    if (ring->ended == ring->tokens) {
        skua_done(ctx, skua_payload_u64(0, ring->ended));
    }
    return 0;
}

static const char *const ring_methods[] = {"one", "hundred", NULL};
static const skua_process_type ring_type = {
    .name = "ring",
    .state_size = sizeof(struct ring),
    .methods = ring_methods,
    .init = ring_init,
    .step = ring_step,
};

static struct measurement run_ring(uint32_t workers, const char *method, uint64_t tokens)
{
    uint64_t ended;
    skua_runtime *runtime = bench_start(workers);
    const uint64_t elapsed = bench_run(runtime, &ring_type, method, &ended);
    expect_right(ended == tokens, "ring: how many tokens have come to their end");
    return bench_finish(runtime, MILLION, elapsed);
}

struct measurement bench_ring(uint32_t workers)
{
    return run_ring(workers, "one", 1);
}

struct measurement bench_ring100(uint32_t workers)
{
    return run_ring(workers, "hundred", 100);
}

/* ---- fanin: many producers, one consumer ---- */

#define PRODUCERS    100u
#define PRODUCE_EACH 10000u
#define PRODUCE_STEP 100u

struct producer {
    skua_pid consumer;
    uint64_t sent;
};

static int producer_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)ctx;
    if (input_count == 1) {
        ((struct producer *)self)->consumer = skua_payload_to_pid(&input[0]);
    }
    return 0;
}

static int producer_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct producer *producer = self;
    (void)events;
    (void)count;
    int error = 0;
    for (uint32_t i = 0; i < PRODUCE_STEP && error == 0; i++) {
        error = skua_send(ctx, producer->consumer, skua_payload_u64(0, producer->sent++));
    }
    if (producer->sent < PRODUCE_EACH) {
        skua_continue(ctx);
    } else {
        skua_done(ctx, skua_nothing());
    }
    return error;
}

static const skua_process_type producer_type = {.name = "producer",
                                                .state_size = sizeof(struct producer),
                                                .init = producer_init,
                                                .step = producer_step};

struct consumer {
    uint64_t count;
    uint64_t sum;
};

static int consumer_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct consumer *consumer = self;
    int error = 0;
    for (uint32_t i = 0; bench_starts(events) && i < PRODUCERS && error == 0; i++) {
        skua_payload input = skua_payload_pid(0, skua_self(ctx));
        error = skua_spawn(ctx, &producer_type, input, NULL);
    }
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            continue;
        }
        consumer->sum += skua_payload_to_u64(&events[i].payload);
    }
    consumer->count += bench_count(events, count);
    if (consumer->count == (uint64_t)PRODUCERS * PRODUCE_EACH) {
        skua_done(ctx, skua_payload_u64(0, consumer->sum));
    }
    return error;
}

static const skua_process_type consumer_type = {
    .name = "consumer", .state_size = sizeof(struct consumer), .step = consumer_step};

struct measurement bench_fanin(uint32_t workers)
{
    uint64_t sum;
    skua_runtime *runtime = bench_start(workers);
    const uint64_t elapsed = bench_run(runtime, &consumer_type, NULL, &sum);
    expect_right(sum == (uint64_t)PRODUCERS * PRODUCE_EACH * (PRODUCE_EACH - 1) / 2,
                 "fanin: the sum");
    return bench_finish(runtime, (uint64_t)PRODUCERS * PRODUCE_EACH, elapsed);
}

/* ---- fanout: one asks many, all answer, and again ---- */

#define LISTENERS 1000u
#define ROUNDS    1000u

struct speaker {
    skua_pid *listeners;
    uint32_t round;
    uint32_t missing;
};

static int speaker_ask(struct speaker *speaker, skua_context *ctx)
{
    int error = 0;
    speaker->missing = LISTENERS;
    for (uint32_t i = 0; i < LISTENERS && error == 0; i++) {
        error = skua_send(ctx, speaker->listeners[i], skua_nothing());
    }
    return error;
}

static int speaker_begin(struct speaker *speaker, skua_context *ctx)
{
    int error = 0;
    speaker->listeners = skua_alloc(ctx, LISTENERS * sizeof(skua_pid));
    if (speaker->listeners == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    for (uint32_t i = 0; i < LISTENERS && error == 0; i++) {
        error = skua_spawn(ctx, &pong, skua_nothing(), &speaker->listeners[i]);
    }
    return error != 0 ? error : speaker_ask(speaker, ctx);
}

static int speaker_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct speaker *speaker = self;
    if (bench_starts(events)) {
        return speaker_begin(speaker, ctx);
    }
    speaker->missing -= (uint32_t)count;
    if (speaker->missing > 0) {
        return 0;
    }
    speaker->round++;
    if (speaker->round < ROUNDS) {
        return speaker_ask(speaker, ctx);
    }
    skua_free(ctx, speaker->listeners, LISTENERS * sizeof(skua_pid));
    return skua_done(ctx, skua_payload_u64(0, speaker->round));
}

static const skua_process_type speaker_type = {
    .name = "speaker", .state_size = sizeof(struct speaker), .step = speaker_step};

struct measurement bench_fanout(uint32_t workers)
{
    uint64_t rounds;
    skua_runtime *runtime = bench_start(workers);
    const uint64_t elapsed = bench_run(runtime, &speaker_type, NULL, &rounds);
    expect_right(rounds == ROUNDS, "fanout: the rounds");
    return bench_finish(runtime, UINT64_C(2) * LISTENERS * ROUNDS, elapsed);
}

/* ---- backlog: a long mailbox, read from end to end; if it is short, again and again ---- */

/* Sends the messages to itself, in one step: until that ends, none can be read. */
struct hoarder {
    uint32_t size;
    uint32_t rounds; /* not begun */
    uint64_t sent;
    uint64_t read;
};

static int hoarder_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    struct hoarder *hoarder = self;
    (void)ctx;
    hoarder->size = input_count == 1 ? (uint32_t)skua_payload_to_u64(&input[0]) : MILLION;
    hoarder->rounds = bench_rounds(hoarder->size);
    return 0;
}

static int hoarder_fill(struct hoarder *hoarder, skua_context *ctx)
{
    const skua_pid self = skua_self(ctx);
    int error = 0;
    for (uint32_t i = 0; i < hoarder->size && error == 0; i++) {
        error = skua_send(ctx, self, skua_payload_u64(0, hoarder->sent++));
    }
    return error;
}

static int hoarder_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct hoarder *hoarder = self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            continue;
        }
        if (skua_payload_to_u64(&events[i].payload) != hoarder->read++) {
            return SKUA_E_USER;
        }
    }
    if (hoarder->read < hoarder->sent) {
        return 0;
    }
    if (hoarder->rounds == 0) {
        skua_done(ctx, skua_payload_u64(0, hoarder->read));
        return 0;
    }
    hoarder->rounds--;
    return hoarder_fill(hoarder, ctx);
}

static const skua_process_type hoarder_type = {
    .name = "hoarder",
    .state_size = sizeof(struct hoarder),
    .init = hoarder_init,
    .step = hoarder_step,
    .mailbox_limit = LARGEST_SIZE,
};

struct measurement bench_backlog(uint32_t workers, uint32_t size)
{
    uint64_t read;
    skua_runtime *runtime = bench_start(workers);
    const uint64_t elapsed = bench_run_sized(runtime, &hoarder_type, size, &read);
    expect_right(read == (uint64_t)size * bench_rounds(size), "backlog: how many were read");
    return bench_finish(runtime, read, elapsed);
}

/* ---- yield: a command that its handler completes at once ---- */

static int echo(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    *result = skua_payload_take(&command->input);
    return 0;
}

struct yielder {
    uint64_t done;
};

static int yielder_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct yielder *yielder = self;
    if (!bench_starts(events)) {
        if (count != 1 || events[0].tag != yielder->done ||
            skua_payload_to_u64(&events[0].payload) != yielder->done) {
            return SKUA_E_USER;
        }
        yielder->done++;
    }
    if (yielder->done == MILLION) {
        return skua_done(ctx, skua_nothing());
    }
    return skua_yield(ctx, yielder->done, 7, skua_payload_u64(0, yielder->done), SKUA_FOREVER);
}

static const skua_process_type yielder_type = {
    .name = "yielder", .state_size = sizeof(struct yielder), .step = yielder_step};

struct measurement bench_yield(uint32_t workers)
{
    skua_runtime *runtime = bench_create(workers);
    expect_ok(skua_command_register(runtime, 7, &(skua_handler){.name = "echo", .run = echo}),
              "register");
    expect_ok(skua_runtime_start(runtime), "start");
    const uint64_t elapsed = bench_run(runtime, &yielder_type, NULL, NULL);
    return bench_finish(runtime, MILLION, elapsed);
}
