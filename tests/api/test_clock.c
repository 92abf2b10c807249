/* SPDX-License-Identifier: MIT */
/* Time: sleeping, timers, tickers, deadlines, cancelling, and who waits for them all. The clock and
 * the poller are simulated (virtual_time.h), so every instant is exact and nothing waits for real
 * time, except in the last test. */
#include <inttypes.h>
#include <skua/clock.h>
#include <stdio.h>

#include "base/mutex.h"
#include "dispatch/reserved.h"
#include "runtime/runtime.h"
#include "runtime_support.h"
#include "sched/worker.h"
#include "virtual_time.h"

/* An instant on no grid whatever. */
#define START UINT64_C(98765432109876543)

#define MICROSECOND SKUA_MICROSECOND
#define MILLISECOND SKUA_MILLISECOND
#define SECOND      SKUA_SECOND
#define HOUR        (3600 * SKUA_SECOND)
#define RESOLUTION  SKUA_CLOCK_RESOLUTION_NS

#define NOTES_MAX 4096
#define MANY      1000
#define KEPT_MAX  16

#define ERROR_STEP    (SKUA_E_USER - 1)
#define ERROR_HANDLER (SKUA_E_USER - 2)

/* When a timer fires that is due at `instant`: at the end of its span of the resolution. */
static uint64_t firing_time(uint64_t instant)
{
    return (instant + RESOLUTION - 1) / RESOLUTION * RESOLUTION;
}

/* ---- a process that does what it is told ---- */

enum act_kind {
    SLEEP,
    TIMER,
    TICKER,
    COMMAND,  /* `number` is its id */
    AWAIT,    /* a simulated source */
    RAW,      /* a reserved command with a payload of the test's */
    DEADLINE, /* for the yield before it */
    CANCEL,
    HOLD,  /* stays in the step until the test lets it go on */
    BLOCK, /* the same, between skua_blocking_begin and end */
    SPIN,  /* `number` more steps, one after the other */
    FINISH,
    FAIL,
};

struct act {
    enum act_kind kind;
    uint64_t tag;
    uint64_t number;
    int returns; /* what the call must return */
    const skua_payload *payload;
};

static struct act sleeps(uint64_t tag, uint64_t duration_ns)
{
    return (struct act){.kind = SLEEP, .tag = tag, .number = duration_ns};
}

static struct act timer(uint64_t tag, uint64_t deadline_ns)
{
    return (struct act){.kind = TIMER, .tag = tag, .number = deadline_ns};
}

static struct act ticker(uint64_t tag, uint64_t period_ns)
{
    return (struct act){.kind = TICKER, .tag = tag, .number = period_ns};
}

static struct act asks(uint64_t tag, uint32_t command)
{
    return (struct act){.kind = COMMAND, .tag = tag, .number = command};
}

static struct act awaits(uint64_t tag, uint64_t source)
{
    return (struct act){.kind = AWAIT, .tag = tag, .number = source};
}

static struct act deadline(uint64_t deadline_ns)
{
    return (struct act){.kind = DEADLINE, .number = deadline_ns};
}

static struct act cancels(uint64_t tag)
{
    return (struct act){.kind = CANCEL, .tag = tag};
}

static struct act spins(uint64_t steps)
{
    return (struct act){.kind = SPIN, .number = steps};
}

static struct act does(enum act_kind kind)
{
    return (struct act){.kind = kind};
}

static struct act refused(struct act act, int error)
{
    act.returns = error;
    return act;
}

/* A completion or a tick, as the process got it. */
struct note {
    uint32_t type;
    int error;
    uint64_t tag;
    uint64_t now; /* of that step */
    uint64_t ticks;
    uint64_t tick_time;
};

struct actor {
    skua_pid pid;
    bool ignores_cancel;
    uint64_t init_now;
    uint64_t spins;
    unsigned surprises; /* calls that returned something else, and events out of the ordinary */
    struct note notes[NOTES_MAX];
    size_t count;
    uint32_t worker;      /* that ran its last step */
    struct tracked input; /* of its commands */
    struct tally performed;
    struct tally noted;
    struct tally held;
    struct tally released;
};

struct script {
    const struct act *acts;
    size_t count;
};

static void hold(struct actor *actor)
{
    tally_add(&actor->held, 1);
    tally_wait(&actor->released, tally_count(&actor->held));
}

static int hold_blocking(struct actor *actor, skua_context *ctx)
{
    const int error = skua_blocking_begin(ctx);
    hold(actor);
    return error != 0 ? error : skua_blocking_end(ctx);
}

static int perform_one(struct actor *actor, skua_context *ctx, const struct act *act,
                       skua_step *out)
{
    switch (act->kind) {
    case SLEEP:
        return skua_step_sleep(out, act->tag, act->number);
    case TIMER:
        return skua_step_timer(out, act->tag, act->number);
    case TICKER:
        return skua_step_ticker(out, act->tag, act->number);
    case COMMAND:
        return skua_step_yield(out, (uint32_t)act->number, act->tag,
                               tracked_payload(0, &actor->input));
    case AWAIT:
        return skua_step_yield(out, VIRTUAL_WAIT, act->tag, skua_payload_u64(0, act->number));
    case RAW:
        return skua_step_yield(out, (uint32_t)act->number, act->tag, *act->payload);
    case DEADLINE:
        return skua_step_deadline(out, act->number);
    case CANCEL:
        return skua_step_cancel(out, act->tag);
    case HOLD:
        hold(actor);
        return 0;
    case BLOCK:
        return hold_blocking(actor, ctx);
    case SPIN:
        actor->spins = act->number;
        return 0;
    case FINISH:
        skua_step_done(out, skua_payload_empty(0));
        return 0;
    case FAIL:
        return 0;
    }
    return SKUA_E_INVALID;
}

static int perform_all(struct actor *actor, skua_context *ctx, const struct script *script,
                       skua_step *out)
{
    int error = 0;
    for (size_t i = 0; i < script->count; i++) {
        const struct act *act = &script->acts[i];
        actor->surprises += perform_one(actor, ctx, act, out) != act->returns;
        error = act->kind == FAIL ? ERROR_STEP : error;
    }
    tally_add(&actor->performed, 1);
    return error;
}

static void take_note(struct actor *actor, skua_context *ctx, const skua_event *event)
{
    const bool ticks = event->type == SKUA_EVENT_TICK;
    actor->surprises += actor->count == NOTES_MAX || !skua_pid_is_none(event->from);
    if (actor->count < NOTES_MAX) {
        actor->notes[actor->count++] = (struct note){
            .type = event->type,
            .error = event->error,
            .tag = event->tag,
            .now = skua_context_now(ctx),
            .ticks = ticks ? skua_tick_count(event) : 0,
            .tick_time = ticks ? skua_tick_time(event) : 0,
        };
    }
}

static int actor_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                      size_t input_count)
{
    const int error = api_init_world(self, ctx, method, input, input_count);
    if (error == 0) {
        struct actor *actor = api_world(self);
        actor->init_now = skua_context_now(ctx);
    }
    return error;
}

static int actor_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    struct actor *actor = api_world(self);
    int error = 0;
    uint64_t notes = 0;
    actor->worker = worker_of_thread()->index;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_MESSAGE) {
            const int result = perform_all(actor, ctx, skua_payload_data(&events[i].payload), out);
            error = result != 0 ? result : error;
        } else if (events[i].type != SKUA_EVENT_CANCEL) {
            take_note(actor, ctx, &events[i]);
            notes++;
        }
    }
    if (actor->spins > 0) {
        actor->spins--;
        skua_step_continue(out);
    }
    if (!actor->ignores_cancel) {
        (void)api_finish_if_cancelled(events, count, out);
    }
    tally_add(&actor->noted, notes);
    return error;
}

/* Its mailbox takes one message at a time: what timers bring is not subject to that. */
static const skua_process_type actor_type = {
    .name = "actor",
    .state_size = sizeof(void *),
    .init = actor_init,
    .step = actor_step,
    .mailbox_limit = 1,
};

/* ---- commands of the test's own ---- */

enum { KEEP, ANSWER, REFUSE, STICK };

/* What the handlers have seen and kept. */
struct desk {
    pthread_mutex_t lock;
    skua_completion kept[KEPT_MAX];
    uint64_t deadlines[KEPT_MAX];
    size_t count;
    atomic_uint calls;
    struct tracked result;
    struct tally stuck;
    struct tally released;
};

static void desk_init(struct desk *desk)
{
    *desk = (struct desk){.count = 0};
    mutex_init(&desk->lock);
    tally_init(&desk->stuck);
    tally_init(&desk->released);
}

static int keep(void *arg, skua_command *command, skua_payload *result)
{
    struct desk *desk = arg;
    (void)result;
    (void)atomic_fetch_add(&desk->calls, 1);
    mutex_lock(&desk->lock);
    desk->kept[desk->count % KEPT_MAX] = command->completion;
    desk->deadlines[desk->count % KEPT_MAX] = command->deadline;
    desk->count++;
    mutex_unlock(&desk->lock);
    return SKUA_PENDING;
}

static int answer(void *arg, skua_command *command, skua_payload *result)
{
    struct desk *desk = arg;
    (void)command;
    (void)result;
    (void)atomic_fetch_add(&desk->calls, 1);
    return 0;
}

static int refuse(void *arg, skua_command *command, skua_payload *result)
{
    struct desk *desk = arg;
    (void)command;
    (void)result;
    (void)atomic_fetch_add(&desk->calls, 1);
    return ERROR_HANDLER;
}

/* Does not return until the test allows it: what the step has asked for before is under way then,
 * and its worker has not even finished with it. */
static int stick(void *arg, skua_command *command, skua_payload *result)
{
    struct desk *desk = arg;
    (void)command;
    (void)result;
    tally_add(&desk->stuck, 1);
    tally_wait(&desk->released, tally_count(&desk->stuck));
    return 0;
}

/* ---- a runtime in simulated time ---- */

struct scene {
    struct api api;
    struct virtual_time time;
    struct desk desk;
};

static void register_handler(struct scene *scene, uint32_t id, skua_handler_fn *run)
{
    const skua_handler handler = {.name = "handler", .run = run, .arg = &scene->desk};
    assert_int_equal(skua_command_register(scene->api.runtime, id, &handler), 0);
}

/* In memory of its own: if a test fails, what it leaves behind does not disturb the next. */
static struct scene *scene_open(uint32_t workers)
{
    struct scene *scene = calloc(1, sizeof *scene);
    assert_non_null(scene);
    desk_init(&scene->desk);
    virtual_init(&scene->time, START);
    virtual_create(
        &scene->time, &scene->api,
        (skua_runtime_config){.worker_count = workers, .stall_limit_ns = VIRTUAL_STALL_LIMIT});
    register_handler(scene, KEEP, keep);
    register_handler(scene, ANSWER, answer);
    register_handler(scene, REFUSE, refuse);
    register_handler(scene, STICK, stick);
    api_start(&scene->api);
    return scene;
}

static void scene_free(struct scene *scene)
{
    assert_virtual_is_sound(&scene->time);
    free(scene);
}

static void scene_close(struct scene *scene)
{
    api_stop(&scene->api);
    scene_free(scene);
}

static struct scheduler *scheduler_of(const struct scene *scene)
{
    return &scene->api.runtime->sched;
}

static void settle(struct scene *scene)
{
    virtual_settle(&scene->time);
}

static void advance_to(struct scene *scene, uint64_t instant)
{
    virtual_advance_to(&scene->time, instant);
    settle(scene);
}

static void advance(struct scene *scene, uint64_t duration_ns)
{
    advance_to(scene, virtual_now(&scene->time) + duration_ns);
}

static void actor_start(struct scene *scene, struct actor *actor)
{
    memset(actor, 0, sizeof *actor);
    tally_init(&actor->performed);
    tally_init(&actor->noted);
    tally_init(&actor->held);
    tally_init(&actor->released);
    actor->pid = api_submit(&scene->api, &actor_type, actor);
}

/* The acts must outlive their performance. */
static void tell(struct scene *scene, const struct actor *actor, struct script *script)
{
    assert_int_equal(
        skua_message_send(scene->api.runtime, actor->pid, skua_payload_pointer(0, script, NULL)),
        0);
}

/* Has an actor perform in one step, and all that follows from it. */
static void perform(struct scene *scene, struct actor *actor, const struct act *acts, size_t count)
{
    const uint64_t before = tally_count(&actor->performed);
    struct script script = {acts, count};
    tell(scene, actor, &script);
    tally_wait(&actor->performed, before + 1);
    settle(scene);
    assert_int_equal(actor->surprises, 0);
}

#define ACTS(...) (const struct act[]){__VA_ARGS__}, COUNT_OF(((const struct act[]){__VA_ARGS__}))

/* Has an actor perform what begins with HOLD or BLOCK; returns when it is held. */
static void perform_until_held(struct scene *scene, struct actor *actor, struct script *script)
{
    const uint64_t before = tally_count(&actor->held);
    tell(scene, actor, script);
    tally_wait(&actor->held, before + 1);
}

/* Lets it go on, to the end. */
static void release(struct scene *scene, struct actor *actor)
{
    const uint64_t before = tally_count(&actor->performed);
    tally_add(&actor->released, 1);
    tally_wait(&actor->performed, before + 1);
    settle(scene);
    assert_int_equal(actor->surprises, 0);
}

static void assert_note(const struct note *note, uint32_t type, uint64_t tag, int error)
{
    assert_int_equal(note->type, type);
    assert_int_equal(note->tag, tag);
    assert_int_equal(note->error, error);
}

/* That the only event since `from` is this completion. */
static void assert_one_completion(const struct actor *actor, size_t from, uint64_t tag, int error)
{
    assert_int_equal(actor->count, from + 1);
    assert_int_equal(actor->surprises, 0);
    assert_note(&actor->notes[from], SKUA_EVENT_COMPLETION, tag, error);
}

/* That there are `total` completions, with the tags below it. */
static void assert_each_once(const struct actor *actor, size_t total, int error)
{
    unsigned seen[16] = {0};
    assert_in_range(total, 0, COUNT_OF(seen));
    assert_int_equal(actor->count, total);
    for (size_t i = 0; i < total; i++) {
        const uint64_t tag = actor->notes[i].tag;
        assert_note(&actor->notes[i], SKUA_EVENT_COMPLETION, tag, error);
        assert_in_range(tag, 0, total - 1);
        assert_int_equal(seen[tag]++, 0);
    }
}

static void assert_tick(const struct note *note, uint64_t tag, uint64_t ticks, uint64_t time)
{
    assert_note(note, SKUA_EVENT_TICK, tag, 0);
    assert_int_equal(note->ticks, ticks);
    assert_int_equal(note->tick_time, time);
}

/* Timers, tickers and deadlines that are armed with one worker. */
static uint32_t armed_with(const struct scene *scene, uint32_t worker)
{
    struct deadline_wheel *wheel = &scheduler_of(scene)->deadlines.wheels[worker];
    mutex_lock(&wheel->lock);
    const uint32_t count = wheel->wheel.count;
    mutex_unlock(&wheel->lock);
    return count;
}

static uint32_t armed(const struct scene *scene)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < scheduler_of(scene)->deadlines.count; i++) {
        count += armed_with(scene, i);
    }
    return count;
}

static uint64_t cached(const struct pool_cache *cache)
{
    return (uint64_t)cache->active.count + cache->spare.count;
}

/* Event nodes that are in use. Only in a settled scene, without trimming. */
static uint64_t nodes_in_use(const struct scene *scene)
{
    struct scheduler *sched = scheduler_of(scene);
    uint64_t unused = (uint64_t)object_pool_free_chains(&sched->events) * sched->events.batch +
                      cached(&sched->outside.caches.events);
    for (uint32_t i = 0; i < sched->capacity; i++) {
        unused += cached(&sched->workers[i].caches.events);
    }
    return load_relaxed(&sched->events.ready) - 1 - unused;
}

/* Timers, ticks and deadlines that have fired. */
static uint64_t fired(const struct scene *scene)
{
    return api_stats(&scene->api).timers;
}

static bool one_has_fired(void *arg)
{
    return fired(arg) == 1;
}

/* Moves the clock to where the first timer fires, while some step is held; returns when it has. */
static void advance_until_fired(struct scene *scene, uint64_t instant)
{
    virtual_await_wait_until(&scene->time, instant);
    virtual_advance_to(&scene->time, instant);
    wait_until(one_has_fired, scene, "a timer to fire");
}

static void assert_waits_until(struct scene *scene, uint64_t instant)
{
    settle(scene);
    assert_int_equal(virtual_wait_instant(&scene->time), instant);
}

/* That nothing but work will wake anybody. A worker whose last timer went away while it waited may
 * stay in the poller. */
static void assert_waits_for_nothing(struct scene *scene)
{
    settle(scene);
    const uint64_t instant = virtual_wait_instant(&scene->time);
    assert_true(instant == 0 || instant == SKUA_FOREVER);
    assert_int_equal(load_relaxed(&scheduler_of(scene)->poll.waits), 0);
}

/* That nobody is in the poller at all. */
static void assert_nobody_waits(struct scene *scene)
{
    assert_waits_until(scene, 0);
}

/* ---- sleeping ---- */

/* Every way in which a worker looks at its timers, at this very instant. */
static void look_at_timers(struct scene *scene, struct actor *busy)
{
    virtual_nudge(&scene->time); /* as the one who waits for them */
    settle(scene);
    perform(scene, busy, ACTS(spins(600))); /* and between the picks of a busy one */
}

static void check_sleep(struct scene *scene, struct actor *actor, struct actor *busy,
                        uint64_t duration_ns)
{
    const size_t before = actor->count;
    const uint64_t due = virtual_now(&scene->time) + duration_ns;
    perform(scene, actor, ACTS(sleeps(7, duration_ns)));
    assert_waits_until(scene, firing_time(due));
    advance_to(scene, due - 1);
    look_at_timers(scene, busy);
    assert_int_equal(actor->count, before);
    if (firing_time(due) > due) {
        advance_to(scene, firing_time(due) - 1);
        look_at_timers(scene, busy);
        assert_int_equal(actor->count, before);
    }
    advance_to(scene, firing_time(due));
    assert_one_completion(actor, before, 7, 0);
    assert_int_equal(actor->notes[before].now, firing_time(due));
}

TEST(sleep_of_any_length_ends_at_its_time_and_never_before)
{
    const uint32_t workers = test_workers();
    static struct actor actor, busy;
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actor);
    actor_start(scene, &busy);
    const uint64_t durations[] = {1, 2, RESOLUTION - 1, RESOLUTION, RESOLUTION + 1, MILLISECOND,
                                  17 * SECOND, 24 * HOUR, 1, 8766 * HOUR, 876600 * HOUR,
                                  3 * MILLISECOND,
                                  /* Nothing is longer than this. */
                                  SKUA_DURATION_MAX};
    for (size_t i = 0; i < COUNT_OF(durations); i++) {
        check_sleep(scene, &actor, &busy, durations[i]);
    }
    assert_int_equal(fired(scene), COUNT_OF(durations));
    assert_int_equal(armed(scene), 0);
    scene_close(scene);
}

TEST(sleep_that_ends_with_a_span_is_not_rounded)
{
    static struct actor actor, busy;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    actor_start(scene, &busy);
    advance_to(scene, firing_time(START));
    check_sleep(scene, &actor, &busy, RESOLUTION);
    check_sleep(scene, &actor, &busy, 1000 * RESOLUTION);
    assert_int_equal(virtual_now(&scene->time), firing_time(START) + 1001 * RESOLUTION);
    scene_close(scene);
}

TEST(sleep_is_counted_from_the_end_of_its_step)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    const struct act acts[] = {sleeps(1, SECOND), does(HOLD)};
    struct script script = {acts, COUNT_OF(acts)};
    perform_until_held(scene, &actor, &script);
    virtual_advance(&scene->time, HOUR);
    release(scene, &actor);
    assert_int_equal(actor.count, 0);
    assert_waits_until(scene, firing_time(START + HOUR + SECOND));
    advance_to(scene, firing_time(START + HOUR + SECOND));
    assert_one_completion(&actor, 0, 1, 0);
    scene_close(scene);
}

TEST(sleep_of_no_time_ends_at_once)
{
    const uint32_t workers = test_workers();
    static struct actor actor;
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actor);
    perform(scene, &actor, ACTS(sleeps(1, 0)));
    assert_one_completion(&actor, 0, 1, 0);
    assert_int_equal(actor.notes[0].now, START);
    assert_int_equal(fired(scene), 0); /* no timer was needed */
    assert_int_equal(virtual_wait_calls(&scene->time), 0);
    scene_close(scene);
}

TEST(duration_that_is_negative_or_too_long_is_refused)
{
    static struct actor actor;
    const uint64_t bad[] = {SKUA_DURATION_MAX + 1, (uint64_t)-1, (uint64_t)INT64_MIN,
                            (uint64_t)-SKUA_SECOND};
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    settle(scene);
    const uint64_t nodes = nodes_in_use(scene);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        perform(scene, &actor,
                ACTS(refused(sleeps(1, bad[i]), SKUA_E_DURATION),
                     refused(ticker(2, bad[i]), SKUA_E_DURATION)));
    }
    perform(scene, &actor, ACTS(refused(ticker(3, 0), SKUA_E_DURATION)));
    advance(scene, HOUR);
    assert_int_equal(actor.count, 0); /* no yield, no completion */
    assert_int_equal(virtual_wait_calls(&scene->time), 0);
    assert_int_equal(nodes_in_use(scene), nodes);
    scene_close(scene);
}

/* ---- timers ---- */

TEST(timer_whose_time_has_passed_fires_at_once)
{
    const uint32_t workers = test_workers();
    static struct actor actor;
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actor);
    perform(scene, &actor,
            ACTS(timer(0, 0), timer(1, 1), timer(2, START - HOUR), timer(3, START - 1),
                 timer(4, START)));
    assert_each_once(&actor, 5, 0);
    assert_int_equal(virtual_wait_calls(&scene->time), 0);
    scene_close(scene);
}

TEST(timer_for_ever_ends_only_when_it_is_cancelled)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    perform(scene, &actor, ACTS(timer(1, SKUA_FOREVER)));
    api_wait_state(&scene->api, actor.pid, SKUA_PROCESS_BLOCKED);
    assert_int_equal(virtual_wait_calls(&scene->time), 0); /* nobody needs to look at the clock */
    advance(scene, SKUA_DURATION_MAX);
    assert_int_equal(actor.count, 0);
    perform(scene, &actor, ACTS(cancels(1)));
    assert_one_completion(&actor, 0, 1, SKUA_E_CANCELLED);
    scene_close(scene);
}

TEST(timer_that_is_centuries_away_does_not_fire_before)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    const uint64_t last = UINT64_MAX / RESOLUTION * RESOLUTION; /* the last end of a span */
    perform(scene, &actor, ACTS(timer(1, last), timer(2, last - HOUR), timer(3, START + HOUR)));
    advance_to(scene, firing_time(START + HOUR));
    assert_one_completion(&actor, 0, 3, 0);
    advance_to(scene, firing_time(last - HOUR) - 1);
    assert_int_equal(actor.count, 1);
    advance_to(scene, firing_time(last - HOUR));
    assert_one_completion(&actor, 1, 2, 0);
    advance_to(scene, last - 1);
    virtual_nudge(&scene->time);
    settle(scene);
    assert_int_equal(actor.count, 2);
    advance_to(scene, last);
    assert_one_completion(&actor, 2, 1, 0);
    scene_close(scene);
}

/* In the order of their deadlines, whatever the order in which they were asked for. */
static const uint64_t shuffled[] = {5, 2, 9, 0, 7, 3, 8, 1, 6, 4};

static void ask_for_shuffled_timers(struct scene *scene, struct actor *actor, uint64_t distance)
{
    struct act acts[COUNT_OF(shuffled)];
    for (size_t i = 0; i < COUNT_OF(shuffled); i++) {
        acts[i] = timer(shuffled[i], START + (shuffled[i] + 1) * distance);
    }
    perform(scene, actor, acts, COUNT_OF(shuffled));
}

static void assert_in_order(const struct actor *actor)
{
    assert_int_equal(actor->count, COUNT_OF(shuffled));
    for (size_t i = 0; i < COUNT_OF(shuffled); i++) {
        assert_note(&actor->notes[i], SKUA_EVENT_COMPLETION, i, 0);
    }
}

TEST(timers_fire_in_order_as_time_passes)
{
    const uint32_t workers = test_workers();
    static struct actor actor;
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actor);
    ask_for_shuffled_timers(scene, &actor, SECOND);
    for (uint64_t i = 1; i <= COUNT_OF(shuffled); i++) {
        assert_waits_until(scene, firing_time(START + i * SECOND));
        advance_to(scene, firing_time(START + i * SECOND));
        assert_int_equal(actor.count, i);
    }
    assert_in_order(&actor);
    scene_close(scene);
}

TEST(timers_that_are_all_overdue_come_in_order)
{
    const uint64_t distances[] = {RESOLUTION, 3 * MILLISECOND, SECOND, HOUR};
    for (size_t i = 0; i < COUNT_OF(distances); i++) {
        static struct actor actor;
        struct scene *scene = scene_open(1);
        actor_start(scene, &actor);
        ask_for_shuffled_timers(scene, &actor, distances[i]);
        advance(scene, 24 * HOUR);
        assert_in_order(&actor);
        scene_close(scene);
    }
}

/* Against what they should do, timer by timer, over a random passage of time. */
struct expectation {
    uint64_t deadline;
    unsigned seen;
};

static void check_expectations(const struct actor *actor, struct expectation *expected, size_t from,
                               uint64_t now)
{
    uint64_t due = 0;
    for (size_t i = from; i < actor->count; i++) {
        const struct note *note = &actor->notes[i];
        assert_note(note, SKUA_EVENT_COMPLETION, note->tag, 0);
        assert_in_range(note->tag, 0, MANY - 1);
        expected[note->tag].seen++;
        assert_true(note->now >= expected[note->tag].deadline); /* not early */
    }
    for (size_t i = 0; i < MANY; i++) {
        const bool is_due = firing_time(expected[i].deadline) <= now;
        assert_int_equal(expected[i].seen, is_due); /* once, and not late either */
        due += is_due;
    }
    assert_int_equal(actor->count, due);
}

/* Ten decades of distances are equally likely, so that all levels of a wheel are used. */
static uint64_t random_distance(uint64_t *seed)
{
    uint64_t distance = 1;
    for (uint64_t decade = seed_next(seed) % 11; decade > 0; decade--) {
        distance *= 10;
    }
    return distance * (1 + seed_next(seed) % 1000) / 10;
}

static void check_many_timers(struct scene *scene, struct actor *actor, uint64_t *seed)
{
    static struct act acts[MANY];
    static struct expectation expected[MANY];
    for (size_t i = 0; i < MANY; i++) {
        expected[i] = (struct expectation){.deadline = START + 1 + random_distance(seed)};
        acts[i] = timer(i, expected[i].deadline);
    }
    perform(scene, actor, acts, MANY);
    assert_int_equal(armed(scene), MANY);
    for (size_t from = 0; actor->count < MANY; from = actor->count) {
        advance(scene, random_distance(seed));
        check_expectations(actor, expected, from, virtual_now(&scene->time));
    }
    assert_int_equal(fired(scene), MANY);
    assert_int_equal(armed(scene), 0);
}

TEST(timers_of_one_process_each_fire_once_and_never_early)
{
    uint64_t seed = seed_choose();
    const uint32_t workers = test_workers();
    static struct actor actor;
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actor);
    check_many_timers(scene, &actor, &seed);
    scene_close(scene);
}

/* Sleeps for random times, again and again, and notes if it wakes early or at a wrong time. */
struct sleepers {
    atomic_ullong sleeps;
    atomic_uint early;
    atomic_uint wrong;
};

struct sleeper {
    struct sleepers *all;
    uint64_t due;
    uint32_t round;
};

#define SLEEPER_ROUNDS 5

static int sleeper_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct sleeper *sleeper = self;
    struct sleepers *all = sleeper->all;
    if (count > 0) {
        (void)atomic_fetch_add(&all->early, skua_context_now(ctx) < sleeper->due);
        (void)atomic_fetch_add(&all->wrong, count != 1 || events[0].error != 0 ||
                                                events[0].type != SKUA_EVENT_COMPLETION ||
                                                events[0].tag != sleeper->round);
    }
    if (sleeper->round == SLEEPER_ROUNDS) {
        skua_step_done(out, skua_payload_empty(0));
        return 0;
    }
    const uint64_t duration = 1 + skua_context_random(ctx) % SECOND;
    sleeper->due = skua_context_deadline(ctx, duration);
    (void)atomic_fetch_add(&all->sleeps, 1);
    return skua_step_sleep(out, ++sleeper->round, duration);
}

static const skua_process_type sleeper_type = {.name = "sleeper",
                                               .state_size = sizeof(struct sleeper),
                                               .init = api_init_world,
                                               .step = sleeper_step};

TEST(timers_of_many_processes_all_fire_and_never_early)
{
    uint64_t seed = seed_choose();
    const uint32_t workers = test_workers();
    struct sleepers all = {0};
    struct scene *scene = scene_open(workers);
    for (int i = 0; i < 2 * MANY; i++) {
        (void)api_submit(&scene->api, &sleeper_type, &all);
    }
    settle(scene);
    assert_int_equal(armed(scene), 2 * MANY);
    for (int i = 0; i < 1000 && api_stats(&scene->api).live > 0; i++) {
        advance(scene, 1 + seed_next(&seed) % (SECOND / 10));
    }
    assert_int_equal(api_stats(&scene->api).live, 0);
    assert_int_equal(atomic_load(&all.sleeps), 2 * MANY * SLEEPER_ROUNDS);
    assert_int_equal(atomic_load(&all.early), 0);
    assert_int_equal(atomic_load(&all.wrong), 0);
    assert_int_equal(fired(scene), 2 * MANY * SLEEPER_ROUNDS);
    scene_close(scene);
}

/* ---- tickers ---- */

TEST(ticker_stays_on_the_grid_of_its_beginning)
{
    const uint64_t periods[] = {RESOLUTION, MILLISECOND, 7777777, SECOND, HOUR};
    for (size_t i = 0; i < COUNT_OF(periods); i++) {
        static struct actor actor, busy;
        struct scene *scene = scene_open(1);
        actor_start(scene, &actor);
        actor_start(scene, &busy);
        perform(scene, &actor, ACTS(ticker(3, periods[i])));
        for (uint64_t n = 1; n <= 20; n++) {
            const uint64_t instant = START + n * periods[i];
            assert_waits_until(scene, firing_time(instant));
            advance_to(scene, firing_time(instant) - 1);
            look_at_timers(scene, &busy);
            assert_int_equal(actor.count, n - 1);
            advance_to(scene, firing_time(instant));
            assert_int_equal(actor.count, n);
            assert_tick(&actor.notes[n - 1], 3, 1, instant);
        }
        assert_int_equal(fired(scene), 20);
        scene_close(scene);
    }
}

TEST(ticker_that_is_late_tells_how_many_periods_have_passed)
{
    const uint32_t workers = test_workers();
    static struct actor actor;
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actor);
    perform(scene, &actor, ACTS(ticker(3, SECOND)));
    advance_to(scene, START + 5 * SECOND + SECOND / 2);
    assert_int_equal(actor.count, 1);
    assert_tick(&actor.notes[0], 3, 5, START + 5 * SECOND);
    assert_waits_until(scene, firing_time(START + 6 * SECOND));
    advance_to(scene, firing_time(START + 6 * SECOND));
    assert_tick(&actor.notes[1], 3, 1, START + 6 * SECOND);
    /* To the instant, and one nanosecond before. */
    advance_to(scene, START + 1000 * SECOND - 1);
    assert_tick(&actor.notes[2], 3, 993, START + 999 * SECOND);
    advance_to(scene, START + 2000 * SECOND);
    assert_tick(&actor.notes[3], 3, 1001, START + 2000 * SECOND);
    assert_int_equal(actor.count, 4);
    scene_close(scene);
}

/* Two workers: one is held in the ticking process's step, the other waits for the timers. */
TEST(ticker_of_a_slow_process_has_one_tick_waiting)
{
    static struct actor actor;
    struct scene *scene = scene_open(2);
    actor_start(scene, &actor);
    perform(scene, &actor, ACTS(ticker(3, SECOND)));
    const struct act acts[] = {does(HOLD)};
    struct script script = {acts, COUNT_OF(acts)};
    perform_until_held(scene, &actor, &script);
    advance_until_fired(scene, firing_time(START + SECOND));
    virtual_advance_to(&scene->time, START + 4 * SECOND + SECOND / 2);
    assert_int_equal(fired(scene), 1);
    assert_int_equal(armed(scene), 0); /* it is armed again when its tick has been taken */
    release(scene, &actor);
    assert_int_equal(actor.count, 2);
    assert_tick(&actor.notes[0], 3, 1, START + SECOND);
    assert_tick(&actor.notes[1], 3, 3, START + 4 * SECOND);
    assert_waits_until(scene, firing_time(START + 5 * SECOND));
    scene_close(scene);
}

TEST(ticker_with_the_shortest_period_loses_no_period)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    perform(scene, &actor, ACTS(ticker(3, 1)));
    for (int i = 0; i < 100; i++) {
        advance(scene, 1 + (uint64_t)i * 999);
    }
    advance(scene, RESOLUTION);
    uint64_t ticks = 0;
    for (size_t i = 0; i < actor.count; i++) {
        ticks += actor.notes[i].ticks;
        assert_tick(&actor.notes[i], 3, actor.notes[i].ticks, START + ticks);
        assert_int_equal(actor.notes[i].tick_time, actor.notes[i].now);
    }
    assert_in_range(virtual_now(&scene->time) - START - ticks, 0, RESOLUTION - 1);
    scene_close(scene);
}

TEST(ticker_with_the_longest_period_ticks_once_in_all_time)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    perform(scene, &actor, ACTS(ticker(3, SKUA_DURATION_MAX)));
    advance_to(scene, firing_time(START + SKUA_DURATION_MAX) - 1);
    assert_int_equal(actor.count, 0);
    advance(scene, 1);
    assert_int_equal(actor.count, 1);
    assert_tick(&actor.notes[0], 3, 1, START + SKUA_DURATION_MAX);
    perform(scene, &actor, ACTS(cancels(3)));
    assert_one_completion(&actor, 1, 3, SKUA_E_CANCELLED);
    scene_close(scene);
}

/* Late in its life the clock shows instants from which a long duration leads beyond its end. */
TEST(durations_that_lead_beyond_all_time_never_end)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    advance_to(scene, SKUA_FOREVER - SKUA_DURATION_MAX + HOUR);
    perform(scene, &actor,
            ACTS(sleeps(0, SKUA_DURATION_MAX), ticker(1, SKUA_DURATION_MAX), sleeps(2, SECOND)));
    advance(scene, 2 * SECOND);
    assert_one_completion(&actor, 0, 2, 0);
    advance_to(scene, SKUA_FOREVER - 1);
    assert_int_equal(actor.count, 1);
    perform(scene, &actor, ACTS(cancels(0), cancels(1)));
    assert_int_equal(actor.count, 3);
    assert_note(&actor.notes[1], SKUA_EVENT_COMPLETION, 0, SKUA_E_CANCELLED);
    assert_note(&actor.notes[2], SKUA_EVENT_COMPLETION, 1, SKUA_E_CANCELLED);
    scene_close(scene);
}

/* However unevenly time passes, the ticks stand for every period once. */
TEST(tickers_account_for_every_period)
{
    uint64_t seed = seed_choose();
    const uint32_t workers = test_workers();
    static struct actor actor;
    const uint64_t periods[] = {MILLISECOND, 1300 * MICROSECOND, 77 * MILLISECOND};
    uint64_t ticks[COUNT_OF(periods)] = {0};
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actor);
    perform(scene, &actor,
            ACTS(ticker(0, periods[0]), ticker(1, periods[1]), ticker(2, periods[2])));
    for (int i = 0; i < 300; i++) {
        advance(scene, 1 + seed_next(&seed) % (5 * MILLISECOND));
    }
    advance(scene, RESOLUTION);
    for (size_t i = 0; i < actor.count; i++) {
        const struct note *note = &actor.notes[i];
        assert_in_range(note->tag, 0, COUNT_OF(periods) - 1);
        ticks[note->tag] += note->ticks;
        assert_tick(note, note->tag, note->ticks, START + ticks[note->tag] * periods[note->tag]);
        assert_true(note->now >= note->tick_time);
    }
    for (size_t i = 0; i < COUNT_OF(periods); i++) {
        const uint64_t passed = virtual_now(&scene->time) - RESOLUTION - START;
        assert_in_range(ticks[i], passed / periods[i], (passed + RESOLUTION) / periods[i]);
    }
    scene_close(scene);
}

/* ---- cancelling ---- */

static struct act (*const every_wait[])(uint64_t tag, uint64_t duration_ns) = {sleeps, ticker};

TEST(cancel_of_what_waits_ends_it_at_once)
{
    const uint32_t workers = test_workers();
    static struct actor actor;
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actor);
    settle(scene);
    const uint64_t nodes = nodes_in_use(scene);
    for (size_t i = 0; i < COUNT_OF(every_wait); i++) {
        const size_t before = actor.count;
        perform(scene, &actor, ACTS(every_wait[i](5, SECOND)));
        assert_int_equal(armed(scene), 1);
        perform(scene, &actor, ACTS(cancels(5)));
        assert_one_completion(&actor, before, 5, SKUA_E_CANCELLED);
        assert_int_equal(armed(scene), 0);
        advance(scene, HOUR);
        assert_int_equal(actor.count, before + 1);
    }
    assert_int_equal(fired(scene), 0);
    assert_int_equal(nodes_in_use(scene), nodes);
    scene_close(scene);
}

TEST(cancel_in_the_same_step_ends_what_was_asked_before_it)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    for (size_t i = 0; i < COUNT_OF(every_wait); i++) {
        const size_t before = actor.count;
        perform(scene, &actor, ACTS(every_wait[i](5, SECOND), cancels(5), cancels(5)));
        assert_one_completion(&actor, before, 5, SKUA_E_CANCELLED);
        assert_int_equal(armed(scene), 0);
    }
    /* What has ended at once has ended, and what comes after the cancel is not meant. */
    const size_t before = actor.count;
    perform(scene, &actor,
            ACTS(timer(6, SKUA_FOREVER), sleeps(7, 0), cancels(6), cancels(7), sleeps(6, SECOND)));
    assert_int_equal(actor.count, before + 2);
    for (size_t i = before; i < actor.count; i++) {
        const uint64_t tag = actor.notes[i].tag;
        assert_note(&actor.notes[i], SKUA_EVENT_COMPLETION, tag, tag == 6 ? SKUA_E_CANCELLED : 0);
    }
    assert_int_not_equal(actor.notes[before].tag, actor.notes[before + 1].tag);
    advance(scene, 2 * SECOND);
    assert_one_completion(&actor, before + 2, 6, 0);
    scene_close(scene);
}

TEST(cancel_of_several_with_one_tag_ends_them_all_and_no_other)
{
    const uint32_t workers = test_workers();
    static struct actor actor;
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actor);
    perform(scene, &actor,
            ACTS(sleeps(5, SECOND), sleeps(4, SECOND), timer(5, START + 5 * SECOND),
                 ticker(5, SECOND), ticker(6, SECOND), timer(5, SKUA_FOREVER), asks(5, KEEP),
                 awaits(5, 1), asks(7, KEEP), deadline(START + 2 * SECOND), asks(5, KEEP),
                 deadline(START + 2 * SECOND)));
    perform(scene, &actor, ACTS(sleeps(5, HOUR), cancels(99)));
    assert_int_equal(actor.count, 0);
    perform(scene, &actor, ACTS(cancels(5)));
    assert_int_equal(actor.count, 8);
    for (size_t i = 0; i < 8; i++) {
        assert_note(&actor.notes[i], SKUA_EVENT_COMPLETION, 5, SKUA_E_CANCELLED);
    }
    advance_to(scene, firing_time(START + SECOND));
    assert_int_equal(actor.count, 10); /* the other sleep and the other ticker */
    advance_to(scene, firing_time(START + 2 * SECOND));
    assert_int_equal(actor.count, 12); /* the deadline, and the ticker again */
    for (size_t i = 8; i < 12; i++) {
        assert_int_not_equal(actor.notes[i].tag, 5);
    }
    scene_close(scene);
}

TEST(cancel_after_the_end_changes_nothing)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    perform(scene, &actor, ACTS(sleeps(5, SECOND), asks(5, ANSWER), cancels(1)));
    assert_one_completion(&actor, 0, 5, 0);
    advance(scene, 2 * SECOND);
    assert_one_completion(&actor, 1, 5, 0);
    perform(scene, &actor, ACTS(cancels(5)));
    assert_int_equal(actor.count, 2);
    scene_close(scene);
}

/* A worker is held in the process's step; the other one fires; then the step cancels what has fired
 * and waits in the mailbox. */
static void cancel_while_it_waits_in_the_mailbox(struct actor *actor, struct act yield)
{
    struct scene *scene = scene_open(2);
    actor_start(scene, actor);
    settle(scene);
    const uint64_t nodes = nodes_in_use(scene);
    perform(scene, actor, &yield, 1);
    const struct act acts[] = {does(HOLD), cancels(yield.tag), cancels(yield.tag)};
    struct script script = {acts, COUNT_OF(acts)};
    perform_until_held(scene, actor, &script);
    advance_until_fired(scene, firing_time(START + SECOND));
    release(scene, actor);
    assert_int_equal(actor->count, 1);
    advance(scene, HOUR);
    assert_int_equal(actor->count, 1);
    assert_int_equal(armed(scene), 0);
    assert_int_equal(nodes_in_use(scene), nodes);
    scene_close(scene);
}

TEST(cancel_of_a_sleep_that_has_fired_lets_it_end_well)
{
    static struct actor actor;
    cancel_while_it_waits_in_the_mailbox(&actor, sleeps(5, SECOND));
    assert_one_completion(&actor, 0, 5, 0);
}

TEST(cancel_of_a_ticker_whose_tick_waits_ends_it_instead)
{
    static struct actor actor;
    cancel_while_it_waits_in_the_mailbox(&actor, ticker(5, SECOND));
    assert_one_completion(&actor, 0, 5, SKUA_E_CANCELLED);
}

TEST(cancel_of_a_ticker_that_has_ticked_ends_it)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    perform(scene, &actor, ACTS(ticker(5, SECOND)));
    advance(scene, SECOND + RESOLUTION);
    advance(scene, SECOND);
    assert_int_equal(actor.count, 2);
    perform(scene, &actor, ACTS(cancels(5)));
    assert_one_completion(&actor, 2, 5, SKUA_E_CANCELLED);
    advance(scene, HOUR);
    assert_int_equal(actor.count, 3);
    /* The tag is free for another one. */
    perform(scene, &actor, ACTS(ticker(5, SECOND)));
    advance(scene, SECOND + RESOLUTION);
    assert_int_equal(actor.count, 4);
    assert_int_equal(actor.notes[3].type, SKUA_EVENT_TICK);
    scene_close(scene);
}

/* Cancels its ticker in the very step that gets the tick. */
static int one_tick_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                         skua_step *out)
{
    struct probe *probe = api_world(self);
    (void)ctx;
    if (count == 0) {
        return skua_step_ticker(out, 1, SECOND);
    }
    if (events[0].type == SKUA_EVENT_TICK) {
        (void)atomic_fetch_add(&probe->messages, 1);
        return skua_step_cancel(out, 1);
    }
    (void)atomic_fetch_add(&probe->completions, events[0].error == SKUA_E_CANCELLED);
    (void)api_finish_if_cancelled(events, count, out);
    return 0;
}

static const skua_process_type one_tick_type = {.name = "one tick",
                                                .state_size = sizeof(void *),
                                                .init = api_init_world,
                                                .step = one_tick_step};

TEST(cancel_of_a_ticker_by_its_tick_lets_no_other_come)
{
    struct probe probe = {0};
    struct scene *scene = scene_open(1);
    (void)api_submit(&scene->api, &one_tick_type, &probe);
    settle(scene);
    advance(scene, 10 * SECOND);
    advance(scene, 10 * SECOND);
    assert_int_equal(atomic_load(&probe.messages), 1);
    assert_int_equal(atomic_load(&probe.completions), 1);
    scene_close(scene);
}

TEST(cancel_of_the_earliest_leaves_the_later_ones_their_time)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    perform(scene, &actor,
            ACTS(sleeps(1, SECOND), sleeps(2, SECOND + RESOLUTION), sleeps(3, HOUR)));
    perform(scene, &actor, ACTS(cancels(1)));
    assert_one_completion(&actor, 0, 1, SKUA_E_CANCELLED);
    advance_to(scene, firing_time(START + SECOND));
    assert_int_equal(actor.count, 1);
    assert_waits_until(scene, firing_time(START + SECOND + RESOLUTION));
    advance_to(scene, firing_time(START + SECOND + RESOLUTION));
    assert_one_completion(&actor, 1, 2, 0);
    perform(scene, &actor, ACTS(cancels(3)));
    assert_nobody_waits(scene);
    scene_close(scene);
}

static int complete(struct scene *scene, size_t kept)
{
    return skua_command_complete(scene->api.runtime, scene->desk.kept[kept], 0,
                                 tracked_payload(0, &scene->desk.result));
}

/* That what a handler brings after the end of its call is dropped, and counted. */
static void assert_late(struct scene *scene, struct actor *actor, size_t kept)
{
    const uint64_t late = api_stats(&scene->api).late_completions;
    const unsigned drops = atomic_load(&scene->desk.result.drops);
    const size_t count = actor->count;
    assert_int_equal(complete(scene, kept), SKUA_E_LATE);
    settle(scene);
    assert_int_equal(api_stats(&scene->api).late_completions, late + 1);
    assert_int_equal(atomic_load(&scene->desk.result.drops), drops + 1);
    assert_int_equal(actor->count, count);
}

TEST(cancel_of_a_command_under_way_drops_its_late_result)
{
    const uint32_t workers = test_workers();
    static struct actor actor;
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actor);
    perform(scene, &actor, ACTS(asks(5, KEEP)));
    perform(scene, &actor, ACTS(cancels(5)));
    assert_one_completion(&actor, 0, 5, SKUA_E_CANCELLED);
    assert_int_equal(atomic_load(&scene->desk.calls), 1);
    /* Also when its node carries another call by now. */
    perform(scene, &actor, ACTS(asks(6, KEEP)));
    assert_late(scene, &actor, 0);
    assert_int_equal(complete(scene, 1), 0);
    settle(scene);
    assert_one_completion(&actor, 1, 6, 0);
    assert_late(scene, &actor, 1);
    scene_close(scene);
}

/* ---- deadlines ---- */

TEST(deadline_that_passes_first_ends_the_command)
{
    const uint32_t workers = test_workers();
    static struct actor actor, busy;
    const uint64_t due = START + SECOND;
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actor);
    actor_start(scene, &busy);
    perform(scene, &actor, ACTS(asks(5, KEEP), deadline(due)));
    assert_int_equal(scene->desk.deadlines[0], due);
    assert_waits_until(scene, firing_time(due));
    advance_to(scene, firing_time(due) - 1);
    look_at_timers(scene, &busy);
    assert_int_equal(actor.count, 0);
    advance_to(scene, firing_time(due));
    assert_one_completion(&actor, 0, 5, SKUA_E_TIMEOUT);
    assert_int_equal(fired(scene), 1);
    assert_late(scene, &actor, 0);
    assert_drops(&actor.input, 1, 1);
    assert_nobody_waits(scene);
    scene_close(scene);
}

TEST(deadline_does_not_concern_a_command_that_ends_in_time)
{
    const uint32_t workers = test_workers();
    static struct actor actor;
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actor);
    settle(scene);
    const uint64_t nodes = nodes_in_use(scene);
    perform(
        scene, &actor,
        ACTS(asks(0, KEEP), deadline(START + SECOND), asks(1, ANSWER), deadline(START + SECOND)));
    assert_int_equal(complete(scene, 0), 0);
    perform(scene, &actor,
            ACTS(asks(2, REFUSE), deadline(START + SECOND), asks(3, 77), deadline(START + SECOND)));
    assert_int_equal(armed(scene), 0);
    assert_int_equal(actor.count, 4);
    const int errors[] = {0, 0, ERROR_HANDLER, SKUA_E_UNKNOWN_COMMAND};
    for (size_t i = 0; i < 4; i++) {
        const uint64_t tag = actor.notes[i].tag;
        assert_note(&actor.notes[i], SKUA_EVENT_COMPLETION, tag, errors[tag]);
    }
    advance(scene, HOUR);
    assert_int_equal(actor.count, 4);
    assert_int_equal(fired(scene), 0);
    assert_int_equal(nodes_in_use(scene), nodes);
    scene_close(scene);
}

TEST(deadline_that_has_passed_keeps_the_handler_from_being_called)
{
    const uint64_t passed[] = {0, 1, START - HOUR, START - 1, START};
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    for (size_t i = 0; i < COUNT_OF(passed); i++) {
        perform(scene, &actor, ACTS(asks(5, KEEP), deadline(passed[i])));
        assert_one_completion(&actor, i, 5, SKUA_E_TIMEOUT);
    }
    assert_int_equal(atomic_load(&scene->desk.calls), 0);
    assert_drops(&actor.input, 1, COUNT_OF(passed));
    /* One nanosecond later the handler gets its chance. */
    perform(scene, &actor, ACTS(asks(6, ANSWER), deadline(START + 1)));
    assert_one_completion(&actor, COUNT_OF(passed), 6, 0);
    assert_int_equal(virtual_wait_calls(&scene->time), 0);
    scene_close(scene);
}

TEST(deadline_on_a_sleep_ends_it_if_it_comes_first)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    perform(scene, &actor,
            ACTS(sleeps(1, 2 * SECOND), deadline(START + SECOND), timer(2, SKUA_FOREVER),
                 deadline(START + 3 * SECOND)));
    assert_waits_until(scene, firing_time(START + SECOND));
    advance_to(scene, firing_time(START + SECOND));
    assert_one_completion(&actor, 0, 1, SKUA_E_TIMEOUT);
    advance_to(scene, firing_time(START + 3 * SECOND));
    assert_one_completion(&actor, 1, 2, SKUA_E_TIMEOUT);
    perform(scene, &actor, ACTS(sleeps(3, 0), deadline(START)));
    assert_one_completion(&actor, 2, 3, SKUA_E_TIMEOUT);
    assert_int_equal(armed(scene), 0);
    scene_close(scene);
}

TEST(deadline_on_a_sleep_does_not_concern_one_that_ends_before)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    perform(scene, &actor,
            ACTS(sleeps(1, SECOND), deadline(START + 2 * SECOND), sleeps(2, 3 * SECOND),
                 deadline(START + 3 * SECOND + 1)));
    assert_waits_until(scene, firing_time(START + SECOND));
    advance_to(scene, firing_time(START + SECOND));
    assert_one_completion(&actor, 0, 1, 0);
    advance(scene, HOUR);
    assert_one_completion(&actor, 1, 2, 0);
    perform(scene, &actor, ACTS(sleeps(3, 0), deadline(SKUA_FOREVER - 1)));
    assert_one_completion(&actor, 2, 3, 0);
    assert_int_equal(armed(scene), 0);
    assert_int_equal(fired(scene), 2);
    scene_close(scene);
}

TEST(deadline_at_the_end_of_a_sleep_gives_one_completion)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    perform(scene, &actor, ACTS(sleeps(1, SECOND), deadline(START + SECOND)));
    advance(scene, HOUR);
    assert_one_completion(&actor, 0, 1, actor.notes[0].error);
    assert_int_equal(armed(scene), 0);
    scene_close(scene);
}

TEST(deadline_on_a_ticker_is_refused)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    perform(scene, &actor, ACTS(ticker(1, SECOND), deadline(START + HOUR)));
    assert_one_completion(&actor, 0, 1, SKUA_E_INVALID);
    assert_int_equal(armed(scene), 0);
    perform(scene, &actor, ACTS(ticker(2, SECOND), deadline(SKUA_FOREVER)));
    advance_to(scene, firing_time(START + SECOND));
    assert_int_equal(actor.count, 2);
    assert_tick(&actor.notes[1], 2, 1, START + SECOND);
    scene_close(scene);
}

TEST(deadline_that_is_given_twice_is_the_last_one)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    perform(scene, &actor,
            ACTS(asks(1, KEEP), deadline(START), deadline(START + HOUR), deadline(START + SECOND),
                 asks(2, KEEP), deadline(START), deadline(SKUA_FOREVER)));
    assert_int_equal(scene->desk.deadlines[0], START + SECOND);
    assert_int_equal(scene->desk.deadlines[1], SKUA_FOREVER);
    assert_int_equal(armed(scene), 1);
    advance(scene, 2 * HOUR);
    assert_one_completion(&actor, 0, 1, SKUA_E_TIMEOUT);
    assert_int_equal(complete(scene, 1), 0);
    settle(scene);
    assert_one_completion(&actor, 1, 2, 0);
    scene_close(scene);
}

TEST(deadline_without_a_yield_is_refused)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    perform(scene, &actor,
            ACTS(refused(deadline(START + SECOND), SKUA_E_INVALID), cancels(1),
                 refused(deadline(START + SECOND), SKUA_E_INVALID), sleeps(2, HOUR), cancels(1),
                 refused(deadline(START + SECOND), SKUA_E_INVALID)));
    /* A yield of an earlier step is none of this one's. */
    perform(scene, &actor, ACTS(refused(deadline(START + SECOND), SKUA_E_INVALID)));
    advance(scene, MILLISECOND);
    assert_waits_until(scene, firing_time(START + HOUR));
    assert_int_equal(actor.count, 0);
    assert_int_equal(skua_step_deadline(NULL, START), SKUA_E_INVALID);
    assert_int_equal(skua_step_cancel(NULL, 1), SKUA_E_INVALID);
    assert_int_equal(skua_step_sleep(NULL, 1, SECOND), SKUA_E_INVALID);
    assert_int_equal(skua_step_timer(NULL, 1, SECOND), SKUA_E_INVALID);
    assert_int_equal(skua_step_ticker(NULL, 1, SECOND), SKUA_E_INVALID);
    scene_close(scene);
}

/* ---- the clock of a step ---- */

struct readings {
    struct virtual_time *time;
    uint64_t now[3];
    uint64_t deadlines[6];
};

static void read_the_clock(void *arg, skua_context *ctx, skua_step *out)
{
    struct readings *readings = arg;
    (void)out;
    readings->now[0] = skua_context_now(ctx);
    virtual_advance(readings->time, SECOND); /* a long step */
    readings->now[1] = skua_context_now(ctx);
    readings->now[2] = virtual_now(readings->time);
    const uint64_t negative = (uint64_t)-2;
    const uint64_t timeouts[] = {0,        1,           SKUA_DURATION_MAX, SKUA_DURATION_MAX + 1,
                                 negative, SKUA_FOREVER};
    for (size_t i = 0; i < COUNT_OF(timeouts); i++) {
        readings->deadlines[i] = skua_context_deadline(ctx, timeouts[i]);
    }
}

TEST(context_tells_the_time_of_the_runtimes_clock)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    assert_int_equal(actor.init_now, START);
    struct readings readings = {.time = &scene->time};
    api_in_step(&scene->api, read_the_clock, &readings);
    assert_int_equal(readings.now[0], START);
    assert_int_equal(readings.now[1], START); /* the same throughout a step */
    assert_int_equal(readings.now[2], START + SECOND);
    perform(scene, &actor, ACTS(sleeps(1, 0)));
    assert_int_equal(actor.notes[0].now, START + SECOND);
    const uint64_t deadlines[] = {START, START + 1, START + SKUA_DURATION_MAX,
                                  START, START,     SKUA_FOREVER};
    assert_memory_equal(readings.deadlines, deadlines, sizeof deadlines);
    scene_close(scene);
}

/* ---- timers end with their process ---- */

/* All kinds of them, with tags below MANY. */
static void arm_many(struct scene *scene, struct actor *actor)
{
    static struct act acts[MANY + MANY / 5];
    size_t count = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        const struct act kinds[] = {sleeps(i, SECOND + i * MILLISECOND), timer(i, START + HOUR + i),
                                    ticker(i, SECOND + i), timer(i, SKUA_FOREVER), asks(i, KEEP)};
        acts[count++] = kinds[i % 5];
        if (i % 5 == 4) {
            acts[count++] = deadline(START + 5 * SECOND);
        }
    }
    perform(scene, actor, acts, count);
    assert_int_equal(armed(scene), MANY - MANY / 5);
}

static void end_by_terminate(struct scene *scene, struct actor *actor)
{
    assert_int_equal(skua_process_terminate(scene->api.runtime, actor->pid), 0);
}

static void end_by_finishing(struct scene *scene, struct actor *actor)
{
    perform(scene, actor, ACTS(sleeps(1, SECOND), does(FINISH)));
}

static void end_by_failing(struct scene *scene, struct actor *actor)
{
    perform(scene, actor, ACTS(sleeps(1, SECOND), does(FAIL)));
}

static void check_end_with_many_timers(uint32_t workers,
                                       void (*end)(struct scene *scene, struct actor *actor))
{
    static struct actor actor;
    struct scene *scene = scene_open(workers);
    settle(scene);
    const uint64_t nodes = nodes_in_use(scene);
    for (int round = 0; round < 3; round++) {
        actor_start(scene, &actor);
        arm_many(scene, &actor);
        end(scene, &actor);
        api_wait_live(&scene->api, 0);
        settle(scene);
        assert_int_equal(armed(scene), 0);
        assert_int_equal(nodes_in_use(scene), nodes);
        assert_int_equal(complete(scene, 0), SKUA_E_LATE);
    }
    advance(scene, 24 * HOUR);
    assert_int_equal(fired(scene), 0);
    assert_int_equal(actor.count, 0);
    assert_waits_for_nothing(scene);
    scene_close(scene);
}

TEST(end_of_a_process_ends_all_its_timers)
{
    const uint32_t workers = test_workers();
    check_end_with_many_timers(workers, end_by_terminate);
    check_end_with_many_timers(workers, end_by_finishing);
    check_end_with_many_timers(workers, end_by_failing);
}

TEST(end_of_a_process_drops_what_has_fired_for_it)
{
    const struct act yields[] = {sleeps(1, SECOND), ticker(1, SECOND)};
    const struct act acts[] = {does(HOLD)};
    for (size_t i = 0; i < COUNT_OF(yields); i++) {
        static struct actor actor;
        struct script script = {acts, COUNT_OF(acts)};
        struct scene *scene = scene_open(2);
        settle(scene);
        const uint64_t nodes = nodes_in_use(scene);
        actor_start(scene, &actor);
        perform(scene, &actor, &yields[i], 1);
        perform_until_held(scene, &actor, &script);
        advance_until_fired(scene, firing_time(START + SECOND));
        end_by_terminate(scene, &actor);
        release(scene, &actor);
        api_wait_live(&scene->api, 0);
        settle(scene);
        assert_int_equal(actor.count, 0);
        assert_int_equal(armed(scene), 0);
        assert_int_equal(nodes_in_use(scene), nodes);
        scene_close(scene);
    }
}

/* Sleeps for an hour, in several ways. Finishes when asked to, or not even then. */
static int dozer_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    const bool *ignores_cancel = api_world(self);
    if (count > 0) {
        return *ignores_cancel || api_finish_if_cancelled(events, count, out) ? 0 : ERROR_STEP;
    }
    const int error = skua_step_sleep(out, 1, HOUR) | skua_step_ticker(out, 2, HOUR) |
                      skua_step_timer(out, 3, SKUA_FOREVER) |
                      skua_step_yield(out, KEEP, 4, skua_payload_empty(0)) |
                      skua_step_deadline(out, skua_context_deadline(ctx, HOUR));
    return error;
}

static const skua_process_type dozer_type = {
    .name = "dozer", .state_size = sizeof(void *), .init = api_init_world, .step = dozer_step};

static struct scene *doze(uint32_t workers, bool *ignores_cancel)
{
    struct scene *scene = scene_open(workers);
    for (int i = 0; i < MANY; i++) {
        (void)api_submit(&scene->api, &dozer_type, ignores_cancel);
    }
    settle(scene);
    assert_int_equal(armed(scene), 3 * MANY);
    assert_waits_until(scene, firing_time(START + HOUR));
    return scene;
}

TEST(stop_does_not_wait_for_timers)
{
    const uint32_t workers = test_workers();
    bool ignores_cancel = false;
    scene_close(doze(workers, &ignores_cancel));
    ignores_cancel = true;
    struct scene *scene = doze(workers, &ignores_cancel);
    api_stop_by_force(&scene->api);
    assert_int_equal(virtual_now(&scene->time), START);
    scene_free(scene);
}

/* ---- who waits for them ---- */

TEST(idle_worker_waits_for_the_nearest_deadline)
{
    const uint32_t workers = test_workers();
    static struct actor actors[2];
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actors[0]);
    actor_start(scene, &actors[1]);
    assert_nobody_waits(scene);
    /* Each is earlier than those before it, whichever worker it is armed with. */
    perform(scene, &actors[0], ACTS(sleeps(0, HOUR)));
    assert_waits_until(scene, firing_time(START + HOUR));
    perform(scene, &actors[1], ACTS(ticker(1, 60 * SECOND)));
    assert_waits_until(scene, firing_time(START + 60 * SECOND));
    perform(scene, &actors[0], ACTS(timer(2, START + SECOND)));
    assert_waits_until(scene, firing_time(START + SECOND));
    perform(scene, &actors[1], ACTS(asks(3, KEEP), deadline(START + MILLISECOND)));
    assert_waits_until(scene, firing_time(START + MILLISECOND));
    perform(scene, &actors[0], ACTS(sleeps(4, 1)));
    assert_waits_until(scene, firing_time(START + 1));
    /* And back, one after the other. */
    const uint64_t instants[] = {1, MILLISECOND, SECOND, 60 * SECOND, 120 * SECOND};
    for (size_t i = 0; i + 1 < COUNT_OF(instants); i++) {
        advance_to(scene, firing_time(START + instants[i]));
        assert_int_equal(actors[0].count + actors[1].count, i + 1);
        assert_waits_until(scene, firing_time(START + instants[i + 1]));
    }
    scene_close(scene);
}

TEST(idle_worker_is_not_disturbed_by_a_later_deadline)
{
    for (uint32_t workers = 2; workers <= 4; workers++) {
        static struct actor actor;
        struct scene *scene = scene_open(workers);
        actor_start(scene, &actor);
        perform(scene, &actor, ACTS(sleeps(0, SECOND)));
        const uint64_t calls = virtual_wait_calls(&scene->time);
        const uint64_t interrupts = virtual_interrupts(&scene->time);
        const int waiter = virtual_waiter(&scene->time);
        for (uint64_t i = 1; i <= 20; i++) {
            perform(scene, &actor,
                    ACTS(sleeps(1, SECOND + i * MILLISECOND), awaits(2, i), asks(3, KEEP),
                         deadline(START + HOUR)));
        }
        assert_int_equal(virtual_waiter(&scene->time), waiter);
        assert_int_equal(virtual_wait_calls(&scene->time), calls);
        assert_int_equal(virtual_interrupts(&scene->time), interrupts);
        scene_close(scene);
    }
}

TEST(idle_worker_without_anything_to_wait_for_stays_out_of_the_poller)
{
    const uint32_t workers = test_workers();
    static struct actor actor;
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actor);
    for (int i = 0; i < 100; i++) {
        perform(scene, &actor, ACTS(asks(1, i % 2 == 0 ? KEEP : ANSWER), spins(10)));
    }
    advance(scene, HOUR);
    assert_int_equal(virtual_wait_calls(&scene->time), 0);
    assert_int_equal(virtual_interrupts(&scene->time), 0);
    /* Nor when there was something, once it has come. */
    perform(scene, &actor, ACTS(sleeps(2, SECOND), awaits(3, 1)));
    advance(scene, 2 * SECOND);
    assert_int_equal(virtual_wait_instant(&scene->time), UINT64_MAX);
    assert_int_equal(virtual_make_ready(&scene->time, 1), 1);
    assert_nobody_waits(scene);
    const uint64_t calls = virtual_wait_calls(&scene->time);
    perform(scene, &actor, ACTS(asks(1, KEEP)));
    advance(scene, HOUR);
    assert_int_equal(virtual_wait_calls(&scene->time), calls);
    scene_close(scene);
}

TEST(idle_worker_that_wakes_for_no_reason_waits_on)
{
    const uint32_t workers = test_workers();
    static struct actor actor;
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actor);
    perform(scene, &actor, ACTS(sleeps(1, SECOND), awaits(2, 1)));
    for (int i = 0; i < 50; i++) {
        virtual_nudge(&scene->time);
        assert_waits_until(scene, firing_time(START + SECOND));
    }
    assert_int_equal(actor.count, 0);
    advance_to(scene, firing_time(START + SECOND));
    assert_one_completion(&actor, 0, 1, 0);
    scene_close(scene);
}

/* ---- simulated sources ---- */

TEST(source_that_is_ready_ends_the_waits_for_it)
{
    const uint32_t workers = test_workers();
    static struct actor actors[2];
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actors[0]);
    actor_start(scene, &actors[1]);
    perform(scene, &actors[0], ACTS(awaits(0, 10), awaits(1, 11)));
    perform(scene, &actors[1], ACTS(awaits(0, 10)));
    assert_waits_until(scene, UINT64_MAX);
    assert_int_equal(virtual_make_ready(&scene->time, 12), 0);
    assert_int_equal(virtual_make_ready(&scene->time, 10), 2);
    settle(scene);
    assert_one_completion(&actors[0], 0, 0, 0);
    assert_one_completion(&actors[1], 0, 0, 0);
    assert_int_equal(virtual_make_ready(&scene->time, 11), 1);
    settle(scene);
    assert_one_completion(&actors[0], 1, 1, 0);
    assert_nobody_waits(scene);
    scene_close(scene);
}

TEST(source_with_a_deadline_ends_by_what_comes_first)
{
    const uint32_t workers = test_workers();
    static struct actor actor;
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actor);
    perform(scene, &actor,
            ACTS(awaits(0, 10), deadline(START + SECOND), awaits(1, 11),
                 deadline(START + 2 * SECOND), awaits(2, 12)));
    assert_waits_until(scene, firing_time(START + SECOND));
    assert_int_equal(virtual_make_ready(&scene->time, 10), 1);
    settle(scene);
    assert_one_completion(&actor, 0, 0, 0);
    advance_to(scene, firing_time(START + 2 * SECOND));
    assert_one_completion(&actor, 1, 1, SKUA_E_TIMEOUT);
    perform(scene, &actor, ACTS(cancels(2)));
    assert_one_completion(&actor, 2, 2, SKUA_E_CANCELLED);
    /* What is ready too late changes nothing, also for a call that has the same node. */
    perform(scene, &actor, ACTS(awaits(3, 13), awaits(4, 14)));
    assert_int_equal(virtual_make_ready(&scene->time, 11), 1);
    assert_int_equal(virtual_make_ready(&scene->time, 12), 1);
    settle(scene);
    assert_int_equal(actor.count, 3);
    scene_close(scene);
}

TEST(source_and_timer_at_the_same_moment_are_both_served)
{
    const uint32_t workers = test_workers();
    static struct actor actors[2];
    struct scene *scene = scene_open(workers);
    actor_start(scene, &actors[0]);
    actor_start(scene, &actors[1]);
    perform(scene, &actors[0], ACTS(sleeps(0, SECOND), awaits(1, 1), deadline(START + HOUR)));
    perform(scene, &actors[1], ACTS(awaits(0, 2), sleeps(1, SECOND)));
    virtual_advance_to(&scene->time, firing_time(START + SECOND));
    assert_int_equal(virtual_make_ready(&scene->time, 1), 1);
    assert_int_equal(virtual_make_ready(&scene->time, 2), 1);
    settle(scene);
    assert_each_once(&actors[0], 2, 0);
    assert_each_once(&actors[1], 2, 0);
    scene_close(scene);
}

/* ---- workers that are not idle ---- */

/* The worker that waited gets the ready process and is held by it: the other one must wait in its
 * place, for all that is left. */
TEST(poller_is_handed_over_before_a_step_runs)
{
    static struct actor actors[2];
    struct scene *scene = scene_open(2);
    actor_start(scene, &actors[0]);
    actor_start(scene, &actors[1]);
    perform(scene, &actors[1], ACTS(sleeps(1, SECOND), awaits(2, 2)));
    const struct act acts[] = {does(HOLD)};
    struct script script = {acts, COUNT_OF(acts)};
    for (int round = 0; round < 20; round++) {
        const int before = virtual_waiter(&scene->time);
        assert_int_not_equal(before, VIRTUAL_NOBODY);
        perform_until_held(scene, &actors[0], &script);
        virtual_await_wait_until(&scene->time, firing_time(START + SECOND));
        assert_int_not_equal(virtual_waiter(&scene->time), (int)actors[0].worker);
        release(scene, &actors[0]);
    }
    /* And while it is held, both kinds of sources are served. */
    perform_until_held(scene, &actors[0], &script);
    assert_int_equal(virtual_make_ready(&scene->time, 2), 1);
    tally_wait(&actors[1].noted, 1);
    virtual_await_wait_until(&scene->time, firing_time(START + SECOND));
    virtual_advance_to(&scene->time, firing_time(START + SECOND));
    tally_wait(&actors[1].noted, 2);
    assert_int_not_equal(actors[1].worker, actors[0].worker);
    release(scene, &actors[0]);
    scene_close(scene);
}

/* Ready by the poller, and held: the worker that delivered it is the one that is stuck. */
static int held_when_ready_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                                skua_step *out)
{
    struct actor *actor = api_world(self);
    (void)ctx;
    if (count == 0) {
        return skua_step_yield(out, VIRTUAL_WAIT, 1, skua_payload_u64(0, 1));
    }
    actor->worker = worker_of_thread()->index;
    hold(actor);
    skua_step_done(out, skua_payload_empty(0));
    (void)events;
    return 0;
}

static const skua_process_type held_when_ready_type = {.name = "held when ready",
                                                       .state_size = sizeof(void *),
                                                       .init = api_init_world,
                                                       .step = held_when_ready_step};

TEST(poller_is_handed_over_by_the_worker_that_was_in_it)
{
    for (int round = 0; round < 20; round++) {
        static struct actor held, other;
        struct scene *scene = scene_open(2);
        actor_start(scene, &held); /* only for its tallies */
        actor_start(scene, &other);
        perform(scene, &other, ACTS(sleeps(1, SECOND)));
        (void)api_submit(&scene->api, &held_when_ready_type, &held);
        settle(scene);
        assert_int_equal(virtual_make_ready(&scene->time, 1), 1);
        tally_wait(&held.held, 1);
        virtual_await_wait_until(&scene->time, firing_time(START + SECOND));
        assert_int_not_equal(virtual_waiter(&scene->time), (int)held.worker);
        virtual_advance_to(&scene->time, firing_time(START + SECOND));
        tally_wait(&other.noted, 1);
        tally_add(&held.released, 1);
        scene_close(scene);
    }
}

/* What was asked for must be waited for, though the worker that armed it has not come to an end
 * with it, and nobody was in the poller before. */
static void check_source_of_a_stuck_worker(struct act yield, uint64_t instant)
{
    static struct actor actor;
    const struct act acts[] = {yield, asks(2, STICK)};
    struct script script = {acts, COUNT_OF(acts)};
    struct scene *scene = scene_open(2);
    actor_start(scene, &actor);
    assert_nobody_waits(scene);
    tell(scene, &actor, &script);
    tally_wait(&scene->desk.stuck, 1);
    virtual_await_wait_until(&scene->time, instant);
    assert_int_not_equal(virtual_waiter(&scene->time), (int)actor.worker);
    tally_add(&scene->desk.released, 1);
    settle(scene);
    assert_int_equal(virtual_wait_instant(&scene->time), instant);
    assert_one_completion(&actor, 0, 2, 0);
    scene_close(scene);
}

TEST(poller_is_entered_for_what_a_stuck_worker_has_armed)
{
    check_source_of_a_stuck_worker(sleeps(1, SECOND), firing_time(START + SECOND));
    check_source_of_a_stuck_worker(ticker(1, SECOND), firing_time(START + SECOND));
    check_source_of_a_stuck_worker(awaits(1, 1), SKUA_FOREVER);
}

TEST(timers_of_a_stuck_worker_are_fired_by_another)
{
    static struct actor sleeper, held[2];
    struct scene *scene = scene_open(2);
    actor_start(scene, &sleeper);
    perform(scene, &sleeper, ACTS(sleeps(1, SECOND)));
    /* Both workers are held; then the one whose timer it is not is let go. */
    const struct act acts[] = {does(HOLD)};
    struct script script = {acts, COUNT_OF(acts)};
    for (size_t i = 0; i < COUNT_OF(held); i++) {
        actor_start(scene, &held[i]);
        perform_until_held(scene, &held[i], &script);
    }
    assert_int_not_equal(held[0].worker, held[1].worker);
    struct actor *stuck = armed_with(scene, held[0].worker) > 0 ? &held[0] : &held[1];
    struct actor *free = stuck == &held[0] ? &held[1] : &held[0];
    assert_int_equal(armed_with(scene, stuck->worker), 1);
    tally_add(&free->released, 1);
    virtual_await_wait_until(&scene->time, firing_time(START + SECOND));
    assert_int_equal(virtual_waiter(&scene->time), free->worker);
    virtual_advance_to(&scene->time, firing_time(START + SECOND));
    tally_wait(&sleeper.noted, 1);
    release(scene, stuck);
    assert_one_completion(&sleeper, 0, 1, 0);
    scene_close(scene);
}

TEST(timers_of_a_blocked_worker_are_fired_by_a_spare_one)
{
    static struct actor sleeper, blocked;
    struct scene *scene = scene_open(1);
    actor_start(scene, &sleeper);
    actor_start(scene, &blocked);
    perform(scene, &sleeper, ACTS(sleeps(1, SECOND), awaits(2, 1), ticker(3, HOUR)));
    const struct act acts[] = {does(BLOCK)};
    struct script script = {acts, COUNT_OF(acts)};
    perform_until_held(scene, &blocked, &script);
    virtual_await_wait_until(&scene->time, firing_time(START + SECOND));
    assert_int_not_equal(virtual_waiter(&scene->time), (int)blocked.worker);
    virtual_advance_to(&scene->time, firing_time(START + SECOND));
    tally_wait(&sleeper.noted, 1);
    assert_int_equal(virtual_make_ready(&scene->time, 1), 1);
    tally_wait(&sleeper.noted, 2);
    release(scene, &blocked);
    assert_waits_until(scene, firing_time(START + HOUR));
    scene_close(scene);
}

/* A process that always goes on keeps its worker from ever being idle. */
TEST(sources_are_served_by_a_worker_that_is_never_idle)
{
    static struct actor actor, busy;
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    actor_start(scene, &busy);
    perform(scene, &actor,
            ACTS(sleeps(1, SECOND), awaits(2, 1), asks(3, KEEP), deadline(START + HOUR)));
    const struct act for_ever[] = {spins(UINT64_MAX)};
    struct script script = {for_ever, COUNT_OF(for_ever)};
    tell(scene, &busy, &script);
    tally_wait(&busy.performed, 1);
    virtual_advance_to(&scene->time, firing_time(START + SECOND));
    tally_wait(&actor.noted, 1);
    assert_int_equal(virtual_make_ready(&scene->time, 1), 1);
    virtual_advance(&scene->time, MILLISECOND);
    tally_wait(&actor.noted, 2);
    virtual_advance_to(&scene->time, firing_time(START + HOUR));
    tally_wait(&actor.noted, 3);
    perform(scene, &busy, ACTS(spins(0)));
    assert_int_equal(actor.count, 3);
    assert_note(&actor.notes[0], SKUA_EVENT_COMPLETION, 1, 0);
    assert_note(&actor.notes[1], SKUA_EVENT_COMPLETION, 2, 0);
    assert_note(&actor.notes[2], SKUA_EVENT_COMPLETION, 3, SKUA_E_TIMEOUT);
    scene_close(scene);
}

/* The check of the poller is a chore: it has its time, and an idle worker to do it. */
TEST(chore_is_done_by_an_idle_worker_at_its_time)
{
    static struct actor actor;
    struct scene *scene = scene_open(1);
    scene->time.check_period_ns = 10 * SECOND;
    actor_start(scene, &actor);
    perform(scene, &actor, ACTS(awaits(1, 1), deadline(START + SECOND)));
    perform(scene, &actor, ACTS(awaits(2, 2), deadline(START + 15 * SECOND)));
    advance_to(scene, firing_time(START + SECOND));
    assert_one_completion(&actor, 0, 1, SKUA_E_TIMEOUT);
    assert_waits_until(scene, START + 10 * SECOND);
    advance_to(scene, START + 10 * SECOND - 1);
    assert_int_equal(scene->time.seen.checks, 0);
    assert_int_equal(virtual_wait_count(&scene->time), 2);
    advance_to(scene, START + 10 * SECOND);
    assert_int_equal(scene->time.seen.checks, 1);
    assert_int_equal(virtual_wait_count(&scene->time), 1); /* one had ended */
    advance_to(scene, firing_time(START + 15 * SECOND));
    assert_one_completion(&actor, 1, 2, SKUA_E_TIMEOUT);
    advance_to(scene, START + 20 * SECOND);
    assert_int_equal(scene->time.seen.checks, 2);
    assert_int_equal(virtual_wait_count(&scene->time), 0);
    assert_nobody_waits(scene);
    advance(scene, HOUR);
    assert_int_equal(scene->time.seen.checks, 2);
    scene_close(scene);
}

/* ---- reserved commands ---- */

static struct act yields(uint32_t command, const skua_payload *payload)
{
    return (struct act){.kind = RAW, .tag = command, .number = command, .payload = payload};
}

static skua_payload with_inline_size(skua_payload payload, uint16_t size)
{
    payload.inline_size = size;
    return payload;
}

static skua_payload inline_bytes(uint16_t size)
{
    return with_inline_size(skua_payload_u64(0, SECOND), size);
}

TEST(reserved_commands_refuse_payloads_that_are_not_theirs)
{
    static struct actor actor;
    static struct tracked tracked;
    const skua_payload payloads[] = {
        skua_payload_empty(0),
        inline_bytes(0),
        inline_bytes(4),
        inline_bytes(7),
        inline_bytes(16),
        inline_bytes(24),
        with_inline_size(tracked_payload(0, &tracked), 0),
        with_inline_size(tracked_payload(0, &tracked), sizeof(uint64_t)),
        skua_payload_pointer(0, &tracked, tracked_payload(0, &tracked).as.owned.drop),
    };
    const enum reserved_command commands[] = {RESERVED_SLEEP,    RESERVED_TIMER,
                                              RESERVED_TICKER,   RESERVED_READABLE,
                                              RESERVED_WRITABLE, RESERVED_BLOCKING};
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    settle(scene);
    const uint64_t nodes = nodes_in_use(scene);
    for (size_t i = 0; i < COUNT_OF(payloads) * COUNT_OF(commands); i++) {
        const uint32_t command = reserved_id(commands[i % COUNT_OF(commands)]);
        perform(scene, &actor, ACTS(yields(command, &payloads[i / COUNT_OF(commands)])));
        assert_one_completion(&actor, i, command, SKUA_E_INVALID);
    }
    assert_drops(&tracked, 1, 3 * COUNT_OF(commands));
    assert_int_equal(armed(scene), 0);
    assert_nobody_waits(scene);
    assert_int_equal(nodes_in_use(scene), nodes);
    scene_close(scene);
}

TEST(reserved_commands_refuse_numbers_that_make_no_sense)
{
    static struct actor actor;
    const struct {
        enum reserved_command command;
        uint64_t number;
    } cases[] = {
        {RESERVED_SLEEP, SKUA_DURATION_MAX + 1},
        {RESERVED_SLEEP, UINT64_MAX},
        {RESERVED_TICKER, 0},
        {RESERVED_TICKER, SKUA_DURATION_MAX + 1},
        {RESERVED_TICKER, UINT64_MAX},
        {RESERVED_READABLE, (uint64_t)INT32_MAX + 1},
        {RESERVED_READABLE, UINT64_MAX},
        {RESERVED_WRITABLE, (uint64_t)INT32_MAX + 1},
        {RESERVED_WRITABLE, UINT64_C(1) << 32},
        {RESERVED_BLOCKING, 0},
        {RESERVED_BLOCKING, UINT64_MAX},
    };
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const uint32_t command = reserved_id(cases[i].command);
        const skua_payload payload = skua_payload_u64(0, cases[i].number);
        perform(scene, &actor, ACTS(yields(command, &payload)));
        assert_one_completion(&actor, i, command, SKUA_E_INVALID);
    }
    assert_int_equal(armed(scene), 0);
    assert_nobody_waits(scene);
    scene_close(scene);
}

TEST(reserved_numbers_without_a_command_are_unknown)
{
    static struct actor actor;
    const uint32_t unknown[] = {reserved_id(RESERVED_BLOCKING) + 1, UINT32_MAX - 1, UINT32_MAX};
    const skua_payload payload = skua_payload_u64(0, 1);
    struct scene *scene = scene_open(1);
    actor_start(scene, &actor);
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        perform(scene, &actor, ACTS(yields(unknown[i], &payload)));
        assert_one_completion(&actor, i, unknown[i], SKUA_E_UNKNOWN_COMMAND);
    }
    scene_close(scene);
}

TEST(reserved_numbers_cannot_be_registered)
{
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    const skua_handler handler = {.name = "handler", .run = keep};
    const uint32_t refused_ids[] = {SKUA_COMMAND_RESERVED, reserved_id(RESERVED_BLOCKING),
                                    SKUA_COMMAND_RESERVED + 1000, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(refused_ids); i++) {
        assert_int_equal(skua_command_register(api.runtime, refused_ids[i], &handler),
                         SKUA_E_INVALID);
    }
    assert_int_equal(skua_command_register(api.runtime, SKUA_COMMAND_RESERVED - 1, &handler), 0);
    api_start(&api);
    api_stop(&api);
}

/* ---- the real clock ---- */

enum { REAL_SLEEP, REAL_TIMER, REAL_TICKER, REAL_DEADLINE, REAL_COUNT };

/* Everything for a few milliseconds. Finishes when all have come; the ticker three times. */
struct real {
    uint64_t due[REAL_COUNT];
    unsigned seen[REAL_COUNT];
    unsigned early;
    unsigned wrong;
};

static int begin_real(struct real *real, skua_context *ctx, skua_step *out)
{
    real->due[REAL_SLEEP] = skua_context_deadline(ctx, 2 * MILLISECOND);
    real->due[REAL_TIMER] = skua_context_deadline(ctx, 3 * MILLISECOND);
    real->due[REAL_TICKER] = skua_context_deadline(ctx, MILLISECOND);
    real->due[REAL_DEADLINE] = skua_context_deadline(ctx, 4 * MILLISECOND);
    return skua_step_sleep(out, REAL_SLEEP, 2 * MILLISECOND) |
           skua_step_timer(out, REAL_TIMER, real->due[REAL_TIMER]) |
           skua_step_ticker(out, REAL_TICKER, MILLISECOND) |
           skua_step_timer(out, REAL_DEADLINE, SKUA_FOREVER) |
           skua_step_deadline(out, real->due[REAL_DEADLINE]);
}

static void note_real(struct real *real, const skua_event *event, uint64_t now)
{
    const uint64_t tag = event->tag % REAL_COUNT;
    const int error = tag == REAL_DEADLINE ? SKUA_E_TIMEOUT : 0;
    const bool ticks = event->type == SKUA_EVENT_TICK;
    real->wrong += event->error != error || ticks != (tag == REAL_TICKER);
    real->early += now < real->due[tag] || (ticks && now < skua_tick_time(event));
    real->seen[tag] += ticks ? (unsigned)skua_tick_count(event) : 1;
    real->due[tag] += ticks ? MILLISECOND : 0;
}

static int real_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    struct real *real = api_world(self);
    if (count == 0) {
        return begin_real(real, ctx, out);
    }
    for (size_t i = 0; i < count; i++) {
        note_real(real, &events[i], skua_context_now(ctx));
    }
    if (real->seen[REAL_SLEEP] > 0 && real->seen[REAL_TIMER] > 0 && real->seen[REAL_TICKER] >= 3 &&
        real->seen[REAL_DEADLINE] > 0) {
        skua_step_done(out, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type real_type = {
    .name = "real", .state_size = sizeof(void *), .init = api_init_world, .step = real_step};

TEST(real_time_brings_everything_and_nothing_early)
{
    const uint32_t workers = test_workers();
    struct real real = {.early = 0};
    struct api api;
    api_run(&api, workers);
    assert_int_equal(api_run_process(&api, &real_type, &real).error, 0);
    assert_int_equal(real.early, 0);
    assert_int_equal(real.wrong, 0);
    assert_int_equal(real.seen[REAL_SLEEP], 1);
    assert_int_equal(real.seen[REAL_TIMER], 1);
    assert_int_equal(real.seen[REAL_DEADLINE], 1);
    assert_true(real.seen[REAL_TICKER] >= 3);
    api_stop(&api);
}
