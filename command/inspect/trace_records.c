/* SPDX-License-Identifier: MIT */
/* The records of a trace, as they come from the program. */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "command/format.h"
#include "command/inspect/trace.h"
#include "command/support.h"

static bool find_kind(const char *name, enum trace_kind *kind)
{
    static const char *const names[TRACE_KINDS] = {
        "begin", "end",  "send",   "take", "timer", "complete", "spawn", "exit",
        "steal", "park", "unpark", "lost", "name",  "label",    "read",  "write",
    };
    for (size_t i = 0; i < TRACE_KINDS; i++) {
        if (strcmp(name, names[i]) == 0) {
            *kind = (enum trace_kind)i;
            return true;
        }
    }
    return false;
}

static bool read_track(const char *text, uint16_t *track)
{
    uint64_t number = TRACE_OUTSIDE;
    if (strcmp(text, "outside") != 0 && !parse_number(text, 0, TRACE_OUTSIDE - 1, &number)) {
        return false;
    }
    *track = (uint16_t)number;
    return true;
}

/* Errors are negative. */
static bool read_arg(const char *text, int64_t *arg)
{
    const bool is_negative = text[0] == '-';
    uint64_t value;
    if (!parse_number(text + is_negative, 0, UINT64_MAX, &value)) {
        return false;
    }
    *arg = is_negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

/* The type of a send is a number; programs that know no better say `-`. */
static bool read_payload_type(const char *text, uint32_t *type)
{
    uint64_t number = 0;
    if (strcmp(text, "-") != 0 && !parse_number(text, 0, UINT32_MAX, &number)) {
        return false;
    }
    *type = (uint32_t)number;
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The one copy of a name; null if there is no memory. */
static const char *keep_name(struct trace *trace, const char *whole_name)
{
    char name[TRACE_TEXT_SIZE];
    copy_text(name, sizeof name, whole_name);
    char *const *known = tfind(name, &trace->types, compare_names);
    if (known != NULL) {
        return *known;
    }
    char *copy = strdup(name);
    if (copy == NULL || tsearch(copy, &trace->types, compare_names) == NULL) {
        free(copy);
        return NULL;
    }
    return copy;
}

static bool grow(struct trace *trace)
{
    if (trace->count < trace->capacity) {
        return true;
    }
    const size_t capacity = trace->capacity == 0 ? 4096 : 2 * trace->capacity;
    struct trace_record *records = realloc(trace->records, capacity * sizeof *records);
    if (records == NULL) {
        return false;
    }
    trace->records = records;
    trace->capacity = capacity;
    return true;
}

/* How long a read or write took; earlier versions do not say. */
static bool read_duration(const struct line *line, size_t field, struct trace_record *record)
{
    uint64_t ns = 0;
    const bool has_one = record->kind == TRACE_READ || record->kind == TRACE_WRITE;
    if (has_one && line->count > field && !line_number(line, field, &ns)) {
        return false;
    }
    record->duration_ns = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
    return true;
}

/* Time never falls in a track, so that sorting by it leaves each track as it was read. What has a
 * duration begins earlier than it was recorded, but not before what was recorded last: of threads
 * that share a track one may do that meanwhile. */
static void set_time(struct trace *trace, struct trace_record *record)
{
    uint64_t *newest_ns = &trace->newest_ns[record->track];
    const uint64_t end_ns = record->time_ns > *newest_ns ? record->time_ns : *newest_ns;
    if (record->duration_ns > end_ns - *newest_ns) {
        record->duration_ns = (uint32_t)(end_ns - *newest_ns);
    }
    record->time_ns = end_ns - record->duration_ns;
    *newest_ns = end_ns;
}

enum trace_added trace_add(struct trace *trace, const struct line *line)
{
    enum { TRACK = 1, TIME, KIND, PID, TYPE, ARG, NODE, FIELDS };
    struct trace_record record = {.order = (uint32_t)trace->count};
    enum trace_kind kind;
    if (!line_is(line, "r")) {
        return TRACE_IGNORED;
    }
    if (line->count < FIELDS || !read_track(line->field[TRACK], &record.track) ||
        !line_number(line, TIME, &record.time_ns) || !line_pid(line, PID, &record.pid) ||
        !read_arg(line->field[ARG], &record.arg) || !line_number(line, NODE, &record.node)) {
        return TRACE_NO_RECORD;
    }
    if (!find_kind(line->field[KIND], &kind)) {
        return TRACE_IGNORED;
    }
    if (kind == TRACE_NAME || kind == TRACE_LABEL) {
        return trace_add_name(trace, kind, record.pid, line->field[TYPE], (uint64_t)record.arg);
    }
    if (kind == TRACE_SEND && !read_payload_type(line->field[TYPE], &record.payload_type)) {
        return TRACE_NO_RECORD;
    }
    record.kind = (uint8_t)kind;
    if (!read_duration(line, FIELDS, &record)) {
        return TRACE_NO_RECORD;
    }
    record.type = keep_name(trace, kind == TRACE_SEND ? "-" : line->field[TYPE]);
    if (record.type == NULL || !grow(trace)) {
        return TRACE_NO_MEMORY;
    }
    if (kind == TRACE_LOST) {
        trace->lost += (uint64_t)record.arg;
    }
    set_time(trace, &record);
    trace->records[trace->count++] = record;
    return TRACE_ADDED;
}

void trace_discard(struct trace *trace)
{
    tdestroy(trace->types, free);
    tdestroy(trace->names, free);
    free(trace->records);
}
