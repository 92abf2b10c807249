/* SPDX-License-Identifier: MIT */
#include "relations.h"

/* ---- worlds ---- */

void world_open_driver(uint64_t driver)
{
    if (driver == 1) {
        world_open_virtual();
    } else {
        world_open_sim(driver, SIM_NO_FAULTS);
    }
}

/* ---- processes ---- */

struct actor *server_new(struct script script)
{
    struct actor *actor = actor_new(script);
    actor->type.name = "server";
    actor->type.calls = true;
    return actor;
}

struct actor *server_start(struct script script)
{
    struct actor *actor = server_new(script);
    actor_submit(actor);
    return actor;
}

struct actor *careful_server_new(struct script script)
{
    struct actor *actor = server_new(script);
    actor->type.name = "careful server";
    actor->type.abandons = true;
    return actor;
}

struct actor *careful_server_start(struct script script)
{
    struct actor *actor = careful_server_new(script);
    actor_submit(actor);
    return actor;
}

struct actor *stranger(skua_pid pid)
{
    struct actor *actor = actor_new(NO_ACTS);
    actor->pid = pid;
    return actor;
}

struct actor *nobody(void)
{
    return stranger((skua_pid){0});
}

struct actor *ended_actor(void)
{
    struct actor *actor = server_new(ACTS(finishes(0)));
    assert_result(actor_run(actor), 0);
    return actor;
}

/* PIDs carry a number of their runtime. */
struct actor *foreigner(void)
{
    struct api other;
    api_run(&other, 1);
    const skua_pid pid = api_submit(&other, &api_idler, NULL);
    api_stop(&other);
    return stranger(pid);
}

void assert_ended(struct actor *actor, int error)
{
    tally_wait(&actor->closed, actor->inits);
    assert_int_equal(actor->exit_error, error);
}

void assert_ended_because_of(struct actor *actor, int error, const struct actor *cause)
{
    assert_ended(actor, error);
    assert_int_equal(actor->exit_cause.bits, cause->pid.bits);
}

/* ---- what an actor has seen ---- */

struct seen request(uint64_t value)
{
    return (struct seen){.type = SKUA_EVENT_CALL, .value = value};
}

struct seen abandoned(void)
{
    return (struct seen){.type = SKUA_EVENT_ABANDON};
}

struct seen peer_ended(uint64_t tag, int exit_error)
{
    struct seen seen = completion_of(tag, 0, (uint64_t)(int64_t)exit_error);
    seen.error = SKUA_E_PEER_ENDED;
    return seen;
}

struct seen end_of(uint64_t tag, const struct actor *actor, int exit_error)
{
    struct seen seen = completion_of(tag, 0, actor->pid.bits);
    seen.error = exit_error;
    return seen;
}

struct seen exit_of(uint64_t tag, const struct actor *cause, int exit_error)
{
    return (struct seen){.type = SKUA_EVENT_EXIT,
                         .tag = tag,
                         .error = exit_error,
                         .value = cause != NULL ? cause->pid.bits : 0};
}

/* ---- calls ---- */

static skua_payload payload_of(const struct act *act)
{
    return act->item != NULL ? tracked_payload(0, act->item) : skua_payload_u64(0, act->number);
}

static int ask(struct turn *turn, const struct act *act)
{
    return skua_yield_call(turn->ctx, act->tag, act->peer->pid, payload_of(act),
                           act_timeout(turn, act));
}

struct act asks(uint64_t tag, struct actor *to, uint64_t number)
{
    return (struct act){.perform = ask, .tag = tag, .peer = to, .number = number};
}

struct act asks_item(uint64_t tag, struct actor *to, struct tracked *item)
{
    return (struct act){.perform = ask, .tag = tag, .peer = to, .item = item};
}

/* The token of the n-th request; zero if there were fewer. */
static skua_request nth_request(const struct actor *actor, uint64_t nth)
{
    uint64_t before = 0;
    for (size_t i = 0; i < actor->seen_count; i++) {
        if (actor->seen[i].type == SKUA_EVENT_CALL && before++ == nth) {
            return actor->seen[i].request;
        }
    }
    return (skua_request){0};
}

static int ask_for(struct turn *turn, const struct act *act)
{
    return skua_yield_call_for(turn->ctx, act->tag, nth_request(turn->actor, act->command),
                               act->peer->pid, payload_of(act), act_timeout(turn, act));
}

struct act asks_for(uint64_t nth, uint64_t tag, struct actor *to, uint64_t number)
{
    return (struct act){
        .perform = ask_for, .command = (uint32_t)nth, .tag = tag, .peer = to, .number = number};
}

static int answer(struct turn *turn, const struct act *act)
{
    const skua_request request =
        act->arg != NULL ? *(const skua_request *)act->arg : nth_request(turn->actor, act->command);
    const int error = (int)act->tag;
    return skua_reply(turn->ctx, request, error,
                      error != 0 ? skua_payload_empty(0) : payload_of(act));
}

struct act answers(uint64_t nth, uint64_t number)
{
    return (struct act){.perform = answer, .command = (uint32_t)nth, .number = number};
}

struct act answers_item(uint64_t nth, struct tracked *item)
{
    return (struct act){.perform = answer, .command = (uint32_t)nth, .item = item};
}

struct act answers_error(uint64_t nth, int error)
{
    return (struct act){
        .perform = answer, .command = (uint32_t)nth, .tag = (uint64_t)(int64_t)error};
}

struct act answers_token(const skua_request *token)
{
    return (struct act){.perform = answer, .arg = (void *)(uintptr_t)token};
}

static int pass_request_on(struct turn *turn, const struct act *act)
{
    return skua_forward(turn->ctx, nth_request(turn->actor, act->command), act->peer->pid,
                        payload_of(act));
}

struct act forwards(uint64_t nth, struct actor *to, uint64_t number)
{
    return (struct act){
        .perform = pass_request_on, .command = (uint32_t)nth, .peer = to, .number = number};
}

static int check_deadline(struct turn *turn, const struct act *act)
{
    const uint64_t deadline =
        skua_request_deadline(turn->ctx, nth_request(turn->actor, act->command));
    const bool is_exact = act->number == 0 || act->number == SKUA_FOREVER;
    const uint64_t slack = is_exact ? 0 : 100 * SKUA_MICROSECOND;
    if (deadline > act->number || deadline < act->number - slack) {
        actor_surprise(turn->actor, "the deadline is %llu, not %llu", (unsigned long long)deadline,
                       (unsigned long long)act->number);
    }
    return 0;
}

struct act checks_deadline(uint64_t nth, uint64_t instant)
{
    return (struct act){.perform = check_deadline, .command = (uint32_t)nth, .number = instant};
}

static int answer_all(struct turn *turn, const struct act *act)
{
    (void)act;
    for (size_t i = 0; i < turn->count; i++) {
        const skua_event *event = &turn->events[i];
        if (event->type == SKUA_EVENT_CALL) {
            const uint64_t number = skua_payload_to_u64(&event->payload);
            (void)skua_reply(turn->ctx, event->request, 0, skua_payload_u64(0, number + 1));
        }
    }
    return ACT_WAITS;
}

struct act answers_all(void)
{
    return (struct act){.perform = answer_all};
}

/* ---- monitors and links ---- */

static int monitor(struct turn *turn, const struct act *act)
{
    return skua_yield_monitor(turn->ctx, act->tag, act->peer->pid, act_timeout(turn, act));
}

struct act monitors(uint64_t tag, struct actor *of)
{
    return (struct act){.perform = monitor, .tag = tag, .peer = of};
}

static int join(struct turn *turn, const struct act *act)
{
    return skua_yield_join(turn->ctx, act->tag, act->peer->pid, act_timeout(turn, act));
}

struct act joins(uint64_t tag, struct actor *of)
{
    return (struct act){.perform = join, .tag = tag, .peer = of};
}

static int link_to(struct turn *turn, const struct act *act)
{
    return skua_link(turn->ctx, act->peer->pid, act->command, act->tag, act->arg);
}

struct act links(struct actor *to, uint32_t flags, uint64_t tag, skua_link_id *link)
{
    return (struct act){.perform = link_to, .peer = to, .command = flags, .tag = tag, .arg = link};
}

static int unlink_from(struct turn *turn, const struct act *act)
{
    return skua_unlink(turn->ctx, *(const skua_link_id *)act->arg);
}

struct act unlinks(const skua_link_id *link)
{
    return (struct act){.perform = unlink_from, .arg = (void *)(uintptr_t)link};
}

static int spawn_with(struct turn *turn, const struct act *act)
{
    skua_spawn_options options = *(const skua_spawn_options *)act->arg;
    skua_payload input = api_world_payload(act->peer);
    skua_pid pid = {0};
    options.type = &act->peer->type;
    options.input = &input;
    options.input_count = 1;
    const int error = skua_spawn_with(turn->ctx, &options, &pid);
    actor_check_start(act->peer, error, pid);
    return error;
}

struct act spawns_with(struct actor *actor, skua_spawn_options options)
{
    skua_spawn_options *copy = test_alloc(sizeof *copy);
    *copy = options;
    return (struct act){.perform = spawn_with, .peer = actor, .arg = copy};
}

static int terminate(struct turn *turn, const struct act *act)
{
    return skua_terminate(turn->ctx, act->peer->pid);
}

struct act terminates(struct actor *other)
{
    return (struct act){.perform = terminate, .peer = other};
}

static int cancel_process(struct turn *turn, const struct act *act)
{
    return skua_cancel(turn->ctx, act->peer->pid, (int)act->tag);
}

struct act cancels_process(struct actor *other, int reason)
{
    return (struct act){.perform = cancel_process, .peer = other, .tag = (uint64_t)(int64_t)reason};
}
