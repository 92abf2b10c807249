/* SPDX-License-Identifier: MIT */
/* Groups without memory: what asks for something fails with SKUA_E_NO_MEMORY, at once or in its
 * completion; what was accepted holds; and leaving needs no memory at all. */
#include <stdio.h>

#include "groups.h"

#define MANY   100
#define ROUNDS 700 /* more than there are allocations */

struct books {
    bool is_in[MANY];
    bool watches;
    bool publishes;
    unsigned refused;
    unsigned wrong;
};

static const char *text_of(uint64_t number)
{
    static char text[24];
    (void)snprintf(text, sizeof text, "group %llu", (unsigned long long)number);
    return text;
}

static bool is_granted(struct books *books, int error)
{
    if (error == SKUA_E_NO_MEMORY) {
        books->refused++;
    } else if (error != 0) {
        books->wrong++;
    }
    return error == 0;
}

static int join_all(struct turn *turn, const struct act *act)
{
    struct books *books = act->arg;
    skua_payload payload;
    const char bytes[100] = "news";
    books->watches = is_granted(books, skua_yield_group_watch(turn->ctx, 1, text_of(0)));
    for (uint64_t i = 0; i < MANY; i++) {
        books->is_in[i] = is_granted(books, skua_group_join(turn->ctx, text_of(i)));
    }
    if (is_granted(books, skua_payload_shared(skua_runtime_of(turn->ctx), 3, bytes, sizeof bytes,
                                              &payload))) {
        books->publishes = is_granted(books, skua_yield_publish(turn->ctx, 2, text_of(0), payload));
    }
    return 0;
}

/* What was accepted has come, or failed for lack of memory. */
static void check_events(const struct books *books, const struct actor *actor)
{
    unsigned news = 0;
    unsigned ends = 0;
    unsigned published = 0;
    for (size_t i = 0; i < actor->seen_count; i++) {
        const struct seen *seen = &actor->seen[i];
        news += seen->type == SKUA_EVENT_GROUP;
        if (seen->type == SKUA_EVENT_COMPLETION) {
            assert_true(seen->error == 0 || seen->error == SKUA_E_NO_MEMORY);
            ends += seen->tag == 1;
            published += seen->tag == 2;
        }
    }
    assert_int_equal(published, books->publishes);
    assert_int_equal(news + ends > 0, books->watches);
    assert_in_range(ends, 0, 1);
}

static void run_without(void (*break_memory)(struct counting_allocator *memory, uint64_t n),
                        uint64_t n)
{
    struct books *books = test_alloc(sizeof *books);
    world_open_sim(n, SIM_NO_FAULTS);
    struct counting_allocator *memory = &world->api->memory;
    struct actor *actor = actor_start(ACTS(does(join_all, books)));
    const uint64_t before = counting_allocator_attempts(memory);
    break_memory(memory, n);
    world_settle();
    const uint64_t attempts = counting_allocator_attempts(memory) - before;
    counting_allocator_fail_never(memory);
    for (uint64_t i = 0; i < MANY; i++) {
        assert_int_equal(skua_group_members(world_runtime(), text_of(i), NULL, 0), books->is_in[i]);
    }
    check_events(books, actor);
    assert_int_equal(books->wrong, 0);
    /* Now there is no memory at all, and none is needed. */
    counting_allocator_fail_from(memory, 1);
    const uint64_t at_the_end = counting_allocator_attempts(memory);
    assert_int_equal(world_terminate(actor->pid), 0);
    world_settle();
    assert_int_equal(counting_allocator_attempts(memory), at_the_end);
    counting_allocator_fail_never(memory);
    assert_int_equal(group_count(), 0);
    if (n == ROUNDS) {
        assert_in_range(attempts, 20, ROUNDS - 1); /* each had its turn */
        assert_int_equal(books->refused, 0);
    }
}

TEST(groups_keep_their_word_if_one_allocation_fails)
{
    FOR_ROUNDS (n, ROUNDS) {
        run_without(counting_allocator_fail_once, n);
    }
}

TEST(groups_keep_their_word_if_all_allocations_fail_from_one_on)
{
    FOR_ROUNDS (n, ROUNDS) {
        run_without(counting_allocator_fail_from, n);
    }
}

/* A snapshot for which there is no memory ends the watch. */
TEST(watch_ends_if_there_is_no_memory_for_a_snapshot)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *member = actor_start(ACTS(enters("choir")));
    world_settle();
    struct actor *watcher = actor_start(NO_ACTS);
    world_settle();
    actor_perform(watcher, ACTS(watches(1, "choir")));
    actor_tell(watcher, ACTS(watches(2, "choir")));
    while (skua_sim_step(world_runtime()) == 1) { /* until it has been asked for */
        skua_group_snapshot group;
        if (skua_group_list(world_runtime(), &group, 1) == 1 && group.watchers == 2) {
            break;
        }
    }
    counting_allocator_fail_from(&world->api->memory, 1);
    world_settle();
    counting_allocator_fail_never(&world->api->memory);
    assert_saw(watcher, snapshot_of(1, member), failure(2, SKUA_E_NO_MEMORY));
    actor_perform(member, ACTS(leaves("choir")));
    assert_int_equal(watcher->seen_count, 3);
}
