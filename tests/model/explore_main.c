/* SPDX-License-Identifier: MIT */
/* The main function of all models. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/monotonic.h"
#include "explore.h"

#define SEED_DEFAULT 1

static void print_extent(const struct explore_model *model)
{
    switch (model->mode) {
    case EXPLORE_ALL:
        printf("all but equivalent");
        break;
    case EXPLORE_EACH:
        printf("all");
        break;
    case EXPLORE_PREEMPTIONS:
        printf("up to %" PRIu32 " preemptions", model->bound);
        break;
    case EXPLORE_RANDOM:
        printf("random, seed %" PRIu64, model->seed);
        break;
    }
}

static bool explore_and_report(const struct explore_model *model)
{
    printf("%-28s ", model->name);
    print_extent(model);
    (void)fflush(stdout); /* before anything can go wrong */
    const uint64_t start = monotonic_ns();
    const struct explore_result result = explore(model, false);
    const double seconds = (double)(monotonic_ns() - start) / 1e9;
    printf(": %s%" PRIu64 " schedules (+%" PRIu64 " cut) of up to %" PRIu32 " steps, %.2f s\n",
           result.failed     ? "FAILED after "
           : result.complete ? ""
                             : "stopped after ",
           result.schedules, result.cut, result.steps, seconds);
    (void)fflush(stdout);
    return !result.failed;
}

/* What the arguments ask for; zero: what the model says. */
struct wishes {
    uint64_t seed;
    uint32_t random;
    uint32_t preemptions;
    const char *name;
    const char *schedule;
};

static struct wishes read_arguments(int argc, char **argv)
{
    struct wishes wishes = {0};
    int at = 1;
    for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
        const uint64_t number = strtoull(argv[at + 1], NULL, 0);
        if (strcmp(argv[at], "-s") == 0) {
            wishes.seed = number;
        } else if (strcmp(argv[at], "-r") == 0) {
            wishes.random = (uint32_t)number;
        } else if (strcmp(argv[at], "-p") == 0) {
            wishes.preemptions = (uint32_t)number;
        }
    }
    wishes.name = at < argc ? argv[at] : NULL;
    wishes.schedule = at + 1 < argc ? argv[at + 1] : NULL;
    return wishes;
}

static void grant(struct explore_model *model, const struct wishes *wishes)
{
    model->seed = wishes->seed != 0 ? wishes->seed : SEED_DEFAULT;
    if (wishes->random != 0) {
        model->mode = EXPLORE_RANDOM;
        model->bound = wishes->random;
    } else if (wishes->preemptions != 0) {
        model->mode = EXPLORE_PREEMPTIONS;
        model->bound = wishes->preemptions;
    }
}

int explore_main(int argc, char **argv, const struct explore_model *models, size_t count)
{
    const struct wishes wishes = read_arguments(argc, argv);
    bool found = false;
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        struct explore_model model = models[i];
        if (wishes.name != NULL && strcmp(wishes.name, model.name) != 0) {
            continue;
        }
        found = true;
        grant(&model, &wishes);
        good &= wishes.schedule != NULL ? explore_repeat(&model, wishes.schedule)
                                        : explore_and_report(&model);
    }
    if (!found) {
        printf("no model is called %s\n", wishes.name);
    }
    return found && good ? EXIT_SUCCESS : EXIT_FAILURE;
}
