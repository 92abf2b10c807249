/* SPDX-License-Identifier: MIT */
/* A cache that thousands of clients call by its name. It answers at once what it knows. The rest it
 * has fetched, on behalf of the client: such a call has only the time that the client has left, and
 * is taken back if the client gives up. A ticker throws out what is old.
 *
 *   skua run 09_cache.so */
#include <skua/skua.h>
#include <stdio.h>

#define CLIENTS  10000
#define RUSH     (200 * SKUA_MILLISECOND) /* in which they come */
#define PATIENCE (6 * SKUA_MILLISECOND)   /* of each */
#define LIFE     (20 * SKUA_MILLISECOND)  /* of what the cache knows */
#define KEYS     UINT64_C(500)            /* a value is a number that tells its key: value % KEYS */

/* Takes 2 to 8 ms to answer one call, and ends. */
struct fetch {
    skua_request request;
    uint64_t key;
};

static int fetch_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct fetch *fetch = self;
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            error = skua_yield_sleep(ctx, 0, (2 + skua_random(ctx) % 7) * SKUA_MILLISECOND);
        } else if (events[i].type == SKUA_EVENT_CALL) {
            fetch->request = events[i].request;
            fetch->key = skua_payload_to_u64(&events[i].payload);
        } else { /* it has slept */
            skua_reply(ctx, fetch->request, 0, skua_payload_u64(0, fetch->key + 7 * KEYS));
            error = skua_done(ctx, skua_nothing());
        }
    }
    return error;
}

static const skua_process_type fetch_type = {
    .name = "fetch", .state_size = sizeof(struct fetch), .step = fetch_step, .calls = true};

struct cache {
    uint64_t values[KEYS];
    uint64_t since[KEYS]; /* 0: the value is not known */
};

static int look_up(struct cache *cache, skua_context *ctx, const skua_event *call)
{
    const uint64_t key = skua_payload_to_u64(&call->payload) % KEYS;
    skua_pid fetch;
    if (cache->since[key] != 0) {
        skua_reply(ctx, call->request, 0, skua_payload_u64(0, cache->values[key]));
        return 0;
    }
    int error = skua_spawn(ctx, &fetch_type, skua_nothing(), &fetch);
    if (error == 0) {
        error = skua_yield_call_for(ctx, call->request.bits, call->request, fetch,
                                    skua_payload_u64(0, key), SKUA_FOREVER);
    }
    return error == SKUA_E_LATE ? 0 : error; /* the client has given up already */
}

/* The client gets the value that was fetched, or the error. The tag is the client's request. */
static void pass_on(struct cache *cache, skua_context *ctx, const skua_event *answer)
{
    const uint64_t value = skua_payload_to_u64(&answer->payload);
    if (answer->error == 0) {
        cache->values[value % KEYS] = value;
        cache->since[value % KEYS] = skua_now(ctx);
    }
    skua_reply(ctx, (skua_request){answer->tag}, answer->error, skua_payload_u64(0, value));
}

static void forget(struct cache *cache, uint64_t before)
{
    for (size_t key = 0; key < KEYS; key++) {
        cache->since[key] = cache->since[key] < before ? 0 : cache->since[key];
    }
}

static int cache_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct cache *cache = self;
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            error = skua_yield_ticker(ctx, 0, LIFE / 10);
        } else if (events[i].type == SKUA_EVENT_CALL) {
            error = look_up(cache, ctx, &events[i]);
        } else if (events[i].type == SKUA_EVENT_COMPLETION) {
            pass_on(cache, ctx, &events[i]);
        } else {
            forget(cache, skua_now(ctx) - LIFE);
        }
    }
    return error;
}

static const skua_process_type cache_type = {
    .name = "cache", .state_size = sizeof(struct cache), .step = cache_step, .calls = true};

/* A client asks once. It ends well, or with the error of its call. */
static int client_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    enum { TAG_ENTER, TAG_ANSWER };
    const skua_payload key = skua_payload_u64(0, skua_random(ctx) % KEYS);
    (void)self, (void)count;
    if (events[0].type == SKUA_EVENT_START) {
        return skua_yield_sleep(ctx, TAG_ENTER, skua_random(ctx) % RUSH);
    }
    if (events[0].tag == TAG_ENTER) {
        return skua_yield_call_name(ctx, TAG_ANSWER, "cache", key, PATIENCE);
    }
    return events[0].error != 0 ? events[0].error : skua_done(ctx, skua_nothing());
}

static const skua_process_type client_type = {.name = "client", .step = client_step};

/* The root starts the cache, with which it would fail, and the clients, and sees how they end. */
static int root_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    const skua_spawn_options cache = {.type = &cache_type, .name = "cache", .link = true};
    const skua_spawn_options client = {.type = &client_type, .monitor = true};
    skua_stats total;
    unsigned *ended = self; /* [0]: with an answer, [1]: without one */
    if (events[0].type == SKUA_EVENT_START) {
        int error = skua_spawn_with(ctx, &cache, NULL);
        for (int i = 0; i < CLIENTS && error == 0; i++) {
            error = skua_spawn_with(ctx, &client, NULL);
        }
        return error;
    }
    for (size_t i = 0; i < count; i++) {
        ended[events[i].error != 0] += 1;
    }
    if (ended[0] + ended[1] < CLIENTS) {
        return 0;
    }
    skua_stats_read(skua_runtime_of(ctx), &total, NULL, 0);
    printf("%d clients: %u answers, %u gave up, %u fetches\n", CLIENTS, ended[0], ended[1],
           (unsigned)total.calls - CLIENTS);
    return skua_done(ctx, skua_nothing());
}

static const skua_process_type root_type = {
    .name = "root", .state_size = 2 * sizeof(unsigned), .step = root_step};

SKUA_MODULE(.name = "cache", .about = "a cache that is called by its name", .root = &root_type);
