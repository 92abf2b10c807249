/* SPDX-License-Identifier: MIT */
#include "waits.h"

#include <skua/task.h>
#include <stdatomic.h>

#include "commands.h"
#include "count_of.h"
#include "ledger.h"
#include "sockets.h"

/* What all waits answer. */
#define ANSWERS_OF_WAIT                                                                            \
    (ANSWER_OK | ANSWER(CANCELLED) | ANSWER(TERMINATED) | ANSWER(DONE) | ANSWER(NO_MEMORY))
#define ANSWERS_OF_TIMED_WAIT (ANSWERS_OF_WAIT | ANSWER(TIMEOUT) | ANSWER(DURATION))
#define ANSWERS_OF_CALL                                                                            \
    (ANSWERS_OF_TIMED_WAIT | ANSWER(NO_PROCESS) | ANSWER(FOREIGN_PID) | ANSWER(NOT_CALLABLE) |     \
     ANSWER(MAILBOX_FULL) | ANSWER(PEER_ENDED) | ANSWER(PAYLOAD_SIZE) | ANSWER(INVALID) |          \
     ANSWER_OF_USER)
#define ANSWERS_OF_NAME (ANSWER(NAME) | ANSWER(NAME_LENGTH))
#define ANY_ANSWER      UINT64_MAX

static atomic_uint deferred;

/* ---- what comes of a wait ---- */

/* The task has received no event: it makes one up. */
static void forget_event(struct play *play)
{
    play->none = (skua_event){.type = SKUA_EVENT_START};
    play->events = &play->none;
    play->count = 1;
}

/* That it was cancelled is told again by each wait, but for those in a shield. */
static void be_cancelled(struct play *play)
{
    skua_event *event;
    EXPECT(skua_task_receive(play->ctx, &event, 0) == SKUA_E_CANCELLED && event == NULL);
    if (play->script->habit == IGNORES) {
        EXPECT(skua_task_shield(play->ctx, true) == 0);
        return;
    }
    play->leaves = true;
    play->is_over = true;
    play->error = reader_below(play->reader, 2) == 0 ? SKUA_E_CANCELLED : 0;
}

/* Nothing that waits works any more. */
static void be_ended(struct play *play, int error)
{
    skua_event *event;
    EXPECT(skua_task_receive(play->ctx, &event, SKUA_FOREVER) == error && event == NULL);
    EXPECT(skua_task_pause(play->ctx) == error);
    play->leaves = true;
    play->is_over = true;
}

/* After a wait that only the end of the task itself ends so. */
static void go_on_after(struct play *play, int error)
{
    if (error == SKUA_E_CANCELLED) {
        be_cancelled(play);
    } else if (error == SKUA_E_TERMINATED || error == SKUA_E_DONE) {
        be_ended(play, error);
    }
}

/* After one whose result may be anybody's. */
static void go_on_after_any(struct play *play)
{
    const int error = skua_task_ending(play->ctx);
    (void)ANSWERS(error, ANSWER_OK | ANSWER(CANCELLED) | ANSWER(TERMINATED) | ANSWER(DONE));
    go_on_after(play, error);
}

/* Returns whether this process may wait, which `error`, that of a wait, says. */
static bool may_wait(const struct play *play, int error)
{
    if (!play->is_task) {
        EXPECT(error == SKUA_E_NOT_TASK);
    }
    return play->is_task;
}

/* ---- receiving ---- */

/* Those that somebody waits for must end. */
static uint64_t choose_wait_timeout(struct play *play)
{
    const bool is_short = reader_below(play->reader, 2) == 0 || play->script->habit == MORTAL;
    return is_short ? choose_timeout(play->reader) : choose_yield_timeout(play->reader);
}

static uint64_t choose_wait_duration(struct play *play)
{
    return play->script->habit == MORTAL ? choose_timeout(play->reader)
                                         : choose_duration(play->reader);
}

static bool is_liked(void *arg, const skua_event *event)
{
    EXPECT(event->type != SKUA_EVENT_CALL || event->request.bits == 0);
    return (event->type + event->tag) % 4 == (uintptr_t)arg % 4;
}

static int receive_one(struct play *play, skua_event **event, uint64_t timeout)
{
    const uint8_t choice = reader_byte(play->reader);
    switch (choice % 4) {
    case 0:
        return skua_task_receive_type(play->ctx, choice / 4, event, timeout);
    case 1:
        return skua_task_receive_if(play->ctx, is_liked, (void *)(uintptr_t)(choice / 4), event,
                                    timeout);
    default:
        return skua_task_receive(play->ctx, event, timeout);
    }
}

static void note_received(struct play *play, skua_event *event, int error)
{
    EXPECT((event != NULL) == (error == 0));
    if (ANSWERS(error, ANSWERS_OF_TIMED_WAIT)) {
        play->events = event;
        play->count = 1;
        play_note_event(play, event);
    } else {
        forget_event(play);
        go_on_after(play, error);
    }
}

static void receive(struct play *play)
{
    skua_event *event;
    const uint64_t timeout = choose_wait_timeout(play);
    const int error = receive_one(play, &event, timeout);
    if (may_wait(play, error)) {
        note_received(play, event, error);
    }
}

void waits_for_next(struct play *play)
{
    skua_event *event;
    if (play->script->habit == MORTAL) {
        const int error = skua_task_pause(play->ctx);
        (void)ANSWERS(error, ANSWERS_OF_WAIT);
        forget_event(play);
        go_on_after(play, error);
    } else {
        const int error = skua_task_receive(play->ctx, &event, SKUA_FOREVER);
        note_received(play, event, error);
    }
}

/* ---- time ---- */

static void sleep_for(struct play *play)
{
    const int error = skua_task_sleep(play->ctx, choose_wait_duration(play));
    if (may_wait(play, error)) {
        (void)ANSWERS(error, ANSWERS_OF_WAIT | ANSWER(DURATION));
        go_on_after(play, error);
    }
}

static void tick(struct play *play)
{
    uint64_t next = reader_below(play->reader, 2) == 0 ? 0 : skua_now(play->ctx);
    uint64_t count = 0;
    const uint64_t before = next;
    const int error = skua_task_ticker(play->ctx, choose_wait_duration(play), &next, &count);
    if (may_wait(play, error)) {
        (void)ANSWERS(error, ANSWERS_OF_WAIT | ANSWER(DURATION) | ANSWER(INVALID));
        EXPECT(error != 0 || (next > before && count > 0));
        go_on_after(play, error);
    }
}

static void pause_once(struct play *play)
{
    const int error = skua_task_pause(play->ctx);
    if (may_wait(play, error)) {
        (void)ANSWERS(error, ANSWERS_OF_WAIT);
        go_on_after(play, error);
    }
}

/* ---- other processes ---- */

/* The answer of a call, which may be that of a completion that somebody forged. */
static void note_answer(struct play *play, int error, skua_payload *answer, uint64_t documented)
{
    if (may_wait(play, error)) {
        if (documented != ANY_ANSWER && !board_has_forged_completion()) {
            (void)ANSWERS(error, documented);
        }
        go_on_after_any(play);
    }
    skua_payload_drop(answer);
}

static void call(struct play *play)
{
    skua_payload answer;
    const skua_pid to = choose_server(play->reader);
    const uint64_t timeout = choose_wait_timeout(play);
    const int error = skua_task_call(play->ctx, to, choose_payload(play->reader, play->runtime),
                                     timeout, &answer);
    note_answer(play, error, &answer, ANSWERS_OF_CALL);
}

static void send_to(struct play *play)
{
    skua_payload nothing = skua_nothing();
    const skua_pid to = choose_pid(play->reader);
    const uint64_t timeout = choose_wait_timeout(play);
    const int error =
        skua_task_send(play->ctx, to, choose_payload(play->reader, play->runtime), timeout);
    note_answer(play, error, &nothing,
                ANSWERS_OF_TIMED_WAIT | ANSWER(NO_PROCESS) | ANSWER(FOREIGN_PID) |
                    ANSWER(MAILBOX_FULL) | ANSWER(PAYLOAD_SIZE) | ANSWER(TAKEN) | ANSWER(INVALID));
}

static void call_name(struct play *play)
{
    skua_payload answer;
    const char *name = board_name(choose_name(play->reader));
    const uint64_t timeout = choose_wait_timeout(play);
    const int error = skua_task_call_name(
        play->ctx, name, choose_payload(play->reader, play->runtime), timeout, &answer);
    note_answer(play, error, &answer, ANSWERS_OF_CALL | ANSWERS_OF_NAME);
}

static void call_for(struct play *play)
{
    const struct relations *relations = play->relations;
    const uint8_t choice = reader_byte(play->reader);
    const skua_request request =
        relations->request_count > 0 && choice < 0xc0
            ? relations->requests[choice % relations->request_count].request
            : choose_request(play->reader);
    skua_payload answer;
    const skua_pid to = choose_server(play->reader);
    const uint64_t timeout = choose_wait_timeout(play);
    const int error = skua_task_call_for(
        play->ctx, request, to, choose_payload(play->reader, play->runtime), timeout, &answer);
    if (error == SKUA_E_LATE) {
        relations_note_answer(play->relations, request, error);
    }
    note_answer(play, error, &answer, ANSWERS_OF_CALL | ANSWER(LATE));
}

static void watch(struct play *play)
{
    skua_payload result = skua_nothing();
    const bool joins = reader_below(play->reader, 2) == 0;
    const skua_pid pid = choose_pid(play->reader);
    const uint64_t timeout = choose_wait_timeout(play);
    int exit_error = 1;
    const int error = joins ? skua_task_join(play->ctx, pid, timeout, &exit_error, &result)
                            : skua_task_monitor(play->ctx, pid, timeout, &exit_error);
    EXPECT(error == 0 ? exit_error <= 0 : exit_error == 0);
    note_answer(play, error, &result,
                ANSWERS_OF_TIMED_WAIT | ANSWER(NO_PROCESS) | ANSWER(FOREIGN_PID) | ANSWER(INVALID));
}

static void await_name(struct play *play)
{
    skua_pid pid;
    skua_payload nothing = skua_nothing();
    const char *name = board_name(choose_name(play->reader));
    const uint64_t timeout = choose_wait_timeout(play);
    const int error = skua_task_await_name(play->ctx, name, timeout, &pid);
    EXPECT(error == 0 || skua_pid_is_none(pid));
    note_answer(play, error, &nothing,
                ANSWERS_OF_TIMED_WAIT | ANSWERS_OF_NAME | ANSWER(NAME_LIMIT));
}

static void publish(struct play *play)
{
    skua_published published;
    skua_payload nothing = skua_nothing();
    const char *name = board_name(choose_name(play->reader));
    const int error =
        skua_task_publish(play->ctx, name, choose_payload(play->reader, play->runtime), &published);
    EXPECT(error == 0 || (published.accepted == 0 && published.refused == 0));
    note_answer(play, error, &nothing, ANY_ANSWER);
}

/* ---- the rest of the world ---- */

static void wait_for_descriptor(struct play *play)
{
    skua_payload nothing = skua_nothing();
    const int fd = choose_descriptor(play->reader);
    const uint64_t timeout = choose_wait_timeout(play);
    const int error = reader_below(play->reader, 2) == 0
                          ? skua_task_readable(play->ctx, fd, timeout)
                          : skua_task_writable(play->ctx, fd, timeout);
    EXPECT(error <= 0);
    note_answer(play, error, &nothing, ANY_ANSWER);
}

static void block(struct play *play)
{
    skua_payload result;
    const skua_pool pool = choose_pool(play->reader);
    const uint64_t timeout = choose_wait_timeout(play);
    skua_blocking_fn *function = choose_blocking_function(play->reader);
    const int error = skua_task_blocking(
        play->ctx, pool, function, choose_payload(play->reader, play->runtime), timeout, &result);
    EXPECT(error <= 0);
    note_answer(play, error, &result, ANY_ANSWER);
}

static void carry_out(struct play *play)
{
    skua_payload result;
    const uint32_t command = choose_command(play->reader);
    const uint64_t timeout = choose_wait_timeout(play);
    const int error = skua_task_yield(
        play->ctx, command, choose_payload(play->reader, play->runtime), timeout, &result);
    EXPECT(error <= 0);
    note_answer(play, error, &result, ANY_ANSWER);
}

/* ---- sockets ---- */

static void open_socket(struct play *play)
{
    skua_payload nothing = skua_nothing();
    skua_socket socket;
    const uint64_t timeout = choose_wait_timeout(play);
    const int error =
        reader_below(play->reader, 2) == 0
            ? skua_task_accept(play->ctx, choose_socket(play->reader, play->ctx), timeout, &socket)
            : skua_task_connect(play->ctx, choose_address(play->reader, play->ctx), NULL, timeout,
                                &socket);
    EXPECT(error <= 0 && (error == 0 || socket.bits == 0));
    sockets_note(socket);
    note_answer(play, error, &nothing, ANY_ANSWER);
}

static void read_socket(struct play *play)
{
    skua_payload data = skua_nothing();
    const skua_socket socket = choose_socket(play->reader, play->ctx);
    const size_t size = choose_size(play->reader);
    const uint64_t timeout = choose_wait_timeout(play);
    int error;
    switch (reader_below(play->reader, 4)) {
    case 0:
        error = skua_task_read_exactly(play->ctx, socket, size, timeout, &data);
        break;
    case 1:
        error = skua_task_read_until(play->ctx, socket, "\n", size, timeout, &data);
        break;
    case 2:
        error = skua_task_hangup(play->ctx, socket, timeout);
        break;
    default:
        error = skua_task_read(play->ctx, socket, size, timeout, &data);
    }
    EXPECT(error <= 0 && skua_payload_size(&data) <= size);
    note_answer(play, error, &data, ANY_ANSWER);
}

static void write_socket(struct play *play)
{
    skua_payload nothing = skua_nothing();
    const skua_socket socket = choose_socket(play->reader, play->ctx);
    const uint64_t timeout = choose_wait_timeout(play);
    const int error =
        skua_task_write(play->ctx, socket, choose_payload(play->reader, play->runtime), timeout);
    EXPECT(error <= 0);
    note_answer(play, error, &nothing, ANY_ANSWER);
}

/* ---- the end ---- */

static void count_deferred(void *arg)
{
    atomic_fetch_sub((atomic_uint *)arg, 1);
}

static void defer(struct play *play)
{
    const int error = skua_task_defer(play->ctx, count_deferred, &deferred);
    if (may_wait(play, error) && ANSWERS(error, ANSWER_OK | ANSWER(NO_MEMORY))) {
        atomic_fetch_add(&deferred, 1);
    }
    EXPECT(skua_task_defer(play->ctx, NULL, NULL) ==
           (play->is_task ? SKUA_E_INVALID : SKUA_E_NOT_TASK));
}

static void shield(struct play *play)
{
    const int error = skua_task_shield(play->ctx, reader_below(play->reader, 2) == 0);
    if (may_wait(play, error)) {
        EXPECT(error == 0);
    }
}

static void wait_without_context(struct play *play)
{
    skua_event *event;
    skua_payload answer;
    EXPECT(skua_task_receive(NULL, &event, 0) == SKUA_E_INVALID);
    EXPECT(skua_task_receive(play->ctx, NULL, 0) == SKUA_E_INVALID);
    EXPECT(skua_task_sleep(NULL, 0) == SKUA_E_INVALID);
    EXPECT(skua_task_pause(NULL) == SKUA_E_INVALID);
    EXPECT(skua_task_call(NULL, choose_pid(play->reader), ledger_payload(true, 0), 0, &answer) ==
           SKUA_E_INVALID);
    EXPECT(skua_task_send(NULL, choose_pid(play->reader), ledger_payload(true, 0), 0) ==
           SKUA_E_INVALID);
    EXPECT(skua_task_shield(NULL, true) == SKUA_E_INVALID);
    EXPECT(skua_task_ending(NULL) == SKUA_E_INVALID);
    EXPECT(skua_task_defer(NULL, count_deferred, &deferred) == SKUA_E_INVALID);
}

void waits_begin(void)
{
    atomic_store(&deferred, 0);
}

void waits_check(void)
{
    EXPECT(atomic_load(&deferred) == 0);
}

/* ---- all of them ---- */

void waits_perform(struct play *play)
{
    static void (*const waits[])(struct play *) = {
        receive,      receive,
        receive,      receive,
        receive,      receive,
        receive,      sleep_for,
        sleep_for,    tick,
        call,         call,
        call,         call_name,
        call_for,     call_for,
        watch,        watch,
        await_name,   pause_once,
        block,        carry_out,
        carry_out,    defer,
        defer,        shield,
        shield,       wait_for_descriptor,
        open_socket,  open_socket,
        read_socket,  read_socket,
        write_socket, wait_without_context,
        publish,      send_to,
    };
    waits[reader_below(play->reader, COUNT_OF(waits))](play);
}
