/* SPDX-License-Identifier: MIT */
/* The deque as the run queue of a scheduler that forgives: who gets a process claims it, Ready to
 * Running, and drops what it cannot claim. Then an item that is returned twice does no harm, and
 * nobody notices; what remains is whether a process can be lost. The deque of this library returns
 * nothing twice, so here all claims succeed; the case is for the mutants of it.
 *
 * Four processes are in the deque. The owner runs two of them to their end; the next one asks for
 * another step and is put back. A thief takes up to half of what it sees, once.
 *
 * INV-3: a process that is Ready is in the deque. */
#include "concurrent/deque.h"
#include "explore.h"

#define PROCESSES 4

enum { READY, RUNNING, DONE };

struct process {
    atomic_u32 state;
    uint32_t steps; /* that it has made; its first one asks for another */
};

static struct deque deque;
static struct process processes[PROCESSES];

static unsigned number_of(const struct process *process)
{
    return (unsigned)(process - processes);
}

static bool claim(struct process *process)
{
    uint32_t ready = READY;
    if (cas_acq_rel_relaxed(&process->state, &ready, RUNNING)) {
        explore_note("runs p%u", number_of(process));
        return true;
    }
    explore_note("drops p%u, which is not Ready", number_of(process));
    return false;
}

static void run_to_its_end(struct process *process)
{
    if (claim(process)) {
        store_release(&process->state, DONE);
    }
}

/* The first step of a process asks for another: it becomes Ready again and goes to the deque. */
static void run_once(struct process *process)
{
    if (!claim(process)) {
        return;
    }
    if (process->steps++ > 0) {
        store_release(&process->state, DONE);
        return;
    }
    store_release(&process->state, READY);
    explore_note("puts p%u back", number_of(process));
    EXPLORE_CHECK(deque_push_owner(&deque, process), "there is room for what was popped");
}

static void run_owner(const void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < PROCESSES; i++) {
        struct process *process = deque_pop_owner(&deque);
        if (process == NULL) {
            return;
        }
        if (i < 2) {
            run_to_its_end(process);
        } else {
            run_once(process);
        }
    }
}

static void run_thief(const void *arg)
{
    (void)arg;
    void *batch[DEQUE_CAPACITY];
    const int count = deque_steal_any(&deque, batch, DEQUE_CAPACITY);
    for (int i = 0; i < count; i++) {
        explore_note("has stolen p%u", number_of(batch[i]));
        run_to_its_end(batch[i]);
    }
}

static void setup(void)
{
    deque_init(&deque);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        store_relaxed(&processes[i].state, READY);
        processes[i].steps = 0;
        EXPLORE_CHECK(deque_push_owner(&deque, &processes[i]), "the deque has room for all");
    }
}

/* What the owner finds in the end runs, too. */
static void finish(void)
{
    for (struct process *process; (process = deque_pop_owner(&deque)) != NULL;) {
        run_to_its_end(process);
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        EXPLORE_CHECK(load_relaxed(&processes[i].state) == DONE,
                      "INV-3: no process is Ready and in no queue");
    }
}

static const struct explore_model models[] = {
    {
        .name = "forgiving",
        .mode = EXPLORE_ALL,
        .setup = setup,
        .threads = {EXPLORE_THREAD("owner", run_owner, NULL),
                    EXPLORE_THREAD("thief", run_thief, NULL)},
        .finish = finish,
    },
};

EXPLORE_MAIN(models)
