/* SPDX-License-Identifier: MIT */
/* The life of a runtime: create, start, stop, destroy, in the right and in the wrong order; what
 * its configuration shows; several runtimes side by side. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "effort.h"
#include "runtime_support.h"

/* ---- configuration ---- */

TEST(runtime_config_of_null_shows_every_default)
{
    skua_runtime *runtime;
    skua_runtime_config config;
    assert_int_equal(skua_runtime_create(&runtime, NULL), 0);
    memset(&config, 0xff, sizeof config);

    assert_int_equal(skua_runtime_config_read(runtime, &config), 0);

    assert_in_range(config.worker_count, 1, SKUA_WORKERS_MAX);
    assert_int_equal(config.process_limit, 1 << 24);
    assert_int_equal(config.mailbox_limit, 1 << 20);
    assert_int_equal(config.payload_limit, 1 << 30);
    assert_int_equal(config.seed, 1);
    assert_non_null(config.alloc);
    assert_null(config.on_exit);
    assert_null(config.on_survivor);
    assert_int_equal(skua_runtime_destroy(runtime), 0);
}

static void ignore_exit(void *arg, skua_exit *exit)
{
    (void)arg;
    (void)exit;
}

static void ignore_survivor(void *arg, const skua_process_info *info)
{
    (void)arg;
    (void)info;
}

TEST(runtime_config_that_was_given_is_shown_unchanged)
{
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    int arg;
    const skua_runtime_config given = {
        .worker_count = 3,
        .process_limit = 77,
        .mailbox_limit = 5,
        .payload_limit = 99,
        .seed = 12345,
        .alloc = counting_allocate,
        .alloc_arg = &memory,
        .on_exit = ignore_exit,
        .on_exit_arg = &arg,
        .on_survivor = ignore_survivor,
        .on_survivor_arg = &arg,
    };
    skua_runtime *runtime;
    skua_runtime_config shown;
    assert_int_equal(skua_runtime_create(&runtime, &given), 0);

    assert_int_equal(skua_runtime_config_read(runtime, &shown), 0);

    assert_int_equal(shown.worker_count, given.worker_count);
    assert_int_equal(shown.process_limit, given.process_limit);
    assert_int_equal(shown.mailbox_limit, given.mailbox_limit);
    assert_int_equal(shown.payload_limit, given.payload_limit);
    assert_int_equal(shown.seed, given.seed);
    assert_ptr_equal(shown.alloc, given.alloc);
    assert_ptr_equal(shown.alloc_arg, given.alloc_arg);
    assert_ptr_equal(shown.on_exit, given.on_exit);
    assert_ptr_equal(shown.on_exit_arg, given.on_exit_arg);
    assert_ptr_equal(shown.on_survivor, given.on_survivor);
    assert_ptr_equal(shown.on_survivor_arg, given.on_survivor_arg);
    assert_int_equal(skua_runtime_destroy(runtime), 0);
    assert_true(counting_allocator_is_clean(&memory));
}

/* ---- the default number of workers ---- */

/* 0 if that failed. */
static uint32_t default_worker_count(void)
{
    skua_runtime *runtime;
    skua_runtime_config config;
    if (skua_runtime_create(&runtime, NULL) != 0) {
        return 0;
    }
    const int error = skua_runtime_config_read(runtime, &config);
    (void)skua_runtime_destroy(runtime);
    return error == 0 ? config.worker_count : 0;
}

/* Narrows the calling thread's mask to `count` of the CPUs that it has. */
static bool narrow_mask(int count)
{
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) {
        return false;
    }
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &mask) && count-- <= 0) {
            CPU_CLR(cpu, &mask);
        }
    }
    return sched_setaffinity(0, sizeof mask, &mask) == 0;
}

/* How many workers a program gets that may use `count` CPUs. In a child, to leave the mask of this
 * one as it is. */
static int worker_count_with_cpus(int count)
{
    (void)fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(narrow_mask(count) ? (int)default_worker_count() : 0);
    }
    int status;
    pid_t reaped;
    do {
        reaped = waitpid(child, &status, 0);
    } while (reaped < 0 && errno == EINTR);
    assert_int_equal(reaped, child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Whether this program's control group could have a CPU quota. Fewer workers than CPUs are right
 * then; how many, the unit test of the quota checks. */
static bool quota_is_possible(void)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL) {
        return false;
    }
    bool possible = access("/sys/fs/cgroup/cpu.max", F_OK) == 0;
    char line[256];
    while (fgets(line, sizeof line, file) != NULL) {
        possible = possible || (strncmp(line, "0::/", 4) == 0 && line[4] != '\n');
    }
    (void)fclose(file);
    return possible;
}

TEST(runtime_workers_by_default_are_as_many_as_cpus_in_the_mask)
{
    cpu_set_t mask;
    assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
    const int cpus = CPU_COUNT(&mask) < SKUA_WORKERS_MAX ? CPU_COUNT(&mask) : SKUA_WORKERS_MAX;
    const int workers = (int)default_worker_count();
    if (quota_is_possible()) {
        print_message("a quota may be in force: %d CPUs, %d workers\n", cpus, workers);
        assert_in_range(workers, 1, cpus);
    } else {
        assert_int_equal(workers, cpus);
    }
    /* An exit status has 8 bits. */
    for (int narrow = 1; narrow < cpus && narrow < 256; narrow++) {
        assert_int_equal(worker_count_with_cpus(narrow), narrow < workers ? narrow : workers);
    }
}

TEST(runtime_started_has_a_thread_for_each_worker_and_the_monitor)
{
    struct api api;
    const uint32_t before = os_wait_alone();

    api_run(&api, 5);

    assert_int_equal(os_thread_count(), before + 5 + 1);
    api_stop(&api);
    os_wait_threads(before);
}

/* ---- many lives ---- */

static int complete_at_once(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return 0;
}

static void live_once(uint32_t workers)
{
    /* Handlers with ids above 255 are kept in allocated memory. */
    const skua_handler handler = {.name = "nothing", .run = complete_at_once};
    struct probe rests = {.habit = PROBE_OBEYS};
    struct probe ends = {.habit = PROBE_ENDS};
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = workers});
    assert_int_equal(skua_command_register(api.runtime, 1000, &handler), 0);
    api_start(&api);
    (void)api_submit(&api, &probe_type, &rests);
    (void)api_run_process(&api, &probe_large_type, &ends);
    api_stop(&api);
    assert_probe_stopped_once(&rests);
    assert_int_equal(atomic_load(&ends.closes), 1);
}

TEST(runtime_that_lives_a_thousand_times_leaks_nothing)
{
    live_once(2); /* what the C library and sanitizers keep for good, they take now */
    const uint32_t threads = os_wait_alone();
    const uint32_t files = os_file_count();

    for (uint32_t i = 0; i < EFFORT(1000); i++) {
        live_once(1 + i % 3);
    }

    os_wait_threads(threads);
    assert_int_equal(os_file_count(), files);
}

/* A process that begins the next one, and ends with a message and a completion under way. */
#define GENERATIONS 70000

static int never_complete(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return SKUA_PENDING;
}

static int heir_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out);

static const skua_process_type heir_type = {
    .name = "heir", .state_size = 200, .init = api_init_world, .step = heir_step};

static int heir_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    atomic_uint *born = api_world(self);
    const unsigned number = atomic_fetch_add(born, 1) + 1;
    (void)events;
    (void)count;
    (void)skua_context_send(ctx, skua_context_self(ctx), skua_payload_empty(0));
    (void)skua_step_yield(out, 1, 0, skua_payload_empty(0));
    skua_step_done(out, skua_payload_empty(0));
    if (number < GENERATIONS) {
        skua_payload input = api_world_payload(born);
        (void)skua_context_spawn(ctx, &heir_type, NULL, &input, 1, NULL);
    }
    return 0;
}

/* The dead leave nothing behind: there are more of them than places and events in one block of
 * either, and still no further block is needed. */
TEST(runtime_memory_does_not_grow_with_the_number_of_past_processes)
{
    const skua_handler handler = {.name = "never", .run = never_complete};
    atomic_uint born = GENERATIONS - 100;
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 2, .stall_limit_ns = API_NEVER_STUCK});
    assert_int_equal(skua_command_register(api.runtime, 1, &handler), 0);
    api_start(&api);
    (void)api_submit(&api, &heir_type, &born);
    api_wait_live(&api, 0);
    const uint64_t blocks = counting_allocator_live_blocks(&api.memory);

    atomic_store(&born, 0);
    (void)api_submit(&api, &heir_type, &born);
    api_wait_live(&api, 0);

    assert_int_equal(api_stats(&api).finished, 100 + GENERATIONS);
    /* The second worker may have got its array for yields only now. */
    assert_in_range(counting_allocator_live_blocks(&api.memory), blocks, blocks + 1);
    api_stop(&api);
}

TEST(runtime_that_is_never_started_has_no_threads_and_leaks_nothing)
{
    const uint32_t threads = os_wait_alone();
    struct api api;

    api_create(&api, (skua_runtime_config){0});

    assert_int_equal(os_thread_count(), threads);
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
    assert_true(counting_allocator_is_clean(&api.memory));
}

/* ---- the wrong order ---- */

TEST(runtime_start_twice_is_an_error)
{
    const uint32_t threads = os_wait_alone();
    struct api api;
    api_run(&api, 2);

    assert_int_equal(skua_runtime_start(api.runtime), SKUA_E_STARTED);

    assert_int_equal(os_thread_count(), threads + 2 + 1);
    api_stop(&api);
}

TEST(runtime_stop_before_start_is_an_error_and_changes_nothing)
{
    struct probe probe = {.habit = PROBE_OBEYS};
    struct api api;
    api_create(&api, (skua_runtime_config){0});

    assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), SKUA_E_NOT_STARTED);

    api_start(&api);
    (void)api_submit(&api, &probe_type, &probe);
    api_stop(&api);
    assert_probe_stopped_once(&probe);
}

TEST(runtime_stop_again_and_again_returns_0)
{
    struct api api;
    api_run(&api, 2);

    for (int i = 0; i < 3; i++) {
        assert_int_equal(skua_runtime_stop(api.runtime, 0), 0);
    }

    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
}

TEST(runtime_start_after_stop_is_an_error)
{
    const uint32_t threads = os_wait_alone();
    struct api api;
    api_run(&api, 2);
    assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), 0);

    assert_int_equal(skua_runtime_start(api.runtime), SKUA_E_STOPPED);

    os_wait_threads(threads);
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
}

TEST(runtime_destroy_while_running_is_refused_and_harmless)
{
    struct probe rests = {.habit = PROBE_OBEYS};
    struct probe ends = {.habit = PROBE_ENDS};
    struct api api;
    api_run(&api, 2);
    const skua_pid pid = api_submit(&api, &probe_type, &rests);

    assert_int_equal(skua_runtime_destroy(api.runtime), SKUA_E_BUSY);

    (void)api_run_process(&api, &probe_type, &ends);
    assert_int_equal(skua_message_send(api.runtime, pid, skua_payload_empty(0)), 0);
    api_stop(&api);
    assert_int_equal(atomic_load(&rests.messages), 1);
}

TEST(runtime_register_after_start_is_an_error)
{
    const skua_handler handler = {.name = "nothing", .run = complete_at_once};
    struct api api;
    api_run(&api, 1);

    assert_int_equal(skua_command_register(api.runtime, 1, &handler), SKUA_E_FROZEN);
    assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), 0);
    assert_int_equal(skua_command_register(api.runtime, 1, &handler), SKUA_E_FROZEN);

    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
}

/* Both ways to begin a process. */
static void assert_refused(skua_runtime *runtime, int expected)
{
    struct probe probe = {.habit = PROBE_ENDS};
    struct tracked items[2] = {{0}};
    skua_pid pid = {42};
    skua_exit exit = {.error = 42};
    skua_payload input[] = {api_world_payload(&probe), tracked_payload(0, &items[0])};
    assert_int_equal(skua_process_submit(runtime, &probe_type, NULL, input, 2, &pid), expected);
    input[1] = tracked_payload(0, &items[1]);
    assert_int_equal(skua_process_run(runtime, &probe_type, NULL, input, 2, &exit), expected);
    assert_drops(items, COUNT_OF(items), 1);
    assert_int_equal(atomic_load(&probe.inits), 0);
    assert_int_equal(pid.bits, 42);
    assert_int_equal(exit.error, 42);
}

TEST(runtime_submit_before_start_is_refused)
{
    struct api api;
    api_create(&api, (skua_runtime_config){0});

    assert_refused(api.runtime, SKUA_E_NOT_STARTED);

    assert_int_equal(api_stats(&api).spawned, 0);
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
    assert_true(counting_allocator_is_clean(&api.memory));
}

TEST(runtime_submit_after_stop_is_refused)
{
    struct api api;
    api_run(&api, 2);
    assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), 0);

    assert_refused(api.runtime, SKUA_E_STOPPED);

    assert_int_equal(api_stats(&api).spawned, 0);
    api_stop(&api);
}

TEST(runtime_that_has_stopped_still_answers)
{
    struct probe probe = {.habit = PROBE_OBEYS};
    struct tracked item = {0};
    skua_process_info info;
    struct api api;
    api_run(&api, 2);
    const skua_pid pid = api_submit(&api, &probe_type, &probe);
    assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), 0);

    assert_int_equal(skua_message_send(api.runtime, pid, tracked_payload(0, &item)),
                     SKUA_E_NO_PROCESS);
    assert_drops(&item, 1, 1);
    assert_int_equal(skua_process_cancel(api.runtime, pid, -1), SKUA_E_NO_PROCESS);
    assert_int_equal(skua_process_terminate(api.runtime, pid), SKUA_E_NO_PROCESS);
    assert_int_equal(skua_process_info_read(api.runtime, pid, &info), SKUA_E_NO_PROCESS);
    assert_int_equal(skua_process_wait(api.runtime, pid, SKUA_FOREVER, NULL), SKUA_E_NO_PROCESS);
    assert_int_equal(api_stats(&api).spawned, 1);
    api_stop(&api);
}

/* ---- calls that would wait for their own worker ---- */

/* What the waiting calls returned, made on a worker. */
struct inside {
    int stop;
    int wait;
    int run;
    int destroy;
    struct tracked item;
    struct probe probe; /* must never begin */
};

static void call_all(struct inside *inside, skua_runtime *runtime, skua_pid self)
{
    inside->stop = skua_runtime_stop(runtime, SKUA_FOREVER);
    inside->wait = skua_process_wait(runtime, self, SKUA_FOREVER, NULL);
    skua_payload input[] = {api_world_payload(&inside->probe), tracked_payload(0, &inside->item)};
    inside->run = skua_process_run(runtime, &probe_type, NULL, input, 2, NULL);
    inside->destroy = skua_runtime_destroy(runtime);
}

static void assert_all_refused(struct inside *inside)
{
    assert_int_equal(inside->stop, SKUA_E_INSIDE_STEP);
    assert_int_equal(inside->wait, SKUA_E_INSIDE_STEP);
    assert_int_equal(inside->run, SKUA_E_INSIDE_STEP);
    assert_int_equal(inside->destroy, SKUA_E_BUSY);
    assert_drops(&inside->item, 1, 1);
    assert_int_equal(atomic_load(&inside->probe.inits), 0);
}

static void call_in_step(void *arg, skua_context *ctx, skua_step *out)
{
    (void)out;
    call_all(arg, skua_context_runtime(ctx), skua_context_self(ctx));
}

TEST(runtime_waiting_calls_inside_a_step_are_refused)
{
    struct inside inside = {0};
    struct api api;
    api_run(&api, 1);

    api_in_step(&api, call_in_step, &inside);

    assert_all_refused(&inside);
    api_stop(&api);
}

static int call_in_handler(void *arg, skua_command *command, skua_payload *result)
{
    (void)result;
    call_all(arg, command->runtime, command->completion.process);
    return 0;
}

static void yield_once(void *arg, skua_context *ctx, skua_step *out)
{
    (void)ctx;
    *(int *)arg = skua_step_yield(out, 7, 0, skua_payload_empty(0));
}

TEST(runtime_waiting_calls_inside_a_handler_are_refused)
{
    struct inside inside = {0};
    const skua_handler handler = {.name = "calls", .run = call_in_handler, .arg = &inside};
    int yielded = 1;
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    assert_int_equal(skua_command_register(api.runtime, 7, &handler), 0);
    api_start(&api);

    api_in_step(&api, yield_once, &yielded);

    assert_int_equal(yielded, 0);
    assert_all_refused(&inside);
    api_stop(&api);
}

struct exit_hook {
    struct inside inside;
    skua_runtime *runtime;
};

static void call_in_on_exit(void *arg, skua_exit *exit)
{
    struct exit_hook *hook = arg;
    call_all(&hook->inside, hook->runtime, exit->pid);
}

TEST(runtime_waiting_calls_inside_on_exit_are_refused)
{
    struct exit_hook hook = {0};
    struct probe ends = {.habit = PROBE_ENDS};
    struct api api;
    api_create(&api, (skua_runtime_config){
                         .worker_count = 1, .on_exit = call_in_on_exit, .on_exit_arg = &hook});
    hook.runtime = api.runtime;
    api_start(&api);

    (void)api_run_process(&api, &probe_type, &ends);

    assert_all_refused(&hook.inside);
    api_stop(&api);
}

struct stop_other {
    skua_runtime *other;
    int stop;
};

static void stop_other(void *arg, skua_context *ctx, skua_step *out)
{
    struct stop_other *call = arg;
    (void)ctx;
    (void)out;
    call->stop = skua_runtime_stop(call->other, SKUA_FOREVER);
}

TEST(runtime_of_others_can_be_stopped_inside_a_step)
{
    struct probe rests = {.habit = PROBE_OBEYS};
    struct api here;
    struct api there;
    api_run(&here, 1);
    api_run(&there, 1);
    (void)api_submit(&there, &probe_type, &rests);
    struct stop_other call = {.other = there.runtime, .stop = 1};

    api_in_step(&here, stop_other, &call);

    assert_int_equal(call.stop, 0);
    assert_probe_stopped_once(&rests);
    api_stop(&there);
    api_stop(&here);
}

/* ---- several runtimes ---- */

#define NEIGHBOURS 3
#define RESIDENTS  50

struct neighbour {
    struct api api;
    struct probe probes[RESIDENTS];
    skua_pid pids[RESIDENTS];
    atomic_uint exits;
};

static void count_exit(void *arg, skua_exit *exit)
{
    atomic_uint *exits = arg;
    (void)exit;
    (void)atomic_fetch_add(exits, 1);
}

static void neighbour_begin(struct neighbour *neighbour, uint32_t population)
{
    memset(neighbour, 0, sizeof *neighbour);
    api_create(&neighbour->api, (skua_runtime_config){.worker_count = 2,
                                                      .on_exit = count_exit,
                                                      .on_exit_arg = &neighbour->exits});
    api_start(&neighbour->api);
    for (uint32_t i = 0; i < population; i++) {
        neighbour->pids[i] = api_submit(&neighbour->api, &probe_type, &neighbour->probes[i]);
    }
}

static void assert_undisturbed(struct neighbour *neighbour, uint32_t population)
{
    assert_int_equal(atomic_load(&neighbour->exits), 0);
    assert_int_equal(api_stats(&neighbour->api).live, population);
    assert_int_equal(
        skua_message_send(neighbour->api.runtime, neighbour->pids[0], skua_payload_empty(0)), 0);
}

TEST(runtimes_side_by_side_live_and_end_by_themselves)
{
    static struct neighbour neighbours[NEIGHBOURS];
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        neighbour_begin(&neighbours[i], RESIDENTS - i);
    }

    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        for (uint32_t j = i; j < NEIGHBOURS; j++) {
            assert_undisturbed(&neighbours[j], RESIDENTS - j);
        }
        api_stop(&neighbours[i].api);
        assert_int_equal(atomic_load(&neighbours[i].exits), RESIDENTS - i);
    }

    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        assert_int_equal(atomic_load(&neighbours[i].probes[0].messages), i + 1);
        assert_int_equal(atomic_load(&neighbours[i].probes[1].messages), 0);
        for (uint32_t k = 0; k < RESIDENTS - i; k++) {
            assert_probe_stopped_once(&neighbours[i].probes[k]);
        }
    }
}

TEST(runtime_refuses_the_pids_of_another)
{
    static struct neighbour here;
    static struct neighbour there;
    static struct tracked items[RESIDENTS];
    skua_process_info info;
    neighbour_begin(&here, RESIDENTS);
    neighbour_begin(&there, RESIDENTS);

    for (uint32_t i = 0; i < RESIDENTS; i++) {
        skua_runtime *runtime = here.api.runtime;
        const skua_pid pid = there.pids[i];
        assert_int_equal(skua_message_send(runtime, pid, tracked_payload(0, &items[i])),
                         SKUA_E_FOREIGN_PID);
        assert_int_equal(skua_process_cancel(runtime, pid, -1), SKUA_E_FOREIGN_PID);
        assert_int_equal(skua_process_terminate(runtime, pid), SKUA_E_FOREIGN_PID);
        assert_int_equal(skua_process_info_read(runtime, pid, &info), SKUA_E_FOREIGN_PID);
        assert_int_equal(skua_process_wait(runtime, pid, SKUA_FOREVER, NULL), SKUA_E_FOREIGN_PID);
    }

    assert_drops(items, RESIDENTS, 1);
    assert_undisturbed(&here, RESIDENTS);
    assert_undisturbed(&there, RESIDENTS);
    api_stop(&here.api);
    api_stop(&there.api);
    for (uint32_t i = 0; i < RESIDENTS; i++) {
        assert_int_equal(atomic_load(&here.probes[i].messages), i == 0);
        assert_int_equal(atomic_load(&there.probes[i].messages), i == 0);
        assert_probe_stopped_once(&here.probes[i]);
        assert_probe_stopped_once(&there.probes[i]);
    }
}

/* Processes of two runtimes that send a number to and fro, one more each time. */
#define LAPS 2000

struct crosser {
    skua_runtime *other;
    skua_pid partner;
    struct tally received;
};

static int cross(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    struct crosser *crosser = api_world(self);
    (void)ctx;
    if (count == 0 || api_finish_if_cancelled(events, count, out)) {
        return 0;
    }
    tally_add(&crosser->received, count); /* first: the last one to do so ends the test */
    const uint64_t lap = skua_payload_to_u64(&events[0].payload);
    if (lap < LAPS) {
        (void)skua_message_send(crosser->other, crosser->partner, skua_payload_u64(0, lap + 1));
    }
    return 0;
}

static const skua_process_type crosser_type = {
    .name = "crosser",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = cross,
};

TEST(runtimes_can_send_to_each_other_from_their_steps)
{
    struct crosser crossers[2];
    struct api apis[2];
    for (int i = 0; i < 2; i++) {
        tally_init(&crossers[i].received);
        api_run(&apis[i], 1);
    }
    for (int i = 0; i < 2; i++) {
        crossers[i].other = apis[1 - i].runtime;
        crossers[1 - i].partner = api_submit(&apis[i], &crosser_type, &crossers[i]);
    }

    assert_int_equal(
        skua_message_send(apis[0].runtime, crossers[1].partner, skua_payload_u64(0, 0)), 0);

    tally_wait(&crossers[0].received, LAPS / 2 + 1);
    assert_int_equal(tally_count(&crossers[0].received), LAPS / 2 + 1);
    assert_int_equal(tally_count(&crossers[1].received), LAPS / 2);
    /* A worker of one runtime is a thread from outside for the other. */
    skua_stats worker;
    assert_int_equal(skua_stats_read(apis[1].runtime, NULL, &worker, 1), 1);
    assert_int_equal(worker.messages, 0);
    assert_int_equal(api_stats(&apis[1]).messages, LAPS / 2);
    /* Both, before one is destroyed: the last send may not have returned yet. */
    assert_int_equal(skua_runtime_stop(apis[0].runtime, SKUA_FOREVER), 0);
    assert_int_equal(skua_runtime_stop(apis[1].runtime, SKUA_FOREVER), 0);
    api_stop(&apis[0]);
    api_stop(&apis[1]);
}
