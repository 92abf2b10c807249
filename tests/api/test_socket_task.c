/* SPDX-License-Identifier: MIT */
/* Sockets in tasks: each verb waits where it stands. */
#include <skua/task.h>

#include "errand.h"
#include "wire.h"

/* ---- a server and a client, each a plain function ---- */

static bool is_text(const skua_payload *data, const char *text)
{
    return skua_payload_size(data) == strlen(text) &&
           memcmp(skua_payload_data(data), text, strlen(text)) == 0;
}

static int serves_one(struct errand *errand, skua_context *ctx)
{
    skua_socket listener;
    skua_socket socket;
    skua_payload data;
    skua_socket_snapshot snapshot;
    CHECK(errand, skua_listen(ctx, "127.0.0.1:0", NULL, &listener) == 0);
    CHECK(errand, skua_socket_info(ctx, listener, &snapshot) == 0);
    memcpy(errand->arg, snapshot.local, sizeof snapshot.local);
    note(errand, 1);
    CHECK(errand, skua_task_accept(ctx, listener, SKUA_FOREVER, &socket) == 0);
    CHECK(errand, skua_task_read_until(ctx, socket, "\n", 100, SKUA_FOREVER, &data) == 0);
    CHECK(errand, is_text(&data, "a line\n"));
    skua_payload_drop(&data);
    CHECK(errand, skua_task_read_exactly(ctx, socket, 5, SKUA_FOREVER, &data) == 0);
    CHECK(errand, is_text(&data, "frame"));
    skua_payload_drop(&data);
    CHECK(errand, skua_task_read(ctx, socket, 100, SKUA_FOREVER, &data) == 0);
    CHECK(errand, is_text(&data, "rest"));
    CHECK(errand, skua_task_write(ctx, socket, data, SKUA_FOREVER) == 0);
    CHECK(errand, skua_task_read(ctx, socket, 100, SKUA_FOREVER, &data) == 0);
    CHECK(errand, skua_payload_size(&data) == 0); /* the end of input */
    return 0;
}

static int asks_once(struct errand *errand, skua_context *ctx)
{
    static const char text[] = "a line\nframerest";
    const skua_payload question = skua_payload_static(0, text, strlen(text));
    skua_socket socket;
    skua_payload data;
    CHECK(errand, skua_task_connect(ctx, errand->arg, NULL, SKUA_FOREVER, &socket) == 0);
    CHECK(errand, skua_task_write(ctx, socket, question, SKUA_FOREVER) == 0);
    CHECK(errand, skua_task_read_exactly(ctx, socket, 4, SKUA_FOREVER, &data) == 0);
    CHECK(errand, is_text(&data, "rest"));
    skua_payload_drop(&data);
    CHECK(errand, skua_socket_shutdown(ctx, socket) == 0);
    CHECK(errand, skua_task_read(ctx, socket, 100, SKUA_FOREVER, &data) == 0);
    CHECK(errand, skua_payload_size(&data) == 0);
    return 0;
}

TEST(tasks_talk_over_a_connection)
{
    wires_begin();
    char address[SKUA_ADDRESS_SIZE];
    struct errand *server = errand_new(serves_one);
    server->arg = address;
    errand_submit(server);
    tally_wait(&server->noted, 1);
    struct errand *client = errand_new(asks_once);
    client->arg = address;
    assert_result(errand_run(client), 0);
    assert_errand_ended(server, 0);
    await_sockets(0);
}

/* ---- ends of waits ---- */

static skua_socket socket_of(struct errand *errand, skua_context *ctx)
{
    skua_socket socket;
    CHECK(errand, skua_socket_adopt(ctx, (int)errand->number, &socket) == 0);
    return socket;
}

static int waits_in_vain(struct errand *errand, skua_context *ctx)
{
    const skua_socket socket = socket_of(errand, ctx);
    skua_socket none = {1};
    skua_payload data;
    CHECK(errand, skua_task_read(ctx, socket, 9, 0, &data) == SKUA_E_TIMEOUT);
    CHECK(errand, skua_payload_size(&data) == 0);
    CHECK(errand,
          skua_task_read_exactly(ctx, socket, 9, SKUA_MILLISECOND, &data) == SKUA_E_TIMEOUT);
    CHECK(errand,
          skua_task_read_until(ctx, socket, "x", 9, SKUA_MILLISECOND, &data) == SKUA_E_TIMEOUT);
    CHECK(errand, skua_task_hangup(ctx, socket, 0) == SKUA_E_TIMEOUT);
    CHECK(errand, skua_task_hangup(ctx, socket, SKUA_MILLISECOND) == SKUA_E_TIMEOUT);
    CHECK(errand, skua_task_accept(ctx, socket, 0, &none) == SKUA_E_SOCKET);
    CHECK(errand, none.bits == 0);
    CHECK(errand, skua_task_connect(ctx, "nowhere", NULL, 0, &none) == SKUA_E_ADDRESS);
    CHECK(errand, skua_task_read(ctx, socket, 9, 0, NULL) == SKUA_E_INVALID);
    CHECK(errand, skua_task_accept(ctx, socket, 0, NULL) == SKUA_E_INVALID);
    CHECK(errand, skua_socket_close(ctx, socket) == 0);
    CHECK(errand, skua_task_read(ctx, socket, 9, 0, &data) == SKUA_E_SOCKET);
    CHECK(errand, skua_task_write(ctx, socket, skua_payload_u64(0, 1), 0) == SKUA_E_SOCKET);
    CHECK(errand, skua_task_hangup(ctx, socket, 0) == SKUA_E_SOCKET);
    return 0;
}

TEST(wait_of_a_task_for_a_socket_ends_in_time)
{
    wires_begin();
    const struct ends ends = wire_ends(WIRE_UNIX);
    struct errand *errand = errand_new(waits_in_vain);
    errand->number = (uint64_t)ends.near;
    assert_result(errand_run(errand), 0);
    fd_disown(ends.near);
}

static int awaits_the_end(struct errand *errand, skua_context *ctx)
{
    const skua_socket socket = socket_of(errand, ctx);
    skua_payload data;
    note(errand, 1);
    int error = skua_task_hangup(ctx, socket, SKUA_FOREVER);
    if (error == 0) { /* what came before is still there */
        CHECK(errand, skua_task_read(ctx, socket, 100, SKUA_FOREVER, &data) == 0);
        CHECK(errand, is_text(&data, "unread"));
        skua_payload_drop(&data);
        error = skua_task_hangup(ctx, socket, SKUA_FOREVER);
    }
    return error;
}

TEST(task_waits_for_the_end_of_a_connection_though_it_does_not_read)
{
    static const int errors[] = {0, SKUA_E_RESET};
    FOR_ROWS (error, errors) {
        wires_begin();
        const struct ends ends = wire_ends(WIRE_TCP);
        struct errand *errand = errand_new(awaits_the_end);
        errand->number = (uint64_t)ends.near;
        peer_sends(ends.far, "unread");
        errand_submit(errand);
        tally_wait(&errand->noted, 1);
        fd_disown(ends.near);
        if (*error == 0) {
            fd_close(ends.far);
        } else {
            peer_resets(ends.far);
        }
        assert_errand_ended(errand, *error);
    }
}

static int reads_until_cancelled(struct errand *errand, skua_context *ctx)
{
    const skua_socket socket = socket_of(errand, ctx);
    skua_payload data;
    note(errand, 1);
    const int error = skua_task_read(ctx, socket, 9, SKUA_FOREVER, &data);
    note(errand, noted_error(error));
    return error;
}

/* Cancelled is an orderly end: the peer sees the end of input. */
TEST(task_that_reads_can_be_cancelled)
{
    wires_begin();
    const struct ends ends = wire_ends(WIRE_TCP);
    struct errand *errand = errand_new(reads_until_cancelled);
    errand->number = (uint64_t)ends.near;
    errand_submit(errand);
    tally_wait(&errand->noted, 1);
    fd_disown(ends.near);
    assert_int_equal(world_cancel(errand->pid, SKUA_E_CANCELLED), 0);
    assert_errand_ended(errand, SKUA_E_CANCELLED);
    assert_noted(errand, 1, noted_error(SKUA_E_CANCELLED));
    assert_peer_at_end(ends.far);
}

TEST(task_that_reads_can_be_terminated)
{
    wires_begin();
    const struct ends ends = wire_ends(WIRE_TCP);
    struct errand *errand = errand_new(reads_until_cancelled);
    errand->number = (uint64_t)ends.near;
    errand_submit(errand);
    tally_wait(&errand->noted, 1);
    fd_disown(ends.near);
    assert_int_equal(world_terminate(errand->pid), 0);
    assert_peer_is_reset(ends.far);
    await_sockets(0);
}

static int echoes(struct errand *errand, skua_context *ctx)
{
    const skua_socket socket = socket_of(errand, ctx);
    for (;;) {
        skua_payload data;
        int error = skua_task_read(ctx, socket, SKUA_READ_MAX, SKUA_FOREVER, &data);
        if (error != 0 || skua_payload_size(&data) == 0) {
            return error;
        }
        error = skua_task_write(ctx, socket, data, SKUA_FOREVER);
        if (error != 0) {
            return error;
        }
    }
}

TEST(tasks_echo_much)
{
    enum { TASKS = 8, BYTES = 300000 };
    wires_begin();
    struct ends ends[TASKS];
    struct errand *tasks[TASKS];
    for (int i = 0; i < TASKS; i++) {
        ends[i] = wire_ends(wire_kinds[i % 2]);
        tasks[i] = errand_new(echoes);
        tasks[i]->number = (uint64_t)ends[i].near;
        errand_submit(tasks[i]);
    }
    for (uint64_t at = 0; at < BYTES; at += 10000) {
        for (int i = 0; i < TASKS; i++) {
            peer_sends_pattern(ends[i].far, at, 10000);
        }
        for (int i = 0; i < TASKS; i++) {
            assert_peer_gets_pattern(ends[i].far, at, 10000);
        }
    }
    for (int i = 0; i < TASKS; i++) {
        fd_disown(ends[i].near);
        fd_close(ends[i].far);
        assert_errand_ended(tasks[i], 0);
    }
}

/* ---- order ---- */

static void receive_bytes(struct errand *errand, skua_context *ctx, uint64_t tag, const char *text)
{
    skua_event *event;
    CHECK(errand, skua_task_receive(ctx, &event, SKUA_FOREVER) == 0);
    CHECK(errand, event->type == SKUA_EVENT_COMPLETION && event->tag == tag);
    CHECK(errand, is_text(&event->payload, text));
}

/* The first read is done at once, and queues behind the message. The task takes it back too late,
 * and reads on. */
static int reads_on_before_it_has_seen(struct errand *errand, skua_context *ctx)
{
    const skua_socket socket = socket_of(errand, ctx);
    skua_event *event;
    CHECK(errand, skua_send(ctx, skua_self(ctx), skua_payload_u64(0, 1)) == 0);
    CHECK(errand, skua_yield_read(ctx, 1, socket, 3, SKUA_FOREVER) == 0);
    CHECK(errand, skua_task_receive(ctx, &event, SKUA_FOREVER) == 0);
    CHECK(errand, event->type == SKUA_EVENT_MESSAGE);
    CHECK(errand, skua_yield_cancel(ctx, 1) == 0);
    CHECK(errand, skua_yield_read(ctx, 2, socket, 3, SKUA_SECOND) == 0);
    receive_bytes(errand, ctx, 1, "abc");
    receive_bytes(errand, ctx, 2, "def");
    return 0;
}

TEST(bytes_come_in_order_though_a_read_was_taken_back_too_late)
{
    FOR_ROWS (kind, wire_kinds) {
        wires_begin();
        const struct ends ends = wire_ends(*kind);
        struct errand *errand = errand_new(reads_on_before_it_has_seen);
        errand->number = (uint64_t)ends.near;
        fd_disown(ends.near);
        peer_sends(ends.far, "abcdef");
        assert_result(errand_run(errand), 0);
    }
}
