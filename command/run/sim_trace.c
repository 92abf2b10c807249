/* SPDX-License-Identifier: MIT */
/* `skua run --sim --trace`: the trace of a simulation as text, a line for each record. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "command/run/run.h"
#include "command/support.h"

/* Longer lines, which only the names of types can make so long, are cut. */
#define LINE_SIZE 512

int sim_trace_open(const char *name, FILE **out)
{
    *out = strcmp(name, "-") == 0 ? stdout : fopen(name, "we");
    return *out != NULL ? 0 : failure(RUN, "cannot write %s: %s", name, strerror(errno));
}

void sim_trace_write(void *out, const skua_sim_record *record)
{
    char line[LINE_SIZE];
    (void)skua_sim_record_format(record, line, sizeof line);
    fprintf(out, "%s\n", line);
}

int sim_trace_close(const char *name, FILE *out)
{
    if (out == stdout) {
        return 0; /* checked when all is written */
    }
    const bool failed = ferror(out) != 0;
    return fclose(out) == 0 && !failed ? 0 : failure(RUN, "cannot write all of %s", name);
}
