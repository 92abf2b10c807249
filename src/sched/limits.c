/* SPDX-License-Identifier: MIT */
#include "sched/limits.h"

#include "sched/signal.h"
#include "sched/spawn.h"
#include "sched/worker.h"

/* ---- processes ---- */

struct quota *limits_granted(const skua_context *starter)
{
    if (starter == NULL || !mailbox_is_marked(starter->process)) {
        return NULL;
    }
    const struct wing *wing = annex_wing(&starter->sched->events, starter->process);
    return wing->granted != NULL ? wing->granted : wing->quota;
}

/* Release MO-inspect: as fill_record. */
static void put_mark(struct process *process, const struct quota *quota)
{
    const bool meters = quota != NULL && quota->meters;
    store_release(&process->mailbox_limit, mailbox_marked(meters ? quota->number : 0));
    if (meters) {
        process_set_progress_owner(process, process_progress(process) | PROCESS_TENDED);
    }
}

int limits_enter(struct scheduler *sched, struct worker *worker, struct process *process,
                 struct quota *quota)
{
    struct wing *wing = signal_wing(sched, worker, process);
    if (wing == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    if (!quota_charge_any(quota, QUOTA_PROCESSES, 1)) {
        return SKUA_E_PROCESS_QUOTA;
    }
    quota_hold_any(quota);
    wing->quota = quota;
    wing->is_counted = true;
    wing->settled = load_relaxed(&process->consumed); /* nobody else writes it */
    put_mark(process, quota);
    return 0;
}

void limits_leave(struct scheduler *sched, struct process *process)
{
    struct wing *wing = annex_wing(&sched->events, process);
    if (wing == NULL || !wing->is_counted) {
        return;
    }
    limits_settle(sched, process);
    quota_refund_any(wing->quota, QUOTA_PROCESSES, 1);
    wing->is_counted = false;
}

void limits_release(struct scheduler *sched, struct process *process)
{
    struct wing *wing = annex_wing(&sched->events, process);
    if (wing != NULL) {
        limits_leave(sched, process); /* one that was never published */
        quota_let_go_any(&sched->quotas, wing->granted);
        quota_let_go_any(&sched->quotas, wing->quota);
    }
}

/* ---- messages: the sender ---- */

uint32_t limits_of_mailbox(const struct scheduler *sched, struct process *process)
{
    const uint32_t limit = load_relaxed(&process->mailbox_limit); /* fixed */
    return LIKELY(limit < MAILBOX_MARK) ? limit
                                        : spawn_mailbox_limit(sched, process_type_any(process));
}

/* MO-quota: after the pin, so that a process that is alive has held the quota all the time. */
static bool is_alive(struct process *process, uint32_t generation)
{
    const uint32_t tag = event_list_tag(load_acquire(&process->word));
    return state_generation(tag) == generation && state_is_live(tag);
}

int limits_charge(struct scheduler *sched, struct process *process, uint32_t generation,
                  struct quota **quota)
{
    const uint32_t mark = load_relaxed(&process->mailbox_limit); /* fixed, while it lives */
    *quota = NULL;
    if (mark == mailbox_marked(0)) {
        return 0;
    }
    if (mark < MAILBOX_MARK) {
        return SKUA_E_NO_PROCESS; /* it had a mark, so this is of another by now */
    }
    struct quota *found = quotas_at(&sched->quotas, mark & ~MAILBOX_MARK);
    if (!quota_pin_any(found)) {
        return SKUA_E_NO_PROCESS; /* or it would hold the quota */
    }
    int error = is_alive(process, generation) ? 0 : SKUA_E_NO_PROCESS;
    if (error == 0 && !quota_charge_any(found, QUOTA_MESSAGES, 1)) {
        error = SKUA_E_MESSAGE_QUOTA;
    }
    if (error != 0) {
        quota_let_go_any(&sched->quotas, found);
        return error;
    }
    *quota = found;
    return 0;
}

void limits_pushed(struct scheduler *sched, struct quota *quota, bool is_pushed)
{
    if (quota == NULL) {
        return;
    }
    if (!is_pushed) {
        quota_refund_any(quota, QUOTA_MESSAGES, 1);
    }
    quota_let_go_any(&sched->quotas, quota);
}

/* ---- messages: the owner ---- */

/* The quota that messages to a process with a mark count against, or null. */
static struct wing *metered_wing(struct scheduler *sched, struct process *process)
{
    struct wing *wing = annex_wing(&sched->events, process);
    return wing != NULL && wing->quota != NULL && wing->quota->meters ? wing : NULL;
}

void limits_settle(struct scheduler *sched, struct process *process)
{
    struct wing *wing = metered_wing(sched, process);
    if (wing == NULL) {
        return;
    }
    const uint32_t consumed = load_relaxed(&process->consumed); /* one writer */
    const uint32_t count = consumed - wing->settled;
    if (count > 0) {
        quota_refund_any(wing->quota, QUOTA_MESSAGES, count);
        wing->settled = consumed;
    }
}

bool limits_reserve_own(struct scheduler *sched, struct process *process)
{
    const struct wing *wing = metered_wing(sched, process);
    if (wing != NULL && !quota_charge_any(wing->quota, QUOTA_MESSAGES, 1)) {
        return false;
    }
    if (mailbox_reserve_within_any(process, limits_of_mailbox(sched, process))) {
        return true;
    }
    if (wing != NULL) {
        quota_refund_any(wing->quota, QUOTA_MESSAGES, 1);
    }
    return false;
}

void limits_unreserve_own(struct scheduler *sched, struct process *process)
{
    const struct wing *wing = metered_wing(sched, process);
    mailbox_unreserve_any(process);
    if (wing != NULL) {
        quota_refund_any(wing->quota, QUOTA_MESSAGES, 1);
    }
}

bool limits_return(struct scheduler *sched, struct process *process)
{
    struct wing *wing = mailbox_is_marked(process) ? metered_wing(sched, process) : NULL;
    if (wing != NULL) {
        if (!quota_charge_any(wing->quota, QUOTA_MESSAGES, 1)) {
            return false;
        }
        wing->settled--;
    }
    mailbox_return_owner(process);
    return true;
}

/* ---- verbs ---- */

int limits_set(skua_context *ctx, const skua_quota *quota)
{
    struct scheduler *sched = ctx->sched;
    const uint64_t limit[QUOTA_KINDS] = {
        [QUOTA_PROCESSES] = quota->processes,
        [QUOTA_MESSAGES] = quota->messages,
        [QUOTA_BYTES] = quota->bytes,
    };
    struct wing *wing = signal_wing(sched, ctx->worker, ctx->process);
    if (wing == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    if (wing->granted != NULL) {
        return SKUA_E_INVALID;
    }
    struct quota *granted = quota_make_any(&sched->quotas, wing->quota, limit);
    if (granted == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    wing->granted = granted;
    lineage_join_any(&sched->lineage, &wing->member, ctx->self, (skua_pid){0}, NULL);
    lineage_set_quota_any(&sched->lineage, &wing->member, granted, true);
    put_mark(ctx->process, wing->quota);
    return 0;
}

static uint64_t used_of(struct quota *quota, enum quota_kind kind)
{
    return load_relaxed(&quota->used[kind]); /* statistic */
}

int limits_read(struct scheduler *sched, skua_pid pid, skua_quota_use *use)
{
    struct process *process;
    const int error = process_table_find_live(&sched->table, pid, &process);
    if (error != 0) {
        return error;
    }
    struct quota *quota = lineage_hold_quota_any(&sched->lineage, pid);
    *use = (skua_quota_use){.limit = {.processes = 0}};
    if (quota != NULL) {
        use->limit.processes = (uint32_t)quota->limit[QUOTA_PROCESSES];
        use->limit.messages = (uint32_t)quota->limit[QUOTA_MESSAGES];
        use->limit.bytes = (size_t)quota->limit[QUOTA_BYTES];
        use->used.processes = (uint32_t)used_of(quota, QUOTA_PROCESSES);
        use->used.messages = (uint32_t)used_of(quota, QUOTA_MESSAGES);
        use->used.bytes = (size_t)used_of(quota, QUOTA_BYTES);
        quota_let_go_any(&sched->quotas, quota);
    }
    return 0;
}
