/* SPDX-License-Identifier: MIT */
#include "explore.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/futex.h"
#include "base/random.h"
#include "fiber.h"

#define STEPS_MAX   4000 /* of a schedule; more means that it does not end */
#define IGNORED_MAX 32
#define HELD_MAX    8
#define NOBODY      (-1)

/* A schedule that runs for so long is stuck between two steps. */
#define STUCK_SECONDS 30

/* Sanitizers make a step ten to fifty times slower, and look for other faults. */
#define SLOW_SCHEDULES_MAX 4000
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOW_BUILD true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLOW_BUILD true
#endif
#endif
#ifndef SLOW_BUILD
#define SLOW_BUILD false
#endif

struct access {
    const volatile void *address; /* null: touches everything */
    size_t size;
    enum model_operation operation;
    const char *name;
    const char *where;
};

enum thread_state { THREAD_AWAKE, THREAD_ASLEEP, THREAD_ENDED };

struct thread {
    struct fiber fiber;
    const struct explore_thread *what;
    enum thread_state state;
    struct access pending; /* its next step */
    uint32_t locks;        /* mutexes it holds */
    uint32_t spurious_wakes;
    uint32_t timeouts;
    bool has_deadline; /* while asleep */
};

/* A choice. Sets of threads are bit masks. */
struct node {
    int chosen;
    int previous; /* who made the step before */
    uint32_t enabled;
    uint32_t allowed;     /* the choices to be tried here */
    uint32_t tried;       /* those that have been */
    uint32_t covered;     /* the sleep set: a choice further up covers them */
    uint32_t preemptions; /* before this choice */
};

enum outcome { ENDED, CUT, FAILED };

static struct {
    const struct explore_model *model;
    enum { SEARCH, RANDOM, REPLAY } driver;
    struct explore_result result;

    struct fiber main;
    struct thread threads[EXPLORE_THREADS_MAX];
    int thread_count;

    /* The schedule that runs. */
    int running;   /* NOBODY: the explorer itself */
    bool starting; /* threads run up to their first step, one after the other */
    int previous;
    uint32_t position;
    uint32_t covered; /* of the next node */
    enum outcome outcome;
    jmp_buf *escape; /* out of setup, may_rest and finish */
    struct {
        const volatile char *start;
        size_t size;
    } ignored[IGNORED_MAX];
    uint32_t ignored_count;
    const pthread_mutex_t *held[HELD_MAX]; /* open mutexes */
    uint32_t held_count;

    /* The search: nodes[0] to nodes[length - 1] are followed, the rest is new. */
    struct node nodes[STEPS_MAX];
    uint32_t length;
    uint64_t random;
    uint32_t stay; /* random: of 8 steps, this many by the same thread */

    /* The trace. */
    bool tracing;
    bool untold; /* a step whose effect is not known yet */
    struct access told;
    uint64_t told_before;
    char failure[512];
} explorer;

static uint32_t bit(int thread)
{
    return UINT32_C(1) << thread;
}

static struct thread *running_thread(void)
{
    return explorer.running == NOBODY ? NULL : &explorer.threads[explorer.running];
}

/* ---- the trace ---- */

static const char *operation_name(enum model_operation operation)
{
    switch (operation) {
    case MODEL_LOAD:
        return "load";
    case MODEL_STORE:
        return "store";
    case MODEL_EXCHANGE:
        return "exchange";
    case MODEL_ADD:
        return "add";
    case MODEL_SUBTRACT:
        return "subtract";
    case MODEL_OR:
        return "or";
    case MODEL_AND:
        return "and";
    case MODEL_COMPARE_EXCHANGE:
        return "cas";
    case MODEL_LOCK:
        return "lock";
    case MODEL_TAKE:
        return "take";
    case MODEL_FUTEX_WAIT:
        return "futex wait";
    case MODEL_FUTEX_WOKEN:
        return "woken";
    case MODEL_FUTEX_WAKE:
        return "futex wake";
    case MODEL_CONDITION:
        return "condition";
    case MODEL_JOIN:
        return "join";
    case MODEL_UNKNOWN:
        return "step";
    }
    return "?";
}

/* The value of a word, without being a step. */
static uint64_t value_of(const struct access *access)
{
    if (access->size == sizeof(uint64_t)) {
        return *(const volatile uint64_t *)access->address;
    }
    return access->size == sizeof(uint32_t) ? *(const volatile uint32_t *)access->address : 0;
}

/* "(&deque->head)" is shorter as "deque->head". */
static void print_name(const char *name)
{
    int length = (int)strlen(name);
    if (name[0] == '(' && name[length - 1] == ')') {
        name++;
        length -= 2;
    }
    if (name[0] == '&') {
        name++;
        length--;
    }
    printf(" %.*s", length, name);
}

static const char *short_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    while (slash != NULL && slash > path && slash[-1] != '/') {
        slash--;
    }
    return slash != NULL ? slash : path;
}

/* Prints the step made last. Its effect is seen when its thread arrives at the next one. */
static void trace_effect(void)
{
    if (!explorer.untold) {
        return;
    }
    explorer.untold = false;
    const struct access *told = &explorer.told;
    printf("  %4" PRIu32 "  %-10s %-10s", explorer.position,
           explorer.threads[explorer.previous].what->name, operation_name(told->operation));
    print_name(told->name);
    if (told->size != 0) {
        const uint64_t after = value_of(told);
        printf("  0x%" PRIx64, explorer.told_before);
        if (after != explorer.told_before) {
            printf(" -> 0x%" PRIx64, after);
        }
    }
    printf("    %s\n", short_path(told->where));
}

static void trace_step(const struct access *access)
{
    if (explorer.tracing) {
        explorer.untold = true;
        explorer.told = *access;
        explorer.told_before = value_of(access);
    }
}

void explore_note(const char *format, ...)
{
    if (!explorer.tracing) {
        return;
    }
    trace_effect();
    const struct thread *thread = running_thread();
    printf("        %-10s . . . . ", thread != NULL ? thread->what->name : "");
    va_list arguments;
    va_start(arguments, format);
    (void)vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

/* ---- failures ---- */

_Noreturn static void give_up(void)
{
    explorer.outcome = FAILED;
    struct thread *thread = running_thread();
    if (thread != NULL) {
        fiber_switch(&thread->fiber, &explorer.main); /* it is never switched back to */
        abort();
    }
    longjmp(*explorer.escape, 1);
}

_Noreturn void explore_fail(const char *expression, const char *what, const char *file, int line)
{
    (void)snprintf(explorer.failure, sizeof explorer.failure, "%s: %s does not hold (%s:%d)", what,
                   expression, short_path(file), line);
    give_up();
}

/* In place of the one in base/assert.c. */
_Noreturn void assert_fail(const char *expression, const char *file, int line)
{
    explore_fail(expression, "SKUA_ASSERT", file, line);
}

/* ---- which threads can make a step ---- */

static bool may_time_out(const struct thread *thread)
{
    return thread->state == THREAD_ASLEEP && thread->has_deadline && thread->timeouts > 0;
}

static bool is_held(const volatile void *mutex)
{
    for (uint32_t i = 0; i < explorer.held_count; i++) {
        if (explorer.held[i] == mutex) {
            return true;
        }
    }
    return false;
}

static bool can_go_on(const struct access *next)
{
    if (next->operation == MODEL_JOIN) {
        const volatile struct thread *joined = next->address;
        return joined->state == THREAD_ENDED;
    }
    if (next->operation == MODEL_LOCK) {
        return !is_held(next->address);
    }
    return next->operation != MODEL_TAKE || value_of(next) != 0;
}

/* All threads that can make a step; none if those that can would only wake for no reason. */
static uint32_t enabled_threads(void)
{
    uint32_t awake = 0;
    uint32_t late = 0;
    uint32_t spurious = 0;
    for (int i = 0; i < explorer.thread_count; i++) {
        const struct thread *thread = &explorer.threads[i];
        if (thread->state == THREAD_AWAKE) {
            awake |= can_go_on(&thread->pending) ? bit(i) : 0;
        } else if (thread->state == THREAD_ASLEEP) {
            late |= may_time_out(thread) ? bit(i) : 0;
            spurious |= thread->spurious_wakes > 0 ? bit(i) : 0;
        }
    }
    if (awake == 0 || !explorer.model->time_is_slow) {
        awake |= late;
    }
    return awake != 0 ? awake | spurious : 0;
}

static bool only_reads(const struct access *access)
{
    return access->operation == MODEL_LOAD || access->operation == MODEL_FUTEX_WAIT;
}

/* Whether two steps have the same effect in either order. */
static bool commute(const struct access *a, const struct access *b)
{
    if (a->address == NULL || b->address == NULL) {
        return false;
    }
    return a->address != b->address || (only_reads(a) && only_reads(b));
}

/* ---- choosing ---- */

static int lowest(uint32_t threads)
{
    return __builtin_ctz(threads);
}

static uint32_t preemptions_after(const struct node *node)
{
    const bool preempted = node->chosen != node->previous && node->previous != NOBODY &&
                           (node->enabled & bit(node->previous)) != 0;
    return node->preemptions + preempted;
}

/* What is still covered after the choice: all that was, or has been tried, and commutes with it. */
static uint32_t covered_after(const struct node *node)
{
    const struct access *chosen = &explorer.threads[node->chosen].pending;
    uint32_t covered = 0;
    for (int i = 0; i < explorer.thread_count; i++) {
        if (((node->covered | node->tried) & bit(i)) != 0 &&
            commute(chosen, &explorer.threads[i].pending)) {
            covered |= bit(i);
        }
    }
    return covered;
}

/* Prefers to go on with the same thread. */
static int prefer(uint32_t threads)
{
    const int previous = explorer.previous;
    return previous != NOBODY && (threads & bit(previous)) != 0 ? previous : lowest(threads);
}

/* Fills a node that the search has not seen before; false if nothing is to be tried there. */
static bool open_node(struct node *node, uint32_t enabled)
{
    const struct explore_model *model = explorer.model;
    const int previous = explorer.previous;
    *node = (struct node){.previous = previous, .enabled = enabled, .allowed = enabled};
    if (explorer.position > 0) {
        node->preemptions = preemptions_after(node - 1);
    }
    if (model->mode == EXPLORE_ALL) {
        node->covered = explorer.covered;
        node->allowed = enabled & ~node->covered;
    } else if (model->mode == EXPLORE_PREEMPTIONS && node->preemptions == model->bound &&
               previous != NOBODY && (enabled & bit(previous)) != 0) {
        node->allowed = bit(previous);
    }
    if (node->allowed == 0) {
        return false;
    }
    node->chosen = prefer(node->allowed);
    explorer.length = explorer.position + 1;
    return true;
}

static bool choose_by_search(struct node *node, uint32_t enabled)
{
    if (explorer.position == explorer.length) {
        if (!open_node(node, enabled)) {
            return false;
        }
    } else if (node->enabled != enabled) {
        explore_fail("node->enabled == enabled", "the model is not deterministic", __FILE__,
                     __LINE__);
    }
    if (explorer.position + 1 == explorer.length) {
        explorer.covered = covered_after(node);
    }
    return true;
}

static int choose_at_random(uint32_t enabled)
{
    const int previous = explorer.previous;
    if (previous != NOBODY && (enabled & bit(previous)) != 0 &&
        random_below(&explorer.random, 8) < explorer.stay) {
        return previous;
    }
    uint32_t skip = random_below(&explorer.random, (uint32_t)__builtin_popcount(enabled));
    while (skip-- > 0) {
        enabled &= enabled - 1;
    }
    return lowest(enabled);
}

/* Follows the schedule as far as it says something. */
static int choose_by_schedule(const struct node *node, uint32_t enabled)
{
    if (explorer.position >= explorer.length) {
        return prefer(enabled);
    }
    if ((enabled & bit(node->chosen)) == 0) {
        explore_fail("enabled", "the schedule does not fit this program", __FILE__, __LINE__);
    }
    return node->chosen;
}

/* The thread that makes the next step, or NOBODY at the end of the schedule. */
static int choose(void)
{
    const uint32_t enabled = enabled_threads();
    if (enabled == 0) {
        explorer.outcome = ENDED;
        return NOBODY;
    }
    if (explorer.position == STEPS_MAX) {
        explore_fail("explorer.position < STEPS_MAX", "the schedule does not end", __FILE__,
                     __LINE__);
    }
    struct node *node = &explorer.nodes[explorer.position];
    switch (explorer.driver) {
    case SEARCH:
        if (!choose_by_search(node, enabled)) {
            explorer.outcome = CUT;
            return NOBODY;
        }
        break;
    case RANDOM:
        node->chosen = choose_at_random(enabled);
        break;
    case REPLAY:
        node->chosen = choose_by_schedule(node, enabled);
        break;
    }
    explorer.position++;
    explorer.previous = node->chosen;
    trace_step(&explorer.threads[node->chosen].pending);
    return node->chosen;
}

/* ---- running ---- */

/* Leaves a thread, which has reached its next step or its end, for the one to go on. */
static void pass_on(struct thread *from)
{
    trace_effect();
    if (explorer.starting) {
        fiber_switch(&from->fiber, &explorer.main);
        return;
    }
    const int next = choose();
    explorer.running = next;
    if (next == NOBODY) {
        fiber_switch(&from->fiber, &explorer.main);
    } else if (&explorer.threads[next] != from) {
        fiber_switch(&from->fiber, &explorer.threads[next].fiber);
    }
}

static void reach(struct thread *thread, struct access next)
{
    thread->pending = next;
    pass_on(thread);
}

static void thread_main(void *arg)
{
    struct thread *thread = arg;
    thread->what->run(thread->what->arg);
    thread->state = THREAD_ENDED;
    pass_on(thread);
}

/* Runs setup or finish, which may fail; false if so. */
static bool run_outside(void (*function)(void))
{
    jmp_buf escape;
    explorer.escape = &escape;
    if (setjmp(escape) != 0) {
        return false;
    }
    function();
    return true;
}

static void start_threads(void)
{
    explorer.starting = true;
    for (int i = 0; i < explorer.thread_count && explorer.outcome != FAILED; i++) {
        struct thread *thread = &explorer.threads[i];
        thread->state = THREAD_AWAKE;
        thread->locks = 0;
        thread->spurious_wakes = explorer.model->spurious_wakes;
        thread->timeouts = explorer.model->timeouts;
        explorer.running = i;
        fiber_start(&explorer.main, &thread->fiber);
    }
    explorer.running = NOBODY;
    explorer.starting = false;
}

static void check_rest(void)
{
    for (int i = 0; i < explorer.thread_count; i++) {
        if (explorer.threads[i].state != THREAD_ENDED) {
            EXPLORE_CHECK(explorer.model->may_rest != NULL && explorer.model->may_rest(),
                          "no wake-up is lost: all threads sleep");
            return;
        }
    }
}

static void check_end(void)
{
    check_rest();
    if (explorer.model->finish != NULL) {
        explorer.model->finish();
    }
}

static void run_schedule(void)
{
    explorer.outcome = ENDED;
    explorer.position = 0;
    explorer.covered = 0;
    explorer.previous = NOBODY;
    explorer.running = NOBODY;
    explorer.untold = false;
    explorer.ignored_count = 0;
    explorer.held_count = 0;
    if (!run_outside(explorer.model->setup)) {
        return;
    }
    start_threads();
    if (explorer.outcome == FAILED) {
        return;
    }
    jmp_buf escape;
    explorer.escape = &escape;
    if (setjmp(escape) != 0) {
        return; /* the very first choice failed */
    }
    explorer.running = choose();
    if (explorer.running != NOBODY) {
        fiber_switch(&explorer.main, &explorer.threads[explorer.running].fiber);
        explorer.running = NOBODY;
    }
    trace_effect();
    if (explorer.outcome == ENDED) {
        (void)run_outside(check_end);
    }
}

/* ---- what models and the code below them call ---- */

static bool is_ignored(const volatile void *address)
{
    for (uint32_t i = 0; i < explorer.ignored_count; i++) {
        const uintptr_t offset = (uintptr_t)address - (uintptr_t)explorer.ignored[i].start;
        if (offset < explorer.ignored[i].size) {
            return true;
        }
    }
    return false;
}

void explore_ignore(const volatile void *start, size_t size)
{
    SKUA_ASSERT(explorer.ignored_count < IGNORED_MAX);
    explorer.ignored[explorer.ignored_count].start = start;
    explorer.ignored[explorer.ignored_count].size = size;
    explorer.ignored_count++;
}

void explore_heed(const volatile void *start)
{
    uint32_t at = 0;
    while (at < explorer.ignored_count && explorer.ignored[at].start != start) {
        at++;
    }
    SKUA_ASSERT(at < explorer.ignored_count);
    explorer.ignored[at] = explorer.ignored[--explorer.ignored_count];
}

void model_access(const volatile void *address, size_t size, enum model_operation operation,
                  const char *name, const char *where)
{
    struct thread *thread = running_thread();
    if (thread == NULL || thread->locks > 0 || is_ignored(address)) {
        return;
    }
    reach(thread, (struct access){address, size, operation, name, where});
}

void model_point(void)
{
    struct thread *thread = running_thread();
    if (thread != NULL && thread->locks == 0) {
        reach(thread, (struct access){NULL, 0, MODEL_UNKNOWN, "", ""});
    }
}

void explore_take_at(atomic_u32 *counter, const char *name, const char *where)
{
    model_access(counter, sizeof *counter, MODEL_TAKE, name, where);
    (void)atomic_fetch_sub_explicit(counter, 1, memory_order_seq_cst);
}

static void lock_open(struct thread *thread, const pthread_mutex_t *mutex)
{
    reach(thread, (struct access){mutex, 0, MODEL_LOCK, "mutex", ""});
    SKUA_ASSERT(explorer.held_count < HELD_MAX);
    explorer.held[explorer.held_count++] = mutex;
}

static void unlock_open(const pthread_mutex_t *mutex)
{
    uint32_t at = 0;
    while (at < explorer.held_count && explorer.held[at] != mutex) {
        at++;
    }
    SKUA_ASSERT(at < explorer.held_count);
    explorer.held[at] = explorer.held[--explorer.held_count];
}

/* Where mutexes are closed no other thread runs while one is held, so that it is always free. */
int model_mutex_lock(pthread_mutex_t *mutex)
{
    struct thread *thread = running_thread();
    if (thread == NULL) {
        return 0;
    }
    if (explorer.model->mutexes_are_open) {
        lock_open(thread, mutex);
    } else if (thread->locks++ == 0) {
        reach(thread, (struct access){NULL, 0, MODEL_LOCK, "mutex", ""});
    }
    return 0;
}

/* No step: whoever waits for the mutex can go on when the next one is chosen. */
int model_mutex_unlock(pthread_mutex_t *mutex)
{
    struct thread *thread = running_thread();
    if (thread == NULL) {
        return 0;
    }
    if (explorer.model->mutexes_are_open) {
        unlock_open(mutex);
    } else {
        thread->locks--;
    }
    return 0;
}

/* Sleeps until woken; false if the deadline comes first. */
static bool fall_asleep(struct thread *thread, struct access woken, bool has_deadline)
{
    thread->state = THREAD_ASLEEP;
    thread->has_deadline = has_deadline;
    reach(thread, woken);
    if (thread->state == THREAD_AWAKE) {
        return true;
    }
    const bool in_time = !may_time_out(thread);
    thread->state = THREAD_AWAKE;
    explore_note(in_time ? "woke for no reason" : "its time has passed");
    if (in_time) {
        thread->spurious_wakes--;
    } else {
        thread->timeouts--;
    }
    return in_time;
}

static void wake(struct thread *sleeper)
{
    sleeper->state = THREAD_AWAKE;
    sleeper->pending.address = sleeper; /* its waking commutes with everything */
    sleeper->pending.size = 0;
}

/* Wakes the first `most` of those that sleep on an address. */
static void wake_sleepers(const volatile void *address, int most)
{
    for (int i = 0; i < explorer.thread_count && most > 0; i++) {
        struct thread *sleeper = &explorer.threads[i];
        if (sleeper->state == THREAD_ASLEEP && sleeper->pending.address == address) {
            wake(sleeper);
            most--;
        }
    }
}

/* Leaving the mutex and falling asleep are one step, with what was done before in the mutex. */
static bool wait_on_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, bool has_deadline)
{
    struct thread *thread = running_thread();
    SKUA_ASSERT(thread != NULL && thread->locks <= 1);
    (void)model_mutex_unlock(mutex);
    const bool in_time = fall_asleep(
        thread, (struct access){condition, 0, MODEL_CONDITION, "condition", ""}, has_deadline);
    (void)model_mutex_lock(mutex);
    return in_time;
}

int model_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    (void)wait_on_condition(condition, mutex, false);
    return 0;
}

int model_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                         const struct timespec *deadline)
{
    (void)deadline; /* the explorer decides when it passes */
    return wait_on_condition(condition, mutex, true) ? 0 : ETIMEDOUT;
}

/* Wakes without being a step where the mutex is held, as it should be. */
static int wake_from_condition(pthread_cond_t *condition, int most)
{
    struct thread *thread = running_thread();
    if (thread != NULL && thread->locks == 0) {
        reach(thread, (struct access){condition, 0, MODEL_CONDITION, "condition", ""});
    }
    wake_sleepers(condition, most);
    return 0;
}

int model_cond_signal(pthread_cond_t *condition)
{
    return wake_from_condition(condition, 1);
}

int model_cond_broadcast(pthread_cond_t *condition)
{
    return wake_from_condition(condition, EXPLORE_THREADS_MAX);
}

int model_join(pthread_t number, void **result)
{
    (void)result;
    struct thread *thread = running_thread();
    SKUA_ASSERT(thread != NULL && thread->locks == 0 && number < (pthread_t)explorer.thread_count);
    reach(thread, (struct access){&explorer.threads[number], 0, MODEL_JOIN, "thread", ""});
    return 0;
}

bool explore_sleeps_for_good(uint32_t number)
{
    const struct thread *thread = &explorer.threads[number];
    return thread->state == THREAD_ASLEEP && !thread->has_deadline;
}

/* In place of those in base/futex.c. */
void futex_wait(atomic_u32 *word, uint32_t expected)
{
    struct thread *thread = running_thread();
    SKUA_ASSERT(thread != NULL && thread->locks == 0);
    struct access access = {word, sizeof *word, MODEL_FUTEX_WAIT, "word", "futex_wait:"};
    reach(thread, access);
    if (atomic_load_explicit(word, memory_order_seq_cst) != expected) {
        return;
    }
    access.operation = MODEL_FUTEX_WOKEN;
    (void)fall_asleep(thread, access, false);
}

/* Of several sleepers on one word the first is woken. No model needs the others. */
void futex_wake_one(atomic_u32 *word)
{
    struct thread *thread = running_thread();
    SKUA_ASSERT(thread != NULL);
    if (thread->locks == 0) { /* otherwise it is part of what the mutex guards */
        reach(thread,
              (struct access){word, sizeof *word, MODEL_FUTEX_WAKE, "word", "futex_wake_one:"});
    }
    wake_sleepers(word, 1);
}

/* ---- exploring ---- */

/* The next schedule: another choice as late as possible. False if there is none. */
static bool backtrack(void)
{
    while (explorer.length > 0) {
        struct node *node = &explorer.nodes[explorer.length - 1];
        node->tried |= bit(node->chosen);
        const uint32_t rest = node->allowed & ~node->tried;
        if (rest != 0) {
            node->chosen = lowest(rest);
            return true;
        }
        explorer.length--;
    }
    return false;
}

/* Counts the schedule that has run; false if it failed. */
static bool count_schedule(void)
{
    struct explore_result *result = &explorer.result;
    if (explorer.outcome == CUT) {
        result->cut++;
    } else {
        result->schedules++;
    }
    if (explorer.position > result->steps) {
        result->steps = explorer.position;
    }
    if ((result->schedules + result->cut) % 1024 == 0) {
        (void)alarm(STUCK_SECONDS);
    }
    result->failed = explorer.outcome == FAILED;
    return !result->failed;
}

static bool is_enough(void)
{
    return SLOW_BUILD && explorer.result.schedules + explorer.result.cut >= SLOW_SCHEDULES_MAX;
}

static void search(void)
{
    explorer.driver = SEARCH;
    explorer.length = 0;
    do {
        run_schedule();
        if (!count_schedule() || is_enough()) {
            return;
        }
    } while (backtrack());
    explorer.result.complete = true;
}

static void run_random(void)
{
    explorer.driver = RANDOM;
    explorer.random = explorer.model->seed;
    for (uint32_t i = 0; i < explorer.model->bound; i++) {
        explorer.stay = (uint32_t[]){0, 4, 6, 7}[i % 4];
        run_schedule();
        if (!count_schedule() || is_enough()) {
            return;
        }
    }
    explorer.result.complete = true;
}

static void replay(void)
{
    explorer.driver = REPLAY;
    explorer.tracing = true;
    run_schedule();
    explorer.tracing = false;
}

static void print_schedule(uint32_t steps)
{
    printf("to repeat: %s ", explorer.model->name);
    for (uint32_t i = 0; i < steps; i++) {
        printf("%d", explorer.nodes[i].chosen);
    }
    printf("\n");
    (void)fflush(stdout);
}

/* Repeats the schedule that failed, aloud. */
static void tell_failure(void)
{
    const uint32_t steps = explorer.position;
    printf("\n%s: FAILED: %s\n", explorer.model->name, explorer.failure);
    explorer.length = steps;
    replay();
    if (explorer.outcome != FAILED) {
        printf("the failure did not repeat: the model is not deterministic\n");
    }
    print_schedule(steps);
}

/* A crash, or a schedule that does not come to its next step. What is printed may be torn if the
 * fault is in the C library; better than nothing. */
static void tell_crash(int number)
{
    printf("\n%s: FAILED: %s\n", explorer.model->name,
           number == SIGALRM ? "a thread loops without a step" : "crash");
    print_schedule(explorer.position);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void catch_crashes(void)
{
    static unsigned char stack[64 << 10]; /* that of a fiber may be what is broken */
    const stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = tell_crash, .sa_flags = SA_ONSTACK};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGALRM, &action, NULL);
    if (!SLOW_BUILD) { /* sanitizers say more about a crash */
        (void)sigaltstack(&alternative, NULL);
        (void)sigaction(SIGSEGV, &action, NULL);
        (void)sigaction(SIGBUS, &action, NULL);
    }
}

static void begin(const struct explore_model *model)
{
    explorer.model = model;
    explorer.result = (struct explore_result){0};
    explorer.thread_count = 0;
    catch_crashes();
    (void)alarm(STUCK_SECONDS);
    fiber_adopt(&explorer.main);
    for (int i = 0; i < EXPLORE_THREADS_MAX && model->threads[i].run != NULL; i++) {
        struct thread *thread = &explorer.threads[i];
        thread->what = &model->threads[i];
        fiber_create(&thread->fiber, &explorer.main, thread_main, thread);
        explorer.thread_count++;
    }
}

static void end(void)
{
    (void)alarm(0);
    for (int i = 0; i < explorer.thread_count; i++) {
        fiber_destroy(&explorer.threads[i].fiber);
    }
}

struct explore_result explore(const struct explore_model *model, bool quiet)
{
    begin(model);
    if (model->mode == EXPLORE_RANDOM) {
        run_random();
    } else {
        search();
    }
    const struct explore_result result = explorer.result;
    if (result.failed && !quiet) {
        tell_failure();
    }
    end();
    return result;
}

bool explore_repeat(const struct explore_model *model, const char *schedule)
{
    begin(model);
    explorer.length = 0;
    for (const char *at = schedule; *at != '\0' && explorer.length < STEPS_MAX; at++) {
        explorer.nodes[explorer.length++].chosen = (*at - '0') % EXPLORE_THREADS_MAX;
    }
    replay();
    const bool failed = explorer.outcome == FAILED;
    printf("%s\n", failed ? explorer.failure : "nothing failed");
    end();
    return !failed;
}
