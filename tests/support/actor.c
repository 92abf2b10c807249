/* SPDX-License-Identifier: MIT */
#include "actor.h"

#include <inttypes.h>
#include <stdio.h>

#include "sched/worker.h"

/* The type of messages that bring a script. */
#define SCRIPT_MESSAGE UINT32_C(0x5c819700)

/* The actors of a test or of a round (see FOR_ROUNDS), which may have begun within a test. */
struct cast {
    struct cast *outer;
    struct actor *actors;
    uint64_t test_number;
};

static struct cast *cast;

/* ---- what an actor has seen ---- */

struct seen message(uint32_t payload_type, uint64_t value)
{
    return (struct seen){.type = SKUA_EVENT_MESSAGE, .payload_type = payload_type, .value = value};
}

struct seen completion(uint64_t tag, int error)
{
    return (struct seen){
        .type = SKUA_EVENT_COMPLETION, .tag = tag, .error = error, .any_payload = true};
}

struct seen completion_of(uint64_t tag, uint32_t payload_type, uint64_t value)
{
    return (struct seen){
        .type = SKUA_EVENT_COMPLETION, .tag = tag, .payload_type = payload_type, .value = value};
}

struct seen failure(uint64_t tag, int error)
{
    return (struct seen){.type = SKUA_EVENT_COMPLETION, .tag = tag, .error = error};
}

uint64_t bytes_digest(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++) {
        digest = (digest ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return digest;
}

struct seen received_bytes(uint64_t tag, const void *data, size_t size)
{
    struct seen expected = completion(tag, 0);
    expected.has_bytes = true;
    expected.size = size;
    expected.digest = bytes_digest(data, size);
    return expected;
}

struct seen received(uint64_t tag, const char *text)
{
    return received_bytes(tag, text, strlen(text));
}

struct seen cancel(int error)
{
    return (struct seen){.type = SKUA_EVENT_CANCEL, .error = error};
}

struct seen tick(uint64_t tag, uint64_t count)
{
    return (struct seen){.type = SKUA_EVENT_TICK, .tag = tag, .value = count};
}

struct seen tick_at(uint64_t tag, uint64_t count, uint64_t time)
{
    struct seen expected = tick(tag, count);
    expected.tick_time = time;
    return expected;
}

bool seen_matches(const struct seen *seen, const struct seen *expected)
{
    const bool same_payload =
        seen->payload_type == expected->payload_type && seen->value == expected->value;
    const bool same_bytes =
        !expected->has_bytes || (seen->size == expected->size && seen->digest == expected->digest);
    const bool same_time = expected->tick_time == 0 || seen->tick_time == expected->tick_time;
    return same_time && same_bytes && seen->type == expected->type && seen->tag == expected->tag &&
           seen->error == expected->error && (expected->any_payload || same_payload);
}

struct seen_text seen_describe(const struct seen *seen)
{
    static const char *const names[] = {
        [SKUA_EVENT_MESSAGE] = "message", [SKUA_EVENT_COMPLETION] = "completion",
        [SKUA_EVENT_CANCEL] = "cancel",   [SKUA_EVENT_TICK] = "tick",
        [SKUA_EVENT_CALL] = "call",       [SKUA_EVENT_ABANDON] = "abandon",
        [SKUA_EVENT_EXIT] = "exit",       [SKUA_EVENT_CHILD] = "child",
        [SKUA_EVENT_GROUP] = "group",
    };
    struct seen_text text;
    (void)snprintf(text.text, sizeof text.text,
                   "%s %s tag %" PRIu64 " type %u value %" PRIu64 " time %" PRIu64 " size %zu",
                   seen->type < COUNT_OF(names) && names[seen->type] != NULL ? names[seen->type]
                                                                             : "?",
                   skua_error_name(seen->error), seen->tag, seen->payload_type, seen->value,
                   seen->tick_time, seen->size);
    return text;
}

static void assert_no_surprise(const struct actor *actor)
{
    if (actor->surprises > 0) {
        fail_msg("%s: %s (surprise 1 of %u)", actor->type.name, actor->surprise, actor->surprises);
    }
}

void assert_saw_from(const struct actor *actor, size_t from, const struct seen *expected,
                     size_t count)
{
    assert_no_surprise(actor);
    for (size_t i = 0; i < count && from + i < actor->seen_count; i++) {
        if (!seen_matches(&actor->seen[from + i], &expected[i])) {
            fail_msg("%s: event %zu is %s, not %s", actor->type.name, from + i,
                     seen_describe(&actor->seen[from + i]).text, seen_describe(&expected[i]).text);
        }
    }
    if (actor->seen_count > from + count) {
        fail_msg("%s: saw %zu events more, first %s", actor->type.name,
                 actor->seen_count - from - count, seen_describe(&actor->seen[from + count]).text);
    }
    if (actor->seen_count < from + count) {
        fail_msg("%s: saw %zu events less, first missing: %s", actor->type.name,
                 from + count - actor->seen_count,
                 seen_describe(&expected[actor->seen_count - from]).text);
    }
}

void assert_saw_nothing(const struct actor *actor)
{
    assert_saw_from(actor, 0, NULL, 0);
}

size_t actor_largest_batch(const struct actor *actor)
{
    size_t largest = 0;
    size_t batch = 0;
    for (size_t i = 0; i < actor->seen_count; i++) {
        if (i > 0 && actor->seen[i].step != actor->seen[i - 1].step) {
            batch = 0;
        }
        batch += actor->seen[i].type == SKUA_EVENT_MESSAGE;
        largest = batch > largest ? batch : largest;
    }
    return largest;
}

void assert_saw_since(struct actor *actor, const struct seen *expected, size_t count)
{
    const size_t from = actor->asserted;
    assert_saw_from(actor, from, expected, count);
    actor->asserted = from + count;
}

void assert_then_saw_nothing(struct actor *actor)
{
    assert_saw_since(actor, NULL, 0);
}

void assert_saw_these_since(struct actor *actor, const struct seen *expected, size_t count)
{
    bool *came = test_alloc(count + 1);
    assert_no_surprise(actor);
    for (size_t i = actor->asserted; i < actor->seen_count; i++) {
        size_t n = 0;
        while (n < count && (came[n] || !seen_matches(&actor->seen[i], &expected[n]))) {
            n++;
        }
        if (n == count) {
            fail_msg("%s: event %zu is %s", actor->type.name, i,
                     seen_describe(&actor->seen[i]).text);
        }
        came[n] = true;
    }
    assert_int_equal(actor->seen_count, actor->asserted + count);
    actor->asserted = actor->seen_count;
}

void assert_completed_each_once(const struct actor *actor, size_t total, int error)
{
    bool *came = test_alloc(total + 1);
    assert_no_surprise(actor);
    assert_int_equal(actor->seen_count, total);
    for (size_t i = 0; i < total; i++) {
        const struct seen *seen = &actor->seen[i];
        const struct seen expected = completion(seen->tag, error);
        assert_true(seen_matches(seen, &expected));
        assert_in_range(seen->tag, 0, total - 1);
        assert_false(came[seen->tag]);
        came[seen->tag] = true;
    }
}

/* ---- the process ---- */

void actor_surprise(struct actor *actor, const char *format, ...)
{
    if (actor->surprises++ == 0) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(actor->surprise, sizeof actor->surprise, format, arguments);
        va_end(arguments);
    }
}

static bool is_tracked(const skua_payload *payload)
{
    return payload->storage != SKUA_PAYLOAD_POINTER &&
           skua_payload_size(payload) == sizeof(struct tracked);
}

static uint64_t payload_value(const skua_payload *payload)
{
    return is_tracked(payload) ? tracked_value(payload) : skua_payload_to_u64(payload);
}

static uint64_t value_in(const skua_event *event)
{
    return event->type == SKUA_EVENT_GROUP ? skua_payload_to_u64(&event->payload)
                                           : payload_value(&event->payload);
}

/* How many bytes an event has brought. The count in a tracked payload changes at any time. */
static size_t bytes_in(const skua_event *event)
{
    const skua_payload *payload = &event->payload;
    const bool is_steady = payload->storage != SKUA_PAYLOAD_OWNED || !is_tracked(payload);
    const bool has_bytes =
        event->type == SKUA_EVENT_GROUP || (event->type == SKUA_EVENT_COMPLETION && is_steady);
    return has_bytes && payload->storage != SKUA_PAYLOAD_POINTER ? skua_payload_size(payload) : 0;
}

static void take_note(struct turn *turn, const skua_event *event)
{
    struct actor *actor = turn->actor;
    const bool ticks = event->type == SKUA_EVENT_TICK;
    const bool asks = event->type == SKUA_EVENT_CALL || event->type == SKUA_EVENT_ABANDON;
    const size_t bytes = bytes_in(event);
    if (actor->seen_count == actor->seen_capacity) {
        actor->seen_capacity = 2 * actor->seen_capacity + 8;
        actor->seen = realloc(actor->seen, actor->seen_capacity * sizeof *actor->seen);
        if (actor->seen == NULL) {
            abort();
        }
    }
    if (event->type < SKUA_EVENT_CALL && event->type != SKUA_EVENT_MESSAGE &&
        !skua_pid_is_none(event->from)) {
        actor_surprise(actor, "an event that is no message has a sender");
    }
    if (event->type == SKUA_EVENT_CANCEL && event->payload.storage != SKUA_PAYLOAD_EMPTY) {
        actor_surprise(actor, "a cancel event has a payload");
    }
    actor->seen[actor->seen_count++] = (struct seen){
        .type = event->type,
        .error = event->error,
        .tag = asks ? 0 : event->tag,
        .request = asks ? event->request : (skua_request){0},
        .payload_type = ticks ? 0 : event->payload.type,
        .value = ticks ? skua_tick_count(event) : value_in(event),
        .size = bytes,
        .digest = bytes_digest(bytes > 0 ? skua_payload_data(&event->payload) : NULL, bytes),
        .from = event->from,
        .now = skua_now(turn->ctx),
        .tick_time = ticks ? skua_tick_time(event) : 0,
        .step = actor->steps,
    };
}

static void begin_script(struct actor *actor, const skua_payload *payload)
{
    if (actor->position < actor->script.count) {
        actor_surprise(actor, "it was told a script in the middle of another");
    }
    actor->script = *(const struct script *)skua_payload_data(payload);
    actor->position = 0;
    actor->counter = 0;
    actor->read = actor->seen_count;
}

/* Whether there is a cancel event among the events from `first` on that the script has not dealt
 * with. */
static bool was_cancelled(const struct actor *actor, size_t first)
{
    for (size_t i = actor->read > first ? actor->read : first; i < actor->seen_count; i++) {
        if (actor->seen[i].type == SKUA_EVENT_CANCEL) {
            return true;
        }
    }
    return false;
}

static void check_outcome(struct actor *actor, size_t position, const struct act *act, int outcome)
{
    if (outcome != act->returns) {
        actor_surprise(actor, "act %zu returned %s, not %s", position, skua_error_name(outcome),
                       skua_error_name(act->returns));
    }
}

/* Performs what can be performed in this step. */
static void go_on(struct turn *turn)
{
    struct actor *actor = turn->actor;
    while (actor->position < actor->script.count) {
        const size_t position = actor->position;
        const struct act *act = &actor->script.acts[position];
        const int outcome = act->perform(turn, act);
        if (outcome == ACT_WAITS) {
            return;
        }
        check_outcome(actor, position, act, outcome);
        if (actor->position == position) { /* it is no repetition */
            actor->position++;
            actor->counter = 0;
        }
        if (actor->position == actor->script.count) {
            tally_add(&actor->performed, 1);
        }
    }
}

/* Whether the runtime has made the event up: START, which is the first of the first step, and
 * CONTINUE, which is the last of a step. */
static bool is_made_up(struct actor *actor, const skua_event *event, size_t at, size_t count)
{
    const bool starts = event->type == SKUA_EVENT_START;
    const bool continues = event->type == SKUA_EVENT_CONTINUE;
    if (starts != (actor->steps == actor->first_step && at == 0)) {
        actor_surprise(actor, "START is not the first event of the first step, and only that");
    }
    if (continues && at != count - 1) {
        actor_surprise(actor, "CONTINUE is not the last event of a step");
    }
    return starts || continues;
}

static int actor_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct actor *actor = api_world(self);
    struct turn turn = {.actor = actor, .ctx = ctx, .events = events, .count = count};
    actor->worker = worker_of_thread()->index;
    (void)atomic_fetch_add(&actor->steps, 1);
    if (count == 0) {
        actor_surprise(actor, "a step without events");
    }
    if (actor->closes == actor->inits) {
        actor_surprise(actor, "a step after close");
    }
    const size_t before = actor->seen_count;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_MESSAGE && events[i].payload.type == SCRIPT_MESSAGE) {
            begin_script(actor, &events[i].payload);
        } else if (!is_made_up(actor, &events[i], i, count)) {
            take_note(&turn, &events[i]);
        }
    }
    tally_add(&actor->arrived, actor->seen_count - before);
    go_on(&turn);
    if (!turn.finished && !actor->ignores_cancel && was_cancelled(actor, before)) {
        skua_done(ctx, skua_payload_empty(0));
    }
    return turn.error;
}

/* The same as a task: each event is a step. */
static int actor_main(void *self, skua_context *ctx)
{
    skua_event start = {.type = SKUA_EVENT_START};
    skua_event *event = &start;
    int error = actor_step(self, ctx, event, 1);
    while (error == 0) {
        error = skua_task_receive(ctx, &event, SKUA_FOREVER);
        if (error == 0) {
            error = actor_step(self, ctx, event, 1);
        }
    }
    return error;
}

/* All acts of a script that does not wait. */
static void perform_at_once(struct turn *turn, struct script script)
{
    for (size_t i = 0; i < script.count; i++) {
        const struct act *act = &script.acts[i];
        check_outcome(turn->actor, i, act, act->perform(turn, act));
    }
}

static int actor_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    const int error = api_init_world(self, ctx, input, input_count);
    if (error != 0) {
        return error;
    }
    struct actor *actor = api_world(self);
    struct turn turn = {.actor = actor, .ctx = ctx, .input = input, .input_count = input_count};
    actor->pid = skua_self(ctx);
    actor->init_now = skua_now(ctx);
    (void)snprintf(actor->method, sizeof actor->method, "%s", skua_method(ctx));
    actor->position = 0;
    actor->counter = 0;
    actor->repeated = 0;
    actor->read = actor->seen_count;
    actor->given += actor->script.count > 0;
    actor->first_step = actor->steps + 1;
    (void)atomic_fetch_add(&actor->inits, 1);
    perform_at_once(&turn, actor->in_init);
    return actor->init_returns;
}

void actor_stay_held(struct actor *actor)
{
    tally_add(&actor->held, 1);
    tally_wait(&actor->released, tally_count(&actor->held));
}

static void actor_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    struct actor *actor = api_world(self);
    if (actor != NULL) { /* otherwise its init had no input */
        if (!skua_pid_equal(skua_self(ctx), exit->pid) || exit->type != &actor->type) {
            actor_surprise(actor, "its close was told of another process");
        }
        actor->exit_error = exit->error;
        actor->exit_cause = exit->cause;
        perform_at_once(&(struct turn){.actor = actor, .ctx = ctx, .exit = exit}, actor->in_close);
        (void)atomic_fetch_add(&actor->closes, 1);
        if (actor->holds_in_close) {
            actor_stay_held(actor);
        }
        tally_add(&actor->closed, 1);
    }
}

/* ---- actors ---- */

static void check_actors(void)
{
    world_close(); /* all processes are gone then */
    struct actor *actor = cast->actors;
    cast = cast->outer;
    for (; actor != NULL; actor = actor->next) {
        assert_no_surprise(actor);
        assert_int_equal(actor->closes, actor->inits);
        free(actor->seen);
    }
}

struct script script_copy(const struct act *acts, size_t count)
{
    struct act *copy = test_alloc(count * sizeof *acts);
    memcpy(copy, acts, count * sizeof *acts);
    return (struct script){copy, count};
}

/* Where each stands that is not at the end of its script, and what surprised it. */
static void describe_actors(void)
{
    for (const struct actor *actor = cast->actors; actor != NULL; actor = actor->next) {
        if (actor->position < actor->script.count || actor->surprises > 0) {
            (void)fprintf(stderr, "          %s: at act %zu of %zu, %zu events seen%s%s\n",
                          actor->type.name, actor->position, actor->script.count, actor->seen_count,
                          actor->surprises > 0 ? "; surprised: " : "", actor->surprise);
        }
    }
}

static void join_cast(struct actor *actor)
{
    if (cast == NULL || cast->test_number != test_number) {
        struct cast *inner = test_alloc(sizeof *inner);
        *inner = (struct cast){.outer = cast, .test_number = test_number};
        cast = inner;
        test_at_end(check_actors);
        test_describe_with(describe_actors);
    }
    actor->next = cast->actors;
    cast->actors = actor;
}

struct actor *actor_new(struct script script)
{
    struct actor *actor = test_alloc(sizeof *actor);
    actor->type = (skua_process_type){.name = "actor",
                                      .state_size = sizeof(void *),
                                      .init = actor_init,
                                      .step = actor_step,
                                      .close = actor_close,
                                      .cancel = SKUA_CANCEL_EVENT};
    if (test_has_tasks()) {
        actor->type.step = NULL;
        actor->type.main = actor_main;
        actor->type.stack_size = (size_t)256 << 10; /* room for sanitizers, and for the kit */
    }
    actor->script = script;
    tally_init(&actor->arrived);
    tally_init(&actor->performed);
    tally_init(&actor->held);
    tally_init(&actor->released);
    tally_init(&actor->closed);
    join_cast(actor);
    return actor;
}

/* After a call that starts one: the PID is that of its init, or there is none. */
void actor_check_start(struct actor *actor, int error, skua_pid pid)
{
    if (!skua_pid_equal(pid, error == 0 ? actor->pid : (skua_pid){0})) {
        actor_surprise(actor, "it was started as another process");
    }
}

int actor_try_submit(struct actor *actor)
{
    skua_payload input = api_world_payload(actor);
    skua_pid pid = {0};
    const int error = skua_process_submit(world_runtime(), &actor->type, input, &pid);
    actor_check_start(actor, error, pid);
    return error;
}

void actor_submit(struct actor *actor)
{
    assert_int_equal(actor_try_submit(actor), 0);
}

struct actor *actor_start(struct script script)
{
    struct actor *actor = actor_new(script);
    actor_submit(actor);
    return actor;
}

struct actor *actor_start_held(void)
{
    struct actor *actor = actor_start(ACTS(holds()));
    actor_await_held(actor, 1);
    return actor;
}

skua_exit actor_run(struct actor *actor)
{
    return api_run_process(world->api, &actor->type, actor);
}

int actor_try_run(struct actor *actor, skua_exit *exit)
{
    skua_payload input = api_world_payload(actor);
    return skua_process_run(world_runtime(), &actor->type, input, exit);
}

void actor_tell(struct actor *actor, struct script script)
{
    struct script *told = test_alloc(sizeof *told);
    *told = script;
    if (!world->is_simulated) {
        tally_wait(&actor->performed, actor->given);
    }
    actor->given += script.count > 0;
    assert_int_equal(world_send(actor->pid, skua_payload_pointer(SCRIPT_MESSAGE, told, NULL)), 0);
}

/* Until it has come to the end of all scripts it was given. */
static void await_performed(struct actor *actor)
{
    if (!world->is_simulated) {
        tally_wait(&actor->performed, actor->given);
    }
    if (world->is_simulated || world->is_virtual) {
        world_settle();
        assert_int_equal(tally_count(&actor->performed), actor->given);
        assert_no_surprise(actor);
    }
}

void actor_perform(struct actor *actor, struct script script)
{
    actor_tell(actor, script);
    await_performed(actor);
}

void actor_perform_until_held(struct actor *actor, struct script script)
{
    const uint64_t before = tally_count(&actor->held);
    actor_tell(actor, script);
    tally_wait(&actor->held, before + 1);
}

void actor_let_go(struct actor *actor)
{
    tally_add(&actor->released, 1);
}

void actor_release(struct actor *actor)
{
    actor_let_go(actor);
    await_performed(actor);
}

void actor_await_seen(struct actor *actor, uint64_t events)
{
    tally_wait(&actor->arrived, events);
}

void actor_await_held(struct actor *actor, uint64_t times)
{
    tally_wait(&actor->held, times);
}

void actor_await_state(const struct actor *actor, enum skua_process_state state)
{
    api_wait_state(world->api, actor->pid, state);
}

void actor_await_end(struct actor *actor)
{
    tally_wait(&actor->closed, actor->inits);
    api_wait_end(world->api, actor->pid);
}

const struct actor *actor_of_type(const skua_process_type *type)
{
    const size_t offset = offsetof(struct actor, type);
    return type->step == actor_step || type->main == actor_main
               ? (const void *)((const char *)type - offset)
               : NULL;
}

void assert_result(skua_exit exit, uint64_t number)
{
    assert_int_equal(exit.error, 0);
    assert_int_equal(payload_value(&exit.result), number);
    skua_payload_drop(&exit.result);
}

void assert_failed(skua_exit exit, int error)
{
    assert_int_equal(exit.error, error);
    assert_int_equal(skua_payload_size(&exit.result), 0);
    skua_payload_drop(&exit.result);
}
