/* SPDX-License-Identifier: MIT */
#include "tape.h"

#include <stdio.h>
#include <stdlib.h>

#define TRACKS     (TAPE_WORKERS + 1)
#define NOTES_MAX  200000
#define NODES      ((uint32_t)1 << 20)
#define ANSWER_MAX 1000

static const char *const kind_names[NOTE_KINDS] = {
    [NOTE_BEGIN] = "begin", [NOTE_END] = "end",       [NOTE_SEND] = "send",
    [NOTE_TAKE] = "take",   [NOTE_TIMER] = "timer",   [NOTE_COMPLETE] = "complete",
    [NOTE_SPAWN] = "spawn", [NOTE_EXIT] = "exit",     [NOTE_STEAL] = "steal",
    [NOTE_PARK] = "park",   [NOTE_UNPARK] = "unpark", [NOTE_LOST] = "lost",
    [NOTE_NAME] = "name",   [NOTE_LABEL] = "label",   [NOTE_READ] = "read",
    [NOTE_WRITE] = "write",
};

/* ---- reading ---- */

struct tape *tape_new(void)
{
    struct tape *tape = test_alloc(sizeof *tape);
    tape->client = client_open();
    tape->notes = test_alloc(NOTES_MAX * sizeof *tape->notes);
    return tape;
}

void tape_start(struct tape *tape)
{
    tape->count = 0;
    client_ask(tape->client, "trace start");
    assert_int_equal(tape->client->line_count, 0);
}

void tape_stop(struct tape *tape)
{
    client_ask(tape->client, "trace stop");
}

static enum note_kind read_kind(const char *name)
{
    for (uint32_t kind = 0; kind < NOTE_KINDS; kind++) {
        if (strcmp(kind_names[kind], name) == 0) {
            return (enum note_kind)kind;
        }
    }
    fail_msg("a record of an unknown kind: %s", name);
    return NOTE_KINDS;
}

static uint32_t read_track(const char *name)
{
    if (strcmp(name, "outside") == 0) {
        return TAPE_OUTSIDE;
    }
    assert_int_equal(strspn(name, "0123456789"), strlen(name));
    assert_in_range(atoi(name), 0, TAPE_WORKERS - 1);
    return (uint32_t)atoi(name);
}

static bool has_type(enum note_kind kind)
{
    return kind == NOTE_SEND || kind == NOTE_BEGIN || kind == NOTE_SPAWN || kind == NOTE_EXIT ||
           kind == NOTE_NAME || kind == NOTE_LABEL;
}

static bool has_pid(enum note_kind kind)
{
    return kind != NOTE_STEAL && kind != NOTE_PARK && kind != NOTE_UNPARK && kind != NOTE_LOST;
}

static bool has_socket(enum note_kind kind)
{
    return kind == NOTE_READ || kind == NOTE_WRITE;
}

static bool has_node(enum note_kind kind)
{
    return kind == NOTE_SEND || kind == NOTE_TAKE || kind == NOTE_TIMER || kind == NOTE_COMPLETE;
}

/* What has no meaning for a kind is zero, or a dash. */
static struct note read_note(const struct inspect_line *line)
{
    assert_in_range(line->count, 8, 9);
    assert_string_equal(line->fields[0], "r");
    struct note note = {
        .track = read_track(line->fields[1]),
        .time = inspect_number(line, 2),
        .kind = read_kind(line->fields[3]),
        .pid = inspect_pid(line, 4),
        .arg = strtoll(line->fields[6], NULL, 10),
        .node = inspect_number(line, 7),
    };
    assert_int_equal(line->count, has_socket(note.kind) ? 9 : 8);
    if (has_socket(note.kind)) {
        note.duration = inspect_number(line, 8);
    }
    (void)snprintf(note.type, sizeof note.type, "%s", line->fields[5]);
    const bool is_typed = strcmp(note.type, "-") != 0;
    assert_true(is_typed == has_type(note.kind) ||
                (note.kind == NOTE_END && strchr(note.type, ':') != NULL) || has_socket(note.kind));
    assert_int_equal(skua_pid_is_none(note.pid), !has_pid(note.kind));
    assert_true(has_node(note.kind) || has_socket(note.kind)
                    ? note.node > 0
                    : note.node == 0 || note.kind == NOTE_STEAL);
    if (note.kind == NOTE_SEND) { /* it may be beyond what a signed number holds */
        assert_in_range(inspect_number(line, 5), 0, UINT32_MAX);
        note.arg = (int64_t)strtoull(line->fields[6], NULL, 10);
    }
    return note;
}

size_t tape_read(struct tape *tape)
{
    const struct inspect_client *client = tape->client;
    client_ask(tape->client, "trace read");
    assert_in_range(client->line_count, 0, ANSWER_MAX);
    for (size_t i = 0; i < client->line_count; i++, tape->count++) {
        assert_true(tape->count < NOTES_MAX);
        tape->notes[tape->count] = read_note(&client->lines[i]);
        tape->notes[tape->count].place = tape->count;
    }
    return client->line_count;
}

void tape_read_all(struct tape *tape)
{
    while (tape_read(tape) > 0) {
    }
}

/* ---- looking ---- */

size_t tape_count_on(const struct tape *tape, uint32_t track, enum note_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < tape->count; i++) {
        count += tape->notes[i].kind == kind && tape->notes[i].track == track;
    }
    return count;
}

size_t tape_count(const struct tape *tape, enum note_kind kind)
{
    size_t count = 0;
    for (uint32_t track = 0; track < TRACKS; track++) {
        count += tape_count_on(tape, track, kind);
    }
    return count;
}

static bool is_source(enum note_kind kind)
{
    return kind == NOTE_SEND || kind == NOTE_TIMER || kind == NOTE_COMPLETE;
}

/* By time. What is sent and taken within one tick of the clock was sent first. */
static int earlier_first(const void *a, const void *b)
{
    const struct note *left = a;
    const struct note *right = b;
    if (left->time != right->time) {
        return (left->time > right->time) - (left->time < right->time);
    }
    if (left->track != right->track && is_source(left->kind) != is_source(right->kind)) {
        return is_source(right->kind) - is_source(left->kind);
    }
    return (left->place > right->place) - (left->place < right->place);
}

/* Tracks are read one after the other, and a process may go from one to the other. */
const struct note *tape_find(const struct tape *tape, enum note_kind kind, skua_pid pid, size_t n)
{
    const struct note *found = NULL;
    for (size_t rank = 0; rank <= n; rank++) {
        const struct note *next = NULL;
        for (size_t i = 0; i < tape->count; i++) {
            const struct note *note = &tape->notes[i];
            if (note->kind == kind && skua_pid_equal(note->pid, pid) &&
                (found == NULL || earlier_first(found, note) < 0) &&
                (next == NULL || earlier_first(note, next) < 0)) {
                next = note;
            }
        }
        found = next;
        if (found == NULL) {
            fail_msg("there is no such record: %s", kind_names[kind]);
        }
    }
    return found;
}

/* ---- what is true of every trace ---- */

/* Where a track is. A trace may begin, and go on after a gap, in the middle of a step. */
struct position {
    bool is_known;
    bool in_step;
    skua_pid running; /* or has just run */
    skua_pid taker;   /* of the events that have been taken for the next step */
    int64_t taken;
    bool is_parked;
    uint64_t time;
};

static void follow_begin(struct position *at, const struct note *note)
{
    if (at->is_known) {
        assert_false(at->in_step);
        /* The step may also have START or CONTINUE, which nobody has sent. */
        assert_in_range(note->arg - at->taken, 0, 1);
        assert_true(note->arg > 0);
        assert_true(at->taken == 0 || at->taker.bits == note->pid.bits);
    }
    *at = (struct position){
        .is_known = true, .in_step = true, .running = note->pid, .time = at->time};
}

static void follow_end(struct position *at, const struct note *note)
{
    if (at->is_known) {
        assert_true(at->in_step);
        assert_int_equal(at->running.bits, note->pid.bits);
    }
    *at = (struct position){.is_known = true, .running = at->running, .time = at->time};
}

static void follow_take(struct position *at, const struct note *note)
{
    if (at->is_known) {
        assert_false(at->in_step);
        assert_true(at->taken == 0 || at->taker.bits == note->pid.bits);
    }
    at->taker = note->pid;
    at->taken++;
}

static void follow_send(const struct position *at, const struct note *note)
{
    if (note->track == TAPE_OUTSIDE) {
        assert_int_equal(note->arg, 0);
    } else if (at->is_known) {
        assert_int_equal(note->arg, at->running.bits); /* a call is sent when the step is over */
    }
}

static void follow_park(struct position *at)
{
    assert_false(at->is_known && at->in_step);
    at->is_parked = true;
}

static void follow(struct position *at, const struct note *note)
{
    assert_true(note->time >= at->time);
    if (note->track != TAPE_OUTSIDE) { /* a worker does one thing after the other */
        assert_in_range(note->duration, 0, note->time - at->time);
    }
    at->time = note->time;
    if (note->kind == NOTE_LOST) {
        *at = (struct position){.time = note->time};
        assert_true(note->arg > 0);
        return;
    }
    if (note->kind == NOTE_UNPARK) {
        at->is_parked = false;
    }
    assert_true(!at->is_parked ||
                note->kind == NOTE_TIMER); /* one that sleeps may wait for timers */
    switch (note->kind) {
    case NOTE_BEGIN:
        follow_begin(at, note);
        break;
    case NOTE_END:
        follow_end(at, note);
        break;
    case NOTE_TAKE:
        follow_take(at, note);
        break;
    case NOTE_SEND:
        follow_send(at, note);
        break;
    case NOTE_PARK:
        follow_park(at);
        break;
    case NOTE_STEAL:
        assert_true(note->arg > 0);
        assert_true(note->node < TAPE_WORKERS && note->node != note->track);
        break;
    case NOTE_READ:
    case NOTE_WRITE:
        assert_true(note->arg > 0);
        break;
    case NOTE_TIMER:
    case NOTE_COMPLETE:
    case NOTE_SPAWN:
    case NOTE_EXIT:
    case NOTE_UNPARK:
    case NOTE_LOST:
    case NOTE_NAME:
    case NOTE_LABEL:
    case NOTE_KINDS:
        break;
    }
}

void assert_tape_makes_sense(const struct tape *tape)
{
    struct position positions[TRACKS] = {0};
    for (size_t i = 0; i < tape->count; i++) {
        follow(&positions[tape->notes[i].track], &tape->notes[i]);
    }
}

void assert_tape_is_whole(const struct tape *tape)
{
    struct note *sorted = test_alloc(tape->count * sizeof *sorted);
    uint64_t *receivers = test_alloc(NODES * sizeof *receivers);
    size_t open = 0;
    assert_tape_makes_sense(tape);
    memcpy(sorted, tape->notes, tape->count * sizeof *sorted);
    qsort(sorted, tape->count, sizeof *sorted, earlier_first);
    for (size_t i = 0; i < tape->count; i++) {
        const struct note *note = &sorted[i];
        if (!has_node(note->kind)) {
            continue;
        }
        assert_true(note->node < NODES);
        if (is_source(note->kind)) {
            assert_int_equal(receivers[note->node], 0);
            receivers[note->node] = note->pid.bits;
            open++;
        } else {
            assert_int_equal(receivers[note->node], note->pid.bits);
            receivers[note->node] = 0;
            open--;
        }
    }
    assert_int_equal(open, 0);
    assert_int_equal(tape_count(tape, NOTE_LOST), 0);
}
