/* SPDX-License-Identifier: MIT */
/* What the files of the explorer share. explore.h is for models.
 *
 *  explore.c   runs schedules
 *  search.c    chooses them
 *  memory.c    the values of atomic words, and which of them a thread may see
 *  shadow.c    plain memory: who touched it last
 *  blocking.c  mutexes, condition variables, futexes, joins
 *  trace.c     prints */
#ifndef SKUA_MODEL_EXPLORER_H
#define SKUA_MODEL_EXPLORER_H

#include "explore.h"
#include "fiber.h"

#define STEPS_MAX     4000 /* of a schedule; more means that it does not end */
#define LOCATIONS_MAX 256
#define NOBODY        (-1)

/* What a thread knows: what it passes on by releasing and gets by acquiring. */
struct knowledge {
    /* Happens-before: all that thread i did up to its instant clock[i] came before. */
    uint16_t clock[EXPLORE_THREADS_MAX];
    /* The view: of location i the oldest message that can still be read. From `locations` on all
     * are 0. Kept only while loads may be stale. */
    uint32_t locations;
    uint16_t oldest[LOCATIONS_MAX];
};

/* What a thread is about to do. */
struct step {
    const struct model_site *site;
    const volatile void *address; /* null: touches everything */
    uint64_t operand;
    uint64_t expected; /* by a compare-exchange */
};

enum thread_state { THREAD_AWAKE, THREAD_ASLEEP, THREAD_ENDED };

struct thread {
    struct fiber fiber;
    const struct explore_thread *what;
    uint32_t number;
    enum thread_state state;
    struct step next;
    uint32_t locks; /* closed mutexes it holds */
    uint32_t spurious_wakes;
    uint32_t timeouts;
    bool has_deadline; /* while asleep */
    struct knowledge knowledge;
};

enum outcome { ENDED, CUT, FAILED };

struct explorer {
    const struct explore_model *model;
    struct explore_result result;
    struct thread threads[EXPLORE_THREADS_MAX];
    int thread_count;

    /* The schedule that runs. */
    int running;         /* NOBODY: the explorer itself */
    int previous;        /* who made the last step */
    uint32_t message;    /* which one the running step reads, counted back from the newest */
    uint32_t stale_left; /* loads that may still read an older message */
    uint32_t position;   /* steps made */
    enum outcome outcome;
    bool tracing;
};

extern struct explorer explorer;

static inline struct thread *running_thread(void)
{
    return explorer.running == NOBODY ? NULL : &explorer.threads[explorer.running];
}

/* ---- explore.c ---- */

/* The running thread has reached its next step, thread->next; returns when it is chosen. */
void reach(struct thread *thread);

/* Ends the schedule as failed. */
__attribute__((format(printf, 1, 2))) _Noreturn void fail_with(const char *format, ...);

bool is_ignored(const volatile void *address);

/* ---- search.c ---- */

/* The thread that makes the next step, or NOBODY at the end of the schedule. */
int choose(void);

void search_begin(void);
/* The next schedule of a search; false if there is none. */
bool search_advance(void);

void random_begin(void);
/* Before the n-th random schedule. */
void random_vary(uint32_t n);

/* To repeat the schedule that has run, or one that was printed. */
void replay_begin(void);
void replay_begin_with(const char *schedule);

void print_schedule(void);

/* ---- memory.c ---- */

/* Before every schedule, once the threads are known. */
void memory_begin(void);

/* How many messages a step may choose from; 1: there is no choice. */
uint32_t memory_choices(const struct thread *thread, const struct step *step);

/* The newest value of a word, without being a step. */
uint64_t memory_peek(const volatile void *address, size_t size);

void knowledge_join(struct knowledge *to, const struct knowledge *from);
/* `to` gets what the thread knows; what the thread does from now on is later. */
void knowledge_release(struct knowledge *to, struct thread *thread);

/* ---- shadow.c ---- */

enum access_kind { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC_READ, ACCESS_ATOMIC_WRITE };
#define ACCESS_KINDS 4

/* Before every schedule. */
void shadow_begin(void);

/* Fails if the running thread races with what others did. `where` is the address of the code that
 * does it, or for an atomic access its place as text. */
void shadow_touch(enum access_kind kind, const volatile void *start, size_t size,
                  const void *where);

/* ---- blocking.c ---- */

/* Before every schedule. */
void blocking_begin(void);

/* Whether a thread that is awake can make its next step. */
bool can_go_on(const struct step *next);

/* Whether a thread sleeps and the explorer may let its time pass. */
bool may_time_out(const struct thread *thread);

/* ---- trace.c ---- */

/* "tests/model/x.c" is "model/x.c". */
const char *short_path(const char *path);

/* Prints a step, if a trace is wanted, and what it did. */
__attribute__((format(printf, 2, 3))) void trace_step(const struct step *step, const char *effect,
                                                      ...);

#endif
