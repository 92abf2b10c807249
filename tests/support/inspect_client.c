/* SPDX-License-Identifier: MIT */
#include "inspect_client.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/runtime.h"
#include "runtime_support.h"

/* No answer is longer. */
#define TEXT_SIZE    ((size_t)1 << 20)
#define LINES_MAX    4096
#define FIELDS_MAX   (LINES_MAX * 8)
#define HANG_SECONDS 120

struct sockaddr_un inspect_address(skua_runtime *runtime)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char folder[sizeof address.sun_path - 32];
    const unsigned number =
        (unsigned)(runtime->sched.table.runtime_bits >> (64 - PID_RUNTIME_BITS));
    (void)skua_inspect_directory(folder, sizeof folder);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/%d.%u", folder, (int)getpid(),
                   number);
    return address;
}

bool inspect_is_there(skua_runtime *runtime)
{
    const struct sockaddr_un address = inspect_address(runtime);
    struct stat status;
    return lstat(address.sun_path, &status) == 0;
}

int inspect_connect(skua_runtime *runtime)
{
    const struct sockaddr_un address = inspect_address(runtime);
    const struct timeval limit = {.tv_sec = HANG_SECONDS};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        const int error = errno;
        (void)close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

void inspect_open(struct inspect_client *client, skua_runtime *runtime)
{
    *client = (struct inspect_client){
        .fd = inspect_connect(runtime),
        .text = malloc(TEXT_SIZE + 1),
        .lines = malloc(LINES_MAX * sizeof *client->lines),
        .fields = malloc(FIELDS_MAX * sizeof *client->fields),
    };
    assert_true(client->fd >= 0);
    assert_true(client->text != NULL && client->lines != NULL && client->fields != NULL);
}

void inspect_close(struct inspect_client *client)
{
    assert_int_equal(close(client->fd), 0);
    free(client->text);
    free(client->lines);
    free(client->fields);
}

/* ---- reading ---- */

void inspect_send(struct inspect_client *client, const char *bytes, size_t count)
{
    assert_int_equal(send(client->fd, bytes, count, MSG_NOSIGNAL), count);
}

uint32_t inspect_send_until_full(int fd, const char *request)
{
    uint32_t times = 0;
    const size_t length = strlen(request);
    while (send(fd, request, length, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)length) {
        times++;
    }
    assert_int_equal(errno, EAGAIN);
    return times;
}

bool inspect_count_more(struct inspect_count *count)
{
    char bytes[65536];
    const ssize_t read = recv(count->fd, bytes, sizeof bytes, 0);
    for (ssize_t i = 0; i < read; i++) { /* only the last line of an answer begins with an e */
        count->answers += !count->in_line && bytes[i] == 'e';
        count->in_line = bytes[i] != '\n';
    }
    return read > 0;
}

/* The beginning of the last line of what has been read, if that line is whole. */
static const char *last_line(const struct inspect_client *client)
{
    if (client->length == 0 || client->text[client->length - 1] != '\n') {
        return NULL;
    }
    const char *before = memrchr(client->text, '\n', client->length - 1);
    return before != NULL ? before + 1 : client->text;
}

static bool is_whole(const struct inspect_client *client)
{
    const char *last = last_line(client);
    return last != NULL && (strcmp(last, "end\n") == 0 || strncmp(last, "error\t", 6) == 0);
}

/* Nothing but lines that end, of fields that can be shown. */
static void assert_clean(const struct inspect_client *client)
{
    assert_int_equal(strlen(client->text), client->length);
    for (const char *at = client->text; *at != '\0'; at++) {
        assert_true(*at == '\n' || *at == '\t' || !iscntrl((unsigned char)*at));
    }
}

static char **cut_line(struct inspect_client *client, char *text, char **field)
{
    assert_true(client->line_count < LINES_MAX);
    struct inspect_line *line = &client->lines[client->line_count++];
    char *rest = text;
    *line = (struct inspect_line){.fields = field};
    while (rest != NULL) {
        assert_true(field < client->fields + FIELDS_MAX);
        *field++ = strsep(&rest, "\t");
        line->count++;
    }
    return field;
}

static void cut(struct inspect_client *client)
{
    char **field = client->fields;
    char *rest = client->text;
    client->line_count = 0;
    for (char *text = strsep(&rest, "\n"); rest != NULL; text = strsep(&rest, "\n")) {
        field = cut_line(client, text, field);
    }
    const struct inspect_line *last = &client->lines[--client->line_count];
    client->error = NULL;
    if (strcmp(last->fields[0], "error") == 0) {
        assert_int_equal(last->count, 3);
        client->error = last->fields[1];
    }
}

bool inspect_read(struct inspect_client *client)
{
    client->length = 0;
    client->text[0] = '\0';
    while (!is_whole(client)) {
        assert_true(client->length < TEXT_SIZE);
        const ssize_t count =
            recv(client->fd, client->text + client->length, TEXT_SIZE - client->length, 0);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        assert_true(count >= 0 || errno == ECONNRESET);
        if (count <= 0) {
            return false;
        }
        client->length += (size_t)count;
        client->text[client->length] = '\0';
    }
    assert_clean(client);
    cut(client);
    return true;
}

static void ask(struct inspect_client *client, const char *request)
{
    char line[1300];
    const int length = snprintf(line, sizeof line, "%s\n", request);
    assert_in_range(length, 1, sizeof line - 1);
    inspect_send(client, line, (size_t)length);
    assert_true(inspect_read(client));
}

void inspect_ask(struct inspect_client *client, const char *request)
{
    ask(client, request);
    if (client->error != NULL) {
        fail_msg("'%s' was answered with %s", request, client->error);
    }
}

void inspect_ask_wrong(struct inspect_client *client, const char *request, int error)
{
    ask(client, request);
    if (client->error == NULL || client->line_count != 0 ||
        strcmp(client->error, skua_error_name(error)) != 0) {
        fail_msg("'%s' was answered with %s, not %s", request,
                 client->error != NULL ? client->error : "no error", skua_error_name(error));
    }
    assert_string_equal(client->lines[0].fields[2], skua_error_text(error));
}

bool inspect_is_closed(struct inspect_client *client)
{
    char byte;
    const ssize_t count = recv(client->fd, &byte, 1, 0);
    return count == 0 || (count < 0 && errno == ECONNRESET);
}

/* ---- what was read ---- */

const struct inspect_line *inspect_find(const struct inspect_client *client, const char *kind,
                                        size_t n)
{
    for (size_t i = 0; i < client->line_count; i++) {
        if (strcmp(client->lines[i].fields[0], kind) == 0 && n-- == 0) {
            return &client->lines[i];
        }
    }
    return NULL;
}

size_t inspect_count(const struct inspect_client *client, const char *kind)
{
    size_t count = 0;
    while (inspect_find(client, kind, count) != NULL) {
        count++;
    }
    return count;
}

uint64_t inspect_number(const struct inspect_line *line, size_t field)
{
    assert_non_null(line);
    assert_true(field < line->count);
    const char *text = line->fields[field];
    assert_true(text[0] != '\0');
    assert_int_equal(strspn(text, "0123456789"), strlen(text));
    return strtoull(text, NULL, 10);
}

skua_pid inspect_pid(const struct inspect_line *line, size_t field)
{
    assert_non_null(line);
    assert_true(field < line->count);
    const char *text = line->fields[field];
    assert_int_equal(strlen(text), 16);
    assert_int_equal(strspn(text, "0123456789abcdef"), 16);
    return (skua_pid){strtoull(text, NULL, 16)};
}

/* ---- hello ---- */

/* A place may be taken by others who are about to leave it. */
static bool is_answered(void *arg)
{
    struct inspect_client client;
    inspect_open(&client, arg);
    const bool sent = send(client.fd, "hello\n", 6, MSG_NOSIGNAL) == 6;
    const bool answered = inspect_read(&client) && client.error == NULL;
    assert_true(sent || !answered);
    if (answered) {
        assert_int_equal(client.line_count, 1);
        assert_string_equal(client.lines[0].fields[0], "program");
    }
    inspect_close(&client);
    return answered;
}

void inspect_say_hello(skua_runtime *runtime)
{
    wait_until(is_answered, runtime, "an answer to hello");
}
