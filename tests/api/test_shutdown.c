/* SPDX-License-Identifier: MIT */
/* Stopping a runtime: every process is asked to finish exactly once, those that do not are named
 * and ended, nothing that races with the stop is left behind, and the call always returns. */
#include <time.h>

#include "effort.h"
#include "runtime_support.h"

#define MILLISECOND UINT64_C(1000000)

/* Stops where no step is stuck. On a busy machine a worker may not get a CPU for so long that it is
 * taken for stuck; the call is then repeated, as its header says. Any thread. */
static int stop_patiently(skua_runtime *runtime, uint64_t timeout_ns)
{
    int result = skua_runtime_stop(runtime, timeout_ns);
    while (result == SKUA_E_STUCK) {
        result = skua_runtime_stop(runtime, SKUA_FOREVER);
    }
    return result;
}

/* ---- one cancel event for everybody ---- */

#define CROWD    500
#define STUBBORN 20

TEST(shutdown_of_idle_processes_cancels_each_once_and_returns_0)
{
    static struct probe crowd[CROWD];
    const uint32_t workers = test_workers();
    struct api api;
    memset(crowd, 0, sizeof crowd);
    api_run(&api, workers);
    for (size_t i = 0; i < CROWD; i++) {
        (void)api_submit(&api, &probe_type, &crowd[i]);
    }
    api_stop(&api);
    for (size_t i = 0; i < CROWD; i++) {
        assert_probe_stopped_once(&crowd[i]);
        /* The first step and the one with the cancel event, or both at once. */
        assert_in_range(atomic_load(&crowd[i].steps), 1, 2);
    }
}

/* A process that is in its step, one that waits for a worker, one that waits for a completion. */

/* Holds its worker until it is let go, then behaves like a probe. */
struct holder {
    struct probe probe; /* first, so that a holder's world is a probe's too */
    struct tally entered;
    struct tally released;
};

static int holder_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct holder *holder = api_world(self);
    if (atomic_load(&holder->probe.steps) == 0) {
        tally_add(&holder->entered, 1);
        tally_wait(&holder->released, 1);
    }
    return probe_type.step(self, ctx, events, count, out);
}

static void holder_close(void *self)
{
    probe_type.close(self);
}

static const skua_process_type holder_type = {
    .name = "holder",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = holder_step,
    .close = holder_close,
};

/* Returns when the holder has its worker. */
static skua_pid holder_start(struct holder *holder, const struct api *api, enum probe_habit habit)
{
    memset(holder, 0, sizeof *holder);
    holder->probe.habit = habit;
    tally_init(&holder->entered);
    tally_init(&holder->released);
    const skua_pid pid = api_submit(api, &holder_type, holder);
    tally_wait(&holder->entered, 1);
    return pid;
}

struct stop_call {
    const struct api *api;
    uint64_t timeout_ns;
    int result;
    pthread_t thread;
    struct tally returned;
};

static void *stop_on_thread(void *arg)
{
    struct stop_call *call = arg;
    call->result = stop_patiently(call->api->runtime, call->timeout_ns);
    tally_add(&call->returned, 1);
    return NULL;
}

static void stop_begin(struct stop_call *call, const struct api *api, uint64_t timeout_ns)
{
    *call = (struct stop_call){.api = api, .timeout_ns = timeout_ns};
    tally_init(&call->returned);
    assert_int_equal(pthread_create(&call->thread, NULL, stop_on_thread, call), 0);
}

static int stop_join(struct stop_call *call)
{
    assert_int_equal(pthread_join(call->thread, NULL), 0);
    return call->result;
}

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
    .name = "never born", .init = refuse_init, .step = holder_step};

/* A stop that has begun refuses new processes before their init. */
static bool stop_has_begun(void *arg)
{
    const struct api *api = arg;
    return skua_process_submit(api->runtime, &never_born, NULL, NULL, 0, NULL) == SKUA_E_STOPPED;
}

TEST(shutdown_reaches_running_and_queued_processes)
{
    struct holder running;
    struct probe queued[5] = {{.habit = PROBE_OBEYS}};
    struct stop_call stop;
    struct api api;
    api_run(&api, 1);
    (void)holder_start(&running, &api, PROBE_OBEYS);
    for (size_t i = 0; i < COUNT_OF(queued); i++) {
        (void)api_submit(&api, &probe_type, &queued[i]);
    }

    stop_begin(&stop, &api, SKUA_FOREVER);
    wait_until(stop_has_begun, &api, "the stop to begin");
    assert_int_equal(tally_count(&stop.returned), 0);
    tally_add(&running.released, 1);

    assert_int_equal(stop_join(&stop), 0);
    assert_probe_stopped_once(&running.probe);
    for (size_t i = 0; i < COUNT_OF(queued); i++) {
        assert_probe_stopped_once(&queued[i]);
    }
    api_stop(&api);
}

/* A process that sends itself a message for each that it gets, so their number stays the same. */
static int circulating_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                            skua_step *out)
{
    const uint32_t *circulating = api_world(self);
    if (api_finish_if_cancelled(events, count, out)) {
        return 0;
    }
    for (size_t i = count == 0 ? *circulating : count; i > 0; i--) {
        const int error = skua_context_send(ctx, skua_context_self(ctx), skua_payload_empty(0));
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

static const skua_process_type circulating_type = {.name = "circulating",
                                                   .state_size = sizeof(void *),
                                                   .init = api_init_world,
                                                   .step = circulating_step};

/* The cancel event has its place behind what came before it, not behind what comes later. */
TEST(shutdown_reaches_a_process_that_always_has_messages)
{
    static const uint32_t counts[] = {1,
                                      2,
                                      SKUA_EVENTS_PER_STEP - 1,
                                      SKUA_EVENTS_PER_STEP,
                                      SKUA_EVENTS_PER_STEP + 1,
                                      2 * SKUA_EVENTS_PER_STEP - 1,
                                      2 * SKUA_EVENTS_PER_STEP};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct api api;
        uint32_t circulating = counts[i];
        api_run(&api, 1);
        const skua_pid pid = api_submit(&api, &circulating_type, &circulating);
        api_wait_steps(&api, pid, 10);
        api_stop(&api);
    }
}

static bool all_are_cancelled(void *arg)
{
    struct probe *probes = arg;
    for (size_t i = 0; i < STUBBORN; i++) {
        if (atomic_load(&probes[i].stops) == 0) {
            return false;
        }
    }
    return true;
}

TEST(shutdown_cancels_those_that_ignore_it_only_once)
{
    struct probe probes[STUBBORN] = {{0}};
    skua_pid pids[STUBBORN];
    struct stop_call stop;
    struct api api;
    api_run(&api, 2);
    for (size_t i = 0; i < STUBBORN; i++) {
        probes[i].habit = PROBE_IGNORES;
        pids[i] = api_submit(&api, &probe_type, &probes[i]);
        assert_int_equal(skua_process_cancel(api.runtime, pids[i], SKUA_E_USER), 0);
    }

    stop_begin(&stop, &api, SKUA_FOREVER);
    wait_until(all_are_cancelled, probes, "cancel events");
    /* Further steps bring no further ones. */
    for (size_t i = 0; i < STUBBORN; i++) {
        assert_int_equal(skua_message_send(api.runtime, pids[i], skua_payload_empty(0)), 0);
        api_wait_state(&api, pids[i], SKUA_PROCESS_IDLE);
        assert_int_equal(skua_process_terminate(api.runtime, pids[i]), 0);
    }

    assert_int_equal(stop_join(&stop), 0);
    for (size_t i = 0; i < STUBBORN; i++) {
        assert_int_equal(atomic_load(&probes[i].cancels), 2);
        assert_int_equal(atomic_load(&probes[i].stops), 1);
        assert_int_equal(atomic_load(&probes[i].messages), 1);
        assert_int_equal(atomic_load(&probes[i].closes), 1);
    }
    api_stop(&api);
}

/* ---- processes that wait for completions ---- */

#define COMMAND_LATER 1

/* Keeps the completions of its commands for the test. */
struct pending {
    _Atomic(uint64_t) count;
    skua_completion completions[1000];
};

static int keep_pending(void *arg, skua_command *command, skua_payload *result)
{
    struct pending *pending = arg;
    (void)result;
    const uint64_t index = atomic_fetch_add(&pending->count, 1);
    pending->completions[index] = command->completion;
    return SKUA_PENDING;
}

/* Yields once at the start; `after_cancel`: once more when cancelled, and finishes with the
 * completion of that. */
struct yielder {
    struct probe probe;
    bool after_cancel;
    struct tracked input;
    struct tally yielded;
};

static int yielder_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct yielder *yielder = api_world(self);
    const unsigned completions = atomic_load(&yielder->probe.completions);
    const unsigned cancels = atomic_load(&yielder->probe.cancels);
    const bool first = atomic_load(&yielder->probe.steps) == 0;
    (void)probe_type.step(self, ctx, events, count, out);
    const bool cancelled = atomic_load(&yielder->probe.cancels) > cancels;
    const bool completed = atomic_load(&yielder->probe.completions) > completions;
    if (first || (cancelled && yielder->after_cancel)) {
        const skua_payload input =
            first ? tracked_payload(0, &yielder->input) : skua_payload_empty(0);
        const int error = skua_step_yield(out, COMMAND_LATER, 0, input);
        tally_add(&yielder->yielded, error == 0);
    }
    if (completed && yielder->after_cancel) {
        skua_step_done(out, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type yielder_type = {
    .name = "yielder",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = yielder_step,
    .close = holder_close,
};

static void pending_run(struct api *api, struct pending *pending, uint32_t workers)
{
    const skua_handler handler = {.name = "later", .run = keep_pending, .arg = pending};
    memset(pending, 0, sizeof *pending);
    api_create(api, (skua_runtime_config){.worker_count = workers});
    assert_int_equal(skua_command_register(api->runtime, COMMAND_LATER, &handler), 0);
    api_start(api);
}

static void yielder_start(struct yielder *yielder, const struct api *api, skua_pid *pid)
{
    tally_init(&yielder->yielded);
    *pid = api_submit(api, &yielder_type, yielder);
    api_wait_state(api, *pid, SKUA_PROCESS_BLOCKED);
}

TEST(shutdown_with_outstanding_yields_makes_their_completions_late)
{
    static struct pending pending;
    struct yielder yielders[20] = {{.after_cancel = false}};
    struct tracked results[20] = {{0}};
    skua_pid pid;
    struct api api;
    pending_run(&api, &pending, 2);
    for (size_t i = 0; i < COUNT_OF(yielders); i++) {
        yielder_start(&yielders[i], &api, &pid);
    }

    assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), 0);

    for (size_t i = 0; i < COUNT_OF(yielders); i++) {
        assert_probe_stopped_once(&yielders[i].probe);
        assert_int_equal(atomic_load(&yielders[i].probe.completions), 0);
        assert_drops(&yielders[i].input, 1, 1);
        assert_int_equal(skua_command_complete(api.runtime, pending.completions[i], 0,
                                               tracked_payload(0, &results[i])),
                         SKUA_E_LATE);
    }
    assert_drops(results, COUNT_OF(results), 1);
    assert_int_equal(api_stats(&api).late_completions, COUNT_OF(results));
    api_stop(&api);
}

static bool second_yield_is_pending(void *arg)
{
    struct pending *pending = arg;
    return atomic_load(&pending->count) == 2;
}

TEST(shutdown_waits_for_a_process_that_needs_a_completion_to_finish)
{
    static struct pending pending;
    struct yielder yielder = {.probe.habit = PROBE_IGNORES, .after_cancel = true};
    struct stop_call stop;
    struct tracked result = {0};
    skua_pid pid;
    struct api api;
    pending_run(&api, &pending, 2);
    yielder_start(&yielder, &api, &pid);

    stop_begin(&stop, &api, SKUA_FOREVER);
    wait_until(second_yield_is_pending, &pending, "the yield of a cancelled process");
    assert_int_equal(tally_count(&stop.returned), 0);
    api_wait_state(&api, pid, SKUA_PROCESS_BLOCKED); /* it has been added to the open calls */
    assert_int_equal(
        skua_command_complete(api.runtime, pending.completions[1], 0, tracked_payload(0, &result)),
        0);

    assert_int_equal(stop_join(&stop), 0);
    assert_int_equal(atomic_load(&yielder.probe.completions), 1);
    assert_probe_stopped_once(&yielder.probe);
    assert_drops(&result, 1, 1);
    api_stop(&api);
}

/* A thread that completes while another stops the runtime. */
struct completer {
    const struct api *api;
    struct pending *pending;
    struct tracked results[100];
    uint32_t in_time;
    uint32_t late;
    uint32_t other;
};

static void complete_all(void *arg)
{
    struct completer *completer = arg;
    for (size_t i = 0; i < COUNT_OF(completer->results); i++) {
        const int error =
            skua_command_complete(completer->api->runtime, completer->pending->completions[i], 0,
                                  tracked_payload(0, &completer->results[i]));
        completer->in_time += error == 0;
        completer->late += error == SKUA_E_LATE;
        completer->other += error != 0 && error != SKUA_E_LATE;
    }
}

static void *complete_on_thread(void *arg)
{
    complete_all(arg);
    return NULL;
}

static void race_completions_with_stop(void)
{
    static struct pending pending;
    static struct yielder yielders[100];
    static struct completer completer;
    memset(yielders, 0, sizeof yielders);
    memset(&completer, 0, sizeof completer);
    pthread_t thread;
    skua_pid pid;
    struct api api;
    pending_run(&api, &pending, 2);
    completer.api = &api;
    completer.pending = &pending;
    for (size_t i = 0; i < COUNT_OF(yielders); i++) {
        yielder_start(&yielders[i], &api, &pid);
    }

    assert_int_equal(pthread_create(&thread, NULL, complete_on_thread, &completer), 0);
    assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);

    assert_int_equal(completer.other, 0);
    assert_int_equal(completer.in_time + completer.late, COUNT_OF(yielders));
    assert_int_equal(api_stats(&api).late_completions, completer.late);
    assert_drops(completer.results, COUNT_OF(completer.results), 1);
    uint32_t seen = 0;
    for (size_t i = 0; i < COUNT_OF(yielders); i++) {
        assert_probe_stopped_once(&yielders[i].probe);
        seen += atomic_load(&yielders[i].probe.completions);
    }
    /* An accepted one may still come after the last step. */
    assert_in_range(seen, 0, completer.in_time);
    api_stop(&api);
}

TEST(shutdown_racing_with_completions_loses_no_payload)
{
    for (int round = 0; round < EFFORT(100); round++) {
        race_completions_with_stop();
    }
}

/* ---- survivors ---- */

#define SURVIVORS_MAX 16

/* What on_survivor was told. Called on the thread that stops, so without a lock. */
struct survivors {
    skua_process_info infos[SURVIVORS_MAX];
    uint32_t count;
    /* What to do at each call; may be null. */
    void (*then)(void *arg, const skua_process_info *info);
    void *then_arg;
};

static void note_survivor(void *arg, const skua_process_info *info)
{
    struct survivors *survivors = arg;
    if (survivors->count < SURVIVORS_MAX) {
        survivors->infos[survivors->count] = *info;
    }
    survivors->count++;
    if (survivors->then != NULL) {
        survivors->then(survivors->then_arg, info);
    }
}

static void survivors_run(struct api *api, struct survivors *survivors, uint32_t workers)
{
    api_create(api, (skua_runtime_config){.worker_count = workers,
                                          .on_survivor = note_survivor,
                                          .on_survivor_arg = survivors});
    api_start(api);
}

/* What was said about a process; fails if that was not said exactly once. */
static const skua_process_info *survivor_info(const struct survivors *survivors, skua_pid pid)
{
    const skua_process_info *found = NULL;
    for (uint32_t i = 0; i < survivors->count && i < SURVIVORS_MAX; i++) {
        if (skua_pid_equal(survivors->infos[i].pid, pid)) {
            assert_null(found);
            found = &survivors->infos[i];
        }
    }
    assert_non_null(found);
    return found;
}

/* Those that had to be ended may have been ended before their cancel event. */
static void assert_probe_ended(struct probe *probe)
{
    assert_in_range(atomic_load(&probe->stops), 0, 1);
    assert_int_equal(atomic_load(&probe->cancels), atomic_load(&probe->stops));
    assert_int_equal(atomic_load(&probe->closes), 1);
}

TEST(shutdown_names_and_ends_each_process_that_ignores_it)
{
    const uint32_t workers = test_workers();
    struct survivors survivors = {0};
    struct probe stubborn[7] = {{0}};
    skua_pid pids[7];
    struct api api;
    survivors_run(&api, &survivors, workers);
    for (size_t i = 0; i < COUNT_OF(stubborn); i++) {
        stubborn[i].habit = PROBE_IGNORES;
        pids[i] = api_submit(&api, &probe_type, &stubborn[i]);
        api_wait_state(&api, pids[i], SKUA_PROCESS_IDLE);
    }

    assert_int_equal(stop_patiently(api.runtime, 20 * MILLISECOND), SKUA_E_TIMEOUT);

    assert_int_equal(survivors.count, COUNT_OF(stubborn));
    for (size_t i = 0; i < COUNT_OF(stubborn); i++) {
        const skua_process_info *info = survivor_info(&survivors, pids[i]);
        assert_in_range(info->steps, 1, 2);
        assert_int_equal(info->mailbox_length, 0);
        assert_string_equal(info->type_name, "probe");
        assert_probe_ended(&stubborn[i]);
    }
    assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), 0);
    api_stop(&api);
    assert_int_equal(survivors.count, COUNT_OF(stubborn));
}

TEST(shutdown_without_survivors_names_nobody)
{
    struct survivors survivors = {0};
    struct probe probe = {.habit = PROBE_OBEYS};
    struct api api;
    survivors_run(&api, &survivors, 2);
    (void)api_submit(&api, &probe_type, &probe);
    api_stop(&api);
    assert_int_equal(survivors.count, 0);
}

TEST(shutdown_without_on_survivor_ends_them_too)
{
    struct probe probe = {.habit = PROBE_IGNORES};
    struct api api;
    api_run(&api, 2);
    (void)api_submit(&api, &probe_type, &probe);
    assert_int_equal(stop_patiently(api.runtime, 0), SKUA_E_TIMEOUT);
    assert_int_equal(atomic_load(&probe.closes), 1);
    api_stop(&api);
}

/* One worker: a process holds it, another waits behind with its mailbox filled. Both are survivors;
 * the worker is let go when both have been told to end, so that no step takes the messages. */
struct full_mailbox {
    struct survivors survivors;
    struct holder holder;
    skua_runtime *runtime;
    skua_pid pids[2];
};

static void end_both(void *arg, const skua_process_info *info)
{
    struct full_mailbox *scene = arg;
    (void)info;
    for (int i = 0; i < 2; i++) {
        (void)skua_process_terminate(scene->runtime, scene->pids[i]);
    }
    if (scene->survivors.count == 2) {
        tally_add(&scene->holder.released, 1);
    }
}

TEST(shutdown_drops_the_messages_of_those_it_ends)
{
    struct full_mailbox scene = {.survivors = {.then = end_both, .then_arg = &scene}};
    struct probe waiting = {.habit = PROBE_IGNORES};
    struct tracked items[120] = {{0}};
    struct api api;
    survivors_run(&api, &scene.survivors, 1);
    scene.runtime = api.runtime;
    scene.pids[0] = holder_start(&scene.holder, &api, PROBE_IGNORES);
    scene.pids[1] = api_submit(&api, &probe_type, &waiting);
    for (size_t i = 0; i < COUNT_OF(items); i++) {
        assert_int_equal(
            skua_message_send(api.runtime, scene.pids[1], tracked_payload(0, &items[i])), 0);
    }

    assert_int_equal(stop_patiently(api.runtime, 0), SKUA_E_TIMEOUT);

    assert_int_equal(scene.survivors.count, 2);
    const skua_process_info *info = survivor_info(&scene.survivors, scene.pids[0]);
    assert_int_equal(info->state, SKUA_PROCESS_RUNNING);
    assert_int_equal(info->steps, 1);
    assert_string_equal(info->type_name, "holder");
    info = survivor_info(&scene.survivors, scene.pids[1]);
    assert_int_equal(info->state, SKUA_PROCESS_READY);
    assert_int_equal(info->steps, 0);
    assert_int_equal(info->mailbox_length, COUNT_OF(items));
    assert_int_equal(atomic_load(&waiting.steps), 0);
    assert_int_equal(atomic_load(&waiting.closes), 1);
    assert_int_equal(atomic_load(&scene.holder.probe.closes), 1);
    assert_drops(items, COUNT_OF(items), 1);
    api_stop(&api);
}

TEST(shutdown_drops_the_messages_that_came_during_a_last_step)
{
    struct holder holder;
    struct stop_call stop;
    struct tracked items[120] = {{0}};
    struct api api;
    api_run(&api, 1);
    const skua_pid pid = holder_start(&holder, &api, PROBE_ENDS);
    for (size_t i = 0; i < COUNT_OF(items); i++) {
        assert_int_equal(skua_message_send(api.runtime, pid, tracked_payload(0, &items[i])), 0);
    }

    stop_begin(&stop, &api, SKUA_FOREVER);
    wait_until(stop_has_begun, &api, "the stop to begin");
    tally_add(&holder.released, 1);

    assert_int_equal(stop_join(&stop), 0);
    assert_int_equal(atomic_load(&holder.probe.messages), 0);
    assert_int_equal(atomic_load(&holder.probe.closes), 1);
    assert_drops(items, COUNT_OF(items), 1);
    api_stop(&api);
}

/* on_survivor may call everything that does not wait. */
struct busy_callback {
    struct survivors survivors;
    skua_runtime *runtime;
    struct probe refused;
    struct tracked item;
    int submit;
    int send;
    int cancel;
    int info;
    int stats;
    int config;
};

static void call_much(void *arg, const skua_process_info *info)
{
    struct busy_callback *scene = arg;
    skua_process_info again;
    skua_stats total;
    skua_runtime_config config;
    scene->submit = probe_submit(scene->runtime, &scene->refused, NULL);
    scene->send = skua_message_send(scene->runtime, info->pid, tracked_payload(0, &scene->item));
    scene->cancel = skua_process_cancel(scene->runtime, info->pid, SKUA_E_USER);
    scene->info = skua_process_info_read(scene->runtime, info->pid, &again);
    scene->stats = skua_stats_read(scene->runtime, &total, NULL, 0);
    scene->config = skua_runtime_config_read(scene->runtime, &config);
}

TEST(shutdown_on_survivor_may_call_the_runtime)
{
    struct busy_callback scene = {.survivors = {.then = call_much, .then_arg = &scene}};
    struct probe stubborn = {.habit = PROBE_IGNORES};
    struct api api;
    survivors_run(&api, &scene.survivors, 2);
    scene.runtime = api.runtime;
    (void)api_submit(&api, &probe_type, &stubborn);

    assert_int_equal(stop_patiently(api.runtime, 0), SKUA_E_TIMEOUT);

    assert_int_equal(scene.survivors.count, 1);
    assert_int_equal(scene.submit, SKUA_E_STOPPED);
    assert_int_equal(scene.send, 0);
    assert_int_equal(scene.cancel, 0);
    assert_int_equal(scene.info, 0);
    assert_int_equal(scene.stats, 2);
    assert_int_equal(scene.config, 0);
    assert_drops(&scene.item, 1, 1);
    assert_int_equal(atomic_load(&scene.refused.inits), 0);
    assert_int_equal(atomic_load(&stubborn.closes), 1);
    api_stop(&api);
}

/* Always has something to do, whatever it is told. */
static int restless_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                         skua_step *out)
{
    (void)probe_type.step(self, ctx, events, count, out);
    skua_step_continue(out);
    return 0;
}

static const skua_process_type restless_type = {
    .name = "restless",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = restless_step,
    .close = holder_close,
};

TEST(shutdown_ends_processes_that_never_rest)
{
    const uint32_t workers = test_workers();
    struct survivors survivors = {0};
    struct probe probes[8] = {{.habit = PROBE_IGNORES}};
    struct api api;
    survivors_run(&api, &survivors, workers);
    for (size_t i = 0; i < COUNT_OF(probes); i++) {
        probes[i].habit = PROBE_IGNORES;
        (void)api_submit(&api, &restless_type, &probes[i]);
    }
    assert_int_equal(stop_patiently(api.runtime, 50 * MILLISECOND), SKUA_E_TIMEOUT);
    assert_int_equal(survivors.count, COUNT_OF(probes));
    for (size_t i = 0; i < COUNT_OF(probes); i++) {
        assert_probe_ended(&probes[i]);
    }
    api_stop(&api);
}

/* ---- stuck steps ---- */

TEST(shutdown_with_a_stuck_step_gives_up_and_can_be_resumed)
{
    const uint32_t workers = test_workers();
    struct survivors survivors = {0};
    struct holder stuck;
    struct probe refused = {.habit = PROBE_ENDS};
    struct api api;
    const uint32_t threads = os_wait_alone();
    survivors_run(&api, &survivors, workers);
    const skua_pid pid = holder_start(&stuck, &api, PROBE_IGNORES);

    /* Nobody lets the step go before this returns. */
    assert_int_equal(skua_runtime_stop(api.runtime, 0), SKUA_E_STUCK);
    assert_int_equal(survivors.count, 1);
    assert_int_equal(survivor_info(&survivors, pid)->state, SKUA_PROCESS_RUNNING);
    assert_int_equal(skua_runtime_destroy(api.runtime), SKUA_E_BUSY);
    assert_int_equal(skua_runtime_start(api.runtime), SKUA_E_STOPPED);
    assert_int_equal(probe_submit(api.runtime, &refused, NULL), SKUA_E_STOPPED);
    assert_int_equal(skua_runtime_stop(api.runtime, 10 * MILLISECOND), SKUA_E_STUCK);
    assert_int_equal(atomic_load(&stuck.probe.closes), 0);

    tally_add(&stuck.released, 1);
    assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), SKUA_E_TIMEOUT);
    assert_int_equal(atomic_load(&stuck.probe.closes), 1);
    assert_int_equal(survivors.count, 1);
    os_wait_threads(threads);
    api_stop(&api);
}

TEST(shutdown_with_a_stuck_step_still_ends_all_others)
{
    struct holder stuck;
    struct probe obedient[50] = {{0}};
    struct probe stubborn[50] = {{0}};
    struct api api;
    api_run(&api, 2);
    for (size_t i = 0; i < COUNT_OF(obedient); i++) {
        stubborn[i].habit = PROBE_IGNORES;
        (void)api_submit(&api, &probe_type, &obedient[i]);
        (void)api_submit(&api, &probe_type, &stubborn[i]);
    }
    (void)holder_start(&stuck, &api, PROBE_IGNORES);

    assert_int_equal(skua_runtime_stop(api.runtime, 100 * MILLISECOND), SKUA_E_STUCK);

    api_wait_live(&api, 1); /* at once, unless the machine is very busy */
    for (size_t i = 0; i < COUNT_OF(obedient); i++) {
        assert_probe_ended(&obedient[i]);
        assert_probe_ended(&stubborn[i]);
    }
    tally_add(&stuck.released, 1);
    assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), SKUA_E_TIMEOUT);
    api_stop(&api);
}

/* A handler that does not return is as bad. */
static int hold_handler(void *arg, skua_command *command, skua_payload *result)
{
    struct holder *holder = arg;
    (void)command;
    (void)result;
    tally_add(&holder->entered, 1);
    tally_wait(&holder->released, 1);
    return 0;
}

TEST(shutdown_with_a_stuck_handler_gives_up_too)
{
    struct holder holder = {0};
    struct yielder yielder = {.probe.habit = PROBE_OBEYS};
    const skua_handler handler = {.name = "hold", .run = hold_handler, .arg = &holder};
    struct api api;
    tally_init(&holder.entered);
    tally_init(&holder.released);
    tally_init(&yielder.yielded);
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    assert_int_equal(skua_command_register(api.runtime, COMMAND_LATER, &handler), 0);
    api_start(&api);
    (void)api_submit(&api, &yielder_type, &yielder);
    tally_wait(&holder.entered, 1);

    assert_int_equal(skua_runtime_stop(api.runtime, 0), SKUA_E_STUCK);

    tally_add(&holder.released, 1);
    assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), SKUA_E_TIMEOUT);
    assert_int_equal(atomic_load(&yielder.probe.closes), 1);
    assert_drops(&yielder.input, 1, 1);
    api_stop(&api);
}

/* ---- spawns and submits that race with the stop ---- */

#define ROUNDS   EFFORT(150)
#define BIRTHS   4000
#define CHILDREN 3

/* One process that somebody tried to start. */
struct birth {
    struct probe probe;
    atomic_bool accepted;
};

struct nursery {
    skua_runtime *runtime;
    enum probe_habit habit;
    atomic_uint used;
    atomic_uint wrong; /* refusals that are not SKUA_E_STOPPED */
    struct birth births[BIRTHS];
    struct tally busy; /* everybody who starts processes has started some */
};

static struct birth *nursery_next(struct nursery *nursery)
{
    const uint32_t index = atomic_fetch_add(&nursery->used, 1);
    if (index >= BIRTHS) {
        return NULL;
    }
    nursery->births[index].probe.habit = nursery->habit;
    return &nursery->births[index];
}

static bool nursery_note(struct nursery *nursery, struct birth *birth, int error)
{
    if (error == 0) {
        atomic_store(&birth->accepted, true);
        return true;
    }
    (void)atomic_fetch_add(&nursery->wrong, error != SKUA_E_STOPPED);
    return false;
}

/* A process that starts a few others in every step until it is cancelled. */
static int breeder_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct nursery *nursery = api_world(self);
    if (api_finish_if_cancelled(events, count, out)) {
        return 0;
    }
    skua_step_continue(out);
    for (int i = 0; i < CHILDREN; i++) {
        struct birth *birth = nursery_next(nursery);
        if (birth == NULL) {
            skua_step_idle(out);
            break;
        }
        skua_payload input = api_world_payload(&birth->probe);
        (void)nursery_note(nursery, birth,
                           skua_context_spawn(ctx, &probe_type, NULL, &input, 1, NULL));
    }
    tally_add(&nursery->busy, 1);
    return 0;
}

static const skua_process_type breeder_type = {
    .name = "breeder",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = breeder_step,
};

static void *submit_until_refused(void *arg)
{
    struct nursery *nursery = arg;
    struct birth *birth = nursery_next(nursery);
    while (birth != NULL &&
           nursery_note(nursery, birth, probe_submit(nursery->runtime, &birth->probe, NULL))) {
        tally_add(&nursery->busy, 1);
        birth = nursery_next(nursery);
    }
    tally_add(&nursery->busy, 1);
    return NULL;
}

/* Waits for each of its processes, so it hangs if one of them is forgotten. */
static void *run_until_refused(void *arg)
{
    struct nursery *nursery = arg;
    struct birth *birth;
    skua_payload input;
    do {
        birth = nursery_next(nursery);
        if (birth == NULL) {
            break;
        }
        birth->probe.habit = PROBE_ENDS;
        input = api_world_payload(&birth->probe);
        tally_add(&nursery->busy, 1);
    } while (nursery_note(nursery, birth,
                          skua_process_run(nursery->runtime, &probe_type, NULL, &input, 1, NULL)));
    tally_add(&nursery->busy, 1);
    return NULL;
}

static void nursery_check(struct nursery *nursery)
{
    const uint32_t used = atomic_load(&nursery->used);
    assert_int_equal(atomic_load(&nursery->wrong), 0);
    for (uint32_t i = 0; i < used && i < BIRTHS; i++) {
        struct birth *birth = &nursery->births[i];
        const bool accepted = atomic_load(&birth->accepted);
        assert_int_equal(atomic_load(&birth->probe.closes), atomic_load(&birth->probe.inits));
        if (!accepted) {
            assert_int_equal(atomic_load(&birth->probe.steps), 0);
        } else if (birth->probe.habit == PROBE_OBEYS) {
            assert_probe_stopped_once(&birth->probe);
        } else {
            assert_int_equal(atomic_load(&birth->probe.closes), 1);
            assert_in_range(atomic_load(&birth->probe.stops), 0, 1);
        }
    }
}

/* One round; processes with `habit` are started from two threads outside and from steps while the
 * runtime is stopped. */
static void race_with_stop(struct nursery *nursery, enum probe_habit habit, uint64_t timeout_ns,
                           uint64_t births_before)
{
    struct api api;
    pthread_t submitter;
    pthread_t runner;
    memset(nursery, 0, sizeof *nursery);
    nursery->habit = habit;
    tally_init(&nursery->busy);
    api_run(&api, 2);
    nursery->runtime = api.runtime;
    (void)api_submit(&api, &breeder_type, nursery);
    assert_int_equal(pthread_create(&submitter, NULL, submit_until_refused, nursery), 0);
    assert_int_equal(pthread_create(&runner, NULL, run_until_refused, nursery), 0);
    tally_wait(&nursery->busy, births_before);

    const int stopped = stop_patiently(api.runtime, timeout_ns);

    assert_int_equal(pthread_join(submitter, NULL), 0);
    assert_int_equal(pthread_join(runner, NULL), 0);
    assert_true(stopped == 0 || (habit == PROBE_IGNORES && stopped == SKUA_E_TIMEOUT));
    nursery_check(nursery);
    api_stop(&api);
}

TEST(shutdown_racing_with_spawns_cancels_each_accepted_process_once)
{
    static struct nursery nursery;
    uint64_t seed = seed_choose();
    for (int round = 0; round < ROUNDS; round++) {
        race_with_stop(&nursery, PROBE_OBEYS, SKUA_FOREVER, seed_next(&seed) % 200);
    }
}

TEST(shutdown_racing_with_spawns_ends_each_accepted_survivor)
{
    static struct nursery nursery;
    uint64_t seed = seed_choose();
    for (int round = 0; round < ROUNDS; round++) {
        race_with_stop(&nursery, PROBE_IGNORES, 0, seed_next(&seed) % 200);
    }
}

/* A process whose init takes so long that the whole stop fits into it. */
struct slow_init {
    struct probe probe;
    struct tally entered;
    struct tally released;
    const struct api *api;
    int submitted;
};

static int slow_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                     size_t input_count)
{
    const int error = probe_type.init(self, ctx, method, input, input_count);
    struct slow_init *slow = api_world(self);
    tally_add(&slow->entered, 1);
    tally_wait(&slow->released, 1);
    return error;
}

static int plain_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    return probe_type.step(self, ctx, events, count, out);
}

static const skua_process_type slow_init_type = {
    .name = "slow init",
    .state_size = 1000,
    .init = slow_init,
    .step = plain_step,
    .close = holder_close,
};

static void slow_init_prepare(struct slow_init *slow, const struct api *api, enum probe_habit habit)
{
    memset(slow, 0, sizeof *slow);
    slow->api = api;
    slow->probe.habit = habit;
    tally_init(&slow->entered);
    tally_init(&slow->released);
}

/* Accepted or not, nothing is left of it. */
static void slow_init_check(struct slow_init *slow)
{
    assert_true(slow->submitted == 0 || slow->submitted == SKUA_E_STOPPED);
    assert_int_equal(atomic_load(&slow->probe.inits), 1);
    assert_int_equal(atomic_load(&slow->probe.closes), 1);
    assert_in_range(atomic_load(&slow->probe.stops), 0, 1);
    if (slow->submitted != 0) {
        assert_int_equal(atomic_load(&slow->probe.steps), 0);
    }
}

static void *submit_slow(void *arg)
{
    struct slow_init *slow = arg;
    skua_payload input = api_world_payload(slow);
    slow->submitted =
        skua_process_submit(slow->api->runtime, &slow_init_type, NULL, &input, 1, NULL);
    return NULL;
}

TEST(shutdown_during_the_init_of_a_submit_leaves_no_process)
{
    for (int habit = PROBE_OBEYS; habit <= PROBE_IGNORES; habit++) {
        struct slow_init slow;
        struct api api;
        pthread_t submitter;
        api_run(&api, 2);
        slow_init_prepare(&slow, &api, (enum probe_habit)habit);
        assert_int_equal(pthread_create(&submitter, NULL, submit_slow, &slow), 0);
        tally_wait(&slow.entered, 1);

        const int stopped = skua_runtime_stop(api.runtime, 0);

        tally_add(&slow.released, 1);
        assert_int_equal(pthread_join(submitter, NULL), 0);
        if (stopped == SKUA_E_STUCK) { /* it may count the init as a part of the process */
            (void)skua_runtime_stop(api.runtime, SKUA_FOREVER);
        }
        slow_init_check(&slow);
        api_stop(&api);
    }
}

/* A process whose init stops the runtime: nobody but a worker is forbidden to. */
struct stopping_init {
    struct probe probe;
    int stopped;
};

static int stopping_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                         size_t input_count)
{
    const int error = probe_type.init(self, ctx, method, input, input_count);
    struct stopping_init *stopping = api_world(self);
    stopping->stopped = skua_runtime_stop(skua_context_runtime(ctx), SKUA_FOREVER);
    return error;
}

static const skua_process_type stopping_init_type = {
    .name = "stopping init",
    .state_size = sizeof(void *),
    .init = stopping_init,
    .step = plain_step,
    .close = holder_close,
};

TEST(shutdown_by_the_init_of_a_submit_refuses_that_process)
{
    struct stopping_init stopping = {.stopped = 1};
    struct api api;
    api_run(&api, 2);
    skua_payload input = api_world_payload(&stopping);

    assert_int_equal(skua_process_submit(api.runtime, &stopping_init_type, NULL, &input, 1, NULL),
                     SKUA_E_STOPPED);

    assert_int_equal(stopping.stopped, 0);
    assert_int_equal(atomic_load(&stopping.probe.closes), 1);
    assert_int_equal(atomic_load(&stopping.probe.steps), 0);
    api_stop(&api);
}

static int spawn_slow_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                           skua_step *out)
{
    struct slow_init *slow = api_world(self);
    (void)events;
    (void)count;
    skua_payload input = api_world_payload(slow);
    slow->submitted = skua_context_spawn(ctx, &slow_init_type, NULL, &input, 1, NULL);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type slow_spawner_type = {
    .name = "slow spawner",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = spawn_slow_step,
};

TEST(shutdown_during_the_init_of_a_spawn_leaves_no_process)
{
    for (int habit = PROBE_OBEYS; habit <= PROBE_IGNORES; habit++) {
        struct slow_init slow;
        struct api api;
        api_run(&api, 2);
        slow_init_prepare(&slow, &api, (enum probe_habit)habit);
        (void)api_submit(&api, &slow_spawner_type, &slow);
        tally_wait(&slow.entered, 1);

        assert_int_equal(skua_runtime_stop(api.runtime, 0), SKUA_E_STUCK);

        tally_add(&slow.released, 1);
        assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), SKUA_E_TIMEOUT);
        slow_init_check(&slow);
        api_stop(&api);
    }
}

/* ---- many processes ---- */

#define MULTITUDE 100000

TEST(shutdown_of_a_hundred_thousand_processes_reaches_all)
{
    struct probe *probes = calloc(MULTITUDE, sizeof *probes);
    assert_non_null(probes);
    struct api api;
    api_run(&api, 2);
    for (size_t i = 0; i < MULTITUDE; i++) {
        (void)api_submit(&api, &probe_type, &probes[i]);
    }
    assert_int_equal(api_stats(&api).live, MULTITUDE);

    api_stop(&api);

    for (size_t i = 0; i < MULTITUDE; i++) {
        assert_probe_stopped_once(&probes[i]);
    }
    free(probes);
}

/* ---- threads that wait ---- */

struct waiter {
    const struct api *api;
    struct probe probe;
    skua_pid pid;
    struct tally *waiting;
    int result;
    skua_exit exit;
    pthread_t thread;
};

static void *wait_for_end(void *arg)
{
    struct waiter *waiter = arg;
    tally_add(waiter->waiting, 1);
    waiter->result =
        skua_process_wait(waiter->api->runtime, waiter->pid, SKUA_FOREVER, &waiter->exit);
    return NULL;
}

static void release_waiters(enum probe_habit habit, int stop_result, int exit_error)
{
    struct waiter waiters[6] = {{0}};
    struct tally waiting;
    struct holder holder;
    struct stop_call stop;
    struct api api;
    tally_init(&waiting);
    api_run(&api, 1);
    /* With its worker held, no process can end before its waiter waits. */
    (void)holder_start(&holder, &api, PROBE_OBEYS);
    for (size_t i = 0; i < COUNT_OF(waiters); i++) {
        struct waiter *waiter = &waiters[i];
        waiter->api = &api;
        waiter->waiting = &waiting;
        waiter->probe.habit = habit;
        /* Two for each process: the end of one must wake both. */
        waiter->pid =
            i % 2 == 0 ? api_submit(&api, &probe_type, &waiter->probe) : waiters[i - 1].pid;
        assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_end, waiter), 0);
    }
    tally_wait(&waiting, COUNT_OF(waiters));
    tally_add(&holder.released, 1);
    for (size_t i = 0; i < COUNT_OF(waiters); i++) {
        api_wait_state(&api, waiters[i].pid, SKUA_PROCESS_IDLE);
    }

    stop_begin(&stop, &api, habit == PROBE_OBEYS ? SKUA_FOREVER : 0);

    assert_int_equal(stop_join(&stop), stop_result);
    for (size_t i = 0; i < COUNT_OF(waiters); i++) {
        assert_int_equal(pthread_join(waiters[i].thread, NULL), 0);
        /* A thread that announced itself but did not get to the call may have come too late. */
        if (waiters[i].result != SKUA_E_NO_PROCESS) {
            assert_int_equal(waiters[i].result, 0);
            assert_int_equal(waiters[i].exit.error, exit_error);
            assert_true(skua_pid_equal(waiters[i].exit.pid, waiters[i].pid));
        }
    }
    api_stop(&api);
}

TEST(shutdown_releases_those_who_wait_for_processes_that_finish)
{
    release_waiters(PROBE_OBEYS, 0, 0);
}

TEST(shutdown_releases_those_who_wait_for_processes_that_are_ended)
{
    release_waiters(PROBE_IGNORES, SKUA_E_TIMEOUT, SKUA_E_TERMINATED);
}

TEST(shutdown_by_several_threads_at_once_happens_once)
{
    struct survivors survivors = {0};
    struct probe probes[50] = {{0}};
    struct stop_call stops[4];
    struct api api;
    survivors_run(&api, &survivors, 2);
    for (size_t i = 0; i < COUNT_OF(probes); i++) {
        (void)api_submit(&api, &probe_type, &probes[i]);
    }

    for (size_t i = 0; i < COUNT_OF(stops); i++) {
        stop_begin(&stops[i], &api, SKUA_FOREVER);
    }

    for (size_t i = 0; i < COUNT_OF(stops); i++) {
        assert_int_equal(stop_join(&stops[i]), 0);
    }
    for (size_t i = 0; i < COUNT_OF(probes); i++) {
        assert_probe_stopped_once(&probes[i]);
    }
    assert_int_equal(survivors.count, 0);
    api_stop(&api);
}

/* ---- other calls while a stop is under way ---- */

/* A call made on a thread of its own, because it might block. */
struct bystander {
    skua_runtime *runtime;
    int (*call)(skua_runtime *runtime);
    int result;
    atomic_bool returned;
    pthread_t thread;
};

static void *bystander_main(void *arg)
{
    struct bystander *bystander = arg;
    bystander->result = bystander->call(bystander->runtime);
    atomic_store(&bystander->returned, true);
    return NULL;
}

static int register_late(skua_runtime *runtime)
{
    const skua_handler handler = {.name = "late", .run = keep_pending};
    return skua_command_register(runtime, 200, &handler);
}

/* Gives a call that hangs ten seconds, which is enough to tell. */
static bool returns_soon(struct bystander *bystander)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 10000 && !atomic_load(&bystander->returned); i++) {
        (void)nanosleep(&pause, NULL);
    }
    return atomic_load(&bystander->returned);
}

TEST(shutdown_under_way_holds_up_no_call_that_does_not_wait)
{
    struct bystander bystanders[] = {
        {.call = skua_runtime_start, .result = 1},
        {.call = register_late, .result = 1},
    };
    const int expected[] = {SKUA_E_STOPPED, SKUA_E_FROZEN};
    bool returned[COUNT_OF(bystanders)];
    struct holder holder;
    struct stop_call stop;
    struct api api;
    api_run(&api, 2);
    (void)holder_start(&holder, &api, PROBE_OBEYS);
    stop_begin(&stop, &api, SKUA_FOREVER);
    wait_until(stop_has_begun, &api, "the stop to begin");

    for (size_t i = 0; i < COUNT_OF(bystanders); i++) {
        struct bystander *bystander = &bystanders[i];
        bystander->runtime = api.runtime;
        assert_int_equal(pthread_create(&bystander->thread, NULL, bystander_main, bystander), 0);
        returned[i] = returns_soon(bystander);
    }

    tally_add(&holder.released, 1);
    assert_int_equal(stop_join(&stop), 0);
    for (size_t i = 0; i < COUNT_OF(bystanders); i++) {
        assert_int_equal(pthread_join(bystanders[i].thread, NULL), 0);
    }
    for (size_t i = 0; i < COUNT_OF(bystanders); i++) {
        assert_true(returned[i]);
        assert_int_equal(bystanders[i].result, expected[i]);
    }
    api_stop(&api);
}
