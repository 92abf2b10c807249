/* SPDX-License-Identifier: MIT */
/* Sockets that are used wrongly: handles that were made up, that name another's socket or one that
 * is gone; arguments that make no sense; and contexts at the wrong time. */
#include "wire.h"

#define EXPECT(call, expected)                                                                     \
    do {                                                                                           \
        const int error_ = (call);                                                                 \
        if (error_ != (expected)) {                                                                \
            actor_surprise(turn->actor, "line %d: %s", __LINE__, skua_error_name(error_));         \
        }                                                                                          \
    } while (0)

/* ---- handles ---- */

/* Every verb on a handle that must not work. */
static int use_handle(struct turn *turn, const struct act *act)
{
    skua_context *ctx = turn->ctx;
    const skua_socket socket = *(const skua_socket *)act->arg;
    skua_socket_snapshot snapshot;
    int fd;
    EXPECT(skua_yield_accept(ctx, 1, socket, SKUA_FOREVER), SKUA_E_SOCKET);
    EXPECT(skua_yield_read(ctx, 1, socket, 1, SKUA_FOREVER), SKUA_E_SOCKET);
    EXPECT(skua_yield_read_exactly(ctx, 1, socket, 1, SKUA_FOREVER), SKUA_E_SOCKET);
    EXPECT(skua_yield_read_until(ctx, 1, socket, "\n", 1, SKUA_FOREVER), SKUA_E_SOCKET);
    EXPECT(skua_yield_hangup(ctx, 1, socket, SKUA_FOREVER), SKUA_E_SOCKET);
    EXPECT(skua_yield_write(ctx, 1, socket, skua_payload_u64(0, 1), SKUA_FOREVER), SKUA_E_SOCKET);
    EXPECT(skua_socket_shutdown(ctx, socket), SKUA_E_SOCKET);
    EXPECT(skua_socket_close(ctx, socket), SKUA_E_SOCKET);
    EXPECT(skua_socket_give(ctx, socket, skua_self(ctx)), SKUA_E_SOCKET);
    EXPECT(skua_socket_set(ctx, socket, SKUA_SOCKET_IDLE, 1), SKUA_E_SOCKET);
    EXPECT(skua_socket_info(ctx, socket, &snapshot), SKUA_E_SOCKET);
    EXPECT(skua_socket_detach(ctx, socket, &fd), SKUA_E_SOCKET);
    return 0;
}

static void assert_useless(struct actor *actor, uint64_t bits)
{
    skua_socket *handle = socket_new();
    handle->bits = bits;
    actor_perform(actor, ACTS(does(use_handle, handle)));
}

TEST(handle_is_useless_where_there_never_was_a_socket)
{
    wires_begin();
    struct actor *actor = actor_start(NO_ACTS);
    assert_useless(actor, 0);
    assert_useless(actor, 1);
    assert_useless(actor, UINT64_C(1) << 32 | 1);
    assert_useless(actor, UINT64_MAX);
}

TEST(handle_that_was_made_up_is_useless)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    const uint64_t bits = wire.socket->bits;
    for (unsigned bit = 0; bit < 64; bit++) {
        assert_useless(wire.actor, bits ^ UINT64_C(1) << bit);
    }
    actor_perform(wire.actor, ACTS(writes_text(1, wire.socket, "x"), expects(failure(1, 0))));
}

TEST(handle_of_anothers_socket_is_useless)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    struct actor *other = actor_start(NO_ACTS);
    assert_useless(other, wire.socket->bits);
}

TEST(handle_of_a_socket_that_was_closed_is_useless_also_when_its_place_is_taken)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    const uint64_t bits = wire.socket->bits;
    skua_socket *next = socket_new();
    actor_perform(wire.actor, ACTS(closes(wire.socket)));
    assert_useless(wire.actor, bits);
    const struct ends ends = pair_open();
    actor_perform(wire.actor, ACTS(adopts(next, ends.near)));
    fd_disown(ends.near);
    assert_int_equal(next->bits >> 32, bits >> 32); /* the same place */
    assert_useless(wire.actor, bits);
}

/* ---- arguments ---- */

static int use_wrong_arguments(struct turn *turn, const struct act *act)
{
    skua_context *ctx = turn->ctx;
    const skua_socket socket = *(const skua_socket *)act->arg;
    skua_socket made;
    EXPECT(skua_listen(ctx, "127.0.0.1:0", NULL, NULL), SKUA_E_INVALID);
    EXPECT(skua_listen(ctx, NULL, NULL, &made), SKUA_E_INVALID);
    EXPECT(skua_listen(ctx, "127.0.0.1:0", &(skua_listen_options){.reserved = {1}}, &made),
           SKUA_E_INVALID);
    EXPECT(skua_listen(ctx, "127.0.0.1:0", &(skua_listen_options){.backlog = UINT32_MAX}, &made),
           SKUA_E_INVALID);
    EXPECT(skua_yield_connect(ctx, 1, NULL, NULL, SKUA_FOREVER), SKUA_E_INVALID);
    EXPECT(skua_socket_adopt(ctx, 0, NULL), SKUA_E_INVALID);
    EXPECT(skua_socket_detach(ctx, socket, NULL), SKUA_E_INVALID);
    EXPECT(skua_yield_read(ctx, 1, socket, 0, SKUA_FOREVER), SKUA_E_INVALID);
    EXPECT(skua_yield_read_exactly(ctx, 1, socket, 0, SKUA_FOREVER), SKUA_E_INVALID);
    EXPECT(skua_yield_read_until(ctx, 1, socket, "\n", 0, SKUA_FOREVER), SKUA_E_INVALID);
    EXPECT(skua_yield_read_until(ctx, 1, socket, NULL, 10, SKUA_FOREVER), SKUA_E_INVALID);
    EXPECT(skua_yield_read_until(ctx, 1, socket, "", 10, SKUA_FOREVER), SKUA_E_INVALID);
    EXPECT(skua_yield_read_until(ctx, 1, socket, "12345", 10, SKUA_FOREVER), SKUA_E_INVALID);
    EXPECT(skua_yield_write_from(ctx, 1, socket, NULL, SKUA_FOREVER), SKUA_E_INVALID);
    EXPECT(skua_yield_read(ctx, 1, socket, 1, SKUA_DURATION_MAX + 1), SKUA_E_DURATION);
    EXPECT(skua_yield_hangup(ctx, 1, socket, SKUA_DURATION_MAX + 1), SKUA_E_DURATION);
    EXPECT(skua_yield_connect(ctx, 1, "127.0.0.1:1", NULL, SKUA_DURATION_MAX + 1), SKUA_E_DURATION);
    struct tracked item = {0};
    skua_payload payload = tracked_payload(0, &item);
    EXPECT(skua_yield_write_from(ctx, 1, socket, &payload, SKUA_DURATION_MAX + 1), SKUA_E_DURATION);
    EXPECT(skua_yield_write_from(ctx, 1, socket, &payload, SKUA_FOREVER), SKUA_E_TAKEN);
    EXPECT((int)item.drops, 1);
    return 0;
}

TEST(arguments_that_make_no_sense_are_refused)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    actor_perform(wire.actor, ACTS(does(use_wrong_arguments, wire.socket)));
    assert_int_equal(snapshot_of(wire.actor, wire.socket).queued, 0);
}

static int use_when_done(struct turn *turn, const struct act *act)
{
    skua_context *ctx = turn->ctx;
    const skua_socket socket = *(const skua_socket *)act->arg;
    EXPECT(skua_done(ctx, skua_payload_u64(0, 5)), 0);
    EXPECT(skua_yield_read(ctx, 1, socket, 1, SKUA_FOREVER), SKUA_E_DONE);
    EXPECT(skua_yield_write(ctx, 1, socket, skua_payload_u64(0, 1), SKUA_FOREVER), SKUA_E_DONE);
    EXPECT(skua_yield_hangup(ctx, 1, socket, SKUA_FOREVER), SKUA_E_DONE);
    EXPECT(skua_yield_connect(ctx, 1, "127.0.0.1:1", NULL, SKUA_FOREVER), SKUA_E_DONE);
    EXPECT(skua_socket_close(ctx, socket), 0);
    turn->finished = true;
    return 0;
}

TEST(process_that_is_done_asks_for_nothing_more)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    actor_tell(wire.actor, ACTS(does(use_when_done, wire.socket)));
    actor_await_end(wire.actor);
    assert_peer_at_end(wire.peer);
}

/* ---- contexts ---- */

static skua_context *kept;

static void assert_context_is_refused(skua_context *ctx, skua_socket socket)
{
    skua_socket made;
    skua_socket_snapshot snapshot;
    int fd;
    const skua_pid nobody = {0};
    const skua_payload payload = skua_payload_u64(0, 1);
    assert_int_equal(skua_listen(ctx, "127.0.0.1:0", NULL, &made), SKUA_E_CONTEXT);
    assert_int_equal(skua_yield_connect(ctx, 1, "127.0.0.1:1", NULL, 0), SKUA_E_CONTEXT);
    assert_int_equal(skua_yield_accept(ctx, 1, socket, 0), SKUA_E_CONTEXT);
    assert_int_equal(skua_yield_read(ctx, 1, socket, 1, 0), SKUA_E_CONTEXT);
    assert_int_equal(skua_yield_read_exactly(ctx, 1, socket, 1, 0), SKUA_E_CONTEXT);
    assert_int_equal(skua_yield_read_until(ctx, 1, socket, "\n", 1, 0), SKUA_E_CONTEXT);
    assert_int_equal(skua_yield_hangup(ctx, 1, socket, 0), SKUA_E_CONTEXT);
    assert_int_equal(skua_yield_write(ctx, 1, socket, payload, 0), SKUA_E_CONTEXT);
    assert_int_equal(skua_socket_adopt(ctx, 0, &made), SKUA_E_CONTEXT);
    assert_int_equal(skua_socket_detach(ctx, socket, &fd), SKUA_E_CONTEXT);
    assert_int_equal(skua_socket_shutdown(ctx, socket), SKUA_E_CONTEXT);
    assert_int_equal(skua_socket_close(ctx, socket), SKUA_E_CONTEXT);
    assert_int_equal(skua_socket_give(ctx, socket, nobody), SKUA_E_CONTEXT);
    assert_int_equal(skua_socket_set(ctx, socket, SKUA_SOCKET_IDLE, 1), SKUA_E_CONTEXT);
    assert_int_equal(skua_socket_info(ctx, socket, &snapshot), SKUA_E_CONTEXT);
}

TEST(context_is_refused_after_its_step)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    actor_perform(wire.actor, ACTS(does(keep_context, &kept)));
    actor_await_state(wire.actor, SKUA_PROCESS_IDLE);
    assert_context_is_refused(kept, *wire.socket);
    actor_perform(wire.actor, ACTS(writes_text(1, wire.socket, "x"), expects(failure(1, 0))));
}

static int listen_anyway(struct turn *turn, const struct act *act)
{
    (void)act;
    skua_socket made;
    return skua_listen(turn->ctx, "127.0.0.1:0", NULL, &made);
}

TEST(init_and_close_have_no_sockets)
{
    wires_begin();
    struct actor *actor = actor_new(ACTS(finishes(0)));
    actor->in_init = ACTS(refused(does(listen_anyway, NULL), SKUA_E_CONTEXT));
    actor->in_close = ACTS(refused(does(listen_anyway, NULL), SKUA_E_CONTEXT));
    assert_result(actor_run(actor), 0);
    assert_int_equal(open_sockets(), 0);
}
