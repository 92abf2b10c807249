/* SPDX-License-Identifier: MIT */
/* A chat room: nc 127.0.0.1 7000, and say who you are. /who lists those who are there.
 *
 *   skua run 13_chat.so [-- PORT]      on the loopback address; default: 7000, 0 picks one
 *
 * A session is a task with a socket: it passes on the lines of its client, and writes what the room
 * says. The room waits for nobody: a session for which too many lines wait is ended. That somebody
 * has left, in whatever way, tells a monitor. */
#include <skua/skua.h>
#include <stdio.h>

#define LINE_SIZE   400
#define NAME_SIZE   20
#define MEMBERS_MAX 200
#define BEHIND_MAX  1000 /* lines that may wait for a session */

struct room {
    int count;
    struct member {
        skua_pid pid;
        char name[NAME_SIZE];
    } members[MEMBERS_MAX];
};

/* Tells the others what somebody did. */
static void tell(struct room *room, skua_context *ctx, int who, const char *did, skua_bytes text)
{
    char line[LINE_SIZE + 2 * NAME_SIZE], *name = room->members[who].name;
    const int size =
        snprintf(line, sizeof line, "%s%s%.*s\n", name, did, (int)text.size, text.data);
    for (int i = 0; i < room->count; i++) {
        const skua_pid pid = room->members[i].pid;
        if (i != who && skua_send_bytes(ctx, pid, 0, line, (size_t)size) == SKUA_E_MAILBOX_FULL) {
            skua_cancel(ctx, pid, 0); /* too slow */
        }
    }
}

static void join(struct room *room, skua_context *ctx, skua_pid pid, skua_bytes name)
{
    if (room->count == MEMBERS_MAX || skua_yield_monitor(ctx, pid.bits, pid, SKUA_FOREVER) != 0) {
        skua_cancel(ctx, pid, 0);
        return;
    }
    struct member *member = &room->members[room->count++];
    member->pid = pid;
    (void)snprintf(member->name, NAME_SIZE, "%.*s", (int)name.size, name.data);
    tell(room, ctx, room->count - 1, " is here", (skua_bytes){0});
}

/* A line of a session, of which the first is its name; or the end of one. */
static int room_serve(void *self, skua_context *ctx, skua_event *event)
{
    struct room *room = self;
    const bool has_left = event->type == SKUA_EVENT_COMPLETION;
    const skua_pid pid = has_left ? (skua_pid){event->tag} : event->from;
    const skua_bytes line = skua_payload_bytes(&event->payload);
    int who = 0;
    while (who < room->count && !skua_pid_equal(room->members[who].pid, pid)) {
        who++;
    }
    if (has_left) {
        tell(room, ctx, who, " has left", (skua_bytes){0});
        room->members[who] = room->members[--room->count];
    } else if (who == room->count) {
        join(room, ctx, pid, line);
    } else if (skua_bytes_is(line, "/who")) {
        for (int i = 0; i < room->count; i++) {
            char name[2 * NAME_SIZE];
            const int size = snprintf(name, sizeof name, "%s\n", room->members[i].name);
            skua_send_bytes(ctx, pid, 0, name, (size_t)size);
        }
    } else if (line.size > 0) {
        tell(room, ctx, who, ": ", line);
    }
    return 0;
}

static const skua_process_type room_type = {"room", sizeof(struct room), .serve = room_serve};

/* ---- sessions ---- */

/* Its inputs, one after the other. */
struct session {
    skua_pid room;
    skua_socket socket;
};

/* What the room says is written as it comes: that is what an exchange does with messages. */
static int session_main(void *self, skua_context *ctx)
{
    const struct session *me = self;
    skua_stream stream = {.socket = me->socket, .input = {.limit = LINE_SIZE}};
    skua_bytes line;
    int more = 0;
    skua_output_text(&stream.output, "Who are you?\n");
    while (more == 0 && skua_task_exchange(ctx, &stream, NULL) == 0) {
        while ((more = skua_input_take_line(&stream.input, &line)) > 0) {
            skua_send_bytes(ctx, me->room, 0, line.data, line.size);
        }
    }
    skua_stream_clear(&stream); /* the client has gone, or says too much at once */
    return 0;
}

static const skua_process_type session_type = {"session", sizeof(struct session), skua_init_bytes,
                                               .main = session_main, .mailbox_limit = BEHIND_MAX};

/* ---- the server ---- */

static int chat_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    const char *port = count > 0 ? skua_payload_data(&input[0]) : "7000";
    (void)ctx, (void)snprintf(self, SKUA_ADDRESS_SIZE, "127.0.0.1:%s", port);
    return 0;
}

static int chat_main(void *self, skua_context *ctx)
{
    skua_socket_snapshot snapshot;
    skua_socket listener;
    skua_pid room;
    int error = skua_listen(ctx, self, NULL, &listener);
    error = error != 0 ? error : skua_socket_info(ctx, listener, &snapshot);
    error = error != 0 ? error : skua_spawn(ctx, &room_type, skua_nothing(), &room);
    if (error == 0 && printf("listening at %s\n", snapshot.local) > 0 && fflush(stdout) == 0) {
        const skua_payload input = skua_payload_pid(0, room);
        error = skua_task_serve(ctx, listener, &session_type, &input);
    }
    return error;
}

static const skua_process_type chat = {"chat", SKUA_ADDRESS_SIZE, chat_init, .main = chat_main};

SKUA_MODULE(.name = "chat", .about = "a chat room", .root = &chat);
