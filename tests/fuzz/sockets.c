/* SPDX-License-Identifier: MIT */
#include "sockets.h"

#include <skua/socket.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calls.h"
#include "count_of.h"
#include "ledger.h"
#include "script.h"

#define KNOWN 16

static struct {
    _Atomic(uint64_t) known[KNOWN];
    atomic_uint count;
    char name[2][40]; /* addresses that nobody else has */
} table;

/* ---- answers ---- */

/* A set of errors that are about sockets, besides those in the ledger. */
#define SOCKET_ANSWER(name) (UINT32_C(1) << (SKUA_E_SOCKET - SKUA_E_##name))
#define SOCKET_ERRORS       (SKUA_E_SOCKET - SKUA_E_SHUT_DOWN + 1)

/* What may have ended a socket. */
#define SOCKET_ENDS                                                                                \
    (SOCKET_ANSWER(RESET) | SOCKET_ANSWER(IDLE) | SOCKET_ANSWER(NO_PROGRESS) |                     \
     SOCKET_ANSWER(NETWORK))

static bool answer(int error, uint64_t documented, uint32_t of_sockets, const char *call)
{
    const uint32_t number = (uint32_t)(SKUA_E_SOCKET - error);
    if (number >= SOCKET_ERRORS) {
        return ledger_answer(error, documented, call);
    }
    if ((UINT32_C(1) << number & of_sockets) == 0) {
        ledger_fail("%s is no documented answer of %s", skua_error_name(error), call);
    }
    return false;
}

#define SOCKET_ANSWERS(call, documented, of_sockets)                                               \
    answer((call), (documented), (of_sockets), #call)

/* ---- choices ---- */

void sockets_begin(void)
{
    for (uint32_t i = 0; i < KNOWN; i++) {
        atomic_store(&table.known[i], 0);
    }
    atomic_store(&table.count, 0);
    for (uint32_t i = 0; i < COUNT_OF(table.name); i++) {
        (void)snprintf(table.name[i], sizeof table.name[i], "unix:@skua-fuzz-%d-%u", (int)getpid(),
                       (unsigned)i);
    }
}

void sockets_note(skua_socket socket)
{
    if (socket.bits != 0) {
        atomic_store(&table.known[atomic_fetch_add(&table.count, 1) % KNOWN], socket.bits);
    }
}

/* One of this process's, from some place on; zero if it has none. */
static skua_socket own_socket(skua_context *ctx, uint32_t from)
{
    skua_socket_snapshot snapshot;
    for (uint32_t i = 0; i < KNOWN; i++) {
        const skua_socket socket = {atomic_load(&table.known[(from + i) % KNOWN])};
        if (skua_socket_info(ctx, socket, &snapshot) == 0) {
            return socket;
        }
    }
    return (skua_socket){0};
}

skua_socket choose_socket(struct reader *reader, skua_context *ctx)
{
    const uint8_t choice = reader_byte(reader);
    const uint64_t bits = atomic_load(&table.known[choice % KNOWN]);
    if (choice < 0xd0) {
        return own_socket(ctx, choice);
    }
    if (choice < 0xe8) {
        return (skua_socket){bits};
    }
    return (skua_socket){choice < 0xf0 ? bits + 1 : bits ^ (uint64_t)choice << (choice % 64)};
}

static bool is_simulated(skua_context *ctx)
{
    skua_socket none;
    return skua_socket_adopt(ctx, -1, &none) == SKUA_E_NOT_SIMULATED;
}

const char *choose_address(struct reader *reader, skua_context *ctx)
{
    static const char *const simulated[] = {"127.0.0.1:7000", "10.0.0.1:7000", "10.0.0.2:7000",
                                            "10.0.0.77:1"};
    static const char *const wrong[] = {"", "nowhere", "127.0.0.1", "unix:", "[::1]:99999", NULL};
    const uint8_t choice = reader_byte(reader);
    if (choice >= 0xf0) {
        return wrong[choice % COUNT_OF(wrong)];
    }
    return choice % 2 == 0 && is_simulated(ctx) ? simulated[choice / 2 % COUNT_OF(simulated)]
                                                : table.name[choice / 2 % 2];
}

size_t choose_size(struct reader *reader)
{
    static const size_t sizes[] = {1, 2, 8, 100, 5000, SKUA_READ_MAX, 1000000, 0};
    return sizes[reader_below(reader, COUNT_OF(sizes))];
}

static uint64_t choose_tag(struct play *play)
{
    return reader_below(play->reader, TAGS);
}

static bool has_room(const struct play *play, uint64_t tag)
{
    return play->script->open[tag] < 200;
}

static void note_yield(struct play *play, uint64_t tag, bool accepted)
{
    play->script->open[tag] = (uint8_t)(play->script->open[tag] + accepted);
}

/* ---- opening ---- */

static void listen_somewhere(struct play *play)
{
    skua_socket listener;
    const skua_listen_options options = {.backlog = reader_byte(play->reader) % 4,
                                         .reuseport = reader_below(play->reader, 2) == 0};
    const char *address = choose_address(play->reader, play->ctx);
    if (SOCKET_ANSWERS(skua_listen(play->ctx, address, &options, &listener),
                       ANSWER_OK | ANSWER(NO_MEMORY) | ANSWER(INVALID),
                       SOCKET_ANSWER(ADDRESS) | SOCKET_ANSWER(ADDRESS_IN_USE) |
                           SOCKET_ANSWER(PERMISSION) | SOCKET_ANSWER(DESCRIPTORS) |
                           SOCKET_ANSWER(NETWORK))) {
        sockets_note(listener);
    } else {
        EXPECT(listener.bits == 0);
    }
}

static void accept_one(struct play *play)
{
    const uint64_t tag = choose_tag(play);
    const skua_socket listener = choose_socket(play->reader, play->ctx);
    const uint64_t timeout = choose_yield_timeout(play->reader);
    if (has_room(play, tag)) {
        note_yield(play, tag,
                   SOCKET_ANSWERS(skua_yield_accept(play->ctx, tag, listener, timeout),
                                  ANSWERS_OF_YIELD, SOCKET_ANSWER(SOCKET)));
    }
}

static void connect_somewhere(struct play *play)
{
    const uint64_t tag = choose_tag(play);
    const char *to = choose_address(play->reader, play->ctx);
    const char *from =
        reader_below(play->reader, 4) == 0 ? choose_address(play->reader, play->ctx) : NULL;
    const uint64_t timeout = choose_yield_timeout(play->reader);
    if (has_room(play, tag)) {
        note_yield(play, tag,
                   SOCKET_ANSWERS(skua_yield_connect(play->ctx, tag, to, from, timeout),
                                  ANSWERS_OF_YIELD | ANSWER(INVALID), SOCKET_ANSWER(ADDRESS)));
    }
}

/* What most programs would come to by chance only after a long while. */
static void connect_to_itself(struct play *play)
{
    skua_socket listener;
    const char *address = choose_address(play->reader, play->ctx);
    if (skua_listen(play->ctx, address, NULL, &listener) == 0) {
        sockets_note(listener);
        note_yield(play, 0, skua_yield_accept(play->ctx, 0, listener, SKUA_FOREVER) == 0);
        note_yield(play, 0, skua_yield_connect(play->ctx, 0, address, NULL, SKUA_FOREVER) == 0);
    }
}

/* Adopts an end, or closes it. */
static void adopt_end(struct play *play, int fd)
{
    skua_socket socket = {0};
    if (reader_below(play->reader, 8) != 0 &&
        SOCKET_ANSWERS(skua_socket_adopt(play->ctx, fd, &socket),
                       ANSWER_OK | ANSWER(NOT_SIMULATED) | ANSWER(NO_MEMORY) | ANSWER(DESCRIPTOR),
                       SOCKET_ANSWER(NETWORK))) {
        sockets_note(socket);
        return;
    }
    EXPECT(socket.bits == 0);
    (void)close(fd);
}

static void adopt(struct play *play)
{
    int ends[2];
    if (is_simulated(play->ctx)) {
        connect_to_itself(play);
        return;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return;
    }
    if (reader_below(play->reader, 2) == 0) {
        (void)send(ends[0], "some text\nand more", 18, MSG_NOSIGNAL);
    }
    adopt_end(play, ends[0]);
    adopt_end(play, ends[1]);
}

static void detach(struct play *play)
{
    int fd = 0;
    const skua_socket socket = choose_socket(play->reader, play->ctx);
    if (SOCKET_ANSWERS(skua_socket_detach(play->ctx, socket, &fd),
                       ANSWER_OK | ANSWER(NOT_SIMULATED),
                       SOCKET_ANSWER(SOCKET) | SOCKET_ANSWER(SOCKET_BUSY) | SOCKET_ENDS)) {
        EXPECT(close(fd) == 0);
    } else {
        EXPECT(fd == -1);
    }
}

/* A child with a socket. */
static void spawn_with_socket(struct play *play)
{
    struct script_start start;
    skua_pid pid;
    script_choose(play->reader, play->runtime, &start);
    start.options.socket = choose_socket(play->reader, play->ctx);
    if (SOCKET_ANSWERS(skua_spawn_with(play->ctx, &start.options, &pid), ANSWERS_OF_SUBMIT,
                       SOCKET_ANSWER(SOCKET) | SOCKET_ANSWER(SOCKET_BUSY))) {
        board_note_pid(pid);
    }
}

/* ---- data ---- */

static const char *choose_delimiter(struct reader *reader)
{
    static const char *const delimiters[] = {"\n", "t", "\r\n", "more", "", "too long", NULL};
    return delimiters[reader_below(reader, COUNT_OF(delimiters))];
}

static void read_some(struct play *play)
{
    const uint64_t tag = choose_tag(play);
    const skua_socket socket = choose_socket(play->reader, play->ctx);
    const size_t size = choose_size(play->reader);
    const uint64_t timeout = choose_yield_timeout(play->reader);
    int error = 0;
    if (!has_room(play, tag)) {
        return;
    }
    switch (reader_below(play->reader, 4)) {
    case 0:
        error = skua_yield_read_exactly(play->ctx, tag, socket, size, timeout);
        break;
    case 1:
        error = skua_yield_read_until(play->ctx, tag, socket, choose_delimiter(play->reader), size,
                                      timeout);
        break;
    case 2:
        error = skua_yield_hangup(play->ctx, tag, socket, timeout);
        break;
    default:
        error = skua_yield_read(play->ctx, tag, socket, size, timeout);
    }
    note_yield(play, tag,
               SOCKET_ANSWERS(error, ANSWERS_OF_YIELD | ANSWER(INVALID) | ANSWER(PAYLOAD_SIZE),
                              SOCKET_ANSWER(SOCKET)));
}

#define ANSWERS_OF_WRITE                                                                           \
    (ANSWERS_OF_YIELD | ANSWER(INVALID) | ANSWER(PAYLOAD_SIZE) | ANSWER(PAYLOAD_TYPE) |            \
     ANSWER(TAKEN))

static void write_some(struct play *play)
{
    const uint64_t tag = choose_tag(play);
    const skua_socket socket = choose_socket(play->reader, play->ctx);
    const uint64_t timeout = choose_yield_timeout(play->reader);
    const bool waits = reader_below(play->reader, 3) != 0;
    if (!has_room(play, tag)) {
        return;
    }
    skua_payload payload = choose_payload(play->reader, play->runtime);
    const int error = waits ? skua_yield_write(play->ctx, tag, socket, payload, timeout)
                            : skua_socket_write(play->ctx, socket, payload);
    const bool accepted = SOCKET_ANSWERS(error, ANSWERS_OF_WRITE,
                                         SOCKET_ANSWER(SOCKET) | SOCKET_ANSWER(SOCKET_FULL) |
                                             SOCKET_ANSWER(SHUT_DOWN) | SOCKET_ENDS);
    note_yield(play, tag, accepted && waits);
}

/* ---- the rest ---- */

static void end_socket(struct play *play)
{
    const skua_socket socket = choose_socket(play->reader, play->ctx);
    (void)SOCKET_ANSWERS(reader_below(play->reader, 2) == 0
                             ? skua_socket_shutdown(play->ctx, socket)
                             : skua_socket_close(play->ctx, socket),
                         ANSWER_OK, SOCKET_ANSWER(SOCKET));
}

static void give(struct play *play)
{
    const skua_socket socket = choose_socket(play->reader, play->ctx);
    (void)SOCKET_ANSWERS(skua_socket_give(play->ctx, socket, choose_pid(play->reader)),
                         ANSWER_OK | ANSWER(NO_PROCESS) | ANSWER(FOREIGN_PID) | ANSWER(NO_MEMORY) |
                             ANSWER(INVALID),
                         SOCKET_ANSWER(SOCKET) | SOCKET_ANSWER(SOCKET_BUSY));
}

static void set_option(struct play *play)
{
    static const uint64_t values[] = {0, 1, 2, 100, 100000, UINT32_MAX, UINT64_MAX};
    const skua_socket socket = choose_socket(play->reader, play->ctx);
    const enum skua_socket_option option = (enum skua_socket_option)reader_below(play->reader, 9);
    const uint64_t value = values[reader_below(play->reader, COUNT_OF(values))];
    (void)SOCKET_ANSWERS(skua_socket_set(play->ctx, socket, option, value),
                         ANSWER_OK | ANSWER(INVALID) | ANSWER(DURATION) | ANSWER(NO_MEMORY),
                         SOCKET_ANSWER(SOCKET) | SOCKET_ANSWER(NETWORK));
}

static void look(struct play *play)
{
    skua_socket_snapshot snapshot;
    const skua_socket socket = choose_socket(play->reader, play->ctx);
    if (SOCKET_ANSWERS(skua_socket_info(play->ctx, socket, &snapshot), ANSWER_OK,
                       SOCKET_ANSWER(SOCKET))) {
        EXPECT(snapshot.socket.bits == socket.bits);
        EXPECT(skua_pid_equal(snapshot.owner, skua_self(play->ctx)));
    } else {
        EXPECT(snapshot.socket.bits == 0);
    }
}

static void do_without_context(struct play *play)
{
    int fd;
    skua_socket socket = choose_socket(play->reader, play->ctx);
    skua_socket other;
    EXPECT(skua_yield_accept(NULL, 0, socket, 0) == SKUA_E_INVALID);
    EXPECT(skua_yield_connect(NULL, 0, "127.0.0.1:1", NULL, 0) == SKUA_E_INVALID);
    EXPECT(skua_yield_read(NULL, 0, socket, 1, 0) == SKUA_E_INVALID);
    EXPECT(skua_yield_hangup(NULL, 0, socket, 0) == SKUA_E_INVALID);
    EXPECT(skua_yield_write(NULL, 0, socket, ledger_payload(true, 0), 0) == SKUA_E_INVALID);
    EXPECT(skua_socket_write(NULL, socket, ledger_payload(true, 0)) == SKUA_E_INVALID);
    EXPECT(skua_socket_close(NULL, socket) == SKUA_E_INVALID);
    EXPECT(skua_socket_shutdown(NULL, socket) == SKUA_E_INVALID);
    EXPECT(skua_socket_give(NULL, socket, skua_self(play->ctx)) == SKUA_E_INVALID);
    EXPECT(skua_socket_adopt(NULL, 0, &other) == SKUA_E_INVALID && other.bits == 0);
    EXPECT(skua_socket_detach(NULL, socket, &fd) == SKUA_E_INVALID && fd == -1);
    EXPECT(skua_socket_adopt(play->ctx, 0, NULL) == SKUA_E_INVALID);
    EXPECT(skua_socket_detach(play->ctx, socket, NULL) == SKUA_E_INVALID);
    EXPECT(skua_socket_info(play->ctx, socket, NULL) == SKUA_E_INVALID);
}

/* What has been accepted or connected comes as a number. */
static void note_sockets(const struct play *play)
{
    for (size_t i = 0; i < play->count; i++) {
        const skua_event *event = &play->events[i];
        if (event->type == SKUA_EVENT_COMPLETION && event->error == 0 &&
            skua_payload_size(&event->payload) == sizeof(uint64_t)) {
            sockets_note(skua_payload_to_socket(&event->payload));
        }
    }
}

void sockets_perform(struct play *play)
{
    static void (*const verbs[])(struct play *) = {
        listen_somewhere,
        listen_somewhere,
        accept_one,
        accept_one,
        connect_somewhere,
        connect_somewhere,
        adopt,
        adopt,
        adopt,
        detach,
        read_some,
        read_some,
        read_some,
        read_some,
        write_some,
        write_some,
        write_some,
        end_socket,
        give,
        give,
        set_option,
        spawn_with_socket,
        look,
        do_without_context,
    };
    note_sockets(play);
    verbs[reader_below(play->reader, COUNT_OF(verbs))](play);
}
