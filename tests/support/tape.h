/* SPDX-License-Identifier: MIT */
/* A trace, read strictly (docs/inspector.md): whatever is not as it is written there fails the
 * test. */
#ifndef SKUA_TESTS_TAPE_H
#define SKUA_TESTS_TAPE_H

#include "inspected.h"

#define TAPE_WORKERS 2            /* of the runtime; there are no spare ones */
#define TAPE_OUTSIDE TAPE_WORKERS /* the track of all threads that are no workers */
#define TAPE_RING    16384        /* records of a track that fit, if nobody reads */

enum note_kind {
    NOTE_BEGIN,
    NOTE_END,
    NOTE_SEND,
    NOTE_TAKE,
    NOTE_TIMER,
    NOTE_COMPLETE,
    NOTE_SPAWN,
    NOTE_EXIT,
    NOTE_STEAL,
    NOTE_PARK,
    NOTE_UNPARK,
    NOTE_LOST,
    NOTE_NAME,
    NOTE_LABEL,
    NOTE_READ,
    NOTE_WRITE,
    NOTE_KINDS,
};

struct note {
    uint32_t track;
    enum note_kind kind;
    uint64_t time;
    skua_pid pid;
    /* Of a send: the payload's type; of a name: a part of it; of an end: where a task waits; of a
     * read or write: the address of the peer. */
    char type[65];
    int64_t arg; /* of a send: the sender's PID; of a name: which part; of a read or write: bytes */
    uint64_t node;     /* of a read or write: the socket */
    uint64_t duration; /* of a read or write, until `time` */
    size_t place;      /* in the order of reading */
};

/* As far as it has been read. */
struct tape {
    struct inspect_client *client;
    struct note *notes;
    size_t count;
};

/* Of a client of its own in the current world. */
struct tape *tape_new(void);

/* Starts a trace; the tape is empty then. */
void tape_start(struct tape *tape);
void tape_stop(struct tape *tape);

/* One answer; returns how many records it had. Then until there are no more: nothing runs. */
size_t tape_read(struct tape *tape);
void tape_read_all(struct tape *tape);

size_t tape_count(const struct tape *tape, enum note_kind kind);
size_t tape_count_on(const struct tape *tape, uint32_t track, enum note_kind kind);

/* The n-th in time, from 0, of a kind that is about a process (or about none, if that is zero);
 * there must be one. */
const struct note *tape_find(const struct tape *tape, enum note_kind kind, skua_pid pid, size_t n);

/* What is true of every trace: times rise within a track, steps begin and end, events are taken
 * before the step that gets them. */
void assert_tape_makes_sense(const struct tape *tape);

/* The same, and that everything is there, from when all processes were at rest until they were so
 * again: whatever was taken has its source, and whatever was sent has been taken. */
void assert_tape_is_whole(const struct tape *tape);

#endif
