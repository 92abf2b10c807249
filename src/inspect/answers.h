/* SPDX-License-Identifier: MIT */
/* Answers the requests of docs/inspector.md. Everything is read while the workers keep running. */
#ifndef SKUA_INSPECT_ANSWERS_H
#define SKUA_INSPECT_ANSWERS_H

#include "inspect/listing.h"
#include "inspect/socket_list.h"
#include "inspect/text.h"
#include "inspect/tracing.h"

#define NO_CLIENT UINT32_MAX

struct answers {
    struct scheduler *sched;
    struct listing listing;
    struct socket_listing sockets;
    struct tracing tracing;
    uint32_t tracer; /* the client that traces, or NO_CLIENT */
    uint32_t asked;  /* processes, since somebody has set this to 0 */
    char why[512];   /* an error in words of its own; empty: in those of skua_error_text */
};

void answers_init(struct answers *answers, struct scheduler *sched);

/* Answers a client's request, a line without its newline. Modifies the line. */
void answers_write(struct answers *answers, uint32_t client, char *line, struct text *out);

/* Reports an error in place of an answer. */
void answers_refuse(struct text *out, int error);

/* The client is gone; ends its trace. */
void answers_forget(struct answers *answers, uint32_t client);

#endif
