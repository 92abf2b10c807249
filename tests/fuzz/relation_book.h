/* SPDX-License-Identifier: MIT */
/* The books of each process on its relations to others: the calls that it owes an answer to, the
 * links it has made, the names it has, its open calls, monitors, joins and waits for a name. Every
 * event that comes of one is checked against them.
 *
 * A book belongs to its process: only its init, step and close use it. */
#ifndef SKUA_TESTS_FUZZ_RELATION_BOOK_H
#define SKUA_TESTS_FUZZ_RELATION_BOOK_H

#include <skua/skua.h>

/* Each has tags of its own, so that a completion shows what it is of. */
enum relation_yield {
    YIELD_CALL,
    YIELD_MONITOR,
    YIELD_JOIN,
    YIELD_AWAIT,
    YIELD_WATCH,
    YIELD_PUBLISH,
    YIELD_SEND,
    RELATION_YIELDS
};

#define RELATION_TAG_FIRST 8 /* the tags below are for yields of other kinds */
#define RELATION_TAGS_EACH 4
#define RELATION_TAG_END   (RELATION_TAG_FIRST + RELATION_YIELDS * RELATION_TAGS_EACH)

/* What the type of a process asks for. */
#define RELATIONS_CALLS    1U
#define RELATIONS_ABANDONS 2U
#define RELATIONS_PICKS    4U /* a task: an event may have come, and wait until it is wanted */

#define RELATIONS_KEPT 24 /* of a kind; what comes on top is not checked */

struct relation_request {
    skua_request request;
    bool is_late; /* the process was told that nobody waits for it */
};

struct relation_link {
    skua_link_id id;
    skua_pid peer;
    uint64_t tag;
    bool tells;
};

struct relations {
    uint32_t number;
    uint32_t asks; /* RELATIONS_CALLS ... */
    uint32_t names;
    uint8_t open[RELATION_YIELDS * RELATION_TAGS_EACH];
    uint32_t request_count;
    struct relation_request requests[RELATIONS_KEPT];
    uint32_t link_count;
    struct relation_link links[RELATIONS_KEPT];
    bool has_more_requests;
    bool has_more_links;
    bool has_templates; /* it may hear of children that others have started, and of their ends */
};

/* The book of the process with this number in the ledger; 0: the one of all without a number, of
 * which nothing is noted. */
struct relations *relations_of(uint32_t number);

/* A process begins. */
void relations_begin(uint32_t number);

/* ---- yields ---- */

/* Whether one more can be counted. */
bool relations_have_room(const struct relations *relations, uint64_t tag);
void relations_note_yield(struct relations *relations, uint64_t tag, bool accepted);

/* ---- events ---- */

/* A completion with a tag from RELATION_TAG_FIRST on. */
void relations_note_completion(struct relations *relations, const skua_event *event);
void relations_note_call(struct relations *relations, const skua_event *event);
void relations_note_abandon(struct relations *relations, const skua_event *event);
void relations_note_exit(struct relations *relations, const skua_event *event);
void relations_note_news(const skua_event *event);

/* ---- requests ---- */

/* What is known of a request that a verb names. */
enum request_standing {
    REQUEST_STRANGE, /* it is none of this process */
    REQUEST_OWED,
    REQUEST_LATE,
    REQUEST_UNKNOWN, /* it may be anything */
};
enum request_standing relations_request(const struct relations *relations, skua_request request);

/* A verb has answered it (0), failed so that it stays, or found that nobody waits. */
void relations_note_answer(struct relations *relations, skua_request request, int error);

/* ---- links ---- */

/* Zero if there is no link. */
void relations_note_link(struct relations *relations, const struct relation_link *link);

/* Checks the answer of an unlink. */
void relations_note_unlink(struct relations *relations, skua_link_id id, int error);

#endif
