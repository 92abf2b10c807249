/* SPDX-License-Identifier: MIT */
/* The thread sanitizer sees through switches of stacks: a race of two tasks is one, and whatever
 * passes from task to task in a message is not. In other builds nothing looks. */
#include <skua/task.h>

#include "errand.h"

#if defined(__SANITIZE_THREAD__)
#define HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_TSAN 1
#endif
#endif
#ifndef HAS_TSAN
#define HAS_TSAN 0
#endif

#define ROUNDS 1000

static unsigned shared;
static unsigned handed_on;
static atomic_uint reports;

/* What the sanitizer calls, and asks: reports are counted here, not failures of the program. */
void count_report(void *report) __asm__("__tsan_on_report");
void count_report(void *report)
{
    (void)report;
    (void)atomic_fetch_add(&reports, 1);
}

const char *sanitizer_options(void) __asm__("__tsan_default_options");
const char *sanitizer_options(void)
{
    return "exitcode=0:log_path=/dev/null";
}

/* Writes to what another writes to, and pauses. The tally brings no order after the first round. */
static int races(struct errand *errand, skua_context *ctx)
{
    tally_add(errand->arg, 1);
    tally_wait(errand->arg, 2);
    for (int i = 0; i < ROUNDS; i++) {
        shared++;
        CHECK(errand, skua_task_pause(ctx) == 0);
    }
    return 0;
}

TEST(race_of_two_tasks_is_seen)
{
    struct tally present;
    tally_init(&present);
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct errand *one = errand_new(races);
    struct errand *two = errand_new(races);
    one->arg = two->arg = &present;
    errand_submit(one);
    errand_submit(two);
    assert_errand_ended(one, 0);
    assert_errand_ended(two, 0);
    world_close();
    assert_true(!HAS_TSAN || atomic_load(&reports) > 0);
}

/* Writes when it is its turn, and hands that on. */
static int takes_turns(struct errand *errand, skua_context *ctx)
{
    skua_event *event;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(errand, skua_task_receive(ctx, &event, SKUA_FOREVER) == 0);
        handed_on++;
        (void)skua_send(ctx, errand->other, skua_payload_empty(0)); /* it may have ended */
        CHECK(errand, skua_task_pause(ctx) == 0);
    }
    return 0;
}

TEST(tasks_that_take_turns_do_not_race)
{
    const unsigned before = atomic_load(&reports);
    handed_on = 0;
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct errand *one = errand_new(takes_turns);
    struct errand *two = errand_new(takes_turns);
    errand_submit(two);
    one->other = two->pid;
    errand_submit(one);
    two->other = one->pid; /* before the first message */
    errand_send(one, 0, 0);
    assert_errand_ended(one, 0);
    assert_errand_ended(two, 0);
    world_close();
    assert_int_equal(handed_on, 2 * ROUNDS);
    assert_int_equal(atomic_load(&reports), before);
}
