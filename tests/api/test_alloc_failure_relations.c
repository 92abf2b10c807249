/* SPDX-License-Identifier: MIT */
/* Calls, monitors and links without memory: what asks for something fails with SKUA_E_NO_MEMORY, at
 * once or later; what was accepted is kept; and the end of a process needs no memory at all. */
#include "relations.h"

#define MANY     3000 /* enough for several growths of everything */
#define CHILDREN 20
#define ROUNDS   60 /* more than there are allocations */

/* Tags: the kind of a relation, and its number. */
enum kind { ASKS, ASKS_FOR, MONITORS, JOINS, LINKS, CHILD_MONITORS, CHILD_LINKS, KINDS };
#define TAG(kind, number) ((uint64_t)(kind)*100000 + (number))

/* What was asked for and accepted, by the tag; and how often its end came. */
struct books {
    struct actor *server;
    struct actor *leaf;
    struct actor *children[CHILDREN];
    bool accepted[KINDS][MANY];
    unsigned ended[KINDS][MANY];
    unsigned refused;
    unsigned wrong;
};

static void note(struct books *books, enum kind kind, uint64_t number, int error)
{
    books->accepted[kind][number] = error == 0;
    books->refused += error == SKUA_E_NO_MEMORY;
    books->wrong += error != 0 && error != SKUA_E_NO_MEMORY;
}

static int relate_all(struct turn *turn, const struct act *act)
{
    struct books *books = act->arg;
    for (uint64_t i = 0; i < MANY; i++) {
        note(books, ASKS, i, perform(turn, asks(TAG(ASKS, i), books->server, i)));
        note(books, MONITORS, i, perform(turn, monitors(TAG(MONITORS, i), books->server)));
        note(books, JOINS, i, perform(turn, joins(TAG(JOINS, i), books->leaf)));
        note(books, LINKS, i,
             perform(turn, links(books->leaf, SKUA_LINK_TELL, TAG(LINKS, i), NULL)));
    }
    for (uint64_t i = 0; i < CHILDREN; i++) {
        const int error =
            perform(turn, spawns_with(books->children[i],
                                      (skua_spawn_options){.monitor = true,
                                                           .monitor_tag = TAG(CHILD_MONITORS, i),
                                                           .link = true,
                                                           .link_flags = SKUA_LINK_TELL,
                                                           .link_tag = TAG(CHILD_LINKS, i)}));
        note(books, CHILD_MONITORS, i, error);
        books->accepted[CHILD_LINKS][i] = error == 0;
    }
    return 0;
}

/* The server calls the leaf on behalf of all that it has got. */
static int ask_for_all(struct turn *turn, const struct act *act)
{
    struct books *books = act->arg;
    for (size_t i = 0; i < turn->count; i++) {
        if (turn->events[i].type == SKUA_EVENT_CALL) {
            const uint64_t number = skua_payload_to_u64(&turn->events[i].payload);
            note(books, ASKS_FOR, number,
                 skua_yield_call_for(turn->ctx, TAG(ASKS_FOR, number), turn->events[i].request,
                                     books->leaf->pid, skua_payload_u64(0, number), SKUA_FOREVER));
        }
    }
    return ACT_WAITS;
}

static struct actor *large_new(struct script script)
{
    struct actor *server = server_new(script);
    server->type.mailbox_limit = SKUA_MAILBOX_MAX;
    return server;
}

static void count_ends(struct books *books, const struct actor *actor)
{
    for (size_t i = 0; i < actor->seen_count; i++) {
        const struct seen *seen = &actor->seen[i];
        const uint64_t kind = seen->tag / 100000;
        if (seen->type != SKUA_EVENT_COMPLETION && seen->type != SKUA_EVENT_EXIT) {
            continue;
        }
        const bool is_call = kind == ASKS || kind == ASKS_FOR;
        const int usual = is_call ? SKUA_E_PEER_ENDED : SKUA_E_TERMINATED;
        assert_true(kind < KINDS);
        assert_true(seen->error == usual ||
                    (seen->error == SKUA_E_NO_MEMORY && seen->type == SKUA_EVENT_COMPLETION));
        books->ended[kind][seen->tag % 100000]++;
    }
}

static void assert_each_ended(const struct books *books)
{
    for (size_t kind = 0; kind < KINDS; kind++) {
        for (size_t i = 0; i < MANY; i++) {
            if (kind != ASKS_FOR) { /* whoever made those has ended */
                assert_int_equal(books->ended[kind][i], books->accepted[kind][i]);
            }
        }
    }
    assert_int_equal(books->wrong, 0);
}

static void run_without(void (*break_memory)(struct counting_allocator *memory, uint64_t n),
                        uint64_t n)
{
    struct books *books = test_alloc(sizeof *books);
    world_open_sim(n, SIM_NO_FAULTS);
    struct counting_allocator *memory = &world->api->memory;
    books->leaf = large_new(NO_ACTS);
    books->server = large_new(ACTS(does(ask_for_all, books)));
    actor_submit(books->leaf);
    actor_submit(books->server);
    for (size_t i = 0; i < CHILDREN; i++) {
        books->children[i] = actor_new(NO_ACTS);
    }
    struct actor *client = actor_start(ACTS(does(relate_all, books)));
    const uint64_t before = counting_allocator_attempts(memory);
    break_memory(memory, n);
    world_settle();
    const uint64_t attempts = counting_allocator_attempts(memory) - before;
    /* Now there is none at all, and none is needed. */
    counting_allocator_fail_from(memory, 1);
    const uint64_t at_the_end = counting_allocator_attempts(memory);
    for (size_t i = 0; i < CHILDREN; i++) {
        if (books->accepted[CHILD_LINKS][i]) {
            assert_int_equal(world_terminate(books->children[i]->pid), 0);
        }
    }
    assert_int_equal(world_terminate(books->server->pid), 0);
    assert_int_equal(world_terminate(books->leaf->pid), 0);
    world_settle();
    assert_int_equal(counting_allocator_attempts(memory), at_the_end);
    counting_allocator_fail_never(memory);
    count_ends(books, client);
    assert_each_ended(books);
    if (n < ROUNDS) {
        return;
    }
    assert_in_range(attempts, 10, ROUNDS - 1); /* each had its turn */
    assert_int_equal(books->refused, 0);
}

TEST(relations_keep_their_word_if_one_allocation_fails)
{
    FOR_ROUNDS (n, ROUNDS) {
        run_without(counting_allocator_fail_once, n);
    }
}

TEST(relations_keep_their_word_if_all_allocations_fail_from_one_on)
{
    FOR_ROUNDS (n, ROUNDS) {
        run_without(counting_allocator_fail_from, n);
    }
}
