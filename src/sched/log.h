/* SPDX-License-Identifier: MIT */
/* What the runtime has to say to the program: skua_runtime_config.on_log. */
#ifndef SKUA_SCHED_LOG_H
#define SKUA_SCHED_LOG_H

#include "relations/name_key.h"
#include "sched/scheduler.h"

void log_init(struct log *log);
void log_deinit(struct log *log);

/* Whether an end is orderly: neither logged nor, for whoever asks, a failure. */
static inline bool log_is_orderly(int error)
{
    return error == 0 || error == SKUA_E_STOPPED || error == SKUA_E_CANCELLED;
}

/* What a line says of a process that has ended, and its exit does not. */
struct log_about {
    uint64_t steps;
    char name[NAME_SIZE]; /* or its label; empty: it has neither */
};

/* A process that nobody watches has ended with an error that is not orderly. */
void log_failure(struct scheduler *sched, const skua_exit *exit, const struct log_about *about);

/* Tells how many lines were left out, if there were any and their second, or (at_end) all, is
 * over. */
void log_tell_dropped(struct scheduler *sched, bool at_end);

/* The stacks of tasks have a weaker guard than there could be: tells of each once. */
void log_weak_guard(struct scheduler *sched);

/* A task has written past the end of its stack. */
void log_overflow(const skua_context *ctx, size_t stack_size);

/* The program has closed a descriptor of the runtime's own; `what` says which. Not under a lock. */
void log_lost_descriptor(struct scheduler *sched, const char *what);

/* A process could not change to another type. */
void log_upgrade_failure(struct scheduler *sched, skua_pid pid, const skua_process_type *from,
                         const skua_process_type *to, int error);

/* Processes wait for each other's answers; `names` are some of them, or all. */
void log_cycle(struct scheduler *sched, skua_pid first, const char *names);

/* The process of a context has misused it, as `text` says. */
void log_misuse(const skua_context *ctx, const char *text);

#endif
