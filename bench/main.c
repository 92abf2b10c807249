/* SPDX-License-Identifier: MIT */
/* skua-bench: runs workloads several times and prints the median with the smallest and largest. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define RUNS_MAX 99

struct options {
    uint32_t workers;
    uint32_t runs;
    const char *const *names; /* empty: all */
    int name_count;
};

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void expect_ok(int error, const char *what)
{
    if (error != 0) {
        fprintf(stderr, "skua-bench: %s: %s (%s)\n", what, skua_error_text(error),
                skua_error_name(error));
        exit(1);
    }
}

static int compare(const void *a, const void *b)
{
    const double x = ((const struct measurement *)a)->value;
    const double y = ((const struct measurement *)b)->value;
    return (x > y) - (x < y);
}

static void run_workload(const struct workload *workload, const struct options *options)
{
    struct measurement runs[RUNS_MAX];
    for (uint32_t i = 0; i < options->runs; i++) {
        if (isatty(STDERR_FILENO)) {
            fprintf(stderr, "\r%s: run %" PRIu32 " of %" PRIu32 "  ", workload->name, i + 1,
                    options->runs);
        }
        runs[i] = workload->run(options->workers);
    }
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r%60s\r", "");
    }
    qsort(runs, options->runs, sizeof runs[0], compare);
    const struct measurement *median = &runs[options->runs / 2];
    printf("%-14s %9.2f %9.2f %9.2f  %-18s", workload->name, median->value, runs[0].value,
           runs[options->runs - 1].value, workload->unit);
    if (median->note[0] != '\0') {
        printf(" %s\n", median->note);
    } else {
        printf(" steals %" PRIu64 ", parks %" PRIu64 ", wakes %" PRIu64 ", spills %" PRIu64 "\n",
               median->stats.steal_successes, median->stats.parks, median->stats.wakes,
               median->stats.spills);
    }
    fflush(stdout);
}

static const struct workload *find(const char *name)
{
    for (const struct workload *workload = workloads; workload->name != NULL; workload++) {
        if (strcmp(workload->name, name) == 0) {
            return workload;
        }
    }
    return NULL;
}

static void list(FILE *out)
{
    for (const struct workload *workload = workloads; workload->name != NULL; workload++) {
        fprintf(out, "  %-14s %s\n", workload->name, workload->about);
    }
}

static void usage(FILE *out)
{
    fprintf(out, "usage: skua-bench [WORKLOAD...] [--workers N] [--runs N]\n\nWorkloads:\n");
    list(out);
}

static _Noreturn void refuse(const char *what, const char *word)
{
    fprintf(stderr, "skua-bench: %s '%s'\n", what, word);
    usage(stderr);
    exit(2);
}

static uint32_t number(const char *option, const char *text, uint32_t most)
{
    char *end;
    const unsigned long value = text != NULL ? strtoul(text, &end, 10) : 0;
    if (text == NULL || *end != '\0' || value == 0 || value > most) {
        refuse("a number is needed after", option);
    }
    return (uint32_t)value;
}

static void parse(int argc, char **argv, struct options *options)
{
    static const char *names[64];
    *options = (struct options){.workers = 2, .runs = 5, .names = names};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            usage(stdout);
            exit(0);
        } else if (strcmp(argv[i], "--workers") == 0) {
            options->workers = number("--workers", argv[++i], SKUA_WORKERS_MAX);
        } else if (strcmp(argv[i], "--runs") == 0) {
            options->runs = number("--runs", argv[++i], RUNS_MAX);
        } else if (find(argv[i]) == NULL || options->name_count == 64) {
            refuse("no such workload:", argv[i]);
        } else {
            names[options->name_count++] = argv[i];
        }
    }
}

int main(int argc, char **argv)
{
    struct options options;
    parse(argc, argv, &options);
    printf("Skua %s, %" PRIu32 " workers, %" PRIu32 " runs\n\n", skua_version(), options.workers,
           options.runs);
    printf("%-14s %9s %9s %9s\n", "workload", "median", "min", "max");
    if (options.name_count == 0) {
        for (const struct workload *workload = workloads; workload->name != NULL; workload++) {
            run_workload(workload, &options);
        }
    }
    for (int i = 0; i < options.name_count; i++) {
        run_workload(find(options.names[i]), &options);
    }
    return 0;
}
