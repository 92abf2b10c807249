/* SPDX-License-Identifier: MIT */
/* Handlers that want to hear of yields which they have left pending and which nobody waits for any
 * more: they are told once, unless a completion was accepted, whatever comes at the same time. */
#include <sched.h>

#include "actor.h"
#include "desk.h"
#include "runtime/runtime.h"
#include "sched/deliver.h"
#include "threads.h"

#define WATCHED  UINT32_C(300) /* a command whose handler is told */
#define KEPT_MAX 4096

/* What the handler does with a yield. */
enum habit { LEAVES, ENDS, ENDS_LATE, COMPLETES };

static struct {
    enum habit habit;
    pthread_mutex_t lock;
    skua_completion kept[KEPT_MAX]; /* in the order of the calls */
    atomic_uint told[KEPT_MAX];     /* that nobody waits for it */
    atomic_uint strangers;          /* what nobody has kept */
    atomic_uint accepted;           /* completions that abandon itself makes: none may be */
    struct tally kept_count;
    struct tally told_count;
} handler;

static uint64_t keep(skua_completion completion)
{
    (void)pthread_mutex_lock(&handler.lock);
    const uint64_t n = tally_count(&handler.kept_count);
    handler.kept[n % KEPT_MAX] = completion;
    tally_add(&handler.kept_count, 1);
    (void)pthread_mutex_unlock(&handler.lock);
    return n;
}

static int run(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)result;
    (void)keep(command->completion);
    switch (handler.habit) {
    case LEAVES:
        return SKUA_PENDING;
    case ENDS:
        return 0;
    case ENDS_LATE:
        while (deliver_is_open(&world_runtime()->sched, command->completion)) {
            (void)sched_yield(); /* until another thread has seen that its time is up */
        }
        return 0;
    case COMPLETES:
        return skua_command_complete(command->runtime, command->completion, 0, skua_nothing()) == 0
                   ? SKUA_PENDING
                   : SKUA_E_USER;
    }
    return SKUA_E_USER;
}

static void abandon(void *arg, skua_runtime *runtime, skua_completion completion)
{
    bool known = false;
    (void)pthread_mutex_lock(&handler.lock);
    const uint64_t count = tally_count(&handler.kept_count);
    for (uint64_t i = 0; i < count && !known && arg == &handler; i++) {
        known = handler.kept[i].call == completion.call &&
                skua_pid_equal(handler.kept[i].process, completion.process);
        handler.told[i] += known;
    }
    (void)pthread_mutex_unlock(&handler.lock);
    handler.strangers += !known;
    handler.accepted += skua_command_complete(runtime, completion, 0, skua_nothing()) == 0;
    tally_add(&handler.told_count, 1);
}

static const skua_handler watched = {
    .name = "watched", .run = run, .arg = &handler, .sim_safe = true, .abandon = abandon};

static void prepare(enum habit habit)
{
    memset(&handler, 0, sizeof handler);
    handler.habit = habit;
    (void)pthread_mutex_init(&handler.lock, NULL);
    tally_init(&handler.kept_count);
    tally_init(&handler.told_count);
    world_register_handler(WATCHED, watched);
}

static void open_with(enum habit habit)
{
    world_create((skua_runtime_config){0});
    prepare(habit);
    world_start();
}

static void open_virtual(enum habit habit)
{
    world_create_virtual((skua_runtime_config){0});
    prepare(habit);
    world_start();
}

/* That exactly these were told, and that all was in order. */
static void assert_told(uint64_t count)
{
    uint64_t told = 0;
    for (size_t i = 0; i < KEPT_MAX; i++) {
        assert_in_range(handler.told[i], 0, 1);
        told += handler.told[i];
    }
    assert_int_equal(told, count);
    assert_int_equal(tally_count(&handler.told_count), count);
    assert_int_equal(handler.strangers, 0);
    assert_int_equal(handler.accepted, 0);
}

static int complete(size_t n)
{
    return skua_command_complete(world_runtime(), handler.kept[n], 0, skua_nothing());
}

/* ---- one at a time ---- */

TEST(handler_hears_of_a_yield_that_is_taken_back)
{
    open_with(LEAVES);
    struct actor *actor = actor_start(ACTS(yields(1, WATCHED, 0, 0), yields(2, WATCHED, 0, 0)));
    tally_wait(&handler.kept_count, 2);
    actor_perform(actor, ACTS(cancels(1), awaits(1)));
    assert_int_equal(handler.told[0], 1);
    assert_told(1);
    assert_int_equal(complete(0), SKUA_E_LATE);
    assert_int_equal(complete(1), 0);
    actor_await_seen(actor, 2);
    world_close();
    assert_told(1);
    assert_saw(actor, failure(1, SKUA_E_CANCELLED), completion(2, 0), cancel(SKUA_E_STOPPED));
}

TEST(handler_hears_of_a_yield_that_is_taken_back_in_its_own_step)
{
    open_with(LEAVES);
    struct actor *actor = actor_new(ACTS(yields(1, WATCHED, 0, 0), cancels(1),
                                         expects(failure(1, SKUA_E_CANCELLED)), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_told(1);
}

TEST(handler_hears_of_a_yield_that_times_out)
{
    open_virtual(LEAVES);
    struct actor *actor = actor_start(ACTS(within(SKUA_SECOND, yields(1, WATCHED, 0, 0)),
                                           within(3 * SKUA_SECOND, yields(2, WATCHED, 0, 0))));
    world_settle();
    assert_told(0);
    world_advance(2 * SKUA_SECOND);
    assert_saw(actor, failure(1, SKUA_E_TIMEOUT));
    assert_int_equal(handler.told[0], 1);
    assert_told(1);
    assert_int_equal(complete(0), SKUA_E_LATE);
    assert_int_equal(complete(1), 0);
    world_advance(2 * SKUA_SECOND);
    assert_told(1);
}

TEST(handler_hears_of_a_yield_that_is_given_no_time)
{
    open_with(LEAVES);
    struct actor *actor = actor_new(ACTS(within(0, yields(1, WATCHED, 0, 0)),
                                         expects(failure(1, SKUA_E_TIMEOUT)), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_told(1);
}

/* Done, failed, terminated, cancelled, or ended by the stop. */
TEST(handler_hears_of_the_yields_of_a_process_that_ends)
{
    enum { WAYS = 6 };
    FOR_ROUNDS (way, WAYS) {
        open_with(LEAVES);
        const struct act many = for_each_tag(50, yields(0, WATCHED, 0, 0));
        const struct act one = within(SKUA_DURATION_MAX, yields(77, WATCHED, 0, 0));
        struct actor *actor = actor_new(way == 1   ? ACTS(many, one, finishes(0))
                                        : way == 2 ? ACTS(many, one, continues(1), fails(-1))
                                                   : ACTS(many, one));
        actor->ignores_cancel = way == 5;
        actor_submit(actor);
        tally_wait(&handler.kept_count, 51);
        switch (way) {
        case 3:
            assert_int_equal(world_terminate(actor->pid), 0);
            break;
        case 4:
            assert_int_equal(world_cancel(actor->pid, 0), 0);
            break;
        case 5:
            world_expect_survivors();
            break;
        default:
            break;
        }
        if (way < 5) {
            actor_await_end(actor);
            assert_told(51);
        }
        world_close();
        assert_told(51);
    }
}

TEST(handler_hears_nothing_of_yields_of_a_failing_step)
{
    open_with(LEAVES);
    assert_failed(actor_run(actor_new(ACTS(yields(1, WATCHED, 0, 0), fails(SKUA_E_USER)))),
                  SKUA_E_USER);
    assert_int_equal(tally_count(&handler.kept_count), 0);
    assert_told(0);
}

TEST(handler_hears_nothing_of_what_it_has_completed)
{
    static const enum habit habits[] = {ENDS, COMPLETES};
    FOR_ROWS (habit, habits) {
        open_with(*habit);
        struct actor *actor = actor_start(
            ACTS(yields(1, WATCHED, 0, 0), within(SKUA_DURATION_MAX, yields(2, WATCHED, 0, 0)),
                 within(0, yields(3, WATCHED, 0, 0)), yields(4, WATCHED, 0, 0), cancels(4),
                 expects(completion(1, 0)), expects(completion(2, 0)), expects(completion(3, 0)),
                 expects(completion(4, 0)), yields(5, WATCHED, 0, 0), finishes(0)));
        actor_await_end(actor);
        world_close();
        assert_int_equal(tally_count(&handler.kept_count), 5);
        assert_told(0);
    }
}

/* Its time is up while its handler runs: what the handler returns is late, but it has left nothing
 * pending. */
TEST(handler_that_returns_too_late_hears_nothing)
{
    open_with(ENDS_LATE);
    struct actor *actor = actor_new(ACTS(within(SKUA_MILLISECOND, yields(1, WATCHED, 0, 0)),
                                         expects(failure(1, SKUA_E_TIMEOUT)), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_int_equal(world_stats().late_completions, 1);
    assert_told(0);
}

/* ---- with an index, and beside others ---- */

TEST(handler_hears_of_many_yields_taken_back_in_any_order)
{
    enum { MANY = 600 };
    struct desk *desk;
    world_create((skua_runtime_config){0});
    desk = desk_open();
    prepare(LEAVES);
    world_start();
    struct actor *actor = actor_start(ACTS(for_each_tag(MANY, yields(0, WATCHED, 0, 0)),
                                           for_each_tag(MANY, yields(0, DESK_KEEP, 0, 0))));
    tally_wait(&handler.kept_count, MANY);
    desk_await_kept(desk, MANY);
    for (uint64_t tag = 0; tag < MANY; tag += 7) {
        actor_perform(actor, ACTS(cancels(tag), awaits(2)));
    }
    const uint64_t cancelled = (MANY + 6) / 7;
    assert_told(cancelled);
    assert_int_equal(world_terminate(actor->pid), 0);
    actor_await_end(actor);
    world_close();
    assert_told(MANY);
}

/* ---- in the simulator ---- */

TEST(handler_hears_of_each_yield_once_in_simulations)
{
    FOR_ROUNDS (seed, 100) {
        const uint32_t rate = seed % 2 == 0 ? 0 : 200000;
        world_create_sim(seed, (skua_sim_config){.faults = {.slow_completion = rate,
                                                            .handler_error = rate / 4,
                                                            .process_kill = rate / 20,
                                                            .spurious_wake = rate}});
        prepare(seed % 3 == 0 ? ENDS : LEAVES);
        world_start();
        const struct act some = for_each_tag(5, yields(0, WATCHED, 0, 0));
        const struct act timed =
            for_each_tag(5, within(SKUA_MILLISECOND, yields(0, WATCHED, 0, 0)));
        for (int i = 0; i < 10; i++) {
            struct actor *actor = actor_new(ACTS(some, timed, cancels(2), cancels(3)));
            actor->ignores_cancel = i % 3 == 0;
            actor_submit(actor);
        }
        world_expect_survivors();
        world_settle();
        world_close();
        if (handler.habit == ENDS) {
            assert_told(0); /* also of what a fault has put off */
        } else {
            assert_told(tally_count(&handler.kept_count));
        }
    }
}

/* ---- races ---- */

#define RACE_ROUNDS 300

/* Completes each yield in turn; returns how many of the completions were accepted, one by one. */
struct completer {
    unsigned accepted[RACE_ROUNDS];
};

static void complete_all(void *arg)
{
    struct completer *completer = arg;
    for (size_t i = 0; i < RACE_ROUNDS; i++) {
        tally_wait(&handler.kept_count, i + 1);
        for (unsigned pause = 0; pause < i % 5; pause++) {
            (void)sched_yield();
        }
        completer->accepted[i] = complete(i) == 0;
    }
}

/* Meanwhile each yield times out, is taken back, or loses its process. */
static void end_each(void)
{
    for (size_t i = 0; i < RACE_ROUNDS; i++) {
        const struct act asks =
            within(i % 3 == 0 ? SKUA_CLOCK_RESOLUTION_NS : SKUA_FOREVER, yields(1, WATCHED, 0, 0));
        struct actor *actor = i % 3 == 1 ? actor_start(ACTS(asks, continues(1), cancels(1)))
                                         : actor_start(ACTS(asks));
        tally_wait(&handler.kept_count, i + 1);
        if (i % 3 != 1) {
            (void)world_terminate(actor->pid);
        }
    }
}

TEST(handler_either_completes_or_hears)
{
    struct completer *completers = test_alloc(2 * sizeof *completers);
    open_with(LEAVES);
    struct thread *first = thread_start(complete_all, &completers[0]);
    struct thread *second = thread_start(complete_all, &completers[1]);
    end_each();
    thread_join(first);
    thread_join(second);
    world_close();
    for (size_t i = 0; i < RACE_ROUNDS; i++) {
        assert_int_equal(completers[0].accepted[i] + completers[1].accepted[i] + handler.told[i],
                         1);
    }
    assert_int_equal(handler.strangers, 0);
    assert_int_equal(handler.accepted, 0);
}
