/* SPDX-License-Identifier: MIT */
/* Workloads of processes that ask each other, and that hear of each other's end. */
#include <stdio.h>

#include "bench.h"

/* ---- call, call-timeout: two processes, one asks, the other answers ---- */

#define ANSWER_NS (10 * SKUA_SECOND)

static int server_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++) {
        if (events[i].type == SKUA_EVENT_CALL) {
            error = skua_reply(ctx, events[i].request, 0, skua_nothing());
        }
    }
    return error;
}

static const skua_process_type server_type = {.name = "server", .step = server_step, .calls = true};

struct caller {
    skua_pid server;
    uint64_t timeout_ns;
    uint64_t answers;
};

static int caller_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    struct caller *caller = self;
    (void)input;
    (void)input_count;
    caller->timeout_ns = skua_method(ctx)[0] == 'f' ? SKUA_FOREVER : ANSWER_NS;
    return 0;
}

static int caller_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct caller *caller = self;
    (void)count;
    int error = events[0].error;
    if (bench_starts(events)) {
        error = skua_spawn(ctx, &server_type, skua_nothing(), &caller->server);
    } else {
        caller->answers++;
    }
    if (error != 0) {
        return error;
    }
    if (caller->answers == MILLION) {
        skua_done(ctx, skua_payload_u64(0, caller->answers));
        return skua_terminate(ctx, caller->server);
    }
    return skua_yield_call(ctx, 1, caller->server, skua_nothing(), caller->timeout_ns);
}

static const char *const caller_methods[] = {"forever", "timed", NULL};
static const skua_process_type caller_type = {
    .name = "caller",
    .state_size = sizeof(struct caller),
    .methods = caller_methods,
    .init = caller_init,
    .step = caller_step,
};

struct measurement bench_call(uint32_t workers)
{
    return bench_run_counted(bench_start(workers), &caller_type, "forever", MILLION, "call");
}

struct measurement bench_call_timeout(uint32_t workers)
{
    return bench_run_counted(bench_start(workers), &caller_type, "timed", MILLION, "call-timeout");
}

/* ---- monitor: set and taken back ---- */

struct observer {
    skua_pid idler;
    uint64_t taken_back;
};

/* One a step, as a process would that watches another while it waits for something of it. */
static int observer_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct observer *observer = self;
    int error = 0;
    if (bench_starts(events)) {
        error = skua_spawn(ctx, &bench_idler_type, skua_nothing(), &observer->idler);
    } else {
        expect_right(count == 1 && events[0].error == SKUA_E_CANCELLED,
                     "monitor: one was not taken back");
        observer->taken_back++;
    }
    if (observer->taken_back == MILLION) {
        skua_done(ctx, skua_payload_u64(0, observer->taken_back));
        return skua_terminate(ctx, observer->idler);
    }
    if (error == 0) {
        error = skua_yield_monitor(ctx, 1, observer->idler, SKUA_FOREVER);
    }
    return error != 0 ? error : skua_yield_cancel(ctx, 1);
}

static const skua_process_type observer_type = {
    .name = "observer", .state_size = sizeof(struct observer), .step = observer_step};

struct measurement bench_monitor(uint32_t workers)
{
    return bench_run_counted(bench_start(workers), &observer_type, NULL, MILLION, "monitor");
}

/* ---- monitor-storm, link-storm: a process ends, and very many are told ---- */

#define LOOK_NS 1000000l /* from one look whether all are told to the next */

static struct {
    atomic_uint watching;
    _Atomic uint64_t begin_ns;
    double cpu_s; /* at the begin; published with it */
} storm;

static void clear_storm(void)
{
    tally_clear();
    atomic_store(&storm.watching, 0);
    atomic_store(&storm.begin_ns, 0);
}

static void begin_storm(void)
{
    storm.cpu_s = cpu_seconds();
    atomic_store(&storm.begin_ns, now_ns());
}

/* Asks the process to end, which begins the storm, and waits until so many know. */
static struct measurement watch_storm(skua_runtime *runtime, skua_pid centre, uint32_t size,
                                      uint64_t (*how_many)(void))
{
    heart_start(runtime);
    expect_ok(skua_process_send(runtime, centre, skua_nothing()), "send");
    while (how_many() < size) {
        bench_sleep(LOOK_NS);
    }
    const uint64_t elapsed = now_ns() - atomic_load(&storm.begin_ns);
    const double cpu_s = cpu_seconds() - storm.cpu_s;
    const double late = heart_stop();
    expect_right(how_many() == size, "how many were told");
    struct measurement result = bench_finish(runtime, size, elapsed);
    result.value = (double)elapsed / 1e9;
    result.cpu_s = cpu_s;
    result.max_ms = late;
    snprintf(result.note, sizeof result.note,
             "%.2f us of CPU time for each; a heartbeat is at most %.2f ms late",
             cpu_s * 1e6 / size, late);
    return result;
}

static int subject_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    if (bench_count(events, count) == 0) {
        return 0;
    }
    begin_storm();
    return skua_done(ctx, skua_nothing());
}

static const skua_process_type subject_type = {.name = "subject", .step = subject_step};

struct watcher {
    skua_pid subject;
};

static int watcher_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)ctx;
    (void)input_count;
    ((struct watcher *)self)->subject = skua_payload_to_pid(&input[0]);
    return 0;
}

static int watcher_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    const struct watcher *watcher = self;
    (void)count;
    if (bench_starts(events)) {
        atomic_fetch_add(&storm.watching, 1);
        return skua_yield_monitor(ctx, 1, watcher->subject, SKUA_FOREVER);
    }
    if (events[0].type == SKUA_EVENT_COMPLETION) {
        expect_ok(events[0].error, "monitor-storm");
        expect_right(skua_payload_to_u64(&events[0].payload) == watcher->subject.bits,
                     "monitor-storm: who has ended");
        tally_add();
    }
    return 0;
}

static const skua_process_type watcher_type = {.name = "watcher",
                                               .state_size = sizeof(struct watcher),
                                               .init = watcher_init,
                                               .step = watcher_step};

struct measurement bench_monitor_storm(uint32_t workers, uint32_t size)
{
    skua_pid subject;
    skua_runtime *runtime = bench_start(workers);
    clear_storm();
    expect_ok(skua_process_submit(runtime, &subject_type, skua_nothing(), &subject), "submit");
    for (uint32_t i = 0; i < size; i++) {
        expect_ok(skua_process_submit(runtime, &watcher_type, skua_payload_pid(0, subject), NULL),
                  "submit");
    }
    bench_wait_for(&storm.watching, size);
    return watch_storm(runtime, subject, size, tally_sum);
}

/* A member of a group ends with the others, if one fails. */
static void member_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self;
    (void)ctx;
    expect_right(exit->error == SKUA_E_USER, "link-storm: how one has ended");
    tally_add();
}

static const skua_process_type member_type = {
    .name = "member", .step = bench_idle, .close = member_close};

struct leader {
    uint32_t size;
};

static int leader_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)ctx;
    (void)input_count;
    ((struct leader *)self)->size = (uint32_t)skua_payload_to_u64(&input[0]);
    return 0;
}

/* Starts the members, linked to it, and fails when it is told to. */
static int leader_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    const struct leader *leader = self;
    int error = 0;
    (void)count;
    if (!bench_starts(events)) {
        begin_storm();
        return SKUA_E_USER;
    }
    for (uint32_t i = 0; i < leader->size && error == 0; i++) {
        error =
            skua_spawn_with(ctx, &(skua_spawn_options){.type = &member_type, .link = true}, NULL);
    }
    atomic_store(&storm.watching, leader->size);
    return error;
}

static const skua_process_type leader_type = {.name = "leader",
                                              .state_size = sizeof(struct leader),
                                              .init = leader_init,
                                              .step = leader_step};

struct measurement bench_link_storm(uint32_t workers, uint32_t size)
{
    skua_pid leader;
    skua_runtime *runtime = bench_start(workers);
    clear_storm();
    expect_ok(skua_process_submit(runtime, &leader_type, skua_payload_u64(0, size), &leader),
              "submit");
    bench_wait_for(&storm.watching, size);
    return watch_storm(runtime, leader, size, tally_sum);
}
