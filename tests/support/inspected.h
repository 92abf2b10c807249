/* SPDX-License-Identifier: MIT */
/* A world that can be looked into, and clients that do so:
 *
 *   inspected_open((skua_runtime_config){.worker_count = 2});
 *   struct inspect_client *client = client_open();
 *   client_ask(client, "process %016" PRIx64, pid.bits); */
#ifndef SKUA_TESTS_INSPECTED_H
#define SKUA_TESTS_INSPECTED_H

#include "inspect_client.h"
#include "scratch.h"
#include "world.h"

/* A folder of the test's own for sockets, and an environment that wishes for nothing, until the end
 * of the test. */
void inspected_prepare(void);

/* The same, and world_open_with this configuration and an inspector. */
void inspected_open(skua_runtime_config config);

/* Whether a client has a trace run. */
bool inspected_is_traced(void);

/* A client of the world's runtime that is connected. It is closed at the end of the test, unless
 * the test does so. */
struct inspect_client *client_open(void);
void client_close(struct inspect_client *client);

/* Asks; the answer is no error, or it is this error and nothing else. */
void client_ask(struct inspect_client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void client_ask_wrong(struct inspect_client *client, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fields of a line `described`. */
enum {
    DESCRIBED_ANSWER = 2,
    DESCRIBED_NAMES,
    DESCRIBED_NAME,
    DESCRIBED_LABEL,
    DESCRIBED_YIELDS,
    DESCRIBED_TAG,
    DESCRIBED_KIND,
    DESCRIBED_ABOUT,
    DESCRIBED_TEXT,
    DESCRIBED_LEFT,
    DESCRIBED_PERIOD,
    DESCRIBED_FIELDS,
    /* of a call that was forwarded */
    DESCRIBED_HOPS = DESCRIBED_FIELDS,
    DESCRIBED_DEBTOR,
    DESCRIBED_DEBTOR_TYPE,
    DESCRIBED_FORWARDED_FIELDS,
};

/* Asks what a process says of itself, by `describe` or `process`, until it has answered or is gone:
 * a busy machine may need more than one attempt, and so may a process whose yield is just
 * ending. */
const struct inspect_line *client_describe(struct inspect_client *client, const char *request,
                                           skua_pid pid);

/* Asks for all processes by PID, page by page. `rest` is what stands behind the PID in such a
 * request: how many to a page, and a filter. Calls look(arg, client) for each page, unless it is
 * null. Returns how many there were. */
size_t client_walk(struct inspect_client *client, const char *rest,
                   void (*look)(void *arg, const struct inspect_client *page), void *arg);

#endif
