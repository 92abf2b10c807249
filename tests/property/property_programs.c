/* SPDX-License-Identifier: MIT */
/* Runs random programs and checks that the properties of property.h hold for each.
 *
 *   property_programs [--seeds N] [--first S] [--driver sim|threads|both] [--no-hashes]
 *   property_programs --seed S --driver sim|threads [--trace]      one program
 *   property_programs --hashes                                     the lines of hashes.h
 *
 * With both drivers, which is the default, each has a process of its own, so that two CPUs are
 * used. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hashes.h"
#include "property.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#include <sanitizer/common_interface_defs.h>
#define SEEDS_DEFAULT 100
#else
#define SEEDS_DEFAULT 600
#endif

/* Every so many programs of the simulator are run twice; the traces tell where they differ. */
#define TWICE_EVERY 8

/* Ends a hang; a program takes milliseconds. */
#define HANG_SECONDS 120

#define HASHES (sizeof hashes_expected / sizeof hashes_expected[0])

struct options {
    const char *name;
    uint64_t first;
    uint64_t seeds;
    bool uses_sim;
    bool uses_threads;
    bool trace;
    bool is_single;
    bool prints_hashes;
    bool skips_hashes;
};

/* ---- saying how to repeat ---- */

static char repeat_command[400];

/* A program that is run alone, and every so many of the others, is run twice in the simulator. */
static bool runs_twice(const struct options *options, uint64_t seed)
{
    return options->is_single || seed % TWICE_EVERY == 0;
}

static void prepare_repeat(const struct options *options, uint64_t seed, enum driver driver)
{
    (void)snprintf(repeat_command, sizeof repeat_command,
                   "repeat with: %s --seed %" PRIu64 " --driver %s\n", options->name, seed,
                   driver == DRIVER_SIM ? "sim --trace" : "threads");
}

/* Also in signal handlers. */
static void print_repeat(void)
{
    if (write(STDERR_FILENO, repeat_command, strlen(repeat_command)) < 0) {
        return; /* nobody listens */
    }
}

static void die(int number)
{
    static const char hangs[] = "the program hangs\n";
    if (number == SIGALRM && write(STDERR_FILENO, hangs, sizeof hangs - 1) < 0) {
        return;
    }
    print_repeat();
    (void)signal(SIGABRT, SIG_DFL);
    abort();
}

static void watch_for_death(void)
{
    (void)signal(SIGABRT, die);
    (void)signal(SIGALRM, die);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    __sanitizer_set_death_callback(print_repeat);
#else
    (void)signal(SIGSEGV, die);
#endif
}

/* ---- running ---- */

static bool run_once(const struct options *options, uint64_t seed, enum driver driver,
                     uint64_t *hash)
{
    struct program program;
    program_generate(&program, seed, driver);
    program.trace = options->trace;
    prepare_repeat(options, seed, driver);
    (void)alarm(HANG_SECONDS);
    const bool holds = program_run(&program, hash);
    (void)alarm(0);
    return holds;
}

static bool run_seed(const struct options *options, uint64_t seed, enum driver driver)
{
    uint64_t hash;
    uint64_t again;
    bool holds = run_once(options, seed, driver, &hash);
    if (holds && driver == DRIVER_SIM && runs_twice(options, seed)) {
        holds = run_once(options, seed, driver, &again);
        if (holds && hash != again) {
            (void)fprintf(stderr, "seed %" PRIu64 ": the second run is not like the first\n", seed);
            holds = false;
        }
    }
    if (!holds) {
        print_repeat();
    }
    return holds;
}

/* Stops at the first seed that fails. */
static int run_seeds(const struct options *options, enum driver driver)
{
    for (uint64_t i = 0; i < options->seeds; i++) {
        if (!run_seed(options, options->first + i, driver)) {
            return EXIT_FAILURE;
        }
    }
    (void)printf("%s: %" PRIu64 " programs from seed %" PRIu64 " on: all properties hold\n",
                 driver == DRIVER_SIM ? "simulator" : "threads", options->seeds, options->first);
    return EXIT_SUCCESS;
}

/* ---- the known hashes ---- */

static int print_hashes(const struct options *options)
{
    for (uint64_t seed = 0; seed < HASHES; seed++) {
        uint64_t hash;
        if (!run_once(options, seed, DRIVER_SIM, &hash)) {
            return EXIT_FAILURE;
        }
        (void)printf("    UINT64_C(0x%016" PRIx64 "),\n", hash);
    }
    return EXIT_SUCCESS;
}

static int check_hashes(const struct options *options)
{
    for (uint64_t seed = 0; seed < HASHES; seed++) {
        uint64_t hash;
        if (!run_once(options, seed, DRIVER_SIM, &hash)) {
            print_repeat();
            return EXIT_FAILURE;
        }
        if (hash != hashes_expected[seed]) {
            (void)fprintf(stderr,
                          "seed %" PRIu64 ": the hash is %016" PRIx64 " instead of %016" PRIx64
                          "; see hashes.h\n",
                          seed, hash, hashes_expected[seed]);
            print_repeat();
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}

static int run_simulator(const struct options *options)
{
    const bool skips = options->is_single || options->skips_hashes;
    const int known = skips ? EXIT_SUCCESS : check_hashes(options);
    return known == EXIT_SUCCESS ? run_seeds(options, DRIVER_SIM) : known;
}

/* ---- both at once ---- */

static int wait_for(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return EXIT_FAILURE;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

static int run_both(const struct options *options)
{
    const pid_t child = fork();
    if (child < 0) {
        perror("fork");
        return EXIT_FAILURE;
    }
    if (child == 0) {
        return run_seeds(options, DRIVER_THREADS);
    }
    const int simulated = run_simulator(options);
    const int on_threads = wait_for(child);
    return simulated != EXIT_SUCCESS ? simulated : on_threads;
}

/* ---- arguments ---- */

static int complain(const char *name)
{
    (void)fprintf(stderr,
                  "usage: %s [--seeds N] [--first S] [--driver sim|threads|both] [--no-hashes]\n"
                  "       %s --seed S [--driver sim|threads|both] [--trace]\n"
                  "       %s --hashes\n",
                  name, name, name);
    return EXIT_FAILURE;
}

static bool read_number(const char *text, uint64_t *number)
{
    char *end;
    if (text == NULL || *text < '0' || *text > '9') {
        return false;
    }
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

static bool read_driver(const char *text, struct options *options)
{
    const bool both = text != NULL && strcmp(text, "both") == 0;
    options->uses_sim = both || (text != NULL && strcmp(text, "sim") == 0);
    options->uses_threads = both || (text != NULL && strcmp(text, "threads") == 0);
    return options->uses_sim || options->uses_threads;
}

static bool read_flag(const char *option, struct options *options)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        {"--trace", &options->trace},
        {"--hashes", &options->prints_hashes},
        {"--no-hashes", &options->skips_hashes},
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (strcmp(option, flags[i].name) == 0) {
            *flags[i].flag = true;
            return true;
        }
    }
    return false;
}

/* Reads one option; returns how many arguments it took, or 0. */
static int read_option(const char *option, const char *value, struct options *options)
{
    if (strcmp(option, "--seeds") == 0) {
        return read_number(value, &options->seeds) ? 2 : 0;
    }
    if (strcmp(option, "--first") == 0) {
        return read_number(value, &options->first) ? 2 : 0;
    }
    if (strcmp(option, "--seed") == 0) {
        options->is_single = true;
        options->seeds = 1;
        return read_number(value, &options->first) ? 2 : 0;
    }
    if (strcmp(option, "--driver") == 0) {
        return read_driver(value, options) ? 2 : 0;
    }
    return read_flag(option, options) ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct options options = {
        .name = argv[0], .seeds = SEEDS_DEFAULT, .uses_sim = true, .uses_threads = true};
    for (int i = 1; i < argc;) {
        const int taken = read_option(argv[i], argv[i + 1], &options);
        if (taken == 0) {
            return complain(argv[0]);
        }
        i += taken;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    watch_for_death();
    /* A runtime's memory comes in large pieces. Keep them from one program to the next: getting
     * them from the system takes longer than the programs do. */
    (void)mallopt(M_MMAP_THRESHOLD, INT_MAX);
    (void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
    if (options.prints_hashes) {
        return print_hashes(&options);
    }
    if (options.uses_sim && options.uses_threads) {
        return run_both(&options);
    }
    return options.uses_sim ? run_simulator(&options) : run_seeds(&options, DRIVER_THREADS);
}
