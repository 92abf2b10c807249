/* SPDX-License-Identifier: MIT */
#include "supervision.h"

#include <skua/supervisor.h>

#include "calls.h"
#include "count_of.h"
#include "ledger.h"

/* ---- the children ---- */

/* Ends after a few steps, in one way or another. */
static int weak_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    switch (skua_random(ctx) % 8) {
    case 0:
        return SKUA_E_USER;
    case 1:
        return skua_done(ctx, skua_nothing());
    case 2:
        return skua_continue(ctx);
    case 3:
        return skua_ready(ctx);
    default:
        return 0;
    }
}

static const skua_process_type weak_type = {.name = "weak", .step = weak_step};
static const skua_process_type other_type = {.name = "other", .step = weak_step};

#define FAST                                                                                       \
    {                                                                                              \
        .first_ns = 100, .max_ns = SKUA_MILLISECOND                                                \
    }

static const skua_child weak_children[] = {
    {.name = "a", .type = &weak_type, .backoff = FAST},
    {.name = "b", .type = &weak_type, .backoff = FAST, .start_ns = SKUA_MILLISECOND},
    {.name = "c", .type = &weak_type, .restart = SKUA_RESTART_ON_ERROR, .registered = true},
    {.name = "d", .type = &weak_type, .restart = SKUA_RESTART_NEVER},
};
static const skua_child templates[] = {
    {.name = "weak", .type = &weak_type, .backoff = FAST, .restart = SKUA_RESTART_ON_ERROR},
    {.name = "other", .type = &other_type, .restart = SKUA_RESTART_NEVER},
};
static const skua_supervisor inner = {
    .name = "inner", .children = weak_children, .child_count = 2, .budget = {3, SKUA_SECOND}};
static const skua_child nested[] = {
    {.name = "inner", .supervisor = &inner, .backoff = FAST, .start_ns = SKUA_SECOND},
    {.name = "weak", .type = &weak_type, .significant = true, .restart = SKUA_RESTART_NEVER},
};

#define TEAM 3

/* The last makes no sense. */
static const skua_supervisor supervisors[] = {
    {.name = "one", .children = weak_children, .child_count = 4},
    {.name = "all", .children = weak_children, .child_count = 4, .strategy = SKUA_STRATEGY_ALL},
    {.name = "rest", .children = weak_children, .child_count = 3, .strategy = SKUA_STRATEGY_REST},
    {.name = "team", .templates = templates, .template_count = 2},
    {.name = "tree", .children = nested, .child_count = 2, .auto_stop = SKUA_AUTO_STOP_ANY},
    {.name = "tight", .children = weak_children, .child_count = 2, .quota = {2, 3, 100}},
    {.name = "full", .templates = templates, .template_count = 2, .quota = {.processes = 1}},
    {.name = "wrong", .children = nested, .child_count = 2},
};

/* ---- calls ---- */

static void note_start(uint32_t which, int error, skua_pid pid)
{
    if (error == SKUA_E_SPECIFICATION) {
        EXPECT(which == COUNT_OF(supervisors) - 1);
    } else if (ANSWERS(error, ANSWERS_OF_SUBMIT | ANSWER(OWN_LIMIT))) {
        EXPECT(which < COUNT_OF(supervisors) - 1);
        board_note_pid(pid);
        board_note_server(pid);
    }
}

static void start(struct reader *reader, skua_runtime *runtime)
{
    skua_pid pid;
    const uint32_t which = reader_below(reader, COUNT_OF(supervisors));
    note_start(which, skua_process_start_supervisor(runtime, &supervisors[which], &pid), pid);
}

/* By its type, with the right input or any other. */
static void start_by_type(struct reader *reader, skua_runtime *runtime)
{
    skua_pid pid;
    const uint32_t which = reader_below(reader, COUNT_OF(supervisors));
    const bool is_right = reader_byte(reader) % 4 != 0;
    skua_payload input = skua_supervisor_input(&supervisors[which]);
    if (!is_right) {
        input = skua_payload_u64(0, which);
    }
    const int error = skua_process_submit(runtime, skua_supervisor_type(), input, &pid);
    if (is_right) {
        note_start(which, error, pid);
    } else {
        EXPECT(error < 0);
    }
}

void supervision_start(struct reader *reader, skua_context *ctx)
{
    skua_pid pid;
    const uint32_t which = reader_below(reader, COUNT_OF(supervisors));
    note_start(which, skua_supervisor_start(ctx, &supervisors[which], &pid), pid);
}

void supervision_read_report(const skua_payload *payload)
{
    const size_t count = skua_report_count(payload);
    skua_child_report child;
    for (size_t i = 0; i < count; i++) {
        EXPECT(skua_report_child(payload, i, &child) == 0);
        EXPECT(child.name[0] != '\0' && child.type != NULL);
        EXPECT(skua_child_state_name(child.state)[0] != '?');
    }
    EXPECT(skua_report_child(payload, count, &child) == SKUA_E_INVALID);
}

static void start_child(struct reader *reader, skua_runtime *runtime)
{
    skua_pid pid;
    skua_payload input[] = {choose_payload(reader, runtime)};
    const uint8_t choice = reader_byte(reader);
    const skua_spawn_options options = {
        .type = choice % 2 == 0 ? &weak_type : &other_type,
        .input = input,
        .input_count = choice / 2 % 2,
        .name = choice / 4 % 4 == 0 ? board_name(choose_name(reader)) : NULL,
        .label = choice / 16 % 4 == 0 ? board_name(choose_name(reader)) : NULL,
        .supervisor = choose_pid(reader),
    };
    if (options.input_count == 0) {
        skua_payload_drop(&input[0]);
    }
    const int error = skua_process_submit_with(runtime, &options, &pid);
    if (error != SKUA_E_NO_TEMPLATE &&
        ANSWERS(error, ANSWERS_OF_SUBMIT | ANSWER(NO_PROCESS) | ANSWER(FOREIGN_PID) | ANSWER(LATE) |
                           ANSWER(NOT_SHARED))) {
        board_note_pid(pid);
    }
}

/* Of what any bytes say. */
static void check(struct reader *reader, skua_runtime *runtime)
{
    char text[64];
    skua_child child = weak_children[reader_below(reader, COUNT_OF(weak_children))];
    skua_supervisor specification = supervisors[reader_below(reader, COUNT_OF(supervisors))];
    (void)runtime;
    child.restart = (enum skua_restart)(reader_byte(reader) % 4);
    child.significant = reader_byte(reader) % 4 == 0;
    child.start_ns = (uint64_t)reader_byte(reader) << 56;
    child.budget.restarts = reader_byte(reader);
    child.budget.period_ns = reader_byte(reader);
    child.backoff.first_ns = reader_byte(reader);
    child.backoff.max_ns = reader_byte(reader);
    specification.children = &child;
    specification.child_count = reader_byte(reader) % 2;
    specification.strategy = (enum skua_strategy)(reader_byte(reader) % 4);
    specification.quota.processes = reader_byte(reader) % 2;
    specification.quota.bytes = (size_t)reader_byte(reader) << 56;
    const int error = skua_supervisor_check(&specification, text, reader_byte(reader) % 64);
    EXPECT(error == 0 || error == SKUA_E_SPECIFICATION);
}

static void look_at_quota(struct reader *reader, skua_runtime *runtime)
{
    skua_quota_use use;
    char path[64];
    const skua_pid pid = choose_pid(reader);
    (void)ANSWERS(skua_process_path(runtime, pid, path, reader_byte(reader) % sizeof path),
                  ANSWER_OK | ANSWER(INVALID) | ANSWER(NO_PROCESS) | ANSWER(FOREIGN_PID));
    const int error = skua_process_quota(runtime, pid, &use);
    if (ANSWERS(error, ANSWER_OK | ANSWER(INVALID) | ANSWER(NO_PROCESS) | ANSWER(FOREIGN_PID))) {
        EXPECT(use.used.processes <= use.limit.processes);
        EXPECT(use.used.messages <= use.limit.messages && use.used.bytes <= use.limit.bytes);
    }
}

static int limit(struct reader *reader, skua_context *ctx)
{
    const skua_quota quota = {.processes = reader_below(reader, 8),
                              .messages = reader_below(reader, 8),
                              .bytes = reader_below(reader, 3) * 64};
    return skua_limit(ctx, quota);
}

void supervision_make_one(struct reader *reader, skua_runtime *runtime)
{
    static void (*const calls[])(struct reader *, skua_runtime *) = {
        start, start_by_type, start_child, start_child, check, look_at_quota};
    calls[reader_below(reader, COUNT_OF(calls))](reader, runtime);
}

bool supervision_say_something(struct reader *reader, skua_context *ctx)
{
    const bool offers = reader_below(reader, 4) == 0;
    const int error = offers                         ? skua_supervise(ctx, &supervisors[TEAM])
                      : reader_below(reader, 2) == 0 ? skua_ready(ctx)
                      : reader_below(reader, 2) == 0 ? skua_count(ctx, SKUA_COUNT_RESTART)
                      : reader_below(reader, 2) == 0 ? skua_blame(ctx, choose_pid(reader))
                                                     : skua_supervise(ctx, NULL);
    const bool is_offered = ANSWERS(error, ANSWER_OK | ANSWER(NO_MEMORY)) && offers;
    if (reader_below(reader, 8) == 0) {
        (void)ANSWERS(limit(reader, ctx), ANSWER_OK | ANSWER(NO_MEMORY) | ANSWER(INVALID));
    }
    return is_offered;
}
