/* SPDX-License-Identifier: MIT */
/* The agenda of a simulation alone: its order against a sorted list, and what happens when there is
 * no memory. */
#include "sim/agenda.h"

#include "base/random.h"
#include "test_memory.h"

#define MANY 1000

static struct agenda agenda;
static struct agenda_item item; /* that was taken last */

static void close_agenda(void)
{
    while (agenda.count > 0) {
        agenda_take(&agenda, &item);
    }
    agenda_deinit(&agenda);
}

static void open_agenda(void)
{
    memory_open();
    agenda_init(&agenda, &memory.allocator);
    test_at_end(close_agenda);
}

/* The error of a completion tells the items apart. */
static void add_completion(uint64_t when, int number)
{
    assert_true(agenda_make_room(&agenda));
    agenda_add(&agenda, &(struct agenda_item){.when = when,
                                              .type = AGENDA_COMPLETION,
                                              .payload = skua_payload_empty(0),
                                              .as.completion.error = -number});
}

static struct agenda_item message_of(uint64_t when, uint64_t from, uint64_t to)
{
    return (struct agenda_item){.when = when,
                                .type = AGENDA_EVENT,
                                .payload = skua_payload_empty(0),
                                .sender = {from},
                                .turn = {from},
                                .to = {to}};
}

static void add_message(uint64_t when, uint64_t from, uint64_t to)
{
    const struct agenda_item message = message_of(when, from, to);
    assert_true(agenda_make_room(&agenda));
    agenda_add(&agenda, &message);
}

static void assert_last_message(uint64_t from, uint64_t to, uint64_t when)
{
    const struct agenda_item message = message_of(0, from, to);
    assert_int_equal(agenda_last(&agenda, &message), when);
}

/* ---- order ---- */

struct entry {
    uint64_t when;
    int number;
};

static int compare(const void *a, const void *b)
{
    const struct entry *first = a;
    const struct entry *second = b;
    if (first->when != second->when) {
        return first->when < second->when ? -1 : 1;
    }
    return first->number < second->number ? -1 : 1; /* in the order they were added */
}

TEST(agenda_gives_items_in_the_order_of_time)
{
    /* Hardly one instant twice, many of one instant, all of one. */
    static const uint64_t spreads[] = {UINT64_C(1) << 31, 20, 1};
    FOR_ROWS (spread, spreads) {
        struct entry entries[MANY];
        uint64_t random = *spread;
        open_agenda();
        for (int i = 0; i < MANY; i++) {
            entries[i] = (struct entry){random_next(&random) % *spread, i};
            add_completion(entries[i].when, i);
        }
        qsort(entries, MANY, sizeof entries[0], compare);
        for (size_t i = 0; i < MANY; i++) {
            assert_int_equal(agenda_next(&agenda), entries[i].when);
            agenda_take(&agenda, &item);
            assert_int_equal(item.when, entries[i].when);
            assert_int_equal(-item.as.completion.error, entries[i].number);
        }
        assert_int_equal(agenda_next(&agenda), UINT64_MAX);
    }
}

TEST(agenda_keeps_its_order_while_it_grows_and_shrinks)
{
    uint64_t random = 5;
    uint64_t now = 0;
    open_agenda();
    for (int i = 0; i < 20 * MANY; i++) {
        if (random_next(&random) % 2 == 0 || agenda.count == 0) {
            add_completion(now + random_next(&random) % 100, i);
            continue;
        }
        agenda_take(&agenda, &item);
        assert_true(item.when >= now); /* nothing is added for a time that has passed */
        now = item.when;
    }
}

TEST(agenda_has_room_for_the_end_of_time)
{
    static const uint64_t instants[] = {UINT64_MAX, UINT64_MAX - 1, 0};
    open_agenda();
    assert_int_equal(agenda_next(&agenda), UINT64_MAX);
    for (int i = 0; i < 3; i++) {
        add_completion(instants[i], i);
        assert_int_equal(agenda_next(&agenda), instants[i]);
    }
}

/* ---- messages ---- */

TEST(agenda_knows_the_last_message_between_two)
{
    open_agenda();
    assert_last_message(1, 2, 0);
    add_message(50, 1, 2);
    add_message(90, 1, 2);
    add_message(70, 1, 2);
    add_message(200, 2, 1); /* the other way */
    add_message(300, 1, 3);
    add_message(400, 3, 2);
    add_completion(500, 1);
    assert_last_message(1, 2, 90);
    assert_last_message(2, 1, 200);
    assert_last_message(1, 3, 300);
    assert_last_message(3, 1, 0);
    for (int i = 0; i < 3; i++) {
        agenda_take(&agenda, &item);
    }
    assert_last_message(1, 2, 0);
    assert_last_message(3, 2, 400);
}

/* Taking messages out of the middle leaves the rest in order. */
TEST(agenda_gives_the_messages_to_one_process)
{
    uint64_t random = 9;
    int to_seven = 0;
    open_agenda();
    for (int i = 0; i < MANY; i++) {
        const uint64_t to = random_next(&random) % 8;
        to_seven += to == 7;
        add_message(random_next(&random) % 500, 1, to);
        add_completion(random_next(&random) % 500, i);
    }
    while (agenda_take_event(&agenda, (skua_pid){7}, &item)) {
        assert_int_equal(item.type, AGENDA_EVENT);
        assert_int_equal(item.to.bits, 7);
        to_seven--;
    }
    assert_int_equal(to_seven, 0);
    assert_false(agenda_take_event(&agenda, (skua_pid){8}, &item));
    struct agenda_item before = {.when = 0};
    while (agenda.count > 0) {
        agenda_take(&agenda, &item);
        assert_true(item.when > before.when ||
                    (item.when == before.when && item.serial >= before.serial));
        assert_true(item.type != AGENDA_EVENT || item.to.bits != 7);
        before = item;
    }
}

/* ---- memory ---- */

TEST(agenda_without_memory_keeps_what_it_has)
{
    int count = 0;
    open_agenda();
    counting_allocator_fail_from(&memory, 1);
    assert_false(agenda_make_room(&agenda));
    counting_allocator_fail_never(&memory);
    assert_true(agenda_make_room(&agenda));
    counting_allocator_fail_from(&memory, 1);
    while (agenda_make_room(&agenda)) { /* as many as there is room for */
        add_completion(1000 - (uint64_t)count, count);
        count++;
    }
    assert_true(count > 1);
    assert_int_equal(agenda.count, count);
    counting_allocator_fail_never(&memory);
    add_completion(2000, count);
    for (int i = count - 1; i >= 0; i--) {
        agenda_take(&agenda, &item);
        assert_int_equal(-item.as.completion.error, i);
    }
    assert_int_equal(agenda_next(&agenda), 2000);
}

static void add_network(uint64_t when, uint32_t what)
{
    agenda_add(&agenda, &(struct agenda_item){.when = when,
                                              .type = AGENDA_NETWORK,
                                              .payload = skua_payload_empty(0),
                                              .as.network = {.what = what}});
}

TEST(agenda_keeps_places_for_the_network)
{
    open_agenda();
    assert_true(agenda_reserve(&agenda, 3));
    counting_allocator_fail_from(&memory, 1);
    for (int i = 0; agenda_make_room(&agenda); i++) { /* as many as there is room for */
        add_completion(1, i);
    }
    assert_false(agenda_reserve(&agenda, 1));
    for (uint32_t round = 0; round < 10; round++) { /* an item that is taken leaves its place */
        add_network(0, 1);
        add_network(2, 2);
        add_network(0, 3);
        agenda_take(&agenda, &item);
        assert_int_equal(item.as.network.what, 1);
        agenda_take_network(&agenda, 2, 0);
        agenda_take(&agenda, &item);
        assert_int_equal(item.as.network.what, 3);
    }
    assert_int_equal(agenda_next(&agenda), 1);
    counting_allocator_fail_never(&memory);
    agenda_release(&agenda, 3);
}
