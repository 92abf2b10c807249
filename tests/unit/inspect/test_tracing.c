/* SPDX-License-Identifier: MIT */
/* The reading side of a trace. The notes are the test's own, so it is known what must be read. */
#include "inspect/tracing.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/monotonic.h"
#include "runtime/runtime.h"
#include "runtime_support.h"
#include "sched/note.h"

#define WORKERS      2
#define RECORDS_MAX  1000 /* in one answer */
#define RECORD_COUNT 12000

struct line {
    char track[16];
    uint64_t time;
    char kind[16];
    uint64_t pid;
    char type[TEXT_NAME_MAX + 1];
    int64_t arg;
    uint64_t node;
};

/* A runtime that never starts: nobody but the test notes anything. */
struct scene {
    struct api api;
    struct scheduler *sched;
    struct tracing tracing;
    struct line lines[RECORD_COUNT];
    size_t count;
};

static struct scene scene;
static char buffer[(size_t)1 << 20];

static int begin(void **state)
{
    (void)state;
    api_create(&scene.api, (skua_runtime_config){.worker_count = WORKERS, .spare_limit = 1});
    scene.sched = &scene.api.runtime->sched;
    scene.count = 0;
    return tracing_start(&scene.tracing, scene.sched) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    tracer_stop(&scene.sched->tracer);
    const int error = skua_runtime_destroy(scene.api.runtime);
    return error == 0 && counting_allocator_is_clean(&scene.api.memory) ? 0 : -1;
}

static struct worker *worker(uint32_t index)
{
    return &scene.sched->workers[index];
}

static void note(struct worker *who, enum trace_kind kind, uint64_t pid, uint64_t data,
                 uint32_t number)
{
    note_trace(scene.sched, who, kind, (skua_pid){pid}, data, number);
}

/* The number of the note, to be found again. */
static void note_number(struct worker *who, uint32_t number)
{
    note(who, TRACE_TAKE, 1, 0, number);
}

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
    const size_t before = scene.count;
    tracing_read(&scene.tracing, scene.sched, TRACING_MAX, &out);
    assert_true(out.length < sizeof buffer);
    buffer[out.length] = '\0';
    for (const char *at = buffer; *at != '\0';) {
        assert_true(scene.count < RECORD_COUNT);
        at = read_line(at, &scene.lines[scene.count++]);
    }
    return scene.count - before;
}

static void read_all(void)
{
    scene.count = 0;
    while (read_some() > 0) {
    }
}

static void assert_line(const struct line *line, const char *track, const char *kind, uint64_t pid,
                        const char *type, int64_t arg, uint64_t in_node)
{
    assert_string_equal(line->track, track);
    assert_string_equal(line->kind, kind);
    assert_int_equal(line->pid, pid);
    assert_string_equal(line->type, type);
    assert_int_equal(line->arg, arg);
    assert_int_equal(line->node, in_node);
}

/* ---- tests ---- */

static void tracing_writes_every_kind_as_documented(void **state)
{
    (void)state;
    static const skua_process_type type = {.name = "ty\npe"};
    const uint64_t data = (uintptr_t)&type;
    note(worker(0), TRACE_BEGIN, 10, data, 3);
    note(worker(0), TRACE_END, 10, 0, (uint32_t)SKUA_E_INVALID);
    note(worker(0), TRACE_SEND, 11, INT64_MAX, 5);
    note(worker(0), TRACE_TAKE, 12, 0, 6);
    note(worker(0), TRACE_TIMER, 13, 0, 7);
    note(worker(0), TRACE_COMPLETE, 14, 0, 8);
    note(worker(0), TRACE_SPAWN, 15, data, 0);
    note(worker(0), TRACE_EXIT, 16, data, (uint32_t)SKUA_E_TERMINATED);
    note(worker(0), TRACE_STEAL, 0, 32, 1);
    note(worker(0), TRACE_PARK, 0, 0, 0);
    note(worker(0), TRACE_UNPARK, 0, 0, 0);
    read_all();
    const struct line *line = scene.lines;
    assert_int_equal(scene.count, 11);
    assert_line(line++, "0", "begin", 10, "ty?pe", 3, 0);
    assert_line(line++, "0", "end", 10, "-", SKUA_E_INVALID, 0);
    assert_line(line++, "0", "send", 11, "-", INT64_MAX, 5);
    assert_line(line++, "0", "take", 12, "-", 0, 6);
    assert_line(line++, "0", "timer", 13, "-", 0, 7);
    assert_line(line++, "0", "complete", 14, "-", 0, 8);
    assert_line(line++, "0", "spawn", 15, "ty?pe", 0, 0);
    assert_line(line++, "0", "exit", 16, "ty?pe", SKUA_E_TERMINATED, 0);
    assert_line(line++, "0", "steal", 0, "-", 32, 1);
    assert_line(line++, "0", "park", 0, "-", 0, 0);
    assert_line(line++, "0", "unpark", 0, "-", 0, 0);
}

static void tracing_tells_the_tracks_apart(void **state)
{
    (void)state;
    note_number(worker(1), 1);
    note_number(NULL, 2);
    note_number(worker(2), 3); /* the spare one */
    read_all();
    assert_int_equal(scene.count, 3);
    assert_line(&scene.lines[0], "1", "take", 1, "-", 0, 1);
    assert_line(&scene.lines[1], "2", "take", 1, "-", 0, 3);
    assert_line(&scene.lines[2], "outside", "take", 1, "-", 0, 2);
}

static void tracing_reads_nothing_where_nothing_happened(void **state)
{
    (void)state;
    assert_int_equal(read_some(), 0);
}

/* All are read, in answers of bounded size, in order within each track; and a track that has much
 * does not keep the others waiting. */
static void tracing_reads_all_in_turns(void **state)
{
    (void)state;
    uint32_t next[2] = {0};
    for (uint32_t i = 0; i < 5000; i++) {
        note_number(worker(0), i);
    }
    for (uint32_t i = 0; i < 100; i++) {
        note_number(worker(1), i);
    }
    assert_int_equal(read_some(), RECORDS_MAX);
    for (size_t i = 0, found = 0; found < 100; i++) {
        assert_true(i < scene.count);
        found += scene.lines[i].track[0] == '1';
    }
    while (read_some() > 0) {
    }
    assert_int_equal(scene.count, 5100);
    for (size_t i = 0; i < scene.count; i++) {
        assert_int_equal(scene.lines[i].node, next[atoi(scene.lines[i].track)]++);
    }
}

static void tracing_has_times_that_rise(void **state)
{
    (void)state;
    const uint64_t before = monotonic_ns();
    for (uint32_t i = 0; i < 100; i++) {
        note_number(worker(0), i);
    }
    const uint64_t after = monotonic_ns();
    read_all();
    assert_int_equal(scene.count, 100);
    assert_in_range(scene.lines[0].time, before, after);
    assert_in_range(scene.lines[99].time, before, after);
    for (size_t i = 1; i < scene.count; i++) {
        assert_true(scene.lines[i].time >= scene.lines[i - 1].time);
    }
}

/* What does not fit is counted; every number is there or in a gap. */
static void tracing_counts_what_is_lost(void **state)
{
    (void)state;
    const uint32_t lost = 77;
    for (uint32_t i = 0; i < RING_CAPACITY + lost; i++) {
        note_number(worker(0), i);
    }
    size_t read = 0;
    while (read < RING_CAPACITY) {
        scene.count = 0;
        read += read_some();
    }
    scene.count = 0;
    assert_int_equal(read_some(), 0);
    note_number(worker(0), 4711);
    read_all();
    assert_int_equal(read, RING_CAPACITY);
    assert_int_equal(scene.count, 2);
    assert_line(&scene.lines[0], "0", "lost", 0, "-", lost, 0);
    assert_line(&scene.lines[1], "0", "take", 1, "-", 0, 4711);
    assert_true(scene.lines[0].time <= scene.lines[1].time);
}

/* ---- one trace after the other ---- */

static void again(void)
{
    tracer_stop(&scene.sched->tracer);
    assert_true(tracing_start(&scene.tracing, scene.sched));
}

static void tracing_begins_without_what_was_before(void **state)
{
    (void)state;
    note_number(worker(0), 1);
    note_number(NULL, 2);
    again();
    note_number(worker(0), 3);
    read_all();
    assert_int_equal(scene.count, 1);
    assert_int_equal(scene.lines[0].node, 3);
}

/* Nothing was lost in this trace. */
static void tracing_begins_without_the_gaps_of_before(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < RING_CAPACITY + 5; i++) {
        note_number(worker(0), i);
    }
    again();
    note_number(worker(0), 4711);
    read_all();
    assert_int_equal(scene.count, 1);
    assert_line(&scene.lines[0], "0", "take", 1, "-", 0, 4711);
}

/* A thread that looked at `trace` while the last trace went on, and writes now. */
static void tracing_leaves_out_what_came_late(void **state)
{
    (void)state;
    struct trace *rings = scene.sched->tracer.rings;
    struct ring_record late = {{monotonic_ns(), 1, 0, trace_word(TRACE_TAKE, 5)}};
    again();
    assert_true(scene.tracing.since > late.words[0]);
    assert_true(ring_write_owner(&rings->rings[0], &late));
    note_number(worker(0), 6);
    read_all();
    assert_int_equal(scene.count, 1);
    assert_int_equal(scene.lines[0].node, 6);
}

static void tracing_that_has_stopped_notes_nothing(void **state)
{
    (void)state;
    tracer_stop(&scene.sched->tracer);
    note_number(worker(0), 1);
    note_number(NULL, 1);
    assert_int_equal(read_some(), 0);
}

/* A ring that is full at the end of a trace: no record follows that would tell of the gap. */
static void tracing_tells_at_its_end_what_is_missing(void **state)
{
    (void)state;
    char text[256] = "";
    struct text out = {.at = text, .size = sizeof text};
    tracing_read_end(&scene.tracing, scene.sched, &out);
    assert_int_equal(out.length, 0);
    for (uint32_t i = 0; i < RING_CAPACITY + 3; i++) {
        note_number(worker(0), i);
    }
    tracer_stop(&scene.sched->tracer);
    tracing_read_end(&scene.tracing, scene.sched, &out);
    assert_memory_equal(text, "r\t0\t", 4);
    assert_non_null(strstr(text, "\tlost\t0000000000000000\t-\t3\t0\n"));
    assert_ptr_equal(strchr(text, '\n'), text + out.length - 1);
}

/* A runtime of its own, whose rings have not been made. */
static void tracing_without_memory_does_not_begin(void **state)
{
    (void)state;
    struct api api;
    struct tracing tracing;
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    struct scheduler *sched = &api.runtime->sched;
    counting_allocator_fail_once(&api.memory, 1);
    assert_false(tracing_start(&tracing, sched));
    assert_null(load_relaxed(&sched->tracer.active));
    assert_true(tracing_start(&tracing, sched));
    tracer_stop(&sched->tracer);
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
    assert_true(counting_allocator_is_clean(&api.memory));
}

#define SCRATCH_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(tracing_writes_every_kind_as_documented),
        SCRATCH_TEST(tracing_tells_the_tracks_apart),
        SCRATCH_TEST(tracing_reads_nothing_where_nothing_happened),
        SCRATCH_TEST(tracing_reads_all_in_turns),
        SCRATCH_TEST(tracing_has_times_that_rise),
        SCRATCH_TEST(tracing_counts_what_is_lost),
        SCRATCH_TEST(tracing_begins_without_what_was_before),
        SCRATCH_TEST(tracing_begins_without_the_gaps_of_before),
        SCRATCH_TEST(tracing_leaves_out_what_came_late),
        SCRATCH_TEST(tracing_that_has_stopped_notes_nothing),
        SCRATCH_TEST(tracing_tells_at_its_end_what_is_missing),
        cmocka_unit_test(tracing_without_memory_does_not_begin),
    };
    return cmocka_run_group_tests_name("tracing", tests, NULL, NULL);
}
