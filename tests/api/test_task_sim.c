/* SPDX-License-Identifier: MIT */
/* Tasks in the simulator: the same seed is the same run; they are killed at any time, and have no
 * memory at any time. */
#include <limits.h>
#include <skua/clock.h>

#include "effort.h"
#include "task_waits.h"
#include "timers.h"

#define WANDERERS 6

static bool is_ended(int error)
{
    return error == SKUA_E_CANCELLED || error == SKUA_E_TERMINATED;
}

/* What a wait for something that does not come may return, if anybody may be killed, and there may
 * be no memory. */
static bool is_expected(int error)
{
    return error == 0 || is_ended(error) || error == SKUA_E_TIMEOUT || error == SKUA_E_NO_MEMORY ||
           error == SKUA_E_PEER_ENDED || error == SKUA_E_NO_PROCESS || error == SKUA_E_INJECTED ||
           error == SKUA_E_STOPPED || error == SKUA_E_MAILBOX_FULL;
}

#define ITEMS_EACH 32

/* What an errand has as its argument. */
struct baggage {
    struct tracked items[ITEMS_EACH];
    skua_payload later; /* not in the frame of a function that has returned */
};

static skua_payload item_of(struct errand *errand)
{
    struct baggage *baggage = errand->arg;
    return tracked_payload(0, &baggage->items[errand->number++]);
}

static void drop_item(void *arg)
{
    skua_payload_drop(arg);
}

static void do_nothing(void *arg)
{
    (void)arg;
}

/* How often tasks were killed in each of the waits. The end of a peer may have the same error. */
static unsigned kills[TASK_WAITS];

static void count_kill(const struct task_wait *wait, skua_context *ctx, int error)
{
    kills[wait - task_waits] +=
        error == SKUA_E_TERMINATED && skua_task_pause(ctx) == SKUA_E_TERMINATED;
}

/* Waits in all ways, for a while or forever, with payloads in its mailbox, in its hands and
 * deferred. It sends messages to itself, so that there is something to put aside. */
static int wanders(struct errand *errand, skua_context *ctx)
{
    struct baggage *baggage = errand->arg;
    skua_payload kept = item_of(errand);
    baggage->later = item_of(errand);
    int error = skua_task_defer(ctx, drop_item, &baggage->later);
    CHECK(errand, error == 0 || error == SKUA_E_NO_MEMORY);
    if (error != 0) {
        skua_payload_drop(&baggage->later);
    }
    for (int i = 0; i < 12 && !is_ended(error); i++) {
        const struct task_wait *wait = &task_waits[skua_random(ctx) % TASK_WAITS];
        const uint64_t time = skua_random(ctx) % 10 * MILLISECOND / 2;
        const int deferred = skua_task_defer(ctx, do_nothing, NULL);
        CHECK(errand, deferred == 0 || deferred == SKUA_E_NO_MEMORY);
        if (skua_random(ctx) % 3 == 0) {
            (void)skua_send(ctx, skua_self(ctx), item_of(errand));
        }
        error = wait->wait(ctx, skua_random(ctx) % 16 == 0 ? SKUA_FOREVER : time);
        CHECK(errand, is_expected(error));
        count_kill(wait, ctx, error);
    }
    skua_payload_drop(&kept);
    return is_ended(error) ? error : 0;
}

/* The same, called for each event that it gets. */
static int serves_and_wanders(struct errand *errand, skua_context *ctx, skua_event *event)
{
    (void)event;
    const struct task_wait *wait = &task_waits[skua_random(ctx) % TASK_WAITS];
    if (errand->number < 24) {
        (void)skua_send(ctx, skua_self(ctx), item_of(errand));
    }
    const int error = wait->wait(ctx, skua_random(ctx) % 10 * MILLISECOND / 2);
    CHECK(errand, is_expected(error));
    count_kill(wait, ctx, error);
    return is_ended(error) ? error : 0;
}

/* ---- worlds of them ---- */

struct scene {
    struct errand *errands[WANDERERS];
    struct baggage baggage[WANDERERS];
};

/* Starts them; there may be no memory for some. */
static struct scene *start_wanderers(void)
{
    struct scene *scene = test_alloc(sizeof *scene);
    for (size_t i = 0; i < WANDERERS; i++) {
        const bool serves = i % 2 == 1;
        struct errand *errand =
            serves ? errand_new_server(serves_and_wanders) : errand_new(wanders);
        scene->errands[i] = errand;
        errand->arg = &scene->baggage[i];
        const int error = errand_try_submit(errand);
        assert_true(error == 0 || error == SKUA_E_NO_MEMORY);
        if (error == 0 && serves) {
            (void)world_send(errand->pid, item_of(errand));
        }
    }
    return scene;
}

/* Closes the world: every item that was used has been dropped once. */
static void end_wanderers(struct scene *scene)
{
    world_close();
    for (size_t i = 0; i < WANDERERS; i++) {
        assert_drops(scene->baggage[i].items, scene->errands[i]->number, 1);
    }
}

/* Returns the hash of the run. */
static uint64_t let_wander(uint64_t seed, skua_sim_faults faults)
{
    task_waits_open_sim(seed, faults);
    struct scene *scene = start_wanderers();
    errands_go_on(SECOND);
    const uint64_t hash = skua_sim_hash(world_runtime());
    end_wanderers(scene);
    return hash;
}

static skua_sim_faults some_faults(uint64_t seed)
{
    return (skua_sim_faults){.process_kill = seed % 3 == 0 ? 0 : 30000,
                             .no_memory = seed % 4 == 0 ? 100000 : 0,
                             .message_delay = seed % 5 == 0 ? 300000 : 0,
                             .spurious_wake = seed % 2 == 0 ? 100000 : 0,
                             .handler_error = seed % 7 == 0 ? 100000 : 0};
}

TEST(tasks_may_be_killed_or_have_no_memory_at_any_time)
{
    FOR_ROUNDS (seed, EFFORT(10000)) {
        (void)let_wander(seed, some_faults(seed));
    }
    for (size_t i = 0; i < TASK_WAITS; i++) {
        assert_in_range(kills[i], 1, UINT_MAX);
    }
}

TEST(same_seed_is_the_same_run)
{
    uint64_t hashes[EFFORT(100)] = {0};
    for (int again = 0; again < 2; again++) {
        FOR_ROUNDS (seed, EFFORT(100)) {
            const uint64_t hash = let_wander(seed, some_faults(seed));
            assert_int_not_equal(hash, 0);
            assert_true(again == 0 || hashes[seed - 1] == hash);
            hashes[seed - 1] = hash;
        }
    }
    unsigned others = 0;
    for (size_t i = 1; i < COUNT_OF(hashes); i++) {
        others += hashes[i] != hashes[0];
    }
    assert_int_equal(others, COUNT_OF(hashes) - 1);
}

/* ---- every allocation ---- */

/* Without memory for the n-th allocation, and perhaps for all later ones; 0: there is. Returns how
 * many there were. */
static uint64_t let_wander_without(uint64_t n, bool and_later)
{
    task_waits_open_sim(7, SIM_NO_FAULTS);
    struct counting_allocator *memory = &world->api->memory;
    const uint64_t before = counting_allocator_attempts(memory);
    if (n > 0 && and_later) {
        counting_allocator_fail_from(memory, n);
    } else if (n > 0) {
        counting_allocator_fail_once(memory, n);
    }
    struct scene *scene = start_wanderers();
    errands_go_on(SECOND);
    const uint64_t count = counting_allocator_attempts(memory) - before;
    end_wanderers(scene);
    return count;
}

TEST(tasks_survive_the_failure_of_every_allocation)
{
    const uint64_t count = let_wander_without(0, false);
    assert_in_range(count, 10, 1000);
    FOR_ROUNDS (n, 2 * count) {
        (void)let_wander_without((n + 1) / 2, n % 2 == 0);
    }
}
