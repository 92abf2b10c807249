/* SPDX-License-Identifier: MIT */
/* The statistics: counters of programs whose doings are known, the split between workers and the
 * outside, reading while everything runs, and the counters that show how the scheduler works. */
#include "crowd.h"

#define WORKERS_MAX 4

/* All of them, and their sum. */
struct reading {
    skua_stats total;
    skua_stats workers[WORKERS_MAX];
    skua_stats sum;
    int count;
};

static struct reading read_stats(skua_runtime *runtime)
{
    struct reading reading = {0};
    reading.count = skua_stats_read(runtime, &reading.total, reading.workers, WORKERS_MAX);
    for (int i = 0; i < reading.count; i++) {
#define ADD(name) reading.sum.name += reading.workers[i].name;
        SKUA_STATS_MAP(ADD)
#undef ADD
        assert_int_equal(reading.workers[i].live, 0);
    }
    return reading;
}

static struct reading read_all(void)
{
    return read_stats(world_runtime());
}

/* ---- programs that are known ---- */

TEST(stats_of_a_fresh_runtime_are_zero)
{
    const struct reading zero = {.count = 2};
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 2});
    const struct reading reading = read_stats(api.runtime);
    assert_memory_equal(&reading, &zero, sizeof zero);
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
}

#define PARENTS  20
#define CHILDREN 30
#define MESSAGES 7 /* from the parent to each child */

/* On a word from outside a parent spawns its children and writes to them; a child finishes when all
 * its messages are there. */
static struct actor *start_parent(void)
{
    struct act acts[1 + 3 * CHILDREN + 1];
    size_t count = 0;
    acts[count++] = awaits(1);
    for (int i = 0; i < CHILDREN; i++) {
        struct actor *child = actor_new(ACTS(awaits(MESSAGES), finishes(0)));
        acts[count++] = spawns(child);
        acts[count++] = for_each_tag(MESSAGES, sends(child, 0, 0));
    }
    acts[count++] = finishes(0);
    return actor_start(script_copy(acts, count));
}

TEST(stats_of_a_known_program_add_up)
{
    struct actor *parents[PARENTS];
    world_open();
    for (int i = 0; i < PARENTS; i++) {
        parents[i] = start_parent();
    }
    struct reading reading = read_all();
    assert_int_equal(reading.count, test_workers());
    assert_int_equal(reading.total.live, PARENTS);
    assert_int_equal(reading.total.spawned, PARENTS);
    assert_int_equal(reading.total.finished, 0);
    for (int i = 0; i < PARENTS; i++) {
        assert_int_equal(world_send(parents[i]->pid, skua_payload_empty(0)), 0);
    }
    world_await_live(0);
    reading = read_all();
    assert_int_equal(reading.total.spawned, PARENTS + PARENTS * CHILDREN);
    assert_int_equal(reading.total.finished, PARENTS + PARENTS * CHILDREN);
    assert_int_equal(reading.total.messages, PARENTS + PARENTS * CHILDREN * MESSAGES);
    assert_int_equal(reading.total.late_completions, 0);
    /* What the test itself did is in the total alone. */
    assert_int_equal(reading.sum.spawned, PARENTS * CHILDREN);
    assert_int_equal(reading.sum.messages, PARENTS * CHILDREN * MESSAGES);
    assert_int_equal(reading.sum.finished, reading.total.finished);
    assert_int_equal(reading.sum.steps, reading.total.steps);
}

#define LIFETIME 9 /* steps */

TEST(stats_count_every_step)
{
    world_open();
    crowd_submit(crowd_new(100, ACTS(continues(LIFETIME - 1), finishes(0))));
    world_await_live(0);
    const struct reading reading = read_all();
    assert_int_equal(reading.total.steps, 100 * LIFETIME);
    assert_int_equal(reading.sum.steps, 100 * LIFETIME);
    /* Each pick of a process is counted at the place where it was found. */
    const skua_stats *total = &reading.total;
    const uint64_t picks = total->next_pops + total->local_pops + total->global_pops;
    assert_true(picks + total->stolen >= 100);
}

TEST(stats_do_not_count_what_was_refused)
{
    struct tracked item = {0};
    world_open();
    struct actor *ended = actor_new(ACTS(finishes(0)));
    assert_result(actor_run(ended), 0);
    world_await_live(0);
    const skua_stats before = world_stats();

    assert_int_equal(world_send(ended->pid, tracked_payload(0, &item)), SKUA_E_NO_PROCESS);
    assert_int_equal(
        skua_process_submit_with(
            world_runtime(), &(skua_spawn_options){.type = &api_idler, .method = "no such"}, NULL),
        SKUA_E_UNKNOWN_METHOD);
    struct actor *never_born = actor_new(NO_ACTS);
    never_born->init_returns = SKUA_E_USER;
    assert_int_equal(actor_try_submit(never_born), SKUA_E_USER);

    const skua_stats after = world_stats();
    assert_int_equal(after.messages, before.messages);
    assert_int_equal(after.spawned, before.spawned);
    assert_int_equal(after.live, 0);
}

/* ---- late completions ---- */

struct late {
    int errors[2];
    skua_completion completion;
    struct tracked results[3];
};

/* On the worker. */
static int complete_twice(void *arg, skua_command *command, skua_payload *result)
{
    struct late *late = arg;
    (void)result;
    late->completion = command->completion;
    for (size_t i = 0; i < 2; i++) {
        late->errors[i] = skua_command_complete(command->runtime, command->completion, 0,
                                                tracked_payload(0, &late->results[i]));
    }
    return SKUA_PENDING;
}

TEST(stats_count_late_completions_where_they_are_made)
{
    struct late late = {.errors = {1, 1}};
    world_create((skua_runtime_config){0});
    world_register(5, complete_twice, &late);
    world_start();
    assert_result(actor_run(actor_new(ACTS(yields(0, 5, 0, 0), awaits(1), finishes(0)))), 0);
    assert_int_equal(skua_command_complete(world_runtime(), late.completion, 0,
                                           tracked_payload(0, &late.results[2])),
                     SKUA_E_LATE);
    assert_int_equal(late.errors[0], 0);
    assert_int_equal(late.errors[1], SKUA_E_LATE);
    assert_drops(late.results, COUNT_OF(late.results), 1);
    const struct reading reading = read_all();
    assert_int_equal(reading.total.late_completions, 2);
    assert_int_equal(reading.sum.late_completions, 1);
}

/* ---- reading ---- */

TEST(stats_fill_only_as_many_workers_as_there_is_room_for)
{
    skua_stats workers[5];
    skua_stats untouched;
    memset(&untouched, 0x5a, sizeof untouched);
    world_open_with((skua_runtime_config){.worker_count = 3});
    for (size_t capacity = 0; capacity <= COUNT_OF(workers); capacity++) {
        memset(workers, 0x5a, sizeof workers);
        assert_int_equal(skua_stats_read(world_runtime(), NULL, workers, capacity), 3);
        for (size_t i = 0; i < COUNT_OF(workers); i++) {
            const bool filled = memcmp(&workers[i], &untouched, sizeof untouched) != 0;
            assert_int_equal(filled, i < capacity && i < 3);
        }
    }
    assert_int_equal(skua_stats_read(world_runtime(), NULL, NULL, 0), 3);
}

struct reader {
    atomic_bool stop;
    uint64_t readings;
    uint32_t shrunk;     /* a counter that was smaller than before */
    uint32_t impossible; /* more alive than there ever were */
};

static void *read_all_the_time(void *arg)
{
    struct reader *reader = arg;
    skua_stats before[1 + WORKERS_MAX] = {{0}};
    skua_stats after[1 + WORKERS_MAX] = {{0}};
    do {
        (void)skua_stats_read(world_runtime(), &after[0], &after[1], WORKERS_MAX);
        for (size_t i = 0; i < COUNT_OF(after); i++) {
#define COMPARE(name) reader->shrunk += after[i].name < before[i].name;
            SKUA_STATS_MAP(COMPARE)
#undef COMPARE
        }
        reader->impossible += after[0].live > after[0].spawned;
        memcpy(before, after, sizeof before);
        reader->readings++;
    } while (!atomic_load(&reader->stop));
    return NULL;
}

TEST(stats_read_while_running_only_grow)
{
    struct reader reader = {0};
    pthread_t thread;
    world_open();
    assert_int_equal(pthread_create(&thread, NULL, read_all_the_time, &reader), 0);
    for (int i = 0; i < 100; i++) {
        const struct actor *parent = start_parent();
        assert_int_equal(world_send(parent->pid, skua_payload_empty(0)), 0);
    }
    world_await_live(0);
    atomic_store(&reader.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(reader.readings > 0);
    assert_int_equal(reader.shrunk, 0);
    assert_int_equal(reader.impossible, 0);
    assert_int_equal(world_stats().finished, 100 * (1 + CHILDREN));
}

/* ---- how the scheduler works ---- */

TEST(stats_show_where_processes_are_picked_and_spilled)
{
    enum { MANY = 3000, FEW = 10 }; /* the first are more than a deque holds */
    world_open_with((skua_runtime_config){.worker_count = 1});
    const struct crowd crowd = crowd_new(MANY, ACTS(continues(LIFETIME - 1), finishes(0)));
    assert_result(actor_run(actor_new(ACTS(spawns_crowd(crowd), finishes(0)))), 0);
    for (int i = 0; i < FEW; i++) {
        struct actor *child = actor_new(ACTS(finishes(0)));
        assert_result(actor_run(actor_new(ACTS(spawns(child), finishes(0)))), 0);
    }
    world_await_live(0);
    const skua_stats total = world_stats();
    assert_true(total.spills > 0);
    assert_true(total.next_pops > 0);
    assert_true(total.local_pops > 0);
    assert_true(total.global_pops > 0);
    assert_int_equal(total.steal_attempts, 0); /* there is nobody to steal from */
    assert_int_equal(total.steal_successes, 0);
    assert_int_equal(total.stolen, 0);
    assert_int_equal(total.finished, MANY + 1 + 2 * FEW);
    assert_int_equal(total.steps, 1 + MANY * LIFETIME + 2 * FEW);
}

TEST(worker_without_work_takes_one_and_moves_sixteen)
{
    enum { BATCHES = 20 };
    world_open_virtual_with((skua_runtime_config){.worker_count = 1}); /* the clock stands still */
    struct actor *holder = actor_start(ACTS(holds(), finishes(0)));
    actor_await_held(holder, 1);
    const skua_stats before = world_stats();
    crowd_submit(crowd_new(17 * BATCHES, ACTS(finishes(0))));
    actor_let_go(holder);
    world_await_live(0);
    const skua_stats after = world_stats();
    assert_int_equal(after.global_pops - before.global_pops, 17 * BATCHES);
    /* All but one of each batch come through the deque; fairness may take one alone. */
    assert_in_range(after.local_pops - before.local_pops, 16 * BATCHES - 1, 16 * BATCHES);
}

/* A step goes on until another worker has run one of the processes it has spawned. */
TEST(stats_show_thefts)
{
    struct tally ran;
    tally_init(&ran);
    world_open_with((skua_runtime_config){.worker_count = 2});
    /* Two of them: the second pushes the first out of the next slot. */
    const struct crowd loot = crowd_new(2, ACTS(counts(&ran), finishes(0)));
    assert_result(
        actor_run(actor_new(ACTS(spawns_crowd(loot), awaits_count(&ran, 1), finishes(0)))), 0);
    crowd_await_end(loot);
    const struct reading reading = read_all();
    assert_true(reading.total.steal_successes >= 1);
    assert_true(reading.total.stolen >= reading.total.steal_successes);
    assert_true(reading.total.steal_attempts >= reading.total.steal_successes);
    assert_true(reading.total.searching_ns > 0);
    assert_int_equal(reading.sum.stolen, reading.total.stolen);
}

static bool all_have_parked(void *arg)
{
    const struct reading reading = read_all();
    (void)arg;
    for (int i = 0; i < reading.count; i++) {
        if (reading.workers[i].parks == 0) {
            return false;
        }
    }
    return true;
}

TEST(stats_show_parking_and_waking)
{
    world_open();
    wait_until(all_have_parked, NULL, "workers to park");
    const struct reading before = read_all();
    assert_int_equal(before.total.wakes, 0);
    assert_result(actor_run(actor_new(ACTS(finishes(0)))), 0);
    /* With everybody asleep, only being woken can have run it; this thread did it. */
    const struct reading after = read_all();
    assert_int_equal(after.total.wakes - after.sum.wakes, 1);
    assert_true(after.total.steps > before.total.steps);
}
