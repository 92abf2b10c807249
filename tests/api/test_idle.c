/* SPDX-License-Identifier: MIT */
/* Sleeping and waking: a runtime with nothing to do does nothing at all (G2, INV-12); work that
 * comes while its workers sleep always runs (G3 to G5); work for several workers is done by
 * several. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "runtime/runtime.h"
#include "runtime_support.h"

#define WORKERS_MAX 4

/* ---- what the kernel says about threads ---- */

#define THREADS_MAX 64

/* The threads of this program, as their ids. */
struct threads {
    uint32_t count;
    long ids[THREADS_MAX];
};

static struct threads list_threads(void)
{
    struct threads threads = {0};
    DIR *directory = opendir("/proc/self/task");
    assert_non_null(directory);
    for (const struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        if (entry->d_name[0] != '.' && threads.count < THREADS_MAX) {
            threads.ids[threads.count++] = strtol(entry->d_name, NULL, 10);
        }
    }
    (void)closedir(directory);
    return threads;
}

static bool contains(const struct threads *threads, long id)
{
    for (uint32_t i = 0; i < threads->count; i++) {
        if (threads->ids[i] == id) {
            return true;
        }
    }
    return false;
}

/* Those that are in `all` and not in `others`. */
static struct threads difference(const struct threads *all, const struct threads *others)
{
    struct threads rest = {0};
    for (uint32_t i = 0; i < all->count; i++) {
        if (!contains(others, all->ids[i])) {
            rest.ids[rest.count++] = all->ids[i];
        }
    }
    return rest;
}

struct thread_status {
    char state; /* S: sleeping */
    uint64_t switches;
};

static struct thread_status read_status(long id)
{
    struct thread_status status = {0};
    char path[64];
    char line[256];
    (void)snprintf(path, sizeof path, "/proc/self/task/%ld/status", id);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        uint64_t number;
        (void)sscanf(line, "State: %c", &status.state);
        if (sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &number) == 1 ||
            sscanf(line, "nonvoluntary_ctxt_switches: %" SCNu64, &number) == 1) {
            status.switches += number;
        }
    }
    (void)fclose(file);
    return status;
}

/* Context switches of all these threads. */
static uint64_t sum_of_switches(const struct threads *threads)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < threads->count; i++) {
        sum += read_status(threads->ids[i]).switches;
    }
    return sum;
}

/* ---- idle is idle ---- */

/* All workers parked and asleep, and so is the monitor; looked at from outside. */
struct dormitory {
    const struct api *api;
    struct threads threads;
    skua_stats before; /* the last look */
};

static bool all_sleep(void *arg)
{
    struct dormitory *dormitory = arg;
    skua_stats workers[WORKERS_MAX];
    skua_stats now;
    const int count = skua_stats_read(dormitory->api->runtime, &now, workers, WORKERS_MAX);
    bool asleep = now.steps == dormitory->before.steps && now.parks == dormitory->before.parks &&
                  load_seq_cst(&dormitory->api->runtime->sched.monitor_asleep) != 0;
    dormitory->before = now;
    for (int i = 0; i < count && i < WORKERS_MAX; i++) {
        asleep = asleep && workers[i].parks > 0;
    }
    for (uint32_t i = 0; i < dormitory->threads.count; i++) {
        asleep = asleep && read_status(dormitory->threads.ids[i]).state == 'S';
    }
    return asleep;
}

#define POPULATION 10000

TEST(idle_runtime_with_many_processes_never_runs)
{
    const struct threads before = list_threads();
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = WORKERS_MAX,
                                           .stall_limit_ns = 10 * SKUA_MILLISECOND});
    api_start(&api);
    const struct threads all = list_threads();
    struct dormitory dormitory = {.api = &api, .threads = difference(&all, &before)};
    assert_int_equal(dormitory.threads.count, WORKERS_MAX + 1);
    for (int i = 0; i < POPULATION; i++) {
        (void)api_submit(&api, &api_idler, NULL);
    }
    wait_until(all_sleep, &dormitory, "all threads to sleep");
    const skua_stats stats = api_stats(&api);
    assert_int_equal(stats.live, POPULATION);
    const uint64_t switches = sum_of_switches(&dormitory.threads);

    /* The length of the observation; nothing is synchronised by it. */
    const struct timespec window = {.tv_sec = 1};
    (void)nanosleep(&window, NULL);

    const uint64_t later = sum_of_switches(&dormitory.threads);
    const skua_stats stats_later = api_stats(&api);
    assert_int_equal(later, switches);
    assert_memory_equal(&stats_later, &stats, sizeof stats);
    api_stop(&api);
}

/* ---- no wake-up is lost ---- */

/* A random number of turns, up to a few microseconds: about as long as a worker takes to fall
 * asleep, so that work comes at every moment of that. */
static void pause_randomly(uint64_t *seed)
{
    const uint64_t turns = seed_next(seed) % 3000;
    for (uint64_t i = 0; i < turns; i++) {
        atomic_signal_fence(memory_order_seq_cst); /* not optimized away */
    }
}

TEST(idle_runtime_runs_what_is_submitted_at_any_moment)
{
    uint64_t seed = seed_choose();
    const uint32_t workers = test_workers();
    struct probe ends = {.habit = PROBE_ENDS};
    struct api api;
    api_run(&api, workers);
    for (int round = 0; round < 5000; round++) {
        pause_randomly(&seed);
        (void)api_run_process(&api, &probe_type, &ends);
    }
    assert_int_equal(atomic_load(&ends.closes), 5000);
    api_stop(&api);
}

/* Says how many messages it has got. */
static int counter_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct tally *received = api_world(self);
    (void)ctx;
    if (!api_finish_if_cancelled(events, count, out)) {
        tally_add(received, count);
    }
    return 0;
}

static const skua_process_type counter_type = {
    .name = "counter",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = counter_step,
};

TEST(idle_process_gets_every_message_sent_at_any_moment)
{
    uint64_t seed = seed_choose();
    const uint32_t workers = test_workers();
    struct tally received;
    tally_init(&received);
    struct api api;
    api_run(&api, workers);
    const skua_pid pid = api_submit(&api, &counter_type, &received);
    for (uint64_t round = 1; round <= 5000; round++) {
        pause_randomly(&seed);
        assert_int_equal(skua_message_send(api.runtime, pid, skua_payload_empty(0)), 0);
        tally_wait(&received, round);
    }
    assert_int_equal(tally_count(&received), 5000);
    api_stop(&api);
}

/* Several threads at once: publishers race with each other too. */
struct publisher {
    const struct api *api;
    struct probe probe;
    uint64_t seed;
    uint32_t failures;
};

static void publish_again_and_again(void *arg)
{
    struct publisher *publisher = arg;
    for (int round = 0; round < 3000; round++) {
        pause_randomly(&publisher->seed);
        skua_payload input = api_world_payload(&publisher->probe);
        publisher->failures +=
            skua_process_run(publisher->api->runtime, &probe_type, NULL, &input, 1, NULL) != 0;
    }
}

TEST(idle_runtime_loses_nothing_to_racing_publishers)
{
    uint64_t seed = seed_choose();
    const uint32_t workers = test_workers();
    struct publisher publishers[3] = {{0}};
    struct api api;
    api_run(&api, workers);
    for (size_t i = 0; i < COUNT_OF(publishers); i++) {
        publishers[i].api = &api;
        publishers[i].probe.habit = PROBE_ENDS;
        publishers[i].seed = seed_next(&seed);
    }
    api_in_threads(COUNT_OF(publishers), publish_again_and_again, publishers, sizeof publishers[0]);
    for (size_t i = 0; i < COUNT_OF(publishers); i++) {
        assert_int_equal(publishers[i].failures, 0);
        assert_int_equal(atomic_load(&publishers[i].probe.closes), 3000);
    }
    api_stop(&api);
}

/* ---- every worker is used ---- */

/* Steps that return only when `size` of them run at the same moment, on as many workers. */
struct meeting {
    struct tally arrived;
    uint32_t size;
    uint64_t round;
    atomic_uint missed; /* steps that gave up, so that a sleeping worker is no hang */
};

/* Gives the others ten seconds, which is enough to tell. */
static bool all_arrive(struct meeting *meeting)
{
    const struct timespec pause = {.tv_nsec = 50000};
    for (int i = 0; i < 200000; i++) {
        if (tally_count(&meeting->arrived) >= meeting->round * meeting->size) {
            return true;
        }
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

static int meet_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    struct meeting *meeting = api_world(self);
    (void)ctx;
    (void)events;
    (void)count;
    tally_add(&meeting->arrived, 1);
    (void)atomic_fetch_add(&meeting->missed, !all_arrive(meeting));
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type meet_type = {
    .name = "meets", .state_size = sizeof(void *), .init = api_init_world, .step = meet_step};

TEST(idle_workers_all_wake_for_long_steps_submitted_at_once)
{
    for (uint32_t workers = 2; workers <= WORKERS_MAX; workers++) {
        struct meeting meeting = {.size = workers};
        tally_init(&meeting.arrived);
        struct api api;
        api_run(&api, workers);
        for (uint64_t round = 1; round <= 300; round++) {
            meeting.round = round;
            for (uint32_t i = 0; i < workers; i++) {
                (void)api_submit(&api, &meet_type, &meeting);
            }
            api_wait_live(&api, 0);
            assert_int_equal(atomic_load(&meeting.missed), 0);
        }
        assert_int_equal(tally_count(&meeting.arrived), 300 * workers);
        api_stop(&api);
    }
}

/* The same with processes that a step spawns. */
static void spawn_meeting(void *arg, skua_context *ctx, skua_step *out)
{
    struct meeting *meeting = arg;
    (void)out;
    for (uint32_t i = 0; i < meeting->size; i++) {
        skua_payload input = api_world_payload(meeting);
        (void)skua_context_spawn(ctx, &meet_type, NULL, &input, 1, NULL);
    }
}

TEST(idle_workers_all_wake_for_long_steps_spawned_at_once)
{
    for (uint32_t workers = 2; workers <= WORKERS_MAX; workers++) {
        struct meeting meeting = {.size = workers};
        tally_init(&meeting.arrived);
        struct api api;
        api_run(&api, workers);
        for (uint64_t round = 1; round <= 300; round++) {
            meeting.round = round;
            api_in_step(&api, spawn_meeting, &meeting);
            api_wait_live(&api, 0);
            assert_int_equal(atomic_load(&meeting.missed), 0);
        }
        assert_int_equal(tally_count(&meeting.arrived), 300 * workers);
        api_stop(&api);
    }
}

/* A worker that is in a long step does not keep what it has in its deque from the others. */
struct hoard {
    struct tally ran;
    uint32_t spawned;
};

static int hoarded_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct hoard *hoard = api_world(self);
    (void)ctx;
    (void)events;
    (void)count;
    tally_add(&hoard->ran, 1);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type hoarded_type = {
    .name = "hoarded", .state_size = sizeof(void *), .init = api_init_world, .step = hoarded_step};

static void spawn_and_stay(void *arg, skua_context *ctx, skua_step *out)
{
    struct hoard *hoard = arg;
    (void)out;
    for (int i = 0; i < 500; i++) {
        skua_payload input = api_world_payload(hoard);
        hoard->spawned += skua_context_spawn(ctx, &hoarded_type, NULL, &input, 1, NULL) == 0;
    }
    /* All but the last one, which is this worker's own next step. */
    tally_wait(&hoard->ran, hoard->spawned - 1);
}

TEST(idle_workers_take_all_that_a_long_step_has_spawned)
{
    for (uint32_t workers = 2; workers <= WORKERS_MAX; workers++) {
        struct hoard hoard = {0};
        tally_init(&hoard.ran);
        struct api api;
        api_run(&api, workers);
        api_in_step(&api, spawn_and_stay, &hoard);
        assert_int_equal(hoard.spawned, 500);
        tally_wait(&hoard.ran, 500);
        api_stop(&api);
    }
}
