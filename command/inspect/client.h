/* SPDX-License-Identifier: MIT */
/* A connection to the inspector of a running program: what `skua ps`, `sockets`, `tree`, `top`,
 * `stat`, `info`, `trace` and `metrics` share. What is spoken is in docs/inspector.md.
 *
 * The other side may be anything: a program of another version, one that hangs, one that was made
 * to harm. So an answer has 5 seconds in all, a line has a greatest length, numbers and counts are
 * checked, and text comes without control characters: it can be printed as it is. */
#ifndef COMMAND_INSPECT_CLIENT_H
#define COMMAND_INSPECT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLIENT_FIELDS_MAX = 128, CLIENT_LINE_SIZE = 16384 };

/* One line of an answer; valid until the next one is read. */
struct line {
    size_t count;
    char *field[CLIENT_FIELDS_MAX]; /* the first says what kind of line it is */
};

enum client_result {
    CLIENT_END = 0, /* the answer is complete */
    CLIENT_LINE,    /* a line of it, and there is more */
    CLIENT_ERROR,   /* the program refuses: see `error` of the client */
    CLIENT_GONE,    /* the connection was closed: the program has ended */
    CLIENT_SILENT,  /* no answer in time */
    CLIENT_BROKEN,  /* no answer of this protocol */
    CLIENT_STOPPED, /* `stop_fd` has become readable */
};

struct client {
    const char *command; /* whose complaints are printed */
    int fd;
    int stop_fd; /* ends the wait for an answer when it is readable; -1: nothing does */

    /* What the program says of itself. */
    uint64_t process; /* its process id */
    uint64_t runtime; /* the number of the runtime in it */
    char name[64];

    struct {
        char name[32];
        char text[600];
    } error;

    enum { DESCRIBES_UNKNOWN, DESCRIBES, DESCRIBES_NOT } describes; /* knows that request */

    uint64_t deadline_ns; /* of the answer that is being read */
    size_t start;         /* buffer[start, end) has been received, but not read */
    size_t end;
    char buffer[CLIENT_LINE_SIZE];
};

/* Connects to the program that `wanted` names, PID or PID.N, or, if that is null, to the only one
 * there is. On failure prints why.
 * Returns 0, or the exit status. */
int client_open(struct client *client, const char *command, const char *wanted);
void client_close(struct client *client);

/* The socket at `path`. Returns false with errno if there is no connection. client_open uses it. */
bool client_connect(struct client *client, const char *command, const char *path);

/* Sends a request. Whether that worked is told by client_read, which is called until it returns
 * something else than CLIENT_LINE. */
__attribute__((format(printf, 2, 3))) void client_ask(struct client *client, const char *format,
                                                      ...);
enum client_result client_read(struct client *client, struct line *line);

/* Reads what is left of an answer. */
enum client_result client_skip(struct client *client);

/* Waits, between requests, until a time of clock_ns. Returns false if the program ends before. */
bool client_wait(struct client *client, uint64_t until_ns);

/* Prints why there is no complete answer. Returns the exit status. */
int client_failure(const struct client *client, enum client_result result);

/* ---- fields ---- */

bool line_is(const struct line *line, const char *kind);

/* False if the field is missing or not such a number. */
bool line_number(const struct line *line, size_t index, uint64_t *value);
bool line_pid(const struct line *line, size_t index, uint64_t *pid);

/* Copies a field, as far as it fits. False if it is missing. */
bool line_text(const struct line *line, size_t index, char *text, size_t size);

/* A PID as it is written: up to 16 hexadecimal digits, with or without 0x. */
bool parse_pid(const char *text, uint64_t *pid);

#endif
