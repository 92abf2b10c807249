/* SPDX-License-Identifier: MIT */
/* What a process may do wrong: verbs with bad arguments, in the wrong call, after the end, with a
 * payload that is gone. Each is refused with the error that its header names, drops what it was
 * given exactly once, and changes nothing. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>

#include "actor.h"
#include "handlers.h"

#define PAYLOAD_LIMIT 1000
#define COMMAND       1

static void open_with_limit(void)
{
    world_create((skua_runtime_config){.worker_count = 1, .payload_limit = PAYLOAD_LIMIT});
    world_register(COMMAND, complete_at_once, NULL);
    world_start();
}

/* ---- all verbs ---- */

static int end_at_once(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    return skua_done(ctx, skua_nothing());
}

static const skua_process_type brief = {.name = "brief", .step = end_at_once};

static int try_send(skua_context *ctx, skua_payload *payload)
{
    return skua_send_from(ctx, (skua_pid){0}, payload);
}

static int try_spawn(skua_context *ctx, skua_payload *payload)
{
    return skua_spawn_from(ctx, &brief, payload, NULL);
}

static int try_spawn_with(skua_context *ctx, skua_payload *payload)
{
    const skua_spawn_options options = {.type = &brief, .input = payload, .input_count = 1};
    return skua_spawn_with(ctx, &options, NULL);
}

static int try_cancel(skua_context *ctx, skua_payload *payload)
{
    (void)payload;
    return skua_cancel(ctx, (skua_pid){0}, 0);
}

static int try_terminate(skua_context *ctx, skua_payload *payload)
{
    (void)payload;
    return skua_terminate(ctx, (skua_pid){0});
}

static int try_continue(skua_context *ctx, skua_payload *payload)
{
    (void)payload;
    return skua_continue(ctx);
}

static int try_own_alloc(skua_context *ctx, skua_payload *payload)
{
    void *memory = ctx;
    (void)payload;
    const int error = skua_own_alloc(ctx, 8, &memory);
    return error != 0 && memory != NULL ? 1 : error;
}

static int try_own_free(skua_context *ctx, skua_payload *payload)
{
    (void)payload;
    return skua_own_free(ctx, NULL);
}

static int try_payload_alloc(skua_context *ctx, skua_payload *payload)
{
    skua_payload made;
    void *data = ctx;
    (void)payload;
    const int error = skua_payload_alloc(ctx, 1, 100, &data, &made);
    skua_payload_drop(&made);
    return error != 0 && data != NULL ? 1 : error;
}

static int try_yield(skua_context *ctx, skua_payload *payload)
{
    return skua_yield_from(ctx, 1, COMMAND, payload, SKUA_FOREVER);
}

static int try_yield_cancel(skua_context *ctx, skua_payload *payload)
{
    (void)payload;
    return skua_yield_cancel(ctx, 7);
}

static int try_sleep(skua_context *ctx, skua_payload *payload)
{
    (void)payload;
    return skua_yield_sleep(ctx, 2, 0);
}

static int try_timer(skua_context *ctx, skua_payload *payload)
{
    (void)payload;
    return skua_yield_timer(ctx, 3, 0);
}

static int try_ticker(skua_context *ctx, skua_payload *payload)
{
    (void)payload;
    return skua_yield_ticker(ctx, 4, SKUA_SECOND);
}

static int try_readable(skua_context *ctx, skua_payload *payload)
{
    (void)payload;
    return skua_yield_readable(ctx, 5, INT_MAX, SKUA_FOREVER);
}

static int try_writable(skua_context *ctx, skua_payload *payload)
{
    (void)payload;
    return skua_yield_writable(ctx, 6, INT_MAX, SKUA_FOREVER);
}

static int try_blocking(skua_context *ctx, skua_payload *payload)
{
    return skua_yield_blocking(ctx, 7, (skua_pool){0}, return_at_once, skua_payload_take(payload),
                               SKUA_FOREVER);
}

static int try_blocking_section(skua_context *ctx, skua_payload *payload)
{
    (void)payload;
    const int error = skua_blocking_begin(ctx);
    const int second = skua_blocking_end(ctx);
    return error != 0 ? error : second;
}

static int try_done(skua_context *ctx, skua_payload *payload)
{
    return skua_done_from(ctx, payload);
}

/* The calls of a process that a verb may be used in. */
enum { IN_INIT = 1, IN_STEP = 2, IN_CLOSE = 4, IN_ANY = IN_INIT | IN_STEP | IN_CLOSE };

static const struct verb {
    const char *name;
    int (*try)(skua_context *ctx, skua_payload *payload);
    unsigned allowed;
    int returns; /* where it is allowed */
    bool takes;  /* the payload */
    bool ends;   /* refused after skua_done */
} verbs[] = {
    {"send", try_send, IN_ANY, SKUA_E_NO_PROCESS, true, false},
    {"spawn", try_spawn, IN_INIT | IN_STEP, 0, true, false},
    {"spawn_with", try_spawn_with, IN_INIT | IN_STEP, 0, true, false},
    {"cancel", try_cancel, IN_ANY, SKUA_E_NO_PROCESS, false, false},
    {"terminate", try_terminate, IN_ANY, SKUA_E_NO_PROCESS, false, false},
    {"own_alloc", try_own_alloc, IN_INIT | IN_STEP, 0, false, false},
    {"own_free", try_own_free, IN_ANY, 0, false, false},
    {"payload_alloc", try_payload_alloc, IN_ANY, 0, false, false},
    {"blocking_begin", try_blocking_section, IN_INIT | IN_STEP, 0, false, false},
    {"continue", try_continue, IN_STEP, 0, false, true},
    {"yield", try_yield, IN_STEP, 0, true, true},
    {"yield_cancel", try_yield_cancel, IN_STEP, 0, false, true},
    {"yield_sleep", try_sleep, IN_STEP, 0, false, true},
    {"yield_timer", try_timer, IN_STEP, 0, false, true},
    {"yield_ticker", try_ticker, IN_STEP, 0, false, true},
    {"yield_readable", try_readable, IN_STEP, 0, false, true},
    {"yield_writable", try_writable, IN_STEP, 0, false, true},
    {"yield_blocking", try_blocking, IN_STEP, 0, true, true},
    {"done", try_done, IN_STEP, 0, true, true}, /* the last */
};

/* What went otherwise than it should, for the thread of the test. */
static struct {
    char text[160]; /* the first */
    struct tracked items[8 * COUNT_OF(verbs)];
    atomic_uint used;
    skua_context *kept;
} notes;

static void notes_clear(void)
{
    memset(&notes, 0, sizeof notes);
}

/* Each payload was dropped once, and nothing was wrong. */
static void assert_all_well(void)
{
    assert_string_equal(notes.text, "");
    assert_drops(notes.items, notes.used, 1);
}

static void expect_error(const char *where, const char *what, int error, int expected)
{
    if (error != expected && notes.text[0] == '\0') {
        (void)snprintf(notes.text, sizeof notes.text, "%s %s: %s, not %s", where, what,
                       skua_error_name(error), skua_error_name(expected));
    }
}

/* Whatever the outcome, a verb that takes a payload leaves one behind that is taken. */
static void expect_verb(const char *where, const struct verb *verb, skua_context *ctx, int expected)
{
    skua_payload payload = skua_nothing();
    if (verb->takes) {
        payload = tracked_payload(0, &notes.items[notes.used++]);
    }
    expect_error(where, verb->name, verb->try(ctx, &payload), expected);
    if (verb->takes && verb->try != try_spawn_with) {
        expect_error(where, "leaves", payload.storage, SKUA_PAYLOAD_TAKEN);
    }
}

static void try_all(const char *where, skua_context *ctx, unsigned phase)
{
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        const bool may = (verbs[i].allowed & phase) != 0;
        expect_verb(where, &verbs[i], ctx, may ? verbs[i].returns : SKUA_E_CONTEXT);
    }
}

/* ---- verbs in the calls of a process ---- */

static int diligent_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)self;
    (void)input;
    (void)count;
    try_all("init", ctx, IN_INIT);
    return 0;
}

static int diligent_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    try_all("step", ctx, IN_STEP); /* the last of them is done */
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        expect_verb("after done", &verbs[i], ctx, verbs[i].ends ? SKUA_E_DONE : verbs[i].returns);
    }
    notes.kept = ctx;
    return 0;
}

static void diligent_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self;
    try_all("close", ctx, IN_CLOSE);
    expect_error("close", "error", exit->error, 0);
}

static const skua_process_type diligent = {
    .name = "diligent", .init = diligent_init, .step = diligent_step, .close = diligent_close};

static void run_diligent(void)
{
    skua_exit exit;
    assert_int_equal(skua_process_run(world_runtime(), &diligent, skua_nothing(), &exit), 0);
    assert_int_equal(exit.error, 0);
    skua_payload_drop(&exit.result);
    if (world->is_simulated) {
        world_settle();
    }
    world_await_live(0);
}

TEST(verb_is_refused_where_its_header_does_not_allow_it)
{
    notes_clear();
    open_with_limit();
    run_diligent();
    try_all("after the end", notes.kept, 0);
    world_close();
    assert_all_well();
}

TEST(verb_is_refused_where_its_header_does_not_allow_it_in_a_simulation)
{
    notes_clear();
    world_create_sim(1, (skua_sim_config){.step_ns = 0});
    world_register(COMMAND, complete_at_once, NULL);
    world_start();
    run_diligent();
    world_close();
    assert_all_well();
}

TEST(verb_without_a_context_is_refused)
{
    notes_clear();
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        expect_verb("null", &verbs[i], NULL, SKUA_E_INVALID);
    }
    assert_all_well();
    assert_true(skua_pid_is_none(skua_self(NULL)));
    assert_null(skua_runtime_of(NULL));
    assert_null(skua_method(NULL));
    assert_int_equal(skua_now(NULL), 0);
    assert_int_equal(skua_random(NULL), 0);
    assert_null(skua_alloc(NULL, 8));
    skua_free(NULL, NULL, 8);
}

TEST(context_that_was_kept_answers_with_nothing)
{
    notes_clear();
    open_with_limit();
    run_diligent();
    assert_true(skua_pid_is_none(skua_self(notes.kept)));
    assert_null(skua_runtime_of(notes.kept));
    assert_null(skua_method(notes.kept));
    assert_int_equal(skua_now(notes.kept), 0);
    assert_int_equal(skua_random(notes.kept), 0);
    assert_null(skua_alloc(notes.kept, 8));
}

/* ---- contexts of another step or thread, which only checked contexts tell apart ---- */

static void use_on_thread(void *arg)
{
    skua_context *ctx = *(skua_context **)arg;
    try_all("on another thread", ctx, 0);
}

static int lend_context(struct turn *turn, const struct act *act)
{
    (void)act;
    api_in_threads(1, use_on_thread, &turn->ctx, sizeof turn->ctx);
    return 0;
}

static int use_kept_context(struct turn *turn, const struct act *act)
{
    (void)turn;
    (void)act;
    try_all("of another step", notes.kept, 0);
    return 0;
}

struct log_lines {
    atomic_uint count;
    char first[200];
};

static void note_line(void *arg, const skua_log *log)
{
    struct log_lines *lines = arg;
    if (atomic_fetch_add(&lines->count, 1) == 0) {
        (void)snprintf(lines->first, sizeof lines->first, "%s", log->text);
    }
}

static void check_in_simulation(struct script script, const char *complaint)
{
    struct log_lines lines = {0};
    const skua_sim_config sim = {.step_ns = 0};
    notes_clear();
    world_open_with((skua_runtime_config){.sim = &sim, .on_log = note_line, .on_log_arg = &lines});
    assert_result(actor_run(actor_new(script)), 0);
    world_close();
    assert_all_well();
    assert_in_range(lines.count, 1, 6); /* in a second, with how many were left out */
    assert_non_null(strstr(lines.first, complaint));
    assert_non_null(strstr(lines.first, "(actor)"));
}

TEST(context_of_another_step_is_refused_in_a_simulation)
{
    test_of_steps("the context of a task is good for its life");
    check_in_simulation(ACTS(does(keep_context, &notes.kept), continues(1),
                             does(use_kept_context, NULL), finishes(0)),
                        "used its context after the call that it was for");
}

TEST(context_on_another_thread_is_refused_in_a_simulation)
{
    check_in_simulation(ACTS(does(lend_context, NULL), finishes(0)),
                        "used its context on another thread");
}

/* ---- bad arguments ---- */

#define EXPECT(call, expected)                                                                     \
    if ((call) != (expected)) {                                                                    \
        actor_surprise(turn->actor, "%s", #call);                                                  \
    }

struct others {
    skua_pid stale;
    skua_pid foreign;
    skua_pid live;
};

static int send_wrongly(struct turn *turn, const struct act *act)
{
    const struct others *others = act->arg;
    skua_context *ctx = turn->ctx;
    struct tracked *items = notes.items;
    EXPECT(skua_send(ctx, others->stale, tracked_payload(0, &items[0])), SKUA_E_NO_PROCESS);
    EXPECT(skua_send(ctx, others->foreign, tracked_payload(0, &items[1])), SKUA_E_FOREIGN_PID);
    EXPECT(skua_send(ctx, others->live, tracked_oversized(PAYLOAD_LIMIT, &items[2])),
           SKUA_E_PAYLOAD_SIZE);
    EXPECT(skua_send_from(ctx, others->live, NULL), SKUA_E_INVALID);
    EXPECT(skua_cancel(ctx, others->stale, 0), SKUA_E_NO_PROCESS);
    EXPECT(skua_cancel(ctx, others->foreign, 0), SKUA_E_FOREIGN_PID);
    EXPECT(skua_cancel(ctx, others->live, 1), SKUA_E_INVALID);
    EXPECT(skua_cancel(ctx, others->live, INT_MAX), SKUA_E_INVALID);
    EXPECT(skua_terminate(ctx, others->stale), SKUA_E_NO_PROCESS);
    EXPECT(skua_terminate(ctx, others->foreign), SKUA_E_FOREIGN_PID);
    notes.used = 3;
    return 0;
}

TEST(message_or_end_for_nobody_is_refused)
{
    struct api other;
    notes_clear();
    open_with_limit();
    api_run(&other, 1);
    struct actor *gone = actor_start(ACTS(finishes(0)));
    actor_await_end(gone);
    struct actor *live = actor_start(NO_ACTS);
    struct actor *foreigner = actor_new(NO_ACTS);
    struct others others = {
        .stale = gone->pid,
        .foreign = api_submit(&other, &foreigner->type, foreigner),
        .live = live->pid,
    };
    assert_result(actor_run(actor_new(ACTS(does(send_wrongly, &others), finishes(1)))), 1);
    world_close();
    api_stop(&other);
    assert_saw(live, cancel(SKUA_E_STOPPED));
    assert_saw(foreigner, cancel(SKUA_E_STOPPED));
    assert_all_well();
}

static int yield_wrongly(struct turn *turn, const struct act *act)
{
    skua_context *ctx = turn->ctx;
    struct tracked *items = notes.items;
    (void)act;
    EXPECT(skua_yield(ctx, 1, COMMAND, tracked_oversized(PAYLOAD_LIMIT, &items[0]), SKUA_FOREVER),
           SKUA_E_PAYLOAD_SIZE);
    EXPECT(skua_yield(ctx, 1, COMMAND, tracked_payload(0, &items[1]), SKUA_FOREVER - 1),
           SKUA_E_DURATION);
    EXPECT(skua_yield(ctx, 1, SKUA_COMMAND_RESERVED, tracked_payload(0, &items[2]), 0),
           SKUA_E_RESERVED);
    EXPECT(skua_yield(ctx, 1, SKUA_COMMAND_RESERVED + 5, tracked_payload(0, &items[3]), 0),
           SKUA_E_RESERVED);
    EXPECT(skua_yield(ctx, 1, UINT32_MAX, tracked_payload(0, &items[4]), 0), SKUA_E_RESERVED);
    EXPECT(skua_yield_from(ctx, 1, COMMAND, NULL, 0), SKUA_E_INVALID);
    EXPECT(skua_yield_sleep(ctx, 1, SKUA_DURATION_MAX + 1), SKUA_E_DURATION);
    EXPECT(skua_yield_sleep(ctx, 1, SKUA_FOREVER), SKUA_E_DURATION);
    EXPECT(skua_yield_ticker(ctx, 1, 0), SKUA_E_DURATION);
    EXPECT(skua_yield_ticker(ctx, 1, SKUA_DURATION_MAX + 1), SKUA_E_DURATION);
    EXPECT(skua_yield_readable(ctx, 1, -1, SKUA_FOREVER), SKUA_E_DESCRIPTOR);
    EXPECT(skua_yield_writable(ctx, 1, INT_MIN, SKUA_FOREVER), SKUA_E_DESCRIPTOR);
    EXPECT(skua_done_from(ctx, NULL), SKUA_E_INVALID);
    EXPECT(skua_spawn_from(ctx, &brief, NULL, NULL), SKUA_E_INVALID);
    EXPECT(skua_spawn_with(ctx, NULL, NULL), SKUA_E_INVALID);
    notes.used = 5;
    return 0;
}

TEST(yield_with_bad_arguments_is_refused_and_never_completes)
{
    notes_clear();
    open_with_limit();
    struct actor *actor = actor_new(
        ACTS(does(yield_wrongly, NULL), sleeps(9, 0), expects(completion(9, 0)), finishes(1)));
    assert_result(actor_run(actor), 1);
    assert_saw(actor, completion(9, 0));
    assert_all_well();
}

/* ---- payloads that are gone ---- */

static int use_taken_payload(struct turn *turn, const struct act *act)
{
    (void)act;
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        if (!verbs[i].takes) {
            continue;
        }
        skua_payload payload = tracked_payload(0, &notes.items[notes.used++]);
        skua_payload taken = skua_payload_take(&payload);
        /* A send looks for its receiver first. */
        const int expected = verbs[i].returns != 0 ? verbs[i].returns : SKUA_E_TAKEN;
        const int error = verbs[i].try(turn->ctx, &payload);
        if (error != SKUA_E_TAKEN && error != expected) {
            actor_surprise(turn->actor, "%s: %s", verbs[i].name, skua_error_name(error));
        }
        skua_payload_drop(&taken);
    }
    skua_payload twice = tracked_payload(0, &notes.items[notes.used++]);
    EXPECT(skua_send_from(turn->ctx, turn->actor->pid, &twice), 0);
    EXPECT(skua_send_from(turn->ctx, turn->actor->pid, &twice), SKUA_E_TAKEN);
    EXPECT(skua_send(turn->ctx, turn->actor->pid, twice), SKUA_E_TAKEN);
    return 0;
}

/* Nothing has come of all that but the one message; not even the done was final. */
TEST(payload_that_is_taken_cannot_be_used_again)
{
    notes_clear();
    open_with_limit();
    struct actor *actor =
        actor_new(ACTS(does(use_taken_payload, NULL), expects(message(0, 0)), finishes(3)));
    assert_result(actor_run(actor), 3);
    assert_int_equal(world_stats().spawned, 1);
    assert_saw(actor, message(0, 0));
    assert_all_well();
}
