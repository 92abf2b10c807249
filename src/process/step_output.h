/* SPDX-License-Identifier: MIT */
/* What a step asks for: its status and its yields. Each worker has one and reuses it for every
 * step. */
#ifndef SKUA_PROCESS_STEP_OUTPUT_H
#define SKUA_PROCESS_STEP_OUTPUT_H

#include <skua/process.h>

#include "base/allocator.h"
#include "process/event.h"

enum step_status { STEP_DEFAULT, STEP_CONTINUE, STEP_IDLE, STEP_WAIT, STEP_DONE };

/* A command that the step asked for. Its node will carry the completion; acquiring it up front
 * means that nothing can fail once the yield is accepted. */
struct yield {
    uint32_t command;
    uint32_t node; /* OBJECT_NONE: not a yield; cancels those tagged `cancels` */
    union {
        uint64_t deadline;
        uint64_t cancels;
    };
    skua_payload payload;
};

struct skua_step {
    bool open; /* only during the step: calls through a pointer kept for longer are refused */
    enum step_status status;
    uint32_t yield_count;
    uint32_t yield_capacity;
    struct yield *yields;
    bool yielded;        /* the last request was a yield, so a deadline may follow */
    skua_payload result; /* of STEP_DONE */
    /* Set once, by the worker. */
    const struct allocator *allocator;
    struct object_pool *events;
    struct pool_cache *event_cache;
    size_t payload_limit;
};

/* Begins a step. */
static inline void step_output_reset(skua_step *out)
{
    out->open = true;
    out->status = STEP_DEFAULT;
    out->yield_count = 0;
    out->yielded = false;
}

/* The last request was refused, or was not a yield: a deadline that follows must not apply to an
 * earlier one. */
static inline void step_output_refuse(skua_step *out)
{
    if (out != NULL) {
        out->yielded = false;
    }
}

/* Drops all yields and the result, if any. */
void step_output_discard(skua_step *out);

void step_output_deinit(skua_step *out);

#endif
