/* SPDX-License-Identifier: MIT */
#include "script.h"

#include <string.h>

#include "count_of.h"
#include "ledger.h"
#include "operations.h"
#include "play.h"
#include "verbs.h"
#include "waits.h"

/* ---- events ---- */

static void note_completion(struct script *script, const skua_event *event)
{
    EXPECT(event->error <= 0);
    if (event->tag >= RELATION_TAG_FIRST) {
        relations_note_completion(relations_of(script->number), event);
        return;
    }
    EXPECT(script->open[event->tag] > 0);
    script->open[event->tag]--;
}

/* Tasks get events in the order that they like: a tick may be from before the end of its ticker. */
void play_note_event(const struct play *play, const skua_event *event)
{
    struct script *script = play->script;
    struct relations *relations = play->relations;
    switch ((enum skua_event_type)event->type) {
    case SKUA_EVENT_MESSAGE:
        EXPECT(event->error == 0);
        return;
    case SKUA_EVENT_COMPLETION:
        note_completion(script, event);
        return;
    case SKUA_EVENT_CANCEL:
        EXPECT(event->error != SKUA_E_STOPPED || !script->is_asked_to_stop);
        script->is_asked_to_stop = script->is_asked_to_stop || event->error == SKUA_E_STOPPED;
        return;
    case SKUA_EVENT_TICK:
        EXPECT(event->tag < TAGS && (play->is_task || script->open[event->tag] > 0));
        EXPECT(skua_tick_count(event) > 0);
        return;
    case SKUA_EVENT_START:
        EXPECT(!script->has_begun);
        return;
    case SKUA_EVENT_CONTINUE:
        EXPECT(script->continues);
        return;
    case SKUA_EVENT_CALL:
        board_note_request(event->request);
        relations_note_call(relations, event);
        return;
    case SKUA_EVENT_ABANDON:
        relations_note_abandon(relations, event);
        return;
    case SKUA_EVENT_EXIT:
        relations_note_exit(relations, event);
        return;
    case SKUA_EVENT_GROUP:
        relations_note_news(event);
        return;
    case SKUA_EVENT_CHILD:
        return; /* it offers templates now and then */
    case SKUA_EVENT_BECOME:
        return;
    }
    ledger_fail("an event of type %u", event->type);
}

static bool has_event(const skua_event *events, size_t count, enum skua_event_type type)
{
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == type) {
            return true;
        }
    }
    return false;
}

/* ---- the process ---- */

static void note_events(const struct play *play)
{
    struct script *script = play->script;
    const skua_event *events = play->events;
    const size_t count = play->count;
    EXPECT(count > 0 && count <= SKUA_EVENTS_PER_STEP);
    EXPECT((events[0].type == SKUA_EVENT_START) == !script->has_begun);
    EXPECT((events[count - 1].type == SKUA_EVENT_CONTINUE) == script->continues);
    for (size_t i = 0; i < count; i++) {
        play_note_event(play, &events[i]);
    }
    script->continues = false;
}

/* `asks` is what its type does. */
static struct play begin(struct script *script, skua_context *ctx, skua_event *events, size_t count,
                         uint32_t asks)
{
    EXPECT(!script->is_running);
    script->is_running = true;
    relations_of(script->number)->asks = asks;
    if (!script->has_begun && (asks & RELATIONS_CALLS) != 0) {
        board_note_server(skua_self(ctx));
    }
    return (struct play){
        .script = script,
        .relations = relations_of(script->number),
        .reader = &script->reader,
        .ctx = ctx,
        .runtime = skua_runtime_of(ctx),
        .events = events,
        .count = count,
    };
}

static int end(const struct play *play)
{
    play->script->is_running = false;
    return play->error;
}

/* What a process does about the events that it has just got. */
static void perform(struct play *play)
{
    struct script *script = play->script;
    const bool obeys =
        script->habit == OBEYS && has_event(play->events, play->count, SKUA_EVENT_CANCEL);
    script->has_begun = true;
    if (has_event(play->events, play->count, SKUA_EVENT_CALL)) {
        verbs_answer_one(play);
    }
    operations_perform(play);
    if (play->leaves) {
        return;
    }
    if (script->habit == OBEYS && reader_is_empty(&script->reader)) {
        verbs_answer_all(play);
    }
    if (obeys || (script->habit == MORTAL && reader_is_empty(&script->reader))) {
        (void)ANSWERS(skua_done(play->ctx, skua_nothing()), ANSWER_OK | ANSWER(DONE));
        play->leaves = true;
    } else if (script->habit == MORTAL && !play->is_task) {
        play->continues = ANSWERS(skua_continue(play->ctx), ANSWER_OK | ANSWER(DONE));
    }
    play->leaves = play->leaves || play->error != 0;
}

static int step_as(struct script *script, skua_context *ctx, skua_event *events, size_t count,
                   uint32_t asks)
{
    struct play play = begin(script, ctx, events, count, asks);
    note_events(&play);
    perform(&play);
    script->continues = play.continues;
    return end(&play);
}

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    return step_as(self, ctx, events, count, 0);
}

static int step_of_server(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    return step_as(self, ctx, events, count, RELATIONS_CALLS);
}

static int step_of_careful_server(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    return step_as(self, ctx, events, count, RELATIONS_CALLS | RELATIONS_ABANDONS);
}

/* ---- tasks ---- */

/* Begins with a START of its own making, as it is told of none. */
static int main_as(struct script *script, skua_context *ctx, uint32_t asks)
{
    skua_event start = {.type = SKUA_EVENT_START};
    struct play play = begin(script, ctx, &start, 1, asks | RELATIONS_PICKS);
    play.is_task = true;
    play_note_event(&play, &start);
    perform(&play);
    while (!play.leaves) {
        play.is_over = false;
        waits_for_next(&play);
        if (!play.leaves) {
            perform(&play);
        }
    }
    return end(&play);
}

static int main_of_task(void *self, skua_context *ctx)
{
    return main_as(self, ctx, 0);
}

static int main_of_server(void *self, skua_context *ctx)
{
    return main_as(self, ctx, RELATIONS_CALLS | RELATIONS_ABANDONS);
}

static int serve(void *self, skua_context *ctx, skua_event *event)
{
    struct play play = begin(self, ctx, event, 1, RELATIONS_CALLS | RELATIONS_PICKS);
    play.is_task = true;
    play_note_event(&play, event);
    perform(&play);
    return end(&play);
}

/* ---- beginning and end ---- */

/* What the first input of a process says. */
struct instruction {
    struct reader reader;
    uint8_t habit;
    uint8_t names; /* that it is started with: a set */
};

_Static_assert(sizeof(struct instruction) <= SKUA_PAYLOAD_INLINE_SIZE, "fits into a payload");

static int init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    struct script *script = self;
    struct instruction instruction;
    EXPECT(skua_method(ctx) != NULL && input_count > 0);
    memcpy(&instruction, skua_payload_data(&input[0]), sizeof instruction);
    script->number = ledger_process_begins();
    script->habit = instruction.habit;
    script->reader = instruction.reader;
    if (script->number == 0) {
        return SKUA_E_USER;
    }
    relations_begin(script->number);
    relations_of(script->number)->names = instruction.names;
    switch (reader_below(&script->reader, 16)) {
    case 0:
        return SKUA_E_USER - 1;
    case 5:
        return 1;
    case 6:
        EXPECT(skua_yield_sleep(ctx, 0, 0) == SKUA_E_CONTEXT);
        EXPECT(skua_done(ctx, ledger_payload(true, 0)) == SKUA_E_CONTEXT);
        break;
    case 7:
        verbs_try_in_init(ctx, &script->reader);
        break;
    case 1:
        operations_block(ctx, &script->reader);
        break;
    case 2:
        operations_spawn(ctx, &script->reader);
        break;
    case 3:
        (void)ANSWERS(skua_send(ctx, skua_self(ctx), ledger_payload(true, 0)),
                      ANSWER(NO_PROCESS) | ANSWER(NO_MEMORY));
        break;
    case 4: {
        skua_payload taken = skua_payload_take(&input[input_count - 1]);
        skua_payload_drop(&taken);
        break;
    }
    default:
        break;
    }
    return 0;
}

static bool is_orderly(int error)
{
    return error == 0 || error == SKUA_E_STOPPED || error == SKUA_E_CANCELLED;
}

static void close_script(void *self, skua_context *ctx, const skua_exit *exit)
{
    const struct script *script = self;
    EXPECT(!script->is_running);
    EXPECT(exit->error <= 0 && skua_pid_equal(exit->pid, skua_self(ctx)));
    EXPECT(script->own == NULL || script->own[OWN_SIZE - 1] == 1);
    EXPECT(skua_continue(ctx) == SKUA_E_CONTEXT);
    EXPECT(skua_spawn(ctx, exit->type, ledger_payload(true, 0), NULL) == SKUA_E_CONTEXT);
    (void)ANSWERS(skua_send(ctx, exit->pid, ledger_payload(false, 8)),
                  ANSWER(NO_PROCESS) | ANSWER(PAYLOAD_SIZE) | ANSWER(NO_MEMORY));
    if (script->has_begun) {
        EXPECT(skua_pid_is_none(exit->cause) == is_orderly(exit->error));
    }
    if (script->number != 0) {
        verbs_try_in_close(ctx, relations_of(script->number));
    }
    ledger_process_ends(script->number);
}

static int end_at_once(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    EXPECT(self == NULL && count > 0 && events[0].type == SKUA_EVENT_START);
    return skua_done(ctx, skua_nothing());
}

/* ---- starting ---- */

static const char *const methods[] = {"first", "second", NULL};

#define SCRIPT_WITH(its_step) .init = init, .step = (its_step), .close = close_script
#define SCRIPT                SCRIPT_WITH(step)

/* An init that starts another process, whose init does, ... is on the stack of a task. */
#define DEEP ((size_t)1 << 20)

#define TASK(its_main) .init = init, .main = (its_main), .close = close_script, .stack_size = DEEP

/* The second half are servers, in a way. */
#define GOOD_TYPES 12
static const skua_process_type types[] = {
    {.name = "small",
     .urgent = true,
     .state_size = sizeof(struct script),
     SCRIPT,
     .cancel = SKUA_CANCEL_EVENT,
     .own_limit = 300},
    {.name = "large", .state_size = 1000, SCRIPT},
    {.name = "modest",
     .urgent = true,
     .state_size = sizeof(struct script),
     SCRIPT,
     .mailbox_limit = 2,
     .cancel = SKUA_CANCEL_EVENT},
    {.name = "with methods", .state_size = sizeof(struct script), SCRIPT, .methods = methods},
    {.name = "task", .urgent = true, .state_size = sizeof(struct script), TASK(main_of_task)},
    {.name = "small task",
     .state_size = sizeof(struct script),
     TASK(main_of_task),
     .cancel = SKUA_CANCEL_EVENT,
     .mailbox_limit = 2,
     .overflow = SKUA_OVERFLOW_DROP_OLD},
    {.name = "server",
     .state_size = sizeof(struct script),
     SCRIPT_WITH(step_of_server),
     .calls = true,
     .cancel = SKUA_CANCEL_EVENT},
    {.name = "careful server",
     .urgent = true,
     .state_size = sizeof(struct script),
     SCRIPT_WITH(step_of_careful_server),
     .calls = true,
     .abandons = true},
    {.name = "modest server",
     .state_size = 100,
     SCRIPT_WITH(step_of_careful_server),
     .calls = true,
     .abandons = true,
     .mailbox_limit = 2,
     .overflow = SKUA_OVERFLOW_DROP_NEW},
    {.name = "no server", .state_size = sizeof(struct script), SCRIPT, .abandons = true},
    {.name = "task that serves",
     .urgent = true,
     .state_size = sizeof(struct script),
     .init = init,
     .serve = serve,
     .close = close_script,
     .stack_size = DEEP,
     .calls = true},
    {.name = "server task",
     .urgent = true,
     .state_size = sizeof(struct script),
     TASK(main_of_server),
     .calls = true,
     .abandons = true},
    {.name = "too large", .state_size = SIZE_MAX, SCRIPT},
    {.name = "without step", .state_size = 8},
    {.name = "too eager", .step = step, .mailbox_limit = UINT32_MAX},
    {.name = "of two minds", .step = step, .main = main_of_task},
    {.name = "too deep", .main = main_of_task, .stack_size = SIZE_MAX},
};

const skua_process_type *script_simple_type(void)
{
    static const skua_process_type type = {.name = "simple", .step = end_at_once};
    return &type;
}

static int migrate(uint32_t old_version, const void *old_state, void *new_state, skua_context *ctx)
{
    EXPECT(old_version <= 3 && skua_continue(ctx) == SKUA_E_CONTEXT);
    memcpy(new_state, old_state, sizeof(struct script));
    return 0;
}

static int refuse_to_migrate(uint32_t old_version, const void *old_state, void *new_state,
                             skua_context *ctx)
{
    (void)migrate(old_version, old_state, new_state, ctx);
    return SKUA_E_USER;
}

const skua_process_type *script_newer_type(uint32_t number)
{
#define NEWER(size, its_version, its_migrate)                                                      \
    {                                                                                              \
        .name = "newer server", .state_size = (size), SCRIPT_WITH(step_of_careful_server),         \
        .calls = true, .abandons = true, .version = (its_version), .migrate = (its_migrate)        \
    }
    static const skua_process_type newer[] = {NEWER(300, 1, refuse_to_migrate),
                                              NEWER(sizeof(struct script), 2, migrate),
                                              NEWER(1000, 3, migrate)};
#undef NEWER
    return &newer[number % COUNT_OF(newer)];
}

static const skua_process_type *choose_type(struct reader *reader)
{
    const uint32_t choice = reader_below(reader, 32);
    if (choice >= COUNT_OF(types) + 1) {
        return &types[choice % GOOD_TYPES];
    }
    return choice < COUNT_OF(types) ? &types[choice] : NULL;
}

static const char *choose_method(struct reader *reader)
{
    static const char *const names[] = {NULL, NULL, NULL, "main", "second", "none"};
    return names[reader_below(reader, COUNT_OF(names))];
}

static void set_instruction(struct script_start *start, const struct instruction *instruction)
{
    skua_payload *payload = &start->input[0];
    *payload = skua_payload_u64(0, 0);
    payload->inline_size = sizeof *instruction;
    memcpy(payload->as.bytes, instruction, sizeof *instruction);
}

void script_choose(struct reader *reader, skua_runtime *runtime, struct script_start *start)
{
    struct instruction instruction;
    memset(&instruction, 0, sizeof instruction);
    start->options = (skua_spawn_options){.type = choose_type(reader), .input = start->input};
    start->options.method = choose_method(reader);
    start->options.input_count = 1 + reader_below(reader, SCRIPT_INPUTS_MAX);
    for (size_t i = 1; i < start->options.input_count; i++) {
        start->input[i] = choose_payload(reader, runtime);
    }
    instruction.habit = (uint8_t)reader_below(reader, HABITS);
    instruction.reader = choose_stretch(reader);
    set_instruction(start, &instruction);
}

/* Those that the process will have, if there is a process. */
static void set_names(struct script_start *start, uint32_t names)
{
    struct instruction instruction;
    memcpy(&instruction, start->input[0].as.bytes, sizeof instruction);
    instruction.names = (uint8_t)names;
    set_instruction(start, &instruction);
}

void script_choose_relations(struct reader *reader, struct script_start *start)
{
    const uint8_t choice = reader_byte(reader);
    start->options.monitor = choice % 2 != 0;
    start->options.join = choice / 2 % 2 != 0;
    start->options.link = choice / 4 % 2 != 0;
    if (choice / 8 % 2 != 0) {
        const uint32_t name = choose_name(reader);
        start->options.name = board_name(name);
        set_names(start, name < BOARD_NAMES ? UINT32_C(1) << name : 0);
    }
    if (choice / 16 % 4 == 0) {
        start->options.label = board_name(choose_name(reader));
    }
}

void script_make_server(struct script_start *start, uint32_t number)
{
    start->options.type = &types[GOOD_TYPES / 2 + number % (GOOD_TYPES / 2)];
    start->options.method = NULL;
}

void script_make_mortal(struct script_start *start)
{
    struct instruction instruction;
    memcpy(&instruction, start->input[0].as.bytes, sizeof instruction);
    instruction.habit = MORTAL;
    set_instruction(start, &instruction);
    if (start->options.type != NULL && start->options.type->serve != NULL) {
        start->options.type = &types[0]; /* nobody may send it an event */
    }
}
