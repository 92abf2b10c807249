/* SPDX-License-Identifier: MIT */
/* The part of an exact audit that looks for senders that are held back and that nobody would let
 * go. */
#include "watch/audit.h"

#ifdef SKUA_AUDIT

#include "process/state.h"
#include "sched/held_back.h"
#include "watch/finding.h"

void audit_held_back(struct scheduler *sched, struct process *process, uint32_t tag,
                     struct finding *finding)
{
    const skua_pid pid = process_table_pid(&sched->table, process, state_generation(tag));
    if (state_is_waiting(tag) && (process_progress(process) & PROCESS_CONTINUES) != 0 &&
        !held_back_has(sched, pid)) {
        finding_note(finding, "INV-46: slot %u continues, but rests, and is in no line",
                     process->slot);
    }
}

#endif
