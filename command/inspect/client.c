/* SPDX-License-Identifier: MIT */
#include "command/inspect/client.h"

#include <errno.h>
#include <poll.h>
#include <skua/types.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "command/format.h"
#include "command/support.h"

#define ANSWER_TIME (5 * SKUA_SECOND)

/* ---- the connection ---- */

bool client_connect(struct client *client, const char *command, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t length = strlen(path);
    if (length >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(address.sun_path, path, length);
    memset(client, 0, offsetof(struct client, buffer));
    client->command = command;
    client->stop_fd = -1;
    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->fd < 0) {
        return false;
    }
    /* A program that hangs does not accept: this ends the wait for that, too. */
    const struct timeval limit = {.tv_sec = (time_t)(ANSWER_TIME / SKUA_SECOND)};
    setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(client->fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        const int error = errno;
        close(client->fd);
        errno = error;
        return false;
    }
    return true;
}

void client_close(struct client *client)
{
    close(client->fd);
}

void client_ask(struct client *client, const char *format, ...)
{
    char request[1201]; /* its end and, longer than any, the zero */
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(request, sizeof request - 1, format, arguments);
    va_end(arguments);
    request[length] = '\n';
    client->deadline_ns = clock_ns() + ANSWER_TIME;
    /* A connection that was closed may still hold the reason: what is read next says what became of
     * this. */
    (void)send(client->fd, request, (size_t)length + 1, MSG_NOSIGNAL);
}

/* Waits until there is something to read; CLIENT_LINE if there is. */
static enum client_result wait_readable(struct client *client)
{
    struct pollfd fds[] = {{.fd = client->fd, .events = POLLIN},
                           {.fd = client->stop_fd, .events = POLLIN}};
    for (;;) {
        const uint64_t now = clock_ns();
        if (now >= client->deadline_ns) {
            return CLIENT_SILENT;
        }
        const uint64_t left_ms = (client->deadline_ns - now) / SKUA_MILLISECOND + 1;
        if (poll(fds, 2, (int)left_ms) < 0 && errno != EINTR) {
            return CLIENT_GONE;
        }
        if (fds[1].revents != 0) {
            return CLIENT_STOPPED;
        }
        if (fds[0].revents != 0) {
            return CLIENT_LINE;
        }
    }
}

/* Receives more behind what is there already. */
static enum client_result receive(struct client *client)
{
    if (client->start > 0) {
        memmove(client->buffer, client->buffer + client->start, client->end - client->start);
        client->end -= client->start;
        client->start = 0;
    }
    if (client->end == sizeof client->buffer) {
        return CLIENT_BROKEN; /* a line that does not end */
    }
    const enum client_result ready = wait_readable(client);
    if (ready != CLIENT_LINE) {
        return ready;
    }
    const ssize_t received =
        recv(client->fd, client->buffer + client->end, sizeof client->buffer - client->end, 0);
    if (received <= 0) {
        return CLIENT_GONE;
    }
    client->end += (size_t)received;
    return CLIENT_LINE;
}

static void split(char *text, struct line *line)
{
    line->count = 0;
    while (text != NULL && line->count < CLIENT_FIELDS_MAX) {
        char *field = strsep(&text, "\t");
        make_printable(field);
        line->field[line->count++] = field;
    }
}

static enum client_result judge(struct client *client, const struct line *line)
{
    if (line_is(line, "end")) {
        return CLIENT_END;
    }
    if (!line_is(line, "error")) {
        return CLIENT_LINE;
    }
    const bool whole = line_text(line, 1, client->error.name, sizeof client->error.name) &&
                       line_text(line, 2, client->error.text, sizeof client->error.text);
    return whole ? CLIENT_ERROR : CLIENT_BROKEN;
}

enum client_result client_read(struct client *client, struct line *line)
{
    size_t searched = 0; /* of what has been received: no end of a line */
    for (;;) {
        char *text = client->buffer + client->start;
        const size_t length = client->end - client->start;
        char *end = memchr(text + searched, '\n', length - searched);
        if (end != NULL) {
            *end = '\0';
            client->start = (size_t)(end + 1 - client->buffer);
            /* Endless lines, each of them in time, are no answer either. */
            if (clock_ns() >= client->deadline_ns) {
                return CLIENT_SILENT;
            }
            if (strlen(text) != (size_t)(end - text)) {
                return CLIENT_BROKEN;
            }
            split(text, line);
            return judge(client, line);
        }
        searched = length;
        const enum client_result result = receive(client);
        if (result != CLIENT_LINE) {
            return result;
        }
    }
}

enum client_result client_skip(struct client *client)
{
    struct line line;
    enum client_result result;
    do {
        result = client_read(client, &line);
    } while (result == CLIENT_LINE);
    return result;
}

bool client_wait(struct client *client, uint64_t until_ns)
{
    struct pollfd fd = {.fd = client->fd, .events = POLLIN};
    for (;;) {
        const uint64_t now = clock_ns();
        if (now >= until_ns) {
            return true;
        }
        const uint64_t left_ns = until_ns - now;
        const struct timespec left = {.tv_sec = (time_t)(left_ns / SKUA_SECOND),
                                      .tv_nsec = (long)(left_ns % SKUA_SECOND)};
        /* Nothing was asked, so all there can be to read is the end. */
        if (ppoll(&fd, 1, &left, NULL) > 0) {
            return false;
        }
    }
}

int client_failure(const struct client *client, enum client_result result)
{
    switch (result) {
    case CLIENT_ERROR:
        return failure(client->command, "%s (%s)", client->error.text, client->error.name);
    case CLIENT_GONE:
        return failure(client->command, "the program has ended, or closed the connection");
    case CLIENT_SILENT:
        return failure(client->command, "the program does not answer");
    case CLIENT_END: /* something is missing in what came before it */
    case CLIENT_LINE:
    case CLIENT_BROKEN:
        return failure(client->command, "the program sent an invalid reply");
    case CLIENT_STOPPED:
        break;
    }
    return STATUS_FAILURE;
}

/* ---- fields ---- */

bool line_is(const struct line *line, const char *kind)
{
    return strcmp(line->field[0], kind) == 0;
}

bool line_number(const struct line *line, size_t index, uint64_t *value)
{
    return index < line->count && parse_number(line->field[index], 0, UINT64_MAX, value);
}

bool line_pid(const struct line *line, size_t index, uint64_t *pid)
{
    return index < line->count && parse_pid(line->field[index], pid);
}

bool line_text(const struct line *line, size_t index, char *text, size_t size)
{
    if (index >= line->count) {
        return false;
    }
    copy_text(text, size, line->field[index]);
    return true;
}

bool parse_pid(const char *text, uint64_t *pid)
{
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        text += 2;
    }
    const size_t length = strlen(text);
    if (length == 0 || length > 16 || strspn(text, "0123456789abcdefABCDEF") != length) {
        return false;
    }
    *pid = 0;
    for (; *text != '\0'; text++) {
        const unsigned digit = (unsigned char)*text;
        *pid = *pid << 4 | (digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
    }
    return true;
}
