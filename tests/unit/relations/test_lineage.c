/* SPDX-License-Identifier: MIT */
/* Lists of the lineage: supervisors that have none, and children, page by page. */
#include "relations/lineage.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

#define MANY 5000

static struct lineage lineage;
static struct lineage_member members[MANY];
static const skua_supervisor offers = {.name = "supervisor"};

static skua_pid pid_of(uint32_t number)
{
    return (skua_pid){UINT64_C(0x0010000004000000) | number};
}

static void close_lineage(void)
{
    for (uint32_t i = 0; i < MANY; i++) {
        lineage_leave_any(&lineage, &members[i]);
    }
    lineage_deinit(&lineage);
}

static void open_lineage(void)
{
    memset(&lineage, 0, sizeof lineage);
    memset(members, 0, sizeof members);
    lineage_init(&lineage);
    test_at_end(close_lineage);
}

/* Member `number`, a child of member `supervisor`, or of nobody if that is 0. */
static void join(uint32_t number, uint32_t supervisor, bool is_supervisor)
{
    char name[32];
    (void)snprintf(name, sizeof name, "member %u", (unsigned)number);
    lineage_join_any(&lineage, &members[number], pid_of(number),
                     supervisor != 0 ? pid_of(supervisor) : (skua_pid){0}, name);
    if (is_supervisor) {
        lineage_offer_any(&lineage, &members[number], &offers);
    }
}

/* How many a list has, each once, read in pages of this size. */
static uint32_t count_listed(skua_pid supervisor, uint32_t capacity)
{
    static bool seen[MANY];
    struct lineage_view views[16];
    uint64_t place = 0;
    uint32_t total = 0;
    memset(seen, 0, sizeof seen);
    while (place < LINEAGE_END) {
        const uint32_t count = lineage_list_any(&lineage, supervisor, &place, views, capacity);
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t number = (uint32_t)(views[i].pid.bits & 0xffff);
            assert_true(skua_pid_equal(views[i].supervisor, supervisor));
            assert_false(seen[number]);
            seen[number] = true;
        }
        total += count;
    }
    return total;
}

TEST(list_of_nobody_is_empty)
{
    open_lineage();
    assert_int_equal(count_listed((skua_pid){0}, 16), 0);
    assert_int_equal(count_listed(pid_of(1), 16), 0);
}

TEST(roots_are_supervisors_that_have_none)
{
    open_lineage();
    join(1, 0, true);
    join(2, 1, true);  /* a supervisor with a supervisor */
    join(3, 2, false); /* no supervisor */
    join(4, 0, true);
    lineage_offer_any(&lineage, &members[4], NULL); /* takes no more children, but has some */
    assert_int_equal(count_listed((skua_pid){0}, 16), 2);
    assert_int_equal(count_listed(pid_of(1), 16), 1);
    assert_int_equal(count_listed(pid_of(2), 16), 1);
    assert_int_equal(count_listed(pid_of(3), 16), 0);
}

TEST(list_has_each_member_once_whatever_the_page)
{
    open_lineage();
    join(1, 0, true);
    for (uint32_t i = 2; i < MANY; i++) {
        join(i, 1, false);
    }
    for (uint32_t capacity = 1; capacity <= 16; capacity += 5) {
        assert_int_equal(count_listed(pid_of(1), capacity), MANY - 2);
        assert_int_equal(count_listed((skua_pid){0}, capacity), 1);
    }
}

TEST(member_is_read_as_it_is)
{
    struct lineage_view view;
    open_lineage();
    join(1, 0, true);
    join(2, 1, false);
    assert_true(lineage_read_any(&lineage, pid_of(1), &view));
    assert_true(view.is_supervisor && skua_pid_is_none(view.supervisor));
    assert_true(lineage_read_any(&lineage, pid_of(2), &view));
    assert_true(!view.is_supervisor && skua_pid_equal(view.supervisor, pid_of(1)));
    assert_string_equal(view.name, "member 2");
    lineage_leave_any(&lineage, &members[2]);
    assert_false(lineage_read_any(&lineage, pid_of(2), &view));
}
