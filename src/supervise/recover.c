/* SPDX-License-Identifier: MIT */
#include "supervise/supervisor.h"

/* ---- for good ---- */

static bool is_to_restart(const struct child *child, int error)
{
    switch (child->spec->restart) {
    case SKUA_RESTART_ALWAYS:
        return true;
    case SKUA_RESTART_ON_ERROR:
        return !is_orderly(error);
    case SKUA_RESTART_NEVER:
        break;
    }
    return false;
}

/* A significant child has ended for good. */
static void stop_by_itself(struct supervisor *self, const struct child *child)
{
    self->significant -= !child->is_dynamic;
    if (self->spec->auto_stop == SKUA_AUTO_STOP_ANY ||
        (self->spec->auto_stop == SKUA_AUTO_STOP_ALL && self->significant == 0)) {
        halt_begin(self, 0, (skua_pid){0});
    }
}

static void end_for_good(struct supervisor *self, struct child *child, skua_pid pid, int error)
{
    child->state = SKUA_CHILD_STOPPED;
    child->is_over = true;
    if (!is_orderly(error)) {
        journal_over(self, child, pid, error);
    }
    if (child->spec->significant) {
        stop_by_itself(self, child);
    }
    if (child->is_dynamic) {
        roster_remove(self, child);
    }
}

/* ---- again ---- */

static bool is_in_group(const struct supervisor *self, const struct child *child)
{
    return self->spec->strategy != SKUA_STRATEGY_ONE && !child->is_dynamic;
}

/* The place of the first that is started again with a child. */
static uint32_t first_of_group(const struct supervisor *self, const struct child *child)
{
    return self->spec->strategy == SKUA_STRATEGY_ALL ? 0 : (uint32_t)(child - self->children);
}

/* Stops those that have to be started again with a child, which comes first or in its place. */
static void restart_group(struct supervisor *self, const struct child *failed)
{
    const uint32_t from = first_of_group(self, failed);
    self->front = from < self->front ? from : self->front;
    for (uint32_t i = from; i < listed(self); i++) {
        struct child *other = &self->children[i];
        if (!skua_pid_is_none(other->pid) && !other->is_doomed) {
            journal_restart_with(self, other, failed);
            halt_doom(self, other);
        }
    }
}

/* How many others will be started again with a child. */
static uint32_t count_others(const struct supervisor *self, const struct child *child)
{
    uint32_t count = 0;
    for (uint32_t i = first_of_group(self, child); i < listed(self); i++) {
        const struct child *other = &self->children[i];
        count += other != child && !skua_pid_is_none(other->pid) &&
                 other->spec->restart != SKUA_RESTART_NEVER;
    }
    return count;
}

void recover_later(struct supervisor *self, struct child *child, uint64_t delay_ns)
{
    child->state = SKUA_CHILD_WAITING;
    child->next_start = skua_now(self->ctx) + delay_ns;
    self->waiting += !child->is_dynamic;
    roster_set_timer(self, child, delay_ns);
}

void recover_now(struct supervisor *self, struct child *child)
{
    self->waiting -= child->state == SKUA_CHILD_WAITING && !child->is_dynamic;
    child->state = SKUA_CHILD_STOPPED;
    child->next_start = 0;
    if (!is_in_group(self, child)) {
        launch_child(self, child);
    } /* or launch_next does, in its turn */
}

/* Counts a restart; false if *budget does not allow it. */
static bool spend(struct supervisor *self, struct child *child, const skua_budget **budget)
{
    const uint64_t now = skua_now(self->ctx);
    *budget = &child->spec->budget;
    if (!backoff_spend(*budget, &child->spent, now)) {
        return false;
    }
    *budget = &self->spec->budget;
    return backoff_spend(*budget, &self->spent, now);
}

static uint64_t next_delay(struct supervisor *self, struct child *child)
{
    const uint64_t delay =
        backoff_delay(&child->spec->backoff, child->failures, skua_random(self->ctx));
    child->failures += child->failures < UINT32_MAX;
    return delay;
}

void recover_child(struct supervisor *self, struct child *child, int error, skua_pid pid,
                   skua_pid cause)
{
    child->last_error = is_orderly(error) ? 0 : error;
    if (!is_to_restart(child, error)) {
        end_for_good(self, child, pid, error);
        return;
    }
    const skua_budget *budget;
    if (!spend(self, child, &budget)) {
        child->state = SKUA_CHILD_STOPPED;
        journal_give_up(self, child, pid, error, budget);
        (void)skua_count(self->ctx, SKUA_COUNT_GIVE_UP); /* cannot fail */
        halt_begin(self, SKUA_E_RESTARTS, skua_pid_is_none(cause) ? pid : cause);
        return;
    }
    const uint64_t delay = next_delay(self, child);
    const bool is_group = is_in_group(self, child);
    journal_restart(self, child, pid, error, delay, is_group ? count_others(self, child) : 0);
    if (is_group) {
        restart_group(self, child);
    }
    if (delay > 0) {
        recover_later(self, child, delay);
    } else {
        child->state = SKUA_CHILD_STOPPED;
        recover_now(self, child);
    }
}

/* A child that has run for long enough begins anew, whether it then failed or others did. */
static void forgive_failures(struct supervisor *self, struct child *child)
{
    if (child->ready_at != 0 &&
        skua_now(self->ctx) - child->ready_at >= backoff_stable(&child->spec->backoff)) {
        child->failures = 0;
    }
    child->ready_at = 0;
}

void recover_from_end(struct supervisor *self, struct child *child, int error, skua_pid cause)
{
    const skua_pid pid = child->pid;
    const bool was_doomed = child->is_doomed;
    roster_die(self, child);
    forgive_failures(self, child);
    if (!was_doomed) {
        recover_child(self, child, child->failure != 0 ? child->failure : error, pid, cause);
        return;
    }
    child->state = SKUA_CHILD_STOPPED;
    child->last_error = is_orderly(error) ? 0 : error;
    child->is_over = child->spec->restart == SKUA_RESTART_NEVER;
    if (child->is_over && child->spec->significant) {
        stop_by_itself(self, child);
    }
    if (child->is_dynamic) {
        roster_remove(self, child);
    }
}
