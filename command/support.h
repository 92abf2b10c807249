/* SPDX-License-Identifier: MIT */
/* What the commands share: how they complain, and how they read time, numbers and
 * durations. */
#ifndef COMMAND_SUPPORT_H
#define COMMAND_SUPPORT_H

#include <stdbool.h>
#include <stdint.h>

/* What a command returns, and so the exit status. */
enum { STATUS_FAILURE = 1, STATUS_USAGE = 2 };

/* Prints one line to stderr: `skua COMMAND: ` and the text. Returns STATUS_USAGE. */
__attribute__((format(printf, 2, 3))) int usage_error(const char *command, const char *format, ...);

/* The same for what is not the fault of the command line. Returns STATUS_FAILURE. */
__attribute__((format(printf, 2, 3))) int failure(const char *command, const char *format, ...);

/* Monotonic time in nanoseconds. */
uint64_t clock_ns(void);

/* A decimal number from `least` to `most`, and nothing else. */
bool parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *value);

/* A decimal number, with a fraction or without, and a unit: 500us, 100ms, 1.5s, 2m, 1h. At most 292
 * years (SKUA_DURATION_MAX). */
bool parse_duration(const char *text, uint64_t *duration_ns);

/* Whether `text` is the option `name`, which takes a value: --name, or --name=value. */
bool is_valued(const char *text, const char *name);

/* These read the value of the option argv[*i]: what is behind its =, or the next argument, to which
 * they then move *i. If it is missing or wrong they print what the option needs, as usage_error
 * does, and return false. argv ends with a null. */
bool option_text(const char *command, char **argv, int *i, const char **text);
bool option_number(const char *command, char **argv, int *i, uint64_t least, uint64_t most,
                   uint64_t *value);
bool option_duration(const char *command, char **argv, int *i, uint64_t *duration_ns);

#endif
