/* SPDX-License-Identifier: MIT */
#include "sched/inspect.h"

#include "process/mailbox.h"

/* Whether a process that is Ready also runs is no part of its word. */
static enum skua_process_state public_state(uint32_t tag, uint64_t progress)
{
    const bool runs = state_of(tag) == STATE_READY && (progress & PROCESS_RUNS) != 0;
    return runs ? SKUA_PROCESS_RUNNING : (enum skua_process_state)state_of(tag);
}

int inspect_process(struct scheduler *sched, skua_pid pid, skua_process_info *info)
{
    struct process *process;
    const int error = process_table_find(&sched->table, pid, &process);
    if (error != 0) {
        return error;
    }
    /* Any state of this generation, even one that is over by now, is a truth of this moment; the
     * second look at the word makes sure that the fields between belong to it. All acquire
     * (MO-inspect), so that the loads stay in this order. */
    const uint32_t before = event_list_tag(load_acquire(&process->word)); /* MO-inspect */
    if (state_generation(before) != pid_generation(pid) || !state_is_live(before)) {
        return SKUA_E_NO_PROCESS;
    }
    const skua_process_type *type = load_acquire(&process->type); /* MO-inspect */
    if (type == NULL) {
        return SKUA_E_NO_PROCESS; /* gone, and so is the memory */
    }
    const uint64_t progress = load_acquire(&process->progress); /* MO-inspect */
    *info = (skua_process_info){
        .pid = pid,
        .state = public_state(before, progress),
        .steps = progress >> PROCESS_STEP_SHIFT,
        .mailbox_length = mailbox_length(process),
        .type_name = type->name,
    };
    const uint32_t after = event_list_tag(load_acquire(&process->word)); /* MO-inspect */
    if (state_generation(after) != pid_generation(pid) || !state_is_live(after)) {
        return SKUA_E_NO_PROCESS;
    }
    return 0;
}

const char *inspect_type_name(struct scheduler *sched, skua_pid pid)
{
    struct process *process;
    if (process_table_find(&sched->table, pid, &process) != 0) {
        return "?";
    }
    const skua_process_type *type = load_acquire(&process->type);      /* MO-inspect */
    const uint32_t tag = event_list_tag(load_acquire(&process->word)); /* MO-inspect */
    return type != NULL && state_generation(tag) == pid_generation(pid) ? type->name : "?";
}
