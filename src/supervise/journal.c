/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>

#include "supervise/supervisor.h"

#define LINE_SIZE     400
#define ERROR_SIZE    128
#define END_SIZE      200
#define DURATION_SIZE 32

static const char *error_text(int error, char text[ERROR_SIZE])
{
    const bool is_ours = error > SKUA_E_USER && skua_error_name(error)[7] != '?';
    if (is_ours) {
        (void)snprintf(text, ERROR_SIZE, "%s (%d)", skua_error_name(error), error);
    } else {
        (void)snprintf(text, ERROR_SIZE, error == 0 ? "no error" : "error %d", error);
    }
    return text;
}

static const char *duration_text(uint64_t duration_ns, char text[DURATION_SIZE])
{
    const double seconds = (double)duration_ns / (double)SKUA_SECOND;
    if (duration_ns < SKUA_MILLISECOND) {
        (void)snprintf(text, DURATION_SIZE, "%" PRIu64 " us", duration_ns / SKUA_MICROSECOND);
    } else if (duration_ns < SKUA_SECOND) {
        (void)snprintf(text, DURATION_SIZE, "%" PRIu64 " ms", duration_ns / SKUA_MILLISECOND);
    } else {
        (void)snprintf(text, DURATION_SIZE, "%.3g s", seconds);
    }
    return text;
}

static void tell(const struct supervisor *self, enum skua_log_level level, skua_pid pid,
                 const skua_process_type *type, const char *text)
{
    self->on_log(self->on_log_arg, &(skua_log){.level = level,
                                               .text = text,
                                               .pid = pid,
                                               .type_name = type != NULL ? type->name : NULL});
}

/* Why a child does not live: "could not start, SKUA_E_NAME_TAKEN (-5044) by 013...". */
static void tell_of_start(const struct supervisor *self, const struct child *child, int error,
                          char text[END_SIZE])
{
    char digits[SKUA_PID_TEXT_SIZE];
    char reason[ERROR_SIZE];
    skua_pid holder;
    const bool is_held =
        error == SKUA_E_NAME_TAKEN &&
        skua_name_find(skua_runtime_of(self->ctx), overview_name(child), &holder) == 0;
    (void)snprintf(text, END_SIZE, "could not start, %s%s%s", error_text(error, reason),
                   is_held ? " by " : "", is_held ? skua_pid_format(holder, digits) : "");
}

static void tell_of_end(const struct child *child, skua_pid pid, int error, char text[END_SIZE])
{
    char digits[SKUA_PID_TEXT_SIZE];
    char reason[ERROR_SIZE];
    char duration[DURATION_SIZE];
    if (child->failure == SKUA_E_TIMEOUT) {
        (void)snprintf(text, END_SIZE, "(%s) was not ready within %s (start_ns)",
                       skua_pid_format(pid, digits),
                       duration_text(child->spec->start_ns, duration));
    } else {
        (void)snprintf(text, END_SIZE, "(%s) %s with %s", skua_pid_format(pid, digits),
                       is_orderly(error) ? "ended" : "failed", error_text(error, reason));
    }
}

/* Begins a line: "supervisor shop: child desk (...) failed with ...", and returns its length. What
 * it names is short enough: names have 63 bytes at most. */
static size_t begin_line(const struct supervisor *self, const struct child *child, skua_pid pid,
                         int error, char line[LINE_SIZE])
{
    char end[END_SIZE];
    if (skua_pid_is_none(pid)) {
        tell_of_start(self, child, error, end);
    } else {
        tell_of_end(child, pid, error, end);
    }
    return (size_t)snprintf(line, LINE_SIZE, "supervisor %s: child %s %s", self->spec->name,
                            overview_name(child), end);
}

void journal_wrong(const struct supervisor *self, skua_pid pid, const char *text)
{
    if (self->on_log != NULL) {
        tell(self, SKUA_LOG_ERROR, pid, skua_supervisor_type(), text);
    }
}

void journal_restart(const struct supervisor *self, const struct child *child, skua_pid pid,
                     int error, uint64_t delay_ns, uint32_t others)
{
    char line[LINE_SIZE];
    char duration[DURATION_SIZE];
    char with[32] = "";
    if (self->on_log == NULL) {
        return;
    }
    const size_t length = begin_line(self, child, pid, error, line);
    if (others > 0) {
        (void)snprintf(with, sizeof with, " with %" PRIu32 " other%s", others,
                       others == 1 ? "" : "s");
    }
    (void)snprintf(line + length, LINE_SIZE - length, "; starting it again %s%s%s",
                   delay_ns == 0 ? "now" : "in ",
                   delay_ns == 0 ? "" : duration_text(delay_ns, duration), with);
    tell(self, SKUA_LOG_WARNING, pid, overview_type(child), line);
}

void journal_restart_with(const struct supervisor *self, const struct child *child,
                          const struct child *failed)
{
    char line[LINE_SIZE];
    char digits[SKUA_PID_TEXT_SIZE];
    if (self->on_log == NULL) {
        return;
    }
    const bool ends = child->spec->restart == SKUA_RESTART_NEVER;
    (void)snprintf(line, sizeof line, "supervisor %s: child %s (%s) %s with child %s",
                   self->spec->name, overview_name(child), skua_pid_format(child->pid, digits),
                   ends ? "is stopped for good" : "is stopped and started again",
                   overview_name(failed));
    tell(self, SKUA_LOG_WARNING, child->pid, overview_type(child), line);
}

void journal_over(const struct supervisor *self, const struct child *child, skua_pid pid, int error)
{
    char line[LINE_SIZE];
    if (self->on_log == NULL) {
        return;
    }
    const size_t length = begin_line(self, child, pid, error, line);
    (void)snprintf(line + length, LINE_SIZE - length, "; not restarting it");
    tell(self, SKUA_LOG_WARNING, pid, overview_type(child), line);
}

void journal_give_up(const struct supervisor *self, const struct child *child, skua_pid pid,
                     int error, const skua_budget *budget)
{
    char line[LINE_SIZE];
    char duration[DURATION_SIZE];
    if (self->on_log == NULL) {
        return;
    }
    const size_t length = begin_line(self, child, pid, error, line);
    (void)snprintf(line + length, LINE_SIZE - length,
                   "; giving up after %" PRIu32 " restart%s of %s in %s", budget->restarts,
                   budget->restarts == 1 ? "" : "s",
                   budget == &self->spec->budget ? "all children" : "this child",
                   duration_text(budget->period_ns, duration));
    tell(self, SKUA_LOG_ERROR, pid, overview_type(child), line);
}

void journal_lost(const struct supervisor *self, const skua_child *template, skua_pid pid,
                  int error)
{
    char line[LINE_SIZE];
    char digits[SKUA_PID_TEXT_SIZE];
    char reason[ERROR_SIZE];
    if (self->on_log == NULL) {
        return;
    }
    (void)snprintf(line, LINE_SIZE,
                   "supervisor %s: a child of template %s (%s) cannot be supervised, %s; "
                   "terminating it",
                   self->spec->name, template->name, skua_pid_format(pid, digits),
                   error_text(error, reason));
    tell(self, SKUA_LOG_ERROR, pid, template->type, line);
}
