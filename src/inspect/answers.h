/* SPDX-License-Identifier: MIT */
/* The requests of docs/inspector.md and what is answered. Everything is read as it is, while the
 * workers go on. */
#ifndef SKUA_INSPECT_ANSWERS_H
#define SKUA_INSPECT_ANSWERS_H

#include "inspect/listing.h"
#include "inspect/text.h"
#include "inspect/tracing.h"

#define NO_CLIENT UINT32_MAX

struct answers {
    struct scheduler *sched;
    struct listing listing;
    struct tracing tracing;
    uint32_t tracer; /* the client that traces, or NO_CLIENT */
};

void answers_init(struct answers *answers, struct scheduler *sched);

/* Answers a request, a line without its end, of a client. Changes the line. */
void answers_give(struct answers *answers, uint32_t client, char *line, struct text *out);

/* Says so in place of an answer that is too long. */
void answers_refuse(struct text *out, int error);

/* The client has gone, and with it its trace. */
void answers_forget(struct answers *answers, uint32_t client);

#endif
