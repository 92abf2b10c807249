/* SPDX-License-Identifier: MIT */
/* The command: reads its arguments, runs the workloads and prints what came of it, for people or as
 * one JSON object a line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define RUNS_MAX  99
#define NAMES_MAX 64

struct options {
    uint32_t workers;
    uint32_t runs;
    uint32_t size; /* 0: each workload's own */
    bool json;
    const struct workload *chosen[NAMES_MAX]; /* none: all */
    uint32_t chosen_count;
};

/* ---- results ---- */

static double ns_per_op(const struct measurement *measurement)
{
    return (double)measurement->elapsed_ns / (double)measurement->ops;
}

static int compare_values(const void *a, const void *b)
{
    const double x = ((const struct measurement *)a)->value;
    const double y = ((const struct measurement *)b)->value;
    return (x > y) - (x < y);
}

static int compare_times(const void *a, const void *b)
{
    const double x = ns_per_op(a);
    const double y = ns_per_op(b);
    return (x > y) - (x < y);
}

static void print_row(const struct workload *workload, struct measurement *runs, uint32_t count)
{
    qsort(runs, count, sizeof runs[0], compare_values);
    const struct measurement *median = &runs[count / 2];
    printf("%-19s %9.2f %9.2f %9.2f  %-18s %5.0f MiB", workload->name, median->value, runs[0].value,
           runs[count - 1].value, workload->unit, (double)median->resident_bytes / (1 << 20));
    if (median->note[0] != '\0') {
        printf("  %s\n", median->note);
        return;
    }
    const skua_stats *stats = &median->stats;
    printf("  steals %" PRIu64 ", parks %" PRIu64 ", wakes %" PRIu64 ", spills %" PRIu64 "\n",
           stats->steal_successes, stats->parks, stats->wakes, stats->spills);
}

static void print_field(const char *name, double value)
{
    if (value != 0) {
        printf(", \"%s\": %.3f", name, value);
    }
}

static void print_latency(const struct measurement *measurement)
{
    print_field("p50_ms", measurement->p50_ms);
    print_field("p99_ms", measurement->p99_ms);
    print_field("p999_ms", measurement->p999_ms);
    print_field("max_ms", measurement->max_ms);
    if (measurement->counts_steps) {
        printf(", \"steps_between_p50\": %.0f, \"steps_between_p99\": %.0f"
               ", \"steps_per_second\": %.1f, \"throughput_share\": %.4f",
               measurement->steps_between_p50, measurement->steps_between_p99,
               measurement->steps_per_second, measurement->throughput_share);
    }
}

static uint32_t size_of(const struct workload *workload, const struct options *options)
{
    return options->size != 0 ? options->size : workload->size;
}

static void print_json(const struct workload *workload, const struct options *options,
                       struct measurement *runs)
{
    const uint32_t count = options->runs;
    qsort(runs, count, sizeof runs[0], compare_times);
    const struct measurement *median = &runs[count / 2];
    printf("{\"workload\": \"%s\", \"workers\": %" PRIu32 ", \"runs\": %" PRIu32
           ", \"ops\": %" PRIu64 ", \"ns_per_op\": %.3f, \"ns_min\": %.3f, \"ns_max\": %.3f"
           ", \"rss_bytes\": %" PRIu64,
           workload->name, options->workers, count, median->ops, ns_per_op(median),
           ns_per_op(&runs[0]), ns_per_op(&runs[count - 1]), median->resident_bytes);
    if (workload->size != 0) {
        printf(", \"size\": %" PRIu32, size_of(workload, options));
    }
    print_field("bytes_per_process", median->bytes_per_process);
    print_field("beyond_ns", median->beyond_ns);
    if (median->cpu_s > 0) {
        print_field("wall_s", (double)median->elapsed_ns / 1e9);
    }
    print_field("cpu_s", median->cpu_s);
    print_field("late_p50_us", median->late_p50_us);
    print_field("late_p99_us", median->late_p99_us);
    print_field("p50_us", median->p50_us);
    print_field("p99_us", median->p99_us);
    print_field("times_futex", median->times_futex);
    if (median->counts_wakeups) {
        printf(", \"wakeups\": %.0f", median->value);
    }
    print_latency(median);
    printf("}\n");
}

static struct measurement run_once(const struct workload *workload, const struct options *options)
{
    return workload->size != 0 ? workload->run_sized(options->workers, size_of(workload, options))
                               : workload->run(options->workers);
}

static void run_workload(const struct workload *workload, const struct options *options)
{
    struct measurement runs[RUNS_MAX];
    const bool tells = isatty(STDERR_FILENO);
    for (uint32_t i = 0; i < options->runs; i++) {
        if (tells) {
            fprintf(stderr, "\r%s: run %" PRIu32 " of %" PRIu32 "  ", workload->name, i + 1,
                    options->runs);
        }
        runs[i] = run_once(workload, options);
    }
    if (tells) {
        fprintf(stderr, "\r%60s\r", "");
    }
    if (options->json) {
        print_json(workload, options, runs);
    } else {
        print_row(workload, runs, options->runs);
    }
    fflush(stdout);
}

static int run_all(const struct options *options)
{
    if (!options->json) {
        printf("Skua %s, %" PRIu32 " worker%s, %" PRIu32 " run%s\n\n", skua_version(),
               options->workers, options->workers == 1 ? "" : "s", options->runs,
               options->runs == 1 ? "" : "s");
        printf("%-19s %9s %9s %9s\n", "workload", "median", "min", "max");
    }
    for (uint32_t i = 0; i < options->chosen_count; i++) {
        run_workload(options->chosen[i], options);
    }
    for (uint32_t i = 0; options->chosen_count == 0 && workloads[i].name != NULL; i++) {
        run_workload(&workloads[i], options);
    }
    return 0;
}

/* ---- arguments ---- */

static void list(void)
{
    for (const struct workload *workload = workloads; workload->name != NULL; workload++) {
        printf("  %-19s %-18s %s\n", workload->name, workload->unit, workload->about);
    }
}

static void usage(void)
{
    printf("usage: skua bench [WORKLOAD...] [--workers N] [--runs N] [--size N] [--json]\n"
           "                  [--list]\n\n"
           "Runs the named workloads, or all, and prints median, smallest and largest run.\n\n"
           "  --workers N  worker threads (2)\n"
           "  --runs N     runs of each workload (5)\n"
           "  --size N     processes, timers or messages at once, for workloads that have such a\n"
           "               number; a million by default\n"
           "  --json       one object per line, times in nanoseconds per operation\n"
           "  --list       list the workloads, their units and what they do\n\n"
           "Workloads:\n");
    list();
}

static _Noreturn void refuse(const char *what, const char *word, const char *advice)
{
    fprintf(stderr, "skua bench: %s '%s'; %s\n", what, word, advice);
    exit(2);
}

static const struct workload *find(const char *name)
{
    const struct workload *workload = workloads;
    while (workload->name != NULL && strcmp(workload->name, name) != 0) {
        workload++;
    }
    return workload->name != NULL ? workload : NULL;
}

/* Whether argv[*i] is this option, --name N or --name=N. Reads the number, and moves *i to it. */
static bool takes_number(char **argv, int *i, const char *name, uint32_t most, uint32_t *number)
{
    const size_t length = strcspn(argv[*i], "=");
    char *end = NULL;
    if (length != strlen(name) || strncmp(argv[*i], name, length) != 0) {
        return false;
    }
    const char *text = argv[*i][length] == '=' ? argv[*i] + length + 1 : argv[++*i];
    const unsigned long value = text != NULL ? strtoul(text, &end, 10) : 0;
    if (text == NULL || *end != '\0' || value == 0 || value > most) {
        fprintf(stderr, "skua bench: %s needs a number from 1 to %" PRIu32 "\n", name, most);
        exit(2);
    }
    *number = (uint32_t)value;
    return true;
}

/* A size is for workloads that have one. */
static void check_size(const struct options *options)
{
    bool refused = options->chosen_count == 0; /* all are chosen, and some have none */
    for (uint32_t i = 0; i < options->chosen_count; i++) {
        refused = refused || options->chosen[i]->size == 0;
    }
    if (options->size == 0 || !refused) {
        return;
    }
    fprintf(stderr, "skua bench: --size works only with:");
    for (const struct workload *workload = workloads; workload->name != NULL; workload++) {
        if (workload->size != 0) {
            fprintf(stderr, " %s", workload->name);
        }
    }
    fprintf(stderr, "\n");
    exit(2);
}

static void choose(struct options *options, const char *name)
{
    const struct workload *workload = find(name);
    if (workload == NULL && name[0] == '-') {
        refuse("unknown option", name, "see --help");
    }
    if (workload == NULL) {
        refuse("unknown workload", name, "--list lists them");
    }
    if (options->chosen_count == NAMES_MAX) {
        refuse("too many workloads, from", name, "without any, all are run");
    }
    options->chosen[options->chosen_count++] = workload;
}

int bench_command(int argc, char **argv)
{
    struct options options = {.workers = 2, .runs = 5};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage();
            return 0;
        }
        if (strcmp(argv[i], "--list") == 0) {
            list();
            return 0;
        }
        if (strcmp(argv[i], "--json") == 0) {
            options.json = true;
        } else if (!takes_number(argv, &i, "--workers", SKUA_WORKERS_MAX, &options.workers) &&
                   !takes_number(argv, &i, "--runs", RUNS_MAX, &options.runs) &&
                   !takes_number(argv, &i, "--size", LARGEST_SIZE, &options.size)) {
            choose(&options, argv[i]);
        }
    }
    check_size(&options);
    return run_all(&options);
}
