/* SPDX-License-Identifier: MIT */
#include "verbs.h"

#include "calls.h"
#include "count_of.h"
#include "ledger.h"
#include "script.h"
#include "supervision.h"

#define ANSWERS_OF_CALL (ANSWERS_OF_YIELD | ANSWER(PAYLOAD_SIZE) | ANSWER(INVALID))
#define ANSWERS_OF_NAME (ANSWER(NAME) | ANSWER(NAME_LENGTH))
#define ANSWERS_OF_FIND (ANSWER_OK | ANSWER(NO_PROCESS) | ANSWERS_OF_NAME)

static uint64_t choose_tag(struct play *play, enum relation_yield yield)
{
    return RELATION_TAG_FIRST + (uint64_t)yield * RELATION_TAGS_EACH +
           reader_below(play->reader, RELATION_TAGS_EACH);
}

/* ---- asking ---- */

/* Often a short one: what callers that give up leave behind is the hardest part. */
static uint64_t choose_call_timeout(struct play *play)
{
    return reader_below(play->reader, 2) == 0 ? choose_timeout(play->reader)
                                              : choose_yield_timeout(play->reader);
}

static void call(struct play *play)
{
    const uint64_t tag = choose_tag(play, YIELD_CALL);
    const skua_pid to = choose_server(play->reader);
    const uint64_t timeout = choose_call_timeout(play);
    if (relations_have_room(play->relations, tag)) {
        skua_payload payload = choose_payload(play->reader, play->runtime);
        relations_note_yield(
            play->relations, tag,
            ANSWERS(skua_yield_call(play->ctx, tag, to, payload, timeout), ANSWERS_OF_CALL));
    }
}

/* Mostly one that this process owes an answer to. */
static skua_request choose_own_request(struct play *play)
{
    const struct relations *relations = play->relations;
    const uint8_t choice = reader_byte(play->reader);
    if (relations->request_count == 0 || choice >= 0xc0) {
        return choose_request(play->reader);
    }
    return relations->requests[choice % relations->request_count].request;
}

/* What a verb may answer that names a request: some answers, but only if it is owed. */
static uint64_t answers_about(const struct play *play, skua_request request, uint64_t answers,
                              uint64_t refusals)
{
    switch (relations_request(play->relations, request)) {
    case REQUEST_OWED:
    case REQUEST_UNKNOWN:
        return answers | refusals | ANSWER(LATE);
    case REQUEST_STRANGE:
    case REQUEST_LATE:
        break;
    }
    return refusals | ANSWER(LATE);
}

/* If nobody waits for the answer, that is noted; otherwise it is still owed. */
static void call_for(struct play *play)
{
    const uint64_t tag = choose_tag(play, YIELD_CALL);
    const skua_request request = choose_own_request(play);
    const skua_pid to = choose_server(play->reader);
    const uint64_t timeout = choose_call_timeout(play);
    if (!relations_have_room(play->relations, tag)) {
        return;
    }
    const int error = skua_yield_call_for(play->ctx, tag, request, to,
                                          choose_payload(play->reader, play->runtime), timeout);
    const bool is_late = relations_request(play->relations, request) == REQUEST_LATE;
    relations_note_yield(
        play->relations, tag,
        ANSWERS(error, is_late ? ANSWERS_OF_CALL | ANSWER(LATE) /* until it has the abandon */
                               : answers_about(play, request, ANSWERS_OF_CALL, 0)));
    if (error == SKUA_E_LATE) {
        relations_note_answer(play->relations, request, error);
    }
}

static void call_name(struct play *play)
{
    const uint64_t tag = choose_tag(play, YIELD_CALL);
    const char *name = board_name(choose_name(play->reader));
    const uint64_t timeout = choose_call_timeout(play);
    if (relations_have_room(play->relations, tag)) {
        skua_payload payload = choose_payload(play->reader, play->runtime);
        relations_note_yield(play->relations, tag,
                             ANSWERS(skua_yield_call_name(play->ctx, tag, name, payload, timeout),
                                     ANSWERS_OF_CALL | ANSWERS_OF_NAME));
    }
}

/* ---- answering ---- */

/* The error of a reply: none, one of the program's, or one that is refused. */
static int choose_error(struct reader *reader)
{
    const uint8_t choice = reader_byte(reader);
    return choice < 0xf0 ? (choice % 2) * (SKUA_E_USER - choice) : choice;
}

static void reply(struct play *play)
{
    const skua_request request = choose_own_request(play);
    const int error = choose_error(play->reader);
    const int outcome =
        skua_reply(play->ctx, request, error, choose_payload(play->reader, play->runtime));
    const uint64_t refusals = ANSWER(PAYLOAD_SIZE) | (error > 0 ? ANSWER(INVALID) : 0);
    (void)ANSWERS(outcome, answers_about(play, request, ANSWER_OK, refusals));
    EXPECT(outcome != 0 || error <= 0);
    relations_note_answer(play->relations, request, outcome);
}

/* With what the call brought, or with what another event did. */
static void echo(struct play *play)
{
    skua_event *event = &play->events[reader_byte(play->reader) % play->count];
    const skua_request request =
        event->type == SKUA_EVENT_CALL ? event->request : choose_own_request(play);
    const int outcome = skua_reply_from(play->ctx, request, 0, &event->payload);
    (void)ANSWERS(outcome,
                  answers_about(play, request, ANSWER_OK, ANSWER(TAKEN) | ANSWER(PAYLOAD_SIZE)));
    EXPECT(event->payload.storage == SKUA_PAYLOAD_TAKEN ||
           event->payload.storage == SKUA_PAYLOAD_EMPTY);
    relations_note_answer(play->relations, request, outcome);
}

static void forward(struct play *play)
{
    const skua_request request = choose_own_request(play);
    const skua_pid to = choose_server(play->reader);
    const int outcome =
        skua_forward(play->ctx, request, to, choose_payload(play->reader, play->runtime));
    const uint64_t answers = ANSWER_OK | ANSWER(NO_PROCESS) | ANSWER(FOREIGN_PID) |
                             ANSWER(NOT_CALLABLE) | ANSWER(MAILBOX_FULL);
    (void)ANSWERS(outcome,
                  answers_about(play, request, answers,
                                ANSWER(PAYLOAD_SIZE) | ANSWER(INVALID) | ANSWER(FORWARDED)));
    relations_note_answer(play->relations, request, outcome);
}

static void look_at_deadline(struct play *play)
{
    const skua_request request = choose_own_request(play);
    const uint64_t deadline = skua_request_deadline(play->ctx, request);
    switch (relations_request(play->relations, request)) {
    case REQUEST_OWED:
        if (deadline == 0) { /* the caller has given up, and this one is not told of it, or later */
            const uint32_t asks = play->relations->asks;
            EXPECT((asks & RELATIONS_ABANDONS) == 0 || (asks & RELATIONS_PICKS) != 0);
            relations_note_answer(play->relations, request, SKUA_E_LATE);
        }
        break;
    case REQUEST_STRANGE:
        EXPECT(deadline == 0);
        break;
    case REQUEST_LATE:
    case REQUEST_UNKNOWN:
        break;
    }
}

static void leave(struct play *play)
{
    (void)play;
}

void verbs_answer_one(struct play *play)
{
    static void (*const verbs[])(struct play *) = {
        leave, leave, reply, echo, forward, forward, call_for, call_for, look_at_deadline,
    };
    verbs[reader_below(play->reader, COUNT_OF(verbs))](play);
}

void verbs_answer_all(struct play *play)
{
    struct relations *relations = play->relations;
    for (uint32_t i = relations->request_count; i-- > 0;) {
        const struct relation_request owed = relations->requests[i];
        if (!owed.is_late) {
            const int outcome = skua_reply(play->ctx, owed.request, 0, skua_nothing());
            (void)ANSWERS(outcome, ANSWER_OK | ANSWER(LATE));
            relations_note_answer(relations, owed.request, outcome);
        }
    }
}

/* ---- watching ---- */

static void watch(struct play *play)
{
    const bool joins = reader_below(play->reader, 2) == 0;
    const uint64_t tag = choose_tag(play, joins ? YIELD_JOIN : YIELD_MONITOR);
    const skua_pid pid = choose_pid(play->reader);
    const uint64_t timeout = choose_yield_timeout(play->reader);
    if (relations_have_room(play->relations, tag)) {
        const int error = joins ? skua_yield_join(play->ctx, tag, pid, timeout)
                                : skua_yield_monitor(play->ctx, tag, pid, timeout);
        relations_note_yield(play->relations, tag,
                             ANSWERS(error, ANSWERS_OF_YIELD | ANSWER(INVALID)));
    }
}

/* Sends, and waits for room. */
static void admit(struct play *play)
{
    const uint64_t tag = choose_tag(play, YIELD_SEND);
    const skua_pid pid = choose_pid(play->reader);
    const uint64_t timeout = choose_yield_timeout(play->reader);
    if (relations_have_room(play->relations, tag)) {
        const int error = skua_yield_send(play->ctx, tag, pid,
                                          choose_payload(play->reader, play->runtime), timeout);
        relations_note_yield(
            play->relations, tag,
            ANSWERS(error, ANSWERS_OF_YIELD | ANSWER(PAYLOAD_SIZE) | ANSWER(TAKEN)));
    }
}

/* Of a link: any number will do. */
static uint32_t choose_link_flags(struct reader *reader)
{
    const uint8_t choice = reader_byte(reader);
    return choice < 0xf0 ? choice % 8 : UINT32_C(1) << choice % 32;
}

static void note_link(struct play *play, const struct relation_link *link)
{
    relations_note_link(play->relations, link);
    board_note_link(link->id);
}

static void make_link(struct play *play)
{
    struct relation_link link = {.peer = choose_pid(play->reader),
                                 .tag = reader_byte(play->reader)};
    const uint32_t flags = choose_link_flags(play->reader);
    link.tells = (flags & SKUA_LINK_TELL) != 0;
    if (ANSWERS(skua_link(play->ctx, link.peer, flags, link.tag, &link.id),
                ANSWER_OK | ANSWER(NO_PROCESS) | ANSWER(FOREIGN_PID) | ANSWER(NO_MEMORY) |
                    ANSWER(INVALID))) {
        EXPECT(flags < 8 && flags % 4 != 3);
        note_link(play, &link);
    } else {
        EXPECT(link.id.bits == 0);
    }
}

static void unlink(struct play *play)
{
    const struct relations *relations = play->relations;
    const uint8_t choice = reader_byte(play->reader);
    const skua_link_id link = relations->link_count > 0 && choice < 0xc0
                                  ? relations->links[choice % relations->link_count].id
                                  : choose_link(play->reader);
    const int error = skua_unlink(play->ctx, link);
    (void)ANSWERS(error, ANSWER_OK | ANSWER(LATE));
    relations_note_unlink(play->relations, link, error);
}

/* A child with all that it can be started with. */
static void spawn(struct play *play)
{
    struct script_start start;
    struct relation_link link = {.tag = reader_byte(play->reader)};
    skua_pid pid = {0};
    script_choose(play->reader, play->runtime, &start);
    script_choose_relations(play->reader, &start);
    skua_spawn_options *options = &start.options;
    options->monitor_tag = choose_tag(play, YIELD_MONITOR);
    options->join_tag = choose_tag(play, YIELD_JOIN);
    options->monitor =
        options->monitor && relations_have_room(play->relations, options->monitor_tag);
    options->join = options->join && relations_have_room(play->relations, options->join_tag);
    options->link_flags = choose_link_flags(play->reader);
    options->link_tag = link.tag;
    options->link_id = &link.id;
    const int error = skua_spawn_with(play->ctx, options, &pid);
    const bool accepted = ANSWERS(error, ANSWERS_OF_SUBMIT);
    if (accepted) {
        board_note_pid(pid);
        relations_note_yield(play->relations, options->monitor_tag, options->monitor);
        relations_note_yield(play->relations, options->join_tag, options->join);
    } else {
        EXPECT(link.id.bits == 0);
        EXPECT(error != SKUA_E_NAME_TAKEN || !skua_pid_is_none(pid));
    }
    if (accepted && options->link) {
        link.peer = pid;
        link.tells = (options->link_flags & SKUA_LINK_TELL) != 0;
        note_link(play, &link);
    }
}

/* ---- names ---- */

static bool has_name(const struct play *play, uint32_t index)
{
    return (play->relations->names >> index & 1) != 0;
}

static void have_name(struct play *play)
{
    const uint32_t index = choose_name(play->reader);
    skua_pid holder;
    const int error = skua_name_register(play->ctx, board_name(index), &holder);
    const bool accepted = ANSWERS(error, ANSWER_OK | ANSWERS_OF_NAME | ANSWER(NAME_TAKEN) |
                                             ANSWER(NAME_LIMIT) | ANSWER(NO_MEMORY));
    EXPECT((error == SKUA_E_NAME_TAKEN) == !skua_pid_is_none(holder));
    if (has_name(play, index)) {
        EXPECT(error == SKUA_E_NO_MEMORY || skua_pid_equal(holder, skua_self(play->ctx)));
    } else {
        EXPECT(!skua_pid_equal(holder, skua_self(play->ctx)));
    }
    EXPECT(!accepted || index < BOARD_NAMES);
    play->relations->names |= (uint32_t)accepted << index;
}

static void give_up_name(struct play *play)
{
    const uint32_t index = choose_name(play->reader);
    const bool accepted =
        ANSWERS(skua_name_unregister(play->ctx, board_name(index)), ANSWERS_OF_FIND);
    EXPECT(accepted == has_name(play, index));
    play->relations->names &= ~(UINT32_C(1) << index);
}

/* Whoever has a name is found by it, by himself at least. */
static void look_for_name(struct play *play)
{
    const uint32_t index = choose_name(play->reader);
    skua_pid pid;
    const bool found =
        ANSWERS(skua_name_find(play->runtime, board_name(index), &pid), ANSWERS_OF_FIND);
    EXPECT(found == !skua_pid_is_none(pid));
    EXPECT(has_name(play, index) == skua_pid_equal(pid, skua_self(play->ctx)));
}

static void set_label(struct play *play)
{
    const uint32_t index = choose_name(play->reader);
    const char *label = reader_below(play->reader, 4) == 0 ? NULL : board_name(index);
    if (ANSWERS(skua_label(play->ctx, label), ANSWER_OK | ANSWERS_OF_NAME | ANSWER(NO_MEMORY))) {
        EXPECT(label == NULL || index < BOARD_NAMES);
    }
}

static void await_name(struct play *play)
{
    const uint64_t tag = choose_tag(play, YIELD_AWAIT);
    const uint32_t index = choose_name(play->reader);
    const uint64_t timeout = choose_yield_timeout(play->reader);
    if (relations_have_room(play->relations, tag)) {
        relations_note_yield(
            play->relations, tag,
            ANSWERS(skua_yield_await_name(play->ctx, tag, board_name(index), timeout),
                    ANSWERS_OF_YIELD | ANSWERS_OF_NAME));
    }
}

static void send_to_name(struct play *play)
{
    const char *name = board_name(choose_name(play->reader));
    (void)ANSWERS(skua_send_name(play->ctx, name, choose_payload(play->reader, play->runtime)),
                  ANSWERS_OF_SEND | ANSWERS_OF_NAME);
}

/* ---- groups ---- */

/* Their errors are beyond what ANSWER has bits for. */
static bool is_name_refused(int error)
{
    return error == SKUA_E_NAME || error == SKUA_E_NAME_LENGTH;
}

static void join_group(struct play *play)
{
    const uint32_t index = choose_name(play->reader);
    const int error = skua_group_join(play->ctx, board_name(index));
    EXPECT(error == 0 || error == SKUA_E_GROUP_LIMIT || error == SKUA_E_NO_MEMORY ||
           is_name_refused(error));
    EXPECT(error != 0 || index < BOARD_NAMES);
    EXPECT(error != 0 || skua_group_members(play->runtime, board_name(index), NULL, 0) > 0);
}

static void leave_group(struct play *play)
{
    const int error = skua_group_leave(play->ctx, board_name(choose_name(play->reader)));
    EXPECT(error == 0 || error == SKUA_E_NOT_MEMBER || is_name_refused(error));
}

static void watch_group(struct play *play)
{
    const uint64_t tag = choose_tag(play, YIELD_WATCH);
    const char *name = board_name(choose_name(play->reader));
    if (relations_have_room(play->relations, tag)) {
        relations_note_yield(play->relations, tag,
                             ANSWERS(skua_yield_group_watch(play->ctx, tag, name),
                                     ANSWERS_OF_YIELD | ANSWERS_OF_NAME));
    }
}

static void publish(struct play *play)
{
    const uint64_t tag = choose_tag(play, YIELD_PUBLISH);
    const char *name = board_name(choose_name(play->reader));
    if (relations_have_room(play->relations, tag)) {
        skua_payload payload = choose_payload(play->reader, play->runtime);
        relations_note_yield(play->relations, tag,
                             ANSWERS(skua_yield_publish(play->ctx, tag, name, payload),
                                     ANSWERS_OF_YIELD | ANSWERS_OF_NAME | ANSWER(NOT_SHARED) |
                                         ANSWER(TAKEN) | ANSWER(PAYLOAD_SIZE)));
    }
}

/* ---- without a context, and in the wrong place ---- */

/* What answers this to every argument. */
static void expect_refusals(skua_context *ctx, skua_pid pid, int refusal)
{
    const skua_request none = {0};
    skua_link_id link;
    skua_pid holder;
    EXPECT(skua_yield_call(ctx, 8, pid, ledger_payload(true, 0), 0) == refusal);
    EXPECT(skua_yield_call_for(ctx, 8, none, pid, ledger_payload(false, 8), 0) == refusal);
    EXPECT(skua_yield_call_name(ctx, 8, "a", ledger_payload(false, 8), 0) == refusal);
    EXPECT(skua_forward(ctx, none, pid, ledger_payload(true, 0)) == refusal);
    EXPECT(skua_yield_monitor(ctx, 8, pid, 0) == refusal);
    EXPECT(skua_yield_join(ctx, 8, pid, 0) == refusal);
    EXPECT(skua_yield_await_name(ctx, 8, "a", 0) == refusal);
    EXPECT(skua_link(ctx, pid, 0, 8, &link) == refusal && link.bits == 0);
    EXPECT(skua_name_register(ctx, "a", &holder) == refusal && skua_pid_is_none(holder));
    EXPECT(skua_request_deadline(ctx, none) == 0);
    EXPECT(skua_group_join(ctx, "a") == refusal);
    EXPECT(skua_yield_group_watch(ctx, 8, "a") == refusal);
    EXPECT(skua_yield_publish(ctx, 8, "a", ledger_payload(true, 0)) == refusal);
}

static void supervise(struct play *play)
{
    if (supervision_say_something(play->reader, play->ctx)) {
        play->relations->has_templates = true;
    }
}

static void start_supervisor(struct play *play)
{
    supervision_start(play->reader, play->ctx);
}

/* Of a supervisor, or of anybody who can be called. */
static void ask_for_report(struct play *play)
{
    const uint64_t tag = choose_tag(play, YIELD_CALL);
    const skua_pid to = choose_server(play->reader);
    const uint64_t timeout = choose_yield_timeout(play->reader);
    if (relations_have_room(play->relations, tag)) {
        const int error = skua_yield_supervisor_report(play->ctx, tag, to, timeout);
        relations_note_yield(play->relations, tag, ANSWERS(error, ANSWERS_OF_CALL));
    }
}

static void do_without_context(struct play *play)
{
    const skua_request request = choose_own_request(play);
    expect_refusals(NULL, choose_pid(play->reader), SKUA_E_INVALID);
    EXPECT(skua_reply(NULL, request, 0, ledger_payload(false, 8)) == SKUA_E_INVALID);
    EXPECT(skua_reply_from(play->ctx, request, 0, NULL) == SKUA_E_INVALID);
    EXPECT(skua_unlink(NULL, choose_link(play->reader)) == SKUA_E_INVALID);
    EXPECT(skua_name_unregister(NULL, "a") == SKUA_E_INVALID);
    EXPECT(skua_label(NULL, "a") == SKUA_E_INVALID);
    EXPECT(skua_send_name(NULL, "a", ledger_payload(true, 0)) == SKUA_E_INVALID);
}

void verbs_try_in_init(skua_context *ctx, struct reader *reader)
{
    const skua_pid pid = choose_pid(reader);
    const char *name = board_name(choose_name(reader));
    expect_refusals(ctx, pid, SKUA_E_CONTEXT);
    EXPECT(skua_reply(ctx, choose_request(reader), 0, ledger_payload(true, 0)) == SKUA_E_LATE);
    EXPECT(skua_unlink(ctx, choose_link(reader)) == SKUA_E_LATE);
    (void)ANSWERS(skua_name_unregister(ctx, name), ANSWER(NO_PROCESS) | ANSWERS_OF_NAME);
    (void)ANSWERS(skua_label(ctx, name), ANSWER_OK | ANSWERS_OF_NAME | ANSWER(NO_MEMORY));
    (void)ANSWERS(skua_send_name(ctx, name, ledger_payload(false, 8)),
                  ANSWERS_OF_SEND | ANSWERS_OF_NAME);
}

/* Every second process leaves its calls and links as they are. */
void verbs_try_in_close(skua_context *ctx, struct relations *relations)
{
    expect_refusals(ctx, skua_self(ctx), SKUA_E_CONTEXT);
    EXPECT(skua_label(ctx, "a") == SKUA_E_CONTEXT);
    EXPECT(skua_ready(ctx) == SKUA_E_CONTEXT && skua_blame(ctx, skua_self(ctx)) == SKUA_E_CONTEXT &&
           skua_supervise(ctx, NULL) == SKUA_E_CONTEXT);
    if (relations->number % 2 == 0) {
        return;
    }
    for (uint32_t i = 0; i < relations->request_count; i++) {
        (void)ANSWERS(skua_reply(ctx, relations->requests[i].request, 0, ledger_payload(false, 8)),
                      ANSWER_OK | ANSWER(LATE) | ANSWER(PAYLOAD_SIZE));
    }
    for (uint32_t i = 0; i < relations->link_count; i++) {
        (void)ANSWERS(skua_unlink(ctx, relations->links[i].id), ANSWER_OK | ANSWER(LATE));
        EXPECT(skua_unlink(ctx, relations->links[i].id) == SKUA_E_LATE);
    }
    (void)ANSWERS(skua_name_unregister(ctx, "a"), ANSWER_OK | ANSWER(NO_PROCESS));
    (void)ANSWERS(skua_send_name(ctx, "name", ledger_payload(false, 8)), ANSWERS_OF_SEND);
}

/* ---- changing ---- */

/* Only servers that expect what the newer types do; a task is refused. */
static void become(struct play *play)
{
    const uint32_t asks = RELATIONS_CALLS | RELATIONS_ABANDONS;
    const skua_process_type *type = script_newer_type(reader_byte(play->reader));
    if ((play->relations->asks & asks) != asks) {
        return;
    }
    const int error = skua_become(play->ctx, type);
    EXPECT(error == 0 || error == SKUA_E_VERSION || error == SKUA_E_DONE ||
           error == SKUA_E_NO_MEMORY);
}

static void upgrade(struct play *play)
{
    const skua_process_type *from = script_newer_type(reader_byte(play->reader));
    const skua_process_type *to = script_newer_type(reader_byte(play->reader));
    skua_upgrade_progress progress;
    const int asked = skua_runtime_upgrade(play->runtime, from, to);
    EXPECT(asked >= 0 || asked == SKUA_E_VERSION || asked == SKUA_E_NO_MEMORY ||
           asked == SKUA_E_STOPPED);
    if (asked >= 0) {
        EXPECT(skua_upgrade_read(play->runtime, from, to, &progress) == 0);
        EXPECT(progress.asked >= progress.migrated + progress.failed);
    }
}

/* ---- all of them ---- */

void verbs_perform(struct play *play)
{
    static void (*const verbs[])(struct play *) = {
        call,
        call,
        call,
        call,
        call,
        call_for,
        call_for,
        call_for,
        call_name,
        call_name,
        reply,
        reply,
        echo,
        forward,
        forward,
        watch,
        watch,
        admit,
        make_link,
        unlink,
        spawn,
        spawn,
        have_name,
        have_name,
        give_up_name,
        set_label,
        await_name,
        look_for_name,
        send_to_name,
        join_group,
        join_group,
        leave_group,
        watch_group,
        publish,
        look_at_deadline,
        leave,
        leave,
        supervise,
        start_supervisor,
        ask_for_report,
        do_without_context,
        become,
        become,
        upgrade,
    };
    verbs[reader_below(play->reader, COUNT_OF(verbs))](play);
}
