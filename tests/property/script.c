/* SPDX-License-Identifier: MIT */
/* The processes of the programs. What one does depends on its key and the number of its step, who
 * it does it to also on who is there. */
#include "property.h"

#define ACTIONS_MAX   5
#define NARROW_LIMIT  2
#define CANARIES      40
#define CANARY_OF(at) (UINT64_C(0xca4a) << 32 | (at))

struct script {
    struct actor *actor;
    skua_payload kept; /* taken out of an input or a message, dropped by close */
};

/* Too large for the record of a process. */
struct large_script {
    struct script script;
    uint64_t canaries[CANARIES];
};

static bool has_canaries(const struct script *script)
{
    return script->actor->type == TYPE_LARGE;
}

static void set_canaries(struct script *script)
{
    if (has_canaries(script)) {
        struct large_script *large = (struct large_script *)script;
        for (uint32_t i = 0; i < CANARIES; i++) {
            if (large->canaries[i] != 0) {
                fault("process %u: its state is not zeroed", script->actor->number);
            }
            large->canaries[i] = CANARY_OF(i);
        }
    }
}

static void check_canaries(const struct script *script)
{
    if (has_canaries(script)) {
        const struct large_script *large = (const struct large_script *)script;
        for (uint32_t i = 0; i < CANARIES; i++) {
            if (large->canaries[i] != CANARY_OF(i)) {
                fault("process %u: its state has been overwritten", script->actor->number);
            }
        }
    }
}

/* Keeps a payload in place of the one that it had. */
static void keep(struct script *script, skua_payload *payload)
{
    skua_payload_drop(&script->kept);
    script->kept = skua_payload_take(payload);
}

/* The chance of one step; step 0 is init. */
static struct agent agent_of(struct actor *actor, skua_context *ctx)
{
    const uint32_t step = load_relaxed(&actor->steps); /* its own */
    return (struct agent){
        .ctx = ctx,
        .actor = actor,
        .sender = actor->number,
        .random = random_mix(actor->key ^ random_mix(step)),
    };
}

/* ---- init and close ---- */

static int init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                size_t input_count)
{
    struct script *script = self;
    struct letter letter;
    (void)method;
    if (input_count == 0 || !letter_read(&input[0], LETTER_SPAWN, &letter)) {
        fault("an init without its input");
        return ERROR_INIT;
    }
    struct actor *actor = actor_at(letter.number);
    script->actor = actor;
    actor_initialise(actor, skua_context_self(ctx));
    set_canaries(script);
    struct agent agent = agent_of(actor, ctx);
    if (chance(&agent.random, 30)) {
        keep(script, &input[1]);
    }
    if (chance(&agent.random, 30)) {
        act_send(&agent);
    }
    if (chance(&agent.random, 5)) {
        act_spawn(&agent);
    }
    return actor->fails_in_init ? ERROR_INIT : 0;
}

static void close(void *self)
{
    struct script *script = self;
    if (script->actor == NULL) {
        return; /* init has said what is wrong */
    }
    check_canaries(script);
    actor_closes(script->actor);
    skua_payload_drop(&script->kept);
}

/* ---- a step ---- */

struct scene {
    struct script *script;
    struct actor *actor;
    skua_context *ctx;
    skua_step *out;
    struct agent agent;
    bool is_cancelled;
};

static void see_event(struct scene *scene, skua_event *event)
{
    switch (event->type) {
    case SKUA_EVENT_MESSAGE:
        message_seen(scene->actor, event);
        if (chance(&scene->agent.random, 20)) {
            keep(scene->script, &event->payload);
        }
        break;
    case SKUA_EVENT_COMPLETION:
        request_completed(scene->actor, scene->ctx, event);
        break;
    case SKUA_EVENT_CANCEL:
        cancel_seen(scene->actor, event);
        scene->is_cancelled = true;
        break;
    case SKUA_EVENT_TICK:
        request_ticked(scene->actor, event, scene->out);
        break;
    default:
        fault("process %u: an event of type %u", scene->actor->number, event->type);
        break;
    }
}

/* Announces a blocking call that is none. */
static void pretend_to_block(skua_context *ctx)
{
    const int begun = skua_blocking_begin(ctx);
    const int ended = skua_blocking_end(ctx);
    if (begun != 0 || ended != 0) {
        fault("announcing a blocking call: %s, %s", skua_error_name(begun), skua_error_name(ended));
    }
}

static void use_memory(struct scene *scene)
{
    const size_t size = 1 + skua_context_random(scene->ctx) % 2000;
    void *memory = skua_context_alloc(scene->ctx, size);
    if (memory == NULL && world.program.faults.no_memory == 0) {
        fault("process %u: no memory", scene->actor->number);
    }
    skua_context_free(scene->ctx, memory, size);
}

static void act(struct scene *scene)
{
    struct agent *agent = &scene->agent;
    const uint32_t what = draw(&agent->random, 100);
    if (what < 40) {
        act_send(agent);
    } else if (what < 48) {
        act_spawn(agent);
    } else if (what < 78) {
        request_make(scene->actor, scene->ctx, scene->out, &agent->random);
    } else if (what < 80) {
        request_limit(scene->actor, scene->ctx, scene->out, &agent->random);
    } else if (what < 87) {
        request_take_back(scene->actor, scene->out, &agent->random);
    } else if (what < 90) {
        act_cancel(agent);
    } else if (what < 91) {
        act_terminate(agent);
    } else if (what < 96) {
        act_look(agent);
    } else if (what < 99) {
        use_memory(scene);
    } else {
        pretend_to_block(scene->ctx);
    }
}

static void finish(struct scene *scene)
{
    struct actor *actor = scene->actor;
    actor->has_finished = true;
    store_relaxed(&actor->is_ending, 1); /* see property.h */
    skua_step_done(scene->out, letter_wrap(LETTER_EXIT, actor->number, &scene->agent.random));
}

static int fail(struct scene *scene)
{
    struct actor *actor = scene->actor;
    const uint32_t number = load_relaxed(&actor->steps); /* its own */
    store_relaxed(&actor->failed_in_step, number);       /* see property.h, as for the next */
    store_relaxed(&actor->is_ending, 1);
    return ERROR_STEP;
}

/* What a process that goes on does next. */
static void choose_status(struct scene *scene)
{
    struct actor *actor = scene->actor;
    const uint32_t status = actor->is_hasty ? 0 : draw(&scene->agent.random, 5);
    bool waits = false;
    if (status <= 1) {
        skua_step_continue(scene->out);
        actor->continues = true;
    } else if (status == 2) {
        skua_step_idle(scene->out);
    } else if (status == 3) {
        skua_step_wait(scene->out);
        waits = true;
    } else {
        waits = actor->yields > 0; /* as nothing else is said */
    }
    store_relaxed(&actor->blocks, waits && actor->open_count > 0); /* see property.h */
}

static int go_on(struct scene *scene)
{
    struct actor *actor = scene->actor;
    const bool is_over = load_relaxed(&actor->steps) > actor->plan; /* its own */
    const bool lingers = actor->finale == FINALE_LINGER && !actor->is_hasty;
    const bool rests = is_over && lingers; /* or the program would never come to rest */
    const uint32_t actions = rests ? 0 : draw(&scene->agent.random, ACTIONS_MAX + 1);
    for (uint32_t i = 0; i < actions; i++) {
        act(scene);
    }
    if (scene->is_cancelled && actor->obeys) {
        finish(scene);
        return 0;
    }
    if (!is_over) {
        choose_status(scene);
        return 0;
    }
    if (actor->finale == FINALE_FAIL) {
        return fail(scene);
    }
    if (!lingers) {
        finish(scene);
        return 0;
    }
    store_relaxed(&actor->blocks, actor->yields > 0 && actor->open_count > 0); /* see property.h */
    return 0;
}

static int step(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    struct script *script = self;
    struct actor *actor = script->actor;
    actor_step_begins(actor, skua_context_self(ctx), count);
    check_canaries(script);
    actor->yields = 0;
    actor->last_request = NULL;
    struct scene scene = {
        .script = script,
        .actor = actor,
        .ctx = ctx,
        .out = out,
        .agent = agent_of(actor, ctx),
    };
    for (size_t i = 0; i < count; i++) {
        see_event(&scene, &events[i]);
    }
    const int error = go_on(&scene);
    actor_step_ends(actor);
    return error;
}

#define SCRIPT_FUNCTIONS .init = init, .step = step, .close = close

const skua_process_type script_types[TYPES] = {
    [TYPE_SMALL] = {.name = "small", .state_size = sizeof(struct script), SCRIPT_FUNCTIONS},
    [TYPE_LARGE] = {.name = "large", .state_size = sizeof(struct large_script), SCRIPT_FUNCTIONS},
    [TYPE_NARROW] = {.name = "narrow",
                     .state_size = sizeof(struct script),
                     .mailbox_limit = NARROW_LIMIT,
                     SCRIPT_FUNCTIONS},
};
