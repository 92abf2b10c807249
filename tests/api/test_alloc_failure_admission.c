/* SPDX-License-Identifier: MIT */
/* skua_yield_send without memory: it is refused when it is asked for, never afterwards. What was
 * accepted completes, and the message is delivered exactly if the sender is told so. */
#include "letters.h"

#define MESSAGES 600 /* enough for several growths of everything */
#define LIMIT    3
#define ROUNDS   40 /* more than there are allocations */

struct books {
    struct actor *reader;
    struct tracked items[MESSAGES];
    bool accepted[MESSAGES];
    unsigned refused;
    unsigned wrong;
};

static int admit_all(struct turn *turn, const struct act *act)
{
    struct books *books = act->arg;
    for (uint64_t i = 0; i < MESSAGES; i++) {
        const int error = perform(turn, admits_item(i, books->reader, &books->items[i]));
        books->accepted[i] = error == 0;
        books->refused += error == SKUA_E_NO_MEMORY;
        books->wrong += error != 0 && error != SKUA_E_NO_MEMORY;
    }
    return 0;
}

static unsigned count_accepted(const struct books *books)
{
    unsigned accepted = 0;
    for (size_t i = 0; i < MESSAGES; i++) {
        accepted += books->accepted[i];
    }
    return accepted;
}

/* Each that was accepted completes once, with this error or with 0. */
static unsigned count_admitted(const struct books *books, const struct actor *sender, int error)
{
    unsigned completions[MESSAGES] = {0};
    unsigned admitted = 0;
    for (size_t i = 0; i < sender->seen_count; i++) {
        const struct seen *seen = &sender->seen[i];
        if (seen->type == SKUA_EVENT_COMPLETION) {
            assert_true(seen->error == 0 || seen->error == error);
            completions[seen->tag]++;
            admitted += seen->error == 0;
        }
    }
    for (size_t i = 0; i < MESSAGES; i++) {
        assert_int_equal(completions[i], books->accepted[i]);
    }
    return admitted;
}

static void check_rounds(const struct books *books, uint64_t n, uint64_t attempts)
{
    if (n == ROUNDS) {
        assert_in_range(attempts, 5, ROUNDS - 1); /* each had its turn */
        assert_int_equal(books->refused, 0);
    }
}

typedef void break_fn(struct counting_allocator *memory, uint64_t n);

/* The reader lives on and gets them all, or is ended by somebody. */
static void run_without(break_fn *break_memory, uint64_t n, bool is_ended)
{
    struct books *books = test_alloc(sizeof *books);
    world_open_sim(n, SIM_NO_FAULTS);
    struct counting_allocator *memory = &world->api->memory;
    books->reader = bounded_start(SKUA_OVERFLOW_REFUSE, LIMIT);
    world_settle();
    struct actor *sender = actor_start(ACTS(does(admit_all, books)));
    const uint64_t before = counting_allocator_attempts(memory);
    break_memory(memory, n);
    if (is_ended) {
        assert_true(skua_sim_step(world_runtime()) >= 0); /* the sender's */
        assert_int_equal(world_terminate(books->reader->pid), 0);
    }
    world_settle();
    const uint64_t attempts = counting_allocator_attempts(memory) - before;
    counting_allocator_fail_never(memory);
    const unsigned admitted = count_admitted(books, sender, is_ended ? SKUA_E_NO_PROCESS : 0);
    const unsigned seen = (unsigned)books->reader->seen_count;
    assert_int_equal(books->wrong, 0);
    if (is_ended) {
        assert_int_equal(seen + world_stats().dead_unread, admitted);
    } else {
        assert_int_equal(admitted, count_accepted(books));
        assert_int_equal(seen, admitted);
    }
    world_close();
    assert_drops(books->items, MESSAGES, 1);
    check_rounds(books, n, attempts);
}

TEST(sends_that_wait_keep_their_word_if_one_allocation_fails)
{
    FOR_ROUNDS (n, ROUNDS) {
        run_without(counting_allocator_fail_once, n, false);
    }
}

TEST(sends_that_wait_keep_their_word_if_all_allocations_fail_from_one_on)
{
    FOR_ROUNDS (n, ROUNDS) {
        run_without(counting_allocator_fail_from, n, false);
    }
}

TEST(end_of_the_receiver_is_told_without_memory)
{
    FOR_ROUNDS (n, ROUNDS) {
        run_without(counting_allocator_fail_from, n, true);
    }
}
