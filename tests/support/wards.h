/* SPDX-License-Identifier: MIT */
/* Children for supervisors. A ward has a letter, which is its name, and writes into the diary of
 * the test when it starts ("+a") and when it has ended ("-a"). Otherwise it does what its habits
 * and the test say:
 *
 *   world_open_virtual();
 *   wards_open();
 *   skua_pid top = supervise((skua_supervisor){.name = "top", WARDS(ward('a'), ward('b'))});
 *   ward_fail('a', SKUA_E_USER);
 *   assert_diary("+a+b-a+a");
 *
 * The same letter again is the same child, living anew. */
#ifndef SKUA_TESTS_WARDS_H
#define SKUA_TESTS_WARDS_H

#include <skua/supervisor.h>

#include "world.h"

#define WARDS_MAX 26

/* What a ward does; zero: it is ready at once, and ends when it is asked to. */
struct ward_habits {
    int init_error;          /* what its init returns, */
    unsigned init_failures;  /* so many times */
    bool is_never_ready;     /* does not say that it is */
    uint64_t ready_after_ns; /* how long it takes until then */
    bool ignores_cancel;
    uint64_t stops_after_ns; /* how long it takes to end when it is asked to */
};

struct ward {
    struct ward_habits habits;
    unsigned starts; /* init has returned 0 so often */
    unsigned lives;  /* now: 0 or 1; more for a template */
    skua_pid pid;    /* of its last start */
    int exit_error;  /* of its last end */
    uint64_t started_at;
};

/* Begins a test: no habits, nothing in the diary. */
void wards_open(void);

/* Has `watch` called with what goes into the diary, and with 'c' when a ward is asked to end and
 * 'r' when it is ready. */
void wards_watch(void (*watch)(char sign, char letter));

extern const skua_process_type ward_type;
/* The same as another type, for a second template. */
extern const skua_process_type other_ward_type;

/* What is known of one. */
struct ward *ward_of(char letter);

/* The input that makes a ward of this letter. */
skua_payload ward_input(char letter);

/* A child with this letter, and nothing else set. */
skua_child ward(char letter);

/* In a specification: its children. */
#define WARDS(...)                                                                                 \
    .children = (const skua_child[]){__VA_ARGS__},                                                 \
    .child_count = COUNT_OF(((const skua_child[]){__VA_ARGS__}))

/* Starts a supervisor with a copy of this specification, which lives as long as the test, and lets
 * it get to rest. A supervisor in it must be such a copy: specification_copy. */
skua_pid supervise(skua_supervisor specification);
const skua_supervisor *specification_copy(skua_supervisor specification);

/* Has the ward that was last started with this letter end, with an error or without, and waits for
 * what follows from that. */
void ward_fail(char letter, int error);
void ward_finish(char letter);
/* The same without waiting: an error, or 0. Returns what the send did. */
int ward_tell(char letter, int error);
/* The same from outside. */
void ward_kill(char letter);

/* What the diary says; it is then empty. */
void assert_diary(const char *expected);
/* The same, where what happens at once has no order: compares sorted entries. */
void assert_diary_in_any_order(const char *expected);

/* Appends to it: of letters, and of what else a test wants to see in order. */
void diary_write(char sign, char letter);

/* ---- reports ---- */

/* The report of a supervisor on a child. */
skua_child_report report_on(skua_pid supervisor, const char *name);
size_t report_size(skua_pid supervisor);

#endif
