/* SPDX-License-Identifier: MIT */
#include "explore.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "explorer.h"

#define IGNORED_MAX 48

/* A schedule that runs for so long is stuck between two steps. */
#define STUCK_SECONDS 30

struct explorer explorer = {.running = NOBODY};

static struct {
    struct fiber main;
    bool starting;   /* threads run up to their first step, one after the other */
    jmp_buf *escape; /* out of setup, may_rest and finish */
    struct {
        const volatile char *start;
        size_t size;
    } ignored[IGNORED_MAX];
    uint32_t ignored_count;
    char failure[512];
} run;

/* ---- failures ---- */

_Noreturn static void give_up(void)
{
    explorer.outcome = FAILED;
    struct thread *thread = running_thread();
    if (thread != NULL) {
        fiber_switch(&thread->fiber, &run.main); /* it is never switched back to */
        abort();
    }
    longjmp(*run.escape, 1);
}

void fail_with(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(run.failure, sizeof run.failure, format, arguments);
    va_end(arguments);
    give_up();
}

_Noreturn void explore_fail(const char *expression, const char *what, const char *file, int line)
{
    fail_with("%s: %s does not hold (%s:%d)", what, expression, short_path(file), line);
}

/* In place of the one in base/assert.c. */
_Noreturn void assert_fail(const char *expression, const char *file, int line)
{
    explore_fail(expression, "SKUA_ASSERT", file, line);
}

/* ---- running ---- */

/* Leaves a thread, which has reached its next step or its end, for the one to go on. */
void reach(struct thread *from)
{
    if (run.starting) {
        fiber_switch(&from->fiber, &run.main);
        return;
    }
    const int next = choose();
    explorer.running = next;
    if (next == NOBODY) {
        fiber_switch(&from->fiber, &run.main);
    } else if (&explorer.threads[next] != from) {
        fiber_switch(&from->fiber, &explorer.threads[next].fiber);
    }
}

static void thread_main(void *arg)
{
    struct thread *thread = arg;
    thread->what->run(thread->what->arg);
    thread->state = THREAD_ENDED;
    reach(thread);
}

/* Runs setup or finish, which may fail; false if so. */
static bool run_outside(void (*function)(void))
{
    jmp_buf escape;
    run.escape = &escape;
    if (setjmp(escape) != 0) {
        return false;
    }
    function();
    return true;
}

static void start_threads(void)
{
    run.starting = true;
    for (int i = 0; i < explorer.thread_count && explorer.outcome != FAILED; i++) {
        struct thread *thread = &explorer.threads[i];
        thread->state = THREAD_AWAKE;
        thread->locks = 0;
        thread->spurious_wakes = explorer.model->spurious_wakes;
        thread->timeouts = explorer.model->timeouts;
        explorer.running = i;
        fiber_start(&run.main, &thread->fiber);
    }
    explorer.running = NOBODY;
    run.starting = false;
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
    explorer.previous = NOBODY;
    explorer.running = NOBODY;
    explorer.stale_left = explorer.model->stale;
    run.ignored_count = 0;
    memory_begin();
    shadow_begin();
    blocking_begin();
    if (!run_outside(explorer.model->setup)) {
        return;
    }
    start_threads();
    if (explorer.outcome == FAILED) {
        return;
    }
    jmp_buf escape;
    run.escape = &escape;
    if (setjmp(escape) != 0) {
        return; /* the very first choice failed */
    }
    explorer.running = choose();
    if (explorer.running != NOBODY) {
        fiber_switch(&run.main, &explorer.threads[explorer.running].fiber);
        explorer.running = NOBODY;
    }
    if (explorer.outcome == ENDED) {
        (void)run_outside(check_end);
    }
}

/* ---- what is ignored ---- */

bool is_ignored(const volatile void *address)
{
    for (uint32_t i = 0; i < run.ignored_count; i++) {
        const uintptr_t offset = (uintptr_t)address - (uintptr_t)run.ignored[i].start;
        if (offset < run.ignored[i].size) {
            return true;
        }
    }
    return false;
}

void explore_ignore(const volatile void *start, size_t size)
{
    SKUA_ASSERT(run.ignored_count < IGNORED_MAX);
    run.ignored[run.ignored_count].start = start;
    run.ignored[run.ignored_count].size = size;
    run.ignored_count++;
}

void explore_heed(const volatile void *start)
{
    uint32_t at = 0;
    while (at < run.ignored_count && run.ignored[at].start != start) {
        at++;
    }
    SKUA_ASSERT(at < run.ignored_count);
    run.ignored[at] = run.ignored[--run.ignored_count];
}

/* ---- exploring ---- */

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

static void search_all(void)
{
    search_begin();
    do {
        run_schedule();
    } while (count_schedule() && search_advance());
}

static void run_random(void)
{
    random_begin();
    uint32_t number = 0;
    do {
        random_vary(number++);
        run_schedule();
    } while (count_schedule() && number < explorer.model->bound);
}

static void replay(void)
{
    explorer.tracing = true;
    run_schedule();
    explorer.tracing = false;
}

/* Repeats the schedule that failed, aloud. */
static void tell_failure(void)
{
    printf("\n%s: FAILED: %s\n", explorer.model->name, run.failure);
    replay_begin();
    replay();
    if (explorer.outcome != FAILED) {
        printf("the failure did not repeat: the model is not deterministic\n");
    }
    print_schedule();
}

/* A crash, or a schedule that does not come to its next step. What is printed may be torn if the
 * fault is in the C library; better than nothing. */
static void tell_crash(int number)
{
    printf("\n%s: FAILED: %s\n", explorer.model->name,
           number == SIGALRM ? "a thread loops without a step" : "crash");
    print_schedule();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void catch_crashes(void)
{
    static unsigned char stack[64 << 10]; /* that of a fiber may be what is broken */
    const stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = tell_crash, .sa_flags = SA_ONSTACK};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaltstack(&alternative, NULL);
    (void)sigaction(SIGALRM, &action, NULL);
    (void)sigaction(SIGSEGV, &action, NULL);
    (void)sigaction(SIGBUS, &action, NULL);
}

static void begin(const struct explore_model *model)
{
    explorer.model = model;
    explorer.result = (struct explore_result){0};
    explorer.thread_count = 0;
    catch_crashes();
    (void)alarm(STUCK_SECONDS);
    fiber_adopt(&run.main);
    for (int i = 0; i < EXPLORE_THREADS_MAX && model->threads[i].run != NULL; i++) {
        struct thread *thread = &explorer.threads[i];
        thread->what = &model->threads[i];
        thread->number = (uint32_t)i;
        fiber_create(&thread->fiber, &run.main, thread_main, thread);
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
        search_all();
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
    struct explore_model any_stale = *model; /* the schedule says which loads are */
    any_stale.stale = UINT32_MAX;
    begin(&any_stale);
    replay_begin_with(schedule);
    run_schedule(); /* to know where it races before it is told */
    replay();
    const bool failed = explorer.outcome == FAILED;
    printf("%s\n", failed ? run.failure : "nothing failed");
    end();
    return !failed;
}
