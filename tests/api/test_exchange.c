/* SPDX-License-Identifier: MIT */
/* Conversations over a socket, a round at a time: between two simulated hosts. */
#include <skua/serve.h>

#include "sim_hosts.h"

#define SERVER "10.0.0.1:80"

/* ---- both sides ---- */

static skua_socket accept_one(struct errand *errand, skua_context *ctx)
{
    skua_socket listener;
    skua_socket socket;
    CHECK(errand, skua_listen(ctx, "0.0.0.0:80", NULL, &listener) == 0);
    CHECK(errand, skua_task_accept(ctx, listener, SKUA_FOREVER, &socket) == 0);
    return socket;
}

static skua_socket connect_and_say(struct errand *errand, skua_context *ctx, const char *text)
{
    skua_socket socket;
    CHECK(errand, connect_anyhow(ctx, SERVER, &socket) == 0);
    CHECK(errand, skua_task_write(ctx, socket, skua_payload_static(0, text, strlen(text)),
                                  SKUA_FOREVER) == 0);
    return socket;
}

/* Reads so much, and no more comes within a second. */
static void expect_text(struct errand *errand, skua_context *ctx, skua_socket socket,
                        const char *text)
{
    skua_payload data;
    CHECK(errand, skua_task_read_exactly(ctx, socket, strlen(text), SKUA_FOREVER, &data) == 0);
    CHECK(errand, skua_bytes_equal(skua_payload_bytes(&data), skua_bytes_of(text)));
    skua_payload_drop(&data);
}

static int expect_end(struct errand *errand, skua_context *ctx, skua_socket socket)
{
    skua_payload data;
    CHECK(errand, skua_task_read(ctx, socket, 1, SKUA_FOREVER, &data) == 0);
    CHECK(errand, skua_payload_size(&data) == 0);
    return 0;
}

static void run_both(errand_fn *server, errand_fn *client, skua_sim_faults faults)
{
    FOR_ROUNDS (seed, 20) {
        world_open_sim(seed, faults);
        struct errand *serving = host_start(1, server);
        struct errand *asking = host_start_with(2, client, serving);
        assert_ends(asking, 0);
        assert_ends(serving, 0);
    }
}

static skua_sim_faults delays(void)
{
    return (skua_sim_faults){
        .message_delay = SIM_SOMETIMES,
        .spurious_wake = SIM_SOMETIMES,
        .network = {.short_read = SIM_SOMETIMES, .short_write = SIM_SOMETIMES}};
}

/* ---- rounds ---- */

/* Answers each line with its length. */
static int answers_lines(struct errand *errand, skua_context *ctx)
{
    skua_stream stream = {.socket = accept_one(errand, ctx), .input = {.limit = 100}};
    skua_bytes line;
    int error;
    while ((error = skua_task_exchange(ctx, &stream, NULL)) == 0) {
        while (skua_input_take_line(&stream.input, &line) > 0) {
            skua_output_count(&stream.output, '\0', (int64_t)line.size);
        }
    }
    CHECK(errand, error == SKUA_E_CLOSED);
    skua_stream_clear(&stream);
    return 0;
}

static int says_lines(struct errand *errand, skua_context *ctx)
{
    const skua_socket socket = connect_and_say(errand, ctx, "hello\n\nwor");
    expect_text(errand, ctx, socket, "5\r\n0\r\n");
    CHECK(errand,
          skua_task_write(ctx, socket, skua_payload_static(0, "ld\n", 3), SKUA_FOREVER) == 0);
    expect_text(errand, ctx, socket, "5\r\n");
    CHECK(errand, skua_socket_shutdown(ctx, socket) == 0);
    return expect_end(errand, ctx, socket);
}

TEST(each_round_writes_and_reads)
{
    run_both(answers_lines, says_lines, delays());
}

/* What else is received ends a round, and the read stays open. */
static int tells_events(struct errand *errand, skua_context *ctx)
{
    skua_stream stream = {.socket = accept_one(errand, ctx), .input = {.limit = 100}};
    skua_event *event;
    int error;
    CHECK(errand, skua_yield_sleep(ctx, 5, SKUA_SECOND) == 0);
    while ((error = skua_task_exchange(ctx, &stream, &event)) == 0) {
        if (event == NULL) {
            skua_output_bytes(&stream.output, skua_input_bytes(&stream.input));
            CHECK(errand, skua_input_skip(&stream.input, skua_input_size(&stream.input)) == 0);
        } else {
            CHECK(errand, event->type == SKUA_EVENT_COMPLETION && event->tag == 5);
            skua_output_text(&stream.output, "!");
        }
    }
    CHECK(errand, error == SKUA_E_CLOSED && event == NULL);
    skua_stream_clear(&stream);
    return 0;
}

static int hears_events(struct errand *errand, skua_context *ctx)
{
    const skua_socket socket = connect_and_say(errand, ctx, "a");
    expect_text(errand, ctx, socket, "a!");
    CHECK(errand, skua_task_write(ctx, socket, skua_payload_static(0, "b", 1), SKUA_FOREVER) == 0);
    expect_text(errand, ctx, socket, "b");
    CHECK(errand, skua_socket_shutdown(ctx, socket) == 0);
    return expect_end(errand, ctx, socket);
}

TEST(other_events_end_a_round)
{
    run_both(tells_events, hears_events, delays());
}

/* Without a place for events, messages are written as they are. */
static int is_told(struct errand *errand, skua_context *ctx)
{
    const skua_socket socket = connect_and_say(errand, ctx, "one\n");
    const struct errand *server = errand->arg;
    expect_text(errand, ctx, socket, "3\r\n");
    CHECK(errand, skua_send_bytes(ctx, server->pid, 0, "news", 4) == 0);
    expect_text(errand, ctx, socket, "news");
    CHECK(errand, skua_send_bytes(ctx, server->pid, 0, "more", 4) == 0);
    expect_text(errand, ctx, socket, "more");
    CHECK(errand, skua_socket_shutdown(ctx, socket) == 0);
    return expect_end(errand, ctx, socket);
}

TEST(messages_are_written_to_the_peer)
{
    run_both(answers_lines, is_told, delays());
}

/* Other events are not for the peer: here the result of a process. */
static int end_with_secret(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)events, (void)count;
    return skua_done(ctx, skua_payload_static(0, "secret", 6));
}

static int keeps_a_secret(struct errand *errand, skua_context *ctx)
{
    static const skua_process_type secret = {.name = "secret", .step = end_with_secret};
    skua_pid pid;
    CHECK(errand, skua_spawn(ctx, &secret, skua_nothing(), &pid) == 0);
    CHECK(errand, skua_yield_join(ctx, 5, pid, SKUA_FOREVER) == 0);
    return answers_lines(errand, ctx);
}

static int hears_no_secret(struct errand *errand, skua_context *ctx)
{
    const skua_socket socket = connect_and_say(errand, ctx, "one\n");
    expect_text(errand, ctx, socket, "3\r\n");
    CHECK(errand, skua_task_sleep(ctx, SKUA_SECOND) == 0);
    CHECK(errand, skua_socket_shutdown(ctx, socket) == 0);
    return expect_end(errand, ctx, socket);
}

TEST(other_events_are_not_written_to_the_peer)
{
    run_both(keeps_a_secret, hears_no_secret, delays());
}

/* ---- ends ---- */

static int gives_up(struct errand *errand, skua_context *ctx)
{
    skua_stream stream = {.socket = accept_one(errand, ctx), .input = {.limit = 100}};
    CHECK(errand, skua_task_exchange(ctx, &stream, NULL) == 0);
    skua_output_text(&stream.output, "what?");
    skua_input_fail(&stream.input, SKUA_E_USER);
    CHECK(errand, skua_task_exchange(ctx, &stream, NULL) == SKUA_E_USER);
    skua_stream_clear(&stream);
    return 0;
}

static int says_nonsense(struct errand *errand, skua_context *ctx)
{
    const skua_socket socket = connect_and_say(errand, ctx, "nonsense");
    expect_text(errand, ctx, socket, "what?");
    return expect_end(errand, ctx, socket);
}

TEST(last_answer_is_written_after_the_input_has_failed)
{
    run_both(gives_up, says_nonsense, SIM_NO_FAULTS);
}

/* Answers a lot to each byte: after two of them nobody reads on before the peer has. */
static int answers_too_much(struct errand *errand, skua_context *ctx)
{
    static char large[100000];
    skua_stream stream = {.socket = accept_one(errand, ctx), .input = {.limit = 100}};
    CHECK(errand,
          skua_socket_set(ctx, stream.socket, SKUA_SOCKET_PROGRESS, 1000 * SKUA_SECOND) == 0);
    while (skua_task_exchange(ctx, &stream, NULL) == 0) {
        for (; skua_input_skip(&stream.input, 1) == 0; errand->number++) {
            skua_output_put(&stream.output, large, sizeof large);
        }
    }
    skua_stream_clear(&stream);
    return 0;
}

static int does_not_read(struct errand *errand, skua_context *ctx)
{
    const struct errand *server = errand->arg;
    skua_payload data;
    const skua_socket socket = connect_and_say(errand, ctx, "1");
    for (int i = 1; i < 10; i++) {
        CHECK(errand, skua_task_sleep(ctx, SKUA_SECOND) == 0);
        CHECK(errand,
              skua_task_write(ctx, socket, skua_payload_static(0, "1", 1), SKUA_FOREVER) == 0);
    }
    CHECK(errand, skua_task_sleep(ctx, SKUA_SECOND) == 0);
    CHECK(errand, server->number == 2);
    CHECK(errand, skua_socket_shutdown(ctx, socket) == 0);
    size_t got = 0;
    while (skua_task_read(ctx, socket, SKUA_READ_MAX, SKUA_FOREVER, &data) == 0 &&
           skua_payload_size(&data) > 0) {
        got += skua_payload_size(&data);
        skua_payload_drop(&data);
    }
    CHECK(errand, got == 10 * 100000);
    return 0;
}

TEST(peer_that_does_not_read_is_not_read_from)
{
    world_open_sim(1, (skua_sim_faults){.network = {.window = 1000}});
    struct errand *server = host_start(1, answers_too_much);
    struct errand *client = host_start_with(2, does_not_read, server);
    assert_ends(client, 0);
    assert_ends(server, 0);
}

/* ---- streams that travel ---- */

struct letter {
    skua_stream stream;
    uint64_t stamps;
};

static int stamps(struct errand *errand, skua_context *ctx, skua_event *event)
{
    struct letter *letter = event->payload.as.owned.data;
    CHECK(errand, event->payload.type == SKUA_STREAM);
    letter->stamps++;
    skua_output_bytes(&letter->stream.output, skua_input_bytes(&letter->stream.input));
    return skua_send_from(ctx, letter->stream.owner, &event->payload);
}

static int has_it_stamped(struct errand *errand, skua_context *ctx)
{
    skua_payload payload;
    skua_event *event;
    CHECK(errand, skua_stream_payload(ctx, accept_one(errand, ctx), 100, sizeof(struct letter),
                                      &payload) == 0);
    struct letter *letter = payload.as.owned.data;
    CHECK(errand, skua_task_exchange(ctx, &letter->stream, NULL) == 0);
    CHECK(errand, skua_send(ctx, errand->other, payload) == 0);
    CHECK(errand, skua_task_receive_type(ctx, SKUA_STREAM, &event, SKUA_FOREVER) == 0);
    payload = skua_payload_take(&event->payload);
    CHECK(errand, letter->stamps == 1);
    skua_input_fail(&letter->stream.input, SKUA_E_USER);
    CHECK(errand, skua_task_exchange(ctx, &letter->stream, NULL) == SKUA_E_USER);
    skua_payload_drop(&payload);
    return 0;
}

static int says_a_letter(struct errand *errand, skua_context *ctx)
{
    const skua_socket socket = connect_and_say(errand, ctx, "x");
    expect_text(errand, ctx, socket, "x");
    return expect_end(errand, ctx, socket);
}

TEST(stream_is_answered_elsewhere_and_comes_back)
{
    FOR_ROUNDS (seed, 20) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct errand *clerk = errand_new_server(stamps);
        clerk->host = 1;
        errand_submit(clerk);
        struct errand *server = errand_new(has_it_stamped);
        server->host = 1;
        server->other = clerk->pid;
        errand_submit(server);
        struct errand *client = host_start(2, says_a_letter);
        assert_ends(client, 0);
        assert_ends(server, 0);
    }
}

static int misuses(struct errand *errand, skua_context *ctx)
{
    static const skua_process_type idle = {.name = "neither step nor main"};
    const skua_payload nothing = skua_nothing();
    const skua_socket none = {0};
    skua_stream stream = {.input = {.limit = 100}};
    skua_payload payload;
    CHECK(errand, skua_task_serve(ctx, none, &idle, &nothing) == SKUA_E_INVALID);
    CHECK(errand, skua_task_exchange(ctx, NULL, NULL) == SKUA_E_INVALID);
    CHECK(errand, skua_task_exchange(ctx, &stream, NULL) == SKUA_E_SOCKET);
    CHECK(errand, skua_stream_payload(ctx, none, 1, sizeof stream, NULL) == SKUA_E_INVALID);
    CHECK(errand, skua_stream_payload(ctx, none, 1, sizeof stream - 1, &payload) == SKUA_E_INVALID);
    CHECK(errand, skua_stream_payload(NULL, none, 1, sizeof stream, &payload) == SKUA_E_INVALID);
    CHECK(errand, payload.storage == SKUA_PAYLOAD_EMPTY);
    skua_stream_clear(NULL);
    skua_stream_clear(&stream);
    return 0;
}

TEST(what_makes_no_sense_is_refused)
{
    world_open();
    assert_result(errand_run(errand_new(misuses)), 0);
}
