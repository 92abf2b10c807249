/* SPDX-License-Identifier: MIT */
/* The main function of all models. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/monotonic.h"
#include "explore.h"

#define SEED_DEFAULT 1

/* How models are explored that do not ask for stale loads themselves, besides. */
#define WEAK_SCHEDULES 5000
#define WEAK_STALE     2

/* What the arguments ask for; zero: what the model says. */
struct options {
    uint32_t seed;
    uint32_t random;
    uint32_t preemptions;
    uint32_t stale;
    bool table;
    bool quiet;
    const char *name;
    const char *schedule;
};

static void write_extent(const struct explore_model *model, char *text, size_t size)
{
    int length = 0;
    switch (model->mode) {
    case EXPLORE_ALL:
        length = snprintf(text, size, "all but equivalent");
        break;
    case EXPLORE_EACH:
        length = snprintf(text, size, "all");
        break;
    case EXPLORE_PREEMPTIONS:
        length = snprintf(text, size, "up to %" PRIu32 " preemptions", model->bound);
        break;
    case EXPLORE_RANDOM:
        length = snprintf(text, size, "random, seed %" PRIu64, model->seed);
        break;
    }
    if (model->stale == UINT32_MAX) {
        (void)snprintf(text + length, size - (size_t)length, ", stale loads");
    } else if (model->stale > 0) {
        (void)snprintf(text + length, size - (size_t)length, ", up to %" PRIu32 " stale",
                       model->stale);
    }
}

static uint32_t count_threads(const struct explore_model *model)
{
    uint32_t count = 0;
    while (count < EXPLORE_THREADS_MAX && model->threads[count].run != NULL) {
        count++;
    }
    return count;
}

static bool explore_and_report(const struct explore_model *model, const struct options *options)
{
    char extent[64];
    write_extent(model, extent, sizeof extent);
    if (options->table) {
        printf("model\t%s\t%" PRIu32 "\t%s", model->name, count_threads(model), extent);
    } else {
        printf("%-28s %s", model->name, extent);
    }
    (void)fflush(stdout); /* before anything can go wrong */
    const uint64_t start = monotonic_ns();
    const struct explore_result result = explore(model, options->table || options->quiet);
    const double seconds = (double)(monotonic_ns() - start) / 1e9;
    if (options->table) {
        printf("\t%" PRIu64 "\t%" PRIu64 "\t%.2f\t%s\n", result.schedules, result.cut, seconds,
               result.failed ? "FAILED" : "ok");
    } else {
        printf(": %s%" PRIu64 " schedules (+%" PRIu64 " cut) of up to %" PRIu32 " steps, %.2f s\n",
               result.failed ? "FAILED after " : "", result.schedules, result.cut, result.steps,
               seconds);
    }
    (void)fflush(stdout);
    return !result.failed;
}

/* Where an option's number goes; null if it is no such option. */
static uint32_t *number_of(struct options *options, const char *option)
{
    if (strcmp(option, "-s") == 0) {
        return &options->seed;
    }
    if (strcmp(option, "-r") == 0) {
        return &options->random;
    }
    if (strcmp(option, "-p") == 0) {
        return &options->preemptions;
    }
    return strcmp(option, "-w") == 0 ? &options->stale : NULL;
}

/* An option and, if it has one, its number. Returns how many arguments that were, 0 if it is wrong.
 */
static int read_option(struct options *options, const char *option, const char *value)
{
    if (strcmp(option, "--table") == 0) {
        options->table = true;
        return 1;
    }
    if (strcmp(option, "--quiet") == 0) {
        options->quiet = true;
        return 1;
    }
    uint32_t *number = number_of(options, option);
    if (number == NULL || value == NULL) {
        return 0;
    }
    char *end;
    *number = (uint32_t)strtoul(value, &end, 0);
    return *number != 0 && *end == '\0' ? 2 : 0;
}

/* False if the arguments are wrong. */
static bool read_arguments(struct options *options, int argc, char **argv)
{
    int at = 1;
    while (at < argc && argv[at][0] == '-') {
        const int count = read_option(options, argv[at], at + 1 < argc ? argv[at + 1] : NULL);
        if (count == 0) {
            return false;
        }
        at += count;
    }
    options->name = at < argc ? argv[at] : NULL;
    options->schedule = at + 1 < argc ? argv[at + 1] : NULL;
    return at + 2 >= argc;
}

static int explain(const char *program, const struct explore_model *models, size_t count)
{
    (void)fprintf(stderr,
                  "usage: %s [-r COUNT] [-s SEED] [-p BOUND] [-w COUNT] [--table] [--quiet]"
                  " [CASE [SCHEDULE]]\n"
                  "  -r COUNT   so many random schedules, from -s SEED\n"
                  "  -p BOUND   all schedules with so many preemptions\n"
                  "  -w COUNT   loads of one schedule that may be stale\n"
                  "  --table    a line with tabs for each case\n"
                  "  --quiet    no trace; ends at the first failure\n"
                  "  SCHEDULE   repeats that one and prints its trace\n"
                  "cases:",
                  program);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(stderr, " %s", models[i].name);
    }
    (void)fprintf(stderr, "\n");
    return 2;
}

static void apply(struct explore_model *model, const struct options *options)
{
    model->seed = options->seed != 0 ? options->seed : SEED_DEFAULT;
    if (options->random != 0) {
        model->mode = EXPLORE_RANDOM;
        model->bound = options->random;
    } else if (options->preemptions != 0) {
        model->mode = EXPLORE_PREEMPTIONS;
        model->bound = options->preemptions;
    }
    if (options->stale != 0 && !model->never_stale) {
        model->stale = options->stale;
    }
}

/* As the model says or as the options ask; in the first case also with a few stale loads. */
static bool explore_all_ways(struct explore_model *model, const struct options *options)
{
    apply(model, options);
    const bool is_weak = model->stale > 0 || model->never_stale;
    const bool good = explore_and_report(model, options);
    if (is_weak || options->random != 0 || options->preemptions != 0 || (!good && options->quiet)) {
        return good;
    }
    model->mode = EXPLORE_RANDOM;
    model->bound = WEAK_SCHEDULES;
    model->stale = WEAK_STALE;
    return explore_and_report(model, options) && good;
}

int explore_main(int argc, char **argv, const struct explore_model *models, size_t count)
{
    struct options options = {0};
    if (!read_arguments(&options, argc, argv)) {
        return explain(argv[0], models, count);
    }
    bool found = false;
    bool good = true;
    for (size_t i = 0; i < count && (good || !options.quiet); i++) {
        struct explore_model model = models[i];
        if (options.name != NULL && strcmp(options.name, model.name) != 0) {
            continue;
        }
        found = true;
        good &= options.schedule != NULL ? explore_repeat(&model, options.schedule)
                                         : explore_all_ways(&model, &options);
    }
    if (!found) {
        printf("no model is called %s\n", options.name);
    }
    return found && good ? EXIT_SUCCESS : EXIT_FAILURE;
}
