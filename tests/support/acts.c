/* SPDX-License-Identifier: MIT */
/* What actors can do: the one place that knows how a step talks to the runtime. */
#include "actor.h"

struct act refused(struct act act, int error)
{
    act.returns = error;
    return act;
}

struct act does(act_fn *function, void *arg)
{
    return (struct act){.perform = function, .arg = arg};
}

static int call_function(struct turn *turn, const struct act *act)
{
    (void)turn;
    return act->call(act->arg);
}

struct act calls(int (*function)(void *arg), void *arg)
{
    return (struct act){.perform = call_function, .call = function, .arg = arg};
}

uint64_t turn_now(const struct turn *turn)
{
    return skua_now(turn->ctx);
}

bool turn_starts(const struct turn *turn)
{
    return turn->events[0].type == SKUA_EVENT_START;
}

int perform(struct turn *turn, struct act act)
{
    return act.perform(turn, &act);
}

struct act with_payload(struct act act, skua_payload payload)
{
    skua_payload *copy = test_alloc(sizeof *copy);
    *copy = payload;
    act.payload = copy;
    return act;
}

static int expect(struct turn *turn, const struct act *act)
{
    struct actor *actor = turn->actor;
    if (actor->read == actor->seen_count) {
        return ACT_WAITS;
    }
    const struct seen *seen = &actor->seen[actor->read];
    if (!seen_matches(seen, &act->expected)) {
        actor_surprise(actor, "event %zu is %s, not %s", actor->read, seen_describe(seen).text,
                       seen_describe(&act->expected).text);
        if (seen->type == SKUA_EVENT_CANCEL) {
            return ACT_WAITS; /* and the cancel ends it */
        }
    }
    actor->read++;
    return 0;
}

struct act expects(struct seen event)
{
    return (struct act){.perform = expect, .expected = event};
}

static int await(struct turn *turn, const struct act *act)
{
    struct actor *actor = turn->actor;
    if (actor->seen_count - actor->read < act->number) {
        return ACT_WAITS;
    }
    actor->read += act->number;
    return 0;
}

struct act awaits(uint64_t events)
{
    return (struct act){.perform = await, .number = events};
}

static int continue_steps(struct turn *turn, const struct act *act)
{
    if (turn->actor->counter == act->number) {
        return 0;
    }
    turn->actor->counter++;
    skua_continue(turn->ctx);
    return ACT_WAITS;
}

struct act continues(uint64_t steps)
{
    return (struct act){.perform = continue_steps, .number = steps};
}

static int repeat(struct turn *turn, const struct act *act)
{
    struct actor *actor = turn->actor;
    if (actor->repeated == act->number) {
        actor->repeated = 0;
        return 0;
    }
    actor->repeated++;
    actor->position = 0;
    actor->counter = 0;
    return 0;
}

struct act repeats(uint64_t times)
{
    return (struct act){.perform = repeat, .number = times};
}

static int perform_for_each_tag(struct turn *turn, const struct act *act)
{
    struct act one = *(const struct act *)act->arg;
    for (uint64_t tag = 0; tag < act->number; tag++) {
        one.tag = tag;
        one.number = tag;
        const int error = one.perform(turn, &one);
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

struct act for_each_tag(uint64_t tags, struct act act)
{
    struct act *copy = test_alloc(sizeof *copy);
    *copy = act;
    return (struct act){.perform = perform_for_each_tag, .number = tags, .arg = copy};
}

static skua_payload payload_of(const struct act *act)
{
    if (act->payload != NULL) {
        return *act->payload;
    }
    return act->item != NULL ? tracked_payload(act->type, act->item)
                             : skua_payload_u64(act->type, act->number);
}

static int send_message(struct turn *turn, const struct act *act)
{
    return skua_send(turn->ctx, act->peer->pid, payload_of(act));
}

struct act sends(struct actor *to, uint32_t type, uint64_t number)
{
    return (struct act){.perform = send_message, .peer = to, .type = type, .number = number};
}

static int send_urgent(struct turn *turn, const struct act *act)
{
    return skua_send_urgent(turn->ctx, act->peer->pid, payload_of(act));
}

struct act sends_urgent(struct actor *to, uint32_t type, uint64_t number)
{
    return (struct act){.perform = send_urgent, .peer = to, .type = type, .number = number};
}

struct act sends_item(struct actor *to, uint32_t type, struct tracked *item)
{
    return (struct act){.perform = send_message, .peer = to, .type = type, .item = item};
}

static int reply(struct turn *turn, const struct act *act)
{
    const struct actor *actor = turn->actor;
    const skua_pid to = actor->read > 0 ? actor->seen[actor->read - 1].from : (skua_pid){0};
    return skua_send(turn->ctx, to, payload_of(act));
}

struct act replies(uint32_t type, uint64_t number)
{
    return (struct act){.perform = reply, .type = type, .number = number};
}

static int send_numbers(struct turn *turn, const struct act *act)
{
    int error = 0;
    for (uint64_t i = 0; i < act->number && error == 0; i++) {
        const skua_payload payload = skua_payload_u64(act->type, turn->actor->sent++);
        error = skua_send(turn->ctx, act->peer->pid, payload);
    }
    return error;
}

struct act sends_numbers(struct actor *to, uint32_t type, uint64_t count)
{
    return (struct act){.perform = send_numbers, .peer = to, .type = type, .number = count};
}

static int pass_on(struct turn *turn, const struct act *act)
{
    for (size_t i = 0; i < turn->count; i++) {
        skua_event *event = &turn->events[i];
        const int error =
            event->type != SKUA_EVENT_MESSAGE
                ? 0
                : skua_send(turn->ctx, act->peer->pid, skua_payload_take(&event->payload));
        if (error != 0) {
            return error;
        }
    }
    return ACT_WAITS;
}

struct act passes_on(struct actor *to)
{
    return (struct act){.perform = pass_on, .peer = to};
}

static int spawn(struct turn *turn, const struct act *act)
{
    skua_payload input = api_world_payload(act->peer);
    skua_pid pid = {0};
    const int error = skua_spawn(turn->ctx, &act->peer->type, input, &pid);
    actor_check_start(act->peer, error, pid);
    return error;
}

struct act spawns(struct actor *actor)
{
    return (struct act){.perform = spawn, .peer = actor};
}

uint64_t act_timeout(struct turn *turn, const struct act *act)
{
    if (act->until_ns != 0) {
        const uint64_t now = skua_now(turn->ctx);
        return act->until_ns > now ? act->until_ns - now : 0;
    }
    return act->has_timeout ? act->timeout_ns : SKUA_FOREVER;
}

struct act until(uint64_t instant_ns, struct act act)
{
    act.until_ns = instant_ns;
    return act;
}

struct act within(uint64_t timeout_ns, struct act act)
{
    act.has_timeout = true;
    act.timeout_ns = timeout_ns;
    return act;
}

static int yield_command(struct turn *turn, const struct act *act)
{
    return skua_yield(turn->ctx, act->tag, act->command, payload_of(act), act_timeout(turn, act));
}

struct act yields(uint64_t tag, uint32_t command, uint32_t type, uint64_t number)
{
    return (struct act){
        .perform = yield_command, .tag = tag, .command = command, .type = type, .number = number};
}

struct act yields_item(uint64_t tag, uint32_t command, uint32_t type, struct tracked *item)
{
    return (struct act){
        .perform = yield_command, .tag = tag, .command = command, .type = type, .item = item};
}

struct act waits_for(uint64_t tag, uint64_t source)
{
    return yields(tag, VIRTUAL_WAIT, 0, source);
}

static int yield_sleep(struct turn *turn, const struct act *act)
{
    return skua_yield_sleep(turn->ctx, act->tag, act->number);
}

struct act sleeps(uint64_t tag, uint64_t duration_ns)
{
    return (struct act){.perform = yield_sleep, .tag = tag, .number = duration_ns};
}

static int yield_timer(struct turn *turn, const struct act *act)
{
    return skua_yield_timer(turn->ctx, act->tag, act->number);
}

struct act timer(uint64_t tag, uint64_t deadline_ns)
{
    return (struct act){.perform = yield_timer, .tag = tag, .number = deadline_ns};
}

static int yield_ticker(struct turn *turn, const struct act *act)
{
    return skua_yield_ticker(turn->ctx, act->tag, act->number);
}

struct act ticker(uint64_t tag, uint64_t period_ns)
{
    return (struct act){.perform = yield_ticker, .tag = tag, .number = period_ns};
}

skua_pool act_pool(struct turn *turn, const char *name)
{
    skua_pool pool = {0};
    if (name != NULL && skua_blocking_find(skua_runtime_of(turn->ctx), name, &pool) != 0) {
        pool.number = UINT32_MAX;
    }
    return pool;
}

static int yield_blocking(struct turn *turn, const struct act *act)
{
    return skua_yield_blocking(turn->ctx, act->tag, act_pool(turn, act->pool), act->function,
                               payload_of(act), act_timeout(turn, act));
}

struct act offloads(uint64_t tag, const char *pool, skua_blocking_fn *function, uint64_t number)
{
    return (struct act){.perform = yield_blocking,
                        .tag = tag,
                        .pool = pool,
                        .function = function,
                        .number = number};
}

static int cancel_yields(struct turn *turn, const struct act *act)
{
    return skua_yield_cancel(turn->ctx, act->tag);
}

struct act cancels(uint64_t tag)
{
    return (struct act){.perform = cancel_yields, .tag = tag};
}

static int hold(struct turn *turn, const struct act *act)
{
    (void)act;
    actor_stay_held(turn->actor);
    return 0;
}

struct act holds(void)
{
    return (struct act){.perform = hold};
}

static int block(struct turn *turn, const struct act *act)
{
    const int error = skua_blocking_begin(turn->ctx);
    (void)hold(turn, act);
    return error != 0 ? error : skua_blocking_end(turn->ctx);
}

struct act blocks(void)
{
    return (struct act){.perform = block};
}

static int finish(struct turn *turn, const struct act *act)
{
    const int error = skua_done(turn->ctx, payload_of(act));
    turn->finished = true;
    return error;
}

struct act finishes(uint64_t number)
{
    return (struct act){.perform = finish, .number = number};
}

struct act finishes_with(uint32_t type, struct tracked *item)
{
    return (struct act){.perform = finish, .type = type, .item = item};
}

static int fail_step(struct turn *turn, const struct act *act)
{
    turn->error = (int)act->tag;
    turn->finished = true;
    return 0;
}

struct act fails(int error)
{
    return (struct act){.perform = fail_step, .tag = (uint64_t)(int64_t)error};
}

int keep_context(struct turn *turn, const struct act *act)
{
    *(skua_context **)act->arg = turn->ctx;
    return 0;
}
