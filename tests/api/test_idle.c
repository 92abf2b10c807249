/* SPDX-License-Identifier: MIT */
/* Sleeping and waking: a runtime with nothing to do does nothing at all; work that comes while its
 * workers sleep always runs; work for several workers is done by several. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "actor.h"
#include "runtime/runtime.h"

/* ---- idle is idle ---- */

#define WORKERS     4
#define POPULATION  10000
#define THREADS_MAX 64

/* The threads of this program, as their ids. */
struct threads {
    uint32_t count;
    long ids[THREADS_MAX];
};

static bool contains(const struct threads *threads, long id)
{
    for (uint32_t i = 0; i < threads->count; i++) {
        if (threads->ids[i] == id) {
            return true;
        }
    }
    return false;
}

/* Those that are not among `others`. */
static struct threads list_threads(const struct threads *others)
{
    struct threads threads = {0};
    DIR *directory = opendir("/proc/self/task");
    assert_non_null(directory);
    for (const struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        const long id = strtol(entry->d_name, NULL, 10);
        if (id > 0 && threads.count < THREADS_MAX && !contains(others, id)) {
            threads.ids[threads.count++] = id;
        }
    }
    (void)closedir(directory);
    return threads;
}

struct thread_status {
    bool asleep;
    uint64_t switches;
};

/* Whether all of them sleep, and how often they were switched to and from. */
static struct thread_status read_status(const struct threads *threads)
{
    struct thread_status status = {.asleep = true};
    for (uint32_t i = 0; i < threads->count; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "/proc/self/task/%ld/status", threads->ids[i]);
        FILE *file = fopen(text, "re");
        assert_non_null(file);
        char line[256];
        while (fgets(line, sizeof line, file) != NULL) {
            char state = 'S';
            uint64_t number = 0;
            (void)sscanf(line, "State: %c", &state);
            (void)sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &number);
            (void)sscanf(line, "nonvoluntary_ctxt_switches: %" SCNu64, &number);
            status.asleep = status.asleep && state == 'S';
            status.switches += number;
        }
        (void)fclose(file);
    }
    return status;
}

struct dormitory {
    struct threads others;       /* that were there before */
    struct threads threads;      /* a spare worker may have come */
    struct thread_status before; /* the last look */
};

/* All threads sleep, and none has woken since the last look: so there was a moment between the two
 * when nobody was awake who could wake another. */
static bool all_sleep(void *arg)
{
    struct dormitory *dormitory = arg;
    const struct thread_status before = dormitory->before;
    dormitory->threads = list_threads(&dormitory->others);
    dormitory->before = read_status(&dormitory->threads);
    return before.asleep && dormitory->before.asleep &&
           before.switches == dormitory->before.switches &&
           load_seq_cst(&world_runtime()->sched.monitor_asleep) != 0;
}

TEST(idle_runtime_with_many_processes_never_runs)
{
    struct dormitory dormitory = {.others = list_threads(&(struct threads){0})};
    world_open_with(
        (skua_runtime_config){.worker_count = WORKERS, .stall_limit_ns = 10 * SKUA_MILLISECOND});
    assert_int_equal(list_threads(&dormitory.others).count, WORKERS + 1); /* and the monitor */
    for (int i = 0; i < POPULATION; i++) {
        (void)actor_start(NO_ACTS);
    }
    wait_until(all_sleep, &dormitory, "all threads to sleep");
    const skua_stats stats = world_stats();
    assert_int_equal(stats.live, POPULATION);

    /* The length of the observation; nothing is synchronised by it. */
    (void)nanosleep(&(struct timespec){.tv_sec = 1}, NULL);

    const skua_stats stats_later = world_stats();
    assert_int_equal(read_status(&dormitory.threads).switches, dormitory.before.switches);
    assert_memory_equal(&stats_later, &stats, sizeof stats);
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
    world_open();
    struct actor *actor = actor_new(ACTS(finishes(1)));
    for (int round = 0; round < 5000; round++) {
        pause_randomly(&seed);
        assert_result(actor_run(actor), 1);
    }
    assert_int_equal(actor->closes, 5000);
}

TEST(idle_process_gets_every_message_sent_at_any_moment)
{
    uint64_t seed = seed_choose();
    world_open();
    struct actor *actor = actor_start(NO_ACTS);
    for (uint64_t round = 1; round <= 5000; round++) {
        pause_randomly(&seed);
        assert_int_equal(world_send(actor->pid, skua_payload_empty(0)), 0);
        actor_await_seen(actor, round);
    }
    assert_int_equal(tally_count(&actor->arrived), 5000);
}

/* Several threads at once: publishers race with each other too. */
struct publisher {
    struct actor *actor;
    uint64_t seed;
    uint32_t failures;
};

static void publish_again_and_again(void *arg)
{
    struct publisher *publisher = arg;
    for (int round = 0; round < 3000; round++) {
        pause_randomly(&publisher->seed);
        publisher->failures += actor_try_run(publisher->actor, NULL) != 0;
    }
}

TEST(idle_runtime_loses_nothing_to_racing_publishers)
{
    uint64_t seed = seed_choose();
    struct publisher publishers[3] = {{0}};
    world_open();
    for (size_t i = 0; i < COUNT_OF(publishers); i++) {
        publishers[i].actor = actor_new(ACTS(finishes(0)));
        publishers[i].seed = seed_next(&seed);
    }
    api_in_threads(COUNT_OF(publishers), publish_again_and_again, publishers, sizeof publishers[0]);
    for (size_t i = 0; i < COUNT_OF(publishers); i++) {
        assert_int_equal(publishers[i].failures, 0);
        assert_int_equal(publishers[i].actor->closes, 3000);
    }
}

/* ---- every worker is used ---- */

/* With two workers at least. */
static uint32_t open_with_several_workers(void)
{
    const uint32_t workers = test_workers() + 1;
    world_open_with((skua_runtime_config){.worker_count = workers});
    return workers;
}

/* Steps that return only when `size` of them run at the same moment, on as many workers. */
struct meeting {
    struct tally arrived;
    uint32_t size;
    uint64_t round;
};

static int meet(struct turn *turn, const struct act *act)
{
    struct meeting *meeting = act->arg;
    (void)turn;
    tally_add(&meeting->arrived, 1);
    tally_wait(&meeting->arrived, meeting->round * meeting->size);
    return 0;
}

/* 300 meetings of all workers, called together by the test or by a process. */
static void check_meetings(bool spawned)
{
    struct meeting meeting = {.size = open_with_several_workers()};
    struct act *spawning = test_alloc((meeting.size + 1) * sizeof *spawning);
    struct actor **members = test_alloc(meeting.size * sizeof *members);
    tally_init(&meeting.arrived);
    for (uint32_t i = 0; i < meeting.size; i++) {
        members[i] = actor_new(ACTS(does(meet, &meeting), finishes(0)));
        spawning[i] = spawns(members[i]);
    }
    spawning[meeting.size] = finishes(0);
    struct actor *host = actor_new((struct script){spawning, meeting.size + 1});
    for (meeting.round = 1; meeting.round <= 300; meeting.round++) {
        if (spawned) {
            assert_result(actor_run(host), 0);
        }
        for (uint32_t i = 0; i < meeting.size && !spawned; i++) {
            actor_submit(members[i]);
        }
        world_await_live(0);
    }
    assert_int_equal(tally_count(&meeting.arrived), 300 * meeting.size);
}

TEST(idle_workers_all_wake_for_long_steps_submitted_at_once)
{
    check_meetings(false);
}

TEST(idle_workers_all_wake_for_long_steps_spawned_at_once)
{
    check_meetings(true);
}

/* A worker that is in a long step does not keep what it has in its deque from the others. */
#define HOARD 500

static int run_once(struct turn *turn, const struct act *act)
{
    (void)turn;
    tally_add(act->arg, 1);
    return 0;
}

static int stay(struct turn *turn, const struct act *act)
{
    (void)turn;
    tally_wait(act->arg, HOARD - 1); /* the last one is this worker's own next step */
    return 0;
}

TEST(idle_workers_take_all_that_a_long_step_has_spawned)
{
    struct act acts[HOARD + 2];
    struct tally ran;
    tally_init(&ran);
    (void)open_with_several_workers();
    for (int i = 0; i < HOARD; i++) {
        acts[i] = spawns(actor_new(ACTS(does(run_once, &ran), finishes(0))));
    }
    acts[HOARD] = does(stay, &ran);
    acts[HOARD + 1] = finishes(0);
    assert_result(actor_run(actor_new(script_copy(acts, COUNT_OF(acts)))), 0);
    tally_wait(&ran, HOARD);
}
