/* SPDX-License-Identifier: MIT */
#include "supervise/supervisor.h"

#define STOP_NS (5 * SKUA_SECOND)

/* Supervisors take as long as their children. */
static uint64_t time_to_stop(const struct child *child)
{
    if (child->spec->stop_ns != 0) {
        return child->spec->stop_ns;
    }
    return overview_type(child) == skua_supervisor_type() ? SKUA_FOREVER : STOP_NS;
}

void halt_child(struct supervisor *self, struct child *child)
{
    const bool passes_on = self->is_ending && self->exit_error == SKUA_E_STOPPED;
    roster_clear_timer(self, child);
    child->state = SKUA_CHILD_STOPPING;
    const int error =
        skua_cancel(self->ctx, child->pid, passes_on ? SKUA_E_STOPPED : SKUA_E_CANCELLED);
    if (error == SKUA_E_NO_MEMORY) {
        (void)skua_terminate(self->ctx, child->pid);
    } else if (time_to_stop(child) != SKUA_FOREVER) {
        roster_set_timer(self, child, time_to_stop(child));
    }
}

void halt_too_late(struct supervisor *self, const struct child *child)
{
    (void)skua_terminate(self->ctx, child->pid); /* if it has ended, that is on its way */
}

void halt_doom(struct supervisor *self, struct child *child)
{
    if (skua_pid_is_none(child->pid) || child->is_doomed) {
        return;
    }
    child->is_doomed = true;
    self->doomed++;
    self->halt_at = listed(self);
    if ((child->is_dynamic || self->spec->parallel_stop) && child->state != SKUA_CHILD_STOPPING) {
        halt_child(self, child);
    }
}

void halt_next(struct supervisor *self)
{
    if (self->dynamic > 0 && self->is_ending) {
        return; /* they came last, so they end first */
    }
    for (; self->halt_at > 0; self->halt_at--) {
        struct child *child = &self->children[self->halt_at - 1];
        if (child->is_doomed) {
            if (child->state != SKUA_CHILD_STOPPING) {
                halt_child(self, child);
            }
            return;
        }
    }
}

void halt_begin(struct supervisor *self, int error, skua_pid cause)
{
    if (self->is_ending) {
        return;
    }
    self->is_ending = true;
    self->exit_error = error;
    self->cause = cause;
    (void)skua_supervise(self->ctx, NULL); /* it has all the memory that it needs */
    for (uint32_t i = 0; i < self->used; i++) {
        struct child *child = &self->children[i];
        if (child->state == SKUA_CHILD_WAITING) {
            roster_clear_timer(self, child);
            child->state = SKUA_CHILD_STOPPED;
        }
        halt_doom(self, child);
    }
}
