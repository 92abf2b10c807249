/* SPDX-License-Identifier: MIT */
/* What the processes and threads of a stress program do to a runtime, with every outcome counted,
 * so that the end of a round (stress_round.h) can compare the counts. */
#ifndef SKUA_TESTS_STRESS_LOAD_H
#define SKUA_TESTS_STRESS_LOAD_H

#include <skua/skua.h>

#include "stress_support.h"

extern struct stress stress;

/* The round under way. All but the atomics is written while no other thread runs. */
struct stress_round {
    skua_runtime *runtime;
    skua_runtime_config config;
    uint32_t known_pids;    /* how many are known at a time, up to STRESS_KNOWN_MAX */
    bool is_graceful;       /* everybody finishes by himself */
    uint64_t ops;           /* of all threads, when the round ends */
    atomic_u32 is_stopping; /* stop has been called, or is about to be */
    atomic_u32 is_over;     /* outsiders leave */
};

extern struct stress_round current;

#define STRESS_KNOWN_MAX 256

#define STRESS_ERROR_INIT    (SKUA_E_USER - 1)
#define STRESS_ERROR_STEP    (SKUA_E_USER - 2)
#define STRESS_ERROR_HANDLER (SKUA_E_USER - 3)
#define STRESS_ERROR_CANCEL  (SKUA_E_USER - 4)

/* ---- counting and checking ---- */

/* Programs have more of their own, from TALLIES_SHARED on. */
enum stress_tally {
    TALLY_SPAWNED,
    TALLY_MESSAGES,
    TALLY_LATE,
    TALLY_EXITS,
    TALLY_INITS,
    TALLY_CLOSES,
    TALLY_STUCK,
    TALLIES_SHARED,
    TALLIES_MAX = 32,
};

void stress_tally(uint32_t tally);

/* Of this round so far, and of all rounds before. */
uint64_t stress_total(uint32_t tally);
uint64_t stress_total_before(uint32_t tally);

/* The round is over: its tallies count as of the rounds before. */
void stress_tallies_end(void);

/* Counts one operation of this thread. What outsiders do while a stop is under way does not count
 * as progress: if the stop hangs, the watchdog must see it. */
void stress_operation(void);

/* A thread that is not a worker says so; whether this one has. */
void stress_become_outsider(void);
bool stress_is_outsider(void);

void stress_expect(bool holds, const char *what, int64_t value);
void stress_expect_equal(enum stress_fault fault, const char *what, uint64_t is,
                         uint64_t should_be);

/* ---- PIDs ---- */

/* One of the processes that live or have lived. */
skua_pid stress_random_pid(uint64_t *random);

void stress_forget_pids(void);

/* ---- payloads ---- */

/* The type of a payload. */
enum stress_payload {
    PAYLOAD_TOKEN,
    PAYLOAD_PARCEL_TOKEN,
    PAYLOAD_LETTER,
    PAYLOAD_PARCEL_LETTER,
    PAYLOAD_BALL,
    PAYLOAD_PIPE_END,
    PAYLOAD_OTHER,
};

/* Sender: a PID, or the number of an outsider, or 0 if the order is not checked. */
struct stress_letter {
    uint64_t sender;
    uint64_t serial;
    uint64_t check;
};

/* What a payload may own. */
struct stress_load {
    struct stress_parcel parcel;
    uint64_t token;
    struct stress_letter letter;
    int fd; /* one end of a pipe */
    bool writes;
};

/* A free one, or null if a few tries find none. */
struct stress_load *stress_load_take(uint64_t *random);

/* As the drop function of a payload. */
void stress_load_drop(void *load, size_t size);

/* None is under way any more. */
void stress_loads_expect_free(void);

/* A number, sometimes in a parcel that must be dropped. */
skua_payload stress_make_token(uint64_t *random, uint64_t token);
uint64_t stress_read_token(const skua_payload *payload);

/* The token of the yield of a process. */
static inline uint64_t stress_yield_token(skua_pid self, uint64_t tag)
{
    return random_mix(self.bits + random_mix(tag));
}

/* ---- calls: each outcome is checked and counted ---- */

void stress_sent(int error);

/* Of a spawn or submit; the PID becomes known unless it is null. */
void stress_spawned(uint64_t *random, int error, const skua_pid *pid);

int stress_complete(skua_completion completion, skua_payload result);

int stress_wait(skua_pid pid, uint64_t timeout_ns);

/* Terminates or cancels some process. */
void stress_end_some(uint64_t *random, bool terminates);

void stress_read_statistics(void);

/* Registers a handler. */
void stress_register(uint32_t id, skua_handler_fn *run, const void *arg);

/* ---- jobs: what a thread of its own does later ---- */

/* Completes the command, sometimes twice; or does something with a load. */
struct stress_job {
    skua_completion completion;
    uint64_t token;
    struct stress_load *load;
    void (*run)(uint64_t *random, struct stress_load *load); /* null: the command */
};

/* False if there is no room: the caller then has to do it. */
bool stress_defer(const struct stress_job *job);

/* Between these the thread runs. The end comes when all jobs are done. */
void stress_jobs_begin(uint64_t random);
void stress_jobs_end(void);

/* ---- processes ---- */

/* At the beginning of a process's state. */
struct stress_process {
    uint32_t magic;
    uint16_t steps_left;
    bool is_finishing;
    bool was_stopped; /* has seen the cancel event of the shutdown */
};

/* In init, in close, at the beginning and end of a step, and at a cancel event. */
void stress_process_begin(struct stress_process *process, uint32_t steps);
void stress_process_end(struct stress_process *process);
void stress_process_check(const struct stress_process *process);
void stress_process_cancelled(struct stress_process *process, const skua_event *event,
                              uint64_t *random);

#endif
