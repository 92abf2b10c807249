/* SPDX-License-Identifier: MIT */
/* What the command lines of ps, top, stat, info, trace and metrics share. */
#include <skua/types.h>
#include <stdio.h>
#include <string.h>

#include "command/inspect/inspect.h"
#include "command/support.h"

bool is_help(const char *text)
{
    return strcmp(text, "-h") == 0 || strcmp(text, "--help") == 0;
}

bool is_program(const char *text)
{
    return strcmp(text, "-p") == 0 || is_valued(text, "--program");
}

int unknown_argument(const char *command, const char *argument)
{
    return argument[0] == '-' ? usage_error(command, "unknown option '%s'; see --help", argument)
                              : usage_error(command, "unexpected argument '%s'", argument);
}

int finish_output(const char *command, int status)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0) {
        return status;
    }
    return status != 0 ? status : failure(command, "cannot write to standard output");
}

bool option_interval(const char *command, char **argv, int *i, uint64_t *interval_ns)
{
    const char *option = argv[*i];
    if (!option_duration(command, argv, i, interval_ns)) {
        return false;
    }
    if (*interval_ns < 10 * SKUA_MILLISECOND || *interval_ns > 3600 * SKUA_SECOND) {
        usage_error(command, "%s needs a duration from 10ms to 1h", option);
        return false;
    }
    return true;
}
