/* SPDX-License-Identifier: MIT */
/* Names and labels without memory: what asks for something fails with SKUA_E_NO_MEMORY, at once or
 * in its completion; what was accepted holds; and giving names up needs no memory at all. */
#include <stdio.h>

#include "names.h"

#define MANY     200 /* enough for a growth of most things */
#define CHILDREN 20
/* Each round fails another allocation, and these are more than there are: copies of awaited names
 * and of labels are one each, so they are few. */
#define ROUNDS 300
#define AWAITS 30
#define LABELS 5

struct name_text {
    char text[24];
};

static struct name_text text_of(const char *kind, uint64_t number)
{
    struct name_text name;
    (void)snprintf(name.text, sizeof name.text, "%s %llu", kind, (unsigned long long)number);
    return name;
}

/* What was asked for and accepted. */
struct books {
    struct actor *children[CHILDREN];
    bool has_name[MANY];
    bool awaits[AWAITS];
    bool has_child[CHILDREN];
    bool has_number[MANY];
    const char *label; /* the last that was accepted */
    unsigned refused;
    unsigned wrong;
};

static bool note(struct books *books, int error)
{
    books->refused += error == SKUA_E_NO_MEMORY;
    books->wrong += error != 0 && error != SKUA_E_NO_MEMORY;
    return error == 0;
}

static void take_labels(struct turn *turn, struct books *books)
{
    static const char *const labels[LABELS] = {"one", "two", "three", "four", "five"};
    for (size_t i = 0; i < LABELS; i++) {
        if (note(books, skua_label(turn->ctx, labels[i]))) {
            books->label = labels[i];
        }
    }
}

static int name_all(struct turn *turn, const struct act *act)
{
    struct books *books = act->arg;
    take_labels(turn, books);
    for (uint64_t i = 0; i < AWAITS; i++) {
        books->awaits[i] = note(
            books, skua_yield_await_name(turn->ctx, i, text_of("later", i).text, SKUA_FOREVER));
    }
    for (uint64_t i = 0; i < MANY; i++) {
        skua_name number;
        books->has_name[i] =
            note(books, skua_name_register(turn->ctx, text_of("name", i).text, NULL));
        books->has_number[i] =
            note(books, skua_name_of(world_runtime(), text_of("name", i).text, &number));
    }
    for (uint64_t i = 0; i < CHILDREN; i++) {
        const struct name_text name = text_of("child", i);
        books->has_child[i] =
            note(books, perform(turn, spawns_with(books->children[i],
                                                  (skua_spawn_options){.name = name.text,
                                                                       .label = name.text,
                                                                       .join = true,
                                                                       .join_tag = 1000 + i})));
    }
    return 0;
}

static void assert_word_is_kept(const struct books *books, struct actor *client)
{
    skua_pid pid;
    for (uint64_t i = 0; i < MANY; i++) {
        assert_int_equal(skua_name_find(world_runtime(), text_of("name", i).text, &pid),
                         books->has_name[i] ? 0 : SKUA_E_NO_PROCESS);
        assert_int_equal(pid.bits, books->has_name[i] ? client->pid.bits : 0);
        assert_true(!books->has_name[i] || books->has_number[i]); /* it is there already */
    }
    for (uint64_t i = 0; i < CHILDREN; i++) {
        assert_int_equal(skua_name_find(world_runtime(), text_of("child", i).text, &pid),
                         books->has_child[i] ? 0 : SKUA_E_NO_PROCESS);
        if (books->has_child[i]) {
            assert_string_equal(label_of(books->children[i]), text_of("child", i).text);
        }
    }
    assert_string_equal(label_of(client), books->label != NULL ? books->label : "");
    assert_int_equal(books->wrong, 0);
}

/* Each that was accepted has ended: with the holder, or without memory. */
static void assert_awaits_ended(const struct books *books, const struct actor *client,
                                const struct actor *late)
{
    unsigned ended[AWAITS] = {0};
    for (size_t i = 0; i < client->seen_count; i++) {
        const struct seen *seen = &client->seen[i];
        if (seen->type == SKUA_EVENT_COMPLETION && seen->tag < AWAITS) {
            assert_true(seen->error == SKUA_E_NO_MEMORY ||
                        (seen->error == 0 && seen->value == late->pid.bits));
            ended[seen->tag]++;
        }
    }
    for (size_t i = 0; i < AWAITS; i++) {
        assert_int_equal(ended[i], books->awaits[i]);
    }
}

static int take_awaited(struct turn *turn, const struct act *act)
{
    (void)act;
    int error = 0;
    for (uint64_t i = 0; i < AWAITS && error == 0; i++) {
        error = skua_name_register(turn->ctx, text_of("later", i).text, NULL);
    }
    return error;
}

static int give_all_up(struct turn *turn, const struct act *act)
{
    const struct books *books = act->arg;
    int error = skua_label(turn->ctx, NULL);
    for (uint64_t i = 0; i < MANY / 2 && error == 0; i++) {
        if (books->has_name[i]) {
            error = skua_name_unregister(turn->ctx, text_of("name", i).text);
        }
    }
    return error;
}

static void end_all(const struct books *books, struct actor *client)
{
    for (size_t i = 0; i < CHILDREN; i++) {
        if (books->has_child[i]) {
            assert_int_equal(world_terminate(books->children[i]->pid), 0);
        }
    }
    assert_int_equal(world_terminate(client->pid), 0);
    world_settle();
}

static void run_without(void (*break_memory)(struct counting_allocator *memory, uint64_t n),
                        uint64_t n)
{
    struct books *books = test_alloc(sizeof *books);
    world_open_sim(n, SIM_NO_FAULTS);
    struct counting_allocator *memory = &world->api->memory;
    for (size_t i = 0; i < CHILDREN; i++) {
        books->children[i] = actor_new(NO_ACTS);
    }
    struct actor *client = actor_start(ACTS(does(name_all, books)));
    const uint64_t before = counting_allocator_attempts(memory);
    break_memory(memory, n);
    world_settle();
    const uint64_t attempts = counting_allocator_attempts(memory) - before;
    counting_allocator_fail_never(memory);
    assert_word_is_kept(books, client);
    struct actor *late = actor_start(ACTS(does(take_awaited, NULL)));
    world_settle();
    assert_awaits_ended(books, client, late);
    actor_perform(client, ACTS(does(give_all_up, books)));
    assert_nobody_has("name 0");
    /* Now there is no memory at all, and none is needed. */
    counting_allocator_fail_from(memory, 1);
    const uint64_t at_the_end = counting_allocator_attempts(memory);
    end_all(books, client);
    assert_int_equal(counting_allocator_attempts(memory), at_the_end);
    counting_allocator_fail_never(memory);
    assert_nobody_has(text_of("name", MANY - 1).text);
    if (n == ROUNDS) {
        assert_in_range(attempts, 20, ROUNDS - 1); /* each had its turn */
        assert_int_equal(books->refused, 0);
    }
}

TEST(names_keep_their_word_if_one_allocation_fails)
{
    FOR_ROUNDS (n, ROUNDS) {
        run_without(counting_allocator_fail_once, n);
    }
}

TEST(names_keep_their_word_if_all_allocations_fail_from_one_on)
{
    FOR_ROUNDS (n, ROUNDS) {
        run_without(counting_allocator_fail_from, n);
    }
}
