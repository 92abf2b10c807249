/* SPDX-License-Identifier: MIT */
/* Memory that the system refuses. The same program runs again and again; in run n the n-th
 * allocation fails, or that one and all later ones, until n is larger than the number of
 * allocations. Whatever fails returns SKUA_E_NO_MEMORY, but for the little that the runtime can do
 * without; nothing leaks, and the runtime still stops.
 * Single calls without memory are in test_alloc_failure_calls.c. */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "actor.h"
#include "handlers.h"

#define HANDLERS       40 /* with ids that are kept in allocated memory */
#define FIRST_HANDLER  1000
#define YIELDS         1000
#define SMALL_YIELDS   20 /* of each other kind */
#define COPIES         10
#define COPY_SIZE      100
#define CHILDREN       5
#define ALLOCATIONS    5
#define TAGS           100 /* of yields that are taken back; enough for an index */
#define FIRST_TAG      1000
#define QUIET_MAX      6 /* failures that are nobody's error: of the reserve, the index of tags */
#define ITEMS_MAX      (2 * YIELDS)
#define POOL           "narrow"
#define DESCRIPTOR_MIN 500 /* larger than the first table of descriptors */

/* In place of a number of workers. */
#define SIMULATED 0

/* Kinds of yields. The number is their tag and, if they have a handler here, its id. */
enum kind {
    KIND_NOW,
    KIND_LATER,
    KIND_NEVER, /* with a timeout */
    KIND_SLEEP,
    KIND_TIMER,
    KIND_TICKER, /* which is taken back at once */
    KIND_DESCRIPTOR,
    KIND_BLOCKING,
    KIND_TAKEN_BACK, /* each with a tag of its own, from FIRST_TAG on */
    KINDS,
};

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
    atomic_uint messages_accepted; /* by the actor, from itself */
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
static struct tracked *new_item(struct run *run)
{
    return &run->items[atomic_fetch_add(&run->item_count, 1)];
}

/* ---- handlers ---- */

static int complete_by_call(void *arg, skua_command *command, skua_payload *result)
{
    struct run *run = arg;
    (void)result;
    (void)note(run, skua_command_complete(command->runtime, command->completion, 0,
                                          tracked_payload(0, new_item(run))));
    return SKUA_PENDING;
}

static int hand_back(skua_payload *input, skua_payload *result)
{
    *result = skua_payload_take(input);
    return 0;
}

/* ---- the step that does everything that allocates ---- */

static int wait_writable(struct turn *turn, const struct act *act)
{
    const struct run *run = act->arg;
    return skua_yield_writable(turn->ctx, KIND_DESCRIPTOR, run->descriptor, SKUA_FOREVER);
}

static struct act act_of(struct run *run, enum kind kind, uint64_t now, uint64_t duration)
{
    switch (kind) {
    case KIND_SLEEP:
        return sleeps(kind, duration);
    case KIND_TIMER:
        return timer(kind, now + duration);
    case KIND_DESCRIPTOR:
        return does(wait_writable, run);
    case KIND_BLOCKING: {
        struct act act = offloads(kind, POOL, hand_back, 0);
        act.item = new_item(run);
        return act;
    }
    case KIND_TICKER:
        return ticker(kind, SKUA_SECOND);
    case KIND_NEVER:
        return within(duration, yields_item(kind, KIND_NEVER, 0, new_item(run)));
    case KIND_NOW:
    case KIND_LATER:
    case KIND_TAKEN_BACK:
    case KINDS:
        break;
    }
    return yields_item(kind, (uint32_t)kind, 0, new_item(run));
}

static bool yield(struct run *run, struct turn *turn, enum kind kind, uint64_t duration)
{
    const bool accepted = note(run, perform(turn, act_of(run, kind, turn_now(turn), duration)));
    (void)atomic_fetch_add(&run->yields_accepted[kind], accepted && kind != KIND_TICKER);
    return accepted;
}

/* Tickers end only when they are taken back. If there is no memory for that, they end with the
 * process, or when the next one is taken back, and are not waited for until then. */
static void tick_and_cancel(struct run *run, struct turn *turn)
{
    unsigned ticking = 0;
    for (size_t i = 0; i < SMALL_YIELDS; i++) {
        ticking += yield(run, turn, KIND_TICKER, 0);
        if (note(run, perform(turn, cancels(KIND_TICKER)))) {
            (void)atomic_fetch_add(&run->yields_accepted[KIND_TICKER], ticking);
            ticking = 0;
        }
    }
}

/* Many tags are open when the first is taken back. Those that cannot be taken back end with the
 * process. */
static void yield_and_take_back(struct run *run, struct turn *turn)
{
    bool accepted[TAGS];
    for (uint64_t i = 0; i < TAGS; i++) {
        accepted[i] =
            note(run, perform(turn, yields_item(FIRST_TAG + i, KIND_NEVER, 0, new_item(run))));
    }
    for (uint64_t i = 0; i < TAGS; i++) {
        const bool ends = note(run, perform(turn, cancels(FIRST_TAG + i))) && accepted[i];
        (void)atomic_fetch_add(&run->yields_accepted[KIND_TAKEN_BACK], ends);
    }
}

static void yield_all_kinds(struct run *run, struct turn *turn)
{
    /* The list of yields grows at the 17th, the 33rd and so on. Each kind gets its chance. */
    (void)yield(run, turn, KIND_SLEEP, 0);
    tick_and_cancel(run, turn);
    for (uint64_t i = 0; i < SMALL_YIELDS; i++) {
        (void)yield(run, turn, KIND_BLOCKING, 0);
    }
    for (uint64_t i = 0; i < SMALL_YIELDS; i++) {
        (void)yield(run, turn, KIND_DESCRIPTOR, 0);
    }
    for (uint64_t i = 0; i < SMALL_YIELDS; i++) {
        (void)yield(run, turn, KIND_SLEEP, i);
        (void)yield(run, turn, KIND_TIMER, i);
        (void)yield(run, turn, KIND_NEVER, i);
    }
    for (uint64_t i = 0; i < YIELDS; i++) {
        (void)yield(run, turn, KIND_NOW, 0);
    }
    for (uint64_t i = 0; i < SMALL_YIELDS; i++) {
        (void)yield(run, turn, KIND_LATER, 0);
    }
    yield_and_take_back(run, turn);
}

static void spawn_children(struct run *run, skua_context *ctx)
{
    for (size_t i = 0; i < CHILDREN; i++) {
        skua_payload input[] = {api_world_payload(&run->children[i]),
                                tracked_payload(0, new_item(run))};
        run->child_accepted[i] = note(
            run, skua_spawn_with(ctx,
                                 &(skua_spawn_options){
                                     .type = &probe_large_type, .input = input, .input_count = 2},
                                 NULL));
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
            accepted += note(run, skua_process_send(run->runtime, to, copy));
        }
    }
    return accepted;
}

/* Sends itself what was made in other ways than by a copy. */
static unsigned send_others(struct run *run, skua_context *ctx)
{
    char bytes[COPY_SIZE];
    skua_payload shared;
    unsigned accepted = 0;
    memset(bytes, 'c', sizeof bytes);
    for (int i = 0; i < COPIES; i++) {
        void *data;
        skua_payload filled;
        if (note(run, skua_payload_alloc(ctx, 1, COPY_SIZE, &data, &filled))) {
            memset(data, 'c', COPY_SIZE);
            accepted += note(run, skua_send_from(ctx, skua_self(ctx), &filled));
        }
    }
    if (note(run, skua_payload_shared(run->runtime, 1, bytes, sizeof bytes, &shared))) {
        for (int i = 0; i < COPIES; i++) {
            skua_payload one;
            (void)note(run, skua_payload_ref(&shared, &one)); /* needs no memory */
            accepted += note(run, skua_send_from(ctx, skua_self(ctx), &one));
        }
        skua_payload_drop(&shared);
    }
    return accepted;
}

/* Memory of its own, zeroed. Some of it is freed early, the rest with the process. */
static void own_some(struct run *run, skua_context *ctx)
{
    for (size_t i = 1; i <= ALLOCATIONS; i++) {
        void *memory;
        if (note(run, skua_own_alloc(ctx, 100 * i, &memory))) {
            const char *last = (const char *)memory + 100 * i - 1;
            (void)atomic_fetch_add(&run->garbage, *(const char *)memory != 0 || *last != 0);
            memset(memory, 'o', 100 * i);
            (void)note(run, i % 2 == 0 ? skua_own_free(ctx, memory) : 0);
        }
    }
}

static int own_in_init(struct turn *turn, const struct act *act)
{
    own_some(act->arg, turn->ctx);
    return 0;
}

static void allocate_some(struct run *run, skua_context *ctx)
{
    void *blocks[ALLOCATIONS];
    for (size_t i = 0; i < ALLOCATIONS; i++) {
        blocks[i] = skua_alloc(ctx, 100 * (i + 1));
        (void)note(run, blocks[i] != NULL ? 0 : SKUA_E_NO_MEMORY);
    }
    for (size_t i = 0; i < ALLOCATIONS; i++) {
        skua_free(ctx, blocks[i], 100 * (i + 1));
    }
}

static int do_everything(struct turn *turn, const struct act *act)
{
    struct run *run = act->arg;
    const skua_pid self = turn->actor->pid;
    spawn_children(run, turn->ctx);
    yield_all_kinds(run, turn);
    (void)note(run, skua_blocking_begin(turn->ctx));
    (void)note(run, skua_blocking_end(turn->ctx));
    run->messages_accepted = send_copies(run, self) + send_others(run, turn->ctx);
    run->cancels_accepted = note(run, skua_process_cancel(run->runtime, self, SKUA_E_USER));
    allocate_some(run, turn->ctx);
    own_some(run, turn->ctx);
    return 0;
}

/* ---- what comes of it ---- */

/* Accepted yields end as they should; two kinds may find out later that there is no memory. */
static void note_completion(struct run *run, const skua_event *event)
{
    static const int usual[KINDS] = {
        [KIND_NEVER] = SKUA_E_TIMEOUT,
        [KIND_TICKER] = SKUA_E_CANCELLED,
        [KIND_TAKEN_BACK] = SKUA_E_CANCELLED,
    };
    const uint64_t kind = event->tag < FIRST_TAG ? event->tag : KIND_TAKEN_BACK;
    (void)atomic_fetch_add(&run->completions[kind], 1);
    if (run->simulated && kind == KIND_DESCRIPTOR) {
        (void)atomic_fetch_add(&run->wrong, event->error != SKUA_E_NOT_SIMULATED);
    } else if (kind == KIND_DESCRIPTOR || kind == KIND_BLOCKING) {
        (void)note(run, event->error);
    } else {
        (void)atomic_fetch_add(&run->wrong, event->error != usual[kind]);
    }
}

/* Ticks are of a ticker that could not be taken back. */
static void note_event(struct run *run, const skua_event *event)
{
    if (event->type == SKUA_EVENT_COMPLETION) {
        note_completion(run, event);
    } else if (event->type == SKUA_EVENT_MESSAGE) {
        const char *bytes = skua_payload_data(&event->payload);
        (void)atomic_fetch_add(&run->messages, 1);
        (void)atomic_fetch_add(&run->garbage, bytes == NULL || bytes[COPY_SIZE - 1] != 'c');
    } else if (event->type == SKUA_EVENT_CANCEL) {
        (void)atomic_fetch_add(&run->cancels, 1);
    }
}

static bool has_all_that_was_promised(struct run *run)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (run->completions[i] != run->yields_accepted[i]) {
            return false;
        }
    }
    return run->messages == run->messages_accepted && run->cancels == run->cancels_accepted;
}

static int await_all_that_was_promised(struct turn *turn, const struct act *act)
{
    struct run *run = act->arg;
    for (size_t i = 0; i < turn->count; i++) {
        note_event(run, &turn->events[i]);
    }
    return has_all_that_was_promised(run) ? perform(turn, finishes_with(0, new_item(run)))
                                          : ACT_WAITS;
}

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
    (void)note(run, skua_blocking_register(run->runtime, &pool, NULL));
}

static void run_actor(struct run *run, struct actor *actor)
{
    skua_payload input[] = {api_world_payload(actor), tracked_payload(0, new_item(run))};
    skua_exit exit;
    if (note(run, skua_process_run_with(
                      run->runtime,
                      &(skua_spawn_options){.type = &actor->type, .input = input, .input_count = 2},
                      &exit))) {
        (void)note(run, exit.error);
        skua_payload_drop(&exit.result);
    }
}

/* Asks a process to end, or ends it if there is no memory for asking. */
static void end_resident(struct run *run, skua_pid resident)
{
    (void)send_copies(run, resident);
    (void)note(run, skua_process_send(run->runtime, resident, tracked_payload(0, new_item(run))));
    if (!note(run, skua_process_cancel(run->runtime, resident, SKUA_E_USER))) {
        (void)note(run, skua_process_terminate(run->runtime, resident));
    }
    const int error = skua_process_wait(run->runtime, resident, SKUA_FOREVER, NULL);
    (void)note(run, error == SKUA_E_NO_PROCESS ? 0 : error);
}

/* The part between start and stop. */
static void work(struct run *run, struct actor *actor)
{
    skua_pid resident;
    skua_payload input = api_world_payload(&run->resident);
    const bool has_resident =
        note(run, skua_process_submit(run->runtime, &probe_large_type, input, &resident));
    run_actor(run, actor);
    if (has_resident) {
        end_resident(run, resident);
    }
}

/* What holds after every run, whatever has failed. */
static void assert_sound(struct run *run)
{
    assert_int_equal(run->wrong, 0);
    assert_int_equal(run->garbage, 0);
    assert_true(has_all_that_was_promised(run));
    assert_int_equal(run->resident.closes, run->resident.inits);
    for (size_t i = 0; i < CHILDREN; i++) {
        assert_int_equal(run->children[i].inits, run->child_accepted[i]);
        assert_int_equal(run->children[i].closes, run->child_accepted[i]);
    }
    assert_in_range(run->item_count, 0, ITEMS_MAX);
    assert_drops(run->items, run->item_count, 1);
    assert_true(counting_allocator_is_clean(&run->memory));
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

typedef void fail_fn(struct counting_allocator *memory, uint64_t n);

/* Once, with the n-th allocation failing in some way (0: none); asserts all but the number of
 * failures. */
static struct run *run_once(uint32_t workers, fail_fn *make_fail, uint64_t n)
{
    struct run *run = test_alloc(sizeof *run);
    struct actor *actor =
        actor_new(ACTS(does(do_everything, run), does(await_all_that_was_promised, run)));
    const skua_sim_config simulation = {.step_ns = 0};
    const skua_runtime_config config = {
        .worker_count = workers,
        .alloc = counting_allocate,
        .alloc_arg = &run->memory,
        .sim = workers == SIMULATED ? &simulation : NULL,
    };
    actor->type.state_size = 500;
    actor->in_init = ACTS(does(own_in_init, run));
    actor->ignores_cancel = true; /* that is for the script to see */
    run->simulated = workers == SIMULATED;
    run->descriptor = ready_descriptor();
    counting_allocator_init(&run->memory);
    if (n > 0) {
        make_fail(&run->memory, n);
    }
    if (note(run, skua_runtime_create(&run->runtime, &config))) {
        register_many(run);
        assert_int_equal(skua_runtime_start(run->runtime), 0);
        if (!run->simulated) {
            wait_until_all_have_slept(run->runtime); /* so that runs allocate in the same order */
        }
        work(run, actor);
        assert_int_equal(skua_runtime_stop(run->runtime, SKUA_FOREVER), 0);
        assert_int_equal(skua_runtime_destroy(run->runtime), 0);
    }
    assert_sound(run);
    return run;
}

/* A run without failures: all that is asked for is granted. Returns its allocations. */
static uint64_t run_undisturbed(uint32_t workers)
{
    struct run *run = run_once(workers, NULL, 0);
    assert_int_equal(run->refused, 0);
    assert_int_equal(run->yields_accepted[KIND_NOW], YIELDS);
    assert_int_equal(run->yields_accepted[KIND_TICKER], SMALL_YIELDS);
    assert_int_equal(run->yields_accepted[KIND_BLOCKING], SMALL_YIELDS);
    assert_int_equal(run->yields_accepted[KIND_TAKEN_BACK], TAGS);
    assert_int_equal(run->messages_accepted, 3 * COPIES);
    return counting_allocator_attempts(&run->memory);
}

/* Returns whether there was a run in which the memory ended in the middle of the yields. */
static bool fail_everywhere(fail_fn *make_fail, uint32_t workers)
{
    uint64_t attempts = 0;
    uint64_t failed = 0;
    uint64_t quiet = 0;
    bool partly = false;
    FOR_ROUNDS (round, UINT64_MAX) {
        if (round == 1) {
            attempts = run_undisturbed(workers);
            continue;
        }
        struct run *run = run_once(workers, make_fail, round - 1);
        const bool happened = counting_allocator_attempts(&run->memory) >= round - 1;
        assert_true(happened || run->refused == 0);
        quiet += happened && run->refused == 0;
        if (!happened && round > attempts) {
            break;
        }
        const unsigned accepted = run->yields_accepted[KIND_NOW];
        partly = partly || (accepted > 0 && accepted < YIELDS);
        failed++;
    }
    print_message("%u workers%s: %u allocations failed, %u of them unnoticed\n", workers,
                  workers == SIMULATED ? ", simulated" : "", (unsigned)failed, (unsigned)quiet);
    assert_true(failed > 60); /* the program has at least so many */
    assert_in_range(quiet, 0, make_fail == counting_allocator_fail_once ? QUIET_MAX : 0);
    return partly;
}

TEST(any_one_allocation_that_fails_is_reported_and_harmless)
{
    (void)fail_everywhere(counting_allocator_fail_once, test_workers());
}

/* A step whose memory ends in the middle takes back nothing that was accepted. */
TEST(all_allocations_that_fail_from_any_on_are_reported_and_harmless)
{
    const bool partly = fail_everywhere(counting_allocator_fail_from, test_workers());
    assert_true(partly || test_workers() > 1);
}

TEST(any_one_allocation_that_fails_in_a_simulation_is_reported_and_harmless)
{
    (void)fail_everywhere(counting_allocator_fail_once, SIMULATED);
}

TEST(all_allocations_that_fail_from_any_on_in_a_simulation_are_reported_and_harmless)
{
    (void)fail_everywhere(counting_allocator_fail_from, SIMULATED);
}
