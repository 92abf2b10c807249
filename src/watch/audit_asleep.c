/* SPDX-License-Identifier: MIT */
/* The audits at moments when all workers sleep: they find work that was published and not seen. */
#include "watch/audit.h"

#ifdef SKUA_AUDIT

#include <time.h>

#include "sched/chores.h"
#include "sched/held_back.h"
#include "sched/poll.h"
#include "sched/shutdown.h"
#include "sched/timers.h"
#include "sched/worker.h"
#include "watch/finding.h"

static bool nobody_runs(struct scheduler *sched, uint32_t threads)
{
    for (uint32_t i = 0; i < threads; i++) {
        if (load_seq_cst(&sched->workers[i].running) != RUNNING_NOTHING) { /* MO-busy */
            return false;
        }
    }
    return true;
}

static bool all_sleep(struct scheduler *sched)
{
    const uint32_t threads = scheduler_threads(sched);
    const uint32_t resting = load_seq_cst(&sched->spare.resting); /* MO-spare */
    return shutdown_phase(sched) == PHASE_RUNNING &&
           load_seq_cst(&sched->callers) == 0 &&           /* MO-caller */
           load_seq_cst(&sched->parking.searching) == 0 && /* P2 */
           load_seq_cst(&sched->chores.busy) == 0 &&       /* MO-poll */
           parking_asleep(&sched->parking) + resting == threads && nobody_runs(sched, threads);
}

static void check_queues(struct scheduler *sched, struct finding *finding)
{
    const uint32_t threads = scheduler_threads(sched);
    if (global_queue_has_items_recheck(&sched->global)) {
        finding_note(finding, "INV-10: all sleep, and the global queue is not empty");
    }
    if (global_queue_has_items_recheck(&sched->behind)) {
        finding_note(finding, "INV-10: all sleep, and the queue behind is not empty");
    }
    for (uint32_t i = 0; i < threads; i++) {
        if (deque_has_items_any(&sched->workers[i].deque)) {
            finding_note(finding, "INV-10: all sleep, and the deque of worker %u is not empty", i);
        }
        if (load_acquire(&sched->workers[i].next) != NULL) { /* MO-next */
            finding_note(finding, "INV-10: all sleep, and the next slot of worker %u is not empty",
                         i);
        }
    }
}

static void check_sources(struct scheduler *sched, struct finding *finding)
{
    const uint64_t until = load_seq_cst(&sched->poll.until); /* MO-poll */
    if (poll_is_unattended(sched)) {
        finding_note(finding,
                     "INV-10: all sleep, and nobody waits for timers, descriptors, chores or "
                     "processes that are held back");
    } else if (timers_next(sched) < until || chores_next(sched) < until ||
               held_back_next(sched) < until) {
        finding_note(finding, "INV-10: all sleep, and the poller until after the first deadline");
    }
}

static void check_processes(struct scheduler *sched, struct finding *finding)
{
    struct object_pool *pool = &sched->table.pool;
    for (uint32_t slot = 1; object_pool_holds(pool, slot) && finding_is_none(finding); slot++) {
        struct process *process = object_pool_at(pool, slot);
        const uint32_t tag = event_list_tag(load_acquire(&process->word)); /* MO-inspect */
        const enum process_state state = state_of(tag);
        if (state == STATE_READY || state == STATE_INIT || state == STATE_COMPLETE) {
            finding_note(finding, "%s: all sleep, and slot %u is %s",
                         state == STATE_READY ? "INV-10" : "INV-3", slot,
                         finding_state_name(state));
        }
    }
}

static bool check_all(struct scheduler *sched, struct finding *finding)
{
    finding->text[0] = '\0';
    check_queues(sched, finding);
    check_sources(sched, finding);
    check_processes(sched, finding);
    return !finding_is_none(finding);
}

/* The monitor, or the thread that is about to stop the runtime, may be between making a process
 * Ready and enqueuing it, and any of the sleepers may just be about to see something. All of them
 * change what is checked here once they get CPU time, and if this thread gets it that often, they
 * do, too. */
void audit_asleep(struct scheduler *sched, uint32_t patience_ms)
{
    const struct timespec millisecond = {.tv_nsec = 1000000};
    struct finding finding;
    while (all_sleep(sched) && check_all(sched, &finding) && all_sleep(sched)) {
        if (patience_ms-- == 0) {
            finding_abort(&finding);
        }
        (void)nanosleep(&millisecond, NULL);
    }
}

void audit_asleep_now_and_then(struct scheduler *sched, uint32_t patience_ms)
{
    const uint32_t slots = load_relaxed(&sched->table.pool.ready); /* hint */
    if (all_sleep(sched) && finding_can_afford(slots)) {
        audit_asleep(sched, patience_ms);
    }
}

#endif
