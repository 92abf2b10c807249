/* SPDX-License-Identifier: MIT */
#include "inspect/debug.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <skua/clock.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "inspect/symbol.h"
#include "inspect/worker_view.h"
#include "sched/stack_use.h"
#include "sched/stats.h"

#define SCHEDTRACE_MAX_MS 3600000
#define STALL_MIN_NS      SKUA_MILLISECOND

/* Whether standard error takes PIPE_BUF bytes now. The threads that print watch stuck workers and
 * serve clients: they must not get stuck themselves because nobody reads a pipe. */
static bool can_print(void)
{
    struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&fd, 1, 0) > 0 && (fd.revents & POLLOUT) != 0;
}

/* Prints a line, or some, with one write, so that lines of several threads do not mix. What is
 * truncated still ends in a newline. What cannot be printed without waiting is dropped. */
static void print_line(struct text *line)
{
    if (line->length >= line->size) {
        line->length = line->size - 1;
    }
    line->at[line->length - 1] = '\n';
    size_t written = 0;
    while (written < line->length && can_print()) {
        const size_t left = line->length - written;
        const ssize_t count =
            write(STDERR_FILENO, line->at + written, left < PIPE_BUF ? left : PIPE_BUF);
        if (count < 0 && errno != EINTR) {
            return; /* there is nobody to report that to */
        }
        written += count > 0 ? (size_t)count : 0;
    }
}

/* ---- settings ---- */

/* A part of the list. */
struct item {
    const char *at;
    size_t length;
};

/* The longest part of an item that is repeated in a message. */
#define SHOWN_MAX 60

static void complain(struct item item, const char *problem)
{
    char buffer[256];
    char shown[SHOWN_MAX + 1];
    const size_t length = item.length < SHOWN_MAX ? item.length : SHOWN_MAX;
    struct text line = {.at = buffer, .size = sizeof buffer};
    memcpy(shown, item.at, length);
    shown[length] = '\0';
    text_add(&line, "skua: SKUA_DEBUG: '");
    text_add_name(&line, shown);
    text_add(&line, "%s': %s\n", item.length > SHOWN_MAX ? "..." : "", problem);
    print_line(&line);
}

static bool item_is(struct item item, const char *word)
{
    return item.length == strlen(word) && memcmp(item.at, word, item.length) == 0;
}

/* Splits off everything before the first `separator`, or all of it. */
static struct item take_until(struct item *rest, char separator)
{
    const char *found = memchr(rest->at, separator, rest->length);
    const size_t length = found != NULL ? (size_t)(found - rest->at) : rest->length;
    const size_t used = found != NULL ? length + 1 : length;
    const struct item first = {rest->at, length};
    rest->at += used;
    rest->length -= used;
    return first;
}

/* Splits off a leading decimal number; false if there is none or it exceeds `most`. */
static bool take_number(struct item *rest, uint64_t most, uint64_t *number)
{
    const char *begin = rest->at;
    *number = 0;
    while (rest->length > 0 && *rest->at >= '0' && *rest->at <= '9') {
        const uint64_t digit = (uint64_t)(*rest->at - '0');
        if (*number > (most - digit) / 10) {
            return false;
        }
        *number = *number * 10 + digit;
        rest->at++;
        rest->length--;
    }
    return rest->at != begin;
}

static bool parse_schedtrace(struct item value, uint64_t *period_ns)
{
    uint64_t number;
    if (!take_number(&value, SCHEDTRACE_MAX_MS, &number) || value.length > 0 || number == 0) {
        return false;
    }
    *period_ns = number * SKUA_MILLISECOND;
    return true;
}

static bool parse_stall(struct item value, uint64_t *limit_ns)
{
    static const struct {
        const char *suffix;
        uint64_t ns;
    } units[] = {{"us", SKUA_MICROSECOND}, {"ms", SKUA_MILLISECOND}, {"s", SKUA_SECOND}};
    uint64_t number;
    if (!take_number(&value, SKUA_DURATION_MAX, &number)) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (item_is(value, units[i].suffix) && number <= SKUA_DURATION_MAX / units[i].ns &&
            number * units[i].ns >= STALL_MIN_NS) {
            *limit_ns = number * units[i].ns;
            return true;
        }
    }
    return false;
}

static void parse_item(struct debug_settings *settings, struct item item)
{
    struct item value = item;
    const struct item key = take_until(&value, '=');
    if (item.length == 0) {
        complain(item, "an empty setting");
    } else if (item_is(key, "schedtrace")) {
        if (!parse_schedtrace(value, &settings->schedtrace_ns)) {
            complain(item, "not a number of milliseconds from 1 to 3600000");
        }
    } else if (item_is(key, "stall")) {
        if (!parse_stall(value, &settings->stall_ns)) {
            complain(item, "not a duration of at least 1ms, such as 25ms, 5000us or 1s");
        }
    } else if (item_is(item, "stacks")) {
        settings->stacks = true;
    } else if (item_is(item, "migrate")) {
        settings->migrate = true;
    } else {
        complain(item, "unknown setting; known are migrate, schedtrace, stacks and stall");
    }
}

struct debug_settings debug_parse(const char *list)
{
    struct debug_settings settings = {0};
    if (list == NULL || *list == '\0') {
        return settings;
    }
    struct item rest = {list, strlen(list)};
    const char *end = list + rest.length;
    bool more = true;
    while (more) {
        const struct item item = take_until(&rest, ',');
        more = item.at + item.length < end; /* there was a comma */
        parse_item(&settings, item);
    }
    return settings;
}

struct debug_settings debug_read_environment(void)
{
    return debug_parse(secure_getenv("SKUA_DEBUG"));
}

/* ---- stall ---- */

/* Of a deep stack the two ends are shown: where the thread is, and how the step got there. */
#define INNER_MAX 10
#define OUTER_MAX 5

static void add_frames(struct text *text, const skua_stall *stall)
{
    const uint32_t count = stall->frame_count;
    for (uint32_t i = 0; i < count; i++) {
        if (i == INNER_MAX && count > INNER_MAX + 1 + OUTER_MAX) {
            const uint32_t left_out = count - INNER_MAX - OUTER_MAX;
            text_add(text, "    ... %" PRIu32 " more ...\n", left_out);
            i += left_out;
        }
        text_add(text, "    ");
        symbol_add(text, stall->frames[i], i > 0);
        text_add(text, "\n");
    }
}

/* With one write, so that nothing comes between the lines. */
void debug_print_stall(void *arg, const skua_stall *stall)
{
    const struct debug_stall *next = arg;
    char buffer[PIPE_BUF];
    struct text line = {.at = buffer, .size = sizeof buffer};
    text_add(&line, "skua: stall: process %016" PRIx64 " (", stall->pid.bits);
    text_add_name(&line, stall->type_name);
    text_add(&line, ") has run for %" PRIu64 " ms on worker %" PRIu32 "\n",
             stall->elapsed_ns / SKUA_MILLISECOND, stall->worker);
    add_frames(&line, stall);
    print_line(&line);
    if (next->on_stall != NULL) {
        next->on_stall(next->arg, stall);
    }
}

/* ---- stacks ---- */

static void print_use(void *arg, const struct stack_use *use)
{
    char buffer[256];
    struct text line = {.at = buffer, .size = sizeof buffer};
    const struct scheduler *sched = arg;
    text_add(&line,
             "skua: stacks: runtime=%" PRIu32 " type=", process_table_runtime(&sched->table));
    text_add_name(&line, use->name);
    text_add(&line, " deepest=%zu of=%zu tasks=%" PRIu64 "\n", use->deepest, use->size, use->tasks);
    print_line(&line);
}

void debug_print_stacks(struct scheduler *sched)
{
    stack_use_tell(sched, print_use, sched);
}

/* ---- schedtrace ---- */

static void add_workers(struct text *line, struct scheduler *sched)
{
    const uint32_t threads = scheduler_threads(sched);
    for (uint32_t i = 0; i < threads; i++) {
        const struct worker_view view = worker_view_read(&sched->workers[i]);
        text_add(line, "%s%" PRIu32 ":%s:%" PRIu32, i > 0 ? " " : "", i, view.doing, view.queue);
    }
}

void debug_format_schedtrace(struct schedtrace *trace, struct scheduler *sched, uint64_t age,
                             struct text *line)
{
    skua_stats now;
    stats_read_total(sched, &now);
    const uint32_t global = load_relaxed(&sched->global.sorted); /* a snapshot */
    const uint32_t behind = load_relaxed(&sched->behind.sorted); /* likewise */
    text_add(line,
             "skua: schedtrace: runtime=%" PRIu32 " ms=%" PRIu64 " live=%" PRIu64 " global=%" PRIu32
             " behind=%" PRIu32 " workers=[",
             process_table_runtime(&sched->table), age / SKUA_MILLISECOND, now.live, global,
             behind);
    add_workers(line, sched);
    text_add(line, "]");
#define ADD(name) text_add(line, " " #name "=+%" PRIu64, now.name - trace->before.name);
    ADD(spawned)
    ADD(finished)
    ADD(messages)
    ADD(steps)
    ADD(stolen)
    ADD(parks)
    ADD(wakes)
    ADD(stalls)
#undef ADD
    text_add(line, "\n");
    trace->before = now;
}

void debug_print_schedtrace(struct schedtrace *trace, struct scheduler *sched)
{
    struct text line = {.at = trace->line, .size = sizeof trace->line};
    debug_format_schedtrace(trace, sched, monotonic_ns() - sched->account.created, &line);
    print_line(&line);
}
