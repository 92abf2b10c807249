/* SPDX-License-Identifier: MIT */
/* What the programs of tests/stress share: their arguments, random numbers and pauses, counters of
 * operations, a record of what went wrong, and a watchdog that ends a hang.
 *
 *   static struct stress stress;
 *   int main(int argc, char **argv)
 *   {
 *       stress_begin(&stress, argc, argv, 10000000);
 *       ... threads that call stress_count and stress_fault, until !stress_goes_on ...
 *       return stress_end(&stress);
 *   }
 *
 * Every thread draws from a stream of its own (stress_stream), so one seed gives one run, as far as
 * the order in which the threads run allows. */
#ifndef SKUA_TESTS_STRESS_SUPPORT_H
#define SKUA_TESTS_STRESS_SUPPORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/random.h"

#define STRESS_THREADS_MAX 16

enum stress_fault {
    STRESS_LOST,       /* went in and did not come out */
    STRESS_DOUBLED,    /* came out more often than it went in */
    STRESS_CORRUPT,    /* came out with another content */
    STRESS_DISORDERED, /* came out in the wrong order */
    STRESS_BROKEN,     /* something else that must not happen */
    STRESS_FAULT_KINDS,
};

struct stress_counter {
    CACHE_ALIGNED atomic_u64 value;
};

struct stress {
    const char *name;
    uint64_t ops;
    bool is_short;     /* nobody has said how many operations */
    atomic_u32 enough; /* a short run has taken long: the machine is busy with something else */
    uint64_t seed;
    uint64_t start_ns;
    struct stress_counter counters[STRESS_THREADS_MAX];
    atomic_u64 faults[STRESS_FAULT_KINDS];
    struct {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool stop; /* under lock */
        void (*describe)(void);
    } watchdog;
};

/* ---- the frame of a program ---- */

/* Reads --ops and --seed, prints the seed, and starts the watchdog. `default_ops` is for an
 * optimized build; sanitizer builds do a fraction of it. */
void stress_begin(struct stress *stress, int argc, char **argv, uint64_t default_ops);

/* What the watchdog prints before it aborts; may be null. */
void stress_describe_with(struct stress *stress, void (*describe)(void));

/* Prints the result; returns the exit code of the program. */
NODISCARD int stress_end(struct stress *stress);

/* Runs `count` threads, the i-th as function(&args[i]) with args of `arg_size` bytes each, until
 * all have returned. */
void stress_run_threads(uint32_t count, void *(*function)(void *), void *args, size_t arg_size);

/* One thread more; aborts if the system refuses. */
pthread_t stress_start_thread(void *(*function)(void *), void *arg);

/* Records a fault and says what happened (the first few times). */
void stress_fault(struct stress *stress, enum stress_fault fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

bool stress_has_failed(struct stress *stress);

/* ---- counting operations ---- */

/* Adds to the operations of one thread; threads have numbers below STRESS_THREADS_MAX. */
static inline void stress_count(struct stress *stress, uint32_t thread, uint64_t operations)
{
    (void)fetch_add_relaxed(&stress->counters[thread].value, operations); /* statistic */
}

/* Operations of all threads so far. */
uint64_t stress_done(struct stress *stress);

/* False once `ops` operations are done, something went wrong, or a short run has taken a minute:
 * with busy neighbours a thread that has to be woken for each operation makes few of them. */
static inline bool stress_goes_on(struct stress *stress, uint64_t ops)
{
    return stress_done(stress) < ops && !stress_has_failed(stress) &&
           load_relaxed(&stress->enough) == 0; /* orders nothing */
}

/* ---- random numbers and pauses ---- */

/* The state of the n-th random stream of this run, for random_next and random_below. */
static inline uint64_t stress_stream(const struct stress *stress, uint64_t n)
{
    return random_mix(random_mix(stress->seed) + n);
}

static inline bool once_in(uint64_t *random, uint32_t rarity)
{
    return random_below(random, rarity) == 0;
}

/* Once in `rarity` calls: a pause of a random length, by turning or by giving way. */
void stress_pause(uint64_t *random, uint32_t rarity);

/* ---- parcels ---- */

/* A thing that must come out exactly once, with its content. It is used again and again, with
 * another serial number each time. Content is plain memory: a taker to whom it was not handed
 * over properly is a race that a thread sanitizer reports. */
struct stress_parcel {
    atomic_u64 under_way; /* its serial, or 0 while it is free */
    uint64_t serial;
    uint64_t check;
};

static inline bool stress_parcel_is_free(struct stress_parcel *parcel)
{
    return load_acquire(&parcel->under_way) == 0; /* the taker is done with the content */
}

/* Fills a free parcel; `serial` is not 0. If several threads look for free ones, they must settle
 * first whose it is. */
static inline void stress_parcel_fill(struct stress_parcel *parcel, uint64_t serial)
{
    parcel->serial = serial;
    parcel->check = random_mix(serial);
    store_relaxed(&parcel->under_way, serial); /* handed over by what is tested */
}

/* Takes a parcel that has come out: checks and frees it. Returns its serial. */
uint64_t stress_parcel_empty(struct stress *stress, struct stress_parcel *parcel);

/* At the end: a parcel that is still under way is lost. */
void stress_parcel_expect_free(struct stress *stress, struct stress_parcel *parcel);

#endif
