/* SPDX-License-Identifier: MIT */
#include "sleeper.h"

#include <inttypes.h>

#include "base/monotonic.h"
#include "channels.h"

#define YIELDS_MAX 8
#define PATIENCE   (100 * SKUA_MILLISECOND)

struct sleeper {
    struct stress_process process;
    bool has_blocked; /* in this step */
    uint64_t serial;  /* of its yields */
    struct open_yield yields[YIELDS_MAX];
};

static const struct sleeper_plan *plan;
static atomic_u32 stalls_left;

void sleepers_begin(const struct sleeper_plan *of_program, uint32_t stalls)
{
    plan = of_program;
    store_relaxed(&stalls_left, stalls); /* no thread yet */
}

void send_from_outside(uint64_t *random)
{
    const skua_pid to = stress_random_pid(random);
    const skua_payload token = stress_make_token(random, random_next(random));
    stress_sent(skua_process_send(current.runtime, to, token));
}

/* ---- making yields ---- */

/* A yield without content, or null if the place that it would have is taken. */
static struct open_yield *new_yield(struct sleeper *sleeper, uint64_t *random,
                                    const struct yield_kind *kind)
{
    const uint32_t slot = random_below(random, YIELDS_MAX);
    struct open_yield *yield = &sleeper->yields[slot];
    if (yield->kind != NULL) {
        return NULL;
    }
    *yield = (struct open_yield){
        .kind = kind,
        .tag = ++sleeper->serial * YIELDS_MAX + slot,
        .timeout = SKUA_FOREVER,
        .deadline = SKUA_FOREVER,
    };
    return yield;
}

static void make(struct open_yield *yield, skua_context *ctx, uint64_t *random)
{
    const int error = yield->kind->make(yield, ctx, random);
    stress_expect(error == 0, "yield", error);
    stress_tally(TALLY_YIELDS);
    stress_operation();
}

static void set_timeout(struct open_yield *yield, skua_context *ctx, uint64_t *random)
{
    yield->timeout = random_yield_timeout(random);
    if (yield->timeout != SKUA_FOREVER) {
        yield->deadline = skua_now(ctx) + yield->timeout; /* it begins when the step ends */
    }
}

static void yield_something(struct sleeper *sleeper, skua_context *ctx, uint64_t *random)
{
    const struct yield_kind *kind = plan->kinds[random_below(random, plan->kind_count)];
    struct open_yield *yield = new_yield(sleeper, random, kind);
    if (yield == NULL) {
        return;
    }
    if (kind->prepare != NULL && !kind->prepare(yield, ctx, random)) {
        yield->kind = NULL;
        return;
    }
    if (!kind->has_no_timeout && once_in(random, 2)) {
        set_timeout(yield, ctx, random);
    }
    make(yield, ctx, random);
    if (kind->brings_too != NULL && once_in(random, 2)) {
        struct open_yield *second = new_yield(sleeper, random, kind->brings_too);
        if (second != NULL) {
            second->fd = yield->fd;
            make(second, ctx, random);
        }
    }
}

static void cancel(struct open_yield *yield, skua_context *ctx)
{
    const int error = skua_yield_cancel(ctx, yield->tag); /* perhaps there is none any more */
    stress_expect(error == 0, "cancelling", error);
    yield->is_cancelled = true;
}

/* ---- how they end ---- */

static struct open_yield *find_yield(struct sleeper *sleeper, const skua_event *event)
{
    struct open_yield *yield = &sleeper->yields[event->tag % YIELDS_MAX];
    if (yield->kind == NULL || yield->tag != event->tag) {
        stress_fault(&stress, STRESS_DOUBLED, "event %" PRIu32 " of a yield that has ended",
                     event->type);
        return NULL;
    }
    return yield;
}

void check_result(const struct open_yield *yield, skua_context *ctx, const skua_event *event)
{
    if (stress_read_token(&event->payload) != token_of(yield, ctx)) {
        stress_fault(&stress, STRESS_CORRUPT, "the result of a %s", yield->kind->name);
    }
}

static void check_timeout(const struct open_yield *yield, skua_context *ctx)
{
    const uint64_t now = skua_now(ctx);
    stress_expect(yield->deadline != SKUA_FOREVER && now >= yield->deadline,
                  "timed out early, by ns", (int64_t)(yield->deadline - now));
    stress_tally(TALLY_TIMED_OUT);
}

static bool may_end(const struct open_yield *yield, skua_context *ctx, const skua_event *event)
{
    if (event->error == SKUA_E_CANCELLED) {
        stress_tally(TALLY_CANCELLED);
        return yield->is_cancelled;
    }
    if (event->error == SKUA_E_TIMEOUT) {
        check_timeout(yield, ctx);
        return true;
    }
    return yield->kind->may_end(yield, ctx, event);
}

static void release(struct open_yield *yield, uint64_t *random)
{
    if (yield->kind->release != NULL) {
        yield->kind->release(yield, random);
    }
    yield->kind = NULL;
}

static void on_completion(struct sleeper *sleeper, skua_context *ctx, const skua_event *event,
                          uint64_t *random)
{
    struct open_yield *yield = find_yield(sleeper, event);
    if (yield == NULL) {
        return;
    }
    if (!may_end(yield, ctx, event)) {
        stress_fault(&stress, STRESS_BROKEN, "a %s ended with %s", yield->kind->name,
                     skua_error_name(event->error));
    }
    release(yield, random);
    stress_tally(TALLY_COMPLETIONS);
}

/* ---- init, close, events ---- */

static int init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)input;
    (void)input_count;
    struct sleeper *sleeper = self;
    uint64_t random = skua_random(ctx);
    stress_process_begin(&sleeper->process, 1 + random_below(&random, 60));
    if (once_in(&random, 64) && skua_blocking_begin(ctx) == 0) { /* unless its parent blocks */
        pause_in_kernel(&random, 100);
        const int error = skua_blocking_end(ctx);
        stress_expect(error == 0, "end in init", error);
    }
    return once_in(&random, 64) ? STRESS_ERROR_INIT : 0;
}

static void close_sleeper(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)ctx;
    (void)exit;
    struct sleeper *sleeper = self;
    uint64_t random = random_mix(sleeper->serial);
    for (uint32_t i = 0; i < YIELDS_MAX; i++) {
        if (sleeper->yields[i].kind != NULL) {
            stress_tally(TALLY_ABANDONED);
            release(&sleeper->yields[i], &random);
        }
    }
    stress_process_end(&sleeper->process);
}

static void on_event(struct sleeper *sleeper, skua_context *ctx, skua_event *event,
                     uint64_t *random)
{
    struct open_yield *yield;
    stress_operation();
    switch ((enum skua_event_type)event->type) {
    case SKUA_EVENT_MESSAGE:
        if (event->payload.type == PAYLOAD_PIPE_END) {
            serve_pipe(random, skua_payload_take(&event->payload).as.owned.data);
        }
        break;
    case SKUA_EVENT_COMPLETION:
        on_completion(sleeper, ctx, event, random);
        break;
    case SKUA_EVENT_CANCEL:
        stress_process_cancelled(&sleeper->process, event, random);
        break;
    case SKUA_EVENT_TICK:
        yield = find_yield(sleeper, event);
        if (yield != NULL) {
            check_tick(yield, ctx, event);
        }
        break;
    case SKUA_EVENT_CALL:
    case SKUA_EVENT_ABANDON:
    case SKUA_EVENT_EXIT:
    case SKUA_EVENT_GROUP:
    case SKUA_EVENT_CHILD:
    case SKUA_EVENT_BECOME:
        stress_fault(&stress, STRESS_BROKEN, "an event that nobody asked for");
        break;
    case SKUA_EVENT_START:
    case SKUA_EVENT_CONTINUE:
        break;
    }
    if (once_in(random, 8)) {
        skua_payload taken = skua_payload_take(&event->payload);
        skua_payload_drop(&taken);
    }
}

/* ---- steps ---- */

static void spawn_sleeper(skua_context *ctx, uint64_t *random)
{
    skua_payload input = stress_make_token(random, random_next(random));
    skua_pid pid;
    const int error = skua_spawn(ctx, &sleeper_type, input, &pid);
    stress_spawned(random, error, &pid);
}

/* A step that blocks, once and mostly as it should. */
static void block(struct sleeper *sleeper, skua_context *ctx, uint64_t *random)
{
    if (sleeper->has_blocked) {
        return;
    }
    sleeper->has_blocked = true;
    int error = skua_blocking_begin(ctx);
    stress_expect(error == 0, "begin", error);
    if (once_in(random, 8)) {
        error = skua_blocking_begin(ctx);
        stress_expect(error == SKUA_E_INVALID, "begin again", error);
    }
    pause_in_kernel(random, 500);
    stress_tally(TALLY_BLOCKS);
    if (once_in(random, 8)) {
        return; /* the end of the step will do */
    }
    error = skua_blocking_end(ctx);
    stress_expect(error == 0, "end", error);
    error = once_in(random, 8) ? skua_blocking_end(ctx) : SKUA_E_INVALID;
    stress_expect(error == SKUA_E_INVALID, "end again", error);
}

/* A step that is too long. There are only a few in a round. */
static void stall(uint64_t *random)
{
    uint32_t left = load_relaxed(&stalls_left); /* re-checked by the CAS */
    if (left == 0 || !cas_acq_rel_relaxed(&stalls_left, &left, left - 1)) {
        return;
    }
    stress_tally(TALLY_STALLS);
    const uint64_t end =
        monotonic_ns() + 12 * SKUA_MILLISECOND + random_below(random, 8 * SKUA_MILLISECOND);
    while (monotonic_ns() < end) {
    }
}

static void act(struct sleeper *sleeper, skua_context *ctx, uint64_t *random)
{
    switch (random_below(random, 32)) {
    case 0:
    case 1:
    case 2:
        spawn_sleeper(ctx, random);
        break;
    case 3:
    case 4:
        stress_sent(skua_send(ctx, stress_random_pid(random), stress_make_token(random, 0)));
        break;
    case 5:
    case 6:
    case 7:
        cancel(&sleeper->yields[random_below(random, YIELDS_MAX)], ctx);
        stress_operation();
        break;
    case 8:
        if (once_in(random, 4)) {
            stress_end_some(random, once_in(random, 2));
        }
        break;
    case 9:
        if (plan->uses_channels) {
            use_channel(random);
        }
        break;
    case 10:
        if (once_in(random, 8)) {
            block(sleeper, ctx, random);
        } else if (once_in(random, 32)) {
            stall(random);
        }
        break;
    default:
        yield_something(sleeper, ctx, random);
        break;
    }
}

/* Whether it may last for ever, or longer than anybody would like to wait. */
static bool may_last(const struct open_yield *yield, skua_context *ctx)
{
    const bool is_timer = yield->kind->is_timer;
    const uint64_t end = is_timer ? yield->due : yield->deadline;
    return (is_timer || yield->is_endless) && end > skua_now(ctx) + PATIENCE;
}

/* Waits for what will come, takes back the rest, then ends. Now and then it does not wait. */
static int finish(struct sleeper *sleeper, skua_context *ctx, uint64_t *random)
{
    bool waits = false;
    for (uint32_t i = 0; i < YIELDS_MAX; i++) {
        struct open_yield *yield = &sleeper->yields[i];
        if (yield->kind == NULL) {
            continue;
        }
        waits = true;
        if (!yield->is_cancelled && (may_last(yield, ctx) || once_in(random, 4))) {
            cancel(yield, ctx);
        }
    }
    if (waits && !once_in(random, 32)) {
        return 0;
    }
    (void)skua_done(ctx, stress_make_token(random, sleeper->serial));
    return once_in(random, 8) ? STRESS_ERROR_STEP : 0;
}

static int step(void *self, skua_context *ctx, skua_event *events, size_t event_count)
{
    struct sleeper *sleeper = self;
    struct stress_process *process = &sleeper->process;
    uint64_t random = skua_random(ctx);
    stress_process_check(process);
    stress_expect(event_count <= SKUA_EVENTS_PER_STEP, "events in one step", (int64_t)event_count);
    for (size_t i = 0; i < event_count; i++) {
        on_event(sleeper, ctx, &events[i], &random);
    }
    if (process->is_finishing || process->steps_left == 0) {
        process->is_finishing = true;
        return finish(sleeper, ctx, &random);
    }
    process->steps_left--;
    sleeper->has_blocked = false;
    for (uint32_t acts = 1 + random_below(&random, 5); acts > 0; acts--) {
        act(sleeper, ctx, &random);
    }
    stress_pause(&random, 64);
    if (once_in(&random, 16)) {
        (void)skua_continue(ctx);
    }
    stress_process_check(process); /* nobody else has run it meanwhile */
    return once_in(&random, 512) ? STRESS_ERROR_STEP : 0;
}

const skua_process_type sleeper_type = {
    .name = "sleeper",
    .state_size = sizeof(struct sleeper),
    .init = init,
    .step = step,
    .close = close_sleeper,
    .cancel = SKUA_CANCEL_EVENT,
};

void submit_sleeper(uint64_t *random)
{
    skua_payload input = stress_make_token(random, random_next(random));
    skua_pid pid;
    const int error = skua_process_submit(current.runtime, &sleeper_type, input, &pid);
    stress_spawned(random, error, &pid);
}
