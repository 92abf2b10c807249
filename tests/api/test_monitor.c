/* SPDX-License-Identifier: MIT */
/* Steps that do not return (G9): what their workers hold up is served meanwhile, the program is
 * told which steps they are, and when they return all is as before. Steps are stuck until the test
 * permits them to go on, which it does only after it has seen what it waits for. */
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "runtime/runtime.h"
#include "runtime_support.h"

/* These tests are about steps that are stuck. */
__attribute__((constructor)) static void watch_every_step(void)
{
    api_stall_limit_ns = 0;
}

#define WORKERS 2

/* ---- what the hook was told ---- */

#define RECORDS_MAX 256

struct record {
    skua_stall stall;
    uint64_t when;       /* of the call */
    bool found;          /* the return address that was looked for is among the frames */
    bool frames_are_set; /* all of them */
};

/* Outlives the runtime. */
struct stall_log {
    pthread_mutex_t lock;
    uint32_t count;
    struct record records[RECORDS_MAX];
    void *wanted;                                                  /* a return address */
    void (*react)(struct stall_log *log, const skua_stall *stall); /* may be null */
    skua_runtime *runtime;                                         /* for react */
    skua_pid friend;                                               /* for react */
    int results[3];                                                /* of react */
};

static void stall_log_init(struct stall_log *log)
{
    *log = (struct stall_log){0};
    assert_int_equal(pthread_mutex_init(&log->lock, NULL), 0);
}

static void look_at_frames(struct record *record, const void *wanted)
{
    record->frames_are_set = record->stall.frame_count > 0;
    for (uint32_t i = 0; i < record->stall.frame_count; i++) {
        record->found = record->found || record->stall.frames[i] == wanted;
        record->frames_are_set = record->frames_are_set && record->stall.frames[i] != NULL;
    }
}

static void on_stall(void *arg, const skua_stall *stall)
{
    struct stall_log *log = arg;
    (void)pthread_mutex_lock(&log->lock);
    if (log->count < RECORDS_MAX) {
        struct record *record = &log->records[log->count++];
        *record = (struct record){.stall = *stall, .when = monotonic_ns()};
        look_at_frames(record, log->wanted);
        if (log->react != NULL) {
            log->react(log, stall);
        }
    }
    (void)pthread_mutex_unlock(&log->lock);
}

/* How often a process was named; the last time is copied to *record, which may be null. */
static uint32_t times_named(struct stall_log *log, skua_pid pid, struct record *record)
{
    uint32_t times = 0;
    (void)pthread_mutex_lock(&log->lock);
    for (uint32_t i = 0; i < log->count; i++) {
        if (skua_pid_equal(log->records[i].stall.pid, pid)) {
            times++;
            if (record != NULL) {
                *record = log->records[i];
            }
        }
    }
    (void)pthread_mutex_unlock(&log->lock);
    return times;
}

struct wanted_name {
    struct stall_log *log;
    skua_pid pid;
};

static bool is_named(void *arg)
{
    const struct wanted_name *wanted = arg;
    return times_named(wanted->log, wanted->pid, NULL) > 0;
}

static struct record wait_named(struct stall_log *log, skua_pid pid)
{
    struct wanted_name wanted = {log, pid};
    struct record record = {0};
    wait_until(is_named, &wanted, "a stall to be reported");
    (void)times_named(log, pid, &record);
    return record;
}

/* ---- processes ---- */

/* Stays in its step until it is released; sends a message to a friend while it is in there. */
struct culprit {
    struct tally entered;
    struct tally may_send;
    struct tally sent;
    struct tally released;
    skua_pid friend; /* or none */
    int send_error;  /* or of another call */
    bool stays;      /* after its step it rests until it is cancelled */
    skua_pid pid;
    uint64_t submitted; /* when */
};

static int culprit_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct culprit *culprit = api_world(self);
    if (api_finish_if_cancelled(events, count, out)) {
        return 0;
    }
    tally_add(&culprit->entered, 1);
    if (!skua_pid_is_none(culprit->friend)) {
        tally_wait(&culprit->may_send, 1);
        culprit->send_error = skua_context_send(ctx, culprit->friend, skua_payload_empty(0));
        tally_add(&culprit->sent, 1);
    }
    tally_wait(&culprit->released, 1);
    if (!culprit->stays) {
        skua_step_done(out, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type first_type = {.name = "first culprit",
                                             .state_size = sizeof(void *),
                                             .init = api_init_world,
                                             .step = culprit_step};
static const skua_process_type second_type = {.name = "second culprit",
                                              .state_size = sizeof(void *),
                                              .init = api_init_world,
                                              .step = culprit_step};

static void culprit_init(struct culprit *culprit)
{
    *culprit = (struct culprit){.send_error = 1};
    tally_init(&culprit->entered);
    tally_init(&culprit->may_send);
    tally_init(&culprit->sent);
    tally_init(&culprit->released);
}

static void culprit_submit(struct culprit *culprit, const struct api *api,
                           const skua_process_type *type)
{
    culprit->submitted = monotonic_ns();
    culprit->pid = api_submit(api, type, culprit);
}

static void culprit_release(struct culprit *culprit)
{
    tally_add(&culprit->may_send, 1);
    tally_add(&culprit->released, 1);
}

/* The record of a culprit that is still in its step, or was when it was named. */
static void assert_named_rightly(struct stall_log *log, const struct culprit *culprit,
                                 const char *type_name, uint64_t limit_ns)
{
    struct record record = {0};
    assert_int_equal(times_named(log, culprit->pid, &record), 1);
    assert_string_equal(record.stall.type_name, type_name);
    assert_true(record.stall.elapsed_ns >= limit_ns);
    assert_true(record.stall.elapsed_ns <= record.when - culprit->submitted);
}

/* Waits for one thing, notes that it has come, and ends. */
struct waiter {
    uint64_t duration_ns; /* to sleep, or 0 */
    int fd;               /* to read from, if there is no duration */
    struct tally served;
    atomic_int error;
};

static int ask(const struct waiter *waiter, skua_step *out)
{
    return waiter->duration_ns > 0 ? skua_step_sleep(out, 1, waiter->duration_ns)
                                   : skua_step_wait_readable(out, 1, waiter->fd);
}

static int waiter_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct waiter *waiter = api_world(self);
    (void)ctx;
    if (count == 0) {
        return ask(waiter, out);
    }
    if (!api_finish_if_cancelled(events, count, out)) {
        atomic_store(&waiter->error, events[0].error);
        tally_add(&waiter->served, 1);
        skua_step_done(out, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type waiter_type = {
    .name = "waiter", .state_size = sizeof(void *), .init = api_init_world, .step = waiter_step};

/* Returns when the process waits. */
static skua_pid waiter_start(struct waiter *waiter, const struct api *api)
{
    atomic_init(&waiter->error, 1);
    tally_init(&waiter->served);
    const skua_pid pid = api_submit(api, &waiter_type, waiter);
    api_wait_state(api, pid, SKUA_PROCESS_BLOCKED);
    return pid;
}

/* Counts its messages until it is cancelled. */
static int listener_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                         skua_step *out)
{
    struct tally *received = api_world(self);
    (void)ctx;
    if (!api_finish_if_cancelled(events, count, out)) {
        tally_add(received, count);
    }
    return 0;
}

static const skua_process_type listener_type = {.name = "listener",
                                                .state_size = sizeof(void *),
                                                .init = api_init_world,
                                                .step = listener_step};

static skua_pid listener_start(struct tally *received, const struct api *api)
{
    tally_init(received);
    const skua_pid pid = api_submit(api, &listener_type, received);
    api_wait_state(api, pid, SKUA_PROCESS_IDLE);
    return pid;
}

/* A process that says when it has run. */
static int announcer_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                          skua_step *out)
{
    struct tally *ran = api_world(self);
    (void)ctx;
    (void)events;
    (void)count;
    tally_add(ran, 1);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type announcer_type = {.name = "announcer",
                                                 .state_size = sizeof(void *),
                                                 .init = api_init_world,
                                                 .step = announcer_step};

/* ---- a runtime whose stalls are noted ---- */

static void run_logged(struct api *api, struct stall_log *log, skua_runtime_config config)
{
    config.on_stall = on_stall;
    config.on_stall_arg = log;
    api_create(api, config);
    log->runtime = api->runtime;
    api_start(api);
}

static struct scheduler *sched_of(const struct api *api)
{
    return &api->runtime->sched;
}

static bool monitor_is_asleep(void *arg)
{
    struct scheduler *sched = arg;
    return load_seq_cst(&sched->monitor_asleep) == 1;
}

/* ---- all that two stuck workers hold up ---- */

struct scene {
    struct api api;
    struct stall_log log;
    struct culprit culprits[WORKERS];
    struct tally received[WORKERS]; /* by the friends of the culprits */
    struct waiter sleeper;
    struct waiter reader;
    int pipe[2];
};

static void scene_begin(struct scene *scene, uint32_t spare_limit, uint64_t sleep_ns)
{
    stall_log_init(&scene->log);
    run_logged(&scene->api, &scene->log,
               (skua_runtime_config){.worker_count = WORKERS, .spare_limit = spare_limit});
    assert_int_equal(pipe2(scene->pipe, O_NONBLOCK | O_CLOEXEC), 0);
    for (size_t i = 0; i < WORKERS; i++) {
        culprit_init(&scene->culprits[i]);
        scene->culprits[i].friend = listener_start(&scene->received[i], &scene->api);
    }
    scene->reader = (struct waiter){.fd = scene->pipe[0]};
    (void)waiter_start(&scene->reader, &scene->api);
    scene->sleeper = (struct waiter){.duration_ns = sleep_ns};
    (void)waiter_start(&scene->sleeper, &scene->api);
}

/* Both culprits are in their steps. False if the timer was faster than that. */
static bool scene_get_stuck(struct scene *scene)
{
    culprit_submit(&scene->culprits[0], &scene->api, &first_type);
    culprit_submit(&scene->culprits[1], &scene->api, &second_type);
    for (size_t i = 0; i < WORKERS; i++) {
        tally_wait(&scene->culprits[i].entered, 1);
    }
    return deadlines_next_of_all(&sched_of(&scene->api)->deadlines, WORKERS) != UINT64_MAX;
}

/* Nobody is released in here. False if it was not the usual workers that were stuck. */
static bool scene_expect_service(struct scene *scene)
{
    struct tally ran;
    tally_init(&ran);
    (void)api_submit(&scene->api, &announcer_type, &ran);
    assert_int_equal(write(scene->pipe[1], "x", 1), 1);
    tally_wait(&ran, 1);
    tally_wait(&scene->reader.served, 1);
    tally_wait(&scene->sleeper.served, 1);
    assert_int_equal(atomic_load(&scene->reader.error), 0);
    assert_int_equal(atomic_load(&scene->sleeper.error), 0);
    bool usual = true;
    for (size_t i = 0; i < WORKERS; i++) {
        usual = wait_named(&scene->log, scene->culprits[i].pid).stall.worker < WORKERS && usual;
        tally_add(&scene->culprits[i].may_send, 1);
        tally_wait(&scene->culprits[i].sent, 1);
        tally_wait(&scene->received[i], 1);
        assert_int_equal(scene->culprits[i].send_error, 0);
        assert_int_equal(tally_count(&scene->received[i]), 1);
    }
    return usual;
}

/* Everything goes on, and ends by itself. */
static void scene_end(struct scene *scene)
{
    for (size_t i = 0; i < WORKERS; i++) {
        culprit_release(&scene->culprits[i]);
        api_wait_end(&scene->api, scene->culprits[i].pid);
    }
    for (int i = 0; i < 100; i++) {
        struct probe probe = {.habit = PROBE_ENDS};
        (void)api_run_process(&scene->api, &probe_type, &probe);
        assert_int_equal(atomic_load(&probe.closes), 1);
    }
    api_stop(&scene->api);
    assert_int_equal(close(scene->pipe[0]), 0);
    assert_int_equal(close(scene->pipe[1]), 0);
}

static void assert_culprits_were_named(struct scene *scene)
{
    const uint64_t limit_ns = sched_of(&scene->api)->config.stall_limit_ns;
    const skua_stats stats = api_stats(&scene->api);
    assert_named_rightly(&scene->log, &scene->culprits[0], "first culprit", limit_ns);
    assert_named_rightly(&scene->log, &scene->culprits[1], "second culprit", limit_ns);
    (void)pthread_mutex_lock(&scene->log.lock);
    const uint32_t calls = scene->log.count;
    (void)pthread_mutex_unlock(&scene->log.lock);
    assert_true(calls >= WORKERS);
    assert_true(stats.stalls >= calls); /* more, if a process ended at that moment */
    assert_true(stats.spares >= 1);
    for (uint32_t i = 0; i < calls; i++) {
        assert_int_equal(scene->log.records[i].stall.frame_count, 0); /* nobody asked for any */
    }
}

/* On a slow machine the timer may be due before both workers are stuck, or a spare worker may have
 * taken the place of the second one: then this was not the scene, and it is set up again. */
static void play_until_right(uint32_t spare_limit)
{
    uint64_t sleep_ns = 50 * SKUA_MILLISECOND;
    bool right = false;
    while (!right) {
        struct scene scene;
        scene_begin(&scene, spare_limit, sleep_ns);
        const bool timer_waits = scene_get_stuck(&scene);
        right = scene_expect_service(&scene) && timer_waits;
        if (right) {
            assert_culprits_were_named(&scene);
        }
        if (spare_limit != 0) {
            assert_true(skua_stats_read(scene.api.runtime, NULL, NULL, 0) <=
                        (int)(WORKERS + spare_limit));
        }
        scene_end(&scene);
        sleep_ns *= timer_waits ? 1 : 2;
    }
    assert_true(right);
}

TEST(monitor_with_all_workers_stuck_serves_everything_meanwhile)
{
    play_until_right(0);
}

TEST(monitor_with_one_spare_for_two_stuck_workers_serves_everything_meanwhile)
{
    play_until_right(1);
}

/* ---- the next slot of a stuck worker ---- */

struct others {
    struct scheduler *sched;
    uint32_t busy;
};

static bool others_sleep(void *arg)
{
    const struct others *others = arg;
    struct scheduler *sched = others->sched;
    return parking_asleep(&sched->parking) + load_seq_cst(&sched->spare.resting) + others->busy ==
           scheduler_threads(sched);
}

/* Nobody is awake who could come across the process that the stuck step readies. */
TEST(monitor_takes_out_what_a_stuck_step_readies_while_all_others_sleep)
{
    for (uint32_t workers = 1; workers <= WORKERS; workers++) {
        struct api api;
        struct stall_log log;
        struct culprit culprit;
        struct tally received;
        stall_log_init(&log);
        run_logged(&api, &log, (skua_runtime_config){.worker_count = workers});
        culprit_init(&culprit);
        culprit.friend = listener_start(&received, &api);
        culprit_submit(&culprit, &api, &first_type);
        (void)wait_named(&log, culprit.pid);
        struct others others = {.sched = sched_of(&api), .busy = 1};
        wait_until(others_sleep, &others, "all workers but the stuck one to sleep");

        tally_add(&culprit.may_send, 1);
        tally_wait(&culprit.sent, 1);
        tally_wait(&received, 1);

        assert_int_equal(tally_count(&received), 1);
        culprit_release(&culprit);
        api_stop(&api);
    }
}

/* ---- other code of the program that is stuck ---- */

/* One step, close or other function is stuck on the only worker, and another process is served. */
static void expect_service_and_name(const struct api *api, struct stall_log *log,
                                    const struct culprit *culprit, const char *type_name)
{
    struct tally ran;
    tally_init(&ran);
    (void)api_submit(api, &announcer_type, &ran);
    tally_wait(&ran, 1);
    (void)wait_named(log, culprit->pid);
    assert_named_rightly(log, culprit, type_name, sched_of(api)->config.stall_limit_ns);
}

#define COMMAND_STUCK 7

static int stuck_handler(void *arg, skua_command *command, skua_payload *result)
{
    struct culprit *culprit = arg;
    (void)command;
    (void)result;
    tally_add(&culprit->entered, 1);
    tally_wait(&culprit->released, 1);
    return 0;
}

static int yielder_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    if (count > 0) {
        skua_step_done(out, skua_payload_empty(0));
        return 0;
    }
    return skua_step_yield(out, COMMAND_STUCK, 0, skua_payload_empty(0));
}

static const skua_process_type yielder_type = {.name = "yielder", .step = yielder_step};

TEST(monitor_finds_a_handler_that_does_not_return)
{
    struct api api;
    struct stall_log log;
    struct culprit culprit;
    const skua_handler handler = {.name = "stuck", .run = stuck_handler, .arg = &culprit};
    stall_log_init(&log);
    culprit_init(&culprit);
    api_create(
        &api, (skua_runtime_config){.worker_count = 1, .on_stall = on_stall, .on_stall_arg = &log});
    assert_int_equal(skua_command_register(api.runtime, COMMAND_STUCK, &handler), 0);
    api_start(&api);
    culprit_submit(&culprit, &api, &yielder_type);
    tally_wait(&culprit.entered, 1);

    expect_service_and_name(&api, &log, &culprit, "yielder");

    culprit_release(&culprit);
    api_stop(&api);
}

static void stuck_close(void *self)
{
    struct culprit *culprit = api_world(self);
    tally_add(&culprit->entered, 1);
    tally_wait(&culprit->released, 1);
}

static int ending_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type closing_type = {.name = "closing",
                                               .state_size = sizeof(void *),
                                               .init = api_init_world,
                                               .step = ending_step,
                                               .close = stuck_close};

TEST(monitor_finds_a_close_that_does_not_return)
{
    struct api api;
    struct stall_log log;
    struct culprit culprit;
    stall_log_init(&log);
    culprit_init(&culprit);
    run_logged(&api, &log, (skua_runtime_config){.worker_count = 1});
    culprit_submit(&culprit, &api, &closing_type);
    tally_wait(&culprit.entered, 1);

    expect_service_and_name(&api, &log, &culprit, "closing");

    culprit_release(&culprit);
    api_stop(&api);
}

static void stuck_on_exit(void *arg, skua_exit *exit)
{
    struct culprit *culprit = arg;
    if (exit->type == &first_type) {
        tally_add(&culprit->sent, 1);
        tally_wait(&culprit->may_send, 1);
    }
}

/* Its process has gone, so only the PID is left of it. */
TEST(monitor_finds_an_exit_hook_that_does_not_return)
{
    struct api api;
    struct stall_log log;
    struct culprit culprit;
    stall_log_init(&log);
    culprit_init(&culprit);
    run_logged(&api, &log,
               (skua_runtime_config){
                   .worker_count = 1, .on_exit = stuck_on_exit, .on_exit_arg = &culprit});
    tally_add(&culprit.released, 1);
    culprit_submit(&culprit, &api, &first_type);
    tally_wait(&culprit.sent, 1);

    expect_service_and_name(&api, &log, &culprit, "?");

    culprit_release(&culprit);
    api_stop(&api);
}

/* ---- the limits ---- */

/* With every worker stuck, spare ones included, nobody is left; later everything goes on. */
TEST(monitor_with_every_spare_stuck_too_goes_on_after_the_release)
{
    struct api api;
    struct stall_log log;
    struct culprit culprits[1 + 2];
    struct tally ran;
    stall_log_init(&log);
    tally_init(&ran);
    run_logged(&api, &log, (skua_runtime_config){.worker_count = 1, .spare_limit = 2});
    for (size_t i = 0; i < COUNT_OF(culprits); i++) {
        culprit_init(&culprits[i]);
        culprit_submit(&culprits[i], &api, &first_type);
    }
    for (size_t i = 0; i < COUNT_OF(culprits); i++) {
        (void)wait_named(&log, culprits[i].pid);
    }
    (void)api_submit(&api, &announcer_type, &ran);
    assert_int_equal(skua_stats_read(api.runtime, NULL, NULL, 0), COUNT_OF(culprits));
    assert_int_equal(tally_count(&ran), 0); /* nobody can have run it */

    culprit_release(&culprits[0]);
    tally_wait(&ran, 1);

    for (size_t i = 0; i < COUNT_OF(culprits); i++) {
        assert_named_rightly(&log, &culprits[i], "first culprit",
                             sched_of(&api)->config.stall_limit_ns);
        culprit_release(&culprits[i]);
    }
    api_stop(&api);
}

/* Nobody is left to run them, but they are made ready. False if the timer was faster than the steps
 * that had to be stuck first. */
static bool play_with_nobody_left(uint64_t sleep_ns)
{
    struct api api;
    struct stall_log log;
    struct culprit culprits[1 + 1];
    struct waiter sleeper = {.duration_ns = sleep_ns};
    int ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    struct waiter reader = {.fd = ends[0]};
    stall_log_init(&log);
    run_logged(&api, &log, (skua_runtime_config){.worker_count = 1, .spare_limit = 1});
    const skua_pid reading = waiter_start(&reader, &api);
    const skua_pid sleeping = waiter_start(&sleeper, &api);
    for (size_t i = 0; i < COUNT_OF(culprits); i++) {
        culprit_init(&culprits[i]);
        culprit_submit(&culprits[i], &api, &first_type);
        tally_wait(&culprits[i].entered, 1);
    }
    skua_process_info info;
    const bool right = skua_process_info_read(api.runtime, sleeping, &info) == 0 &&
                       info.state == SKUA_PROCESS_BLOCKED;
    if (right) {
        api_wait_state(&api, sleeping, SKUA_PROCESS_READY);
        assert_int_equal(write(ends[1], "x", 1), 1);
        api_wait_state(&api, reading, SKUA_PROCESS_READY);
    }
    for (size_t i = 0; i < COUNT_OF(culprits); i++) {
        culprit_release(&culprits[i]);
    }
    api_stop(&api);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
    return right;
}

TEST(monitor_itself_looks_at_timers_and_descriptors_when_nobody_else_can)
{
    uint64_t sleep_ns = 100 * SKUA_MILLISECOND;
    while (!play_with_nobody_left(sleep_ns)) {
        sleep_ns *= 2;
    }
}

/* Longer than two looks of the monitor and shorter than the limit. */
#define LARGE_LIMIT_NS (800 * SKUA_MILLISECOND)

TEST(monitor_does_not_report_a_step_below_the_limit)
{
    uint64_t duration_ns = LARGE_LIMIT_NS;
    while (duration_ns >= LARGE_LIMIT_NS) { /* not on a machine that was too slow to tell */
        struct api api;
        struct stall_log log;
        struct culprit culprit;
        const struct timespec length = {.tv_nsec = (long)(LARGE_LIMIT_NS * 5 / 8)};
        stall_log_init(&log);
        culprit_init(&culprit);
        run_logged(&api, &log,
                   (skua_runtime_config){.worker_count = 1, .stall_limit_ns = LARGE_LIMIT_NS});
        culprit_submit(&culprit, &api, &first_type);
        tally_wait(&culprit.entered, 1);
        (void)nanosleep(&length, NULL); /* the length of the step; nothing depends on it */
        culprit_release(&culprit);
        api_wait_end(&api, culprit.pid);
        duration_ns = monotonic_ns() - culprit.submitted;
        const skua_stats stats = api_stats(&api);
        api_stop(&api);
        if (duration_ns < LARGE_LIMIT_NS) {
            assert_int_equal(log.count, 0);
            assert_int_equal(stats.stalls, 0);
            assert_int_equal(stats.spares, 0);
        }
    }
}

/* A process that always goes on, in short steps. */
struct runner {
    uint64_t end;      /* when it has run long enough */
    uint64_t last;     /* when its last step began */
    uint64_t largest;  /* time between two beginnings */
    struct tally done; /* the fields are the test's after that */
};

static int runner_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct runner *runner = api_world(self);
    const uint64_t now = monotonic_ns();
    (void)ctx;
    (void)events;
    (void)count;
    runner->largest = now - runner->last > runner->largest ? now - runner->last : runner->largest;
    runner->last = now;
    if (now < runner->end) {
        skua_step_continue(out);
    } else {
        tally_add(&runner->done, 1);
        skua_step_done(out, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type runner_type = {
    .name = "runner", .state_size = sizeof(void *), .init = api_init_world, .step = runner_step};

TEST(monitor_does_not_take_many_short_steps_of_one_process_for_a_long_one)
{
    const uint64_t limit_ns = 20 * SKUA_MILLISECOND;
    struct runner runner = {.largest = limit_ns};
    while (runner.largest >= limit_ns) { /* a step was interrupted for that long: once more */
        struct api api;
        struct stall_log log;
        stall_log_init(&log);
        run_logged(&api, &log,
                   (skua_runtime_config){.worker_count = 1, .stall_limit_ns = limit_ns});
        const uint64_t now = monotonic_ns();
        runner = (struct runner){.end = now + 5 * limit_ns, .last = now};
        tally_init(&runner.done);
        const skua_pid pid = api_submit(&api, &runner_type, &runner);
        tally_wait(&runner.done, 1);
        api_stop(&api);
        if (runner.largest < limit_ns) {
            assert_int_equal(times_named(&log, pid, NULL), 0);
        }
    }
}

/* ---- what the hook may do ---- */

/* The ends of processes. */
struct exit_log {
    struct tally count;
    pthread_mutex_t lock;
    skua_pid wanted;
    int error;
};

static void on_exit_note(void *arg, skua_exit *exit)
{
    struct exit_log *log = arg;
    (void)pthread_mutex_lock(&log->lock);
    if (skua_pid_equal(exit->pid, log->wanted)) {
        log->error = exit->error;
        tally_add(&log->count, 1);
    }
    (void)pthread_mutex_unlock(&log->lock);
}

/* Under the log's lock, on the monitor's thread. */
static void tell_and_end(struct stall_log *log, const skua_stall *stall)
{
    log->results[0] = skua_message_send(log->runtime, log->friend, skua_payload_empty(0));
    log->results[1] = skua_process_terminate(log->runtime, stall->pid);
    skua_payload input = api_world_payload(NULL);
    log->results[2] = skua_process_submit(log->runtime, &api_idler, NULL, &input, 1, NULL);
}

TEST(monitor_hook_may_send_terminate_and_submit)
{
    struct api api;
    struct stall_log log;
    struct culprit culprit;
    struct tally received;
    struct exit_log exits = {.error = 1};
    stall_log_init(&log);
    culprit_init(&culprit);
    tally_init(&exits.count);
    assert_int_equal(pthread_mutex_init(&exits.lock, NULL), 0);
    culprit.stays = true; /* or else it would have ended by itself */
    run_logged(
        &api, &log,
        (skua_runtime_config){.worker_count = 1, .on_exit = on_exit_note, .on_exit_arg = &exits});
    const skua_pid friend = listener_start(&received, &api);
    (void)pthread_mutex_lock(&log.lock);
    log.react = tell_and_end;
    log.friend = friend;
    (void)pthread_mutex_unlock(&log.lock);
    (void)pthread_mutex_lock(&exits.lock); /* until it is known whose end is wanted */
    culprit_submit(&culprit, &api, &first_type);
    exits.wanted = culprit.pid;
    (void)pthread_mutex_unlock(&exits.lock);

    tally_wait(&received, 1); /* while the culprit is still in its step */
    (void)wait_named(&log, culprit.pid);
    culprit_release(&culprit);
    tally_wait(&exits.count, 1);

    assert_int_equal(exits.error, SKUA_E_TERMINATED);
    assert_int_equal(log.results[0], 0);
    assert_int_equal(log.results[1], 0);
    assert_int_equal(log.results[2], 0);
    api_stop(&api);
}

/* ---- backtraces ---- */

struct captive {
    struct culprit culprit;
    void *return_address; /* within its step */
};

__attribute__((noinline)) static void wait_for_release(struct captive *captive)
{
    captive->return_address = __builtin_return_address(0);
    tally_add(&captive->culprit.entered, 1);
    tally_wait(&captive->culprit.released, 1);
}

static int captive_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    (void)ctx;
    (void)events;
    (void)count;
    wait_for_release(api_world(self));
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type captive_type = {
    .name = "captive", .state_size = sizeof(void *), .init = api_init_world, .step = captive_step};

/* One stuck step; returns how it was reported. */
static struct record report_captive(struct stall_log *log, const struct api *api)
{
    struct captive captive;
    culprit_init(&captive.culprit);
    culprit_submit(&captive.culprit, api, &captive_type);
    tally_wait(&captive.culprit.entered, 1);
    (void)pthread_mutex_lock(&log->lock);
    log->wanted = captive.return_address;
    (void)pthread_mutex_unlock(&log->lock);
    const struct record record = wait_named(log, captive.culprit.pid);
    culprit_release(&captive.culprit);
    api_wait_end(api, captive.culprit.pid);
    assert_string_equal(record.stall.type_name, "captive");
    return record;
}

/* The monitor does not wait long for a thread that gets no CPU, and may be faster with its first
 * report than the test with the address that it looks for, so this is tried a few times. */
TEST(monitor_with_a_signal_gives_the_stack_of_the_stuck_step)
{
    struct record record = {0};
    struct api api;
    struct stall_log log;
    stall_log_init(&log);
    run_logged(&api, &log, (skua_runtime_config){.worker_count = 2, .stall_signal = SIGUSR2});
    for (int attempt = 0; attempt < 100 && !record.found; attempt++) {
        record = report_captive(&log, &api);
    }
    assert_in_range(record.stall.frame_count, 2, BACKTRACE_MAX);
    assert_true(record.frames_are_set);
    assert_true(record.found);
    api_stop(&api);
}

static void ignore_signal(int number)
{
    (void)number;
}

static bool handler_is(int number, void (*handler)(int))
{
    struct sigaction action;
    assert_int_equal(sigaction(number, NULL, &action), 0);
    return action.sa_handler == handler;
}

TEST(monitor_signal_is_handed_back_by_the_last_runtime_that_uses_it)
{
    const struct sigaction mine = {.sa_handler = ignore_signal};
    struct sigaction before;
    struct api apis[2];
    assert_int_equal(sigaction(SIGUSR2, &mine, &before), 0);
    for (size_t i = 0; i < COUNT_OF(apis); i++) {
        api_create(&apis[i], (skua_runtime_config){.worker_count = 1, .stall_signal = SIGUSR2});
        assert_true(handler_is(SIGUSR2, ignore_signal) == (i == 0));
        api_start(&apis[i]);
        assert_false(handler_is(SIGUSR2, ignore_signal));
    }
    api_stop(&apis[0]);
    assert_false(handler_is(SIGUSR2, ignore_signal));
    api_stop(&apis[1]);
    assert_true(handler_is(SIGUSR2, ignore_signal));
    assert_int_equal(sigaction(SIGUSR2, &before, NULL), 0);
}

TEST(monitor_signal_that_cannot_be_caught_is_refused)
{
    static const int refused[] = {SIGKILL, SIGSTOP, NSIG, 1000, INT32_MAX};
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct api api;
        const uint32_t threads = os_wait_alone();
        const uint32_t files = os_file_count();
        api_create(&api, (skua_runtime_config){.stall_signal = refused[i]});
        assert_int_equal(skua_runtime_start(api.runtime), SKUA_E_INVALID);
        assert_int_equal(os_thread_count(), threads);
        assert_int_equal(os_file_count(), files);
        assert_int_equal(skua_runtime_stop(api.runtime, 0), SKUA_E_NOT_STARTED);
        assert_int_equal(skua_runtime_destroy(api.runtime), 0);
        assert_true(counting_allocator_is_clean(&api.memory));
    }
}

TEST(monitor_limits_out_of_range_are_refused)
{
    static const skua_runtime_config refused[] = {
        {.stall_signal = -1},
        {.stall_limit_ns = SKUA_MILLISECOND - 1},
        {.stall_limit_ns = SKUA_FOREVER},
        {.spare_limit = SKUA_SPARES_MAX + 1},
    };
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        skua_runtime *runtime;
        assert_int_equal(skua_runtime_create(&runtime, &refused[i]), SKUA_E_INVALID);
    }
    skua_runtime_config config = {.stall_limit_ns = SKUA_MILLISECOND,
                                  .spare_limit = SKUA_SPARES_MAX};
    struct api api;
    api_create(&api, config);
    assert_int_equal(skua_runtime_config_read(api.runtime, &config), 0);
    assert_int_equal(config.stall_limit_ns, SKUA_MILLISECOND);
    assert_int_equal(config.spare_limit, SKUA_SPARES_MAX);
    api_start(&api);
    api_stop(&api);
}

/* ---- sleeping ---- */

/* Timers and descriptors that are waited for do not keep it awake, as they do no worker. */
TEST(monitor_sleeps_while_all_is_idle_and_wakes_for_work)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct stall_log log;
    int ends[2];
    struct waiter sleeper = {.duration_ns = 3600 * SKUA_SECOND};
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    struct waiter reader = {.fd = ends[0]};
    stall_log_init(&log);
    run_logged(&api, &log, (skua_runtime_config){.worker_count = workers});
    wait_until(monitor_is_asleep, sched_of(&api), "the monitor to sleep");
    (void)waiter_start(&sleeper, &api);
    (void)waiter_start(&reader, &api);

    for (int round = 0; round < 3; round++) {
        struct culprit culprit;
        culprit_init(&culprit);
        wait_until(monitor_is_asleep, sched_of(&api), "the monitor to sleep again");
        culprit_submit(&culprit, &api, &first_type);
        (void)wait_named(&log, culprit.pid);
        assert_false(monitor_is_asleep(sched_of(&api)));
        assert_named_rightly(&log, &culprit, "first culprit",
                             sched_of(&api)->config.stall_limit_ns);
        culprit_release(&culprit);
        api_wait_end(&api, culprit.pid);
    }
    wait_until(monitor_is_asleep, sched_of(&api), "the monitor to sleep at last");
    assert_int_equal(tally_count(&sleeper.served), 0);
    assert_int_equal(tally_count(&reader.served), 0);
    api_stop(&api);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
}

/* Says that it blocks; when it does not any more, it is stuck. */
static int blocking_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                         skua_step *out)
{
    struct culprit *culprit = api_world(self);
    (void)events;
    (void)count;
    culprit->send_error = skua_blocking_begin(ctx);
    tally_add(&culprit->entered, 1);
    tally_wait(&culprit->may_send, 1);
    culprit->send_error += skua_blocking_end(ctx);
    tally_add(&culprit->sent, 1);
    tally_wait(&culprit->released, 1);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type blocking_type = {.name = "blocking",
                                                .state_size = sizeof(void *),
                                                .init = api_init_world,
                                                .step = blocking_step};

TEST(monitor_sleeps_while_a_step_blocks_and_finds_it_stuck_afterwards)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct stall_log log;
    struct culprit culprit;
    stall_log_init(&log);
    culprit_init(&culprit);
    run_logged(&api, &log, (skua_runtime_config){.worker_count = workers});
    culprit_submit(&culprit, &api, &blocking_type);
    tally_wait(&culprit.entered, 1);
    wait_until(monitor_is_asleep, sched_of(&api), "the monitor to sleep");
    assert_int_equal(times_named(&log, culprit.pid, NULL), 0);

    tally_add(&culprit.may_send, 1);
    tally_wait(&culprit.sent, 1);

    (void)wait_named(&log, culprit.pid); /* with nothing else to wake it */
    expect_service_and_name(&api, &log, &culprit, "blocking");
    assert_int_equal(culprit.send_error, 0);
    culprit_release(&culprit);
    api_stop(&api);
}

/* Its thread must not be left behind, however deep it sleeps. */
TEST(monitor_that_sleeps_does_not_hold_up_the_stop)
{
    const uint32_t threads = os_wait_alone();
    struct api api;
    api_run(&api, 1);
    assert_int_equal(os_thread_count(), threads + 2);
    wait_until(monitor_is_asleep, sched_of(&api), "the monitor to sleep");
    api_stop(&api);
    assert_int_equal(os_wait_alone(), threads);
}

TEST(monitor_with_the_longest_limit_does_not_hold_up_the_stop)
{
    struct probe probe = {.habit = PROBE_ENDS};
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 2, .stall_limit_ns = SKUA_DURATION_MAX});
    api_start(&api);
    (void)api_run_process(&api, &probe_type, &probe);
    assert_int_equal(atomic_load(&probe.closes), 1);
    api_stop(&api);
}

/* ---- after a stall ---- */

#define CLEAR_LIMIT_NS (100 * SKUA_MILLISECOND) /* no short step takes that long */

static bool spares_rest(struct scheduler *sched)
{
    return load_seq_cst(&sched->spare.resting) + sched->worker_count == scheduler_threads(sched);
}

/* Two processes run at the same time on one worker and a spare one, which rests after that. */
static void let_spares_rest(const struct api *api)
{
    while (!spares_rest(sched_of(api))) {
        struct blocker blocker;
        struct tally ran;
        tally_init(&ran);
        blocker_start(&blocker, api);
        const skua_pid other = api_submit(api, &announcer_type, &ran);
        tally_wait(&ran, 1);
        api_wait_end(api, other);
        blocker_release(&blocker);
        api_wait_end(api, blocker.pid);
        struct others none = {.sched = sched_of(api)};
        wait_until(others_sleep, &none, "all workers to sleep");
    }
}

/* A spare worker that rests is in no step, whatever it has run last: it must be taken neither for
 * stuck by the monitor nor for running by the stop. */
TEST(monitor_takes_a_spare_that_rests_for_what_it_is)
{
    struct api api;
    struct stall_log log;
    struct culprit culprit;
    struct tally received[2];
    skua_pid listeners[2];
    stall_log_init(&log);
    culprit_init(&culprit);
    run_logged(&api, &log,
               (skua_runtime_config){.worker_count = 1, .stall_limit_ns = CLEAR_LIMIT_NS});
    culprit_submit(&culprit, &api, &first_type);
    (void)wait_named(&log, culprit.pid);
    for (size_t i = 0; i < COUNT_OF(listeners); i++) {
        listeners[i] = listener_start(&received[i], &api); /* it runs on the spare worker */
    }
    culprit_release(&culprit);
    api_wait_end(&api, culprit.pid);
    let_spares_rest(&api);
    assert_int_equal(load_seq_cst(&sched_of(&api)->spare.resting), 1);

    /* Before it sleeps the monitor looks for longer than the limit. */
    wait_until(monitor_is_asleep, sched_of(&api), "the monitor to sleep");

    assert_int_equal(load_seq_cst(&sched_of(&api)->spare.resting), 1);
    for (size_t i = 0; i < COUNT_OF(listeners); i++) {
        assert_int_equal(times_named(&log, listeners[i], NULL), 0);
    }
    assert_int_equal(log.count, 1);
    assert_int_equal(api_stats(&api).stalls, 1);
    assert_int_equal(api_stats(&api).spares, 1);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(load_seq_cst(&sched_of(&api)->workers[i].running), RUNNING_NOTHING);
    }
    api_stop(&api);
}

/* The same few threads serve again and again. */
TEST(monitor_uses_the_same_spare_for_stall_after_stall)
{
    struct api api;
    struct stall_log log;
    stall_log_init(&log);
    run_logged(&api, &log,
               (skua_runtime_config){.worker_count = 1, .stall_limit_ns = SKUA_MILLISECOND});
    for (int round = 0; round < 20; round++) {
        struct culprit culprit;
        struct tally ran;
        tally_init(&ran);
        culprit_init(&culprit);
        culprit_submit(&culprit, &api, &first_type);
        (void)wait_named(&log, culprit.pid);
        (void)api_submit(&api, &announcer_type, &ran);
        tally_wait(&ran, 1);
        culprit_release(&culprit);
        api_wait_end(&api, culprit.pid);
        if (round % 2 == 0) {
            let_spares_rest(&api);
        }
    }
    /* A short step may have taken a millisecond as well, so one more may have been needed. */
    assert_in_range(skua_stats_read(api.runtime, NULL, NULL, 0), 2, 4);
    assert_true(api_stats(&api).stalls >= 20);
    api_stop(&api);
}
