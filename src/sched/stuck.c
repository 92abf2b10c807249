/* SPDX-License-Identifier: MIT */
#include "sched/stuck.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sched/cpu_clock.h"

#define STUCK_CPU_NS UINT64_C(100000000)
#define STUCK_NAPS   4
/* A thread that sleeps uses no CPU time, but may have been woken for a moment. */
#define NAP_CPU_NS UINT64_C(1000000)

/* Whether the kernel says that a thread is running or waits for a CPU (R), or for a page from disk
 * (D). The line is "TID (NAME) STATE ...", and the name may hold anything. */
static bool is_runnable(uint32_t thread_id)
{
    char path[64];
    char line[128];
    (void)snprintf(path, sizeof path, "/proc/self/task/%u/stat", thread_id);
    const int file = thread_id != 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) {
        return false;
    }
    const ssize_t length = read(file, line, sizeof line - 1);
    (void)close(file);
    line[length > 0 ? length : 0] = '\0';
    const char *name_end = strrchr(line, ')');
    return name_end != NULL && name_end[1] == ' ' && (name_end[2] == 'R' || name_end[2] == 'D');
}

static struct stuck_sample read_sample(struct worker *worker)
{
    cpu_clock_update(worker);
    const uint64_t cpu_ns = load_relaxed(&worker->stats.cpu_ns); /* statistic */
    return (struct stuck_sample){
        .running = load_relaxed(&worker->running),   /* a snapshot */
        .steps = load_relaxed(&worker->stats.steps), /* statistic */
        .cpu_ns = cpu_ns,
        .nap_cpu_ns = cpu_ns,
    };
}

/* Compares a worker with the sample from when it was first seen in what it does. */
static bool is_stuck(struct worker *worker)
{
    struct stuck_sample *first = &worker->stuck;
    const struct stuck_sample now = read_sample(worker);
    if (now.running == RUNNING_NOTHING || now.running != first->running ||
        now.steps != first->steps) {
        *first = now;
        return false;
    }
    const bool naps = now.cpu_ns - first->nap_cpu_ns < NAP_CPU_NS &&
                      !is_runnable(load_relaxed(&worker->thread_id)); /* a number */
    first->naps = naps ? first->naps + 1 : 0;
    first->nap_cpu_ns = now.cpu_ns;
    return now.cpu_ns - first->cpu_ns >= STUCK_CPU_NS || first->naps >= STUCK_NAPS;
}

void stuck_begin_locked(struct scheduler *sched)
{
    const uint32_t threads = scheduler_threads(sched);
    for (uint32_t i = 0; i < threads; i++) {
        sched->workers[i].stuck = read_sample(&sched->workers[i]);
    }
}

bool stuck_sample_locked(struct scheduler *sched)
{
    const uint32_t threads = scheduler_threads(sched);
    bool stuck = false;
    for (uint32_t i = 0; i < threads; i++) {
        stuck = is_stuck(&sched->workers[i]) || stuck;
    }
    return stuck;
}
