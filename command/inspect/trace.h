/* SPDX-License-Identifier: MIT */
/* A recording of what a program does, and how it becomes a file that Perfetto opens. */
#ifndef COMMAND_INSPECT_TRACE_H
#define COMMAND_INSPECT_TRACE_H

#include <stdio.h>

#include "command/inspect/client.h"

enum trace_kind {
    TRACE_BEGIN,
    TRACE_END,
    TRACE_SEND,
    TRACE_TAKE,
    TRACE_TIMER,
    TRACE_COMPLETE,
    TRACE_SPAWN,
    TRACE_EXIT,
    TRACE_STEAL,
    TRACE_PARK,
    TRACE_UNPARK,
    TRACE_LOST,
    TRACE_NAME,
    TRACE_LABEL,
    TRACE_READ,
    TRACE_WRITE,
    TRACE_KINDS
};

/* Tracks are workers, by their numbers, and one for all threads that are none. */
enum { TRACE_OUTSIDE = 4096, TRACE_TRACKS };

/* What its fields mean is in docs/inspector.md. */
struct trace_record {
    uint64_t time_ns; /* of a read or write, when it has begun */
    uint64_t pid;
    int64_t arg;
    uint64_t node;
    const char *type;      /* of the process; of a read or write, the address of the peer */
    uint32_t payload_type; /* of a send */
    uint32_t order;        /* in which it was read */
    uint32_t arrow;        /* the number of the arrow that begins or ends here; 0: none */
    uint32_t duration_ns;  /* of a read or write; 0: not known */
    uint16_t track;
    uint8_t kind; /* enum trace_kind */
};

enum { TRACE_TEXT_SIZE = 65 }; /* programs send no longer ones */

/* A text that comes in parts. */
struct trace_text {
    size_t length; /* of what is there */
    bool is_whole;
    char text[TRACE_TEXT_SIZE];
};

/* Null if it is not known, or there is none. */
static inline const char *trace_text(const struct trace_text *text)
{
    return text->is_whole && text->length > 0 ? text->text : NULL;
}

/* What a process is called, as far as it is known. */
struct trace_names {
    uint64_t pid;
    struct trace_text name;
    struct trace_text label;
};

/* All zero before the first record. */
struct trace {
    size_t count;
    size_t capacity;
    struct trace_record *records;
    uint64_t lost;                    /* records that the program had no room for */
    uint64_t newest_ns[TRACE_TRACKS]; /* the last record's time of each track */
    void *types;                      /* their names, each once: a tree of tsearch */
    void *names;                      /* struct trace_names of processes: the same, by PID */
};

enum trace_added { TRACE_ADDED, TRACE_IGNORED, TRACE_NO_RECORD, TRACE_NO_MEMORY };

/* Adds what a line of an answer says; other lines, and kinds of later versions, are ignored. */
enum trace_added trace_add(struct trace *trace, const struct line *line);

void trace_discard(struct trace *trace);

/* ---- trace_names.c ---- */

/* Adds a part of a name or label, which is no record of a track. */
enum trace_added trace_add_name(struct trace *trace, enum trace_kind kind, uint64_t pid,
                                const char *part, uint64_t number);

/* What a process is called; null if that is not known, or it has neither name nor label. */
const struct trace_names *trace_find_names(const struct trace *trace, uint64_t pid);

/* The same from now on, empty if there is none. False if there is no memory. */
bool trace_set_names(struct trace *trace, uint64_t pid, const char *name, const char *label);

/* PIDs of processes that have stepped and whose end is not recorded: `most` at most, those with the
 * most steps. Returns how many. */
size_t trace_find_steppers(const struct trace *trace, uint64_t *pids, size_t most);

/* ---- trace_arrows.c ---- */

/* Gives each send, timer or completion, and the take of the same event, a number of their own as
 * `arrow`, if it is certain that they belong together. The records are sorted by time. False if
 * there is no memory. */
bool trace_find_arrows(struct trace *trace);

/* ---- trace_json.c ---- */

/* Writes all of it as JSON, in the order of time; sorts the records for that. `process` and `name`
 * are those of the program. Returns false if there is no memory; whether the file has taken it is
 * for ferror to say. */
bool trace_write_json(struct trace *trace, uint64_t process, const char *name, FILE *out);

#endif
