/* SPDX-License-Identifier: MIT */
/* Which event of a trace is taken where.
 *   - It goes from the last send of a node to the take of that: nodes are used again. If there was
 *     a gap in between, in any track, another take or send may be missing: no arrow then.
 *   - A take belongs to the next begin of its track. */
#include <stdlib.h>

#include "command/inspect/trace.h"

/* ---- gaps ---- */

struct gap {
    uint64_t begin_ns;
    uint64_t end_ns;
};

/* In the order of their begins. After gaps_find, end_ns is the latest end of a gap and all those
 * before it. */
struct gaps {
    size_t count;
    struct gap *gaps;
};

static bool gaps_find(const struct trace *trace, struct gaps *gaps)
{
    size_t open[TRACE_TRACKS] = {0}; /* the number of each track's open gap, plus 1 */
    size_t lost = 0;
    for (size_t i = 0; i < trace->count; i++) {
        lost += trace->records[i].kind == TRACE_LOST;
    }
    gaps->count = 0;
    gaps->gaps = malloc((lost + 1) * sizeof *gaps->gaps);
    if (gaps->gaps == NULL) {
        return false;
    }
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_record *record = &trace->records[i];
        if (open[record->track] > 0) {
            gaps->gaps[open[record->track] - 1].end_ns = record->time_ns;
            open[record->track] = 0;
        }
        if (record->kind == TRACE_LOST) {
            gaps->gaps[gaps->count++] = (struct gap){record->time_ns, UINT64_MAX};
            open[record->track] = gaps->count;
        }
    }
    for (size_t i = 1; i < gaps->count; i++) {
        if (gaps->gaps[i].end_ns < gaps->gaps[i - 1].end_ns) {
            gaps->gaps[i].end_ns = gaps->gaps[i - 1].end_ns;
        }
    }
    return true;
}

/* Whether any track has a gap between two times. */
static bool gaps_overlap(const struct gaps *gaps, uint64_t begin_ns, uint64_t end_ns)
{
    size_t low =
        0; /* of the gaps before `low` all begin by the end, of those from `high` on none */
    size_t high = gaps->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (gaps->gaps[middle].begin_ns <= end_ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && gaps->gaps[low - 1].end_ns > begin_ns;
}

/* ---- arrows ---- */

/* A record that has to do with an event; all of them are sorted by node, then time. */
struct event_use {
    uint64_t node;
    uint32_t record;
};

static int compare_uses(const void *a, const void *b)
{
    const struct event_use *left = a;
    const struct event_use *right = b;
    if (left->node != right->node) {
        return left->node < right->node ? -1 : 1;
    }
    return (left->record > right->record) - (left->record < right->record);
}

static bool is_source(const struct trace_record *record)
{
    return record->kind == TRACE_SEND || record->kind == TRACE_TIMER ||
           record->kind == TRACE_COMPLETE;
}

/* Finds the takes that are followed by the step they belong to: an arrow can end there. Their
 * `arrow` becomes 1. */
static void mark_takes(struct trace *trace)
{
    uint64_t next_pid[TRACE_TRACKS] = {0}; /* of the next begin in each track; 0: there is none */
    for (size_t i = trace->count; i-- > 0;) {
        struct trace_record *record = &trace->records[i];
        if (record->kind == TRACE_BEGIN) {
            next_pid[record->track] = record->pid;
        } else if (record->kind == TRACE_LOST) {
            next_pid[record->track] = 0;
        } else if (record->kind == TRACE_TAKE) {
            record->arrow = record->pid != 0 && record->pid == next_pid[record->track];
        }
    }
}

/* Gives each send and the take of the same event a number of their own. */
static void number_arrows(struct trace *trace, const struct gaps *gaps,
                          const struct event_use *uses, size_t count)
{
    uint32_t arrows = 0;
    for (size_t i = 0; i < count; i++) {
        struct trace_record *take = &trace->records[uses[i].record];
        if (is_source(take)) {
            continue;
        }
        struct trace_record *source = i > 0 ? &trace->records[uses[i - 1].record] : take;
        const bool belong_together = take->arrow != 0 && is_source(source) &&
                                     uses[i - 1].node == uses[i].node && source->pid == take->pid &&
                                     !gaps_overlap(gaps, source->time_ns, take->time_ns);
        take->arrow = 0;
        if (belong_together) {
            source->arrow = take->arrow = ++arrows;
        }
    }
}

bool trace_find_arrows(struct trace *trace)
{
    struct gaps gaps;
    struct event_use *uses = malloc((trace->count + 1) * sizeof *uses);
    if (uses == NULL) {
        return false;
    }
    if (!gaps_find(trace, &gaps)) {
        free(uses);
        return false;
    }
    size_t count = 0;
    for (size_t i = 0; i < trace->count; i++) {
        if (is_source(&trace->records[i]) || trace->records[i].kind == TRACE_TAKE) {
            uses[count++] = (struct event_use){trace->records[i].node, (uint32_t)i};
        }
    }
    qsort(uses, count, sizeof *uses, compare_uses);
    mark_takes(trace);
    number_arrows(trace, &gaps, uses, count);
    free(gaps.gaps);
    free(uses);
    return true;
}
