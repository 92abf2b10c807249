/* SPDX-License-Identifier: MIT */
/* The largest processes. They rest while a test gives them the numbers that it wants to see sorted;
 * what waits in their mailboxes is real, behind a worker that is held up. */
#include "inspect/listing.h"

#include "base/monotonic.h"
#include "runtime/runtime.h"
#include "runtime_support.h"
#include "telemetry/account.h"

/* More than a listing has room for. */
#define CROWD (LISTING_MAX + 150)
#define HOUR  (UINT64_C(3600) * 1000000000)

struct scene {
    struct api api;
    struct scheduler *sched;
    skua_pid pids[CROWD];
    uint32_t count;
    struct blocker blocker;
};

static struct listing listing;

static struct process *process_of(const struct scene *scene, uint32_t i)
{
    return process_at(&scene->sched->table, pid_slot(scene->pids[i]));
}

/* Processes that rest, and a worker that is busy with something else. */
static void begin(struct scene *scene, uint32_t count)
{
    api_stall_limit_ns = API_NEVER_STUCK;
    api_run(&scene->api, 1);
    scene->sched = &scene->api.runtime->sched;
    scene->count = count;
    for (uint32_t i = 0; i < count; i++) {
        scene->pids[i] = api_submit(&scene->api, &api_idler, NULL);
    }
    for (uint32_t i = 0; i < count; i++) {
        api_wait_state(&scene->api, scene->pids[i], SKUA_PROCESS_IDLE);
    }
    blocker_start(&scene->blocker, &scene->api);
    listing.made = 0;
}

static void end(struct scene *scene)
{
    blocker_release(&scene->blocker);
    api_stop(&scene->api);
}

/* Nobody else writes these while a process rests, and no runtime is two years old. */
static void set_steps(const struct scene *scene, uint32_t i, uint64_t steps)
{
    struct process *process = process_of(scene, i);
    const uint64_t flags = process_progress(process) & (PROCESS_STEP_ONE - 1);
    process_set_progress_owner(process, steps << PROCESS_STEP_SHIFT | flags);
}

static void set_run(const struct scene *scene, uint32_t i, uint32_t units)
{
    store_relaxed(&process_of(scene, i)->run, units);
}

static void set_born(const struct scene *scene, skua_pid pid, uint32_t units)
{
    store_relaxed(&process_at(&scene->sched->table, pid_slot(pid))->born, units);
}

static void fill_mailbox(const struct scene *scene, uint32_t i, uint32_t messages)
{
    for (uint32_t m = 0; m < messages; m++) {
        assert_int_equal(
            skua_message_send(scene->api.runtime, scene->pids[i], skua_payload_empty(0)), 0);
    }
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

/* The largest of the numbers of all processes but the blocker: what a listing must show. */
static void sort_all(const struct scene *scene, enum listing_order order, uint64_t *values)
{
    skua_process_info info;
    for (uint32_t i = 0; i < scene->count; i++) {
        assert_int_equal(skua_process_info_read(scene->api.runtime, scene->pids[i], &info), 0);
        values[i] = listing_value(&info, order);
    }
    qsort(values, scene->count, sizeof values[0], larger_first);
}

static void assert_no_pid_twice(const skua_process_info *infos, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            assert_true(infos[i].pid.bits != infos[k].pid.bits);
        }
    }
}

/* The first ones, however many are asked for. */
static void assert_sorted(const struct scene *scene, enum listing_order order)
{
    static const uint32_t mosts[] = {1, 2, 50, LISTING_MAX - 1, LISTING_MAX};
    static uint64_t values[CROWD];
    skua_process_info infos[LISTING_MAX];
    sort_all(scene, order, values);
    for (size_t m = 0; m < COUNT_OF(mosts); m++) {
        listing_renew(&listing, scene->sched);
        const uint32_t count = listing_read(&listing, scene->sched, order, infos, mosts[m]);
        assert_int_equal(count, mosts[m] < scene->count ? mosts[m] : scene->count);
        assert_no_pid_twice(infos, count);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(listing_value(&infos[i], order), values[i]);
        }
    }
}

/* ---- order ---- */

TEST(listing_by_steps_has_the_largest_first)
{
    static struct scene scene;
    begin(&scene, CROWD);
    for (uint32_t i = 0; i < scene.count; i++) {
        set_steps(&scene, i, 1000 + scattered(i));
    }
    assert_sorted(&scene, BY_STEPS);
    end(&scene);
}

/* The blocker is sampled while it waits, but has not run for as long as a unit of these. */
TEST(listing_by_run_time_has_the_largest_first)
{
    static struct scene scene;
    begin(&scene, CROWD);
    for (uint32_t i = 0; i < scene.count; i++) {
        set_run(&scene, i, (1 + scattered(i)) << 24);
    }
    assert_sorted(&scene, BY_RUN);
    end(&scene);
}

TEST(listing_by_mailbox_has_the_largest_first)
{
    static struct scene scene;
    begin(&scene, CROWD);
    for (uint32_t i = 0; i < scene.count; i++) {
        fill_mailbox(&scene, i, 1 + scattered(i));
    }
    assert_sorted(&scene, BY_MAILBOX);
    end(&scene);
}

/* Ages grow while one looks, all alike: so the order is asked for, not the numbers. */
TEST(listing_by_age_has_the_oldest_first)
{
    static struct scene scene;
    skua_process_info infos[LISTING_MAX];
    begin(&scene, CROWD);
    for (uint32_t i = 0; i < scene.count; i++) {
        set_born(&scene, scene.pids[i], 1000 - i);
    }
    set_born(&scene, scene.blocker.pid, 1500);
    scene.sched->account.created -= UINT64_C(2000)
                                    << BORN_SHIFT; /* so all these times have passed */
    listing_renew(&listing, scene.sched);
    const uint32_t count = listing_read(&listing, scene.sched, BY_AGE, infos, LISTING_MAX);
    assert_int_equal(count, LISTING_MAX);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(infos[i].pid.bits, scene.pids[CROWD - 1 - i].bits);
    }
    end(&scene);
}

/* Fewer than there is room for: all of them are listed, and the blocker. */
TEST(listing_of_a_few_has_all)
{
    static struct scene scene;
    skua_process_info infos[LISTING_MAX];
    begin(&scene, 10);
    for (uint32_t order = 0; order < LISTING_ORDERS; order++) {
        listing_renew(&listing, scene.sched);
        assert_int_equal(listing_read(&listing, scene.sched, order, infos, LISTING_MAX), 11);
        assert_no_pid_twice(infos, 11);
    }
    end(&scene);
}

TEST(listing_of_all_alike_is_full)
{
    static struct scene scene;
    begin(&scene, CROWD);
    for (uint32_t i = 0; i < scene.count; i++) {
        set_steps(&scene, i, 4711);
    }
    assert_sorted(&scene, BY_STEPS);
    end(&scene);
}

/* ---- what has changed since the look at all ---- */

/* Kept for ever: only what is read anew changes. */
static void look_and_keep(const struct scene *scene)
{
    listing.made = 0;
    listing_renew(&listing, scene->sched);
    listing.cost = HOUR;
}

TEST(listing_leaves_out_what_has_ended)
{
    static struct scene scene;
    skua_process_info infos[LISTING_MAX];
    begin(&scene, 10);
    for (uint32_t i = 0; i < scene.count; i++) {
        set_steps(&scene, i, 1000 + i);
    }
    look_and_keep(&scene);
    blocker_release(&scene.blocker);
    api_wait_end(&scene.api, scene.blocker.pid);
    for (uint32_t i = 0; i < scene.count; i += 2) {
        assert_int_equal(skua_process_terminate(scene.api.runtime, scene.pids[i]), 0);
        api_wait_end(&scene.api, scene.pids[i]);
    }
    const skua_pid late = api_submit(&scene.api, &api_idler, NULL); /* in the place of one */
    api_wait_state(&scene.api, late, SKUA_PROCESS_IDLE);
    listing_renew(&listing, scene.sched);
    assert_int_equal(listing_read(&listing, scene.sched, BY_STEPS, infos, LISTING_MAX), 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(infos[i].pid.bits, scene.pids[9 - 2 * i].bits);
    }
    api_stop(&scene.api);
}

TEST(listing_that_is_kept_has_the_numbers_of_now)
{
    static struct scene scene;
    skua_process_info infos[LISTING_MAX];
    begin(&scene, 3);
    for (uint32_t i = 0; i < 3; i++) {
        set_steps(&scene, i, 1000 + i);
    }
    look_and_keep(&scene);
    set_steps(&scene, 0, 5000);
    listing_renew(&listing, scene.sched);
    assert_int_equal(listing_read(&listing, scene.sched, BY_STEPS, infos, 2), 2);
    assert_int_equal(infos[0].pid.bits, scene.pids[0].bits);
    assert_int_equal(infos[0].steps, 5000);
    assert_int_equal(infos[1].pid.bits, scene.pids[2].bits);
    end(&scene);
}

/* ---- for how long it is kept ---- */

/* With a cost of an hour the moment that the test itself takes does not matter. The clock may have
 * begun later than `made` says; the difference is right all the same. */
static bool is_renewed_after(struct scheduler *sched, uint64_t hours)
{
    const uint64_t made = monotonic_ns() - hours * HOUR;
    listing.made = made;
    listing.cost = HOUR;
    listing_renew(&listing, sched);
    return listing.made != made;
}

TEST(listing_is_kept_for_a_hundred_times_its_cost)
{
    static struct scene scene;
    begin(&scene, 1);
    assert_false(is_renewed_after(scene.sched, 0));
    assert_false(is_renewed_after(scene.sched, 99));
    assert_true(is_renewed_after(scene.sched, 100));
    assert_true(listing.cost < HOUR);
    end(&scene);
}
