/* SPDX-License-Identifier: MIT */
#include "script.h"

#include <string.h>

#include "calls.h"
#include "commands.h"
#include "count_of.h"
#include "ledger.h"

#define TAGS 8

enum habit {
    OBEYS,   /* ends at a cancel event */
    IGNORES, /* stays until it is ended */
    MORTAL,  /* goes on without waiting until its script is at its end, and ends with it */
    HABITS,
};

/* The state of a process. All that must not happen to it is found here. */
struct script {
    uint32_t number; /* in the ledger */
    uint8_t habit;
    bool is_running;
    bool is_asked_to_stop;
    uint8_t open[TAGS]; /* yields without a completion */
    struct reader reader;
};

_Static_assert(sizeof(struct script) <= 64, "costs no allocation");

/* ---- events ---- */

static void note_completion(struct script *script, const skua_event *event)
{
    EXPECT(event->error <= 0);
    EXPECT(event->tag < TAGS);
    EXPECT(script->open[event->tag] > 0);
    script->open[event->tag]--;
}

static void note_event(struct script *script, const skua_event *event)
{
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
        EXPECT(event->tag < TAGS && script->open[event->tag] > 0);
        EXPECT(skua_tick_count(event) > 0);
        return;
    }
    ledger_fail("an event of type %u", event->type);
}

static bool has_cancel(const skua_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            return true;
        }
    }
    return false;
}

/* ---- operations ---- */

/* A step under way. */
struct play {
    struct script *script;
    struct reader *reader;
    skua_context *ctx;
    skua_runtime *runtime;
    skua_event *events;
    size_t count;
    skua_step *out;
    bool is_over;
    int error; /* what the step returns */
};

static uint64_t choose_tag(struct play *play)
{
    return reader_below(play->reader, TAGS);
}

/* What the yields of all kinds return. */
static void note_yield(struct play *play, uint64_t tag, bool accepted)
{
    play->script->open[tag] = (uint8_t)(play->script->open[tag] + accepted);
}

static void end_step(struct play *play)
{
    play->is_over = true;
}

static void go_on(struct play *play)
{
    skua_step_continue(play->out);
    play->is_over = true;
}

static void rest(struct play *play)
{
    if (reader_below(play->reader, 2) == 0) {
        skua_step_idle(play->out);
    } else {
        skua_step_wait(play->out);
    }
}

static void finish(struct play *play)
{
    skua_step_done(play->out, choose_payload(play->reader, play->runtime));
    play->is_over = reader_below(play->reader, 4) != 0; /* or it thinks better of it */
}

static void fail(struct play *play)
{
    play->error = SKUA_E_USER - reader_byte(play->reader);
    play->is_over = true;
}

static void send(struct play *play)
{
    const skua_pid to = choose_pid(play->reader);
    (void)ANSWERS(skua_context_send(play->ctx, to, choose_payload(play->reader, play->runtime)),
                  ANSWERS_OF_SEND);
}

static void pass_on(struct play *play)
{
    if (play->count > 0) {
        const uint32_t which = reader_byte(play->reader) % (uint32_t)play->count;
        (void)ANSWERS(skua_context_send(play->ctx, choose_pid(play->reader),
                                        skua_payload_take(&play->events[which].payload)),
                      ANSWERS_OF_SEND);
    }
}

static void spawn(skua_context *ctx, struct reader *reader)
{
    struct script_start start;
    skua_pid pid;
    script_choose(reader, skua_context_runtime(ctx), &start);
    if (ANSWERS(
            skua_context_spawn(ctx, start.type, start.method, start.input, start.input_count, &pid),
            ANSWERS_OF_SUBMIT)) {
        board_note_pid(pid);
    }
}

static void spawn_child(struct play *play)
{
    spawn(play->ctx, play->reader);
}

static void yield(struct play *play)
{
    const uint64_t tag = choose_tag(play);
    const uint32_t command = choose_command(play->reader);
    note_yield(play, tag,
               ANSWERS(skua_step_yield(play->out, command, tag,
                                       choose_payload(play->reader, play->runtime)),
                       ANSWER_OK | ANSWER(PAYLOAD_SIZE) | ANSWER(NO_MEMORY)));
}

#define ANSWERS_OF_TIMER (ANSWER_OK | ANSWER(DURATION) | ANSWER(NO_MEMORY))

static void sleep_for(struct play *play)
{
    const uint64_t tag = choose_tag(play);
    note_yield(
        play, tag,
        ANSWERS(skua_step_sleep(play->out, tag, choose_duration(play->reader)), ANSWERS_OF_TIMER));
}

static uint64_t choose_instant(struct play *play)
{
    if (reader_below(play->reader, 4) == 0) {
        return reader_below(play->reader, 2) == 0 ? SKUA_FOREVER : reader_byte(play->reader);
    }
    return skua_context_deadline(play->ctx, choose_duration(play->reader));
}

static void set_timer(struct play *play)
{
    const uint64_t tag = choose_tag(play);
    note_yield(play, tag,
               ANSWERS(skua_step_timer(play->out, tag, choose_instant(play)), ANSWERS_OF_TIMER));
}

static void set_ticker(struct play *play)
{
    const uint64_t tag = choose_tag(play);
    note_yield(
        play, tag,
        ANSWERS(skua_step_ticker(play->out, tag, choose_duration(play->reader)), ANSWERS_OF_TIMER));
}

static void set_deadline(struct play *play)
{
    (void)ANSWERS(skua_step_deadline(play->out, choose_instant(play)), ANSWER_OK | ANSWER(INVALID));
}

static void take_back(struct play *play)
{
    (void)ANSWERS(skua_step_cancel(play->out, choose_tag(play)), ANSWER_OK | ANSWER(NO_MEMORY));
}

static void wait_for_descriptor(struct play *play)
{
    const uint64_t tag = choose_tag(play);
    const int fd = choose_descriptor(play->reader);
    const int error = reader_below(play->reader, 2) == 0
                          ? skua_step_wait_readable(play->out, tag, fd)
                          : skua_step_wait_writable(play->out, tag, fd);
    note_yield(play, tag, ANSWERS(error, ANSWER_OK | ANSWER(DESCRIPTOR) | ANSWER(NO_MEMORY)));
}

static void call_blocking(struct play *play)
{
    const uint64_t tag = choose_tag(play);
    const char *pool = choose_pool(play->reader);
    skua_blocking_fn *function = choose_blocking_function(play->reader);
    note_yield(play, tag,
               ANSWERS(skua_step_blocking(play->out, tag, pool, function,
                                          choose_payload(play->reader, play->runtime)),
                       ANSWER_OK | ANSWER(INVALID) | ANSWER(PAYLOAD_SIZE) | ANSWER(NO_MEMORY)));
}

static void begin_or_end_blocking(skua_context *ctx, struct reader *reader)
{
    (void)ANSWERS(reader_below(reader, 2) == 0 ? skua_blocking_begin(ctx) : skua_blocking_end(ctx),
                  ANSWER_OK | ANSWER(INVALID));
}

static void block(struct play *play)
{
    begin_or_end_blocking(play->ctx, play->reader);
}

static void use_context(struct play *play)
{
    const size_t size = 8 * (size_t)reader_byte(play->reader);
    void *memory = skua_context_alloc(play->ctx, size);
    if (memory != NULL) {
        memset(memory, 1, size);
    }
    skua_context_free(play->ctx, memory, size);
    EXPECT(skua_context_now(play->ctx) == skua_context_now(play->ctx));
    (void)skua_context_random(play->ctx);
    EXPECT(skua_context_alloc(play->ctx, SIZE_MAX) == NULL);
    EXPECT(!skua_pid_is_none(skua_context_self(play->ctx)));
}

static void call_anything(struct play *play)
{
    calls_make_one(play->reader, play->runtime);
}

static void call_what_waits(struct play *play)
{
    calls_make_one_that_waits(play->reader, play->runtime, true);
}

static void call_with_nothing(struct play *play)
{
    skua_payload payload = choose_payload(play->reader, play->runtime);
    switch (reader_below(play->reader, 6)) {
    case 0:
        EXPECT(skua_step_yield(NULL, 0, 0, payload) == SKUA_E_INVALID);
        return;
    case 1:
        EXPECT(skua_context_send(NULL, choose_pid(play->reader), payload) == SKUA_E_INVALID);
        return;
    case 2:
        EXPECT(skua_context_spawn(NULL, NULL, NULL, &payload, 1, NULL) == SKUA_E_INVALID);
        return;
    case 3:
        EXPECT(skua_step_blocking(NULL, 0, NULL, NULL, payload) == SKUA_E_INVALID);
        return;
    case 4:
        EXPECT(skua_step_cancel(NULL, 0) == SKUA_E_INVALID);
        EXPECT(skua_step_deadline(NULL, 0) == SKUA_E_INVALID);
        EXPECT(skua_blocking_begin(NULL) == SKUA_E_INVALID);
        skua_step_done(NULL, payload);
        return;
    default:
        EXPECT(skua_context_spawn(play->ctx, NULL, NULL, &payload, 1, NULL) == SKUA_E_INVALID);
        return;
    }
}

static void (*const operations[])(struct play *) = {
    end_step,      end_step,
    go_on,         rest,
    finish,        fail,
    send,          send,
    pass_on,       spawn_child,
    spawn_child,   yield,
    yield,         sleep_for,
    set_timer,     set_ticker,
    set_deadline,  take_back,
    take_back,     wait_for_descriptor,
    call_blocking, block,
    use_context,   call_anything,
    call_anything, call_what_waits,
    set_deadline,  call_with_nothing,
    yield,         wait_for_descriptor,
};

static void perform(struct play *play)
{
    while (!play->is_over && !reader_is_empty(play->reader)) {
        operations[reader_below(play->reader, COUNT_OF(operations))](play);
    }
}

/* ---- the process ---- */

static int step(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    struct script *script = self;
    struct play play = {
        .script = script,
        .reader = &script->reader,
        .ctx = ctx,
        .runtime = skua_context_runtime(ctx),
        .events = events,
        .count = count,
        .out = out,
    };
    EXPECT(!script->is_running);
    EXPECT(count <= SKUA_EVENTS_PER_STEP);
    script->is_running = true;
    for (size_t i = 0; i < count; i++) {
        note_event(script, &events[i]);
    }
    const bool obeys = script->habit == OBEYS && has_cancel(events, count);
    perform(&play);
    if (obeys || (script->habit == MORTAL && reader_is_empty(&script->reader))) {
        skua_step_done(out, skua_payload_empty(0));
    } else if (script->habit == MORTAL) {
        skua_step_continue(out);
    }
    script->is_running = false;
    return play.error;
}

/* What the first input of a process says. */
struct instruction {
    struct reader reader;
    uint8_t habit;
};

_Static_assert(sizeof(struct instruction) <= SKUA_PAYLOAD_INLINE_SIZE, "fits into a payload");

static int init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                size_t input_count)
{
    struct script *script = self;
    struct instruction instruction;
    EXPECT(method != NULL && input_count > 0);
    memcpy(&instruction, skua_payload_data(&input[0]), sizeof instruction);
    script->number = ledger_process_begins();
    script->habit = instruction.habit;
    script->reader = instruction.reader;
    if (script->number == 0) {
        return SKUA_E_USER;
    }
    switch (reader_below(&script->reader, 16)) {
    case 0:
        return SKUA_E_USER - 1;
    case 1:
        begin_or_end_blocking(ctx, &script->reader);
        break;
    case 2:
        spawn(ctx, &script->reader);
        break;
    case 3:
        (void)ANSWERS(skua_context_send(ctx, skua_context_self(ctx), ledger_payload(true, 0)),
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

static void close_script(void *self)
{
    const struct script *script = self;
    EXPECT(!script->is_running);
    ledger_process_ends(script->number);
}

/* ---- starting ---- */

static const char *const methods[] = {"first", "second", NULL};

static const skua_process_type types[] = {
    {.name = "small",
     .state_size = sizeof(struct script),
     .init = init,
     .step = step,
     .close = close_script},
    {.name = "large", .state_size = 1000, .init = init, .step = step, .close = close_script},
    {.name = "modest",
     .state_size = sizeof(struct script),
     .init = init,
     .step = step,
     .close = close_script,
     .mailbox_limit = 2},
    {.name = "with methods",
     .state_size = sizeof(struct script),
     .methods = methods,
     .init = init,
     .step = step,
     .close = close_script},
    {.name = "too large", .state_size = SIZE_MAX, .init = init, .step = step},
    {.name = "without step", .state_size = 8},
    {.name = "too eager", .step = step, .mailbox_limit = UINT32_MAX},
};

static const skua_process_type *choose_type(struct reader *reader)
{
    const uint32_t choice = reader_below(reader, 16);
    if (choice >= 8) {
        return &types[choice % 4];
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
    start->type = choose_type(reader);
    start->method = choose_method(reader);
    start->input_count = 1 + reader_below(reader, SCRIPT_INPUTS_MAX);
    for (size_t i = 1; i < start->input_count; i++) {
        start->input[i] = choose_payload(reader, runtime);
    }
    instruction.habit = (uint8_t)reader_below(reader, HABITS);
    instruction.reader = choose_stretch(reader);
    set_instruction(start, &instruction);
}

void script_make_mortal(struct script_start *start)
{
    struct instruction instruction;
    memcpy(&instruction, start->input[0].as.bytes, sizeof instruction);
    instruction.habit = MORTAL;
    set_instruction(start, &instruction);
}
