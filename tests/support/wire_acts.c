/* SPDX-License-Identifier: MIT */
/* What actors do with sockets. */
#include "wire.h"

/* An act that needs more than an act has room for. */
struct order {
    const skua_socket *socket;
    skua_socket *place;
    const char *text;
    const char *source;
    const void *options;
    size_t size;
    int fd;
    int *fd_place;
};

static struct act act_of(act_fn *function, uint64_t tag, struct order order)
{
    struct order *copy = test_alloc(sizeof *copy);
    *copy = order;
    return (struct act){.perform = function, .tag = tag, .arg = copy};
}

skua_socket *socket_new(void)
{
    return test_alloc(sizeof(skua_socket));
}

/* ---- opening ---- */

static int start_listening(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    return skua_listen(turn->ctx, order->text, order->options, order->place);
}

struct act listens_with(skua_socket *listener, const char *address,
                        const skua_listen_options *options)
{
    return act_of(start_listening, 0,
                  (struct order){.place = listener, .text = address, .options = options});
}

struct act listens(skua_socket *listener, const char *address)
{
    return listens_with(listener, address, NULL);
}

static int yield_accept(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    return skua_yield_accept(turn->ctx, act->tag, *order->socket, act_timeout(turn, act));
}

struct act accepts(uint64_t tag, const skua_socket *listener)
{
    return act_of(yield_accept, tag, (struct order){.socket = listener});
}

static int yield_connect(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    return skua_yield_connect(turn->ctx, act->tag, order->text, order->source,
                              act_timeout(turn, act));
}

struct act connects_from(uint64_t tag, const char *address, const char *source)
{
    return act_of(yield_connect, tag, (struct order){.text = address, .source = source});
}

struct act connects(uint64_t tag, const char *address)
{
    return connects_from(tag, address, NULL);
}

static int keep_socket(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    const struct actor *actor = turn->actor;
    *order->place = (skua_socket){actor->seen[actor->read - 1].value};
    return 0;
}

struct act keeps(skua_socket *socket)
{
    return act_of(keep_socket, 0, (struct order){.place = socket});
}

static int adopt_fd(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    return skua_socket_adopt(turn->ctx, order->fd, order->place);
}

struct act adopts(skua_socket *socket, int fd)
{
    return act_of(adopt_fd, 0, (struct order){.place = socket, .fd = fd});
}

static int detach_fd(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    return skua_socket_detach(turn->ctx, *order->place, order->fd_place);
}

struct act detaches(skua_socket *socket, int *fd)
{
    return act_of(detach_fd, 0, (struct order){.place = socket, .fd_place = fd});
}

/* ---- reading ---- */

static int yield_read_some(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    return skua_yield_read(turn->ctx, act->tag, *order->socket, order->size,
                           act_timeout(turn, act));
}

struct act reads_some(uint64_t tag, const skua_socket *socket, size_t most)
{
    return act_of(yield_read_some, tag, (struct order){.socket = socket, .size = most});
}

static int yield_read_exactly(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    return skua_yield_read_exactly(turn->ctx, act->tag, *order->socket, order->size,
                                   act_timeout(turn, act));
}

struct act reads_exactly(uint64_t tag, const skua_socket *socket, size_t size)
{
    return act_of(yield_read_exactly, tag, (struct order){.socket = socket, .size = size});
}

static int yield_read_line(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    return skua_yield_read_until(turn->ctx, act->tag, *order->socket, order->text, order->size,
                                 act_timeout(turn, act));
}

struct act reads_line(uint64_t tag, const skua_socket *socket, const char *delimiter, size_t limit)
{
    return act_of(yield_read_line, tag,
                  (struct order){.socket = socket, .text = delimiter, .size = limit});
}

static int yield_hangup(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    return skua_yield_hangup(turn->ctx, act->tag, *order->socket, act_timeout(turn, act));
}

struct act awaits_hangup(uint64_t tag, const skua_socket *socket)
{
    return act_of(yield_hangup, tag, (struct order){.socket = socket});
}

/* ---- writing ---- */

static int yield_write(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    return skua_yield_write(turn->ctx, act->tag, *order->socket, *act->payload,
                            act_timeout(turn, act));
}

struct act writes_payload(uint64_t tag, const skua_socket *socket, skua_payload payload)
{
    return with_payload(act_of(yield_write, tag, (struct order){.socket = socket}), payload);
}

struct act writes_text(uint64_t tag, const skua_socket *socket, const char *text)
{
    return writes_payload(tag, socket, skua_payload_static(0, text, strlen(text)));
}

struct act writes_pattern(uint64_t tag, const skua_socket *socket, uint64_t from, size_t size)
{
    void *data = test_alloc(size);
    pattern_fill(data, from, size);
    return writes_payload(tag, socket, skua_payload_static(0, data, size));
}

static int write_without_waiting(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    return skua_socket_write(turn->ctx, *order->socket, *act->payload);
}

struct act tells_payload(const skua_socket *socket, skua_payload payload)
{
    return with_payload(act_of(write_without_waiting, 0, (struct order){.socket = socket}),
                        payload);
}

struct act tells(const skua_socket *socket, const char *text)
{
    return tells_payload(socket, skua_payload_static(0, text, strlen(text)));
}

struct act tells_pattern(const skua_socket *socket, uint64_t from, size_t size)
{
    void *data = test_alloc(size);
    pattern_fill(data, from, size);
    return tells_payload(socket, skua_payload_static(0, data, size));
}

/* ---- ending ---- */

static int shut_down(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    return skua_socket_shutdown(turn->ctx, *order->socket);
}

struct act shuts_down(const skua_socket *socket)
{
    return act_of(shut_down, 0, (struct order){.socket = socket});
}

static int close_socket(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    return skua_socket_close(turn->ctx, *order->socket);
}

struct act closes(const skua_socket *socket)
{
    return act_of(close_socket, 0, (struct order){.socket = socket});
}

static int give_socket(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    return skua_socket_give(turn->ctx, *order->socket, act->peer->pid);
}

struct act gives(const skua_socket *socket, struct actor *to)
{
    struct act act = act_of(give_socket, 0, (struct order){.socket = socket});
    act.peer = to;
    return act;
}

static int spawn_with_socket(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    skua_payload input = api_world_payload(act->peer);
    skua_pid pid = {0};
    const int error = skua_spawn_with(
        turn->ctx,
        &(skua_spawn_options){
            .type = &act->peer->type, .input = &input, .input_count = 1, .socket = *order->socket},
        &pid);
    actor_check_start(act->peer, error, pid);
    return error;
}

struct act spawns_owner(const skua_socket *socket, struct actor *actor)
{
    struct act act = act_of(spawn_with_socket, 0, (struct order){.socket = socket});
    act.peer = actor;
    return act;
}

/* ---- settings ---- */

static int set_option(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    return skua_socket_set(turn->ctx, *order->socket, (enum skua_socket_option)act->command,
                           act->number);
}

struct act sets(const skua_socket *socket, enum skua_socket_option option, uint64_t value)
{
    struct act act = act_of(set_option, 0, (struct order){.socket = socket});
    act.command = (uint32_t)option;
    act.number = value;
    return act;
}

static int look_at(struct turn *turn, const struct act *act)
{
    const struct order *order = act->arg;
    return skua_socket_info(turn->ctx, *order->socket,
                            (skua_socket_snapshot *)(uintptr_t)order->options);
}

struct act looks_at(const skua_socket *socket, skua_socket_snapshot *snapshot)
{
    return act_of(look_at, 0, (struct order){.socket = socket, .options = snapshot});
}
