/* SPDX-License-Identifier: MIT */
/* Traces: what real processes did, as the inspector's clients are told (docs/inspector.md). Every
 * trace is read strictly: times rise within a track, steps begin and end, events are taken before
 * the step that gets them and after they were sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "effort.h"
#include "inspect_client.h"
#include "runtime_support.h"
#include "scratch.h"

#define WORKERS    2
#define OUTSIDE    WORKERS /* the track of all threads that are no workers */
#define TRACKS     (WORKERS + 1)
#define NOTES_MAX  200000
#define NODES      ((uint32_t)1 << 20)
#define RING       16384 /* records of a track that fit */
#define ANSWER_MAX 1000

enum kind {
    BEGIN,
    END,
    SEND,
    TAKE,
    TIMER,
    COMPLETE,
    SPAWN,
    EXIT,
    STEAL,
    PARK,
    UNPARK,
    LOST,
    KINDS,
};

static const char *const kind_names[KINDS] = {
    [BEGIN] = "begin", [END] = "end",           [SEND] = "send",     [TAKE] = "take",
    [TIMER] = "timer", [COMPLETE] = "complete", [SPAWN] = "spawn",   [EXIT] = "exit",
    [STEAL] = "steal", [PARK] = "park",         [UNPARK] = "unpark", [LOST] = "lost",
};

struct note {
    uint32_t track;
    enum kind kind;
    uint64_t time;
    skua_pid pid;
    char type[16];
    int64_t arg; /* of a send: the sender's PID */
    uint64_t node;
    size_t place; /* in the order of reading */
};

/* A trace, as far as it has been read. */
struct tape {
    struct note *notes;
    size_t count;
};

struct scene {
    struct api api;
    struct inspect_client client;
    struct tape tape;
};

static struct scene scene;

static void create(void)
{
    api_create(&scene.api, (skua_runtime_config){.worker_count = WORKERS, .inspect = true});
    scene.tape.count = 0;
}

static void start(void)
{
    api_start(&scene.api);
    inspect_open(&scene.client, scene.api.runtime);
}

static int setup(void **state)
{
    api_stall_limit_ns = API_NEVER_STUCK; /* so there are no spare workers */
    scene.tape.notes = malloc(NOTES_MAX * sizeof scene.tape.notes[0]);
    return scene.tape.notes == NULL ? -1 : scratch_setup(state);
}

static int teardown(void **state)
{
    inspect_close(&scene.client);
    api_stop(&scene.api);
    free(scene.tape.notes);
    return scratch_teardown(state);
}

/* ---- reading ---- */

static enum kind read_kind(const char *name)
{
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        if (strcmp(kind_names[kind], name) == 0) {
            return (enum kind)kind;
        }
    }
    fail_msg("a record of an unknown kind: %s", name);
    return KINDS;
}

static uint32_t read_track(const char *name)
{
    if (strcmp(name, "outside") == 0) {
        return OUTSIDE;
    }
    assert_int_equal(strspn(name, "0123456789"), strlen(name));
    assert_in_range(atoi(name), 0, WORKERS - 1);
    return (uint32_t)atoi(name);
}

static bool has_type(enum kind kind)
{
    return kind == BEGIN || kind == SPAWN || kind == EXIT;
}

static bool has_pid(enum kind kind)
{
    return kind != STEAL && kind != PARK && kind != UNPARK && kind != LOST;
}

static bool has_node(enum kind kind)
{
    return kind == SEND || kind == TAKE || kind == TIMER || kind == COMPLETE;
}

/* What has no meaning for a kind is zero, or a dash. */
static struct note read_note(const struct inspect_line *line)
{
    assert_int_equal(line->count, 8);
    assert_string_equal(line->fields[0], "r");
    struct note note = {
        .track = read_track(line->fields[1]),
        .time = inspect_number(line, 2),
        .kind = read_kind(line->fields[3]),
        .pid = inspect_pid(line, 4),
        .arg = strtoll(line->fields[6], NULL, 10),
        .node = inspect_number(line, 7),
    };
    (void)snprintf(note.type, sizeof note.type, "%s", line->fields[5]);
    assert_int_equal(strcmp(note.type, "-") == 0, !has_type(note.kind));
    assert_int_equal(skua_pid_is_none(note.pid), !has_pid(note.kind));
    assert_true(has_node(note.kind) ? note.node > 0 : note.node == 0 || note.kind == STEAL);
    if (note.kind == SEND) { /* it may be beyond what a signed number holds */
        note.arg = (int64_t)strtoull(line->fields[6], NULL, 10);
    }
    return note;
}

/* One answer; returns how many records it had. */
static size_t read_some(void)
{
    inspect_ask(&scene.client, "trace read");
    assert_in_range(scene.client.line_count, 0, ANSWER_MAX);
    for (size_t i = 0; i < scene.client.line_count; i++) {
        struct tape *tape = &scene.tape;
        assert_true(tape->count < NOTES_MAX);
        tape->notes[tape->count] = read_note(&scene.client.lines[i]);
        tape->notes[tape->count].place = tape->count;
        tape->count++;
    }
    return scene.client.line_count;
}

/* All that there is: nothing runs any more. */
static void read_all(void)
{
    while (read_some() > 0) {
    }
}

static size_t count_of(enum kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < scene.tape.count; i++) {
        count += scene.tape.notes[i].kind == kind;
    }
    return count;
}

static size_t count_on(uint32_t track, enum kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < scene.tape.count; i++) {
        count += scene.tape.notes[i].kind == kind && scene.tape.notes[i].track == track;
    }
    return count;
}

static bool is_source(enum kind kind)
{
    return kind == SEND || kind == TIMER || kind == COMPLETE;
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

/* The n-th in time, from 0, of a kind that is about a process (or about none, if that is zero).
 * Tracks are read one after the other, and a process may go from one to the other. */
static const struct note *find(enum kind kind, skua_pid pid, size_t n)
{
    const struct note *found = NULL;
    for (size_t rank = 0; rank <= n; rank++) {
        const struct note *next = NULL;
        for (size_t i = 0; i < scene.tape.count; i++) {
            const struct note *note = &scene.tape.notes[i];
            if (note->kind == kind && note->pid.bits == pid.bits &&
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
    skua_pid running;
    skua_pid taker; /* of the events that have been taken for the next step */
    int64_t taken;
    bool is_parked;
    uint64_t time;
};

static void follow_begin(struct position *at, const struct note *note)
{
    if (at->is_known) {
        assert_false(at->in_step);
        assert_int_equal(at->taken, note->arg);
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
    *at = (struct position){.is_known = true, .time = at->time};
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
    if (note->track == OUTSIDE) {
        assert_int_equal(note->arg, 0);
    } else if (at->is_known) {
        assert_true(at->in_step);
        assert_int_equal(note->arg, at->running.bits);
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
    at->time = note->time;
    if (note->kind == LOST) {
        *at = (struct position){.time = note->time};
        assert_true(note->arg > 0);
        return;
    }
    if (note->kind == UNPARK) {
        at->is_parked = false;
    }
    assert_true(!at->is_parked || note->kind == TIMER); /* one that sleeps may wait for timers */
    switch (note->kind) {
    case BEGIN:
        follow_begin(at, note);
        break;
    case END:
        follow_end(at, note);
        break;
    case TAKE:
        follow_take(at, note);
        break;
    case SEND:
        follow_send(at, note);
        break;
    case PARK:
        follow_park(at);
        break;
    case STEAL:
        assert_true(note->arg > 0);
        assert_true(note->node < WORKERS && note->node != note->track);
        break;
    case TIMER:
    case COMPLETE:
    case SPAWN:
    case EXIT:
    case UNPARK:
    case LOST:
    case KINDS:
        break;
    }
}

static void assert_tracks_make_sense(void)
{
    struct position positions[TRACKS] = {0};
    for (size_t i = 0; i < scene.tape.count; i++) {
        follow(&positions[scene.tape.notes[i].track], &scene.tape.notes[i]);
    }
}

/* Everything is there, from when all processes were at rest until they were so again: whatever was
 * taken has its source, and whatever was sent has been taken. */
static void assert_flows_connect(void)
{
    struct note *sorted = malloc(scene.tape.count * sizeof *sorted);
    uint64_t *receivers = calloc(NODES, sizeof *receivers);
    assert_non_null(sorted);
    assert_non_null(receivers);
    memcpy(sorted, scene.tape.notes, scene.tape.count * sizeof *sorted);
    qsort(sorted, scene.tape.count, sizeof *sorted, earlier_first);
    size_t open = 0;
    for (size_t i = 0; i < scene.tape.count; i++) {
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
    free(receivers);
    free(sorted);
}

/* ---- messages ---- */

/* Two processes that send a message to and fro, so often, or until they are cancelled: which is
 * after the test, so it is static there. */
struct traffic {
    skua_pid pids[2];
    atomic_uint_fast64_t left;
    atomic_uint_fast64_t messages;
};

static int answer_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct traffic *traffic = api_world(self);
    if (api_finish_if_cancelled(events, count, out)) {
        return 0;
    }
    const bool is_first = skua_context_self(ctx).bits == traffic->pids[0].bits;
    for (size_t i = 0; i < count; i++) {
        (void)atomic_fetch_add(&traffic->messages, 1);
        if (atomic_load(&traffic->left) > 0) {
            (void)atomic_fetch_sub(&traffic->left, 1);
            (void)skua_context_send(ctx, traffic->pids[is_first], skua_payload_empty(0));
        }
    }
    return 0;
}

static const skua_process_type answerer = {
    .name = "answerer", .state_size = sizeof(void *), .init = api_init_world, .step = answer_step};

/* They are at rest. */
static void submit_traffic(struct traffic *traffic)
{
    atomic_store(&traffic->left, 0);
    atomic_store(&traffic->messages, 0);
    for (uint32_t i = 0; i < 2; i++) {
        traffic->pids[i] = api_submit(&scene.api, &answerer, traffic);
    }
    for (uint32_t i = 0; i < 2; i++) {
        api_wait_state(&scene.api, traffic->pids[i], SKUA_PROCESS_IDLE);
    }
}

static void send_first(struct traffic *traffic, uint64_t more)
{
    atomic_store(&traffic->left, more);
    assert_int_equal(skua_message_send(scene.api.runtime, traffic->pids[0], skua_payload_empty(0)),
                     0);
}

struct milestone {
    struct traffic *traffic;
    uint64_t messages;
};

static bool has_come(void *arg)
{
    const struct milestone *milestone = arg;
    return atomic_load(&milestone->traffic->messages) >= milestone->messages;
}

static void wait_messages(struct traffic *traffic, uint64_t at_least)
{
    struct milestone milestone = {traffic, at_least};
    wait_until(has_come, &milestone, "messages");
}

static void trace_of_messages_is_complete(void **state)
{
    (void)state;
    static struct traffic traffic;
    const uint64_t messages = 1500;
    create();
    start();
    submit_traffic(&traffic);
    inspect_ask(&scene.client, "trace start");
    assert_int_equal(scene.client.line_count, 0);
    send_first(&traffic, messages - 1);
    wait_messages(&traffic, messages);
    for (uint32_t i = 0; i < 2; i++) {
        api_wait_state(&scene.api, traffic.pids[i], SKUA_PROCESS_IDLE);
    }
    read_all();
    assert_int_equal(count_of(LOST), 0);
    assert_int_equal(count_of(SEND), messages);
    assert_int_equal(count_of(TAKE), messages);
    assert_int_equal(count_of(BEGIN), count_of(END));
    assert_tracks_make_sense();
    assert_flows_connect();
    assert_string_equal(find(BEGIN, traffic.pids[1], 0)->type, "answerer");
    assert_int_equal(count_on(OUTSIDE, SEND), 1);
    inspect_ask(&scene.client, "trace stop");
}

/* Many messages at once: one step takes many. */
static void trace_of_a_backlog_has_every_event(void **state)
{
    (void)state;
    struct blocker blockers[WORKERS];
    const uint32_t messages = 500;
    create();
    start();
    const skua_pid pid = api_submit(&scene.api, &api_idler, NULL);
    api_wait_state(&scene.api, pid, SKUA_PROCESS_IDLE);
    for (uint32_t i = 0; i < WORKERS; i++) {
        blocker_start(&blockers[i], &scene.api);
    }
    inspect_ask(&scene.client, "trace start");
    for (uint32_t i = 0; i < messages; i++) {
        assert_int_equal(skua_message_send(scene.api.runtime, pid, skua_payload_empty(0)), 0);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        blocker_release(&blockers[i]);
        api_wait_end(&scene.api, blockers[i].pid);
    }
    api_wait_steps(&scene.api, pid, 1 + messages / SKUA_EVENTS_PER_STEP);
    api_wait_state(&scene.api, pid, SKUA_PROCESS_IDLE);
    read_all();
    assert_int_equal(count_of(TAKE), messages);
    assert_tracks_make_sense();
    assert_flows_connect();
    int64_t most = 0;
    for (size_t i = 0; i < scene.tape.count; i++) {
        const struct note *note = &scene.tape.notes[i];
        most = note->kind == BEGIN && note->arg > most ? note->arg : most;
    }
    assert_int_equal(most, SKUA_EVENTS_PER_STEP);
}

/* ---- all that a process may do ---- */

#define CHILD_ERROR (SKUA_E_USER - 7)

/* Sleeps, waits for a command, starts a child that fails, ends. */
struct traveller {
    struct tally asked;
    skua_completion completion;
    skua_pid child;
};

static int fail_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    (void)self, (void)ctx, (void)events, (void)count, (void)out;
    return CHILD_ERROR;
}

static const skua_process_type child_type = {.name = "child", .step = fail_step};

enum { TAG_SLEEP = 1, TAG_COMMAND };

static int travel_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct traveller *traveller = api_world(self);
    if (count == 0) {
        return skua_step_sleep(out, TAG_SLEEP, SKUA_MILLISECOND);
    }
    if (events[0].tag == TAG_SLEEP) {
        return skua_step_yield(out, 1, TAG_COMMAND, skua_payload_empty(0));
    }
    const int error = skua_context_spawn(ctx, &child_type, NULL, NULL, 0, &traveller->child);
    skua_step_done(out, skua_payload_empty(0));
    return error;
}

static const skua_process_type traveller_type = {
    .name = "traveller", .state_size = sizeof(void *), .init = api_init_world, .step = travel_step};

static int keep_completion(void *arg, skua_command *command, skua_payload *result)
{
    struct traveller *traveller = arg;
    (void)result;
    traveller->completion = command->completion;
    tally_add(&traveller->asked, 1);
    return SKUA_PENDING;
}

/* A source, the take of the same node behind it, and the step behind that. */
static void assert_leads_to_step(const struct note *source, skua_pid pid, size_t step)
{
    const struct note *take = find(TAKE, pid, step - 1);
    const struct note *begin = find(BEGIN, pid, step);
    assert_int_equal(take->node, source->node);
    assert_int_equal(take->track, begin->track);
    assert_true(source->time <= take->time && take->time <= begin->time);
    assert_int_equal(begin->arg, 1);
}

static void trace_tells_of_timers_commands_and_lives(void **state)
{
    (void)state;
    struct traveller traveller;
    tally_init(&traveller.asked);
    create();
    const skua_handler handler = {.name = "keep", .run = keep_completion, .arg = &traveller};
    assert_int_equal(skua_command_register(scene.api.runtime, 1, &handler), 0);
    start();
    inspect_ask(&scene.client, "trace start");
    const skua_pid pid = api_submit(&scene.api, &traveller_type, &traveller);
    tally_wait(&traveller.asked, 1);
    assert_int_equal(
        skua_command_complete(scene.api.runtime, traveller.completion, 0, skua_payload_empty(0)),
        0);
    api_wait_live(&scene.api, 0);
    read_all();
    assert_tracks_make_sense();
    assert_flows_connect();
    assert_int_equal(count_of(SPAWN), 2);
    assert_int_equal(find(SPAWN, pid, 0)->track, OUTSIDE);
    assert_string_equal(find(SPAWN, pid, 0)->type, "traveller");
    assert_int_equal(find(BEGIN, pid, 0)->arg, 0);
    assert_leads_to_step(find(TIMER, pid, 0), pid, 1);
    assert_int_equal(find(COMPLETE, pid, 0)->track, OUTSIDE);
    assert_leads_to_step(find(COMPLETE, pid, 0), pid, 2);
    const struct note *birth = find(SPAWN, traveller.child, 0);
    assert_string_equal(birth->type, "child");
    assert_int_equal(birth->track, find(BEGIN, pid, 2)->track);
    assert_in_range(birth->time, find(BEGIN, pid, 2)->time, find(END, pid, 2)->time);
    assert_int_equal(find(END, traveller.child, 0)->arg, CHILD_ERROR);
    assert_int_equal(find(EXIT, traveller.child, 0)->arg, CHILD_ERROR);
    assert_string_equal(find(EXIT, traveller.child, 0)->type, "child");
    assert_int_equal(find(EXIT, pid, 0)->arg, 0);
    assert_int_equal(count_of(EXIT), 2);
}

/* ---- workers ---- */

static int toil_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    volatile uint32_t work = 0;
    (void)self, (void)ctx, (void)events, (void)count;
    while (work < 20000) {
        work++;
    }
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type toiler = {.name = "toiler", .step = toil_step};

static void spawn_toilers(void *arg, skua_context *ctx, skua_step *out)
{
    (void)arg, (void)out;
    for (uint32_t i = 0; i < 100; i++) {
        (void)skua_context_spawn(ctx, &toiler, NULL, NULL, 0, NULL);
    }
}

/* One worker gets work for two, again and again until the other has taken some of it. */
static bool has_stolen(void *arg)
{
    (void)arg;
    api_in_step(&scene.api, spawn_toilers, NULL);
    api_wait_live(&scene.api, 0);
    read_all();
    return count_of(STEAL) > 0;
}

static void trace_tells_of_thieves(void **state)
{
    (void)state;
    create();
    start();
    inspect_ask(&scene.client, "trace start");
    wait_until(has_stolen, NULL, "a theft");
    assert_tracks_make_sense();
}

static bool has_slept_and_woken(void *arg)
{
    (void)arg;
    api_in_step(&scene.api, spawn_toilers, NULL);
    api_wait_live(&scene.api, 0);
    read_all();
    return count_of(PARK) > 0 && count_of(UNPARK) > 1;
}

static void trace_tells_of_sleep(void **state)
{
    (void)state;
    create();
    start();
    inspect_ask(&scene.client, "trace start");
    wait_until(has_slept_and_woken, NULL, "a worker to sleep and wake");
    assert_tracks_make_sense();
    assert_int_equal(find(PARK, (skua_pid){0}, 0)->arg, 0);
}

/* ---- a trace that goes on ---- */

/* It begins and ends in the middle of everything. */
static void trace_of_a_busy_program_makes_sense(void **state)
{
    (void)state;
    static struct traffic traffic[3];
    create();
    start();
    for (size_t i = 0; i < COUNT_OF(traffic); i++) {
        submit_traffic(&traffic[i]);
        send_first(&traffic[i], UINT64_MAX);
    }
    for (uint32_t round = 0; round < 3; round++) {
        scene.tape.count = 0;
        inspect_ask(&scene.client, "trace start");
        const size_t wanted = EFFORT(20000);
        while (scene.tape.count < wanted) {
            (void)read_some();
        }
        inspect_ask(&scene.client, "trace stop");
        assert_tracks_make_sense();
        assert_true(count_of(BEGIN) > 0 && count_of(END) > 0);
        inspect_ask_wrong(&scene.client, "trace read", SKUA_E_INVALID);
    }
}

/* Nobody reads for so long that the rings are full. What is read then has a gap, which is told. */
static void trace_that_is_not_read_counts_what_is_lost(void **state)
{
    (void)state;
    static struct traffic traffic;
    create();
    start();
    submit_traffic(&traffic);
    inspect_ask(&scene.client, "trace start");
    send_first(&traffic, UINT64_MAX);
    wait_messages(&traffic, WORKERS * RING); /* each is four records */
    while (count_of(LOST) == 0) {
        (void)read_some();
    }
    assert_tracks_make_sense();
    for (size_t i = 0; i < scene.tape.count; i++) {
        if (scene.tape.notes[i].kind == LOST) {
            assert_true(scene.tape.notes[i].arg > 0);
        }
    }
}

/* The next trace has lost nothing, whatever the one before it has. */
static void trace_does_not_tell_of_the_gaps_before_it(void **state)
{
    (void)state;
    static struct traffic traffic;
    create();
    start();
    submit_traffic(&traffic);
    inspect_ask(&scene.client, "trace start");
    send_first(&traffic, WORKERS * RING);
    wait_messages(&traffic, WORKERS * RING + 1);
    for (uint32_t i = 0; i < 2; i++) {
        api_wait_state(&scene.api, traffic.pids[i], SKUA_PROCESS_IDLE);
    }
    inspect_ask(&scene.client, "trace stop");
    inspect_ask(&scene.client, "trace start");
    send_first(&traffic, 99);
    wait_messages(&traffic, WORKERS * RING + 101);
    for (uint32_t i = 0; i < 2; i++) {
        api_wait_state(&scene.api, traffic.pids[i], SKUA_PROCESS_IDLE);
    }
    read_all();
    assert_int_equal(count_of(LOST), 0);
    assert_int_equal(count_of(TAKE), 100);
    assert_tracks_make_sense();
    assert_flows_connect();
}

/* ---- who traces ---- */

/* What is left comes with the next answers. */
static void trace_is_read_in_parts_of_any_size(void **state)
{
    (void)state;
    create();
    start();
    inspect_ask(&scene.client, "trace start");
    for (uint32_t i = 0; i < 20; i++) {
        (void)api_submit(&scene.api, &api_idler, NULL); /* a `spawn` at least */
    }
    static const char *const requests[] = {"trace read 1", "trace read 3", "trace read 1"};
    static const size_t counts[] = {1, 3, 1};
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        inspect_ask(&scene.client, requests[i]);
        assert_int_equal(scene.client.line_count, counts[i]);
    }
    inspect_ask(&scene.client, "trace read 1000");
    assert_true(scene.client.line_count >= 15);
    static const char *const wrong[] = {"trace read 0", "trace read 1001", "trace read -1",
                                        "trace read x", "trace read ",     "trace read 1 1",
                                        "trace stop 1"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        inspect_ask_wrong(&scene.client, wrong[i], SKUA_E_INVALID);
    }
    inspect_ask(&scene.client, "trace stop");
}

static void trace_is_one_clients(void **state)
{
    (void)state;
    struct inspect_client other;
    create();
    start();
    inspect_open(&other, scene.api.runtime);
    inspect_ask(&scene.client, "trace start");
    inspect_ask_wrong(&other, "trace start", SKUA_E_BUSY);
    inspect_ask_wrong(&other, "trace read", SKUA_E_INVALID);
    inspect_ask_wrong(&other, "trace stop", SKUA_E_INVALID);
    inspect_ask_wrong(&scene.client, "trace start", SKUA_E_BUSY);
    inspect_ask(&scene.client, "trace read");
    inspect_ask(&scene.client, "trace stop");
    inspect_ask(&other, "trace start");
    inspect_ask_wrong(&scene.client, "trace stop", SKUA_E_INVALID);
    inspect_close(&other);
}

static bool can_trace(void *arg)
{
    (void)arg;
    const char request[] = "trace start\n";
    inspect_send(&scene.client, request, strlen(request));
    assert_true(inspect_read(&scene.client));
    return scene.client.error == NULL;
}

static void trace_ends_with_its_client(void **state)
{
    (void)state;
    create();
    start();
    for (uint32_t i = 0; i < 20; i++) {
        struct inspect_client other;
        inspect_open(&other, scene.api.runtime);
        inspect_ask(&other, "trace start");
        inspect_close(&other);
        wait_until(can_trace, NULL, "the end of a trace");
        inspect_ask(&scene.client, "trace stop");
    }
}

#define SCRATCH_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    watchdog_start();
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(trace_of_messages_is_complete),
        SCRATCH_TEST(trace_of_a_backlog_has_every_event),
        SCRATCH_TEST(trace_tells_of_timers_commands_and_lives),
        SCRATCH_TEST(trace_tells_of_thieves),
        SCRATCH_TEST(trace_tells_of_sleep),
        SCRATCH_TEST(trace_of_a_busy_program_makes_sense),
        SCRATCH_TEST(trace_that_is_not_read_counts_what_is_lost),
        SCRATCH_TEST(trace_does_not_tell_of_the_gaps_before_it),
        SCRATCH_TEST(trace_is_read_in_parts_of_any_size),
        SCRATCH_TEST(trace_is_one_clients),
        SCRATCH_TEST(trace_ends_with_its_client),
    };
    return cmocka_run_group_tests_name("inspect_trace", tests, NULL, NULL);
}
