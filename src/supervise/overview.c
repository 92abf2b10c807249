/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "supervise/supervisor.h"

/* The bytes of a report. The library that reads it may be another one than that of the program that
 * asked, never another one than that which wrote it. */
struct report {
    size_t count;
    skua_child_report children[];
};

const char *overview_name(const struct child *child)
{
    if (child->is_dynamic) {
        const skua_child_start *start = skua_payload_data(&child->start);
        if (start->name != NULL || start->label != NULL) {
            return start->name != NULL ? start->name : start->label;
        }
    }
    return child->spec->name;
}

const skua_process_type *overview_type(const struct child *child)
{
    return child->spec->supervisor != NULL ? skua_supervisor_type() : child->spec->type;
}

static void describe(const struct child *child, skua_child_report *report)
{
    *report = (skua_child_report){
        .pid = child->pid,
        .type = overview_type(child),
        .state = child->state,
        .is_supervisor = overview_type(child) == skua_supervisor_type(),
        .is_dynamic = child->is_dynamic,
        .is_over = child->is_over,
        .last_error = child->last_error,
        .restarts = child->restarts,
        .started_at = child->started_at,
        .next_start = child->state == SKUA_CHILD_WAITING ? child->next_start : 0,
    };
    (void)snprintf(report->name, sizeof report->name, "%s", overview_name(child));
}

int overview_child(const struct supervisor *self, size_t place, skua_child_report *child)
{
    if (place >= self->used) {
        return SKUA_E_INVALID;
    }
    if (self->children[place].spec == NULL) {
        return 0;
    }
    describe(&self->children[place], child);
    return 1;
}

static size_t count_children(const struct supervisor *self)
{
    size_t count = 0;
    for (uint32_t i = 0; i < self->used; i++) {
        count += self->children[i].spec != NULL;
    }
    return count;
}

static int write_report(struct supervisor *self, skua_payload *payload)
{
    void *data;
    const size_t count = count_children(self);
    const int error = skua_payload_alloc(self->ctx, SKUA_SUPERVISOR_REPORT,
                                         sizeof(struct report) + count * sizeof(skua_child_report),
                                         &data, payload);
    if (error != 0) {
        return error;
    }
    struct report *report = data;
    report->count = 0;
    for (uint32_t i = 0; i < self->used; i++) {
        if (self->children[i].spec != NULL) {
            describe(&self->children[i], &report->children[report->count++]);
        }
    }
    return 0;
}

void overview_answer(struct supervisor *self, const skua_event *event)
{
    skua_payload payload = skua_nothing();
    const int error = event->payload.type == SKUA_SUPERVISOR_REPORT ? write_report(self, &payload)
                                                                    : SKUA_E_INVALID;
    (void)skua_reply(self->ctx, event->request, error, payload);
}

/* ---- reading one ---- */

static const struct report *report_of(const skua_payload *payload)
{
    const bool is_one = payload != NULL && payload->type == SKUA_SUPERVISOR_REPORT &&
                        payload->storage == SKUA_PAYLOAD_OWNED &&
                        payload->as.owned.size >= sizeof(struct report);
    return is_one ? payload->as.owned.data : NULL;
}

size_t skua_report_count(const skua_payload *report)
{
    return report_of(report) != NULL ? report_of(report)->count : 0;
}

int skua_report_child_sized(const skua_payload *report, size_t index, skua_child_report *child,
                            size_t child_size)
{
    if (child == NULL || index >= skua_report_count(report)) {
        return SKUA_E_INVALID;
    }
    const skua_child_report *own = &report_of(report)->children[index];
    memset(child, 0, child_size);
    memcpy(child, own, child_size < sizeof *own ? child_size : sizeof *own);
    return 0;
}

const char *skua_child_state_name(enum skua_child_state state)
{
    switch (state) {
    case SKUA_CHILD_STOPPED:
        return "stopped";
    case SKUA_CHILD_STARTING:
        return "starting";
    case SKUA_CHILD_RUNNING:
        return "running";
    case SKUA_CHILD_WAITING:
        return "waiting";
    case SKUA_CHILD_STOPPING:
        return "stopping";
    }
    return "?";
}
