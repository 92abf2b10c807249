/* SPDX-License-Identifier: MIT */
/* What processes and threads outside do to processes. */
#include "property.h"

#define TRIES     3
#define FLOOD_MAX 24

static bool has_ended(struct actor *actor)
{
    return load_relaxed(&actor->exits) != 0; /* see property.h */
}

/* Itself now and then, otherwise anybody, sooner one that is alive; null if he has no PID yet. */
static struct actor *choose(struct agent *agent)
{
    const uint32_t made = actor_count();
    const bool itself = chance(&agent->random, 15);
    if (agent->actor != NULL && itself) {
        return agent->actor;
    }
    struct actor *anybody = NULL;
    for (uint32_t i = 0; i < TRIES && made > 0 && (anybody == NULL || has_ended(anybody)); i++) {
        anybody = actor_at(draw(&agent->random, made));
    }
    return anybody != NULL && !skua_pid_is_none(actor_pid(anybody)) ? anybody : NULL;
}

static bool is_published(struct actor *actor)
{
    return load_relaxed(&actor->is_published) != 0; /* see property.h */
}

/* What has ended cannot be reached any more. */
static void expect_refusal(const struct actor *to, int error, bool is_over)
{
    if (is_over && error == 0) {
        fault("process %u: has ended, but can still be reached", to->number);
    }
}

static int send_urgent(const struct agent *agent, skua_pid to, skua_payload payload)
{
    return agent->ctx != NULL ? skua_send_urgent(agent->ctx, to, payload)
                              : skua_process_send_urgent(world.runtime, to, payload);
}

static int send(const struct agent *agent, skua_pid to, skua_payload payload)
{
    return agent->ctx != NULL ? skua_send(agent->ctx, to, payload)
                              : skua_process_send(world.runtime, to, payload);
}

/* A message may end the receiver. */
static uint32_t can_end(struct actor *to)
{
    return load_relaxed(&to->overflow) == SKUA_OVERFLOW_END; /* see property.h */
}

static void threaten(struct actor *to)
{
    (void)fetch_add_relaxed(&to->dooms, can_end(to)); /* see property.h */
}

static void spare(struct actor *to, int error)
{
    if (error != SKUA_E_MAILBOX_FULL) {
        (void)fetch_sub_relaxed(&to->dooms, can_end(to)); /* see property.h */
    }
}

static void send_too_large(struct agent *agent, struct actor *to)
{
    const skua_payload payload = letter_too_large(&agent->random);
    const int error = send(agent, actor_pid(to), payload);
    if (error != SKUA_E_PAYLOAD_SIZE) {
        fault("a payload that is too large: %s", skua_error_name(error));
    }
}

static void send_to(struct agent *agent, struct actor *to)
{
    if (chance(&agent->random, 3)) {
        send_too_large(agent, to);
        return;
    }
    const bool is_urgent = load_relaxed(&to->takes_urgent) != 0 && /* see property.h */
                           chance(&agent->random, 20);
    const uint32_t number = message_new(agent, to, is_urgent ? WAY_URGENT : WAY_PLAIN);
    if (number == NONE) {
        return;
    }
    const bool must_arrive = is_published(to);
    const bool is_over = has_ended(to);
    const bool allocates = chance(&agent->random, 15) && agent->ctx != NULL;
    const skua_payload payload =
        allocates ? letter_alloc(agent->ctx, LETTER_MESSAGE, number, &agent->random)
                  : letter_wrap(LETTER_MESSAGE, number, &agent->random);
    threaten(to);
    const int error = (is_urgent ? send_urgent : send)(agent, actor_pid(to), payload);
    spare(to, error);
    message_sent(number, error, must_arrive);
    expect_refusal(to, error, is_over);
}

void act_send(struct agent *agent)
{
    struct actor *to = choose(agent);
    if (to != NULL) {
        send_to(agent, to);
    }
}

/* So many that the receiver may be crowded, and a sender that continues held back. */
void act_flood(struct agent *agent)
{
    struct actor *to = choose(agent);
    const uint32_t count = 5 + draw(&agent->random, FLOOD_MAX - 4);
    for (uint32_t i = 0; i < count && to != NULL; i++) {
        send_to(agent, to);
    }
}

void act_yield_send(struct agent *agent)
{
    struct actor *to = choose(agent);
    struct request *request =
        to != NULL ? request_begin(agent->actor, REQUEST_SEND, &agent->random) : NULL;
    const uint32_t number = request != NULL ? message_new(agent, to, WAY_YIELD) : NONE;
    if (number == NONE) {
        return;
    }
    const uint64_t moments = draw(&agent->random, 6);
    const uint64_t timeout =
        chance(&agent->random, 40) ? moments * world.program.moment_ns : SKUA_FOREVER;
    request->message = number;
    const skua_payload payload = letter_wrap(LETTER_MESSAGE, number, &agent->random);
    const int error = skua_yield_send(agent->ctx, request->tag, actor_pid(to), payload, timeout);
    message_yielded(number, error == 0);
    request_begun(request, agent->ctx, timeout, error);
    if (error != 0 && !may_lack_memory(error)) {
        fault("process %u: yielding a message: %s", agent->actor->number, skua_error_name(error));
    }
}

/* A process may do it by its context or, as a thread, by the runtime. */
static bool uses_context(struct agent *agent)
{
    return chance(&agent->random, 50) && agent->ctx != NULL;
}

void act_cancel(struct agent *agent)
{
    struct actor *to = choose(agent);
    const uint32_t number = to != NULL ? cancel_new(to) : NONE;
    if (number == NONE) {
        return;
    }
    const bool must_arrive = is_published(to);
    const bool is_over = has_ended(to);
    const int reason = ERROR_CANCEL - (int)number;
    const skua_pid pid = actor_pid(to);
    const uint32_t ends = load_relaxed(&to->is_mortal); /* see property.h */
    (void)fetch_add_relaxed(&to->dooms, ends);          /* see property.h */
    const int error = uses_context(agent) ? skua_cancel(agent->ctx, pid, reason)
                                          : skua_process_cancel(world.runtime, pid, reason);
    if (error != 0) {
        (void)fetch_sub_relaxed(&to->dooms, ends); /* see property.h */
    }
    cancel_sent(number, error, must_arrive);
    expect_refusal(to, error, is_over);
}

void act_terminate(struct agent *agent)
{
    struct actor *to = choose(agent);
    if (to == NULL) {
        return;
    }
    const bool must_be_there = is_published(to);
    const bool is_over = has_ended(to);
    (void)fetch_add_relaxed(&to->kills, 1); /* see property.h */
    const skua_pid pid = actor_pid(to);
    const int error = uses_context(agent) ? skua_terminate(agent->ctx, pid)
                                          : skua_process_terminate(world.runtime, pid);
    expect_refusal(to, error, is_over);
    if (error == 0) {
        (void)fetch_add_relaxed(&to->killed, 1); /* see property.h */
        return;
    }
    (void)fetch_sub_relaxed(&to->kills, 1); /* see property.h */
    if (error != SKUA_E_NO_PROCESS || (must_be_there && !actor_may_have_ended(to))) {
        fault("terminating process %u: %s", to->number, skua_error_name(error));
    }
}

void act_look(struct agent *agent)
{
    struct actor *at = choose(agent);
    if (at == NULL) {
        return;
    }
    const bool must_be_there = is_published(at);
    const bool is_over = has_ended(at);
    skua_process_snapshot info;
    const int error = skua_process_info(world.runtime, actor_pid(at), &info);
    expect_refusal(at, error, is_over);
    if (error != 0) {
        if (error != SKUA_E_NO_PROCESS || (must_be_there && !actor_may_have_ended(at))) {
            fault("looking at process %u: %s", at->number, skua_error_name(error));
        }
        return;
    }
    if (!skua_pid_equal(info.pid, actor_pid(at))) {
        fault("looking at process %u shows another", at->number);
    }
    if (at == agent->actor && info.state != SKUA_PROCESS_RUNNING) {
        fault("process %u: runs, but is %s", at->number, skua_process_state_name(info.state));
    }
}

/* ---- starting ---- */

/* The second input is there for init to keep, or to leave. */
#define INPUTS 2

struct birth {
    struct actor *actor;
    skua_spawn_options options;
    skua_payload input[INPUTS];
};

/* False if there are enough actors. */
static bool conceive(struct agent *agent, struct birth *birth)
{
    const uint64_t key = agent->actor != NULL
                             ? random_mix(agent->actor->key + ++agent->actor->children)
                             : random_next(&agent->random);
    struct actor *actor = actor_new(key);
    if (actor == NULL) {
        return false;
    }
    birth->actor = actor;
    birth->options = (skua_spawn_options){
        .type = &script_types[actor->type],
        .method = actor->method_is_wrong ? "nonsense" : NULL,
        .input = birth->input,
        .input_count = INPUTS,
    };
    for (uint32_t i = 0; i < INPUTS; i++) {
        birth->input[i] = letter_wrap(LETTER_SPAWN, actor->number, &agent->random);
    }
    return true;
}

/* In the simulator, on another host. */
static int submit_elsewhere(struct agent *agent, struct birth *birth, skua_pid *pid)
{
    const uint32_t host = 2 + draw(&agent->random, HOSTS - 1);
    skua_payload_drop(&birth->input[1]);
    return skua_sim_host_submit(world.runtime, host, birth->options.type, birth->input[0], pid);
}

void act_spawn(struct agent *agent)
{
    struct birth birth;
    skua_pid pid = {0};
    int error;
    if (!conceive(agent, &birth)) {
        return;
    }
    const bool leaves = chance(&agent->random, 60) && in_simulator() && agent->ctx == NULL &&
                        world.program.uses_sockets && !birth.actor->method_is_wrong;
    if (leaves) {
        error = submit_elsewhere(agent, &birth, &pid);
    } else if (agent->ctx != NULL) {
        error = skua_spawn_with(agent->ctx, &birth.options, &pid);
    } else {
        error = skua_process_submit_with(world.runtime, &birth.options, &pid);
    }
    actor_spawned(birth.actor, error, pid);
}

/* ---- passing sockets on ---- */

static void set_adrift(struct wire *wire, bool is_adrift)
{
    store_relaxed(&wire->is_adrift, is_adrift); /* see property.h */
}

bool act_spawn_owner(struct agent *agent, struct wire *wire)
{
    struct birth birth;
    skua_pid pid = {0};
    if (!conceive(agent, &birth)) {
        return false;
    }
    birth.actor->heirloom = wire;
    birth.options.socket = wire->socket;
    set_adrift(wire, true);
    const int error = skua_spawn_with(agent->ctx, &birth.options, &pid);
    if (error != 0) {
        set_adrift(wire, false);
    }
    actor_spawned(birth.actor, error, pid);
    return error == 0;
}

static void tell_new_owner(struct agent *agent, struct actor *to, struct wire *wire,
                           bool must_arrive)
{
    const uint32_t number = message_new(agent, to, WAY_PLAIN);
    if (number != NONE) {
        message_load(number, wire);
        const skua_payload letter = letter_wrap(LETTER_MESSAGE, number, &agent->random);
        threaten(to);
        const int error = send(agent, actor_pid(to), letter);
        spare(to, error);
        message_sent(number, error, must_arrive);
    }
}

/* It may still have something to write, of which no completion tells. */
static bool may_stay(struct actor *to, struct wire *wire, int error, bool must_be_there)
{
    switch (error) {
    case SKUA_E_NO_PROCESS:
        return !must_be_there || actor_may_have_ended(to);
    case SKUA_E_SOCKET_BUSY:
        return load_relaxed(&wire->written) > 0; /* see property.h */
    default:
        return may_lack_memory(error);
    }
}

bool act_give(struct agent *agent, struct wire *wire)
{
    struct actor *to = choose(agent);
    if (to == NULL || to == agent->actor) {
        return false;
    }
    const bool must_be_there = is_published(to);
    set_adrift(wire, true);
    const int error = skua_socket_give(agent->ctx, wire->socket, actor_pid(to));
    if (error == 0) {
        tell_new_owner(agent, to, wire, must_be_there);
        return true;
    }
    set_adrift(wire, false);
    if (!may_stay(to, wire, error, must_be_there)) {
        fault("giving wire %u to process %u: %s", wire->number, to->number, skua_error_name(error));
    }
    return false;
}

/* ---- waiting ---- */

static void check_exit(struct actor *actor, skua_exit *exit)
{
    if (!skua_pid_equal(exit->pid, actor_pid(actor)) || load_relaxed(&actor->closes) != 1) {
        fault("process %u: waiting for its end brought something else", actor->number);
    }
    struct letter letter;
    if (letter_read(&exit->result, LETTER_EXIT, &letter) && letter.number != actor->number) {
        fault("process %u: waiting for it brought the result of another", actor->number);
    }
    skua_payload_drop(&exit->result);
}

void act_wait(struct agent *agent)
{
    struct actor *actor = choose(agent);
    if (actor == NULL) {
        return;
    }
    const bool must_be_there = is_published(actor);
    const uint64_t timeout = draw(&agent->random, 4) * world.program.moment_ns;
    skua_exit exit;
    const int error = skua_process_wait(world.runtime, actor_pid(actor), timeout, &exit);
    if (error == 0) {
        check_exit(actor, &exit);
    } else if (error != SKUA_E_TIMEOUT &&
               (error != SKUA_E_NO_PROCESS || (must_be_there && !actor_may_have_ended(actor)))) {
        fault("waiting for process %u: %s", actor->number, skua_error_name(error));
    }
}

void act_run(struct agent *agent)
{
    struct birth birth;
    if (!conceive(agent, &birth)) {
        return;
    }
    birth.actor->is_hasty = true;
    skua_exit exit;
    const int error = skua_process_run_with(world.runtime, &birth.options, &exit);
    actor_spawned(birth.actor, error, actor_pid(birth.actor));
    if (error == 0) {
        check_exit(birth.actor, &exit);
    }
}
