/* SPDX-License-Identifier: MIT */
/* Property 38, upgrade_equivalence: a run in which processes change their types at random steps has
 * the same results as one without.
 *
 *   property_upgrade [--seeds N] [--first S]
 *
 * A program is a chain of links, each with one sender before it, so that what it receives does not
 * depend on the order of steps. A link mixes what it gets into its state; then it passes that on to
 * the next one, by messages or by calls. Some links begin by deferring all but the last of what
 * they get, and all get urgent messages, whose sum does not depend on when they come. Types behave
 * alike, and keep the state in the record or outside, in another layout; some are steps, some
 * serve. In the second run of a seed somebody upgrades a type between two steps of the simulation,
 * links change by themselves, and some changes fail half-way. */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "property.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS_DEFAULT 100
#else
#define SEEDS_DEFAULT 1000
#endif

#define LINKS    8
#define NUMBERS  20
#define VERSIONS 9
#define STEPPING 6 /* of them, the others serve */

/* What a link has made of what it got. */
struct result {
    uint64_t mixed;
    uint64_t urgent;
};

static skua_pid chain[LINKS];
static struct result results[LINKS];
static uint32_t changed; /* times a link has changed in this run */
static uint32_t failed;  /* and could not */
static bool changes;     /* links change by themselves */
static bool fails;       /* now and then a change does */

/* ---- the links; their type says where the state is ---- */

struct core {
    uint64_t number; /* in the chain */
    struct result result;
    uint64_t met; /* messages and calls, deferred ones once */
    bool is_open; /* defers nothing any more */
};

enum { NUMBER, URGENT };

/* What every type needs of its own. */
static const size_t offsets[VERSIONS] = {0, 8, 0, 40, 200, 16, 0, 24, 160};
static const skua_process_type types[VERSIONS];

static int pass_on(struct core *core, skua_context *ctx, uint64_t value)
{
    const uint64_t next = core->number + 1;
    if (next == LINKS) {
        return 0;
    }
    if (next % 2 == 0) { /* not by turns: a call is made after the step, and a send at once */
        return skua_yield_call(ctx, value >> 24, chain[next], skua_payload_u64(0, value),
                               SKUA_FOREVER);
    }
    return skua_send(ctx, chain[next], skua_payload_u64(0, value));
}

static int receive(struct core *core, skua_context *ctx, uint64_t value)
{
    core->result.mixed = random_mix(core->result.mixed + value);
    results[core->number] = core->result;
    return pass_on(core, ctx, core->result.mixed);
}

/* Every third link puts aside what comes before the last number, and then takes it in order. */
static bool is_too_early(struct core *core, skua_context *ctx)
{
    if (core->number % 3 != 2 || core->is_open) {
        return false;
    }
    core->is_open = ++core->met == NUMBERS;
    if (core->is_open) {
        (void)skua_resume(ctx);
    }
    return !core->is_open;
}

static int handle(struct core *core, skua_context *ctx, skua_event *event)
{
    const uint64_t value = skua_payload_to_u64(&event->payload);
    switch (event->type) {
    case SKUA_EVENT_CALL:
        if (is_too_early(core, ctx)) {
            return skua_defer(ctx, event);
        }
        (void)skua_reply(ctx, event->request, 0, skua_payload_u64(0, value + 1));
        return receive(core, ctx, value);
    case SKUA_EVENT_MESSAGE:
        if (event->payload.type == URGENT) {
            core->result.urgent += value;
            results[core->number] = core->result;
            return 0;
        }
        return is_too_early(core, ctx) ? skua_defer(ctx, event) : receive(core, ctx, value);
    case SKUA_EVENT_COMPLETION:
        return event->error; /* every call is answered */
    default:
        return 0;
    }
}

/* Another type of the same shape. */
static const skua_process_type *other_type(size_t version, uint64_t random)
{
    const size_t first = version < STEPPING ? 0 : STEPPING;
    const size_t count = version < STEPPING ? STEPPING : VERSIONS - STEPPING;
    return &types[first + (version - first + 1 + random % (count - 1)) % count];
}

static int handle_all(void *self, skua_context *ctx, skua_event *events, size_t count,
                      size_t version)
{
    struct core *core = (struct core *)(void *)((char *)self + offsets[version]);
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++) {
        error = handle(core, ctx, &events[i]);
    }
    if (error == 0 && changes && skua_random(ctx) % 4 == 0) {
        error = skua_become(ctx, other_type(version, skua_random(ctx)));
    }
    return error;
}

static int start_at(void *self, skua_payload *input, size_t version)
{
    struct core *core = (struct core *)(void *)((char *)self + offsets[version]);
    core->number = skua_payload_to_u64(&input[0]);
    core->result.mixed = core->number;
    return 0;
}

static int migrate_at(uint32_t old_version, const void *old_state, void *new_state,
                      skua_context *ctx, size_t version)
{
    memcpy((char *)new_state + offsets[version], (const char *)old_state + offsets[old_version - 1],
           sizeof(struct core));
    if (fails && skua_random(ctx) % 4 == 0) {
        void *memory; /* belongs to the process, whatever becomes of the change */
        failed++;
        return skua_own_alloc(ctx, 100, &memory) == 0 ? SKUA_E_USER : SKUA_E_NO_MEMORY;
    }
    changed++;
    return 0;
}

#define LINK(index)                                                                                \
    static int init_##index(void *self, skua_context *ctx, skua_payload *input, size_t count)      \
    {                                                                                              \
        (void)ctx;                                                                                 \
        (void)count;                                                                               \
        return start_at(self, input, index);                                                       \
    }                                                                                              \
    static int migrate_##index(uint32_t version, const void *old_state, void *new_state,           \
                               skua_context *ctx)                                                  \
    {                                                                                              \
        return migrate_at(version, old_state, new_state, ctx, index);                              \
    }
#define STEPS(index)                                                                               \
    LINK(index)                                                                                    \
    static int step_##index(void *self, skua_context *ctx, skua_event *events, size_t count)       \
    {                                                                                              \
        return handle_all(self, ctx, events, count, index);                                        \
    }
#define SERVES(index)                                                                              \
    LINK(index)                                                                                    \
    static int serve_##index(void *self, skua_context *ctx, skua_event *event)                     \
    {                                                                                              \
        return handle_all(self, ctx, event, 1, index);                                             \
    }
STEPS(0)
STEPS(1)
STEPS(2)
STEPS(3)
STEPS(4)
STEPS(5)
SERVES(6)
SERVES(7)
SERVES(8)

#define TYPE(index, verb, size)                                                                    \
    {                                                                                              \
        .name = "link", .state_size = (size) + sizeof(struct core), .init = init_##index,          \
        .verb = verb##_##index, .calls = true, .urgent = true, .migrate = migrate_##index,         \
        .version = (index) + 1                                                                     \
    }
static const skua_process_type types[VERSIONS] = {
    TYPE(0, step, 0),  TYPE(1, step, 8),   TYPE(2, step, 25),
    TYPE(3, step, 40), TYPE(4, step, 236), TYPE(5, step, 16),
    TYPE(6, serve, 0), TYPE(7, serve, 24), TYPE(8, serve, 170)};

/* ---- a run ---- */

static void expect(bool holds, uint64_t seed, const char *what)
{
    if (!holds) {
        (void)fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, what);
        exit(1);
    }
}

static skua_runtime *begin(uint64_t seed, uint64_t *random)
{
    skua_runtime *runtime;
    skua_sim_config sim = {.faults = {.delay_max_ns = SKUA_MILLISECOND,
                                      .message_delay = random_below(random, 300000),
                                      .spurious_wake = random_below(random, 100000)}};
    const skua_runtime_config config = {.seed = seed, .sim = &sim};
    expect(skua_runtime_create(&runtime, &config) == 0 && skua_runtime_start(runtime) == 0, seed,
           "a runtime starts");
    for (uint32_t i = 0; i < LINKS; i++) {
        const skua_process_type *type = &types[random_below(random, VERSIONS)];
        expect(skua_process_submit(runtime, type, skua_payload_u64(0, i), &chain[i]) == 0, seed,
               "a link starts");
    }
    for (uint32_t i = 0; i < NUMBERS; i++) {
        const uint64_t number = random_below(random, 1000000);
        expect(skua_process_send(runtime, chain[0], skua_payload_u64(0, number)) == 0, seed,
               "a number is sent");
        expect(skua_process_send_urgent(runtime, chain[i % LINKS],
                                        skua_payload_u64(URGENT, number)) == 0,
               seed, "an urgent number is sent");
    }
    return runtime;
}

/* Somebody upgrades one type now and then. */
static void run_with_upgrades(skua_runtime *runtime, uint64_t seed, uint64_t *random)
{
    int done;
    do {
        done = skua_sim_step(runtime);
        if (random_below(random, 20) == 0) {
            const bool steps = random_below(random, 2) == 0;
            const uint32_t last = steps ? STEPPING - 1 : VERSIONS - 1;
            const uint32_t from = steps ? random_below(random, STEPPING - 1)
                                        : STEPPING + random_below(random, VERSIONS - STEPPING - 1);
            const uint32_t to = from + 1 + random_below(random, last - from);
            expect(skua_runtime_upgrade(runtime, &types[from], &types[to]) >= 0, seed,
                   "a type is replaced");
        }
    } while (done == 1);
    expect(done == 0, seed, "the simulation comes to rest");
}

static void run_once(uint64_t seed, bool upgrades, struct result copy[LINKS])
{
    uint64_t random = random_mix(seed + RANDOM_STEP);
    skua_stats stats;
    memset(results, 0, sizeof results);
    changed = failed = 0;
    changes = upgrades && seed % 2 == 0;
    fails = upgrades && seed % 3 == 0;
    skua_runtime *runtime = begin(seed, &random);
    if (upgrades) {
        run_with_upgrades(runtime, seed, &random);
    }
    expect(skua_sim_run(runtime, SKUA_FOREVER) >= 0, seed, "the rest runs");
    expect(skua_stats_read(runtime, &stats, NULL, 0) >= 0, seed, "statistics");
    expect(stats.upgrades == changed && stats.upgrade_failures == failed, seed,
           "all changes count");
    expect(skua_runtime_stop(runtime, 0) >= SKUA_E_TIMEOUT, seed, "the run stops");
    expect(skua_runtime_destroy(runtime) == 0, seed, "the runtime goes");
    memcpy(copy, results, sizeof results);
}

static void run_seed(uint64_t seed)
{
    struct result plain[LINKS];
    struct result upgraded[LINKS];
    run_once(seed, false, plain);
    expect(changed == 0, seed, "nobody changes");
    run_once(seed, true, upgraded);
    expect(memcmp(plain, upgraded, sizeof plain) == 0, seed, "38: the results are the same");
}

int main(int argc, char **argv)
{
    uint64_t first = 1;
    uint64_t seeds = SEEDS_DEFAULT;
    uint64_t all_changed = 0;
    uint64_t all_failed = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        const uint64_t value = strtoull(argv[i + 1], NULL, 10);
        *(strcmp(argv[i], "--first") == 0 ? &first : &seeds) = value;
    }
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        run_seed(seed);
        all_changed += changed;
        all_failed += failed;
    }
    (void)printf("%" PRIu64 " seeds, %" PRIu64 " changes, %" PRIu64 " failed\n", seeds, all_changed,
                 all_failed);
    expect(seeds < 100 || all_changed > seeds, 0, "links change");
    expect(seeds < 100 || all_failed > 0, 0, "some changes fail");
    return 0;
}
