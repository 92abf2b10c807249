/* SPDX-License-Identifier: MIT */
#include "stress_load.h"

#include <inttypes.h>
#include <sched.h>
#include <string.h>

#include "base/mutex.h"
#include "runtime/runtime.h" /* how many workers there may be */

#define LOADS        8192
#define LOAD_TRIES   4
#define JOBS_MAX     1024
#define MAGIC_ALIVE  0x57a11ed1u
#define MAGIC_CLOSED 0x0ddba115u

struct stress stress;
struct stress_round current;

/* ---- counting and checking ---- */

/* In parts, one for few threads each, so that they do not all meet at one cache line. */
static struct {
    CACHE_ALIGNED atomic_u64 values[TALLIES_MAX];
} tallies[STRESS_THREADS_MAX];

static uint64_t totals_before[TALLIES_MAX];
static atomic_u32 threads_seen;
static _Thread_local uint32_t own_part; /* plus one; 0: none yet */
static _Thread_local bool is_outsider;

static uint32_t part(void)
{
    if (UNLIKELY(own_part == 0)) {
        own_part = 1 + fetch_add_relaxed(&threads_seen, 1) % STRESS_THREADS_MAX; /* counter */
    }
    return own_part - 1;
}

void stress_tally(uint32_t tally)
{
    (void)fetch_add_relaxed(&tallies[part()].values[tally], 1); /* statistic */
}

uint64_t stress_total(uint32_t tally)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < STRESS_THREADS_MAX; i++) {
        sum += load_relaxed(&tallies[i].values[tally]); /* statistic */
    }
    return sum;
}

uint64_t stress_total_before(uint32_t tally)
{
    return totals_before[tally];
}

void stress_tallies_end(void)
{
    for (uint32_t tally = 0; tally < TALLIES_MAX; tally++) {
        totals_before[tally] += stress_total(tally);
        for (uint32_t i = 0; i < STRESS_THREADS_MAX; i++) {
            store_relaxed(&tallies[i].values[tally], 0); /* no thread */
        }
    }
}

void stress_operation(void)
{
    if (!is_outsider || load_relaxed(&current.is_stopping) == 0) { /* a hint */
        stress_count(&stress, part(), 1);
    }
}

void stress_become_outsider(void)
{
    is_outsider = true;
}

bool stress_is_outsider(void)
{
    return is_outsider;
}

void stress_expect(bool holds, const char *what, int64_t value)
{
    if (UNLIKELY(!holds)) {
        stress_fault(&stress, STRESS_BROKEN, "%s: %" PRId64, what, value);
    }
}

void stress_expect_equal(enum stress_fault fault, const char *what, uint64_t is, uint64_t should_be)
{
    if (is != should_be) {
        stress_fault(&stress, fault, "%s: %" PRIu64 " instead of %" PRIu64, what, is, should_be);
    }
}

/* ---- PIDs ---- */

static atomic_u64 known[STRESS_KNOWN_MAX];

skua_pid stress_random_pid(uint64_t *random)
{
    const uint32_t which = random_below(random, current.known_pids);
    return (skua_pid){load_relaxed(&known[which])}; /* any will do */
}

static void make_known(uint64_t *random, skua_pid pid)
{
    const uint32_t which = random_below(random, current.known_pids);
    store_relaxed(&known[which], pid.bits); /* any will do */
}

void stress_forget_pids(void)
{
    for (uint32_t i = 0; i < STRESS_KNOWN_MAX; i++) {
        store_relaxed(&known[i], 0); /* no thread yet */
    }
}

/* ---- payloads ---- */

static struct stress_load loads[LOADS];

struct stress_load *stress_load_take(uint64_t *random)
{
    for (uint32_t i = 0; i < LOAD_TRIES; i++) {
        struct stress_load *load = &loads[random_below(random, LOADS)];
        const uint64_t serial = random_next(random) | 1;
        uint64_t expected = 0;
        /* acquire: whoever had it last is done with the content. */
        if (cas_acq_rel_relaxed(&load->parcel.under_way, &expected, serial)) {
            stress_parcel_fill(&load->parcel, serial);
            return load;
        }
    }
    return NULL;
}

void stress_load_drop(void *load, size_t size)
{
    (void)size;
    (void)stress_parcel_empty(&stress, &((struct stress_load *)load)->parcel);
}

void stress_loads_expect_free(void)
{
    for (uint32_t i = 0; i < LOADS; i++) {
        stress_parcel_expect_free(&stress, &loads[i].parcel);
    }
}

skua_payload stress_make_token(uint64_t *random, uint64_t token)
{
    struct stress_load *load = once_in(random, 2) ? stress_load_take(random) : NULL;
    if (load == NULL) {
        return skua_payload_u64(PAYLOAD_TOKEN, token);
    }
    load->token = token;
    return skua_payload_pointer(PAYLOAD_PARCEL_TOKEN, load, stress_load_drop);
}

uint64_t stress_read_token(const skua_payload *payload)
{
    if (payload->type == PAYLOAD_PARCEL_TOKEN) {
        const struct stress_load *load = skua_payload_data(payload);
        return load->token;
    }
    return skua_payload_to_u64(payload);
}

/* ---- calls ---- */

void stress_sent(int error)
{
    stress_expect(error == 0 || error == SKUA_E_NO_PROCESS || error == SKUA_E_MAILBOX_FULL, "send",
                  error);
    if (error == 0) {
        stress_tally(TALLY_MESSAGES);
    }
    stress_operation();
}

void stress_spawned(uint64_t *random, int error, const skua_pid *pid)
{
    stress_expect(error == 0 || error == SKUA_E_PROCESS_LIMIT || error == SKUA_E_STOPPED ||
                      error == STRESS_ERROR_INIT,
                  "spawn", error);
    if (error == 0) {
        stress_tally(TALLY_SPAWNED);
        if (pid != NULL) {
            make_known(random, *pid);
        }
    }
    stress_operation();
}

int stress_complete(skua_completion completion, skua_payload result)
{
    const int error = skua_command_complete(current.runtime, completion, 0, result);
    stress_expect(error == 0 || error == SKUA_E_LATE, "complete", error);
    if (error == SKUA_E_LATE) {
        stress_tally(TALLY_LATE);
    }
    stress_operation();
    return error;
}

int stress_wait(skua_pid pid, uint64_t timeout_ns)
{
    skua_exit end;
    const int error = skua_process_wait(current.runtime, pid, timeout_ns, &end);
    stress_expect(error == 0 || error == SKUA_E_NO_PROCESS || error == SKUA_E_TIMEOUT, "wait",
                  error);
    if (error == 0) {
        stress_expect(skua_pid_equal(end.pid, pid), "PID of an exit", (int64_t)end.pid.bits);
        stress_expect(end.error == 0 || end.error == STRESS_ERROR_STEP ||
                          end.error == STRESS_ERROR_CANCEL || end.error == SKUA_E_STOPPED ||
                          end.error == SKUA_E_TERMINATED,
                      "error of an exit", end.error);
        skua_payload_drop(&end.result);
    }
    stress_operation();
    return error;
}

void stress_end_some(uint64_t *random, bool terminates)
{
    const skua_pid pid = stress_random_pid(random);
    const int error = terminates ? skua_process_terminate(current.runtime, pid)
                                 : skua_process_cancel(current.runtime, pid, STRESS_ERROR_CANCEL);
    stress_expect(error == 0 || error == SKUA_E_NO_PROCESS, "cancel or terminate", error);
    stress_operation();
}

void stress_read_statistics(void)
{
    skua_stats sum;
    skua_stats workers[2];
    const int found = skua_stats_read(current.runtime, &sum, workers, 2);
    const int most = (int)current.runtime->sched.capacity; /* with all spare ones */
    stress_expect(found >= (int)current.config.worker_count && found <= most, "workers", found);
    stress_operation();
}

void stress_register(uint32_t id, skua_handler_fn *run, const void *arg)
{
    const skua_handler handler = {.name = "stress", .run = run, .arg = (void *)arg};
    const int error = skua_command_register(current.runtime, id, &handler);
    stress_expect(error == 0, "register", error);
}

/* ---- jobs ---- */

static struct {
    pthread_t thread;
    uint64_t random;
    pthread_mutex_t lock;
    struct stress_job queue[JOBS_MAX]; /* under lock, as are the next two */
    uint32_t count;
    bool are_over;
} jobs;

bool stress_defer(const struct stress_job *job)
{
    mutex_lock(&jobs.lock);
    const bool fits = jobs.count < JOBS_MAX && !jobs.are_over;
    if (fits) {
        jobs.queue[jobs.count++] = *job;
    }
    mutex_unlock(&jobs.lock);
    return fits;
}

/* Takes any job; false if there is none. */
static bool take_job(struct stress_job *job, bool *are_over)
{
    mutex_lock(&jobs.lock);
    const bool found = jobs.count > 0;
    if (found) {
        struct stress_job *any = &jobs.queue[random_below(&jobs.random, jobs.count)];
        *job = *any;
        *any = jobs.queue[--jobs.count];
    }
    *are_over = jobs.are_over;
    mutex_unlock(&jobs.lock);
    return found;
}

static void complete_command(uint64_t *random, const struct stress_job *job)
{
    (void)stress_complete(job->completion, stress_make_token(random, job->token));
    if (once_in(random, 4) &&
        stress_complete(job->completion, stress_make_token(random, job->token)) != SKUA_E_LATE) {
        stress_fault(&stress, STRESS_DOUBLED, "a completion was accepted twice");
    }
}

static void *run_jobs(void *arg)
{
    uint64_t *random = arg;
    for (;;) {
        struct stress_job job;
        bool are_over;
        if (!take_job(&job, &are_over)) {
            if (are_over) {
                return NULL;
            }
            (void)sched_yield();
            continue;
        }
        stress_pause(random, 4);
        if (job.run != NULL) {
            job.run(random, job.load);
        } else {
            complete_command(random, &job);
        }
    }
}

void stress_jobs_begin(uint64_t random)
{
    mutex_init(&jobs.lock);
    jobs.random = random;
    jobs.are_over = false;
    jobs.thread = stress_start_thread(run_jobs, &jobs.random);
}

void stress_jobs_end(void)
{
    mutex_lock(&jobs.lock);
    jobs.are_over = true;
    mutex_unlock(&jobs.lock);
    (void)pthread_join(jobs.thread, NULL);
    mutex_deinit(&jobs.lock);
}

/* ---- processes ---- */

void stress_process_begin(struct stress_process *process, uint32_t steps)
{
    stress_tally(TALLY_INITS);
    stress_expect(process->magic == 0, "the state of a new process", process->magic);
    process->magic = MAGIC_ALIVE;
    process->steps_left = (uint16_t)steps;
}

void stress_process_end(struct stress_process *process)
{
    if (process->magic != MAGIC_ALIVE) {
        stress_fault(&stress, STRESS_DOUBLED, "close on a state with %" PRIx32, process->magic);
    }
    process->magic = MAGIC_CLOSED;
    stress_tally(TALLY_CLOSES);
}

void stress_process_check(const struct stress_process *process)
{
    stress_expect(process->magic == MAGIC_ALIVE, "the state of a process", process->magic);
}

void stress_process_cancelled(struct stress_process *process, const skua_event *event,
                              uint64_t *random)
{
    stress_expect(event->error == SKUA_E_STOPPED || event->error == STRESS_ERROR_CANCEL, "reason",
                  event->error);
    if (event->error == SKUA_E_STOPPED) {
        if (process->was_stopped) {
            stress_fault(&stress, STRESS_DOUBLED, "the cancel event of the shutdown");
        }
        process->was_stopped = true;
    }
    if (current.is_graceful || once_in(random, 2)) {
        process->is_finishing = true;
    }
}
