/* SPDX-License-Identifier: MIT */
/* Random programs of processes, each made from a seed, and the properties that hold for every one
 * of them. A program runs in the simulator or on threads; its text is the same.
 *
 *   program.c    what a seed stands for
 *   script.c     the processes: what their init, step and close do
 *   actions.c    what processes and threads outside do to processes
 *   requests.c   what steps yield, and what comes of it
 *   wires.c      what they do with sockets
 *   wire_books.c what was written and read there
 *   commands.c   the handlers and blocking functions that carry it out
 *   letters.c    payloads, each of which says what it belongs to
 *   ledger.c     the books: what was done, what came of it, and whether both agree
 *   mail.c       the books of messages
 *   crews.c      supervisors and their children
 *   outside.c    the threads outside, rest and stop
 *
 * The books are kept here and trust nothing that the runtime says about itself. Each piece is
 * numbered and never used twice within a program, so that whatever comes twice, late or to the
 * wrong place is noticed. Fields that several threads use are atomic and relaxed: it is the runtime
 * that has to bring order between a sender and a receiver, and thread sanitizers shall see it. */
#ifndef SKUA_TESTS_PROPERTY_H
#define SKUA_TESTS_PROPERTY_H

#include <skua/sim.h>
#include <skua/skua.h>

#include "base/atomic.h"
#include "base/random.h"

#define ACTORS_MAX    64
#define OUTSIDERS_MAX 2
#define SENDERS_MAX   (ACTORS_MAX + OUTSIDERS_MAX)
#define MESSAGES_MAX  4096
#define CANCELS_MAX   512
#define REQUESTS_MAX  2048
#define PARCELS_MAX   4096
#define OPEN_MAX      64 /* more than a process keeps in a plain list */
#define OWN_MAX       4
#define WIRES_MAX     192
#define WIRES_OWN_MAX 4 /* of one process */
#define HOSTS         3 /* in the simulator */
#define PAYLOAD_LIMIT 256

#define ERROR_INIT    (SKUA_E_USER - 1)
#define ERROR_STEP    (SKUA_E_USER - 2)
#define ERROR_HANDLER (SKUA_E_USER - 3)
/* Cancel events count down from here: the reason says which one it is. */
#define ERROR_CANCEL (SKUA_E_USER - 1000)

/* ---- program.c ---- */

enum driver { DRIVER_SIM, DRIVER_THREADS };

struct program {
    uint64_t seed;
    enum driver driver;
    bool trace;
    uint32_t workers;
    uint32_t actors;    /* at most so many processes */
    uint32_t outsiders; /* threads outside; in the simulator there is one */
    uint32_t roots;     /* processes at the beginning */
    uint32_t operations;
    uint32_t plan_max; /* steps in which a process does something */
    uint32_t process_limit;
    uint32_t mailbox_limit;
    uint64_t moment_ns; /* sleeps, deadlines and delays are a few of these */
    uint64_t step_ns;   /* in the simulator */
    bool everybody_obeys;
    bool comes_to_rest; /* before it is stopped */
    bool uses_sockets;
    bool uses_crews;
    uint64_t stop_timeout_ns;
    skua_sim_faults faults;
};

void program_generate(struct program *program, uint64_t seed, enum driver driver);

/* A number below `bound`; whether something of so many percent is the case. */
uint32_t draw(uint64_t *random, uint32_t bound);
bool chance(uint64_t *random, uint32_t percent);

/* ---- the books ---- */

enum type {
    TYPE_SMALL,
    TYPE_LARGE,
    TYPE_NARROW,
    TYPE_MORTAL,
    TYPE_TASK,
    TYPE_DEAF,      /* drops what finds its mailbox full */
    TYPE_FORGETFUL, /* drops old messages for new ones */
    TYPE_DREAMY,    /* the same, and a task */
    TYPE_FRAGILE,   /* ends when its mailbox is full */
    TYPES
};

enum finale { FINALE_DONE, FINALE_FAIL, FINALE_LINGER };

/* A block of skua_own_alloc. */
struct own_memory {
    unsigned char *bytes;
    size_t size;
};

struct wire;

/* A process, from the attempt to start it. */
struct actor {
    /* Written by whoever starts it, before that. */
    uint32_t number;
    uint64_t key; /* its own chance begins here */
    enum type type;
    uint32_t plan;
    enum finale finale;
    bool obeys;            /* finishes when it is cancelled */
    bool defers;           /* its own: until the end of its next step */
    bool has_deferred;     /* its own: at some time */
    bool is_unordered;     /* its own: there was no memory to defer a message */
    bool is_hasty;         /* never waits, so it ends whatever happens */
    bool fails_in_init;    /* returns ERROR_INIT, or a positive number */
    bool fails_upwards;    /* with a positive number, which stands for SKUA_E_INVALID */
    bool method_is_wrong;  /* is refused without a trace */
    bool result_is_caught; /* by on_exit */
    struct wire *heirloom; /* a socket that it is started with, or null; also of the process */
    /* Of any thread. */
    atomic_u64 pid;          /* known from init on */
    atomic_u32 is_mortal;    /* a cancel ends it */
    atomic_u32 takes_urgent; /* its type does */
    atomic_u32 overflow;     /* of its type: enum skua_overflow */
    atomic_u32 inits;
    atomic_u32 closes;
    atomic_u32 exits;
    atomic_u32 steps;
    atomic_u32 stops;        /* cancel events of the shutdown */
    atomic_u32 kills;        /* somebody has set out to end it */
    atomic_u32 dooms;        /* or to cancel it, and that ends it */
    atomic_u32 killed;       /* somebody was told that it is terminated */
    atomic_u32 is_published; /* its spawn has returned 0 */
    atomic_u32 is_ending;    /* its step has said so */
    atomic_u32 is_running;
    atomic_u32 has_lost;  /* a message to it was dropped that no step had seen */
    atomic_u32 accepted;  /* messages, but for those of skua_yield_send, as the next two */
    atomic_u32 seen;      /* by a step */
    atomic_u32 dead;      /* reported as dead letters */
    atomic_u32 overflows; /* messages that were refused and had to end it */
    atomic_u32 knocks;    /* those of skua_yield_send that have, or may get, a place */
    atomic_u32 cancels;   /* accepted, but for those of the shutdown */
    atomic_u32 cancels_seen;
    atomic_u32 open_ends;      /* open requests that must end by themselves */
    atomic_u32 failed_in_step; /* the number of its step, or 0 */
    atomic_u32 blocks;         /* waits for its requests, not for just any event */
    int outcome;               /* of its spawn; written by whoever started it */
    int exit_error;            /* written by on_exit */
    bool has_finished;         /* its step has called skua_done */
    /* Of the process itself. */
    bool continues; /* its next step ends with SKUA_EVENT_CONTINUE; a later one, of a task */
    struct own_memory own[OWN_MAX];
    uint32_t own_count;
    size_t own_bytes;
    uint32_t children;
    uint32_t open[OPEN_MAX]; /* requests that have not ended */
    uint32_t open_count;
    skua_socket listener;
    struct wire *wires[WIRES_OWN_MAX]; /* its sockets that it knows of */
    uint32_t wire_count;
};

/* ---- letters.c ---- */

enum letter_kind { LETTER_MESSAGE = 1, LETTER_SPAWN, LETTER_COMMAND, LETTER_RESULT, LETTER_EXIT };

/* What every payload carries. `number` is that of the message, actor or request it belongs to. */
struct letter {
    uint32_t kind;
    uint32_t number;
    uint64_t check;
    uint64_t noise;
};

void letters_begin(void);

/* After the runtime is gone. */
void letters_check(void);

/* A payload with a letter, in one of the ways that payloads can hold it. */
skua_payload letter_wrap(enum letter_kind kind, uint32_t number, uint64_t *random);

/* The same, with memory of a process: skua_payload_alloc. */
skua_payload letter_alloc(skua_context *ctx, enum letter_kind kind, uint32_t number,
                          uint64_t *random);

/* A payload that is larger than the runtime allows. */
skua_payload letter_too_large(uint64_t *random);

/* Whether the payload has a letter of this kind; one that is there but not as it was is a fault. */
bool letter_read(const skua_payload *payload, enum letter_kind kind, struct letter *letter);

/* ---- ledger.c ---- */

/* The program that runs, and its runtime. Written while no other thread runs. */
struct world {
    struct program program;
    skua_runtime *runtime;
    atomic_u32 stop_has_begun;
    atomic_u32 survivors;
};

extern struct world world;

/* The number of a thing that there was no room for. */
#define NONE UINT32_MAX

void ledger_begin(void);

/* After the runtime is gone: whether everything came to its end as it should. */
void ledger_check(void);

/* Says what is wrong, and remembers it. */
void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool ledger_has_faults(void);

static inline bool in_simulator(void)
{
    return world.program.driver == DRIVER_SIM;
}

/* A new one, made from `key`; null if there are enough. */
struct actor *actor_new(uint64_t key);
struct actor *actor_at(uint32_t number);
uint32_t actor_count(void);

/* The actor with a PID; null if there is none. */
struct actor *actor_find(skua_pid pid);

skua_pid actor_pid(struct actor *actor);

/* Whether it may have ended, or be about to. */
bool actor_may_have_ended(struct actor *actor);

void actor_initialise(struct actor *actor, skua_pid pid);
void actor_spawned(struct actor *actor, int error, skua_pid pid);
bool may_lack_memory(int error);
void actor_step_begins(struct actor *actor, skua_pid pid, const skua_event *events, size_t count);
void actor_step_ends(struct actor *actor);
void actor_closes(struct actor *actor);

/* on_exit and on_survivor of the runtime, and what the simulator records. */
void ledger_on_exit(void *arg, skua_exit *exit);
void ledger_on_survivor(void *arg, const skua_process_snapshot *info);
void ledger_on_record(const skua_sim_record *record);
void ledger_on_log(void *arg, const skua_log *log);

/* A cancel event: its reason is ERROR_CANCEL - number. */
uint32_t cancel_new(struct actor *to);
void cancel_sent(uint32_t number, int error, bool must_arrive);
void cancel_seen(struct actor *actor, const skua_event *event);

/* Whether nothing can happen any more to any process unless it comes from outside; if that was
 * expected, says why not. */
bool ledger_is_at_rest(bool is_expected);

/* Names the process as the simulator's trace does, too. */
void actor_expect(bool holds, struct actor *actor, const char *otherwise);

/* Whether a message or a cancel event may be refused so. */
bool may_be_unreachable(struct actor *to, int error, bool must_arrive);

struct agent;

/* ---- mail.c ---- */

enum way { WAY_PLAIN, WAY_URGENT, WAY_YIELD };

void mail_begin(void);
void mail_actor_begins(uint32_t number);

/* After the runtime is gone: whether each message was seen, refused or reported. */
void mail_check(void);

/* Of a runtime that has stopped: whether it has counted the same. */
void mail_check_stats(const skua_stats *total);

/* A message about to be sent. Not by skua_yield_send: then what came of it. */
uint32_t message_new(const struct agent *agent, struct actor *to, enum way way);
void message_sent(uint32_t number, int error, bool must_arrive);

/* By skua_yield_send: whether the yield was accepted; then its completion; whether it may be so. */
void message_yielded(uint32_t number, bool is_accepted);
void message_admitted(uint32_t number, int error);
bool message_may_fail(uint32_t number, int error);

/* What a step gets. */
void message_seen(struct actor *actor, const skua_event *event);
bool message_is_urgent(const skua_event *event);

/* What carried it was dropped. */
void message_dropped(uint32_t number);
void mail_on_dead_letter(void *arg, const skua_dead_letter *letter);

/* It says that this socket is the receiver's now. */
void message_load(uint32_t number, struct wire *wire);
struct wire *message_cargo(const skua_event *event);

/* ---- requests.c: yields ---- */

/* Those before REQUEST_COMMANDS are the numbers of commands. */
enum request_kind {
    REQUEST_NOW = 1, /* the handler returns the result */
    REQUEST_FAILING, /* or an error */
    REQUEST_LATER,   /* it completes later */
    REQUEST_NEVER,   /* or never */
    REQUEST_INSIDE,  /* it completes before it returns, perhaps twice */
    REQUEST_UNSAFE,  /* has no double in the simulator */
    REQUEST_UNKNOWN, /* nobody carries it out */
    REQUEST_COMMANDS,
    REQUEST_ACCEPT, /* this and the following: of sockets */
    REQUEST_CONNECT,
    REQUEST_READ,
    REQUEST_READ_EXACTLY,
    REQUEST_READ_UNTIL,
    REQUEST_HANGUP,
    REQUEST_WRITE,
    REQUEST_SEND,
    REQUEST_SLEEP,
    REQUEST_TIMER,
    REQUEST_FOREVER, /* a timer that never comes */
    REQUEST_TICKER,
    REQUEST_BLOCKING,
    REQUEST_BLOCKING_NARROW,  /* on a pool that is often full */
    REQUEST_BLOCKING_NOWHERE, /* on a pool that does not exist */
};

struct request {
    /* Written by the process in its step. */
    struct actor *actor;
    uint32_t number;
    uint32_t step;
    enum request_kind kind;
    uint64_t tag;
    int expected; /* what its completion says if nothing gets in the way */
    uint64_t random;
    uint64_t earliest; /* instants, like the next */
    uint64_t deadline;
    uint64_t period;
    uint64_t last_tick;
    uint32_t ticks;
    bool is_shared; /* others of the process have the same tag */
    bool is_accepted;
    bool is_cancelled;
    bool has_result;
    uint32_t message;  /* of a send */
    struct wire *wire; /* of a read, write or hangup */
    uint32_t size;     /* of those: bytes that it wants or has */
    bool has_rival;    /* another of the same kind was open on the same socket */
    /* Of any thread. */
    atomic_u32 handled;   /* calls of the handler or the blocking function */
    atomic_u32 completed; /* calls of skua_command_complete that were accepted */
    atomic_u32 pending;   /* the handler has left it so */
    atomic_u32 abandoned; /* and was told that nobody waits for it */
};

void requests_begin(void);
void requests_check(void);

/* Something random to yield, many of them, to take back, to be refused. */
void request_make(struct actor *actor, skua_context *ctx, uint64_t *random);
void request_make_many(struct actor *actor, skua_context *ctx, uint64_t *random);
void request_take_back(struct actor *actor, skua_context *ctx, uint64_t *random);
void request_misuse(skua_context *ctx, uint64_t *random);

/* What a step gets. */
void request_completed(struct agent *agent, const skua_event *event);
void request_ticked(struct actor *actor, skua_context *ctx, const skua_event *event);

/* A new one of this kind, with a tag of its own; null if there are enough. Then whether it was
 * accepted. */
struct request *request_begin(struct actor *actor, enum request_kind kind, uint64_t *random);
void request_begun(struct request *request, skua_context *ctx, uint64_t timeout_ns, int error);

/* Writes down what others want to know of the open ones: also when a socket was closed. */
void requests_note(struct actor *actor);

/* Says which of them should have ended: of a process that nobody runs. */
void requests_blame(const struct actor *actor);

/* Whether the process has one of this kind open, on this socket. */
bool request_is_open(const struct actor *actor, enum request_kind kind, const struct wire *wire);

/* The handler or the function is called with this payload; null if that is a fault. */
struct request *request_handled(const skua_payload *input, bool is_blocking);

/* The handler is told that nobody waits for this call any more. */
void request_abandoned(struct request *request);

/* ---- wire_books.c ---- */

/* One end of a connection. What is written there is a stream whose first bytes say which end it
 * comes from, and whose others follow from that and their places. */
struct wire {
    uint32_t number; /* never changes: the other end reads it, too */
    /* Of the process that has it. */
    skua_socket socket;
    unsigned char head[8]; /* the first bytes that were read */
    bool is_shut_down;
    uint32_t read_in_step; /* of its process */
    bool has_limit;        /* it may be full */
    bool has_read_all;     /* to the end of input */
    /* Of any thread. */
    atomic_u32 written; /* bytes, also those that wait */
    atomic_u32 read;
    atomic_u32 peer;        /* the other end, from 1; 0: not known yet */
    atomic_u32 is_closed;   /* by its process, or with it */
    atomic_u32 is_ended;    /* shut down, or closed in an orderly way */
    atomic_u32 was_reset;   /* its process has ended in another way */
    atomic_u32 is_broken;   /* its process was told so */
    atomic_u32 is_adrift;   /* given away, and its new process does not know yet */
    atomic_u32 may_be_idle; /* too long */
    atomic_u32 waits_for_bytes;
    atomic_u32 waits_for_end; /* both: without a timeout */
};

void wires_begin(void);
void wires_check(void);

/* Null if there are enough. */
struct wire *wire_new(skua_socket socket);

/* Bytes of the stream from this one on. */
void wire_fill(const struct wire *wire, uint32_t from, unsigned char *bytes, size_t size);

/* These have been read. */
void wire_read(struct wire *wire, const unsigned char *bytes, size_t size);
void wire_read_all(struct wire *wire);

/* What is known of it, for those who have to find out. */
void wire_describe(struct wire *wire, char *text, size_t size);

/* Whether nobody waits for what has been written, or ended, at the other end; if that was expected,
 * says who does. */
bool wires_are_at_rest(bool is_expected);

/* ---- wires.c ---- */

/* Something random with sockets. */
void wires_act(struct agent *agent);

/* What a step gets: a completion of a socket's; a message with one. */
void wires_completed(struct agent *agent, struct request *request, const skua_event *event);
void wires_received(struct agent *agent, const skua_event *event);

/* A process begins, or ends. */
void wires_start(struct agent *agent);
void wires_close(struct actor *actor, const skua_exit *exit);

/* ---- commands.c ---- */

/* Before the runtime starts; and, on threads, the thread that completes commands later. */
void commands_register(void);
void commands_start(void);

/* After the runtime has stopped. What has not been completed is completed too late. */
void commands_end(void);

/* For skua_yield_blocking. */
#define POOL_NARROW "narrow"
extern skua_pool pool_narrow;
int command_block(skua_payload *input, skua_payload *result);

/* ---- actions.c ---- */

/* Who acts: a process in its init or step, or a thread outside. */
struct agent {
    skua_context *ctx;   /* null: outside */
    struct actor *actor; /* null: outside */
    uint32_t sender;
    uint32_t step; /* of the process: init is 0, and close one more than the last */
    uint64_t random;
};

/* To somebody chosen by chance, who may be long gone. */
void act_yield_send(struct agent *agent);
void act_send(struct agent *agent);
void act_flood(struct agent *agent);
void act_cancel(struct agent *agent);
void act_terminate(struct agent *agent);
void act_look(struct agent *agent);

void act_spawn(struct agent *agent);

/* With a socket of the process; whether it is the child's now. */
bool act_spawn_owner(struct agent *agent, struct wire *wire);

/* Gives a socket to somebody chosen by chance, and tells him; whether it is his now. */
bool act_give(struct agent *agent, struct wire *wire);

/* Outside only. */
void act_wait(struct agent *agent);
void act_run(struct agent *agent);

/* ---- crews.c ---- */

/* Before the runtime is created; when it runs; after it is gone. */
void crews_begin(void);
void crews_start(void);
void crews_check(void);

/* Starts a child, or ends somebody. */
void act_crew(struct agent *agent);

/* Whether one of theirs has ended; whether a type is theirs. */
bool crews_on_exit(const skua_exit *exit);
bool crews_own(const char *type_name);

/* As of others; how many have ended; whether there are any. */
bool crews_are_at_rest(bool is_expected);
uint32_t crews_ended(void);
bool crews_are_used(void);

/* ---- script.c ---- */

extern const skua_process_type script_types[TYPES];

/* ---- outside.c ---- */

/* Runs a program and checks it; false if a property does not hold. *hash is that of the simulator,
 * or 0. */
bool program_run(const struct program *program, uint64_t *hash);

#endif
