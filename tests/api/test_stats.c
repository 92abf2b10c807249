/* SPDX-License-Identifier: MIT */
/* The statistics: counters of programs whose doings are known, the split between workers and the
 * outside, reading while everything runs, and the counters that show how the scheduler works. */

#include "runtime_support.h"

#define WORKERS_MAX 4

/* All of them, and their sum. */
struct reading {
    skua_stats total;
    skua_stats workers[WORKERS_MAX];
    skua_stats sum;
};

static struct reading read_all(const struct api *api, uint32_t workers)
{
    struct reading reading = {0};
    assert_int_equal(skua_stats_read(api->runtime, &reading.total, reading.workers, WORKERS_MAX),
                     workers);
    for (uint32_t i = 0; i < workers; i++) {
#define ADD(name) reading.sum.name += reading.workers[i].name;
        SKUA_STATS_MAP(ADD)
#undef ADD
        assert_int_equal(reading.workers[i].live, 0);
    }
    return reading;
}

/* ---- a program that is known ---- */

#define PARENTS  20
#define CHILDREN 30
#define MESSAGES 7 /* from the parent to each child */

/* A child finishes when all its messages are there. */
struct child {
    uint64_t received;
};

static int child_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    struct child *child = self;
    (void)ctx;
    (void)events;
    child->received += count;
    if (child->received == MESSAGES) {
        skua_step_done(out, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type child_type = {
    .name = "child", .state_size = sizeof(struct child), .step = child_step};

static int parent_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    (void)self;
    (void)events;
    if (count == 0) {
        return 0; /* waits for the word from outside */
    }
    for (int i = 0; i < CHILDREN; i++) {
        skua_pid pid = {0};
        (void)skua_context_spawn(ctx, &child_type, NULL, NULL, 0, &pid);
        for (int k = 0; k < MESSAGES; k++) {
            (void)skua_context_send(ctx, pid, skua_payload_empty(0));
        }
    }
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type parent_type = {.name = "parent", .step = parent_step};

TEST(stats_of_a_known_program_add_up)
{
    const uint32_t workers = test_workers();
    skua_pid parents[PARENTS];
    struct api api;
    api_run(&api, workers);
    for (int i = 0; i < PARENTS; i++) {
        parents[i] = api_submit(&api, &parent_type, NULL);
    }
    struct reading reading = read_all(&api, workers);
    assert_int_equal(reading.total.live, PARENTS);
    assert_int_equal(reading.total.spawned, PARENTS);
    assert_int_equal(reading.total.finished, 0);

    for (int i = 0; i < PARENTS; i++) {
        assert_int_equal(skua_message_send(api.runtime, parents[i], skua_payload_empty(0)), 0);
    }
    api_wait_live(&api, 0);

    reading = read_all(&api, workers);
    assert_int_equal(reading.total.spawned, PARENTS + PARENTS * CHILDREN);
    assert_int_equal(reading.total.finished, PARENTS + PARENTS * CHILDREN);
    assert_int_equal(reading.total.messages, PARENTS + PARENTS * CHILDREN * MESSAGES);
    assert_int_equal(reading.total.late_completions, 0);
    /* What the test itself did is in the total alone. */
    assert_int_equal(reading.sum.spawned, PARENTS * CHILDREN);
    assert_int_equal(reading.sum.messages, PARENTS * CHILDREN * MESSAGES);
    assert_int_equal(reading.sum.finished, reading.total.finished);
    assert_int_equal(reading.sum.steps, reading.total.steps);
    api_stop(&api);
}

TEST(stats_of_a_fresh_runtime_are_zero)
{
    const skua_stats zero = {0};
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 2});

    const struct reading reading = read_all(&api, 2);

    assert_memory_equal(&reading.total, &zero, sizeof zero);
    assert_memory_equal(&reading.workers[0], &zero, sizeof zero);
    assert_memory_equal(&reading.workers[1], &zero, sizeof zero);
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
}

/* ---- steps ---- */

#define LIFETIME 9

static int mortal_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    uint64_t *steps = self;
    (void)ctx;
    (void)events;
    (void)count;
    if (++*steps == LIFETIME) {
        skua_step_done(out, skua_payload_empty(0));
    } else {
        skua_step_continue(out);
    }
    return 0;
}

static const skua_process_type mortal_type = {
    .name = "mortal", .state_size = sizeof(uint64_t), .step = mortal_step};

TEST(stats_count_every_step)
{
    const uint32_t workers = test_workers();
    struct api api;
    api_run(&api, workers);
    for (int i = 0; i < 100; i++) {
        (void)api_submit(&api, &mortal_type, NULL);
    }
    api_wait_live(&api, 0);
    const struct reading reading = read_all(&api, workers);
    assert_int_equal(reading.total.steps, 100 * LIFETIME);
    assert_int_equal(reading.sum.steps, 100 * LIFETIME);
    /* Each pick of a process is counted at the place where it was found. */
    const skua_stats *total = &reading.total;
    const uint64_t picks = total->next_pops + total->local_pops + total->global_pops;
    assert_true(picks + total->stolen >= 100 * ((LIFETIME + 3) / 4));
    api_stop(&api);
}

/* ---- what was not accepted ---- */

static int refuse_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                       size_t input_count)
{
    (void)self;
    (void)ctx;
    (void)method;
    (void)input;
    (void)input_count;
    return SKUA_E_USER;
}

static const skua_process_type never_born = {
    .name = "never born", .init = refuse_init, .step = mortal_step};

TEST(stats_do_not_count_what_was_refused)
{
    struct probe ends = {.habit = PROBE_ENDS};
    struct tracked item = {0};
    struct api api;
    api_run(&api, 1);
    const skua_exit exit = api_run_process(&api, &probe_type, &ends);
    api_wait_live(&api, 0);
    const skua_stats before = api_stats(&api);

    assert_int_equal(skua_message_send(api.runtime, exit.pid, tracked_payload(0, &item)),
                     SKUA_E_NO_PROCESS);
    assert_int_equal(skua_process_submit(api.runtime, &mortal_type, "no such", NULL, 0, NULL),
                     SKUA_E_UNKNOWN_METHOD);
    assert_int_equal(skua_process_submit(api.runtime, &never_born, NULL, NULL, 0, NULL),
                     SKUA_E_USER);

    const skua_stats after = api_stats(&api);
    assert_int_equal(after.messages, before.messages);
    assert_int_equal(after.spawned, before.spawned);
    assert_int_equal(after.live, 0);
    api_stop(&api);
}

/* ---- late completions ---- */

struct late {
    skua_runtime *runtime;
    int first;
    int second;
    skua_completion completion;
    struct tracked results[3];
};

/* Completes twice, on the worker. */
static int complete_twice(void *arg, skua_command *command, skua_payload *result)
{
    struct late *late = arg;
    (void)result;
    late->completion = command->completion;
    late->first = skua_command_complete(command->runtime, command->completion, 0,
                                        tracked_payload(0, &late->results[0]));
    late->second = skua_command_complete(command->runtime, command->completion, 0,
                                         tracked_payload(0, &late->results[1]));
    return SKUA_PENDING;
}

static int yield_once_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                           skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    if (count == 0) {
        return skua_step_yield(out, 5, 0, skua_payload_empty(0));
    }
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type yield_once_type = {.name = "yields once", .step = yield_once_step};

TEST(stats_count_late_completions_where_they_are_made)
{
    struct late late = {.first = 1, .second = 1};
    const skua_handler handler = {.name = "twice", .run = complete_twice, .arg = &late};
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 2});
    assert_int_equal(skua_command_register(api.runtime, 5, &handler), 0);
    api_start(&api);

    (void)api_run_process(&api, &yield_once_type, NULL);
    assert_int_equal(skua_command_complete(api.runtime, late.completion, 0,
                                           tracked_payload(0, &late.results[2])),
                     SKUA_E_LATE);

    assert_int_equal(late.first, 0);
    assert_int_equal(late.second, SKUA_E_LATE);
    assert_drops(late.results, COUNT_OF(late.results), 1);
    const struct reading reading = read_all(&api, 2);
    assert_int_equal(reading.total.late_completions, 2);
    assert_int_equal(reading.sum.late_completions, 1);
    api_stop(&api);
}

/* ---- the arguments ---- */

TEST(stats_fill_only_as_many_workers_as_there_is_room_for)
{
    skua_stats workers[5];
    skua_stats untouched;
    memset(&untouched, 0x5a, sizeof untouched);
    struct api api;
    api_run(&api, 3);

    for (size_t capacity = 0; capacity <= COUNT_OF(workers); capacity++) {
        memset(workers, 0x5a, sizeof workers);
        assert_int_equal(skua_stats_read(api.runtime, NULL, workers, capacity), 3);
        for (size_t i = 0; i < COUNT_OF(workers); i++) {
            const bool filled = memcmp(&workers[i], &untouched, sizeof untouched) != 0;
            assert_int_equal(filled, i < capacity && i < 3);
        }
    }
    assert_int_equal(skua_stats_read(api.runtime, NULL, NULL, 0), 3);
    api_stop(&api);
}

/* ---- reading while everything runs ---- */

struct reader {
    const struct api *api;
    atomic_bool stop;
    uint64_t readings;
    uint32_t shrunk;     /* a counter that was smaller than before */
    uint32_t impossible; /* more alive than there ever were */
};

static uint32_t count_shrunk(const skua_stats *before, const skua_stats *after)
{
    uint32_t shrunk = 0;
#define COMPARE(name) shrunk += after->name < before->name;
    SKUA_STATS_MAP(COMPARE)
#undef COMPARE
    return shrunk;
}

static void *read_all_the_time(void *arg)
{
    struct reader *reader = arg;
    skua_stats before[1 + WORKERS_MAX] = {{0}};
    skua_stats after[1 + WORKERS_MAX] = {{0}};
    do {
        (void)skua_stats_read(reader->api->runtime, &after[0], &after[1], WORKERS_MAX);
        for (size_t i = 0; i < COUNT_OF(after); i++) {
            reader->shrunk += count_shrunk(&before[i], &after[i]);
        }
        reader->impossible += after[0].live > after[0].spawned;
        memcpy(before, after, sizeof before);
        reader->readings++;
    } while (!atomic_load(&reader->stop));
    return NULL;
}

TEST(stats_read_while_running_only_grow)
{
    struct api api;
    api_run(&api, 2);
    struct reader reader = {.api = &api};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_all_the_time, &reader), 0);

    for (int i = 0; i < 100; i++) {
        const skua_pid pid = api_submit(&api, &parent_type, NULL);
        assert_int_equal(skua_message_send(api.runtime, pid, skua_payload_empty(0)), 0);
    }
    api_wait_live(&api, 0);

    atomic_store(&reader.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(reader.readings > 0);
    assert_int_equal(reader.shrunk, 0);
    assert_int_equal(reader.impossible, 0);
    assert_int_equal(api_stats(&api).finished, 100 * (1 + CHILDREN));
    api_stop(&api);
}

/* ---- how the scheduler works ---- */

#define MANY 3000

/* More than a deque holds, in one step. */
static void spawn_many(void *arg, skua_context *ctx, skua_step *out)
{
    uint32_t *spawned = arg;
    (void)out;
    for (int i = 0; i < MANY; i++) {
        *spawned += skua_context_spawn(ctx, &mortal_type, NULL, NULL, 0, NULL) == 0;
    }
}

TEST(stats_show_where_processes_are_picked_and_spilled)
{
    uint32_t spawned = 0;
    struct api api;
    api_run(&api, 1);

    api_in_step(&api, spawn_many, &spawned);

    api_wait_live(&api, 0);
    assert_int_equal(spawned, MANY);
    const skua_stats total = api_stats(&api);
    assert_true(total.spills > 0);
    assert_true(total.next_pops > 0);
    assert_true(total.local_pops > 0);
    assert_true(total.global_pops > 0);
    assert_int_equal(total.steal_attempts, 0); /* there is nobody to steal from */
    assert_int_equal(total.steal_successes, 0);
    assert_int_equal(total.stolen, 0);
    assert_int_equal(total.finished, MANY + 1);
    assert_int_equal(total.steps, 1 + MANY * LIFETIME);
    api_stop(&api);
}

/* A step that goes on until another worker has run one of the processes it has spawned. */
struct theft {
    struct tally ran;
    int spawned;
};

static int loot_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    struct theft *theft = api_world(self);
    (void)ctx;
    (void)events;
    (void)count;
    tally_add(&theft->ran, 1);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type loot_type = {
    .name = "loot", .state_size = sizeof(void *), .init = api_init_world, .step = loot_step};

static void be_robbed(void *arg, skua_context *ctx, skua_step *out)
{
    struct theft *theft = arg;
    (void)out;
    for (int i = 0; i < 2; i++) { /* the second pushes the first out of the next slot */
        skua_payload input = api_world_payload(theft);
        theft->spawned += skua_context_spawn(ctx, &loot_type, NULL, &input, 1, NULL) == 0;
    }
    tally_wait(&theft->ran, 1);
}

TEST(stats_show_thefts)
{
    struct theft theft = {0};
    tally_init(&theft.ran);
    struct api api;
    api_run(&api, 2);

    api_in_step(&api, be_robbed, &theft);

    tally_wait(&theft.ran, 2);
    assert_int_equal(theft.spawned, 2);
    const struct reading reading = read_all(&api, 2);
    assert_true(reading.total.steal_successes >= 1);
    assert_true(reading.total.stolen >= reading.total.steal_successes);
    assert_true(reading.total.steal_attempts >= reading.total.steal_successes);
    assert_true(reading.total.searching_ns > 0);
    assert_int_equal(reading.sum.stolen, reading.total.stolen);
    api_stop(&api);
}

static bool all_have_parked(void *arg)
{
    const struct api *api = arg;
    skua_stats workers[WORKERS_MAX];
    const int count = skua_stats_read(api->runtime, NULL, workers, WORKERS_MAX);
    for (int i = 0; i < count; i++) {
        if (workers[i].parks == 0) {
            return false;
        }
    }
    return true;
}

TEST(stats_show_parking_and_waking)
{
    const uint32_t workers = test_workers();
    struct probe ends = {.habit = PROBE_ENDS};
    struct api api;
    api_run(&api, workers);
    wait_until(all_have_parked, &api, "workers to park");
    const struct reading before = read_all(&api, workers);
    assert_int_equal(before.total.wakes, 0);

    (void)api_run_process(&api, &probe_type, &ends);

    /* With everybody asleep, only being woken can have run it; this thread did it. */
    const struct reading after = read_all(&api, workers);
    assert_int_equal(after.total.wakes - after.sum.wakes, 1);
    assert_true(after.total.steps > before.total.steps);
    api_stop(&api);
}
