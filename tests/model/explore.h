/* SPDX-License-Identifier: MIT */
/* The interleaving explorer: runs a small program of two to five threads under every schedule, or
 * under many, and checks each.
 *
 * The threads are coroutines on one real thread. Before every atomic operation (instrument.h) the
 * running one may be left for any other; what lies between two atomic operations is never
 * interrupted. A schedule is the list of threads that made the steps, and for loads which value
 * they saw, so it can be repeated. The search is depth first: run a schedule, change its last
 * choice that has another option, run again.
 *
 * What it can see, and what not:
 *  - Weak memory: a load may see an older value, as far as the memory orders that the source names
 *    allow it, in as many loads of a schedule as the model says (`stale`). memory.c has the rules.
 *    Not seen is what needs a store to take effect before an earlier load or store of its thread,
 *    or two stores to one word to be in another order than they were made in (load buffering,
 *    2+2W): each store takes effect at once, and is the newest. A read-modify-write and what is
 *    done in a closed mutex use the newest value.
 *  - Data races: a plain access (of the library, the rig and the models) that is not ordered after
 *    another thread's to the same bytes fails the schedule, whatever was read. shadow.c says what
 *    is left out; memory that only the model uses, in no order, is marked EXPLORE_OWN. Clang before
 *    15 does not tell of copies of whole structures.
 *  - A mutex with all that is done while it is held is one step, unless the model says otherwise.
 *    That loses nothing as long as at most one word that is used in it is also used without it.
 *  - Sleeping on a futex or a condition variable is real: a sleeper runs again only when woken, or
 *    when the explorer lets its deadline pass. If all threads sleep, no wake-up is under way, and
 *    the model says whether that may be.
 *
 * A failed check, a failed SKUA_ASSERT, a data race and threads that all sleep print the schedule
 * as a trace, and the arguments with which the program repeats it. */
#ifndef SKUA_MODEL_EXPLORE_H
#define SKUA_MODEL_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "count_of.h"

#define EXPLORE_THREADS_MAX 5

enum explore_mode {
    /* All schedules, but of those that differ only in the order of neighbouring steps which do not
     * touch the same word, or only read it, just one (sleep sets, Godefroid 1996). */
    EXPLORE_ALL,
    /* All schedules, literally; if `bound` is not 0, those with at most so many preemptions. */
    EXPLORE_EACH,
    /* All schedules in which at most `bound` times a thread is left that could have gone on. Of
     * those in which what it does next might as well have been done before it was left, just that
     * one. */
    EXPLORE_PREEMPTIONS,
    /* `bound` schedules chosen at random: half of them with a bias to stay with a thread, half by
     * priorities that change at one to three moments (PCT). */
    EXPLORE_RANDOM,
};

struct explore_thread {
    const char *name;
    void (*run)(const void *arg);
    const void *arg;
};

#define EXPLORE_THREAD(name_, run_, arg_)                                                          \
    {                                                                                              \
        .name = name_, .run = run_, .arg = arg_                                                    \
    }

struct explore_model {
    const char *name; /* distinct within a program */
    enum explore_mode mode;
    uint32_t bound;
    uint64_t seed; /* of random schedules; explore_main sets it */
    /* How many loads of one schedule may see an older value than the newest. 0: none, all is
     * sequentially consistent; UINT32_MAX: any number. If 0, explore_main explores the model once
     * more: some random schedules with a few stale loads. */
    uint32_t stale;
    bool never_stale; /* not even then: the model relies on seeing what is newest */
    /* How often each thread may wake from a futex for no reason, in one schedule. */
    uint32_t spurious_wakes;
    /* How often the deadline of a wait of each thread may pass, in one schedule: at any moment, or,
     * if time is slow (not with EXPLORE_ALL), when nobody else can go on. */
    uint32_t timeouts;
    bool time_is_slow;
    /* Locking a mutex is a step, and so is every atomic operation while it is held. */
    bool mutexes_are_open;
    /* Makes the same initial state before every schedule. */
    void (*setup)(void);
    struct explore_thread threads[EXPLORE_THREADS_MAX]; /* unused ones are zero */
    /* All threads that have not ended are asleep: whether that is a good end. Null: it never is. */
    bool (*may_rest)(void);
    /* Checks the final state; may be null. */
    void (*finish)(void);
};

struct explore_result {
    uint64_t schedules; /* run to their end */
    uint64_t cut;       /* given up because others cover them */
    uint32_t steps;     /* of the longest */
    bool failed;
};

/* What a program that consists of models does in main. Arguments: none (all models), a model's name
 * (that one), a name and a schedule (repeats it and prints its trace). Before them, instead of what
 * the model says: -r COUNT for so many random schedules, with -s SEED; -p BOUND for all schedules
 * with so many preemptions; -w COUNT for so many stale loads. --table prints one line of fields for
 * each model, for scripts; --quiet prints no traces and ends with the first failure. */
int explore_main(int argc, char **argv, const struct explore_model *models, size_t count);

#define EXPLORE_MAIN(models_)                                                                      \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return explore_main(argc, argv, models_, COUNT_OF(models_));                               \
    }

/* Explores one model. Prints nothing but, unless `quiet`, the trace of a failure. */
struct explore_result explore(const struct explore_model *model, bool quiet);

/* Runs one schedule and prints its trace; false if it fails. */
bool explore_repeat(const struct explore_model *model, const char *schedule);

/* Marks a static variable of a model that several threads may touch in any order: it counts, or
 * notes something, and is no part of what is tested. Plain accesses to it do not race. */
#define EXPLORE_OWN __attribute__((section("explore_own")))

/* ---- for setup ---- */

/* Operations on this memory are no steps: it is not written while the threads run, or only counts
 * things. */
void explore_ignore(const volatile void *start, size_t size);

/* Takes that back, for memory that was ignored from `start` on. */
void explore_heed(const volatile void *start);

/* ---- for threads ---- */

/* Waits until *counter is not zero and takes one off, in one step. */
#define explore_take(counter)                                                                      \
    explore_take_at((counter),                                                                     \
                    MODEL_SITE(counter, MODEL_TAKE, memory_order_seq_cst, memory_order_seq_cst))
struct model_site;
void explore_take_at(atomic_u32 *counter, const struct model_site *site);

/* The value of an atomic word, without a step. */
#define explore_peek(word) ((MODEL_TYPE(word))(uintptr_t)explore_peek_at((word), sizeof *(word)))
uint64_t explore_peek_at(const volatile void *address, size_t size);

/* A line in the trace. */
__attribute__((format(printf, 1, 2))) void explore_note(const char *format, ...);

/* ---- for may_rest ---- */

/* Whether a thread, counted from 0, sleeps without a deadline. */
bool explore_sleeps_for_good(uint32_t thread);

/* ---- for threads, may_rest and finish ---- */

/* Ends the schedule as failed. `what` says what should have held, with the invariant's name. */
#define EXPLORE_CHECK(expression, what)                                                            \
    (LIKELY(expression) ? (void)0 : explore_fail(#expression, what, __FILE__, __LINE__))

_Noreturn void explore_fail(const char *expression, const char *what, const char *file, int line);

#endif
