/* SPDX-License-Identifier: MIT */
/* What this machine can do at best: the primitive operations that any runtime is made of, in plain
 * C, and a message loop for one thread that does nothing but pass messages. The figures of
 * `skua bench` are multiples of these.
 *
 *   limits [--runs N] [--json]
 *
 * Every limit is measured several times; printed are the median, the smallest and the largest. */
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define CACHE_LINE 128 /* two lines: neighbours are fetched together */
#define RUNS_MAX   99

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void start_thread(pthread_t *thread, void *(*function)(void *arg))
{
    if (pthread_create(thread, NULL, function, NULL) != 0) {
        fprintf(stderr, "limits: the system refuses a thread\n");
        exit(1);
    }
}

/* ---- read-modify-write, by one thread and by two on the same word ---- */

#define RMWS 20000000u

static struct {
    _Alignas(CACHE_LINE) _Atomic uint64_t word;
    _Alignas(CACHE_LINE) atomic_uint ready;
} shared;

static void *add_many(void *arg)
{
    (void)arg;
    atomic_fetch_add(&shared.ready, 1);
    while (atomic_load(&shared.ready) < 2) {
    }
    for (uint32_t i = 0; i < RMWS; i++) {
        atomic_fetch_add(&shared.word, 1);
    }
    return NULL;
}

static double rmw(void)
{
    atomic_store(&shared.ready, 1); /* the other one is taken as here */
    const double begin = now_ns();
    (void)add_many(NULL);
    return (now_ns() - begin) / RMWS;
}

static double rmw_contended(void)
{
    pthread_t other;
    atomic_store(&shared.ready, 0);
    start_thread(&other, add_many);
    const double begin = now_ns();
    (void)add_many(NULL);
    pthread_join(other, NULL);
    return (now_ns() - begin) / RMWS;
}

/* ---- a cache line goes from one core to the other, and back ---- */

#define HANDOVERS 2000000u

static void *answer(void *arg)
{
    (void)arg;
    for (uint64_t turn = 1; turn < 2 * (uint64_t)HANDOVERS; turn += 2) {
        while (atomic_load_explicit(&shared.word, memory_order_acquire) != turn) {
        }
        atomic_store_explicit(&shared.word, turn + 1, memory_order_release);
    }
    return NULL;
}

static double handover(void)
{
    pthread_t other;
    atomic_store(&shared.word, 0);
    start_thread(&other, answer);
    const double begin = now_ns();
    for (uint64_t turn = 0; turn < 2 * (uint64_t)HANDOVERS; turn += 2) {
        atomic_store_explicit(&shared.word, turn + 1, memory_order_release);
        while (atomic_load_explicit(&shared.word, memory_order_acquire) != turn + 2) {
        }
    }
    const double elapsed = now_ns() - begin;
    pthread_join(other, NULL);
    return elapsed / (2.0 * HANDOVERS);
}

/* ---- a thread that sleeps on a futex is woken; the median ---- */

#define WAKES 500u

static struct {
    _Alignas(CACHE_LINE) atomic_uint word; /* wake-ups so far */
    _Alignas(CACHE_LINE) _Atomic double sent;
    double took[WAKES];
} sleeper;

static void *sleep_often(void *arg)
{
    (void)arg;
    for (uint32_t seen = 0; seen < WAKES; seen++) {
        while (atomic_load(&sleeper.word) == seen) {
            syscall(SYS_futex, &sleeper.word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
        }
        sleeper.took[seen] = now_ns() - atomic_load(&sleeper.sent);
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double futex_wake(void)
{
    pthread_t thread;
    atomic_store(&sleeper.word, 0);
    start_thread(&thread, sleep_often);
    for (uint32_t i = 0; i < WAKES; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL); /* it is asleep by then */
        atomic_store(&sleeper.sent, now_ns());
        atomic_fetch_add(&sleeper.word, 1);
        syscall(SYS_futex, &sleeper.word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
    pthread_join(thread, NULL);
    qsort(sleeper.took, WAKES, sizeof sleeper.took[0], compare);
    return sleeper.took[WAKES / 2];
}

/* ---- memory: malloc and free of 64 bytes, a hundred at a time ---- */

#define BLOCKS       100u
#define MALLOC_TURNS 100000u

static double malloc_free(void)
{
    void *volatile blocks[BLOCKS];
    const double begin = now_ns();
    for (uint32_t turn = 0; turn < MALLOC_TURNS; turn++) {
        for (uint32_t i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(64);
        }
        for (uint32_t i = 0; i < BLOCKS; i++) {
            free(blocks[i]);
        }
    }
    return (now_ns() - begin) / ((double)MALLOC_TURNS * BLOCKS);
}

/* ---- from one stack to another ---- */

#define SWITCHES 10000000u

static struct {
    jmp_buf here;
    jmp_buf there;
    ucontext_t start;
    ucontext_t back;
} stacks;

static void be_elsewhere(void)
{
    if (_setjmp(stacks.there) == 0) {
        swapcontext(&stacks.start, &stacks.back);
    }
    for (;;) {
        if (_setjmp(stacks.there) == 0) {
            _longjmp(stacks.here, 1);
        }
    }
}

static double stack_switch(void)
{
    const size_t size = (size_t)64 << 10;
    void *stack = malloc(size);
    if (stack == NULL || getcontext(&stacks.start) != 0) {
        exit(1);
    }
    stacks.start.uc_stack.ss_sp = stack;
    stacks.start.uc_stack.ss_size = size;
    makecontext(&stacks.start, be_elsewhere, 0);
    swapcontext(&stacks.back, &stacks.start);
    const double begin = now_ns();
    for (volatile uint32_t i = 0; i < SWITCHES / 2; i++) {
        if (_setjmp(stacks.here) == 0) {
            _longjmp(stacks.there, 1);
        }
    }
    const double elapsed = now_ns() - begin;
    free(stack);
    return elapsed / SWITCHES;
}

/* ---- a message loop for one thread: mailboxes, a queue, steps through a pointer ---- */

#define MESSAGES 20000000u

struct letter {
    struct letter *next;
    struct actor *from;
    uint64_t bytes[5];
};

struct actor {
    struct letter *first;
    struct letter *last;
    struct actor *next; /* in the queue */
    void (*step)(struct actor *self, struct letter *letter);
    uint64_t left;
};

static struct {
    struct letter *free;
    bool recycles; /* letters are used again, not freed */
    struct actor *first;
    struct actor *last;
} loop;

static struct letter *take_letter(void)
{
    struct letter *letter = loop.free;
    if (letter != NULL) {
        loop.free = letter->next;
        return letter;
    }
    letter = malloc(sizeof *letter);
    if (letter == NULL) {
        exit(1);
    }
    return letter;
}

static void give_letter(struct letter *letter)
{
    if (loop.recycles) {
        letter->next = loop.free;
        loop.free = letter;
    } else {
        free(letter);
    }
}

static void post(struct actor *from, struct actor *to)
{
    struct letter *letter = take_letter();
    letter->next = NULL;
    letter->from = from;
    if (to->first != NULL) {
        to->last->next = letter;
        to->last = letter;
        return;
    }
    to->first = to->last = letter;
    to->next = NULL;
    if (loop.first != NULL) {
        loop.last->next = to;
    } else {
        loop.first = to;
    }
    loop.last = to;
}

static void reply(struct actor *self, struct letter *letter)
{
    if (self->left-- > 0) {
        post(self, letter->from);
    }
}

static void run_loop(void)
{
    while (loop.first != NULL) {
        struct actor *actor = loop.first;
        struct letter *letter = actor->first;
        loop.first = actor->next;
        actor->first = NULL;
        while (letter != NULL) {
            struct letter *next = letter->next;
            actor->step(actor, letter);
            give_letter(letter);
            letter = next;
        }
    }
    loop.last = NULL;
}

static double run_message_loop(bool recycles)
{
    static void (*volatile step)(struct actor *, struct letter *) = reply; /* not to be inlined */
    struct actor ping = {.step = step, .left = MESSAGES / 2};
    struct actor pong = {.step = step, .left = MESSAGES / 2};
    loop.recycles = recycles;
    const double begin = now_ns();
    post(&pong, &ping);
    run_loop();
    const double elapsed = now_ns() - begin;
    while (loop.free != NULL) {
        struct letter *next = loop.free->next;
        free(loop.free);
        loop.free = next;
    }
    return elapsed / MESSAGES;
}

static double message_loop(void)
{
    return run_message_loop(false);
}

static double message_loop_recycling(void)
{
    return run_message_loop(true);
}

/* ---- the program ---- */

static const struct limit {
    const char *name;
    const char *about;
    double (*measure)(void);
} limits[] = {
    {"rmw", "fetch_add on a word of its own", rmw},
    {"rmw-contended", "fetch_add on a word that another core adds to", rmw_contended},
    {"handover", "a cache line from one core to another", handover},
    {"futex-wake", "from the wake-up call to the woken thread", futex_wake},
    {"malloc", "malloc and free of 64 bytes", malloc_free},
    {"stack-switch", "setjmp and longjmp to another stack", stack_switch},
    {"loop", "a message between two actors of one thread, by malloc", message_loop},
    {"loop-recycling", "the same with letters that are used again: the limit for messages",
     message_loop_recycling},
};

static void report(const struct limit *limit, uint32_t runs, bool json)
{
    double values[RUNS_MAX];
    for (uint32_t i = 0; i < runs; i++) {
        values[i] = limit->measure();
    }
    qsort(values, runs, sizeof values[0], compare);
    const char *format =
        json ? "{\"limit\": \"%s\", \"ns\": %.3f, \"ns_min\": %.3f, \"ns_max\": %.3f}\n"
             : "%-14s %9.2f %9.2f %9.2f  ";
    printf(format, limit->name, values[runs / 2], values[0], values[runs - 1]);
    if (!json) {
        printf("%s\n", limit->about);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    uint32_t runs = 5;
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0 &&
                   atoi(argv[i + 1]) <= RUNS_MAX) {
            runs = (uint32_t)atoi(argv[++i]);
        } else {
            fprintf(stderr, "usage: limits [--runs N] [--json]\n");
            return 2;
        }
    }
    if (!json) {
        printf("%-14s %9s %9s %9s  nanoseconds\n", "limit", "median", "min", "max");
    }
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        report(&limits[i], runs, json);
    }
    return 0;
}
