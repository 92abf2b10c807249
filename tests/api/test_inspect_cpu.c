/* SPDX-License-Identifier: MIT */
/* What the inspector says of the workers' CPU time, from which `skua top` and `skua stat` have
 * their shares, is what the kernel says of the same threads. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "actor.h"
#include "inspected.h"

#define WORKERS 2
/* Bursts are shorter than the time between two looks of the monitor, and so are the pauses. */
#define BURST_NS (600 * SKUA_MICROSECOND)
#define PAUSE_NS SKUA_MILLISECOND
#define WARM_UP  20
#define BURSTS   600
/* Five points of a hundred. */
#define TOLERANCE 20

/* ---- what the kernel says ---- */

static uint64_t read_first_number(const char *task, const char *file)
{
    char path[300];
    uint64_t number = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/%s", task, file);
    FILE *stream = fopen(path, "re");
    assert_non_null(stream);
    assert_int_equal(fscanf(stream, "%" SCNu64, &number), 1);
    (void)fclose(stream);
    return number;
}

/* The number in a worker's name; WORKERS for other threads. */
static uint32_t find_worker(const char *task)
{
    char path[300];
    uint32_t number = WORKERS;
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/comm", task);
    FILE *stream = fopen(path, "re");
    if (stream != NULL) { /* null: it has ended */
        if (fscanf(stream, "skua-%" SCNu32, &number) != 1 || number > WORKERS) {
            number = WORKERS;
        }
        (void)fclose(stream);
    }
    return number;
}

static void read_kernel(uint64_t *cpu_ns)
{
    uint32_t found = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        const uint32_t worker = task->d_name[0] == '.' ? WORKERS : find_worker(task->d_name);
        if (worker < WORKERS) {
            cpu_ns[worker] = read_first_number(task->d_name, "schedstat");
            found++;
        }
    }
    (void)closedir(tasks);
    assert_int_equal(found, WORKERS);
}

/* ---- what the inspector says ---- */

/* The same moment by both: the kernel is asked before and after the inspector, which may have to
 * wait for its turn. */
struct reading {
    uint64_t before[WORKERS];
    uint64_t told[WORKERS];
    uint64_t after[WORKERS];
    uint64_t now;
};

static size_t find_column(const struct inspect_client *client, const char *name)
{
    const struct inspect_line *names = inspect_find(client, "counters", 0);
    size_t column = 1;
    while (strcmp(names->fields[column], name) != 0) {
        column++;
        assert_true(column < names->count);
    }
    return column - 1;
}

static void take_reading(struct inspect_client *client, struct reading *reading)
{
    read_kernel(reading->before);
    client_ask(client, "stats");
    read_kernel(reading->after);
    reading->now = inspect_number(inspect_find(client, "now", 0), 1);
    const size_t column = 7 + find_column(client, "cpu_ns");
    for (size_t i = 0; i < WORKERS; i++) {
        reading->told[i] = inspect_number(inspect_find(client, "worker", i), column);
    }
}

/* ---- a load of short bursts ---- */

static uint64_t thread_cpu_ns(void)
{
    struct timespec used;
    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), 0);
    return (uint64_t)used.tv_sec * SKUA_SECOND + (uint64_t)used.tv_nsec;
}

static int burn(struct turn *turn, const struct act *act)
{
    (void)turn;
    const uint64_t end = thread_cpu_ns() + BURST_NS;
    while (thread_cpu_ns() < end) {
    }
    tally_add(act->arg, 1);
    return 0;
}

TEST(cpu_time_of_workers_is_that_of_their_threads)
{
    struct tally bursts;
    struct reading first;
    struct reading last;
    tally_init(&bursts);
    inspected_open((skua_runtime_config){.worker_count = WORKERS});
    struct inspect_client *client = client_open();
    for (uint32_t i = 0; i < WORKERS; i++) {
        (void)actor_start(ACTS(sleeps(1, PAUSE_NS), expects(completion(1, 0)), does(burn, &bursts),
                               repeats(BURSTS)));
    }
    tally_wait(&bursts, WARM_UP);
    take_reading(client, &first);
    tally_wait(&bursts, BURSTS);
    take_reading(client, &last);
    tally_wait(&bursts, WORKERS * (BURSTS + 1)); /* they end by themselves */
    world_close();
    const uint64_t tolerance = (last.now - first.now) / TOLERANCE;
    for (size_t i = 0; i < WORKERS; i++) {
        const uint64_t told = last.told[i] - first.told[i];
        const uint64_t least = last.before[i] - first.after[i];
        const uint64_t most = last.after[i] - first.before[i];
        assert_true(told + tolerance >= least);
        assert_true(told <= most + tolerance);
    }
}
