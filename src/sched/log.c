/* SPDX-License-Identifier: MIT */
#include "sched/log.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mutex.h"
#include "sched/process_info.h"

/* So many lines in one such span; what is more is counted. */
#define LINES_MAX 5
#define SPAN_NS   UINT64_C(1000000000)

#define LINE_SIZE 400

void log_init(struct log *log)
{
    mutex_init(&log->lock);
}

void log_deinit(struct log *log)
{
    mutex_deinit(&log->lock);
}

/* Whether a line may be written now; *dropped is how many were not since the last one. */
static bool may_write(struct scheduler *sched, uint64_t *dropped)
{
    struct log *log = &sched->log;
    mutex_lock(&log->lock);
    const uint64_t now = time_now(sched->time);
    if (log->lines == 0 || now - log->since >= SPAN_NS) {
        log->since = now;
        log->lines = 0;
    }
    const bool may = log->lines < LINES_MAX;
    *dropped = may ? log->dropped : 0;
    if (may) {
        log->lines++;
        log->dropped = 0;
    } else {
        log->dropped++;
    }
    mutex_unlock(&log->lock);
    return may;
}

/* How many lines were left out, if that can be told now: when the span is over, or at the end. */
static uint64_t take_dropped(struct scheduler *sched, bool at_end)
{
    struct log *log = &sched->log;
    mutex_lock(&log->lock);
    const bool over = at_end || time_now(sched->time) - log->since >= SPAN_NS;
    const uint64_t dropped = over ? log->dropped : 0;
    log->dropped -= dropped;
    mutex_unlock(&log->lock);
    return dropped;
}

static void tell(struct scheduler *sched, skua_log line, const char *text)
{
    line.text = text;
    sched->config.on_log(sched->config.on_log_arg, &line);
}

void log_tell_dropped(struct scheduler *sched, bool at_end)
{
    const uint64_t dropped = sched->config.on_log != NULL ? take_dropped(sched, at_end) : 0;
    if (dropped > 0) {
        char text[LINE_SIZE];
        (void)snprintf(text, sizeof text, "lines left out: %" PRIu64, dropped);
        tell(sched, (skua_log){.level = SKUA_LOG_WARNING}, text);
    }
}

static void write_line(struct scheduler *sched, skua_log line, char *text, size_t length)
{
    uint64_t dropped;
    if (!may_write(sched, &dropped)) {
        return;
    }
    if (dropped > 0 && length < LINE_SIZE) {
        (void)snprintf(text + length, LINE_SIZE - length, " (lines left out before: %" PRIu64 ")",
                       dropped);
    }
    tell(sched, line, text);
}

/* Begins a line with the process; `name` may be empty. Returns its length, which is less than its
 * size. */
static size_t begin_line(char *text, const char *type_name, const char *name, skua_pid pid)
{
    char digits[SKUA_PID_TEXT_SIZE];
    const int length =
        snprintf(text, LINE_SIZE, "process %s (%.64s%s%s) ", skua_pid_format(pid, digits),
                 type_name, name[0] != '\0' ? ", " : "", name);
    return (size_t)length;
}

static size_t add_error(char *text, size_t length, int error)
{
    const bool is_ours = error > SKUA_E_USER && skua_error_name(error)[7] != '?';
    const int more = is_ours ? snprintf(text + length, LINE_SIZE - length, "%s (%d), %s",
                                        skua_error_name(error), error, skua_error_text(error))
                             : snprintf(text + length, LINE_SIZE - length, "error %d", error);
    return length + (size_t)more;
}

/* If it has ended with another one. */
static size_t add_cause(char *text, size_t length, const skua_exit *exit)
{
    char digits[SKUA_PID_TEXT_SIZE];
    if (skua_pid_is_none(exit->cause) || skua_pid_equal(exit->cause, exit->pid)) {
        return length;
    }
    return length + (size_t)snprintf(text + length, LINE_SIZE - length, "; process %s failed first",
                                     skua_pid_format(exit->cause, digits));
}

void log_failure(struct scheduler *sched, const skua_exit *exit, const struct log_about *about)
{
    if (sched->config.on_log == NULL) {
        return;
    }
    char text[LINE_SIZE];
    size_t length = begin_line(text, exit->type->name, about->name, exit->pid);
    length += (size_t)snprintf(text + length, sizeof text - length, "failed, step %" PRIu64 ": ",
                               about->steps);
    length = add_error(text, length, exit->error);
    length = add_cause(text, length, exit);
    const skua_log line = {
        .level = SKUA_LOG_ERROR, .pid = exit->pid, .type_name = exit->type->name};
    write_line(sched, line, text, length);
}

void log_upgrade_failure(struct scheduler *sched, skua_pid pid, const skua_process_type *from,
                         const skua_process_type *to, int error)
{
    if (sched->config.on_log == NULL) {
        return;
    }
    char text[LINE_SIZE];
    size_t length = begin_line(text, from->name, "", pid);
    length +=
        (size_t)snprintf(text + length, sizeof text - length,
                         "stays at version %" PRIu32 ", and cannot change to version %" PRIu32 ": ",
                         from->version, to->version);
    length = add_error(text, length, error);
    write_line(sched, (skua_log){.level = SKUA_LOG_ERROR, .pid = pid, .type_name = from->name},
               text, length);
}

void log_misuse(const skua_context *ctx, const char *text)
{
    struct scheduler *sched = ctx->sched;
    if (sched->config.on_log == NULL) {
        return;
    }
    const char *type_name = process_info_type_name(sched, ctx->self);
    char line[LINE_SIZE];
    size_t length = begin_line(line, type_name, "", ctx->self);
    length += (size_t)snprintf(line + length, sizeof line - length, "%s", text);
    write_line(sched, (skua_log){.level = SKUA_LOG_ERROR, .pid = ctx->self, .type_name = type_name},
               line, length);
}

void log_overflow(const skua_context *ctx, size_t stack_size)
{
    char text[96];
    (void)snprintf(text, sizeof text, "has used up its stack of %zu KiB: set .stack_size",
                   stack_size >> 10);
    if (ctx->sched->config.on_log != NULL) {
        log_misuse(ctx, text);
    } else {
        char line[LINE_SIZE];
        (void)begin_line(line, process_info_type_name(ctx->sched, ctx->self), "", ctx->self);
        (void)fprintf(stderr, "skua: %s%s\n", line, text);
    }
}

void log_weak_guard(struct scheduler *sched)
{
    static const char *const texts[] = {
        [STACK_GUARD_MAPPING] = "stacks of tasks are guarded by mappings of their own, as this "
                                "system has no guard pages (Linux 6.13)",
        [STACK_GUARD_CANARY] = "some stacks of tasks have no guard, only a canary: the program may "
                               "not have more mappings (vm.max_map_count)",
    };
    const uint32_t guard = load_relaxed(&sched->stacks.guard); /* told again if it changes */
    if (guard <= STACK_GUARD_PAGE || sched->config.on_log == NULL ||
        exchange_acq_rel(&sched->stacks.told, guard) == guard) { /* MO-stacks: who changes it */
        return;
    }
    char line[LINE_SIZE];
    const int length = snprintf(line, sizeof line, "%s", texts[guard]);
    const enum skua_log_level level =
        guard == STACK_GUARD_CANARY ? SKUA_LOG_WARNING : SKUA_LOG_INFO;
    write_line(sched, (skua_log){.level = level}, line, (size_t)length);
}

void log_lost_descriptor(struct scheduler *sched, const char *what)
{
    if (sched->config.on_log == NULL) {
        return;
    }
    char line[LINE_SIZE];
    const int length =
        snprintf(line, sizeof line, "the program has closed a descriptor of the runtime: %s", what);
    write_line(sched, (skua_log){.level = SKUA_LOG_ERROR}, line, (size_t)length);
}

void log_cycle(struct scheduler *sched, skua_pid first, const char *names)
{
    char line[LINE_SIZE];
    const int length = snprintf(line, sizeof line, "calls wait for each other: %s", names);
    const skua_log about = {
        .level = SKUA_LOG_WARNING, .pid = first, .type_name = process_info_type_name(sched, first)};
    write_line(sched, about, line, (size_t)length);
}
