/* SPDX-License-Identifier: MIT */
/* What the processes of a trace are called. Those that get a name or a label, or end, while it is
 * recorded have that in the trace, in parts; the others are asked when it is over. */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "command/format.h"
#include "command/inspect/trace.h"
#include "command/support.h"

static int compare_pids(const void *a, const void *b)
{
    const uint64_t left = ((const struct trace_names *)a)->pid;
    const uint64_t right = ((const struct trace_names *)b)->pid;
    return (left > right) - (left < right);
}

/* Those of a process, perhaps new ones; null if there is no memory. */
static struct trace_names *names_of(struct trace *trace, uint64_t pid)
{
    const struct trace_names wanted = {.pid = pid};
    struct trace_names *const *known = tfind(&wanted, &trace->names, compare_pids);
    if (known != NULL) {
        return *known;
    }
    struct trace_names *names = calloc(1, sizeof *names);
    if (names != NULL) {
        names->pid = pid;
        if (tsearch(names, &trace->names, compare_pids) == NULL) {
            free(names);
            names = NULL;
        }
    }
    return names;
}

const struct trace_names *trace_find_names(const struct trace *trace, uint64_t pid)
{
    const struct trace_names wanted = {.pid = pid};
    struct trace_names *const *known = tfind(&wanted, &trace->names, compare_pids);
    if (known == NULL) {
        return NULL;
    }
    const struct trace_names *names = *known;
    const bool has_some = trace_text(&names->name) != NULL || trace_text(&names->label) != NULL;
    return has_some ? names : NULL;
}

static void set_text(struct trace_text *text, const char *whole)
{
    copy_text(text->text, sizeof text->text, whole);
    text->length = strlen(text->text);
    text->is_whole = true;
}

bool trace_set_names(struct trace *trace, uint64_t pid, const char *name, const char *label)
{
    struct trace_names *names = names_of(trace, pid);
    if (names != NULL) {
        set_text(&names->name, name);
        set_text(&names->label, label);
    }
    return names != NULL;
}

/* A part of a text. The last one is not full; of a text with a gap nothing is known. */
static void add_part(struct trace_text *text, const char *part, uint64_t number)
{
    enum { PART = 8 };
    const size_t length = strlen(part);
    if (number == 0) {
        *text = (struct trace_text){0};
    }
    if (text->length == number * PART && length <= PART &&
        text->length + length < sizeof text->text) {
        memcpy(text->text + text->length, part, length + 1);
        text->length += length;
        text->is_whole = length < PART;
    }
}

enum trace_added trace_add_name(struct trace *trace, enum trace_kind kind, uint64_t pid,
                                const char *part, uint64_t number)
{
    struct trace_names *names = names_of(trace, pid);
    if (names == NULL) {
        return TRACE_NO_MEMORY;
    }
    add_part(kind == TRACE_NAME ? &names->name : &names->label, part, number);
    return TRACE_IGNORED; /* it is nothing that happens in a track */
}

/* ---- who there is ---- */

/* A process, and how many of its steps there are. */
struct stepper {
    uint64_t pid;
    uint64_t steps;
    bool has_ended;
};

static int compare_stepper_pids(const void *a, const void *b)
{
    const struct stepper *left = a;
    const struct stepper *right = b;
    return (left->pid > right->pid) - (left->pid < right->pid);
}

static int compare_steps(const void *a, const void *b)
{
    const struct stepper *left = a;
    const struct stepper *right = b;
    return (left->steps < right->steps) - (left->steps > right->steps);
}

/* One for each record of a step or an end, sorted by PID, becomes one for each process that lives.
 * Returns how many. */
static size_t merge_steppers(struct stepper *steppers, size_t count)
{
    size_t merged = 0;
    for (size_t i = 0; i < count;) {
        struct stepper sum = {.pid = steppers[i].pid};
        for (; i < count && steppers[i].pid == sum.pid; i++) {
            sum.steps += steppers[i].steps;
            sum.has_ended |= steppers[i].has_ended;
        }
        if (!sum.has_ended) {
            steppers[merged++] = sum;
        }
    }
    return merged;
}

size_t trace_find_steppers(const struct trace *trace, uint64_t *pids, size_t most)
{
    size_t count = 0;
    struct stepper *steppers = malloc((trace->count + 1) * sizeof *steppers);
    if (steppers == NULL) {
        return 0;
    }
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_record *record = &trace->records[i];
        if (record->kind == TRACE_BEGIN || record->kind == TRACE_EXIT) {
            const bool has_ended = record->kind == TRACE_EXIT;
            steppers[count++] = (struct stepper){record->pid, !has_ended, has_ended};
        }
    }
    qsort(steppers, count, sizeof *steppers, compare_stepper_pids);
    count = merge_steppers(steppers, count);
    qsort(steppers, count, sizeof *steppers, compare_steps);
    count = count < most ? count : most;
    for (size_t i = 0; i < count; i++) {
        pids[i] = steppers[i].pid;
    }
    free(steppers);
    return count;
}
