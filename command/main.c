/* SPDX-License-Identifier: MIT */
/* The command `skua`: one word says what to do, the rest is that command's own. */
#include <errno.h>
#include <skua/version.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "command/commands.h"
#include "command/support.h"

struct command {
    const char *name;
    const char *about;
    int (*run)(int argc, char **argv); /* gets its own name as argv[0] */
};

static const struct command commands[] = {
    {"run", "run a module: processes in a shared object", run_command},
    {"new", "create a new module", new_command},
    {"ps", "list the processes of a running program", ps_command},
    {"sockets", "list the sockets of a running program", sockets_command},
    {"tree", "show who supervises whom in a running program", tree_command},
    {"top", "watch a running program: workers and processes", top_command},
    {"stat", "print statistics of a running program, one line per second", stat_command},
    {"info", "show the details of one process", info_command},
    {"trace", "record a trace of a running program, for Perfetto", trace_command},
    {"reload", "load a new version of a module into a running program", reload_command},
    {"metrics", "print the metrics of a running program, for Prometheus", metrics_command},
    {"bench", "measure the runtime on this machine", bench_command},
};

#define COMMANDS (sizeof commands / sizeof commands[0])

static void usage(FILE *out)
{
    fprintf(out, "usage: skua COMMAND [ARGUMENT...]\n\n");
    for (size_t i = 0; i < COMMANDS; i++) {
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].about);
    }
    fprintf(out, "\nSee `skua COMMAND --help` for options. `skua --version` prints the version.\n");
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return STATUS_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("skua %s\n", skua_version());
        return 0;
    }
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "skua: unknown command '%s'; see `skua --help`\n", argv[1]);
    return STATUS_USAGE;
}

int main(int argc, char **argv)
{
    const int status = run(argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout) != 0) && status == 0 && errno != EPIPE) {
        fprintf(stderr, "skua: cannot write output: %s\n", strerror(errno));
        return STATUS_FAILURE;
    }
    return status;
}
