/* SPDX-License-Identifier: MIT */
/* What a sleeper (sleeper.h) can yield, and how each kind of yield may end. */
#ifndef SKUA_TESTS_STRESS_YIELDS_H
#define SKUA_TESTS_STRESS_YIELDS_H

#include "stress_load.h"

enum {
    TALLY_YIELDS = TALLIES_SHARED,
    TALLY_COMPLETIONS,
    TALLY_ABANDONED, /* left by processes that ended */
    TALLY_TIMED_OUT,
    TALLY_CANCELLED,
    TALLY_TICKS,
    TALLY_FIRED, /* timers */
    TALLY_READY, /* descriptors */
    TALLY_CLOSED_UNDER,
    TALLY_CALLS, /* on the pool of four */
    TALLY_CALLS_FULL,
    TALLY_CALLS_RUN,
    TALLY_BLOCKS,
    TALLY_STALLS,
    TALLY_STALLS_SEEN,
};

/* A yield that has not completed. */
struct open_yield {
    const struct yield_kind *kind; /* null: the place is free */
    bool is_cancelled;             /* by an earlier step, or earlier in this one */
    bool is_endless;               /* does not end unless it is cancelled */
    bool has_ticked;
    int fd; /* its own descriptor */
    uint64_t tag;
    uint64_t due;      /* does not end well before; for a ticker, the last instant of its grid */
    uint64_t period;   /* of a ticker */
    uint64_t timeout;  /* SKUA_FOREVER: none, and for timers */
    uint64_t deadline; /* does not time out before; SKUA_FOREVER: at no time */
};

struct yield_kind {
    const char *name;
    /* Gets what the yield needs; false if there is enough of that. May be null. */
    bool (*prepare)(struct open_yield *yield, skua_context *ctx, uint64_t *random);
    int (*make)(struct open_yield *yield, skua_context *ctx, uint64_t *random);
    /* It has ended by itself; returns whether it may end like that. */
    bool (*may_end)(const struct open_yield *yield, skua_context *ctx, const skua_event *event);
    /* Gives back what prepare got. May be null. */
    void (*release)(struct open_yield *yield, uint64_t *random);
    bool is_timer;                       /* ends when it is due */
    bool has_no_timeout;                 /* its kind has none */
    const struct yield_kind *brings_too; /* yielded along with it now and then, for the same fd */
};

/* ---- timer_yields.c: time, and commands ---- */

extern const struct yield_kind yield_sleep;
extern const struct yield_kind yield_timer;
extern const struct yield_kind yield_ticker;
extern const struct yield_kind yield_later; /* a command that another thread completes */
extern const struct yield_kind yield_never; /* one that nobody completes */

void register_commands(void);

/* Mostly short; sometimes none at all, an hour or for ever. */
uint64_t random_yield_timeout(uint64_t *random);

/* A ticker has ticked. */
void check_tick(struct open_yield *yield, skua_context *ctx, const skua_event *event);

/* ---- descriptor_yields.c ---- */

extern const struct yield_kind yield_channel; /* waits for a shared descriptor */
extern const struct yield_kind yield_read;    /* waits for a descriptor of its own */
extern const struct yield_kind yield_write;   /* the same, for room in a full pipe */

/* Makes the end at which the owner of a pipe waits ready, one way or the other. */
void serve_pipe(uint64_t *random, struct stress_load *end);

/* No descriptor of anybody's own is left. */
void check_descriptors(void);

/* ---- call_yields.c ---- */

extern const struct yield_kind yield_call; /* a function on the pool of four */
extern const struct yield_kind yield_call_elsewhere;

void register_pools(uint64_t *random);

/* Sleeps for a random while, as a system call does. */
void pause_in_kernel(uint64_t *random, uint32_t most_us);

/* ---- for all of them ---- */

void send_from_outside(uint64_t *random);

/* The result of a yield is the token that it was made with. */
void check_result(const struct open_yield *yield, skua_context *ctx, const skua_event *event);

static inline uint64_t token_of(const struct open_yield *yield, skua_context *ctx)
{
    return stress_yield_token(skua_self(ctx), yield->tag);
}

#endif
