/* SPDX-License-Identifier: MIT */
/* A tree of 1,000 supervised workers under random kills, 1,000 a second, while messages go to all
 * of them. An operation is a kill; `make soak` runs half an hour of them.
 *  - Every worker that was started is closed once; none is left when the tree has ended.
 *  - Every message that was accepted is handed to a step or counted as a dead letter, and released
 *    once.
 *  - The tree has all of its workers again when the kills are over.
 *  - A supervisor survives exactly as many failures as its budget allows.
 *  - The memory of the program stays what it was after the first tenth. */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stress_support.h"

#define WORKERS        1000
#define KILLS_A_SECOND 1000
#define DEFAULT_OPS    3000
#define LETTERS        4 /* messages for each kill */
#define BUDGET         3 /* restarts of the child that is killed to count them */
#define TRIAL_KILLS    250
#define GROWTH_MAX     ((uint64_t)16 << 20) /* bytes, beside a tenth */
#define FAIL_MESSAGE   1
#define E_CRASH        (SKUA_E_USER - 1)

static struct stress stress;
static skua_runtime *runtime;
static atomic_u64 pids[WORKERS];               /* of the workers; 0: not there */
static atomic_u64 starts, closes;              /* of workers */
static atomic_u64 accepted, handled, released; /* messages */

/* ---- workers ---- */

struct worker_state {
    uint64_t number;
};

/* It is known from here on, and not from its first step: when a supervisor is killed, its workers
 * may live a moment longer than it, and their first steps come after those of their successors. */
static int worker_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct worker_state *state = self;
    (void)count;
    (void)fetch_add_relaxed(&starts, 1); /* statistic */
    const int error = skua_payload_get_u64(&input[0], 0, &state->number);
    if (error == 0) {
        store_relaxed(&pids[state->number], skua_self(ctx).bits); /* orders nothing */
    }
    return error;
}

static int worker_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    int error = 0;
    (void)self, (void)ctx;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_MESSAGE) {
            (void)fetch_add_relaxed(&handled, 1); /* statistic */
            error = events[i].payload.type == FAIL_MESSAGE ? E_CRASH : error;
        }
    }
    return error;
}

static void worker_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    const struct worker_state *state = self;
    uint64_t own = skua_self(ctx).bits;
    (void)exit;
    (void)cas_seq_cst(&pids[state->number], &own, UINT64_C(0));
    (void)fetch_add_relaxed(&closes, 1); /* statistic */
}

static const skua_process_type worker_type = {
    "worker",
    sizeof(struct worker_state),
    .init = worker_init,
    .step = worker_step,
    .close = worker_close,
};

/* ---- the tree: supervisors of every strategy ---- */

#define HALLS     8 /* of 100 workers each, on their own */
#define HALL_SIZE 100
#define TEAMS     20 /* of 10 workers each, by turns ALL and REST */
#define TEAM_SIZE 10
#define GROUPS    (HALLS + TEAMS)

_Static_assert(HALLS *HALL_SIZE + TEAMS * TEAM_SIZE == WORKERS, "all of them have a place");

static const skua_backoff short_pauses = {SKUA_MILLISECOND, SKUA_MILLISECOND, SKUA_SECOND};

static struct {
    char worker_names[WORKERS][16];
    char group_names[GROUPS][16];
    skua_payload inputs[WORKERS];
    skua_child workers[WORKERS];
    skua_supervisor groups[GROUPS];
    skua_child group_children[GROUPS];
    skua_supervisor root;
} tree;

static void plan_worker(uint32_t number)
{
    (void)snprintf(tree.worker_names[number], sizeof tree.worker_names[number], "worker-%u",
                   number);
    tree.inputs[number] = skua_payload_u64(0, number);
    tree.workers[number] = (skua_child){.name = tree.worker_names[number],
                                        .type = &worker_type,
                                        .input = &tree.inputs[number],
                                        .input_count = 1,
                                        .backoff = short_pauses};
}

static void plan_group(uint32_t number, uint32_t *first)
{
    const bool is_hall = number < HALLS;
    const uint32_t size = is_hall ? HALL_SIZE : TEAM_SIZE;
    (void)snprintf(tree.group_names[number], sizeof tree.group_names[number], "%s-%u",
                   is_hall ? "hall" : "team", number);
    tree.groups[number] = (skua_supervisor){.name = tree.group_names[number],
                                            .children = &tree.workers[*first],
                                            .child_count = size,
                                            .strategy = is_hall           ? SKUA_STRATEGY_ONE
                                                        : number % 2 == 0 ? SKUA_STRATEGY_ALL
                                                                          : SKUA_STRATEGY_REST};
    tree.group_children[number] = (skua_child){.name = tree.group_names[number],
                                               .supervisor = &tree.groups[number],
                                               .backoff = short_pauses};
    *first += size;
}

static skua_pid start_tree(void)
{
    skua_pid root;
    uint32_t first = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        plan_worker(i);
    }
    for (uint32_t i = 0; i < GROUPS; i++) {
        plan_group(i, &first);
    }
    tree.root =
        (skua_supervisor){.name = "root", .children = tree.group_children, .child_count = GROUPS};
    if (skua_process_start_supervisor(runtime, &tree.root, &root) != 0) {
        abort();
    }
    return root;
}

/* ---- what happens to it ---- */

static void release_letter(void *data, size_t size)
{
    (void)data, (void)size;
    (void)fetch_add_relaxed(&released, 1); /* statistic */
}

static void send_letter(skua_pid to, uint32_t type)
{
    static char letter;
    const int error = skua_process_send(
        runtime, to, skua_payload_owned(type, &letter, sizeof letter, release_letter));
    if (error == 0) {
        (void)fetch_add_relaxed(&accepted, 1); /* statistic */
    } else {
        (void)fetch_sub_relaxed(&released, 1); /* it was refused, and is none of those */
        if (error != SKUA_E_NO_PROCESS && error != SKUA_E_MAILBOX_FULL) {
            stress_fault(&stress, STRESS_BROKEN, "a send failed: %s", skua_error_name(error));
        }
    }
}

static skua_pid random_worker(uint64_t *random)
{
    return (skua_pid){load_relaxed(&pids[random_below(random, WORKERS)])}; /* any will do */
}

/* A supervisor of the tree, now and then. Its workers go down with it, and come back. */
static void kill_group(uint64_t *random, skua_pid root)
{
    skua_payload report;
    skua_child_report child;
    if (skua_supervisor_report(runtime, root, 10 * SKUA_SECOND, &report) != 0) {
        stress_fault(&stress, STRESS_BROKEN, "the root does not report");
        return;
    }
    if (skua_report_child(&report, random_below(random, GROUPS), &child) == 0 &&
        child.pid.bits != 0) {
        (void)skua_process_terminate(runtime, child.pid);
    }
    skua_payload_drop(&report);
}

static void kill_one(uint64_t *random, skua_pid root)
{
    const skua_pid pid = random_worker(random);
    switch (random_below(random, 5)) {
    case 0:
        (void)skua_process_cancel(runtime, pid, 0);
        break;
    case 1:
        if (pid.bits != 0) {
            send_letter(pid, FAIL_MESSAGE);
        }
        break;
    default:
        (void)skua_process_terminate(runtime, pid);
        break;
    }
    if (once_in(random, 500)) {
        kill_group(random, root);
    }
}

/* Keeps the rate, and waits for nothing else. */
static void pause_until(uint64_t when_ns)
{
    const struct timespec when = {(time_t)(when_ns / SKUA_SECOND), (long)(when_ns % SKUA_SECOND)};
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SKUA_SECOND + (uint64_t)now.tv_nsec;
}

/* ---- budgets ---- */

static const skua_payload nobody = {.type = 0};

/* Ends with an error as soon as it gets a message. */
static int mortal_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)ctx;
    return events[count - 1].type == SKUA_EVENT_START ? 0 : E_CRASH;
}

static const skua_process_type mortal_type = {"mortal", 0, .step = mortal_step};

static const skua_child mortal = {.name = "mortal",
                                  .type = &mortal_type,
                                  .backoff = {SKUA_MICROSECOND, SKUA_MICROSECOND, SKUA_SECOND},
                                  .budget = {BUDGET, 3600 * SKUA_SECOND}};
static const skua_supervisor strict = {.name = "strict", .children = &mortal, .child_count = 1};

/* Waits until the child runs that has been started so many times again; false if its supervisor
 * has ended. */
static bool await_child(skua_pid supervisor, uint64_t restarts, skua_pid *pid)
{
    for (;;) {
        skua_payload report;
        skua_child_report child = {0};
        const int error = skua_supervisor_report(runtime, supervisor, SKUA_FOREVER, &report);
        if (error != 0) {
            return false;
        }
        (void)skua_report_child(&report, 0, &child);
        skua_payload_drop(&report);
        if (child.state == SKUA_CHILD_RUNNING && child.restarts == restarts) {
            *pid = child.pid;
            return true;
        }
        (void)sched_yield();
    }
}

static void try_budget(void)
{
    skua_pid supervisor;
    skua_pid child;
    if (skua_process_start_supervisor(runtime, &strict, &supervisor) != 0) {
        stress_fault(&stress, STRESS_BROKEN, "a supervisor was not started");
        return;
    }
    for (uint64_t i = 0; i <= BUDGET; i++) {
        if (!await_child(supervisor, i, &child)) {
            stress_fault(&stress, STRESS_BROKEN, "a budget of %d was used up by %" PRIu64, BUDGET,
                         i);
            return;
        }
        (void)skua_process_send(runtime, child, nobody);
    }
    if (await_child(supervisor, BUDGET + 1, &child)) {
        stress_fault(&stress, STRESS_BROKEN, "a budget of %d was exceeded", BUDGET);
        (void)skua_process_terminate(runtime, supervisor);
    }
}

/* ---- the run ---- */

static uint64_t resident_bytes(void)
{
    unsigned long long size = 0;
    unsigned long long resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL || fscanf(file, "%llu %llu", &size, &resident) != 2) {
        abort();
    }
    (void)fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void harass(skua_pid root)
{
    uint64_t random = stress_stream(&stress, 0);
    uint64_t early = 0;
    const uint64_t begin = now_ns();
    for (uint64_t i = 0; stress_goes_on(&stress, stress.ops); i++) {
        pause_until(begin + i * (SKUA_SECOND / KILLS_A_SECOND));
        kill_one(&random, root);
        for (uint32_t letter = 0; letter < LETTERS; letter++) {
            const skua_pid pid = random_worker(&random);
            if (pid.bits != 0) {
                send_letter(pid, 0);
            }
        }
        if (i % TRIAL_KILLS == 0) {
            try_budget();
        }
        if (i == stress.ops / 10) {
            early = resident_bytes();
        }
        stress_count(&stress, 0, 1);
    }
    const uint64_t late = resident_bytes();
    printf("resident: %" PRIu64 " KiB after a tenth, %" PRIu64 " KiB at the end\n", early / 1024,
           late / 1024);
    if (late > early + early / 10 + GROWTH_MAX) {
        stress_fault(&stress, STRESS_BROKEN, "memory has grown");
    }
}

static uint32_t count_present(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        count += load_relaxed(&pids[i]) != 0; /* statistic */
    }
    return count;
}

/* The watchdog ends this if it takes for ever. */
static void await_all(void)
{
    while (count_present() < WORKERS) {
        (void)sched_yield();
    }
}

static void check_books(const skua_stats *stats)
{
    const uint64_t started = load_relaxed(&starts);
    const uint64_t closed = load_relaxed(&closes);
    const uint64_t sent = load_relaxed(&accepted);
    const uint64_t dropped = load_relaxed(&released);
    const uint64_t got = load_relaxed(&handled);
    printf("%" PRIu64 " starts of workers; %" PRIu64 " messages, %" PRIu64
           " of them dead letters\n",
           started, sent, stats->dead_unread);
    if (started != closed) {
        stress_fault(&stress, STRESS_LOST, "%" PRIu64 " workers were started, %" PRIu64 " closed",
                     started, closed);
    }
    if (sent != got + stats->dead_unread) {
        stress_fault(&stress, STRESS_LOST,
                     "%" PRIu64 " messages were accepted, %" PRIu64 " handled, %" PRIu64 " dead",
                     sent, got, stats->dead_unread);
    }
    if (sent != dropped) {
        stress_fault(&stress, dropped < sent ? STRESS_LOST : STRESS_DOUBLED,
                     "%" PRIu64 " messages were accepted, %" PRIu64 " released", sent, dropped);
    }
}

/* Those whose supervisor was killed end after it, and a process is counted as gone a moment after
 * its place is free. The watchdog ends this if it takes for ever. */
static void await_none(void)
{
    skua_stats stats;
    do {
        (void)sched_yield();
        (void)skua_stats_read(runtime, &stats, NULL, 0);
    } while (stats.live != 0);
}

static void end_tree(skua_pid root)
{
    skua_exit exit = {.error = SKUA_E_CANCELLED};
    const int asked = skua_process_cancel(runtime, root, 0);
    const int waited = skua_process_wait(runtime, root, SKUA_FOREVER, &exit);
    /* It may have ended before this thread waits: then how is not known any more. */
    if (asked != 0 || (waited != 0 && waited != SKUA_E_NO_PROCESS) ||
        exit.error != SKUA_E_CANCELLED) {
        stress_fault(&stress, STRESS_BROKEN, "the root: cancel %s, wait %s, ended with %s",
                     skua_error_name(asked), skua_error_name(waited), skua_error_name(exit.error));
    }
    await_none();
    if (count_present() != 0) {
        stress_fault(&stress, STRESS_BROKEN, "%u workers have outlived the tree", count_present());
    }
}

int main(int argc, char **argv)
{
    stress_begin(&stress, argc, argv, DEFAULT_OPS);
    if (skua_runtime_create(&runtime, NULL) != 0 || skua_runtime_start(runtime) != 0) {
        abort();
    }
    skua_stats stats;
    const skua_pid root = start_tree();
    await_all();
    harass(root);
    await_all();
    end_tree(root);
    if (skua_runtime_stop(runtime, SKUA_FOREVER) != 0) {
        stress_fault(&stress, STRESS_BROKEN, "the runtime does not stop");
    }
    (void)skua_stats_read(runtime, &stats, NULL, 0); /* nobody counts any more */
    if (skua_runtime_destroy(runtime) != 0) {
        stress_fault(&stress, STRESS_BROKEN, "the runtime is not destroyed");
    }
    check_books(&stats);
    return stress_end(&stress);
}
