/* SPDX-License-Identifier: MIT */
/* The counters of a running program at one moment. */
#include <stdlib.h>
#include <string.h>

#include "command/inspect/inspect.h"

/* More workers than that are no answer; a runtime has fewer than 1500. */
enum { WORKERS_MAX = 4096 };

/* Where the answer has which counter: programs of other versions have others. */
struct columns {
    size_t count;
    enum counter counter[CLIENT_FIELDS_MAX]; /* COUNTERS: not one that is known */
};

static enum counter find_counter(const char *name)
{
#define COUNTER_TEXT(name) #name,
    static const char *const names[] = {SKUA_STATS_MAP(COUNTER_TEXT)};
#undef COUNTER_TEXT
    enum counter counter = 0;
    while (counter < COUNTERS && strcmp(name, names[counter]) != 0) {
        counter++;
    }
    return counter;
}

static bool read_columns(const struct line *line, struct columns *columns)
{
    columns->count = line->count - 1;
    for (size_t i = 0; i < columns->count; i++) {
        columns->counter[i] = find_counter(line->field[i + 1]);
    }
    return true;
}

/* The values of the fields from `first` on. */
static bool read_counters(const struct line *line, size_t first, const struct columns *columns,
                          uint64_t *counters)
{
    uint64_t value;
    memset(counters, 0, COUNTERS * sizeof *counters);
    for (size_t i = 0; i < columns->count; i++) {
        if (!line_number(line, first + i, &value)) {
            return false;
        }
        if (columns->counter[i] != COUNTERS) {
            counters[columns->counter[i]] = value;
        }
    }
    return true;
}

static bool grow(struct sample *sample)
{
    if (sample->worker_count < sample->worker_capacity) {
        return true;
    }
    const size_t capacity = sample->worker_capacity == 0 ? 16 : 2 * sample->worker_capacity;
    if (capacity > WORKERS_MAX) {
        return false;
    }
    struct worker_sample *workers = realloc(sample->workers, capacity * sizeof *workers);
    if (workers == NULL) {
        return false;
    }
    sample->workers = workers;
    sample->worker_capacity = capacity;
    return true;
}

static bool read_worker(const struct line *line, const struct columns *columns,
                        struct sample *sample)
{
    char kind[16];
    if (!grow(sample)) {
        return false;
    }
    struct worker_sample *worker = &sample->workers[sample->worker_count++];
    const bool whole = line_number(line, 1, &worker->number) &&
                       line_text(line, 2, kind, sizeof kind) &&
                       line_text(line, 3, worker->doing, sizeof worker->doing) &&
                       line_number(line, 4, &worker->queue) && line_pid(line, 5, &worker->pid) &&
                       line_text(line, 6, worker->type, sizeof worker->type) &&
                       read_counters(line, 7, columns, worker->counter);
    worker->is_spare = whole && strcmp(kind, "spare") == 0;
    return whole;
}

/* Programs of earlier versions tell nothing of sockets. */
static bool read_now(const struct line *line, struct sample *sample)
{
    return line_number(line, 1, &sample->now_ns) && line_number(line, 2, &sample->age_ns) &&
           line_number(line, 3, &sample->live) && line_number(line, 4, &sample->global) &&
           (line->count <= 6 ||
            (line_number(line, 5, &sample->sockets) && line_number(line, 6, &sample->closing)));
}

static bool take_line(const struct line *line, struct columns *columns, struct sample *sample)
{
    if (line_is(line, "now")) {
        return read_now(line, sample);
    }
    if (line_is(line, "counters")) {
        return read_columns(line, columns);
    }
    if (line_is(line, "total")) {
        return read_counters(line, 1, columns, sample->counter);
    }
    return line_is(line, "worker") ? read_worker(line, columns, sample) : true;
}

enum client_result sample_read(struct client *client, struct sample *sample)
{
    struct columns columns = {.count = 0};
    struct line line;
    enum client_result result;
    sample->now_ns = 0;
    sample->sockets = 0;
    sample->closing = 0;
    sample->worker_count = 0;
    client_ask(client, "stats");
    while ((result = client_read(client, &line)) == CLIENT_LINE) {
        if (!take_line(&line, &columns, sample)) {
            return CLIENT_BROKEN;
        }
    }
    return result == CLIENT_END && sample->now_ns == 0 ? CLIENT_BROKEN : result;
}

void sample_free(struct sample *sample)
{
    free(sample->workers);
}

static double per_second(const struct sample *before, const struct sample *after, uint64_t was,
                         uint64_t is)
{
    if (after->now_ns <= before->now_ns || is <= was) {
        return 0;
    }
    return (double)(is - was) / ((double)(after->now_ns - before->now_ns) / 1e9);
}

double sample_rate(const struct sample *before, const struct sample *after, enum counter counter)
{
    return per_second(before, after, before->counter[counter], after->counter[counter]);
}

double worker_rate(const struct sample *before, const struct sample *after,
                   const struct worker_sample *worker, enum counter counter)
{
    uint64_t was = 0; /* a spare worker that has started since */
    for (size_t i = 0; i < before->worker_count; i++) {
        if (before->workers[i].number == worker->number) {
            was = before->workers[i].counter[counter];
        }
    }
    return per_second(before, after, was, worker->counter[counter]);
}

double worker_busy(const struct sample *before, const struct sample *after,
                   const struct worker_sample *worker)
{
    const double busy = worker_rate(before, after, worker, COUNTER_cpu_ns) / 1e9;
    return busy < 1 ? busy : 1; /* the clocks are read one after the other */
}

double sample_busy(const struct sample *before, const struct sample *after)
{
    double busy = 0;
    size_t workers = 0;
    for (size_t i = 0; i < after->worker_count; i++) {
        if (!after->workers[i].is_spare) {
            busy += worker_busy(before, after, &after->workers[i]);
            workers++;
        }
    }
    return workers > 0 ? busy / (double)workers : 0;
}

uint64_t sample_queued(const struct sample *sample)
{
    uint64_t queued = sample->global;
    for (size_t i = 0; i < sample->worker_count; i++) {
        queued += sample->workers[i].queue;
    }
    return queued;
}

bool sample_has_sockets(const struct sample *sample)
{
    return sample->sockets != 0 || sample->counter[COUNTER_accepted] != 0 ||
           sample->counter[COUNTER_connected] != 0;
}
