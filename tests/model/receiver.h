/* SPDX-License-Identifier: MIT */
/* The one process of a model that gets messages: how it begins, and how it is left. These are
 * definitions, for one source of a model. */
#ifndef SKUA_MODEL_RECEIVER_H
#define SKUA_MODEL_RECEIVER_H

#include "explore.h"
#include "killer.h"
#include "one_token.h"
#include "rig.h"
#include "sched/worker.h"

static struct process *process;

/* Makes it, with its first token. */
static void make_receiver(const skua_process_type *its_type)
{
    tokens = 0;
    store_relaxed(&queue, 0);
    process = rig_spawn(&rig.outside.caches.processes, its_type, &its_pid);
    explore_ignore(&process->type, sizeof process->type);
    explore_ignore(&process->progress, sizeof process->progress);
    explore_ignore(&process->mailbox_limit, sizeof process->mailbox_limit);
    enqueue();
}

/* It begins, before the threads do, and rests. */
static void let_receiver_rest(void)
{
    EXPLORE_CHECK(load_relaxed(&queue) == 1, "it has a token");
    store_relaxed(&queue, 0);
    tokens--;
    step_run(&rig.workers[0], process);
    EXPLORE_CHECK(state_is_waiting(state_peek(process)), "it rests");
}

/* All threads are done. */
static void check_receiver(void)
{
    EXPLORE_CHECK(tokens == 0, "INV-3: all tokens were used");
    const uint32_t places = load_relaxed(&process->reserved) - load_relaxed(&process->consumed);
    EXPLORE_CHECK(places == 0, "INV-21: who rests or has ended has no places taken");
    const uint32_t tag = state_peek(process);
    const uint32_t annexes = state_is_live(tag) && (process_progress(process) & PROCESS_ANNEX) != 0;
    EXPLORE_CHECK(rig_free_nodes() + annexes == rig_all_nodes(),
                  "INV-20: every node is given back");
    EXPLORE_CHECK((tag & STATE_REQUESTS & ~STATE_WATCHED) == 0, "INV-5: no request is left");
    EXPLORE_CHECK(state_is_waiting(tag) || state_of(tag) == STATE_FREE, "it rests or has ended");
}

#endif
