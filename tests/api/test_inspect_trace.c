/* SPDX-License-Identifier: MIT */
/* Traces: what real processes did, as the inspector's clients are told, and who may trace. */
#include <stdio.h>

#include "actor.h"
#include "crowd.h"
#include "desk.h"
#include "effort.h"
#include "idlers.h"
#include "names.h"
#include "standstill.h"
#include "tape.h"
#include "traffic.h"

/* A tape in a world with nothing in it. */
static struct tape *open_tape(void)
{
    inspected_open((skua_runtime_config){.worker_count = TAPE_WORKERS});
    return tape_new();
}

/* ---- messages ---- */

TEST(trace_of_messages_is_complete)
{
    enum { MESSAGES = 1500 };
    struct tape *tape = open_tape();
    struct traffic *traffic = traffic_start();
    tape_start(tape);
    traffic_begin(traffic, MESSAGES - 1);
    traffic_await(traffic, MESSAGES);
    traffic_await_rest(traffic);
    tape_read_all(tape);
    assert_int_equal(tape_count(tape, NOTE_SEND), MESSAGES);
    assert_int_equal(tape_count(tape, NOTE_TAKE), MESSAGES);
    assert_int_equal(tape_count(tape, NOTE_BEGIN), tape_count(tape, NOTE_END));
    assert_tape_is_whole(tape);
    assert_string_equal(tape_find(tape, NOTE_BEGIN, traffic->pids[1], 0)->type, "answerer");
    assert_int_equal(tape_count_on(tape, TAPE_OUTSIDE, NOTE_SEND), 1);
    tape_stop(tape);
}

/* From inside and from outside, up to the largest number. */
TEST(trace_tells_the_types_of_messages)
{
    static const uint32_t types[] = {0, 7, UINT32_MAX};
    struct tape *tape = open_tape();
    const skua_pid pid = idler_start();
    struct actor *receiver = actor_start(NO_ACTS);
    tape_start(tape);
    FOR_ROWS (type, types) {
        assert_int_equal(world_send(pid, skua_payload_u64(*type, 1)), 0);
    }
    assert_result(actor_run(actor_new(
                      ACTS(sends(receiver, 8, 1), sends(receiver, UINT32_MAX, 2), finishes(0)))),
                  0);
    api_wait_state(world->api, pid, SKUA_PROCESS_IDLE);
    tape_read_all(tape);
    assert_string_equal(tape_find(tape, NOTE_SEND, pid, 0)->type, "0");
    assert_string_equal(tape_find(tape, NOTE_SEND, pid, 1)->type, "7");
    assert_string_equal(tape_find(tape, NOTE_SEND, pid, 2)->type, "4294967295");
    assert_string_equal(tape_find(tape, NOTE_SEND, receiver->pid, 0)->type, "8");
    assert_string_equal(tape_find(tape, NOTE_SEND, receiver->pid, 1)->type, "4294967295");
}

/* The first message lets the task wait elsewhere, the second ends it. */
static int wait_twice(void *self, skua_context *ctx)
{
    skua_event *event;
    int error = skua_task_receive(ctx, &event, SKUA_FOREVER);
    (void)self;
    return error != 0 ? error : skua_task_receive_type(ctx, 0, &event, SKUA_FOREVER);
}

TEST(trace_tells_where_a_task_waits)
{
    static const skua_process_type type = {.name = "task", .main = wait_twice};
    skua_pid pid;
    struct tape *tape = open_tape();
    assert_int_equal(skua_process_submit(world_runtime(), &type, skua_nothing(), &pid), 0);
    api_wait_state(world->api, pid, SKUA_PROCESS_IDLE);
    tape_start(tape);
    assert_int_equal(world_send(pid, skua_nothing()), 0);
    api_wait_state(world->api, pid, SKUA_PROCESS_IDLE);
    assert_int_equal(world_send(pid, skua_nothing()), 0);
    api_wait_end(world->api, pid);
    tape_read_all(tape);
    assert_non_null(strstr(tape_find(tape, NOTE_END, pid, 0)->type, "test_inspect_trace.c:"));
    assert_string_equal(tape_find(tape, NOTE_END, pid, 1)->type, "-");
}

/* Many messages at once: one step takes many. */
TEST(trace_of_a_backlog_has_every_event)
{
    enum { MESSAGES = 500 };
    int64_t most = 0;
    struct tape *tape = open_tape();
    const skua_pid pid = idler_start();
    standstill_begin();
    tape_start(tape);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        assert_int_equal(world_send(pid, skua_payload_empty(0)), 0);
    }
    standstill_end();
    world_await_live(1);
    api_wait_steps(world->api, pid, 1 + MESSAGES / SKUA_EVENTS_PER_STEP);
    api_wait_state(world->api, pid, SKUA_PROCESS_IDLE);
    tape_read_all(tape);
    assert_int_equal(tape_count(tape, NOTE_TAKE), MESSAGES);
    assert_tape_is_whole(tape);
    for (size_t i = 0; i < tape->count; i++) {
        const struct note *note = &tape->notes[i];
        most = note->kind == NOTE_BEGIN && note->arg > most ? note->arg : most;
    }
    assert_int_equal(most, SKUA_EVENTS_PER_STEP);
}

/* ---- all that a process may do ---- */

#define CHILD_ERROR (SKUA_E_USER - 7)

/* A source, the take of the same node behind it, and the step behind that. */
static void assert_leads_to_step(const struct tape *tape, enum note_kind kind, skua_pid pid,
                                 size_t step)
{
    const struct note *source = tape_find(tape, kind, pid, 0);
    const struct note *take = tape_find(tape, NOTE_TAKE, pid, step - 1);
    const struct note *begin = tape_find(tape, NOTE_BEGIN, pid, step);
    assert_int_equal(take->node, source->node);
    assert_int_equal(take->track, begin->track);
    assert_true(source->time <= take->time && take->time <= begin->time);
    assert_int_equal(begin->arg, 1);
}

TEST(trace_tells_of_timers_commands_and_lives)
{
    inspected_prepare();
    world_create((skua_runtime_config){.worker_count = TAPE_WORKERS, .inspect = true});
    struct desk *desk = desk_open();
    world_start();
    struct tape *tape = tape_new();
    struct actor *child = actor_new(ACTS(fails(CHILD_ERROR)));
    struct actor *parent =
        actor_new(ACTS(sleeps(1, SKUA_MILLISECOND), awaits(1), yields(2, DESK_KEEP, 0, 0),
                       awaits(1), spawns(child), finishes(0)));
    child->type.name = "child";
    parent->type.name = "parent";
    tape_start(tape);
    actor_submit(parent);
    desk_await_kept(desk, 1);
    assert_int_equal(desk_complete(desk, 0, 0, 0), 0);
    world_await_live(0);
    tape_read_all(tape);
    assert_tape_is_whole(tape);

    assert_int_equal(tape_count(tape, NOTE_SPAWN), 2);
    const struct note *spawn = tape_find(tape, NOTE_SPAWN, parent->pid, 0);
    assert_int_equal(spawn->track, TAPE_OUTSIDE);
    assert_string_equal(spawn->type, "parent");
    assert_int_equal(tape_find(tape, NOTE_BEGIN, parent->pid, 0)->arg, 1); /* START */
    assert_leads_to_step(tape, NOTE_TIMER, parent->pid, 1);
    assert_leads_to_step(tape, NOTE_COMPLETE, parent->pid, 2);
    assert_int_equal(tape_find(tape, NOTE_COMPLETE, parent->pid, 0)->track, TAPE_OUTSIDE);

    const struct note *birth = tape_find(tape, NOTE_SPAWN, child->pid, 0);
    const struct note *begin = tape_find(tape, NOTE_BEGIN, parent->pid, 2);
    assert_string_equal(birth->type, "child");
    assert_int_equal(birth->track, begin->track);
    assert_in_range(birth->time, begin->time, tape_find(tape, NOTE_END, parent->pid, 2)->time);
    assert_int_equal(tape_find(tape, NOTE_END, child->pid, 0)->arg, CHILD_ERROR);

    assert_int_equal(tape_count(tape, NOTE_EXIT), 2);
    assert_int_equal(tape_find(tape, NOTE_EXIT, child->pid, 0)->arg, CHILD_ERROR);
    assert_string_equal(tape_find(tape, NOTE_EXIT, child->pid, 0)->type, "child");
    assert_int_equal(tape_find(tape, NOTE_EXIT, parent->pid, 0)->arg, 0);
}

/* A request, and the answer to it. */
TEST(trace_of_a_call_leads_there_and_back)
{
    struct tape *tape = open_tape();
    struct actor *server = server_start(ACTS(expects(request(1)), answers(0, 2)));
    struct actor *client =
        actor_new(ACTS(asks(7, server, 1), expects(completion_of(7, 0, 2)), finishes(0)));
    actor_await_state(server, SKUA_PROCESS_IDLE);
    tape_start(tape);
    assert_result(actor_run(client), 0);
    tape_read_all(tape);
    assert_tape_is_whole(tape);
    assert_int_equal(tape_find(tape, NOTE_SEND, server->pid, 0)->node,
                     tape_find(tape, NOTE_TAKE, server->pid, 0)->node);
    assert_true(skua_pid_equal(
        (skua_pid){(uint64_t)tape_find(tape, NOTE_SEND, server->pid, 0)->arg}, client->pid));
    assert_leads_to_step(tape, NOTE_COMPLETE, client->pid, 1);
}

/* ---- what processes are called ---- */

#define PART 8 /* bytes of text in a record */

/* The n-th text of this kind that a process got is this. */
static void assert_text(const struct tape *tape, enum note_kind kind, const struct actor *actor,
                        size_t n, const char *expected)
{
    char text[100] = "";
    size_t length = 0;
    size_t texts = 0;
    for (size_t i = 0; texts <= n; i++) {
        const struct note *note = tape_find(tape, kind, actor->pid, i);
        length = note->arg == 0 ? 0 : length;
        assert_int_equal(note->arg, length / PART);
        (void)snprintf(text + length, sizeof text - length, "%s", note->type);
        length += strlen(note->type);
        texts += strlen(note->type) < PART;
    }
    assert_string_equal(text, expected);
}

TEST(trace_tells_names_and_labels_when_a_process_gets_them)
{
    struct tape *tape = open_tape();
    struct actor *child = actor_new(NO_ACTS);
    struct actor *parent = actor_start(NO_ACTS);
    tape_start(tape);
    actor_perform(parent, ACTS(takes_name("the first of all names"), takes_name("another"),
                               takes_label("12345678"), takes_label("changed"),
                               spawns_with(child, (skua_spawn_options){.name = "child",
                                                                       .label = "little one"})));
    tape_read_all(tape);
    assert_text(tape, NOTE_NAME, parent, 0, "the first of all names");
    assert_text(tape, NOTE_LABEL, parent, 0, "12345678");
    assert_text(tape, NOTE_LABEL, parent, 1, "changed");
    assert_text(tape, NOTE_NAME, child, 0, "child");
    assert_text(tape, NOTE_LABEL, child, 0, "little one");
    assert_int_equal(tape_count(tape, NOTE_NAME), 3 + 1); /* not those after the first */
    tape_stop(tape);
}

/* Nobody can ask it any more. */
TEST(trace_tells_what_a_process_was_called_that_has_ended)
{
    struct tape *tape = open_tape();
    struct actor *actor = named_start("one", ACTS(takes_name("two"), takes_label("old")));
    struct actor *nameless = actor_start(NO_ACTS);
    actor_await_state(actor, SKUA_PROCESS_IDLE);
    tape_start(tape);
    actor_perform(actor, ACTS(finishes(0)));
    actor_perform(nameless, ACTS(finishes(0)));
    world_await_live(0);
    tape_read_all(tape);
    assert_text(tape, NOTE_NAME, actor, 0, "one");
    assert_text(tape, NOTE_LABEL, actor, 0, "old");
    assert_int_equal(tape_count(tape, NOTE_NAME), 1);
    assert_int_equal(tape_count(tape, NOTE_LABEL), 1);
    tape_stop(tape);
}

/* ---- workers ---- */

static int toil(void *arg)
{
    volatile uint32_t work = 0;
    (void)arg;
    while (work < 20000) {
        work++;
    }
    return 0;
}

/* Work for two, that one of them gets. */
struct factory {
    struct tape *tape;
    struct actor *boss;
};

static struct factory factory_open(void)
{
    struct tape *tape = open_tape();
    const struct crowd toilers = crowd_new(100, ACTS(calls(toil, NULL), finishes(0)));
    tape_start(tape);
    return (struct factory){tape, actor_new(ACTS(spawns_crowd(toilers), finishes(0)))};
}

static void factory_run(const struct factory *factory)
{
    actor_submit(factory->boss);
    world_await_live(0);
    tape_read_all(factory->tape);
}

static bool has_stolen(void *arg)
{
    const struct factory *factory = arg;
    factory_run(factory);
    return tape_count(factory->tape, NOTE_STEAL) > 0;
}

TEST(trace_tells_of_thieves)
{
    struct factory factory = factory_open();
    wait_until(has_stolen, &factory, "a theft");
    assert_tape_makes_sense(factory.tape);
}

static bool has_slept_and_woken(void *arg)
{
    const struct factory *factory = arg;
    factory_run(factory);
    return tape_count(factory->tape, NOTE_PARK) > 0 && tape_count(factory->tape, NOTE_UNPARK) > 1;
}

TEST(trace_tells_of_sleep)
{
    struct factory factory = factory_open();
    wait_until(has_slept_and_woken, &factory, "a worker to sleep and wake");
    assert_tape_makes_sense(factory.tape);
    assert_int_equal(tape_find(factory.tape, NOTE_PARK, (skua_pid){0}, 0)->arg, 0);
}

/* ---- a trace that goes on ---- */

/* It begins and ends in the middle of everything. */
TEST(trace_of_a_busy_program_makes_sense)
{
    struct tape *tape = open_tape();
    for (size_t i = 0; i < 3; i++) {
        traffic_begin(traffic_start(), TRAFFIC_FOR_EVER);
    }
    for (uint32_t round = 0; round < 3; round++) {
        tape_start(tape);
        while (tape->count < EFFORT(20000)) {
            (void)tape_read(tape);
        }
        tape_stop(tape);
        assert_tape_makes_sense(tape);
        assert_true(tape_count(tape, NOTE_BEGIN) > 0 && tape_count(tape, NOTE_END) > 0);
        client_ask_wrong(tape->client, SKUA_E_INVALID, "trace read");
    }
}

/* Nobody reads for so long that the rings are full. What is read then has a gap, which is told. */
TEST(trace_that_is_not_read_counts_what_is_lost)
{
    struct tape *tape = open_tape();
    struct traffic *traffic = traffic_start();
    tape_start(tape);
    traffic_begin(traffic, TRAFFIC_FOR_EVER);
    traffic_await(traffic, TAPE_WORKERS * TAPE_RING); /* each is four records */
    while (tape_count(tape, NOTE_LOST) == 0) {
        (void)tape_read(tape);
    }
    assert_tape_makes_sense(tape);
    assert_true(tape_find(tape, NOTE_LOST, (skua_pid){0}, 0)->arg > 0);
}

/* The next trace has lost nothing, whatever the one before it has. */
TEST(trace_does_not_tell_of_the_gaps_before_it)
{
    struct tape *tape = open_tape();
    struct traffic *traffic = traffic_start();
    tape_start(tape);
    traffic_begin(traffic, TAPE_WORKERS * TAPE_RING);
    traffic_await(traffic, TAPE_WORKERS * TAPE_RING + 1);
    traffic_await_rest(traffic);
    tape_stop(tape);
    tape_start(tape);
    traffic_begin(traffic, 99);
    traffic_await(traffic, TAPE_WORKERS * TAPE_RING + 101);
    traffic_await_rest(traffic);
    tape_read_all(tape);
    assert_int_equal(tape_count(tape, NOTE_TAKE), 100);
    assert_tape_is_whole(tape);
}

/* ---- who traces ---- */

/* What is left comes with the next answers. */
TEST(trace_is_read_in_parts_of_any_size)
{
    static const unsigned parts[] = {1, 3, 1};
    static const char *const wrong[] = {"trace read 0", "trace read 1001", "trace read -1",
                                        "trace read x", "trace read ",     "trace read 1 1",
                                        "trace stop 1"};
    struct tape *tape = open_tape();
    tape_start(tape);
    (void)idlers_start(20); /* a `spawn` each, at least */
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        client_ask(tape->client, "trace read %u", parts[i]);
        assert_int_equal(tape->client->line_count, parts[i]);
    }
    client_ask(tape->client, "trace read 1000");
    assert_true(tape->client->line_count >= 15);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        inspect_ask_wrong(tape->client, wrong[i], SKUA_E_INVALID);
    }
    tape_stop(tape);
}

TEST(trace_is_one_clients)
{
    struct tape *tape = open_tape();
    struct inspect_client *other = client_open();
    tape_start(tape);
    client_ask_wrong(other, SKUA_E_BUSY, "trace start");
    client_ask_wrong(other, SKUA_E_INVALID, "trace read");
    client_ask_wrong(other, SKUA_E_INVALID, "trace stop");
    client_ask_wrong(tape->client, SKUA_E_BUSY, "trace start");
    client_ask(tape->client, "trace read");
    tape_stop(tape);
    client_ask(other, "trace start");
    client_ask_wrong(tape->client, SKUA_E_INVALID, "trace stop");
}

static bool can_trace(void *arg)
{
    struct inspect_client *client = arg;
    inspect_send(client, "trace start\n", strlen("trace start\n"));
    assert_true(inspect_read(client));
    return client->error == NULL;
}

TEST(trace_ends_with_its_client)
{
    struct tape *tape = open_tape();
    for (uint32_t i = 0; i < 20; i++) {
        struct inspect_client *other = client_open();
        client_ask(other, "trace start");
        client_close(other);
        wait_until(can_trace, tape->client, "the end of a trace");
        tape_stop(tape);
    }
}
