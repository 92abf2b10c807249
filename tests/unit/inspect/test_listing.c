/* SPDX-License-Identifier: MIT */
/* The largest processes, on a scheduler without threads: they rest while a test gives them the
 * numbers that it wants to see sorted. */
#include "inspect/listing.h"

#include "base/monotonic.h"
#include "sched/process_info.h"
#include "scheduler_rig.h"

/* More than a listing has room for. */
#define CROWD (LISTING_MAX + 150)
#define HOUR  (UINT64_C(3600) * 1000000000)

static struct process *processes[CROWD];
static skua_pid pids[CROWD];
static uint32_t process_count;
static struct listing listing;
static skua_process_snapshot infos[LISTING_MAX]; /* what was read last */

static void open_scene(uint32_t count)
{
    scheduler_rig_open();
    process_count = count;
    for (uint32_t i = 0; i < count; i++) {
        processes[i] = rig_spawn(worker(0), &rig_resting);
        pids[i] = rig_pid(processes[i]);
    }
    rig_run_all();
    listing.made = 0;
}

static uint32_t renew_and_read(enum listing_order order, uint32_t most)
{
    listing_renew(&listing, &rig.sched);
    const uint32_t count = listing_read(&listing, &rig.sched, order);
    const uint32_t shown = count < most ? count : most;
    for (uint32_t i = 0; i < shown; i++) {
        infos[i] = listing.rows[i].info;
    }
    return shown;
}

static void set_steps(uint32_t i, uint64_t steps)
{
    const uint64_t flags = process_progress(processes[i]) & (PROCESS_STEP_ONE - 1);
    process_set_progress_owner(processes[i], steps << PROCESS_STEP_SHIFT | flags);
}

/* A number for each process, in no order, with ties: 0 to 96. */
static uint32_t scattered(uint32_t i)
{
    return i * 31 % 97;
}

static int larger_first(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a;
    const uint64_t right = *(const uint64_t *)b;
    return (left < right) - (left > right);
}

static void assert_no_pid_twice(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            assert_true(infos[i].pid.bits != infos[k].pid.bits);
        }
    }
}

/* The first ones, however many are asked for. */
static void assert_sorted(enum listing_order order)
{
    static const uint32_t mosts[] = {1, 2, 50, LISTING_MAX - 1, LISTING_MAX};
    static uint64_t values[CROWD];
    skua_process_snapshot info;
    for (uint32_t i = 0; i < process_count; i++) {
        assert_int_equal(process_info_read(&rig.sched, pids[i], &info), 0);
        values[i] = listing_value(&info, order);
    }
    qsort(values, process_count, sizeof values[0], larger_first);
    for (size_t m = 0; m < COUNT_OF(mosts); m++) {
        const uint32_t count = renew_and_read(order, mosts[m]);
        assert_int_equal(count, mosts[m]);
        assert_no_pid_twice(count);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(listing_value(&infos[i], order), values[i]);
        }
    }
}

/* ---- order ---- */

static void scatter_steps(uint32_t i)
{
    set_steps(i, 1000 + scattered(i));
}

static void scatter_run_times(uint32_t i)
{
    store_relaxed(&processes[i]->run, 1 + scattered(i));
}

static void scatter_messages(uint32_t i)
{
    for (uint32_t m = 0; m <= scattered(i); m++) {
        rig_send(processes[i]);
    }
}

static void set_equal_steps(uint32_t i)
{
    set_steps(i, 4711);
}

TEST(listing_has_the_largest_first)
{
    static const struct {
        enum listing_order order;
        void (*give_numbers)(uint32_t i);
    } rows[] = {
        {BY_STEPS, scatter_steps},
        {BY_STEPS, set_equal_steps},
        {BY_RUN, scatter_run_times},
        {BY_MAILBOX, scatter_messages},
    };
    FOR_ROWS (row, rows) {
        open_scene(CROWD);
        for (uint32_t i = 0; i < CROWD; i++) {
            row->give_numbers(i);
        }
        assert_sorted(row->order);
    }
}

/* Ages grow while one looks, all alike: so the order is asked for, not the numbers. */
TEST(listing_by_age_has_the_oldest_first)
{
    open_scene(CROWD);
    for (uint32_t i = 0; i < CROWD; i++) {
        store_relaxed(&processes[i]->born, 1000 - i);
    }
    rig.sched.account.created -= UINT64_C(2000) << BORN_SHIFT; /* so all these times have passed */
    assert_int_equal(renew_and_read(BY_AGE, LISTING_MAX), LISTING_MAX);
    for (uint32_t i = 0; i < LISTING_MAX; i++) {
        assert_int_equal(infos[i].pid.bits, pids[CROWD - 1 - i].bits);
    }
}

/* Fewer than there is room for. */
TEST(listing_of_a_few_has_all)
{
    open_scene(10);
    for (uint32_t order = 0; order < LISTING_ORDERS; order++) {
        assert_int_equal(renew_and_read(order, LISTING_MAX), 10);
        assert_no_pid_twice(10);
    }
}

/* ---- what has changed since the look at all ---- */

/* A listing by steps that is kept for ever: only what is read anew changes. */
static void open_listing(uint32_t count)
{
    open_scene(count);
    for (uint32_t i = 0; i < count; i++) {
        set_steps(i, 1000 + i);
    }
    listing_renew(&listing, &rig.sched);
    listing.cost = HOUR;
}

TEST(listing_leaves_out_what_has_ended)
{
    open_listing(10);
    for (uint32_t i = 0; i < 10; i += 2) {
        rig_kill(pids[i]);
    }
    rig_run_all();
    (void)rig_spawn(worker(0), &rig_resting); /* in the place of one */
    rig_run_all();
    assert_int_equal(renew_and_read(BY_STEPS, LISTING_MAX), 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(infos[i].pid.bits, pids[9 - 2 * i].bits);
    }
}

TEST(listing_that_is_kept_has_the_numbers_of_now)
{
    open_listing(3);
    set_steps(0, 5000);
    assert_int_equal(renew_and_read(BY_STEPS, 2), 2);
    assert_int_equal(infos[0].pid.bits, pids[0].bits);
    assert_int_equal(infos[0].steps, 5000);
    assert_int_equal(infos[1].pid.bits, pids[2].bits);
}

/* ---- for how long it is kept ---- */

/* With a cost of an hour the moment that the test itself takes does not matter. The clock may have
 * begun later than `made` says; the difference is right all the same. */
static bool is_renewed_after(uint64_t hours)
{
    const uint64_t made = monotonic_ns() - hours * HOUR;
    listing.made = made;
    listing.cost = HOUR;
    listing_renew(&listing, &rig.sched);
    return listing.made != made;
}

TEST(listing_is_kept_for_a_hundred_times_its_cost)
{
    open_scene(1);
    assert_false(is_renewed_after(0));
    assert_false(is_renewed_after(99));
    assert_true(is_renewed_after(100));
    assert_true(listing.cost < HOUR);
}

/* A clock that moves whenever it is read: no two processes are read at one time. */
static uint64_t read_moving_clock(struct time_source *source)
{
    static uint64_t now = HOUR;
    (void)source;
    now += UINT64_C(1000000000);
    return now;
}

TEST(listing_shows_the_values_that_it_is_sorted_by)
{
    static struct time_source moving = {.now = read_moving_clock};
    open_scene(20);
    rig.sched.account.simulated = &moving;
    const uint32_t count = renew_and_read(BY_AGE, 20);
    rig.sched.account.simulated = NULL;
    assert_int_equal(count, 20);
    for (uint32_t i = 1; i < count; i++) {
        assert_true(infos[i].age_ns < infos[i - 1].age_ns);
    }
}
