/* SPDX-License-Identifier: MIT */
/* Dining philosophers in the simulator; the forks are processes, too. If everybody takes the left
 * fork first, some order of messages leaves all of them waiting: a seed finds it, and finds it
 * again. If everybody takes the fork with the lower number first, none does.
 *   07_philosophers [--seeds N] [--seed S] [--trace]
 * N seeds from S on; default: 200 from 1. --trace: all that led to a deadlock, not just the end. */
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEATS        5
#define EVENING      (100 * SKUA_MILLISECOND)
#define THINKING_MAX (20 * SKUA_MILLISECOND)

enum { TAKE = 1, GIVE, HERE_YOU_ARE }; /* messages */
enum { THOUGHT = 1, EATEN };           /* tags */

/* What a philosopher is started with: the forks, in the order they are taken. */
SKUA_MESSAGE(cover, 0, skua_pid forks[2];);

struct fork {
    skua_pid holder, waiting;
};

static int fork_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct fork *fork = self;
    for (size_t i = 0; i < count; i++) {
        const bool take = events[i].payload.type == TAKE;
        if (take && !skua_pid_is_none(fork->holder)) {
            fork->waiting = events[i].from;
        } else if (events[i].type == SKUA_EVENT_MESSAGE) {
            fork->holder = take ? events[i].from : fork->waiting;
            fork->waiting = (skua_pid){0};
            skua_send(ctx, fork->holder, skua_payload_empty(HERE_YOU_ARE)); /* if any */
        }
    }
    return 0;
}

struct philosopher {
    struct cover cover;
    int held;
};

static int philosopher_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct philosopher *me = self;
    (void)ctx, (void)count;
    return cover_get(&input[0], &me->cover);
}

/* Thinks, takes one fork after the other, eats, gives them back, thinks ... */
static int philosopher_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct philosopher *me = self;
    (void)count;
    const bool got_fork = events[0].type == SKUA_EVENT_MESSAGE;
    if (got_fork && ++me->held == 2) {
        return skua_yield_sleep(ctx, EATEN, SKUA_MILLISECOND);
    }
    if (got_fork || events[0].tag == THOUGHT) {
        return skua_send(ctx, me->cover.forks[me->held], skua_payload_empty(TAKE));
    }
    for (; me->held > 0; me->held--) {
        skua_send(ctx, me->cover.forks[me->held - 1], skua_payload_empty(GIVE));
    }
    return skua_yield_sleep(ctx, THOUGHT, skua_random(ctx) % THINKING_MAX);
}

static const skua_process_type fork_type = {"fork", sizeof(struct fork), .step = fork_step};
static const skua_process_type philosopher_type = {
    "philosopher", sizeof(struct philosopher), .init = philosopher_init, .step = philosopher_step};

struct trace {
    uint64_t count, from, until; /* prints what lies between */
};

static void note(void *arg, const skua_sim_record *record)
{
    struct trace *trace = arg;
    char line[120];
    if (trace->count >= trace->from && trace->count < trace->until) {
        skua_sim_record_format(record, line, sizeof line);
        puts(line);
    }
    trace->count++;
}

/* Whether the philosophers of one dinner end up all waiting. */
static bool is_deadlock(unsigned long seed, bool ordered, struct trace *trace)
{
    const skua_sim_config sim = {
        .faults.message_delay = 100000, .on_record = note, .on_record_arg = trace};
    skua_runtime *runtime;
    skua_pid forks[SEATS];
    int error = skua_runtime_create(&runtime, &(skua_runtime_config){.seed = seed, .sim = &sim});
    error = error != 0 ? error : skua_runtime_start(runtime);
    for (int i = 0; i < SEATS && error == 0; i++) {
        error = skua_process_submit(runtime, &fork_type, skua_nothing(), &forks[i]);
    }
    for (int i = 0; i < SEATS && error == 0; i++) {
        const int right = (i + 1) % SEATS;
        const bool swap = ordered && right < i;
        const struct cover cover = {{forks[swap ? right : i], forks[swap ? i : right]}};
        skua_payload input;
        error = cover_payload(runtime, cover, &input);
        error = error != 0 ? error : skua_process_submit(runtime, &philosopher_type, input, NULL);
    }
    const int more = error != 0 ? error : skua_sim_run(runtime, SKUA_SIM_START_NS + EVENING);
    if (more < 0) {
        abort();
    }
    trace->until = trace->count; /* what follows only clears the table */
    skua_runtime_stop(runtime, SKUA_SECOND);
    skua_runtime_destroy(runtime);
    return more == 0; /* nothing can happen any more */
}

int main(int argc, char **argv)
{
    unsigned long first = 1, seeds = 200, deadlocks[] = {0, 0};
    bool whole = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0) {
            whole = true;
        } else if (i + 1 < argc && strncmp(argv[i], "--seeds", 6) == 0) {
            *(argv[i][6] == 's' ? &seeds : &first) = strtoul(argv[i + 1], NULL, 10);
            i++;
        } else {
            return puts("usage: 07_philosophers [--seeds N] [--seed FIRST] [--trace]") < 0 ? 1 : 2;
        }
    }
    for (int ordered = 0; ordered < 2; ordered++) {
        for (unsigned long seed = first; seed - first < seeds; seed++) {
            struct trace trace = {0};
            if (is_deadlock(seed, ordered != 0, &trace) && deadlocks[ordered]++ == 0) {
                printf("seed %lu: all philosophers wait. How it came to that:\n", seed);
                trace = (struct trace){0, whole ? 0 : trace.until - 10, trace.until};
                is_deadlock(seed, ordered != 0, &trace); /* the same seed, the same dinner */
            }
        }
        printf("%s fork first: %lu of %lu seeds end in a deadlock\n",
               ordered != 0 ? "lower" : "left", deadlocks[ordered], seeds);
    }
    return deadlocks[1] == 0 && (deadlocks[0] > 0 || argc > 1) ? 0 : 1;
}
