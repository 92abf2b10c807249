/* SPDX-License-Identifier: MIT */
/* The trace of a simulation: what its records say, and how they read as text. */
#include <stdio.h>

#include "actor.h"
#include "desk.h"
#include "names.h"
#include "sim_trace.h"

#define START SKUA_SIM_START_NS

#define NAMES_SIZE 200

/* That a record is the expected one, which need not say whose it is and when. */
static void assert_record(const skua_sim_record *record, skua_sim_record expected, skua_pid pid,
                          uint64_t now)
{
    expected.pid = pid;
    expected.now_ns = now;
    assert_same_record(record, &expected);
}

TEST(trace_tells_all_of_a_process)
{
    world_create_sim(3, (skua_sim_config){0});
    (void)desk_open();
    world_start();
    struct actor *actor = actor_start(ACTS(yields(5, DESK_COMPLETE, 4, 6), sleeps(7, SKUA_SECOND),
                                           cancels(7), awaits(1), fails(SKUA_E_USER)));
    assert_int_equal(skua_sim_step(world_runtime()), 1);
    world_settle();
    const char *name = actor->type.name;
    const skua_sim_record *records = world->sim.trace.records;
    const size_t count = world->sim.trace.count;
    assert_true(count >= 8);
    const skua_sim_record first[] = {
        {.type = SKUA_SIM_STEP, .type_name = name, .step = 1, .count = 1},
        {.type = SKUA_SIM_EVENT, .what = SKUA_EVENT_START, .type_name = name, .step = 1},
        /* The handler's name; for the timer, its number and size are the runtime's own. */
        {.type = SKUA_SIM_YIELD,
         .what = DESK_COMPLETE,
         .type_name = records[2].type_name,
         .tag = 5,
         .count = 8,
         .payload_type = 4,
         .step = 1},
        {.type = SKUA_SIM_YIELD,
         .what = records[3].what,
         .type_name = records[3].type_name,
         .tag = 7,
         .count = records[3].count,
         .payload_type = records[3].payload_type,
         .step = 1},
        {.type = SKUA_SIM_CANCEL, .tag = 7, .step = 1},
    };
    for (size_t i = 0; i < COUNT_OF(first); i++) {
        assert_record(&records[i], first[i], actor->pid, START);
    }
    assert_string_equal(records[2].type_name, "handler");
    assert_non_null(records[3].type_name);
    assert_true(records[3].what >= SKUA_COMMAND_RESERVED);

    /* One or both of the completions. */
    assert_int_equal(sim_count(SKUA_SIM_STEP, 0), 2);
    const skua_sim_record *second = sim_find(SKUA_SIM_STEP, 0, 1);
    assert_int_equal(second->step, 2);
    assert_in_range(second->count, 1, 2);
    const skua_sim_record completions[] = {
        {.tag = 5, .count = 8, .payload_type = DESK_RESULT},
        {.tag = 7, .error = SKUA_E_CANCELLED},
    };
    for (size_t i = 0; i < second->count; i++) {
        skua_sim_record expected = completions[i];
        expected.type = SKUA_SIM_EVENT;
        expected.what = SKUA_EVENT_COMPLETION;
        expected.type_name = name;
        expected.step = 2;
        assert_record(sim_find(SKUA_SIM_EVENT, SKUA_EVENT_COMPLETION, i), expected, actor->pid,
                      second->now_ns);
    }
    assert_record(&records[count - 1],
                  (skua_sim_record){.type = SKUA_SIM_EXIT, .type_name = name, .error = SKUA_E_USER},
                  actor->pid, second->now_ns);
}

TEST(trace_tells_who_sent_a_message)
{
    world_open_sim(11, SIM_NO_FAULTS);
    struct actor *receiver = actor_start(NO_ACTS);
    struct actor *sender = actor_start(ACTS(sends(receiver, UINT32_MAX, 1), finishes(0)));
    world_settle();
    const skua_sim_record *event = sim_find(SKUA_SIM_EVENT, SKUA_EVENT_MESSAGE, 0);
    assert_int_equal(event->pid.bits, receiver->pid.bits);
    assert_int_equal(event->from.bits, sender->pid.bits);
    assert_int_equal(event->count, 8);
    assert_int_equal(event->payload_type, UINT32_MAX);
}

/* ---- what processes are called ---- */

/* Adds what the process of a step or an end is called. */
static void add_names(void *arg, const skua_sim_record *record)
{
    char *text = arg;
    if (record->type == SKUA_SIM_STEP || record->type == SKUA_SIM_EXIT) {
        const size_t length = strlen(text);
        (void)snprintf(text + length, NAMES_SIZE - length, "%s%s/%s ",
                       record->type == SKUA_SIM_EXIT ? "ends: " : "",
                       record->name != NULL ? record->name : "",
                       record->label != NULL ? record->label : "");
    }
}

/* In each step as it was before, and at the end as it was last. */
TEST(trace_tells_names_and_labels)
{
    char text[NAMES_SIZE] = "";
    world_create_sim(11, (skua_sim_config){.on_record = add_names, .on_record_arg = text});
    world_start();
    assert_result(actor_run(actor_new(ACTS(takes_name("one"), takes_name("two"), continues(1),
                                           takes_label("old"), continues(1), gives_up_name("one"),
                                           continues(1), finishes(0)))),
                  0);
    assert_string_equal(text, "/ one/ one/old two/old ends: two/old ");
    text[0] = '\0';
    assert_result(actor_run(actor_new(ACTS(finishes(0)))), 0);
    assert_string_equal(text, "/ ends: / ");
}

/* ---- records as text ---- */

#define TIME "       3.000000005  "

static void assert_text(skua_sim_record record, const char *expected)
{
    char text[200];
    const int length = (int)strlen(expected);
    record.now_ns = 3 * SKUA_SECOND + 5;
    assert_int_equal(skua_sim_record_format(&record, text, sizeof text), length);
    assert_string_equal(text, expected);
    assert_int_equal(skua_sim_record_format(&record, NULL, 0), length);
    for (size_t size = 1; size <= strlen(expected) + 1; size++) { /* as snprintf: cut, and ended */
        memset(text, '#', sizeof text);
        assert_int_equal(skua_sim_record_format(&record, text, size), length);
        assert_memory_equal(text, expected, size - 1);
        assert_int_equal(text[size - 1], '\0');
        assert_int_equal(text[size], '#');
    }
}

TEST(record_becomes_one_line_of_text)
{
    const struct {
        skua_sim_record record;
        const char *text;
    } rows[] = {
        {{.type = SKUA_SIM_CLOCK}, TIME "the clock moves on"},
        {{.type = SKUA_SIM_STEP, .type_name = "bee", .step = 4, .count = 2},
         TIME "bee 0.0 step 4, 2 events"},
        {{.type = SKUA_SIM_STEP, .type_name = "bee", .name = "queen", .label = "old", .count = 1},
         TIME "bee queen (old) 0.0 step 0, 1 events"},
        {{.type = SKUA_SIM_EXIT, .type_name = "bee", .name = "queen"}, TIME "bee queen 0.0 ends"},
        {{.type = SKUA_SIM_EXIT, .type_name = "bee", .label = "old"}, TIME "bee (old) 0.0 ends"},
        {{.type = SKUA_SIM_EVENT, .what = SKUA_EVENT_MESSAGE, .payload_type = 7, .count = 8},
         TIME "    message type 7, 8 bytes from 0.0"},
        {{.type = SKUA_SIM_EVENT, .what = SKUA_EVENT_COMPLETION, .tag = 6, .error = SKUA_E_TIMEOUT},
         TIME "    completion tag 6, type 0, 0 bytes, SKUA_E_TIMEOUT (-5016)"},
        {{.type = SKUA_SIM_EVENT, .what = SKUA_EVENT_TICK, .tag = 1, .payload_type = UINT32_MAX},
         TIME "    tick tag 1, type 4294967295, 0 bytes"},
        {{.type = SKUA_SIM_EVENT, .what = SKUA_EVENT_CANCEL, .error = SKUA_E_STOPPED},
         TIME "    cancel, SKUA_E_STOPPED (-5014)"},
        {{.type = SKUA_SIM_YIELD,
          .type_name = "brew",
          .what = 9,
          .tag = 8,
          .payload_type = 6,
          .count = 7},
         TIME "    yields brew (9) tag 8, type 6, 7 bytes"},
        {{.type = SKUA_SIM_YIELD, .what = 9}, TIME "    yields ? (9) tag 0, type 0, 0 bytes"},
        {{.type = SKUA_SIM_CANCEL, .tag = 8}, TIME "    takes back tag 8"},
        {{.type = SKUA_SIM_EXIT, .type_name = "bee"}, TIME "bee 0.0 ends"},
        {{.type = SKUA_SIM_EXIT, .type_name = "bee", .error = SKUA_E_TERMINATED},
         TIME "bee 0.0 ends, SKUA_E_TERMINATED (-5017)"},
        {{.type = 99}, TIME "?"},
        {{.type = SKUA_SIM_EVENT, .what = 99, .count = 1}, TIME "    ?"},
        {{.type = SKUA_SIM_EVENT, .what = SKUA_EVENT_START}, TIME "    start"},
        {{.type = SKUA_SIM_EVENT, .what = SKUA_EVENT_CONTINUE}, TIME "    continue"},
        {{.type = SKUA_SIM_EVENT, .what = SKUA_EVENT_CALL, .payload_type = 7, .count = 8},
         TIME "    call type 7, 8 bytes from 0.0"},
        {{.type = SKUA_SIM_EVENT, .what = SKUA_EVENT_ABANDON}, TIME "    abandon from 0.0"},
        {{.type = SKUA_SIM_EVENT, .what = SKUA_EVENT_EXIT, .error = SKUA_E_TERMINATED},
         TIME "    exit of 0.0, SKUA_E_TERMINATED (-5017)"},
        {{.type = SKUA_SIM_YIELD, .type_name = "sleep", .what = SKUA_COMMAND_RESERVED, .tag = 8},
         TIME "    yields sleep tag 8"},
        {{.type = SKUA_SIM_FAULT, .what = SKUA_SIM_NO_MEMORY}, TIME "fault: an allocation fails"},
    };
    FOR_ROWS (row, rows) {
        assert_text(row->record, row->text);
    }
}

TEST(record_of_each_fault_has_a_text)
{
    const struct {
        uint32_t what;
        const char *text;
    } rows[] = {
        {SKUA_SIM_MESSAGE_DELAY, TIME "fault: a message is delayed: bee 0.0"},
        {SKUA_SIM_HANDLER_ERROR, TIME "fault: a handler fails: bee 0.0"},
        {SKUA_SIM_SLOW_COMPLETION, TIME "fault: a completion comes late: bee 0.0"},
        {SKUA_SIM_NO_MEMORY, TIME "fault: an allocation fails: bee 0.0"},
        {SKUA_SIM_SPURIOUS_WAKE, TIME "fault: woken for no reason: bee 0.0"},
        {SKUA_SIM_PROCESS_KILL, TIME "fault: terminated: bee 0.0"},
        {99, TIME "fault: ?: bee 0.0"},
    };
    FOR_ROWS (row, rows) {
        assert_text(
            (skua_sim_record){.type = SKUA_SIM_FAULT, .what = row->what, .type_name = "bee"},
            row->text);
    }
}

TEST(record_format_refuses_nothing_to_read_or_write)
{
    char text[10];
    const skua_sim_record record = {.type = SKUA_SIM_CLOCK};
    assert_int_equal(skua_sim_record_format(NULL, text, sizeof text), SKUA_E_INVALID);
    assert_int_equal(skua_sim_record_format(&record, NULL, 1), SKUA_E_INVALID);
}
