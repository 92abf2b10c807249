/* SPDX-License-Identifier: MIT */
/* What the commands that inspect a running program share: their options, and what they read
 * there. */
#ifndef COMMAND_INSPECT_INSPECT_H
#define COMMAND_INSPECT_INSPECT_H

#include <skua/stats.h>

#include "command/inspect/client.h"

/* Room for an address, for the name and label of a process, and for the name of a type: programs
 * send no longer ones. */
enum { ADDRESS_TEXT_SIZE = 128, NAME_TEXT_SIZE = 160, TYPE_TEXT_SIZE = 65 };

/* ---- options.c: what their command lines share ---- */

/* The line of --help about the option that they all have. */
#define HELP_PROGRAM "  -p, --program PID[.N]  which program, if there are several\n"

/* Whether an argument is the option -h, --help; or -p, --program. */
bool is_help(const char *text);
bool is_program(const char *text);

/* A duration from 10 ms to an hour, as option_duration. */
bool option_interval(const char *command, char **argv, int *i, uint64_t *interval_ns);

/* Complains about an argument that no option takes. Returns STATUS_USAGE. */
int unknown_argument(const char *command, const char *argument);

/* Returns the status, or STATUS_FAILURE after a complaint if what was printed got lost. */
int finish_output(const char *command, int status);

/* ---- processes.c: lists of processes and sockets ---- */

/* What a process waits for, in words. */
struct wait_text {
    char text[400]; /* a socket has two addresses */
};

struct process_row {
    uint64_t pid;
    uint64_t mailbox;
    uint64_t steps;
    uint64_t run_ns;
    uint64_t age_ns;
    char type[TYPE_TEXT_SIZE + 12]; /* and the version, if it has one */
    char state[16];
    uint64_t supervisor; /* a PID; 0: none */
    /* By rows_describe. */
    char name[NAME_TEXT_SIZE]; /* the first, how many more, and the label; or - */
    uint64_t yields;
    struct wait_text waits;
    bool is_task;     /* and waits */
    char where[65];   /* file and line of that; or empty */
    char stack[48];   /* how much of it was used, of how much; or - */
    char sockets[24]; /* how many it has; or - */
};

enum { PAGE_ROWS_MAX = 256 };

struct process_page {
    size_t count;
    struct process_row rows[PAGE_ROWS_MAX];
    uint64_t live; /* processes alive */
    uint64_t more; /* the next page begins after this one; 0: there is none */
};

enum process_sort { SORT_PID, SORT_STEPS, SORT_MAILBOX, SORT_RUN, SORT_AGE };

/* The name as the user gives it and the protocol has it. */
const char *sort_name(enum process_sort sort);
bool parse_sort(const char *text, enum process_sort *sort);

/* Which processes are listed; null: all. */
struct process_filter {
    const char *state;
    const char *type;
};

/* Up to `limit` rows of those after `after`, in the order of SORT_PID. There may be fewer, or none,
 * and more to come. */
enum client_result page_read(struct client *client, const struct process_filter *filter,
                             uint64_t after, size_t limit, struct process_page *page);

/* The `limit` largest. */
enum client_result page_read_largest(struct client *client, enum process_sort sort, size_t limit,
                                     struct process_page *page);

/* A line `process`. False if it makes no sense. */
bool row_read(const struct line *line, struct process_row *row);

/* A line `socket`, as the program says it. */
struct socket_row {
    uint64_t socket;
    uint64_t owner; /* 0: nobody */
    char type[65];  /* of the owner */
    char state[16];
    char local[ADDRESS_TEXT_SIZE];
    char peer[ADDRESS_TEXT_SIZE]; /* - if there is none; likewise above */
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t queued;
    uint64_t idle_ns;
};

/* False if it makes no sense. */
bool socket_row_read(const struct line *line, struct socket_row *row);

/* ---- describe.c: what processes say of themselves ---- */

/* Asks the program for the names of these, and what they wait for. Programs of versions that cannot
 * tell are no failure. */
enum client_result rows_describe(struct client *client, struct process_row *rows, size_t count);

/* The same for the first names and the labels of these processes, as far as they answer; empty:
 * none. `take` returns false to give up: then that is CLIENT_BROKEN. */
typedef bool names_fn(void *arg, uint64_t pid, const char *name, const char *label);
enum client_result names_describe(struct client *client, const uint64_t *pids, size_t count,
                                  names_fn *take, void *arg);

/* The same for one process without asking: nothing is known, or this line `described`. */
void row_is_unknown(struct process_row *row);
bool row_describe(struct process_row *row, const struct line *line);

/* The lines `task` and `stack` that follow that of a task, and `sockets` of who has any. */
bool row_describe_task(struct process_row *row, const struct line *line);
bool row_describe_stack(struct process_row *row, const struct line *line);
bool row_describe_sockets(struct process_row *row, const struct line *line);

/* Programs count the names, yields and relations of a process up to here: there may be more. */
#define LIST_COUNT_MAX UINT64_C(4096)

/* A line `yield`, of a task or not, `owes` or `socket`, in words. False if it makes no sense. */
bool yield_describe(const struct line *line, bool is_task, struct wait_text *out);
bool request_describe(const struct line *line, struct wait_text *out);
bool socket_describe(const struct line *line, struct wait_text *out);

/* ---- samples.c: counters at one moment, and what has changed since another ---- */

#define COUNTER_NAME(name) COUNTER_##name,
enum counter { SKUA_STATS_MAP(COUNTER_NAME) COUNTERS };
#undef COUNTER_NAME

struct worker_sample {
    uint64_t number;
    bool is_spare;
    char doing[16];
    uint64_t queue;
    uint64_t pid; /* of what it runs; 0: nothing */
    char type[64];
    uint64_t counter[COUNTERS];
};

/* All zero before the first sample_read. */
struct sample {
    uint64_t now_ns;
    uint64_t age_ns;
    uint64_t live;
    uint64_t global; /* processes in the global queue */
    uint64_t sockets;
    uint64_t closing; /* of them */
    uint64_t counter[COUNTERS];
    size_t worker_count;
    size_t worker_capacity;
    struct worker_sample *workers;
};

enum client_result sample_read(struct client *client, struct sample *sample);
void sample_free(struct sample *sample);

/* How much a counter has grown per second of the time between two samples. */
double sample_rate(const struct sample *before, const struct sample *after, enum counter counter);

/* The same for one worker of `after`. */
double worker_rate(const struct sample *before, const struct sample *after,
                   const struct worker_sample *worker, enum counter counter);

/* The CPU time of a worker as a part of the time: 0 to 1. */
double worker_busy(const struct sample *before, const struct sample *after,
                   const struct worker_sample *worker);

/* The same for all workers but spare ones, on average. */
double sample_busy(const struct sample *before, const struct sample *after);

/* Processes that are queued anywhere. */
uint64_t sample_queued(const struct sample *sample);

/* Whether the program has ever had sockets. */
bool sample_has_sockets(const struct sample *sample);

#endif
