/* SPDX-License-Identifier: MIT */
/* The processes of the programs. What one does depends on its key and the number of its step, who
 * it does it to also on who is there. */
#include <skua/task.h>

#include "property.h"

#define ACTIONS_MAX   5
#define NARROW_LIMIT  2
#define OWN_LIMIT     1000
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

/* Keeps one more payload of the same data, if there can be. */
static void keep_ref(struct script *script, const skua_payload *payload)
{
    const bool owns_alone =
        payload->storage == SKUA_PAYLOAD_POINTER ||
        (payload->storage == SKUA_PAYLOAD_OWNED && payload->as.owned.drop != NULL);
    skua_payload_drop(&script->kept);
    const int error = skua_payload_ref(payload, &script->kept);
    if (error != (owns_alone ? SKUA_E_NOT_SHARED : 0)) {
        fault("process %u: one more payload: %s", script->actor->number, skua_error_name(error));
    }
}

/* ---- memory of its own ---- */

static unsigned char own_filling(const struct actor *actor, size_t size)
{
    return (unsigned char)(actor->number + size);
}

static void check_own(const struct actor *actor)
{
    for (uint32_t i = 0; i < actor->own_count; i++) {
        const struct own_memory *own = &actor->own[i];
        for (size_t at = 0; at < own->size; at++) {
            if (own->bytes[at] != own_filling(actor, own->size)) {
                fault("process %u: its own memory has been overwritten", actor->number);
                return;
            }
        }
    }
}

static void free_own(struct actor *actor, skua_context *ctx, uint32_t at)
{
    struct own_memory *own = &actor->own[at];
    const int error = skua_own_free(ctx, own->bytes);
    if (error != 0) {
        fault("process %u: freeing its own memory: %s", actor->number, skua_error_name(error));
    }
    actor->own_bytes -= own->size;
    *own = actor->own[--actor->own_count];
}

static void alloc_own(struct actor *actor, skua_context *ctx, size_t size)
{
    const size_t limit = script_types[actor->type].own_limit;
    const bool fits = limit == 0 || actor->own_bytes + size <= limit;
    void *memory;
    const int error = skua_own_alloc(ctx, size, &memory);
    const bool may_fail = error == SKUA_E_NO_MEMORY && world.program.faults.no_memory > 0;
    if (error != (fits ? 0 : SKUA_E_OWN_LIMIT) && !may_fail) {
        fault("process %u: memory of its own: %s", actor->number, skua_error_name(error));
    }
    if (error != 0) {
        return;
    }
    struct own_memory *own = &actor->own[actor->own_count++];
    *own = (struct own_memory){memory, size};
    actor->own_bytes += size;
    for (size_t i = 0; i < size; i++) {
        if (own->bytes[i] != 0) {
            fault("process %u: its own memory is not zeroed", actor->number);
        }
        own->bytes[i] = own_filling(actor, size);
    }
}

static void use_own(struct actor *actor, skua_context *ctx, uint64_t *random)
{
    const size_t size = 1 + draw(random, 700);
    const bool frees = chance(random, 40);
    check_own(actor);
    if (actor->own_count == OWN_MAX || (actor->own_count > 0 && frees)) {
        free_own(actor, ctx, draw(random, actor->own_count));
    } else {
        alloc_own(actor, ctx, size);
    }
}

/* The chance of one step; step 0 is init. */
static struct agent agent_of(struct actor *actor, skua_context *ctx)
{
    const uint32_t step = load_relaxed(&actor->steps); /* its own */
    return (struct agent){
        .ctx = ctx,
        .actor = actor,
        .sender = actor->number,
        .step = step,
        .random = random_mix(actor->key ^ random_mix(step)),
    };
}

/* ---- init and close ---- */

static void expect_context_error(int error, const char *what)
{
    if (error != SKUA_E_CONTEXT) {
        fault("%s: %s", what, skua_error_name(error));
    }
}

static int init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    struct script *script = self;
    struct letter letter;
    if (input_count == 0 || !letter_read(&input[0], LETTER_SPAWN, &letter)) {
        fault("an init without its input");
        return ERROR_INIT;
    }
    struct actor *actor = actor_at(letter.number);
    script->actor = actor;
    actor_initialise(actor, skua_self(ctx));
    set_canaries(script);
    struct agent agent = agent_of(actor, ctx);
    if (chance(&agent.random, 30) && input_count > 1) {
        keep(script, &input[1]);
    }
    if (chance(&agent.random, 30)) {
        act_send(&agent);
    }
    if (chance(&agent.random, 5)) {
        act_spawn(&agent);
    }
    if (chance(&agent.random, 20)) {
        use_own(actor, ctx, &agent.random);
    }
    expect_context_error(skua_yield_sleep(ctx, 0, 0), "a yield in init");
    if (!actor->fails_in_init) {
        return 0;
    }
    return actor->fails_upwards ? 1 : ERROR_INIT;
}

static void close(void *self, skua_context *ctx, const skua_exit *exit)
{
    struct script *script = self;
    struct actor *actor = script->actor;
    if (actor == NULL) {
        return; /* init has said what is wrong */
    }
    check_canaries(script);
    check_own(actor);
    if (!skua_pid_equal(exit->pid, skua_self(ctx)) || exit->type != &script_types[actor->type]) {
        fault("process %u: is closed as another", actor->number);
    }
    struct agent agent = agent_of(actor, ctx);
    agent.step++; /* what the last step has yielded was sent before */
    if (chance(&agent.random, 20)) {
        act_send(&agent);
    }
    expect_context_error(skua_yield_cancel(ctx, 0), "a yield in close");
    expect_context_error(skua_spawn(ctx, exit->type, skua_nothing(), NULL), "a spawn in close");
    wires_close(actor, exit);
    actor_closes(actor);
    skua_payload_drop(&script->kept);
}

/* ---- a step ---- */

static bool is_over(struct actor *actor)
{
    return load_relaxed(&actor->steps) > actor->plan; /* its own */
}

struct scene {
    struct script *script;
    struct actor *actor;
    skua_context *ctx;
    struct agent agent;
    bool is_cancelled;
    bool defers; /* all messages of this step, as those of the one before or of the next */
};

/* Whether a message was deferred. It is seen when it comes again: in order, as all are deferred
 * until the step that resumes is over. But urgent ones are not, as others would overtake them. */
static bool defer(const struct scene *scene, skua_event *event)
{
    if (!scene->defers || message_is_urgent(event)) {
        return false;
    }
    const int error = skua_defer(scene->ctx, event);
    scene->actor->has_deferred = true;
    if (error != 0) {
        scene->actor->is_unordered = true;
        if (error != SKUA_E_NO_MEMORY || world.program.faults.no_memory == 0) {
            fault("process %u: cannot defer: %s", scene->actor->number, skua_error_name(error));
        }
    }
    return error == 0;
}

static void see_event(struct scene *scene, skua_event *event)
{
    switch (event->type) {
    case SKUA_EVENT_MESSAGE:
        if (defer(scene, event)) {
            break;
        }
        message_seen(scene->actor, event);
        wires_received(&scene->agent, event);
        if (chance(&scene->agent.random, 20)) {
            keep(scene->script, &event->payload);
        } else if (chance(&scene->agent.random, 20)) {
            keep_ref(scene->script, &event->payload);
        }
        break;
    case SKUA_EVENT_COMPLETION:
        request_completed(&scene->agent, event);
        break;
    case SKUA_EVENT_CANCEL:
        cancel_seen(scene->actor, event);
        scene->is_cancelled = true;
        break;
    case SKUA_EVENT_TICK:
        request_ticked(scene->actor, scene->ctx, event);
        break;
    case SKUA_EVENT_START:
        wires_start(&scene->agent);
        break;
    case SKUA_EVENT_CONTINUE:
        break; /* the books know when it comes */
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
    const size_t size = 1 + skua_random(scene->ctx) % 2000;
    void *memory = skua_alloc(scene->ctx, size);
    if (memory == NULL && world.program.faults.no_memory == 0) {
        fault("process %u: no memory", scene->actor->number);
    }
    skua_free(scene->ctx, memory, size);
}

static void act(struct scene *scene)
{
    struct agent *agent = &scene->agent;
    const uint32_t what = draw(&agent->random, world.program.uses_sockets ? 140 : 100);
    if (world.program.uses_crews && chance(&agent->random, 5)) {
        act_crew(agent);
    } else if (what < 30) {
        act_send(agent);
    } else if (what < 32) {
        act_flood(agent);
    } else if (what < 40) {
        act_yield_send(agent);
    } else if (what < 48) {
        act_spawn(agent);
    } else if (what < 75) {
        request_make(scene->actor, scene->ctx, &agent->random);
    } else if (what < 76) {
        request_make_many(scene->actor, scene->ctx, &agent->random);
    } else if (what < 77) {
        request_misuse(scene->ctx, &agent->random);
    } else if (what < 80) {
        use_own(scene->actor, scene->ctx, &agent->random);
    } else if (what < 87) {
        request_take_back(scene->actor, scene->ctx, &agent->random);
    } else if (what < 90) {
        act_cancel(agent);
    } else if (what < 91) {
        act_terminate(agent);
    } else if (what < 96) {
        act_look(agent);
    } else if (what < 99) {
        use_memory(scene);
    } else if (what < 100) {
        pretend_to_block(scene->ctx);
    } else {
        wires_act(agent);
    }
}

/* All that comes after it is refused. */
static void insist(struct scene *scene)
{
    skua_context *ctx = scene->ctx;
    uint64_t *random = &scene->agent.random;
    const int errors[] = {
        skua_yield(ctx, 1, REQUEST_NOW, letter_wrap(LETTER_COMMAND, 0, random), SKUA_FOREVER),
        skua_yield_sleep(ctx, 1, 0),
        skua_yield_cancel(ctx, 1),
        skua_continue(ctx),
        skua_done(ctx, letter_wrap(LETTER_EXIT, scene->actor->number, random)),
    };
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i] != SKUA_E_DONE) {
            fault("process %u: call %zu after its end: %s", scene->actor->number, i,
                  skua_error_name(errors[i]));
        }
    }
}

/* What the step then returns does not matter. */
static int finish(struct scene *scene)
{
    struct actor *actor = scene->actor;
    uint64_t *random = &scene->agent.random;
    actor->has_finished = true;
    store_relaxed(&actor->is_ending, 1); /* see property.h */
    const int error = skua_done(scene->ctx, letter_wrap(LETTER_EXIT, actor->number, random));
    if (error != 0) {
        fault("process %u: cannot end: %s", actor->number, skua_error_name(error));
    }
    if (chance(random, 20)) {
        insist(scene);
    }
    return chance(random, 20) ? ERROR_STEP : (int)draw(random, 2);
}

static int fail(struct scene *scene)
{
    struct actor *actor = scene->actor;
    const uint32_t number = load_relaxed(&actor->steps); /* its own */
    store_relaxed(&actor->failed_in_step, number);       /* see property.h, as for the next */
    store_relaxed(&actor->is_ending, 1);
    return actor->fails_upwards ? 3 : ERROR_STEP;
}

/* A process that goes on waits or continues. */
static int choose_status(struct scene *scene)
{
    struct actor *actor = scene->actor;
    const bool continues = actor->is_hasty || scene->defers || chance(&scene->agent.random, 40);
    actor->continues |= continues; /* a task may not have heard of the last one yet */
    return continues ? skua_continue(scene->ctx) : 0;
}

static int go_on(struct scene *scene)
{
    struct actor *actor = scene->actor;
    const bool ends = is_over(actor);
    const bool lingers = actor->finale == FINALE_LINGER && !actor->is_hasty;
    const bool rests = ends && lingers; /* or the program would never come to rest */
    const uint32_t actions = rests ? 0 : draw(&scene->agent.random, ACTIONS_MAX + 1);
    for (uint32_t i = 0; i < actions; i++) {
        act(scene);
    }
    if (scene->is_cancelled && actor->obeys) {
        return finish(scene);
    }
    if (!ends) {
        return choose_status(scene);
    }
    if (actor->finale == FINALE_FAIL) {
        return fail(scene);
    }
    return lingers ? 0 : finish(scene);
}

static void choose_to_defer(struct scene *scene)
{
    scene->defers =
        scene->actor->defers || (!is_over(scene->actor) && chance(&scene->agent.random, 8));
}

/* In the second of two steps. */
static void resume(const struct scene *scene)
{
    struct actor *actor = scene->actor;
    if (actor->defers && skua_resume(scene->ctx) != 0) {
        fault("process %u: cannot resume", actor->number);
    }
    actor->defers = scene->defers && !actor->defers;
}

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct script *script = self;
    struct actor *actor = script->actor;
    actor_step_begins(actor, skua_self(ctx), events, count);
    check_canaries(script);
    struct scene scene = {
        .script = script,
        .actor = actor,
        .ctx = ctx,
        .agent = agent_of(actor, ctx),
    };
    choose_to_defer(&scene);
    for (size_t i = 0; i < count; i++) {
        see_event(&scene, &events[i]);
    }
    resume(&scene);
    const int error = go_on(&scene);
    store_relaxed(&actor->blocks, actor->open_count > 0); /* see property.h */
    actor_step_ends(actor);
    return error;
}

/* Each event is a step. */
static int run_task(void *self, skua_context *ctx)
{
    const struct script *script = self;
    skua_event start = {.type = SKUA_EVENT_START};
    skua_event *event = &start;
    int error = step(self, ctx, event, 1);
    while (error == 0 && !script->actor->has_finished) {
        error = skua_task_receive(ctx, &event, SKUA_FOREVER);
        if (error == 0) {
            error = step(self, ctx, event, 1);
        }
    }
    return error;
}

#define SCRIPT .init = init, .step = step, .close = close, .state_size = sizeof(struct script)
#define TASK   .init = init, .main = run_task, .close = close, .state_size = sizeof(struct script)
#define TIDY   .cancel = SKUA_CANCEL_EVENT

const skua_process_type script_types[TYPES] = {
    [TYPE_SMALL] = {.name = "small", SCRIPT, TIDY, .urgent = true},
    [TYPE_LARGE] = {.name = "large",
                    .init = init,
                    .step = step,
                    .close = close,
                    .state_size = sizeof(struct large_script),
                    .own_limit = OWN_LIMIT,
                    .urgent = true,
                    TIDY},
    [TYPE_NARROW] = {.name = "narrow", SCRIPT, TIDY, .mailbox_limit = NARROW_LIMIT},
    [TYPE_MORTAL] = {.name = "mortal", SCRIPT, .urgent = true},
    [TYPE_TASK] = {.name = "task", TASK, TIDY, .urgent = true},
    [TYPE_DEAF] = {.name = "deaf",
                   SCRIPT,
                   TIDY,
                   .mailbox_limit = NARROW_LIMIT,
                   .overflow = SKUA_OVERFLOW_DROP_NEW,
                   .urgent = true},
    [TYPE_FORGETFUL] = {.name = "forgetful",
                        SCRIPT,
                        TIDY,
                        .mailbox_limit = NARROW_LIMIT,
                        .overflow = SKUA_OVERFLOW_DROP_OLD,
                        .urgent = true},
    [TYPE_DREAMY] = {.name = "dreamy",
                     TASK,
                     TIDY,
                     .mailbox_limit = NARROW_LIMIT,
                     .overflow = SKUA_OVERFLOW_DROP_OLD,
                     .urgent = true},
    [TYPE_FRAGILE] = {.name = "fragile",
                      SCRIPT,
                      TIDY,
                      .mailbox_limit = 2 * NARROW_LIMIT,
                      .overflow = SKUA_OVERFLOW_END,
                      .urgent = true},
};
