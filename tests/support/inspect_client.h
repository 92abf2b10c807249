/* SPDX-License-Identifier: MIT */
/* A client of the inspector (docs/inspector.md) that is strict: whatever is not as it is written
 * there fails the test. For the thread of the test only, but where it says otherwise. */
#ifndef SKUA_TESTS_INSPECT_CLIENT_H
#define SKUA_TESTS_INSPECT_CLIENT_H

#include <skua/skua.h>
#include <sys/un.h>

struct inspect_line {
    char **fields;
    size_t count;
};

struct inspect_client {
    int fd;
    char *text; /* of the last answer; cut into fields */
    size_t length;
    struct inspect_line *lines; /* but for the last, which ends the answer */
    size_t line_count;
    char **fields;     /* of all lines */
    const char *error; /* the name in the last line, or null */
};

/* Where the socket of a runtime is. Any thread. */
struct sockaddr_un inspect_address(skua_runtime *runtime);

/* Whether there is one. */
bool inspect_is_there(skua_runtime *runtime);

/* A connection, whose calls fail when they take minutes; -1 with the reason in errno. Any thread.
 */
int inspect_connect(skua_runtime *runtime);

/* A client that is connected; whether it is answered will be seen. */
void inspect_open(struct inspect_client *client, skua_runtime *runtime);
void inspect_close(struct inspect_client *client);

/* Sends bytes as they are. */
void inspect_send(struct inspect_client *client, const char *bytes, size_t count);

/* Sends a request again and again, without waiting, until no more fit. Returns how often. */
uint32_t inspect_send_until_full(int fd, const char *request);

/* For connections with several requests on the way: reads what is there, having waited for
 * something, and counts the answers that end in it. False if the connection has ended. Begins
 * zeroed but for `fd`. Any thread. */
struct inspect_count {
    int fd;
    uint32_t answers;
    bool in_line;
};
bool inspect_count_more(struct inspect_count *count);

/* Reads one answer, the only one on the way. False if the connection ended before its last line. */
bool inspect_read(struct inspect_client *client);

/* Asks; the answer is no error. */
void inspect_ask(struct inspect_client *client, const char *request);

/* Asks; the answer is this error, and nothing else. */
void inspect_ask_wrong(struct inspect_client *client, const char *request, int error);

/* Whether the other side has closed the connection, having said no more. Waits for that, or for
 * something to read. */
bool inspect_is_closed(struct inspect_client *client);

/* The n-th line of this kind, from 0, or null. */
const struct inspect_line *inspect_find(const struct inspect_client *client, const char *kind,
                                        size_t n);

/* How many lines are of this kind. */
size_t inspect_count(const struct inspect_client *client, const char *kind);

/* A field: a whole number, or a PID, and nothing else. */
uint64_t inspect_number(const struct inspect_line *line, size_t field);
skua_pid inspect_pid(const struct inspect_line *line, size_t field);

/* A client of its own that connects, again and again until it gets a place, and says hello. */
void inspect_say_hello(skua_runtime *runtime);

#endif
