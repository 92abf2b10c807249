/* SPDX-License-Identifier: MIT */
/* Mutexes, condition variables, futexes and joins: who waits, and what is handed over. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/assert.h"
#include "base/futex.h"
#include "explorer.h"

#define HELD_MAX    8
#define MUTEXES_MAX 32

static struct {
    const pthread_mutex_t *held[HELD_MAX]; /* open mutexes */
    uint32_t held_count;
    struct {
        const pthread_mutex_t *mutex;
        struct knowledge knowledge; /* of who held it last */
    } mutexes[MUTEXES_MAX];         /* those that have been released in this schedule */
    uint32_t mutex_count;
} blocking;

void blocking_begin(void)
{
    blocking.held_count = 0;
    blocking.mutex_count = 0;
}

bool may_time_out(const struct thread *thread)
{
    return thread->state == THREAD_ASLEEP && thread->has_deadline && thread->timeouts > 0;
}

static bool is_held(const volatile void *mutex)
{
    for (uint32_t i = 0; i < blocking.held_count; i++) {
        if (blocking.held[i] == mutex) {
            return true;
        }
    }
    return false;
}

bool can_go_on(const struct step *next)
{
    if (next->site->operation == MODEL_JOIN) {
        const volatile struct thread *joined = next->address;
        return joined->state == THREAD_ENDED;
    }
    if (next->site->operation == MODEL_LOCK) {
        return !is_held(next->address);
    }
    return next->site->operation != MODEL_TAKE || memory_peek(next->address, sizeof(uint32_t)) != 0;
}

/* A step that is not an operation on a word. */
static void reach_other(struct thread *thread, const struct model_site *site,
                        const volatile void *address)
{
    thread->next.site = site;
    thread->next.address = address;
    reach(thread);
    trace_step(&thread->next, "%s", "");
}

void model_point(void)
{
    static const struct model_site site = {.operation = MODEL_UNKNOWN, .name = "", .where = ""};
    struct thread *thread = running_thread();
    if (thread != NULL && thread->locks == 0) {
        reach_other(thread, &site, NULL);
    }
}

void explore_take_at(atomic_u32 *counter, const struct model_site *site)
{
    (void)model_operate(site, counter, 1);
}

/* ---- mutexes ---- */

static const struct model_site lock_site = {.operation = MODEL_LOCK, .name = "mutex", .where = ""};

/* What the one who held the mutex last knew; null if nobody has. */
static struct knowledge *knowledge_in(const pthread_mutex_t *mutex)
{
    for (uint32_t i = 0; i < blocking.mutex_count; i++) {
        if (blocking.mutexes[i].mutex == mutex) {
            return &blocking.mutexes[i].knowledge;
        }
    }
    return NULL;
}

static struct knowledge *add_mutex(const pthread_mutex_t *mutex)
{
    SKUA_ASSERT(blocking.mutex_count < MUTEXES_MAX);
    blocking.mutexes[blocking.mutex_count].mutex = mutex;
    struct knowledge *knowledge = &blocking.mutexes[blocking.mutex_count++].knowledge;
    memset(knowledge->clock, 0, sizeof knowledge->clock);
    knowledge->locations = 0;
    return knowledge;
}

static void lock_open(struct thread *thread, const pthread_mutex_t *mutex)
{
    reach_other(thread, &lock_site, mutex);
    SKUA_ASSERT(blocking.held_count < HELD_MAX);
    blocking.held[blocking.held_count++] = mutex;
}

static void unlock_open(const pthread_mutex_t *mutex)
{
    uint32_t at = 0;
    while (at < blocking.held_count && blocking.held[at] != mutex) {
        at++;
    }
    SKUA_ASSERT(at < blocking.held_count);
    blocking.held[at] = blocking.held[--blocking.held_count];
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
        reach_other(thread, &lock_site, NULL);
    }
    const struct knowledge *knowledge = knowledge_in(mutex);
    if (knowledge != NULL) {
        knowledge_join(&thread->knowledge, knowledge);
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
    struct knowledge *knowledge = knowledge_in(mutex);
    knowledge_release(knowledge != NULL ? knowledge : add_mutex(mutex), thread);
    if (explorer.model->mutexes_are_open) {
        unlock_open(mutex);
    } else {
        thread->locks--;
    }
    return 0;
}

/* ---- giving way ---- */

/* The pauses of a search take no time. A model in which somebody waits by giving way has its
 * own. */
__attribute__((weak)) int sched_yield(void)
{
    return 0;
}

/* ---- sleeping ---- */

/* Sleeps until woken; false if the deadline comes first. */
static bool fall_asleep(struct thread *thread, const struct model_site *site,
                        const volatile void *address, bool has_deadline)
{
    thread->state = THREAD_ASLEEP;
    thread->has_deadline = has_deadline;
    reach_other(thread, site, address);
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
    sleeper->next.address = sleeper; /* its waking commutes with everything */
}

/* Wakes the first `most` of those that sleep on an address. */
static void wake_sleepers(const volatile void *address, int most)
{
    for (int i = 0; i < explorer.thread_count && most > 0; i++) {
        struct thread *sleeper = &explorer.threads[i];
        if (sleeper->state == THREAD_ASLEEP && sleeper->next.address == address) {
            wake(sleeper);
            most--;
        }
    }
}

static const struct model_site condition_site = {
    .operation = MODEL_CONDITION, .name = "condition", .where = ""};

/* Leaving the mutex and falling asleep are one step, with what was done before in the mutex. */
static bool wait_on_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, bool has_deadline)
{
    struct thread *thread = running_thread();
    SKUA_ASSERT(thread != NULL && thread->locks <= 1);
    (void)model_mutex_unlock(mutex);
    const bool in_time = fall_asleep(thread, &condition_site, condition, has_deadline);
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
        reach_other(thread, &condition_site, condition);
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
    static const struct model_site site = {.operation = MODEL_JOIN, .name = "thread", .where = ""};
    struct thread *thread = running_thread();
    SKUA_ASSERT(thread != NULL && thread->locks == 0 && number < (pthread_t)explorer.thread_count);
    const struct thread *joined = &explorer.threads[number];
    reach_other(thread, &site, joined);
    knowledge_join(&thread->knowledge, &joined->knowledge);
    return 0;
}

bool explore_sleeps_for_good(uint32_t number)
{
    const struct thread *thread = &explorer.threads[number];
    return thread->state == THREAD_ASLEEP && !thread->has_deadline;
}

/* In place of those in base/futex.c. The kernel looks at the newest value. */
void futex_wait(atomic_u32 *word, uint32_t expected)
{
    struct thread *thread = running_thread();
    SKUA_ASSERT(thread != NULL && thread->locks == 0);
    static const struct model_site falls_asleep = {
        .operation = MODEL_FUTEX_WAIT, .name = "word", .where = "futex_wait:"};
    static const struct model_site wakes = {
        .operation = MODEL_FUTEX_WOKEN, .name = "word", .where = "futex_wait:"};
    thread->next.site = &falls_asleep;
    thread->next.address = word;
    reach(thread);
    const uint32_t value = (uint32_t)memory_peek(word, sizeof *word);
    trace_step(&thread->next, "  0x%x", (unsigned)value);
    if (value == expected) {
        (void)fall_asleep(thread, &wakes, word, false);
    }
}

/* Of several sleepers on one word the first is woken. No model needs the others. */
void futex_wake_one(atomic_u32 *word)
{
    static const struct model_site site = {
        .operation = MODEL_FUTEX_WAKE, .name = "word", .where = "futex_wake_one:"};
    struct thread *thread = running_thread();
    SKUA_ASSERT(thread != NULL);
    if (thread->locks == 0) { /* otherwise it is part of what the mutex guards */
        reach_other(thread, &site, word);
    }
    wake_sleepers(word, 1);
}
