/* SPDX-License-Identifier: MIT */
#include "inspect/tracing.h"

#include <inttypes.h>
#include <string.h>

#include "base/monotonic.h"

/* Records read from one ring at a time. */
#define CHUNK 100

bool tracing_start(struct tracing *tracing, struct scheduler *sched)
{
    tracing->since = monotonic_ns(); /* before anybody can write a record */
    tracing->next = 0;
    memset(tracing->peers, 0, sizeof tracing->peers);
    return tracer_start(&sched->tracer);
}

static const char *kind_name(enum trace_kind kind)
{
    switch (kind) {
    case TRACE_BEGIN:
        return "begin";
    case TRACE_END:
        return "end";
    case TRACE_SEND:
        return "send";
    case TRACE_TAKE:
        return "take";
    case TRACE_TIMER:
        return "timer";
    case TRACE_COMPLETE:
        return "complete";
    case TRACE_SPAWN:
        return "spawn";
    case TRACE_EXIT:
        return "exit";
    case TRACE_STEAL:
        return "steal";
    case TRACE_PARK:
        return "park";
    case TRACE_UNPARK:
        return "unpark";
    case TRACE_NAME:
        return "name";
    case TRACE_LABEL:
        return "label";
    case TRACE_READ:
        return "read";
    case TRACE_WRITE:
        return "write";
    }
    return "?";
}

static bool has_type(enum trace_kind kind)
{
    return kind == TRACE_BEGIN || kind == TRACE_SPAWN || kind == TRACE_EXIT;
}

static bool has_event(enum trace_kind kind)
{
    return kind == TRACE_SEND || kind == TRACE_TAKE || kind == TRACE_TIMER ||
           kind == TRACE_COMPLETE;
}

static bool has_text(enum trace_kind kind)
{
    return kind == TRACE_NAME || kind == TRACE_LABEL;
}

static bool has_socket(enum trace_kind kind)
{
    return kind == TRACE_READ || kind == TRACE_WRITE;
}

/* The address of a socket's peer; empty if that is not known any more. */
static const char *find_peer(struct tracing *tracing, struct scheduler *sched, uint64_t socket)
{
    struct tracing_peer *known = &tracing->peers[socket_slot(socket) % TRACING_PEERS];
    skua_socket_snapshot info;
    if (known->socket != socket) {
        *known = (struct tracing_peer){.socket = socket};
        if (sched->sockets != NULL &&
            sockets_snapshot(sockets_of_hooks(sched->sockets), socket_slot(socket), &info) &&
            info.socket.bits == socket) {
            memcpy(known->address, info.peer, sizeof known->address);
        }
    }
    return known->address;
}

static void write_peer(struct text *out, const char *address)
{
    text_add_clean(out, address[0] != '\0' ? address : "-");
}

static void write_text(struct text *out, const struct ring_record *record)
{
    char part[TRACE_TEXT_PART + 1] = "";
    memcpy(part, &record->words[2], TRACE_TEXT_PART);
    text_add_name(out, part);
}

/* The end of "file:line", if that is long. */
static void write_where(struct text *out, const char *where)
{
    const size_t length = strlen(where);
    text_add_name(out, where + (length > TEXT_NAME_MAX ? length - TEXT_NAME_MAX : 0));
}

/* Of the process, or of what a message carries; a part of a name; the address of a peer; or where a
 * task waits. */
static void write_type(struct tracing *tracing, struct scheduler *sched, struct text *out,
                       const struct ring_record *record, enum trace_kind kind)
{
    if (has_socket(kind)) {
        write_peer(out, find_peer(tracing, sched, record->words[2]));
        return;
    }
    if (kind == TRACE_END && record->words[2] != 0) {
        write_where(out, (const char *)(uintptr_t)record->words[2]);
        return;
    }
    if (kind == TRACE_SEND) {
        text_add(out, "%" PRIu32, trace_word_number(record->words[3]));
    } else if (has_type(kind)) {
        const skua_process_type *type = (const skua_process_type *)(uintptr_t)record->words[2];
        text_add_name(out, type->name);
    } else if (has_text(kind)) {
        write_text(out, record);
    } else {
        text_add(out, "-");
    }
}

/* The last fields: the meaning of `data`, `number` and `node` depends on the record's kind. */
static void write_numbers(struct text *out, const struct ring_record *record, enum trace_kind kind)
{
    const uint32_t number = trace_word_number(record->words[3]);
    if (has_socket(kind)) {
        text_add(out, "\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu32 "\n", number, record->words[2],
                 trace_word_node(record->words[3]));
    } else if (kind == TRACE_STEAL || has_event(kind)) {
        text_add(out, "\t%" PRIu64 "\t%" PRIu32 "\n", record->words[2],
                 kind == TRACE_STEAL ? number : trace_word_node(record->words[3]));
    } else {
        text_add(out, "\t%" PRId32 "\t0\n", (int32_t)number);
    }
}

static void write_record(struct tracing *tracing, struct scheduler *sched, struct text *out,
                         const struct ring_record *record)
{
    const enum trace_kind kind = trace_word_kind(record->words[3]);
    text_add(out, "\t%" PRIu64 "\t%s\t%016" PRIx64 "\t", record->words[0], kind_name(kind),
             record->words[1]);
    write_type(tracing, sched, out, record, kind);
    write_numbers(out, record, kind);
}

static void write_gap(struct text *out, uint64_t since, uint64_t lost)
{
    text_add(out, "\t%" PRIu64 "\tlost\t%016x\t-\t%" PRIu64 "\t0\n", since, 0, lost);
}

static void write_track(struct text *out, uint32_t track, uint32_t outside)
{
    if (track == outside) {
        text_add(out, "r\toutside");
    } else {
        text_add(out, "r\t%" PRIu32, track);
    }
}

/* Returns how many were written. */
static uint32_t write_records(struct tracing *tracing, struct scheduler *sched, uint32_t track,
                              const struct ring_record *records, uint32_t count, struct text *out)
{
    uint32_t written = 0;
    for (uint32_t i = 0; i < count; i++) {
        /* From the previous trace: written late, or a gap still open at its end. The ring was empty
         * when this trace began, so the first record closes such a gap. */
        if (records[i].words[0] < tracing->since) {
            continue;
        }
        write_track(out, track, sched->capacity);
        if (records[i].words[3] == RING_LOST) {
            write_gap(out, records[i].words[0], records[i].words[2]);
        } else {
            write_record(tracing, sched, out, &records[i]);
        }
        written++;
    }
    return written;
}

/* Reads up to `most` records from a ring; returns how many were written: none if it is empty. */
static uint32_t read_ring(struct tracing *tracing, struct scheduler *sched, uint32_t track,
                          uint32_t most, struct text *out)
{
    struct ring_record records[CHUNK];
    uint32_t count;
    uint32_t written;
    do {
        count =
            ring_read_any(&sched->tracer.rings->rings[track], records, most < CHUNK ? most : CHUNK);
        written = write_records(tracing, sched, track, records, count, out);
    } while (count > 0 && written == 0);
    return written;
}

/* Reads the rings in turn, and the next answer continues where this one ends, so that one busy
 * worker does not keep the others' rings full. */
void tracing_read(struct tracing *tracing, struct scheduler *sched, uint32_t most, struct text *out)
{
    const uint32_t tracks = sched->capacity + 1;
    uint32_t records = 0;
    uint32_t empty = 0; /* rings in a row */
    while (records < most && empty < tracks) {
        const uint32_t written = read_ring(tracing, sched, tracing->next, most - records, out);
        tracing->next = (tracing->next + 1) % tracks;
        records += written;
        empty = written == 0 ? empty + 1 : 0;
    }
}

void tracing_read_end(const struct tracing *tracing, struct scheduler *sched, struct text *out)
{
    for (uint32_t track = 0; track <= sched->capacity; track++) {
        uint64_t since;
        const uint64_t lost = ring_open_gap_owner(&sched->tracer.rings->rings[track], &since);
        if (lost > 0 && since >= tracing->since) {
            write_track(out, track, sched->capacity);
            write_gap(out, since, lost);
        }
    }
}
