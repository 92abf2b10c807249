/* SPDX-License-Identifier: MIT */
/* Scripted processes: an actor is a process that performs a list of acts and remembers what it saw.
 *
 *   struct actor *server = actor_start(ACTS(expects(message(ASK, 1)), replies(ANSWER, 2)));
 *   struct actor *client = actor_new(ACTS(sends(server, ASK, 1), expects(message(ANSWER, 2)),
 *                                         finishes(7)));
 *   assert_result(actor_run(client), 7);
 *
 * The script begins in the actor's first step. An act that waits (`expects`, `awaits`, `continues`)
 * ends the step, and the script goes on with what comes; all other acts between two waits happen in
 * one step. After its script an actor rests, and takes what it is told by actor_tell as its next
 * one. Its type gets cancels as events: it finishes at one that its script does not expect, unless
 * `ignores_cancel`.
 *
 * An act is a function, so a test with unusual needs writes one (`does`), and only this kit knows
 * how a step talks to the runtime. Any deviation from the script is a surprise, reported when the
 * test ends; a cancel event in place of what the script expects is one, too.
 *
 * An actor that has ended may be started again, and performs its script anew.
 *
 * Actors live until the end of the test. Their fields are for the test's thread, where it has seen
 * that the actor rests or waits (by the tallies, world_settle, actor_run or world_close). */
#ifndef SKUA_TESTS_ACTOR_H
#define SKUA_TESTS_ACTOR_H

#include "world.h"

struct act;
struct actor;

/* ---- what an actor has seen ---- */

struct seen {
    uint32_t type; /* SKUA_EVENT_... */
    int error;
    uint64_t tag;
    uint32_t payload_type;
    uint64_t value;     /* the number in its payload, also of a tracked one; of a tick, its count */
    bool any_payload;   /* in an expectation: the payload does not matter */
    bool has_bytes;     /* in an expectation: its size and digest do */
    size_t size;        /* of the payload */
    uint64_t digest;    /* of its bytes: bytes_digest */
    uint64_t tick_time; /* of a tick; in an expectation 0: does not matter */
    /* Not compared. */
    skua_request request; /* of a call, and when it is abandoned; then `tag` is 0 */
    skua_pid from;
    uint64_t now;  /* of the step */
    uint64_t step; /* the first is 1 */
};

struct seen message(uint32_t payload_type, uint64_t value);
struct seen completion(uint64_t tag, int error); /* whatever its payload */
struct seen completion_of(uint64_t tag, uint32_t payload_type, uint64_t value);
struct seen failure(uint64_t tag, int error);         /* a completion without a payload */
struct seen received(uint64_t tag, const char *text); /* a completion with these bytes */
struct seen received_bytes(uint64_t tag, const void *data, size_t size);
struct seen cancel(int error);
struct seen tick(uint64_t tag, uint64_t count);
struct seen tick_at(uint64_t tag, uint64_t count, uint64_t time);

/* That the actor saw exactly these, in this order, and had no surprise. */
#define assert_saw(actor, ...)                                                                     \
    assert_saw_from(actor, 0, (const struct seen[]){__VA_ARGS__},                                  \
                    COUNT_OF(((const struct seen[]){__VA_ARGS__})))

/* The same for what came after its first `from` events. */
void assert_saw_from(const struct actor *actor, size_t from, const struct seen *expected,
                     size_t count);
void assert_saw_nothing(const struct actor *actor);

/* The same for what came since the last assert_then_saw, for tests that look again and again. */
#define assert_then_saw(actor, ...)                                                                \
    assert_saw_since(actor, (const struct seen[]){__VA_ARGS__},                                    \
                     COUNT_OF(((const struct seen[]){__VA_ARGS__})))
void assert_saw_since(struct actor *actor, const struct seen *expected, size_t count);
void assert_then_saw_nothing(struct actor *actor);

/* The same, in any order. */
#define assert_then_saw_in_any_order(actor, ...)                                                   \
    assert_saw_these_since(actor, (const struct seen[]){__VA_ARGS__},                              \
                           COUNT_OF(((const struct seen[]){__VA_ARGS__})))
void assert_saw_these_since(struct actor *actor, const struct seen *expected, size_t count);

/* The most messages that came in one step. */
size_t actor_largest_batch(const struct actor *actor);

/* That it saw `total` completions with this error, one for each tag below `total`, in any order,
 * and nothing else. */
void assert_completed_each_once(const struct actor *actor, size_t total, int error);

/* ---- actors ---- */

struct script {
    const struct act *acts;
    size_t count;
};

struct actor {
    /* May be changed between actor_new and the actor's start. */
    skua_process_type type; /* name, mailbox limit, state size: at least that of a pointer */
    bool ignores_cancel;
    bool holds_in_close;    /* stays in its close until actor_let_go, as by holds() */
    struct script in_init;  /* acts for its init, which cannot wait or yield */
    struct script in_close; /* the same for its close */
    int init_returns;

    skua_pid pid;
    char method[16]; /* that its init was called with */
    struct seen *seen;
    size_t seen_count;
    uint32_t worker;   /* that ran its last step */
    uint64_t init_now; /* the time in its init */
    int exit_error;    /* that its close was told */
    skua_pid exit_cause;
    atomic_uint inits;
    atomic_uint steps;
    atomic_uint closes;
    struct tally arrived;   /* events it has seen */
    struct tally performed; /* scripts it has come to the end of */
    struct tally held;      /* times it was held, see holds() */
    struct tally released;
    struct tally closed;
    struct tracked item; /* a payload of its own, for acts that want one */

    /* The kit's. */
    struct actor *next;
    struct script script;
    size_t position;
    uint64_t counter; /* of the act that waits */
    uint64_t repeated;
    uint64_t sent;       /* by sends_numbers */
    size_t read;         /* events that the script has dealt with */
    size_t asserted;     /* events that assert_then_saw has dealt with */
    uint64_t given;      /* scripts */
    unsigned first_step; /* of this life: the value of `steps` then */
    size_t seen_capacity;
    unsigned surprises;
    char surprise[160]; /* the first */
};

/* An actor with this script, not started yet. */
struct actor *actor_new(struct script script);

/* A list of acts; the memory lives until the end of the test. */
#define ACTS(...)                                                                                  \
    script_copy((const struct act[]){__VA_ARGS__}, COUNT_OF(((const struct act[]){__VA_ARGS__})))
struct script script_copy(const struct act *acts, size_t count);
/* No acts: rests until it is told something or cancelled. */
#define NO_ACTS ((struct script){NULL, 0})

/* Starts one; must succeed. */
void actor_submit(struct actor *actor);

/* The same; returns what skua_process_submit did. Any thread. */
int actor_try_submit(struct actor *actor);

/* actor_new and actor_submit. */
struct actor *actor_start(struct script script);

/* Starts one that is held in its first step, so that what is sent to it waits. */
struct actor *actor_start_held(void);

/* Starts one and waits for its end. */
skua_exit actor_run(struct actor *actor);

/* The same; returns what skua_process_run did. `exit` may be null. Any thread. */
int actor_try_run(struct actor *actor, skua_exit *exit);

/* Has an actor perform these acts, in a step of its own: waits for the end of its last script, but
 * not of this one. */
void actor_tell(struct actor *actor, struct script script);

/* The same, and waits until it has come to the end of them. In virtual time, and in the simulator,
 * until all that follows from that has happened. */
void actor_perform(struct actor *actor, struct script script);

/* Tells it a script that comes to a holds() or blocks(), and returns when it is there. */
void actor_perform_until_held(struct actor *actor, struct script script);

/* Lets a held actor go on, to the end of its script; waits as actor_perform does. */
void actor_release(struct actor *actor);

/* Lets it go on only; any thread. */
void actor_let_go(struct actor *actor);

void actor_await_seen(struct actor *actor, uint64_t events);
void actor_await_held(struct actor *actor, uint64_t times);
void actor_await_state(const struct actor *actor, enum skua_process_state state);
void actor_await_end(struct actor *actor);

/* The actor with this type, or null if the type is none of an actor. */
const struct actor *actor_of_type(const skua_process_type *type);

/* The exit of a process that is done, with this number, or that failed. Drops the result. */
void assert_result(skua_exit exit, uint64_t number);
void assert_failed(skua_exit exit, int error);

/* ---- acts ---- */

/* What an act works with. */
struct turn {
    struct actor *actor;
    skua_context *ctx;
    skua_event *events; /* of this step */
    size_t count;
    skua_payload *input; /* in init: the actor itself and what the test has added */
    size_t input_count;
    const skua_exit *exit; /* in close */
    int error;             /* what the step will return */
    bool finished;
};

/* What an act returns that is not over: the step ends, and the act is performed again in the next.
 * Otherwise it returns what the call that it makes has returned. */
#define ACT_WAITS 1

typedef int act_fn(struct turn *turn, const struct act *act);

/* What the process's clock shows. */
uint64_t turn_now(const struct turn *turn);

/* Whether this is the first step. */
bool turn_starts(const struct turn *turn);

struct act {
    act_fn *perform;
    int returns; /* what it has to return: 0, or see refused() */
    uint64_t tag;
    uint64_t number;
    uint32_t command;
    uint32_t type;       /* of a payload */
    uint64_t until_ns;   /* see until() */
    uint64_t timeout_ns; /* if has_timeout */
    bool has_timeout;
    struct actor *peer;
    struct tracked *item;
    const skua_payload *payload;
    const char *pool;
    skua_blocking_fn *function;
    int (*call)(void *arg);
    void *arg;
    struct seen expected;
};

/* Notes that something went otherwise than the test expects; for acts. */
void actor_surprise(struct actor *actor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The act, but its call returns this error. */
struct act refused(struct act act, int error);

/* An act of the test's own. */
struct act does(act_fn *function, void *arg);

/* Keeps the context in a skua_context *, for use when it must not be used any more. */
int keep_context(struct turn *turn, const struct act *act);
/* Calls function(arg) in the step. */
struct act calls(int (*function)(void *arg), void *arg);
/* For acts of the test's own: performs another one, and returns what that does. */
int perform(struct turn *turn, struct act act);

/* A send, yield or finish with this payload. */
struct act with_payload(struct act act, skua_payload payload);

/* Waits for the next event, which has to be this one. */
struct act expects(struct seen event);
/* Waits until so many more events have come, whatever they are, cancel events included. */
struct act awaits(uint64_t events);
/* So many more steps by skua_continue before the script goes on. */
struct act continues(uint64_t steps);
/* Performs all acts before this one so many times more. */
struct act repeats(uint64_t times);
/* The act once for each tag below `tags`, all in one step; its number is the tag, too. */
struct act for_each_tag(uint64_t tags, struct act act);

/* Messages: to an actor that was started, or to whom the last event came from. */
struct act sends(struct actor *to, uint32_t type, uint64_t number);
struct act sends_urgent(struct actor *to, uint32_t type, uint64_t number);
struct act sends_item(struct actor *to, uint32_t type, struct tracked *item);
struct act replies(uint32_t type, uint64_t number);
/* So many messages, with the numbers that follow those sent so before; the first is 0. */
struct act sends_numbers(struct actor *to, uint32_t type, uint64_t count);
/* Sends the payload of every message that comes on to another actor; never ends. */
struct act passes_on(struct actor *to);
/* Starts an actor of actor_new. */
struct act spawns(struct actor *actor);

/* Yields. */
struct act yields(uint64_t tag, uint32_t command, uint32_t type, uint64_t number);
struct act yields_item(uint64_t tag, uint32_t command, uint32_t type, struct tracked *item);
struct act sleeps(uint64_t tag, uint64_t duration_ns);
struct act timer(uint64_t tag, uint64_t deadline_ns);
struct act ticker(uint64_t tag, uint64_t period_ns);
struct act offloads(uint64_t tag, const char *pool, skua_blocking_fn *function, uint64_t number);
/* A source of virtual time. */
struct act waits_for(uint64_t tag, uint64_t source);
/* The yield, with a timeout: at an instant of the process's clock, or after a while. */
struct act until(uint64_t instant_ns, struct act act);
struct act within(uint64_t timeout_ns, struct act act);
struct act cancels(uint64_t tag);

/* Stays in the step until actor_release; the second between skua_blocking_begin and end. */
struct act holds(void);
struct act blocks(void);

/* Ends: with a number, with the tracked item, with an error. */
struct act finishes(uint64_t number);
struct act finishes_with(uint32_t type, struct tracked *item);
struct act fails(int error);

/* ---- for acts.c and the like ---- */

/* The timeout of a yield: none, unless until() or within() has set one. */
uint64_t act_timeout(struct turn *turn, const struct act *act);

/* The handle of a pool: the default one if the name is null, that of none if there is no such. */
skua_pool act_pool(struct turn *turn, const char *name);

/* A number that stands for bytes. */
uint64_t bytes_digest(const void *data, size_t size);

bool seen_matches(const struct seen *seen, const struct seen *expected);

struct seen_text {
    char text[128];
};

struct seen_text seen_describe(const struct seen *seen);

/* Stays in the step until the test lets it go on. */
void actor_stay_held(struct actor *actor);

/* That a start, by submit or spawn, has told the PID that the actor's init saw. */
void actor_check_start(struct actor *actor, int error, skua_pid pid);

#endif
