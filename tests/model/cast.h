/* SPDX-License-Identifier: MIT */
/* Processes that deal with each other, each run by a thread and a worker of its own: its *part*.
 * What a part does is its script, a list of acts; the model performs them. The run queues are
 * counters. The code is the real one, from sched/step.c down.
 *
 * A setup may run some turns before the threads begin, so that they meet where it matters. When all
 * threads rest, what still lives is killed: then every node must be free and no place in a mailbox
 * taken, whatever was owed, watched or linked.
 *
 * These are definitions, for one source of a model. */
#ifndef SKUA_MODEL_CAST_H
#define SKUA_MODEL_CAST_H

#include <string.h>

#include "close_only.h"
#include "explore.h"
#include "no_blocking.h"
#include "no_callers.h"
#include "plain_context.h"
#include "rig.h"
#include "sched/deliver.h"
#include "sched/poll.h"
#include "sched/timers.h"
#include "sched/worker.h"
#include "tables.h"

#define PARTS_MAX 3
#define FIRER     (RIG_WORKERS_MAX - 1) /* the worker of the thread that fires timers */
#define FAILURE   (-77)                 /* the exit error of a part that fails */

/* Acts that are the same in all models; theirs follow. */
enum {
    STOP,  /* the script is over */
    PAUSE, /* goes on in the next step, which comes at once */
    END,
    FAIL,
    ACTS
};

struct part {
    struct process *process;
    skua_pid pid;
    atomic_u32 queue; /* tokens to be taken */
    uint32_t tokens;  /* not yet used to begin */
    const uint8_t *script;
    bool plays; /* the script has begun */
    uint32_t ended;
    int error; /* with which it ended */
    skua_pid cause;
};

static struct part parts[PARTS_MAX];
static uint32_t part_count;
static atomic_u32 announced; /* news for the thread that fires */

/* ---- the model's ---- */

/* Makes the rest of the initial state; the rig is there. */
static void prepare(void);

/* Performs an act. Returns 0, or an error that ends the process. */
static int perform(skua_context *ctx, uint32_t who, uint32_t act);

/* Something has arrived. Returns whether the script begins with that. */
static bool get_event(skua_context *ctx, uint32_t who, skua_event *event);

/* The process is being closed. */
static void take_leave(skua_context *ctx, uint32_t who);

/* ---- in place of submit.c and poll.c ---- */

static uint32_t part_of(const struct process *process)
{
    uint32_t who = 0;
    while (who < part_count && parts[who].process != process) {
        who++;
    }
    EXPLORE_CHECK(who < part_count, "INV-7: only those that were made are woken");
    return who;
}

void submit_ready(struct scheduler *sched, struct worker *worker, struct process *ready)
{
    (void)sched;
    (void)worker;
    struct part *part = &parts[part_of(ready)];
    EXPLORE_CHECK(++part->tokens == 1, "INV-3: at most one token");
    (void)fetch_add_seq_cst(&part->queue, 1);
}

void submit_unfinished(struct worker *worker, struct process *ready)
{
    submit_ready(&rig, worker, ready);
}

void submit_behind_all(struct worker *worker, struct process *ending)
{
    explore_note("ends in slices");
    submit_ready(&rig, worker, ending);
}

void poll_publish(struct scheduler *sched, struct worker *worker, uint64_t deadline)
{
    (void)sched;
    (void)worker;
    (void)deadline;
    (void)fetch_add_seq_cst(&announced, 1);
}

/* ---- the processes ---- */

static int play(skua_context *ctx, uint32_t who)
{
    struct part *part = &parts[who];
    while (*part->script != STOP) {
        int error = 0;
        switch (*part->script++) {
        case PAUSE:
            return skua_continue(ctx);
        case END:
            return skua_done(ctx, skua_nothing());
        case FAIL:
            return FAILURE;
        default:
            error = perform(ctx, who, part->script[-1]);
        }
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

static int step_part(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    const uint32_t who = part_of(ctx->process);
    bool goes_on = false;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CONTINUE) {
            goes_on = true;
        } else if (get_event(ctx, who, &events[i]) && !parts[who].plays) {
            parts[who].plays = goes_on = true;
        }
    }
    return goes_on ? play(ctx, who) : 0;
}

static void close_part(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self;
    const uint32_t who = part_of(ctx->process);
    explore_note("ends: %s", skua_error_name(exit->error));
    EXPLORE_CHECK(++parts[who].ended == 1, "a process ends once");
    parts[who].error = exit->error;
    parts[who].cause = exit->cause;
    take_leave(ctx, who);
}

#define PART_TYPE(name_) .name = name_, .step = step_part, .close = close_part

/* ---- threads ---- */

static const uint32_t numbers[PARTS_MAX] = {0, 1, 2};

static void spoil_chain(const struct object_chain *chain)
{
    uint32_t index = chain->first;
    for (uint32_t i = 0; i < chain->count; i++) {
        struct event_node *node = event_at(&rig.events, index);
        volatile struct pool_link *link = &node->as.link;
        index = link->next;
        node->as.half.peer.bits = node->as.half.cause.bits = UINT64_MAX;
        node->as.half.peer_half = node->as.half.previous = node->as.half.next = UINT32_MAX;
        node->as.half.flags = node->as.half.spare = UINT32_MAX;
        link->next = index;
    }
}

/* Writes to the free nodes that the worker has at hand: if somebody else still uses one that was
 * released, that is a data race. */
static void spoil_free_nodes(const struct worker *worker)
{
    spoil_chain(&worker->caches.events.active);
    spoil_chain(&worker->caches.events.spare);
}

static void take_turns(uint32_t who, uint32_t turns)
{
    struct worker *worker = &rig.workers[who];
    worker->turns_max = turns;
    parts[who].tokens--;
    step_run(worker, parts[who].process);
    spoil_free_nodes(worker);
}

static void run_part(const void *number)
{
    const uint32_t who = *(const uint32_t *)number;
    for (;;) {
        explore_take(&parts[who].queue);
        take_turns(who, 4);
    }
}

/* Not all models have timers. */
__attribute__((unused)) static void run_firer(const void *arg)
{
    (void)arg;
    for (;;) {
        explore_take(&announced);
        timers_fire_all(&rig, &rig.workers[FIRER], RIG_BEGINNING * 2);
        spoil_free_nodes(&rig.workers[FIRER]);
    }
}

static void run_killer(const void *number)
{
    const uint32_t who = *(const uint32_t *)number;
    (void)deliver_request(&rig, NULL, parts[who].pid, STATE_KILL);
}

#define PART(name_, who_) EXPLORE_THREAD(name_, run_part, &numbers[who_])
#define FIRES             EXPLORE_THREAD("firer", run_firer, NULL)
#define KILLS(who_)       EXPLORE_THREAD("killer", run_killer, &numbers[who_])

/* All queues are empty. */
#define MAY_REST cast_rests
static bool cast_rests(void)
{
    for (uint32_t i = 0; i < part_count; i++) {
        if (load_relaxed(&parts[i].queue) != 0) {
            return false;
        }
    }
    return true;
}

/* ---- for setups ---- */

struct scene {
    const char *turns; /* that are taken before the threads begin: digits, each a part */
    struct {
        const skua_process_type *type;
        uint8_t script[9]; /* ended by STOP */
    } cast[PARTS_MAX];
};

static void ignore(const volatile void *from, const volatile void *to)
{
    explore_ignore(from, (size_t)((const volatile char *)to - (const volatile char *)from));
}

static void cast_add(const skua_process_type *type, const uint8_t *script)
{
    struct part *part = &parts[part_count++];
    part->process = rig_spawn(&rig.outside.caches.processes, type, &part->pid);
    part->script = script;
    ignore(&part->process->type, &part->process->born);
    ignore(&part->process->reserved, &part->process->link);
    ignore(&part->process->mailbox_limit, &part->process->state);
    submit_ready(&rig, NULL, part->process);
}

/* Runs one turn of a part, which has a token. */
static void cast_turn(uint32_t who)
{
    EXPLORE_CHECK(load_relaxed(&parts[who].queue) == 1, "it has a token");
    store_relaxed(&parts[who].queue, 0);
    take_turns(who, 1);
}

static void play_scene(const struct scene *scene)
{
    rig_reset(RIG_WORKERS_MAX);
    memset(parts, 0, sizeof parts);
    part_count = 0;
    store_relaxed(&announced, 0);
    prepare();
    for (uint32_t i = 0; i < PARTS_MAX && scene->cast[i].type != NULL; i++) {
        cast_add(scene->cast[i].type, scene->cast[i].script);
    }
    for (const char *turn = scene->turns; *turn != '\0'; turn++) {
        cast_turn((uint32_t)(*turn - '0'));
    }
}

/* Defines a setup. */
#define SCENE(name_, turns_, ...)                                                                  \
    static void name_(void)                                                                        \
    {                                                                                              \
        static const struct scene scene = {.turns = (turns_), .cast = {__VA_ARGS__}};              \
        play_scene(&scene);                                                                        \
    }

/* ---- for the end ---- */

static bool is_live(uint32_t who)
{
    return parts[who].ended == 0;
}

static void check_mailbox(uint32_t who)
{
    struct process *process = parts[who].process;
    EXPLORE_CHECK(load_relaxed(&process->reserved) == load_relaxed(&process->consumed),
                  "INV-21: who has ended has no places taken");
    EXPLORE_CHECK(state_of(state_peek(process)) == STATE_FREE, "INV-20: its slot is free");
}

/* Ends all that still live, as at the end of a runtime. Nothing must be left. */
static void cast_end(void)
{
    for (uint32_t i = 0; i < part_count; i++) {
        EXPLORE_CHECK(parts[i].tokens == 0, "INV-3: all tokens were used");
        EXPLORE_CHECK(!is_live(i) || state_is_waiting(state_peek(parts[i].process)),
                      "INV-5: who lives rests");
    }
    for (uint32_t i = 0; i < part_count; i++) {
        (void)deliver_request(&rig, NULL, parts[i].pid, STATE_KILL);
        for (uint32_t who = 0; who < part_count; who++) {
            while (load_relaxed(&parts[who].queue) != 0) {
                cast_turn(who);
            }
        }
    }
    for (uint32_t i = 0; i < part_count; i++) {
        EXPLORE_CHECK(parts[i].ended == 1, "it ended");
        check_mailbox(i);
    }
    EXPLORE_CHECK(rig_free_nodes() == rig_all_nodes(), "INV-20: every node is given back");
}

#endif
