/* SPDX-License-Identifier: MIT */
/* The registry of names, on one thread: who holds, who waits, handles, limits, and what happens
 * when there is no memory. */
#include "relations/names.h"

#include <stdio.h>

#include "base/random.h"
#include "call_rig.h"
#include "effort.h"

#define SEED UINT64_C(0x5eed)
#define MANY 100000

static struct names names;
static const skua_pid alice = {UINT64_C(0x0010000004000001)};
static const skua_pid bob = {UINT64_C(0x0010000004000002)};

static void give_chain(uint32_t first)
{
    while (first != OBJECT_NONE) {
        const uint32_t next = node_at(first)->next;
        give_node(first);
        first = next;
    }
}

static void close_names(void)
{
    give_chain(names_take_all_waiters_any(&names));
    names_deinit(&names);
}

static void open_names(uint32_t limit)
{
    call_rig_open();
    names_init(&names, &memory.allocator, &call_rig.events, limit, SEED);
    test_at_end(close_names);
}

/* ---- what the tests are made of ---- */

static uint32_t hold(const char *text, skua_pid pid)
{
    struct name_outcome outcome;
    assert_int_equal(names_register_any(&names, text, pid, &outcome), 0);
    assert_int_equal(outcome.waiters, OBJECT_NONE);
    assert_int_equal(outcome.stale, OBJECT_NONE);
    assert_int_not_equal(outcome.entry, OBJECT_NONE);
    return outcome.entry;
}

static void assert_refused(const char *text, skua_pid pid, int error)
{
    struct name_outcome outcome;
    assert_int_equal(names_register_any(&names, text, pid, &outcome), error);
    assert_int_equal(outcome.entry, OBJECT_NONE);
    assert_int_equal(outcome.waiters, OBJECT_NONE);
    assert_int_equal(outcome.stale, OBJECT_NONE);
}

static void assert_holder(const char *text, skua_pid expected)
{
    skua_pid holder = {0};
    assert_int_equal(names_find_any(&names, text, &holder), 0);
    assert_true(skua_pid_equal(holder, expected));
}

static void assert_nobody(const char *text)
{
    skua_pid holder;
    assert_int_equal(names_find_any(&names, text, &holder), SKUA_E_NO_PROCESS);
}

static struct name_handle handle_of(const char *text)
{
    struct name_handle handle;
    assert_int_equal(names_handle_any(&names, text, &handle), 0);
    return handle;
}

static void assert_handle_leads_to(struct name_handle handle, skua_pid expected)
{
    skua_pid holder = {0};
    assert_int_equal(names_of_handle_any(&names, handle, &holder), 0);
    assert_true(skua_pid_equal(holder, expected));
}

static void assert_handle_fails(struct name_handle handle, int error)
{
    skua_pid holder;
    assert_int_equal(names_of_handle_any(&names, handle, &holder), error);
}

/* A call, and the node that waits in its stead. */
struct waiting {
    skua_completion completion;
    uint32_t waiter;
};

static struct waiting make_waiting(void)
{
    const uint32_t call = take_node();
    struct waiting waiting = {
        .completion = call_open_owner(node_at(call), call, alice),
        .waiter = take_node(),
    };
    node_at(waiting.waiter)->as.event = (skua_event){.from = alice, .tag = waiting.completion.call};
    return waiting;
}

/* The call ends, by a deadline or so. */
static void end_call(struct waiting waiting)
{
    struct event_node *call = node_at(call_index(waiting.completion));
    assert_true(call_claim_any(call, call_guard(waiting.completion)));
    give_node(call_index(waiting.completion));
}

static struct waiting await(const char *text)
{
    struct name_outcome outcome;
    const struct waiting waiting = make_waiting();
    assert_int_equal(names_await_any(&names, text, waiting.waiter, &outcome), SKUA_PENDING);
    assert_int_equal(outcome.stale, OBJECT_NONE);
    return waiting;
}

static uint32_t chain_length(uint32_t first)
{
    uint32_t length = 0;
    for (; first != OBJECT_NONE; first = node_at(first)->next) {
        length++;
    }
    return length;
}

static const char *number_name(uint32_t number)
{
    static char text[NAME_SIZE];
    (void)snprintf(text, sizeof text, "number-%u", number);
    return text;
}

static skua_pid number_pid(uint32_t number)
{
    return (skua_pid){number + 1};
}

/* ---- text ---- */

TEST(check_accepts_names_of_all_lengths)
{
    char text[NAME_SIZE] = "";
    for (uint32_t length = 1; length <= NAME_LENGTH_MAX; length++) {
        text[length - 1] = (char)('!' + length);
        assert_int_equal(names_check(text), 0);
    }
    assert_int_equal(names_check("\xc3\xa4rger \xe2\x82\xac"), 0);
    assert_int_equal(names_check("\x80\xff~ "), 0);
}

TEST(check_refuses_nothing_and_too_much)
{
    assert_int_equal(names_check(NULL), SKUA_E_NAME);
    assert_int_equal(names_check(""), SKUA_E_NAME);
    /* No end, and an address sanitizer sees what is read behind it. */
    char *endless = test_alloc(NAME_SIZE);
    memset(endless, 'x', NAME_SIZE);
    assert_int_equal(names_check(endless), SKUA_E_NAME_LENGTH);
}

/* Not a byte is read behind the end of any. */
TEST(check_finds_control_characters_at_every_place)
{
    static const char controls[] = {1, 0x1f, '\n', 0x7f};
    for (uint32_t length = 1; length <= NAME_LENGTH_MAX; length++) {
        char *text = malloc(length + 1);
        memset(text, ' ', length);
        text[length] = '\0';
        for (uint32_t at = 0; at < length; at++) {
            for (uint32_t i = 0; i < COUNT_OF(controls); i++) {
                text[at] = controls[i];
                assert_int_equal(names_check(text), SKUA_E_NAME);
            }
            text[at] = at % 2 == 0 ? '~' : '\x80';
        }
        assert_int_equal(names_check(text), 0);
        free(text);
    }
}

TEST(every_function_refuses_what_is_no_name)
{
    open_names(10);
    static const struct {
        const char *text;
        int error;
    } rows[] = {
        {NULL, SKUA_E_NAME},
        {"", SKUA_E_NAME},
        {"a\tb", SKUA_E_NAME},
        {"a name of sixty-four bytes, which is one more than there may be.", SKUA_E_NAME_LENGTH},
    };
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        skua_pid holder;
        struct name_handle handle;
        struct name_outcome outcome;
        assert_int_equal(names_find_any(&names, rows[i].text, &holder), rows[i].error);
        assert_int_equal(names_handle_any(&names, rows[i].text, &handle), rows[i].error);
        assert_int_equal(names_await_any(&names, rows[i].text, 1, &outcome), rows[i].error);
        assert_refused(rows[i].text, alice, rows[i].error);
    }
    assert_int_equal(names_count(&names), 0);
}

/* Of every length, and those that are the beginning of others, or differ in one byte. */
TEST(text_comes_back_and_no_two_names_are_the_same)
{
    open_names(1000);
    char text[NAME_SIZE] = "";
    char other[NAME_SIZE];
    char found[NAME_SIZE];
    uint32_t number = 0;
    for (uint32_t length = 1; length <= NAME_LENGTH_MAX; length++) {
        text[length - 1] = length % 2 == 0 ? (char)(' ' + length) : '\x80';
        memcpy(other, text, sizeof other);
        other[length / 2] ^= 1;
        other[length] = '\0';
        const uint32_t first = hold(text, number_pid(number++));
        const uint32_t second = hold(other, number_pid(number++));
        assert_int_equal(names_text(&names, first, found), length);
        assert_string_equal(found, text);
        assert_int_equal(names_text(&names, second, found), length);
        assert_string_equal(found, other);
        assert_holder(text, number_pid(number - 2));
        assert_holder(other, number_pid(number - 1));
    }
}

/* ---- holders ---- */

TEST(registry_without_names_has_no_memory)
{
    open_names(10);
    const uint64_t before = counting_allocator_attempts(&memory);
    assert_nobody("alpha");
    assert_handle_fails((struct name_handle){64 * 8, 2}, SKUA_E_LATE);
    assert_int_equal(names_take_all_waiters_any(&names), OBJECT_NONE);
    assert_int_equal(counting_allocator_attempts(&memory), before);
}

TEST(registered_name_leads_to_its_holder_until_released)
{
    open_names(10);
    assert_nobody("alpha");
    const uint32_t entry = hold("alpha", alice);
    assert_holder("alpha", alice);
    assert_nobody("alph");
    assert_nobody("alphabet");
    assert_true(names_release_any(&names, entry, alice));
    assert_nobody("alpha");
    assert_false(names_release_any(&names, entry, alice));
    (void)hold("alpha", bob);
    assert_holder("alpha", bob);
}

TEST(name_has_one_holder)
{
    open_names(10);
    (void)hold("alpha", alice);
    static const skua_pid *const others[] = {&alice, &bob};
    for (uint32_t i = 0; i < COUNT_OF(others); i++) {
        struct name_outcome outcome;
        assert_int_equal(names_register_any(&names, "alpha", *others[i], &outcome),
                         SKUA_E_NAME_TAKEN);
        assert_true(skua_pid_equal(outcome.holder, alice));
    }
    assert_int_equal(names_count(&names), 1);
}

/* It gave the name up before, or somebody did it in its stead. */
TEST(release_by_another_process_changes_nothing)
{
    open_names(10);
    const uint32_t entry = hold("alpha", alice);
    assert_false(names_release_any(&names, entry, bob));
    assert_holder("alpha", alice);
    assert_true(names_release_any(&names, entry, alice));
    assert_int_equal(hold("alpha", bob), entry);
    assert_false(names_release_any(&names, entry, alice));
    assert_holder("alpha", bob);
    assert_int_equal(names_count(&names), 1);
}

TEST(process_holds_many_names_in_a_chain)
{
    open_names(100);
    uint32_t first = OBJECT_NONE;
    for (uint32_t i = 0; i < 50; i++) {
        const uint32_t entry = hold(number_name(i), alice);
        names_links_owner(&names, entry)->next = first;
        first = entry;
    }
    for (uint32_t i = 50; i > 0; i--) {
        char text[NAME_SIZE];
        (void)names_text(&names, first, text);
        assert_string_equal(text, number_name(i - 1));
        const uint32_t next = names_links_owner(&names, first)->next;
        assert_true(names_release_any(&names, first, alice));
        first = next;
    }
    assert_int_equal(first, OBJECT_NONE);
    assert_int_equal(names_count(&names), 0);
}

/* ---- handles ---- */

TEST(handle_follows_the_name_from_holder_to_holder)
{
    open_names(10);
    const struct name_handle handle = handle_of("alpha");
    assert_handle_fails(handle, SKUA_E_NO_PROCESS);
    const uint32_t entry = hold("alpha", alice);
    assert_handle_leads_to(handle, alice);
    assert_true(names_release_any(&names, entry, alice));
    assert_handle_fails(handle, SKUA_E_NO_PROCESS);
    (void)hold("alpha", bob);
    assert_handle_leads_to(handle, bob);
    assert_handle_leads_to(handle_of("alpha"), bob);
}

TEST(handle_of_a_name_without_holder_does_not_count)
{
    open_names(1);
    for (uint32_t i = 0; i < 1000; i++) {
        assert_handle_fails(handle_of(number_name(i)), SKUA_E_NO_PROCESS);
    }
    assert_int_equal(names_count(&names), 0);
    (void)hold("alpha", alice);
}

/* Entries that nobody holds are kept for a while, but not for ever. */
TEST(handle_is_late_when_its_entry_is_another_names)
{
    open_names(10);
    const struct name_handle handle = handle_of("alpha");
    uint32_t others = 0;
    skua_pid holder;
    while (names_of_handle_any(&names, handle, &holder) == SKUA_E_NO_PROCESS) {
        (void)handle_of(number_name(others++));
    }
    assert_handle_fails(handle, SKUA_E_LATE);
    assert_true(others > NAMES_IDLE_FLOOR);
    assert_true(others < 100 * NAMES_SHARDS * NAMES_IDLE_FLOOR);
    (void)hold("alpha", alice);
    assert_handle_fails(handle, SKUA_E_LATE);
    assert_handle_leads_to(handle_of("alpha"), alice);
}

TEST(handle_of_a_held_name_is_never_late)
{
    open_names(10);
    (void)hold("alpha", alice);
    const struct name_handle handle = handle_of("alpha");
    for (uint32_t i = 0; i < 20000; i++) {
        (void)handle_of(number_name(i));
    }
    assert_handle_leads_to(handle, alice);
    assert_holder("alpha", alice);
}

TEST(forged_handles_are_late_or_lead_to_a_holder)
{
    open_names(1000);
    for (uint32_t i = 0; i < 500; i++) {
        (void)hold(number_name(i), number_pid(i));
    }
    uint64_t random = 1;
    for (uint32_t i = 0; i < EFFORT(1000000); i++) {
        const uint64_t bits = random_next(&random);
        const struct name_handle handle = {(uint32_t)bits >> (bits >> 59), (bits >> 40) % 4};
        skua_pid holder = {0};
        const int error = names_of_handle_any(&names, handle, &holder);
        assert_true(error == SKUA_E_LATE || error == SKUA_E_NO_PROCESS ||
                    (error == 0 && holder.bits <= 500));
    }
    assert_handle_fails((struct name_handle){0, 0}, SKUA_E_LATE);
    assert_handle_fails((struct name_handle){UINT32_MAX, 2}, SKUA_E_LATE);
}

TEST(forged_numbers_end_with_their_segment)
{
    open_names(1000);
    const uint32_t entry = hold("alpha", alice);
    const uint32_t segment = entry >> NAMES_SHARD_BITS & (NAMES_SEGMENTS_END - 1);
    const uint32_t first = entry & ((UINT32_C(1) << NAMES_NUMBER_SHIFT) - 1);
    const uint32_t size = name_segment_size(segment);
    assert_non_null(names_entry(&names, first | (size - 1) << NAMES_NUMBER_SHIFT));
    assert_null(names_entry(&names, first | size << NAMES_NUMBER_SHIFT));
}

/* ---- many, and again and again ---- */

TEST(a_hundred_thousand_names_are_found)
{
    open_names(MANY);
    static uint32_t entries[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        entries[i] = hold(number_name(i), number_pid(i));
    }
    assert_int_equal(names_count(&names), MANY);
    assert_refused("one too many", alice, SKUA_E_NAME_LIMIT);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_holder(number_name(i), number_pid(i));
        assert_handle_leads_to(handle_of(number_name(i)), number_pid(i));
    }
    assert_nobody(number_name(MANY));
    for (uint32_t i = 0; i < MANY; i += 2) {
        assert_true(names_release_any(&names, entries[i], number_pid(i)));
    }
    for (uint32_t i = 0; i < MANY; i++) {
        if (i % 2 == 0) {
            assert_nobody(number_name(i));
        } else {
            assert_holder(number_name(i), number_pid(i));
        }
    }
}

/* One name after the other, a few at a time: the memory of those that were is used again. */
TEST(entries_are_used_again)
{
    enum { AT_A_TIME = 100 };
    open_names(AT_A_TIME);
    uint32_t entries[AT_A_TIME] = {0};
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        if (i >= AT_A_TIME) {
            const uint32_t old = i - AT_A_TIME;
            assert_true(names_release_any(&names, entries[old % AT_A_TIME], number_pid(old)));
            assert_nobody(number_name(old));
        }
        entries[i % AT_A_TIME] = hold(number_name(i), number_pid(i));
        if (i == MANY / 2) {
            bytes = counting_allocator_live_bytes(&memory);
        }
    }
    for (uint32_t i = MANY - AT_A_TIME; i < MANY; i++) {
        assert_holder(number_name(i), number_pid(i));
    }
    assert_int_equal(counting_allocator_live_bytes(&memory), bytes);
}

/* Its generations are used up: a handle from long ago must not fit again. */
TEST(entry_of_the_last_generation_stays_with_its_name)
{
    open_names(10);
    const struct name_handle handle = handle_of("alpha");
    struct name_entry *entry = names_entry(&names, handle.entry);
    store_relaxed(&entry->generation, NAMES_GENERATION_LAST); /* one thread */
    for (uint32_t i = 0; i < 20000; i++) {
        (void)handle_of(number_name(i));
    }
    const struct name_handle last = {handle.entry, NAMES_GENERATION_LAST};
    assert_handle_fails(last, SKUA_E_NO_PROCESS);
    assert_int_equal(hold("alpha", alice), handle.entry);
    assert_handle_leads_to(last, alice);
}

/* ---- waiters ---- */

TEST(await_of_a_held_name_gives_the_holder)
{
    open_names(10);
    (void)hold("alpha", bob);
    const struct waiting waiting = make_waiting();
    struct name_outcome outcome;
    assert_int_equal(names_await_any(&names, "alpha", waiting.waiter, &outcome), 0);
    assert_true(skua_pid_equal(outcome.holder, bob));
    assert_int_equal(names_take_all_waiters_any(&names), OBJECT_NONE);
}

TEST(waiters_are_given_to_the_next_holder_oldest_first)
{
    open_names(10);
    uint32_t waiters[5];
    for (uint32_t i = 0; i < COUNT_OF(waiters); i++) {
        waiters[i] = await("alpha").waiter;
        (void)await("beta");
    }
    assert_nobody("alpha");
    assert_int_equal(names_count(&names), 2);
    struct name_outcome outcome;
    assert_int_equal(names_register_any(&names, "alpha", bob, &outcome), 0);
    assert_int_equal(names_count(&names), 2);
    uint32_t index = outcome.waiters;
    for (uint32_t i = 0; i < COUNT_OF(waiters); i++) {
        assert_int_equal(index, waiters[i]);
        index = node_at(index)->next;
    }
    assert_int_equal(index, OBJECT_NONE);
    assert_true(names_release_any(&names, outcome.entry, bob));
    (void)hold("alpha", alice); /* nobody is told twice */
    assert_int_equal(chain_length(names_take_all_waiters_any(&names)), 5);
    assert_int_equal(names_count(&names), 1);
}

TEST(all_waiters_are_given_back_at_the_end)
{
    open_names(1000);
    for (uint32_t i = 0; i < 300; i++) {
        (void)await(number_name(i % 100));
    }
    assert_int_equal(names_count(&names), 100);
    const uint32_t all = names_take_all_waiters_any(&names);
    assert_int_equal(chain_length(all), 300);
    assert_int_equal(names_count(&names), 0);
    assert_int_equal(names_take_all_waiters_any(&names), OBJECT_NONE);
    give_chain(all);
}

/* One process asks for a name that never comes, again and again, with a timeout. */
TEST(stale_waiters_do_not_pile_up)
{
    open_names(10);
    const struct waiting living[] = {await("alpha"), await("alpha"), await("alpha")};
    uint32_t kept = COUNT_OF(living);
    for (uint32_t i = 0; i < 10000; i++) {
        struct name_outcome outcome;
        const struct waiting waiting = make_waiting();
        assert_int_equal(names_await_any(&names, "alpha", waiting.waiter, &outcome), SKUA_PENDING);
        kept = kept + 1 - chain_length(outcome.stale);
        give_chain(outcome.stale);
        assert_true(kept <= 2 * (COUNT_OF(living) + 1) + NAMES_SWEEP_FLOOR);
        end_call(waiting);
    }
    struct name_outcome outcome;
    assert_int_equal(names_register_any(&names, "alpha", bob, &outcome), 0);
    assert_int_equal(chain_length(outcome.waiters), kept);
    for (uint32_t i = 0; i < COUNT_OF(living); i++) {
        assert_int_equal(outcome.waiters, living[i].waiter);
        outcome.waiters = node_at(outcome.waiters)->next;
    }
}

/* As many looks at waiters as waiters, more or less: all are alive here. */
TEST(many_living_waiters_are_all_kept)
{
    open_names(10);
    for (uint32_t i = 0; i < 20000; i++) {
        (void)await("alpha");
    }
    struct name_outcome outcome;
    assert_int_equal(names_register_any(&names, "alpha", bob, &outcome), 0);
    assert_int_equal(chain_length(outcome.waiters), 20000);
}

/* ---- limits ---- */

TEST(limit_counts_names_that_are_held_or_awaited)
{
    open_names(3);
    const uint32_t entry = hold("alpha", alice);
    const struct waiting waiting = await("beta");
    (void)await("beta");
    (void)hold("gamma", alice);
    assert_refused("delta", alice, SKUA_E_NAME_LIMIT);
    struct name_outcome outcome;
    assert_int_equal(names_await_any(&names, "delta", waiting.waiter, &outcome), SKUA_E_NAME_LIMIT);
    assert_int_equal(names_register_any(&names, "beta", bob, &outcome), 0); /* is counted */
    assert_int_equal(chain_length(outcome.waiters), 2);
    assert_true(names_release_any(&names, entry, alice));
    (void)hold("delta", alice);
    assert_refused("alpha", alice, SKUA_E_NAME_LIMIT);
    assert_int_equal(names_count(&names), 3);
}

/* Names that nobody waits for any more make room, wherever they are. */
TEST(stale_waiters_do_not_keep_names_at_the_limit)
{
    static const bool awaits[] = {false, true};
    FOR_ROWS (row, awaits) {
        enum { LIMIT = 100 };
        open_names(LIMIT);
        (void)hold("alpha", alice);
        struct waiting waiting[LIMIT - 1];
        for (uint32_t i = 0; i < COUNT_OF(waiting); i++) {
            waiting[i] = await(number_name(i));
        }
        assert_refused("beta", bob, SKUA_E_NAME_LIMIT);
        end_call(waiting[42]);
        struct name_outcome outcome;
        if (*row) {
            const uint32_t waiter = make_waiting().waiter;
            assert_int_equal(names_await_any(&names, "beta", waiter, &outcome), SKUA_PENDING);
        } else {
            assert_int_equal(names_register_any(&names, "beta", bob, &outcome), 0);
        }
        assert_int_equal(outcome.stale, waiting[42].waiter);
        assert_int_equal(chain_length(outcome.stale), 1);
        give_chain(outcome.stale);
        assert_int_equal(names_count(&names), LIMIT);
        assert_refused(number_name(42), bob, SKUA_E_NAME_LIMIT);
    }
}

TEST(limit_of_none_allows_none)
{
    open_names(0);
    assert_refused("alpha", alice, SKUA_E_NAME_LIMIT);
    assert_handle_fails(handle_of("alpha"), SKUA_E_NO_PROCESS);
}

/* ---- no memory ---- */

/* Registers, awaits or makes handles of 200 names; returns the first error. */
static int use_many(uint64_t kind)
{
    struct name_outcome outcome;
    struct name_handle handle;
    int error = 0;
    for (uint32_t i = 0; i < 200 && error == 0; i++) {
        const char *text = number_name(i);
        if (kind == 0) {
            error = names_register_any(&names, text, number_pid(i), &outcome);
        } else if (kind == 1) {
            const uint32_t waiter = make_waiting().waiter;
            error = names_await_any(&names, text, waiter, &outcome);
            error = error == SKUA_PENDING ? 0 : error;
        } else {
            error = names_handle_any(&names, text, &handle);
        }
    }
    return error;
}

/* Whichever allocation fails: the call says so and has changed nothing, or did not need it. */
TEST(every_allocation_may_fail)
{
    enum { ALLOCATIONS_MAX = 200, KINDS = 3 };
    FOR_ROUNDS (round, ALLOCATIONS_MAX * KINDS) {
        open_names(1000);
        give_node(take_node()); /* the pool has its memory */
        const uint64_t before = counting_allocator_attempts(&memory);
        counting_allocator_fail_once(&memory, 1 + round / KINDS);
        const int error = use_many(round % KINDS);
        const uint64_t allocations = counting_allocator_attempts(&memory) - before;
        counting_allocator_fail_never(&memory);
        assert_true(allocations < ALLOCATIONS_MAX);
        assert_true(error == 0 || error == SKUA_E_NO_MEMORY);
        give_chain(names_take_all_waiters_any(&names));
        const uint32_t left = names_count(&names);
        assert_int_equal(use_many(2), 0); /* there is memory again, and all is as it was */
        assert_int_equal(names_count(&names), left);
        for (uint32_t i = 0; i < left; i++) {
            assert_holder(number_name(i), number_pid(i));
        }
        assert_nobody(number_name(left));
    }
}

/* An idle entry serves when there is none for a new one. */
TEST(idle_entries_are_used_when_there_is_no_memory)
{
    open_names(100);
    for (uint32_t i = 0; i < 64 * 8; i++) {
        (void)handle_of(number_name(i));
    }
    counting_allocator_fail_from(&memory, 1);
    for (uint32_t i = 1000; i < 1050; i++) {
        (void)hold(number_name(i), number_pid(i));
    }
    counting_allocator_fail_never(&memory);
    for (uint32_t i = 1000; i < 1050; i++) {
        assert_holder(number_name(i), number_pid(i));
    }
}
