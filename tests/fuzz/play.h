/* SPDX-License-Identifier: MIT */
/* A step of a script, for those who perform its operations (operations.c, verbs.c). */
#ifndef SKUA_TESTS_FUZZ_PLAY_H
#define SKUA_TESTS_FUZZ_PLAY_H

#include "board.h"
#include "relation_book.h"

/* Of the yields that relation_book.h does not count. */
#define TAGS 8

/* Of the memory that a script has. */
#define OWN_SIZE 100

enum habit {
    OBEYS,   /* ends at a cancel event */
    IGNORES, /* stays until it is ended */
    MORTAL,  /* goes on without waiting until its script is at its end, and ends with it */
    HABITS,
};

/* The state of a process. All that must not happen to it is found here and in its relations. */
struct script {
    uint32_t number; /* in the ledger */
    uint8_t habit;   /* enum habit */
    bool is_running;
    bool is_asked_to_stop;
    bool has_begun;
    bool continues;
    uint8_t open[TAGS]; /* yields without a completion */
    struct reader reader;
    unsigned char *own; /* memory, or null */
};

_Static_assert(sizeof(struct script) <= 64, "costs no allocation");

/* A step under way, or a task. */
struct play {
    struct script *script;
    struct relations *relations;
    struct reader *reader;
    skua_context *ctx;
    skua_runtime *runtime;
    skua_event *events;
    size_t count;
    bool is_over;
    bool continues;
    int error;    /* what the step returns */
    bool is_task; /* which may wait */
    bool leaves;  /* it will not wait again */
    skua_event none;
};

/* A process got an event: checks it against the books. */
void play_note_event(const struct play *play, const skua_event *event);

/* What all yields answer. */
#define ANSWERS_OF_YIELD (ANSWER_OK | ANSWER(DURATION) | ANSWER(DONE) | ANSWER(NO_MEMORY))

/* None, one that has passed already, or one that may be too long. */
uint64_t choose_yield_timeout(struct reader *reader);

#endif
