/* SPDX-License-Identifier: MIT */
/* The reading side of a trace. The notes are the test's own, so it is known what must be read. */
#include "inspect/tracing.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/monotonic.h"
#include "sched/note.h"
#include "scheduler_rig.h"

#define LINES_MAX 12000
#define OUTSIDE   UINT32_MAX /* instead of a worker */

struct line {
    char track[16];
    uint64_t time;
    char kind[16];
    uint64_t pid;
    char type[TEXT_NAME_MAX + 1];
    int64_t arg;
    uint64_t node;
};

static struct tracing tracing;
static struct line lines[LINES_MAX]; /* that were read */
static size_t line_count;
static char buffer[(size_t)1 << 20];

static void close_tracing(void)
{
    tracer_stop(&rig.sched.tracer);
}

static void open_tracing(void)
{
    scheduler_rig_open();
    line_count = 0;
    assert_true(tracing_start(&tracing, &rig.sched));
    test_at_end(close_tracing);
}

/* ---- writing ---- */

static void note(enum trace_kind kind, uint64_t pid, uint64_t data, uint32_t node, uint32_t number)
{
    note_record_in(tracer_active(&rig.sched.tracer), worker(0), kind, (skua_pid){pid}, data, node,
                   number);
}

/* Notes with rising numbers, to be found again. */
static void note_numbers(uint32_t who, uint32_t first, uint32_t count)
{
    struct worker *by = who == OUTSIDE ? NULL : worker(who);
    for (uint32_t i = 0; i < count; i++) {
        note_event(&rig.sched, by, TRACE_TAKE, (skua_pid){1}, first + i);
    }
}

/* ---- reading ---- */

static const char *read_line(const char *at, struct line *line)
{
    int length = 0;
    assert_int_equal(sscanf(at,
                            "r\t%15[^\t]\t%" SCNu64 "\t%15[^\t]\t%" SCNx64 "\t%64[^\t]\t%" SCNd64
                            "\t%" SCNu64 "%n",
                            line->track, &line->time, line->kind, &line->pid, line->type,
                            &line->arg, &line->node, &length),
                     7);
    assert_int_equal(at[length], '\n');
    return at + length + 1;
}

/* One answer; returns how many records it has. */
static size_t read_some(void)
{
    struct text out = {buffer, sizeof buffer, 0};
    const size_t before = line_count;
    tracing_read(&tracing, &rig.sched, TRACING_MAX, &out);
    assert_true(out.length < sizeof buffer);
    buffer[out.length] = '\0';
    for (const char *at = buffer; *at != '\0';) {
        assert_true(line_count < LINES_MAX);
        at = read_line(at, &lines[line_count++]);
    }
    return line_count - before;
}

/* All the rest, in place of what was read before; so many there are. */
static void read_all(size_t count)
{
    line_count = 0;
    while (read_some() > 0) {
    }
    assert_int_equal(line_count, count);
}

static void assert_line(const struct line *line, struct line expected)
{
    assert_string_equal(line->track, expected.track);
    assert_string_equal(line->kind, expected.kind);
    assert_int_equal(line->pid, expected.pid);
    assert_string_equal(line->type, expected.type);
    assert_int_equal(line->arg, expected.arg);
    assert_int_equal(line->node, expected.node);
}

/* What note_numbers writes. */
static void assert_number(const struct line *line, const char *track, uint64_t number)
{
    struct line expected = {.kind = "take", .pid = 1, .type = "-", .node = number};
    (void)snprintf(expected.track, sizeof expected.track, "%s", track);
    assert_line(line, expected);
}

TEST(tracing_writes_every_kind_as_documented)
{
    static const skua_process_type type = {.name = "ty\npe"};
    const uint64_t data = (uintptr_t)&type;
    const uint64_t part = trace_text_part("of\ta name"); /* of which 8 bytes fit */
    const uint32_t invalid = (uint32_t)SKUA_E_INVALID;
    const uint32_t terminated = (uint32_t)SKUA_E_TERMINATED;
    const uint32_t last = EVENT_NODES_MAX - 1;
    const struct {
        enum trace_kind kind;
        uint64_t pid;
        uint64_t data;
        uint32_t node;
        uint32_t number;
        struct line line;
    } rows[] = {
        {TRACE_BEGIN, 10, data, 0, 3, {"0", 0, "begin", 10, "ty?pe", 3, 0}},
        {TRACE_END, 10, 0, 0, invalid, {"0", 0, "end", 10, "-", SKUA_E_INVALID, 0}},
        {TRACE_SEND, 11, INT64_MAX, 5, 9, {"0", 0, "send", 11, "9", INT64_MAX, 5}},
        {TRACE_SEND, 11, 1, last, UINT32_MAX, {"0", 0, "send", 11, "4294967295", 1, last}},
        {TRACE_TAKE, 12, 0, 6, 0, {"0", 0, "take", 12, "-", 0, 6}},
        {TRACE_TIMER, 13, 0, 7, 0, {"0", 0, "timer", 13, "-", 0, 7}},
        {TRACE_COMPLETE, 14, 0, 8, 0, {"0", 0, "complete", 14, "-", 0, 8}},
        {TRACE_SPAWN, 15, data, 0, 0, {"0", 0, "spawn", 15, "ty?pe", 0, 0}},
        {TRACE_EXIT, 16, data, 0, terminated, {"0", 0, "exit", 16, "ty?pe", SKUA_E_TERMINATED, 0}},
        {TRACE_STEAL, 0, 32, 0, 1, {"0", 0, "steal", 0, "-", 32, 1}},
        {TRACE_PARK, 0, 0, 0, 0, {"0", 0, "park", 0, "-", 0, 0}},
        {TRACE_UNPARK, 0, 0, 0, 0, {"0", 0, "unpark", 0, "-", 0, 0}},
        {TRACE_NAME, 17, part, 0, 7, {"0", 0, "name", 17, "of?a nam", 7, 0}},
        {TRACE_LABEL, 18, trace_text_part("x"), 0, 0, {"0", 0, "label", 18, "x", 0, 0}},
    };
    FOR_ROWS (row, rows) {
        open_tracing();
        note(row->kind, row->pid, row->data, row->node, row->number);
        read_all(1);
        assert_line(&lines[0], row->line);
    }
}

TEST(tracing_tells_the_tracks_apart)
{
    open_tracing();
    assert_int_equal(read_some(), 0);
    note_numbers(1, 1, 1);
    note_numbers(OUTSIDE, 2, 1);
    note_numbers(2, 3, 1); /* the spare one */
    read_all(3);
    assert_number(&lines[0], "1", 1);
    assert_number(&lines[1], "2", 3);
    assert_number(&lines[2], "outside", 2);
}

/* All are read, in answers of bounded size, in order within each track; and a track that has much
 * does not keep the others waiting. */
TEST(tracing_reads_all_in_turns)
{
    uint32_t next[2] = {0};
    open_tracing();
    note_numbers(0, 0, 5000);
    note_numbers(1, 0, 100);
    assert_int_equal(read_some(), TRACING_MAX);
    for (size_t i = 0, found = 0; found < 100; i++) {
        assert_true(i < line_count);
        found += lines[i].track[0] == '1';
    }
    while (read_some() > 0) {
    }
    assert_int_equal(line_count, 5100);
    for (size_t i = 0; i < line_count; i++) {
        assert_int_equal(lines[i].node, next[atoi(lines[i].track)]++);
    }
}

TEST(tracing_has_times_that_rise)
{
    open_tracing();
    const uint64_t before = monotonic_ns();
    note_numbers(0, 0, 100);
    const uint64_t after = monotonic_ns();
    read_all(100);
    assert_in_range(lines[0].time, before, after);
    assert_in_range(lines[99].time, before, after);
    for (size_t i = 1; i < line_count; i++) {
        assert_true(lines[i].time >= lines[i - 1].time);
    }
}

/* What does not fit is counted; every number is there or in a gap. */
TEST(tracing_counts_what_is_lost)
{
    open_tracing();
    note_numbers(0, 0, RING_CAPACITY + 77);
    size_t read = 0;
    while (read < RING_CAPACITY) {
        line_count = 0;
        read += read_some();
    }
    assert_int_equal(read, RING_CAPACITY);
    assert_int_equal(read_some(), 0);
    note_numbers(0, 4711, 1);
    read_all(2);
    assert_line(&lines[0], (struct line){"0", 0, "lost", 0, "-", 77, 0});
    assert_number(&lines[1], "0", 4711);
    assert_true(lines[0].time <= lines[1].time);
}

/* ---- one trace after the other ---- */

static void start_again(void)
{
    tracer_stop(&rig.sched.tracer);
    assert_true(tracing_start(&tracing, &rig.sched));
}

/* Neither records nor gaps: nothing was lost in this trace. */
TEST(tracing_begins_without_what_was_before)
{
    static const uint32_t before[] = {1, RING_CAPACITY + 5};
    FOR_ROWS (count, before) {
        open_tracing();
        note_numbers(0, 0, *count);
        note_numbers(OUTSIDE, 2, 1);
        start_again();
        note_numbers(0, 4711, 1);
        read_all(1);
        assert_number(&lines[0], "0", 4711);
    }
}

/* A thread that looked at `trace` while the last trace went on, and writes now. */
TEST(tracing_leaves_out_what_came_late)
{
    open_tracing();
    struct trace *rings = rig.sched.tracer.rings;
    const struct ring_record late = {{monotonic_ns(), 1, 0, trace_word(TRACE_TAKE, 5, 0)}};
    start_again();
    assert_true(tracing.since > late.words[0]);
    assert_true(ring_write_owner(&rings->rings[0], &late));
    note_numbers(0, 6, 1);
    read_all(1);
    assert_number(&lines[0], "0", 6);
}

TEST(tracing_that_has_stopped_notes_nothing)
{
    open_tracing();
    tracer_stop(&rig.sched.tracer);
    note_numbers(0, 1, 1);
    note_numbers(OUTSIDE, 1, 1);
    assert_int_equal(read_some(), 0);
}

/* A ring that is full at the end of a trace: no record follows that would tell of the gap. */
TEST(tracing_tells_at_its_end_what_is_missing)
{
    char text[256] = "";
    struct text out = {.at = text, .size = sizeof text};
    open_tracing();
    tracing_read_end(&tracing, &rig.sched, &out);
    assert_int_equal(out.length, 0);
    note_numbers(0, 0, RING_CAPACITY + 3);
    tracer_stop(&rig.sched.tracer);
    tracing_read_end(&tracing, &rig.sched, &out);
    assert_memory_equal(text, "r\t0\t", 4);
    assert_non_null(strstr(text, "\tlost\t0000000000000000\t-\t3\t0\n"));
    assert_ptr_equal(strchr(text, '\n'), text + out.length - 1);
}

/* The rings have not been made yet. */
TEST(tracing_without_memory_does_not_begin)
{
    scheduler_rig_open();
    counting_allocator_fail_once(&memory, 1);
    assert_false(tracing_start(&tracing, &rig.sched));
    assert_null(load_relaxed(&rig.sched.tracer.active));
    start_again();
    tracer_stop(&rig.sched.tracer);
}
