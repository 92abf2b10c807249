/* SPDX-License-Identifier: MIT */
/* What steps yield: commands, timers, tickers, functions on blocking pools. Each accepted one ends
 * once, with an error that it may end with, unless its process ends first. */
#include "property.h"

#define TICKS_MAX 5

static struct request requests[REQUESTS_MAX];
static atomic_u32 requests_made;

void requests_begin(void)
{
    store_relaxed(&requests_made, 0);
}

/* ---- which are open ---- */

static bool is_of_socket(enum request_kind kind)
{
    return kind >= REQUEST_ACCEPT && kind <= REQUEST_WRITE;
}

/* Whether its process has closed the socket that it is about. */
static bool is_closed(const struct request *request)
{
    return request->kind == REQUEST_ACCEPT
               ? request->actor->listener.bits == 0
               : request->wire != NULL && load_relaxed(&request->wire->is_closed) != 0;
}

/* Whether it ends by itself. A connect and a write do, others wait for somebody. */
static bool must_end(const struct request *request)
{
    const enum request_kind kind = request->kind;
    const bool never = kind == REQUEST_NEVER || kind == REQUEST_FOREVER ||
                       (is_of_socket(kind) && kind != REQUEST_CONNECT && kind != REQUEST_WRITE);
    return !never || request->is_cancelled || request->deadline != SKUA_FOREVER ||
           is_closed(request);
}

void requests_note(struct actor *actor)
{
    uint32_t ends = 0;
    for (uint32_t i = 0; i < actor->open_count; i++) {
        ends += must_end(&requests[actor->open[i]]);
    }
    store_relaxed(&actor->open_ends, ends); /* see property.h */
}

void requests_blame(const struct actor *actor)
{
    for (uint32_t i = 0; i < actor->open_count; i++) {
        const struct request *request = &requests[actor->open[i]];
        char wire[100] = "";
        if (request->wire != NULL) {
            wire_describe(request->wire, wire, sizeof wire);
        }
        if (must_end(request)) {
            fault("%s: request %u of kind %d, step %u of %u, does not end%s: %s",
                  script_types[actor->type].name, request->number, (int)request->kind,
                  request->step, load_relaxed(&request->actor->steps),
                  request->is_cancelled ? " although it was taken back" : "", wire);
        }
    }
}

static void add_open(struct actor *actor, const struct request *request)
{
    actor->open[actor->open_count++] = request->number;
    requests_note(actor);
}

static void remove_open(struct actor *actor, uint32_t at)
{
    actor->open[at] = actor->open[--actor->open_count];
    requests_note(actor);
}

/* ---- asking ---- */

/* Whether others may have the same tag: where it does not matter which of them ends when. */
static bool can_share(enum request_kind kind)
{
    return kind != REQUEST_NEVER && kind != REQUEST_FOREVER && kind != REQUEST_TICKER &&
           kind != REQUEST_SEND && !is_of_socket(kind);
}

/* A tag of its own, or now and then that of another open one. */
static uint64_t choose_tag(const struct request *request, uint64_t *random)
{
    const struct actor *actor = request->actor;
    const bool shares = chance(random, 20);
    if (shares && actor->open_count > 0 && can_share(request->kind)) {
        struct request *other = &requests[actor->open[draw(random, actor->open_count)]];
        if (can_share(other->kind)) {
            other->is_shared = true;
            return other->tag;
        }
    }
    return request->number + 1;
}

static enum request_kind choose_kind(uint64_t *random)
{
    static const enum request_kind kinds[] = {
        REQUEST_NOW,      REQUEST_FAILING,         REQUEST_LATER,           REQUEST_LATER,
        REQUEST_NEVER,    REQUEST_INSIDE,          REQUEST_UNSAFE,          REQUEST_UNKNOWN,
        REQUEST_SLEEP,    REQUEST_SLEEP,           REQUEST_TIMER,           REQUEST_FOREVER,
        REQUEST_TICKER,   REQUEST_BLOCKING,        REQUEST_BLOCKING_NARROW, REQUEST_NOW,
        REQUEST_BLOCKING, REQUEST_BLOCKING_NOWHERE};
    return kinds[draw(random, sizeof kinds / sizeof kinds[0])];
}

static int expected_error(enum request_kind kind, uint64_t *random)
{
    const bool fails = chance(random, 25);
    switch (kind) {
    case REQUEST_FAILING:
        return ERROR_HANDLER;
    case REQUEST_LATER:
    case REQUEST_INSIDE:
    case REQUEST_BLOCKING:
    case REQUEST_BLOCKING_NARROW:
        return fails ? ERROR_HANDLER : 0;
    case REQUEST_UNSAFE:
        return in_simulator() ? SKUA_E_NOT_SIMULATED : 0;
    case REQUEST_UNKNOWN:
        return SKUA_E_UNKNOWN_COMMAND;
    case REQUEST_NOW:
    case REQUEST_NEVER:
    case REQUEST_COMMANDS:
    case REQUEST_ACCEPT:
    case REQUEST_CONNECT:
    case REQUEST_READ:
    case REQUEST_READ_EXACTLY:
    case REQUEST_READ_UNTIL:
    case REQUEST_HANGUP:
    case REQUEST_WRITE:
    case REQUEST_SEND:
    case REQUEST_SLEEP:
    case REQUEST_TIMER:
    case REQUEST_FOREVER:
    case REQUEST_TICKER:
    case REQUEST_BLOCKING_NOWHERE:
        break;
    }
    return 0;
}

static struct request *request_new(struct actor *actor, enum request_kind kind, uint64_t *random)
{
    if (actor->open_count == OPEN_MAX) {
        return NULL;
    }
    const uint32_t number = fetch_add_relaxed(&requests_made, 1); /* see property.h */
    if (number >= REQUESTS_MAX) {
        return NULL;
    }
    struct request *request = &requests[number];
    const int expected = expected_error(kind, random);
    *request = (struct request){
        .actor = actor,
        .number = number,
        .step = load_relaxed(&actor->steps), /* its own */
        .kind = kind,
        .expected = expected,
        .random = random_next(random),
        .deadline = SKUA_FOREVER,
    };
    request->tag = choose_tag(request, random);
    request->is_shared = request->tag != number + 1;
    return request;
}

static int yield_timer(struct request *request, skua_context *ctx, uint64_t moments)
{
    const uint64_t duration = moments * world.program.moment_ns;
    request->earliest = skua_now(ctx) + duration;
    if (request->kind == REQUEST_SLEEP) {
        return skua_yield_sleep(ctx, request->tag, duration);
    }
    if (request->kind == REQUEST_TICKER) {
        request->period = duration + world.program.moment_ns;
        return skua_yield_ticker(ctx, request->tag, request->period);
    }
    return skua_yield_timer(ctx, request->tag,
                            request->kind == REQUEST_TIMER ? request->earliest : SKUA_FOREVER);
}

static skua_pool pool_of(enum request_kind kind)
{
    if (kind == REQUEST_BLOCKING_NARROW) {
        return pool_narrow;
    }
    return (skua_pool){kind == REQUEST_BLOCKING ? 0 : 77};
}

static uint64_t choose_timeout(uint64_t *random)
{
    const uint64_t moments = draw(random, 6); /* none: only what comes at once counts */
    return chance(random, 30) ? moments * world.program.moment_ns : SKUA_FOREVER;
}

static int yield(struct request *request, skua_context *ctx, uint64_t *random)
{
    const uint64_t moments = draw(random, 6);
    if (request->kind >= REQUEST_SLEEP && request->kind <= REQUEST_TICKER) {
        return yield_timer(request, ctx, moments);
    }
    const uint64_t timeout = choose_timeout(random);
    const skua_payload input = letter_wrap(LETTER_COMMAND, request->number, random);
    if (timeout != SKUA_FOREVER) {
        request->deadline = skua_now(ctx) + timeout; /* or later: it begins when the step ends */
    }
    if (request->kind < REQUEST_COMMANDS) {
        return skua_yield(ctx, request->tag, (uint32_t)request->kind, input, timeout);
    }
    return skua_yield_blocking(ctx, request->tag, pool_of(request->kind), command_block, input,
                               timeout);
}

void request_make(struct actor *actor, skua_context *ctx, uint64_t *random)
{
    struct request *request = request_new(actor, choose_kind(random), random);
    if (request == NULL) {
        return;
    }
    const int error = yield(request, ctx, random);
    const bool is_refused = request->kind == REQUEST_BLOCKING_NOWHERE;
    if (error == 0) {
        request->is_accepted = true;
        add_open(actor, request);
    }
    if (is_refused ? error != SKUA_E_UNKNOWN_POOL : error != 0 && !may_lack_memory(error)) {
        fault("process %u: a yield: %s", actor->number, skua_error_name(error));
    }
}

struct request *request_begin(struct actor *actor, enum request_kind kind, uint64_t *random)
{
    return request_new(actor, kind, random);
}

void request_begun(struct request *request, skua_context *ctx, uint64_t timeout_ns, int error)
{
    if (error == 0) {
        request->is_accepted = true;
        request->deadline = timeout_ns != SKUA_FOREVER ? skua_now(ctx) + timeout_ns : SKUA_FOREVER;
        add_open(request->actor, request);
    }
}

bool request_is_open(const struct actor *actor, enum request_kind kind, const struct wire *wire)
{
    bool found = false;
    for (uint32_t i = 0; i < actor->open_count; i++) {
        const struct request *request = &requests[actor->open[i]];
        found = found || (request->kind == kind && request->wire == wire);
    }
    return found;
}

void request_make_many(struct actor *actor, skua_context *ctx, uint64_t *random)
{
    const uint32_t count = 20 + draw(random, 40);
    for (uint32_t i = 0; i < count; i++) {
        request_make(actor, ctx, random);
    }
}

static void expect_error(int error, int expected, const char *what)
{
    if (error != expected) {
        fault("%s: %s instead of %s", what, skua_error_name(error), skua_error_name(expected));
    }
}

/* What steps must not ask for. Each payload is dropped once, whatever comes of it. */
void request_misuse(skua_context *ctx, uint64_t *random)
{
    skua_payload payload = letter_wrap(LETTER_COMMAND, 0, random);
    const uint64_t too_long = SKUA_DURATION_MAX + 1 + draw(random, 1000);
    const uint32_t reserved = SKUA_COMMAND_RESERVED + draw(random, 1000);
    skua_pool pool;
    switch (draw(random, 5)) {
    case 0:
        expect_error(skua_yield_from(ctx, 1, REQUEST_NOW, &payload, too_long), SKUA_E_DURATION,
                     "a timeout that is too long");
        break;
    case 1:
        expect_error(skua_yield_from(ctx, 1, reserved, &payload, SKUA_FOREVER), SKUA_E_RESERVED,
                     "a reserved command");
        break;
    case 2:
        skua_payload_drop(&payload);
        (void)skua_payload_take(&payload);
        expect_error(skua_yield_from(ctx, 1, REQUEST_NOW, &payload, SKUA_FOREVER), SKUA_E_TAKEN,
                     "a payload that was taken");
        break;
    case 3:
        expect_error(skua_blocking_find(world.runtime, "nowhere", &pool), SKUA_E_UNKNOWN_POOL,
                     "a pool that does not exist");
        break;
    default:
        expect_error(skua_blocking_find(world.runtime, POOL_NARROW, &pool), 0, "a pool");
        expect_error((int)pool.number, (int)pool_narrow.number, "the handle of a pool");
        break;
    }
    skua_payload_drop(&payload); /* if it is still here */
}

static void take_back(struct actor *actor, skua_context *ctx, uint64_t tag)
{
    const int error = skua_yield_cancel(ctx, tag);
    if (error != 0 && !may_lack_memory(error)) {
        fault("process %u: taking back a yield: %s", actor->number, skua_error_name(error));
    }
    for (uint32_t i = 0; i < actor->open_count && error == 0; i++) {
        struct request *request = &requests[actor->open[i]];
        request->is_cancelled = request->is_cancelled || request->tag == tag;
    }
    requests_note(actor);
}

void request_take_back(struct actor *actor, skua_context *ctx, uint64_t *random)
{
    const bool is_nonsense = chance(random, 10);
    if (actor->open_count == 0 || is_nonsense) {
        take_back(actor, ctx, UINT64_MAX);
    } else {
        take_back(actor, ctx, requests[actor->open[draw(random, actor->open_count)]].tag);
    }
}

/* ---- what comes of it ---- */

static bool is_carried_out_here(enum request_kind kind)
{
    return kind < REQUEST_UNKNOWN || kind == REQUEST_BLOCKING || kind == REQUEST_BLOCKING_NARROW;
}

/* Whether it may end with this error at this time. */
static bool may_end(const struct request *request, int error, uint64_t now)
{
    const skua_sim_faults *faults = &world.program.faults;
    const bool is_blocking = request->kind >= REQUEST_BLOCKING;
    switch (error) {
    case SKUA_E_CANCELLED:
        return request->is_cancelled;
    case SKUA_E_TIMEOUT:
        return now >= request->deadline;
    case SKUA_E_INJECTED:
        return faults->handler_error > 0 && is_carried_out_here(request->kind);
    case SKUA_E_POOL_FULL:
        return request->kind == REQUEST_BLOCKING_NARROW && !in_simulator();
    default:
        break;
    }
    const bool never = request->kind == REQUEST_NEVER || request->kind == REQUEST_FOREVER ||
                       request->kind == REQUEST_TICKER;
    return (request->kind == REQUEST_SEND && message_may_fail(request->message, error)) ||
           (error == request->expected && !never && now >= request->earliest) ||
           (is_blocking && may_lack_memory(error));
}

/* An open one with this tag, as an index of actor->open. */
static uint32_t find_open(const struct actor *actor, uint64_t tag)
{
    for (uint32_t i = 0; i < actor->open_count; i++) {
        if (requests[actor->open[i]].tag == tag) {
            return i;
        }
    }
    return NONE;
}

static void check_end(struct request *request, const skua_event *event, uint64_t now)
{
    const uint32_t handled = load_relaxed(&request->handled); /* see property.h */
    const bool succeeded = event->error == 0 && is_carried_out_here(request->kind);
    struct letter letter;
    const bool has_result = letter_read(&event->payload, LETTER_RESULT, &letter);
    if (!may_end(request, event->error, now)) {
        fault("request %u of kind %d ends with %s (%d)", request->number, (int)request->kind,
              skua_error_name(event->error), event->error);
    }
    if (has_result != succeeded || (has_result && letter.number != request->number)) {
        fault("request %u: has not got its own result", request->number);
    }
    if (succeeded && handled != 1) {
        fault("request %u: succeeded, but was carried out %u times", request->number, handled);
    }
    if (event->error == SKUA_E_INJECTED && handled != 0) {
        fault("request %u: was carried out, but is said to have failed", request->number);
    }
}

/* Of those that share a tag it is not known which one has ended, unless there is a result. */
static void check_shared_end(const skua_event *event)
{
    struct letter letter;
    if (!letter_read(&event->payload, LETTER_RESULT, &letter)) {
        return;
    }
    struct request *request = &requests[letter.number];
    if (request->tag != event->tag || request->has_result) {
        fault("request %u: its result comes twice, or to another", request->number);
    }
    request->has_result = true;
}

void request_completed(struct agent *agent, const skua_event *event)
{
    struct actor *actor = agent->actor;
    const uint32_t at = find_open(actor, event->tag);
    if (at == NONE) {
        fault("process %u: a completion with tag %u, but nothing with it is open: %s (%d)",
              actor->number, (uint32_t)event->tag, skua_error_name(event->error), event->error);
        return;
    }
    struct request *request = &requests[actor->open[at]];
    remove_open(actor, at);
    if (request->kind == REQUEST_SEND) {
        message_admitted(request->message, event->error);
    }
    if (is_of_socket(request->kind)) {
        wires_completed(agent, request, event);
    } else if (request->is_shared) {
        check_shared_end(event);
    } else {
        check_end(request, event, skua_now(agent->ctx));
    }
}

static struct request *find_ticker(const struct actor *actor, uint64_t tag, uint64_t time)
{
    for (uint32_t i = 0; i < actor->open_count; i++) {
        struct request *request = &requests[actor->open[i]];
        const bool fits =
            request->last_tick == 0 ||
            (time > request->last_tick && (time - request->last_tick) % request->period == 0);
        if (request->kind == REQUEST_TICKER && request->tag == tag && fits) {
            return request;
        }
    }
    return NULL;
}

void request_ticked(struct actor *actor, skua_context *ctx, const skua_event *event)
{
    const uint64_t time = skua_tick_time(event);
    struct request *ticker = find_ticker(actor, event->tag, time);
    if (ticker == NULL) {
        fault("process %u: a tick of no ticker, or beside its grid", actor->number);
        return;
    }
    if (ticker->is_cancelled) {
        fault("process %u: a tick after its ticker was taken back", actor->number);
    }
    const uint64_t periods = (time - ticker->last_tick) / ticker->period;
    if (skua_tick_count(event) == 0 ||
        (ticker->last_tick != 0 && skua_tick_count(event) != periods)) {
        fault("process %u: a tick with a wrong count", actor->number);
    }
    ticker->last_tick = time;
    ticker->ticks++;
    if (ticker->ticks >= TICKS_MAX) {
        take_back(actor, ctx, ticker->tag);
    }
}

struct request *request_handled(const skua_payload *input, bool is_blocking)
{
    struct letter letter;
    if (!letter_read(input, LETTER_COMMAND, &letter)) {
        fault("a command without its input");
        return NULL;
    }
    struct request *request = &requests[letter.number];
    const uint32_t failed_in_step = load_relaxed(&request->actor->failed_in_step);
    if (!is_carried_out_here(request->kind) || is_blocking != (request->kind >= REQUEST_BLOCKING)) {
        fault("request %u: is carried out by the wrong one", request->number);
    }
    if (fetch_add_relaxed(&request->handled, 1) != 0) {
        fault("request %u: is carried out again", request->number);
    }
    if (failed_in_step == request->step) {
        fault("request %u: is carried out, but its step failed", request->number);
    }
    return request;
}

void request_abandoned(struct request *request)
{
    if (load_relaxed(&request->pending) == 0) {
        fault("request %u: is abandoned, but not pending", request->number);
    }
    if (fetch_add_relaxed(&request->abandoned, 1) != 0) {
        fault("request %u: is abandoned again", request->number);
    }
}

/* ---- the end ---- */

/* A handler that has left a request pending has completed it, or was told that it need not. What
 * the simulator completes later is not counted. */
static void check_pending(struct request *request)
{
    const uint32_t ends =
        load_relaxed(&request->completed) + load_relaxed(&request->abandoned); /* see property.h */
    const bool is_simulated = request->kind == REQUEST_LATER && in_simulator();
    if (load_relaxed(&request->pending) != 0 && ends != 1 && !(is_simulated && ends == 0)) {
        fault("request %u: was pending, and is completed or abandoned %u times", request->number,
              ends);
    }
}

/* What a process yields in its last step is carried out, if that step did not fail. */
static void check_last_step(struct request *request)
{
    const struct actor *actor = request->actor;
    const bool is_certain = request->is_accepted && actor->has_finished && actor->exit_error == 0 &&
                            request->kind < REQUEST_UNKNOWN && request->expected == 0 &&
                            request->deadline == SKUA_FOREVER &&
                            world.program.faults.handler_error == 0;
    /* On a pool that is never full; if it was yielded in an earlier step, it may be dropped. */
    const bool is_last =
        request->is_accepted && actor->has_finished && request->kind == REQUEST_BLOCKING &&
        request->step == load_relaxed(&request->actor->steps) &&
        world.program.faults.handler_error == 0 && world.program.faults.no_memory == 0;
    if ((is_certain || is_last) && load_relaxed(&request->handled) != 1) {
        fault("request %u: was never carried out", request->number);
    }
}

void requests_check(void)
{
    const uint32_t asked = load_relaxed(&requests_made);
    for (uint32_t i = 0; i < asked && i < REQUESTS_MAX; i++) {
        struct request *request = &requests[i];
        if (load_relaxed(&request->handled) > 1) {
            fault("request %u: was carried out more than once", i);
        }
        if (load_relaxed(&request->completed) > 1) {
            fault("request %u: more than one completion was accepted", i);
        }
        check_last_step(request);
        check_pending(request);
    }
}
