/* SPDX-License-Identifier: MIT */
/* Memory and threads that the system refuses. The same program runs again and again; in run n the
 * n-th allocation fails, or that one and all later ones, until n is larger than the number of
 * allocations. Whatever fails returns SKUA_E_NO_MEMORY, nothing leaks, and the runtime still
 * stops. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime_support.h"

/* ---- the program ---- */

#define HANDLERS      40 /* with ids that are kept in allocated memory */
#define FIRST_HANDLER 1000
#define YIELDS        1000
#define SMALL_YIELDS  20 /* of each other kind */
#define COPIES        10
#define COPY_SIZE     100
#define CHILDREN      5
#define ALLOCATIONS   5
#define ITEMS_MAX     (2 * YIELDS)
#define POOL          "narrow"
/* Larger than the first table of descriptors. */
#define DESCRIPTOR_MIN 500

/* Kinds of yields. The number is their tag and, if they have a handler here, its id. */
enum kind {
    KIND_NOW,
    KIND_LATER,
    KIND_NEVER, /* with a deadline */
    KIND_SLEEP,
    KIND_TIMER,
    KIND_TICKER, /* which is taken back at once */
    KIND_DESCRIPTOR,
    KIND_BLOCKING,
    KINDS,
};

/* In place of a number of workers. */
#define SIMULATED 0

/* What the calls of one run returned. */
struct run {
    struct counting_allocator memory;
    skua_runtime *runtime;
    bool simulated;
    int descriptor;      /* that is always ready */
    atomic_uint refused; /* SKUA_E_NO_MEMORY */
    atomic_uint wrong;   /* any other error, or a result that nobody has asked for */
    struct probe resident;
    struct probe children[CHILDREN];
    atomic_bool child_accepted[CHILDREN];
    struct tracked items[ITEMS_MAX];
    atomic_uint item_count;
    atomic_uint yields_accepted[KINDS];
    atomic_uint completions[KINDS];
    atomic_uint messages_accepted; /* by the worker process, from itself */
    atomic_uint messages;
    atomic_uint garbage; /* messages with another content than was sent */
    atomic_uint cancels_accepted;
    atomic_uint cancels;
};

/* Notes an outcome; true if the call worked. */
static bool note(struct run *run, int error)
{
    (void)atomic_fetch_add(&run->refused, error == SKUA_E_NO_MEMORY);
    (void)atomic_fetch_add(&run->wrong, error != 0 && error != SKUA_E_NO_MEMORY);
    return error == 0;
}

/* A payload that has to be dropped once. */
static skua_payload new_item(struct run *run)
{
    return tracked_payload(0, &run->items[atomic_fetch_add(&run->item_count, 1)]);
}

/* ---- handlers ---- */

static int complete_at_once(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return 0;
}

static int complete_by_call(void *arg, skua_command *command, skua_payload *result)
{
    struct run *run = arg;
    (void)result;
    (void)note(run, skua_command_complete(command->runtime, command->completion, 0, new_item(run)));
    return SKUA_PENDING;
}

static int never_complete(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return SKUA_PENDING;
}

static int hand_back(skua_payload *input, skua_payload *result)
{
    *result = skua_payload_take(input);
    return 0;
}

/* ---- the step that does everything that allocates ---- */

static bool note_yield(struct run *run, enum kind kind, int error)
{
    const bool accepted = note(run, error);
    (void)atomic_fetch_add(&run->yields_accepted[kind], accepted);
    return accepted;
}

static void yield_much(struct run *run, skua_step *out)
{
    for (size_t i = 0; i < YIELDS; i++) {
        (void)note_yield(run, KIND_NOW, skua_step_yield(out, KIND_NOW, KIND_NOW, new_item(run)));
    }
    for (size_t i = 0; i < SMALL_YIELDS; i++) {
        (void)note_yield(run, KIND_LATER,
                         skua_step_yield(out, KIND_LATER, KIND_LATER, new_item(run)));
    }
}

/* Tickers end only when they are taken back. If there is no memory for that, they end with the
 * process, or when the next one is taken back, and are not waited for until then. */
static void tick_and_cancel(struct run *run, skua_step *out)
{
    unsigned ticking = 0;
    for (size_t i = 0; i < SMALL_YIELDS; i++) {
        ticking += note(run, skua_step_ticker(out, KIND_TICKER, SKUA_SECOND));
        if (note(run, skua_step_cancel(out, KIND_TICKER))) {
            (void)atomic_fetch_add(&run->yields_accepted[KIND_TICKER], ticking);
            ticking = 0;
        }
    }
}

static void use_clock(struct run *run, skua_context *ctx, skua_step *out)
{
    for (size_t i = 0; i < SMALL_YIELDS; i++) {
        (void)note_yield(run, KIND_SLEEP, skua_step_sleep(out, KIND_SLEEP, i));
        (void)note_yield(run, KIND_TIMER,
                         skua_step_timer(out, KIND_TIMER, skua_context_deadline(ctx, i)));
        if (note_yield(run, KIND_NEVER,
                       skua_step_yield(out, KIND_NEVER, KIND_NEVER, new_item(run)))) {
            (void)note(run, skua_step_deadline(out, skua_context_deadline(ctx, i)));
        }
    }
}

static void wait_for_descriptor(struct run *run, skua_step *out)
{
    for (size_t i = 0; i < SMALL_YIELDS; i++) {
        (void)note_yield(run, KIND_DESCRIPTOR,
                         skua_step_wait_writable(out, KIND_DESCRIPTOR, run->descriptor));
    }
}

static void call_blocking(struct run *run, skua_context *ctx, skua_step *out)
{
    for (size_t i = 0; i < SMALL_YIELDS; i++) {
        (void)note_yield(run, KIND_BLOCKING,
                         skua_step_blocking(out, KIND_BLOCKING, POOL, hand_back, new_item(run)));
    }
    (void)note(run, skua_blocking_begin(ctx));
    (void)note(run, skua_blocking_end(ctx));
}

static void spawn_children(struct run *run, skua_context *ctx)
{
    for (size_t i = 0; i < CHILDREN; i++) {
        skua_payload input[] = {api_world_payload(&run->children[i]), new_item(run)};
        const int error = skua_context_spawn(ctx, &probe_large_type, NULL, input, 2, NULL);
        atomic_store(&run->child_accepted[i], note(run, error));
    }
}

/* Sends copies of some bytes to a process; returns how many were accepted. */
static unsigned send_copies(struct run *run, skua_pid to)
{
    char bytes[COPY_SIZE];
    unsigned accepted = 0;
    memset(bytes, 'c', sizeof bytes);
    for (int i = 0; i < COPIES; i++) {
        skua_payload copy;
        if (note(run, skua_payload_copy(run->runtime, 1, bytes, sizeof bytes, &copy))) {
            accepted += note(run, skua_message_send(run->runtime, to, copy));
        }
    }
    return accepted;
}

static void allocate_some(struct run *run, skua_context *ctx)
{
    void *blocks[ALLOCATIONS];
    for (size_t i = 0; i < ALLOCATIONS; i++) {
        blocks[i] = skua_context_alloc(ctx, 100 * (i + 1));
        (void)note(run, blocks[i] != NULL ? 0 : SKUA_E_NO_MEMORY);
    }
    for (size_t i = 0; i < ALLOCATIONS; i++) {
        skua_context_free(ctx, blocks[i], 100 * (i + 1));
    }
}

static void cancel_itself(struct run *run, skua_context *ctx)
{
    const int error = skua_process_cancel(run->runtime, skua_context_self(ctx), SKUA_E_USER);
    (void)atomic_fetch_add(&run->cancels_accepted, note(run, error));
}

static void do_everything(struct run *run, skua_context *ctx, skua_step *out)
{
    spawn_children(run, ctx);
    /* The list of yields grows at the 17th, the 33rd and so on. Each kind gets its chance. */
    (void)note_yield(run, KIND_SLEEP, skua_step_sleep(out, KIND_SLEEP, 0));
    tick_and_cancel(run, out);
    call_blocking(run, ctx, out);
    wait_for_descriptor(run, out);
    use_clock(run, ctx, out);
    yield_much(run, out);
    atomic_store(&run->messages_accepted, send_copies(run, skua_context_self(ctx)));
    cancel_itself(run, ctx);
    allocate_some(run, ctx);
}

/* ---- what comes of it ---- */

/* Accepted yields end as they should; two kinds may find out later that there is no memory. */
static void note_completion(struct run *run, const skua_event *event)
{
    static const int usual[KINDS] = {
        [KIND_NEVER] = SKUA_E_TIMEOUT,
        [KIND_TICKER] = SKUA_E_CANCELLED,
    };
    const bool may_be_refused = event->tag == KIND_DESCRIPTOR || event->tag == KIND_BLOCKING;
    (void)atomic_fetch_add(&run->completions[event->tag], 1);
    if (run->simulated && event->tag == KIND_DESCRIPTOR) {
        (void)atomic_fetch_add(&run->wrong, event->error != SKUA_E_NOT_SIMULATED);
    } else if (may_be_refused) {
        (void)note(run, event->error);
    } else {
        (void)atomic_fetch_add(&run->wrong, event->error != usual[event->tag]);
    }
}

static void note_message(struct run *run, const skua_event *event)
{
    const char *bytes = skua_payload_data(&event->payload);
    (void)atomic_fetch_add(&run->messages, 1);
    (void)atomic_fetch_add(&run->garbage, bytes == NULL || bytes[COPY_SIZE - 1] != 'c');
}

static void note_event(struct run *run, const skua_event *event)
{
    switch ((enum skua_event_type)event->type) {
    case SKUA_EVENT_COMPLETION:
        note_completion(run, event);
        break;
    case SKUA_EVENT_MESSAGE:
        note_message(run, event);
        break;
    case SKUA_EVENT_CANCEL:
        (void)atomic_fetch_add(&run->cancels, 1);
        break;
    case SKUA_EVENT_TICK: /* of a ticker that could not be taken back */
        break;
    }
}

static bool has_all_that_was_promised(struct run *run)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (atomic_load(&run->completions[i]) != atomic_load(&run->yields_accepted[i])) {
            return false;
        }
    }
    return atomic_load(&run->messages) == atomic_load(&run->messages_accepted) &&
           atomic_load(&run->cancels) == atomic_load(&run->cancels_accepted);
}

/* Does everything in its first step, then finishes when all that it was promised has come. */
static int worker_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct run *run = api_world(self);
    if (count == 0) {
        do_everything(run, ctx, out);
    }
    for (size_t i = 0; i < count; i++) {
        note_event(run, &events[i]);
    }
    if (has_all_that_was_promised(run)) {
        skua_step_done(out, new_item(run));
    }
    return 0;
}

static const skua_process_type worker_type = {
    .name = "worker", .state_size = 500, .init = api_init_world, .step = worker_step};

/* ---- one run ---- */

static void register_many(struct run *run)
{
    static skua_handler_fn *const handlers[] = {
        [KIND_NOW] = complete_at_once,
        [KIND_LATER] = complete_by_call,
        [KIND_NEVER] = never_complete,
    };
    for (uint32_t i = 0; i < COUNT_OF(handlers); i++) {
        const skua_handler handler = {
            .name = "kind", .run = handlers[i], .arg = run, .sim_safe = true};
        if (!note(run, skua_command_register(run->runtime, i, &handler))) {
            (void)note(run, skua_command_register(run->runtime, i, &handler)); /* it is needed */
        }
    }
    for (uint32_t i = 0; i < HANDLERS; i++) {
        const skua_handler handler = {.name = "other", .run = complete_at_once};
        (void)note(run, skua_command_register(run->runtime, FIRST_HANDLER + i, &handler));
    }
    /* With a second thread, a call could wait for the first when there is no memory for that. */
    const skua_blocking_pool pool = {.name = POOL, .thread_limit = 1, .sim_safe = true};
    (void)note(run, skua_blocking_register(run->runtime, &pool));
}

static void run_worker(struct run *run)
{
    skua_payload input[] = {api_world_payload(run), new_item(run)};
    skua_exit exit;
    if (note(run, skua_process_run(run->runtime, &worker_type, NULL, input, 2, &exit))) {
        (void)note(run, exit.error);
        skua_payload_drop(&exit.result);
    }
}

/* Asks a process to end, or ends it if there is no memory for asking. */
static void end_resident(struct run *run, skua_pid resident)
{
    (void)send_copies(run, resident);
    (void)note(run, skua_message_send(run->runtime, resident, new_item(run)));
    if (!note(run, skua_process_cancel(run->runtime, resident, SKUA_E_USER))) {
        (void)note(run, skua_process_terminate(run->runtime, resident));
    }
    const int error = skua_process_wait(run->runtime, resident, SKUA_FOREVER, NULL);
    (void)note(run, error == SKUA_E_NO_PROCESS ? 0 : error);
}

/* The part between start and stop. */
static void work(struct run *run)
{
    skua_pid resident;
    skua_payload input = api_world_payload(&run->resident);
    const bool has_resident =
        note(run, skua_process_submit(run->runtime, &probe_large_type, NULL, &input, 1, &resident));
    run_worker(run);
    if (has_resident) {
        end_resident(run, resident);
    }
}

/* What holds after every run, whatever has failed. */
static void assert_sound(struct run *run)
{
    assert_int_equal(atomic_load(&run->wrong), 0);
    assert_int_equal(atomic_load(&run->garbage), 0);
    assert_true(has_all_that_was_promised(run));
    assert_int_equal(atomic_load(&run->resident.closes), atomic_load(&run->resident.inits));
    for (size_t i = 0; i < CHILDREN; i++) {
        const unsigned accepted = atomic_load(&run->child_accepted[i]);
        assert_int_equal(atomic_load(&run->children[i].inits), accepted);
        assert_int_equal(atomic_load(&run->children[i].closes), accepted);
    }
    assert_in_range(atomic_load(&run->item_count), 0, ITEMS_MAX);
    assert_drops(run->items, atomic_load(&run->item_count), 1);
    assert_true(counting_allocator_is_clean(&run->memory));
}

/* Once with the allocator as it is; asserts all but the number of failures. */
static void run_once(struct run *run, uint32_t workers)
{
    const skua_sim_config simulation = {.step_ns = 0};
    const skua_runtime_config config = {
        .worker_count = workers,
        .alloc = counting_allocate,
        .alloc_arg = &run->memory,
        .sim = workers == SIMULATED ? &simulation : NULL,
    };
    run->simulated = workers == SIMULATED;
    if (note(run, skua_runtime_create(&run->runtime, &config))) {
        register_many(run);
        assert_int_equal(skua_runtime_start(run->runtime), 0);
        work(run);
        assert_int_equal(skua_runtime_stop(run->runtime, SKUA_FOREVER), 0);
        assert_int_equal(skua_runtime_destroy(run->runtime), 0);
    }
    assert_sound(run);
}

/* A descriptor that can always be written to, with a high number. It stays for all runs. */
static int ready_descriptor(void)
{
    static int high = -1;
    if (high < 0) {
        const int low = eventfd(0, EFD_CLOEXEC);
        high = fcntl(low, F_DUPFD_CLOEXEC, DESCRIPTOR_MIN);
        assert_true(high >= DESCRIPTOR_MIN);
        assert_int_equal(close(low), 0);
    }
    return high;
}

static void run_reset(struct run *run)
{
    memset(run, 0, sizeof *run);
    counting_allocator_init(&run->memory);
    run->descriptor = ready_descriptor();
}

/* A run without failures: all that is asked for is granted. Returns its allocations. */
static uint64_t run_undisturbed(struct run *run, uint32_t workers)
{
    run_reset(run);
    run_once(run, workers);
    assert_int_equal(atomic_load(&run->refused), 0);
    assert_int_equal(atomic_load(&run->yields_accepted[KIND_NOW]), YIELDS);
    assert_int_equal(atomic_load(&run->yields_accepted[KIND_TICKER]), SMALL_YIELDS);
    assert_int_equal(atomic_load(&run->yields_accepted[KIND_BLOCKING]), SMALL_YIELDS);
    assert_int_equal(atomic_load(&run->messages_accepted), COPIES);
    return counting_allocator_attempts(&run->memory);
}

typedef void fail_fn(struct counting_allocator *memory, uint64_t n);

static void fail_everywhere(fail_fn *make_fail, uint32_t workers)
{
    static struct run run;
    const uint64_t attempts = run_undisturbed(&run, workers);
    uint64_t n = 0;
    bool happened;
    do {
        run_reset(&run);
        make_fail(&run.memory, ++n);
        run_once(&run, workers);
        /* Each failure is somebody's error. */
        happened = counting_allocator_attempts(&run.memory) >= n;
        assert_int_equal(atomic_load(&run.refused) > 0, happened);
    } while (happened || n <= attempts);
    print_message("%u workers%s: %u allocations failed\n", workers,
                  workers == SIMULATED ? ", simulated" : "", (unsigned)n - 1);
    assert_true(n > 60); /* the program has at least so many */
}

TEST(alloc_failure_of_any_one_allocation_is_reported_and_harmless)
{
    FOR_WORKER_COUNTS(workers)
    {
        fail_everywhere(counting_allocator_fail_once, workers);
    }
    fail_everywhere(counting_allocator_fail_once, SIMULATED);
}

TEST(alloc_failure_of_all_allocations_from_any_on_is_reported_and_harmless)
{
    FOR_WORKER_COUNTS(workers)
    {
        fail_everywhere(counting_allocator_fail_from, workers);
    }
    fail_everywhere(counting_allocator_fail_from, SIMULATED);
}

/* ---- single calls ---- */

TEST(alloc_failure_of_a_step_takes_back_nothing_that_was_accepted)
{
    static struct run run;
    const uint64_t attempts = run_undisturbed(&run, 1);
    bool partly = false;
    for (uint64_t n = 1; n <= attempts; n++) {
        run_reset(&run);
        counting_allocator_fail_from(&run.memory, n);
        run_once(&run, 1);
        const unsigned accepted = atomic_load(&run.yields_accepted[KIND_NOW]);
        partly = partly || (accepted > 0 && accepted < YIELDS);
    }
    /* There was a run in which the memory ended in the middle of the yields. */
    assert_true(partly);
}

TEST(alloc_failure_does_not_keep_processes_from_being_stopped)
{
    struct probe crowd[100] = {{0}};
    struct api api;
    api_run(&api, 2);
    for (size_t i = 0; i < COUNT_OF(crowd); i++) {
        crowd[i].habit = i < 50 ? PROBE_OBEYS : PROBE_IGNORES;
        (void)api_submit(&api, &probe_type, &crowd[i]);
    }

    counting_allocator_fail_from(&api.memory, 1);
    const uint64_t attempts = counting_allocator_attempts(&api.memory);
    const int stopped = skua_runtime_stop(api.runtime, 50000000);
    if (stopped == SKUA_E_STUCK) { /* a busy machine may give a worker no CPU for so long */
        assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), SKUA_E_TIMEOUT);
    } else {
        assert_int_equal(stopped, SKUA_E_TIMEOUT);
    }

    /* Neither the cancel events nor the ends needed any. */
    assert_int_equal(counting_allocator_attempts(&api.memory), attempts);
    for (size_t i = 0; i < COUNT_OF(crowd); i++) {
        assert_int_equal(atomic_load(&crowd[i].closes), 1);
    }
    api_stop(&api);
}

TEST(alloc_failure_leaves_the_process_limit_as_it_was)
{
    struct probe probes[5] = {{0}};
    struct probe first = {.habit = PROBE_ENDS};
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 1, .process_limit = 4});
    api_start(&api);
    (void)api_run_process(&api, &probe_type, &first); /* now there is memory for places */
    api_wait_live(&api, 0);

    /* Places that were taken for processes without memory for their state are free again. */
    for (int i = 0; i < 100; i++) {
        skua_payload input = api_world_payload(&probes[0]);
        counting_allocator_fail_from(&api.memory, 1);
        assert_int_equal(skua_process_submit(api.runtime, &probe_large_type, NULL, &input, 1, NULL),
                         SKUA_E_NO_MEMORY);
        counting_allocator_fail_never(&api.memory);
    }
    for (size_t i = 0; i < 4; i++) {
        (void)api_submit(&api, &probe_large_type, &probes[i]);
    }
    assert_int_equal(probe_submit(api.runtime, &probes[4], NULL), SKUA_E_PROCESS_LIMIT);

    api_stop(&api);
}

/* Sends and submits that find no memory leave nothing behind, and work again once there is some:
 * the pools of events and of processes go on where they were. */
#define GROWING 40000

TEST(alloc_failure_of_a_growing_mailbox_loses_no_message)
{
    static struct tracked items[GROWING];
    struct probe probe = {.habit = PROBE_OBEYS};
    struct blocker blocker;
    struct api api;
    unsigned accepted = 0;
    unsigned refused = 0;
    api_create(&api, (skua_runtime_config){.worker_count = 1, .stall_limit_ns = API_NEVER_STUCK});
    api_start(&api);
    const skua_pid pid = api_submit(&api, &probe_type, &probe);
    api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
    blocker_start(&blocker, &api);

    counting_allocator_fail_from(&api.memory, 1);
    for (size_t i = 0; i < GROWING; i++) {
        const int error = skua_message_send(api.runtime, pid, tracked_payload(0, &items[i]));
        assert_true(error == 0 || error == SKUA_E_NO_MEMORY);
        accepted += error == 0;
        refused += error != 0;
        if (refused == 10) {
            counting_allocator_fail_never(&api.memory);
        }
    }
    assert_int_equal(refused, 10);
    blocker_release(&blocker);
    assert_int_equal(skua_process_cancel(api.runtime, pid, SKUA_E_USER), 0);
    api_wait_end(&api, pid);

    assert_int_equal(atomic_load(&probe.messages), accepted);
    assert_drops(items, GROWING, 1);
    api_stop(&api);
}

TEST(alloc_failure_of_a_growing_table_loses_no_process)
{
    struct probe probe = {.habit = PROBE_OBEYS};
    struct api api;
    unsigned accepted = 0;
    unsigned refused = 0;
    api_run(&api, 2);
    assert_int_equal(probe_submit(api.runtime, &probe, NULL), 0); /* the first memory for all */
    accepted++;
    counting_allocator_fail_from(&api.memory, 1);
    for (size_t i = 0; i < GROWING / 2; i++) {
        const int error = probe_submit(api.runtime, &probe, NULL);
        assert_true(error == 0 || error == SKUA_E_NO_MEMORY);
        accepted += error == 0;
        refused += error != 0;
        if (refused == 10) {
            counting_allocator_fail_never(&api.memory);
        }
    }
    assert_int_equal(refused, 10);
    api_stop(&api);
    assert_int_equal(atomic_load(&probe.inits), accepted);
    assert_int_equal(atomic_load(&probe.closes), accepted);
}

/* ---- threads ---- */

/* In a child process whose threads are limited. It must not touch the test framework, so it says
 * what is wrong on stderr and exits with CHILD_FAILED. */
#define CHILD_OK      0
#define CHILD_FAILED  1
#define CHILD_SKIPPED 2

#define THREAD_WORKERS 4
/* A user of whom no other thread should exist. */
#define SPARE_USER 54321

#define EXPECT(condition) expect((condition), #condition, __LINE__)

static void expect(bool holds, const char *what, int line)
{
    if (!holds) {
        (void)fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, line, what);
        _exit(CHILD_FAILED);
    }
}

/* The limit does not count for the superuser. Only this thread changes, and those it creates. */
static bool become_somebody(void)
{
    return geteuid() != 0 || syscall(SYS_setresuid, SPARE_USER, SPARE_USER, SPARE_USER) == 0;
}

static bool limit_threads(rlim_t count)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NPROC, &limit) != 0) {
        return false;
    }
    limit.rlim_cur = count < limit.rlim_max ? count : limit.rlim_max;
    return setrlimit(RLIMIT_NPROC, &limit) == 0;
}

/* It is as if start had not been called; `id` is a command that has no handler yet. */
static void expect_not_started(skua_runtime *runtime, uint32_t id)
{
    struct probe probe = {.habit = PROBE_ENDS};
    const skua_handler handler = {.name = "now", .run = complete_at_once};
    EXPECT(skua_command_register(runtime, id, &handler) == 0);
    EXPECT(probe_submit(runtime, &probe, NULL) == SKUA_E_NOT_STARTED);
    EXPECT(skua_runtime_stop(runtime, 0) == SKUA_E_NOT_STARTED);
}

static void expect_usable(skua_runtime *runtime)
{
    struct probe probe = {.habit = PROBE_ENDS};
    const struct timespec gap = {.tv_nsec = 1000000}; /* long enough to fall asleep, or to exit */
    const uint64_t hang_ns = UINT64_C(20000000000);
    for (int i = 0; i < 20; i++) {
        skua_pid pid;
        (void)nanosleep(&gap, NULL);
        EXPECT(probe_submit(runtime, &probe, &pid) == 0);
        EXPECT(skua_process_wait(runtime, pid, hang_ns, NULL) != SKUA_E_TIMEOUT);
    }
    EXPECT(atomic_load(&probe.closes) == 20);
}

static int start_with_few_threads(void)
{
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    const skua_runtime_config config = {
        .worker_count = THREAD_WORKERS, .alloc = counting_allocate, .alloc_arg = &memory};
    const uint32_t threads = os_wait_alone();
    skua_runtime *runtime;
    skua_runtime *abandoned;
    EXPECT(skua_runtime_create(&runtime, &config) == 0);
    EXPECT(skua_runtime_create(&abandoned, &config) == 0);
    if (!become_somebody() || !limit_threads(0)) {
        return CHILD_SKIPPED;
    }
    if (skua_runtime_start(abandoned) == 0) { /* the limit is not in force here */
        return CHILD_SKIPPED;
    }
    EXPECT(skua_runtime_destroy(abandoned) == 0);

    /* One thread more each time, until there are enough. */
    unsigned failures = 0;
    int error = SKUA_E_THREAD;
    for (rlim_t allowed = 0; error != 0 && allowed < 100000; allowed++) {
        EXPECT(limit_threads(allowed));
        error = skua_runtime_start(runtime);
        if (error != 0) {
            EXPECT(error == SKUA_E_THREAD);
            os_wait_threads(threads);
            expect_not_started(runtime, FIRST_HANDLER + failures++);
        }
    }
    EXPECT(error == 0);
    EXPECT(failures >= THREAD_WORKERS + 1); /* at least once at each worker, and the monitor */
    expect_usable(runtime);
    EXPECT(os_thread_count() == threads + THREAD_WORKERS + 1);
    EXPECT(skua_runtime_stop(runtime, SKUA_FOREVER) == 0);
    EXPECT(skua_runtime_destroy(runtime) == 0);
    EXPECT(counting_allocator_is_clean(&memory));
    return CHILD_OK;
}

TEST(alloc_failure_of_any_worker_thread_can_be_tried_again)
{
    (void)fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        watchdog_start();
        _exit(start_with_few_threads());
    }
    int status;
    pid_t reaped;
    do {
        reaped = waitpid(child, &status, 0);
    } while (reaped < 0 && errno == EINTR);
    assert_int_equal(reaped, child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CHILD_SKIPPED) {
        print_message("skipped: the number of threads cannot be limited here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), CHILD_OK);
}
