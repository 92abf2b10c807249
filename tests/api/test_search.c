/* SPDX-License-Identifier: MIT */
/* What a worker does before it sleeps (S9), and what the hot paths do not do (G10). */
#include <sched.h>

#include "api_support.h"
#include "runtime_support.h"

#define ROUNDS        15 /* looks of one search at the one other worker */
#define ROUNDS_YIELD  12 /* those of them that give way */
#define WARM_UP       1000
#define CONVERSATIONS 20000

/* Takes the place of the C library's, to count how often a searching worker gives way. */
static atomic_uint yields;

int sched_yield(void)
{
    (void)atomic_fetch_add(&yields, 1);
    return 0;
}

struct sleepers {
    const struct api *api;
    uint32_t workers;
};

static bool all_sleep(void *arg)
{
    const struct sleepers *sleepers = arg;
    return api_stats(sleepers->api).parks >= sleepers->workers;
}

static void wait_until_all_sleep(const struct api *api, uint32_t workers)
{
    wait_until(all_sleep, &(struct sleepers){api, workers}, "all workers to sleep");
}

static void do_nothing(void *arg, skua_context *ctx, skua_step *out)
{
    (void)arg;
    (void)ctx;
    (void)out;
}

/* What one search did: that of the worker that has run a short process and found nothing more. */
struct search {
    uint64_t looks;
    unsigned yields;
};

static struct search search_after_a_process(const struct api *api)
{
    const skua_stats before = api_stats(api);
    const unsigned yields_before = atomic_load(&yields);
    api_in_step(api, do_nothing, NULL);
    wait_until_all_sleep(api, (uint32_t)before.parks + 1);
    return (struct search){
        .looks = api_stats(api).steal_attempts - before.steal_attempts,
        .yields = atomic_load(&yields) - yields_before,
    };
}

TEST(search_climbs_the_ladder_while_another_worker_is_awake)
{
    struct api api;
    struct blocker blocker;
    api_run(&api, 2);
    wait_until_all_sleep(&api, 2);
    blocker_start(&blocker, &api);
    const struct search search = search_after_a_process(&api);
    assert_int_equal(search.looks, ROUNDS);
    assert_int_equal(search.yields, ROUNDS_YIELD);
    blocker_release(&blocker);
    api_stop(&api);
}

/* Nobody could bring it work in the meantime but the outside, which wakes it. */
TEST(search_with_all_others_asleep_gives_way_to_nobody)
{
    struct api api;
    api_run(&api, 2);
    wait_until_all_sleep(&api, 2);
    const struct search search = search_after_a_process(&api);
    assert_int_equal(search.looks, ROUNDS - ROUNDS_YIELD);
    assert_int_equal(search.yields, 0);
    api_stop(&api);
}

TEST(search_of_a_single_worker_gives_way_to_nobody)
{
    struct api api;
    api_run(&api, 1);
    wait_until_all_sleep(&api, 1);
    const unsigned before = atomic_load(&yields);
    assert_int_equal(api_stats(&api).steal_attempts, 0);
    api_stop(&api);
    assert_int_equal(atomic_load(&yields), before);
}

/* A process that starts a child, writes to it, hears back, and yields a command, again and again.
 * */
struct talker {
    struct counting_allocator *memory;
    uint64_t attempts; /* allocations when everything had been used once */
    uint32_t turns;
};

static int child_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    (void)self;
    if (count > 0) {
        skua_step_done(out, skua_payload_empty(0));
        return skua_context_send(ctx, events[0].from, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type child_type = {.name = "child", .step = child_step};

static int talk(skua_context *ctx, skua_step *out)
{
    skua_pid child;
    int error = skua_context_spawn(ctx, &child_type, NULL, NULL, 0, &child);
    if (error == 0) {
        error = skua_context_send(ctx, child, skua_payload_empty(0));
    }
    return error != 0 ? error : skua_step_yield(out, 1, 0, skua_payload_empty(0));
}

static int talker_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct talker *talker = api_world(self);
    for (size_t i = 0; i < count; i++) {
        if (events[i].type != SKUA_EVENT_MESSAGE) {
            continue;
        }
        talker->turns++;
        if (talker->turns == WARM_UP) {
            talker->attempts = counting_allocator_attempts(talker->memory);
        }
        if (talker->turns == CONVERSATIONS) {
            talker->attempts = counting_allocator_attempts(talker->memory) - talker->attempts;
            skua_step_done(out, skua_payload_empty(0));
            return 0;
        }
        return talk(ctx, out);
    }
    return talker->turns == 0 && count == 0 ? talk(ctx, out) : 0;
}

static const skua_process_type talker_type = {
    .name = "talker",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = talker_step,
};

static int answer(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return 0;
}

TEST(spawn_send_and_yield_allocate_nothing_once_warm)
{
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    assert_int_equal(
        skua_command_register(api.runtime, 1, &(skua_handler){.name = "answer", .run = answer}), 0);
    api_start(&api);
    struct talker talker = {.memory = &api.memory};
    const skua_exit exit = api_run_process(&api, &talker_type, &talker);
    assert_int_equal(exit.error, 0);
    assert_int_equal(talker.turns, CONVERSATIONS);
    assert_int_equal(talker.attempts, 0);
    api_stop(&api);
}
