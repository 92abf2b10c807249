/* SPDX-License-Identifier: MIT */
/* From records to a file for ui.perfetto.dev and chrome://tracing: the trace event format, as JSON.
 *
 * Each worker is a track ("thread"). A step is a slice from B to E, a park and a gap in the
 * recording are, too; no two of a track overlap. Reads and writes of sockets are slices within
 * those or between them. An arrow leads from a send, a timer or a completion to the step that took
 * the event: `s` where it begins, `f` where it ends, each within a slice; where there is none, a
 * slice without length is made. All else are instants.
 *
 * The format does not check itself: a viewer that finds an arrow without an end or a slice without
 * one draws something wrong, without a word. So arrows are matched before anything is written
 * (trace_arrows.c); what a gap may have cut is closed at the gap, and what began in one is left
 * out. */
#include <inttypes.h>
#include <skua/error.h>
#include <skua/version.h>
#include <stdlib.h>
#include <string.h>

#include "command/inspect/trace.h"

/* ---- writing ---- */

enum slice { SLICE_NONE, SLICE_STEP, SLICE_PARK, SLICE_GAP };

struct track {
    bool is_used;
    enum slice slice;  /* which one is open */
    uint64_t step_pid; /* whose step it is */
    uint64_t takes;    /* the last take since the last begin, plus 1; its `node`, which has served
                          its purpose, is the one before it in the same way; 0: none */
};

struct writer {
    FILE *out;
    const struct trace *trace;
    uint64_t process;
    uint64_t start_ns; /* the time that is written as 0 */
    bool has_events;
    struct track tracks[TRACE_TRACKS];
};

/* Text comes without control characters (client.h). */
static void write_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            fputc('\\', out);
        }
        fputc(*text, out);
    }
    fputc('"', out);
}

/* One more field, of text. */
static void write_field(FILE *out, const char *field, const char *text)
{
    fprintf(out, ",\"%s\":", field);
    write_string(out, text);
}

static unsigned thread_id(unsigned track)
{
    return track + 1; /* 0 is the idle thread to some viewers */
}

/* The fields that all events but metadata have; the event is still open. */
static void write_event(struct writer *writer, const struct trace_record *record, char phase)
{
    const uint64_t ns = record->time_ns - writer->start_ns;
    fprintf(writer->out, "%s{\"ph\":\"%c\",\"pid\":%" PRIu64 ",\"tid\":%u,\"ts\":%" PRIu64 ".%03u",
            writer->has_events ? ",\n" : "", phase, writer->process, thread_id(record->track),
            ns / 1000, (unsigned)(ns % 1000));
    writer->has_events = true;
}

static void write_name(struct writer *writer, const char *name)
{
    write_field(writer->out, "name", name);
}

/* By its name, or by its number if it is not one of Skua's. */
static void write_error(FILE *out, int64_t error)
{
    const char *name = skua_error_name((int)error);
    if (strcmp(name, "SKUA_E_?") == 0) {
        fprintf(out, "\"error\":%" PRId64, error);
    } else {
        fprintf(out, "\"error\":\"%s\"", name);
    }
}

/* Which process it is, as fields of `args`. */
static void write_process(struct writer *writer, uint64_t pid)
{
    const struct trace_names *names = trace_find_names(writer->trace, pid);
    fprintf(writer->out, "\"pid\":\"%016" PRIx64 "\"", pid);
    if (names != NULL && trace_text(&names->name) != NULL) {
        write_field(writer->out, "name", names->name.text);
    }
    if (names != NULL && trace_text(&names->label) != NULL) {
        write_field(writer->out, "label", names->label.text);
    }
}

/* A step is called by the type of its process, followed by the name and the label of that. */
static void write_step_name(struct writer *writer, const struct trace_record *record)
{
    char title[3 * TRACE_TEXT_SIZE + 8];
    const struct trace_names *names = trace_find_names(writer->trace, record->pid);
    const char *name = names != NULL ? trace_text(&names->name) : NULL;
    const char *label = names != NULL ? trace_text(&names->label) : NULL;
    (void)snprintf(title, sizeof title, "%s%s%s%s%s%s", record->type, name != NULL ? " " : "",
                   name != NULL ? name : "", label != NULL ? " (" : "", label != NULL ? label : "",
                   label != NULL ? ")" : "");
    write_name(writer, title);
}

static void write_payload_type(FILE *out, const struct trace_record *record)
{
    fprintf(out, "\"payload type\":%" PRIu32, record->payload_type);
}

static void close_event(struct writer *writer)
{
    fputc('}', writer->out);
}

/* How a step has ended: with an error, or in a task that waits. */
static void write_outcome(FILE *out, const struct trace_record *record)
{
    if (record->arg != 0) {
        fputs(",\"args\":{", out);
        write_error(out, record->arg);
        fputc('}', out);
    } else if (strchr(record->type, ':') != NULL) { /* others have `-` */
        fputs(",\"args\":{\"waits at\":", out);
        write_string(out, record->type);
        fputc('}', out);
    }
}

/* Ends the open slice of a track, if there is one. */
static void close_slice(struct writer *writer, const struct trace_record *record)
{
    struct track *track = &writer->tracks[record->track];
    if (track->slice == SLICE_NONE) {
        return;
    }
    write_event(writer, record, 'E');
    if (record->kind == TRACE_END) {
        write_outcome(writer->out, record);
    }
    close_event(writer);
    track->slice = SLICE_NONE;
}

/* Ends every arrow that leads to the step that has just begun. */
static void write_arrow_ends(struct writer *writer, const struct trace *trace,
                             const struct trace_record *begin)
{
    struct track *track = &writer->tracks[begin->track];
    while (track->takes > 0) {
        const struct trace_record *take = &trace->records[track->takes - 1];
        write_event(writer, begin, 'f');
        fprintf(writer->out, ",\"name\":\"event\",\"cat\":\"event\",\"bp\":\"e\",\"id\":%" PRIu32,
                take->arrow);
        close_event(writer);
        track->takes = take->node;
    }
}

static void write_begin(struct writer *writer, const struct trace *trace,
                        const struct trace_record *record)
{
    struct track *track = &writer->tracks[record->track];
    close_slice(writer, record);
    write_event(writer, record, 'B');
    write_step_name(writer, record);
    fputs(",\"args\":{", writer->out);
    write_process(writer, record->pid);
    if (trace_find_names(trace, record->pid) != NULL) { /* otherwise the type is the name */
        write_field(writer->out, "type", record->type);
    }
    fprintf(writer->out, ",\"events\":%" PRId64 "}", record->arg);
    close_event(writer);
    track->slice = SLICE_STEP;
    track->step_pid = record->pid;
    write_arrow_ends(writer, trace, record);
}

static void write_end(struct writer *writer, const struct trace_record *record)
{
    const struct track *track = &writer->tracks[record->track];
    if (track->slice == SLICE_STEP && track->step_pid == record->pid) {
        close_slice(writer, record);
    }
}

static void open_slice(struct writer *writer, const struct trace_record *record, enum slice slice,
                       const char *name)
{
    close_slice(writer, record);
    write_event(writer, record, 'B');
    write_name(writer, name);
    close_event(writer);
    writer->tracks[record->track].slice = slice;
}

static void write_gap(struct writer *writer, const struct trace_record *record)
{
    char name[64];
    snprintf(name, sizeof name, "%" PRId64 " record%s lost", record->arg,
             record->arg == 1 ? "" : "s");
    open_slice(writer, record, SLICE_GAP, name);
}

static void write_socket(FILE *out, const struct trace_record *record)
{
    fprintf(out, ",\"bytes\":%" PRId64 ",\"socket\":\"%016" PRIx64 "\"", record->arg, record->node);
    if (strcmp(record->type, "-") != 0) {
        write_field(out, "peer", record->type);
    }
}

/* What marks are called. */
static const char *mark_name(const struct trace_record *record)
{
    static const char *const names[TRACE_KINDS] = {
        [TRACE_SEND] = "send",   [TRACE_TIMER] = "timer", [TRACE_COMPLETE] = "complete",
        [TRACE_SPAWN] = "spawn", [TRACE_EXIT] = "exit",   [TRACE_STEAL] = "steal",
        [TRACE_READ] = "read",   [TRACE_WRITE] = "write",
    };
    return names[record->kind];
}

/* An instant, or the begin of a slice, with what its kind has to say. */
static void write_mark(struct writer *writer, const struct trace_record *record, char phase)
{
    FILE *out = writer->out;
    write_event(writer, record, phase);
    write_name(writer, mark_name(record));
    fputs(phase == 'i' ? ",\"s\":\"t\",\"args\":{" : ",\"args\":{", out);
    if (record->kind == TRACE_STEAL) {
        fprintf(out, "\"processes\":%" PRId64 ",\"from worker\":%" PRIu64, record->arg,
                record->node);
    } else {
        write_process(writer, record->pid);
    }
    if (record->kind == TRACE_SEND) {
        fputc(',', out);
        write_payload_type(out, record);
    }
    if (record->kind == TRACE_READ || record->kind == TRACE_WRITE) {
        write_socket(out, record);
    }
    if (record->kind == TRACE_SPAWN || record->kind == TRACE_EXIT) {
        write_field(out, "type", record->type);
    }
    if (record->kind == TRACE_EXIT && record->arg != 0) {
        fputc(',', out);
        write_error(out, record->arg);
    }
    fputc('}', out);
    close_event(writer);
}

static void write_arrow_begin(struct writer *writer, const struct trace_record *record)
{
    write_event(writer, record, 's');
    fprintf(writer->out, ",\"name\":\"event\",\"cat\":\"event\",\"id\":%" PRIu32, record->arrow);
    if (record->kind == TRACE_SEND) {
        fputs(",\"args\":{", writer->out);
        write_payload_type(writer->out, record);
        fputc('}', writer->out);
    }
    close_event(writer);
}

/* A read or write of a socket. Nothing else happens in its track before it ends. */
static void write_transfer(struct writer *writer, const struct trace_record *record)
{
    if (record->duration_ns == 0) {
        write_mark(writer, record, 'i');
        return;
    }
    struct trace_record end = *record;
    end.time_ns += record->duration_ns;
    write_mark(writer, record, 'B');
    write_event(writer, &end, 'E');
    close_event(writer);
}

/* A send, a timer or a completion. */
static void write_source(struct writer *writer, const struct trace_record *record)
{
    const bool needs_slice =
        record->arrow != 0 && writer->tracks[record->track].slice == SLICE_NONE;
    if (needs_slice) {
        write_mark(writer, record, 'B');
    } else if (record->kind != TRACE_SEND || record->arrow == 0) {
        write_mark(writer, record, 'i'); /* an arrow alone shows a send well enough */
    }
    if (record->arrow != 0) {
        write_arrow_begin(writer, record);
    }
    if (needs_slice) {
        write_event(writer, record, 'E');
        close_event(writer);
    }
}

/* Remembers the event for the step that begins next. */
static void note_take(struct writer *writer, struct trace *trace, size_t index)
{
    struct trace_record *record = &trace->records[index];
    struct track *track = &writer->tracks[record->track];
    if (record->arrow != 0) {
        record->node = track->takes;
        track->takes = index + 1;
    }
}

static void write_record(struct writer *writer, struct trace *trace, size_t index)
{
    const struct trace_record *record = &trace->records[index];
    struct track *track = &writer->tracks[record->track];
    if (track->slice == SLICE_GAP) {
        close_slice(writer, record);
    }
    switch ((enum trace_kind)record->kind) {
    case TRACE_BEGIN:
        write_begin(writer, trace, record);
        break;
    case TRACE_END:
        write_end(writer, record);
        break;
    case TRACE_SEND:
    case TRACE_TIMER:
    case TRACE_COMPLETE:
        write_source(writer, record);
        break;
    case TRACE_TAKE:
        note_take(writer, trace, index);
        break;
    case TRACE_SPAWN:
    case TRACE_EXIT:
    case TRACE_STEAL:
        write_mark(writer, record, 'i');
        break;
    case TRACE_READ:
    case TRACE_WRITE:
        write_transfer(writer, record);
        break;
    case TRACE_PARK:
        open_slice(writer, record, SLICE_PARK, "parked");
        break;
    case TRACE_UNPARK:
        if (track->slice == SLICE_PARK) {
            close_slice(writer, record);
        }
        break;
    case TRACE_LOST:
        write_gap(writer, record);
        break;
    case TRACE_NAME: /* these are no records */
    case TRACE_LABEL:
    case TRACE_KINDS:
        break;
    }
}

/* ---- the file ---- */

/* `text` null: the value is the number. */
static void write_metadata(struct writer *writer, unsigned thread, const char *name,
                           const char *field, const char *text, unsigned number)
{
    fprintf(writer->out,
            "%s{\"ph\":\"M\",\"pid\":%" PRIu64 ",\"tid\":%u,\"name\":\"%s\","
            "\"args\":{\"%s\":",
            writer->has_events ? ",\n" : "", writer->process, thread, name, field);
    if (text != NULL) {
        write_string(writer->out, text);
    } else {
        fprintf(writer->out, "%u", number);
    }
    fputs("}}", writer->out);
    writer->has_events = true;
}

static void write_track_names(struct writer *writer)
{
    char name[32];
    for (unsigned i = 0; i < TRACE_TRACKS; i++) {
        if (writer->tracks[i].is_used) {
            snprintf(name, sizeof name, "worker %u", i);
            write_metadata(writer, thread_id(i), "thread_name", "name",
                           i == TRACE_OUTSIDE ? "outside" : name, 0);
            write_metadata(writer, thread_id(i), "thread_sort_index", "sort_index", NULL, i);
        }
    }
}

/* What is still open ends with the trace. */
static void close_tracks(struct writer *writer)
{
    uint64_t end_ns = 0;
    for (unsigned i = 0; i < TRACE_TRACKS; i++) {
        const uint64_t newest_ns = writer->trace->newest_ns[i];
        end_ns = newest_ns > end_ns ? newest_ns : end_ns;
    }
    for (unsigned i = 0; i < TRACE_TRACKS; i++) {
        const struct trace_record end = {
            .time_ns = end_ns, .track = (uint16_t)i, .kind = TRACE_KINDS};
        close_slice(writer, &end);
    }
}

static int compare_records(const void *a, const void *b)
{
    const struct trace_record *left = a;
    const struct trace_record *right = b;
    if (left->time_ns != right->time_ns) {
        return left->time_ns < right->time_ns ? -1 : 1;
    }
    return (left->order > right->order) - (left->order < right->order);
}

static void write_all(struct writer *writer, struct trace *trace, const char *name)
{
    fprintf(writer->out,
            "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"recorded by\":\"skua %s\","
            "\"records\":%zu,\"records lost\":%" PRIu64 "},\n\"traceEvents\":[\n",
            skua_version(), trace->count, trace->lost);
    write_metadata(writer, 0, "process_name", "name", name, 0);
    write_track_names(writer);
    for (size_t i = 0; i < trace->count; i++) {
        write_record(writer, trace, i);
    }
    close_tracks(writer);
    fputs("\n]}\n", writer->out);
}

bool trace_write_json(struct trace *trace, uint64_t process, const char *name, FILE *out)
{
    struct writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL) {
        return false;
    }
    if (trace->count > 0) {
        qsort(trace->records, trace->count, sizeof trace->records[0], compare_records);
    }
    if (!trace_find_arrows(trace)) {
        free(writer);
        return false;
    }
    writer->out = out;
    writer->trace = trace;
    writer->process = process;
    writer->start_ns = trace->count > 0 ? trace->records[0].time_ns : 0;
    for (size_t i = 0; i < trace->count; i++) {
        writer->tracks[trace->records[i].track].is_used = true;
    }
    write_all(writer, trace, name);
    free(writer);
    return true;
}
