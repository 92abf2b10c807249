/* SPDX-License-Identifier: MIT */
#include "sched/process_info.h"

#include "process/mailbox.h"

/* The word does not say whether a Ready process is running; `progress` does. Nor does it say
 * whether one that rests is held back (held_back.h), and as good as Ready. */
static enum skua_process_state public_state(uint32_t tag, uint64_t progress)
{
    if (state_of(tag) == STATE_READY && (progress & PROCESS_RUNS) != 0) {
        return SKUA_PROCESS_RUNNING;
    }
    const bool is_held_back = state_is_waiting(tag) && (progress & PROCESS_CONTINUES) != 0;
    return is_held_back ? SKUA_PROCESS_READY : (enum skua_process_state)state_of(tag);
}

/* Reads the record of a process of this generation. Any state it had during the call is a valid
 * snapshot; reading the word a second time makes sure that the fields in between belong to this
 * generation. All acquire (MO-inspect), so that the loads stay in this order. */
static bool read_record(struct scheduler *sched, struct process *process, uint32_t generation,
                        skua_process_snapshot *info)
{
    const uint32_t before = event_list_tag(load_acquire(&process->word)); /* MO-inspect */
    if (state_generation(before) != generation || !state_is_live(before)) {
        return false;
    }
    const skua_process_type *type = load_acquire(&process->type); /* MO-inspect */
    if (type == NULL) {
        return false; /* gone, and its memory trimmed */
    }
    const uint64_t progress = load_acquire(&process->progress); /* MO-inspect */
    *info = (skua_process_snapshot){
        .pid = process_table_pid(&sched->table, process, generation),
        .state = public_state(before, progress),
        .steps = progress >> PROCESS_STEP_SHIFT,
        .mailbox_length = mailbox_length(process),
        .type_name = type->name,
        .run_ns = account_run(process),
        .age_ns = account_age(&sched->account, process),
        .type_version = type->version,
    };
    if ((progress & PROCESS_SUPERVISED) != 0) {
        info->supervisor = lineage_supervisor_any(&sched->lineage, info->pid);
    }
    const uint32_t after = event_list_tag(load_acquire(&process->word)); /* MO-inspect */
    return state_generation(after) == generation && state_is_live(after);
}

int process_info_read(struct scheduler *sched, skua_pid pid, skua_process_snapshot *info)
{
    struct process *process;
    const int error = process_table_find(&sched->table, pid, &process);
    if (error != 0) {
        return error;
    }
    return read_record(sched, process, pid_generation(pid), info) ? 0 : SKUA_E_NO_PROCESS;
}

uint32_t process_info_list(struct scheduler *sched, skua_pid after, skua_process_snapshot *infos,
                           uint32_t capacity)
{
    uint32_t count = 0;
    uint32_t slot = pid_slot(after) + 1;
    for (; count < capacity && object_pool_holds(&sched->table.pool, slot); slot++) {
        struct process *process = process_at(&sched->table, slot);
        const uint32_t tag = state_peek(process); /* re-checked by read_record */
        if (state_is_live(tag) &&
            read_record(sched, process, state_generation(tag), &infos[count])) {
            count++;
        }
    }
    return count;
}

const char *process_info_type_name(struct scheduler *sched, skua_pid pid)
{
    struct process *process;
    if (process_table_find(&sched->table, pid, &process) != 0) {
        return "?";
    }
    const skua_process_type *type = load_acquire(&process->type);      /* MO-inspect */
    const uint32_t tag = event_list_tag(load_acquire(&process->word)); /* MO-inspect */
    return type != NULL && state_generation(tag) == pid_generation(pid) ? type->name : "?";
}

skua_pid process_info_at(struct scheduler *sched, uint32_t slot)
{
    struct process *process = process_at(&sched->table, slot);
    return process_table_pid(&sched->table, process, state_generation(state_peek(process)));
}
