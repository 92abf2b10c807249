/* SPDX-License-Identifier: MIT */
#include "operations.h"

#include <string.h>

#include "calls.h"
#include "commands.h"
#include "count_of.h"
#include "ledger.h"
#include "script.h"
#include "sockets.h"
#include "verbs.h"
#include "waits.h"

#define OPEN_MAX 200 /* of one tag */

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
    play->continues = ANSWERS(skua_continue(play->ctx), ANSWER_OK | ANSWER(DONE));
    play->script->continues = play->script->continues || (play->is_task && play->continues);
    play->is_over = true;
}

static void finish(struct play *play)
{
    skua_payload result = choose_payload(play->reader, play->runtime);
    (void)ANSWERS(skua_done(play->ctx, result), ANSWER_OK | ANSWER(DONE));
    play->is_over = reader_below(play->reader, 4) != 0; /* or it asks for more, in vain */
}

static void fail(struct play *play)
{
    const uint8_t choice = reader_byte(play->reader);
    play->error = choice % 4 == 0 ? choice + 1 : SKUA_E_USER - choice;
    play->is_over = true;
}

static void send(struct play *play)
{
    const skua_pid to = choose_pid(play->reader);
    (void)ANSWERS(skua_send(play->ctx, to, choose_payload(play->reader, play->runtime)),
                  ANSWERS_OF_SEND);
}

static void send_urgent(struct play *play)
{
    const skua_pid to = choose_pid(play->reader);
    const int error = skua_send_urgent(play->ctx, to, choose_payload(play->reader, play->runtime));
    (void)(error == SKUA_E_NOT_URGENT || ANSWERS(error, ANSWERS_OF_SEND));
}

/* Any event, whether or not that makes sense. The step may have answered it. */
static void defer(struct play *play)
{
    if (play->count > 0) {
        skua_event *event = &play->events[reader_byte(play->reader) % (uint32_t)play->count];
        const skua_request request = event->request;
        const bool is_call = event->type == SKUA_EVENT_CALL;
        const bool done = ANSWERS(skua_defer(play->ctx, event),
                                  ANSWER_OK | ANSWER(INVALID) | ANSWER(TAKEN) | ANSWER(LATE) |
                                      ANSWER(MAILBOX_FULL) | ANSWER(DONE) | ANSWER(NO_MEMORY));
        if (done && is_call) {
            relations_note_answer(play->relations, request, 0); /* it comes again */
        }
        if (done && play->is_task) {
            play->events = &play->none; /* it is in the mailbox again, where it stands */
        }
    }
}

static void resume(struct play *play)
{
    (void)ANSWERS(skua_resume(play->ctx), ANSWER_OK | ANSWER(DONE));
}

static void pass_on(struct play *play)
{
    if (play->count > 0) {
        const uint32_t which = reader_byte(play->reader) % (uint32_t)play->count;
        (void)ANSWERS(skua_send(play->ctx, choose_pid(play->reader),
                                skua_payload_take(&play->events[which].payload)),
                      ANSWERS_OF_SEND);
    }
}

void operations_spawn(skua_context *ctx, struct reader *reader)
{
    struct script_start start;
    skua_pid pid;
    script_choose(reader, skua_runtime_of(ctx), &start);
    if (ANSWERS(skua_spawn_with(ctx, &start.options, &pid), ANSWERS_OF_SUBMIT)) {
        board_note_pid(pid);
    }
}

static void spawn_child(struct play *play)
{
    operations_spawn(play->ctx, play->reader);
}

static bool has_many(const struct play *play, uint64_t tag)
{
    return play->script->open[tag] >= OPEN_MAX;
}

uint64_t choose_yield_timeout(struct reader *reader)
{
    const uint32_t choice = reader_below(reader, 4);
    if (choice == 0) {
        return 0;
    }
    return choice == 1 ? choose_duration(reader) : SKUA_FOREVER;
}

static void yield(struct play *play)
{
    const uint64_t tag = choose_tag(play);
    const uint32_t command = choose_command(play->reader);
    const uint64_t timeout = choose_yield_timeout(play->reader);
    if (!has_many(play, tag)) {
        note_yield(play, tag,
                   ANSWERS(skua_yield(play->ctx, tag, command,
                                      choose_payload(play->reader, play->runtime), timeout),
                           ANSWERS_OF_YIELD | ANSWER(PAYLOAD_SIZE) | ANSWER(RESERVED)));
    }
}

/* So many that taking one back needs more than a look at a list. */
static void yield_many(struct play *play)
{
    const uint32_t command = choose_command(play->reader);
    const uint64_t timeout = choose_yield_timeout(play->reader);
    for (uint64_t i = 0; i < 48; i++) {
        if (!has_many(play, i % TAGS)) {
            note_yield(play, i % TAGS,
                       ANSWERS(skua_yield(play->ctx, i % TAGS, command, skua_nothing(), timeout),
                               ANSWERS_OF_YIELD | ANSWER(RESERVED)));
        }
    }
}

#define ANSWERS_OF_TIMER ANSWERS_OF_YIELD

static void sleep_for(struct play *play)
{
    const uint64_t tag = choose_tag(play);
    note_yield(
        play, tag,
        ANSWERS(skua_yield_sleep(play->ctx, tag, choose_duration(play->reader)), ANSWERS_OF_TIMER));
}

static uint64_t choose_instant(struct play *play)
{
    if (reader_below(play->reader, 4) == 0) {
        return reader_below(play->reader, 2) == 0 ? SKUA_FOREVER : reader_byte(play->reader);
    }
    return skua_now(play->ctx) + choose_duration(play->reader) % SKUA_SECOND;
}

static void set_timer(struct play *play)
{
    const uint64_t tag = choose_tag(play);
    note_yield(play, tag,
               ANSWERS(skua_yield_timer(play->ctx, tag, choose_instant(play)), ANSWERS_OF_TIMER));
}

static void set_ticker(struct play *play)
{
    const uint64_t tag = choose_tag(play);
    note_yield(play, tag,
               ANSWERS(skua_yield_ticker(play->ctx, tag, choose_duration(play->reader)),
                       ANSWERS_OF_TIMER));
}

static void take_back(struct play *play)
{
    (void)ANSWERS(skua_yield_cancel(play->ctx, reader_below(play->reader, RELATION_TAG_END)),
                  ANSWER_OK | ANSWER(DONE) | ANSWER(NO_MEMORY));
}

static void wait_for_descriptor(struct play *play)
{
    const uint64_t tag = choose_tag(play);
    const int fd = choose_descriptor(play->reader);
    const uint64_t timeout = choose_yield_timeout(play->reader);
    const int error = reader_below(play->reader, 2) == 0
                          ? skua_yield_readable(play->ctx, tag, fd, timeout)
                          : skua_yield_writable(play->ctx, tag, fd, timeout);
    note_yield(play, tag, ANSWERS(error, ANSWERS_OF_YIELD | ANSWER(DESCRIPTOR)));
}

static void call_blocking(struct play *play)
{
    const uint64_t tag = choose_tag(play);
    const skua_pool pool = choose_pool(play->reader);
    const uint64_t timeout = choose_yield_timeout(play->reader);
    skua_blocking_fn *function = choose_blocking_function(play->reader);
    note_yield(
        play, tag,
        ANSWERS(skua_yield_blocking(play->ctx, tag, pool, function,
                                    choose_payload(play->reader, play->runtime), timeout),
                ANSWERS_OF_YIELD | ANSWER(INVALID) | ANSWER(PAYLOAD_SIZE) | ANSWER(UNKNOWN_POOL)));
}

void operations_block(skua_context *ctx, struct reader *reader)
{
    (void)ANSWERS(reader_below(reader, 2) == 0 ? skua_blocking_begin(ctx) : skua_blocking_end(ctx),
                  ANSWER_OK | ANSWER(INVALID));
}

static void block(struct play *play)
{
    operations_block(play->ctx, play->reader);
}

static void use_context(struct play *play)
{
    const size_t size = 8 * (size_t)reader_byte(play->reader);
    void *memory = skua_alloc(play->ctx, size);
    if (memory != NULL) {
        memset(memory, 1, size);
    }
    skua_free(play->ctx, memory, size);
    EXPECT(skua_now(play->ctx) == skua_now(play->ctx));
    (void)skua_random(play->ctx);
    EXPECT(skua_alloc(play->ctx, SIZE_MAX) == NULL);
    EXPECT(!skua_pid_is_none(skua_self(play->ctx)));
}

/* Takes memory of its own, or gives it back. */
static void use_own(struct play *play)
{
    struct script *script = play->script;
    void *memory = NULL;
    if (script->own != NULL) {
        EXPECT(script->own[0] == 1 && script->own[OWN_SIZE - 1] == 1);
        EXPECT(skua_own_free(play->ctx, script->own) == 0);
        script->own = NULL;
    } else if (ANSWERS(skua_own_alloc(play->ctx, OWN_SIZE, &memory),
                       ANSWER_OK | ANSWER(NO_MEMORY) | ANSWER(OWN_LIMIT))) {
        script->own = memory;
        EXPECT(script->own[0] == 0 && script->own[OWN_SIZE - 1] == 0);
        memset(memory, 1, OWN_SIZE);
    }
    EXPECT(skua_own_alloc(play->ctx, 0, &memory) == SKUA_E_INVALID);
    EXPECT(skua_own_free(play->ctx, NULL) == 0);
    if (reader_below(play->reader, 4) == 0) {
        (void)ANSWERS(skua_own_alloc(play->ctx, 1 + reader_byte(play->reader), &memory),
                      ANSWER_OK | ANSWER(NO_MEMORY) | ANSWER(OWN_LIMIT));
        /* and forgets it */
    }
}

static void send_allocated(struct play *play)
{
    const size_t size = reader_byte(play->reader);
    skua_payload payload;
    void *data;
    if (ANSWERS(skua_payload_alloc(play->ctx, 6, size, &data, &payload),
                ANSWER_OK | ANSWER(INVALID) | ANSWER(PAYLOAD_SIZE) | ANSWER(NO_MEMORY))) {
        memset(data, 7, size);
        (void)ANSWERS(skua_send_from(play->ctx, choose_pid(play->reader), &payload),
                      ANSWERS_OF_SEND);
        EXPECT(payload.storage == SKUA_PAYLOAD_TAKEN);
        (void)ANSWERS(skua_send_from(play->ctx, skua_self(play->ctx), &payload),
                      ANSWER(TAKEN) | ANSWER(NO_MEMORY)); /* if it would be delayed */
    }
}

static void end_another(struct play *play)
{
    const skua_pid pid = choose_pid(play->reader);
    const uint64_t answers = ANSWER_OK | ANSWER(INVALID) | ANSWER(FOREIGN_PID) | ANSWER(NO_PROCESS);
    if (reader_below(play->reader, 4) == 0) {
        (void)ANSWERS(skua_terminate(play->ctx, pid), answers);
    } else {
        (void)ANSWERS(skua_cancel(play->ctx, pid, choose_reason(play->reader)),
                      answers | ANSWER(NO_MEMORY));
    }
}

/* Keeps what an event brought twice over. */
static void share_event(struct play *play)
{
    const uint32_t which = reader_byte(play->reader) % (uint32_t)play->count;
    skua_payload another;
    (void)ANSWERS(skua_payload_ref(&play->events[which].payload, &another),
                  ANSWER_OK | ANSWER(TAKEN) | ANSWER(NOT_SHARED));
    (void)ANSWERS(skua_send(play->ctx, choose_pid(play->reader), another), ANSWERS_OF_SEND);
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
        EXPECT(skua_yield(NULL, 0, 0, payload, SKUA_FOREVER) == SKUA_E_INVALID);
        return;
    case 1:
        EXPECT(skua_send(NULL, choose_pid(play->reader), payload) == SKUA_E_INVALID);
        return;
    case 2:
        EXPECT(skua_spawn(NULL, NULL, payload, NULL) == SKUA_E_INVALID);
        return;
    case 3:
        EXPECT(skua_yield_blocking(NULL, 0, (skua_pool){0}, NULL, payload, SKUA_FOREVER) ==
               SKUA_E_INVALID);
        return;
    case 4:
        EXPECT(skua_yield_cancel(NULL, 0) == SKUA_E_INVALID);
        EXPECT(skua_continue(NULL) == SKUA_E_INVALID);
        EXPECT(skua_own_free(NULL, NULL) < 0);
        EXPECT(skua_blocking_begin(NULL) == SKUA_E_INVALID);
        EXPECT(skua_done(NULL, payload) == SKUA_E_INVALID);
        return;
    default:
        EXPECT(skua_spawn(play->ctx, NULL, payload, NULL) == SKUA_E_INVALID);
        return;
    }
}

static void (*const operations[])(struct play *) = {
    end_step,
    end_step,
    go_on,
    finish,
    fail,
    send,
    send,
    send_urgent,
    defer,
    resume,
    pass_on,
    spawn_child,
    spawn_child,
    yield,
    yield,
    yield,
    sleep_for,
    set_timer,
    set_ticker,
    take_back,
    take_back,
    call_blocking,
    wait_for_descriptor,
    block,
    use_context,
    call_anything,
    wait_for_descriptor,
    use_own,
    call_anything,
    yield_many,
    call_what_waits,
    end_another,
    share_event,
    send_allocated,
    call_with_nothing,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    verbs_perform,
    waits_perform,
    waits_perform,
    waits_perform,
    waits_perform,
    waits_perform,
    waits_perform,
    waits_perform,
    waits_perform,
    sockets_perform,
    sockets_perform,
    sockets_perform,
    sockets_perform,
    sockets_perform,
    sockets_perform,
    sockets_perform,
    sockets_perform,
    sockets_perform,
    sockets_perform,
    sockets_perform,
    sockets_perform,
};

void operations_perform(struct play *play)
{
    while (!play->is_over && !reader_is_empty(play->reader)) {
        operations[reader_below(play->reader, COUNT_OF(operations))](play);
    }
}
