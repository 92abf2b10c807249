/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target without a fuzzer.
 *
 *   fuzz_api                               random inputs for two seconds
 *   fuzz_api --seconds N                   ... for N seconds
 *   fuzz_api --seed S [--runs N]           the inputs number S to S + N - 1, by default one
 *   fuzz_api FILE...                       inputs that a fuzzer has kept
 *
 * Random inputs come from their number alone. If one fails, the command that repeats it is
 * printed; as threads run as they like, it may take some runs to fail again. */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "base/random.h"

#define INPUT_MAX    512
#define HANG_SECONDS 120

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Only sanitizers have it: calls the function before they end the program. */
void __sanitizer_set_death_callback(void (*function)(void)) __attribute__((weak));

/* What to do to see a failure again. */
static char advice[512];

static void give_advice(void)
{
    (void)!write(STDERR_FILENO, advice, strlen(advice));
}

static void die(int number)
{
    give_advice();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void prepare_advice(void)
{
    static const int deadly[] = {SIGABRT, SIGALRM, SIGSEGV, SIGBUS};
    if (&__sanitizer_set_death_callback != NULL) {
        __sanitizer_set_death_callback(give_advice);
    }
    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++) {
        (void)signal(deadly[i], die);
    }
}

static void run(const uint8_t *data, size_t size)
{
    (void)alarm(HANG_SECONDS); /* only ends a hang */
    (void)LLVMFuzzerTestOneInput(data, size);
    (void)alarm(0);
}

static void run_random(const char *program, uint64_t seed)
{
    uint8_t data[INPUT_MAX];
    uint64_t stream = random_mix(seed);
    const size_t size = random_below(&stream, sizeof data + 1);
    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t)random_next(&stream);
    }
    (void)snprintf(advice, sizeof advice, "repeat with: %s --seed %" PRIu64 "\n", program, seed);
    run(data, size);
}

static int run_for(const char *program, uint64_t seconds)
{
    const uint64_t first = (uint64_t)time(NULL) * 1000000;
    const uint64_t deadline = monotonic_deadline(seconds * UINT64_C(1000000000));
    uint64_t seed = first;
    do {
        run_random(program, seed++);
    } while (monotonic_ns() < deadline);
    (void)printf("%" PRIu64 " inputs; repeat with: %s --seed %" PRIu64 " --runs %" PRIu64 "\n",
                 seed - first, program, first, seed - first);
    return EXIT_SUCCESS;
}

static int run_seeds(const char *program, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        run_random(program, first + i);
    }
    return EXIT_SUCCESS;
}

static bool run_file(const char *program, const char *path)
{
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return false;
    }
    const size_t size = fread(data, 1, sizeof data, file);
    (void)fclose(file);
    (void)snprintf(advice, sizeof advice, "repeat with: %s %s\n", program, path);
    run(data, size);
    return true;
}

static int run_files(const char *program, char **paths)
{
    for (; *paths != NULL; paths++) {
        if (!run_file(program, *paths)) {
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}

struct options {
    uint64_t seed;
    uint64_t runs;
    uint64_t seconds;
    bool has_seed;
};

/* Reads one option with its number; false if it is none. */
static bool read_option(struct options *options, const char *name, const char *value)
{
    char *end = NULL;
    const uint64_t number = value != NULL ? strtoull(value, &end, 0) : 0;
    if (value == NULL || end == value || *end != '\0') {
        return false;
    }
    if (strcmp(name, "--seed") == 0) {
        options->seed = number;
        options->has_seed = true;
    } else if (strcmp(name, "--runs") == 0) {
        options->runs = number;
    } else if (strcmp(name, "--seconds") == 0) {
        options->seconds = number;
    } else {
        return false;
    }
    return true;
}

static int explain(const char *program)
{
    (void)fprintf(stderr,
                  "usage: %s [--seconds N]          random inputs for so long (2)\n"
                  "       %s --seed S [--runs N]    those of the seeds from S on (1)\n"
                  "       %s FILE...                inputs that were kept\n",
                  program, program, program);
    return 2;
}

int main(int argc, char **argv)
{
    struct options options = {.runs = 1, .seconds = 2};
    prepare_advice();
    if (argc > 1 && argv[1][0] != '-') {
        return run_files(argv[0], argv + 1);
    }
    for (int i = 1; i < argc; i += 2) {
        if (!read_option(&options, argv[i], argv[i + 1])) {
            return explain(argv[0]);
        }
    }
    return options.has_seed ? run_seeds(argv[0], options.seed, options.runs)
                            : run_for(argv[0], options.seconds);
}
